//! The contract of every congestion control: one object-safe trait for the sender's half, one for the receiver's.
//!
//! A controller is told of events and asked for [`Control`]; it never reads a clock, and the order of calls at
//! one instant is: `on_loss` (what this ACK showed to be lost), `on_ack`, then `control`.

use std::time::Duration;

use airpace_core::{Bytes, Ecn, Rate, Rider, Time};
use airpace_radio::RadioReport;

use crate::registry::DeviceFlows;

/// What a half of a scheme works from beside packets and ACKs. Of what it does not name here, drivers tell it nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sees {
    /// Nothing else: any transport can carry it.
    #[default]
    Packets,
    /// What a mobile device at its own end tells: the radio's reports, and to a controller what the device knows of its
    /// flows. It works without them as well, where its end is no device or the device tells nothing.
    Device,
    /// The same, but it is of no use at an end that is no device.
    DeviceOnly,
    /// What only a simulator can know ([`Controller::on_truth`]): no real transport can carry it. Only for controllers that
    /// bound what the others can reach.
    Truth,
}

impl Sees {
    /// Whether a device at its end has something to tell it.
    pub fn is_device(self) -> bool {
        matches!(self, Sees::Device | Sees::DeviceOnly)
    }
}

/// The sender's half of a scheme.
pub trait Controller: Send {
    /// What it works from beside packets and ACKs. Drivers ask once, before the flow begins, and spare all others the work.
    fn sees(&self) -> Sees {
        Sees::Packets
    }

    /// A data packet was handed to the path.
    fn on_sent(&mut self, _sent: &Sent) {}

    /// An acknowledgement newly acknowledged at least one packet.
    fn on_ack(&mut self, ack: &Ack<'_>);

    /// An acknowledgement of nothing new brought these bytes of the receiver half, newer than any before: what a
    /// receiver half says of its own accord, see [`Receiver::on_timer`].
    fn on_feedback(&mut self, _now: Time, _feedback: &[u8]) {}

    /// Packets were declared lost.
    fn on_loss(&mut self, loss: &Loss<'_>);

    /// The sender's own radio reported a subframe ([`Sees::Device`]: uplink schemes; most schemes have no radio at the
    /// sender). Only its own grants are in it, in both directions.
    fn on_radio(&mut self, _report: &RadioReport) {}

    /// What the sender's own device knows of its flows: when it begins, and whenever that may have changed
    /// ([`Sees::Device`]: uplink schemes; most schemes run on a server that has no radio to share).
    fn on_device(&mut self, _now: Time, _flows: &DeviceFlows) {}

    /// What only a simulator can know ([`Sees::Truth`]); real transports never call it.
    fn on_truth(&mut self, _truth: &Truth) {}

    /// The instant asked for by [`Controller::next_timer`] has come.
    fn on_timer(&mut self, _now: Time) {}

    /// When to call [`Controller::on_timer`]; asked after every event.
    fn next_timer(&self) -> Option<Time> {
        None
    }

    /// How much may be in flight, and how fast it may leave; asked after every event.
    fn control(&self) -> Control;

    /// Bytes for the receiver half, on the data packet that [`Controller::on_sent`] has just told of.
    fn header(&self) -> Rider {
        Rider::EMPTY
    }

    /// Whether its packets say that they may be marked instead of dropped; asked once, before the first packet.
    ///
    /// Source: RFC 3168 §6.1.1
    fn is_ecn_capable(&self) -> bool {
        false
    }

    /// Names the controller's state and internals for plots and logs.
    fn inspect(&self, out: &mut Inspect);
}

/// The receiver's half of a scheme, for schemes that have one: turns packets and radio reports into feedback.
pub trait Receiver: Send {
    /// What it works from beside packets. Drivers ask once, before the flow begins, and spare all others the work. One that
    /// sees [`Sees::DeviceOnly`] makes a scheme for downloads alone.
    fn sees(&self) -> Sees {
        Sees::Packets
    }

    /// A data packet arrived.
    fn on_packet(&mut self, arrival: &Arrival<'_>);

    /// The device's radio reported a subframe of one carrier ([`Sees::Device`]).
    fn on_radio(&mut self, _report: &RadioReport) {}

    /// The instant asked for by [`Receiver::next_timer`] has come; whether an ACK is to leave now though nothing arrived.
    fn on_timer(&mut self, _now: Time) -> bool {
        false
    }

    /// When to call [`Receiver::on_timer`], by the receiver's clock; asked after every packet and every timer.
    fn next_timer(&self) -> Option<Time> {
        None
    }

    /// Bytes for the controller, on the ACK that leaves at `now` (the receiver's clock).
    fn feedback(&mut self, now: Time) -> Rider;

    /// The most bytes that the sender may have outstanding, from the ACK that leaves at `now` on; `None` for no limit.
    /// This is the transport's flow control, which every sender obeys whatever its scheme.
    ///
    /// Source: RFC 9293 §3.8.6 (the advertised window)
    fn window(&mut self, _now: Time) -> Option<Bytes> {
        None
    }

    /// Names the receiver's internals for plots and logs; its state is the controller's to name.
    fn inspect(&self, out: &mut Inspect);
}

/// How much may be outstanding, and how fast it may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control {
    /// Congestion window: the most bytes outstanding; at least one MSS.
    pub cwnd: Bytes,
    /// Rate the pacer obeys, never zero; `None` sends whenever the window has room.
    pub pacing_rate: Option<Rate>,
}

/// A data packet left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When.
    pub now: Time,
    /// Its number.
    pub number: u64,
    /// Its size.
    pub bytes: Bytes,
    /// Bytes outstanding, this packet included.
    pub inflight: Bytes,
    /// Whether the application had no more to send after it.
    pub app_limited: bool,
}

/// What the sender remembers of a packet that was acknowledged or lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentPacket {
    /// Its number.
    pub number: u64,
    /// Its size.
    pub bytes: Bytes,
    /// When it left.
    pub sent: Time,
    /// Bytes outstanding just after it left, itself included.
    pub inflight_at_send: Bytes,
    /// Bytes declared lost over the connection's life until it left.
    pub lost_at_send: Bytes,
    /// Whether the sender was application limited when it left.
    pub app_limited: bool,
    /// Whether it was declared lost; among the packets of an ACK, such a loss was spurious.
    pub declared_lost: bool,
}

