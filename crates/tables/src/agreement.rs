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
//! | `fate` | word | `delivered`, `queue_full`, `aqm`, `wire_loss`, `harq_failure`, `pdcp_discard`, or `none` |
//! | `as_sent_release_ms` | f64 | release in virtual time if the packet is sent at `sent_ms` |
//! | `as_sent_fate` | word | fate in virtual time if the packet is sent at `sent_ms` |
//! | `as_scheduled_release_ms` | f64 | release in virtual time if the packet is sent at `scheduled_ms` |
//! | `as_scheduled_fate` | word | fate in virtual time if the packet is sent at `scheduled_ms` |
//! | `apart_as_sent_ms` | f64 | `received_ms - as_sent_release_ms` |
//! | `apart_as_scheduled_ms` | f64 | `received_ms - as_scheduled_release_ms` |

use std::path::Path;

use airpace_core::{Bytes, DeviceId, Direction, Time};
use airpace_event::Fate;

use super::columns::row;
use super::file::Table;
use super::words::Word;
use super::{fit, millis};
use crate::direction;
use crate::error::FileError;

/// A packet of a schedule, in real and in virtual time. All times are on the clock of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    /// The device that sends or receives the packet.
    pub device: DeviceId,
    /// Direction of the packet.
    pub direction: Direction,
    /// Size of the whole IP packet.
    pub bytes: Bytes,
    /// Scheduled transmission time.
    pub scheduled: Time,
    /// Actual transmission time; `None` if the kernel refused the packet.
    pub sent: Option<Time>,
    /// Times and fate in the emulator.
    pub real: Real,
    /// Times and fate in virtual time if the packet is sent at its actual transmission time; `None` if it was not sent.
    pub as_sent: Option<Virtual>,
    /// Times and fate in virtual time if the packet is sent at its scheduled transmission time.
    pub as_scheduled: Virtual,
}

/// Times and fate of a packet in the emulator.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Real {
    /// Time at which the emulator read the packet from the interface; `None` if it never did.
    pub entered: Option<Time>,
    /// Time at which the network released the first copy; `None` if no copy was delivered.
    pub released: Option<Time>,
    /// Time at which the write of this copy to the interface of the other endpoint had completed.
    pub handed: Option<Time>,
    /// Time at which the kernel of the other endpoint received the packet.
    pub received: Option<Time>,
    /// [`Fate::Delivered`] or the cause of the drop; `None` if the packet was still in transit at the end of the run.
    pub fate: Option<Fate>,
}

/// Times and fate of a packet in virtual time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Virtual {
    /// Time at which the network releases the first copy; `None` if no copy is delivered.
    pub released: Option<Time>,
    /// [`Fate::Delivered`] or the cause of the drop; `None` if the packet is still in transit at the end of the run.
    pub fate: Option<Fate>,
}

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
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, packets: &[Compared]) -> Result<(), FileError> {
    let mut table = Table::create(path, Rows::default())?;
    for (number, packet) in packets.iter().enumerate() {
        push(&mut table, number, packet)?;
    }
    table.finish()
}

fn push(table: &mut Table<Rows>, number: usize, packet: &Compared) -> Result<(), FileError> {
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
