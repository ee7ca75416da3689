//! `airpace sim`, `demo` and `report`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::{Done, Shell, keys};

/// A scenario of 1.5 s over a wire, enough for all outputs to have content.
const SMALL: &str = "name = \"small\"\nduration_s = 1.5\n[internet]\nrate_mbps = 10\nbuffer.ms = 100\n\
                     [[flow]]\nlabel = \"phone\"\nrtt_ms = 20\n";

#[test]
fn a_run_prints_a_table_and_leaves_a_folder() {
    let shell = Shell::new();
    shell.write("small.toml", SMALL);
    let told = shell.run(&["sim", "small.toml", "--scheme", "cubic,bbr"]).fine();
    for part in ["scheme", "Mbit/s", "cubic", "bbr", "phone", "Run folder: runs/small-001", "report.html"] {
        assert!(told.contains(part), "it tells `{part}`: {told}");
    }
    assert!(!told.contains('\x1b'), "no colours without a terminal");
    for name in ["manifest.json", "summary.json", "report.html", "packets", "acks", "controller", "capacity"]
    {
        assert!(shell.path("runs/small-001").join(name).exists(), "{name} is left");
    }
    let manifest: Value = serde_json::from_str(&shell.read("runs/latest/manifest.json")).unwrap();
    assert_eq!(manifest["complete"], true, "runs/latest leads to it");

    shell.run(&["sim", "small.toml", "--scheme", "cubic", "--quiet"]).fine();
    assert!(shell.path("runs/small-002").is_dir(), "an earlier run is kept");
    let told = shell.run(&["report", "runs/small-001"]).fine();
    assert!(told.contains("runs/small-001/report.html"), "{told}");
}

#[test]
fn all_is_every_scheme_and_the_manifest_says_what_stands_behind_a_name() {
    let shell = Shell::new();
    shell.write("small.toml", SMALL);
    let listed = shell.run(&["list", "schemes", "--json"]).json();
    let lines = shell.run(&["sim", "small.toml", "--scheme", "all", "--json"]).json();
    assert_eq!(lines.len(), listed.len(), "every scheme that is listed ran");
    let presets: usize = listed.iter().map(|scheme| scheme["presets"].as_array().unwrap().len()).sum();
    let with_ran = listed.iter().filter(|scheme| scheme["takes_ran"] == true).count();
    let lines = shell.run(&["sim", "small.toml", "--scheme", "presets", "--json"]).json();
    assert_eq!(lines.len(), listed.len() + with_ran + presets, "and every preset");

    shell.run(&["sim", "small.toml", "--scheme", "pbe@paper:floor=on,cubic", "--out", "run"]).fine();
    let manifest: Value = serde_json::from_str(&shell.read("run/manifest.json")).unwrap();
    let choices = manifest["choices"].as_array().unwrap();
    assert_eq!(choices.len(), 2);
    assert_eq!((&choices[0]["text"], &choices[0]["preset"]), (&"cubic".into(), &"default".into()));
    assert_eq!((&choices[1]["scheme"], &choices[1]["preset"]), (&"pbe".into(), &"paper".into()));
    assert_eq!(choices[1]["options"]["floor"], "on", "an option that was given beside the preset");
    assert_eq!(choices[1]["options"]["cell_test"], "off", "an option of the preset");
}

