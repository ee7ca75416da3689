//! `agreement.parquet`: one row per packet of a schedule, in real and in virtual time, in the order of the schedule.
//!
//! | column | type | meaning |
//! | --- | --- | --- |
//! | `number` | u32 | index in the schedule |
//! | `device` | u16 | index of the device in the scenario |
//! | `direction` | word | `down` to the device or `up` from the device |
//! | `bytes` | u32 | size of the IP packet |
//! | `scheduled_ms` | f64 | scheduled transmission time |
//! | `sent_ms` | f64 | actual transmission time; null if the kernel refused the packet |
//! | `in_ms` | f64 | time at which the emulator read the packet; null if it never did |
//! | `release_ms` | f64 | time at which the emulated network released the first copy; null if no copy was delivered |
//! | `out_ms` | f64 | time at which this copy had been handed to the other endpoint |
//! | `received_ms` | f64 | time at which the kernel of the other endpoint received the packet |
//! | `fate` | word | `delivered`, `queue_full`, `aqm`, `wire_loss`, `harq_failure`, or `none` |
//! | `as_sent_release_ms` | f64 | release in virtual time if the packet is sent at `sent_ms` |
//! | `as_sent_fate` | word | fate in virtual time if the packet is sent at `sent_ms` |
//! | `as_scheduled_release_ms` | f64 | release in virtual time if the packet is sent at `scheduled_ms` |
//! | `as_scheduled_fate` | word | fate in virtual time if the packet is sent at `scheduled_ms` |
//! | `apart_as_sent_ms` | f64 | `received_ms - as_sent_release_ms` |
//! | `apart_as_scheduled_ms` | f64 | `received_ms - as_scheduled_release_ms` |

use std::path::Path;

use airpace_core::Time;
use airpace_event::Fate;

use super::columns::row;
use super::file::Table;
use super::words::Word;
use super::{fit, millis};
use crate::agreement::{Compared, Virtual};
use crate::direction;
use crate::error::EvalError;

row! {
    /// A packet in real and in virtual time.
    struct Row {
        number: u32,
        device: u16,
        direction: Word,
        bytes: u32,
        scheduled_ms: f64,
        sent_ms: Option<f64>,
        in_ms: Option<f64>,
        release_ms: Option<f64>,
        out_ms: Option<f64>,
        received_ms: Option<f64>,
        fate: Word,
        as_sent_release_ms: Option<f64>,
        as_sent_fate: Word,
        as_scheduled_release_ms: Option<f64>,
        as_scheduled_fate: Word,
        apart_as_sent_ms: Option<f64>,
        apart_as_scheduled_ms: Option<f64>,
    }
}

/// Writes the table.
pub(crate) fn write(path: &Path, packets: &[Compared]) -> Result<(), EvalError> {
    let mut table = Table::create(path, Rows::default())?;
    for (number, packet) in packets.iter().enumerate() {
        push(&mut table, number, packet)?;
    }
    table.finish()
}

fn push(table: &mut Table<Rows>, number: usize, packet: &Compared) -> Result<(), EvalError> {
    let name = |fate: Option<Fate>| fate.map_or("none", Fate::name);
    let Virtual { released: as_sent, fate: as_sent_fate } = packet.as_sent.unwrap_or_default();
    let Virtual { released: as_scheduled, fate: as_scheduled_fate } = packet.as_scheduled;
    let received = packet.real.received;
    let apart = |released: Option<Time>| Some(received?.signed_nanos_since(released?) as f64 / 1e6);
    let columns = &mut table.columns;
    let row = Row {
        number: fit(number as u64),
        device: packet.device.0,
        direction: columns.direction.word(direction::word(packet.direction)),
        bytes: fit(packet.bytes.0),
        scheduled_ms: millis(packet.scheduled),
        sent_ms: packet.sent.map(millis),
        in_ms: packet.real.entered.map(millis),
        release_ms: packet.real.released.map(millis),
        out_ms: packet.real.handed.map(millis),
        received_ms: received.map(millis),
        fate: columns.fate.word(name(packet.real.fate)),
        as_sent_release_ms: as_sent.map(millis),
        as_sent_fate: columns.as_sent_fate.word(name(as_sent_fate)),
        as_scheduled_release_ms: as_scheduled.map(millis),
        as_scheduled_fate: columns.as_scheduled_fate.word(name(as_scheduled_fate)),
        apart_as_sent_ms: apart(as_sent),
        apart_as_scheduled_ms: apart(as_scheduled),
    };
    columns.push(row);
    table.added(1)
}
