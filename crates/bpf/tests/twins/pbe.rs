//! The C port of PBE-CC's sender makes the same decisions as the Rust controller, for all events of flows of the built-in
//! scenarios, and for arbitrary ACKs and feedback.

use crate::common;

use airpace_bpf::replay::pbe::PbeReplay;
use airpace_bpf::twin::bbr::State;
use airpace_bpf::twin::pbe::{self as twin, PbeTuning, Phase};
use airpace_cc::ack_trace::{Answer, Entry};
use airpace_cc::scheme::Options;
use airpace_cc::{SchemeSpec, pbe};
use airpace_core::{Bytes, Rate, Rng, Streams};
use airpace_sim::builtin;
use common::{Step, Trace, step, told, traced, unless_tie};
use proptest::prelude::*;

/// Maximum relative difference of the two versions' windows and rates: the error of a few roundings.
const TOLERANCE: f64 = 1e-6;

/// Results of a comparison.
#[derive(Debug, Default)]
struct Seen {
    /// Number of decisions compared in each phase.
    phases: [u64; 7],
    worst: f64,
}

impl Seen {
    fn add(&mut self, other: &Seen) {
        self.worst = self.worst.max(other.worst);
        self.phases.iter_mut().zip(other.phases).for_each(|(sum, seen)| *sum += seen);
    }
}

fn tuning(options: &Options) -> PbeTuning {
    PbeTuning::new(&pbe::Tuning::read(options).unwrap()).expect("the kernel knows them")
}

fn defaults() -> PbeTuning {
    tuning(&Options::defaults(&pbe::SCHEME))
}

/// The random generator of a flow's controller.
fn generator(flow: usize) -> Rng {
    Streams::new(1).stream(&format!("flow.{flow}.controller"))
}

/// Returns the phase, and the state of BBR if BBR controls the flow.
fn state(answer: &Answer) -> (Phase, Option<State>) {
    let (phase, bbr) = answer.state.split_once('.').unwrap_or((&answer.state, ""));
    let phase = match phase {
        "Start" => Phase::Start,
        "Wireless" => Phase::Wireless,
        "Drain" => Phase::Drain,
        "Internet" => Phase::Internet,
        "Fallback" => Phase::Fallback,
        "Check" => Phase::Check,
        "Held" => Phase::Held,
        other => panic!("{other} is no phase"),
    };
    let bbr = match bbr {
        "" => return (phase, None),
        "Startup" => State::Startup,
        "Drain" => State::Drain,
        "ProbeBW" => State::ProbeBw,
        _ => State::ProbeRtt,
    };
    (phase, Some(bbr))
}

fn is_same_state(rust: &Answer, c: &twin::Answer) -> bool {
    state(rust) == (c.phase, c.phase.is_bbr().then_some(c.bbr))
}

/// A difference of one byte or one bit/s is ignored: both versions use integers.
fn difference(rust: u64, c: u64) -> f64 {
    rust.abs_diff(c).saturating_sub(1) as f64 / rust.max(1) as f64
}

/// Replays a trace of the Rust controller through the C port.
fn compare(name: &str, tuning: &PbeTuning, mss: Bytes, rng: Rng, entries: &[Entry]) -> Result<Seen, String> {
    let mut replay = PbeReplay::new(tuning, mss, rng);
    let (mut seen, mut rust) = (Seen::default(), None::<&Answer>);
    for (at, entry) in entries.iter().enumerate() {
        let c = replay.tell(entry);
        rust = entry.answer.as_ref().or(rust);
        let Some(rust) = rust else { continue };
        let rate = difference(rust.pacing_rate.map_or(0, Rate::as_bps), c.pacing_rate.as_bps());
        let worst = rate.max(difference(rust.cwnd.0, c.cwnd.0));
        seen.phases[c.phase as usize] += 1;
        seen.worst = seen.worst.max(worst);
        if worst > TOLERANCE || !is_same_state(rust, &c) {
            return Err(format!("{name}, line {} at {}: Rust {rust:?}, C {c:?}", at + 2, entry.time));
        }
    }
    Ok(seen)
}

#[test]
fn every_flow_of_the_built_in_scenarios_gets_the_same_rates() {
    let (mut compared, mut total) = (0, Seen::default());
    for (name, text) in builtin() {
        // This scenario does not name a trace file, so it cannot run without one.
        if *name == "trace" {
            continue;
        }
        // In one scenario, the receiver sends false reports after five seconds; in another scenario, the bottleneck
        // moves to the Internet later.
        let seconds = match *name {
            "misreport" => "10",
            "wired-bottleneck" => "25",
            // Cells of 5G carry a hundred times as many packets.
            name if name.starts_with("nr-") => "1",
            _ => "6",
        };
        let Some(Trace { flow, mss, entries }) = traced(name, text, "pbe", seconds) else { continue };
        let seen = compare(name, &defaults(), mss, generator(flow), &entries);
        let seen = seen.unwrap_or_else(|unlike| panic!("{unlike}"));
        println!("{name}: {seen:?}");
        compared += 1;
        total.add(&seen);
    }
    println!("{compared}: {total:?}");
    assert!(compared >= 23, "only {compared} scenarios were compared");
    assert!(total.phases.iter().all(|&answers| answers > 100), "{total:?}");
}

#[test]
fn other_options_get_the_same_rates() {
    let mut total = Seen::default();
    for options in [
        "pbe@paper:delay_drain=off",
        "pbe:guard=off:internet_cwnd_gain=2:internet_margin_percent=2.5:probe_gain=1.25",
        "pbe:cwnd_slack_ms=11:cwnd_packets=7:cwnd_bunching=off:restart_from=zero:request_start=off",
    ] {
        let spec = SchemeSpec::parse(options).unwrap();
        for (name, text) in builtin() {
            if !["wired-bottleneck", "rtt-fairness", "video"].contains(name) {
                continue;
            }
            let seconds = if *name == "wired-bottleneck" { "16" } else { "4" };
            let trace = traced(name, text, options, seconds).expect("its flows have no scheme of their own");
            let seen =
                compare(name, &tuning(spec.options()), trace.mss, generator(trace.flow), &trace.entries);
            let seen = seen.unwrap_or_else(|unlike| panic!("{options}, {unlike}"));
            println!("{options}, {name}: {seen:?}");
            total.add(&seen);
        }
    }
    assert!(total.phases[Phase::Wireless as usize] > 10_000, "{total:?}");
    assert!(total.phases[Phase::Internet as usize] > 1_000, "{total:?}");
}

proptest! {
    #[test]
    fn arbitrary_acks_get_the_same_rates(steps in prop::collection::vec(step(), 1..400), mss in 200u64..9_000) {
        let (mss, rng) = (Bytes(mss), || Streams::new(1).stream("twins"));
        let compare = |steps: &[Step]| compare("arbitrary", &defaults(), mss, rng(), &told("pbe", steps, mss));
        let seen = unless_tie(&steps, mss, compare);
        prop_assert!(seen.is_ok(), "{}", seen.unwrap_err());
    }
}
