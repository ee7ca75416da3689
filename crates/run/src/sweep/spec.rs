//! Specification of a sweep: a scenario, the values of its keys, schemes and seeds; and the file format of sweeps.
//!
//! ```toml
//! scenario = "stationary-idle"      # a built-in name, or a file relative to the folder of this file
//! schemes = ["pbe", "bbr"]          # or "all", or "presets"; default: the schemes of the scenario
//! seeds = "1..20"                   # or [1, 2]; default: 1
//!
//! [set]                             # the last key changes fastest
//! cell.prbs = [25, 50, 100]
//! flow.0.rtt_ms = "10..300/8"       # strings have the syntax of the command line
//! duration_s = 5                    # a single value applies to all runs
//! ```
//!
//! If the scenario has variants or a population, the sweep has the axis `variant` with their names, before the other keys;
//! `[set]` may name some of them (`variant = ["a", "b"]`).

use std::collections::BTreeSet;
use std::path::Path;

use airpace_core::nearest;
use airpace_core::remedy::Refused;
use airpace_sim::{Scenario, SchemeSpec, Variants, builtin};
use serde::{Deserialize, Serialize};
use toml::de::{DeTable, DeValue};

use super::axis::{Axis, quoted, text_of};
use crate::error::RunError;
use crate::flows;
use crate::seeds::Seeds;
use crate::shell;

/// Maximum number of runs of a sweep.
///
/// Chosen: ten thousand hours of a processor at a few seconds per run, and 300 MB of memory for the index of the runs.
pub const MAX_CELLS: u64 = 10_000_000;

/// The name of the axis whose values are the variants of a scenario, or the members of its population.
pub const VARIANT: &str = "variant";

/// Specification of a sweep. It is self-contained except for trace files that the scenario names, so that a remote worker
/// can execute it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Spelling of the scenario: a built-in name or a file.
    pub scenario: String,
    /// The scenario's text.
    pub text: String,
    /// Keys and their values. The last key changes fastest.
    pub set: Vec<Axis>,
    /// The schemes under test, as spelled.
    pub schemes: Vec<String>,
    /// The seeds.
    pub seeds: Vec<u64>,
}

/// Contents of a sweep file.
#[derive(Default)]
struct Written {
    scenario: String,
    set: Vec<Axis>,
    schemes: Vec<String>,
    seeds: Option<Seeds>,
}

impl Spec {
    /// Reads the sweep that `argument` names: a scenario by its built-in name or file, or a sweep file. Keys in `set`
    /// replace those of the file. Schemes and seeds, if given, replace those of the file.
    ///
    /// # Errors
    /// A scenario, scheme, key or value is invalid, or the sweep has more than [`MAX_CELLS`] runs.
    pub fn read(
        argument: &str,
        set: Vec<Axis>,
        schemes: &[String],
        seeds: Option<Seeds>,
    ) -> Result<Spec, RunError> {
        let mut text = Scenario::text_of(argument)?;
        let is_builtin = builtin().iter().any(|(name, _)| *name == argument);
        let mut written = Written { scenario: argument.to_owned(), ..Written::default() };
        if !is_builtin && let Some(sweep) = Written::read(&text, argument)? {
            text = Scenario::text_of(&sweep.scenario)?;
            written = sweep;
        }
        for axis in set {
            match written.set.iter_mut().find(|known| known.key == axis.key) {
                Some(known) => *known = axis,
                None => written.set.push(axis),
            }
        }
        let words = if schemes.is_empty() { &written.schemes } else { schemes };
        let seeds = seeds.or(written.seeds).map_or_else(|| vec![1], |seeds| seeds.as_slice().to_vec());
        Spec::of(written.scenario, text, written.set, words, seeds)
    }

