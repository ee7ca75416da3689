//! Tests of Verus.

use crate::plan;

use std::time::Duration;

use airpace_cc::endpoint::Backlog;
use airpace_core::{Bytes, Rate, Time};
use plan::{Conditions, Plan};

const RTT: Duration = Duration::from_millis(40);

/// A link of 20 Mbit/s with an RTT of 40 ms and a buffer so deep that nothing is lost.
fn deep() -> Conditions {
    Conditions { buffer: Bytes(25_000_000), ..Conditions::default() }
}

#[test]
fn slow_start_adds_a_packet_per_ack() {
    let mut plan = Plan::new(Conditions { rate: Rate::from_mbps(1000.0), ..deep() });
    let flow = plan.start("verus");
    let windows: Vec<u64> = (0..6)
        .map(|_| {
            plan.run_for(RTT + Duration::from_millis(1));
            plan.cwnd_packets(flow) as u64
        })
        .collect();
    assert_eq!(windows, [2, 4, 8, 16, 32, 64]);
    assert_eq!(plan.inspect(flow).state, "SlowStart");
}

#[test]
fn slow_start_ends_when_the_delay_is_a_multiple_of_the_least_and_the_profile_is_built() {
    for (scheme, delay_ms) in [("verus", 15.0 * 40.6), ("verus@pantheon", 500.0)] {
        let mut plan = Plan::new(deep());
        let flow = plan.start(scheme);
        while plan.inspect(flow).state == "SlowStart" {
            plan.run_for(Duration::from_millis(1));
            assert!(plan.now() < Time::from_secs(5), "{scheme}: the queue grows until slow start ends");
        }
        // With a window of w packets, the delay is w times the transmission time of a packet, 0.6 ms.
        let profile = value(&plan, flow, "profile_packets");
        let expected = delay_ms / 0.6;
        assert!(
            (profile / expected - 1.0).abs() < 0.1,
            "{scheme}: {profile} windows are known, not {expected}"
        );
        assert_eq!(plan.inspect(flow).state, "LossRecovery", "{scheme}: the long delay is a loss");
        plan.run_for(Duration::from_secs(3));
        assert_eq!(plan.inspect(flow).state, "CongestionAvoidance");
    }
}

#[test]
fn slow_start_ends_at_a_loss() {
    let mut plan = Plan::new(Conditions::default());
    let flow = plan.start("verus");
    while plan.seen(flow).loss_rate == 0.0 {
        plan.run_for(Duration::from_millis(1));
    }
    assert_eq!(plan.inspect(flow).state, "SlowStart");
    plan.run_for(Duration::from_millis(300));
    assert_ne!(plan.inspect(flow).state, "SlowStart", "the packet has been missing for 150 ms");
    plan.run_for(Duration::from_secs(2));
    assert_eq!(plan.inspect(flow).state, "CongestionAvoidance");
    plan.forget();
    plan.run_for(Duration::from_secs(10));
    let seen = plan.seen(flow);
    assert!(
        seen.utilization > 0.9 && seen.loss_rate < 0.01,
        "the profile keeps it below the buffer: {seen:?}"
    );
}

#[test]
fn r_bounds_the_delay() {
    let queueing: Vec<f64> = [2.0, 4.0, 6.0]
        .iter()
        .map(|r| {
            let mut plan = Plan::new(deep());
            let flow = plan.start(&format!("verus:r={r}"));
            plan.run_for(Duration::from_secs(5));
            plan.forget();
            plan.run_for(Duration::from_secs(10));
            let seen = plan.seen(flow);
            assert!(seen.utilization > 0.95, "R = {r} uses {}", seen.utilization);
            let p95 = seen.queueing_delay_p95_ms;
            assert!(
                p95 < (r - 1.0) * 40.6 * 1.15,
                "a delay of R = {r} times the least must not leave {p95} ms of queue"
            );
            p95
        })
        .collect();
    assert!(queueing[0] < queueing[1] && queueing[1] < queueing[2], "a larger R is used: {queueing:?}");
}

#[test]
fn the_window_follows_the_delay_down_and_up() {
    let mut plan = Plan::new(deep());
    let flow = plan.start("verus");
    let settled = |plan: &mut Plan, mbps: f64| {
        plan.rate_from(plan.now(), Rate::from_mbps(mbps));
        plan.run_for(Duration::from_secs(5));
        plan.forget();
        plan.run_for(Duration::from_secs(5));
        let seen = plan.seen(flow);
        assert!(seen.utilization > 0.65, "at {mbps} Mbit/s it uses {}", seen.utilization);
        assert!(seen.queueing_delay_p95_ms < 130.0, "with {} ms of queue", seen.queueing_delay_p95_ms);
        plan.sender(flow).inflight().0 as f64 / 1500.0
    };
    let fast = settled(&mut plan, 20.0);
    let slow = settled(&mut plan, 8.0);
    let again = settled(&mut plan, 20.0);
    assert!(slow < 0.7 * fast, "at less than half the rate, less is in flight: {slow} of {fast} packets");
    assert!(again > 1.3 * slow, "at the old rate, more is in flight again: {again} packets");
}

