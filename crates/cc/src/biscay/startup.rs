//! Conditions that end STARTUP: the path is busy, or the cell grants more than the flow requests.
//!
//! ```text
//! rate sent   ▁▁████▁▁▁▁▁████████▁▁     slow start sends a window in half a round trip
//! delay       ▁▁▁▁▁▁▁▁▁▁▁▁▁▂▃▄▅▃▂▁▁     from half a window on, its bursts queue
//!                           ├────┤      busy: the delivery rate is the capacity of the path
//! ```
//!
//! Source: BISCAY §A.5.1 (`SlowStart`)
//!
//! Differs: the paper ends STARTUP with the first bandwidth, which only reflects what slow start requested. On a path
//! with a long round trip, the grants of a tenth of a second contain a whole burst, and exceed by far the data
//! delivered in a round trip.

use std::collections::VecDeque;
use std::time::Duration;

use airpace_core::{Bytes, Rate, Time};

use crate::controller::Ack;

/// Period of the modem's summary of grants. Sent, granted and delivered bytes are compared over this period.
///
/// Source: BISCAY §3.2.2
///
/// Chosen: whole milliseconds, the subframes of the modem's sum; a packet belongs to the millisecond in which it was
/// sent.
const SPAN: Duration = Duration::from_millis(100);

/// Minimum time for which the path must be busy.
///
/// Chosen: some HARQ round trips, so that a retransmitted block is no more than a tenth of the delivered data.
const BUSY: Duration = Duration::from_millis(60);

/// Minimum ratio of granted to sent rate, over the same time, that shows that the flow's requests do not limit the
/// grants.
///
/// Chosen: up to half of a grant may be padding, but a grant is never twice the request.
const OFFER: f64 = 2.0;

/// Observes slow start, to detect when the path is busy or the cell grants more than the flow requests.
#[derive(Clone, Debug, Default)]
pub struct StartWatch {
    /// Packets sent in the last [`SPAN`].
    sent: VecDeque<(Time, Bytes)>,
    sent_bytes: Bytes,
    /// Maximum number of bytes sent in any [`SPAN`].
    most_sent: Bytes,
    /// Start of the period in which every packet has met a queue, and the bytes delivered since then.
    busy: Option<(Time, Bytes)>,
    carried: Option<Rate>,
}

impl StartWatch {
    /// Records a sent packet.
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

    /// Processes one ACK. A packet with a round-trip time above `queue` has met a queue.
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

    /// The delivery rate while the path was busy; `None` if it has not been busy yet.
    pub fn carried(&self) -> Option<Rate> {
        self.carried
    }

    /// Whether the granted bandwidth exceeds the flow's maximum sending rate over any `SPAN` by the factor `OFFER`.
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
        // Packets for a tenth of a second, then none for two tenths, as slow start sends on a path with a long RTT.
        for at in (0..300).filter(|at| at % 300 < 100) {
            watch.on_sent(Time::from_millis(at), Bytes(1500));
        }
        assert!(!watch.is_offer(Rate::from_mbps(12.0)), "that is what was sent");
        assert!(!watch.is_offer(Rate::from_mbps(23.9)));
        assert!(watch.is_offer(Rate::from_mbps(24.1)), "more than twice as much was granted");
    }
}
