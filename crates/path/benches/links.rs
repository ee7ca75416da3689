//! CPU time per packet (one push and one pop) on each link, at a steady load.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use airpace_core::{Bytes, DeviceId, Ecn, FlowId, Packet, Rate, Streams, Time};
use airpace_path::Link;
use airpace_path::queue::{BufferConfig, Discipline, Queue, QueueConfig};
use airpace_path::trace::{TraceConfig, TraceLink, synth};
use airpace_path::wire::{Wire, WireConfig};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const PACKETS: u64 = 10_000;

/// Pushes a packet every 100 µs (120 Mbit/s), and pops packets that are due.
fn cross(link: &mut dyn Link) -> u64 {
    let mut popped = 0;
    for number in 0..PACKETS {
        let now = Time::from_micros(100 * number);
        while let Some(exit) = link.pop(now) {
            popped += exit.packet.number;
        }
        let flow = FlowId((number % 4) as u16);
        link.push(
            now,
            Packet { flow, device: DeviceId(0), number, bytes: Bytes(1500), sent: now, ecn: Ecn::NotEct },
        );
    }
    popped
}

fn links(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("link");
    group.throughput(Throughput::Elements(PACKETS));

    group.bench_function("wire, delay only", |bencher| {
        bencher.iter(|| cross(black_box(&mut Wire::with_delay(Duration::from_millis(20)))));
    });
    let impaired = WireConfig {
        delay_ms: 20.0,
        jitter_mean_ms: 1.06,
        loss: 0.001,
        duplicate: 0.001,
        ..WireConfig::default()
    };
    group.bench_function("wire, jitter, loss and duplicates", |bencher| {
        bencher.iter(|| {
            cross(black_box(&mut Wire::new(&impaired.plan().expect("legal"), &Streams::new(1), "wire")))
        });
    });
    let disciplines = [
        ("queue, drop-tail", Discipline::DropTail),
        ("queue, CoDel", Discipline::CoDel),
        ("queue, FQ-CoDel", Discipline::FqCoDel),
        ("queue, PIE", Discipline::Pie),
    ];
    for (name, discipline) in disciplines {
        let buffer = BufferConfig { discipline, packets: Some(500), ..BufferConfig::default() };
        let config = QueueConfig { rate_mbps: 100.0, buffer, ..QueueConfig::default() };
        group.bench_function(name, |bencher| {
            bencher.iter(|| cross(black_box(&mut Queue::new(&config).expect("legal"))));
        });
    }
    let trace = synth::constant(Rate::from_mbps(100.0), Duration::from_secs(60)).expect("a trace");
    let trace = Arc::new(trace);
    let config = TraceConfig::default();
    group.bench_function("trace", |bencher| {
        bencher.iter(|| cross(black_box(&mut TraceLink::new(trace.clone(), &config).expect("legal"))));
    });
    group.finish();
}

criterion_group!(benches, links);
criterion_main!(benches);
