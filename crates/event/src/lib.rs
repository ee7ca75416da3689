//! Event schema of a run. Drivers write [`Event`]s into a [`Recorder`]. Tables, metrics, qlog and reports are made from
//! this stream.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]
#![warn(missing_docs)]

use std::time::Duration;

use airpace_core::{Bytes, DeviceId, Direction, FlowId, Packet, Rate, Time};
use airpace_radio::RadioReport;

/// The consumer of a run's events.
pub trait Recorder {
    /// Receives one event. Events arrive in order of time.
    fn record(&mut self, event: Event<'_>);

    /// Returns whether the driver must create events of the kind `detail`, which need additional computation. The
    /// driver asks once, before the run.
    fn wants(&self, detail: Detail) -> bool {
        detail == Detail::Subframes
    }
}

/// Kinds of events that a driver creates only on request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// [`Event::Subframe`].
    Subframes,
    /// [`Event::Reported`] of this device, from this source.
    Reports(DeviceId, Source),
    /// [`Event::Reported`] of this device, from the source that the device's flows use: the modem if only the device's
    /// senders use reports, otherwise the control channel.
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

/// An event of a run.
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
    /// Internal values of a flow's controller and receiver, at fixed intervals and at every change of state.
    Inspected(&'a Inspected<'a>),
    /// One subframe of one carrier, as the cell scheduled it.
    Subframe(&'a Subframe<'a>),
    /// Capacity of the last hop to or from a device in an interval.
    Capacity(Capacity),
    /// A radio report that a device received.
    Reported(&'a Reported<'a>),
    /// A transfer of a flow reached a step.
    Transfer(Transfer),
    /// The report on the adaptive video of a flow, at the end of the run.
    Viewed(&'a Viewed<'a>),
}

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fate {
    /// The packet reached the end of its path.
    Delivered,
    /// A full queue refused the packet.
    QueueFull,
    /// Active queue management dropped the packet.
    Aqm,
    /// The packet was lost on a wired link.
    WireLoss,
    /// All HARQ transmissions of a transport block that contained the packet failed.
    HarqFailure,
    /// PDCP of a split bearer discarded the packet, because it arrived after the reordering time, when PDCP had already
    /// delivered later packets.
    PdcpDiscard,
}

impl Fate {
    /// All fates.
    pub const ALL: [Fate; 6] =
        [Fate::Delivered, Fate::QueueFull, Fate::Aqm, Fate::WireLoss, Fate::HarqFailure, Fate::PdcpDiscard];

    /// Returns the name of the fate in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Fate::Delivered => "delivered",
            Fate::QueueFull => "queue_full",
            Fate::Aqm => "aqm",
            Fate::WireLoss => "wire_loss",
            Fate::HarqFailure => "harq_failure",
            Fate::PdcpDiscard => "pdcp_discard",
        }
    }
}

/// The end of a data packet's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Time of the arrival or loss.
    pub time: Time,
    /// The packet; its one-way delay is `time - packet.sent`.
    pub packet: Packet,
    /// Whether and why the packet was delivered or dropped.
    pub fate: Fate,
    /// Whether the packet's bytes had been delivered before (the packet is a duplicate made on a wired link).
    pub duplicate: bool,
    /// The one-way delay on an idle path. The actual one-way delay minus this value is the queueing delay.
    pub propagation_delay: Duration,
}

/// An acknowledgement that a sender processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acked {
    /// Time at which the acknowledgement was processed.
    pub time: Time,
    /// The flow of this event.
    pub flow: FlowId,
    /// Highest packet number that the acknowledgement newly acknowledges.
    pub largest: u64,
    /// Bytes that the acknowledgement newly acknowledges.
    pub acked: Bytes,
    /// Bytes outstanding after the acknowledgement.
    pub inflight: Bytes,
    /// Round-trip time sample, if the highest newly acknowledged packet gave one.
    pub rtt: Option<Duration>,
    /// Delivery-rate sample, if the acknowledgement gave a valid one.
    pub delivery_rate: Option<Rate>,
}

/// Packets that their sender declared lost at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Time of the declaration.
    pub time: Time,
    /// The flow of this event.
    pub flow: FlowId,
    /// Number of lost packets.
    pub packets: u64,
    /// Number of bytes of the lost packets.
    pub bytes: Bytes,
}

/// A step of a transfer. A flow of limited size has one transfer, or several in sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Time of the step.
    pub time: Time,
    /// The flow of this event.
    pub flow: FlowId,
    /// Number of the transfer among the transfers of the flow, from 0.
    pub number: u64,
    /// The step that the transfer reached.
    pub step: TransferStep,
}