#[test]
fn json_is_one_object_per_flow_with_the_promised_keys() {
    let shell = Shell::new();
    shell.write("small.toml", SMALL);
    let lines =
        shell.run(&["sim", "small.toml", "--scheme", "cubic,reno", "--seeds", "3..4", "--json"]).json();
    assert_eq!(lines.len(), 4, "two schemes, two seeds, one flow");
    for line in &lines {
        assert_eq!(
            keys(line),
            [
                "flow",
                "jain",
                "loss_rate",
                "one_way_delay_ms",
                "power",
                "queueing_delay_ms",
                "scenario",
                "scheme",
                "seed",
                "throughput_100ms",
                "throughput_mbps",
                "utilization"
            ]
        );
        assert_eq!(keys(&line["one_way_delay_ms"]), ["mean", "p50", "p95", "p99"]);
        assert_eq!(keys(&line["queueing_delay_ms"]), ["mean", "p95", "p99"]);
        assert_eq!(keys(&line["throughput_100ms"]), ["p10", "p25", "p50", "p75", "p90"]);
        assert!(line["throughput_mbps"].as_f64().is_some_and(|mbps| mbps > 1.0 && mbps < 10.1), "{line}");
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_whatever_the_jobs() {
    let shell = Shell::new();
    let run = |out: &str, jobs: &str, seeds: &str| {
        let set = ["--set", "duration_s=5"];
        let words = [
            &[
                "sim",
                "competitor",
                "--scheme",
                "pbe,cubic",
                "--quiet",
                "--qlog",
                "--seeds",
                seeds,
                "--jobs",
                jobs,
                "--out",
                out,
            ],
            &set[..],
        ]
        .concat();
        // A run of 2 s need not meet expectations that are defined for 40 s.
        assert!(shell.run(&words).code.is_some_and(|code| code < 2));
        bytes_of(&shell.path(out))
    };
    let one = run("one", "1", "1..2");
    assert!(one.len() > 20, "there are files to compare: {:?}", one.keys());
    let two = run("two", "2", "1..2");
    assert!(one.keys().eq(two.keys()), "the same files");
    for (name, bytes) in &one {
        assert!(two[name] == *bytes, "{name} is the same byte for byte, on one thread and on two");
    }
    let other = run("other", "2", "3..4");
    assert_ne!(one["summary.json"], other["summary.json"], "other seeds give other numbers");
}

/// Contents of the files of a folder by path, without the host's part of the manifest.
fn bytes_of(root: &Path) -> BTreeMap<String, Vec<u8>> {
    fn visit(root: &Path, folder: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                visit(root, &path, files);
            } else {
                let name = path.strip_prefix(root).expect("it is below").display().to_string();
                files.insert(name, std::fs::read(&path).expect("a file"));
            }
        }
    }
    let mut files = BTreeMap::new();
    visit(root, root, &mut files);
    let mut manifest: Value = serde_json::from_slice(&files["manifest.json"]).expect("JSON");
    assert!(
        manifest.as_object_mut().expect("an object").remove("host").is_some(),
        "the host has a part of its own"
    );
    files.insert("manifest.json".to_owned(), manifest.to_string().into_bytes());
    files
}

#[test]
fn an_expectation_that_fails_is_told_and_gives_one() {
    let shell = Shell::new();
    let expect = "[[expect]]\nsay = \"light is slow\"\nscheme = \"cubic\"\nmetric = \"throughput_mbps\"\nat_least = 99\n";
    shell.write("hope.toml", &format!("{SMALL}{expect}"));
    let done = shell.run(&["sim", "hope.toml", "--scheme", "cubic"]);
    assert_eq!(done.code, Some(1));
    assert!(
        done.out.contains("not met")
            && done.out.contains("light is slow")
            && done.out.contains("at least 99"),
        "{}",
        done.out
    );
    let passed_over = shell.run(&["sim", "hope.toml", "--scheme", "reno"]);
    assert_eq!(passed_over.code, Some(0), "an expectation about a scheme that is not run is passed over");
}

