//! What all window-based schemes share: where the window begins, and one reduction per episode of loss or marks.

use std::time::Duration;

use airpace_core::{Bytes, Time};

use crate::controller::{Ack, Loss, Sent, SentPacket};

/// The window that a flow begins with: ten packets.
///
/// Source: RFC 6928 §2
///
/// Differs: the bound of 14,600 bytes counts segments of 1,460; ours counts whole packets of 1,500.
pub fn initial_window(mss: Bytes) -> Bytes {
    Bytes((10 * mss.0).min((2 * mss.0).max(15_000)))
}

/// Episodes of loss or marks: all of one window of data count as one.
///
/// Source: RFC 6582 §3.2
#[derive(Clone, Copy, Debug, Default)]
pub struct Recovery {
    /// Packets below this number were sent before the present or last episode was noticed.
    until: u64,
    active: bool,
}

impl Recovery {
    /// Whether the losses begin an episode; it lasts until a packet sent from now on is acknowledged.
    pub fn begins(&mut self, loss: &Loss<'_>) -> bool {
        self.begins_at(loss.packets, loss.next_number)
    }

    /// Whether the marks that this ACK reports, if any, begin an episode.
    ///
    /// Source: RFC 3168 §6.1.2
    pub fn begins_by_mark(&mut self, ack: &Ack<'_>) -> bool {
        ack.ce > 0 && self.begins_at(ack.packets, ack.next_number)
    }

    fn begins_at(&mut self, packets: &[SentPacket], next_number: u64) -> bool {
        let newest = packets.last().map_or(0, |packet| packet.number);
        if newest < self.until {
            return false;
        }
        self.until = next_number;
        self.active = true;
        true
    }

    /// Whether the window must still rest after this ACK.
    pub fn rests(&mut self, ack: &Ack<'_>) -> bool {
        if ack.packets.last().is_some_and(|packet| packet.number >= self.until) {
            self.active = false;
        }
        self.active
    }

    /// All that was in flight is gone: nothing is left to recover.
    pub fn collapse(&mut self, loss: &Loss<'_>) {
        self.until = loss.next_number;
        self.active = false;
    }

    /// Whether an episode is going on.
    pub fn is_active(&self) -> bool {
        self.active
    }
}

/// Notices that a sender begins again after a pause so long that its window says nothing about the path any more.
///
/// Source: RFC 5681 §4.1
#[derive(Clone, Copy, Debug)]
pub struct Idle {
    last_sent: Time,
    timeout: Duration,
}

/// Nothing was sent and no RTT is known yet.
impl Default for Idle {
    fn default() -> Idle {
        Idle { last_sent: Time::NEVER, timeout: Duration::MAX }
    }
}

impl Idle {
    /// Keeps the retransmission timeout.
    ///
    /// Source: RFC 6298 §2.3, §2.4
    pub fn on_ack(&mut self, ack: &Ack<'_>) {
        self.timeout = Duration::from_secs(1).max(ack.rtt.smoothed + ack.rtt.variation * 4);
    }

    /// How long the sender had been idle, if longer than the timeout, with nothing in flight.
    pub fn on_sent(&mut self, sent: &Sent) -> Option<Duration> {
        let pause = sent.now - self.last_sent;
        self.last_sent = sent.now;
        (sent.inflight == sent.bytes && pause > self.timeout).then_some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(now: Time, inflight: u64) -> Sent {
        Sent { now, number: 0, bytes: Bytes(1500), inflight: Bytes(inflight), app_limited: false }
    }

    #[test]
    fn ten_packets_or_two_large_ones() {
        assert_eq!(initial_window(Bytes(1500)), Bytes(15_000));
        assert_eq!(initial_window(Bytes(500)), Bytes(5_000));
        assert_eq!(initial_window(Bytes(9_000)), Bytes(18_000));
    }

    #[test]
    fn only_a_pause_with_nothing_in_flight_and_beyond_the_timeout_is_idle() {
        let mut idle = Idle { timeout: Duration::from_secs(1), ..Idle::default() };
        assert_eq!(idle.on_sent(&sent(Time::from_secs(5), 1500)), None, "the first packet ends no pause");
        assert_eq!(idle.on_sent(&sent(Time::from_secs(6), 1500)), None);
        assert_eq!(idle.on_sent(&sent(Time::from_secs(9), 3000)), None, "something was in flight");
        assert_eq!(idle.on_sent(&sent(Time::from_secs(12), 1500)), Some(Duration::from_secs(3)));
    }
}