    /// A sweep of the scenario `text`, which is named `scenario` in errors and commands. If `schemes` is empty, the sweep has
    /// the schemes of the scenario.
    ///
    /// # Errors
    /// Errors of [`Spec::read`].
    pub fn of(
        scenario: String,
        text: String,
        mut set: Vec<Axis>,
        schemes: &[String],
        seeds: Vec<u64>,
    ) -> Result<Spec, RunError> {
        let variants = Variants::read(&text, &scenario)?;
        if variants.names().next().is_some() && !set.iter().any(|axis| axis.key == VARIANT) {
            set.insert(0, Axis::of(VARIANT, variants.names().map(quoted))?);
        }
        let spec = Spec { schemes: named(schemes, &variants)?, seeds, scenario, text, set };
        spec.check()?;
        Ok(spec)
    }

    /// Validates a specification that comes from a file or another process.
    ///
    /// # Errors
    /// Errors of [`Spec::read`].
    pub fn check(&self) -> Result<(), RunError> {
        let refuse = |reason: String| Err(RunError::Sweep(reason.into()));
        let variants = Variants::read(&self.text, &self.scenario)?;
        let known: BTreeSet<&str> = variants.names().collect();
        let chosen = self.set.iter().find(|axis| axis.key == VARIANT).map_or(&[][..], |axis| &axis.values);
        if let Some(unknown) =
            chosen.iter().map(|value| text_of(value)).find(|it| !known.contains(it.as_str()))
        {
            let instead = nearest::instead(&unknown, &known.iter().copied().collect::<Vec<_>>(), "there are");
            return refuse(format!("{VARIANT}: `{}` has no variant `{unknown}`{instead}", self.scenario));
        }
        if chosen.is_empty() && !known.is_empty() {
            return refuse(format!("{VARIANT}: the scenario has variants, and the sweep names none"));
        }
        for (at, axis) in self.set.iter().enumerate() {
            Axis::of(&axis.key, axis.values.iter().cloned())?;
            let key = &axis.key;
            if self.set[..at].iter().any(|other| other.key == *key) {
                return refuse(format!("key {key} is set twice; give all its values at once"));
            }
            if flows::is_column(key) || ["cell", "key", "scheme"].contains(&key.as_str()) {
                return refuse(format!(
                    "{key}: the results have a column of this name; sweep a key in it, such as {key}.0.…"
                ));
            }
        }
        Seeds::of(self.seeds.iter().copied())?;
        if self.schemes.is_empty() {
            return refuse("no scheme: name at least one".to_owned());
        }
        let counts = self.set.iter().map(|axis| axis.values.len());
        let counts = counts.chain([self.schemes.len(), self.seeds.len()]).map(|count| count as u64);
        let cells = counts.clone().try_fold(1_u64, u64::checked_mul);
        match cells {
            Some(1..=MAX_CELLS) => Ok(()),
            _ => {
                let product: Vec<String> = counts.map(|count| count.to_string()).collect();
                let is = cells.map_or_else(|| "too many".to_owned(), |cells| cells.to_string());
                refuse(format!(
                    "{} runs are {is}; the most are {MAX_CELLS}: give fewer values or seeds, or several sweeps",
                    product.join(" × ")
                ))
            }
        }
    }

    /// The command that reproduces the results.
    pub fn command(&self) -> String {
        let mut words = vec![crate::manifest::PROGRAM.to_owned(), "sweep".to_owned(), self.scenario.clone()];
        let all = Variants::read(&self.text, &self.scenario).map_or(0, |variants| variants.names().count());
        // Without the option, a sweep has all variants.
        for axis in self.set.iter().filter(|axis| axis.key != VARIANT || axis.values.len() != all) {
            words.extend(["--set".to_owned(), axis.to_string()]);
        }
        words.extend(["--scheme".to_owned(), self.schemes.join(",")]);
        words.extend(["--seeds".to_owned(), shell::seeds_text(&self.seeds)]);
        shell::join(&words)
    }

    /// Number of runs.
    pub fn cells(&self) -> u64 {
        let points: usize = self.set.iter().map(|axis| axis.values.len()).product();
        (points * self.schemes.len() * self.seeds.len()) as u64
    }
}

