//! `departures`: one row per packet of an emulated run that was delivered or dropped, in both directions, in the order of
//! release by the network.
//!
//! | column | type | meaning |
//! | --- | --- | --- |
//! | `in_ms` | f64 | time at which the packet was read from its TUN device |
//! | `release_ms` | f64 | time at which the network released or dropped the packet, on the network's clock |
//! | `out_ms` | f64 | time at which the packet was handed to the other endpoint; null if it was not handed over |
//! | `lateness_ms` | f32 | `out_ms - release_ms`, the emulator's lateness; null if the packet was not handed over |
//! | `one_way_delay_ms` | f32 | `out_ms - in_ms`: propagation delay + queueing delay + lateness; null if not handed over |
//! | `queueing_delay_ms` | f32 | `release_ms - in_ms - propagation_delay_ms`; null if not handed over |
//! | `propagation_delay_ms` | f32 | delay of the empty network |
//! | `bytes` | u32 | size of the IP packet |
//! | `device` | u16 | index of the device in the scenario |
//! | `direction` | word | `down` to the device or `up` from the device |
//! | `connection` | word | connection in the packet's direction: `tcp 100.64.0.1:5201 → 100.68.0.1:40312` |
//! | `protocol` | word | `tcp`, `udp`, `icmp`, `icmpv6`, or the IP protocol number |
//! | `source` | word | address of the sender, IPv4 or IPv6 |
//! | `source_port` | u16 | port of the sender; null if there is none |
//! | `destination` | word | address of the receiver |
//! | `destination_port` | u16 | port of the receiver; null if there is none |
//! | `fate` | word | `delivered`, `queue_full`, `aqm`, `wire_loss` or `harq_failure` |
//! | `duplicate` | bool | whether another copy of the packet had left the network before |
//! | `marked` | bool | whether a queue of the network set the ECN mark |

use std::sync::Arc;

use airpace_core::{Bytes, DeviceId, Direction, Time};
use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, UInt16Type, UInt32Type};

use super::columns::row;
use super::file::Table;
use super::read::{Part, Words};
use super::words::{Name, Word};
use super::{fit, millis, span_millis};
use crate::direction;
use crate::emulation::{Connection, Departure, Flows};
use crate::error::EvalError;
use crate::folder::RunFolder;

row! {
    /// A packet that was delivered or dropped by an emulated network.
    struct Row {
        in_ms: f64,
        release_ms: f64,
        out_ms: Option<f64>,
        lateness_ms: Option<f32>,
        one_way_delay_ms: Option<f32>,
        queueing_delay_ms: Option<f32>,
        propagation_delay_ms: f32,
        bytes: u32,
        device: u16,
        direction: Word,
        connection: Name,
        protocol: Name,
        source: Name,
        source_port: Option<u16>,
        destination: Name,
        destination_port: Option<u16>,
        fate: Word,
        duplicate: bool,
        marked: bool,
    }
}

/// A connection with its texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spelled {
    pub(crate) connection: Arc<str>,
    protocol: Arc<str>,
    source: Arc<str>,
    destination: Arc<str>,
}

impl Spelled {
    pub(crate) fn of(connection: &Connection) -> Spelled {
        Spelled {
            connection: connection.to_string().into(),
            protocol: connection.protocol.to_string().into(),
            source: connection.source.address.to_string().into(),
            destination: connection.destination.address.to_string().into(),
        }
    }
}

/// Adds a row. `spelled` contains the texts of the departure's connection.
pub(super) fn push(
    table: &mut Table<Rows>,
    departure: &Departure,
    spelled: &Spelled,
) -> Result<(), EvalError> {
    let Departure { entered, released, handed, propagation_delay, connection, .. } = *departure;
    let direction = table.columns.direction.word(direction::word(departure.direction));
    let fate = table.columns.fate.word(departure.fate.name());
    let name = |text: &Arc<str>| Name(text.clone());
    let queueing = (released - entered).saturating_sub(propagation_delay);
    table.columns.push(Row {
        in_ms: millis(entered),
        release_ms: millis(released),
        out_ms: handed.map(millis),
        lateness_ms: handed.map(|out| span_millis(out - released)),
        one_way_delay_ms: handed.map(|out| span_millis(out - entered)),
        queueing_delay_ms: handed.map(|_| span_millis(queueing)),
        propagation_delay_ms: span_millis(propagation_delay),
        bytes: fit(departure.bytes.0),
        device: departure.device.0,
        direction,
        connection: name(&spelled.connection),
        protocol: name(&spelled.protocol),
        source: name(&spelled.source),
        source_port: connection.source.port,
        destination: name(&spelled.destination),
        destination_port: connection.destination.port,
        fate,
        duplicate: departure.duplicate,
        marked: departure.marked,
    });
    table.added(1)
}

