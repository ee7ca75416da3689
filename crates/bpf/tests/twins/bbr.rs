//! BBR's C port makes the same decisions as the Rust controller, for all events of flows of the built-in scenarios, and for
//! arbitrary ACKs.

use crate::common;

use airpace_bpf::replay::bbr::BbrReplay;
use airpace_bpf::twin::bbr::State;
use airpace_cc::ack_trace::{Answer, Entry};
use airpace_core::{Bytes, Rate, Rng, Streams};
use airpace_sim::builtin;
use common::{Trace, drawn, step, told, traced, unless_tie};
use proptest::prelude::*;

/// Maximum relative difference of the two versions' windows and rates: the error of a few roundings.
const TOLERANCE: f64 = 1e-6;

fn state(answer: &Answer) -> State {
    match answer.state.as_str() {
        "Startup" => State::Startup,
        "Drain" => State::Drain,
        "ProbeBW" => State::ProbeBw,
        _ => State::ProbeRtt,
    }
}

/// A difference of one byte or one bit/s is ignored: both versions round to integers.
fn difference(rust: u64, c: u64) -> f64 {
    rust.abs_diff(c).saturating_sub(1) as f64 / rust.max(1) as f64
}

/// Replays a trace of the Rust controller through the C port. Returns the number of decisions in each state.
fn compare(name: &str, mss: Bytes, rng: Rng, entries: &[Entry]) -> Result<[u64; 4], String> {
    let mut replay = BbrReplay::new(mss, rng);
    let (mut seen, mut rust) = ([0; 4], None::<&Answer>);
    for (at, entry) in entries.iter().enumerate() {
        let c = replay.tell(entry);
        rust = entry.answer.as_ref().or(rust);
        let Some(rust) = rust else { continue };
        let rate = difference(rust.pacing_rate.map_or(0, Rate::as_bps), c.pacing_rate.as_bps());
        if rate.max(difference(rust.cwnd.0, c.cwnd.0)) > TOLERANCE || state(rust) != c.state {
            return Err(format!("{name}, line {} at {}: Rust {rust:?}, C {c:?}", at + 2, entry.time));
        }
        seen[c.state as usize] += 1;
    }
    Ok(seen)
}

#[test]
fn every_flow_of_the_built_in_scenarios_gets_the_same_rates() {
    let (mut compared, mut total) = (0, [0; 4]);
    for (name, text) in builtin() {
        // This scenario does not name a trace file, so it cannot run without one.
        if *name == "trace" {
            continue;
        }
        // One scenario runs long enough to reach ProbeRTT.
        let seconds = match *name {
            "stationary-busy" => "12",
            // Cells of 5G carry a hundred times as many packets.
            name if name.starts_with("nr-") => "1",
            _ => "6",
        };
        let Some(Trace { flow, mss, entries }) = traced(name, text, "bbr", seconds) else { continue };
        let rng = Streams::new(1).stream(&format!("flow.{flow}.controller"));
        let seen = compare(name, mss, rng, &entries).unwrap_or_else(|unlike| panic!("{unlike}"));
        println!("{name}: {seen:?}");
        compared += 1;
        total.iter_mut().zip(seen).for_each(|(sum, seen)| *sum += seen);
    }
    assert!(compared >= 23, "only {compared} scenarios were compared");
    assert!(total.iter().all(|&answers| answers > 1_000), "{total:?}");
}

#[test]
fn acks_that_once_parted_the_twins_get_the_same_rates() {
    let (steps, mss) = drawn(include_str!("drawn/bbr-bit.txt"));
    let rng = Streams::new(1).stream("twins");
    let seen = compare("bbr-bit", mss, rng, &told("bbr", &steps, mss));
    let seen = seen.unwrap_or_else(|unlike| panic!("{unlike}"));
    assert!(seen.iter().sum::<u64>() > 7, "{seen:?}");
}

proptest! {
    #[test]
    fn arbitrary_acks_get_the_same_rates(steps in prop::collection::vec(step(), 1..400), mss in 200u64..9_000) {
        let (mss, rng) = (Bytes(mss), || Streams::new(1).stream("twins"));
        let seen = unless_tie(&steps, mss, |steps| compare("arbitrary", mss, rng(), &told("bbr", steps, mss)));
        prop_assert!(seen.is_ok(), "{}", seen.unwrap_err());
    }
}
