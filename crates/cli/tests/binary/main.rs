//! Tests of the real binary in a temporary folder: the user's commands and their results.

mod agree;
mod completions;
mod decode;
mod decode_pcap;
mod decode_reports;
mod decode_several;
mod decode_tables;
mod diag_bandwidth;
mod diag_decode;
mod diag_encode;
mod diag_guard;
mod diag_info;
mod diag_live;
mod diag_made;
mod diag_modem;
mod diag_pcap;
mod diag_tables;
mod emu;
mod emu_agree;
mod emu_doctor;
mod emu_fit;
mod emu_machine;
mod emu_outside;
mod emu_session;
mod emu_truth;
mod encode;
mod install;
mod kernel;
mod outputs;
#[cfg(feature = "proxy")]
mod proxy;
mod radio;
mod reproduce;
mod runs;
mod samples;
mod screens;
mod sims;
mod sweeps;
mod tools;
mod traces;
mod transfer;
mod video;

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A working folder in which the binary runs.
struct Shell {
    folder: TempDir,
}

impl Shell {
    fn new() -> Shell {
        Shell { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("a file");
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The binary with these arguments, as a command.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_airpace"));
        command
            .args(words)
            .current_dir(self.folder.path())
            .env_remove("AIRPACE_DATA")
            .env("AIRPACE_COMMAND", "airpace")
            .env_remove("AIRPACE_CHECKOUT")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, words: &[&str]) -> Done {
        Done::of(&mut self.command(words), words)
    }

    /// Like [`Shell::run`], with this text on standard input.
    fn run_with_input(&self, words: &[&str], input: &str) -> Done {
        self.write(".input", input);
        let input = std::fs::File::open(self.path(".input")).expect("the input");
        Done::of(self.command(words).stdin(input), words)
    }
}

/// Outcome of a command.
struct Done {
    words: String,
    code: Option<i32>,
    out: String,
    err: String,
}

impl Done {
    fn of(command: &mut Command, words: &[&str]) -> Done {
        let Output { status, stdout, stderr } = command.output().expect("the binary starts");
        Done {
            words: words.join(" "),
            code: status.code(),
            out: String::from_utf8(stdout).expect("output in UTF-8"),
            err: String::from_utf8(stderr).expect("errors in UTF-8"),
        }
    }

    /// Checks that the command has succeeded. Returns the text that the command printed.
    #[track_caller]
    fn fine(self) -> String {
        assert_eq!(self.code, Some(0), "airpace {} fails: {}{}", self.words, self.err, self.out);
        self.out
    }

    /// Checks that the command has failed with a message that contains all of `parts`.
    #[track_caller]
    fn refused(self, parts: &[&str]) -> String {
        assert_eq!(self.code, Some(2), "airpace {} is refused: {}{}", self.words, self.err, self.out);
        for part in parts {
            assert!(self.err.contains(part), "airpace {} says `{part}`, but said: {}", self.words, self.err);
        }
        assert!(!self.err.contains("panicked"), "a refusal is no crash: {}", self.err);
        self.err
    }

    /// Checks that the command has found nothing, with a message that contains all of `parts`.
    #[track_caller]
    fn found_nothing(self, parts: &[&str]) {
        assert_eq!(self.code, Some(1), "airpace {} finds nothing: {}{}", self.words, self.err, self.out);
        for part in parts {
            assert!(self.err.contains(part), "airpace {} says `{part}`, but said: {}", self.words, self.err);
        }
    }

    /// Checks that the command has printed one JSON object per line. Returns the objects.
    #[track_caller]
    fn json(self) -> Vec<Value> {
        let words = self.words.clone();
        let parse = |line: &str| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{words}: {error}: {line}"))
        };
        self.fine().lines().map(parse).collect()
    }
}

/// The keys of an object, sorted.
fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<_> = value.as_object().expect("an object").keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// Folder of the recordings, if it exists.
fn recordings() -> Option<PathBuf> {
    let logs = airpace_testing::recordings("golden_mmlink")?;
    Some(logs.join("..").canonicalize().expect("a folder that is there"))
}
