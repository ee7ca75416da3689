//! One monitor interval: its packets and their outcomes.

use std::time::Duration;

use airpace_core::{Bytes, Time};

use crate::controller::{Sent, SentPacket};
use crate::pcc::Trial;
use crate::pcc::trend::{Regression, Trend};

/// An interval that is being sent, or that has packets not yet accounted for.
#[derive(Clone, Debug)]
pub struct Interval {
    trial: Trial,
    begin: Time,
    /// The end of the interval; `None` while its packets are being sent.
    closed: Option<Time>,
    /// Number of the interval's first packet. `end` is the packet number after the last packet.
    first: u64,
    end: u64,
    sent_packets: u64,
    sent_bytes: Bytes,
    acked_packets: u64,
    acked_bytes: Bytes,
    lost_packets: u64,
    acks: Option<Acks>,
    rtt: Regression,
}

/// Arrival times of the ACKs.
#[derive(Clone, Copy, Debug)]
struct Acks {
    first: Time,
    last: Time,
    /// Bytes acknowledged after the first ACK time.
    bytes: Bytes,
}

/// The outcome of an interval: the inputs of every utility.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Report {
    /// The trial of the interval.
    pub trial: Trial,
    /// The rate at which the interval was sent. This rate is lower than the trial's rate if a window or a driver
    /// limited the sender.
    pub sent_mbps: f64,
    /// The rate at which the packets that were not lost were sent.
    pub acked_mbps: f64,
    /// The rate at which the interval's packets arrived, computed from the spacing of its ACKs; `None` if all ACKs
    /// arrived at the same time.
    pub received_mbps: Option<f64>,
    /// Packets sent.
    pub packets: u64,
    /// Packets lost.
    pub lost: u64,
    /// Share of lost packets.
    pub loss: f64,
    /// Mean round-trip time of the interval (s). Without a sample, the smoothed round-trip time of the connection.
    pub rtt_s: f64,
    /// Mean round-trip time of the previous interval (s). For the first interval, the mean of this interval.
    pub previous_rtt_s: f64,
    /// The trend of the round-trip times.
    pub trend: Trend,
}

impl Interval {
    /// Starts an interval with the packet `sent`, which [`Interval::on_sent`] then counts.
    pub fn new(trial: Trial, sent: &Sent) -> Interval {
        Interval {
            trial,
            begin: sent.now,
            closed: None,
            first: sent.number,
            end: u64::MAX,
            sent_packets: 0,
            sent_bytes: Bytes::ZERO,
            acked_packets: 0,
            acked_bytes: Bytes::ZERO,
            lost_packets: 0,
            acks: None,
            rtt: Regression::default(),
        }
    }

    /// Restarts the interval with the packet `sent`. Earlier packets do not count.
    pub fn restart(&mut self, sent: &Sent) {
        *self = Interval::new(self.trial, sent);
    }

    /// Ends the interval at `now`. Its packets have numbers below `end`.
    pub fn close(&mut self, now: Time, end: u64) {
        self.closed = Some(now);
        self.end = end;
    }

    /// The trial of this interval.
    pub fn trial(&self) -> &Trial {
        &self.trial
    }

    /// The time at which the interval has the length of its trial.
    pub fn due(&self) -> Time {
        self.begin + self.trial.span
    }

    /// The first packet number after the interval.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Whether the packet belongs to the interval. The packet must be below [`Interval::end`].
    pub fn has(&self, number: u64) -> bool {
        number >= self.first
    }

    /// Whether the interval has ended and all its packets were acknowledged or lost.
    pub fn is_complete(&self) -> bool {
        self.closed.is_some() && self.acked_packets + self.lost_packets >= self.sent_packets
    }

    /// Records a sent packet of the interval.
    pub fn on_sent(&mut self, sent: &Sent) {
        self.sent_packets += 1;
        self.sent_bytes += sent.bytes;
    }

    /// Records an acknowledged packet of the interval.
    pub fn on_acked(&mut self, now: Time, packet: &SentPacket) {
        self.acked_packets += 1;
        self.acked_bytes += packet.bytes;
        if packet.declared_lost {
            self.lost_packets = self.lost_packets.saturating_sub(1);
        }
        match &mut self.acks {
            None => self.acks = Some(Acks { first: now, last: now, bytes: Bytes::ZERO }),
            Some(acks) if now > acks.first => {
                acks.last = now;
                acks.bytes += packet.bytes;
            }
            Some(_) => {}
        }
    }

    /// Records that a packet of the interval, sent at `sent`, had the round-trip time `rtt`.
    pub fn on_rtt(&mut self, sent: Time, rtt: Duration) {
        self.rtt.add((sent - self.begin).as_secs_f64(), rtt.as_secs_f64());
    }

    /// Records a lost packet of the interval.
    pub fn on_lost(&mut self) {
        self.lost_packets += 1;
    }

    /// The report of the interval's outcome.
    pub fn report(&self, smoothed_rtt: Duration, previous_rtt_s: Option<f64>) -> Report {
        let span = self.closed.unwrap_or(self.begin) - self.begin;
        let packets = self.sent_packets.max(1);
        let lost = self.lost_packets.min(packets);
        let rtt_s = self.rtt.mean().unwrap_or(smoothed_rtt.as_secs_f64());
        Report {
            trial: self.trial,
            sent_mbps: mbps(self.sent_bytes, span).unwrap_or(self.trial.rate_mbps),
            acked_mbps: mbps(self.acked_bytes, span).unwrap_or(0.0),
            received_mbps: self.acks.and_then(|acks| mbps(acks.bytes, acks.last - acks.first)),
            packets,
            lost,
            loss: lost as f64 / packets as f64,
            rtt_s,
            previous_rtt_s: previous_rtt_s.unwrap_or(rtt_s),
            trend: self.rtt.trend(),
        }
    }
}

impl Report {
    /// Whether no packet of the interval arrived.
    pub fn is_void(&self) -> bool {
        self.lost == self.packets
    }
}

/// The trial of a report before the first interval: rate and length are zero.
impl Default for Trial {
    fn default() -> Trial {
        Trial { rate_mbps: 0.0, span: Duration::ZERO, tag: Default::default() }
    }
}

/// The rate of `bytes` per `span`, in Mbit/s; `None` if the span is zero.
fn mbps(bytes: Bytes, span: Duration) -> Option<f64> {
    let micros = span.as_secs_f64() * 1e6;
    (micros > 0.0).then(|| bytes.0 as f64 * 8.0 / micros)
}