#[test]
fn mistakes_are_refused_with_place_key_and_remedy() {
    let shell = Shell::new();
    shell.write("small.toml", SMALL);
    shell.run(&["sim", "stationary"]).refused(&["did you mean `stationary-idle` or `stationary-busy`?"]);
    shell.run(&["sim", "competitr"]).refused(&["competitr", "did you mean `competitor`?"]);
    shell.run(&["sim", "nowhere.toml"]).refused(&["nowhere.toml", "no such file"]);
    shell.write("typo.toml", &SMALL.replace("rtt_ms", "rtt_mss"));
    shell.run(&["sim", "typo.toml"]).refused(&["typo.toml", "rtt_mss", "did you mean `flow.0.rtt_ms`?"]);
    shell.write("words.toml", "name = \n");
    shell.run(&["sim", "words.toml"]).refused(&["words.toml:1"]);
    shell
        .run(&["sim", "small.toml", "--set", "cell.prb=50"])
        .refused(&["cell.prb=50: `cell.prb` is not a key"]);
    shell.run(&["sim", "small.toml", "--set", "cell"]).refused(&["KEY=VALUE"]);
    shell.run(&["sim", "small.toml", "--scheme", "bbbr"]).refused(&["bbbr", "did you mean `bbr`?", "cubic"]);
    shell.run(&["sim", "small.toml", "--scheme", "pbe@papre"]).refused(&["papre", "did you mean `paper`?"]);
    shell.run(&["sim", "small.toml", "--scheme", "pbe:flor=on"]).refused(&["flor", "did you mean `floor`?"]);
    shell.run(&["sim", "small.toml", "--set", "flow.0.scheme=cubci"]).refused(&["did you mean `cubic`?"]);
    shell.write("hopes.toml", &format!(
        "{SMALL}[[expect]]\nsay = \"it is\"\nscheme = \"reno\"\nflow = \"fone\"\nmetric = \"jain\"\nat_least = 0\n"
    ));
    shell.run(&["sim", "hopes.toml"]).refused(&["did you mean `phone`?"]);
    shell
        .run(&[
            "sim",
            "hopes.toml",
            "--set",
            "expect.0.flow=phone",
            "--set",
            "expect.0.metric=throughput_mpbs",
        ])
        .refused(&["did you mean `throughput_mbps`?"]);
    shell.run(&["sim", "small.toml", "--scheme", "bbr,bbr"]).refused(&["named twice"]);
    shell.run(&["sim", "small.toml", "--scheme", "pbe@bold"]).refused(&["bold", "paper"]);
    shell.run(&["sim", "small.toml", "--seeds", "5..1"]).refused(&["5..1", "backwards"]);
    shell.run(&["sim", "small.toml", "--set", "internet.rate_mbps=0"]).refused(&["internet.rate_mbps"]);
    shell
        .run(&["sim", "biscay-uplink", "--scheme", "biscay@window"])
        .refused(&["biscay@window", "for an upload choose the scheme without it"]);
    shell
        .run(&["sim", "competitor", "--scheme", "biscay:sample_ms=100:sample_ms=200"])
        .refused(&["`sample_ms`", "set twice"]);
    shell.run(&["sim", "competitor", "--scheme", "copa:delta=0"]).refused(&["`delta`", "at least 0.001"]);
    shell.run(&["sim", "competitor", "--set", "cell.prbs=0"]).refused(&["cell.prbs"]);
}

#[test]
fn traces_that_cannot_be_replayed_are_refused() {
    let shell = Shell::new();
    let sim =
        |file: &str| shell.run(&["sim", "trace", "--set", &format!("trace={file}"), "--scheme", "cubic"]);
    shell.run(&["sim", "trace"]).refused(&["trace", "--set trace=FILE"]);
    sim("missing.down").refused(&["missing.down"]);
    shell.write("back.down", "1\n5\n3\n");
    sim("back.down").refused(&["back.down", "line 3"]);
    shell.write("hole.down", "1\n2\n10002\n10003\n");
    sim("hole.down").refused(&["hole.down", "allow_holes"]);
    let words = [
        "sim",
        "trace",
        "--set",
        "trace=hole.down",
        "--set",
        "trace.allow_holes=true",
        "--set",
        "duration_s=3",
        "--scheme",
        "cubic",
    ];
    shell.run(&words).fine();
}

#[test]
fn folders_that_are_not_ours_are_left_alone() {
    let shell = Shell::new();
    shell.write("small.toml", SMALL);
    let sim = |out: &str| shell.run(&["sim", "small.toml", "--scheme", "reno", "--out", out]);
    shell.write("file", "mine");
    sim("file/below").refused(&["file/below", "--out"]);
    std::fs::create_dir(shell.path("letters")).unwrap();
    shell.write("letters/one", "mine");
    sim("letters").refused(&["letters", "another folder"]);
    assert_eq!(shell.read("letters/one"), "mine", "nothing was removed");
    shell.run(&["report", "letters"]).refused(&["letters"]);

    sim("again").fine();
    sim("again").fine();
}