/// The schemes that `words` name; the schemes of the scenario's first variant if `words` is empty.
fn named(words: &[String], variants: &Variants) -> Result<Vec<String>, RunError> {
    let mut specs = vec![];
    for word in words {
        specs.extend(SchemeSpec::named(word).map_err(|error| RunError::Sweep(error.to_string().into()))?);
    }
    if words.is_empty() {
        specs = variants.load(0, &[])?.schemes().to_vec();
    }
    let mut texts: Vec<String> = vec![];
    for spec in specs {
        if texts.iter().any(|text| text == spec.text()) {
            let what = format!("scheme `{}` is named twice; name it once", spec.text());
            return Err(RunError::Sweep(what.into()));
        }
        texts.push(spec.text().to_owned());
    }
    Ok(texts)
}

impl Written {
    /// Reads a sweep file; `None` if the file is not a sweep file.
    fn read(text: &str, file: &str) -> Result<Option<Written>, RunError> {
        let refuse = |reason: String| RunError::Sweep(format!("{file}: {reason}").into());
        // Invalid TOML is reported later by the parser of scenarios.
        let Ok(tree) = DeTable::parse(text) else { return Ok(None) };
        let tree = tree.into_inner();
        if !tree.contains_key("scenario") {
            return Ok(None);
        }
        let mut written = Written::default();
        for (key, value) in &tree {
            let (key, value, spelled) = (key.get_ref().as_ref(), value.get_ref(), &text[value.span()]);
            match (key, value) {
                ("scenario", DeValue::String(name)) => written.scenario = beside(file, name),
                ("schemes", DeValue::String(words)) => {
                    written.schemes = words.split(',').map(|word| word.trim().to_owned()).collect();
                }
                ("schemes", DeValue::Array(words)) => {
                    let word = |word: &DeValue<'_>| word.as_str().map(str::to_owned);
                    let words: Option<_> = words.iter().map(|each| word(each.get_ref())).collect();
                    written.schemes = words.ok_or_else(|| {
                        refuse("`schemes` has something that is no text; give names in quotes".to_owned())
                    })?;
                }
                ("seeds", DeValue::String(seeds)) => {
                    written.seeds =
                        Some(seeds.parse().map_err(|reason| refuse(format!("`seeds`: {reason}")))?);
                }
                ("seeds", DeValue::Integer(_) | DeValue::Array(_)) => {
                    let seeds = spelled.trim_start_matches('[').trim_end_matches(']');
                    let seeds: String = seeds.chars().filter(|c| !c.is_whitespace()).collect();
                    let seeds = seeds.trim_end_matches(',').parse();
                    written.seeds = Some(seeds.map_err(|reason| refuse(format!("`seeds`: {reason}")))?);
                }
                ("set", DeValue::Table(_)) => {
                    let mut found = vec![];
                    collect("", value, text, (0, 0), &mut found)
                        .map_err(|error| RunError::Sweep(error.at(file)))?;
                    found.sort_by_key(|(place, _)| *place);
                    written.set = found.into_iter().map(|(_, axis)| axis).collect();
                }
                ("scenario" | "schemes" | "seeds" | "set", other) => {
                    return Err(refuse(format!("`{key}` cannot be {}", other.type_str())));
                }
                _ => {
                    let instead = airpace_core::nearest::instead(
                        key,
                        &["scenario", "schemes", "seeds", "set"],
                        "there are",
                    );
                    return Err(refuse(format!("`{key}` is no key of a sweep{instead}")));
                }
            }
        }
        Ok(Some(written))
    }
}

/// Resolves a scenario name inside a sweep file: a file is relative to the folder of the sweep file, a built-in name is
/// unchanged.
fn beside(file: &str, name: &str) -> String {
    let is_builtin = builtin().iter().any(|(known, _)| *known == name);
    match Path::new(file).parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) if !is_builtin => folder.join(name).to_string_lossy().into_owned(),
        _ => name.to_owned(),
    }
}

