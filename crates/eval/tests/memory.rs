//! Tables in memory are those of a run folder.

mod common;

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use airpace_eval::tables::{TABLES, memory::read_table};
use airpace_eval::{Batches, EvalError, Memory};
use common::{Temporary, patient, story};

fn whole(table: &Batches) -> RecordBatch {
    concat_batches(&table.schema, &table.batches).expect("all batches have the table's columns")
}

/// What a simulated run has.
fn simulated() -> Vec<&'static str> {
    TABLES.into_iter().filter(|table| *table != "departures").collect()
}

#[test]
fn tables_in_memory_have_the_rows_of_the_run_folder() {
    let temporary = Temporary::new("memory");
    let in_folder = story(Some(&temporary.0), &[3, 1], 2);
    let written = in_folder.run(&patient).expect("the story runs");
    let memory = Memory::of(simulated());
    let in_memory = story(None, &[3, 1], 2);
    let prepared = in_memory.prepare().expect("the story names no files");
    let kept = in_memory.run_in_memory(&prepared, &memory, &patient).expect("the story runs again");
    assert_eq!(kept.summary, written.summary, "the numbers do not depend on where tables go");
    assert!(kept.folder.is_none(), "nothing is written");
    let folder = written.folder.expect("a folder was asked for");
    for table in simulated() {
        let kept = memory.table(table, &kept.summary.runs).expect("the table was wanted");
        let read = read_table(&folder, table).expect("the table was written");
        assert!(whole(&kept).num_rows() > 0 || table == "losses", "{table} has rows");
        assert_eq!(whole(&kept), whole(&read), "{table}: the same rows, in the order of the runs");
    }
}

#[test]
fn only_tables_that_are_wanted_are_kept() {
    let memory = Memory::of(vec!["acks"]);
    let matrix = story(None, &[1], 1);
    let prepared = matrix.prepare().expect("the story names no files");
    let runs = matrix.run_in_memory(&prepared, &memory, &patient).expect("the story runs").summary.runs;
    assert!(memory.table("packets", &runs).is_none(), "nobody wanted packets");
    assert!(whole(&memory.table("acks", &runs).expect("wanted")).num_rows() > 0);
}

#[test]
fn a_table_that_does_not_exist_is_refused_by_name() {
    let temporary = Temporary::new("memory-names");
    let folder = story(Some(&temporary.0), &[1], 1).run(&patient).expect("the story runs").folder;
    let error = read_table(&folder.expect("a folder"), "packet").expect_err("there is no such table");
    assert!(matches!(error, EvalError::NoTable { .. }), "{error}");
    assert!(error.to_string().contains("packets"), "it names those that there are: {error}");
}