/// The steps of a transfer, in order. Several steps may have the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TransferStep {
    /// The client has sent its request; if the flow has no requests, the sender's data is available.
    Began,
    /// The first bytes of the transfer have arrived.
    FirstByte,
    /// Enough bytes have arrived for the client's start-up, for example to show a first picture.
    StartedUp,
    /// All bytes of the transfer have arrived.
    Complete,
}

/// The report on the adaptive video of a flow. There is one report per flow with a video, after all other events.
#[derive(Clone, Copy, Debug)]
pub struct Viewed<'a> {
    /// Time of the report.
    pub time: Time,
    /// The flow of this event.
    pub flow: FlowId,
    /// The viewing.
    pub video: &'a Viewing,
}

/// The viewing of an adaptive video. Instants are seconds of the run's clock.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Viewing {
    /// Time from the start of the video until its first picture; `None` if playback has not started.
    pub start_up_s: Option<f64>,
    /// Media played, in seconds.
    pub played_s: f64,
    /// Interruptions of playback, in order.
    pub stalls: Vec<Stall>,
    /// Number of pairs of successive segments with different representations.
    pub switches: u64,
    /// Number of segments that were abandoned and requested in a lower representation.
    pub abandoned: u64,
    /// Quality of experience from 1 (bad) to 5 (excellent); `None` if less than a second was played.
    pub score: Option<f64>,
    /// The segments that arrived completely, in order.
    pub segments: Vec<Segment>,
}

/// An interruption of the playback of a video.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stall {
    /// Start of the interruption.
    pub start_s: f64,
    /// Length of the interruption, up to the end of the run.
    pub length_s: f64,
}

/// A segment of an adaptive video that arrived completely.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    /// Time at which the client requested it.
    pub requested_s: f64,
    /// Time from the request to the last byte.
    pub download_s: f64,
    /// Size.
    pub bytes: Bytes,
    /// Average bitrate of its representation.
    pub bitrate_mbps: f64,
    /// Height of its pictures, in pixels.
    pub height: u32,
}

/// Internal values of a flow's scheme at an instant.
#[derive(Clone, Copy, Debug)]
pub struct Inspected<'a> {
    /// Time of the sample.
    pub time: Time,
    /// The flow of this event.
    pub flow: FlowId,
    /// The controller's state, with the name that the scheme's paper uses (`Startup`, `Wireless`, …).
    pub state: &'a str,
    /// Whether `state` differs from the previous state.
    pub state_changed: bool,
    /// Congestion window.
    pub cwnd: Bytes,
    /// Pacing rate; `None` if the flow is not paced.
    pub pacing_rate: Option<Rate>,
    /// Bytes outstanding at the time of the sample.
    pub inflight: Bytes,
    /// Named internal values of controller and receiver; each name ends in its unit (`btlbw_mbps`, `rtprop_ms`).
    pub values: &'a [(&'static str, f64)],
}

/// The owner of a grant, which is known only to the cell itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// A device of the scenario.
    Device(DeviceId),
    /// A background data user, by index.
    Background(u16),
    /// A background user that only updates parameters.
    Control,
}

/// One subframe of one carrier: its grants and their owners.
#[derive(Clone, Copy, Debug)]
pub struct Subframe<'a> {
    /// The report on all grants of the subframe, without errors.
    pub report: &'a RadioReport,
    /// The owner of each grant in `report.dcis`, with the same length and order.
    pub owners: &'a [Owner],
}

/// Capacity of the last hop to or from one device in an interval: the bytes that the hop transferred, plus the hop's
/// unused capacity.
///
/// For a cell, the capacity is the number of PRBs granted to the device and of idle PRBs, over the device's active
/// carriers, times the device's current bits per PRB, minus expected HARQ errors and radio headers. For a trace, the
/// capacity is the sum of the trace's delivery opportunities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Start of the interval.
    pub time: Time,
    /// Length of the interval.
    pub span: Duration,
    /// The device of this event.
    pub device: DeviceId,
    /// Direction of the capacity: to the device or from the device.
    pub direction: Direction,
    /// IP bytes that the hop could have transferred in the interval.
    pub bytes: Bytes,
}

/// Source of a device's radio reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The device's own modem: its own grants and signal, complete and on time.
    Modem,
    /// The control channel of the cell, as decoded by the device: the grants of all users, with the delays and errors
    /// that the scenario sets.
    ControlChannel,
}

/// One subframe of one carrier, as it was reported to a device.
///
/// Reports of one device and source are in order of time. Reports of different devices are in the order in which the
/// devices receive them.
#[derive(Clone, Copy, Debug)]
pub struct Reported<'a> {
    /// The device of this event.
    pub device: DeviceId,
    /// The source of the report.
    pub source: Source,
    /// The report itself.
    pub report: &'a RadioReport,
}
