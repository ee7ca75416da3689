//! Every value of a scenario is either refused with an error that names its key, or runs with bounded memory and time.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::Duration;

use airpace_core::{Rng, Streams, Time};
use airpace_event::Discard;
use airpace_sim::{Scenario, SchemeSpec, builtin};

/// Maximum memory of a scenario and of a tenth of a second of its run, in bytes.
const MAX_BYTES: u64 = 2 << 30;

/// Values that a malicious author could write.
const EXTREMES: &[&str] = &[
    "0",
    "-0.0",
    "-1",
    "1",
    "2",
    "0.5",
    "1e-9",
    "1e-308",
    "5e-324",
    "1e9",
    "1e18",
    "1e308",
    "-1e308",
    "nan",
    "inf",
    "-inf",
    "127",
    "255",
    "256",
    "65535",
    "65536",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "true",
    "false",
    "\"\"",
    "\"cbr:rate_mbps=1e308\"",
    "\"cubic:start_packets=1e18\"",
    "\"../../etc/passwd\"",
    "[]",
    "[1e308]",
    "[[1, 2]]",
    "{}",
];

/// A name that is similar to no key, so that the error lists the existing keys.
const NO_KEY: &str = "qqqqqqqqqqqqqqqqqqqqqqqq";

fn load(text: &str, sets: &[(String, String)]) -> Result<Scenario, airpace_sim::ScenarioError> {
    Scenario::load(text, "extreme.toml", sets)
}

/// Collects every key that can be set below `path`, as listed by errors.
fn keys_below(text: &str, path: &str, keys: &mut BTreeSet<String>) {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    let probe = below(NO_KEY);
    let refusal = load(text, &[(probe.clone(), "1".to_owned())]).expect_err("there is no such key");
    if refusal.key == probe
        && let Some((_, names)) = refusal.reason.split_once("; there are ")
    {
        for name in names.split(", ") {
            // Expectations only judge the results of a run, so the test omits them.
            if name != "expect" {
                keys_below(text, &below(name), keys);
            }
        }
    } else if refusal.reason.contains("is a list of") && load(text, &[(below("0"), "1".to_owned())]).is_err()
    {
        keys.insert(path.to_owned());
        keys_below(text, &below("0"), keys);
    } else {
        keys.insert(path.to_owned());
    }
}

/// Returns built-in scenarios, which together use all kinds of keys, each with its keys.
fn scenarios() -> Vec<(&'static str, String, Vec<String>)> {
    let texts = builtin().iter().map(|(name, text)| {
        // A trace that is recorded needs no other source, but less time.
        let text = match text.contains("[trace.recorded]") {
            true => text.replace("seconds = 10", "seconds = 1"),
            false => text.replace("[trace]", "[trace]\nsynth.mean_mbps = 5\nsynth.seconds = 2"),
        };
        let mut keys = BTreeSet::new();
        keys_below(&text, "", &mut keys);
        (*name, text, keys.into_iter().collect())
    });
    texts.collect()
}

/// Loads a scenario and runs its first tenth of a second.
fn attempt(text: &str, sets: &[(String, String)], scheme: &str) -> String {
    let scenario = match load(text, sets) {
        Ok(scenario) => scenario,
        Err(refusal) => {
            assert!(
                !refusal.reason.is_empty() && !refusal.place.to_string().is_empty(),
                "{sets:?}: {refusal}"
            );
            return refusal.to_string();
        }
    };
    let end = Time::ZERO + Duration::from_millis(100);
    let scheme = SchemeSpec::parse(scheme).expect("a scheme");
    let ran = airpace_sim::run(&scenario, &scheme, 1, &mut Discard, &mut |now| match now >= end {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    });
    match ran {
        Ok(_) => "ran".to_owned(),
        Err(refusal) => refusal.to_string(),
    }
}

/// Does the same as [`attempt`], and checks the peak memory.
fn measured(name: &str, text: &str, sets: &[(String, String)], scheme: &str) {
    let mut told = String::new();
    let memory = allocation_counter::measure(|| told = attempt(text, sets, scheme));
    assert!(memory.bytes_max < MAX_BYTES, "{name} with {sets:?}: {} bytes, and {told}", memory.bytes_max);
}

