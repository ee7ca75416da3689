//! What ends STARTUP: the path is busy, or the cell grants more than the flow asks for.
//!
//! ```text
//! rate sent   ▁▁████▁▁▁▁▁████████▁▁     slow start sends a window in half a round trip
//! delay       ▁▁▁▁▁▁▁▁▁▁▁▁▁▂▃▄▅▃▂▁▁     and from half a window on, its bursts queue
//!                           ├────┤      busy: what is delivered meanwhile is what the path carries
//! ```
//!
//! Source: BISCAY §A.5.1 (`SlowStart`)
//!
//! Differs: the text ends STARTUP with the first bandwidth, which is what slow start asked for. On a path of a long
//! round trip, grants of a tenth of a second hold a whole burst, and are far more than a round trip delivers.

use std::collections::VecDeque;
use std::time::Duration;

use airpace_core::{Bytes, Rate, Time};

use crate::controller::Ack;

/// The time over which the modem sums up its grants: what was sent and delivered is compared over the same time.
///
/// Source: BISCAY §3.2.2
///
/// Chosen: whole milliseconds, the subframes of the modem's sum; a packet leaves with the millisecond in which it was sent.
const SPAN: Duration = Duration::from_millis(100);

/// For this long the path must be busy.
///
/// Chosen: some HARQ round trips, so that a block that is sent again is no more than a tenth of what is delivered.
const BUSY: Duration = Duration::from_millis(60);

/// If a cell grants this many times what the flow sends in the same time, its grants are not limited by what the flow
/// asks for.
///
/// Chosen: a grant may be half a subframe's padding, and never twice what was asked for.
const OFFER: f64 = 2.0;

/// Watches slow start.
#[derive(Clone, Debug, Default)]
pub struct StartWatch {
    /// Packets sent in the last [`SPAN`], and their bytes.
    sent: VecDeque<(Time, Bytes)>,
    sent_bytes: Bytes,
    /// The most bytes that were sent in any [`SPAN`].
    most_sent: Bytes,
    /// Since when every packet met a queue, and what was delivered since.
    busy: Option<(Time, Bytes)>,
    carried: Option<Rate>,
}

impl StartWatch {
    /// A packet leaves.
    pub fn on_sent(&mut self, now: Time, bytes: Bytes) {
        self.sent.push_back((now, bytes));
        self.sent_bytes += bytes;
        while let Some(&(at, bytes)) = self.sent.front()
            && at.as_millis() + SPAN.as_millis() as u64 <= now.as_millis()
        {
            self.sent.pop_front();
            self.sent_bytes -= bytes;
        }
        self.most_sent = self.most_sent.max(self.sent_bytes);
    }

    /// Takes in one ACK. A round-trip time above `queue` means that its packet met a queue.
    pub fn on_ack(&mut self, ack: &Ack<'_>, queue: Duration) {
        let Some(rtt) = ack.rtt.latest else { return };
        if rtt <= queue {
            self.busy = None;
            return;
        }
        match &mut self.busy {
            None => self.busy = Some((ack.now, Bytes::ZERO)),
            Some((since, delivered)) => {
                *delivered += ack.acked;
                let span = ack.now - *since;
                if span >= BUSY {
                    self.carried = Some(Rate::from_bytes_per(*delivered, span));
                }
            }
        }
    }

    /// What the path carried while it was busy; `None` as long as it was not.
    pub fn carried(&self) -> Option<Rate> {
        self.carried
    }

    /// Whether a bandwidth that the cell granted is clearly more than what the flow sent in any time as long.
    pub fn is_offer(&self, granted: Rate) -> bool {
        granted > Rate::from_bytes_per(self.most_sent, SPAN).scaled(OFFER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::{RateSample, Rtt, SentPacket};

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Feeds ACKs of 1500 bytes, one per millisecond, with these round-trip times in ms.
    fn watch(rtts_ms: &[u64]) -> StartWatch {
        let mut watch = StartWatch::default();
        for (at, &rtt_ms) in (0..).zip(rtts_ms) {
            let packets = [SentPacket { bytes: Bytes(1500), ..SentPacket::default() }];
            let rtt = Rtt { latest: Some(ms(rtt_ms)), smoothed: ms(50), variation: ms(1), min: ms(40) };
            let ack = Ack {
                now: Time::from_millis(at),
                packets: &packets,
                acked: Bytes(1500),
                prior_inflight: Bytes(3000),
                inflight: Bytes(1500),
                next_number: 9,
                rtt,
                rate: RateSample::default(),
                cwnd_limited: true,
                ce: 0,
                feedback: &[],
            };
            watch.on_ack(&ack, ms(45));
        }
        watch
    }

    #[test]
    fn a_path_that_was_busy_throughout_shows_what_it_carries() {
        let busy: Vec<u64> = (0..30).map(|_| 41).chain((0..80).map(|_| 60)).collect();
        assert_eq!(watch(&busy).carried(), Some(Rate::from_mbps(12.0)), "1500 bytes in each millisecond");
    }

    #[test]
    fn one_packet_without_a_queue_begins_the_time_anew() {
        let late: Vec<u64> = (0..150).map(|at| if at % 50 == 0 { 45 } else { 60 }).collect();
        assert_eq!(watch(&late).carried(), None);
    }

    #[test]
    fn a_burst_that_was_granted_as_it_was_sent_is_no_offer() {
        let mut watch = StartWatch::default();
        // A tenth of a second of packets, then silence for two tenths, as slow start sends on a long path.
        for at in (0..300).filter(|at| at % 300 < 100) {
            watch.on_sent(Time::from_millis(at), Bytes(1500));
        }
        assert!(!watch.is_offer(Rate::from_mbps(12.0)), "that is what was sent");
        assert!(!watch.is_offer(Rate::from_mbps(23.9)));
        assert!(watch.is_offer(Rate::from_mbps(24.1)), "more than twice as much was granted");
    }
}
