//! Tests of MORC: conditions → run → check. All tests except one change a condition during the run. The bounds of that
//! one test are only valid in this test set-up. The other tests are in `crates/sim/tests/runs/morc.rs`.
//!
//! Source: MORC §4.1

use crate::plan;

use std::time::Duration;

use airpace_cc::endpoint::Backlog;
use airpace_core::{Bytes, Rate};
use plan::{Conditions, Plan};

const SECOND: Duration = Duration::from_secs(1);

/// The conditions of the paper's laboratory: the queue holds 300 ms of data.
fn lab(mbps: f64, rtt_ms: u64) -> Conditions {
    let rate = Rate::from_mbps(mbps);
    Conditions {
        rate,
        rtt: Duration::from_millis(rtt_ms),
        buffer: rate.bytes_in(Duration::from_millis(300)),
        ..Conditions::default()
    }
}

fn value(plan: &Plan, flow: usize, name: &str) -> f64 {
    let inspect = plan.inspect(flow);
    inspect.values.iter().find(|(known, _)| *known == name).expect(name).1
}

fn pacing_mbps(plan: &Plan, flow: usize) -> f64 {
    plan.control(flow).pacing_rate.expect("MORC paces").as_mbps()
}

#[test]
fn slow_start_is_not_stopped_by_a_loss() {
    let mut plan = Plan::new(lab(60.0, 30));
    let flow = plan.start("morc");
    for _ in 0..4 {
        plan.run_for(Duration::from_millis(40));
        plan.lose_next(flow);
    }
    plan.run_for(Duration::from_millis(840));
    plan.forget();
    plan.run_for(SECOND);
    assert!(plan.seen(flow).utilization > 0.9, "unlike TCP, MORC uses the link: {:?}", plan.seen(flow));
}

#[test]
fn at_the_least_round_trip_time_it_tries_no_lower_rate() {
    let mut plan = Plan::new(lab(10.0, 40));
    let flow = plan.start("morc@paper");
    plan.run_for(5 * SECOND);
    plan.rate_from(plan.now(), Rate::from_mbps(60.0));
    plan.run_for(SECOND / 2);
    let mut last = pacing_mbps(&plan, flow);
    let begun = plan.now();
    while plan.queued() < Bytes(20_000) {
        let rate = pacing_mbps(&plan, flow);
        assert!(rate > 0.999 * last, "the rate does not fall while the queue is empty: {rate} after {last}");
        last = rate;
        plan.run_for(Duration::from_millis(5));
    }
    assert!(last > 54.0, "the rate rises until there is a queue: {last}");
    assert!(plan.now() - begun < 4 * SECOND, "six times the rate takes {:?}", plan.now() - begun);
}

#[test]
fn six_times_the_rate_is_used_within_a_second() {
    let mut plan = Plan::new(lab(10.0, 40));
    let flow = plan.start("morc");
    plan.run_for(5 * SECOND);
    plan.rate_from(plan.now(), Rate::from_mbps(60.0));
    plan.run_for(SECOND);
    plan.forget();
    plan.run_for(SECOND);
    assert!(plan.seen(flow).utilization > 0.9, "{:?}", plan.seen(flow));
}

#[test]
fn silences_of_a_video_say_nothing_about_the_rate() {
    let mut plan = Plan::new(lab(40.0, 40));
    let flow = plan.start_with("morc", Backlog::Limited(Bytes(4_000_000)));
    plan.run_for(3 * SECOND);
    let learnt = pacing_mbps(&plan, flow);
    // The application writes chunks that last less than a round trip, with long pauses between the chunks.
    for _ in 0..30 {
        plan.offer(flow, Bytes(30_000));
        plan.run_for(Duration::from_millis(300));
    }
    let kept = pacing_mbps(&plan, flow);
    assert!((kept / learnt - 1.0).abs() < 0.15, "{learnt} Mbit/s before, {kept} after the chunks");
    plan.offer(flow, Bytes(40_000_000));
    plan.run_for(Duration::from_millis(100));
    plan.forget();
    plan.run_for(SECOND);
    assert!(plan.seen(flow).utilization > 0.9, "the full rate is used at once: {:?}", plan.seen(flow));
}

#[test]
fn a_flow_with_chunks_and_silences_still_learns_the_rate() {
    let mut plan = Plan::new(lab(40.0, 40));
    let flow = plan.start_with("morc", Backlog::Limited(Bytes::ZERO));
    for _ in 0..20 {
        plan.offer(flow, Bytes(1_000_000));
        plan.run_for(SECOND);
    }
    let rate = value(&plan, flow, "base_mbps");
    assert!((34.0..60.0).contains(&rate), "the rate learnt from a megabyte a second: {rate}");
}

/// Minimum over the phases of Jain's index in the last two seconds of each phase. Flows join every five seconds and
/// leave in the same order, as in the paper's figure of convergence.
///
/// Source: MORC §4.1 Fig. 5
fn least_jain(scheme: &str, seed: u64) -> f64 {
    let mut plan = Plan::new(Conditions { seed, ..lab(100.0, 20) });
    let mut flows = vec![];
    let mut least = f64::INFINITY;
    for phase in 0..9 {
        if phase < 5 {
            flows.push(plan.start(scheme));
        } else {
            plan.stop(flows.remove(0));
        }
        plan.run_for(3 * SECOND);
        plan.forget();
        plan.run_for(2 * SECOND);
        let shares: Vec<f64> = flows.iter().map(|flow| plan.seen(*flow).throughput.as_mbps()).collect();
        let sum: f64 = shares.iter().sum();
        let squares: f64 = shares.iter().map(|share| share * share).sum();
        assert!(sum > 90.0, "the link is used in phase {phase}: {shares:?}");
        least = least.min(sum * sum / squares / shares.len() as f64);
    }
    least
}

#[test]
fn five_flows_share_the_link_equally_in_every_phase() {
    for seed in 1..=5 {
        let least = least_jain("morc", seed);
        assert!(least > 0.95, "seed {seed}: {least}");
    }
}

#[test]
fn each_of_the_two_cures_of_history_is_needed_for_that() {
    let mean = |scheme: &str| (1..=2).map(|seed| least_jain(scheme, seed)).sum::<f64>() / 2.0;
    let (whole, same_target, no_drains) =
        (mean("morc"), mean("morc:octave_ms=0"), mean("morc:drain_s=0:drain_above=0"));
    assert!(same_target < whole - 0.2, "a target without the rate in it: {same_target} against {whole}");
    assert!(no_drains < whole - 0.05, "no drains: {no_drains} against {whole}");
}
