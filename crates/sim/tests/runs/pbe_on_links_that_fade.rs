//! Tests of PBE-CC over links whose capacity changes within a round trip: cells with fading channels, recorded links,
//! and a link with an outage.

use std::path::Path;

use airpace_core::Streams;
use airpace_sim::Scenario;

use crate::common;
use common::{run, scenario};

/// Runs a scheme. Returns its share of the capacity, and its 95th percentile of queueing delay in ms.
fn reached(scenario: &Scenario, scheme: &str, seed: u64) -> (f64, f64) {
    const FROM_S: f64 = 2.0;
    let to_s = scenario.duration_s;
    let (_, notebook) = run(scenario, scheme, seed);
    let flow = &notebook.flows[0];
    let carried = flow.mbps(0.0, to_s) * to_s / 8e-6;
    (carried / notebook.capacity_bytes[0] as f64, flow.queueing_delay_ms(0.95, FROM_S, to_s))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Returns PBE-CC's medians over scenarios: the share of the capacity, and the ratio of the 95th percentile of queueing
/// delay to BBR's 95th percentile.
fn medians<'a>(scenarios: impl Iterator<Item = (&'a str, Scenario)>) -> (f64, f64) {
    let (mut used, mut delays) = (vec![], vec![]);
    for (seed, (name, scenario)) in (1..).zip(scenarios) {
        let ((part, p95), (bbr, bbrs_p95)) =
            (reached(&scenario, "pbe", seed), reached(&scenario, "bbr", seed));
        println!("{name}: pbe {part:.3}, {p95:.0} ms; bbr {bbr:.3}, {bbrs_p95:.0} ms");
        used.push(part);
        delays.push(p95 / bbrs_p95);
    }
    (median(used), median(delays))
}

#[test]
fn a_cell_that_fades_is_used_at_half_of_bbrs_delay() {
    let cells = [
        ("50, 42, 16, 'epa', 5", "pedestrian"),
        ("25, 20, 20, 'epa', 3", "slow pedestrian"),
        ("50, 80, 12, 'epa', 30", "cyclist in a flat channel"),
        ("25, 160, 16, 'eva', 30", "car in a town"),
        ("100, 42, 20, 'etu', 60", "car between houses"),
        ("50, 80, 12, 'eva', 120", "car on a motorway"),
        ("100, 160, 8, 'epa', 10", "edge of the cell"),
    ];
    let (used, delay) = medians(cells.iter().map(|&(cell, name)| {
        let [prbs, rtt, sinr, profile, speed] = cell.split(", ").collect::<Vec<_>>()[..] else {
            panic!("{cell}")
        };
        let text = format!(
            "duration_s = 15
            cell = {{ prbs = {prbs} }}
            device = [{{ radio.channel = {{ sinr_db = {sinr}, fading = {profile}, speed_kmh = {speed} }} }}]
            flow = [{{ rtt_ms = {rtt} }}]"
        );
        (name, scenario(&text))
    }));
    assert!(used >= 0.94, "{used} of the capacity in the median");
    assert!(delay <= 0.5, "{delay} of BBR's 95th percentile in the median");
}

