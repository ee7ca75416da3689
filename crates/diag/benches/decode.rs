//! CPU time per packet, from the bytes of the port to a KPI, for recorded logs.
//!
//! | column | processing |
//! | --- | --- |
//! | one KPI | de-framed; `lte.rsrp` is read, other packets are left out |
//! | one of each | de-framed; one KPI is read from every kind of packet that contains any |
//! | all KPIs | de-framed; all KPIs of the list are read |
//! | everything | de-framed; every field of every record is read, nested |
//!
//! The table contains the median and the 99th percentile of the time per packet. Each packet is timed separately,
//! several times. Each time includes about 30 ns for reading the clock. Criterion then measures whole logs, in packets
//! per second.
//!
//! `cargo bench -p airpace-diag --bench decode`; the logs are in the folder given by `AIRPACE_DATA`, under `diag/`.

#[path = "../tests/logs/recordings_folder/mod.rs"]
mod recordings_folder;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

use airpace_diag::kpi::qualcomm::ORIGINS;
use airpace_diag::kpi::{Extractor, KPIS, Subscription};
use airpace_diag::{Deframer, Framed, Framing, LogCode, LogPacket, Message, log};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hdrhistogram::Histogram;
use recordings_folder::{logs, recordings};

/// The KPI that most packets of a connected phone contain.
const ONE: [&str; 1] = ["lte.rsrp"];

/// The first KPI of each log code that contains any KPI.
fn one_of_each() -> Vec<&'static str> {
    let first: BTreeMap<LogCode, &str> =
        ORIGINS.iter().rev().map(|origin| (origin.code, origin.kpi)).collect();
    let mut names: Vec<&str> = first.into_values().collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn extractor<'n>(names: impl IntoIterator<Item = &'n str>) -> Extractor {
    Extractor::new(&Subscription::new(names).expect("the list has them"))
}

/// Sum of the KPI samples in a packet.
fn kpis(extractor: &mut Extractor, packet: &LogPacket<'_>) -> f64 {
    let mut sum = 0.0;
    extractor.push(packet, |sample| sum += sample.value);
    sum
}

/// Reads all fields of a packet.
fn everything(packet: &LogPacket<'_>) -> usize {
    log::read(packet).map_or(0, |decoded| decoded.fields.0.len())
}

fn deframe(deframer: &mut Deframer, bytes: &[u8], mut each: impl FnMut(&LogPacket<'_>)) {
    deframer.push(bytes, |_, framed| {
        if let Framed::Body(body) = framed
            && let Some(Message::Log(packet)) = Message::read(body)
        {
            each(&packet);
        }
    });
}

/// The frames of a log that contain log packets, each with its final flag.
fn frames(bytes: &[u8]) -> Vec<&[u8]> {
    let mut frames: Vec<&[u8]> = bytes.split_inclusive(|&byte| byte == 0x7E).collect();
    frames.retain(|frame| {
        let mut is_log = false;
        deframe(&mut Deframer::new(Framing::Hdlc), frame, |_| is_log = true);
        is_log
    });
    frames
}

/// The time of `step` for each frame, in nanoseconds, after a warm-up round.
fn by_packet(frames: &[&[u8]], mut step: impl FnMut(&LogPacket<'_>)) -> Histogram<u64> {
    const ROUNDS: usize = 9;
    let mut deframer = Deframer::new(Framing::Hdlc);
    let mut costs = Histogram::new(3).expect("three digits");
    for round in 0..=ROUNDS {
        for frame in frames {
            let begin = Instant::now();
            deframe(&mut deframer, black_box(frame), &mut step);
            let cost = begin.elapsed().as_nanos() as u64;
            if round > 0 {
                costs.record(cost).expect("the histogram grows");
            }
        }
    }
    costs
}

/// Text of the median and the 99th percentile, in microseconds.
fn shown(costs: &Histogram<u64>) -> String {
    let micros = |quantile| costs.value_at_quantile(quantile) as f64 / 1e3;
    format!("{:>7.2} {:>7.2}", micros(0.5), micros(0.99))
}

fn decode(criterion: &mut Criterion) {
    let Some(folder) = recordings() else { return };
    let each = one_of_each();
    println!("µs per packet: median and 99th percentile");
    print!("{:30} {:>7}", "log", "packets");
    println!("{:>16}{:>16}{:>16}{:>16}", "one KPI", "one of each", "all KPIs", "everything");
    for path in logs(&folder) {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let bytes = std::fs::read(&path).expect("the log can be read");
        let frames = frames(&bytes);
        print!("{name:30} {:>7}", frames.len());
        let all = KPIS.iter().map(|kpi| kpi.name);
        for mut extractor in [extractor(ONE), extractor(each.iter().copied()), extractor(all)] {
            let costs = by_packet(&frames, |packet| {
                black_box(kpis(&mut extractor, packet));
            });
            print!(" {}", shown(&costs));
        }
        let costs = by_packet(&frames, |packet| {
            black_box(everything(packet));
        });
        println!(" {}", shown(&costs));
    }
    for name in ["lte_pixel3_a", "lte_bler_2019"] {
        let bytes = std::fs::read(folder.join(format!("{name}.mi2log"))).expect("the log can be read");
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Elements(frames(&bytes).len() as u64));
        for (title, names) in [("one KPI", ONE.to_vec()), ("one of each", each.clone())] {
            let mut extractor = extractor(names);
            group.bench_function(title, |bencher| {
                bencher.iter(|| {
                    let mut sum = 0.0;
                    let mut deframer = Deframer::new(Framing::Hdlc);
                    deframe(&mut deframer, &bytes, |packet| sum += kpis(&mut extractor, packet));
                    sum
                });
            });
        }
        group.bench_function("everything", |bencher| {
            bencher.iter(|| {
                let mut fields = 0;
                let mut deframer = Deframer::new(Framing::Hdlc);
                deframe(&mut deframer, &bytes, |packet| fields += everything(packet));
                fields
            });
        });
        group.finish();
    }
}

criterion_group!(benches, decode);
criterion_main!(benches);
