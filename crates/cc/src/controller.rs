//! The contract of congestion controllers: the object-safe traits [`Controller`] (at the sender) and [`Receiver`] (at
//! the receiver).
//!
//! A controller receives events. After each event, the driver asks it for its [`Control`]. A controller never reads a
//! clock. At one instant the driver calls, in this order: `on_loss` (the packets that this ACK showed to be lost),
//! `on_ack`, `control`.

use std::time::Duration;

use airpace_core::{Bytes, Ecn, Rate, Rider, Time};
use airpace_radio::RadioReport;

use crate::registry::DeviceFlows;

/// Inputs that a controller or receiver uses besides packets and ACKs. Drivers provide only the inputs named here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sees {
    /// No other inputs: any transport can carry the scheme.
    #[default]
    Packets,
    /// Inputs of the mobile device at this endpoint: radio reports and, for a controller, the device's information
    /// about its flows ([`DeviceFlows`]). The scheme also works without these inputs, for example if the endpoint is
    /// not a mobile device.
    Device,
    /// As [`Sees::Device`], but the scheme is of no use at an endpoint that is not a mobile device.
    DeviceOnly,
    /// Ground truth that only a simulator has ([`Controller::on_truth`]). No real transport can provide it. Controllers
    /// that use it show the upper bound of what the other controllers can reach.
    Truth,
}

impl Sees {
    /// Whether the inputs include the inputs of the device at this endpoint.
    pub fn is_device(self) -> bool {
        matches!(self, Sees::Device | Sees::DeviceOnly)
    }
}

/// The part of a scheme that runs at the sender.
pub trait Controller: Send {
    /// Inputs that the controller uses besides packets and ACKs. Drivers ask once, before the flow starts, and collect
    /// an input only for the controllers that use it.
    fn sees(&self) -> Sees {
        Sees::Packets
    }

    /// A data packet was handed to the path.
    fn on_sent(&mut self, _sent: &Sent) {}

