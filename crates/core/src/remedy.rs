//! Remedies of errors: what a user can do, as data that each front end renders in its own words.
//!
//! The `Display` of a library's error states facts. A [`Remedy`] is the last [`source`](Error::source) of the error, so
//! it survives every conversion that keeps sources. It names parameters and tasks of the library; [`explain`] joins facts
//! and remedies in the words of a front end: `out` is `--out` on a command line, and `out=` in Python.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// What a user can do about an error: a sentence with slots for the names that differ between front ends. A serialised
/// remedy does not contain its cause.
///
/// ```
/// use airpace_core::remedy::Remedy;
/// let remedy = Remedy::new("give").parameter("out").text("another folder, or empty this one");
/// assert_eq!(remedy.to_string(), "give `out` another folder, or empty this one");
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Remedy(Box<Content>);

/// The content of a remedy, on the heap: errors with a remedy stay small.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Content {
    parts: Vec<Part>,
    #[serde(skip)]
    cause: Option<Arc<dyn Error + Send + Sync>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Part {
    Text(Cow<'static, str>),
    Parameter { name: Cow<'static, str>, value: Option<Cow<'static, str>> },
    Setting { key: String, value: String },
    Task(UserTask),
    Command(String),
}

/// A task of the project that a remedy recommends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum UserTask {
    /// Runs a scenario in the simulator.
    Simulate,
    /// Runs a sweep of scenarios.
    Sweep,
    /// Lists the schemes.
    ListSchemes,
    /// Lists the built-in scenarios.
    ListScenarios,
    /// Makes a KPI trace from a trace of delivery opportunities.
    MakeKpiTrace,
    /// Sends a file to another machine.
    Send,
    /// Receives files from other machines.
    Receive,
    /// Lists what this machine has: features, receivers, ports.
    Examine,
    /// Lists what this machine has for emulated runs.
    ExamineEmulation,
    /// Serves the reports of a modem to other processes.
    ServeModem,
    /// Shows the reports that the daemon of a modem serves.
    WatchServed,
    /// Adds a scheme to the kernel.
    LoadKernel(String),
    /// Removes a scheme from the kernel.
    UnloadKernel(String),
}

/// Names of parameters, settings and tasks in a front end.
pub trait Words {
    /// A parameter of the function that failed, with the value that it needs, if the remedy states one.
    fn parameter(&self, name: &str, value: Option<&str>) -> String;
    /// A key of a scenario that must be set to `value`.
    fn setting(&self, key: &str, value: &str) -> String;
    /// A task that helps.
    fn task(&self, task: &UserTask) -> String;
    /// A command line of the program (`airpace sweep …`) that helps.
    fn command(&self, line: &str) -> String {
        format!("`{line}`")
    }
}

/// Words without a front end: names as in the library.
struct Plain;

impl Words for Plain {
    fn parameter(&self, name: &str, value: Option<&str>) -> String {
        value.map_or_else(|| format!("`{name}`"), |value| format!("`{name}={value}`"))
    }

    fn setting(&self, key: &str, value: &str) -> String {
        format!("`{key}={value}`")
    }

    fn task(&self, task: &UserTask) -> String {
        task.to_string()
    }
}

/// The task in the library's words.
impl fmt::Display for UserTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UserTask::Simulate => "the simulator",
            UserTask::Sweep => "a sweep",
            UserTask::ListSchemes => "the list of schemes",
            UserTask::ListScenarios => "the list of scenarios",
            UserTask::MakeKpiTrace => "the maker of KPI traces",
            UserTask::Send => "a transfer",
            UserTask::Receive => "the receiver of files",
            UserTask::Examine => "the check of this machine",
            UserTask::ExamineEmulation => "the check of this machine for the emulator",
            UserTask::ServeModem => "the daemon of the modem",
            UserTask::WatchServed => "the reports of the modem's daemon",
            UserTask::LoadKernel(name) => return write!(f, "loading `{name}` into the kernel"),
            UserTask::UnloadKernel(name) => return write!(f, "removing `{name}` from the kernel"),
        })
    }
}

impl Remedy {
    /// A remedy that starts with this text.
    pub fn new(text: impl Into<Cow<'static, str>>) -> Remedy {
        Remedy(Box::new(Content { parts: vec![Part::Text(text.into())], cause: None }))
    }

    /// Appends text. A space separates it from the part before, unless the text starts with a punctuation mark.
    #[must_use]
    pub fn text(self, text: impl Into<Cow<'static, str>>) -> Remedy {
        self.with(Part::Text(text.into()))
    }

    /// Appends the name of a parameter of the library.
    #[must_use]
    pub fn parameter(self, name: impl Into<Cow<'static, str>>) -> Remedy {
        self.with(Part::Parameter { name: name.into(), value: None })
    }

    /// Appends the name of a parameter with a value.
    #[must_use]
    pub fn value(self, name: impl Into<Cow<'static, str>>, value: impl Into<Cow<'static, str>>) -> Remedy {
        self.with(Part::Parameter { name: name.into(), value: Some(value.into()) })
    }

    /// Appends a key of a scenario with a value.
    #[must_use]
    pub fn setting(self, key: impl Into<String>, value: impl Into<String>) -> Remedy {
        self.with(Part::Setting { key: key.into(), value: value.into() })
    }

    /// Appends a task.
    #[must_use]
    pub fn task(self, task: UserTask) -> Remedy {
        self.with(Part::Task(task))
    }

    /// Appends a command line of the program, starting with its name.
    #[must_use]
    pub fn command(self, line: String) -> Remedy {
        self.with(Part::Command(line))
    }

    /// Appends another remedy.
    #[must_use]
    pub fn and(mut self, other: Remedy) -> Remedy {
        self.0.parts.extend(other.0.parts);
        self
    }

