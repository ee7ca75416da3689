//! State kept between packets: PDUs that were already transmitted, and bytes in a queue.

use std::collections::VecDeque;

use crate::stamp::Stamp;

/// A PDU of a bearer, with the bearer's state in its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    /// The bearer.
    pub bearer: u8,
    /// Sequence number.
    pub sn: u16,
    /// Sequence number of the next new PDU after the packet.
    pub next: u16,
    /// Number of different sequence numbers; after the last number, they wrap to 0.
    pub numbers: u32,
    /// Whether this is a segment of a PDU. Only retransmissions are segmented.
    pub is_segment: bool,
}

/// For each bearer, the sequence number of its next new PDU.
#[derive(Clone, Debug)]
pub(super) struct Bearers(Box<[Option<u16>; 256]>);

impl Default for Bearers {
    fn default() -> Bearers {
        Bearers(Box::new([None; 256]))
    }
}

impl Bearers {
    /// Whether the PDU was transmitted before.
    ///
    /// A bearer that was re-established counts from 0 again. Then the packet's next sequence number is lower than
    /// expected, and the earlier state is discarded.
    ///
    /// Source: TS 36.322 §7.2 (half of the numbers are in use at a time)
    pub fn is_again(&mut self, sent: Sent) -> bool {
        let known = &mut self.0[usize::from(sent.bearer)];
        let ahead = |number: u16, expected: u16| {
            (u32::from(number) + sent.numbers - u32::from(expected) % sent.numbers) % sent.numbers
        };
        let half = sent.numbers / 2;
        if known.is_some_and(|expected| ahead(sent.next, expected) >= half) {
            *known = None;
        }
        let is_new = !sent.is_segment && known.is_none_or(|expected| ahead(sent.sn, expected) < half);
        if is_new {
            *known = Some(((u32::from(sent.sn) + 1) % sent.numbers) as u16);
        }
        !is_new
    }
}

/// Maximum number of batches of bytes in a queue; further bytes are added to the last batch.
///
/// Chosen: more than a modem reports within the longest queueing delay.
const BATCHES: usize = 64;

/// Threshold for a gap before a packet, beyond the time that the previous reports cover: a larger gap means that
/// packets are missing in between (ms).
///
/// Chosen: half of the time between two packets.
const LATE_MS: f64 = 20.0;

/// Bytes in a FIFO queue, with their arrival times.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// Number of bytes and arrival time in milliseconds; `None` for bytes that were already in the queue at the first
    /// report.
    batches: VecDeque<(f64, Option<f64>)>,
    /// The last report: stamp of its packet, and number of bytes in the queue.
    last: Option<(Stamp, f64)>,
    /// Number of reports of the last packet so far.
    reports: u32,
    now_ms: f64,
}

impl Default for Queue {
    fn default() -> Queue {
        // All memory is allocated at the start.
        Queue { batches: VecDeque::with_capacity(BATCHES), last: None, reports: 0, now_ms: 0.0 }
    }
}

