//! MORC's C port makes the same decisions as the Rust controller, for all events of flows of the built-in scenarios, and
//! for arbitrary ACKs.

use crate::common;

use airpace_bpf::replay::morc::MorcReplay;
use airpace_bpf::twin::morc::{MorcTuning, Phase};
use airpace_cc::ack_trace::{Answer, Entry};
use airpace_cc::morc;
use airpace_cc::scheme::Options;
use airpace_core::{Bytes, Rate};
use airpace_sim::builtin;
use common::{Trace, changed, drawn, step, told, trace_of, traced, unless_tie};
use proptest::prelude::*;

/// Maximum relative difference of the two versions' windows and rates: a rate of 100 kbit/s in whole bit/s has a
/// relative error of 10^-5, and the next rate is computed from it.
const TOLERANCE: f64 = 1e-4;

/// Results of a comparison.
#[derive(Debug, Default)]
struct Seen {
    /// Number of decisions compared in each phase.
    phases: [u64; 4],
    worst: f64,
}

fn tuning() -> MorcTuning {
    let options = Options::defaults(&morc::SCHEME);
    MorcTuning::new(&morc::profile(&options).unwrap()).expect("the kernel knows the defaults")
}

fn phase(answer: &Answer) -> Phase {
    match answer.state.as_str() {
        "SlowStart" => Phase::SlowStart,
        "RateAdjusting" => Phase::Adjusting,
        "Competing" => Phase::Competing,
        _ => Phase::Drain,
    }
}

/// A difference of two bytes or two bit/s is ignored: both versions use integers.
fn difference(rust: u64, c: u64) -> f64 {
    rust.abs_diff(c).saturating_sub(2) as f64 / rust.max(1) as f64
}

/// Replays a trace of the Rust controller through the C port.
fn compare(name: &str, mss: Bytes, entries: &[Entry]) -> Result<Seen, String> {
    let mut replay = MorcReplay::new(tuning(), mss);
    let (mut seen, mut rust) = (Seen::default(), None::<&Answer>);
    for (at, entry) in entries.iter().enumerate() {
        let c = replay.tell(entry);
        rust = entry.answer.as_ref().or(rust);
        let Some(rust) = rust else { continue };
        let rate = difference(rust.pacing_rate.map_or(0, Rate::as_bps), c.pacing_rate.as_bps());
        let worst = rate.max(difference(rust.cwnd.0, c.cwnd.0));
        seen.phases[phase(rust) as usize] += 1;
        seen.worst = seen.worst.max(worst);
        if worst > TOLERANCE || phase(rust) != c.phase {
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
        // Cells of 5G carry a hundred times as many packets.
        let seconds = if name.starts_with("nr-") { "1" } else { "6" };
        let Some(Trace { mss, entries, .. }) = traced(name, text, "morc", seconds) else { continue };
        let seen = compare(name, mss, &entries).unwrap_or_else(|unlike| panic!("{unlike}"));
        println!("{name}: {seen:?}");
        compared += 1;
        total.worst = total.worst.max(seen.worst);
        total.phases.iter_mut().zip(seen.phases).for_each(|(sum, seen)| *sum += seen);
    }
    println!("{compared}: {total:?}");
    assert!(compared >= 23, "only {compared} scenarios were compared");
    let [start, adjusting, _, drains] = total.phases;
    assert!(start > 1_000 && adjusting > 500_000 && drains > 1_000, "{total:?}");
}

#[test]
fn beside_a_rival_it_gets_the_same_rates() {
    let (name, text) = builtin().iter().find(|(name, _)| *name == "two-flows").unwrap();
    let beside = [("flow.0.scheme", "cubic"), ("duration_s", "20")];
    let scenario = changed(name, text, &beside).unwrap();
    let Trace { mss, entries, .. } = trace_of(&scenario, "morc").unwrap();
    let seen = compare(name, mss, &entries).unwrap_or_else(|unlike| panic!("{unlike}"));
    println!("{seen:?}");
    assert!(seen.phases.iter().all(|&answers| answers > 100), "{seen:?}");
}

#[test]
fn acks_that_once_parted_the_twins_get_the_same_rates() {
    for (name, text, phase) in [
        ("morc-tie", include_str!("drawn/morc-tie.txt"), Phase::Adjusting),
        ("morc-rival", include_str!("drawn/morc-rival.txt"), Phase::Competing),
        ("morc-window", include_str!("drawn/morc-window.txt"), Phase::Adjusting),
    ] {
        let (steps, mss) = drawn(text);
        let seen = unless_tie(&steps, mss, |steps| compare(name, mss, &told("morc", steps, mss)));
        let seen = seen.unwrap_or_else(|unlike| panic!("{unlike}"));
        assert!(seen.phases[phase as usize] > 20, "{name}: {seen:?}");
    }
}

proptest! {
    #[test]
    fn arbitrary_acks_get_the_same_rates(steps in prop::collection::vec(step(), 1..400), mss in 200u64..9_000) {
        let mss = Bytes(mss);
        let seen = unless_tie(&steps, mss, |steps| compare("arbitrary", mss, &told("morc", steps, mss)));
        prop_assert!(seen.is_ok(), "{}", seen.unwrap_err());
    }
}
