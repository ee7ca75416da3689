//! Stories of PCC Allegro over one bottleneck: conditions → run → check.

mod plan;

use std::time::Duration;

use airpace_core::{Bytes, Rate};
use plan::{Conditions, Plan};

const SECOND: Duration = Duration::from_secs(1);

/// A buffer of so many milliseconds.
fn wire(mbps: f64, rtt_ms: u64, buffer_ms: u64) -> Conditions {
    let rate = Rate::from_mbps(mbps);
    Conditions {
        rate,
        rtt: Duration::from_millis(rtt_ms),
        buffer: rate.bytes_in(Duration::from_millis(buffer_ms)),
        ..Conditions::default()
    }
}

fn pacing_mbps(plan: &Plan, flow: usize) -> f64 {
    plan.control(flow).pacing_rate.expect("Allegro paces").as_mbps()
}

fn value(plan: &Plan, flow: usize, name: &str) -> f64 {
    let inspect = plan.inspect(flow);
    inspect.values.iter().find(|(known, _)| *known == name).expect(name).1
}

#[test]
fn it_starts_at_two_packets_a_round_trip_and_doubles_until_utility_falls() {
    let mut plan = Plan::new(wire(20.0, 40, 20));
    let flow = plan.start("allegro");
    let mut rates: Vec<f64> = vec![];
    while plan.inspect(flow).state == "Starting" {
        let rate = pacing_mbps(&plan, flow);
        if rates.last() != Some(&rate) {
            rates.push(rate);
        }
        plan.run_for(Duration::from_millis(1));
    }
    assert!((rates[1] - 0.6).abs() < 0.02, "24 kbit in 40 ms: {rates:?}");
    assert!(rates[1..].windows(2).all(|pair| (pair[1] / pair[0] - 2.0).abs() < 1e-6), "{rates:?}");
    assert!(rates.last().unwrap() > &35.0, "what it loses tells it where to stop: {rates:?}");
    let after = value(&plan, flow, "base_mbps");
    assert!((9.0..21.0).contains(&after), "it goes back to the last rate that was better: {after}");
}

#[test]
fn trials_decide_a_direction_and_steps_grow_in_it() {
    let mut plan = Plan::new(wire(10.0, 40, 20));
    let flow = plan.start("allegro");
    plan.run_for(10 * SECOND);
    plan.rate_from(plan.now(), Rate::from_mbps(40.0));
    let (mut decided, mut steps, mut before) = (false, vec![], pacing_mbps(&plan, flow));
    while pacing_mbps(&plan, flow) < 36.0 {
        assert!(plan.now().as_millis() < 20_000, "four times the rate is found: {before}");
        plan.run_for(Duration::from_millis(2));
        decided |= plan.inspect(flow).state == "DecisionMaking";
        let rate = pacing_mbps(&plan, flow);
        if plan.inspect(flow).state == "RateAdjusting" && rate > before {
            steps.push(rate / before - 1.0);
        }
        before = rate;
    }
    assert!(decided);
    let longest = steps.iter().copied().fold(0.0, f64::max);
    assert!(longest > 0.1, "the n-th step is of n per cent: {steps:.3?}");
}

#[test]
fn two_rates_are_tried_around_the_present_one() {
    let mut plan = Plan::new(Conditions { loss: 0.04, ..wire(20.0, 40, 20) });
    let flow = plan.start("allegro");
    let mut tried = std::collections::BTreeSet::new();
    for _ in 0..20_000 {
        plan.run_for(Duration::from_millis(1));
        let epsilon = value(&plan, flow, "epsilon_percent");
        if epsilon.is_finite() {
            let off = (pacing_mbps(&plan, flow) / value(&plan, flow, "base_mbps") - 1.0) * 100.0;
            tried.insert((off.round() as i64, epsilon.round() as i64));
        }
    }
    assert!(tried.contains(&(1, 1)) && tried.contains(&(-1, 1)), "one per cent above and below: {tried:?}");
    assert!(tried.iter().any(|(_, epsilon)| *epsilon > 1), "wider where trials disagree: {tried:?}");
    assert!(tried.iter().all(|(_, epsilon)| *epsilon <= 5), "at most five per cent: {tried:?}");
}

