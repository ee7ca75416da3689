//! Run folders: the same command produces the same bytes, and an incomplete folder is marked as incomplete.

mod common;

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use airpace_core::remedy::explain_plainly;
use airpace_run::{RunError, RunFolder};
use serde_json::Value;

use common::{Temporary, contents, patient, simulate, story};

fn run(out: &Path, jobs: usize) -> airpace_run::Outcome {
    story(Some(out), &[1, 2], jobs).run_with(&simulate, &patient).expect("the story runs")
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a file of the run")).expect("JSON")
}

#[test]
fn the_same_command_gives_the_same_bytes_whatever_the_number_of_threads() {
    let (one, four) = (Temporary::new("jobs-1"), Temporary::new("jobs-4"));
    run(&one.0, 1);
    run(&four.0, 4);
    let (mut left, mut right) = (contents(&one.0), contents(&four.0));
    let manifest = Path::new("manifest.json");
    left.retain(|(path, _)| path != manifest);
    right.retain(|(path, _)| path != manifest);
    assert!(left.len() > 2 * 2 * 6, "two schemes and two seeds of six tables each: {}", left.len());
    for ((left, left_bytes), (right, right_bytes)) in left.iter().zip(&right) {
        assert_eq!(left, right);
        assert!(left_bytes == right_bytes, "{} depends on --jobs", left.display());
    }
    assert_eq!(left.len(), right.len());

    let without_host = |folder: &Path| {
        let mut manifest = json(&folder.join("manifest.json"));
        manifest.as_object_mut().unwrap().remove("host").expect("a host part");
        manifest
    };
    assert_eq!(without_host(&one.0), without_host(&four.0));
    assert_eq!(without_host(&one.0)["command"], "airpace sim story.toml --seeds 1..2");
}

#[test]
fn progress_ends_at_one_for_every_run() {
    let ended = std::sync::Mutex::new(Vec::new());
    let progress = |progress: airpace_run::Progress<'_>| {
        assert_eq!(progress.jobs, 4);
        if progress.fraction == 1.0 {
            ended.lock().unwrap().push(progress.job);
        }
        ControlFlow::Continue(())
    };
    story(None, &[1, 2], 2).run_with(&simulate, &progress).unwrap();
    let mut ended = ended.into_inner().unwrap();
    ended.sort_unstable();
    assert_eq!(ended, [0, 1, 2, 3]);
}

#[test]
fn an_interrupted_run_leaves_a_folder_that_says_so() {
    let folder = Temporary::new("interrupted");
    let seen_at_the_start = std::sync::Mutex::new(None);
    let failing = |scenario: &_,
                   scheme: &airpace_sim::SchemeSpec,
                   seed,
                   recorder: &mut dyn airpace_event::Recorder,
                   progress: &mut airpace_sim::Progress<'_>| {
        seen_at_the_start.lock().unwrap().get_or_insert_with(|| json(&folder.0.join("manifest.json")));
        if scheme.text() == "bbr" {
            return Err("the machine stopped".into());
        }
        simulate(scenario, scheme, seed, recorder, progress)
    };
    let error = story(Some(&folder.0), &[1], 1).run_with(&failing, &patient).unwrap_err();
    assert_eq!(explain_plainly(&error), "story with bbr, seed 1: the machine stopped");
    let at_start =
        seen_at_the_start.into_inner().unwrap().expect("the manifest is there before the first event");
    assert_eq!(at_start["complete"], false);

    let opened = RunFolder::open(&folder.0).unwrap();
    assert!(!opened.manifest().unwrap().complete);
    let runs = opened.summary().unwrap().runs;
    assert_eq!(runs.len(), 1, "the run that had ended is recorded");
    assert_eq!(runs[0].scheme, "reno");
}

