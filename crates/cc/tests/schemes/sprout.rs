//! Tests of Sprout.

use crate::plan;

use std::time::Duration;

use airpace_cc::endpoint::Backlog;
use airpace_core::{Bytes, Rate, Streams};
use plan::{Conditions, MSS, Plan, Seen};

/// A link with a buffer so deep that nothing is ever lost. The queue contains only data of the test's sender.
fn link(mbps: f64) -> Conditions {
    Conditions { rate: Rate::from_mbps(mbps), buffer: Bytes(25_000_000), ..Conditions::default() }
}

/// Results of a minute over a link whose rate moves as the model assumes: a Brownian motion with a standard deviation
/// of 200 packets/s after one second.
fn wander(scheme: &str, seed: u64) -> Seen {
    let mut plan = Plan::new(link(5.0));
    let flow = plan.start(scheme);
    let mut rng = Streams::new(seed).stream("wander");
    let tick = Duration::from_millis(20);
    let mut packets_per_s = 400.0;
    for index in 1..3_000 {
        packets_per_s += 200.0 * tick.as_secs_f64().sqrt() * rng.normal();
        packets_per_s = packets_per_s.clamp(50.0, 900.0);
        plan.rate_from(plan.now() + tick * index, Rate::from_bps_f64(packets_per_s * MSS.bits().0 as f64));
    }
    plan.run_for(Duration::from_secs(60));
    plan.seen(flow)
}

#[test]
fn the_receiver_learns_the_rate_and_the_sender_fills_it_with_little_queue() {
    let mut plan = Plan::new(link(8.0));
    let flow = plan.start("sprout");
    plan.run_for(Duration::from_secs(3));
    let rate = value(&plan, flow, "rate_packets_per_s");
    assert!((rate / 667.0 - 1.0).abs() < 0.1, "8 Mbit/s are 667 packets/s, the estimate is {rate}");
    plan.forget();
    plan.run_for(Duration::from_secs(10));
    let seen = plan.seen(flow);
    assert!(seen.utilization > 0.99, "the link is never idle, but only {} of it is used", seen.utilization);
    assert!(
        seen.queueing_delay_p95_ms < 60.0,
        "the cautious forecast leaves {} ms of queue",
        seen.queueing_delay_p95_ms
    );
}

#[test]
fn on_a_varying_link_95_percent_of_packets_wait_less_than_100_ms() {
    for seed in 1..=4 {
        let seen = wander("sprout", seed);
        assert!(seen.queueing_delay_p95_ms < 100.0, "seed {seed}: {} ms", seen.queueing_delay_p95_ms);
        assert!(seen.utilization > 0.85, "seed {seed}: {} of the link is used", seen.utilization);
    }
}

#[test]
fn sprout_ewma_has_more_of_the_link_and_more_delay() {
    for seed in 1..=2 {
        let (cautious, average) = (wander("sprout", seed), wander("sprout@ewma", seed));
        assert!(
            average.utilization > cautious.utilization,
            "seed {seed}: without caution, the flow uses more"
        );
        assert!(
            average.queueing_delay_p95_ms > 1.3 * cautious.queueing_delay_p95_ms,
            "seed {seed}: without caution, the delay is longer: {} against {} ms",
            average.queueing_delay_p95_ms,
            cautious.queueing_delay_p95_ms
        );
    }
}

#[test]
fn the_moving_average_is_quicker_than_the_belief() {
    let grown_in = |scheme: &str| {
        let mut plan = Plan::new(link(2.0));
        let flow = plan.start(scheme);
        plan.run_for(Duration::from_secs(5));
        plan.rate_from(plan.now(), Rate::from_mbps(10.0));
        plan.forget();
        plan.run_for(Duration::from_secs(1));
        plan.seen(flow).utilization
    };
    let (average, cautious) = (grown_in("sprout@ewma"), grown_in("sprout"));
    assert!(average > cautious, "{average} against {cautious} in the first second of five times the rate");
}

#[test]
fn less_confidence_is_more_throughput_and_more_delay() {
    let [bold, paper] = ["sprout:confidence_percent=50", "sprout"].map(|scheme| wander(scheme, 1));
    assert!(bold.utilization > paper.utilization);
    assert!(bold.queueing_delay_p95_ms > paper.queueing_delay_p95_ms);
}

