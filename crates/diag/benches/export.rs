//! CPU time for printing recorded logs: their bytes are de-framed, each packet is decoded completely and written as JSON,
//! as rows of a long table, and as text.
//!
//! The benchmark first prints a table with the time of the fastest of several rounds over each log, without access to
//! the file system. Then Criterion measures all logs.
//!
//! `cargo bench -p airpace-diag --bench export`; the logs are in the folder given by `AIRPACE_DATA`, under `diag/`.

#[path = "../tests/logs/recordings_folder/mod.rs"]
mod recordings_folder;

use std::hint::black_box;
use std::time::Instant;

use airpace_diag::export::{csv, json, text};
use airpace_diag::source::Item;
use airpace_diag::{Format, LogPacket, Message, log};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use recordings_folder::{logs, recordings};

type Print = fn(&LogPacket<'_>, &mut Vec<u8>);

fn as_json(packet: &LogPacket<'_>, out: &mut Vec<u8>) {
    json::packet(packet, &log::read(packet), false, out);
}

fn as_rows(packet: &LogPacket<'_>, out: &mut Vec<u8>) {
    if let Ok(decoded) = log::read(packet) {
        csv::long(packet, 0, &decoded.fields, out);
    }
}

fn as_text(packet: &LogPacket<'_>, out: &mut Vec<u8>) {
    text::packet(packet, &log::read(packet), out);
}

const FORMS: [(&str, Print); 3] = [("JSON", as_json), ("long table", as_rows), ("text", as_text)];

/// Prints all packets of a log; returns their number and the number of bytes.
fn print(bytes: &[u8], print: Print, out: &mut Vec<u8>) -> (u64, u64) {
    let (mut packets, mut printed) = (0, 0);
    Format::Hdlc.visit(bytes, |_, item| {
        if let Item::Message(Message::Log(packet)) = item {
            out.clear();
            print(&packet, out);
            packets += 1;
            printed += out.len() as u64;
        }
    });
    (packets, printed)
}

fn export(criterion: &mut Criterion) {
    const ROUNDS: usize = 7;
    let Some(folder) = recordings() else { return };
    let mut all = vec![];
    println!(
        "{:30} {:>10} {:>8} {:>14} {:>8} {:>10}",
        "log", "form", "packets", "µs per packet", "MB/s in", "MB/s out"
    );
    for path in logs(&folder) {
        let bytes = std::fs::read(&path).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap();
        for (form, write) in FORMS {
            let mut out = vec![];
            let (mut seconds, mut packets, mut printed) = (f64::INFINITY, 0, 0);
            for _ in 0..ROUNDS {
                let begin = Instant::now();
                (packets, printed) = print(black_box(&bytes), write, &mut out);
                seconds = seconds.min(begin.elapsed().as_secs_f64());
            }
            println!(
                "{name:30} {form:>10} {packets:>8} {:>14.2} {:>8.0} {:>10.0}",
                seconds * 1e6 / packets as f64,
                bytes.len() as f64 / 1e6 / seconds,
                printed as f64 / 1e6 / seconds
            );
        }
        all.push(bytes);
    }
    let mut group = criterion.benchmark_group("all logs");
    let mut out = vec![];
    let packets: u64 = all.iter().map(|bytes| print(bytes, as_text, &mut out).0).sum();
    group.throughput(Throughput::Elements(packets));
    for (form, write) in FORMS {
        group.bench_function(form, |bencher| {
            bencher.iter(|| all.iter().map(|bytes| print(bytes, write, &mut out).1).sum::<u64>());
        });
    }
    group.finish();
}

criterion_group!(benches, export);
criterion_main!(benches);
