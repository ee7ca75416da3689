//! Scenario tests of a cellular link that serves a few packets differently from a full queue: conditions → run → check.

use crate::common;
use common::{FlowNotes, run, scenario};

/// A link with 24 Mbit/s to the phone and 12 Mbit/s from the phone under load. Trains of ten packets are served at 4
/// Mbit/s to the phone, and at 2 Mbit/s from the phone. A delivery opportunity transfers a packet of 1500 bytes.
fn link(down_delay: &str) -> String {
    format!(
        "duration_s = 10
        [cellular.down]
        light.synth = {{ {down_delay}, mbps = 4 }}
        heavy.synth = {{ model = 'constant', mean_mbps = 24 }}
        link = {{ opportunity_bytes = 1504, buffer.ms = 100 }}
        [cellular.up]
        light.synth = {{ delay_ms = 20, mbps = 2 }}
        heavy.synth = {{ model = 'constant', mean_mbps = 12 }}
        link = {{ opportunity_bytes = 1504, buffer.ms = 100 }}
        "
    )
}

const FLOW: &str = "[[flow]]\nrtt_ms = 50\n";

#[test]
fn many_packets_get_what_the_trace_of_a_full_queue_carries() {
    for (way, mbps, train_ms) in [("down", 24.0, 25.0), ("up", 12.0, 50.0)] {
        let text = format!("{}{FLOW}direction = '{way}'\n", link("delay_ms = 20"));
        let (_, notebook) = run(&scenario(&text), "cubic", 1);
        let flow = &notebook.flows[0];
        let got = flow.mbps(2.0, 10.0);
        assert!((got / mbps - 1.0).abs() < 0.02, "{got} Mbit/s {way}, not {mbps}");
        let least = flow.least_rtt_ms();
        assert!(
            (50.0..51.1).contains(&least),
            "{least} ms {way}: both base delays, and 5 ms of wire each way"
        );
        let p95 = flow.queueing_delay_ms(0.95, 2.0, 10.0);
        // Packets that are not served within a train wait for the end of the train before they join the queue.
        let most = 101.0 + train_ms - 20.0;
        assert!((60.0..=most).contains(&p95), "the queue fills its 100 ms: {p95} ms {way}");
    }
}

#[test]
fn an_oracle_fills_the_link_without_a_queue() {
    for way in ["down", "up"] {
        let text = format!("{}{FLOW}direction = '{way}'\n", link("delay_ms = 20, delay_to_ms = 40"));
        let (_, notebook) = run(&scenario(&text), "oracle", 1);
        let flow = &notebook.flows[0];
        let (mbps, full) = (flow.mbps(2.0, 10.0), if way == "down" { 24.0 } else { 12.0 });
        assert!(mbps > 0.95 * full, "{mbps} Mbit/s {way}, of {full}");
        // The part of the base delay above the minimum base delay counts as queueing delay, and so does the rest of a
        // train.
        let p95 = flow.queueing_delay_ms(0.95, 2.0, 10.0);
        assert!(p95 < 45.0, "{p95} ms {way}");
    }
}

/// Returns a flow that requests `bytes` bytes each second.
fn transfers(bytes: u64) -> String {
    format!("{FLOW}bytes = {bytes}\nevery_ms = 1000\nconnection = 'new'\n")
}

/// Returns the time between the first and the last arrival among the packets of each second, in ms.
fn spans_ms(flow: &FlowNotes) -> Vec<f64> {
    (1..9)
        .map(|second| {
            let times: Vec<f64> =
                flow.between(f64::from(second), f64::from(second) + 1.0).map(|it| it.time_s).collect();
            (times[times.len() - 1] - times[0]) * 1e3
        })
        .collect()
}

#[test]
fn a_few_packets_are_served_as_a_train_was() {
    let cellular = scenario(&format!("{}{}", link("delay_ms = 20"), transfers(15_000)));
    let traced = scenario(&format!(
        "duration_s = 10
        [trace]
        synth = {{ model = 'constant', mean_mbps = 24 }}
        [trace.back]
        synth = {{ model = 'constant', mean_mbps = 12 }}
        {}",
        transfers(15_000)
    ));
    let [light, heavy] = [&cellular, &traced].map(|scenario| spans_ms(&run(scenario, "cubic", 1).1.flows[0]));
    for (light, heavy) in light.iter().zip(&heavy) {
        // Ten or eleven packets arrive per transfer: at intervals of 2.8 ms in the train of 1400-byte packets, at
        // intervals of 0.5 ms over the trace.
        assert!((22.0..33.0).contains(light), "a train of ten takes 25 ms, not {light}");
        assert!(*heavy < 8.0, "over the trace of a full queue they take {heavy} ms");
    }
}

#[test]
fn the_base_delay_moves_and_is_counted_from_its_least() {
    let text = format!("{}{}", link("delay_ms = 20, delay_to_ms = 60, every_ms = 500"), transfers(1_000));
    let (_, notebook) = run(&scenario(&text), "cubic", 1);
    let flow = &notebook.flows[0];
    let beyond: Vec<f64> = flow.arrivals.iter().map(|arrival| arrival.queueing_delay_ms).collect();
    assert!(beyond.len() >= 9, "{} packets", beyond.len());
    let (least, most) = beyond.iter().fold((f64::MAX, 0.0_f64), |(a, b), it| (a.min(*it), b.max(*it)));
    assert!(least >= -1e-6 && most <= 41.0, "between the least delay and the longest: {least} to {most} ms");
    assert!(most - least > 10.0, "the delay should move: {least} to {most} ms");
}

#[test]
fn the_same_seed_gives_the_same_run_whatever_the_queue() {
    let pie = link("delay_ms = 20").replace("buffer.ms = 100", "buffer = { discipline = 'pie' }");
    let scenario = scenario(&format!("{pie}{FLOW}"));
    let fingerprint = |seed| run(&scenario, "cubic", seed).1.fingerprint();
    assert_eq!(fingerprint(1), fingerprint(1));
    assert_ne!(fingerprint(1), fingerprint(2), "PIE drops other packets");
}
