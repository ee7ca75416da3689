//! Helpers for tests of the C ports: traces of controllers in built-in scenarios and on arbitrary paths.
// Each test file uses only some of these helpers.
#![allow(dead_code)]

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use airpace_cc::ack_trace::{Entry, Tape, Traced};
use airpace_cc::biscay;
use airpace_cc::controller::{Ack, Loss, LossCause, Rtt, Sent, SentPacket};
use airpace_cc::pbe;
use airpace_cc::{SchemeSpec, Setup};
use airpace_core::{Bytes, Rate, Rider, Streams, Time};
use airpace_sim::{Scenario, ScenarioError};
use proptest::prelude::*;

/// Creates a tape that records the events of a controller, and the list of its entries.
fn tape() -> (Arc<Mutex<Vec<Entry>>>, Tape) {
    let entries = Arc::new(Mutex::new(vec![]));
    let kept = Arc::clone(&entries);
    (entries, Box::new(move |entry: &Entry| kept.lock().unwrap().push(entry.clone())))
}

fn taken(entries: &Mutex<Vec<Entry>>) -> Vec<Entry> {
    std::mem::take(&mut *entries.lock().unwrap())
}

/// Loads a scenario with a duration of `seconds`, or with its own duration if `seconds` is too short for the scenario.
pub fn load(name: &str, text: &str, seconds: &str) -> Scenario {
    changed(name, text, &[("duration_s", seconds)]).or_else(|_| Scenario::load(text, name, &[])).unwrap()
}

/// Loads a scenario with the keys of `sets` changed.
pub fn changed(name: &str, text: &str, sets: &[(&str, &str)]) -> Result<Scenario, ScenarioError> {
    let sets: Vec<_> = sets.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
    Scenario::load(text, name, &sets)
}

/// The trace of one flow.
pub struct Trace {
    /// The flow's index in its scenario.
    pub flow: usize,
    /// The size of the flow's packets.
    pub mss: Bytes,
    /// The events and decisions of the flow's controller.
    pub entries: Vec<Entry>,
}

/// The trace of the last flow of a built-in scenario under `scheme`, with seed 1; `None` if there is no such flow.
pub fn traced(name: &str, text: &str, scheme: &str, seconds: &str) -> Option<Trace> {
    trace_of(&load(name, text, seconds), scheme)
}

/// Index of the last flow in a scenario that uses the scheme under test.
pub fn their_flow(scenario: &Scenario, spec: &SchemeSpec) -> Option<usize> {
    (0..scenario.flow.len()).rev().find(|&flow| scenario.scheme_of(flow, spec).text() == spec.text())
}

/// The trace of the last flow of a scenario under `scheme`.
pub fn trace_of(scenario: &Scenario, scheme: &str) -> Option<Trace> {
    let spec = SchemeSpec::parse(scheme).unwrap();
    let prepared = scenario.prepare().unwrap();
    let flow = their_flow(scenario, &spec)?;
    let (entries, tape) = tape();
    let mut go_on = |_| ControlFlow::Continue(());
    airpace_sim::run_traced(&prepared, &spec, 1, flow, tape, &mut go_on).unwrap();
    Some(Trace { flow, mss: scenario.flow[flow].mss(), entries: taken(&entries) })
}

/// One step of an arbitrary path.
#[derive(Clone, Debug)]
pub struct Step {
    after_ns: u64,
    sent: u64,
    acked: u64,
    rtt_ns: Option<u64>,
    rate_kbps: Option<u64>,
    granted_kbps: Option<u32>,
    share: u16,
    burst_kbps: u32,
    lost: bool,
    silence: bool,
    app_limited: bool,
    /// Flags of PBE-CC's feedback: no capacity, bottleneck in the Internet, telemetry not fresh, clear, a new carrier,
    /// no feedback.
    says: [bool; 6],
}

impl Step {
    /// The step's feedback of BISCAY's receiver.
    fn biscay(&self) -> Rider {
        let feedback = biscay::feedback::Feedback {
            timestamp: 0,
            bandwidth: self.granted_kbps.map(|kbps| Rate::from_bps(u64::from(kbps) * 1_000)),
            share: f64::from(self.share) / 65_535.0,
            burst: Rate::from_bps(u64::from(self.burst_kbps) * 1_000),
        };
        feedback.write()
    }

