//! The numbers of a summary as a table: a row per flow of a run.
//!
//! | column | type | meaning |
//! | --- | --- | --- |
//! | `scenario`, `scheme` | text | the run; `scheme` is the scheme under test, as it was spelled |
//! | `seed` | u64 | the run's seed |
//! | `flow` | text | what the scenario calls the flow |
//! | `index`, `device` | u16 | its index, and that of its device, in the scenario |
//! | `direction` | text | `down` to its device or `up` from it |
//! | `flow_scheme` | text | the scheme that it ran: the one under test, or its own |
//! | `greedy` | bool | whether it takes all that it can get |
//! | one per metric | f64 | called as in `[[expect]]`, as `queueing_delay_ms.p95`; null where there is nothing to measure |
//!
//! Metrics are those of [`crate::metrics`], but for those by the name of a state and the list of single transfers.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt16Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema};

use super::memory::Batches;
use crate::direction;
use crate::expect::{metrics, numbers};
use crate::summary::{FlowSummary, RunSummary};

/// What is a metric of a summary, but no number.
const LIST: &str = "transfers.each";

/// The flows of these runs, one run after the other.
pub fn of(runs: &[RunSummary]) -> Batches {
    let rows: Vec<(&RunSummary, &FlowSummary)> =
        runs.iter().flat_map(|run| run.flows.iter().map(move |flow| (run, flow))).collect();
    let text = |of: &dyn Fn(&RunSummary, &FlowSummary) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(rows.iter().map(|(run, flow)| of(run, flow))))
    };
    let number = |of: &dyn Fn(&FlowSummary) -> u16| -> ArrayRef {
        Arc::new(UInt16Array::from_iter_values(rows.iter().map(|(_, flow)| of(flow))))
    };
    let seeds: ArrayRef = Arc::new(UInt64Array::from_iter_values(rows.iter().map(|(run, _)| run.seed)));
    let greedy: ArrayRef = Arc::new(rows.iter().map(|(_, flow)| Some(flow.greedy)).collect::<BooleanArray>());
    let mut columns = vec![
        ("scenario".to_owned(), false, text(&|run, _| run.scenario.clone())),
        ("scheme".to_owned(), false, text(&|run, _| run.scheme.clone())),
        ("seed".to_owned(), false, seeds),
        ("flow".to_owned(), false, text(&|_, flow| flow.flow.clone())),
        ("index".to_owned(), false, number(&|flow| flow.index)),
        ("device".to_owned(), false, number(&|flow| flow.device)),
        ("direction".to_owned(), false, text(&|_, flow| direction::word(flow.direction).to_owned())),
        ("flow_scheme".to_owned(), false, text(&|_, flow| flow.scheme.clone())),
        ("greedy".to_owned(), false, greedy),
    ];
    let values: Vec<Vec<Option<f64>>> = rows.iter().map(|(_, flow)| numbers(&flow.metrics)).collect();
    for (at, metric) in metrics().into_iter().enumerate().filter(|(_, metric)| metric != LIST) {
        let column: Float64Array = values.iter().map(|row| row[at]).collect();
        columns.push((metric, true, Arc::new(column)));
    }
    let field = |(name, nullable, column): &(String, bool, ArrayRef)| -> Field {
        let of: DataType = column.data_type().clone();
        Field::new(name, of, *nullable)
    };
    let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
    let columns = columns.into_iter().map(|(_, _, column)| column).collect();
    let batch = RecordBatch::try_new(schema.clone(), columns).expect("a cell for each row and column");
    Batches { schema, batches: vec![batch] }
}
