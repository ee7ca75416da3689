//! Errors in the words of the command line: facts, then remedies with the program's options and commands.

use std::error::Error;
use std::fmt;

use airpace_core::remedy::{UserTask, Words, explain};
use airpace_core::{Refused, Remedy};
use airpace_modem::daemon::StartError;
use airpace_modem::watch::WatchError;

use crate::called;

/// Names of options and commands.
struct CommandLine;

impl Words for CommandLine {
    /// A parameter is the option with its name. Keys of scenarios, which contain a dot, are set with `--set`. A trace's
    /// column is a key in a scenario, and has two options if a command line has two traces.
    fn parameter(&self, name: &str, value: Option<&str>) -> String {
        match value {
            None if name == "column" => {
                "--column (in a scenario: --set trace.column=NAME; for `emu link`: --downlink-column, --uplink-column)"
                    .to_owned()
            }
            _ if name.contains('.') => format!("`--set {name}={}`", value.unwrap_or("VALUE")),
            Some(value) => format!("--{} {value}", name.replace('_', "-")),
            None => format!("--{}", name.replace('_', "-")),
        }
    }

    fn setting(&self, key: &str, value: &str) -> String {
        // Without a scenario on the command line, an option stands for the key.
        let option = if key.ends_with(".allow_holes") {
            ", or --allow-holes of `emu link` and `emu cellular`"
        } else {
            ""
        };
        format!("`--set {key}={value}`{option}")
    }

    fn task(&self, task: &UserTask) -> String {
        let words = match task {
            UserTask::Simulate => "sim",
            UserTask::Sweep => "sweep",
            UserTask::ListSchemes => "list schemes",
            UserTask::ListScenarios => "list scenarios",
            UserTask::MakeKpiTrace => "trace kpi",
            UserTask::Send => "send",
            UserTask::Receive => "recv",
            UserTask::Examine => "doctor",
            UserTask::ExamineEmulation => "doctor --emu",
            UserTask::ServeModem => "diag serve",
            UserTask::WatchServed => "diag watch --od",
            UserTask::LoadKernel(name) => return called::command(&format!("kernel load {name}")),
            UserTask::UnloadKernel(name) => return called::command(&format!("kernel unload {name}")),
            // A task that the command line does not know yet has the library's name.
            other => return other.to_string(),
        };
        called::command(words)
    }

    fn command(&self, line: &str) -> String {
        called::typed(line)
    }
}

/// The facts and the remedies of an error, on one line.
pub fn explained(error: &(dyn Error + 'static)) -> String {
    let text = explain(error, &CommandLine);
    let mut causes = std::iter::successors(Some(error), |error: &&(dyn Error + 'static)| (*error).source());
    match causes.find_map(od_error).and_then(of_od) {
        Some(remedy) => format!("{text}; {}", remedy.render(&CommandLine)),
        None => text,
    }
}

/// An error that states the failed operation, then its cause, then a remedy.
pub fn failed(
    doing: impl fmt::Display,
    cause: &(dyn Error + 'static),
    remedy: impl Into<String>,
) -> anyhow::Error {
    Refused::of(cause).at(doing).but(Remedy::new(remedy.into())).into()
}

/// The error of libOD that a cause is or stands for.
fn od_error<'e>(cause: &'e (dyn Error + 'static)) -> Option<&'e od::Error> {
    if let Some(StartError::Board(error)) = cause.downcast_ref() {
        return Some(error);
    }
    if let Some(WatchError::Daemon(error)) = cause.downcast_ref() {
        return Some(error);
    }
    cause.downcast_ref()
}

/// The remedy for an error of libOD, which has no remedies of its own: programs in C use it too.
fn of_od(error: &od::Error) -> Option<Remedy> {
    match error {
        od::Error::NoDaemon { .. } => Some(Remedy::new("start one with").task(UserTask::ServeModem)),
        od::Error::InUse { .. } | od::Error::Folder { .. } | od::Error::Path { .. } => {
            Some(Remedy::new("give the daemon another folder by").parameter("dir").text("or OD_DIR"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remedy_names_options_and_commands() {
        let remedy = Remedy::new("give")
            .parameter("allow_pull")
            .text("or")
            .value("far", "own")
            .text("(see")
            .task(UserTask::ListSchemes)
            .text("), or set")
            .parameter("device.N.reports");
        let expected = format!(
            "no; give --allow-pull or --far own (see {}), or set `--set device.N.reports=VALUE`",
            called::command("list schemes")
        );
        assert_eq!(explained(&Refused::new("no").but(remedy)), expected);
    }
}
