//! `airpace complete`: completion of command lines. The shells' scripts run it when Tab is pressed.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::Path;

use airpace_cc::scheme::{Preset, Scheme};
use airpace_cc::schemes::SCHEMES;
use airpace_cc::{SchemeSpec, ran};
use airpace_diag::kpi::KPIS;
use airpace_sim::builtin;
use clap::CommandFactory;
use clap_complete::engine::{
    self, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _,
};

use super::Verdict;

/// Prints the possible completions, one per line: the complete word, a tab, and its description.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace complete -- sim comp", hide = true)]
pub struct Args {
    /// The typed words without the program's name; the last word is completed and may be empty.
    #[arg(last = true)]
    words: Vec<OsString>,
}

/// Prints the completions.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let mut words: Vec<OsString> =
        std::iter::once("airpace".into()).chain(args.words.iter().cloned()).collect();
    if args.words.is_empty() {
        words.push(OsString::new());
    }
    let last = words.len() - 1;
    let mut command = crate::Cli::command();
    for candidate in engine::complete(&mut command, words, last, std::env::current_dir().ok().as_deref())? {
        write!(out, "{}", candidate.get_value().display())?;
        if let Some(help) = candidate.get_help().map(ToString::to_string) {
            write!(out, "\t{}", help.lines().next().unwrap_or_default())?;
        }
        writeln!(out)?;
    }
    Ok(Verdict::Fine)
}

/// Completes the names of schemes that the kernel can load.
pub fn in_the_kernel() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let current = current.to_string_lossy();
        let names = [
            ("biscay", "uploads at the rate of the radio's grants"),
            ("biscay@window", "downloads from any server, by the advertised window"),
            ("morc", "a learning sender"),
            ("pbe", "downloads at the capacity that the phone measures"),
        ];
        let named = names.into_iter().filter(|(name, _)| name.starts_with(&*current));
        named.map(|(name, help)| candidate(name, help)).collect()
    })
}

/// Completes one scheme: names, presets behind `@`, options behind `:`.
pub fn scheme() -> ArgValueCompleter {
    scheme_or(Vec::new)
}

/// Completes one word of a list of schemes. Words for groups of schemes are also offered.
pub fn schemes() -> ArgValueCompleter {
    scheme_or(|| {
        vec![
            candidate("all", "every scheme"),
            candidate("presets", "every scheme, with +ran and with every preset"),
        ]
    })
}

fn scheme_or(others: fn() -> Vec<CompletionCandidate>) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let current = current.to_string_lossy();
        let mut candidates: Vec<CompletionCandidate> = match current.rsplit_once(':') {
            // Offer options only if the text before them names a scheme.
            Some((begun, _)) => match SchemeSpec::parse(begun) {
                Ok(spec) => options(spec.scheme(), begun),
                Err(_) => Vec::new(),
            },
            None => SCHEMES.iter().flat_map(|scheme| spellings(scheme)).chain(others()).collect(),
        };
        keep(&mut candidates, &current);
        candidates
    })
}

/// All spellings of a scheme: alone, with `+ran` if the scheme supports it, and with each of its presets, also after
/// `+ran` if supported.
fn spellings(scheme: &Scheme) -> Vec<CompletionCandidate> {
    let mut spellings = vec![];
    let with_ran = scheme.takes_ran.then_some((ran::SUFFIX, ran::SUMMARY));
    for (suffix, summary) in std::iter::once(("", scheme.summary)).chain(with_ran) {
        let name = format!("{}{suffix}", scheme.name);
        let preset = |preset: &Preset| candidate(format!("{name}@{}", preset.name), preset.summary);
        spellings.push(candidate(&name, summary));
        spellings.extend(scheme.presets.iter().map(preset));
    }
    spellings
}

/// Completes the options of `scheme`; `begun` is the typed text that names the scheme.
fn options(scheme: &Scheme, begun: &str) -> Vec<CompletionCandidate> {
    let options = scheme.options.iter();
    options.map(|option| candidate(format!("{begun}:{}=", option.name), option.summary)).collect()
}

/// Completes a scenario: a built-in name, or a TOML file.
pub fn scenario() -> ArgValueCompleter {
    scenario_or(|path| path.extension().is_some_and(|ending| ending == "toml"))
}

/// Completes a scenario, or a file of another kind if `is_wanted` accepts it.
pub fn scenario_or(is_wanted: impl Fn(&Path) -> bool + Clone + Send + Sync + 'static) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let mut candidates: Vec<_> =
            builtin().iter().map(|(name, text)| candidate(*name, &about(text))).collect();
        keep(&mut candidates, &current.to_string_lossy());
        candidates.extend(PathCompleter::any().filter(is_wanted.clone()).complete(current));
        candidates
    })
}

/// The description of a scenario, from its text.
fn about(text: &str) -> String {
    let scenario: toml::Table = text.parse().unwrap_or_default();
    scenario.get("about").and_then(toml::Value::as_str).unwrap_or_default().to_owned()
}

/// Completes the key of `--set KEY=VALUE` with the keys that occur in the built-in scenarios.
pub fn key() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let mut keys: Vec<String> = Vec::new();
        for (_, text) in builtin() {
            collect_keys("", &toml::Value::Table(text.parse().unwrap_or_default()), &mut keys);
        }
        keys.sort();
        keys.dedup();
        let mut candidates: Vec<_> = keys.into_iter().map(|key| candidate(format!("{key}="), "")).collect();
        keep(&mut candidates, &current.to_string_lossy());
        candidates
    })
}

/// Collects the dotted paths of all keys below `value`. A list has keys below it only if its items are tables.
fn collect_keys(path: &str, value: &toml::Value, keys: &mut Vec<String>) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match value {
        toml::Value::Table(table) => {
            // Expectations judge a run; they are not settings.
            for (key, value) in table.iter().filter(|(key, _)| *key != "expect") {
                collect_keys(&below(key), value, keys);
            }
        }
        toml::Value::Array(values) if values.iter().all(toml::Value::is_table) => {
            for (index, value) in values.iter().enumerate() {
                collect_keys(&below(&index.to_string()), value, keys);
            }
        }
        _ => keys.push(path.to_owned()),
    }
}

/// Completes one word of `--kpi`.
pub fn kpi() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let mut candidates: Vec<_> = KPIS.iter().map(|kpi| candidate(kpi.name, kpi.about)).collect();
        keep(&mut candidates, &current.to_string_lossy());
        candidates
    })
}

fn candidate(value: impl Into<OsString>, help: &str) -> CompletionCandidate {
    let help = (!help.is_empty()).then(|| help.to_owned().into());
    CompletionCandidate::new(value).help(help)
}

/// Keeps the candidates that start with the typed text.
fn keep(candidates: &mut Vec<CompletionCandidate>, typed: &str) {
    candidates.retain(|candidate| candidate.get_value().as_encoded_bytes().starts_with(typed.as_bytes()));
}
