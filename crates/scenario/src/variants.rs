//! Variants: several experiments in one file that differ in some keys, like the rows of a paper's table.
//!
//! ```toml
//! [[variant]]
//! name = "slow"
//! set = { "internet.rate_mbps" = 20, "forward.loss" = 0.005 }
//! ```
//!
//! The members of a population ([`crate::population`]) are variants too.

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::overrides;
use crate::population;
use crate::{Scenario, ScenarioError, SettingPlace};

/// Maximum number of variants of a file.
///
/// Chosen: more variants than the table of any paper has rows.
const MAX_VARIANTS: usize = 1_000;

/// The experiments of a scenario's file: its variants or the members of its population, otherwise the scenario itself.
#[derive(Clone, Debug)]
pub struct Variants {
    file: String,
    /// The content of the file without its variants.
    tree: Table,
    list: Vec<Variant>,
}

/// One variant of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Variant {
    /// Suffix of the scenario's name, after a dash, and of the scenario's line for lists (`about`).
    name: String,
    /// Keys that the variant sets, by their dotted paths, with their values.
    #[serde(default)]
    set: Table,
    /// The name of the scenario's file, for errors.
    #[serde(skip)]
    file: String,
}

impl Variants {
    /// Reads the file of a scenario, named `file_name` in errors.
    ///
    /// # Errors
    /// Text that is not TOML; a variant without a name, or with the name of another variant; a population that cannot be
    /// drawn. The error names file, key and remedy.
    pub fn read(text: &str, file_name: &str) -> Result<Variants, ScenarioError> {
        let mut tree: Table =
            text.parse().map_err(|error: toml::de::Error| ScenarioError::syntax(file_name, text, &error))?;
        let listed = tree.remove("variant");
        let list = match (listed, tree.remove("population")) {
            (Some(_), Some(_)) => {
                let reason =
                    "stands beside `variant`; keep one of them, because both list experiments".to_owned();
                return Err(ScenarioError::in_file(file_name, "population", reason));
            }
            (Some(listed), None) => list(listed, file_name)?,
            (None, Some(population)) => {
                let members = population::members(population, file_name)?.into_iter();
                members.map(|(name, set)| Variant { name, set, file: file_name.to_owned() }).collect()
            }
            (None, None) => Vec::new(),
        };
        Ok(Variants { file: file_name.to_owned(), tree, list })
    }

    /// Number of experiments; at least 1.
    pub fn len(&self) -> usize {
        self.list.len().max(1)
    }

    /// Always false: a file without variants is one experiment.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The names of the variants, in the order of the file; none if the file has no variants.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|variant| variant.name.as_str())
    }

    /// The keys that the variant with number `index` sets, by their dotted paths.
    pub fn set(&self, index: usize) -> impl Iterator<Item = (&str, &Value)> {
        let variant = self.list.get(index);
        variant.into_iter().flat_map(|variant| variant.set.iter().map(|(key, value)| (key.as_str(), value)))
    }

    /// The text of one of the keys `name`, `about` and `source` in the file, without the addition of a variant; empty if
    /// the file has no such text.
    pub fn text(&self, key: &str) -> &str {
        self.tree.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// Loads the experiment with number `index`. `sets` are as in [`Scenario::load`]. They are set after the keys of the
    /// variant.
    ///
    /// # Errors
    /// The errors of [`Scenario::load`]; also a number that is too large.
    pub fn load(&self, index: usize, sets: &[(String, String)]) -> Result<Scenario, ScenarioError> {
        let Some(variant) = self.list.get(index) else {
            return match self.list.is_empty() && index == 0 {
                true => Scenario::from_tree(self.tree.clone(), &self.file, sets),
                false => {
                    Err(ScenarioError::file(&self.file, format!("it has no variant with the number {index}")))
                }
            };
        };
        let scenario = Scenario::from_tree(variant.apply(self.tree.clone())?, &self.file, sets);
        // The place of a value from the command line is already correct.
        scenario.map_err(|error| match error.place == SettingPlace::File(self.file.clone()) {
            true => ScenarioError { place: variant.place(), ..error },
            false => error,
        })
    }

    /// The scenario without its variants.
    ///
    /// # Errors
    /// The errors of [`Scenario::load`].
    pub(super) fn load_base(self, sets: &[(String, String)]) -> Result<Scenario, ScenarioError> {
        Scenario::from_tree(self.tree, &self.file, sets)
    }

    /// The list of the variants as `[[variant]]` tables: with this list in place of its population, the file holds the
    /// same experiments.
    pub fn to_toml(&self) -> String {
        #[derive(Serialize)]
        struct Listed<'a> {
            variant: &'a [Variant],
        }
        toml::to_string(&Listed { variant: &self.list }).expect("tables that were read can be written")
    }
}