    /// The step's feedback of PBE-CC's receiver; `activations` counts the activations of carriers in previous steps.
    fn pbe(&self, activations: &mut u8) -> Rider {
        let [no_capacity, internet, is_stale, clear, activated, nothing] = self.says;
        if nothing {
            return Rider::EMPTY;
        }
        *activations = activations.wrapping_add(u8::from(activated));
        let kbps = |kbps: u32| Rate::from_bps(u64::from(kbps.max(100)) * 1_000);
        let feedback = pbe::feedback::Feedback {
            internet,
            fresh: !is_stale,
            clear,
            carriers: u8::from(!activated),
            activations: *activations,
            capacity: (!no_capacity).then(|| kbps(self.burst_kbps)),
            fair_share: self.granted_kbps.map(kbps),
            radio_delay: (self.share > 20_000).then(|| Duration::from_micros(u64::from(self.share) / 4)),
        };
        feedback.write()
    }
}

/// Generates steps. Times are in nanoseconds, so they rarely equal a threshold, at which doubles may be rounded to
/// either side. Rates are up to 90 Mbit/s and shares at least a tenth, so the resulting bandwidth of the device is
/// below the kernel's bound.
pub fn step() -> impl Strategy<Value = Step> {
    let amounts = (0u64..40_000_000, 0u64..12, 1u64..9);
    let path = (
        prop::option::weighted(0.9, 15_000_000u64..400_000_000),
        prop::option::weighted(0.9, 100u64..90_000),
    );
    let radio = (prop::option::weighted(0.9, 0u32..90_000), 6_554u16..=65_535, 0u32..200_000);
    let rare = |part| prop::bool::weighted(part);
    let says = (rare(0.05), rare(0.2), rare(0.03), rare(0.4), rare(0.05), rare(0.05));
    (amounts, path, radio, rare(0.05), rare(0.01), rare(0.05), says).prop_map(
        |(
            (after_ns, sent, acked),
            (rtt_ns, rate_kbps),
            (granted_kbps, share, burst_kbps),
            lost,
            silence,
            app,
            says,
        )| Step {
            after_ns,
            sent,
            acked,
            rtt_ns,
            rate_kbps,
            granted_kbps,
            share,
            burst_kbps,
            lost,
            silence,
            app_limited: app,
            says: says.into(),
        },
    )
}

/// Characters that represent the flags of a step in its text; the flags of [`Step::says`] start at the fourth
/// character.
const FLAGS: [char; 9] = ['l', 's', 'a', 'C', 'I', 'F', 'K', 'N', 'E'];

/// Reads randomly drawn steps and the packet size from a text in `tests/drawn`, in the format of [`to_text`]. A line
/// without the last three cells contains no radio report.
pub fn drawn(text: &str) -> (Vec<Step>, Bytes) {
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let mss = lines.next().and_then(|line| line.strip_prefix("mss ")).expect("the first line has the mss");
    let number = |cell: &str| cell.parse::<u64>().unwrap();
    let small = |cell: &str| u32::try_from(number(cell)).unwrap();
    let sample = |cell: &str| (cell != "-").then(|| number(cell));
    let step = |line: &str| {
        let cells: Vec<&str> = line.split(' ').collect();
        let (&[after_ns, sent, acked, rtt_ns, rate_kbps, flags], radio) = cells.split_first_chunk().unwrap();
        let [granted_kbps, share, burst_kbps] = radio.try_into().unwrap_or(["-", "65535", "0"]);
        let [lost, silence, app_limited, says @ ..] = FLAGS.map(|flag| flags.contains(flag));
        Step {
            after_ns: number(after_ns),
            sent: number(sent),
            acked: number(acked),
            rtt_ns: sample(rtt_ns),
            rate_kbps: sample(rate_kbps),
            granted_kbps: (granted_kbps != "-").then(|| small(granted_kbps)),
            share: u16::try_from(number(share)).unwrap(),
            burst_kbps: small(burst_kbps),
            lost,
            silence,
            app_limited,
            says,
        }
    };
    (lines.map(step).collect(), Bytes(number(mss)))
}

/// Returns the text of steps, for a file in `tests/drawn`.
pub fn to_text(steps: &[Step], mss: Bytes) -> String {
    let mut text = format!("mss {}\n", mss.0);
    for step in steps {
        let sample = |value: Option<u64>| value.map_or("-".to_owned(), |value| value.to_string());
        let [no_capacity, internet, is_stale, clear, activated, nothing] = step.says;
        let set = [step.lost, step.silence, step.app_limited];
        let set = set.into_iter().chain([no_capacity, internet, is_stale, clear, activated, nothing]);
        let flags: String =
            FLAGS.iter().zip(set).filter_map(|(&flag, is_set)| is_set.then_some(flag)).collect();
        let cells = [
            step.after_ns.to_string(),
            step.sent.to_string(),
            step.acked.to_string(),
            sample(step.rtt_ns),
            sample(step.rate_kbps),
            if flags.is_empty() { "-".to_owned() } else { flags },
            sample(step.granted_kbps.map(u64::from)),
            step.share.to_string(),
            step.burst_kbps.to_string(),
        ];
        text.push_str(&(cells.join(" ") + "\n"));
    }
    text
}

