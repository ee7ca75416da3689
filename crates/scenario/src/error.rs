//! Errors of scenarios: the place where the value was set, its key, the problem and the remedy.

use std::fmt;

use airpace_core::nearest::nearest;
use airpace_core::{Refused, Remedy};

/// A scenario that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// Place where the value was set.
    pub place: SettingPlace,
    /// The key's dotted path (`flow.0.rtt_ms`); empty if the error concerns the whole file.
    pub key: String,
    /// The problem, and a valid value if there is one.
    pub reason: String,
    /// What the user can do.
    pub remedy: Option<Remedy>,
}

/// Place where a value of a scenario was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingPlace {
    /// There is no scenario.
    Nowhere,
    /// The scenario's file, or a variant in it.
    File(String),
    /// A key that was set from outside.
    Override {
        /// The dotted path of the key.
        key: String,
        /// The value, truncated to a line.
        value: String,
    },
}

impl fmt::Display for SettingPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingPlace::Nowhere => Ok(()),
            SettingPlace::File(file) => f.write_str(file),
            SettingPlace::Override { key, value } => write!(f, "{key}={value}"),
        }
    }
}

impl ScenarioError {
    pub(super) fn new(place: SettingPlace, key: &str, reason: impl Into<String>) -> ScenarioError {
        ScenarioError { place, key: key.to_owned(), reason: reason.into(), remedy: None }
    }

    /// An error about a key of a file.
    pub(super) fn in_file(file: &str, key: &str, reason: impl Into<String>) -> ScenarioError {
        ScenarioError::new(SettingPlace::File(file.to_owned()), key, reason)
    }

    /// An error about a file as a whole.
    pub(super) fn file(place: &str, reason: impl Into<String>) -> ScenarioError {
        ScenarioError::new(SettingPlace::File(place.to_owned()), "", reason)
    }

    /// An error without a scenario.
    pub(super) fn nowhere(reason: impl Into<String>) -> ScenarioError {
        ScenarioError::new(SettingPlace::Nowhere, "", reason)
    }

    /// Adds a remedy.
    pub(super) fn but(self, remedy: Remedy) -> ScenarioError {
        ScenarioError { remedy: Some(remedy), ..self }
    }

    /// Creates an error about text that is not TOML.
    pub(super) fn syntax(file: &str, text: &str, error: &toml::de::Error) -> ScenarioError {
        let line = error.span().map(|span| text[..span.start.min(text.len())].lines().count().max(1));
        let place = line.map_or_else(|| file.to_owned(), |line| format!("{file}:{line}"));
        ScenarioError::file(&place, format!("this is not TOML: {}", error.message()))
    }

    /// Creates an error about a key that does not exist or cannot have its value. `blame` returns the place where a key
    /// was set.
    pub(super) fn typing(
        blame: &dyn Fn(&str) -> SettingPlace,
        error: &serde_path_to_error::Error<toml::de::Error>,
    ) -> ScenarioError {
        let key = dotted(error.path());
        let message = error.inner().message();
        let reason = match UnknownField::read(message) {
            Some(unknown) => unknown.reason(&key),
            None => plain_words(message),
        };
        ScenarioError::new(blame(&key), &key, reason)
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.place == SettingPlace::Nowhere {
            return f.write_str(&self.reason);
        }
        if self.key.is_empty() {
            return write!(f, "{}: {}", self.place, self.reason);
        }
        write!(f, "{}: `{}` {}", self.place, self.key, self.reason)
    }
}

impl std::error::Error for ScenarioError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.remedy.as_ref().map(|remedy| remedy as &(dyn std::error::Error + 'static))
    }
}

impl From<ScenarioError> for Refused {
    fn from(error: ScenarioError) -> Refused {
        let refused = Refused::new(error.to_string());
        match error.remedy {
            Some(remedy) => refused.but(remedy),
            None => refused,
        }
    }
}

/// Rewrites serde's other messages in terms that a scenario's author knows.
fn plain_words(message: &str) -> String {
    if let Some(field) = message.strip_prefix("missing field ") {
        return format!("lacks the key {field}; add it");
    }
    let Some((found, expected)) = message.split_once(", expected ") else { return message.to_owned() };
    let expected = match expected {
        "f64" => "a number",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number",
        "a sequence" => "a list",
        "string only" => "a text",
        _ if expected.starts_with("struct ") || expected == "a map" => "a table of keys",
        _ => expected,
    };
    let found = found
        .replace("invalid type: sequence", "is the wrong type: a list")
        .replace("invalid type: map", "is the wrong type: a table")
        .replace("invalid type: unit variant", "is the wrong type")
        .replace("invalid type:", "is the wrong type:")
        .replace("invalid value:", "is out of range:");
    format!("{}, expected {expected}", shortened(&found))
}

/// Maximum number of characters of a value that a message repeats.
///
/// Chosen: the length of a line of a terminal.
const MAX_SHOWN: usize = 80;

/// Truncates a text that is longer than a line.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Converts `flow[0].rtt_ms` to the form used with `--set`: `flow.0.rtt_ms`.
fn dotted(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    let parts: Vec<String> = path
        .iter()
        .filter_map(|segment| match segment {
            Segment::Seq { index } => Some(index.to_string()),
            Segment::Map { key } => Some(key.clone()),
            Segment::Enum { variant } => Some(variant.clone()),
            Segment::Unknown => None,
        })
        .collect();
    parts.join(".")
}

/// serde's message about a field (or variant) that does not exist, with the names of the existing fields (or variants).
struct UnknownField<'a> {
    is_key: bool,
    wrong: &'a str,
    known: Vec<&'a str>,
}

impl<'a> UnknownField<'a> {
    fn read(message: &'a str) -> Option<UnknownField<'a>> {
        let is_key = message.starts_with("unknown field");
        if !is_key && !message.starts_with("unknown variant") {
            return None;
        }
        let mut names = message.split('`').skip(1).step_by(2);
        let wrong = names.next()?;
        Some(UnknownField { is_key, wrong, known: names.collect() })
    }

    /// Returns the problem with the key at the path `key`, and the remedy.
    fn reason(&self, key: &str) -> String {
        let subject = match self.is_key {
            true => "is not a key".to_owned(),
            false => format!("cannot be `{}`", self.wrong),
        };
        match nearest(self.wrong, self.known.iter().copied()) {
            // The message names keys by their whole path, as used with `--set`.
            Some(known) if self.is_key => {
                let table = key.strip_suffix(self.wrong).unwrap_or_default();
                format!("{subject}; did you mean `{table}{known}`?")
            }
            Some(known) => format!("{subject}; did you mean `{known}`?"),
            None if self.known.is_empty() => format!("{subject}; none is known here"),
            None => format!("{subject}; there are {}", self.known.join(", ")),
        }
    }
}
