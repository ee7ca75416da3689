//! `capacity`: capacity of the last hop, one row per interval, device and direction.
//!
//! | column | type | meaning |
//! | --- | --- | --- |
//! | `time_ms` | f64 | start of the interval |
//! | `span_ms` | f32 | length of the interval |
//! | `device` | u16 | index of the device in the scenario |
//! | `direction` | word | `down` to the device or `up` from the device |
//! | `capacity_bytes` | u32 | capacity of the last hop in IP bytes: carried bytes and unused capacity |
//! | `capacity_mbps` | f32 | the capacity as a rate |

use airpace_event::Capacity;

use super::columns::row;
use super::file::Table;
use super::words::Word;
use super::{fit, millis, nanos, span_millis};
use crate::direction;
use crate::error::FileError;

row! {
    /// Capacity in an interval.
    struct Row {
        time_ms: f64,
        span_ms: f32,
        device: u16,
        direction: Word,
        capacity_bytes: u32,
        capacity_mbps: f32,
    }
}

pub(super) fn push(table: &mut Table<Rows>, capacity: &Capacity) -> Result<(), FileError> {
    let direction = table.columns.direction.word(direction::word(capacity.direction));
    table.columns.push(Row {
        time_ms: millis(capacity.time),
        span_ms: span_millis(capacity.span),
        device: capacity.device.0,
        direction,
        capacity_bytes: fit(capacity.bytes.0),
        capacity_mbps: mbps(capacity) as f32,
    });
    table.added(1)
}

/// Rate in Mbit/s at which the capacity's bytes take exactly its span; 0 for an empty span.
fn mbps(capacity: &Capacity) -> f64 {
    let nanos = nanos(capacity.span);
    if nanos == 0 { 0.0 } else { capacity.bytes.0 as f64 * 8e3 / nanos as f64 }
}