#[test]
fn a_listener_may_stop_everything() {
    let folder = Temporary::new("stopped");
    let impatient = |progress: airpace_run::Progress<'_>| {
        let late = progress.scheme == "bbr" && progress.fraction > 0.5;
        if late { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let error = story(Some(&folder.0), &[1, 2], 1).run_with(&simulate, &impatient).unwrap_err();
    assert!(matches!(error, RunError::Stopped { .. }), "{error}");
    let opened = RunFolder::open(&folder.0).unwrap();
    assert!(!opened.manifest().unwrap().complete);
    assert_eq!(opened.summary().unwrap().runs.len(), 2, "both seeds of the first scheme had ended");
    assert!(!folder.0.join("packets/scenario=story/scheme=bbr/seed=1/part.parquet").exists());
}

#[test]
fn the_simulator_s_own_runs_are_judged() {
    let sets = [("duration_s".to_owned(), "2".to_owned())];
    let (name, text) = airpace_sim::builtin()[0];
    let folder = Temporary::new("simulator");
    let mut matrix = story(Some(&folder.0), &[1], 2);
    let scenario = airpace_sim::Scenario::load(text, name, &sets).unwrap();
    matrix.schemes =
        ["cubic", "oracle"].map(|scheme| airpace_sim::SchemeSpec::parse(scheme).unwrap()).to_vec();
    matrix.scenarios = vec![airpace_run::Choice { argument: name.to_owned(), set: sets.to_vec(), scenario }];
    let summary = matrix.run(&patient).unwrap().summary;
    for run in &summary.runs {
        let metrics = &run.flows[0].metrics;
        assert!(metrics.throughput_mbps > 1.0, "{}: {metrics:?}", run.scheme);
        assert!(
            metrics.utilization.is_some_and(|utilization| utilization > 0.1 && utilization < 1.05),
            "{metrics:?}"
        );
        assert!(metrics.queueing_delay_ms.p95.is_some() && !run.carriers.is_empty());
    }
    let page = airpace_page::write(&folder.0).unwrap();
    assert!(fs::metadata(page).unwrap().len() > 1_000_000);
}

#[test]
fn a_second_run_replaces_the_first_and_nothing_else() {
    let folder = Temporary::new("again");
    run(&folder.0, 2);
    fs::write(folder.0.join("notes.txt"), "mine").unwrap();
    let outcome = story(Some(&folder.0), &[9], 2).run_with(&simulate, &patient).unwrap();
    assert_eq!(outcome.summary.runs.len(), 2);
    assert!(folder.0.join("packets/scenario=story/scheme=bbr/seed=9/part.parquet").exists());
    assert!(!folder.0.join("packets/scenario=story/scheme=bbr/seed=1").exists(), "the old run is gone");
    assert_eq!(fs::read_to_string(folder.0.join("notes.txt")).unwrap(), "mine");
}

#[test]
fn what_others_put_into_a_run_s_folders_stops_the_next_run_and_stays() {
    let folder = Temporary::new("strangers");
    run(&folder.0, 2);
    let again = || story(Some(&folder.0), &[9], 2).run_with(&simulate, &patient).map(drop);
    let victim = Temporary::new("strangers-victim");
    fs::create_dir_all(&victim.0).unwrap();
    fs::write(victim.0.join("part.parquet"), "precious").unwrap();
    for name in [
        "packets/notes.txt",
        "scenarios/mine.toml",
        "qlog/notes.txt",
        "acks/scenario=story/notes.txt",
        "losses/scenario=story/scheme=bbr/seed=1/copy.parquet",
        "prbs/scenario=another/part.parquet",
    ] {
        let path = folder.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "mine").unwrap();
        let before = contents(&folder.0);
        let error = explain_plainly(&again().unwrap_err());
        let shown = if name.contains("another") { path.parent().unwrap() } else { &path };
        assert!(error.contains(&format!("`{}`", shown.display())) && error.contains("give `out`"), "{error}");
        assert!(contents(&folder.0) == before, "{name}: nothing was removed");
        fs::remove_file(&path).unwrap();
        let _ = fs::remove_dir(path.parent().unwrap());
    }
    // A folder that is a link may lead to files that are not the run's.
    fs::rename(folder.0.join("capacity"), victim.0.join("of-the-run")).unwrap();
    std::os::unix::fs::symlink(&victim.0, folder.0.join("capacity")).unwrap();
    assert!(again().unwrap_err().to_string().contains("capacity"));
    fs::remove_file(folder.0.join("capacity")).unwrap();
    // A run that was killed leaves temporary files. They belong to the run and are removed, and so is a link in place of
    // a file.
    fs::write(folder.0.join("packets/scenario=story/scheme=bbr/seed=1/.part.parquet.a1B2c3.part"), "")
        .unwrap();
    fs::remove_file(folder.0.join("summary.json")).unwrap();
    std::os::unix::fs::symlink(victim.0.join("part.parquet"), folder.0.join("summary.json")).unwrap();
    again().unwrap();
    assert!(!folder.0.join("packets/scenario=story/scheme=bbr/seed=1").exists(), "the old run is gone");
    assert_eq!(fs::read_to_string(victim.0.join("part.parquet")).unwrap(), "precious");
}

