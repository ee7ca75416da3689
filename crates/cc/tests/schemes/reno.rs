//! Tests of Reno.

use crate::plan;

use std::time::Duration;

use airpace_cc::endpoint::Backlog;
use airpace_core::{Bytes, Rate};
use plan::{Conditions, Plan};

const RTT: Duration = Duration::from_millis(40);

#[test]
fn slow_start_doubles_the_window_each_round() {
    let mut plan = Plan::new(Conditions {
        rate: Rate::from_mbps(1000.0),
        buffer: Bytes(1 << 30),
        ..Conditions::default()
    });
    let flow = plan.start("reno");
    let windows: Vec<u64> = (0..5)
        .map(|_| {
            plan.run_for(RTT + Duration::from_millis(2));
            plan.cwnd_packets(flow) as u64
        })
        .collect();
    assert_eq!(windows, [20, 40, 80, 160, 320]);
}

#[test]
fn a_full_queue_costs_half_the_window_once_a_round_and_a_packet_a_round_wins_it_back() {
    let mut plan = Plan::new(Conditions::default());
    let flow = plan.start("reno");
    plan.run_for(Duration::from_secs(5));
    assert_eq!(plan.inspect(flow).state, "CongestionAvoidance", "slow start ended with a loss");
    // The window follows a saw-tooth: over many rounds, it only rises by a packet per round or falls to a half.
    let mut halvings = 0;
    let mut before = plan.cwnd_packets(flow);
    for _ in 0..2_000 {
        plan.run_for(Duration::from_millis(10));
        let after = plan.cwnd_packets(flow);
        if after < before {
            let share = after / before;
            assert!((0.45..0.55).contains(&share), "a fall of the window must be one halving, not {share}");
            halvings += 1;
        } else {
            assert!(after - before <= 1.01, "the window rises by at most a packet in a quarter of a round");
        }
        before = after;
    }
    assert!(halvings >= 2, "the window falls at least twice");
    plan.forget();
    plan.run_for(Duration::from_secs(20));
    assert!(plan.seen(flow).utilization > 0.95, "a buffer of two BDPs hides the halvings");
}

#[test]
fn after_a_loss_linux_goes_on_sending_where_others_fall_silent() {
    for (scheme, falls_at_once) in [("reno", true), ("reno@linux", false)] {
        let mut plan = Plan::new(Conditions { buffer: Bytes(1_000_000), ..Conditions::default() });
        let flow = plan.start(scheme);
        plan.run_for(Duration::from_secs(10));
        assert_eq!(plan.inspect(flow).state, "CongestionAvoidance");
        let whole = plan.cwnd_packets(flow);
        plan.lose_next(flow);
        while plan.inspect(flow).state != "Recovery" {
            plan.run_for(Duration::from_millis(1));
        }
        let mut windows = vec![plan.cwnd_packets(flow) / whole];
        while plan.inspect(flow).state == "Recovery" {
            plan.run_for(Duration::from_millis(5));
            windows.push(plan.cwnd_packets(flow) / whole);
        }
        let steepest = windows.windows(2).map(|two| two[0] - two[1]).fold(0.0, f64::max);
        if falls_at_once {
            assert!(windows[0] < 0.51, "{scheme}: the window halves at once: {windows:?}");
        } else {
            assert!(
                windows[0] > 0.9 && steepest < 0.1,
                "{scheme}: the window falls step by step: {windows:?}"
            );
        }
        let last = windows[windows.len() - 1];
        assert!((last - 0.5).abs() < 0.02, "{scheme}: the window is half in the end, not {last}");
    }
}

#[test]
fn an_outage_collapses_the_window_and_slow_start_rebuilds_it() {
    let mut plan = Plan::new(Conditions::default());
    let flow = plan.start("reno");
    plan.run_for(Duration::from_secs(5));
    plan.rate_from(plan.now(), Rate::ZERO);
    plan.rate_from(plan.now() + Duration::from_secs(3), Rate::from_mbps(20.0));
    plan.run_for(Duration::from_secs(2));
    assert!(plan.cwnd_packets(flow) <= 1.0, "after seconds of silence one packet may be in flight");
    plan.run_for(Duration::from_secs(5));
    plan.forget();
    plan.run_for(Duration::from_secs(5));
    assert!(plan.seen(flow).utilization > 0.9, "the flow is back");
}

#[test]
fn an_application_that_sends_little_does_not_grow_the_window() {
    let mut plan = Plan::new(Conditions::default());
    let flow = plan.start_with("reno", Backlog::Limited(Bytes::ZERO));
    for _ in 0..500 {
        plan.offer(flow, Bytes(3_000));
        plan.run_for(Duration::from_millis(20));
    }
    assert!(plan.cwnd_packets(flow) <= 10.0, "a window that was never filled does not grow");
    assert!(plan.seen(flow).delivered > 990, "everything was delivered");
}

#[test]
fn marks_are_answered_as_a_loss_once_a_round_and_nothing_is_lost() {
    let mut plan = Plan::new(Conditions { buffer: Bytes(1_000_000), ..Conditions::default() });
    plan.mark_above(Duration::from_millis(40));
    let flow = plan.start("reno:ecn=on");
    plan.run_for(Duration::from_secs(3));
    plan.forget();
    let (mut falls, mut before) = (0, plan.cwnd_packets(flow));
    for _ in 0..4_000 {
        plan.run_for(Duration::from_millis(5));
        let after = plan.cwnd_packets(flow);
        if after < before {
            assert!(
                (0.45..0.55).contains(&(after / before)),
                "a round of marks reduces the window once: {}",
                after / before
            );
            falls += 1;
        }
        before = after;
    }
    let seen = plan.seen(flow);
    assert!(falls >= 2, "{falls} falls in 20 s");
    assert_eq!(seen.loss_rate, 0.0, "a queue that marks in time does not drop");
    assert!(seen.utilization > 0.95 && seen.queueing_delay_p95_ms < 45.0, "{seen:?}");
    let mut plan = Plan::new(Conditions { buffer: Bytes(1_000_000), ..Conditions::default() });
    plan.mark_above(Duration::from_millis(40));
    let deaf = plan.start("reno");
    plan.run_for(Duration::from_secs(20));
    assert!(plan.seen(deaf).queueing_delay_p95_ms > 60.0, "a flow without ECN is not marked");
}
