//! Scenario tests of MORC over one bottleneck: conditions → run → check.
//!
//! Source: MORC §4.1

use crate::line;
use crate::watched;

use airpace_sim::Scenario;
use line::Line;
use watched::watch;

/// Returns the link of the paper's testbed, with a queue of 300 ms.
fn lab(mbps: f64, rtt_ms: f64, loss: f64) -> Line {
    Line { loss, ..Line::new(mbps, rtt_ms, 300.0) }
}

/// Returns the share of the link's rate that `scheme` uses when it is alone on the link, after its start phase.
fn utilization(scheme: &str, line: &Line) -> f64 {
    line.alone(scheme, 35.0).mbps(5.0..35.0) / line.mbps
}

#[test]
fn slow_start_doubles_every_round_trip_and_ends_where_no_more_arrives() {
    let morc = lab(60.0, 30.0, 0.0).alone("morc", 2.0);
    let ends = morc.looks.iter().position(|look| look.state != "SlowStart").expect("slow start ends");
    let mut rates: Vec<f64> = morc.looks[..ends].iter().map(|look| look.pacing_mbps).collect();
    rates.dedup();
    // The first rate is an estimate, made before the first round trip.
    let steps = rates[1..].windows(2).map(|pair| pair[1] / pair[0]);
    assert!(steps.clone().all(|step| (step - 2.0).abs() < 0.1), "each interval doubles: {rates:?}");
    let end = &morc.looks[ends];
    assert!(end.at_s < 0.4, "it takes a dozen round trips: {} s", end.at_s);
    assert!(
        (25.0..33.0).contains(&end.pacing_mbps),
        "and ends at half of the rate that arrives, to drain what it queued: {}",
        end.pacing_mbps
    );
}

#[test]
fn random_loss_of_a_two_thousandth_does_not_slow_it_down_as_it_does_cubic() {
    let lossy = lab(60.0, 30.0, 0.0005);
    let (morc, cubic) = (utilization("morc", &lossy), utilization("cubic", &lossy));
    assert!(morc > 0.95, "MORC uses {morc}");
    assert!(cubic < 0.5, "CUBIC uses {cubic}");
    let faster = utilization("morc", &lab(120.0, 30.0, 0.005));
    assert!(faster > 0.9, "ten times as much loss on a faster link should not slow it down either: {faster}");
}

#[test]
fn random_loss_with_jitter_is_no_short_buffer() {
    for (loss, jitter_ms) in [(0.03, 0.0), (0.03, 1.0), (0.03, 2.0), (0.1, 0.0), (0.1, 1.0), (0.1, 2.0)] {
        let line = Line { loss, jitter_ms, ..Line::new(6.6, 100.0, 200.0) };
        let used = utilization("morc", &line);
        assert!(used > 0.9, "loss {loss}, jitter {jitter_ms} ms: {used}");
    }
}

#[test]
fn its_queue_is_neither_empty_nor_long() {
    let seen = lab(60.0, 30.0, 0.0).alone("morc", 40.0);
    let (mbps, mean_ms) = (seen.mbps(10.0..40.0), seen.queueing_mean_ms(10.0..40.0));
    assert!(mbps > 0.97 * 60.0, "{mbps}");
    assert!((20.0..50.0).contains(&mean_ms), "the target is 34 ms at 60 Mbit/s: {mean_ms}");
    let shorter_ms = lab(60.0, 30.0, 0.0).alone("morc:target_ms=40", 40.0).queueing_mean_ms(10.0..40.0);
    assert!(
        shorter_ms < 0.7 * mean_ms,
        "the queue should be shorter with 20 ms less of target: {shorter_ms}"
    );
}

#[test]
fn where_much_less_arrives_than_is_sent_it_tries_no_higher_rate() {
    let line = Line { later: vec![(5.0, 15.0)], ..lab(60.0, 30.0, 0.0) };
    let seen = line.alone("morc", 36.0);
    let fallen = seen.looks_in(5.0..36.0).find(|look| look.pacing_mbps <= 18.0);
    let fallen_s = fallen.expect("it falls").at_s;
    assert!(
        fallen_s < 7.0,
        "it should fall to the rate that fits when that rate is reported twice: {fallen_s} s"
    );
    let settled = fallen_s + 20.0..fallen_s + 29.0;
    let (mbps, mean_ms) = (seen.mbps(settled.clone()), seen.queueing_mean_ms(settled));
    assert!(mbps > 0.9 * 15.0 && mean_ms < 250.0, "and settles there: {mbps} Mbit/s, {mean_ms} ms");
}

#[test]
fn an_outage_is_no_news_about_the_rate() {
    let line = Line { later: vec![(5.0, 0.0), (8.0, 20.0)], ..lab(20.0, 40.0, 0.0) };
    let mbps = line.alone("morc", 11.0).mbps(9.0..11.0);
    assert!(mbps > 0.9 * 20.0, "it should go on as before: {mbps}");
}

