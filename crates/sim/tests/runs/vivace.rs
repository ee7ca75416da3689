//! Scenario tests of PCC Vivace over one bottleneck: conditions → run → check.

use crate::line;
use crate::watched;

use line::{Line, jain};
use watched::{Look, Watched};

/// Runs `scheme` alone for 30 s; the scheme's start phase takes less than ten seconds.
fn settled(scheme: &str, line: &Line) -> Watched {
    line.alone(scheme, 30.0)
}

const SETTLED: std::ops::Range<f64> = 10.0..30.0;

/// Relative difference between the current rate and the base rate of the trials.
fn off(look: &Look) -> f64 {
    look.pacing_mbps / look.value("base_mbps") - 1.0
}

#[test]
fn it_doubles_until_delay_grows_and_looks_twice() {
    let vivace = Line::new(20.0, 40.0, 400.0).alone("vivace", 5.0);
    let ends = vivace.looks.iter().position(|look| look.state != "Starting").expect("a start ends");
    let mut rates: Vec<f64> = vivace.looks[..ends].iter().map(|look| look.pacing_mbps).collect();
    rates.dedup();
    let halvings = rates[1..].windows(2).filter(|pair| pair[1] < pair[0]).count();
    assert_eq!(halvings, 1, "the first fall without loss may be noise: it is tried once more: {rates:?}");
    let doubled = rates[1..].windows(2).filter(|pair| (pair[1] / pair[0] - 2.0).abs() < 1e-6).count();
    assert_eq!(doubled, rates.len() - 3, "all other steps should double the rate: {rates:?}");
    let after = vivace.looks[ends].value("base_mbps");
    assert!((9.0..21.0).contains(&after), "it goes back to the last rate that was better: {after}");
}

#[test]
fn confidence_makes_a_long_way_short() {
    let line = Line { later: vec![(10.0, 50.0)], ..Line::new(10.0, 40.0, 100.0) };
    let vivace = line.alone("vivace", 18.0);
    let there = vivace.looks_in(10.0..18.0).find(|look| look.pacing_mbps >= 45.0);
    let there_s = there.expect("five times the rate within eight seconds").at_s;
    let greatest =
        |name: &str| vivace.looks_in(10.0..there_s).map(|look| look.value(name)).fold(0.0, f64::max);
    assert!(greatest("steps") >= 4.0, "steps in one direction: {}", greatest("steps"));
    assert!(greatest("boundary_percent") > 10.0, "the boundary widens where it is hit");
}

#[test]
fn a_flip_of_the_gradient_brings_trials_back() {
    let vivace = Line::new(20.0, 40.0, 100.0).alone("vivace", 15.0);
    let looks: Vec<&Look> = vivace.looks_in(5.0..15.0).collect();
    let (mut probing, mut moving) = (0, 0);
    for pair in looks.windows(2) {
        match pair[1].state.as_str() {
            "Probing" => {
                probing += 1;
                // When the flow enters the state `Probing`, its rate is still the last rate of the moving phase.
                let rests = pair[0].state == "Probing";
                assert!(
                    !rests || off(pair[1]).abs() < 0.15,
                    "trials are five per cent away: {}",
                    off(pair[1])
                );
            }
            "Moving" => moving += 1,
            state => panic!("{state} is over"),
        }
    }
    assert!(probing > 100 && moving > 100, "{probing} looks while probing, {moving} while moving");
}

#[test]
fn a_deep_buffer_stays_empty() {
    for scheme in ["vivace", "vivace@pantheon", "vivace@proteus"] {
        let seen = settled(scheme, &Line::new(20.0, 40.0, 400.0));
        let (mbps, p95) = (seen.mbps(SETTLED), seen.queueing_p95_ms(SETTLED));
        assert!(mbps > 0.88 * 20.0, "{scheme}: {mbps}");
        assert!(p95 < 40.0, "{scheme} keeps it from growing: {p95}");
        assert!(seen.loss_rate(SETTLED) < 0.001, "{scheme}: {}", seen.loss_rate(SETTLED));
    }
}

#[test]
fn without_its_latency_term_it_fills_any_buffer() {
    for scheme in ["vivace@loss", "vivace@uspace"] {
        let seen = settled(scheme, &Line::new(20.0, 40.0, 200.0));
        let (mbps, mean) = (seen.mbps(SETTLED), seen.queueing_mean_ms(SETTLED));
        assert!(mbps > 0.9 * 20.0, "{scheme}: {mbps}");
        assert!(mean > 80.0, "{scheme}: {mean}");
    }
}

#[test]
fn random_loss_of_one_per_cent_is_tolerated() {
    let lossy = Line { loss: 0.01, ..Line::new(20.0, 40.0, 100.0) };
    let [vivace, cubic] = ["vivace", "cubic"].map(|scheme| settled(scheme, &lossy).mbps(SETTLED) / 20.0);
    assert!(vivace > 0.8, "Vivace uses {vivace}");
    assert!(cubic < 0.5, "CUBIC uses {cubic}");
}

#[test]
fn two_flows_become_equal() {
    for seed in 1..=3 {
        let line = Line { seed, starts_s: vec![0.0, 10.0], ..Line::new(40.0, 40.0, 300.0) };
        let shares: Vec<f64> = line.run("vivace", 55.0).iter().map(|flow| flow.mbps(35.0..55.0)).collect();
        assert!(jain(&shares) > 0.97 && shares.iter().sum::<f64>() > 34.0, "seed {seed}: {shares:?}");
    }
}

#[test]
fn it_follows_a_fall_of_the_rate_and_drains_what_that_queued() {
    // The buffer has a fixed number of bytes, independent of the rate.
    let line = Line { later: vec![(10.0, 10.0)], ..Line::new(40.0, 40.0, 300.0) };
    let seen = line.alone("vivace", 45.0);
    let (mbps, mean) = (seen.mbps(35.0..45.0), seen.queueing_mean_ms(35.0..45.0));
    assert!(mbps > 0.8 * 10.0 && mean < 60.0, "{mbps} Mbit/s, {mean} ms");
}

#[test]
fn an_outage_does_not_kill_it() {
    let line = Line { later: vec![(5.0, 0.0), (8.0, 20.0)], ..Line::new(20.0, 40.0, 300.0) };
    let mbps = line.alone("vivace", 16.0).mbps(11.0..16.0);
    assert!(mbps > 0.8 * 20.0, "{mbps}");
}
