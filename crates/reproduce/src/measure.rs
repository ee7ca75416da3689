//! Measurements of this machine in real time, by commands of the program. Another machine gives other numbers.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use airpace_core::Refused;
use airpace_run::RunError;
use airpace_tables::FileError;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// In an argument: the folder of the measurement.
const FOLDER: &str = "{folder}";

/// Name of the file with the measurement's scenario.
const SCENARIO: &str = "scenario.toml";

/// Exit code of a command whose run is invalid, because the machine did not keep up with real time.
const UNFIT: i32 = 3;

/// Maximum size of a result (bytes).
///
/// Chosen: a hundred times the size of the largest one.
const MAX_BYTES: u64 = 64 << 20;

/// A measurement: commands of the program, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Measurement {
    /// Its name, which no other measurement has. Experiments share measurements.
    pub name: &'static str,
    /// About how long it takes (s).
    pub takes_s: u32,
    /// Text of the file `scenario.toml` in the measurement's folder; empty if the commands need none.
    pub scenario: &'static str,
    /// The arguments of each command, separated by spaces. `{folder}` is the measurement's folder.
    pub commands: &'static [&'static str],
    /// The file of the folder that has the result as JSON; empty if the last command prints the result.
    pub result: &'static str,
}

/// Progress of measurements.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// This measurement starts.
    Starts(&'a Measurement),
    /// This measurement has ended.
    Ended(&'a Measurement),
}

/// Result of a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// The time that each command took.
    pub took: Vec<Took>,
    /// The JSON document, or one value for each line of JSON.
    pub result: Vec<Value>,
}

/// Time that a command took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Took {
    /// Time from its start to its end (s).
    pub wall_s: f64,
    /// Processor time of its threads, and of the processes that it started (s).
    pub cpu_s: f64,
}

impl Measured {
    /// The number at a path in the first value, such as `/measurements/0/cpu_percent`.
    ///
    /// Source: RFC 6901 §3 (JSON Pointer)
    pub fn number(&self, path: &str) -> Option<f64> {
        self.result.first()?.pointer(path)?.as_f64()
    }
}

impl Measurement {
    /// The commands as a user types them.
    pub fn as_typed(&self) -> String {
        self.commands.iter().map(|command| typed(command)).collect::<Vec<_>>().join("; ")
    }

    /// Executes the commands of `program`. Their files are in a folder in `beside`, which is removed afterwards.
    ///
    /// # Errors
    /// A command fails, for example because the machine lacks a capability, or its output is no JSON.
    pub fn make(&self, program: &Path, beside: &Path) -> Result<Measured, RunError> {
        fs::create_dir_all(beside).map_err(FileError::write("make the folder", beside))?;
        let folder = tempfile::Builder::new().prefix("measuring-").tempdir_in(beside);
        let folder = folder.map_err(FileError::write("make a folder in", beside))?;
        self.make_in(folder.path(), program)
    }

    fn make_in(&self, folder: &Path, program: &Path) -> Result<Measured, RunError> {
        if !self.scenario.is_empty() {
            let path = folder.join(SCENARIO);
            airpace_files::replace(&path, self.scenario).map_err(FileError::write("write", &path))?;
        }
        let (mut took, mut printed) = (Vec::new(), String::new());
        for (number, command) in self.commands.iter().enumerate() {
            let arguments: Vec<String> = command
                .split_whitespace()
                .map(|word| word.replace(FOLDER, &folder.to_string_lossy()))
                .collect();
            let (time, output) = execute(program, &arguments, folder, number, &typed(command))?;
            took.push(time);
            printed = output;
        }
        let text = match self.result {
            "" => printed,
            name => {
                let path = folder.join(name);
                airpace_files::read_to_string(&path, MAX_BYTES).map_err(FileError::read(&path))?
            }
        };
        let values = serde_json::Deserializer::from_str(&text).into_iter().collect::<Result<Vec<Value>, _>>();
        match values {
            Ok(result) if !result.is_empty() => Ok(Measured { took, result }),
            _ => Err(refused(format!("`{}` gave no JSON", self.as_typed()))),
        }
    }
}

/// A command as a user types it, in the folder of its files.
fn typed(command: &str) -> String {
    format!("airpace {}", command.replace("{folder}/", ""))
}

