//! The receiver of a connection's data packets: counters, and feedback to the sender.

use std::time::Duration;

use airpace_cc::controller::{Arrival, Inspect, Receiver};
use airpace_cc::registry::DeviceFlows;
use airpace_core::{Bytes, Ecn, Rider, Time};
use airpace_radio::RadioReport;

use super::datagram::{Feedback, Stamp};
use crate::endpoint::Counted;

/// Minimum interval between two feedback messages about packets.
///
/// Chosen: a subframe, the same as the minimum interval between ACKs.
const MIN_INTERVAL: Duration = Duration::from_millis(1);

/// State of the data packets received, and the scheme's receiver.
#[derive(Default)]
pub(super) struct Receiving {
    half: Option<Box<dyn Receiver>>,
    device: DeviceFlows,
    packets: Counted,
    /// Number and transmission time of the newest stamp.
    stamped: Option<(u64, Time)>,
    /// Packets without a stamp received since the newest stamp.
    unstamped: u64,
    /// Minimum one-way delay (ns), including the offset between the two clocks.
    least_delay_ns: Option<i64>,
    queueing_delay: Option<Duration>,
    newest: Time,
    sequence: u64,
    last: Option<Time>,
    due: Option<Time>,
    /// Message of the scheme's receiver before the first packet.
    request: Rider,
}

impl Receiving {
    /// Sets the scheme's receiver.
    pub(super) fn listen(&mut self, now: Time, half: Option<Box<dyn Receiver>>) {
        self.half = half;
        self.due = None;
        if let (Some(half), 0) = (&mut self.half, self.packets.packets) {
            self.request = half.request(now);
            self.due = (self.request != Rider::EMPTY).then_some(now);
        }
    }

    /// Processes a data packet of `bytes` bytes, with or without a stamp. A packet without a stamp counts as sent
    /// together with the stamped packet before it, in one batch.
    pub(super) fn on_data(&mut self, now: Time, bytes: Bytes, ecn: Ecn, stamp: Option<Stamp>) {
        self.packets.packets += 1;
        self.packets.bytes += bytes;
        self.newest = self.newest.max(now);
        let mut header = Rider::EMPTY;
        if let Some(stamp) = stamp {
            header = stamp.header;
            let number = self.extend(stamp.number);
            if self.stamped.is_none_or(|(newest, _)| number > newest) {
                self.stamped = Some((number, stamp.sent));
                self.unstamped = 0;
            }
            let delay = now.signed_nanos_since(stamp.sent);
            let least = self.least_delay_ns.map_or(delay, |least| least.min(delay));
            self.least_delay_ns = Some(least);
            self.queueing_delay = u64::try_from(delay.saturating_sub(least)).ok().map(Duration::from_nanos);
            self.hear(now, stamp.sent, number, bytes, ecn, header);
        } else if let Some((number, sent)) = self.stamped {
            self.unstamped += 1;
            self.hear(now, sent, number + self.unstamped, bytes, ecn, header);
        }
    }

    fn hear(&mut self, now: Time, sent: Time, number: u64, bytes: Bytes, ecn: Ecn, header: Rider) {
        let Some(half) = &mut self.half else { return };
        let mut arrival = Arrival::new(now, sent, number, bytes);
        (arrival.ecn, arrival.header, arrival.device) = (ecn, header.as_bytes(), self.device);
        half.on_packet(&arrival);
        let due = self.last.map_or(now, |last| now.max(last + MIN_INTERVAL));
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
    }

    /// Returns the full number for the lowest 32 bits in a stamp: the number closest to the newest.
    fn extend(&self, low: u32) -> u64 {
        let newest = self.stamped.map_or(0, |(number, _)| number);
        let ahead = low.wrapping_sub(newest as u32) as i32;
        newest.saturating_add_signed(i64::from(ahead))
    }

    /// Returns feedback if it is due at `now`.
    pub(super) fn poll_feedback(&mut self, now: Time) -> Option<Feedback> {
        if self.due? > now {
            return None;
        }
        self.due = None;
        let half = self.half.as_mut()?;
        let rider = match self.packets.packets {
            0 => std::mem::replace(&mut self.request, Rider::EMPTY),
            _ => half.feedback(now),
        };
        let window = half.window(now);
        self.last = Some(now);
        self.sequence += 1;
        let bytes = self.packets.bytes;
        Some(Feedback { sequence: self.sequence, received: self.newest, bytes, window, rider })
    }

    /// Runs the timers that are due, at the instant that [`Receiving::poll_timeout`] returned.
    pub(super) fn handle_timeout(&mut self, now: Time) {
        let Some(half) = &mut self.half else { return };
        let is_due = half.poll_timeout().is_some_and(|timer| timer <= now);
        if is_due && half.handle_timeout(now) && self.packets.packets > 0 {
            self.due = Some(now);
        }
    }

    /// Deadline at which to call [`Receiving::handle_timeout`] and [`Receiving::poll_feedback`].
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        let timer = self.half.as_ref().and_then(|half| half.poll_timeout());
        [self.due, timer].into_iter().flatten().min()
    }

    /// Processes the report of one subframe from the device's radio.
    pub(super) fn on_radio(&mut self, report: &RadioReport) {
        if let Some(half) = self.half.as_mut().filter(|half| half.sees().is_device()) {
            half.on_radio(report);
        }
    }

    /// Sets the device's figures about its flows.
    pub(super) fn on_device(&mut self, flows: &DeviceFlows) {
        self.device = *flows;
    }

    /// Received data packets.
    pub(super) fn packets(&self) -> Counted {
        self.packets
    }

    /// Queueing delay of the newest packet: its one-way delay minus the minimum.
    pub(super) fn queueing_delay(&self) -> Option<Duration> {
        self.queueing_delay
    }

    /// Adds the internal variables of the scheme's receiver.
    pub(super) fn inspect(&self, out: &mut Inspect) {
        if let Some(half) = &self.half {
            half.inspect(out);
        }
    }
}
