//! Tables in memory: those of many runs together, as the readers of a run folder put them together.
//!
//! A table has the columns of its files and, behind them, those that its folders say:
//!
//! | column | type | meaning |
//! | --- | --- | --- |
//! | `scenario` | word | the scenario |
//! | `scheme` | word | the scheme under test, as it was spelled |
//! | `seed` | u64 | the seed |

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};

use super::columns::Cell;
use super::words::Words;
use super::{TABLES, fields, read};
use crate::error::EvalError;
use crate::facts::RunFacts;
use crate::folder::RunFolder;
use crate::summary::RunSummary;

/// A table as Arrow's readers take it: columns, and batches of rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Batches {
    /// The columns.
    pub schema: SchemaRef,
    /// The rows.
    pub batches: Vec<RecordBatch>,
}

impl Batches {
    /// The same rows, where each column of words has one dictionary for all batches.
    ///
    /// Arrow allows a dictionary per batch, but not every reader expects it: polars 1.10 to 1.31 reads the words of all
    /// batches by the dictionary of the first one.
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

/// Columns of words with one dictionary: the words of all parts, in the order in which they first occur.
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

/// The tables of the runs of a matrix. Several runs may fill it at once.
#[derive(Debug, Default)]
pub struct Memory {
    wanted: Vec<&'static str>,
    filled: Arc<Mutex<Filled>>,
}

type Filled = BTreeMap<(&'static str, Key), Batches>;

/// Which run: scenario, scheme and seed.
type Key = (String, String, u64);

impl Memory {
    /// Room for these tables of [`TABLES`]. Other tables are not kept.
    pub fn of(wanted: Vec<&'static str>) -> Memory {
        Memory { wanted, filled: Arc::default() }
    }

    /// The part of a table that a run with these facts fills; `None` if the table is not wanted.
    pub(super) fn part(&self, table: &'static str, facts: &RunFacts) -> Option<Part> {
        let key = (facts.scenario.clone(), facts.scheme.clone(), facts.seed);
        let all = self.filled.clone();
        self.wanted.contains(&table).then_some(Part { table, key, all, batches: vec![] })
    }

    /// A table with the rows of these runs, one run after the other; `None` if the table was not wanted. Every run must
    /// have ended.
    pub fn table(&self, table: &str, runs: &[RunSummary]) -> Option<Batches> {
        let table = *self.wanted.iter().find(|wanted| **wanted == table)?;
        let filled = self.filled.lock().unwrap_or_else(PoisonError::into_inner);
        let of_run = |run: &RunSummary| filled.get(&(table, key(run)));
        let schema = runs.iter().find_map(of_run).map(|part| part.schema.clone());
        let schema = schema.unwrap_or_else(|| keyed_schema(&fields(table)));
        let batches = runs.iter().filter_map(of_run).flat_map(|part| part.batches.clone());
        Some(Batches { schema, batches: batches.collect() })
    }
}

/// One run's part of one table, while the run lasts.
pub(super) struct Part {
    table: &'static str,
    key: Key,
    batches: Vec<RecordBatch>,
    all: Arc<Mutex<Filled>>,
}

impl Part {
    /// Takes rows.
    pub(super) fn push(&mut self, fields: Vec<Field>, columns: Vec<ArrayRef>) {
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns);
        let keyed = batch.and_then(|batch| keyed(&batch, &self.key));
        self.batches
            .push(keyed.expect("a table's columns have the types of its fields, and are equally long"));
    }

    /// Hands over the rows of a run that came to its end. `fields` are the table's own columns.
    pub(super) fn finish(self, fields: &[Field]) {
        let part = Batches { schema: keyed_schema(fields), batches: self.batches };
        self.all.lock().unwrap_or_else(PoisonError::into_inner).insert((self.table, self.key), part);
    }
}

/// A table of a run folder, whole and in memory. A table that no run of the folder has is empty.
///
/// # Errors
/// A name that no table has, or a file that cannot be read or that no run writes.
pub fn read_table(folder: &RunFolder, table: &str) -> Result<Batches, EvalError> {
    let Some(table) = TABLES.iter().copied().find(|known| *known == table) else {
        return Err(EvalError::NoTable { name: table.to_owned() });
    };
    let mut batches: Vec<RecordBatch> = vec![];
    for run in &folder.summary()?.runs {
        let part = read::Part::of(folder.root(), table, run);
        if !part.exists() {
            continue;
        }
        let columns = part.columns()?;
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        part.for_each(&columns, |batch| {
            let keyed = keyed(batch, &key(run)).map_err(|error| error.to_string())?;
            match batches.first() {
                Some(first) if first.schema().fields() != keyed.schema().fields() => {
                    return Err("its columns are not those of the other runs".to_owned());
                }
                _ => batches.push(keyed),
            }
            Ok(())
        })?;
    }
    let schema = batches.first().map_or_else(|| keyed_schema(&fields(table)), RecordBatch::schema);
    Ok(Batches { schema, batches })
}

fn key(run: &RunSummary) -> Key {
    (run.scenario.clone(), run.scheme.clone(), run.seed)
}

/// How many columns say which run a row is of.
pub(super) const KEYS: usize = 3;

/// The columns of a table of several runs.
fn keyed_schema(fields: &[Field]) -> SchemaRef {
    let keys: [Field; KEYS] =
        [Words::field("scenario"), Words::field("scheme"), <u64 as Cell>::field("seed")];
    Arc::new(Schema::new(fields.iter().cloned().chain(keys).collect::<Vec<_>>()))
}

/// A run's rows with the columns that say which run it is.
fn keyed(batch: &RecordBatch, (scenario, scheme, seed): &Key) -> Result<RecordBatch, ArrowError> {
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
