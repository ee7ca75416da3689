//! Errors of scenarios: the place where the value was set, its key, and the remedy.

use std::fmt;

use airpace_core::nearest::nearest;

/// A scenario that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// Place where the wrong value was set: the scenario's file, or `--set key=value`; empty if no scenario was found.
    pub place: String,
    /// Dotted path of the key with the wrong value (`flow.0.rtt_ms`); empty if the error concerns the whole file.
    pub key: String,
    /// The problem and the remedy.
    pub reason: String,
}

impl ScenarioError {
    pub(super) fn new(place: &str, key: &str, reason: impl Into<String>) -> ScenarioError {
        ScenarioError { place: place.to_owned(), key: key.to_owned(), reason: reason.into() }
    }

    /// Creates an error about text that is not TOML.
    pub(super) fn syntax(file: &str, text: &str, error: &toml::de::Error) -> ScenarioError {
        let line = error.span().map(|span| text[..span.start.min(text.len())].lines().count().max(1));
        let place = line.map_or_else(|| file.to_owned(), |line| format!("{file}:{line}"));
        ScenarioError::new(&place, "", format!("this is not TOML: {}", error.message()))
    }

    /// Creates an error about a key that does not exist or cannot have its value. `blame` returns the place where a key
    /// was set.
    pub(super) fn typing(
        blame: &dyn Fn(&str) -> String,
        error: &serde_path_to_error::Error<toml::de::Error>,
    ) -> ScenarioError {
        let key = dotted(error.path());
        let message = error.inner().message();
        let reason = match UnknownField::read(message) {
            Some(unknown) => unknown.reason(&key),
            None => plain_words(message),
        };
        ScenarioError::new(&blame(&key), &key, reason)
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.place.is_empty() {
            return f.write_str(&self.reason);
        }
        if self.key.is_empty() {
            return write!(f, "{}: {}", self.place, self.reason);
        }
        write!(f, "{}: `{}` {}", self.place, self.key, self.reason)
    }
}

impl std::error::Error for ScenarioError {}

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
