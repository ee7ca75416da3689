//! Tables that other Python libraries read through Arrow.
//!
//! Libraries that support Arrow's PyCapsule interface read the rows without a copy: pyarrow, polars, DuckDB, pandas. The
//! capsule holds a stream of batches, whose buffers are reference-counted.
//!
//! Apache Arrow's pages on the PyCapsule interface and on the C stream interface describe both.

use std::sync::Arc;

use airpace_core::count::count;
use airpace_tables::Batches;
use arrow_array::cast::AsArray;
use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int32Type, Int64Type, TimestampNanosecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatchIterator};
use arrow_schema::{DataType, TimeUnit};
use arrow_select::concat::concat_batches;
use numpy::{Element, PyArray1};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PySlice};

use crate::raise;

/// Rows and columns in Arrow's format.
#[pyclass(frozen, module = "airpace")]
pub struct Table {
    table: Arc<Batches>,
}

impl Table {
    /// Makes a table of these batches. Each column of words gets one dictionary for all batches.
    pub fn new(table: Batches) -> Table {
        Table { table: Arc::new(table.with_one_dictionary()) }
    }

    fn parts(&self, column: &str) -> PyResult<Vec<&ArrayRef>> {
        let at = self.table.schema.index_of(column).map_err(|_| {
            PyKeyError::new_err(format!("no column `{column}`; there are {}", self.column_names().join(", ")))
        })?;
        Ok(self.table.batches.iter().map(|batch| batch.column(at)).collect())
    }
}

#[pymethods]
impl Table {
    /// The rows as a stream of batches. A requested schema is ignored, as the interface allows.
    ///
    /// If the imported polars reads only the first batch of a stream, the stream has a single batch, which is a copy.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let Batches { schema, batches } = self.table.as_ref();
        let batches = match batches.len() > 1 && reads_one_batch(py) {
            true => vec![py.detach(|| concat_batches(schema, batches)).map_err(raise::failed)?],
            false => batches.clone(),
        };
        let reader = RecordBatchIterator::new(batches.into_iter().map(Ok), schema.clone());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
    }

    /// The columns as the schema of a struct.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.table.schema.as_ref()).map_err(raise::failed)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The names of the columns, in order.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.table.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.table.batches.iter().map(|batch| batch.num_rows()).sum()
    }

    /// Size of the rows in memory, in bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.table.batches.iter().map(|batch| batch.get_array_memory_size()).sum()
    }

    fn __len__(&self) -> usize {
        self.num_rows()
    }

    /// Whether a column has this name. The answer for an object that is no text is `False`.
    fn __contains__(&self, column: &Bound<'_, PyAny>) -> bool {
        column.extract::<String>().is_ok_and(|name| self.table.schema.index_of(&name).is_ok())
    }

    /// Libraries without Arrow would read a table row by row, as `pandas.DataFrame(table)` does, and make millions of objects.
    fn __iter__(&self) -> PyResult<Py<PyAny>> {
        Err(PyTypeError::new_err(
            "a table is not read row by row; for pandas: pandas.DataFrame.from_arrow(table) from pandas 3 on, or \
             pandas.DataFrame(table.to_dict()); polars.DataFrame(table) and pyarrow.table(table) read it as it is",
        ))
    }

    /// All columns as NumPy arrays.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        for name in self.column_names() {
            columns.set_item(&name, self.array(py, &name)?)?;
        }
        Ok(columns)
    }

    fn __repr__(&self) -> String {
        let columns = self.table.schema.fields();
        let columns: Vec<String> =
            columns.iter().map(|field| format!("{}: {}", field.name(), word(field.data_type()))).collect();
        format!("<airpace.Table of {}: {}>", count(self.num_rows() as u64, "row"), columns.join(", "))
    }

    fn __getitem__<'py>(&self, py: Python<'py>, column: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let Ok(column) = column.extract::<String>() else {
            return Err(PyTypeError::new_err(format!(
                "a table has columns, read by their names: {}",
                self.column_names().join(", ")
            )));
        };
        self.array(py, &column)
    }
}