    /// An acknowledgement acknowledged at least one new packet.
    fn on_ack(&mut self, ack: &Ack<'_>);

    /// An acknowledgement arrived that acknowledged no new packet but contained feedback of the scheme's receiver. The
    /// feedback is newer than all earlier feedback. A receiver sends such feedback although no packet has arrived; see
    /// [`Receiver::handle_timeout`] and [`Receiver::request`].
    fn on_feedback(&mut self, _now: Time, _feedback: &[u8]) {}

    /// Packets were declared lost.
    fn on_loss(&mut self, loss: &Loss<'_>);

    /// The radio of the sender's device reported a subframe ([`Sees::Device`]: uplink schemes; most schemes have no
    /// radio at the sender). The report contains only this device's grants, in both directions.
    fn on_radio(&mut self, _report: &RadioReport) {}

    /// The sender's device reported its own flows. This method is called when the flow starts, and when the report may
    /// have changed ([`Sees::Device`]: uplink schemes; most schemes run on a server that has no radio to share).
    fn on_device(&mut self, _now: Time, _flows: &DeviceFlows) {}

    /// A simulator reported the ground truth of the path ([`Sees::Truth`]). Real transports never call it.
    fn on_truth(&mut self, _truth: &Truth) {}

    /// The number of packets that must have left by now so that each packet arrives exactly when the link needs it
    /// ([`Sees::Truth`]). A simulator that has computed all departure times in advance calls this method at each
    /// departure time; nothing else calls it.
    fn on_due(&mut self, _packets: u64) {}

    /// The time returned by [`Controller::poll_timeout`] has been reached.
    fn handle_timeout(&mut self, _now: Time) {}

    /// The time of the next call of [`Controller::handle_timeout`]. Drivers ask after every event.
    fn poll_timeout(&self) -> Option<Time> {
        None
    }

    /// The congestion window and the pacing rate. Drivers ask after every event.
    fn control(&self) -> Control;

    /// Header bytes for the scheme's receiver. They travel on the data packet of the last call of
    /// [`Controller::on_sent`].
    fn header(&self) -> Rider {
        Rider::EMPTY
    }

    /// Whether queues may mark the flow's packets (ECN) instead of dropping them. Drivers ask once, before the first
    /// packet.
    ///
    /// Source: RFC 3168 §6.1.1
    fn is_ecn_capable(&self) -> bool {
        false
    }

    /// Names the controller's state and internals for plots and logs.
    fn inspect(&self, out: &mut Inspect);
}

/// The part of a scheme that runs at the receiver, for schemes that have one. It computes feedback from packets and
/// radio reports.
pub trait Receiver: Send {
    /// Inputs that the receiver uses besides packets. Drivers ask once, before the flow starts, and collect an input
    /// only for the receivers that use it. A scheme whose receiver uses [`Sees::DeviceOnly`] works only for downloads.
    fn sees(&self) -> Sees {
        Sees::Packets
    }

    /// A data packet arrived.
    fn on_packet(&mut self, arrival: &Arrival<'_>);

    /// The device's radio reported a subframe of one carrier ([`Sees::Device`]).
    fn on_radio(&mut self, _report: &RadioReport) {}

    /// The time returned by [`Receiver::poll_timeout`] has been reached. Returns whether an ACK must leave now although
    /// no packet arrived.
    fn handle_timeout(&mut self, _now: Time) -> bool {
        false
    }

    /// The time of the next call of [`Receiver::handle_timeout`], by the receiver's clock. Drivers ask after every packet and
    /// every timer.
    fn poll_timeout(&self) -> Option<Time> {
        None
    }

    /// Feedback bytes for the controller, sent on the ACK that leaves at `now` (the receiver's clock).
    fn feedback(&mut self, now: Time) -> Rider;

    /// Feedback bytes for the controller, sent on the client's request that leaves at `now`. It is possible that no
    /// packet of the connection has arrived yet. A receiver returns bytes only if its controller can use them
    /// ([`Controller::on_feedback`]).
    fn request(&mut self, _now: Time) -> Rider {
        Rider::EMPTY
    }

    /// The maximum number of bytes that the sender may have outstanding once it has received the ACK that leaves at
    /// `now`; `None` for no limit. This is the transport's flow control. Every sender obeys it, with any scheme.
    ///
    /// Source: RFC 9293 §3.8.6 (the advertised window)
    fn window(&mut self, _now: Time) -> Option<Bytes> {
        None
    }

    /// Names the receiver's internals for plots and logs. Only the controller names the state.
    fn inspect(&self, out: &mut Inspect);
}

/// The outputs of a controller: congestion window and pacing rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control {
    /// Congestion window: the maximum number of outstanding bytes; at least one MSS.
    pub cwnd: Bytes,
    /// Pacing rate, never zero. With `None`, a packet leaves as soon as the window permits it.
    pub pacing_rate: Option<Rate>,
}

/// A data packet left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sent {
    /// The time of the departure.
    pub now: Time,
    /// The packet number.
    pub number: u64,
    /// The packet's size on the wire.
    pub bytes: Bytes,
    /// Bytes outstanding, this packet included.
    pub inflight: Bytes,
    /// Whether the application had no more data to send after this packet.
    pub app_limited: bool,
}

impl Sent {
    /// A packet of `bytes` that left at `now`; `inflight` includes it. The application has more data to send.
    pub fn new(now: Time, number: u64, bytes: Bytes, inflight: Bytes) -> Sent {
        Sent { now, number, bytes, inflight, app_limited: false }
    }
}

/// The sender's record of a packet that was acknowledged or lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SentPacket {
    /// The packet number.
    pub number: u64,
    /// The packet's size on the wire.
    pub bytes: Bytes,
    /// The time of the departure.
    pub sent: Time,
    /// Bytes outstanding just after the packet left, this packet included.
    pub inflight_at_send: Bytes,
    /// Bytes declared lost over the connection's life, up to the packet's departure.
    pub lost_at_send: Bytes,
    /// Whether the sender was application limited when the packet left.
    pub app_limited: bool,
    /// Whether the packet was declared lost. If an ACK contains such a packet, the loss was spurious.
    pub declared_lost: bool,
}

