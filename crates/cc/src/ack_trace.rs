//! ACK traces: all events that the controller of one flow receives, and its outputs. One line of text per event.
//!
//! ```text
//! airpace-ack-trace 1 biscay 1500                  format, version, scheme, MSS in bytes
//! 1200000 sent 0 1500 1500 0                       number, bytes, in flight, application limited
//! 41000000 ack 0,2-4 6000 15000 9000 10 40000000 … the fields of [`Acked`] in their order
//! 41000000 loss 1 1500 15000 13500 10 threshold    numbers, bytes, in flight before and after, next number, cause
//! 42000000 radio 12000000 30000000 0               bandwidth and burst in bit/s, bytes that wait in the device
//! 42000000 device 1 1 1 1                          flows, applications, flows of the application, share used
//! 43000000 feedback 0100…                          feedback without a new packet, as hexadecimal digits
//! 44000000 timer                                   the instant that the controller asked for
//! … = 30000 12000000 Startup                       cwnd in bytes, pacing rate in bit/s, state
//! ```
//!
//! A line starts with the time in nanoseconds. If the controller's output has changed, the line ends with `=` and the
//! output; without `=`, the output is unchanged. `-` stands for an unknown value. Times, amounts and rates are
//! integers, so that a reader in C needs no floating point.
//!
//! The bandwidth on a `radio` line is the one that BISCAY's device computes from its radio's reports
//! ([`CellularBandwidth`]). A controller in a kernel does not receive reports; it reads this value from shared memory.
//!
//! Chosen: the layout.

mod text;

use std::time::Duration;

use airpace_core::{Bytes, Direction, Rate, Rider, Time};
use airpace_radio::RadioReport;

use crate::biscay::Tuning;
use crate::biscay::bandwidth::{CellularBandwidth, Determination};
use crate::controller::{Ack, Control, Controller, Inspect, Loss, LossCause, Sees, Sent, SentPacket, Truth};
use crate::registry::DeviceFlows;
use crate::scheme::Options;
use crate::schemes::SchemeSpec;

pub use text::{Header, ParseError, Reader};

/// One line of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Time of the event by the controller's clock.
    pub time: Time,
    /// The event that the controller received.
    pub told: Told,
    /// The controller's output, if it differs from its last output.
    pub answer: Option<Answer>,
}

/// An event that a controller received.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// A packet was sent.
    Sent {
        /// The packet number.
        number: u64,
        /// The packet's size on the wire.
        bytes: Bytes,
        /// Bytes outstanding, this packet included.
        inflight: Bytes,
        /// Whether the application had no more data to send after this packet.
        app_limited: bool,
    },
    /// An acknowledgement of new packets.
    Acked(Acked),
    /// Packets were declared lost.
    Lost {
        /// Numbers of the lost packets.
        numbers: Numbers,
        /// Bytes declared lost.
        lost: Bytes,
        /// Bytes outstanding before the loss was detected.
        prior_inflight: Bytes,
        /// Bytes outstanding after the loss.
        inflight: Bytes,
        /// Next packet number to be sent.
        next_number: u64,
        /// How the loss was detected.
        cause: LossCause,
    },
    /// The radio of the sender's device sent a report.
    Radio {
        /// The device's bandwidth; `None` if it is unknown.
        bandwidth: Option<Rate>,
        /// The maximum rate granted in a frame of 10 ms up to now.
        burst: Rate,
        /// Bytes queued in the device.
        queue: Bytes,
    },
    /// The sender's device reported a change in its flows.
    Device(DeviceFlows),
    /// Feedback on an acknowledgement that acknowledged no new packet.
    Feedback(Rider),
    /// The time that the controller had requested was reached.
    Timer,
}

/// Packet numbers as ranges with both ends included, in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Numbers(Vec<(u64, u64)>);

impl Numbers {
    /// The packet numbers of `packets`, which must be in ascending order.
    fn of(packets: &[SentPacket]) -> Numbers {
        let mut ranges: Vec<(u64, u64)> = vec![];
        for &SentPacket { number, .. } in packets {
            match ranges.last_mut() {
                Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
                _ => ranges.push((number, number)),
            }
        }
        Numbers(ranges)
    }

    /// An iterator over all packet numbers.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        self.0.iter().flat_map(|&(first, last)| first..=last)
    }

    /// The greatest packet number; `None` if there are no numbers.
    pub fn newest(&self) -> Option<u64> {
        self.0.last().map(|&(_, last)| last)
    }
}

/// An acknowledgement, as in [`Ack`].
#[derive(Clone, Debug, PartialEq)]
pub struct Acked {
    /// The acknowledged packets.
    pub numbers: Numbers,
    /// Bytes newly acknowledged.
    pub acked: Bytes,
    /// Bytes outstanding before the ACK.
    pub prior_inflight: Bytes,
    /// Bytes outstanding after the ACK.
    pub inflight: Bytes,
    /// Next packet number to be sent.
    pub next_number: u64,
    /// Round-trip time sample.
    pub rtt: Option<Duration>,
    /// Smoothed round-trip time.
    pub smoothed: Duration,
    /// Mean deviation of round-trip times.
    pub variation: Duration,
    /// Minimum round-trip time of the connection.
    pub least: Duration,
    /// Delivery rate.
    pub rate: Option<Rate>,
    /// Bytes delivered since the start of the flow.
    pub delivered: Bytes,
    /// Bytes delivered when the newest packet left.
    pub prior_delivered: Bytes,
    /// The time over which the delivery rate was measured.
    pub interval: Duration,
    /// Whether the sender was application limited when the newest packet left.
    pub app_limited: bool,
    /// Whether the sender was application limited when any of the ACK's packets left.
    pub any_app_limited: bool,
    /// Bytes declared lost since the newest packet of this ACK left.
    pub lost: Bytes,
    /// Whether the congestion window last stopped the sender.
    pub cwnd_limited: bool,
    /// Number of packets that this ACK newly reports as marked by a queue (ECN CE).
    pub ce: u64,
    /// Feedback of the scheme's receiver; empty if there is none.
    pub feedback: Rider,
}

