//! Scenario tests of PCC Allegro over one bottleneck: conditions → run → check.

use crate::line;

use std::collections::BTreeSet;

use line::{Line, jain};

#[test]
fn it_starts_at_two_packets_a_round_trip_and_doubles_until_utility_falls() {
    let allegro = Line::new(20.0, 40.0, 20.0).alone("allegro", 5.0);
    let ends = allegro.looks.iter().position(|look| look.state != "Starting").expect("a start ends");
    let mut rates: Vec<f64> = allegro.looks[..ends].iter().map(|look| look.pacing_mbps).collect();
    rates.dedup();
    assert!((rates[1] - 0.6).abs() < 0.02, "24 kbit in 40 ms: {rates:?}");
    assert!(rates[1..].windows(2).all(|pair| (pair[1] / pair[0] - 2.0).abs() < 1e-6), "{rates:?}");
    assert!(rates.last().unwrap() > &35.0, "it should go on until it loses packets: {rates:?}");
    let after = allegro.looks[ends].value("base_mbps");
    assert!((9.0..21.0).contains(&after), "it goes back to the last rate that was better: {after}");
}

#[test]
fn trials_decide_a_direction_and_steps_grow_in_it() {
    let line = Line { later: vec![(10.0, 40.0)], ..Line::new(10.0, 40.0, 20.0) };
    let allegro = line.alone("allegro", 20.0);
    let there = allegro.looks_in(10.0..20.0).find(|look| look.pacing_mbps >= 36.0);
    let there_s = there.expect("four times the rate is found").at_s;
    let way: Vec<_> = allegro.looks_in(10.0..there_s).collect();
    assert!(way.iter().any(|look| look.state == "DecisionMaking"));
    let steps = way.windows(2).filter(|pair| pair[1].state == "RateAdjusting");
    let longest = steps.map(|pair| pair[1].pacing_mbps / pair[0].pacing_mbps - 1.0).fold(0.0, f64::max);
    assert!(longest > 0.1, "the n-th step is of n per cent: {longest}");
}

#[test]
fn two_rates_are_tried_around_the_present_one() {
    let line = Line { loss: 0.04, ..Line::new(20.0, 40.0, 20.0) };
    let mut tried = BTreeSet::new();
    for look in &line.alone("allegro", 20.0).looks {
        let epsilon = look.value("epsilon_percent");
        if epsilon.is_finite() {
            let off = (look.pacing_mbps / look.value("base_mbps") - 1.0) * 100.0;
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
        let line = Line { loss, ..Line::new(20.0, 40.0, 40.0) };
        let [allegro, cubic] =
            ["allegro", "cubic"].map(|scheme| line.alone(scheme, 30.0).mbps(15.0..30.0) / 20.0);
        assert!(allegro > 0.9, "Allegro uses {allegro} at a loss of {loss}");
        assert!(allegro > cubic, "CUBIC {cubic}");
    }
}

#[test]
fn loss_beyond_five_per_cent_is_taken_for_congestion() {
    let line = Line { loss: 0.09, ..Line::new(20.0, 40.0, 40.0) };
    let mbps = line.alone("allegro", 30.0).pacing_mbps_at(30.0);
    assert!(mbps < 5.0, "its utility falls steeply there: {mbps}");
}

#[test]
fn a_shallow_buffer_is_enough() {
    let line = Line { buffer_bytes: 9_000, ..Line::new(50.0, 40.0, 0.0) };
    let seen = line.alone("allegro", 20.0);
    let (mbps, lost) = (seen.mbps(10.0..20.0), seen.loss_rate(10.0..20.0));
    assert!(mbps > 0.95 * 50.0, "six packets of buffer: {mbps}");
    assert!(lost < 0.06, "its utility allows a loss of five per cent: {lost}");
}

#[test]
fn the_safe_utility_fills_any_buffer_and_those_with_delay_do_not() {
    let delay = |scheme: &str| {
        let seen = Line::new(20.0, 40.0, 200.0).alone(scheme, 40.0);
        let mbps = seen.mbps(20.0..40.0);
        assert!(mbps > 0.9 * 20.0, "{scheme}: {mbps}");
        seen.queueing_mean_ms(20.0..40.0)
    };
    let safe = delay("allegro");
    assert!(safe > 140.0, "the safe utility does not depend on delay: {safe}");
    let (latency, pantheon) = (delay("allegro@latency"), delay("allegro@pantheon"));
    assert!(latency < 0.8 * safe, "{latency}");
    assert!(pantheon < 20.0, "on a path without noise the program keeps the queue short: {pantheon}");
}

#[test]
fn two_flows_share_a_shallow_buffer() {
    let mut index = 0.0;
    for seed in 1..=4 {
        let line = Line { seed, starts_s: vec![0.0, 5.0], ..Line::new(40.0, 20.0, 20.0) };
        let shares: Vec<f64> = line.run("allegro", 65.0).iter().map(|flow| flow.mbps(35.0..65.0)).collect();
        index += jain(&shares) / 4.0;
        assert!(shares.iter().sum::<f64>() > 36.0, "{shares:?}");
    }
    assert!(index > 0.8, "Jain's index over seeds: {index}");
}

#[test]
fn an_outage_does_not_kill_it() {
    let line = Line { later: vec![(8.0, 0.0), (11.0, 20.0)], ..Line::new(20.0, 40.0, 40.0) };
    let mbps = line.alone("allegro", 18.0).mbps(13.0..18.0);
    assert!(mbps > 0.8 * 20.0, "{mbps}");
}
