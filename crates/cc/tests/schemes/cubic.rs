//! Tests of CUBIC.

use crate::plan;

use std::time::Duration;

use airpace_cc::endpoint::Backlog;
use airpace_core::{Bytes, Rate, Time};
use plan::{Conditions, Plan};

const RTT: Duration = Duration::from_millis(40);

/// A link of 20 Mbit/s with a buffer of ten seconds, so that nothing is ever lost.
fn bufferbloat() -> Conditions {
    Conditions { buffer: Bytes(25_000_000), ..Conditions::default() }
}

#[test]
fn slow_start_doubles_the_window_each_round() {
    let wide = Conditions { rate: Rate::from_mbps(1000.0), ..bufferbloat() };
    let mut plan = Plan::new(wide);
    let flow = plan.start("cubic");
    let windows: Vec<u64> = (0..5)
        .map(|_| {
            plan.run_for(RTT + Duration::from_millis(2));
            plan.cwnd_packets(flow) as u64
        })
        .collect();
    assert_eq!(windows, [20, 40, 80, 160, 320]);
}

#[test]
fn hystart_leaves_slow_start_before_the_queue_is_long() {
    let mut plan = Plan::new(bufferbloat());
    let flow = plan.start("cubic");
    while plan.inspect(flow).state == "SlowStart" {
        plan.run_for(Duration::from_millis(1));
        assert!(plan.now() < Time::from_secs(1), "the RTT rises long before");
    }
    assert_eq!(plan.inspect(flow).state, "ConservativeSlowStart");
    // The bandwidth-delay product is 67 packets. The RTT shows the queue of a window only one round later, when the
    // window has doubled again.
    let noticed = plan.cwnd_packets(flow);
    assert!(
        (67.0..200.0).contains(&noticed),
        "slow start ends in the round after the pipe was full, not at {noticed}"
    );
    while plan.inspect(flow).state == "ConservativeSlowStart" {
        plan.run_for(Duration::from_millis(1));
    }
    assert_eq!(
        plan.inspect(flow).state,
        "CongestionAvoidance",
        "the RTT did not fall back within five rounds"
    );
    let factor = plan.cwnd_packets(flow) / noticed;
    assert!(factor < 3.1, "a quarter per round over five rounds makes a factor of three, not {factor}");
    assert!(plan.seen(flow).loss_rate == 0.0, "nothing was lost");
}

#[test]
fn linux_leaves_slow_start_at_once_and_then_adds_a_twentieth_a_round_until_the_first_loss() {
    let mut plan = Plan::new(bufferbloat());
    let flow = plan.start("cubic@linux");
    while plan.inspect(flow).state == "SlowStart" {
        plan.run_for(Duration::from_millis(1));
    }
    assert_eq!(
        plan.inspect(flow).state,
        "CongestionAvoidance",
        "the older HyStart has no conservative phase"
    );
    let left = plan.cwnd_packets(flow);
    assert!(
        (16.0..134.0).contains(&left),
        "the train of ACKs ends slow start within the round, not at {left}"
    );
    plan.run_for(Duration::from_secs(2));
    let before = plan.cwnd_packets(flow);
    plan.run_for(Duration::from_secs(1));
    let added = plan.cwnd_packets(flow) - before;
    // 1667 packets are acknowledged in a second. Each adds a twentieth of a packet to the window, independently of the
    // curve.
    assert!((added - 83.3).abs() < 3.0, "{added} packets in a second");
}

#[test]
fn without_hystart_slow_start_goes_on_until_something_is_lost() {
    let mut plan = Plan::new(bufferbloat());
    let flow = plan.start("cubic:hystart=off");
    plan.run_for(Duration::from_secs(1));
    assert_eq!(plan.inspect(flow).state, "SlowStart");
    assert!(plan.cwnd_packets(flow) > 1_000.0, "the window grows by one packet per ACK");
}

#[test]
fn one_loss_costs_three_tenths_and_the_window_is_back_after_k_seconds() {
    // At 100 Mbit/s and 100 ms, the window follows the curve and not Reno.
    let rtt = Duration::from_millis(100);
    let mut plan = Plan::new(Conditions { rate: Rate::from_mbps(100.0), rtt, ..bufferbloat() });
    let flow = plan.start("cubic");
    while plan.cwnd_packets(flow) < 300.0 {
        plan.run_for(Duration::from_millis(1));
    }
    plan.lose_next(flow);
    let before = plan.cwnd_packets(flow);
    while plan.inspect(flow).state == "SlowStart" {
        plan.run_for(Duration::from_millis(1));
    }
    let w_max = value(&plan, flow, "w_max_packets");
    assert!(w_max >= before);
    let reduced = plan.cwnd_packets(flow);
    assert!((reduced / w_max - 0.7).abs() < 0.02, "{reduced} of {w_max}");
    while plan.inspect(flow).state == "Recovery" {
        plan.run_for(Duration::from_millis(1));
    }
    plan.run_for(Duration::from_millis(5));
    let (start, k_s) = (plan.now(), value(&plan, flow, "k_s"));
    let expected = ((w_max - reduced) / 0.4).cbrt();
    assert!((k_s - expected).abs() < 0.1, "K is {k_s}, not {expected}");
    let mut curve = vec![];
    for quarter in 1..=6 {
        while (plan.now() - start).as_secs_f64() < k_s * f64::from(quarter) / 4.0 {
            plan.run_for(Duration::from_millis(1));
        }
        let t = k_s * f64::from(quarter) / 4.0;
        let cubic = 0.4 * (t - k_s).powi(3) + w_max;
        curve.push((plan.cwnd_packets(flow) / cubic * 100.0).round());
    }
    assert!(curve.iter().all(|percent| (97.0..=103.0).contains(percent)), "percent of the curve: {curve:?}");
}

