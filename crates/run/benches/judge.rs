//! Cost of judging: measures and writes one second of a saturated 20 MHz user with a bulk flow and all DCIs.
//!
//! A simulated run that is 300 times faster than real time takes at most 3.3 ms per simulated second in total.

use std::time::Duration;

use airpace_core::{Bits, Bytes, DeviceId, Direction, Ecn, FlowId, Packet, Rate, Time};
use airpace_event::{Acked, Arrived, Capacity, Event, Fate, Inspected, Owner, Recorder, Subframe};
use airpace_radio::{BitLayer, CarrierId, Dci, PrbSet, RadioReport, Rnti, Scope, Slot};
use airpace_run::{Judge, Keep, Room, RunFolder};
use airpace_tables::FurtherColumns;
use airpace_tables::facts::{FlowFacts, RunFacts, Span};
use criterion::{Criterion, criterion_group, criterion_main};

/// Simulated seconds per measurement, which yield many row groups.
const SECONDS: u64 = 30;
/// Packets per subframe: about 72 Mbit/s.
const PACKETS_PER_SUBFRAME: u64 = 6;

fn facts() -> RunFacts {
    let duration = Time::from_secs(SECONDS);
    RunFacts {
        scenario: "bench".to_owned(),
        scheme: "pbe".to_owned(),
        seed: 1,
        duration,
        flows: vec![FlowFacts {
            flow: FlowId(0),
            name: "phone".to_owned(),
            device: DeviceId(0),
            direction: Direction::Downlink,
            primary: None,
            scheme: "pbe".to_owned(),
            greedy: true,
            active: vec![Span { start: Time::ZERO, end: duration }],
            size: None,
            transfers_due: 0,
        }],
    }
}

/// Generates the events of the run. Values vary as in a real run, so that the tables do not compress unusually well.
fn play(recorder: &mut dyn Recorder) {
    let mut random = 88_172_645_463_325_252_u64;
    let mut number = 0;
    let mut report = RadioReport {
        carrier: CarrierId(0),
        slot: Slot::subframe_of_lte(0),
        time: Time::ZERO,
        scope: Scope::Everyone,
        carrier_prbs: Some(100),
        cfi: Some(1),
        symbols: None,
        dcis: Vec::new(),
        own: None,
        layer: BitLayer::Physical,
    };
    for ms in 0..SECONDS * 1000 {
        let now = Time::from_millis(ms);
        for part in 0..PACKETS_PER_SUBFRAME {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let time = now + Duration::from_nanos(part * 150_000 + random % 1000);
            let sent = time - Duration::from_nanos(25_000_000 + random % 8_000_000);
            let packet = Packet {
                flow: FlowId(0),
                device: DeviceId(0),
                number,
                bytes: Bytes(1500),
                sent,
                ecn: Ecn::NotEct,
            };
            number += 1;
            recorder.record(Event::Sent(packet));
            let propagation_delay = Duration::from_millis(21);
            let fate = Fate::Delivered;
            recorder.record(Event::Arrived(Arrived {
                time,
                packet,
                fate,
                duplicate: false,
                propagation_delay,
            }));
            recorder.record(Event::Acked(Acked {
                time,
                flow: FlowId(0),
                largest: number,
                acked: Bytes(1500),
                inflight: Bytes(300_000 + random % 30_000),
                rtt: Some(time - sent),
                delivery_rate: Some(Rate::from_bps(70_000_000 + random % 2_000_000)),
            }));
        }
        report.time = now;
        report.dcis.clear();
        report.dcis.push(Dci {
            rnti: Rnti(100),
            prbs: PrbSet::run(0, 96),
            mcs: [Some(27), None],
            tbs: [Bits(70_000 + random % 5_000), Bits(0)],
            ..Dci::default()
        });
        report.dcis.push(Dci { rnti: Rnti(random as u16), prbs: PrbSet::run(96, 4), ..Dci::default() });
        let owners = [Owner::Device(DeviceId(0)), Owner::Control];
        recorder.record(Event::Subframe(&Subframe { report: &report, owners: &owners }));
        let bytes = Bytes(9_000 + random % 500);
        let span = Duration::from_millis(1);
        let (device, direction) = (DeviceId(0), Direction::Downlink);
        recorder.record(Event::Capacity(Capacity { time: now, span, device, direction, bytes }));
        if ms % 10 == 0 {
            recorder.record(Event::Inspected(&Inspected {
                time: now,
                flow: FlowId(0),
                state: "Wireless",
                state_changed: false,
                cwnd: Bytes(400_000),
                pacing_rate: Some(Rate::from_mbps(72.0)),
                inflight: Bytes(300_000),
                values: &[
                    ("ct_mbps", 70.0 + (random % 100) as f64),
                    ("btlbw_mbps", 71.0),
                    ("rtprop_ms", 42.0),
                ],
            }));
        }
    }
}

fn judge(c: &mut Criterion) {
    let facts = facts();
    let mut group = c.benchmark_group("30 s of a saturated user");
    group.sample_size(10);
    group.bench_function("metrics only", |b| {
        b.iter(|| {
            let mut judge = Judge::new(&facts, None).expect("no file to make");
            play(&mut judge);
            judge.finish().expect("no file to write")
        });
    });
    let root = std::env::temp_dir().join(format!("airpace-bench-{}", std::process::id()));
    let folder = RunFolder::create(&root).expect("the temporary folder is writable");
    let inspected: Vec<String> = ["ct_mbps", "btlbw_mbps", "rtprop_ms"].map(str::to_owned).to_vec();
    group.bench_function("metrics and tables", |b| {
        b.iter(|| {
            let further = FurtherColumns { inspected: &inspected, has_nr: false };
            let keep = Keep { room: Room::Folder(&folder), further, qlog: false };
            let mut judge = Judge::new(&facts, Some(keep)).expect("the folder is writable");
            play(&mut judge);
            judge.finish().expect("the disk has room")
        });
    });
    group.finish();
    std::fs::remove_dir_all(&root).expect("the folder was just written");
}

criterion_group!(benches, judge);
criterion_main!(benches);