impl Table {
    /// A column as a NumPy array.
    fn array<'py>(&self, py: Python<'py>, column: &str) -> PyResult<Bound<'py, PyAny>> {
        let parts = self.parts(column)?;
        let field = self.table.schema.field_with_name(column).map_err(raise::failed)?;
        array(py, column, field.data_type(), &parts)
    }
}

/// The first version of polars that reads all batches of a stream.
///
/// Chosen: measured with polars 1.3, 1.8, 1.9, 1.10, 1.11, 1.12, 1.20, 1.31 and 2.1.
const FIRST_OF_ALL_BATCHES: (u32, u32) = (1, 10);

/// Whether the imported polars reads only the first batch of a stream, without an error.
fn reads_one_batch(py: Python<'_>) -> bool {
    let version = || -> PyResult<String> {
        py.import("sys")?.getattr("modules")?.get_item("polars")?.getattr("__version__")?.extract()
    };
    let version = version().unwrap_or_default();
    let mut parts = version.split('.').map_while(|part| part.parse::<u32>().ok());
    matches!((parts.next(), parts.next()), (Some(major), Some(minor)) if (major, minor) < FIRST_OF_ALL_BATCHES)
}

/// Converts the values of column `name` to a NumPy array. Missing values become `NaN`, `NaT` or `None`.
fn array<'py>(
    py: Python<'py>,
    name: &str,
    data_type: &DataType,
    parts: &[&ArrayRef],
) -> PyResult<Bound<'py, PyAny>> {
    let has_nulls = parts.iter().any(|part| part.null_count() > 0);
    Ok(match data_type {
        DataType::Float64 => floats::<Float64Type>(py, parts),
        DataType::Float32 => floats::<Float32Type>(py, parts),
        DataType::UInt8 if has_nulls => floats::<UInt8Type>(py, parts),
        DataType::UInt16 if has_nulls => floats::<UInt16Type>(py, parts),
        DataType::UInt32 if has_nulls => floats::<UInt32Type>(py, parts),
        DataType::UInt64 if has_nulls => floats::<UInt64Type>(py, parts),
        DataType::Int64 if has_nulls => floats::<Int64Type>(py, parts),
        DataType::UInt8 => numbers::<UInt8Type>(py, parts),
        DataType::UInt16 => numbers::<UInt16Type>(py, parts),
        DataType::UInt32 => numbers::<UInt32Type>(py, parts),
        DataType::UInt64 => numbers::<UInt64Type>(py, parts),
        DataType::Int64 => numbers::<Int64Type>(py, parts),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => times(py, parts)?,
        DataType::Boolean if has_nulls => {
            let values = parts.iter().flat_map(|part| part.as_boolean().iter());
            objects(py, values.map(|value| value.into_py_any(py)))?
        }
        DataType::Boolean => {
            let values = parts.iter().flat_map(|part| part.as_boolean().values().iter());
            PyArray1::from_iter(py, values).into_any()
        }
        DataType::List(entry) => lists(py, name, entry.data_type(), parts)?,
        DataType::Utf8 | DataType::Dictionary(..) => words(py, parts)?.into_any(),
        other => {
            let reason = format!(
                "column `{name}` is {}, which NumPy has no type for; give the table to polars or pyarrow",
                word(other)
            );
            return Err(PyTypeError::new_err(reason));
        }
    })
}

/// Converts times. The times are in UTC: NumPy's times have no time zone.
fn times<'py>(py: Python<'py>, parts: &[&ArrayRef]) -> PyResult<Bound<'py, PyAny>> {
    // NumPy's `NaT` is the minimum 64-bit integer.
    let values = parts.iter().flat_map(|part| part.as_primitive::<TimestampNanosecondType>().iter());
    let values = values.map(|value| value.unwrap_or(i64::MIN));
    PyArray1::from_vec(py, values.collect()).call_method1("view", ("datetime64[ns]",))
}

