//! Properties of random cells: a scenario with any radio parameters is either refused with an error that names the key,
//! or runs with every seed.

use std::ops::ControlFlow;

use airpace_core::Time;
use airpace_event::Discard;
use airpace_sim::{Scenario, SchemeSpec};
use proptest::prelude::*;

use crate::common;
use common::{run, scenario};

/// Generates the line of a key with a random value from `values`.
fn key(name: &'static str, values: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::sample::select(values)
        .prop_map(move |value| if value.is_empty() { String::new() } else { format!("{name} = {value}\n") })
}

const YES_OR_NO: &[&str] = &["true", "false"];

fn cells() -> impl Strategy<Value = String> {
    let carriers = (
        key("prbs", &["6", "15", "25", "50", "75", "100"]),
        key("carriers", &["1", "2", "5"]),
        key("scheduler", &["\"round_robin\"", "\"proportional_fair\"", "\"max_ci\""]),
        key("lena_compat", YES_OR_NO),
        key("cfi", &["", "1", "3"]),
        key("max_users_per_subframe", &["1", "8"]),
    );
    let layers = (
        key("rlc.mode", &["\"acknowledged\"", "\"unacknowledged\""]),
        key("bler.model", &["\"sinr\"", "\"pbe\"", "\"none\""]),
        key("bler.combining", &["\"chase\"", "\"incremental_redundancy\""]),
        key("adaptation.cqi_scope", &["\"wideband\"", "\"subband\""]),
        key("adaptation.cqi_period_ms", &["1", "5", "40"]),
        key("adaptation.measurement_sigma_db", &["0", "2"]),
        key("harq.max_retransmissions", &["0", "3"]),
    );
    let others = (
        key("background.hour", &["", "\"busy\""]),
        key("uplink.sinr_offset_db", &["-30", "-3", "10"]),
        key("uplink.power_prbs", &["", "2"]),
        key("uplink.qam64", YES_OR_NO),
    );
    (carriers, layers, others).prop_map(|((a, b, c, d, e, f), (g, h, i, j, k, l, m), (n, o, p, q))| {
        format!("[cell]\n{}", [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q].concat())
    })
}

/// Generates devices at any location, from far out of coverage to the receiver's best SINR. A device may enter or leave
/// coverage.
fn devices() -> impl Strategy<Value = String> {
    let level = prop_oneof![
        4 => (-45.0..35.0).prop_map(|sinr_db: f64| format!("sinr_db = {sinr_db}\n")),
        1 => (0.0..60_000.0).prop_map(|distance_m: f64| format!("distance_m = {distance_m}\n")),
        2 => (-45.0..35.0, -45.0..35.0)
            .prop_map(|(from, to): (f64, f64)| format!("sinr_points_db = [[0, {from}], [0.2, {to}]]\n")),
        1 => (-140.0..-80.0, -140.0..-80.0)
            .prop_map(|(from, to): (f64, f64)| format!("rssi_points_dbm = [[0, {from}], [0.2, {to}]]\n")),
    ];
    let channel = (
        level,
        key("fading", &["\"none\"", "\"epa\"", "\"eva\"", "\"etu\""]),
        key("doppler_hz", &["", "0", "5.4", "108", "900"]),
        key("shadowing_sigma_db", &["0", "8"]),
        key("speed_kmh", &["3", "120"]),
        key("layers", &["1", "2"]),
        key("sinusoids_per_tap", &["4", "16"]),
    );
    (channel, key("handover_s", &["", "[0.1]"])).prop_map(|((a, b, c, d, e, f, g), handover)| {
        format!(
            "[[device]]\n[device.radio]\n{handover}[device.radio.channel]\n{}",
            [a, b, c, d, e, f, g].concat()
        )
    })
}

