//! Properties that must hold for any scenario: it is refused with a text, or runs, in bounded memory and time.

use std::ops::ControlFlow;
use std::time::Duration;

use airpace_core::Time;
use airpace_event::Discard;
use airpace_sim::{Scenario, SchemeSpec, builtin};

use super::choices::Choices;

/// Values at the limits of their ranges.
const ENDS: &[&str] = &[
    "0",
    "-1",
    "1",
    "1e-9",
    "5e-324",
    "1e5",
    "1e9",
    "1e18",
    "1e308",
    "nan",
    "inf",
    "-inf",
    "255",
    "256",
    "65535",
    "65536",
    "4294967295",
    "9223372036854775807",
    "true",
    "\"\"",
    "\"\\u001B[2J\"",
    "\"cbr:rate_mbps=1e9\"",
    "\"cubic:start_packets=1e9\"",
    "[]",
    "[1, 2]",
    "{}",
    "[[1e308]]",
];

/// A built-in scenario with some changed values or bytes, or arbitrary text. If the scenario is valid, it is run for a
/// short time.
pub fn scenario(input: &[u8]) {
    let mut choices = Choices(input);
    let (_, shipped) = choices.of(builtin());
    let mut text = shipped.as_bytes().to_vec();
    let mut sets = vec![];
    match choices.byte() % 4 {
        0 => text = choices.take(choices.0.len()).to_vec(),
        1 => {
            for _ in 0..1 + choices.byte() % 8 {
                let at = choices.below(text.len());
                text[at] = choices.byte();
            }
        }
        _ => {
            let mut table = "";
            let mut whole = vec![];
            for line in shipped.lines() {
                if let Some(name) = line.strip_prefix('[') {
                    table = name.trim_matches(|c| c == '[' || c == ']');
                } else if let Some((key, _)) = line.split_once(" = ") {
                    let list = ["flow", "device"].contains(&table);
                    let table = if list {
                        format!("{table}.0.")
                    } else if table.is_empty() {
                        String::new()
                    } else {
                        format!("{table}.")
                    };
                    whole.push(format!("{table}{key}"));
                }
            }
            for _ in 0..1 + choices.byte() % 3 {
                if whole.is_empty() {
                    break;
                }
                let key = whole[choices.below(whole.len())].clone();
                let value = match choices.byte() {
                    0..200 => choices.of(ENDS).to_owned(),
                    _ => choices.number().to_string(),
                };
                sets.push((key, value));
            }
        }
    }
    let Ok(text) = String::from_utf8(text) else { return };
    let loaded = Scenario::load(&text, "fuzzed.toml", &sets);
    let scenario = match loaded {
        Ok(scenario) => scenario,
        Err(error) => {
            assert!(error.to_string().len() > 10, "{error}");
            return;
        }
    };
    // A trace that a scenario names could be any file of the machine. Scenarios with files are therefore not run; only
    // scenarios with synthetic traces are.
    if scenario.trace.as_ref().is_some_and(|trace| trace.file.is_some() || trace.kpi.is_some()) {
        return;
    }
    let again =
        Scenario::load(&scenario.to_toml(), "again.toml", &[]).expect("what was loaded can be loaded");
    assert_eq!(again.to_toml(), scenario.to_toml());
    let end = Time::ZERO + Duration::from_millis(100);
    let scheme = SchemeSpec::parse(choices.of(&["cubic", "pbe", "biscay"])).expect("a scheme");
    let ran = airpace_sim::run(&scenario, &scheme, 1, &mut Discard, &mut |now| match now >= end {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    });
    if let Err(error) = ran {
        assert!(error.to_string().len() > 10, "{error}");
    }
}