    /// Sets the error that lies behind the error with this remedy. It becomes the remedy's source.
    #[must_use]
    pub fn caused_by(mut self, cause: impl Error + Send + Sync + 'static) -> Remedy {
        self.0.cause = Some(Arc::new(cause));
        self
    }

    /// The remedy in the words of a front end.
    pub fn render(&self, words: &dyn Words) -> String {
        let mut out = String::new();
        for part in &self.0.parts {
            let part = match part {
                Part::Text(text) => Cow::Borrowed(&**text),
                Part::Parameter { name, value } => words.parameter(name, value.as_deref()).into(),
                Part::Setting { key, value } => words.setting(key, value).into(),
                Part::Task(task) => words.task(task).into(),
                Part::Command(line) => words.command(line).into(),
            };
            if !out.is_empty() && !out.ends_with('(') && !part.starts_with([',', ';', ':', '.', ')', '?']) {
                out.push(' ');
            }
            out.push_str(&part);
        }
        out
    }

    fn with(mut self, part: Part) -> Remedy {
        self.0.parts.push(part);
        self
    }
}

impl From<String> for Remedy {
    fn from(text: String) -> Remedy {
        Remedy::new(text)
    }
}

impl From<&str> for Remedy {
    fn from(text: &str) -> Remedy {
        Remedy::new(text.to_owned())
    }
}

/// Two remedies are equal if their texts and names are equal. Their causes are not compared.
impl PartialEq for Remedy {
    fn eq(&self, other: &Remedy) -> bool {
        self.0.parts == other.0.parts
    }
}

impl Eq for Remedy {}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(&Plain))
    }
}

impl Error for Remedy {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.cause.as_deref().map(|cause| cause as &(dyn Error + 'static))
    }
}

/// An error whose facts are one sentence, with or without a remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    what: String,
    remedy: Option<Remedy>,
}

impl Refused {
    /// An error with these facts.
    pub fn new(what: impl Into<String>) -> Refused {
        Refused { what: what.into(), remedy: None }
    }

    /// The facts and remedies of another error and of its sources.
    pub fn of(error: &(dyn Error + 'static)) -> Refused {
        let (what, remedies) = parts(error);
        let remedy = remedies.into_iter().cloned().reduce(|one, other| one.text(";").and(other));
        Refused { what, remedy }
    }

    /// Adds a remedy.
    #[must_use]
    pub fn but(self, remedy: Remedy) -> Refused {
        Refused { remedy: Some(remedy), ..self }
    }

    /// The same error with its place before the facts: `place: facts`.
    #[must_use]
    pub fn at(self, place: impl fmt::Display) -> Refused {
        Refused { what: format!("{place}: {}", self.what), ..self }
    }
}

impl From<String> for Refused {
    fn from(what: String) -> Refused {
        Refused::new(what)
    }
}

impl From<&str> for Refused {
    fn from(what: &str) -> Refused {
        Refused::new(what)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl Error for Refused {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.remedy.as_ref().map(|remedy| remedy as &(dyn Error + 'static))
    }
}

/// The facts of an error and of its sources, separated by colons, and its remedies.
fn parts<'e>(error: &'e (dyn Error + 'static)) -> (String, Vec<&'e Remedy>) {
    let (mut facts, mut remedies) = (String::new(), vec![]);
    let mut cause = Some(error);
    while let Some(error) = cause {
        match error.downcast_ref::<Remedy>() {
            Some(remedy) => remedies.push(remedy),
            None if facts.is_empty() => facts = error.to_string(),
            None => facts += &format!(": {error}"),
        }
        cause = error.source();
    }
    (facts, remedies)
}

/// The facts of an error and of its sources, separated by colons, and then its remedies, each after a semicolon.
pub fn explain(error: &(dyn Error + 'static), words: &dyn Words) -> String {
    let (facts, remedies) = parts(error);
    remedies.iter().fold(facts, |text, remedy| format!("{text}; {}", remedy.render(words)))
}

/// The facts and remedies of an error in the library's own words.
pub fn explain_plainly(error: &(dyn Error + 'static)) -> String {
    explain(error, &Plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Options;

    impl Words for Options {
        fn parameter(&self, name: &str, value: Option<&str>) -> String {
            format!("--{name}{}", value.map(|value| format!(" {value}")).unwrap_or_default())
        }

        fn setting(&self, key: &str, value: &str) -> String {
            format!("`--set {key}={value}`")
        }

        fn task(&self, task: &UserTask) -> String {
            format!("`program {task:?}`")
        }
    }

    #[test]
    fn names_in_a_remedy_are_those_of_the_front_end() {
        let remedy = Remedy::new("use")
            .value("far", "own")
            .text(", set")
            .setting("cell.prbs", "50")
            .text("(see")
            .task(UserTask::ListScenarios)
            .text(") or leave")
            .parameter("out")
            .text("out");
        assert_eq!(
            remedy.render(&Options),
            "use --far own, set `--set cell.prbs=50` (see `program ListScenarios`) or leave --out out"
        );
        assert_eq!(
            remedy.to_string(),
            "use `far=own`, set `cell.prbs=50` (see the list of scenarios) or leave `out` out"
        );
    }

    #[test]
    fn an_explanation_has_the_facts_first_and_the_remedy_last() {
        let full = std::io::Error::other("disk full");
        let error = Refused::new("cannot write `x`")
            .but(Remedy::new("give another").parameter("out").caused_by(full));
        assert_eq!(explain(&error, &Options), "cannot write `x`: disk full; give another --out");
        assert_eq!(
            explain_plainly(&error.at("run 3")),
            "run 3: cannot write `x`: disk full; give another `out`"
        );
        assert_eq!(explain(&Refused::new("no"), &Options), "no");
    }
}