#[test]
fn an_outage_finds_at_most_a_forecast_in_the_queue_and_leaves_caution() {
    let mut plan = Plan::new(link(8.0));
    let flow = plan.start("sprout");
    plan.run_for(Duration::from_secs(5));
    let forecast = value(&plan, flow, "forecast_100_ms_packets");
    assert!(forecast > 40.0, "{forecast} of the 67 packets in 100 ms are almost certain");
    plan.rate_from(plan.now(), Rate::ZERO);
    plan.rate_from(plan.now() + Duration::from_secs(2), Rate::from_mbps(8.0));
    plan.run_for(Duration::from_millis(1_990));
    // The queue contains the data in flight plus the data that the last forecasts permitted.
    let queued = plan.queued().0 as f64 / MSS.0 as f64;
    assert!(queued < 1.5 * forecast, "{queued} packets wait where 100 ms of the forecast were {forecast}");
    assert_eq!(plan.inspect(flow).state, "Waiting");
    assert!(
        value(&plan, flow, "outage_probability") > 0.9,
        "the receiver detects the outage while nothing arrives"
    );
    assert!(value(&plan, flow, "forecast_age_ticks") < 2.0, "the receiver sends a forecast every tick");
    plan.run_for(Duration::from_millis(51));
    let after = value(&plan, flow, "forecast_100_ms_packets");
    assert!(
        after < 0.5 * forecast,
        "the model expects the outage to last: {after} packets are forecast, not {forecast}"
    );
    plan.run_for(Duration::from_secs(2));
    plan.forget();
    plan.run_for(Duration::from_secs(3));
    assert!(plan.seen(flow).utilization > 0.95, "caution passes");
}

#[test]
fn a_slow_link_is_filled_though_its_ticks_bring_one_packet_or_two() {
    let [ours, exact] = ["sprout", "sprout:dry_ticks=exact"].map(|scheme| {
        let mut plan = Plan::new(link(1.0));
        let flow = plan.start(scheme);
        plan.run_for(Duration::from_secs(5));
        plan.forget();
        plan.run_for(Duration::from_secs(20));
        plan.seen(flow)
    });
    assert!(ours.utilization > 0.75, "{}", ours.utilization);
    assert!(ours.queueing_delay_p95_ms < 60.0, "{} ms", ours.queueing_delay_p95_ms);
    assert!(
        (exact.utilization - 0.24).abs() < 0.01,
        "if a lone packet counts as all that the link carries, only heartbeats leave: {}, one every 50 ms",
        exact.utilization
    );
}

#[test]
fn a_way_as_long_as_the_forecast_is_used_as_far_as_the_forecast_reaches() {
    let mut plan = Plan::new(Conditions { rtt: Duration::from_millis(100), ..link(10.0) });
    let flow = plan.start("sprout");
    plan.run_for(Duration::from_secs(5));
    plan.forget();
    plan.run_for(Duration::from_secs(20));
    let seen = plan.seen(flow);
    // The upper bound is the data that is almost certainly delivered within 100 ms, divided by the data that is
    // delivered until the receiver's next report.
    assert!(seen.utilization > 0.7 && seen.utilization < 100.0 / 120.0, "{}", seen.utilization);
    assert!(seen.queueing_delay_p95_ms < 30.0, "{} ms", seen.queueing_delay_p95_ms);
}

#[test]
fn the_loss_of_a_flights_last_packet_is_no_news_of_the_link() {
    let mut plan = Plan::new(Conditions { rtt: Duration::from_millis(100), loss: 0.01, ..link(5.0) });
    let flow = plan.start("sprout");
    plan.run_for(Duration::from_secs(5));
    plan.forget();
    plan.run_for(Duration::from_secs(30));
    let utilization = plan.seen(flow).utilization;
    assert!(utilization > 0.65, "without loss, 68 % of the link is used; with 1 % of loss, {utilization}");
}

#[test]
fn forecasts_stay_fresh_in_a_pause_and_end_with_a_long_one() {
    let mut plan = Plan::new(link(8.0));
    let flow = plan.start_with("sprout", Backlog::Limited(Bytes(1_000_000)));
    plan.run_for(Duration::from_secs(5));
    assert_eq!(plan.sender(flow).inflight(), Bytes::ZERO, "all is delivered");
    assert!(value(&plan, flow, "forecast_age_ticks") < 2.0, "the receiver still sends forecasts");
    plan.run_for(Duration::from_secs(3));
    assert_eq!(value(&plan, flow, "forecast_age_ticks"), 7.0, "after a while, the forecasts end");
    plan.offer(flow, Bytes(1_000_000));
    plan.run_for(Duration::from_millis(1_500));
    assert_eq!(
        plan.sender(flow).inflight(),
        Bytes::ZERO,
        "the flow starts again after the forecasts have ended"
    );
}