/// Starts a run that does not end by itself, and waits until its folder contains a manifest.
fn under_way(shell: &Shell, words: &[&str], folder: &str) -> Child {
    let mut command = shell.command(words);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    while !shell.path(folder).join("manifest.json").exists() {
        assert_eq!(child.try_wait().expect("its state"), None, "so long a run does not end by itself");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

/// Sends SIGINT, as Ctrl-C does. Returns the text on standard error.
#[cfg(unix)]
fn interrupted(child: Child) -> String {
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT)
        .expect("it is there");
    let done = child.wait_with_output().expect("it ends");
    assert_eq!(done.status.code(), Some(2));
    String::from_utf8(done.stderr).expect("text")
}

#[test]
fn an_interrupted_run_leaves_a_folder_that_says_so() {
    let shell = Shell::new();
    shell.write("small.toml", SMALL);
    let words = [
        "sim",
        "small.toml",
        "--scheme",
        "cubic,bbr",
        "--jobs",
        "1",
        "--set",
        "duration_s=100000",
        "--out",
        "run",
    ];
    let mut child = under_way(&shell, &words, "run");
    child.kill().expect("it is stopped");
    child.wait().expect("it ends");
    let told: Value = serde_json::from_str(&shell.read("run/manifest.json")).unwrap();
    assert_eq!(told["complete"], false);
    let words = ["sim", "small.toml", "--scheme", "reno", "--out", "run"];
    shell.run(&words).fine();
    assert!(shell.read("run/manifest.json").contains("\"complete\": true"), "another run can replace it");
}

#[cfg(unix)]
#[test]
fn a_pipe_into_which_nobody_writes_is_left_when_asked_to_end() {
    let shell = Shell::new();
    let pipe = rustix::fs::FileType::Fifo;
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, shell.path("pipe"), pipe, mode, 0).unwrap();
    let mut child =
        shell.command(&["sim", "trace", "--set", "trace=pipe"]).stderr(Stdio::null()).spawn().unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(!child.wait().unwrap().success(), "it does not wait for a writer of the pipe");
}

#[test]
fn ctrl_c_stops_in_order_and_what_ended_can_be_looked_at() {
    let shell = Shell::new();
    shell.write("small.toml", SMALL);
    let words = ["sim", "small.toml", "--scheme", "reno", "--set", "duration_s=100000", "--out", "run"];
    let told = interrupted(under_way(&shell, &words, "run"));
    assert!(told.contains("stopped; 0 of 1 run had ended. Run folder: run (incomplete)"), "{told}");
    assert!(!told.contains("prune"), "that looks at `runs`: {told}");
    assert!(shell.run(&["report", "run"]).fine().contains("interrupted"));
}

#[cfg(unix)]
#[test]
fn after_ctrl_c_the_folder_is_named_and_latest_leads_there() {
    let shell = Shell::new();
    shell.write("small.toml", SMALL);
    shell.run(&["sim", "small.toml", "--scheme", "reno", "--quiet"]).fine();
    shell.write("endless.toml", &SMALL.replace("1.5", "100000"));
    let words = ["sim", "endless.toml", "--scheme", "reno,cubic", "--jobs", "1", "--set", "name=endless"];
    let told = interrupted(under_way(&shell, &words, "runs/endless-001"));
    assert!(told.contains("of 2 runs had ended. Run folder: runs/endless-001 (incomplete)"), "{told}");
    let latest = std::fs::read_link(shell.path("runs/latest")).unwrap();
    assert_eq!(latest, Path::new("endless-001"), "runs/latest is what the message names");
    assert!(shell.run(&["report", "runs/latest"]).fine().contains("interrupted"));

    assert!(told.contains("`airpace runs prune --incomplete` removes such folders"), "{told}");
    shell.run(&["runs", "prune", "--incomplete", "--yes"]).fine();
    assert!(!shell.path("runs/endless-001").exists(), "the command in the message works");
    assert_eq!(std::fs::read_link(shell.path("runs/latest")).unwrap(), Path::new("small-001"));
}