impl SentPacket {
    /// A packet of `bytes` that left at `sent` and was not declared lost. Nothing else was outstanding.
    pub fn new(number: u64, bytes: Bytes, sent: Time) -> SentPacket {
        SentPacket { number, bytes, sent, inflight_at_send: bytes, ..SentPacket::default() }
    }
}

/// An acknowledgement that acknowledged at least one new packet.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Ack<'a> {
    /// The time at which the sender processed the ACK.
    pub now: Time,
    /// The packets newly acknowledged, by rising number. The list is never empty.
    pub packets: &'a [SentPacket],
    /// Bytes newly acknowledged.
    pub acked: Bytes,
    /// Bytes outstanding before this ACK and before the losses that were detected with it.
    pub prior_inflight: Bytes,
    /// Bytes outstanding after this ACK.
    pub inflight: Bytes,
    /// Next packet number to be sent: a round ends when a packet of at least this number is acknowledged.
    pub next_number: u64,
    /// Round-trip times.
    pub rtt: Rtt,
    /// The delivery-rate sample of this ACK.
    pub rate: RateSample,
    /// Whether the congestion window last stopped the sender, rather than pacing, the application or the receiver's
    /// window.
    pub cwnd_limited: bool,
    /// Packets that this ACK newly reports as marked by a queue (ECN CE).
    pub ce: u64,
    /// Feedback bytes of the scheme's receiver on this ACK; empty if there are none.
    pub feedback: &'a [u8],
}

impl<'a> Ack<'a> {
    /// An ACK of these packets after which nothing is outstanding. The ACK has no delivery-rate sample, marks or
    /// feedback, and the congestion window did not stop the sender.
    pub fn new(now: Time, packets: &'a [SentPacket], rtt: Rtt) -> Ack<'a> {
        let acked = packets.iter().map(|packet| packet.bytes).sum();
        Ack {
            now,
            packets,
            acked,
            prior_inflight: acked,
            inflight: Bytes::ZERO,
            next_number: packets.last().map_or(0, |newest| newest.number + 1),
            rtt,
            rate: RateSample::default(),
            cwnd_limited: false,
            ce: 0,
            feedback: &[],
        }
    }
}

/// Round-trip times as the endpoint measures them.
///
/// Source: RFC 9002 §5
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rtt {
    /// The round-trip time sample of this ACK: the time since the highest newly acknowledged packet was sent. `None` if
    /// that packet is not the highest acknowledged so far.
    pub latest: Option<Duration>,
    /// Smoothed round-trip time, gain 1/8.
    pub smoothed: Duration,
    /// Mean deviation of the round-trip time, gain 1/4.
    pub variation: Duration,
    /// Minimum round-trip time over the connection.
    pub min: Duration,
}

/// One delivery-rate sample.
///
/// Source: draft-ietf-ccwg-delivery-rate §3
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateSample {
    /// The delivery rate. `None` if the interval is shorter than the minimum RTT, or if nothing was delivered.
    pub rate: Option<Rate>,
    /// Bytes delivered over the connection's life, this ACK included.
    pub delivered: Bytes,
    /// The value of `delivered` when the sample's packet was sent. Controllers count rounds with this value.
    pub prior_delivered: Bytes,
    /// Length of the interval over which the sample was taken.
    pub interval: Duration,
    /// Whether the sender was application limited when the sample's packet was sent.
    pub app_limited: bool,
    /// Bytes outstanding when the sample's packet was sent, that packet included.
    pub tx_in_flight: Bytes,
    /// Bytes declared lost since the sample's packet was sent.
    pub lost: Bytes,
    /// Packets reported as marked since the sample's packet was sent.
    pub ce: u64,
}

/// Packets were declared lost.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Loss<'a> {
    /// The time of the detection.
    pub now: Time,
    /// The lost packets, by rising number. The list is never empty.
    pub packets: &'a [SentPacket],
    /// Bytes newly declared lost.
    pub lost: Bytes,
    /// Bytes outstanding before the loss was detected.
    pub prior_inflight: Bytes,
    /// Bytes outstanding after the loss.
    pub inflight: Bytes,
    /// Next packet number to be sent: an episode of recovery ends when a packet of at least this number is
    /// acknowledged.
    pub next_number: u64,
    /// How the loss was detected.
    pub cause: LossCause,
}

