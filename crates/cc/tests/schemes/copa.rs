//! Tests of Copa.

use crate::plan;

use std::time::Duration;

use airpace_core::{Bytes, Rate, Time};
use plan::{Conditions, MSS, Plan};

const RTT: Duration = Duration::from_millis(40);

/// Bandwidth-delay product of the default conditions, in packets.
const BDP: f64 = 66.7;

/// The length of the queue, in packets, at each millisecond of `span`.
fn queue_over(plan: &mut Plan, span: Duration) -> Vec<f64> {
    (0..span.as_millis())
        .map(|_| {
            plan.run_for(Duration::from_millis(1));
            plan.queued().0 as f64 / MSS.0 as f64
        })
        .collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn value(plan: &Plan, flow: usize, name: &str) -> f64 {
    plan.inspect(flow).values.iter().find(|(known, _)| *known == name).expect("a name of Copa's").1
}

#[test]
fn slow_start_doubles_the_window_each_round() {
    for scheme in ["copa", "copa@pantheon"] {
        let wide =
            Conditions { rate: Rate::from_mbps(1000.0), buffer: Bytes(25_000_000), ..Conditions::default() };
        let mut plan = Plan::new(wide);
        let flow = plan.start(scheme);
        plan.run_for(3 * RTT);
        let before = plan.cwnd_packets(flow);
        plan.run_for(3 * RTT);
        assert_eq!(plan.inspect(flow).state, "SlowStart");
        let factor = plan.cwnd_packets(flow) / before;
        assert!((6.0..10.0).contains(&factor), "{scheme}: three rounds make a factor of {factor}");
    }
}

#[test]
fn slow_start_ends_when_the_rate_exceeds_its_target() {
    let mut plan = Plan::new(Conditions { buffer: Bytes(25_000_000), ..Conditions::default() });
    let flow = plan.start("copa");
    while plan.inspect(flow).state == "SlowStart" {
        plan.run_for(Duration::from_millis(1));
        assert!(plan.now() < Time::from_secs(1), "a queue is there long before");
    }
    let (window, target) = (plan.cwnd_packets(flow), value(&plan, flow, "target_packets"));
    assert!(window > target, "{window} packets are more than the target of {target}");
    // RTTstanding, the minimum over half an RTT, shows a queue one round after the queue has formed.
    assert!((BDP..4.0 * BDP).contains(&window), "slow start ends at {window} packets");
    plan.run_for(Duration::from_secs(1));
    plan.forget();
    plan.run_for(Duration::from_secs(1));
    assert!(plan.seen(flow).queueing_delay_mean_ms < 5.0, "the queue of slow start is gone");
}

#[test]
fn by_default_one_over_delta_packets_wait_and_the_queue_empties_every_five_rounds() {
    for (scheme, packets) in [("copa", 1.0..5.0), ("copa:delta=0.1", 5.0..20.0), ("copa@pantheon", 5.0..20.0)]
    {
        let mut plan = Plan::new(Conditions::default());
        let flow = plan.start(scheme);
        plan.run_for(Duration::from_secs(10));
        plan.forget();
        let queue = queue_over(&mut plan, Duration::from_secs(10));
        let waiting = mean(&queue);
        assert!(packets.contains(&waiting), "{scheme}: {waiting} packets wait on average");
        let seen = plan.seen(flow);
        assert!(seen.utilization > 0.96, "{scheme} uses {} of the link", seen.utilization);
        assert_eq!(seen.loss_rate, 0.0);
        assert_eq!(plan.inspect(flow).state, "Default");
        // A queue shorter than a fifth of the longest queue counts as empty. Copa's own rule, which uses RTTs, is as
        // strict.
        let highest = queue.iter().copied().fold(0.0, f64::max);
        let rounds = 10_000 / 40;
        let emptied =
            queue.windows(2).filter(|pair| pair[0] > highest / 5.0 && pair[1] <= highest / 5.0).count();
        assert!(emptied >= rounds / 8, "{scheme}: emptied {emptied} times in {rounds} rounds");
    }
}

#[test]
fn velocity_doubles_while_a_direction_lasts_and_rests_at_one_when_there() {
    let mut plan =
        Plan::new(Conditions { rate: Rate::from_mbps(5.0), buffer: Bytes(500_000), ..Conditions::default() });
    let flow = plan.start("copa");
    plan.run_for(Duration::from_secs(5));
    plan.rate_from(plan.now(), Rate::from_mbps(100.0));
    let mut highest: f64 = 0.0;
    let begin = plan.now();
    while plan.cwnd_packets(flow) < 330.0 {
        plan.run_for(Duration::from_millis(1));
        highest = highest.max(value(&plan, flow, "velocity_steps"));
        assert!(
            plan.now() - begin < Duration::from_secs(2),
            "with one step per round, it would take six seconds"
        );
    }
    assert!(highest >= 16.0, "the velocity rose to {highest}");
    plan.run_for(Duration::from_secs(5));
    let velocities: Vec<f64> = (0..1_000)
        .map(|_| {
            plan.run_for(Duration::from_millis(1));
            value(&plan, flow, "velocity_steps")
        })
        .collect();
    assert!(mean(&velocities) < 1.5, "in steady state the velocity is one: {}", mean(&velocities));
}

#[test]
fn it_competes_with_cubic_and_is_gentle_again_when_cubic_has_gone() {
    for scheme in ["copa", "copa@pantheon", "copa@pantheon:delta=0.5"] {
        let mut plan = Plan::new(Conditions::default());
        let copa = plan.start(scheme);
        plan.run_for(Duration::from_secs(5));
        assert_eq!(plan.inspect(copa).state, "Default");
        let cubic = plan.start("cubic");
        plan.run_for(Duration::from_secs(10));
        plan.forget();
        let mut competitive = 0;
        for _ in 0..300 {
            plan.run_for(Duration::from_millis(100));
            competitive += u32::from(plan.inspect(copa).state == "Competitive");
        }
        assert!(competitive > 150, "{scheme} competes {} % of the time", competitive / 3);
        let share = plan.seen(copa).utilization;
        assert!((0.2..0.8).contains(&share), "{scheme} has {share} of the link");
        plan.stop(cubic);
        plan.run_for(Duration::from_secs(5));
        plan.forget();
        plan.run_for(Duration::from_secs(5));
        assert_eq!(plan.inspect(copa).state, "Default", "{scheme}: the queue empties again");
        let seen = plan.seen(copa);
        assert!(seen.queueing_delay_mean_ms < 12.0, "{scheme} waits {} ms", seen.queueing_delay_mean_ms);
        assert!(seen.utilization > 0.95, "{scheme} uses {}", seen.utilization);
    }
}

#[test]
fn without_the_mode_switch_cubic_takes_nearly_all() {
    let mut plan = Plan::new(Conditions::default());
    let copa = plan.start("copa:mode_switch=off");
    let _cubic = plan.start("cubic");
    plan.run_for(Duration::from_secs(10));
    plan.forget();
    plan.run_for(Duration::from_secs(30));
    let share = plan.seen(copa).utilization;
    assert!(share < 0.15, "a constant delta gets {share} of the link");
}

#[test]
fn a_longer_route_is_a_queue_for_ten_seconds_and_then_the_new_least_rtt() {
    let mut plan = Plan::new(Conditions::default());
    let flow = plan.start("copa:mode_switch=off");
    plan.run_for(Duration::from_secs(10));
    plan.set_rtt(2 * RTT);
    plan.run_for(Duration::from_secs(2));
    plan.forget();
    plan.run_for(Duration::from_secs(6));
    let seen = plan.seen(flow);
    assert!(
        seen.utilization < 0.2,
        "a route longer by 40 ms looks like a queue: the flow uses {}",
        seen.utilization
    );
    plan.run_for(Duration::from_secs(7));
    plan.forget();
    plan.run_for(Duration::from_secs(5));
    assert_eq!(
        value(&plan, flow, "rtt_min_ms").round(),
        81.0,
        "RTTmin is 80 ms plus a packet's transmission"
    );
    let seen = plan.seen(flow);
    assert!(
        seen.utilization > 0.9,
        "once the old least RTT is forgotten, the flow uses {}",
        seen.utilization
    );
}

#[test]
fn two_flows_share_evenly_whenever_they_began() {
    for scheme in ["copa", "copa@pantheon"] {
        let mut plan = Plan::new(Conditions::default());
        let old = plan.start(scheme);
        plan.run_for(Duration::from_secs(10));
        let new = plan.start(scheme);
        plan.run_for(Duration::from_secs(10));
        plan.forget();
        plan.run_for(Duration::from_secs(20));
        let (old, new) = (plan.seen(old).utilization, plan.seen(new).utilization);
        let share = new / (old + new);
        assert!((0.4..0.6).contains(&share), "{scheme}: the newcomer has {share}");
        assert!(old + new > 0.95, "{scheme}: both together use {}", old + new);
    }
}

#[test]
fn random_loss_is_ignored_by_default() {
    let mut plan = Plan::new(Conditions { loss: 0.05, ..Conditions::default() });
    let flow = plan.start("copa");
    plan.run_for(Duration::from_secs(5));
    plan.forget();
    plan.run_for(Duration::from_secs(10));
    let seen = plan.seen(flow);
    assert!(seen.utilization > 0.9, "5 % of packets lost, {} of the link used", seen.utilization);
    assert!(seen.queueing_delay_mean_ms < 10.0);
}

#[test]
fn the_program_cuts_its_window_where_a_third_is_lost() {
    let utilization = |scheme: &str, loss| {
        let mut plan = Plan::new(Conditions::default());
        let flow = plan.start(scheme);
        plan.run_for(Duration::from_secs(5));
        plan.set_loss(loss);
        plan.run_for(Duration::from_secs(2));
        plan.forget();
        plan.run_for(Duration::from_secs(5));
        plan.seen(flow).utilization
    };
    assert!(utilization("copa@pantheon", 0.2) > 0.7, "a loss of a fifth is accepted");
    let (cut, kept) =
        (utilization("copa@pantheon", 0.5), utilization("copa@pantheon:heavy_loss_percent=100", 0.5));
    assert!(cut < 0.8 && kept > 0.9, "a loss of half is not: {cut} instead of {kept}");
}

#[test]
fn the_program_probes_with_ten_packets_and_moves_after_nineteen_acks() {
    let mut plan = Plan::new(Conditions::default());
    let flow = plan.start("copa@pantheon");
    assert_eq!(plan.control(flow).pacing_rate, None, "the first packets leave at once");
    plan.run_for(Duration::ZERO);
    assert_eq!(plan.sender(flow).inflight(), Bytes(10 * MSS.0));
    plan.run_for(RTT + Duration::from_millis(8));
    assert_eq!(plan.cwnd_packets(flow), 11.0, "a packet leaves while fewer than 11 are in flight");
    assert_eq!(plan.control(flow).pacing_rate, None, "two rounds are for probing");
    plan.run_for(RTT);
    assert!(plan.cwnd_packets(flow) > 11.0);
    let pace = plan.control(flow).pacing_rate.expect("then the flow is paced").as_mbps();
    let window = plan.cwnd_packets(flow) - 1.0;
    let expected = 2.0 * window * 0.012 / value(&plan, flow, "rtt_standing_ms") * 1e3;
    assert!((pace / expected - 1.0).abs() < 0.1, "at {pace}, two windows per RTT being {expected} Mbit/s");
}

#[test]
fn after_an_outage_it_begins_anew() {
    for scheme in ["copa", "copa@pantheon"] {
        let mut plan = Plan::new(Conditions::default());
        let flow = plan.start(scheme);
        plan.run_for(Duration::from_secs(5));
        plan.rate_from(plan.now(), Rate::ZERO);
        plan.rate_from(plan.now() + Duration::from_secs(3), Rate::from_mbps(20.0));
        plan.run_for(Duration::from_secs(2));
        assert!(plan.cwnd_packets(flow) <= 10.0, "{scheme}: after seconds of silence it starts again");
        plan.run_for(Duration::from_secs(3));
        plan.forget();
        plan.run_for(Duration::from_secs(5));
        assert!(plan.seen(flow).utilization > 0.95, "{scheme} is back");
    }
}

#[test]
fn the_program_begins_anew_after_two_seconds_of_silence_and_not_before() {
    let after_outage = |scheme: &str, outage_ms: u64| {
        let mut plan = Plan::new(Conditions { buffer: Bytes(25_000_000), ..Conditions::default() });
        let flow = plan.start(scheme);
        plan.run_for(Duration::from_secs(5));
        plan.rate_from(plan.now(), Rate::ZERO);
        plan.rate_from(plan.now() + Duration::from_millis(outage_ms), Rate::from_mbps(20.0));
        plan.run_for(Duration::from_millis(outage_ms - 50));
        let queued = plan.queued().0 as f64 / MSS.0 as f64;
        (plan.inspect(flow).state, queued)
    };
    let (state, queued) = after_outage("copa@pantheon", 1_800);
    assert_ne!(state, "SlowStart", "a silence of 1.8 s is no timeout of the program");
    assert!(queued < 1.5 * BDP, "it still counts in flight what waits: {queued} packets are queued");
    assert_eq!(after_outage("copa@pantheon", 3_500).0, "SlowStart");
    assert_eq!(after_outage("copa", 1_800).0, "SlowStart", "the transport gives up after a second");
}