#[test]
fn the_scenario_of_the_guide_runs() {
    let shell = Shell::new();
    let guide =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/scenarios.md"))
            .unwrap();
    let scenario =
        guide.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a scenario");
    shell.write("guide.toml", scenario);
    let words = ["sim", "guide.toml", "--scheme", "reno", "--set", "duration_s=10", "--json"];
    assert_eq!(shell.run(&words).json().len(), 2, "two flows");
}

#[test]
fn the_demo_makes_a_trace_where_no_recording_is_at_hand() {
    let shell = Shell::new();
    let done = shell.run(&["demo", "--set", "duration_s=5"]);
    assert!(done.code.is_some_and(|code| code < 2), "{}{}", done.err, done.out);
    for part in
        ["Trace: made, 12 Mbit/s in the mean", "competitor", "trace", "pbe@paper", "oracle", "Report:"]
    {
        assert!(done.out.contains(part), "it tells `{part}`: {}", done.out);
    }

    std::fs::create_dir_all(shell.path("data/traces")).unwrap();
    shell
        .run(&["trace", "synth", "--rate-mbps", "9", "--seconds", "9", "--out", "data/traces/mine.down"])
        .fine();
    let words = ["demo", "--set", "duration_s=5", "--json"];
    let done = Done::of(shell.command(&words).env("AIRPACE_DATA", shell.path("data")), &words);
    assert!(done.err.contains("mine.down"), "it says which recording it takes: {}", done.err);
    assert_eq!(done.out.lines().count(), 24, "eight schemes: two flows in the cell, one over the trace");
}

#[test]
fn what_the_demo_is_to_set_goes_where_it_fits_and_is_refused_where_it_fits_nowhere() {
    let shell = Shell::new();
    let done = shell.run(&["demo", "--set", "duration_s=5", "--set", "cell.prbs=50", "--out", "run"]);
    assert!(done.code.is_some_and(|code| code < 2), "{}{}", done.err, done.out);
    assert!(done.out.contains("--set cell.prbs=50 is not for trace"), "{}", done.out);
    let of = |name: &str| shell.read(&format!("run/scenarios/{name}.toml")).parse::<toml::Table>().unwrap();
    let (cell, trace) = (of("competitor"), of("trace"));
    assert_eq!(cell["cell"]["prbs"].as_integer(), Some(50));
    assert!(!trace.contains_key("cell"));
    for scenario in [&cell, &trace] {
        assert_eq!(scenario["duration_s"].as_integer(), Some(5), "a key that fits all is set in all");
    }
    let manifest: Value = serde_json::from_str(&shell.read("run/manifest.json")).unwrap();
    assert!(
        !manifest["scenarios"][1]["set"].to_string().contains("prbs"),
        "commands of the report hold what was set"
    );

    shell
        .run(&["demo", "--set", "cell.prbs=0"])
        .refused(&["--set cell.prbs=0 fits no scenario", "cell.prbs"]);
    shell.run(&["demo", "--set", "cel.prbs=50"]).refused(&["did you mean `cell`?"]);
    assert!(!shell.path("runs").exists(), "a refused demo leaves nothing");
}

/// A trace of 30 s with a delivery opportunity every 2 ms and none from 20 to 26 s.
fn trace_with_a_late_hole() -> String {
    (1..=15_000u64)
        .map(|n| 2 * n)
        .filter(|ms| !(20_000..26_000).contains(ms))
        .map(|ms| format!("{ms}\n"))
        .collect()
}

