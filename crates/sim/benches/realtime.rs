//! Speed of a run as a multiple of real time. Elements are milliseconds of simulated time, so `1 Kelem/s` is real time,
//! and `300 Kelem/s` is 300 times as fast as real time.

use std::hint::black_box;
use std::ops::ControlFlow;

use airpace_event::{Event, Recorder};
use airpace_sim::{Prepared, Scenario, SchemeSpec};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// Writes every event, including all DCIs, as binary words into a buffer that is emptied when full. This is the work of
/// a recorder that does not write to the disk.
#[derive(Default)]
struct Serialiser {
    buffer: Vec<u8>,
    bytes: u64,
}

impl Serialiser {
    fn put(&mut self, words: &[u64]) {
        for word in words {
            self.buffer.extend_from_slice(&word.to_le_bytes());
        }
        if self.buffer.len() > 1 << 20 {
            self.bytes += black_box(&self.buffer).len() as u64;
            self.buffer.clear();
        }
    }
}

impl Recorder for Serialiser {
    fn record(&mut self, event: Event<'_>) {
        match event {
            Event::Sent(packet) => self.put(&[0, packet.sent.as_nanos(), packet.number, packet.bytes.0]),
            Event::Arrived(it) => {
                let delay = it.time - it.packet.sent;
                let queueing = delay.saturating_sub(it.propagation_delay);
                self.put(&[
                    1,
                    it.time.as_nanos(),
                    it.packet.number,
                    queueing.as_nanos() as u64,
                    it.fate as u64,
                ]);
            }
            Event::Acked(it) => self.put(&[2, it.time.as_nanos(), it.largest, it.acked.0, it.inflight.0]),
            Event::Lost(it) => self.put(&[3, it.time.as_nanos(), it.packets, it.bytes.0]),
            Event::Inspected(it) => {
                self.put(&[4, it.time.as_nanos(), it.cwnd.0, it.inflight.0]);
                for (_, value) in it.values {
                    self.put(&[value.to_bits()]);
                }
            }
            Event::Subframe(it) => {
                self.put(&[5, it.report.slot.index, u64::from(it.report.carrier.0)]);
                for dci in &it.report.dcis {
                    let mcs = u64::from(dci.mcs[0].unwrap_or(255));
                    self.put(&[u64::from(dci.rnti.0), u64::from(dci.prbs.len()), mcs, dci.bits().0]);
                }
            }
            Event::Capacity(it) => self.put(&[6, it.time.as_nanos(), it.bytes.0]),
            Event::Transfer(it) => self.put(&[7, it.time.as_nanos(), it.number, it.step as u64]),
            Event::Reported(_) | Event::Viewed(_) => {}
        }
    }
}

fn prepared(text: &str) -> Prepared {
    let text = format!("name = \"bench\"\nduration_s = {SECONDS}\nschemes = [\"cubic\"]\n{text}");
    let scenario = Scenario::load(&text, "bench", &[]).expect("the bench's scenario loads");
    scenario.prepare().expect("the bench's scenario can be built")
}

/// Simulated time per iteration, in s.
const SECONDS: u64 = 2;

const SATURATED: &str = "
    cell.prbs = 100
    device = [{ radio.channel.sinr_db = 25 }]
    flow = [{ rtt_ms = 42 }]";

/// A scenario needs a flow; this flow sends a single packet.
const FIFTY_USERS: &str = "
    cell.prbs = 100
    cell.background.full_buffer = 50
    flow = [{ rtt_ms = 42, bytes = 1500 }]";

const UPLOAD: &str = "
    cell.prbs = 100
    device = [{ radio.channel.sinr_db = 25 }]
    flow = [{ rtt_ms = 42, direction = 'up' }]";

/// About 1.6 Gbit/s.
const NR: &str = "
    cell = { rat = 'nr', band = 'n78', bandwidth_mhz = 100, tdd = 'DDDSU' }
    device = [{ radio = { channel = { sinr_db = 34, layers = 4 }, queue_bytes = 20_000_000 } }]
    flow = [{ rtt_ms = 42 }]";

const IDLE: &str = "
    cell.prbs = 100
    flow = [{ rtt_ms = 42, rate_mbps = 1 }]";

fn realtime(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("realtime");
    group.throughput(Throughput::Elements(SECONDS * 1000));
    group.sample_size(20);
    for (name, text, scheme) in [
        ("saturated 20 MHz user, all DCIs", SATURATED, "cubic"),
        ("saturated 20 MHz user, all DCIs", SATURATED, "bbr"),
        ("saturated 20 MHz user, all DCIs", SATURATED, "pbe"),
        ("saturated upload, all DCIs", UPLOAD, "cubic"),
        ("saturated upload, all DCIs", UPLOAD, "biscay"),
        ("saturated 100 MHz NR user, all DCIs", NR, "cubic"),
        ("saturated 100 MHz NR user, all DCIs", NR, "pbe"),
        ("50 saturated users, all DCIs, no transport", FIFTY_USERS, "cubic"),
        ("idle cell, one flow of 1 Mbit/s", IDLE, "cubic"),
        ("idle cell, one flow of 1 Mbit/s", IDLE, "pbe"),
    ] {
        let prepared = prepared(text);
        let spec = SchemeSpec::parse(scheme).expect("a scheme of the list");
        group.bench_with_input(BenchmarkId::new(name, scheme), &prepared, |bencher, prepared| {
            bencher.iter(|| {
                let mut recorder = Serialiser::default();
                airpace_sim::run_prepared(prepared, &spec, 1, &mut recorder, &mut |_| {
                    ControlFlow::Continue(())
                })
                .expect("the bench's scheme has no options")
            });
        });
    }
    group.finish();
}

criterion_group!(benches, realtime);
criterion_main!(benches);