/// An acknowledgement that acknowledged something new.
#[derive(Clone, Copy, Debug)]
pub struct Ack<'a> {
    /// When it was processed.
    pub now: Time,
    /// The packets newly acknowledged, by rising number; never empty.
    pub packets: &'a [SentPacket],
    /// Their bytes.
    pub acked: Bytes,
    /// Bytes outstanding before this ACK (and before what it showed to be lost).
    pub prior_inflight: Bytes,
    /// Bytes outstanding afterwards.
    pub inflight: Bytes,
    /// Next packet number to be sent: a round ends when a packet of at least this number is acknowledged.
    pub next_number: u64,
    /// Round-trip times.
    pub rtt: Rtt,
    /// The delivery-rate sample of this ACK.
    pub rate: RateSample,
    /// Whether the congestion window, not pacing, the application or the receiver's window, last kept the sender from
    /// sending.
    pub cwnd_limited: bool,
    /// Packets that this ACK is the first to report as marked by a queue.
    pub ce: u64,
    /// Bytes that the receiver half put on the ACK; empty if it has none.
    pub feedback: &'a [u8],
}

/// Round-trip times as the endpoint keeps them.
///
/// Source: RFC 9002 §5
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rtt {
    /// The sample of this ACK: from the sending of the highest newly acknowledged packet. `None` if that packet
    /// was not the highest acknowledged so far.
    pub latest: Option<Duration>,
    /// Smoothed, gain 1/8.
    pub smoothed: Duration,
    /// Mean deviation, gain 1/4.
    pub variation: Duration,
    /// The least of the connection.
    pub min: Duration,
}

/// One delivery-rate sample.
///
/// Source: draft-ietf-ccwg-delivery-rate §3
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateSample {
    /// The rate, or `None` where the interval is shorter than the least RTT or nothing was delivered.
    pub rate: Option<Rate>,
    /// Bytes delivered over the connection's life, this ACK included.
    pub delivered: Bytes,
    /// `delivered` when the sample's packet was sent: rounds are counted with it.
    pub prior_delivered: Bytes,
    /// The interval over which the sample was taken.
    pub interval: Duration,
    /// Whether the sender was application limited when the sample's packet was sent.
    pub app_limited: bool,
    /// Bytes outstanding when the sample's packet was sent, itself included.
    pub tx_in_flight: Bytes,
    /// Bytes declared lost since the sample's packet was sent.
    pub lost: Bytes,
    /// Packets reported as marked since the sample's packet was sent.
    pub ce: u64,
}

/// Packets were declared lost.
#[derive(Clone, Copy, Debug)]
pub struct Loss<'a> {
    /// When.
    pub now: Time,
    /// The packets, by rising number; never empty.
    pub packets: &'a [SentPacket],
    /// Their bytes.
    pub lost: Bytes,
    /// Bytes outstanding before the loss was seen.
    pub prior_inflight: Bytes,
    /// Bytes outstanding afterwards.
    pub inflight: Bytes,
    /// Next packet number to be sent: an episode of recovery ends when a packet of at least this number is
    /// acknowledged.
    pub next_number: u64,
    /// How it was seen.
    pub cause: LossCause,
}

/// How a loss was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossCause {
    /// Later packets were acknowledged: packet or time threshold.
    ///
    /// Source: RFC 9002 §6.1
    Threshold,
    /// Nothing was acknowledged for so long that all that is outstanding counts as lost.
    ///
    /// Source: RFC 9002 §7.6
    Persistent,
}

/// A data packet at the receiver. Two clocks: differences between them have an unknown offset.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// When, by the receiver's clock.
    pub now: Time,
    /// When it left, by the sender's clock.
    pub sent: Time,
    /// Its number.
    pub number: u64,
    /// Its size.
    pub bytes: Bytes,
    /// Whether a queue marked it.
    pub ecn: Ecn,
    /// Bytes that the controller put on it.
    pub header: &'a [u8],
    /// What this device knows of the flows that data arrives for.
    pub device: DeviceFlows,
}

/// What a simulator knows of a flow's path, every millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truth {
    /// When.
    pub now: Time,
    /// What the path's narrowest link can carry to this flow when a packet sent now gets there: its device's
    /// capacity divided by the device's active flows.
    pub capacity: Rate,
    /// This flow's bytes in the queues of the path's links.
    pub backlog: Bytes,
    /// This flow's bytes that left and have not yet reached the narrowest link.
    pub on_wire: Bytes,
    /// Delay from the sender to the narrowest link, the longest of late: jitter may not starve the link. For a device
    /// that sends over a cell, what it takes to be granted.
    pub forward_delay: Duration,
}

/// Names of a scheme's inside, for plots and logs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inspect {
    /// The state, in the words of the scheme's paper.
    pub state: &'static str,
    /// Named values. A scheme gives the same names at every call, each ending in its unit; NaN where unknown.
    pub values: Vec<(&'static str, f64)>,
}

impl Inspect {
    /// Adds one value.
    pub fn value(&mut self, name: &'static str, value: f64) {
        self.values.push((name, value));
    }

    /// Forgets everything, keeping the memory.
    pub fn clear(&mut self) {
        self.state = "";
        self.values.clear();
    }
}
