//! `airpace runs`.

use std::os::unix::fs::symlink;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use super::{Shell, keys};

/// A scenario of 1.5 s over a wire.
const SMALL: &str = "name = \"small\"\nduration_s = 1.5\n[internet]\nrate_mbps = 10\nbuffer.ms = 100\n\
                     [[flow]]\nlabel = \"phone\"\nrtt_ms = 20\n";

impl Shell {
    /// Creates a folder with four runs. The first was started long ago, and the second is incomplete.
    fn with_runs() -> Shell {
        let shell = Shell::new();
        shell.write("small.toml", SMALL);
        for _ in 0..4 {
            shell.run(&["sim", "small.toml", "--scheme", "reno", "--seeds", "1..2", "--quiet"]).fine();
        }
        shell.change_manifest("small-001", |manifest| manifest["host"]["started_unix_s"] = 1_000_000.into());
        shell.change_manifest("small-002", |manifest| manifest["complete"] = false.into());
        shell
    }

    fn change_manifest(&self, run: &str, change: impl Fn(&mut Value)) {
        let name = format!("runs/{run}/manifest.json");
        let mut manifest: Value = serde_json::from_str(&self.read(&name)).unwrap();
        change(&mut manifest);
        self.write(&name, &manifest.to_string());
    }

    fn runs(&self) -> Vec<String> {
        let listed = self.run(&["runs", "--json"]).json();
        listed.iter().map(|run| run["name"].as_str().unwrap().to_owned()).collect()
    }
}

#[test]
fn runs_are_listed_for_people_and_programs() {
    let shell = Shell::new();
    assert!(shell.run(&["runs"]).fine().contains("No run folders in `runs`"), "nothing was run yet");
    shell.run(&["runs", "--in", "nowhere"]).refused(&["nowhere", "--in"]);

    let shell = Shell::with_runs();
    std::fs::create_dir_all(shell.path("runs/letters")).unwrap();
    let listed = shell.run(&["runs", "--json"]).json();
    let states: Vec<_> = listed.iter().map(|run| (run["name"].clone(), run["state"].clone())).collect();
    let expected = [1, 2, 3, 4].map(|number| {
        let state = if number == 2 { "incomplete" } else { "complete" };
        (format!("small-00{number}").into(), state.into())
    });
    assert_eq!(states, expected, "the oldest first, no letters, no link");
    // The program was killed after it had written the manifest.
    std::fs::rename(shell.path("runs/small-003/report.html"), shell.path("kept")).unwrap();
    assert_eq!(shell.run(&["runs", "--json"]).json()[2]["state"], "without page");
    shell.run(&["report", "runs/small-003"]).fine();
    assert_eq!(shell.run(&["runs", "--json"]).json()[2]["state"], "complete");
    assert_eq!(
        keys(&listed[0]),
        [
            "bytes",
            "command",
            "folder",
            "latest",
            "name",
            "scenarios",
            "schemes",
            "seeds",
            "started_unix_s",
            "state"
        ]
    );
    assert!(listed[0]["bytes"].as_u64() > Some(100_000), "a report alone is larger: {}", listed[0]);
    assert_eq!(listed.iter().filter(|run| run["latest"] == true).count(), 1);
    assert_eq!(listed[3]["latest"], true);

    let told = shell.run(&["runs"]).fine();
    for part in [
        "small-001  1970-01-12 13:46 UTC, complete",
        "small-004",
        ", latest",
        "small; reno; seeds 1..2",
        "sim small.toml --scheme reno --seeds 1..2",
        "4 run folders in `runs`",
    ] {
        assert!(told.contains(part), "it tells `{part}`: {told}");
    }
}