fn flows() -> impl Strategy<Value = String> {
    let keys = (
        key("device", &["0", "1"]),
        key("direction", &["\"down\"", "\"up\""]),
        key("acks", &["\"wire\"", "\"cell\""]),
        key("rtt_ms", &["8", "42", "200", "1000"]),
        key("on_s", &["", "0.05"]),
        key("rate_mbps", &["", "1", "80"]),
        key("bytes", &["", "1", "100_000"]),
        key("mss_bytes", &["", "100", "9000"]),
    );
    keys.prop_map(|(a, b, c, d, on, e, f, mss)| {
        let off = if on.is_empty() { "" } else { "off_s = 0.03\n" };
        format!("[[flow]]\n{}{off}", [a, b, c, d, on, e, f, mss].concat())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 160, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_radio_is_refused_by_key_or_runs_with_every_seed(
        cell in cells(),
        devices in prop::collection::vec(devices(), 2),
        flows in prop::collection::vec(flows(), 1..4),
        scheme in prop::sample::select(vec![
            "pbe", "biscay", "morc", "bbr", "bbr3", "cubic", "reno", "vegas", "copa", "ledbat", "allegro", "vivace",
            "sprout", "verus", "oracle", "cbr:rate_mbps=30",
        ]),
        seeds in prop::collection::vec(any::<u64>(), 2),
    ) {
        let text = format!("name = \"any\"\nduration_s = 0.3\n{cell}\n{}\n{}", devices.concat(), flows.concat());
        let scenario = match Scenario::load(&text, "any.toml", &[]) {
            Ok(scenario) => scenario,
            Err(error) => {
                let error = error.to_string();
                prop_assert!(error.contains("rtt_ms` is"), "{}", error);
                return Ok(());
            }
        };
        let prepared = scenario.prepare().expect("names no file");
        let scheme = SchemeSpec::parse(scheme).expect("a scheme");
        for seed in seeds {
            let ran = airpace_sim::run_prepared(&prepared, &scheme, seed, &mut Discard, &mut |_: Time| ControlFlow::Continue(()));
            if let Err(error) = ran {
                prop_assert!(error.to_string().contains("download"), "{}", error);
            }
        }
    }
}

#[test]
fn a_phone_that_starts_out_of_coverage_gets_its_data_once_it_has_coverage() {
    for direction in ["down", "up"] {
        let scenario = scenario(&format!(
            "duration_s = 12
            cell.prbs = 50
            device = [{{ radio.channel.sinr_points_db = [[0, -25], [2, -25], [2.2, 20]] }}]
            flow = [{{ rtt_ms = 42, direction = '{direction}' }}]"
        ));
        for scheme in ["pbe", "biscay", "bbr", "cubic", "oracle", "morc"] {
            if (scheme, direction) == ("pbe", "up") {
                continue;
            }
            let (_, notebook) = run(&scenario, scheme, 1);
            let flow = &notebook.flows[0];
            let first_s = flow.arrivals.first().map_or(f64::INFINITY, |arrival| arrival.time_s);
            assert!(first_s >= 2.0, "{scheme} {direction}: something came at {first_s} s, out of coverage");
            let mbps = flow.mbps(9.0, 12.0);
            assert!(mbps > 3.0, "{scheme} {direction}: {mbps} Mbit/s with coverage");
            let least_ms = flow.least_rtt_ms();
            assert!((41.0..60.0).contains(&least_ms), "{scheme} {direction}: least round trip {least_ms} ms");
        }
    }
}

#[test]
fn an_empty_path_takes_as_long_with_every_seed() {
    let scenario = scenario(
        "duration_s = 0.4
        device = [{ radio.channel = { sinr_db = 0, fading = 'epa', shadowing_sigma_db = 4 } }]
        flow = [{ rtt_ms = 42 }]",
    );
    let propagation_ms = |seed: u64| {
        let (_, notebook) = run(&scenario, "cbr:rate_mbps=0.5", seed);
        let arrivals = notebook.flows[0].arrivals.iter();
        arrivals.map(|arrival| arrival.one_way_delay_ms - arrival.queueing_delay_ms).next()
    };
    let all: Vec<f64> = (0..60).filter_map(propagation_ms).collect();
    assert!(all.len() > 40, "with {} seeds of 60 anything came", all.len());
    assert!(all.iter().all(|ms| (ms - all[0]).abs() < 1e-6), "{all:?}");
}
