//! Results of a sweep as one Parquet dataset, partitioned by scheme: `results/scheme=pbe/part.parquet`.
//!
//! | column | type | meaning |
//! | --- | --- | --- |
//! | `cell` | u64 | number of the run in the matrix |
//! | `scenario` | word | name of the scenario |
//! | `seed` | u64 | seed of the run |
//! | one per key of `--set` | integer, float, bool or text | value of the key; the column is named after the key: `cell.prbs` |
//! | `flow` to `greedy`, one per metric | | as in [`crate::flows`] |
//! | `key` | text | key of the run |
//!
//! Rows are in the order of the runs. A failed run has no rows.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use airpace_files::Whole;
use airpace_tables::FileError;
use airpace_tables::memory::Batches;
use airpace_tables::words::Words;
use airpace_tables::{ParquetFile, ROWS_PER_GROUP, percent_encoded, read};
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{Field, Schema};

use super::axis::{Axis, Kind, text_of};
use super::plan::{Cell, Plan};
use super::record::Key;
use crate::error::RunError;
use crate::flows::{self, Column, FlowRow};

/// Name of the dataset's folder.
pub(super) const RESULTS: &str = "results";
/// Prefix of the names of partition folders.
const SCHEME: &str = "scheme=";
/// Name of the file in a partition.
const PART: &str = "part.parquet";

/// A completed run.
pub(super) struct Ended {
    pub(super) cell: Cell,
    pub(super) key: Key,
    pub(super) flows: Vec<FlowRow>,
}

/// The partition of one scheme, while it is being written.
pub(super) struct Partition<'a> {
    plan: &'a Plan,
    scenario: &'a str,
    file: ParquetFile,
    ended: Vec<Ended>,
    rows: usize,
}

impl<'a> Partition<'a> {
    /// Creates the partition of the scheme with this index.
    pub(super) fn create(
        root: &Path,
        plan: &'a Plan,
        scenario: &'a str,
        scheme: usize,
    ) -> Result<Self, RunError> {
        let path = part(root, &plan.spec().schemes[scheme]);
        let folder = path.parent().unwrap_or(root);
        fs::create_dir_all(folder).map_err(FileError::write("make the folder", folder))?;
        let file = Whole::replace(&path).map_err(FileError::write("make the file", &path))?;
        let columns = columns(plan, scenario, &[]);
        let field = |(name, nullable, cells): &Column| Field::new(name, cells.data_type().clone(), *nullable);
        let file = ParquetFile::new(file, columns.iter().map(field).collect())?;
        Ok(Partition { plan, scenario, file, ended: vec![], rows: 0 })
    }

    /// Adds a run. Runs must be added in their order.
    pub(super) fn add(&mut self, run: Ended) -> Result<(), RunError> {
        self.rows += run.flows.len();
        self.ended.push(run);
        if self.rows >= ROWS_PER_GROUP {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), FileError> {
        let ended = std::mem::take(&mut self.ended);
        self.rows = 0;
        let cells = columns(self.plan, self.scenario, &ended).into_iter().map(|(_, _, cells)| cells);
        self.file.write_group(cells.collect())
    }

    /// Writes the remaining rows and moves the file to its final name.
    pub(super) fn finish(mut self) -> Result<(), FileError> {
        if !self.ended.is_empty() {
            self.write()?;
        }
        self.file.finish()
    }
}

fn part(root: &Path, scheme: &str) -> PathBuf {
    root.join(RESULTS).join(format!("{SCHEME}{}", percent_encoded(scheme))).join(PART)
}

fn columns(plan: &Plan, scenario: &str, ended: &[Ended]) -> Vec<Column> {
    let rows = || ended.iter().flat_map(|run| run.flows.iter().map(move |flow| (run, flow)));
    let number = |of: fn(&Ended) -> u64| -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(rows().map(|(run, _)| of(run))))
    };
    let scenarios = Words::column(rows().map(|_| scenario));
    let mut columns = vec![
        ("cell".to_owned(), false, number(|run| run.cell.index)),
        ("scenario".to_owned(), false, scenarios),
        ("seed".to_owned(), false, number(|run| run.cell.seed)),
    ];
    let places: Vec<Vec<usize>> = rows().map(|(run, _)| plan.places(run.cell.point)).collect();
    for (at, axis) in plan.spec().set.iter().enumerate() {
        let cells = values(axis, places.iter().map(|places| places[at]));
        columns.push((axis.key.clone(), false, cells));
    }
    columns.extend(flows::columns(rows().map(|(_, flow)| flow).collect::<Vec<_>>().into_iter()));
    let keys = StringArray::from_iter_values(rows().map(|(run, _)| run.key.to_string()));
    columns.push(("key".to_owned(), false, Arc::new(keys)));
    columns
}

