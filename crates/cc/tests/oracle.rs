//! Stories of the Oracle and of the constant rate.

mod plan;

use std::time::Duration;

use airpace_core::{Bytes, Rate};
use plan::{Conditions, Plan};

#[test]
fn the_oracle_fills_the_link_and_keeps_its_slack_in_the_queue() {
    for rtt_ms in [11, 42, 162, 282] {
        let mut plan = Plan::new(Conditions { rtt: Duration::from_millis(rtt_ms), ..Conditions::default() });
        let flow = plan.start("oracle");
        plan.run_for(Duration::from_secs(1));
        plan.forget();
        plan.run_for(Duration::from_secs(10));
        let seen = plan.seen(flow);
        assert!(seen.utilization > 0.995, "utilization {} at {rtt_ms} ms", seen.utilization);
        assert!(
            (1.0..3.0).contains(&seen.queueing_delay_mean_ms),
            "{} ms, not 2",
            seen.queueing_delay_mean_ms
        );
        assert_eq!(seen.loss_rate, 0.0);
    }
}

#[test]
fn the_oracle_knows_a_change_before_it_comes() {
    let mut plan = Plan::new(Conditions { rtt: Duration::from_millis(100), ..Conditions::default() });
    let flow = plan.start("oracle");
    for step in 0..50 {
        let rate = if step % 2 == 0 { Rate::from_mbps(40.0) } else { Rate::from_mbps(5.0) };
        plan.rate_from(plan.now() + Duration::from_millis(1_000 + step * 200), rate);
    }
    plan.run_for(Duration::from_secs(1));
    plan.forget();
    plan.run_for(Duration::from_secs(10));
    let seen = plan.seen(flow);
    assert!(seen.utilization > 0.99, "steps of 8:1 five times a second cost nothing: {}", seen.utilization);
    assert!(
        seen.queueing_delay_p95_ms < 12.0,
        "nor do they build a queue: {} ms",
        seen.queueing_delay_p95_ms
    );
}

#[test]
fn the_oracle_outlives_an_outage() {
    let mut plan = Plan::new(Conditions::default());
    let flow = plan.start("oracle");
    plan.run_for(Duration::from_secs(2));
    plan.rate_from(plan.now() + Duration::from_millis(500), Rate::ZERO);
    plan.rate_from(plan.now() + Duration::from_millis(3_500), Rate::from_mbps(20.0));
    plan.run_for(Duration::from_secs(4));
    plan.forget();
    plan.run_for(Duration::from_secs(2));
    let seen = plan.seen(flow);
    assert!(seen.utilization > 0.995 && seen.queueing_delay_p95_ms < 5.0, "{seen:?}");
}

#[test]
fn two_oracles_share_evenly() {
    let mut plan = Plan::new(Conditions::default());
    let flows = [plan.start("oracle"), plan.start("oracle")];
    plan.run_for(Duration::from_secs(1));
    plan.forget();
    plan.run_for(Duration::from_secs(5));
    for flow in flows {
        let seen = plan.seen(flow);
        assert!((seen.utilization - 0.5).abs() < 0.01, "{seen:?}");
    }
}

#[test]
fn the_constant_rate_is_constant_whatever_is_lost() {
    let mut plan = Plan::new(Conditions { buffer: Bytes(15_000), ..Conditions::default() });
    let flow = plan.start("cbr:rate_mbps=30");
    plan.run_for(Duration::from_secs(10));
    let seen = plan.seen(flow);
    assert!(seen.utilization > 0.99);
    assert!((seen.loss_rate - 1.0 / 3.0).abs() < 0.01, "a third of 30 Mbit/s does not fit into 20: {seen:?}");
}