/// The `[[variant]]` tables of a file.
fn list(listed: Value, file: &str) -> Result<Vec<Variant>, ScenarioError> {
    let Value::Array(listed) = listed else {
        let reason = "is not a list of tables; write each as `[[variant]]` with `name` and `set`".to_owned();
        return Err(ScenarioError::in_file(file, "variant", reason));
    };
    if listed.len() > MAX_VARIANTS {
        let reason = format!("has {} entries; the most are {MAX_VARIANTS}", listed.len());
        return Err(ScenarioError::in_file(file, "variant", reason));
    }
    let mut variants: Vec<Variant> = Vec::with_capacity(listed.len());
    for (index, entry) in listed.into_iter().enumerate() {
        let variant: Variant = entry.try_into().map_err(|error: toml::de::Error| {
            let reason = format!("cannot be read: {}; it has a `name` and a table `set`", error.message());
            ScenarioError::in_file(file, &format!("variant.{index}"), reason)
        })?;
        if let Some(earlier) = variants.iter().position(|other| other.name == variant.name) {
            let reason =
                format!("is `{}`, as is that of variant {earlier}; tables need them apart", variant.name);
            return Err(ScenarioError::in_file(file, &format!("variant.{index}.name"), reason));
        }
        if variant.name.is_empty() {
            let reason = "is empty; it is added to the scenario's name".to_owned();
            return Err(ScenarioError::in_file(file, &format!("variant.{index}.name"), reason));
        }
        variants.push(Variant { file: file.to_owned(), ..variant });
    }
    Ok(variants)
}

impl Variant {
    /// Place of its keys, for errors.
    fn place(&self) -> SettingPlace {
        SettingPlace::File(format!("{}, variant `{}`", self.file, self.name))
    }

    /// Returns the scenario `tree` with this variant's keys and name.
    fn apply(&self, mut tree: Table) -> Result<Table, ScenarioError> {
        for (key, value) in &self.set {
            overrides::set(&mut tree, key, &value.to_string()).map_err(|error| ScenarioError {
                place: self.place(),
                key: key.clone(),
                ..error
            })?;
        }
        for (key, between) in [("name", "-"), ("about", ": ")] {
            let before = tree.get(key).and_then(Value::as_str).unwrap_or_default();
            let text = match before {
                "" => self.name.clone(),
                before => format!("{before}{between}{}", self.name),
            };
            tree.insert(key.to_owned(), Value::String(text));
        }
        Ok(tree)
    }
}

#[cfg(test)]
mod tests {
    use crate::Scenario;

    const TEXT: &str = "name = \"speeds\"\nabout = \"A link\"\nduration_s = 1\n[internet]\nrate_mbps = 10\n\
                        [[flow]]\nrtt_ms = 20\n";

    fn with(variants: &str) -> String {
        format!("{TEXT}{variants}")
    }

    #[test]
    fn each_variant_is_a_scenario_of_its_own() {
        let text = with(
            "[[variant]]\nname = \"slow\"\nset = { \"internet.rate_mbps\" = 2, \"flow.0.label\" = \"one\" }\n\
             [[variant]]\nname = \"as-is\"\n",
        );
        let sets = [("flow.0.rtt_ms".to_owned(), "30".to_owned())];
        let variants = Scenario::load_variants(&text, "speeds.toml", &sets).unwrap();
        let rate = |scenario: &Scenario| scenario.internet.as_ref().unwrap().rate_mbps;
        let seen: Vec<_> =
            variants.iter().map(|one| (one.name.as_str(), one.about.as_str(), rate(one))).collect();
        assert_eq!(seen, [("speeds-slow", "A link: slow", 2.0), ("speeds-as-is", "A link: as-is", 10.0)]);
        assert!(
            variants.iter().all(|one| one.flow[0].rtt_ms == 30.0),
            "what is set from outside holds for all"
        );
        assert_eq!(variants[0].flow[0].label, "one");
        let again = Scenario::load(&variants[0].to_toml(), "run folder", &[]).unwrap();
        assert_eq!(again.name, "speeds-slow", "a variant is written as a scenario");
        assert_eq!(Scenario::load(&text, "speeds.toml", &[]).unwrap().name, "speeds");
        assert_eq!(Scenario::load_variants(TEXT, "speeds.toml", &[]).unwrap()[0].name, "speeds");
    }

    #[test]
    fn a_variant_that_cannot_be_names_key_and_remedy() {
        let error = |variants: &str| {
            Scenario::load_variants(&with(variants), "speeds.toml", &[]).unwrap_err().to_string()
        };
        let cases = [
            (
                "[variant]\nname = \"slow\"\n",
                "`variant` is not a list of tables; write each as `[[variant]]`",
            ),
            ("[[variant]]\nset = {}\n", "`variant.0` cannot be read: missing field `name`"),
            (
                "[[variant]]\nname = \"a\"\n[[variant]]\nname = \"a\"\n",
                "`variant.1.name` is `a`, as is that of variant 0; tables need them apart",
            ),
            (
                "[[variant]]\nname = \"a\"\nset = { \"flow.7.rtt_ms\" = 5 }\n",
                "speeds.toml, variant `a`: `flow.7.rtt_ms` cannot be set",
            ),
            ("[[variant]]\nname = \"a\"\nset = { \"flow.0.rtt\" = 5 }\n", "rtt_ms"),
            ("[[variant]]\nname = \"a b\"\n", "`name` must be letters, digits"),
            ("[[variant]]\nname = \"\"\n", "`variant.0.name` is empty"),
            (
                "[[variant]]\nname = \"a\"\nset = { duration_s = -6 }\n",
                "speeds.toml, variant `a`: `duration_s`",
            ),
        ];
        for (variants, expected) in cases {
            let said = error(variants);
            assert!(said.contains(expected), "{said}");
        }
    }
}