#[test]
fn prune_removes_what_it_was_told_to_and_asks_first() {
    let shell = Shell::with_runs();
    let all = shell.runs();
    shell.run(&["runs", "prune"]).refused(&["--incomplete", "--older-than", "--keep"]);
    shell.run(&["runs", "prune", "--keep", "0"]).refused(&["--yes", "--dry-run"]);
    let told = shell.run(&["runs", "prune", "--keep", "0", "--dry-run"]).fine();
    assert!(told.contains("3 run folders") && !told.contains("small-004"), "not the latest: {told}");
    assert_eq!(shell.runs(), all, "nothing is gone yet");

    let told = shell.run(&["runs", "prune", "--keep", "2", "--older-than", "30", "--yes"]).fine();
    assert!(told.contains("1 run folder removed"), "{told}");
    assert_eq!(
        shell.runs(),
        ["small-002", "small-003", "small-004"],
        "the runs that are old and not among the newest two are removed"
    );
    let removed = shell.run(&["runs", "prune", "--incomplete", "--yes", "--json"]).json();
    assert_eq!((&removed[0]["name"], &removed[0]["removed"]), (&"small-002".into(), &true.into()));
    assert_eq!(shell.runs(), ["small-003", "small-004"]);
    shell.change_manifest("small-004", |manifest| manifest["complete"] = false.into());
    shell.run(&["runs", "prune", "--incomplete", "--yes"]).fine();
    assert_eq!(shell.runs(), ["small-003"], "the one that `latest` leads to is removed if it is incomplete");
    let latest = std::fs::read_link(shell.path("runs/latest")).expect("a link");
    assert_eq!(latest, std::path::Path::new("small-003"), "it leads to the newest that stays");
    shell.run(&["runs", "prune", "--keep", "0", "--latest", "--yes"]).fine();
    assert!(shell.runs().is_empty());
    assert!(!shell.path("runs/latest").is_symlink(), "a link that leads nowhere goes too");
}

#[test]
fn prune_leaves_alone_what_is_not_a_runs() {
    let shell = Shell::with_runs();
    shell.write("precious", "mine");
    std::fs::create_dir_all(shell.path("runs/letters")).unwrap();
    shell.write("runs/letters/one", "mine");
    shell.write("runs/small-001/notes.txt", "mine");
    // Move a run and the packet tables of another run out of the folder, and leave links in their places.
    std::fs::rename(shell.path("runs/small-003"), shell.path("elsewhere")).unwrap();
    symlink(shell.path("elsewhere"), shell.path("runs/small-003")).unwrap();
    std::fs::rename(shell.path("runs/small-002/packets"), shell.path("packets")).unwrap();
    symlink(shell.path("packets"), shell.path("runs/small-002/packets")).unwrap();

    let done = shell.run(&["runs", "prune", "--keep", "0", "--latest", "--yes"]);
    assert_eq!(done.code, Some(1), "two folders could not go: {}{}", done.out, done.err);
    assert!(done.err.contains("small-001") && done.err.contains("other files stay"), "{}", done.err);
    assert_eq!(shell.read("runs/small-001/notes.txt"), "mine");
    assert!(!shell.path("runs/small-001/manifest.json").exists(), "the run in it is gone");
    assert_eq!(shell.read("runs/letters/one"), "mine");
    assert!(shell.path("elsewhere/manifest.json").is_file(), "the target of a link stays");
    assert!(
        shell.path("packets").read_dir().unwrap().next().is_some(),
        "the target of a link in a run stays too"
    );
    assert!(
        shell.path("runs/small-002/packets").is_symlink() && done.err.contains("small-002"),
        "{}",
        done.err
    );
    assert!(!shell.path("runs/small-002/manifest.json").exists(), "the run in it is gone");
}

#[test]
fn a_run_that_is_going_on_is_not_removed_and_its_folder_is_nobody_elses() {
    let shell = Shell::new();
    shell.write("small.toml", SMALL);
    let words = ["sim", "small.toml", "--scheme", "reno", "--set", "duration_s=100000", "--quiet"];
    let mut child = shell.command(&words).stderr(Stdio::null()).spawn().expect("the binary starts");
    while !shell.path("runs/small-001/manifest.json").exists() {
        assert_eq!(child.try_wait().expect("its state"), None, "so long a run does not end by itself");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(shell.run(&["runs", "--json"]).json()[0]["state"], "running");
    let told = shell.run(&["runs", "prune", "--incomplete", "--latest", "--yes"]).fine();
    assert!(told.contains("None of 1 run folder would go"), "{told}");
    shell
        .run(&["sim", "small.toml", "--scheme", "reno", "--out", "runs/small-001"])
        .refused(&["another run writes", "--out"]);
    assert!(shell.path("runs/small-001/manifest.json").exists());
    child.kill().expect("it is stopped");
    child.wait().expect("it ends");
    assert_eq!(shell.run(&["runs", "--json"]).json()[0]["state"], "incomplete", "the lock is gone");
    shell.run(&["runs", "prune", "--incomplete", "--yes"]).fine();
    assert!(shell.runs().is_empty());
}
