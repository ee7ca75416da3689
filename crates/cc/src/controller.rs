//! The contract of every congestion control: one object-safe trait for the sender's half, one for the receiver's
//! half.
//!
//! A controller receives events, and drivers then ask it for [`Control`]. It never reads a clock. The order of the
//! calls at one instant is: `on_loss` (the packets that this ACK showed to be lost), `on_ack`, then `control`.

use std::time::Duration;

use airpace_core::{Bytes, Ecn, Rate, Rider, Time};
use airpace_radio::RadioReport;

use crate::registry::DeviceFlows;

/// What a half of a scheme uses besides packets and ACKs. Drivers give it nothing that is not named here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sees {
    /// Nothing else: any transport can carry it.
    #[default]
    Packets,
    /// What a mobile device at the half's own end provides: the radio's reports and, for a controller, what the
    /// device knows about its flows. The half also works without them, if its end is no device or the device provides
    /// nothing.
    Device,
    /// The same, but the half is of no use at an end that is no device.
    DeviceOnly,
    /// What only a simulator can know ([`Controller::on_truth`]). No real transport can provide it. It is only for
    /// controllers that show the best that the others can reach.
    Truth,
}

impl Sees {
    /// Whether the half uses what a device at its end provides.
    pub fn is_device(self) -> bool {
        matches!(self, Sees::Device | Sees::DeviceOnly)
    }
}

/// The sender's half of a scheme.
pub trait Controller: Send {
    /// What it uses besides packets and ACKs. Drivers ask once, before the flow begins. They do the work only for the
    /// controllers that need it.
    fn sees(&self) -> Sees {
        Sees::Packets
    }

    /// A data packet was handed to the path.
    fn on_sent(&mut self, _sent: &Sent) {}