#[test]
fn trials_in_both_directions_cost_utilization_where_the_path_changes() {
    let rates = |second: u32| [60.0, 20.0, 40.0, 10.0, 50.0][second as usize % 5];
    let later = (1..40).map(|second| (f64::from(second), rates(second))).collect();
    let line = Line { later, ..lab(60.0, 20.0, 0.0005) };
    let carried: f64 = (0..40).map(rates).sum::<f64>() / 40.0;
    let changing = |scheme: &str| {
        let seen = line.alone(scheme, 40.0);
        (seen.mbps(0.0..40.0) / carried, seen.queueing_mean_ms(0.0..40.0))
    };
    let (with, without) = (changing("morc@paper"), changing("morc@paper:avoidance=off"));
    assert!(with.0 > 0.8, "the link has a new rate every second: {with:?}");
    assert!(
        with.0 > without.0 || with.1 < without.1,
        "leaving trials out pays: {with:?} against {without:?}"
    );
}

/// Returns the share of the link's rate that `scheme` gets beside one flow of `rival`, on a link of `mbps` with a
/// round-trip time of `rtt_ms` and a buffer of `buffer_ms`.
fn share_beside(scheme: &str, rival: &str, (mbps, rtt_ms, buffer_ms): (f64, f64, f64)) -> f64 {
    let text = format!(
        "name = \"beside\"\nschemes = [\"reno\"]\nduration_s = 60.0\n\
         [internet]\nrate_mbps = {mbps:?}\nbuffer.ms = {buffer_ms:?}\n\
         [[flow]]\nrtt_ms = {rtt_ms:?}\n[[flow]]\nrtt_ms = {rtt_ms:?}\nstart_s = 0.5\nscheme = \"{rival}\"\n",
    );
    let scenario = airpace_sim::Scenario::load(&text, "beside.toml", &[]).unwrap();
    let flows = watched::watch(&scenario, scheme, 1);
    let (own, other) = (flows[0].mbps(0.0..60.0), flows[1].mbps(0.0..60.0));
    own / (own + other)
}

#[test]
fn neither_it_nor_cubic_nor_bbr_falls_below_a_third_of_its_share() {
    for rival in ["cubic", "bbr"] {
        for buffer_ms in [40.0, 200.0] {
            let share = share_beside("morc", rival, (50.0, 40.0, buffer_ms));
            assert!((1.0 / 6.0..5.0 / 6.0).contains(&share), "{share} beside {rival} with {buffer_ms} ms");
        }
    }
    let yielding = share_beside("morc:rival=off", "cubic", (50.0, 40.0, 200.0));
    assert!(yielding < 1.0 / 6.0, "without its window, it leaves the link to CUBIC: {yielding}");
}

#[test]
fn nor_does_cubic_in_a_buffer_of_ten_milliseconds() {
    for (mbps, rtt_ms) in [(5.0, 20.0), (5.0, 40.0), (10.0, 20.0), (20.0, 10.0), (40.0, 20.0)] {
        let share = share_beside("morc", "cubic", (mbps, rtt_ms, 10.0));
        assert!((0.2..0.85).contains(&share), "{share} on {mbps} Mbit/s, {rtt_ms} ms");
    }
}

#[test]
fn a_buffer_below_its_target_does_not_overflow_for_good() {
    let lost = |scheme: &str| {
        let seen = Line::new(60.0, 30.0, 20.0).alone(scheme, 30.0);
        (seen.loss_rate(5.0..29.0), seen.mbps(5.0..30.0))
    };
    let ((loss, mbps), (without, _)) = (lost("morc"), lost("morc:overflow=off"));
    assert!(loss < 0.02 && mbps > 0.95 * 60.0, "{loss} lost, {mbps} Mbit/s");
    assert!(without > 3.0 * loss, "{without} lost without");
}

/// The link's rate alternates between 10 Mbit/s and a quarter of this rate every two seconds, with a buffer of 200 kB.
/// The sending rate of a drain that starts before a fall of the link's rate is higher than the link's rate after the
/// fall.
const STEPS: &str = "name = \"steps\"\nduration_s = 30\n[internet]\nrate_mbps = 10\nschedule = [[2, 2.5], [4, 10], \
     [6, 2.5], [8, 10], [10, 2.5], [12, 10], [14, 2.5], [16, 10], [18, 2.5], [20, 10], [22, 2.5], [24, 10], \
     [26, 2.5], [28, 10]]\nbuffer.bytes = 200_000\n[[flow]]\nrtt_ms = 20\n";

#[test]
fn a_link_that_becomes_slower_than_a_drain_is_no_rival() {
    let scenario = Scenario::load(STEPS, "steps.toml", &[]).expect("a legal scenario");
    for seed in 1..=6 {
        let morc = watch(&scenario, "morc", seed).remove(0);
        morc.was_never_in("Competing");
        let loss = morc.loss_rate(2.0..30.0);
        assert!(loss < 0.02, "seed {seed}: {loss} lost");
    }
}

#[test]
fn a_link_of_a_few_packets_per_round_trip_keeps_a_short_queue() {
    // PCC's minimum rate, two packets per round trip, is 0.6 Mbit/s on this path.
    for mbps in [0.3, 0.5, 0.8] {
        let morc = Line::new(mbps, 40.0, 10_000.0).alone("morc", 30.0);
        let (got, p95_ms) = (morc.mbps(2.0..30.0), morc.queueing_p95_ms(2.0..30.0));
        assert!(got > 0.9 * mbps && p95_ms < 350.0, "{got} of {mbps} Mbit/s, {p95_ms} ms");
    }
}
