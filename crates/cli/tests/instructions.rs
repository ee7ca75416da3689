//! Instruction counts of key commands. Unlike a time, a count does not depend on the machine's load.
//!
//! Valgrind counts the instructions of the program that the other tests start. `instructions.toml` contains the last
//! counts. The test fails if a count differs by more than [`TOLERANCE`], whether it is higher or lower. If the change
//! is intended, write the new counts and give the reason in the commit:
//!
//! `CARGO_INCREMENTAL=0 AIRPACE_INSTRUCTIONS=update cargo test -p airpace-cli --test instructions`
//!
//! Counts depend on the compiler, on its codegen units, on the C library, and on the processor, for which libraries
//! select their instructions. They are therefore compared only for builds with `CARGO_INCREMENTAL=0`, which `./test`
//! makes under `CI`, and only if Valgrind and rustc have the versions in the file and the processor is the model in the
//! file; elsewhere the test counts as skipped. Counts are those of the profile `dev`, and correspond to those of the
//! release only roughly.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use airpace_testing::{has_program, skipped};
use serde::{Deserialize, Serialize};

/// Maximum relative change of a count.
const TOLERANCE: f64 = 0.03;

/// Counted commands, by name. They run in this order in one folder.
const COUNTED: [(&str, &str); 7] = [
    (
        "run-fixed-cost",
        "sim stationary-idle --scheme cubic --jobs 1 --quiet --out fixed --set duration_s=0.1",
    ),
    ("run-1-s-cubic", "sim stationary-busy --scheme cubic --jobs 1 --quiet --out cubic --set duration_s=1"),
    ("run-1-s-bbr", "sim stationary-busy --scheme bbr --jobs 1 --quiet --out bbr --set duration_s=1"),
    ("run-1-s-pbe", "sim stationary-busy --scheme pbe --jobs 1 --quiet --out pbe --set duration_s=1"),
    (
        "decoder-in-the-loop",
        "sim decoder-in-the-loop --scheme oracle --jobs 1 --quiet --out decoder --set duration_s=0.2",
    ),
    ("diag-info", "diag info phone.qmdl"),
    ("diag-decode-json", "diag decode phone.qmdl --json"),
];

/// Arguments that only start the program. This cost depends on the features of the build, and is subtracted from each
/// count.
const START: &str = "--version";

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/instructions.toml");

/// Contents of `instructions.toml`.
#[derive(Default, Deserialize, Serialize)]
struct Figures {
    valgrind: String,
    rustc: String,
    processor: String,
    /// Millions of instructions, by name of the command.
    millions: BTreeMap<String, f64>,
}

/// First line of a program's output for `--version`.
fn version(program: &str) -> String {
    let output =
        Command::new(program).arg("--version").output().unwrap_or_else(|error| panic!("{program}: {error}"));
    String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned()
}

/// The first processor of this machine: name, family, model and stepping, as far as the system reports them.
fn processor() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let value = |wanted: &str| {
        let mut lines = cpu.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(name, _)| name.trim() == wanted).map(|(_, value)| value.trim().to_owned())
    };
    ["model name", "cpu family", "model", "stepping"].map(|name| value(name).unwrap_or_default()).join(" ")
}

/// Runs airpace with these arguments under Valgrind. Returns the number of instructions in millions.
fn count(folder: &Path, arguments: &str) -> f64 {
    let log = folder.join("valgrind.log");
    let output = Command::new("valgrind")
        .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
        .arg(format!("--log-file={}", log.display()))
        .arg(env!("CARGO_BIN_EXE_airpace"))
        .args(arguments.split(' '))
        .current_dir(folder)
        // Messages must have the same text for any path of the program.
        .env("AIRPACE_COMMAND", "airpace")
        .output()
        .expect("valgrind");
    // Status 1: an expectation of the scenario failed in such a short run.
    let is_done = matches!(output.status.code(), Some(0 | 1));
    assert!(is_done, "airpace {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    let log = fs::read_to_string(&log).expect("Valgrind's log");
    let total = log.lines().find_map(|line| line.split_once("I   refs:").or(line.split_once("I refs:")));
    let (_, total) = total.unwrap_or_else(|| panic!("no count in Valgrind's log:\n{log}"));
    total.trim().replace(',', "").parse::<f64>().expect("a count") / 1e6
}

#[test]
fn key_commands_cost_the_instructions_on_file() {
    if !has_program("valgrind", "valgrind") {
        return;
    }
    if std::env::var_os("CARGO_INCREMENTAL").is_none_or(|value| value != "0") {
        return skipped("instructions are counted of builds with CARGO_INCREMENTAL=0 only");
    }
    let is_update = std::env::var_os("AIRPACE_INSTRUCTIONS").is_some_and(|value| value == "update");
    let mut figures: Figures = toml::from_str(&fs::read_to_string(FILE).expect(FILE)).expect(FILE);
    let here = (version("valgrind"), version("rustc"), processor());
    if (&figures.valgrind, &figures.rustc, &figures.processor) != (&here.0, &here.1, &here.2) {
        if !is_update {
            return skipped(
                "the instructions on file were counted with another valgrind, rustc or processor",
            );
        }
        let (valgrind, rustc, processor) = here;
        figures = Figures { valgrind, rustc, processor, ..Figures::default() };
    }
    let known = &mut figures.millions;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let sample =
        Command::new(env!("CARGO_BIN_EXE_airpace")).args(["sample", "phone"]).current_dir(&folder).output();
    assert!(sample.expect("airpace").status.success(), "airpace sample phone");
    let start = count(folder.path(), START);
    let mut changes = Vec::new();
    for (name, arguments) in COUNTED {
        let counted = count(folder.path(), arguments) - start;
        let before = known.insert(name.to_owned(), (counted * 10.0).round() / 10.0);
        let change = before.map_or(f64::INFINITY, |before| counted / before - 1.0);
        if change.abs() > TOLERANCE {
            let before = before.map_or_else(|| "nothing".to_owned(), |before| format!("{before:.1} M"));
            changes
                .push(format!("{name}: {counted:.1} M instructions, {before} on file (airpace {arguments})"));
        }
    }
    if is_update {
        known.retain(|name, _| COUNTED.iter().any(|(counted, _)| counted == name));
        return fs::write(FILE, toml::to_string(&figures).expect("plain data")).expect(FILE);
    }
    assert!(changes.is_empty(), "costs have changed by more than 3 %:\n{}", changes.join("\n"));
}
