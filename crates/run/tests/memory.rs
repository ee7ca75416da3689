//! Tables in memory are equal to the tables of a run folder.

use std::ops::ControlFlow;
use std::path::Path;

use airpace_run::{Choice, Matrix, Progress};
use airpace_sim::Scenario;
use airpace_tables::{Batches, FileError, Memory, TABLES};
use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;

/// A phone behind a narrow queue, and a cell, whose grants fill the table `prbs`.
const STORY: &str = r#"
name = "story"
about = "A phone in a narrow cell"
source = "made up"
duration_s = 2
schemes = ["reno", "bbr"]

[cell]
prbs = 25

[[flow]]
label = "phone"
rtt_ms = 42
"#;

fn story(out: Option<&Path>, seeds: &[u64], jobs: usize) -> Matrix {
    let scenario = Scenario::load(STORY, "story.toml", &[]).expect("the story is a scenario");
    Matrix {
        scenarios: vec![Choice { argument: "story.toml".to_owned(), set: Vec::new(), scenario }],
        schemes: Vec::new(),
        seeds: seeds.to_vec(),
        jobs,
        out: out.map(Path::to_owned),
        program: "airpace".to_owned(),
        command: String::new(),
        qlog: false,
        again: None,
        page: false,
        further: Vec::new(),
    }
}

fn patient(_: Progress<'_>) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn whole(table: &Batches) -> RecordBatch {
    concat_batches(&table.schema, &table.batches).expect("all batches have the table's columns")
}

/// Names of the tables of a simulated run.
fn simulated() -> Vec<&'static str> {
    TABLES.into_iter().filter(|table| *table != "departures").collect()
}

#[test]
fn tables_in_memory_have_the_rows_of_the_run_folder() {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let in_folder = story(Some(temporary.path()), &[3, 1], 2);
    let written = in_folder.run(&patient).expect("the story runs");
    let memory = Memory::of(simulated());
    let in_memory = story(None, &[3, 1], 2);
    let prepared = in_memory.prepare().expect("the story names no files");
    let kept = in_memory.run_in_memory(&prepared, &memory, &patient).expect("the story runs again");
    assert_eq!(kept.summary, written.summary, "the numbers do not depend on where tables go");
    assert!(kept.folder.is_none(), "nothing is written");
    let folder = written.folder.expect("a folder was asked for");
    for table in simulated() {
        let kept = memory.table(table, &kept.summary.keys()).expect("the table was wanted");
        let read = folder.table(table).expect("the table was written");
        assert!(whole(&kept).num_rows() > 0 || table == "losses", "{table} has rows");
        assert_eq!(whole(&kept), whole(&read), "{table}: the same rows, in the order of the runs");
    }
}

#[test]
fn only_tables_that_are_wanted_are_kept() {
    let memory = Memory::of(vec!["acks"]);
    let matrix = story(None, &[1], 1);
    let prepared = matrix.prepare().expect("the story names no files");
    let runs = matrix.run_in_memory(&prepared, &memory, &patient).expect("the story runs").summary;
    let runs = runs.keys();
    assert!(memory.table("packets", &runs).is_none(), "nobody wanted packets");
    assert!(whole(&memory.table("acks", &runs).expect("wanted")).num_rows() > 0);
}

#[test]
fn a_table_that_does_not_exist_is_refused_by_name() {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let folder = story(Some(temporary.path()), &[1], 1).run(&patient).expect("the story runs").folder;
    let error = folder.expect("a folder").table("packet").expect_err("there is no such table");
    assert!(matches!(error, FileError::NoTable { .. }), "{error}");
    assert!(error.to_string().contains("packets"), "it names those that there are: {error}");
}