#[test]
fn a_pause_of_the_application_is_no_outage() {
    let mut plan = Plan::new(link(8.0));
    let flow = plan.start_with("sprout", Backlog::Limited(Bytes(2_000_000)));
    plan.run_for(Duration::from_secs(6));
    assert_eq!(plan.sender(flow).inflight(), Bytes::ZERO, "all is delivered, and the sender has been silent");
    plan.offer(flow, Bytes(1_000_000));
    plan.run_for(Duration::from_millis(22));
    let outage = value(&plan, flow, "outage_probability");
    assert!(outage < 0.3, "announced silence says nothing, but the outage has probability {outage}");
    plan.forget();
    plan.run_for(Duration::from_millis(800));
    let seen = plan.seen(flow);
    assert!(seen.utilization > 0.5, "the second megabyte soon uses {} of the link", seen.utilization);
}

#[test]
fn a_forecast_of_nothing_leaves_heartbeats_and_recovers() {
    let mut plan = Plan::new(link(10.0));
    let flow = plan.start("sprout");
    plan.run_for(Duration::from_secs(1));
    plan.set_loss(0.5);
    plan.rate_from(plan.now(), Rate::from_mbps(0.3));
    plan.run_for(Duration::from_secs(1));
    plan.forget();
    plan.run_for(Duration::from_secs(2));
    assert!(
        value(&plan, flow, "forecast_100_ms_packets") < 2.0,
        "at 25 packets/s, no packet is almost certain in 100 ms"
    );
    assert!(plan.seen(flow).delivered > 10, "the heartbeats continue");
    plan.set_loss(0.0);
    plan.rate_from(plan.now(), Rate::from_mbps(10.0));
    plan.run_for(Duration::from_secs(6));
    plan.forget();
    plan.run_for(Duration::from_secs(2));
    assert!(plan.seen(flow).utilization > 0.9, "the heartbeats that arrive show the new rate");
}

#[test]
fn rates_beyond_the_model_are_its_ceiling() {
    let mut plan = Plan::new(Conditions { rtt: Duration::from_millis(100), ..link(50.0) });
    let flow = plan.start("sprout");
    plan.run_for(Duration::from_secs(10));
    let seen = plan.seen(flow);
    assert!(
        seen.throughput < Rate::from_mbps(12.0),
        "the rate must stay below 12 Mbit/s (1,000 packets/s), not {}",
        seen.throughput
    );
    assert!(value(&plan, flow, "rate_packets_per_s") < 1_000.0);
}

#[test]
fn the_program_takes_what_it_sends_for_the_links_rate_and_has_less_of_it() {
    for seed in 1..=3 {
        let (ours, program) = (wander("sprout", seed), wander("sprout@pantheon", seed));
        let share = program.utilization / ours.utilization;
        assert!((0.6..0.95).contains(&share), "seed {seed}: the program has {share} of what Sprout has");
        let delay = program.queueing_delay_p95_ms / ours.queueing_delay_p95_ms;
        assert!(delay < 1.15, "seed {seed}: with {delay} times the delay");
    }
}

#[test]
fn the_programs_reports_come_by_its_own_timer() {
    let oldest = |scheme: &str| {
        let mut plan = Plan::new(link(8.0));
        let flow = plan.start(scheme);
        plan.run_for(Duration::from_secs(3));
        let ages = (0..1_000).map(|_| {
            plan.run_for(Duration::from_millis(1));
            value(&plan, flow, "forecast_age_ticks")
        });
        ages.fold(0.0, f64::max)
    };
    assert_eq!(oldest("sprout"), 0.0, "a report at the end of each tick");
    assert_eq!(oldest("sprout@pantheon"), 1.0, "a tick passes before the report of the next 22 ms");
}

fn value(plan: &Plan, flow: usize, name: &str) -> f64 {
    plan.inspect(flow).values.iter().find(|(known, _)| *known == name).expect("a name of Sprout's").1
}
