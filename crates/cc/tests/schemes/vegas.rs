//! Tests of Vegas.

use crate::plan;

use std::time::Duration;

use airpace_cc::endpoint::Backlog;
use airpace_core::{Bytes, Rate, Time};
use plan::{Conditions, MSS, Plan};

const RTT: Duration = Duration::from_millis(40);

/// A link of 20 Mbit/s with a buffer of ten seconds, so that nothing is ever lost.
fn bufferbloat() -> Conditions {
    Conditions { buffer: Bytes(25_000_000), ..Conditions::default() }
}

fn value(plan: &Plan, flow: usize, name: &str) -> f64 {
    plan.inspect(flow).values.iter().find(|(known, _)| *known == name).expect("a name of Vegas's").1
}

#[test]
fn slow_start_doubles_the_window_every_other_round_and_in_linux_every_round() {
    let windows = |scheme: &str| -> Vec<u64> {
        let mut plan = Plan::new(Conditions { rate: Rate::from_mbps(10_000.0), ..bufferbloat() });
        let flow = plan.start(scheme);
        (0..6)
            .map(|_| {
                plan.run_for(RTT + Duration::from_micros(500));
                plan.cwnd_packets(flow) as u64
            })
            .collect()
    };
    assert_eq!(windows("vegas:gamma_packets=100"), [20, 20, 40, 40, 80, 80]);
    assert_eq!(windows("vegas@linux:gamma_packets=100"), [20, 40, 80, 160, 320, 640]);
}

#[test]
fn slow_start_ends_with_a_packet_of_gamma_in_the_queue_long_before_a_loss() {
    for scheme in ["vegas", "vegas@linux"] {
        let mut plan = Plan::new(bufferbloat());
        let flow = plan.start(scheme);
        while plan.inspect(flow).state == "SlowStart" {
            plan.run_for(Duration::from_millis(1));
            assert!(plan.now() < Time::from_secs(2), "{scheme}: a queue is there long before");
        }
        assert!(value(&plan, flow, "queue_packets") > 1.0);
        let window = plan.cwnd_packets(flow);
        assert!(
            (10.0..170.0).contains(&window),
            "{scheme} ends slow start at {window} packets; the pipe holds 67"
        );
        assert_eq!(plan.seen(flow).loss_rate, 0.0);
    }
}

#[test]
fn between_alpha_and_beta_packets_wait_and_then_the_window_rests() {
    for scheme in ["vegas", "vegas@linux"] {
        let mut plan = Plan::new(bufferbloat());
        let flow = plan.start(scheme);
        plan.run_for(Duration::from_secs(15));
        let window = plan.cwnd_packets(flow);
        plan.forget();
        for _ in 0..1_000 {
            plan.run_for(Duration::from_millis(10));
            assert_eq!(
                plan.cwnd_packets(flow),
                window,
                "{scheme}: the window stays while the queue is right"
            );
            let queue = plan.queued().0 / MSS.0;
            assert!((1..=6).contains(&queue), "{scheme}: {queue} packets in the queue");
        }
        let queue = value(&plan, flow, "queue_packets");
        assert!((2.0..=4.0).contains(&queue), "{scheme} counts {queue} packets of its own");
        assert!(plan.seen(flow).utilization > 0.99);
    }
}

#[test]
fn a_change_of_rate_is_followed_by_a_packet_per_round() {
    for scheme in ["vegas", "vegas@linux"] {
        let mut plan = Plan::new(bufferbloat());
        let flow = plan.start(scheme);
        plan.run_for(Duration::from_secs(15));
        let before = plan.cwnd_packets(flow);
        plan.rate_from(plan.now(), Rate::from_mbps(40.0));
        plan.run_for(Duration::from_secs(1));
        let risen = plan.cwnd_packets(flow) - before;
        assert!((22.0..=26.0).contains(&risen), "{scheme}: {risen} packets more after 25 rounds");
        plan.run_for(Duration::from_secs(5));
        let before = plan.cwnd_packets(flow);
        plan.rate_from(plan.now(), Rate::from_mbps(20.0));
        plan.run_for(Duration::from_secs(1));
        let fallen = before - plan.cwnd_packets(flow);
        // A round may now last up to 80 ms.
        assert!((11.0..=22.0).contains(&fallen), "{scheme}: {fallen} packets fewer after a second");
    }
}