/// The column of an axis: its values at these indices.
fn values(axis: &Axis, places: impl Iterator<Item = usize>) -> ArrayRef {
    let values = &axis.values;
    match axis.kind() {
        Kind::Whole => {
            let values: Vec<i64> = values.iter().map(|value| value.parse().unwrap_or_default()).collect();
            Arc::new(Int64Array::from_iter_values(places.map(|place| values[place])))
        }
        Kind::Number => {
            let values: Vec<f64> = values.iter().map(|value| value.parse().unwrap_or_default()).collect();
            Arc::new(Float64Array::from_iter_values(places.map(|place| values[place])))
        }
        Kind::Truth => Arc::new(places.map(|place| Some(values[place] == "true")).collect::<BooleanArray>()),
        Kind::Text => {
            let values: Vec<String> = values.iter().map(|value| text_of(value)).collect();
            Arc::new(StringArray::from_iter_values(places.map(|place| &values[place])))
        }
    }
}

/// Removes partitions of schemes that are not in the matrix. Such partitions are left from an earlier matrix in the
/// same folder.
///
/// # Errors
/// `results/` contains something that no sweep writes, which readers would interpret as results.
pub(super) fn remove_others(root: &Path, schemes: &[String]) -> Result<(), RunError> {
    let folder = root.join(RESULTS);
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(FileError::write("look into", &folder))?,
    };
    let own: Vec<PathBuf> = schemes.iter().map(|scheme| part(root, scheme)).collect();
    let mut strangers: Vec<PathBuf> = vec![];
    let mut others = vec![];
    for entry in entries {
        let path = entry.map_err(FileError::write("look into", &folder))?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_folder = path.symlink_metadata().is_ok_and(|about| about.is_dir());
        if !name.starts_with(SCHEME) || !is_folder {
            strangers.push(path);
            continue;
        }
        let is_own = own.contains(&path.join(PART));
        for entry in fs::read_dir(&path).map_err(FileError::write("look into", &path))? {
            let entry = entry.map_err(FileError::write("look into", &path))?;
            let is_ours =
                entry.file_name() == PART || airpace_files::unfinished(&entry.file_name()) == Some(PART);
            match is_ours && entry.file_type().is_ok_and(|kind| kind.is_file()) {
                true if is_own && entry.file_name() == PART => {}
                true => others.push(entry.path()),
                false => strangers.push(entry.path()),
            }
        }
    }
    strangers.sort();
    if let [first, rest @ ..] = &strangers[..] {
        return Err(RunError::strangers(first, rest.len()));
    }
    for file in others {
        fs::remove_file(&file).map_err(FileError::write("remove", &file))?;
        // The system removes the folder only if it is empty.
        let _ = fs::remove_dir(file.parent().unwrap_or(root));
    }
    Ok(())
}

/// Reads the whole dataset into memory, with the column `scheme` after `scenario`.
///
/// # Errors
/// A file cannot be read, or was not written by a sweep.
pub(super) fn read(root: &Path, schemes: &[String]) -> Result<Batches, RunError> {
    let mut batches: Vec<RecordBatch> = vec![];
    let mut schema = None;
    for scheme in schemes {
        let path = part(root, scheme);
        let malformed = |reason: String| FileError::Malformed { path: path.clone(), reason };
        let (fields, rows) = read::whole(&path)?;
        let at = fields.index_of("scenario").map_err(|error| malformed(error.to_string()))? + 1;
        let mut fields: Vec<Field> = fields.fields().iter().map(|field| field.as_ref().clone()).collect();
        fields.insert(at, Words::field("scheme"));
        let own = Arc::new(Schema::new(fields));
        if *schema.get_or_insert_with(|| own.clone()) != own {
            return Err(malformed("its columns are not those of the other schemes".to_owned()).into());
        }
        for batch in rows {
            let mut columns = batch.columns().to_vec();
            columns.insert(at, Words::column(std::iter::repeat_n(scheme.as_str(), batch.num_rows())));
            let batch = RecordBatch::try_new(own.clone(), columns);
            batches.push(batch.map_err(|error| malformed(error.to_string()))?);
        }
    }
    Ok(Batches { schema: schema.unwrap_or_else(|| Arc::new(Schema::empty())), batches })
}
