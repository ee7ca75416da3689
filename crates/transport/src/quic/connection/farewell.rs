//! Repetition of a connection's final datagram. The datagram with the close may be lost, and a peer that only
//! receives sends no packet that would make noq repeat it.
//!
//! Source: RFC 9000 §10.2.1 (the final packet may be sent again as it is)

use std::time::Duration;

use airpace_cc::controller::Rtt;
use airpace_core::Time;

use crate::endpoint::Outbound;

/// Number of repetitions of the final datagram.
///
/// Chosen: noq removes the connection after three probe timeouts.
const AGAIN: u32 = 2;

/// Interval between repetitions: minimum, and value if the round-trip time is unknown.
///
/// Source: RFC 9002 §6.1.2 (kGranularity), §6.2.2 (kInitialRtt)
const PAUSES: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(333)];

/// The final datagram of a connection, with the state of its repetition.
#[derive(Debug)]
pub(super) struct Farewell {
    bytes: Vec<u8>,
    outbound: Outbound,
    pause: Duration,
    next: Time,
    left: u32,
}

impl Farewell {
    /// Stores the datagram, which was just sent.
    pub(super) fn new(now: Time, bytes: &[u8], outbound: Outbound, rtt: Option<Rtt>) -> Farewell {
        let probe = |rtt: Rtt| (rtt.smoothed + rtt.variation * 4).max(PAUSES[0]);
        let pause = rtt.map_or(PAUSES[1], probe);
        Farewell { bytes: bytes.to_vec(), outbound, pause, next: now + pause, left: AGAIN }
    }

    /// Deadline of the next repetition; `None` after the last one.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        (self.left > 0).then_some(self.next)
    }

    /// Appends the datagram to `out` if a repetition is due.
    pub(super) fn poll(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Outbound> {
        self.poll_timeout().filter(|next| *next <= now)?;
        self.left -= 1;
        self.next = now + self.pause;
        out.extend_from_slice(&self.bytes);
        Some(self.outbound)
    }
}