#[test]
fn the_losses_of_one_window_cut_it_once() {
    for (scheme, leaves) in [("vegas", 0.75), ("vegas@linux", 0.5)] {
        let mut plan = Plan::new(bufferbloat());
        let flow = plan.start(scheme);
        plan.run_for(Duration::from_secs(15));
        let before = plan.cwnd_packets(flow);
        // Several packets of one window are lost: the next few ACKs show one loss each.
        for _ in 0..5 {
            plan.lose_next(flow);
            plan.run_for(Duration::from_millis(3));
        }
        plan.run_for(3 * RTT);
        let left = plan.cwnd_packets(flow) / before;
        assert!((left - leaves).abs() < 0.05, "{scheme}: {left} of the window is left");
        assert_eq!(plan.inspect(flow).state, "CongestionAvoidance", "{scheme} goes on without slow start");
    }
}

#[test]
fn an_outage_collapses_the_window_and_half_of_it_is_rebuilt_by_slow_start() {
    for scheme in ["vegas", "vegas@linux"] {
        let mut plan = Plan::new(Conditions::default());
        let flow = plan.start(scheme);
        plan.run_for(Duration::from_secs(10));
        let before = plan.cwnd_packets(flow);
        plan.rate_from(plan.now(), Rate::ZERO);
        plan.rate_from(plan.now() + Duration::from_secs(3), Rate::from_mbps(20.0));
        plan.run_for(Duration::from_secs(2));
        assert_eq!(
            plan.cwnd_packets(flow),
            1.0,
            "{scheme}: after seconds of silence, one packet may be in flight"
        );
        let threshold = value(&plan, flow, "ssthresh_packets");
        assert!((before / 2.0 - threshold).abs() <= 1.0, "{scheme}: half of {before}, not {threshold}");
        plan.run_for(Duration::from_secs(5));
        plan.forget();
        plan.run_for(Duration::from_secs(5));
        assert!(plan.seen(flow).utilization > 0.95, "{scheme} is back");
    }
}

#[test]
fn two_flows_share_and_a_latecomer_takes_the_queue_of_the_first_for_the_path() {
    for scheme in ["vegas", "vegas@linux"] {
        let mut plan = Plan::new(bufferbloat());
        let old = plan.start(scheme);
        plan.run_for(Duration::from_secs(10));
        let new = plan.start(scheme);
        plan.run_for(Duration::from_secs(20));
        plan.forget();
        plan.run_for(Duration::from_secs(20));
        let (old_share, new_share) = (plan.seen(old).utilization, plan.seen(new).utilization);
        assert!(old_share > 0.2 && new_share > 0.2, "{scheme}: {old_share} and {new_share}");
        assert!(old_share + new_share > 0.99);
        let waiting = plan.queued().0 / MSS.0;
        assert!((2..=16).contains(&waiting), "{scheme}: {waiting} packets for two flows");
        assert!(
            value(&plan, new, "base_rtt_ms") > value(&plan, old, "base_rtt_ms"),
            "the second flow has never seen the queue without the first flow's packets"
        );
    }
}

#[test]
fn cubic_takes_nearly_all() {
    let mut plan = Plan::new(Conditions::default());
    let vegas = plan.start("vegas");
    plan.run_for(Duration::from_secs(5));
    let _cubic = plan.start("cubic");
    plan.run_for(Duration::from_secs(10));
    plan.forget();
    plan.run_for(Duration::from_secs(30));
    let share = plan.seen(vegas).utilization;
    assert!(share < 0.15, "a flow that keeps four packets in the queue has {share} with one that fills it");
}

#[test]
fn an_application_that_sends_little_neither_grows_nor_shrinks_the_window() {
    for scheme in ["vegas", "vegas@linux"] {
        let mut plan = Plan::new(Conditions::default());
        let flow = plan.start_with(scheme, Backlog::Limited(Bytes::ZERO));
        for _ in 0..500 {
            plan.offer(flow, Bytes(3_000));
            plan.run_for(Duration::from_millis(20));
        }
        assert_eq!(plan.cwnd_packets(flow), 10.0, "{scheme}: a window that was never filled does not grow");
    }
}
