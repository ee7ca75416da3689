//! Stories of PCC Vivace over one bottleneck: conditions → run → check.

mod plan;

use std::time::Duration;

use airpace_core::Rate;
use plan::{Conditions, Plan, Seen};

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
    plan.control(flow).pacing_rate.expect("Vivace paces").as_mbps()
}

fn value(plan: &Plan, flow: usize, name: &str) -> f64 {
    let inspect = plan.inspect(flow);
    inspect.values.iter().find(|(known, _)| *known == name).expect(name).1
}

/// What `scheme` gets alone, after its start.
fn settled(scheme: &str, conditions: Conditions) -> Seen {
    let mut plan = Plan::new(conditions);
    let flow = plan.start(scheme);
    plan.run_for(10 * SECOND);
    plan.forget();
    plan.run_for(20 * SECOND);
    plan.seen(flow)
}

#[test]
fn it_doubles_until_delay_grows_and_looks_twice() {
    let mut plan = Plan::new(wire(20.0, 40, 400));
    let flow = plan.start("vivace");
    let mut rates: Vec<f64> = vec![];
    while plan.inspect(flow).state == "Starting" {
        let rate = pacing_mbps(&plan, flow);
        if rates.last() != Some(&rate) {
            rates.push(rate);
        }
        plan.run_for(Duration::from_millis(1));
    }
    let halvings = rates[1..].windows(2).filter(|pair| pair[1] < pair[0]).count();
    assert_eq!(halvings, 1, "the first fall without loss may be noise: it is tried once more: {rates:?}");
    let doubled = rates[1..].windows(2).filter(|pair| (pair[1] / pair[0] - 2.0).abs() < 1e-6).count();
    assert_eq!(doubled, rates.len() - 3, "all else is doubling: {rates:?}");
    let after = value(&plan, flow, "base_mbps");
    assert!((9.0..21.0).contains(&after), "it goes back to the last rate that was better: {after}");
}

#[test]
fn confidence_makes_a_long_way_short() {
    let mut plan = Plan::new(wire(10.0, 40, 100));
    let flow = plan.start("vivace");
    plan.run_for(10 * SECOND);
    plan.rate_from(plan.now(), Rate::from_mbps(50.0));
    let (begun, mut most_steps, mut widest) = (plan.now(), 0.0f64, 0.0f64);
    while pacing_mbps(&plan, flow) < 45.0 {
        assert!(plan.now() - begun < 8 * SECOND, "five times the rate: {}", pacing_mbps(&plan, flow));
        plan.run_for(Duration::from_millis(5));
        most_steps = most_steps.max(value(&plan, flow, "steps"));
        widest = widest.max(value(&plan, flow, "boundary_percent"));
    }
    assert!(most_steps >= 4.0, "steps in one direction: {most_steps}");
    assert!(widest > 10.0, "the boundary widens where it is hit: {widest}");
}

#[test]
fn a_flip_of_the_gradient_brings_trials_back() {
    let mut plan = Plan::new(wire(20.0, 40, 100));
    let flow = plan.start("vivace");
    plan.run_for(5 * SECOND);
    let (mut probing, mut moving) = (0, 0);
    for _ in 0..2_000 {
        plan.run_for(Duration::from_millis(5));
        match plan.inspect(flow).state {
            "Probing" => {
                probing += 1;
                let off = pacing_mbps(&plan, flow) / value(&plan, flow, "base_mbps") - 1.0;
                assert!(off.abs() < 0.15, "trials are five per cent away: {off}");
            }
            "Moving" => moving += 1,
            state => panic!("{state} is over"),
        }
    }
    assert!(probing > 200 && moving > 200, "{probing} and {moving} of 2000 looks");
}

#[test]
fn a_deep_buffer_stays_empty() {
    for scheme in ["vivace", "vivace@pantheon", "vivace@proteus"] {
        let seen = settled(scheme, wire(20.0, 40, 400));
        assert!(seen.utilization > 0.88, "{scheme}: {seen:?}");
        assert!(seen.queueing_delay_p95_ms < 40.0, "{scheme} keeps it from growing: {seen:?}");
        assert!(seen.loss_rate < 0.001, "{scheme}: {seen:?}");
    }
}

#[test]
fn without_its_latency_term_it_fills_any_buffer() {
    for scheme in ["vivace@loss", "vivace@uspace"] {
        let seen = settled(scheme, wire(20.0, 40, 200));
        assert!(seen.utilization > 0.9, "{scheme}: {seen:?}");
        assert!(seen.queueing_delay_mean_ms > 80.0, "{scheme}: {seen:?}");
    }
}

#[test]
fn random_loss_of_one_per_cent_is_tolerated() {
    let lossy = Conditions { loss: 0.01, ..wire(20.0, 40, 100) };
    let (vivace, cubic) = (settled("vivace", lossy).utilization, settled("cubic", lossy).utilization);
    assert!(vivace > 0.8, "Vivace uses {vivace}");
    assert!(cubic < 0.5, "CUBIC uses {cubic}");
}

#[test]
fn two_flows_become_equal() {
    for seed in 1..=3 {
        let mut plan = Plan::new(Conditions { seed, ..wire(40.0, 40, 300) });
        let first = plan.start("vivace");
        plan.run_for(10 * SECOND);
        let second = plan.start("vivace");
        plan.run_for(25 * SECOND);
        plan.forget();
        plan.run_for(20 * SECOND);
        let shares = [first, second].map(|flow| plan.seen(flow).throughput.as_mbps());
        let sum = shares[0] + shares[1];
        let jain = sum * sum / (2.0 * (shares[0] * shares[0] + shares[1] * shares[1]));
        assert!(jain > 0.97 && sum > 34.0, "seed {seed}: {shares:?}");
    }
}

#[test]
fn it_follows_a_fall_of_the_rate_and_drains_what_that_queued() {
    let mut plan = Plan::new(wire(40.0, 40, 300));
    let flow = plan.start("vivace");
    plan.run_for(10 * SECOND);
    plan.rate_from(plan.now(), Rate::from_mbps(10.0));
    plan.run_for(25 * SECOND);
    plan.forget();
    plan.run_for(10 * SECOND);
    let seen = plan.seen(flow);
    assert!(seen.utilization > 0.8 && seen.queueing_delay_mean_ms < 60.0, "{seen:?}");
}

#[test]
fn an_outage_does_not_kill_it() {
    let mut plan = Plan::new(wire(20.0, 40, 300));
    let flow = plan.start("vivace");
    plan.run_for(5 * SECOND);
    plan.rate_from(plan.now(), Rate::ZERO);
    plan.rate_from(plan.now() + 3 * SECOND, Rate::from_mbps(20.0));
    plan.run_for(6 * SECOND);
    plan.forget();
    plan.run_for(5 * SECOND);
    assert!(plan.seen(flow).utilization > 0.8, "{:?}", plan.seen(flow));
}
