//! Scenarios as they are named on the command line.

use std::path::Path;

use anyhow::{Context, bail};

use airpace_sim::{Scenario, builtin};

/// The scenario that `argument` names, a built-in one or a file, with these keys set.
///
/// # Errors
/// Names what is wrong, where, and the remedy.
pub fn load(argument: &str, sets: &[(String, String)]) -> anyhow::Result<Scenario> {
    if let Some((_, text)) = builtin().iter().find(|(name, _)| *name == argument) {
        return Ok(Scenario::load(text, argument, sets)?);
    }
    let path = Path::new(argument);
    if !path.exists() {
        bail!("no scenario is called `{argument}`, and no such file exists{}", hint(argument));
    }
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read `{argument}`; give a scenario as a TOML file"))?;
    Ok(Scenario::load(&text, argument, sets)?)
}

/// What the user may have meant.
fn hint(argument: &str) -> String {
    let nearest = builtin()
        .iter()
        .map(|(name, _)| (strsim::damerau_levenshtein(name, argument), *name))
        .min()
        .filter(|(distance, name)| *distance <= name.len() / 2);
    match nearest {
        Some((_, name)) => format!("; did you mean `{name}`?"),
        None => "; `airpace list scenarios` names those that come with the program".to_owned(),
    }
}

/// One `--set`: a key's dotted path and its value.
///
/// # Errors
/// Text without an equals sign.
pub fn key_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err("give KEY=VALUE, for example cell.prbs=50 or flow.0.rtt_ms=162".to_owned()),
    }
}