impl Acked {
    fn of(ack: &Ack<'_>) -> Acked {
        Acked {
            numbers: Numbers::of(ack.packets),
            acked: ack.acked,
            prior_inflight: ack.prior_inflight,
            inflight: ack.inflight,
            next_number: ack.next_number,
            rtt: ack.rtt.latest,
            smoothed: ack.rtt.smoothed,
            variation: ack.rtt.variation,
            least: ack.rtt.min,
            rate: ack.rate.rate,
            delivered: ack.rate.delivered,
            prior_delivered: ack.rate.prior_delivered,
            interval: ack.rate.interval,
            app_limited: ack.rate.app_limited,
            any_app_limited: ack.packets.iter().any(|packet| packet.app_limited),
            lost: ack.rate.lost,
            cwnd_limited: ack.cwnd_limited,
            ce: ack.ce,
            feedback: Rider::new(ack.feedback).unwrap_or_default(),
        }
    }
}

/// The output of a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Congestion window.
    pub cwnd: Bytes,
    /// Pacing rate; `None` if the flow is not paced.
    pub pacing_rate: Option<Rate>,
    /// The controller's state.
    pub state: String,
}

/// The consumer of trace entries.
pub type Tape = Box<dyn FnMut(&Entry) + Send>;

/// A controller that records the events and outputs of the controller that it wraps. It does not change them.
pub struct Traced {
    inner: Box<dyn Controller>,
    tape: Tape,
    feed: CellularBandwidth,
    /// The time of the latest event.
    now: Time,
    device: Option<DeviceFlows>,
    inspect: Inspect,
    answered: Option<(Control, &'static str)>,
}

impl Traced {
    /// Traces `inner`, which is the controller of `spec`.
    pub fn new(inner: Box<dyn Controller>, spec: &SchemeSpec, tape: Tape) -> Traced {
        Traced {
            inner,
            tape,
            feed: CellularBandwidth::new(Direction::Uplink, determination(spec)),
            now: Time::ZERO,
            device: None,
            inspect: Inspect::default(),
            answered: None,
        }
    }

    fn write(&mut self, time: Time, told: Told) {
        self.now = self.now.max(time);
        self.inspect.clear();
        self.inner.inspect(&mut self.inspect);
        let answered = (self.inner.control(), self.inspect.state);
        let is_new = self.answered != Some(answered);
        let answer = is_new.then(|| Answer {
            cwnd: answered.0.cwnd,
            pacing_rate: answered.0.pacing_rate,
            state: answered.1.to_owned(),
        });
        self.answered = Some(answered);
        (self.tape)(&Entry { time: self.now, told, answer });
    }
}

/// The settings with which BISCAY's device computes the bandwidth under the options of `spec`; for other schemes, the
/// default settings.
fn determination(spec: &SchemeSpec) -> Determination {
    let own = Some(spec.options()).filter(|_| std::ptr::eq(spec.scheme(), &crate::biscay::SCHEME));
    let defaults = Options::defaults(&crate::biscay::SCHEME);
    let tuning = Tuning::read(own.unwrap_or(&defaults)).or_else(|_| Tuning::read(&defaults));
    tuning.expect("the defaults can be read: a test builds every scheme with them").determination
}

impl Controller for Traced {
    fn sees(&self) -> Sees {
        self.inner.sees()
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.inner.on_sent(sent);
        let Sent { now, number, bytes, inflight, app_limited } = *sent;
        self.write(now, Told::Sent { number, bytes, inflight, app_limited });
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.inner.on_ack(ack);
        self.write(ack.now, Told::Acked(Acked::of(ack)));
    }

    fn on_feedback(&mut self, now: Time, feedback: &[u8]) {
        self.inner.on_feedback(now, feedback);
        self.write(now, Told::Feedback(Rider::new(feedback).unwrap_or_default()));
    }

    fn on_loss(&mut self, loss: &Loss<'_>) {
        self.inner.on_loss(loss);
        let Loss { now, packets, lost, prior_inflight, inflight, next_number, cause } = *loss;
        let numbers = Numbers::of(packets);
        self.write(now, Told::Lost { numbers, lost, prior_inflight, inflight, next_number, cause });
    }

    fn on_radio(&mut self, report: &RadioReport) {
        self.inner.on_radio(report);
        if self.feed.on_report(report) {
            let queue = report.own.as_ref().and_then(|own| own.uplink_queue).unwrap_or_default();
            let (bandwidth, burst) = (self.feed.get(), self.feed.burst());
            self.write(report.time, Told::Radio { bandwidth, burst, queue });
        }
    }

    fn on_device(&mut self, now: Time, flows: &DeviceFlows) {
        self.inner.on_device(now, flows);
        if self.device.replace(*flows) != Some(*flows) {
            self.write(now, Told::Device(*flows));
        }
    }

    fn on_truth(&mut self, truth: &Truth) {
        self.inner.on_truth(truth);
    }

    fn on_due(&mut self, packets: u64) {
        self.inner.on_due(packets);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.inner.handle_timeout(now);
        self.write(now, Told::Timer);
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.inner.poll_timeout()
    }

    fn control(&self) -> Control {
        self.inner.control()
    }

    fn header(&self) -> Rider {
        self.inner.header()
    }

    fn is_ecn_capable(&self) -> bool {
        self.inner.is_ecn_capable()
    }

    fn inspect(&self, out: &mut Inspect) {
        self.inner.inspect(out);
    }
}