/// While another phone has data waiting, a scheduler serves no phone that is in a fade; after the fade, the phone
/// receives its queued data.
#[test]
fn beside_a_rival_in_a_slow_fade_a_short_path_is_used() {
    let scenario = scenario(
        "duration_s = 15
        cell = { prbs = 25, background.hour = 'idle' }
        device = [{ radio.channel = { layers = 2, sinr_db = 20, fading = 'epa', speed_kmh = 3 } },
                  { radio.channel = { layers = 2, sinr_db = 20, fading = 'epa', speed_kmh = 3 } }]
        flow = [{ rtt_ms = 18 }, { device = 1, scheme = 'cubic', rtt_ms = 18 }]",
    );
    let means = |scheme| {
        let of_seeds = (1..=3).map(|seed| {
            let (_, notebook) = run(&scenario, scheme, seed);
            let flow = &notebook.flows[0];
            (flow.mbps(0.0, 15.0), flow.queueing_delay_ms(0.95, 2.0, 15.0))
        });
        let (rates, delays): (Vec<f64>, Vec<f64>) = of_seeds.unzip();
        (rates.iter().sum::<f64>() / 3.0, delays.iter().sum::<f64>() / 3.0)
    };
    let ((pbe, p95), (bbr, bbrs_p95), (oracle, _)) = (means("pbe"), means("bbr"), means("oracle"));
    println!("pbe {pbe:.2}, {p95:.0} ms; bbr {bbr:.2}, {bbrs_p95:.0} ms; oracle {oracle:.2}");
    assert!(pbe > 0.82 * oracle, "{pbe} of {oracle} Mbit/s");
    assert!(p95 < 0.9 * bbrs_p95, "{p95} ms beside {bbrs_p95}");
}

fn over_trace(trace: &Path, seconds: u32) -> Scenario {
    scenario(&format!(
        "duration_s = {seconds}
        trace = {{ file = {trace:?}, allow_holes = true, telemetry = true, link.buffer.bytes = 3_000_000 }}
        flow = [{{ rtt_ms = 42 }}]"
    ))
}

#[test]
fn recorded_links_are_used_at_half_of_bbrs_delay() {
    let Some(folder) = airpace_testing::recordings("traces") else { return };
    let names = [
        "ATT-LTE-driving-2016.down",
        "ATT-LTE-driving-2016.up",
        "TMobile-LTE-short.down",
        "TMobile-LTE-short.up",
        "Verizon-EVDO-driving.up",
        "nyc-taxi3.down",
        "nyc-timessquare-3201711.down",
        "nyc-timessquare-3204803.down",
        "orange4g-A.up",
    ];
    let found: Vec<_> = names.iter().filter(|name| folder.join(name).exists()).collect();
    if found.len() < names.len() {
        return airpace_testing::skipped("some of the recorded links are missing");
    }
    let (used, delay) = medians(found.iter().map(|&&name| (name, over_trace(&folder.join(name), 60))));
    assert!(used >= 0.94, "{used} of the capacity in the median");
    assert!(delay <= 0.5, "{delay} of BBR's 95th percentile in the median");
}

/// The rate of the link is 4 Mbit/s, falls to nearly zero for five seconds, is zero for 5.2 s, and returns to 3 Mbit/s.
/// The link's delivery opportunities are random.
#[test]
fn after_an_outage_the_link_is_used_again_at_once() {
    const RETURN_MS: u32 = 20_200;
    let file = std::env::temp_dir().join(format!("airpace-outage-{}.down", std::process::id()));
    for seed in 1..=5 {
        let mut rng = Streams::new(seed).stream("chances");
        let chances: String = (1..30_000_u32)
            .filter(|&ms| {
                let mbps = match ms {
                    0..10_000 => 4.0,
                    10_000..15_000 if ms / 250 % 4 == 0 => 0.5,
                    10_000..15_000 => 0.1,
                    15_000..RETURN_MS => 0.0,
                    _ => 3.0,
                };
                rng.chance(mbps / 12.0)
            })
            .map(|ms| format!("{ms}\n"))
            .collect();
        std::fs::write(&file, chances).unwrap();
        let (_, notebook) = run(&over_trace(&file, 29), "pbe", seed);
        let flow = &notebook.flows[0];
        let returned = f64::from(RETURN_MS) * 1e-3;
        let mbps = flow.mbps(returned + 0.3, returned + 1.3);
        assert!(mbps > 2.2, "seed {seed}: {mbps} of 3 Mbit/s after the outage");
        assert!(
            !flow.states.iter().any(|state| state.starts_with("Internet")),
            "seed {seed}: {:?}",
            flow.states
        );
    }
    std::fs::remove_file(file).unwrap();
}