/// Converts lists to an array of arrays, which are views of one array.
fn lists<'py>(
    py: Python<'py>,
    name: &str,
    entry: &DataType,
    parts: &[&ArrayRef],
) -> PyResult<Bound<'py, PyAny>> {
    let lists = parts.iter().map(|part| part.as_list::<i32>());
    let entries: Vec<&ArrayRef> = lists.clone().map(|list| list.values()).collect();
    let all = array(py, name, entry, &entries)?;
    let mut rows: Vec<PyResult<Py<PyAny>>> = vec![];
    let mut before = 0;
    for list in lists {
        for (row, ends) in list.value_offsets().windows(2).enumerate() {
            let at = |end: i32| before + end as isize;
            rows.push(match list.is_valid(row) {
                true => all.get_item(PySlice::new(py, at(ends[0]), at(ends[1]), 1)).map(Bound::unbind),
                false => Ok(py.None()),
            });
        }
        before += list.values().len() as isize;
    }
    objects(py, rows.into_iter())
}

/// Makes an array of objects. NumPy's own conversion would turn lists of equal length into a matrix.
fn objects<'py>(
    py: Python<'py>,
    values: impl Iterator<Item = PyResult<Py<PyAny>>>,
) -> PyResult<Bound<'py, PyAny>> {
    let values: Vec<Py<PyAny>> = values.collect::<PyResult<_>>()?;
    Ok(PyArray1::from_vec(py, values).into_any())
}

/// The name of a column's type, for people.
fn word(of: &DataType) -> String {
    match of {
        DataType::Utf8 | DataType::Dictionary(..) => "str".to_owned(),
        other => other.to_string().to_lowercase(),
    }
}

/// Converts numbers without missing values.
fn numbers<'py, T>(py: Python<'py>, parts: &[&ArrayRef]) -> Bound<'py, PyAny>
where
    T: ArrowPrimitiveType,
    T::Native: Element,
{
    let values = parts.iter().flat_map(|part| part.as_primitive::<T>().values().iter().cloned());
    PyArray1::from_vec(py, values.collect()).into_any()
}

/// Converts numbers to floats. Missing values become NaN.
fn floats<'py, T>(py: Python<'py>, parts: &[&ArrayRef]) -> Bound<'py, PyAny>
where
    T: ArrowPrimitiveType,
    T::Native: num::Number,
{
    let values = parts.iter().flat_map(|part| part.as_primitive::<T>().iter());
    let values = values.map(|value| value.map_or(f64::NAN, num::Number::float));
    PyArray1::from_vec(py, values.collect()).into_any()
}

/// Converts text to objects. Missing values become `None`.
fn words<'py>(py: Python<'py>, parts: &[&ArrayRef]) -> PyResult<Bound<'py, PyAny>> {
    let mut all: Vec<Option<String>> = vec![];
    for part in parts {
        match part.as_dictionary_opt::<Int32Type>() {
            Some(dictionary) => {
                let words = dictionary.values().as_string::<i32>();
                let word = |key: Option<i32>| Some(words.value(usize::try_from(key?).ok()?).to_owned());
                all.extend(dictionary.keys().iter().map(word));
            }
            None => all.extend(part.as_string::<i32>().iter().map(|word| word.map(str::to_owned))),
        }
    }
    let list = PyList::new(py, all)?;
    let keywords = pyo3::types::PyDict::new(py);
    keywords.set_item("dtype", "object")?;
    py.import("numpy")?.call_method("array", (list,), Some(&keywords))
}

mod num {
    /// A number type that converts to a 64-bit float. Integers above 2^53 are rounded.
    pub trait Number {
        /// The value as a 64-bit float.
        fn float(self) -> f64;
    }

    macro_rules! numbers {
        ($($type:ty)*) => {$(
            impl Number for $type {
                fn float(self) -> f64 {
                    self as f64
                }
            }
        )*};
    }

    numbers! { u8 u16 u32 u64 i64 f32 f64 }
}