impl<'a> Loss<'a> {
    /// The loss of these packets, after which nothing is outstanding.
    pub fn new(now: Time, packets: &'a [SentPacket], cause: LossCause) -> Loss<'a> {
        let lost = packets.iter().map(|packet| packet.bytes).sum();
        Loss {
            now,
            packets,
            lost,
            prior_inflight: lost,
            inflight: Bytes::ZERO,
            next_number: packets.last().map_or(0, |newest| newest.number + 1),
            cause,
        }
    }
}

/// How a loss was detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LossCause {
    /// Later packets were acknowledged, and the packet threshold or the time threshold was exceeded.
    ///
    /// Source: RFC 9002 §6.1
    Threshold,
    /// Persistent congestion: no packet was acknowledged for a long period, so all outstanding packets count as lost.
    ///
    /// Source: RFC 9002 §7.6
    Persistent,
}

/// A data packet at the receiver. Its two times come from different clocks, so their difference contains an unknown
/// offset.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Arrival<'a> {
    /// Arrival time by the receiver's clock.
    pub now: Time,
    /// Departure time by the sender's clock.
    pub sent: Time,
    /// The packet number.
    pub number: u64,
    /// The packet's size on the wire.
    pub bytes: Bytes,
    /// The ECN field: whether a queue marked the packet.
    pub ecn: Ecn,
    /// Header bytes that the controller put on the packet.
    pub header: &'a [u8],
    /// The device's information about the flows for which it receives data.
    pub device: DeviceFlows,
}

impl<'a> Arrival<'a> {
    /// A packet without ECN and without header bytes, at a device with no other flow.
    pub fn new(now: Time, sent: Time, number: u64, bytes: Bytes) -> Arrival<'a> {
        Arrival { now, sent, number, bytes, ecn: Ecn::NotEct, header: &[], device: DeviceFlows::ALONE }
    }
}

/// Ground truth of a flow's path, reported by a simulator every millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truth {
    /// The time for which the values hold.
    pub now: Time,
    /// Capacity of the path's narrowest link for this flow at the time when a packet sent now arrives there: the
    /// device's capacity divided by the device's active flows.
    pub capacity: Rate,
    /// Minimum amount of this flow's data that must be queued at the narrowest link when a packet sent now arrives
    /// there, so that the link serves the flow like a flow with unlimited data. (A scheduler that chooses among users
    /// gives less to a user with less data.) Zero if the link serves all data in order of arrival.
    pub enough: Bytes,
    /// This flow's bytes in the queues of the path's links.
    pub backlog: Bytes,
    /// This flow's bytes that were sent and have not yet reached the narrowest link.
    pub on_wire: Bytes,
    /// Delay from the sender to the narrowest link: the maximum of the recent delays, so that jitter does not starve
    /// the link. Zero for a sender that is itself at the link, such as a device that sends over a cell.
    pub forward_delay: Duration,
}

/// Named internal values of a scheme, for plots and logs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inspect {
    /// The name of the current state, as in the scheme's paper.
    pub state: &'static str,
    /// Names and values. A scheme uses the same names at every call. Each name ends in the unit. An unknown value is
    /// NaN.
    pub values: Vec<(&'static str, f64)>,
}

impl Inspect {
    /// Appends one named value.
    pub fn value(&mut self, name: &'static str, value: f64) {
        self.values.push((name, value));
    }

    /// Removes all values but keeps the allocated memory.
    pub fn clear(&mut self) {
        self.state = "";
        self.values.clear();
    }
}