#[test]
fn loss_below_five_per_cent_does_not_slow_it_down() {
    for loss in [0.001, 0.01, 0.02] {
        let used = |scheme: &str| {
            let mut plan = Plan::new(Conditions { loss, ..wire(20.0, 40, 40) });
            let flow = plan.start(scheme);
            plan.run_for(15 * SECOND);
            plan.forget();
            plan.run_for(15 * SECOND);
            plan.seen(flow).utilization
        };
        let (allegro, cubic) = (used("allegro"), used("cubic"));
        assert!(allegro > 0.9, "Allegro uses {allegro} at a loss of {loss}");
        assert!(allegro > cubic, "CUBIC {cubic}");
    }
}

#[test]
fn loss_beyond_five_per_cent_is_taken_for_congestion() {
    let mut plan = Plan::new(Conditions { loss: 0.09, ..wire(20.0, 40, 40) });
    let flow = plan.start("allegro");
    plan.run_for(30 * SECOND);
    assert!(pacing_mbps(&plan, flow) < 5.0, "the cliff of its utility: {}", pacing_mbps(&plan, flow));
}

#[test]
fn a_shallow_buffer_is_enough() {
    let mut plan = Plan::new(Conditions { buffer: Bytes(9_000), ..wire(50.0, 40, 0) });
    let flow = plan.start("allegro");
    plan.run_for(10 * SECOND);
    plan.forget();
    plan.run_for(10 * SECOND);
    let seen = plan.seen(flow);
    assert!(seen.utilization > 0.95, "six packets of buffer: {seen:?}");
    assert!(seen.loss_rate < 0.06, "its utility allows five per cent: {seen:?}");
}

#[test]
fn the_safe_utility_fills_any_buffer_and_those_with_delay_do_not() {
    let delay = |scheme: &str| {
        let mut plan = Plan::new(wire(20.0, 40, 200));
        let flow = plan.start(scheme);
        plan.run_for(20 * SECOND);
        plan.forget();
        plan.run_for(20 * SECOND);
        let seen = plan.seen(flow);
        assert!(seen.utilization > 0.9, "{scheme}: {seen:?}");
        seen.queueing_delay_mean_ms
    };
    let safe = delay("allegro");
    assert!(safe > 140.0, "delay is no part of it: {safe}");
    let (latency, pantheon) = (delay("allegro@latency"), delay("allegro@pantheon"));
    assert!(latency < 0.8 * safe, "{latency}");
    assert!(pantheon < 20.0, "on a path without noise the program keeps the queue short: {pantheon}");
}

#[test]
fn two_flows_share_a_shallow_buffer() {
    let mut jain = 0.0;
    for seed in 1..=4 {
        let mut plan = Plan::new(Conditions { seed, ..wire(40.0, 20, 20) });
        let first = plan.start("allegro");
        plan.run_for(5 * SECOND);
        let second = plan.start("allegro");
        plan.run_for(30 * SECOND);
        plan.forget();
        plan.run_for(30 * SECOND);
        let shares = [first, second].map(|flow| plan.seen(flow).throughput.as_mbps());
        let sum = shares[0] + shares[1];
        jain += sum * sum / (2.0 * (shares[0] * shares[0] + shares[1] * shares[1])) / 4.0;
        assert!(sum > 36.0, "{shares:?}");
    }
    assert!(jain > 0.8, "Jain's index over seeds: {jain}");
}

#[test]
fn an_outage_does_not_kill_it() {
    let mut plan = Plan::new(wire(20.0, 40, 40));
    let flow = plan.start("allegro");
    plan.run_for(8 * SECOND);
    plan.rate_from(plan.now(), Rate::ZERO);
    plan.rate_from(plan.now() + 3 * SECOND, Rate::from_mbps(20.0));
    plan.run_for(5 * SECOND);
    plan.forget();
    plan.run_for(5 * SECOND);
    assert!(plan.seen(flow).utilization > 0.8, "{:?}", plan.seen(flow));
}