#[test]
fn time_without_need_is_no_time_on_the_curve() {
    let mut plan = Plan::new(Conditions::default());
    let flow = plan.start_with("cubic", Backlog::Limited(Bytes(1 << 40)));
    plan.run_for(Duration::from_secs(10));
    assert!(plan.inspect(flow).state != "SlowStart");
    // The same flow, but its application now sends two packets each 20 ms for a minute.
    let mut quiet = Plan::new(Conditions::default());
    let flow_quiet = quiet.start_with("cubic", Backlog::Limited(Bytes(24_000_000)));
    quiet.run_for(Duration::from_secs(10));
    let before = quiet.cwnd_packets(flow_quiet);
    for _ in 0..3_000 {
        quiet.offer(flow_quiet, Bytes(3_000));
        quiet.run_for(Duration::from_millis(20));
    }
    assert_eq!(quiet.cwnd_packets(flow_quiet), before, "the window grows only while it limits the sender");
    quiet.offer(flow_quiet, Bytes(2_000_000));
    quiet.run_for(Duration::from_millis(100));
    assert!(
        quiet.cwnd_packets(flow_quiet) < before * 1.2,
        "the window does not jump when it is filled again"
    );
}

#[test]
fn an_outage_collapses_the_window_and_half_of_it_is_rebuilt_by_slow_start() {
    let mut plan = Plan::new(Conditions::default());
    let flow = plan.start("cubic");
    plan.run_for(Duration::from_secs(5));
    plan.rate_from(plan.now(), Rate::ZERO);
    plan.rate_from(plan.now() + Duration::from_secs(3), Rate::from_mbps(20.0));
    plan.run_for(Duration::from_secs(2));
    assert!(plan.cwnd_packets(flow) <= 1.0, "after seconds of silence one packet may be in flight");
    assert!(
        value(&plan, flow, "ssthresh_packets") > 30.0,
        "repeated silence does not lower the threshold again"
    );
    plan.run_for(Duration::from_secs(3));
    plan.forget();
    plan.run_for(Duration::from_secs(5));
    assert!(plan.seen(flow).utilization > 0.95, "the flow is back");
}

#[test]
fn fast_convergence_gives_a_newcomer_its_share() {
    let mut plan = Plan::new(Conditions::default());
    let old = plan.start("cubic");
    plan.run_for(Duration::from_secs(10));
    let new = plan.start("cubic");
    plan.run_for(Duration::from_secs(30));
    plan.forget();
    plan.run_for(Duration::from_secs(60));
    let share = plan.seen(new).utilization / (plan.seen(old).utilization + plan.seen(new).utilization);
    assert!((0.3..0.7).contains(&share), "the newcomer has {share} of what both carry");
}

#[test]
fn pacing_spreads_the_same_window() {
    let shallow = Conditions { buffer: Bytes(30_000), ..Conditions::default() };
    let utilization = |scheme| {
        let mut plan = Plan::new(shallow);
        let flow = plan.start(scheme);
        plan.run_for(Duration::from_secs(20));
        assert_eq!(plan.control(flow).pacing_rate.is_some(), scheme.ends_with("pacing=on"));
        plan.seen(flow).utilization
    };
    let (bursty, paced) = (utilization("cubic"), utilization("cubic:pacing=on"));
    assert!(paced >= bursty, "with a buffer of 20 packets, pacing helps: {paced} against {bursty}");
}

#[test]
fn marks_are_answered_as_a_loss_once_a_round_and_nothing_is_lost() {
    let mut plan = Plan::new(Conditions { buffer: Bytes(1_000_000), ..Conditions::default() });
    plan.mark_above(Duration::from_millis(40));
    let flow = plan.start("cubic:ecn=on");
    plan.run_for(Duration::from_secs(3));
    plan.forget();
    let (mut falls, mut before) = (0, plan.cwnd_packets(flow));
    for _ in 0..4_000 {
        plan.run_for(Duration::from_millis(5));
        let after = plan.cwnd_packets(flow);
        if after < before {
            assert!(
                (0.65..0.75).contains(&(after / before)),
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
    let deaf = plan.start("cubic");
    plan.run_for(Duration::from_secs(20));
    assert!(plan.seen(deaf).queueing_delay_p95_ms > 60.0, "a flow without ECN is not marked");
}

fn value(plan: &Plan, flow: usize, name: &str) -> f64 {
    plan.inspect(flow).values.iter().find(|(known, _)| *known == name).expect("a name of CUBIC's").1
}
