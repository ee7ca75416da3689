//! `airpace sweep`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use super::Shell;

/// A scenario of 1 s over a wire.
const SMALL: &str = "name = \"small\"\nduration_s = 1\n[internet]\nrate_mbps = 10\nbuffer.ms = 100\n\
                     [[flow]]\nlabel = \"phone\"\nrtt_ms = 20\n";

/// Parameter matrix of the sweep: 2 × 3 points, two schemes, two seeds.
const MATRIX: [&str; 8] = [
    "--set",
    "internet.rate_mbps=5,10",
    "--set",
    "flow.0.rtt_ms=10..30/3",
    "--scheme",
    "cubic,bbr",
    "--seeds",
    "1..2",
];

fn sweep<'a>(more: &[&'a str]) -> Vec<&'a str> {
    ["sweep", "small.toml"].iter().chain(&MATRIX).chain(more).copied().collect()
}

/// Results that depend only on the matrix.
fn lasting(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for name in [
        "failures.json",
        "report.html",
        "results/scheme=cubic/part.parquet",
        "results/scheme=bbr/part.parquet",
    ] {
        files.insert(name.to_owned(), fs::read(folder.join(name)).unwrap());
    }
    let manifest = fs::read(folder.join("manifest.json")).unwrap();
    let mut manifest: Value = serde_json::from_slice(&manifest).unwrap();
    manifest.as_object_mut().unwrap().remove("host");
    files.insert("manifest.json".to_owned(), manifest.to_string().into_bytes());
    files
}

#[test]
fn a_sweep_leaves_a_dataset_and_a_page_and_has_the_numbers_of_sim() {
    let shell = Shell::new();
    shell.write("small.toml", SMALL);
    let told = shell.run(&sweep(&["--out", "all"])).fine();
    for part in
        ["scheme", "Mbit/s", "cubic", "bbr", "24 runs: 24 made now.", "all/results", "all/report.html"]
    {
        assert!(told.contains(part), "it tells `{part}`: {told}");
    }
    assert_eq!(shell.read("all/failures.json"), "[]\n");
    let lines = shell.run(&sweep(&["--out", "all", "--json", "--quiet"])).json();
    assert_eq!(lines.len(), 24, "a line per flow of each run, of a sweep that has ended too");
    let set = ["--set", "internet.rate_mbps=5", "--set", "flow.0.rtt_ms=30"];
    let sim: Vec<&str> =
        ["sim", "small.toml", "--scheme", "bbr", "--seeds", "2", "--json"].into_iter().chain(set).collect();
    let sim = shell.run(&sim).json().remove(0);
    let of_set = |line: &&Value| line["set"]["internet.rate_mbps"] == 5 && line["set"]["flow.0.rtt_ms"] == 30;
    let same = |line: &&Value| line["scheme"] == "bbr" && line["seed"] == 2;
    let mine: Vec<&Value> = lines.iter().filter(of_set).filter(same).collect();
    assert_eq!(mine.len(), 1);
    assert_eq!(mine[0]["throughput_mbps"], sim["throughput_mbps"]);
    assert_eq!(mine[0]["queueing_delay_ms.p95"], sim["queueing_delay_ms"]["p95"]);
    let said =
        shell.run(&["report", "all"]).refused(&["this is a sweep", "airpace sweep small.toml", "--out all"]);
    drop(said);
}

#[test]
fn numbers_under_a_scheme_are_of_a_flow_that_ran_it() {
    let shell = Shell::new();
    shell.write("small.toml", SMALL);
    shell.write("two.toml", &format!("{SMALL}[[flow]]\nlabel = \"other\"\nrtt_ms = 20\n"));
    let own =
        ["sweep", "two.toml", "--set", "flow.0.scheme=cbr:rate_mbps=1", "--scheme", "cubic", "--out", "own"];
    let told = shell.run(&own).fine();
    let lines = shell.run(&own.into_iter().chain(["--json", "--quiet"]).collect::<Vec<_>>()).json();
    let scheme =
        |at: usize| (lines[at]["scheme"].as_str().unwrap(), lines[at]["flow_scheme"].as_str().unwrap());
    assert_eq!([scheme(0), scheme(1)], [("cubic", "cbr:rate_mbps=1"), ("cubic", "cubic")]);
    let other = format!("{:.2}", lines[1]["throughput_mbps"].as_f64().unwrap());
    let row = told.lines().find(|line| line.starts_with("cubic")).unwrap();
    assert!(row.contains(&other), "{other} is what cubic had: {row}");
    let nowhere = ["sweep", "small.toml", "--set", "flow.0.scheme=cubic,bbr", "--scheme", "reno"];
    shell.run(&nowhere).refused(&["every flow has a scheme of its own", "name its schemes with --scheme"]);
}