/// Collects the axes below a table of `[set]`, each with its byte offset in the file.
fn collect(
    path: &str,
    value: &DeValue<'_>,
    text: &str,
    (start, end): (usize, usize),
    found: &mut Vec<(usize, Axis)>,
) -> Result<(), Refused> {
    let axis = match value {
        DeValue::Table(table) => {
            for (key, value) in table {
                let key = key.get_ref();
                let below = if path.is_empty() { key.to_string() } else { format!("{path}.{key}") };
                collect(&below, value.get_ref(), text, (value.span().start, value.span().end), found)?;
            }
            return Ok(());
        }
        DeValue::Array(values) => {
            let one = |value: &toml::Spanned<DeValue<'_>>| match value.get_ref() {
                DeValue::String(text) => text.to_string(),
                _ => text[value.span()].to_owned(),
            };
            Axis::of(path, values.iter().map(one))?
        }
        DeValue::String(values) => Axis::parse(path, values)?,
        _ => Axis::of(path, [text[start..end].to_owned()])?,
    };
    found.push((start, axis));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> Result<Spec, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("it.toml");
        std::fs::write(&path, text).unwrap();
        let name = path.to_str().unwrap();
        Spec::read(name, vec![], &[], None).map_err(|error| error.to_string().replace(name, "it.toml"))
    }

    #[test]
    fn a_file_says_what_options_say() {
        let written = file(
            "scenario = \"stationary-idle\"\nschemes = [\"pbe\", \"bbr\"]\nseeds = \"1..3\"\n[set]\n\
             flow.0.rtt_ms = \"10..300/8\"\ncell.prbs = [ 25, 50,\n 100 ]\nduration_s = 5\n",
        )
        .unwrap();
        let axis = |key, values| Axis::parse(key, values).unwrap();
        let set =
            vec![axis("flow.0.rtt_ms", "10..300/8"), axis("cell.prbs", "25,50,100"), axis("duration_s", "5")];
        let schemes = ["pbe".to_owned(), "bbr".to_owned()];
        let typed = Spec::read("stationary-idle", set, &schemes, Some("1..3".parse().unwrap())).unwrap();
        assert_eq!(written, typed, "keys are in the order of the file");
        assert_eq!(typed.cells(), 8 * 3 * 2 * 3);
        assert_eq!(
            typed.command(),
            "airpace sweep stationary-idle --set \
             flow.0.rtt_ms=10.0,51.4286,92.8571,134.286,175.714,217.143,258.571,300.0 --set cell.prbs=25,50,100 --set \
             duration_s=5 --scheme pbe,bbr --seeds 1..3"
        );
    }

    #[test]
    fn options_take_the_place_of_what_a_file_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("it.toml");
        let text =
            "scenario = \"stationary-idle\"\nseeds = [4, 9]\n[set]\ncell.prbs = [25, 50]\nduration_s = 2\n";
        std::fs::write(&path, text).unwrap();
        let set = vec![Axis::parse("cell.prbs", "100").unwrap()];
        let spec = Spec::read(path.to_str().unwrap(), set, &["cubic".to_owned()], None).unwrap();
        assert_eq!(spec.seeds, [4, 9]);
        assert_eq!(spec.schemes, ["cubic"]);
        let keys: Vec<(&str, usize)> =
            spec.set.iter().map(|axis| (axis.key.as_str(), axis.values.len())).collect();
        assert_eq!(keys, [("cell.prbs", 1), ("duration_s", 1)]);
    }

    #[test]
    fn what_cannot_be_swept_says_why() {
        let said = |rest: &str| file(&format!("scenario = \"stationary-idle\"\n{rest}")).unwrap_err();
        for (rest, expected) in [
            ("scheme = \"pbe\"", "it.toml: `scheme` is no key of a sweep; did you mean `schemes`?"),
            ("schemes = \"pb\"", "did you mean `pbe`?"),
            ("schemes = [\"pbe\", \"pbe\"]", "named twice"),
            ("schemes = [1]", "no text"),
            ("seeds = \"5..1\"", "runs backwards"),
            ("seeds = []", "is not a seed"),
            ("seeds = true", "`seeds` cannot be boolean"),
            ("[set]\ncell.prbs = []", "cell.prbs: no value"),
            ("[set]\nflow = [1, 2]", "flow: the results have a column of this name"),
            (
                "[set]\ncell.prbs = \"1..4000\"\nduration_s = \"1..4000\"",
                "4000 × 4000 × 5 × 1 runs are 80000000; the most are 10000000",
            ),
        ] {
            assert!(said(rest).contains(expected), "{rest}: {}", said(rest));
        }
    }
}
