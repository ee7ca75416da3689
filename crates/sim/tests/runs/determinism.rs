//! Identical scenario, scheme and seed give identical events.

use std::thread;

use crate::common;
use common::{run, scenario};

/// A scenario with every component that draws random numbers.
const EVERYTHING: &str = r#"
duration_s = 1.5
forward = { jitter_mean_ms = 1, loss = 0.002, duplicate = 0.002, reorder = { probability = 0.01, extra_ms = 4 } }
reverse = { jitter_mean_ms = 1, loss = 0.002, duplicate = 0.002, batch_ms = 4 }
internet = { rate_mbps = 50, buffer.ms = 100 }
[cell]
carriers = 2
background.hour = "busy"
telemetry = { missed_dci = 0.01, false_dci_per_subframe = 0.1, latency_ms = 2, latency_jitter_ms = 1 }
[[device]]
radio.channel = { sinr_db = 15, fading = "epa", speed_kmh = 3, shadowing_sigma_db = 4 }
clock = { offset_ms = 20, drift_ppm = 30 }
[[device]]
radio.channel.sinr_db = 12
[[flow]]
rtt_ms = 40
[[flow]]
rtt_ms = 60
device = 1
scheme = "cubic"
start_s = 0.3
"#;

/// A scenario with uplink data, and ACKs that cross the cell in both directions.
const UPWARDS: &str = r#"
[[flow]]
rtt_ms = 50
label = "upload"
direction = "up"
acks = "cell"
app = 1
[[flow]]
rtt_ms = 50
label = "another"
device = 1
direction = "up"
protocol = "udp"
scheme = "cubic"
[[flow]]
rtt_ms = 50
label = "acknowledged over the air"
device = 1
acks = "cell"
"#;

#[test]
fn the_same_seed_gives_the_same_events_on_any_thread() {
    let everything = [EVERYTHING.to_owned(), format!("{EVERYTHING}{UPWARDS}")].map(|text| scenario(&text));
    let runs =
        everything.iter().flat_map(|scenario| ["pbe", "bbr", "oracle"].map(|scheme| (scenario, scheme)));
    for (scenario, scheme) in runs {
        let (stats, notebook) = run(scenario, scheme, 7);
        assert!(stats.events == notebook.events && notebook.events > 10_000, "{scheme} made events");
        let again = thread::scope(|scope| {
            let runs: Vec<_> = (0..2).map(|_| scope.spawn(|| run(scenario, scheme, 7))).collect();
            runs.into_iter().map(|run| run.join().unwrap()).collect::<Vec<_>>()
        });
        for (other_stats, other) in again {
            assert_eq!(
                other.fingerprint(),
                notebook.fingerprint(),
                "{scheme} gives different events in two runs"
            );
            assert_eq!(other_stats, stats);
        }
    }
}

#[test]
fn another_seed_gives_other_events() {
    let scenario = scenario(EVERYTHING);
    assert_ne!(run(&scenario, "bbr", 1).1.fingerprint(), run(&scenario, "bbr", 2).1.fingerprint());
}

#[test]
fn a_new_flow_does_not_change_another_flows_luck() {
    let alone = "duration_s = 1\nforward.loss = 0.05\nforward.rate_mbps = 5\n[[flow]]\nrtt_ms = 40\n";
    let together = format!("{alone}[[flow]]\nrtt_ms = 40\n");
    let fates = |text: &str| {
        let (_, notebook) = run(&scenario(text), "reno", 3);
        notebook.flows[0].arrivals.iter().map(|arrival| arrival.number).collect::<Vec<_>>()
    };
    assert_eq!(
        fates(alone),
        fates(&together),
        "each flow has its own wires, and their losses are drawn for it alone"
    );
}
