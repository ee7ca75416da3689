//! Tests of BBR over one bottleneck: conditions → run → check.

use crate::plan;

use std::time::Duration;

use airpace_cc::endpoint::Backlog;
use airpace_core::{Bytes, Rate};
use plan::{Conditions, MSS, Plan};

const SECOND: Duration = Duration::from_secs(1);

fn wire(mbps: f64, buffer: u64) -> Conditions {
    Conditions { rate: Rate::from_mbps(mbps), buffer: Bytes(buffer), ..Conditions::default() }
}

fn value(plan: &Plan, flow: usize, name: &str) -> f64 {
    let inspect = plan.inspect(flow);
    inspect.values.iter().find(|(known, _)| *known == name).expect(name).1
}

/// Runs the plan for `span`. Returns the names of the flow's states in this time, in order.
fn states(plan: &mut Plan, flow: usize, span: Duration) -> Vec<&'static str> {
    let end = plan.now() + span;
    let mut seen = vec![plan.inspect(flow).state];
    while plan.now() < end {
        plan.run_for(Duration::from_millis(5));
        let state = plan.inspect(flow).state;
        if seen.last() != Some(&state) {
            seen.push(state);
        }
    }
    seen
}

#[test]
fn it_finds_the_bandwidth_and_drains_what_the_search_queued() {
    let mut plan = Plan::new(wire(50.0, 10_000_000));
    let flow = plan.start("bbr");
    assert_eq!(states(&mut plan, flow, SECOND)[..3], ["Startup", "Drain", "ProbeBW"]);
    plan.forget();
    plan.run_for(4 * SECOND);
    let seen = plan.seen(flow);
    assert!(seen.utilization > 0.96, "the link is used: {seen:?}");
    assert!(seen.queueing_delay_mean_ms < 10.0, "there is no standing queue: {seen:?}");
    let (btlbw, rtprop) = (value(&plan, flow, "btlbw_mbps"), value(&plan, flow, "rtprop_ms"));
    assert!((btlbw / 50.0 - 1.0).abs() < 0.03, "{btlbw}");
    assert!((40.0..42.0).contains(&rtprop), "{rtprop}");
}

#[test]
fn rtprop_is_looked_for_when_it_has_not_been_seen_for_ten_seconds() {
    let mut plan = Plan::new(wire(20.0, 1_000_000));
    let flow = plan.start("bbr");
    plan.run_for(2 * SECOND);
    // The transmission of a packet now takes 4.8 ms instead of 0.6 ms, so the old RTprop cannot be measured again.
    plan.rate_from(plan.now() + Duration::from_millis(1), Rate::from_mbps(2.5));
    let seen = states(&mut plan, flow, 14 * SECOND);
    assert!(seen.contains(&"ProbeRTT"), "{seen:?}");
    assert_eq!(seen.last(), Some(&"ProbeBW"), "{seen:?}");
    let rtprop = value(&plan, flow, "rtprop_ms");
    assert!((44.0..50.0).contains(&rtprop), "{rtprop}");
    plan.forget();
    plan.run_for(2 * SECOND);
    assert!(plan.seen(flow).utilization > 0.9, "the window is restored: {:?}", plan.seen(flow));
}

#[test]
fn a_fall_of_the_rate_is_believed_after_ten_rounds() {
    let mut plan = Plan::new(wire(40.0, 2_000_000));
    let flow = plan.start("bbr");
    plan.run_for(2 * SECOND);
    plan.rate_from(plan.now() + Duration::from_millis(1), Rate::from_mbps(10.0));
    plan.run_for(4 * SECOND);
    let btlbw = value(&plan, flow, "btlbw_mbps");
    assert!(btlbw < 11.0, "{btlbw}");
}

#[test]
fn a_shallow_buffer_costs_packets_but_not_the_rate() {
    let mut plan = Plan::new(wire(20.0, 30_000));
    let flow = plan.start("bbr");
    plan.run_for(2 * SECOND);
    plan.forget();
    plan.run_for(4 * SECOND);
    let seen = plan.seen(flow);
    assert!(seen.utilization > 0.9, "{seen:?}");
    assert!(seen.loss_rate > 0.0, "a probe overflows 12 ms of buffer: {seen:?}");
}

#[test]
fn random_loss_is_no_reason_to_slow_down() {
    let mut plan = Plan::new(Conditions { loss: 0.02, ..wire(20.0, 500_000) });
    let flow = plan.start("bbr");
    plan.run_for(2 * SECOND);
    plan.forget();
    plan.run_for(5 * SECOND);
    assert!(plan.seen(flow).utilization > 0.9, "{:?}", plan.seen(flow));
}

#[test]
fn an_application_that_pauses_does_not_lower_the_bandwidth() {
    let mut plan = Plan::new(wire(40.0, 2_000_000));
    let flow = plan.start_with("bbr", Backlog::Limited(Bytes(8_000_000)));
    plan.run_for(3 * SECOND);
    for _ in 0..250 {
        plan.offer(flow, MSS);
        plan.run_for(Duration::from_millis(20));
    }
    let btlbw = value(&plan, flow, "btlbw_mbps");
    assert!(btlbw > 35.0, "a slow application does not lower BtlBw: {btlbw}");
    plan.offer(flow, Bytes(20_000_000));
    plan.run_for(Duration::from_millis(45));
    plan.forget();
    plan.run_for(Duration::from_millis(400));
    assert!(plan.seen(flow).utilization > 0.85, "the full rate is used at once: {:?}", plan.seen(flow));
}

#[test]
fn an_outage_leaves_one_packet_and_recovery_gives_the_window_back() {
    let mut plan = Plan::new(wire(20.0, 2_000_000));
    let flow = plan.start("bbr");
    plan.run_for(2 * SECOND);
    let before = plan.cwnd_packets(flow);
    plan.set_loss(1.0);
    plan.run_for(3 * SECOND);
    assert!(plan.cwnd_packets(flow) < 5.0, "everything was lost: {}", plan.cwnd_packets(flow));
    plan.set_loss(0.0);
    plan.run_for(3 * SECOND);
    assert!(plan.cwnd_packets(flow) > 0.8 * before, "{} of {before}", plan.cwnd_packets(flow));
}