#[test]
fn jobs_and_a_kill_change_no_byte_and_a_file_says_the_same() {
    let shell = Shell::new();
    shell.write("small.toml", SMALL);
    shell.run(&sweep(&["--out", "one", "--jobs", "1", "--quiet"])).fine();
    let one = lasting(&shell.path("one"));
    shell.run(&sweep(&["--out", "two", "--jobs", "2", "--quiet"])).fine();
    assert!(lasting(&shell.path("two")) == one, "two jobs");

    // The sweep is killed as soon as a run has ended, which the log file shows.
    let mut child = shell.command(&sweep(&["--out", "killed", "--jobs", "1"]));
    let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let log = shell.path("killed/cells/0001.log");
    while fs::read(&log).map_or(0, |text| text.len()) == 0 {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let ended = fs::read_to_string(&log).unwrap().matches('\n').count();
    assert!(ended > 0);
    let told = shell.run(&sweep(&["--out", "killed"])).fine();
    if ended < 24 {
        assert!(told.contains(&format!("{} made now, {ended} found from before", 24 - ended)), "{told}");
    }
    assert!(lasting(&shell.path("killed")) == one, "after {ended} runs");

    let file = "scenario = \"small.toml\"\nschemes = [\"cubic\", \"bbr\"]\nseeds = \"1..2\"\n[set]\n\
                internet.rate_mbps = [5, 10]\nflow.0.rtt_ms = \"10..30/3\"\n";
    shell.write("matrix.toml", file);
    shell.run(&["sweep", "matrix.toml", "--out", "file", "--quiet"]).fine();
    assert!(lasting(&shell.path("file")) == one, "a file");
}

#[test]
fn ctrl_c_keeps_what_has_ended() {
    let shell = Shell::new();
    shell.write("small.toml", SMALL);
    let words =
        ["sweep", "small.toml", "--scheme", "cubic", "--seeds", "1..9999", "--out", "many", "--jobs", "1"];
    let mut command = shell.command(&words);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let log = shell.path("many/cells/0001.log");
    while fs::read(&log).map_or(0, |text| text.len()) == 0 {
        std::thread::yield_now();
    }
    let pid = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(2), "{said}");
    assert!(said.contains("of 9,999 runs are done and kept in `many`. The same command goes on"), "{said}");
    let kept = fs::read_to_string(&log).unwrap();
    assert!(kept.ends_with('\n'), "no line is torn");
    // A smaller matrix in the same folder reuses its run.
    let told =
        shell.run(&["sweep", "small.toml", "--scheme", "cubic", "--seeds", "1", "--out", "many"]).fine();
    assert!(told.contains("1 run: 0 made now, 1 found from before."), "{told}");
}

#[test]
fn runs_that_fail_are_listed_and_the_exit_code_is_1() {
    let shell = Shell::new();
    shell.write("small.toml", SMALL);
    let words = ["sweep", "small.toml", "--set", "flow.0.rtt_ms=-1,20", "--scheme", "cubic", "--out", "some"];
    let done = shell.run(&words);
    assert_eq!(done.code, Some(1), "{}{}", done.out, done.err);
    assert!(done.err.contains("1 of 2 cannot be made, the first with flow.0.rtt_ms=-1"), "{}", done.err);
    assert!(done.out.contains("1 run failed; they are in some/failures.json"), "{}", done.out);
    let failures: Value = serde_json::from_str(&shell.read("some/failures.json")).unwrap();
    assert_eq!(failures[0]["set"], "flow.0.rtt_ms=-1");
    let dry = [&words[..], &["--dry-run"]].concat();
    let told = shell.run(&dry).fine();
    assert!(told.contains("cannot be made, the first with flow.0.rtt_ms=-1:"), "{told}");
    let first = shell.run(&[&dry[..], &["--json"]].concat()).json().remove(0)["first_impossible"].take();
    assert_eq!(first["set"]["flow.0.rtt_ms"], -1);
    assert!(first["reason"].as_str().is_some_and(|reason| reason.contains("rtt_ms")), "{first}");
}

#[test]
fn a_dry_run_counts_and_writes_nothing() {
    let shell = Shell::new();
    shell.write("small.toml", SMALL);
    let told = shell.run(&sweep(&["--dry-run"])).fine();
    for part in
        ["internet.rate_mbps  5, 10", "24 runs = 6 points × 2 schemes × 2 seeds", "24 to do", "on disk"]
    {
        assert!(told.contains(part), "it tells `{part}`: {told}");
    }
    assert!(!shell.path("sweeps").exists());
    let told = shell.run(&sweep(&["--dry-run", "--json"])).json().remove(0);
    assert_eq!((&told["cells"], &told["missing"]), (&24.into(), &24.into()));
    assert!(told["estimated_s"].as_f64().unwrap() > 0.0);
    shell.run(&sweep(&["--quiet"])).fine();
    let told = shell.run(&sweep(&["--dry-run"])).fine();
    assert!(told.contains("24 found from before, 0 to do"), "the usual folder is found again: {told}");
}

#[test]
fn what_cannot_be_swept_is_refused_with_a_remedy() {
    let shell = Shell::new();
    shell.write("small.toml", SMALL);
    let refused = |words: &[&str], parts: &[&str]| {
        let words: Vec<&str> = ["sweep", "small.toml"].iter().chain(words).copied().collect();
        shell.run(&words).refused(parts);
    };
    refused(&["--set", "flow.0.rtt=5,6"], &["flow.0.rtt=5: ", "did you mean `flow.0.rtt_ms`?"]);
    refused(&["--set", "flow.0.rtt_ms"], &["give KEY=VALUES"]);
    refused(&["--set", "flow.0.rtt_ms=9..1/3"], &["runs backwards"]);
    refused(&["--scheme", "cubc"], &["did you mean `cubic`?"]);
    refused(
        &["--set", "duration_s=1..5000", "--set", "flow.0.rtt_ms=1..5000"],
        &["are 100000000; the most are 10000000"],
    );
    let reports = ["sweep", "stationary-idle", "--set", "device.0.reports=a.txt"];
    shell.run(&reports).refused(&["a sweep does not write that file", "or use `"]);
    shell.run(&["sweep", "smal.toml"]).refused(&["no such file exists"]);
    fs::create_dir(shell.path("mine")).unwrap();
    shell.write("mine/small.toml", SMALL);
    shell
        .run(&["sweep", "mine/small.toml", "--out", "mine"])
        .refused(&["mine/small.toml` is read, and lies in the folder"]);
    refused(&["--out", "mine"], &["is not empty and holds no sweep"]);
    assert_eq!(shell.read("mine/small.toml"), SMALL);
    shell.run(&["sweep", "small.toml", "--scheme", "cubic", "--out", "/dev/full/x"]).refused(&["with --out"]);
}
