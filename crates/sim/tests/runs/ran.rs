//! Tests of `+ran`: its effect on the cell, and that it has no effect elsewhere: conditions → run → check.

use crate::watched;

use watched::{Watched, first};

/// Sets wires with constant delay, so that only the cell makes delays vary.
const CALM: &str = "forward.jitter_mean_ms=0 reverse.jitter_mean_ms=0";

fn idle(sets: &str, scheme: &str, seed: u64) -> Watched {
    first("stationary-idle", sets, scheme, seed)
}

#[test]
fn a_scheme_that_is_not_told_of_repeated_blocks_carries_more() {
    for (scheme, times) in [("copa", 1.03), ("vivace", 1.5)] {
        let mbps = |choice: &str| -> f64 {
            (1..=5).map(|seed| idle(CALM, choice, seed).mbps(0.0..20.0)).sum::<f64>() / 5.0
        };
        let (alone, with_ran) = (mbps(scheme), mbps(&format!("{scheme}+ran")));
        assert!(with_ran > times * alone, "{scheme}: {with_ran} Mbit/s with it, {alone} without");
    }
}

#[test]
fn the_lag_is_that_of_the_phone_and_waits_are_those_of_one_or_two_repetitions() {
    let copa = idle(CALM, "copa+ran", 1);
    for look in copa.looks_in(2.0..20.0) {
        assert_eq!(look.value("radio_lag_ms"), LAG_MS, "at {} s", look.at_s);
    }
    let waits: Vec<f64> = copa.looks_in(2.0..20.0).map(|look| look.value("radio_wait_ms")).collect();
    let longest = waits.iter().copied().fold(0.0, f64::max);
    assert!((4.0..=24.0).contains(&longest), "the longest wait that was seen: {longest} ms");
    let waited = waits.iter().filter(|wait| **wait > 0.0).count();
    assert!(waited > 0 && waited < waits.len(), "{waited} of {} packets waited", waits.len());
}

/// Time from the release of a packet to its arrival, in ms: with the processing time of this cell's phones, a packet
/// arrives before the next subframe is reported.
const LAG_MS: f64 = 0.0;

#[test]
fn where_no_block_is_repeated_nothing_changes() {
    for scheme in ["copa", "vivace", "ledbat", "ledbat@plusplus"] {
        let with_ran = match scheme.split_once('@') {
            Some((name, preset)) => format!("{name}+ran@{preset}"),
            None => format!("{scheme}+ran"),
        };
        for (scenario, sets) in [
            ("stationary-idle", "duration_s=8 cell.bler.pbe_bit_error_rate=0"),
            ("trace", "duration_s=8 trace.synth.mean_mbps=12 trace.synth.seconds=8"),
        ] {
            let [alone, with_ran] = [scheme, &with_ran].map(|choice| first(scenario, sets, choice, 1));
            let figures = |run: &Watched| (run.mbps(0.0..8.0), run.queueing_mean_ms(0.0..8.0));
            assert_eq!(figures(&alone), figures(&with_ran), "{scheme} over {scenario}");
        }
    }
}

#[test]
fn without_reports_of_the_radio_nothing_is_known_and_nothing_changes() {
    let sets = "duration_s=8 cell.telemetry.lost_carrier=[{carrier=0,from_s=0,until_s=9}]";
    let [alone, with_ran] = ["copa", "copa+ran"].map(|choice| idle(sets, choice, 1));
    assert_eq!(alone.mbps(0.0..8.0), with_ran.mbps(0.0..8.0));
    assert!(
        with_ran.looks.iter().all(|look| look.value("radio_wait_ms").is_nan()),
        "an unknown wait is not zero"
    );
}
