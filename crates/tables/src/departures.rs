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
//! | `fate` | word | `delivered`, `queue_full`, `aqm`, `wire_loss`, `harq_failure` or `pdcp_discard` |
//! | `duplicate` | bool | whether another copy of the packet had left the network before |
//! | `marked` | bool | whether a queue of the network set the ECN mark |

use std::sync::Arc;
use std::time::Duration;

use airpace_core::{Bytes, DeviceId, Direction, Time};
use airpace_event::Fate;

use super::columns::row;
use super::file::Table;
use super::words::{Name, Word};
use super::{fit, millis, span_millis};
use crate::connection::Connection;
use crate::direction;
use crate::error::FileError;

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

/// A packet that has left the emulated network or was dropped in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The device that sends or receives the packet.
    pub device: DeviceId,
    /// Downlink to the device or uplink from it.
    pub direction: Direction,
    /// Connection of the packet, in the direction of the packet.
    pub connection: Connection,
    /// Size of the whole IP packet.
    pub bytes: Bytes,
    /// Time at which the packet was read from its TUN device.
    pub entered: Time,
    /// Time at which the network released or dropped the packet, on the network's clock. This time is not earlier than
    /// `entered`.
    pub released: Time,
    /// Time at which the packet was handed to the other endpoint. This time is not earlier than `released`. `None` if
    /// the packet was dropped, or if the run ended before. In the second case `fate` is [`Fate::Delivered`]; such
    /// packets are in the table but in no metric.
    pub handed: Option<Time>,
    /// Delay of the empty network.
    pub propagation_delay: Duration,
    /// Delivered, or the cause of the drop.
    pub fate: Fate,
    /// Whether another copy of the packet had left the network before (the wire can duplicate packets).
    pub duplicate: bool,
    /// Whether a queue of the network set the ECN mark.
    pub marked: bool,
}

/// The parts of a connection as text, for the columns of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spelled {
    /// The connection as text.
    pub connection: Arc<str>,
    protocol: Arc<str>,
    source: Arc<str>,
    destination: Arc<str>,
}

impl Spelled {
    /// The texts of a connection.
    pub fn of(connection: &Connection) -> Spelled {
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
) -> Result<(), FileError> {
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
