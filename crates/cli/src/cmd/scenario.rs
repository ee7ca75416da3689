//! Loads scenarios that are named on the command line.

use airpace_sim::{Scenario, ScenarioError};

/// Loads the scenario that `argument` names (a built-in one or a file), with these keys set.
///
/// # Errors
/// The message contains the defect, its place, and a remedy.
pub fn load(argument: &str, sets: &[(String, String)]) -> anyhow::Result<Scenario> {
    Ok(Scenario::named(argument, sets)?)
}

/// Loads the variants of the scenario that `argument` names, with these keys set. A scenario without variants is
/// returned as the only one.
///
/// # Errors
/// Errors of [`load`].
pub fn load_variants(argument: &str, sets: &[(String, String)]) -> anyhow::Result<Vec<Scenario>> {
    Ok(Scenario::named_variants(argument, sets)?)
}

/// A scenario with the `--set` options that are valid for it.
pub struct Fitted {
    /// The scenario, with these options applied.
    pub scenario: Scenario,
    /// The options that were applied.
    pub set: Sets,
    /// The options that were not applied, each group with the reason.
    pub left_out: Vec<(Sets, String)>,
}

/// Keys and their values.
pub type Sets = Vec<(String, String)>;

/// Loads the scenario that `argument` names with the keys of `own` set, and with the valid keys of `wanted`. Keys of
/// one table, such as `flow.0.on_s` and `flow.0.off_s`, are applied together.
///
/// # Errors
/// The scenario cannot be loaded even without the keys of `wanted`.
pub fn load_fitting(argument: &str, own: &Sets, wanted: &Sets) -> anyhow::Result<Fitted> {
    let mut fitted = Fitted { scenario: load(argument, own)?, set: own.clone(), left_out: Vec::new() };
    for group in by_table(wanted) {
        let set: Sets = fitted.set.iter().chain(&group).cloned().collect();
        match load(argument, &set) {
            Ok(scenario) => (fitted.scenario, fitted.set) = (scenario, set),
            Err(error) => fitted.left_out.push((group, reason(&error))),
        }
    }
    Ok(fitted)
}

/// The reason, without the name of the `--set` option that causes it, which the caller prints.
fn reason(error: &anyhow::Error) -> String {
    match error.downcast_ref::<ScenarioError>() {
        Some(ScenarioError { key, reason, .. }) => format!("`{key}` {reason}"),
        None => format!("{error:#}"),
    }
}

/// The keys grouped by the scenario's tables, in the order of the first key of each group.
fn by_table(sets: &Sets) -> Vec<Sets> {
    let table = |key: &str| key.split('.').next().unwrap_or_default().to_owned();
    let mut groups: Vec<Sets> = Vec::new();
    for set in sets {
        match groups.iter_mut().find(|group| table(&group[0].0) == table(&set.0)) {
            Some(group) => group.push(set.clone()),
            None => groups.push(vec![set.clone()]),
        }
    }
    groups
}

/// Parses one `--set`: the dotted path of a key, and its value.
///
/// # Errors
/// The text has no equals sign, or no key before it.
pub fn key_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err("give KEY=VALUE, for example cell.prbs=50 or flow.0.rtt_ms=162".to_owned()),
    }
}
