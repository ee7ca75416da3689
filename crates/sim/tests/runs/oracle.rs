//! Scenario tests of the Oracle and of the constant rate: conditions → run → check.

use crate::line;
use crate::watched;

use line::Line;
use watched::{Watched, watch};

/// Returns a link of 20 Mbit/s with a buffer of 80 ms.
fn link(rtt_ms: f64) -> Line {
    Line::new(20.0, rtt_ms, 80.0)
}

#[test]
fn the_oracle_fills_the_link_and_keeps_its_slack_in_the_queue() {
    for rtt_ms in [11.0, 42.0, 162.0, 282.0] {
        let seen = link(rtt_ms).alone("oracle", 11.0);
        let (mbps, mean) = (seen.mbps(1.0..11.0), seen.queueing_mean_ms(1.0..11.0));
        assert!(mbps > 0.995 * 20.0, "{mbps} Mbit/s at {rtt_ms} ms");
        assert!((1.0..3.0).contains(&mean), "{mean} ms, not 2, at {rtt_ms} ms");
        assert_eq!(seen.dropped, 0);
    }
}

/// Runs a scheme over a trace in which `packets` contains the number of packets of each millisecond.
fn on_trace(name: &str, packets: impl Iterator<Item = u32>, rtt_ms: u32, duration_s: u32) -> Watched {
    let file = std::env::temp_dir().join(format!("airpace-sim-{name}-{}.down", std::process::id()));
    let chances: String =
        (1u64..).zip(packets).flat_map(|(ms, count)| (0..count).map(move |_| format!("{ms}\n"))).collect();
    std::fs::write(&file, chances).expect("the trace is written");
    let text = format!(
        "name = \"trace\"\nschemes = [\"reno\"]\nduration_s = {duration_s}\ntrace.file = '{}'\nflow = [{{ rtt_ms = {rtt_ms} }}]",
        file.display()
    );
    let scenario =
        airpace_sim::Scenario::load(&text, "trace.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    let seen = watch(&scenario, "oracle", 1).swap_remove(0);
    std::fs::remove_file(file).expect("it was there");
    seen
}

#[test]
fn the_oracle_knows_a_change_before_it_comes() {
    // The rate alternates between 48 and 6 Mbit/s: four packets per millisecond, or one every two milliseconds.
    let steps = (0..11_000).map(|ms| match ms / 200 % 2 {
        0 => 4,
        _ => ms % 2,
    });
    let seen = on_trace("steps", steps, 100, 11);
    let used = seen.mbps(1.0..11.0) / seen.capacity_mbps(1.0..11.0);
    assert!(used > 0.99, "steps of 8:1 five times a second should cost nothing: {used}");
    let p95 = seen.queueing_p95_ms(1.0..11.0);
    assert!(p95 < 12.0, "and they should not build a queue: {p95} ms");
}

#[test]
fn the_oracle_outlives_an_outage() {
    let line = Line { later: vec![(2.5, 0.0), (5.5, 20.0)], ..link(40.0) };
    let seen = line.alone("oracle", 8.0);
    let (mbps, p95) = (seen.mbps(6.0..8.0), seen.queueing_p95_ms(6.0..8.0));
    assert!(mbps > 0.995 * 20.0 && p95 < 5.0, "{mbps} Mbit/s, {p95} ms");
}

#[test]
fn two_oracles_share_evenly() {
    let line = Line { starts_s: vec![0.0, 0.0], ..link(40.0) };
    for seen in line.run("oracle", 6.0) {
        let mbps = seen.mbps(1.0..6.0);
        assert!((mbps / 20.0 - 0.5).abs() < 0.01, "{mbps} of 20 Mbit/s");
    }
}

#[test]
fn the_constant_rate_is_constant_whatever_is_lost() {
    let line = Line { buffer_bytes: 15_000, ..link(40.0) };
    let seen = line.alone("cbr:rate_mbps=30", 10.0);
    let (mbps, lost) = (seen.mbps(0.0..10.0), seen.loss_rate(0.0..9.9));
    assert!(mbps > 0.99 * 20.0, "{mbps}");
    assert!((lost - 1.0 / 3.0).abs() < 0.01, "a third of 30 Mbit/s does not fit into 20: {lost}");
}
