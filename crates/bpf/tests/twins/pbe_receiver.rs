//! The C port of PBE-CC's receiver returns the same feedback as the Rust receiver, for all packets of flows of the
//! built-in scenarios. The cell's capacity is measured once, in Rust, because the kernel's feeder is also in Rust.

use crate::common;

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use airpace_bpf::twin::NONE;
use airpace_bpf::twin::pbe::{PbeFed, PbeTuning};
use airpace_bpf::twin::pbe_receiver::{Cell, PbeArrival, PbeReceiver as Twin};
use airpace_cc::controller::{Arrival, Receiver, Sees};
use airpace_cc::pbe::feedback::{Feedback, Header};
use airpace_cc::pbe::receiver::PbeReceiver;
use airpace_cc::{Ends, Inspect, SchemeSpec, pbe};
use airpace_core::{Bytes, Rate, Rider, Time};
use airpace_radio::RadioReport;
use airpace_sim::{EndpointReplacement, Scenario, builtin, run_changed};
use common::{load, their_flow};

/// Maximum relative difference of the two versions' rates: the feedback in the simulator encodes a rate as an interval
/// in whole nanoseconds.
const TOLERANCE: f64 = 2e-4;

/// Unit of the radio delay in the feedback, in nanoseconds.
const DELAY_UNIT: u64 = 10_000;

/// Results of a comparison.
#[derive(Clone, Debug, Default)]
struct Seen {
    packets: u64,
    told: u64,
    internet: u64,
    clear: u64,
    stale: u64,
    /// Number of feedbacks that differed in a flag, or by more than the tolerance.
    unlike: u64,
    first: Option<String>,
}

/// Both receivers, with the same inputs.
struct Both {
    rust: PbeReceiver,
    c: Twin,
    flows: u64,
    seen: Arc<Mutex<Seen>>,
}

impl Both {
    fn new(tuning: &pbe::Tuning, mss: Bytes, seen: &Arc<Mutex<Seen>>) -> Both {
        let c = Twin::new(&PbeTuning::new(tuning).expect("the kernel knows them"), mss);
        Both { rust: PbeReceiver::new(*tuning, mss), c, flows: 1, seen: Arc::clone(seen) }
    }

    fn cell(&mut self, now: Time) -> Cell {
        let measured = self.rust.measured(now);
        let heard = measured.heard.map_or(0, Time::as_nanos);
        Cell::new(&measured, self.rust.explained(), heard)
    }

    fn compare(&mut self, now: Time, rust: &Feedback) {
        let cell = self.cell(now);
        let c = self.c.tell(&cell, self.flows, now);
        let mut seen = self.seen.lock().unwrap();
        seen.told += 1;
        seen.internet += u64::from(rust.internet);
        seen.clear += u64::from(rust.clear);
        seen.stale += u64::from(!rust.fresh);
        if !is_same(rust, &c) {
            seen.unlike += 1;
            seen.first.get_or_insert_with(|| format!("at {now}: Rust {rust:?}, C {c:?}"));
        }
    }
}

fn is_same(rust: &Feedback, c: &PbeFed) -> bool {
    let flags = [rust.internet, rust.fresh, rust.clear].map(u32::from) == [c.internet, c.fresh, c.clear];
    let counts = [rust.carriers, rust.activations].map(u32::from) == [c.carriers, c.activations];
    let is_near = |rust: Option<Rate>, c: u64| {
        // A rate that is too low for the feedback's interval is encoded as a missing value.
        let rust = rust.map_or(0, Rate::as_bps);
        rust.abs_diff(c) as f64 <= 1.0 + c as f64 * TOLERANCE || rust == 0 && c < 4
    };
    let delay = match (rust.radio_delay, c.radio_delay) {
        (None, c) => c == NONE,
        (Some(rust), c) => c != NONE && (rust.as_nanos() as u64).abs_diff(c) <= DELAY_UNIT,
    };
    flags && counts && is_near(rust.capacity, c.capacity) && is_near(rust.fair_share, c.fair_share) && delay
}

impl Receiver for Both {
    fn sees(&self) -> Sees {
        self.rust.sees()
    }

