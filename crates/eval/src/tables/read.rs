//! Tables read back, batch by batch.

use std::fs::File;
use std::path::Path;

use arrow_array::RecordBatch;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::errors::ParquetError;

use super::partition;
use crate::error::EvalError;
use crate::facts::RunFacts;
use crate::summary::RunSummary;

/// One run's part of one table.
pub(crate) struct Part {
    path: std::path::PathBuf,
}

impl Part {
    /// The part of `table` that `run` wrote below `root`.
    pub(crate) fn of(root: &Path, table: &str, run: &RunSummary) -> Part {
        let facts = RunFacts {
            scenario: run.scenario.clone(),
            scheme: run.scheme.clone(),
            seed: run.seed,
            duration: airpace_core::Time::ZERO,
            flows: Vec::new(),
        };
        Part { path: partition(root, table, &facts).join("part.parquet") }
    }

    /// The names of its columns.
    pub(crate) fn columns(&self) -> Result<Vec<String>, EvalError> {
        Ok(self.open()?.schema().fields().iter().map(|field| field.name().clone()).collect())
    }

    /// Calls `each` with its rows, a bounded number at a time, of these columns only.
    pub(crate) fn for_each(
        &self,
        columns: &[&str],
        mut each: impl FnMut(&RecordBatch),
    ) -> Result<(), EvalError> {
        let builder = self.open()?;
        let mask = ProjectionMask::columns(builder.parquet_schema(), columns.iter().copied());
        let reader = builder.with_projection(mask).build().map_err(EvalError::table(&self.path))?;
        for batch in reader {
            let batch = batch.map_err(|error| EvalError::table(&self.path)(ParquetError::from(error)))?;
            if let Some(missing) = columns.iter().find(|column| batch.column_by_name(column).is_none()) {
                let reason = format!("it has no column `{missing}`");
                return Err(EvalError::Malformed { path: self.path.clone(), reason });
            }
            each(&batch);
        }
        Ok(())
    }

    fn open(&self) -> Result<ParquetRecordBatchReaderBuilder<File>, EvalError> {
        let file = File::open(&self.path).map_err(EvalError::read(&self.path))?;
        ParquetRecordBatchReaderBuilder::try_new(file).map_err(EvalError::table(&self.path))
    }
}

/// Takes the words of a categorical column, row by row.
pub(crate) fn words(batch: &RecordBatch, column: &str) -> Vec<usize> {
    use arrow_array::cast::AsArray;
    let keys = batch[column].as_dictionary::<arrow_array::types::Int32Type>().keys();
    keys.values().iter().map(|key| *key as usize).collect()
}

/// The words of a categorical column, by key.
pub(crate) fn vocabulary(batch: &RecordBatch, column: &str) -> Vec<String> {
    use arrow_array::cast::AsArray;
    let words = batch[column].as_dictionary::<arrow_array::types::Int32Type>().values().as_string::<i32>();
    words.iter().map(|word| word.unwrap_or_default().to_owned()).collect()
}
