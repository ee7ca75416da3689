//! CPU time of one subframe of a cell.

use std::hint::black_box;
use std::time::Duration;

use airpace_core::{Bytes, DeviceId, Ecn, FlowId, Packet, Streams, Time};
use airpace_path::Link;
use airpace_path::cell::channel::ChannelConfig;
use airpace_path::cell::config::BackgroundConfig;
use airpace_path::cell::{Cell, CellConfig, CellPlan, DeviceRadioConfig};
use criterion::{Criterion, criterion_group, criterion_main};

fn device(sinr_db: f64) -> DeviceRadioConfig {
    let channel = ChannelConfig { sinr_db: Some(sinr_db), ..ChannelConfig::default() };
    DeviceRadioConfig { channel, ..DeviceRadioConfig::default() }
}

/// A running cell. To keep device 0 busy, it gets or sends more packets per subframe than the cell can carry.
struct Running {
    cell: Cell,
    now: Time,
    packets_per_subframe: u64,
    uplink_packets_per_subframe: u64,
    number: u64,
}

impl Running {
    fn new(config: &CellConfig, packets_per_subframe: u64) -> Running {
        Running::both_ways(config, packets_per_subframe, 0)
    }

    fn both_ways(
        config: &CellConfig,
        packets_per_subframe: u64,
        uplink_packets_per_subframe: u64,
    ) -> Running {
        let cell =
            CellPlan::new(config, &[device(25.0)]).expect("a valid configuration").build(&Streams::new(1));
        let now = Time::ZERO;
        let mut running = Running { cell, now, packets_per_subframe, uplink_packets_per_subframe, number: 0 };
        (0..2000).for_each(|_| running.subframe());
        running
    }

    fn subframe(&mut self) {
        while let Some(exit) = self.cell.pop(self.now) {
            black_box(exit);
        }
        while let Some(exit) = self.cell.pop_uplink(self.now) {
            black_box(exit);
        }
        for _ in 0..self.packets_per_subframe {
            let packet = self.packet();
            self.cell.push(self.now, packet);
        }
        for _ in 0..self.uplink_packets_per_subframe {
            let packet = self.packet();
            self.cell.push_uplink(self.now, packet);
        }
        self.now += Duration::from_millis(1);
    }

    fn packet(&mut self) -> Packet {
        self.number += 1;
        Packet {
            flow: FlowId(0),
            device: DeviceId(0),
            number: self.number - 1,
            bytes: Bytes(1500),
            sent: self.now,
            ecn: Ecn::NotEct,
        }
    }
}

fn subframes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("cell subframe");
    let mut idle = Running::new(&CellConfig::default(), 0);
    group.bench_function("idle", |bencher| bencher.iter(|| idle.subframe()));

    let mut saturated = Running::new(&CellConfig::default(), 7);
    group.bench_function("one saturated user", |bencher| bencher.iter(|| saturated.subframe()));

    let mut sending = Running::both_ways(&CellConfig::default(), 0, 7);
    group.bench_function("one saturated user, uplink", |bencher| bencher.iter(|| sending.subframe()));

    let mut recorded = Running::new(&CellConfig::default(), 7);
    recorded.cell.set_recording(true);
    recorded.cell.set_listening(DeviceId(0), true);
    group.bench_function("one saturated user, listening and recorded", |bencher| {
        bencher.iter(|| {
            recorded.subframe();
            while let Some(report) = recorded.cell.pop_report(recorded.now) {
                black_box(report);
            }
            black_box(recorded.cell.subframes().count());
        });
    });

    let background = BackgroundConfig { full_buffer: 50, ..BackgroundConfig::default() };
    let mut crowd = Running::new(&CellConfig { background, ..CellConfig::default() }, 0);
    crowd.cell.set_recording(true);
    group.bench_function("fifty saturated users, recorded", |bencher| {
        bencher.iter(|| {
            crowd.subframe();
            black_box(crowd.cell.subframes().count());
        });
    });
    group.finish();
}

criterion_group!(benches, subframes);
criterion_main!(benches);