/// Time by which every step is longer in a test for a tie, in ns.
const NUDGES_NS: [u64; 5] = [101, 211, 307, 401, 503];

/// Compares the Rust controller with its C port over steps. A difference that disappears when every step is a few hundred
/// nanoseconds longer is a tie: an ACK arrived within a few nanoseconds of a threshold that depends on a rate, which is a
/// double in Rust and an integer (bit/s) in C. Either decision is then correct.
pub fn unless_tie<T>(
    steps: &[Step],
    mss: Bytes,
    compare: impl Fn(&[Step]) -> Result<T, String>,
) -> Result<T, String> {
    let found = compare(steps);
    let Err(unlike) = &found else { return found };
    let nudged = |ns: u64| -> Vec<Step> {
        let longer = |step: &Step| Step { after_ns: step.after_ns + ns, ..step.clone() };
        steps.iter().map(longer).collect()
    };
    let mut agreed = None;
    for ns in NUDGES_NS {
        let seen = compare(&nudged(ns));
        agreed = Some(seen.map_err(|_| format!("{unlike}\n{}", to_text(steps, mss)))?);
    }
    println!("a tie: {unlike}");
    agreed.ok_or_else(|| unlike.clone())
}

/// Runs the Rust controller of `scheme` over `steps`. Returns its trace.
pub fn told(scheme: &str, steps: &[Step], mss: Bytes) -> Vec<Entry> {
    let spec = SchemeSpec::parse(scheme).unwrap();
    let setup = Setup::new(mss, Streams::new(1).stream("twins"));
    let (entries, tape) = tape();
    let mut controller = Traced::new(spec.build(&setup).unwrap().controller, &spec, tape);
    let (mut now, mut next_number, mut delivered, mut inflight) =
        (Time::from_secs(100), 0, Bytes::ZERO, Bytes::ZERO);
    let mut outstanding: VecDeque<(SentPacket, Bytes)> = VecDeque::new();
    let mut least = Duration::MAX;
    let mut smoothed = Duration::from_millis(50);
    let mut activations = 0;
    use airpace_cc::Controller;
    for step in steps {
        now += Duration::from_nanos(step.after_ns);
        for _ in 0..step.sent {
            inflight += mss;
            let app_limited = step.app_limited;
            let mut packet = SentPacket::default();
            (packet.number, packet.bytes, packet.sent) = (next_number, mss, now);
            packet.app_limited = app_limited;
            outstanding.push_back((packet, delivered));
            let mut sent = Sent::new(now, next_number, mss, inflight);
            sent.app_limited = app_limited;
            controller.on_sent(&sent);
            next_number += 1;
        }
        let prior_inflight = inflight;
        if let (true, Some((packet, _))) = (step.lost || step.silence, outstanding.pop_front()) {
            inflight -= mss;
            let cause = if step.silence { LossCause::Persistent } else { LossCause::Threshold };
            let packets = &[packet];
            let mut loss = Loss::new(now, packets, cause);
            (loss.prior_inflight, loss.inflight, loss.next_number) = (prior_inflight, inflight, next_number);
            controller.on_loss(&loss);
        }
        let count = (step.acked as usize).min(outstanding.len());
        let taken: Vec<_> = outstanding.drain(..count).collect();
        let Some(&(_, prior_delivered)) = taken.last() else { continue };
        let acked = Bytes(mss.0 * taken.len() as u64);
        (inflight, delivered) = (inflight - acked, delivered + acked);
        // The first ACK of a connection always has a round-trip time.
        let latest =
            step.rtt_ns.or((prior_delivered == Bytes::ZERO).then_some(50_000_000)).map(Duration::from_nanos);
        least = least.min(latest.unwrap_or(least));
        smoothed = (smoothed * 7 + latest.unwrap_or(smoothed)) / 8;
        let rate = step.rate_kbps.map(|kbps| Rate::from_bps(kbps * 1_000));
        let packets: Vec<SentPacket> = taken.iter().map(|(packet, _)| *packet).collect();
        let feedback = if scheme.starts_with("pbe") { step.pbe(&mut activations) } else { step.biscay() };
        let rtt = Rtt { latest, smoothed, variation: Duration::ZERO, min: least.min(smoothed) };
        let mut ack = Ack::new(now, &packets, rtt);
        (ack.prior_inflight, ack.inflight, ack.next_number) = (prior_inflight, inflight, next_number);
        (ack.rate.rate, ack.rate.app_limited) = (rate, step.app_limited);
        (ack.rate.delivered, ack.rate.prior_delivered) = (delivered, prior_delivered);
        (ack.cwnd_limited, ack.feedback) = (true, feedback.as_bytes());
        controller.on_ack(&ack);
    }
    drop(controller);
    taken(&entries)
}
