//! `airpace encode`.

use std::process::Stdio;
use std::time::Duration;

use super::Shell;

/// Options for a small cell and a short duration.
const SMALL: [&str; 6] = ["--set", "cell.prbs=25", "--seconds", "0.1", "--set", "cell.crs_ports=1"];

#[test]
fn a_scenarios_grants_become_a_recording_that_the_same_command_makes_again() {
    let shell = Shell::new();
    let encode = |out: &str| {
        let words = ["encode", "competitor", "--out", out, "--snr", "20", "--fading", "eva", "--json"];
        shell.run(&[&words[..], &SMALL].concat()).json().remove(0)
    };
    let object = encode("a");
    assert_eq!(object["subframes"], 100);
    assert!(object["messages"].as_u64() > Some(20), "{object}");
    assert_eq!((object["unsayable"].as_u64(), object["samples_cut"].as_u64()), (Some(0), Some(0)));

    let meta: serde_json::Value = serde_json::from_str(&shell.read("a.sigmf-meta")).unwrap();
    let global = &meta["global"];
    assert_eq!((&global["core:datatype"], &global["core:sample_rate"]), (&"ci16_le".into(), &7.68e6.into()));
    assert_eq!((&global["lte:n_prb"], &global["lte:tx_ports"]), (&25.into(), &1.into()));

    let samples = |name: &str| std::fs::read(shell.path(name)).unwrap();
    let first = samples("a.sigmf-data");
    // The channel model retains the last few samples.
    assert!((760_000..=768_000).contains(&(first.len() / 4)), "{} samples", first.len() / 4);
    encode("b");
    assert!(samples("b.sigmf-data") == first, "the same seed gives the same samples");
}

#[test]
fn a_run_is_run_again_for_its_grants() {
    let shell = Shell::new();
    let set = ["--set", "duration_s=0.2", "--set", "cell.prbs=25", "--set", "cell.crs_ports=1"];
    shell.run(
        &[&["sim", "stationary-idle", "--scheme", "cubic", "--seeds", "3", "--out", "run"][..], &set]
            .concat(),
    );
    let over = ["encode", "run", "--out", "a", "--truth", "run/manifest.json"];
    shell.run(&over).refused(&["--truth run/manifest.json", "over run/manifest.json"]);
    let of_run = ["encode", "run", "--out", "a", "--json", "--format", "cf32_le", "--seconds", "5"];
    let again = shell.run(&of_run);
    assert!(again.err.contains("--seconds 5: the scenario ends after 0.2 s"), "{}", again.err);
    let again = &again.json()[0];
    let of_scenario = [
        "encode",
        "stationary-idle",
        "--scheme",
        "cubic",
        "--seed",
        "3",
        "--out",
        "b",
        "--json",
        "--format",
        "cf32_le",
    ];
    let direct = &shell.run(&[&of_scenario[..], &set].concat()).json()[0];
    assert_eq!(again["messages"], direct["messages"]);
    let samples = |name: &str| std::fs::read(shell.path(name)).unwrap();
    assert!(samples("a.sigmf-data") == samples("b.sigmf-data"), "a run's grants are those of its scenario");
}

