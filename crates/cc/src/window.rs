//! Common parts of all window-based schemes: the initial window, one reduction per episode of loss or marks, idle
//! times.

mod holes;
mod recovery;

use std::time::Duration;

use airpace_core::{Bytes, Time};

use crate::controller::{Ack, Sent};

pub use holes::Holes;
pub use recovery::{Kind, Recovery};

/// The window at the start of a flow: ten packets.
///
/// Source: RFC 6928 §2
///
/// Differs: the RFC's bound of 14,600 bytes counts segments of 1,460 bytes; the bound here counts whole packets of
/// 1,500 bytes.
pub fn initial_window(mss: Bytes) -> Bytes {
    Bytes((10 * mss.0).min((2 * mss.0).max(15_000)))
}

/// Detects that a sender resumes after a pause that was so long that the window is no longer valid for the path.
///
/// Source: RFC 5681 §4.1
#[derive(Clone, Copy, Debug)]
pub struct Idle {
    last_sent: Time,
    timeout: Duration,
}

/// State before the first packet and RTT sample.
impl Default for Idle {
    fn default() -> Idle {
        Idle { last_sent: Time::NEVER, timeout: Duration::MAX }
    }
}

impl Idle {
    /// Updates the retransmission timeout.
    ///
    /// Source: RFC 6298 §2.3, §2.4
    pub fn on_ack(&mut self, ack: &Ack<'_>) {
        self.timeout = Duration::from_secs(1).max(ack.rtt.smoothed + ack.rtt.variation * 4);
    }

    /// The time for which the sender was idle with nothing in flight; `None` if this time is not longer than the
    /// retransmission timeout.
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
