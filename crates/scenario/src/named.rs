//! Loading of scenarios by the name of a built-in scenario, or by a file.

use std::fs::File;
use std::path::Path;

use airpace_core::nearest::nearest;
use airpace_core::remedy::{Remedy, UserTask};

use crate::{Scenario, ScenarioError, builtin};

/// Maximum length of a scenario's file in bytes. A stranger may have written the file, and its TOML tree takes fifty
/// times as much memory as the file.
///
/// Chosen: a hundred times the length of the longest built-in scenario.
const MAX_BYTES: u64 = 1 << 20;

impl Scenario {
    /// Loads the scenario `argument`, a built-in scenario or a file, with the keys of `sets` set as in
    /// [`Scenario::load`].
    ///
    /// # Errors
    /// The errors of [`Scenario::load`]; also a name of neither a scenario nor a file, or a file that cannot be read.
    pub fn named(argument: &str, sets: &[(String, String)]) -> Result<Scenario, ScenarioError> {
        Scenario::load(&Scenario::text_of(argument)?, argument, sets)
    }

    /// Loads the variants of the scenario `argument`, with the keys of `sets` set; the scenario itself if it has no
    /// variants.
    ///
    /// # Errors
    /// The errors of [`Scenario::named`] and [`Scenario::load_variants`].
    pub fn named_variants(argument: &str, sets: &[(String, String)]) -> Result<Vec<Scenario>, ScenarioError> {
        Scenario::load_variants(&Scenario::text_of(argument)?, argument, sets)
    }

    /// Returns the text of the scenario `argument`.
    ///
    /// # Errors
    /// A name of neither a scenario nor a file, or a file that cannot be read.
    pub fn text_of(argument: &str) -> Result<String, ScenarioError> {
        if let Some((_, text)) = builtin().iter().find(|(name, _)| *name == argument) {
            return Ok((*text).to_owned());
        }
        let path = Path::new(argument);
        if !path.exists() {
            let reason = format!("no scenario is called `{argument}`, and no such file exists");
            return Err(match meant(argument) {
                Some(meant) => ScenarioError::nowhere(format!("{reason}; did you mean {meant}?")),
                None => ScenarioError::nowhere(reason)
                    .but(Remedy::new("the built-in scenarios are in").task(UserTask::ListScenarios)),
            });
        }
        let read = File::open(path).and_then(|file| airpace_files::text_at_most(file, MAX_BYTES));
        read.map_err(|error| {
            let remedy = Remedy::new("give a scenario as a TOML file").caused_by(error);
            ScenarioError::nowhere(format!("cannot read `{argument}`")).but(remedy)
        })
    }
}

/// The names that the user may have meant, as `a` or `b`.
fn meant(argument: &str) -> Option<String> {
    let names = || builtin().iter().map(|(name, _)| *name);
    let begun: Vec<String> =
        names().filter(|name| name.starts_with(argument)).map(|name| format!("`{name}`")).collect();
    match nearest(argument, names()) {
        _ if !begun.is_empty() && !argument.is_empty() => Some(begun.join(" or ")),
        name => name.map(|name| format!("`{name}`")),
    }
}

#[cfg(test)]
mod tests {
    use airpace_core::remedy::explain_plainly;

    use super::*;

    #[test]
    fn a_name_that_nothing_has_is_answered_with_the_nearest() {
        let error = Scenario::named("competitr", &[]).expect_err("no scenario has this name").to_string();
        assert!(error.starts_with("no scenario is called `competitr`"), "{error}");
        assert!(error.contains("did you mean `competitor`?"), "{error}");
        let begun = Scenario::named("stationary", &[]).expect_err("two begin so").to_string();
        assert!(begun.contains("`stationary-idle` or `stationary-busy`"), "{begun}");
    }

    #[test]
    fn a_file_that_is_no_scenario_is_not_read_to_its_end() {
        let endless = explain_plainly(&Scenario::named("/dev/zero", &[]).expect_err("no end"));
        assert!(endless.contains("more than 1048576 bytes"), "{endless}");
    }

    #[test]
    fn keys_are_set_in_what_is_named() {
        let set = [("cell.prbs".to_owned(), "50".to_owned())];
        let scenario = Scenario::named("stationary-idle", &set).expect("a built-in scenario");
        assert!(scenario.to_toml().contains("prbs = 50"), "{}", scenario.to_toml());
    }
}
