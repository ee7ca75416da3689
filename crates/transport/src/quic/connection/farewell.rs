//! The last words of a connection, told again: the datagram that says that it is over may be lost, and a peer that only
//! listens sends nothing that noq would answer.
//!
//! Source: RFC 9000 §10.2.1 (the final packet may be sent again as it is)

use std::time::Duration;

use airpace_cc::controller::Rtt;
use airpace_core::Time;

use crate::endpoint::Outbound;

/// How often it is told again.
///
/// Chosen: noq forgets the connection after three probe timeouts.
const AGAIN: u32 = 2;

/// The least pause, and the one where no round-trip time is known.
///
/// Source: RFC 9002 §6.1.2 (kGranularity), §6.2.2 (kInitialRtt)
const PAUSES: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(333)];

/// What says that a connection is over.
#[derive(Debug)]
pub(super) struct Farewell {
    bytes: Vec<u8>,
    outbound: Outbound,
    pause: Duration,
    next: Time,
    left: u32,
}

impl Farewell {
    /// It has just left.
    pub(super) fn new(now: Time, bytes: &[u8], outbound: Outbound, rtt: Option<Rtt>) -> Farewell {
        let probe = |rtt: Rtt| (rtt.smoothed + rtt.variation * 4).max(PAUSES[0]);
        let pause = rtt.map_or(PAUSES[1], probe);
        Farewell { bytes: bytes.to_vec(), outbound, pause, next: now + pause, left: AGAIN }
    }

    /// When it is told again; `None` if it has been told often enough.
    pub(super) fn next(&self) -> Option<Time> {
        (self.left > 0).then_some(self.next)
    }

    /// Appends it to `out` if it is due.
    pub(super) fn poll(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Outbound> {
        self.next().filter(|next| *next <= now)?;
        self.left -= 1;
        self.next = now + self.pause;
        out.extend_from_slice(&self.bytes);
        Some(self.outbound)
    }
}