#[test]
fn what_cannot_be_sent_is_refused_with_the_remedy() {
    let shell = Shell::new();
    let refused =
        |words: &[&str], part| shell.run(&[&["encode"], words, &["--out", "x"]].concat()).refused(&[part]);
    refused(&["morc-random-loss"], "has no cell");
    refused(&["competitor", "--carrier", "3"], "--carrier 3: the cell has 1");
    refused(&["competitor", "--rate", "1000000"], "multiple of 1.92 million");
    refused(&["competitor", "--rate", "1920000"], "too low for 100 PRB pairs");
    refused(&["competitor", "--pci", "504"], "504");
    refused(&["competitor", "--seconds", "0"], "above 0");
    refused(&["competitor", "--fading", "epo"], "etu");
    refused(&["competitor", "--rate", "63360000"], "up to 61.44 million");
    let said = shell
        .run(&["encode", "competitor", "--seconds", "0.1", "--out", "nowhere/x"])
        .refused(&["nowhere/x"]);
    assert_eq!(said.matches("No such file").count(), 1, "a reason is said once: {said}");
    let truth =
        |path: &str| shell.run(&["encode", "competitor", "--seconds", "0.1", "--out", "x", "--truth", path]);
    truth("x.sigmf-meta").refused(&["--out x.sigmf-meta and --truth x.sigmf-meta are one file"]);
    truth("./x.sigmf-data").refused(&["are one file"]);
    // This duration would give half a petabyte of samples.
    let endless = ["--set", "duration_s=1e6", "--rate", "61440000", "--format", "cf32_le"];
    let said = shell.run(&[&["encode", "competitor", "--out", "x"], &endless[..]].concat());
    let said = said.refused(&["1000000 s need 491.52 TB", "are free there", "--seconds (up to", "ci8"]);
    assert!(!said.contains("Msps"), "it does not begin: {said}");
    assert!(shell.folder.path().read_dir().unwrap().next().is_none(), "nothing is written");
}

#[test]
fn what_is_stopped_leaves_nothing_and_what_was_there_before_stays() {
    let shell = Shell::new();
    let small = ["--set", "cell.prbs=6", "--set", "cell.crs_ports=1", "--out", "a", "--truth", "a.truth"];
    let words = |seconds| [&["encode", "stationary-idle", "--seconds", seconds], &small[..]].concat();
    let done = shell.run(&words("0.02"));
    assert!(done.err.contains("0.02 s at 1.92 Msps: 153.60 kB for a"), "the size is told: {}", done.err);
    done.fine();
    let all = || {
        let mut files: Vec<_> =
            shell.folder.path().read_dir().unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        files.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect::<Vec<_>>()
    };
    let before = all();
    let names: Vec<_> = before.iter().map(|(path, _)| path.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["a.sigmf-data", "a.sigmf-meta", "a.truth"]);

    let mut child = shell.command(&words("60")).stderr(Stdio::piped()).spawn().unwrap();
    let entries = || shell.folder.path().read_dir().unwrap().map(|entry| entry.unwrap());
    let is_begun = |entry: std::fs::DirEntry| {
        airpace_files::unfinished(&entry.file_name()) == Some("a.sigmf-data")
            && entry.metadata().is_ok_and(|about| about.len() > 10_000)
    };
    while !entries().any(is_begun) {
        assert_eq!(child.try_wait().unwrap(), None, "it ended by itself");
        std::thread::sleep(Duration::from_millis(5));
    }
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT)
        .unwrap();
    let stopped = child.wait_with_output().unwrap();
    let said = String::from_utf8(stopped.stderr).unwrap();
    assert_eq!(stopped.status.code(), Some(2), "{said}");
    assert!(said.contains("stopped; nothing was kept"), "{said}");
    assert!(all() == before, "the earlier recording is unchanged");
}

#[test]
fn the_guide_tells_every_option_and_how_to_choose_ports() {
    let help = Shell::new().run(&["encode", "--help"]).fine();
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/radio.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let (_, section) = guide.split_once("## A recording of a simulated cell").expect("a section about it");
    let (_, table) = section.split_once("| --- | --- |").expect("a table of options");
    let table = table.split("\n\n").next().unwrap();
    let options = help.lines().filter_map(|line| {
        let line = line.trim_start();
        let long = line.strip_prefix("--").or_else(|| line.split_once(", --").map(|(_, long)| long))?;
        line.starts_with('-').then(|| format!("`--{}", long.split(' ').next().unwrap_or_default()))
    });
    let options: Vec<_> =
        options.filter(|option| !["`--help", "`--version"].contains(&option.as_str())).collect();
    assert!(options.len() > 15, "{options:?}");
    let missing: Vec<_> = options.iter().filter(|option| !table.contains(option.as_str())).collect();
    assert!(missing.is_empty(), "docs/guide/radio.md has no row for {missing:?}");
    assert!(table.contains("`--set cell.crs_ports=4`"));
}
