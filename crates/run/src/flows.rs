//! Table of a summary's metrics: one row per flow of a run.
//!
//! | column | type | meaning |
//! | --- | --- | --- |
//! | `scenario`, `scheme` | word | scenario of the run, and scheme under test as spelled |
//! | `seed` | u64 | the run's seed |
//! | `flow` | u16 | index of the flow in the scenario, as in the tables of events |
//! | `flow_label` | word | label of the flow |
//! | `device` | u16 | index of the flow's device in the scenario |
//! | `direction` | word | `down` to the device or `up` from the device |
//! | `flow_scheme` | word | scheme that the flow ran: the scheme under test, or the flow's own |
//! | `greedy` | bool | whether the flow uses all available capacity |
//! | one per metric | f64 | named as in `[[expect]]`, such as `queueing_delay_ms.p95`; null if the metric has no value |
//!
//! The table contains the metrics of [`crate::metrics`], except those per state and the lists of single transfers and
//! segments.

use std::sync::{Arc, OnceLock};

use airpace_tables::Batches;
use airpace_tables::direction;
use airpace_tables::words::Words;
use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, UInt16Array, UInt64Array};
use arrow_schema::{Field, Schema};
use serde::{Deserialize, Serialize};

use crate::expect::{metrics, numbers};
use crate::summary::{FlowSummary, RunSummary};

/// Paths of the metrics of a summary that are not numbers.
const LISTS: [&str; 2] = ["transfers.each", "video.each"];

/// The names of the columns in front of the metrics.
const FIRST: [&str; 9] =
    ["scenario", "scheme", "seed", "flow", "flow_label", "device", "direction", "flow_scheme", "greedy"];

/// A flow of a run, without the scenario, scheme and seed of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowRow {
    /// Label of the flow in the scenario.
    pub flow: String,
    /// Index of the flow in the scenario.
    pub index: u16,
    /// Index of the flow's device.
    pub device: u16,
    /// `down` to the device or `up` from the device.
    pub direction: String,
    /// The scheme that the flow ran.
    pub scheme: String,
    /// Whether the flow uses all available capacity.
    pub greedy: bool,
    /// A value for each of [`metric_names`]; `None` if the metric has no value.
    #[serde(with = "as_text")]
    pub values: Vec<Option<f64>>,
}

impl FlowRow {
    /// The value of a metric; `None` if the flow has none, or if no metric has this name.
    pub fn value(&self, metric: &str) -> Option<f64> {
        let place = metric_names().iter().position(|name| name == metric)?;
        self.values[place]
    }

    /// The row of a flow.
    pub fn of(flow: &FlowSummary) -> FlowRow {
        let values = metrics().into_iter().zip(numbers(&flow.metrics));
        FlowRow {
            flow: flow.flow.clone(),
            index: flow.index,
            device: flow.device,
            direction: direction::word(flow.direction).to_owned(),
            scheme: flow.scheme.clone(),
            greedy: flow.greedy,
            values: values
                .filter(|(metric, _)| !LISTS.contains(&metric.as_str()))
                .map(|(_, value)| value)
                .collect(),
        }
    }
}

/// The metrics of the table, which are also the names of their columns.
pub fn metric_names() -> &'static [String] {
    static NAMES: OnceLock<Vec<String>> = OnceLock::new();
    NAMES.get_or_init(|| metrics().into_iter().filter(|metric| !LISTS.contains(&metric.as_str())).collect())
}

/// Whether the table has a column with this name.
pub fn is_column(name: &str) -> bool {
    FIRST.contains(&name) || metric_names().iter().any(|metric| metric == name)
}

/// A column: name, nullability, and cells.
pub type Column = (String, bool, ArrayRef);

/// The columns that identify the flow, starting with `flow`, and the columns of the metrics.
pub fn columns<'a>(rows: impl Iterator<Item = &'a FlowRow> + Clone) -> Vec<Column> {
    let word = |name: &str, of: fn(&FlowRow) -> &str| -> Column {
        (name.to_owned(), false, Words::column(rows.clone().map(of)))
    };
    let number = |name: &str, of: fn(&FlowRow) -> u16| -> Column {
        (name.to_owned(), false, Arc::new(UInt16Array::from_iter_values(rows.clone().map(of))))
    };
    let greedy: BooleanArray = rows.clone().map(|row| Some(row.greedy)).collect();
    let mut columns = vec![
        number("flow", |row| row.index),
        word("flow_label", |row| &row.flow),
        number("device", |row| row.device),
        word("direction", |row| &row.direction),
        word("flow_scheme", |row| &row.scheme),
        ("greedy".to_owned(), false, Arc::new(greedy) as ArrayRef),
    ];
    for (at, metric) in metric_names().iter().enumerate() {
        let column: Float64Array = rows.clone().map(|row| row.values[at]).collect();
        columns.push((metric.clone(), true, Arc::new(column)));
    }
    columns
}

/// A table of these columns.
pub fn table(columns: Vec<Column>) -> RecordBatch {
    let field = |(name, nullable, cells): &Column| Field::new(name, cells.data_type().clone(), *nullable);
    let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
    let cells = columns.into_iter().map(|(_, _, cells)| cells).collect();
    RecordBatch::try_new(schema, cells).expect("a cell for each row and column")
}

/// The table of the flows of these runs, one run after the other.
pub fn of(runs: &[RunSummary]) -> Batches {
    let rows: Vec<(&RunSummary, FlowRow)> =
        runs.iter().flat_map(|run| run.flows.iter().map(move |flow| (run, FlowRow::of(flow)))).collect();
    let word = |of: fn(&RunSummary) -> &str| Words::column(rows.iter().map(|(run, _)| of(run)));
    let seeds = UInt64Array::from_iter_values(rows.iter().map(|(run, _)| run.seed));
    let mut all = vec![
        ("scenario".to_owned(), false, word(|run| &run.scenario)),
        ("scheme".to_owned(), false, word(|run| &run.scheme)),
        ("seed".to_owned(), false, Arc::new(seeds) as ArrayRef),
    ];
    all.extend(columns(rows.iter().map(|(_, row)| row)));
    let batch = table(all);
    Batches { schema: batch.schema(), batches: vec![batch] }
}

/// Serialises values as one text: each with the fewest digits that restore it, and `-` for `None`.
mod as_text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(values: &[Option<f64>], to: S) -> Result<S::Ok, S::Error> {
        let word = |value: &Option<f64>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
        to.serialize_str(&values.iter().map(word).collect::<Vec<_>>().join(" "))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Option<f64>>, D::Error> {
        let text = String::deserialize(from)?;
        let number = |word: &str| match word {
            "-" => Ok(None),
            word => match word.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(Some(number)),
                _ => Err(D::Error::custom(format!("`{word}` is no number"))),
            },
        };
        let values = text.split(' ').map(number).collect::<Result<Vec<_>, _>>()?;
        let wanted = super::metric_names().len();
        match values.len() == wanted {
            true => Ok(values),
            false => Err(D::Error::custom(format!("{} numbers, not {wanted}", values.len()))),
        }
    }
}