#[test]
fn the_keys_of_a_scenario_are_found() {
    let all = scenarios();
    let keys: BTreeSet<&str> = all.iter().flat_map(|(.., keys)| keys.iter().map(String::as_str)).collect();
    for known in [
        "duration_s",
        "cell.prbs",
        "flow.0.on_s",
        "trace.synth.seconds",
        "trace.recorded.cell.prbs",
        "internet.rate_mbps",
        "device.0.clock.drift_ppm",
    ] {
        assert!(keys.contains(known), "{known} is not among {keys:?}");
    }
    assert!(keys.len() > 100, "{} keys", keys.len());
}

#[test]
fn every_key_bears_every_extreme_value() {
    // A key of several scenarios is tried in the first of them.
    let mut tried = BTreeSet::new();
    for (name, text, keys) in scenarios() {
        for key in keys.into_iter().filter(|key| tried.insert(key.clone())) {
            for value in EXTREMES {
                let sets = [(key.clone(), (*value).to_owned())];
                let mut told = None;
                let memory = allocation_counter::measure(|| told = Some(load(&text, &sets).map(drop)));
                assert!(memory.bytes_max < MAX_BYTES / 8, "{name} with {sets:?}: {} bytes", memory.bytes_max);
            }
        }
    }
}

#[test]
fn runs_with_extreme_values_are_refused_or_stay_in_bounded_memory() {
    let all = scenarios();
    let rng: &mut Rng = &mut Streams::new(20_261_122).stream("extremes");
    let mut pick = |count: usize| (rng.uniform() * count as f64) as usize % count;
    let schemes = ["cubic", "pbe", "bbr", "biscay", "cbr"];
    let runs = if cfg!(debug_assertions) { 400 } else { 20_000 };
    for _ in 0..runs {
        let (name, text, keys) = &all[pick(all.len())];
        let sets: Vec<(String, String)> = (0..1 + pick(2))
            .map(|_| (keys[pick(keys.len())].clone(), EXTREMES[pick(EXTREMES.len())].to_owned()))
            .collect();
        measured(name, text, &sets, schemes[pick(schemes.len())]);
    }
}

#[test]
fn what_would_fill_the_memory_is_refused_with_its_key_and_its_limit() {
    let (_, trace) = builtin().iter().find(|(name, _)| *name == "trace").expect("a trace");
    let (_, cell) = builtin().iter().find(|(name, _)| *name == "competitor").expect("a cell");
    let refused = |text: &str, sets: &[(&str, &str)], key: &str, limit: &str| {
        let sets: Vec<_> = sets.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let told = attempt(text, &sets, "cubic");
        assert!(told.contains(key) && told.contains(limit), "{sets:?}: {told}");
    };
    refused(cell, &[("flow.1.on_s", "1e-9"), ("flow.1.off_s", "1e-9")], "flow.1.on_s", "0.001");
    refused(
        cell,
        &[("duration_s", "1e6"), ("flow.1.on_s", "0.001"), ("flow.1.off_s", "0.001")],
        "on_s",
        "1000000",
    );
    refused(cell, &[("duration_s", "1e300")], "duration_s", "1000000");
    refused(trace, &[("trace.synth.rate_mbps", "1e308")], "trace.synth.rate_mbps", "100000");
    refused(
        trace,
        &[("trace.synth.mean_mbps", "1e5"), ("trace.synth.seconds", "60")],
        "mean_mbps",
        "50000000",
    );
    refused(
        trace,
        &[("trace.synth.mean_mbps", "0.1"), ("trace.synth.seconds", "4294967295")],
        "trace.synth.seconds",
        "86400",
    );
    let (_, links) = builtin().iter().find(|(name, _)| *name == "biscay-links").expect("recorded links");
    refused(links, &[("trace.recorded.seconds", "4294967295")], "trace.recorded.seconds", "600");
    let flows = format!(
        "name = \"many\"\nduration_s = 1\n[internet]\nrate_mbps = 10\n{}",
        "[[flow]]\nrtt_ms = 9\n".repeat(70_000)
    );
    refused(&flows, &[], "flow", "1000");
    let flood = "name = \"flood\"\nduration_s = 100\n[internet]\nrate_mbps = 1\n[[flow]]\nrtt_ms = 9\n\
                 scheme = \"cubic:start_packets=1e9\"\n";
    let told = attempt(flood, &[], "cubic");
    assert!(told.contains("start_packets") || told.contains("4000000 packets"), "{told}");
}
