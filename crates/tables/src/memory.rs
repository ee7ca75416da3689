//! In-memory tables over several runs, with the same rows as the tables that readers assemble from a run folder.
//!
//! A table has the columns of its Parquet files, followed by the columns that the partition folders define:
//!
//! | column | type | meaning |
//! | --- | --- | --- |
//! | `scenario` | word | name of the scenario |
//! | `scheme` | word | the scheme under test, as spelled |
//! | `seed` | u64 | the seed |

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};

use super::columns::Cell;
use super::fields;
use super::words::Words;
use crate::facts::RunKey;

/// A table in Arrow form: a schema and batches of rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Batches {
    /// The columns.
    pub schema: SchemaRef,
    /// The rows.
    pub batches: Vec<RecordBatch>,
}

impl Batches {
    /// The same rows, with one dictionary per word column for all batches.
    ///
    /// Arrow allows a separate dictionary per batch, but not every reader supports it: polars 1.10 to 1.31 decodes the
    /// words of all batches with the dictionary of the first one.
    pub fn with_one_dictionary(self) -> Batches {
        let Batches { schema, mut batches } = self;
        for (at, field) in schema.fields().iter().enumerate() {
            if *field.data_type() != Words::data_type() {
                continue;
            }
            let parts: Vec<&DictionaryArray<Int32Type>> =
                batches.iter().map(|batch| batch.column(at).as_dictionary()).collect();
            let columns = one_dictionary(&parts);
            for (batch, column) in batches.iter_mut().zip(columns) {
                let mut all = batch.columns().to_vec();
                all[at] = column;
                *batch = RecordBatch::try_new(batch.schema(), all)
                    .expect("the new column has the type and length of the old one");
            }
        }
        Batches { schema, batches }
    }
}

/// Merges the dictionaries of a word column's parts. The words are in order of first appearance.
fn one_dictionary(parts: &[&DictionaryArray<Int32Type>]) -> Vec<ArrayRef> {
    let mut words: Vec<&str> = vec![];
    let mut keys: BTreeMap<&str, i32> = BTreeMap::new();
    let key_of_each: Vec<Vec<Option<i32>>> = parts
        .iter()
        .map(|part| {
            let own = part.values().as_string::<i32>().iter();
            own.map(|word| {
                word.map(|word| {
                    *keys.entry(word).or_insert_with(|| {
                        Vec::push(&mut words, word);
                        words.len() as i32 - 1
                    })
                })
            })
            .collect()
        })
        .collect();
    let dictionary = Arc::new(StringArray::from_iter_values(words));
    let renumbered = parts.iter().zip(key_of_each).map(|(part, keys)| {
        let is_same = keys.iter().enumerate().all(|(old, new)| *new == Some(old as i32));
        let keys = match is_same {
            true => part.keys().clone(),
            false => part.keys().iter().map(|key| key.and_then(|key| keys[key as usize])).collect(),
        };
        Arc::new(DictionaryArray::new(keys, dictionary.clone())) as ArrayRef
    });
    renumbered.collect()
}

/// The tables of the runs of a matrix. Several runs may add rows concurrently.
#[derive(Debug, Default)]
pub struct Memory {
    wanted: Vec<&'static str>,
    filled: Arc<Mutex<Filled>>,
}

type Filled = BTreeMap<(&'static str, Key), Batches>;

/// Identifier of a run: scenario, scheme and seed.
type Key = (String, String, u64);

impl Memory {
    /// An empty memory for the tables `wanted`, which are names of [`crate::TABLES`]. Other tables are discarded.
    pub fn of(wanted: Vec<&'static str>) -> Memory {
        Memory { wanted, filled: Arc::default() }
    }

    /// The part of a table for this run; `None` if the table is not wanted.
    pub(super) fn part(&self, table: &'static str, run: RunKey<'_>) -> Option<Part> {
        let key = key(run);
        let all = self.filled.clone();
        self.wanted.contains(&table).then_some(Part { table, key, all, batches: vec![] })
    }

    /// A table with the rows of these runs, one run after the other; `None` if the table was not wanted. Every run must
    /// have ended.
    pub fn table(&self, table: &str, runs: &[RunKey<'_>]) -> Option<Batches> {
        let table = *self.wanted.iter().find(|wanted| **wanted == table)?;
        let filled = self.filled.lock().unwrap_or_else(PoisonError::into_inner);
        let of_run = |run: &RunKey<'_>| filled.get(&(table, key(*run)));
        let schema = runs.iter().find_map(of_run).map(|part| part.schema.clone());
        let schema = schema.unwrap_or_else(|| keyed_schema(&fields(table)));
        let batches = runs.iter().filter_map(of_run).flat_map(|part| part.batches.clone());
        Some(Batches { schema, batches: batches.collect() })
    }
}

/// Part of a table that belongs to one run, while the run is in progress.
pub(super) struct Part {
    table: &'static str,
    key: Key,
    batches: Vec<RecordBatch>,
    all: Arc<Mutex<Filled>>,
}

impl Part {
    /// Adds rows.
    pub(super) fn push(&mut self, fields: Vec<Field>, columns: Vec<ArrayRef>) {
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns);
        let keyed = batch.and_then(|batch| keyed(&batch, &self.key));
        self.batches
            .push(keyed.expect("a table's columns have the types of its fields, and are equally long"));
    }

    /// Stores the rows of a completed run. `fields` are the table's columns without the columns of the run.
    pub(super) fn finish(self, fields: &[Field]) {
        let part = Batches { schema: keyed_schema(fields), batches: self.batches };
        self.all.lock().unwrap_or_else(PoisonError::into_inner).insert((self.table, self.key), part);
    }
}

pub(super) fn key(RunKey { scenario, scheme, seed }: RunKey<'_>) -> Key {
    (scenario.to_owned(), scheme.to_owned(), seed)
}

/// Number of the columns that identify the run of a row.
pub(super) const KEYS: usize = 3;

/// Schema of a table over several runs.
pub(super) fn keyed_schema(fields: &[Field]) -> SchemaRef {
    let keys: [Field; KEYS] =
        [Words::field("scenario"), Words::field("scheme"), <u64 as Cell>::field("seed")];
    Arc::new(Schema::new(fields.iter().cloned().chain(keys).collect::<Vec<_>>()))
}

/// Adds the columns that identify the run to a run's rows.
pub(super) fn keyed(batch: &RecordBatch, (scenario, scheme, seed): &Key) -> Result<RecordBatch, ArrowError> {
    let rows = batch.num_rows();
    let first = Int32Array::from(vec![0; rows]);
    let word = |word: &str| {
        let words = Arc::new(StringArray::from(vec![word]));
        Arc::new(DictionaryArray::<Int32Type>::new(first.clone(), words)) as ArrayRef
    };
    let keys = [word(scenario), word(scheme), Arc::new(UInt64Array::from(vec![*seed; rows]))];
    let own = batch.schema();
    let fields: Vec<Field> = own.fields().iter().map(|field| field.as_ref().clone()).collect();
    RecordBatch::try_new(keyed_schema(&fields), batch.columns().iter().cloned().chain(keys).collect())
}
