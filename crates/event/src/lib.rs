//! The one schema of what happens in a run. Drivers write [`Event`]s into a [`Recorder`]. Tables, metrics, qlog and reports
//! read this stream.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]
#![warn(missing_docs)]

use std::time::Duration;

use airpace_core::{Bytes, DeviceId, Direction, FlowId, Packet, Rate, Time};
use airpace_radio::RadioReport;

/// The reader of a run's events.
pub trait Recorder {
    /// Takes one event. Events come in order of time.
    fn record(&mut self, event: Event<'_>);

    /// Whether the driver must make events that take work. The driver asks once, before the run.
    fn wants(&self, detail: Detail) -> bool {
        detail == Detail::Subframes
    }
}

/// Events that a driver makes only for a recorder that wants them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// [`Event::Subframe`].
    Subframes,
    /// [`Event::Reported`] of a device, from this source.
    Reports(DeviceId, Source),
    /// [`Event::Reported`] of a device, from the source that its flows use: the modem if only its senders use reports,
    /// otherwise the control channel.
    UsedReports(DeviceId),
}

/// A recorder that drops every event.
#[derive(Clone, Copy, Debug, Default)]
pub struct Discard;

impl Recorder for Discard {
    fn record(&mut self, _: Event<'_>) {}

    fn wants(&self, _: Detail) -> bool {
        false
    }
}

/// Something that happened in a run.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A sender put a data packet on its path (`time` is `packet.sent`).
    Sent(Packet),
    /// A data packet reached the end of its path or was lost.
    Arrived(Arrived),
    /// A sender processed an acknowledgement.
    Acked(Acked),
    /// A sender declared packets lost.
    Lost(Lost),
    /// The internals of a flow's controller and receiver half, at fixed intervals and at every change of state.
    Inspected(&'a Inspected<'a>),
    /// One subframe of one carrier, as the cell made it.
    Subframe(&'a Subframe<'a>),
    /// What the last hop could have carried to a device.
    Capacity(Capacity),
    /// What was reported to a device about its radio.
    Reported(&'a Reported<'a>),
    /// A transfer of a flow has come to a step.
    Transfer(Transfer),
}

/// What happened to a packet at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fate {
    /// It reached the other end.
    Delivered,
    /// A full queue refused it.
    QueueFull,
    /// Active queue management dropped it.
    Aqm,
    /// It was lost on a wire.
    WireLoss,
    /// All HARQ transmissions of a transport block that held it failed.
    HarqFailure,
}

impl Fate {
    /// The word in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Fate::Delivered => "delivered",
            Fate::QueueFull => "queue_full",
            Fate::Aqm => "aqm",
            Fate::WireLoss => "wire_loss",
            Fate::HarqFailure => "harq_failure",
        }
    }
}

/// The end of a data packet's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// When.
    pub time: Time,
    /// The packet; its one-way delay is `time - packet.sent`.
    pub packet: Packet,
    /// What happened to it.
    pub fate: Fate,
    /// Whether these bytes had been delivered before (a duplicate on the wire).
    pub duplicate: bool,
    /// The one-way delay on an empty path. The actual one-way delay minus this is the queueing delay.
    pub propagation_delay: Duration,
}

/// An acknowledgement at the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acked {
    /// When it was processed.
    pub time: Time,
    /// The flow.
    pub flow: FlowId,
    /// Highest packet number newly acknowledged.
    pub largest: u64,
    /// Bytes newly acknowledged.
    pub acked: Bytes,
    /// Bytes outstanding afterwards.
    pub inflight: Bytes,
    /// Round-trip time sample, if the highest newly acknowledged packet gave one.
    pub rtt: Option<Duration>,
    /// Delivery-rate sample, if one was valid.
    pub delivery_rate: Option<Rate>,
}

/// Packets declared lost by their sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// When.
    pub time: Time,
    /// The flow.
    pub flow: FlowId,
    /// How many packets.
    pub packets: u64,
    /// How many bytes.
    pub bytes: Bytes,
}

/// A step of a transfer: a flow of limited size has one, or one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// When.
    pub time: Time,
    /// The flow.
    pub flow: FlowId,
    /// The transfer's number among those of the flow, from 0.
    pub number: u64,
    /// The step.
    pub step: TransferStep,
}

/// The steps of a transfer, in their order. Several may come at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TransferStep {
    /// The client has sent its request or, without one, the sender has the data.
    Began,
    /// The first of its bytes have arrived.
    FirstByte,
    /// As many of its bytes have arrived as the client needs to show something.
    StartedUp,
    /// All of its bytes have arrived.
    Complete,
}

/// The internals of a flow's scheme at an instant.
#[derive(Clone, Copy, Debug)]
pub struct Inspected<'a> {
    /// When.
    pub time: Time,
    /// The flow.
    pub flow: FlowId,
    /// The controller's state, in the words of its paper (`Startup`, `Wireless`, …).
    pub state: &'a str,
    /// Whether `state` differs from the one before.
    pub state_changed: bool,
    /// Congestion window.
    pub cwnd: Bytes,
    /// Pacing rate; `None` if the flow is not paced.
    pub pacing_rate: Option<Rate>,
    /// Bytes outstanding.
    pub inflight: Bytes,
    /// Named internals of controller and receiver half; each name ends in its unit (`btlbw_mbps`, `rtprop_ms`).
    pub values: &'a [(&'static str, f64)],
}

/// The owner of a grant. Only the cell itself knows this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// A device of the scenario.
    Device(DeviceId),
    /// A background data user, by index.
    Background(u16),
    /// A user that only updates parameters.
    Control,
}

/// One subframe of one carrier: its grants and their owners.
#[derive(Clone, Copy, Debug)]
pub struct Subframe<'a> {
    /// The grants, without errors.
    pub report: &'a RadioReport,
    /// The owner of each grant in `report.dcis`, with the same length and order.
    pub owners: &'a [Owner],
}

/// What the last hop could have carried to or from one device in an interval: all that it did carry, plus what nobody
/// used.
///
/// For a cell: (PRBs given to the device + idle PRBs, over its active carriers) at the device's current bits per PRB,
/// minus expected HARQ errors and radio headers. For a trace: its delivery chances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Start of the interval.
    pub time: Time,
    /// Its length.
    pub span: Duration,
    /// The device.
    pub device: DeviceId,
    /// To the device or from it.
    pub direction: Direction,
    /// IP bytes that could have been carried.
    pub bytes: Bytes,
}

/// Where a device's radio reports come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The device's own modem: its own grants and signal, complete and on time.
    Modem,
    /// The control channel of its cell, as the device decodes it: everyone's grants, with the delays and errors that
    /// the scenario sets.
    ControlChannel,
}

/// One subframe of one carrier, as it was reported to a device.
///
/// Reports of one device and source come in order of time. Reports of different devices come as each device gets them.
#[derive(Clone, Copy, Debug)]
pub struct Reported<'a> {
    /// The device.
    pub device: DeviceId,
    /// The source of the report.
    pub source: Source,
    /// The report itself.
    pub report: &'a RadioReport,
}