    /// An acknowledgement acknowledged at least one new packet.
    fn on_ack(&mut self, ack: &Ack<'_>);

    /// An acknowledgement that acknowledged nothing new brought these bytes of the receiver half. They are newer than
    /// any before. A receiver half sends them without a packet as the cause, see [`Receiver::on_timer`] and
    /// [`Receiver::request`].
    fn on_feedback(&mut self, _now: Time, _feedback: &[u8]) {}

    /// Packets were declared lost.
    fn on_loss(&mut self, loss: &Loss<'_>);

    /// The sender's own radio reported a subframe ([`Sees::Device`]: uplink schemes; most schemes have no radio at
    /// the sender). The report has only the sender's own grants, in both directions.
    fn on_radio(&mut self, _report: &RadioReport) {}

    /// What the sender's own device knows about its flows. Called when the flow begins, and whenever that knowledge
    /// may have changed ([`Sees::Device`]: uplink schemes; most schemes run on a server that has no radio to share).
    fn on_device(&mut self, _now: Time, _flows: &DeviceFlows) {}

    /// What only a simulator can know ([`Sees::Truth`]); real transports never call it.
    fn on_truth(&mut self, _truth: &Truth) {}

    /// The number of packets that must have left by now to leave exactly when they are needed ([`Sees::Truth`]). Called at
    /// every such departure where a simulator has computed all of them beforehand, and never elsewhere.
    fn on_due(&mut self, _packets: u64) {}

    /// The instant asked for by [`Controller::next_timer`] has come.
    fn on_timer(&mut self, _now: Time) {}

    /// When to call [`Controller::on_timer`]; asked after every event.
    fn next_timer(&self) -> Option<Time> {
        None
    }

    /// How much may be in flight, and how fast it may leave. Asked after every event.
    fn control(&self) -> Control;

    /// Bytes for the receiver half. They travel on the data packet of the last call of [`Controller::on_sent`].
    fn header(&self) -> Rider {
        Rider::EMPTY
    }

    /// Whether queues may mark its packets instead of dropping them. Asked once, before the first packet.
    ///
    /// Source: RFC 3168 §6.1.1
    fn is_ecn_capable(&self) -> bool {
        false
    }

    /// Names the controller's state and internals for plots and logs.
    fn inspect(&self, out: &mut Inspect);
}

/// The receiver's half of a scheme, for schemes that have one. It turns packets and radio reports into feedback.
pub trait Receiver: Send {
    /// What it uses besides packets. Drivers ask once, before the flow begins. They do the work only for the halves
    /// that need it. A scheme whose receiver half uses [`Sees::DeviceOnly`] works only for downloads.
    fn sees(&self) -> Sees {
        Sees::Packets
    }

    /// A data packet arrived.
    fn on_packet(&mut self, arrival: &Arrival<'_>);

    /// The device's radio reported a subframe of one carrier ([`Sees::Device`]).
    fn on_radio(&mut self, _report: &RadioReport) {}

    /// The instant asked for by [`Receiver::next_timer`] has come. Returns whether an ACK must leave now although no
    /// packet arrived.
    fn on_timer(&mut self, _now: Time) -> bool {
        false
    }

    /// When to call [`Receiver::on_timer`], by the receiver's clock; asked after every packet and every timer.
    fn next_timer(&self) -> Option<Time> {
        None
    }

    /// Bytes for the controller, on the ACK that leaves at `now` (the receiver's clock).
    fn feedback(&mut self, now: Time) -> Rider;

    /// Bytes for the controller, on the client's request that leaves at `now`. No packet of the connection may have
    /// arrived yet. A half says nothing here unless its controller can use it ([`Controller::on_feedback`]).
    fn request(&mut self, _now: Time) -> Rider {
        Rider::EMPTY
    }

    /// The most bytes that the sender may have outstanding, from the ACK that leaves at `now` on; `None` for no
    /// limit. This is the transport's flow control, which every sender obeys, whatever its scheme is.
    ///
    /// Source: RFC 9293 §3.8.6 (the advertised window)
    fn window(&mut self, _now: Time) -> Option<Bytes> {
        None
    }

    /// Names the receiver's internals for plots and logs. Only the controller names the state.
    fn inspect(&self, out: &mut Inspect);
}

/// How much may be outstanding, and how fast it may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control {
    /// Congestion window: the most bytes outstanding; at least one MSS.
    pub cwnd: Bytes,
    /// Rate that the pacer obeys, never zero. With `None`, a packet leaves whenever the window has room.
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
    /// Bytes declared lost over the connection's life, up to the time when it left.
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
    /// Bytes outstanding before this ACK, and before the losses that it showed.
    pub prior_inflight: Bytes,
    /// Bytes outstanding afterwards.
    pub inflight: Bytes,
    /// Next packet number to be sent: a round ends when a packet of at least this number is acknowledged.
    pub next_number: u64,
    /// Round-trip times.
    pub rtt: Rtt,
    /// The delivery-rate sample of this ACK.
    pub rate: RateSample,
    /// Whether the congestion window was what last kept the sender from sending, and not pacing, the application or
    /// the receiver's window.
    pub cwnd_limited: bool,
    /// Packets that this ACK is the first to report as marked by a queue.
    pub ce: u64,
    /// Bytes that the receiver half put on the ACK; empty if it has none.
    pub feedback: &'a [u8],
}

/// Round-trip times as the endpoint measures them.
///
/// Source: RFC 9002 §5
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rtt {
    /// The sample of this ACK: the time since the highest newly acknowledged packet was sent. `None` if that packet
    /// is not the highest acknowledged so far.
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
    /// The rate. `None` if the interval is shorter than the least RTT, or if nothing was delivered.
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
    /// Bytes outstanding before the loss was detected.
    pub prior_inflight: Bytes,
    /// Bytes outstanding afterwards.
    pub inflight: Bytes,
    /// Next packet number to be sent: an episode of recovery ends when a packet of at least this number is
    /// acknowledged.
    pub next_number: u64,
    /// How it was detected.
    pub cause: LossCause,
}

/// How a loss was detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossCause {
    /// Later packets were acknowledged: packet or time threshold.
    ///
    /// Source: RFC 9002 §6.1
    Threshold,
    /// Nothing was acknowledged for so long that all outstanding packets count as lost.
    ///
    /// Source: RFC 9002 §7.6
    Persistent,
}

/// A data packet at the receiver. Its times come from two clocks: their difference has an unknown offset.
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
    /// What this device knows about the flows that it receives data for.
    pub device: DeviceFlows,
}

/// What a simulator knows about a flow's path, every millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truth {
    /// When.
    pub now: Time,
    /// The capacity that the path's narrowest link can give this flow when a packet sent now gets there: its device's
    /// capacity divided by the device's active flows.
    pub capacity: Rate,
    /// How much of this flow must be in the queues when a packet sent now gets there, so that the link serves the flow as if
    /// data without end waited. A scheduler that chooses among users gives less to who has less. Zero where the link
    /// serves whatever comes.
    pub enough: Bytes,
    /// This flow's bytes in the queues of the path's links.
    pub backlog: Bytes,
    /// This flow's bytes that have left and have not yet reached the narrowest link.
    pub on_wire: Bytes,
    /// Delay from the sender to the narrowest link, the longest of the recent ones, so that jitter does not starve
    /// the link. It is zero for a sender that stands at the link, such as a device that sends over a cell.
    pub forward_delay: Duration,
}

/// Names of a scheme's internals, for plots and logs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inspect {
    /// The state, in the words of the scheme's paper.
    pub state: &'static str,
    /// Named values. A scheme gives the same names at every call. Each name ends in the unit; the value is NaN where
    /// unknown.
    pub values: Vec<(&'static str, f64)>,
}

impl Inspect {
    /// Adds one value.
    pub fn value(&mut self, name: &'static str, value: f64) {
        self.values.push((name, value));
    }

    /// Removes all values, and keeps the memory allocated.
    pub fn clear(&mut self) {
        self.state = "";
        self.values.clear();
    }
}