#[test]
fn a_run_says_which_part_of_a_trace_it_uses_and_only_that_part_is_judged() {
    let shell = Shell::new();
    shell.write("late.down", &trace_with_a_late_hole());
    let sim = |more: &[&str]| {
        let words =
            ["sim", "trace", "--set", "trace=late.down", "--scheme", "reno", "--set", "duration_s=10"];
        shell.run(&[&words[..], more].concat())
    };
    let said = sim(&[]).fine();
    assert!(said.contains("trace: uses 0-10 s of 30 s of late.down, 6.00 Mbit/s there and"), "{said}");
    let manifest = shell.read("runs/latest/manifest.json");
    assert!(manifest.contains("uses 0-10 s of 30 s of late.down"), "{manifest}");
    sim(&["--set", "trace.link.start_s=18"]).refused(&[
        "late.down",
        "for 6.0 s from 20.0 s on",
        "--allow-holes",
    ]);
    sim(&["--set", "trace.link.start_s=random"]).refused(&["late.down", "for 6.0 s from 20.0 s on"]);
    sim(&["--set", "trace.link.start_s=anywhere"]).refused(&["start_s", "\"random\""]);
}

#[test]
fn seeds_that_change_nothing_are_reported_and_random_starts_change_something() {
    let shell = Shell::new();
    let steady: String = (1..=10_000u64).map(|ms| format!("{ms}\n")).collect();
    shell.write("steady.down", &steady);
    // The rate rises by 100 opportunities per second (1.2 Mbit/s) every second, to 5,900 in the last second.
    let rising = (0..60u64).flat_map(|second| (1..=100 * second.max(1)).map(move |n| (second, n)));
    let rising = rising.map(|(second, n)| 1000 * second + 1000 * n / (100 * second.max(1)));
    shell.write("rising.down", &rising.map(|ms| format!("{ms}\n")).collect::<String>());
    let sim = |trace: &str, more: &[&str]| {
        let set = format!("trace={trace}");
        let words =
            ["sim", "trace", "--set", &set, "--scheme", "bbr", "--set", "duration_s=5", "--seeds", "1..3"];
        shell.run(&[&words[..], more].concat()).fine()
    };
    let fixed = sim("steady.down", &[]);
    assert!(fixed.contains("The 3 seeds change nothing here") && !fixed.contains('±'), "{fixed}");
    assert!(fixed.contains("trace.link.start_s=random`"), "{fixed}");
    let random = sim("rising.down", &["--set", "trace.link.start_s=random"]);
    assert!(random.contains('±') && !random.contains("±0.00 "), "{random}");
    assert!(random.contains("each seed uses 5 s of 60 s of rising.down"), "{random}");
}

#[test]
fn traces_are_read_from_gzip_and_from_standard_input() {
    let shell = Shell::new();
    let trace: String = (1..=5_000u64).map(|ms| format!("{ms}\n")).collect();
    shell.write("a.down", &trace);
    assert!(
        std::process::Command::new("gzip")
            .args(["-k", "a.down"])
            .current_dir(shell.path(""))
            .status()
            .unwrap()
            .success()
    );
    let words = |file: &str| {
        let set = format!("trace={file}");
        [
            "sim",
            "trace",
            "--set",
            set.as_str(),
            "--scheme",
            "reno",
            "--set",
            "duration_s=3",
            "--json",
            "--quiet",
        ]
        .map(str::to_owned)
    };
    let plain = shell.run(&words("a.down").each_ref().map(String::as_str)).fine();
    let packed = shell.run(&words("a.down.gz").each_ref().map(String::as_str)).fine();
    let piped = words("-");
    let piped = piped.each_ref().map(String::as_str);
    let input = std::fs::File::open(shell.path("a.down.gz")).unwrap();
    let piped = Done::of(shell.command(&piped).stdin(std::process::Stdio::from(input)), &piped).fine();
    assert_eq!(packed, plain);
    assert_eq!(piped, plain);
}

/// Programs that read the results may stop before their end.
#[test]
fn a_run_folder_is_whole_whatever_happens_to_the_output() {
    let shell = Shell::new();
    shell.write("small.toml", SMALL);
    let words = ["sim", "small.toml", "--scheme", "reno"];
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut run = shell.command(&words);
    run.stdout(writer).status().unwrap();
    assert!(shell.path("runs/latest/report.html").is_file(), "the page is there");
    assert!(shell.read("runs/latest/manifest.json").contains("\"complete\": true"));
}
