//! What a packet costs on its way from the port to a KPI, by recorded log.
//!
//! `one KPI`: its bytes are de-framed, what nobody subscribed to is left out, one field of each code is picked.
//! `everything`: its bytes are de-framed and all of it is read.
//!
//! Criterion measures whole logs, in packets per second. Before that comes a table of single packets: median, and what
//! one in a hundred exceeds; reading the clock costs some 30 ns of each.
//!
//! `cargo bench -p airpace-diag --bench decode`; the logs are in the folder that `AIRPACE_DATA` names, under `diag/`.

#[path = "../tests/recordings_folder/mod.rs"]
mod recordings_folder;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

use airpace_diag::layout::{Code, Pick, Version};
use airpace_diag::{Deframer, Framed, Framing, LogCode, LogPacket, Message, log};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use recordings_folder::{logs, recordings};

/// The field of each code that somebody wants.
const KPIS: &[(u16, &str)] = &[
    (0xB063, "subpackets.samples.dl_tbs_bytes"),
    (0xB064, "subpackets.samples.grant_bytes"),
    (0xB066, "subpackets.samples.lcids.new_uncompressed_bytes"),
    (0xB067, "subpackets.sample.grant_received"),
    (0xB0C0, "physical_cell_id"),
    (0xB126, "tbs_0"),
    (0xB130, "hypotheses.payload"),
    (0xB139, "records.pusch_tb_size"),
    (0xB14D, "cqi_cw0"),
    (0xB14E, "wideband_cqi_cw0"),
    (0xB173, "records.transport_blocks.tb_size"),
    (0xB179, "rsrp_dbm"),
    (0xB193, "subpackets.cells.rsrp"),
    (0xB821, "freq"),
];

/// A code that somebody subscribed to, with a pick for each version.
struct Wanted {
    code: &'static Code,
    picks: Vec<(Version, Pick)>,
}

fn subscription() -> BTreeMap<LogCode, Wanted> {
    let mut wanted = BTreeMap::new();
    for &(number, path) in KPIS {
        let code = log::code(LogCode(number)).unwrap();
        let mut picks = vec![];
        for layout in code.layouts {
            if let Ok(pick) = Pick::new(layout, &[path]) {
                picks.extend(layout.versions.iter().map(|&version| (version, pick.clone())));
            }
        }
        assert!(!picks.is_empty(), "{path} is a field of {}", code.code);
        wanted.insert(code.code, Wanted { code, picks });
    }
    wanted
}

/// Sums up one KPI of a packet.
fn pick(wanted: &BTreeMap<LogCode, Wanted>, packet: &LogPacket<'_>) -> f64 {
    let Some(wanted) = wanted.get(&packet.code) else { return 0.0 };
    let Ok(version) = wanted.code.version(packet.payload) else { return 0.0 };
    let Some((_, pick)) = wanted.picks.iter().find(|(of, _)| *of == version) else { return 0.0 };
    let mut sum = 0.0;
    let _ = pick.visit(packet.payload, |row| sum += row[0].number().unwrap_or(1.0));
    sum
}

/// Reads all of a packet.
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

/// The frames of a log that are log packets, each with the flag that ends it.
fn frames(bytes: &[u8]) -> Vec<&[u8]> {
    let mut frames: Vec<&[u8]> = bytes.split_inclusive(|&byte| byte == 0x7E).collect();
    frames.retain(|frame| {
        let mut is_log = false;
        deframe(&mut Deframer::new(Framing::Hdlc), frame, |_| is_log = true);
        is_log
    });
    frames
}

/// Median and 99th percentile of one step over all frames, in microseconds: of several rounds the fastest of each
/// frame, so that only what the packet itself costs is counted.
fn by_packet(frames: &[&[u8]], mut step: impl FnMut(&LogPacket<'_>)) -> (f64, f64) {
    const ROUNDS: usize = 5;
    let mut deframer = Deframer::new(Framing::Hdlc);
    let mut costs = vec![f64::INFINITY; frames.len()];
    for _ in 0..ROUNDS {
        for (cost, frame) in costs.iter_mut().zip(frames) {
            let begin = Instant::now();
            deframe(&mut deframer, black_box(frame), &mut step);
            *cost = cost.min(begin.elapsed().as_secs_f64() * 1e6);
        }
    }
    costs.sort_by(f64::total_cmp);
    (costs[costs.len() / 2], costs[costs.len() * 99 / 100])
}

fn decode(criterion: &mut Criterion) {
    let Some(folder) = recordings() else { return };
    let wanted = subscription();
    println!("{:30} {:>8} {:>17} {:>19}", "log", "packets", "one KPI, µs", "everything, µs");
    println!("{:30} {:>8} {:>8} {:>8} {:>9} {:>9}", "", "", "median", "p99", "median", "p99");
    for path in logs(&folder) {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let frames = frames(&bytes);
        let one = by_packet(&frames, |packet| {
            black_box(pick(&wanted, packet));
        });
        let all = by_packet(&frames, |packet| {
            black_box(everything(packet));
        });
        let packets = frames.len();
        println!("{name:30} {packets:>8} {:>8.2} {:>8.2} {:>9.2} {:>9.2}", one.0, one.1, all.0, all.1);
    }
    for name in ["lte_pixel3_a", "lte_bler_2019"] {
        let bytes = std::fs::read(folder.join(format!("{name}.mi2log"))).unwrap();
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Elements(frames(&bytes).len() as u64));
        group.bench_function("one KPI", |bencher| {
            bencher.iter(|| {
                let mut sum = 0.0;
                let mut deframer = Deframer::new(Framing::Hdlc);
                deframe(&mut deframer, &bytes, |packet| sum += pick(&wanted, packet));
                sum
            });
        });
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