impl Queue {
    /// Reports that the queue contains `bytes` bytes in the next millisecond. Returns the queueing delay in milliseconds
    /// of the longest-waiting bytes that have left, if all bytes that arrived with them have left.
    ///
    /// In real logs, a packet contains forty reports, and the modem sends a packet every forty milliseconds. Only
    /// reports of subframes in which the phone transmitted contain their frame number.
    ///
    /// Chosen: bytes that arrive and leave between two reports are not visible, so that the result is a lower estimate.
    pub fn report(&mut self, bytes: f64, stamp: Stamp) -> Option<f64> {
        let follows = |(last, _): &(Stamp, f64)| {
            *last == stamp
                || stamp
                    .since(*last)
                    .is_some_and(|gap_s| (0.0..f64::from(self.reports) + LATE_MS).contains(&(1e3 * gap_s)))
        };
        let before = self.last.filter(follows);
        self.reports = if before.is_some_and(|(last, _)| last == stamp) { self.reports + 1 } else { 1 };
        self.last = Some((stamp, bytes));
        self.now_ms += 1.0;
        let Some((_, before)) = before else {
            self.batches.clear();
            self.batches.push_back((bytes, None));
            return None;
        };
        let mut left = before - bytes;
        if left < 0.0 {
            let is_full = self.batches.len() == BATCHES;
            match self.batches.back_mut() {
                Some(last) if is_full => last.0 -= left,
                _ => self.batches.push_back((-left, Some(self.now_ms))),
            }
            return None;
        }
        let mut waited: Option<f64> = None;
        while left > 0.0 {
            let (batch, came) = self.batches.front_mut()?;
            if *batch > left {
                *batch -= left;
                break;
            }
            left -= *batch;
            if let Some(came) = *came {
                waited = Some(waited.unwrap_or(0.0).max(self.now_ms - came));
            }
            self.batches.pop_front();
        }
        waited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(sn: u16, next: u16) -> Sent {
        Sent { bearer: 3, sn, next, numbers: 1_024, is_segment: false }
    }

    #[test]
    fn a_pdu_behind_the_newest_was_sent_before() {
        let mut bearers = Bearers::default();
        let mut again = |sent| bearers.is_again(sent);
        assert!(!again(sent(1_022, 0)) && !again(sent(1_023, 0)));
        assert!(!again(sent(0, 2)) && !again(sent(1, 2)), "numbers begin anew");
        assert!(again(sent(1, 2)), "the newest itself");
        assert!(again(sent(1_023, 3)) && !again(sent(2, 3)));
        assert!(again(Sent { is_segment: true, ..sent(3, 4) }));
        assert!(!again(Sent { bearer: 4, ..sent(1, 2) }), "another bearer");
        assert!(!again(sent(200, 201)), "packets were lost");
        assert!(!again(sent(0, 1)) && again(sent(0, 1)), "the bearer was established anew");
    }

    #[test]
    fn long_numbers_have_their_own_round() {
        let mut bearers = Bearers::default();
        let sent = |sn, next| Sent { numbers: 65_536, ..sent(sn, next) };
        assert!(!bearers.is_again(sent(65_535, 0)) && !bearers.is_again(sent(0, 1)));
        assert!(bearers.is_again(sent(65_535, 1)));
    }

    fn at(millis: u64) -> Stamp {
        Stamp::from_nanos(1_300_000_000_000_000_000 + millis * 1_000_000)
    }

    #[test]
    fn bytes_wait_from_the_report_that_first_had_them() {
        let mut queue = Queue::default();
        // Each packet contains four reports; packets are four milliseconds apart.
        let packets = [[100.0, 300.0, 300.0, 250.0], [350.0, 350.0, 150.0, 150.0], [80.0, 0.0, 0.0, 0.0]];
        let waits: Vec<Vec<Option<f64>>> = (0..)
            .zip(packets)
            .map(|(packet, reports)| {
                reports.iter().map(|bytes| queue.report(*bytes, at(4 * packet))).collect()
            })
            .collect();
        // The delay of the first 100 bytes is unknown. 200 bytes arrived with the second report, and 100 bytes with the
        // fifth.
        assert_eq!(waits[..2], [[None; 4], [None; 4]].map(|packet| packet.to_vec())[..]);
        assert_eq!(waits[2], [Some(7.0), Some(5.0), None, None]);
    }

    #[test]
    fn a_pause_begins_a_new_queue() {
        let mut queue = Queue::default();
        assert_eq!(queue.report(10.0, at(0)), None);
        assert_eq!(queue.report(20.0, at(0)), None);
        assert_eq!(queue.report(0.0, at(60)), None, "reports were lost");
        for round in 0..10_000_u64 {
            assert_eq!(queue.report(round as f64, at(60 + round)), None);
        }
        assert!(queue.batches.len() <= BATCHES, "the memory is bounded");
    }
}
