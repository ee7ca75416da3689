//! A small simulated cell for tests of event processing. It produces every kind of event, with plausible values.

#[allow(dead_code, reason = "not every test emulates")]
pub mod emulated;

use std::collections::VecDeque;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use airpace_core::{Bits, Bytes, DeviceId, Direction, Ecn, FlowId, Packet, Rate, Streams, Time};
use airpace_event::{Acked, Arrived, Capacity, Event, Fate, Inspected, Lost, Owner, Recorder, Subframe};
use airpace_radio::{BitLayer, CarrierId, Dci, PrbSet, RadioReport, Rnti, Scope, Slot};
use airpace_run::{Choice, Matrix, Progress};
use airpace_sim::{SCHEMES, Scenario, SchemeSpec};
use airpace_tables::facts::Span;

/// A folder that is removed when the test ends.
pub struct Temporary(pub PathBuf);

impl Temporary {
    pub fn new(name: &str) -> Temporary {
        let path = std::env::temp_dir().join(format!("airpace-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Temporary(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Scenario with two phones. One phone pauses. One expectation is met and one is not.
pub const STORY: &str = r#"
name = "story"
about = "Two phones share a cell; the second pauses"
source = "made up"
duration_s = 6
schemes = ["reno", "bbr"]

[[device]]
[[device]]

[[flow]]
label = "phone"
rtt_ms = 42

[[flow]]
label = "other"
device = 1
rtt_ms = 64
start_s = 1
on_s = 2
off_s = 1

[[expect]]
say = "reno moves data"
scheme = "reno"
metric = "throughput_mbps"
at_least = 5

[[expect]]
say = "reno keeps no queue at all"
scheme = "reno"
metric = "queueing_delay_ms.p95"
at_most = 0.001
"#;

/// The matrix of the story with these seeds and number of threads, with the folder `out`.
pub fn story(out: Option<&Path>, seeds: &[u64], jobs: usize) -> Matrix {
    told(STORY, out, seeds, jobs)
}

/// The matrix of a scenario with this text.
pub fn told(text: &str, out: Option<&Path>, seeds: &[u64], jobs: usize) -> Matrix {
    let scenario = Scenario::load(text, "story.toml", &[]).expect("the story is a scenario");
    Matrix {
        scenarios: vec![Choice { argument: "story.toml".to_owned(), set: Vec::new(), scenario }],
        schemes: Vec::new(),
        seeds: seeds.to_vec(),
        jobs,
        out: out.map(Path::to_owned),
        program: "airpace".to_owned(),
        command: format!("airpace sim story.toml --jobs {jobs}"),
        qlog: true,
        again: None,
        page: false,
        further: vec![],
    }
}

/// A listener that never stops the runs.
pub fn patient(_: Progress<'_>) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// All files below `root` as (relative path, bytes), in order.
pub fn contents(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder that was just made") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let relative = path.strip_prefix(root).expect("below the root").to_owned();
                files.push((relative, fs::read(&path).expect("a file that was just made")));
            }
        }
    }
    files.sort();
    files
}

/// Number of bits that one PRB carries.
const BITS_PER_PRB: u64 = 600;
const PRBS: u16 = 100;
const STEP: Duration = Duration::from_millis(1);

struct Flow {
    device: DeviceId,
    direction: Direction,
    active: Vec<Span>,
    /// Names of the values that the flow's scheme reports.
    names: Vec<&'static str>,
    half_rtt: Duration,
    /// Factor of the flow's sending rate relative to its share.
    eagerness: f64,
    credit: f64,
    number: u64,
    queue: VecDeque<Packet>,
    served: f64,
    state: &'static str,
}

/// Simulates a scenario on a cell whose users share PRBs equally. The scheme's name only determines the sending rate.
pub fn simulate(
    scenario: &Scenario,
    under_test: &SchemeSpec,
    seed: u64,
    recorder: &mut dyn Recorder,
    progress: &mut airpace_sim::Progress<'_>,
) -> Result<(), airpace_core::Refused> {
    let facts = airpace_run::facts::of(scenario, under_test, seed);
    let mut rng = Streams::new(seed).stream("fixture");
    let mut flows: Vec<Flow> = (0..facts.flows.len())
        .map(|index| Flow {
            device: facts.flows[index].device,
            direction: facts.flows[index].direction,
            active: facts.flows[index].active.clone(),
            names: scenario.scheme_of(index, under_test).inspected().expect("the story's schemes exist"),
            half_rtt: Duration::from_secs_f64(scenario.flow[index].rtt_ms / 2e3),
            eagerness: match under_test.scheme().name {
                "cubic" | "reno" => 1.02,
                "bbr" => 1.003,
                // Each scheme has a different value, so that all schemes have distinct points in a figure.
                name => {
                    0.97 - 0.03 * SCHEMES.iter().position(|scheme| scheme.name == name).unwrap_or(0) as f64
                }
            },
            credit: 0.0,
            number: 0,
            queue: VecDeque::new(),
            served: 0.0,
            state: "",
        })
        .collect();
    let mut now = Time::ZERO;
    for subframe in 0_u64.. {
        if now >= facts.duration || (subframe.is_multiple_of(100) && progress(now).is_break()) {
            break;
        }
        let bits_per_prb =
            BITS_PER_PRB as f64 * (1.0 + 0.15 * libm::sin(subframe as f64 * 0.002) + 0.02 * rng.normal());
        let is_active: Vec<bool> = flows
            .iter()
            .map(|flow| flow.active.iter().any(|span| span.start <= now && now < span.end))
            .collect();
        let shares = |index: usize| is_active[index] || !flows[index].queue.is_empty();
        let sharing: Vec<usize> = (0..flows.len()).filter(|index| shares(*index)).collect();
        let sharers = sharing.len().max(1) as u16;
        let mut first = 0;
        let mut report = RadioReport {
            carrier: CarrierId(0),
            slot: Slot::subframe_of_lte(subframe),
            time: now,
            scope: Scope::Everyone,
            carrier_prbs: Some(PRBS),
            cfi: Some(1),
            symbols: None,
            dcis: Vec::new(),
            own: None,
            layer: BitLayer::Physical,
        };
        let mut owners = Vec::new();
        if rng.chance(0.3) {
            report.dcis.push(Dci {
                rnti: Rnti(500),
                prbs: PrbSet::run(0, 4),
                mcs: [Some(0), None],
                harq: Some(0),
                ..Dci::default()
            });
            owners.push(Owner::Control);
            first = 4;
        }
        for (index, flow) in flows.iter_mut().enumerate() {
            let share = (PRBS - first) / sharers;
            let capacity = f64::from(share) * bits_per_prb / 8.0;
            if is_active[index] {
                flow.send(index, now, capacity, recorder);
            }
            let prbs = if flow.queue.is_empty() { 0 } else { share };
            if prbs > 0 {
                let place = sharing.iter().position(|sharer| *sharer == index).unwrap_or(0);
                let start = first + share * place as u16;
                let bits = Bits((f64::from(prbs) * bits_per_prb) as u64);
                report.dcis.push(Dci {
                    rnti: Rnti(100 + index as u16),
                    direction: flow.direction,
                    prbs: PrbSet::run(start, prbs),
                    mcs: [Some(20), None],
                    tbs: [bits, Bits(0)],
                    harq: Some(0),
                    ..Dci::default()
                });
                owners.push(Owner::Device(flow.device));
            }
            flow.serve(index, now, capacity, recorder);
            flow.look(index, now, subframe, capacity, recorder);
            let bytes = Bytes(capacity as u64);
            let (device, direction) = (flow.device, flow.direction);
            recorder.record(Event::Capacity(Capacity { time: now, span: STEP, device, direction, bytes }));
        }
        recorder.record(Event::Subframe(&Subframe { report: &report, owners: &owners }));
        now += STEP;
    }
    Ok(())
}

impl Flow {
    fn send(&mut self, index: usize, now: Time, capacity: f64, recorder: &mut dyn Recorder) {
        self.credit += capacity * self.eagerness;
        while self.credit >= 1500.0 {
            self.credit -= 1500.0;
            let packet = Packet {
                flow: FlowId(index as u16),
                device: self.device,
                number: self.number,
                bytes: Bytes(1500),
                sent: now,
                ecn: Ecn::NotEct,
            };
            self.number += 1;
            recorder.record(Event::Sent(packet));
            if self.queue.len() < 400 {
                self.queue.push_back(packet);
                continue;
            }
            let (time, propagation_delay) = (now, self.half_rtt);
            let fate = Fate::QueueFull;
            recorder.record(Event::Arrived(Arrived {
                time,
                packet,
                fate,
                duplicate: false,
                propagation_delay,
            }));
            recorder.record(Event::Lost(Lost { time, flow: packet.flow, packets: 1, bytes: packet.bytes }));
        }
    }

    fn serve(&mut self, index: usize, now: Time, capacity: f64, recorder: &mut dyn Recorder) {
        self.served = (self.served + capacity).min(capacity.max(1500.0) + 1500.0);
        while self.served >= 1500.0 && self.queue.front().is_some_and(|head| head.sent + self.half_rtt <= now)
        {
            self.served -= 1500.0;
            let packet = self.queue.pop_front().expect("just seen");
            recorder.record(Event::Arrived(Arrived {
                time: now,
                packet,
                fate: Fate::Delivered,
                duplicate: false,
                propagation_delay: self.half_rtt,
            }));
            recorder.record(Event::Acked(Acked {
                time: now,
                flow: FlowId(index as u16),
                largest: packet.number,
                acked: packet.bytes,
                inflight: Bytes(self.queue.len() as u64 * 1500),
                rtt: Some(now - packet.sent + self.half_rtt),
                delivery_rate: Some(Rate::from_bytes_per(Bytes(capacity as u64), STEP)),
            }));
        }
    }

    fn look(&mut self, index: usize, now: Time, subframe: u64, capacity: f64, recorder: &mut dyn Recorder) {
        let state = match (self.number, self.queue.len()) {
            (0, _) => "Idle",
            (..300, _) => "Startup",
            (_, 300..) => "Drain",
            _ => "ProbeBW",
        };
        let state_changed = state != self.state;
        if !state_changed && !subframe.is_multiple_of(10) {
            return;
        }
        self.state = state;
        let rate = Rate::from_bytes_per(Bytes(capacity as u64), STEP);
        let values: Vec<_> = self
            .names
            .iter()
            .map(|name| (*name, if name.ends_with("_mbps") { rate.as_mbps() * 1.05 } else { 42.0 }))
            .collect();
        recorder.record(Event::Inspected(&Inspected {
            time: now,
            flow: FlowId(index as u16),
            state,
            state_changed,
            cwnd: Bytes(300_000),
            pacing_rate: Some(rate),
            inflight: Bytes(self.queue.len() as u64 * 1500),
            values: &values,
        }));
    }
}