/// A packet that entered an emulated network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Time at which the packet was read from its TUN device.
    pub at: Time,
    /// The device that sends or receives the packet.
    pub device: DeviceId,
    /// Direction of the packet.
    pub direction: Direction,
    /// Size of the IP packet.
    pub bytes: Bytes,
}

/// The packets that entered an emulated network, without duplicates, in the order in which they left it.
///
/// # Errors
/// The folder does not hold a completed emulated run, or a table cannot be read.
pub fn arrivals(folder: &RunFolder) -> Result<Vec<Arrival>, EvalError> {
    let path = folder.root().join("manifest.json");
    let is_emulated = folder.manifest()?.emulation.is_some();
    let summary = folder.summary()?;
    let Some(run) = summary.runs.first().filter(|_| is_emulated) else {
        let reason = "it is no emulated run that came to its end".to_owned();
        return Err(EvalError::Malformed { path, reason });
    };
    let mut arrivals = vec![];
    const COLUMNS: [&str; 5] = ["in_ms", "bytes", "device", "direction", "duplicate"];
    Part::of(folder.root(), "departures", run).for_each(&COLUMNS, |batch| {
        let entered = batch["in_ms"].as_primitive::<Float64Type>();
        let bytes = batch["bytes"].as_primitive::<UInt32Type>();
        let device = batch["device"].as_primitive::<UInt16Type>();
        let duplicate = batch["duplicate"].as_boolean();
        let ways = Words::of(batch, "direction");
        for row in (0..batch.num_rows()).filter(|&row| !duplicate.value(row)) {
            let ms = entered.value(row);
            if !(0.0..1e12).contains(&ms) {
                return Err(format!("`in_ms` is {ms}"));
            }
            arrivals.push(Arrival {
                at: Time::from_nanos((ms * 1e6).round() as u64),
                device: DeviceId(device.value(row)),
                direction: direction::of_word(ways.word(row)),
                bytes: Bytes(bytes.value(row).into()),
            });
        }
        Ok(())
    })?;
    Ok(arrivals)
}

/// A row that was read back from the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Departed<'a> {
    pub(crate) in_ms: f64,
    pub(crate) release_ms: f64,
    pub(crate) out_ms: Option<f64>,
    /// Valid only if `out_ms` is present, like `queueing_delay_ms`.
    pub(crate) one_way_delay_ms: f32,
    pub(crate) queueing_delay_ms: f32,
    pub(crate) propagation_delay_ms: f32,
    pub(crate) bytes: u32,
    pub(crate) fate: &'a str,
    pub(crate) duplicate: bool,
}

/// Calls `each` with the table's rows and the flow of each row. Rows without a flow are skipped.
pub(crate) fn read(
    part: &Part,
    flows: &Flows,
    mut each: impl FnMut(usize, &Departed<'_>) -> Result<(), String>,
) -> Result<(), EvalError> {
    const COLUMNS: [&str; 12] = [
        "in_ms",
        "release_ms",
        "out_ms",
        "one_way_delay_ms",
        "queueing_delay_ms",
        "propagation_delay_ms",
        "bytes",
        "device",
        "direction",
        "connection",
        "fate",
        "duplicate",
    ];
    part.for_each(&COLUMNS, |batch| {
        let times = |column: &str| batch[column].as_primitive::<Float64Type>();
        let spans = |column: &str| batch[column].as_primitive::<Float32Type>();
        let (entered, released, handed) = (times("in_ms"), times("release_ms"), times("out_ms"));
        let (one_way, queueing) = (spans("one_way_delay_ms"), spans("queueing_delay_ms"));
        let propagation = spans("propagation_delay_ms");
        let bytes = batch["bytes"].as_primitive::<UInt32Type>();
        let device = batch["device"].as_primitive::<UInt16Type>();
        let duplicate = batch["duplicate"].as_boolean();
        let (ways, fates) = (Words::of(batch, "direction"), Words::of(batch, "fate"));
        let connections = Words::of(batch, "connection");
        let named = connections.map(|name| flows.named(name));
        let directions = ways.map(|word| direction::of_word(word));
        for row in 0..batch.num_rows() {
            let side = (DeviceId(device.value(row)), directions[ways.place(row)]);
            let Some(flow) = flows.index(&named[connections.place(row)], side) else { continue };
            let departed = Departed {
                in_ms: entered.value(row),
                release_ms: released.value(row),
                out_ms: handed.is_valid(row).then(|| handed.value(row)),
                one_way_delay_ms: one_way.value(row),
                queueing_delay_ms: queueing.value(row),
                propagation_delay_ms: propagation.value(row),
                bytes: bytes.value(row),
                fate: fates.word(row),
                duplicate: duplicate.value(row),
            };
            each(flow, &departed)?;
        }
        Ok(())
    })
}