#[test]
fn a_page_is_written_through_no_link() {
    let (folder, victim) = (Temporary::new("page-link"), Temporary::new("page-link-victim"));
    run(&folder.0, 2);
    fs::create_dir_all(&victim.0).unwrap();
    let precious = victim.0.join("precious");
    fs::write(&precious, "precious").unwrap();
    for name in ["report.html", "report.partial", "report.html.part"] {
        let _ = fs::remove_file(folder.0.join(name));
        std::os::unix::fs::symlink(&precious, folder.0.join(name)).unwrap();
        airpace_page::write(&folder.0).unwrap();
        assert_eq!(fs::read_to_string(&precious).unwrap(), "precious", "{name}");
        assert!(folder.0.join("report.html").symlink_metadata().unwrap().is_file());
    }
}

#[test]
fn hostile_run_folders_get_an_error_that_names_the_file() {
    let folder = Temporary::new("hostile");
    run(&folder.0, 2);
    let refused = |file: &str, words: &str| {
        let error = airpace_page::write(&folder.0).unwrap_err().to_string();
        assert!(error.contains(file) && error.contains(words), "{file}, {words}: {error}");
    };
    let summary = folder.0.join("summary.json");
    let sound = fs::read(&summary).unwrap();
    let spoiled = |change: &dyn Fn(&mut Value)| {
        let mut value: Value = serde_json::from_slice(&sound).unwrap();
        change(&mut value);
        fs::write(&summary, value.to_string()).unwrap();
    };
    spoiled(&|summary| _ = summary["runs"][1]["flows"].as_array_mut().unwrap().pop());
    refused("summary.json", "seed 2 has 1 flows, but 2 with seed 1");
    for duration in ["1e300", "-1", "0"] {
        spoiled(&|summary| summary["runs"][0]["duration_s"] = serde_json::from_str(duration).unwrap());
        refused("summary.json", "duration_s");
    }
    spoiled(&|summary| summary["runs"][1] = summary["runs"][0].clone());
    refused("summary.json", "seed 1 is in it twice");
    fs::write(&summary, &sound).unwrap();

    let table = folder.0.join("packets/scenario=story/scheme=bbr/seed=1/part.parquet");
    let sound = fs::read(&table).unwrap();
    fs::remove_file(&table).unwrap();
    let pipe = rustix::fs::FileType::Fifo;
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &table, pipe, mode, 0).unwrap();
    refused("part.parquet", "cannot read");
    fs::remove_file(&table).unwrap();
    let other = folder.0.join("prbs/scenario=story/scheme=bbr/seed=1/part.parquet");
    fs::copy(&other, &table).unwrap();
    refused("part.parquet", "it has no column `flow`");
    fs::copy(folder.0.join("acks/scenario=story/scheme=bbr/seed=1/part.parquet"), &other).unwrap();
    fs::write(&table, &sound).unwrap();
    refused("part.parquet", "it has no column");
}

#[test]
fn a_folder_of_other_things_is_left_alone() {
    let folder = Temporary::new("occupied");
    fs::create_dir_all(&folder.0).unwrap();
    fs::write(folder.0.join("thesis.tex"), "years of work").unwrap();
    let error = story(Some(&folder.0), &[1], 1).run_with(&simulate, &patient).unwrap_err();
    assert!(matches!(error, RunError::Occupied { .. }));
    assert!(explain_plainly(&error).contains("give `out` another folder"), "{error}");
    assert_eq!(contents(&folder.0).len(), 1);
}