    fn on_packet(&mut self, arrival: &Arrival<'_>) {
        self.rust.on_packet(arrival);
        self.flows = arrival.device.flows.into();
        let cell = self.cell(arrival.now);
        let header = Header::read(arrival.header);
        let told = header.unwrap_or_default();
        let packet = PbeArrival {
            now: arrival.now.as_nanos(),
            sent: arrival.sent.as_nanos(),
            tick: 1,
            bytes: arrival.bytes.0,
            packets: 1,
            rtprop: told.rtprop.map_or(NONE, |rtprop| rtprop.as_nanos() as u64),
            pacing: told.pacing_rate.map_or(NONE, Rate::as_bps),
            starting: told.starting.into(),
            has_header: header.is_some().into(),
        };
        self.c.on_packet(&packet, &cell, self.flows);
        self.seen.lock().unwrap().packets += 1;
    }

    fn on_radio(&mut self, report: &RadioReport) {
        self.rust.on_radio(report);
    }

    fn feedback(&mut self, now: Time) -> Rider {
        let rider = self.rust.feedback(now);
        self.compare(now, &Feedback::read(rider.as_bytes()).unwrap());
        rider
    }

    fn request(&mut self, now: Time) -> Rider {
        self.feedback(now)
    }

    fn inspect(&self, out: &mut Inspect) {
        self.rust.inspect(out);
    }
}

/// Runs a scenario with both receivers at its last flow of `scheme`; `None` if there is no such flow.
fn compared(scenario: &Scenario, scheme: &str) -> Option<Seen> {
    let spec = SchemeSpec::parse(scheme).unwrap();
    let flow = their_flow(scenario, &spec)?;
    let prepared = scenario.prepare().unwrap();
    let seen = Arc::new(Mutex::new(Seen::default()));
    let (mss, kept) = (scenario.flow[flow].mss(), Arc::clone(&seen));
    let tuning = pbe::Tuning::read(spec.options()).unwrap();
    let change = move |ends: Ends, _: &SchemeSpec| Ends {
        receiver: ends.receiver.map(|_| Box::new(Both::new(&tuning, mss, &kept)) as Box<dyn Receiver>),
        ..ends
    };
    let replacement = EndpointReplacement { flow, replace: Box::new(change) };
    run_changed(&prepared, &spec, 1, replacement, &mut |_| ControlFlow::Continue(())).unwrap();
    let seen = seen.lock().unwrap().clone();
    Some(seen)
}

/// Fails if more than one in 10,000 feedbacks differ.
fn judge(name: &str, seen: &Seen, total: &mut Seen) {
    println!("{name}: {seen:?}");
    assert!(seen.unlike * 10_000 <= seen.told, "{name}: {seen:?}");
    total.packets += seen.packets;
    total.told += seen.told;
    total.internet += seen.internet;
    total.clear += seen.clear;
    total.stale += seen.stale;
    total.unlike += seen.unlike;
}

#[test]
fn every_flow_of_the_built_in_scenarios_is_told_the_same() {
    let (mut scenarios, mut total) = (0, Seen::default());
    for (name, text) in builtin() {
        // This scenario does not name a trace file, so it cannot run without one.
        if *name == "trace" {
            continue;
        }
        // The port does not learn HARQ times from reports of NR, so its thresholds differ there.
        if name.starts_with("nr-") {
            println!("{name}: not compared");
            continue;
        }
        let seconds = if *name == "wired-bottleneck" { "25" } else { "6" };
        let Some(seen) = compared(&load(name, text, seconds), "pbe") else { continue };
        judge(name, &seen, &mut total);
        scenarios += 1;
    }
    println!("{scenarios}: {total:?}");
    assert!(scenarios >= 23, "only {scenarios} scenarios were compared");
    assert!(total.told > 100_000 && total.packets > 100_000, "{total:?}");
    assert!([total.internet, total.clear, total.stale].iter().all(|&told| told > 1_000), "{total:?}");
}

#[test]
fn other_options_are_told_the_same() {
    let mut total = Seen::default();
    for scheme in [
        "pbe@paper:delay_drain=off",
        "pbe:npkt_least_ms=0:npkt_span_ms=0:return_test=delay:explained_test=off",
        "pbe:device_split=off:floor=off:cell_test=off:user_weights=rate",
    ] {
        for (name, text) in builtin() {
            if !["wired-bottleneck", "busy-wired-bottleneck", "device-fairness", "video"].contains(name) {
                continue;
            }
            let Some(seen) = compared(&load(name, text, "16"), scheme) else { continue };
            judge(&format!("{scheme}, {name}"), &seen, &mut total);
        }
    }
    assert!(total.internet > 1_000 && total.clear > 1_000, "{total:?}");
}