/// Executes a command in the measurement's folder, and returns its time and its output. `number` is its place among the
/// commands, and `typed` the command in messages.
///
/// The exit code 1 is accepted: the commands report with it that a goal was missed, or that a flow differs.
fn execute(
    program: &Path,
    arguments: &[String],
    folder: &Path,
    number: usize,
    typed: &str,
) -> Result<(Took, String), RunError> {
    let failed = |why: &str| refused(format!("`{typed}` {why}"));
    let [output, errors] = ["output", "errors"].map(|name| folder.join(format!("{name}-{number}")));
    let file = |path: &Path| airpace_files::new_file(path).map_err(FileError::write("write", path));
    let started = Instant::now();
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(file(&output)?)
        .stderr(file(&errors)?)
        .spawn()
        .map_err(|error| failed(&format!("did not start: {error}")))?;
    let cpu_s = processor_time(&child);
    let wall_s = started.elapsed().as_secs_f64();
    let status = child.wait().map_err(|error| failed(&format!("cannot be waited for: {error}")))?;
    let text = |path: &Path| {
        airpace_files::read_to_string(path, MAX_BYTES)
            .map_err(|error| failed(&format!("printed no text: {error}")))
    };
    match (status.code(), cpu_s) {
        (Some(0 | 1), Some(cpu_s)) => Ok((Took { wall_s, cpu_s }, text(&output)?)),
        (Some(0 | 1), None) => Err(failed("has no processor time in /proc")),
        (Some(UNFIT), _) => {
            Err(failed("had no valid run, because the machine did not keep up with real time"))
        }
        _ => {
            // Paths of this machine do not belong on a page.
            let [here, program] = [folder, program].map(|path| path.display().to_string());
            let reason =
                last_line(&text(&errors)?).replace(&format!("{here}/"), "").replace(&program, "airpace");
            Err(failed(&format!("failed: {reason}")))
        }
    }
}

/// The last line of a text that is not empty.
fn last_line(text: &str) -> &str {
    text.lines().rev().find(|line| !line.trim().is_empty()).map_or("it printed no reason", str::trim)
}

/// Waits until a process has ended, and returns its processor time with that of its own processes, in seconds.
///
/// A process that has ended keeps them until its parent has waited for it.
///
/// Source: man-pages proc_pid_stat(5) (fields 14 to 17)
fn processor_time(child: &Child) -> Option<f64> {
    let pid = Pid::from_raw(i32::try_from(child.id()).ok()?)?;
    while waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
        .is_err_and(|error| error == rustix::io::Errno::INTR)
    {}
    let path = format!("/proc/{}/stat", child.id());
    let stat = airpace_files::read_to_string(Path::new(&path), MAX_BYTES).ok()?;
    ticks(&stat).map(|ticks| ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// The sum of the fields 14 to 17 of a line of `/proc/PID/stat`. The second field, the name in brackets, can contain spaces.
fn ticks(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(") ")?;
    let times: Vec<u64> =
        after_name.split(' ').skip(11).take(4).map(str::parse).collect::<Result<_, _>>().ok()?;
    (times.len() == 4).then(|| times.iter().sum())
}

fn refused(what: String) -> RunError {
    RunError::Sweep(Refused::new(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: Measurement = Measurement {
        name: "",
        takes_s: 0,
        scenario: "",
        commands: &["-c cat<{folder}/scenario.toml"],
        result: "",
    };

    fn shell(measurement: Measurement) -> Result<Measured, RunError> {
        let folder = tempfile::tempdir().unwrap();
        measurement.make_in(folder.path(), Path::new("/bin/sh"))
    }

    #[test]
    fn the_result_is_what_the_last_command_prints_or_a_file() {
        let printed = shell(Measurement { scenario: "{\"a\": [1, 2.5]} {\"b\": 3}", ..PRINTED }).unwrap();
        assert_eq!(
            (printed.result.len(), printed.number("/a/1"), printed.number("/b")),
            (2, Some(2.5), None)
        );
        assert_eq!(printed.took.len(), 1);
        let commands = &["-c echo$IFS{folder}>{folder}/log", "-c echo$IFS[7]>{folder}/out.json"];
        let file = shell(Measurement { commands, result: "out.json", ..PRINTED }).unwrap();
        assert_eq!((file.number("/0"), file.took.len()), (Some(7.0), 2));
    }

    #[test]
    fn a_command_that_fails_or_gives_no_json_says_so() {
        let said = |commands| shell(Measurement { commands, ..PRINTED }).unwrap_err().to_string();
        assert!(said(&["-c echo$IFS/root>&2;exit${IFS}2"]).ends_with("failed: /root"), "a reason");
        assert!(said(&["-c exit${IFS}2"]).ends_with("it printed no reason"));
        assert!(said(&["-c exit${IFS}3"]).contains("did not keep up with real time"));
        assert!(said(&["-c echo$IFS{"]).ends_with("gave no JSON"));
        assert!(said(&["-c true"]).ends_with("gave no JSON"));
        let folder = tempfile::tempdir().unwrap();
        let absent = PRINTED.make_in(folder.path(), &folder.path().join("absent")).unwrap_err();
        assert!(absent.to_string().contains("did not start"), "{absent}");
    }

    #[test]
    fn processor_time_is_read_behind_any_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 50 6 7 8 20 0 1 0 100";
        assert_eq!(ticks(stat), Some(50 + 6 + 7 + 8));
        assert_eq!(ticks("7 (a"), None);
        assert_eq!(ticks("7 (a) S 1"), None);
    }
}