#[test]
fn a_folder_that_cannot_be_written_is_named_with_a_remedy() {
    let folder = Temporary::new("unwritable");
    fs::create_dir_all(&folder.0).unwrap();
    let file = folder.0.join("file");
    fs::write(&file, "").unwrap();
    let error = story(Some(&file.join("run")), &[1], 1).run_with(&simulate, &patient).unwrap_err();
    let error = explain_plainly(&error);
    assert!(
        error.contains(&file.join("run").display().to_string()) && error.ends_with("with `out`"),
        "{error}"
    );
}

#[test]
fn expectations_become_verdicts() {
    let summary = story(None, &[1, 2], 2).run_with(&simulate, &patient).unwrap().summary;
    let [moves, no_queue] = &summary.expectations[..] else {
        panic!("two verdicts: {:?}", summary.expectations)
    };
    assert!(moves.passed, "{moves:?}");
    assert_eq!((moves.wanted.as_str(), moves.flow.as_str()), ("at least 5", "phone"));
    assert!(!no_queue.passed, "{no_queue:?}");
    assert!(!summary.all_expectations_met());
}

#[test]
fn an_expectation_about_a_metric_that_does_not_exist_is_refused_before_the_run() {
    let text = common::STORY.replace("queueing_delay_ms.p95", "queueing_delay_ms.p59");
    let mut matrix = story(None, &[1], 1);
    matrix.scenarios[0].scenario = airpace_sim::Scenario::load(&text, "story.toml", &[]).unwrap();
    let error = matrix.run_with(&|_, _, _, _, _| panic!("nothing runs"), &patient).unwrap_err().to_string();
    assert!(error.contains("p59") && error.contains("queueing_delay_ms.p95"), "{error}");
}

#[test]
fn json_lines_have_exactly_these_keys() {
    let summary = story(None, &[1], 1).run_with(&simulate, &patient).unwrap().summary;
    let line = serde_json::to_value(summary.runs[0].lines().next().unwrap()).unwrap();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(
        keys(&line),
        "scenario scheme seed flow throughput_mbps utilization one_way_delay_ms queueing_delay_ms loss_rate power jain throughput_100ms"
    );
    assert_eq!(keys(&line["one_way_delay_ms"]), "mean p50 p95 p99");
    assert_eq!(keys(&line["queueing_delay_ms"]), "mean p95 p99");
    assert_eq!(keys(&line["throughput_100ms"]), "p10 p25 p50 p75 p90");
}

#[test]
fn qlogs_are_json_text_sequences() {
    let folder = Temporary::new("qlog");
    run(&folder.0, 2);
    let path = folder.0.join("qlog/scenario=story/scheme=bbr/seed=1/flow-0.sqlog");
    let text = fs::read_to_string(path).unwrap();
    let records: Vec<Value> = text
        .split('\u{1e}')
        .skip(1)
        .map(|record| serde_json::from_str(record).expect("one JSON text per record"))
        .collect();
    assert_eq!(records[0]["qlog_format"], "JSON-SEQ");
    let mut last = 0.0;
    for event in &records[1..] {
        let time = event["time"].as_f64().unwrap();
        assert!(time >= last, "events are in order of time");
        last = time;
    }
    let count = |name: &str| records[1..].iter().filter(|event| event["name"] == name).count();
    for name in [
        "transport:packet_sent",
        "transport:packet_received",
        "recovery:metrics_updated",
        "recovery:congestion_state_updated",
    ] {
        assert!(count(name) > 0, "{name} is missing");
    }
    let acked: u64 = records[1..]
        .iter()
        .filter_map(|event| event["data"]["frames"][0]["acked_ranges"].as_array())
        .flatten()
        .map(|range| range[1].as_u64().unwrap() - range[0].as_u64().unwrap() + 1)
        .sum();
    assert_eq!(acked as usize, count("transport:packet_received"), "the story acknowledges packet by packet");
}