#[test]
fn delays_are_looked_at_every_5_ms() {
    let mut plan = Plan::new(deep());
    let flow = plan.start("verus");
    plan.run_for(Duration::from_secs(10));
    let mut steps = vec![];
    let mut last = value(&plan, flow, "d_est_ms");
    for _ in 0..200 {
        plan.run_for(Duration::from_millis(5));
        let d_est = value(&plan, flow, "d_est_ms");
        steps.push(((d_est - last) * 10.0).round() as i64);
        last = d_est;
    }
    let whole = steps.iter().filter(|step| [-20, -10, 0, 20].contains(*step)).count();
    assert!(whole > 190, "an epoch's step is +δ2, -δ1 or -δ2, or the least delay is reached: {steps:?}");
    assert!(steps.contains(&20) && steps.contains(&-10), "there are steps in both directions");
}

#[test]
fn a_loss_multiplies_the_window() {
    for (scheme, share) in [("verus:r=4", 0.5), ("verus:r=4:decrease=0.8", 0.8)] {
        let mut plan = Plan::new(deep());
        let flow = plan.start(scheme);
        plan.run_for(Duration::from_secs(10));
        let before = value(&plan, flow, "window_packets");
        plan.lose_next(flow);
        while plan.inspect(flow).state != "LossRecovery" {
            plan.run_for(Duration::from_millis(1));
            assert!(plan.now() < Time::from_secs(11), "{scheme}: a missing packet is a loss after 150 ms");
        }
        let after = value(&plan, flow, "window_packets");
        let kept = after / before;
        assert!((share - 0.15..share + 0.15).contains(&kept), "{scheme}: {after} of {before} packets");
        plan.run_for(Duration::from_secs(1));
        assert_eq!(
            plan.inspect(flow).state,
            "CongestionAvoidance",
            "{scheme}: packets of the new window are acknowledged"
        );
    }
}

#[test]
fn a_timeout_aims_at_the_least_delay_and_the_flow_is_back_after_the_outage() {
    let mut plan = Plan::new(Conditions::default());
    let flow = plan.start("verus");
    plan.run_for(Duration::from_secs(5));
    plan.rate_from(plan.now(), Rate::ZERO);
    plan.rate_from(plan.now() + Duration::from_secs(2), Rate::from_mbps(20.0));
    plan.run_for(Duration::from_millis(900));
    assert_eq!(plan.inspect(flow).state, "LossRecovery", "five delays without an ACK are a timeout");
    plan.run_for(Duration::from_millis(5_100));
    plan.forget();
    plan.run_for(Duration::from_secs(5));
    let seen = plan.seen(flow);
    assert!(seen.utilization > 0.8, "seconds later {} of the link is used", seen.utilization);
}

#[test]
fn a_rise_of_the_least_delay_is_learned_once_the_queue_is_empty() {
    let mut plan = Plan::new(deep());
    let flow = plan.start("verus");
    plan.run_for(Duration::from_secs(5));
    assert!(value(&plan, flow, "d_min_ms") < 42.0);
    // The transmission of a packet now takes 60 ms. Every delay is therefore longer than R times the old minimum delay.
    plan.rate_from(plan.now(), Rate::from_mbps(0.2));
    plan.run_for(Duration::from_secs(20));
    let d_min = value(&plan, flow, "d_min_ms");
    assert!(d_min > 50.0, "steps of 10 ms lead to twice the delay, but the least delay is {d_min} ms");
    plan.forget();
    plan.run_for(Duration::from_secs(10));
    assert!(plan.seen(flow).utilization > 0.7, "the slow link is used");
}

#[test]
fn a_quiet_application_does_not_make_the_aim_drift() {
    let mut plan = Plan::new(deep());
    let flow = plan.start_with("verus", Backlog::Limited(Bytes(12_000_000)));
    plan.run_for(Duration::from_secs(10));
    for _ in 0..500 {
        plan.offer(flow, Bytes(3_000));
        plan.run_for(Duration::from_millis(20));
    }
    let d_est = value(&plan, flow, "d_est_ms");
    assert!(
        d_est < 2.5 * 40.6,
        "two packets each 20 ms say nothing about larger windows, but the target is {d_est} ms"
    );
    plan.offer(flow, Bytes(12_000_000));
    plan.forget();
    plan.run_for(Duration::from_secs(4));
    let seen = plan.seen(flow);
    assert!(
        seen.utilization > 0.7 && seen.queueing_delay_p95_ms < 150.0,
        "the next burst has a short queue: {seen:?}"
    );
}

fn value(plan: &Plan, flow: usize, name: &str) -> f64 {
    plan.inspect(flow).values.iter().find(|(known, _)| *known == name).expect("a name of Verus'").1
}
