//! Scenario files: one experiment as one TOML file, with a path, the devices and flows on it, and the expected results.
//!
//! A [`Document`] is the content of the file. A [`Scenario`] is made from the document once: the content is validated,
//! the schemes are parsed and the network is planned. [`Scenario::prepare`] reads the files that the scenario refers
//! to.
//!
//! ```toml
//! name = "stationary-idle"
//! about = "One phone that stands still in an idle cell"
//! source = "PBE-CC §6.2.1"
//! duration_s = 20
//! schemes = ["pbe", "bbr", "cubic", "oracle"]
//!
//! [cell]
//! prbs = 100
//!
//! [[device]]
//!
//! [[flow]]
//! label = "phone"
//! rtt_ms = 42
//!
//! [[expect]]
//! say = "PBE keeps queues short"
//! scheme = "pbe"
//! metric = "queueing_delay_ms.p95"
//! at_most = 30
//! ```
//!
//! Data crosses `[forward]` (a wire per flow), the shared `[internet]` queue and the last hop: a `[cell]`, a `[trace]`,
//! a `[cellular]` link, or none. Data that a device sends (`direction = "up"`) crosses these parts in the opposite
//! order. ACKs return over `[reverse]`, and over the last hop if the last hop has their direction too. Any key can be
//! overridden by its dotted path ([`Scenario::load`]). A scenario with `[[variant]]` tables is several experiments that
//! differ in some keys, and one with a `[population]` many experiments whose keys are drawn at random ([`Variants`]).

#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

use std::ops::Deref;

use airpace_cc::SchemeSpec;
use airpace_path::ConfigError;
pub use airpace_path::recording::{ModemKpis, Recording};

mod builtin;
mod check;
mod document;
mod error;
mod named;
mod overrides;
mod population;
mod prepare;
mod replay;
#[cfg(test)]
mod tests;
mod variants;
mod words;

pub use builtin::builtin;
pub use document::{
    AckPath, BackTrace, CellularHop, CellularWay, ClockConfig, Connection, DecoderConfig, Device, Document,
    Expect, Flow, Heavy, Leg, Light, Misreport, Outage, Part, Proxy, RateChange, RecordedTrace, SynthTrace,
    SynthTrains, TraceHop,
};
pub use error::{ScenarioError, SettingPlace};
pub use prepare::{MAX_RECORDING_BYTES, Prepared};
pub use replay::{KpiReplay, Replay, TraceReplay};
pub use variants::Variants;

use check::Plan;

/// One experiment that can be run after its files are read. The scenario dereferences to the content of its file.
#[derive(Clone, Debug)]
pub struct Scenario {
    document: Document,
    plan: Plan,
    origin: Origin,
}

impl Deref for Scenario {
    type Target = Document;

    fn deref(&self) -> &Document {
        &self.document
    }
}

/// Origin of a scenario.
#[derive(Clone, Debug, Default, PartialEq)]
struct Origin {
    file: String,
    sets: Vec<(String, String)>,
    /// The original TOML tree of the scenario, including overrides.
    tree: toml::Table,
}

impl Scenario {
    /// Reads a scenario. `file_name` is the name of the text's source in errors. `sets` are pairs of a key's dotted path
    /// and its new value (`("flow.0.rtt_ms", "162")`). The value is read as TOML, or as a string if it is not TOML.
    /// Setting a table to a string sets its `file`: `("trace", "FILE")`.
    ///
    /// # Errors
    /// The error names file, key and remedy. The causes are text that is not TOML, a key that does not exist (with the
    /// most similar existing key), a value of the wrong type, and a path that cannot be built.
    pub fn load(text: &str, file_name: &str, sets: &[(String, String)]) -> Result<Scenario, ScenarioError> {
        Variants::read(text, file_name)?.load_base(sets)
    }

    /// Reads the variants of a scenario: one variant for each of its `[[variant]]` tables, or the scenario itself if it
    /// has no such table. The arguments are the same as in [`Scenario::load`], which ignores the variants. The keys of
    /// `sets` are set after the keys of a variant.
    ///
    /// # Errors
    /// The errors of [`Scenario::load`]; also a variant without a name, or with the name of another variant.
    pub fn load_variants(
        text: &str,
        file_name: &str,
        sets: &[(String, String)],
    ) -> Result<Vec<Scenario>, ScenarioError> {
        let variants = Variants::read(text, file_name)?;
        (0..variants.len()).map(|index| variants.load(index, sets)).collect()
    }

    fn from_tree(
        mut tree: toml::Table,
        file_name: &str,
        sets: &[(String, String)],
    ) -> Result<Scenario, ScenarioError> {
        overrides::anchor_files(&mut tree, file_name);
        for (key, value) in sets {
            overrides::set(&mut tree, key, value)?;
        }
        let mut document: Document = serde_path_to_error::deserialize(toml::Value::Table(tree.clone()))
            .map_err(|error| ScenarioError::typing(&|key| overrides::origin(sets, key, file_name), &error))?;
        document.label();
        let origin = Origin { file: file_name.to_owned(), sets: sets.to_vec(), tree };
        document.split_connections().map_err(|error| origin.refuse(error))?;
        let plan = document.plan(&origin).map_err(|error| origin.refuse(error))?;
        Ok(Scenario { document, plan, origin })
    }

    /// The scenario as TOML, including overrides: [`Scenario::load`] can read it. Files that a run writes are left out.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(&overrides::without_outputs(&self.origin.tree))
            .expect("a table that was read can be written")
    }

    /// The schemes that are compared if the user names no scheme; at least one scheme.
    pub fn schemes(&self) -> &[SchemeSpec] {
        &self.plan.schemes
    }

    /// Returns the scheme of flow `flow` in a run in which `under_test` is the scheme under test.
    pub fn scheme_of(&self, flow: usize, under_test: &SchemeSpec) -> SchemeSpec {
        self.plan.own_schemes[flow].as_ref().unwrap_or(under_test).clone()
    }
}

impl Origin {
    /// Whether an override set the key `key`, or set a key in the table `key` and so created the table.
    fn was_set(&self, key: &str) -> bool {
        matches!(overrides::origin(&self.sets, key, ""), SettingPlace::Override { .. })
    }

    /// Converts an error in a link's configuration to an error of this scenario.
    fn refuse(&self, error: ConfigError) -> ScenarioError {
        let key = error.key.replace('[', ".").replace(']', "");
        self.refuse_key(&key, error.reason)
    }

    /// Creates an error about the key `key`.
    fn refuse_key(&self, key: &str, reason: String) -> ScenarioError {
        ScenarioError::new(overrides::origin(&self.sets, key, &self.file), key, reason)
    }
}
