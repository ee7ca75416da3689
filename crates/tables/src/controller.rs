//! `controller`: state of each flow's scheme, sampled at fixed intervals and at every change of state.
//!
//! | column | type | meaning |
//! | --- | --- | --- |
//! | `time_ms` | f64 | time of the sample |
//! | `flow` | u16 | index of the flow in the scenario |
//! | `flow_label` | word | label of the flow in the scenario |
//! | `state` | word | state of the controller, named as in its paper |
//! | `state_changed` | bool | whether the state differs from the state in the flow's previous row |
//! | `cwnd_bytes` | u64 | congestion window; null if unlimited |
//! | `pacing_rate_mbps` | f64 | pacing rate; null if unpaced |
//! | `inflight_bytes` | u64 | outstanding bytes |
//! | one per named value | f64 | value of the scheme; the name ends in the unit; null if unknown or a value of another scheme |

use airpace_event::Inspected;
use arrow_array::ArrayRef;
use arrow_array::types::Float64Type;
use arrow_schema::Field;

use super::columns::{Cell, Columns, row};
use super::file::Table;
use super::millis;
use super::numbers::OptionalNumbers;
use super::words::{Label, Word};
use crate::error::FileError;
use crate::facts::FlowFacts;

row! {
    /// The columns that all schemes have in common.
    struct Row {
        time_ms: f64,
        flow: u16,
        flow_label: Label,
        state: Word,
        state_changed: bool,
        cwnd_bytes: Option<u64>,
        pacing_rate_mbps: Option<f64>,
        inflight_bytes: u64,
    }
}

/// The common columns, followed by the columns of individual schemes.
pub(super) struct WideRows {
    common: Rows,
    /// Columns of individual schemes, by name.
    own: Vec<(String, OptionalNumbers<Float64Type>)>,
}

impl WideRows {
    /// The common columns and a column for each of these names, for a run with these flows.
    pub(super) fn of(flows: &[FlowFacts], names: &[String]) -> WideRows {
        let own = names.iter().map(|name| (name.clone(), OptionalNumbers::default())).collect();
        let mut common = Rows::default();
        common.flow_label.know(flows);
        WideRows { common, own }
    }
}

impl Columns for WideRows {
    fn fields(&self) -> Vec<Field> {
        let own = self.own.iter().map(|(name, _)| <Option<f64> as Cell>::field(name));
        self.common.fields().into_iter().chain(own).collect()
    }

    fn reserve(&mut self, rows: usize) {
        self.common.reserve(rows);
        self.own.iter_mut().for_each(|(_, column)| column.reserve(rows));
    }

    fn take(&mut self) -> Vec<ArrayRef> {
        let own = self.own.iter_mut().map(|(_, column)| <Option<f64> as Cell>::take(column));
        self.common.take().into_iter().chain(own).collect()
    }
}

pub(super) fn push(table: &mut Table<WideRows>, inspected: &Inspected<'_>) -> Result<(), FileError> {
    let WideRows { common, own } = &mut table.columns;
    let unknown = inspected.values.iter().find(|(name, _)| !own.iter().any(|(known, _)| known == name));
    if let Some((name, _)) = unknown {
        let (flow, name, time) = (inspected.flow.0, (*name).to_owned(), inspected.time);
        return Err(FileError::NewColumn { flow, name, time });
    }
    let state = common.state.word(inspected.state);
    common.push(Row {
        time_ms: millis(inspected.time),
        flow: inspected.flow.0,
        flow_label: Label(inspected.flow),
        state,
        state_changed: inspected.state_changed,
        cwnd_bytes: (inspected.cwnd.0 < u64::MAX).then_some(inspected.cwnd.0),
        pacing_rate_mbps: inspected.pacing_rate.map(|rate| rate.as_mbps()),
        inflight_bytes: inspected.inflight.0,
    });
    for (name, column) in own {
        let value = inspected.values.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
        Cell::push(value.filter(|value| value.is_finite()), column);
    }
    table.added(1)
}
