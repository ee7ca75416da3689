//! The base station's estimate of a device's buffer: the last buffer status report minus the grants since then.

use std::collections::VecDeque;
use std::time::Duration;

use airpace_core::Time;

/// The base station's estimate of one device's buffer.
#[derive(Clone, Debug, Default)]
pub(super) struct Knowledge {
    /// Number of bytes in the device's buffer that were not granted yet.
    waiting: u64,
    /// Whether a scheduling request is pending.
    is_asked: bool,
    /// Scheduling requests that were not processed yet, as (time of the request, time from which the base station
    /// knows it).
    requests: VecDeque<(Time, Time)>,
    /// Recent grants for new data, as (start of the data's slot, bytes). The next buffer status report may not take these
    /// grants into account.
    granted: VecDeque<(Time, u64)>,
    /// Time of the last report's first transmission.
    reported_in: Option<Time>,
}

impl Knowledge {
    /// Number of bytes of data that the base station would grant. After a scheduling request without a report, the base
    /// station grants `at_request` bytes.
    pub(super) fn wanted(&self, at_request: u32) -> u64 {
        if self.is_asked { self.waiting.max(at_request.into()) } else { self.waiting }
    }

    /// Records a grant for `bytes` of data in the slot that starts at `data_in`.
    pub(super) fn grant(&mut self, data_in: Time, bytes: u64) {
        self.is_asked = false;
        self.waiting = self.waiting.saturating_sub(bytes);
        self.granted.push_back((data_in, bytes));
        while self.granted.front().is_some_and(|&(old, _)| old + HISTORY < data_in) {
            self.granted.pop_front();
        }
    }

    /// Processes a report that was first sent in the slot that starts at `sent_in`: `bytes` remained in the buffer
    /// after that slot. This number does not yet take grants for later slots into account. A report that HARQ delayed
    /// until after a later report is ignored.
    pub(super) fn report(&mut self, sent_in: Time, bytes: u64) {
        if self.reported_in.is_some_and(|latest| latest > sent_in) {
            return;
        }
        self.reported_in = Some(sent_in);
        while self.granted.front().is_some_and(|&(data_in, _)| data_in <= sent_in) {
            self.granted.pop_front();
        }
        self.waiting = bytes.saturating_sub(self.granted.iter().map(|(_, bytes)| bytes).sum());
    }

    /// Processes a block of the slot that starts at `data_in` and that contained no report and therefore no padding. If no further grant
    /// is in flight, the device may have more data. But the device may not request a grant until retxBSR-Timer expires,
    /// because it already had data. Therefore the base station gives one more grant, as after a request.
    ///
    /// Chosen: TS 36.321 §5.4.5 leaves this to the scheduler. Without the extra grant, phones with short queues stall for
    /// a third of a second.
    pub(super) fn full_block(&mut self, data_in: Time) {
        self.is_asked |= self.waiting == 0 && self.granted.iter().all(|&(later, _)| later <= data_in);
    }

    /// Records a scheduling request sent at `now`, which the base station knows from `known_from` on.
    pub(super) fn request(&mut self, now: Time, known_from: Time) {
        self.requests.push_back((now, known_from));
    }

    /// Processes the scheduling requests that the base station knows at `now`. A request counts unless a grant that
    /// answers it is already in flight.
    pub(super) fn hear(&mut self, now: Time) {
        while let Some(&(sent_in, known_from)) = self.requests.front()
            && known_from <= now
        {
            self.requests.pop_front();
            self.is_asked |= self.granted.iter().all(|&(data_in, _)| data_in <= sent_in);
        }
    }

    /// Discards the estimate (handover).
    pub(super) fn reset(&mut self) {
        *self = Knowledge::default();
    }
}

/// Time for which grants are stored. No report can be delayed for longer.
const HISTORY: Duration = Duration::from_millis(240);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    #[test]
    fn a_report_counts_what_was_not_granted_for_later() {
        let mut knowledge = Knowledge::default();
        knowledge.report(at(10), 5000);
        knowledge.grant(at(18), 2000);
        knowledge.grant(at(19), 2000);
        assert_eq!(knowledge.wanted(100), 1000);
        knowledge.report(at(18), 9000);
        assert_eq!(knowledge.wanted(100), 7000, "of 9000 bytes left in 18, 2000 go in 19");
    }

    #[test]
    fn a_full_block_is_followed_by_one_more_grant_unless_one_is_under_way() {
        let mut knowledge = Knowledge::default();
        knowledge.report(at(10), 3000);
        knowledge.grant(at(18), 1500);
        knowledge.grant(at(19), 1500);
        knowledge.full_block(at(18));
        assert_eq!(knowledge.wanted(100), 0, "the block of subframe 19 may bring the rest and a report");
        knowledge.full_block(at(19));
        assert_eq!(knowledge.wanted(100), 100, "it was full as well");
        knowledge.report(at(19), 0);
        knowledge.grant(at(27), 100);
        assert_eq!(knowledge.wanted(100), 0, "one grant is enough");
    }

    #[test]
    fn a_request_is_answered_once_four_subframes_later() {
        let mut knowledge = Knowledge::default();
        let wanted: Vec<u64> = (0..12)
            .map(|now| {
                if now % 5 == 0 {
                    knowledge.request(at(now), at(now + 4));
                }
                knowledge.hear(at(now));
                let wanted = knowledge.wanted(100);
                if wanted > 0 {
                    knowledge.grant(at(now + 4), wanted);
                }
                wanted
            })
            .collect();
        assert_eq!(
            wanted,
            [0, 0, 0, 0, 100, 0, 0, 0, 0, 0, 0, 0],
            "the data of subframe 8 answers the request of subframe 5"
        );
    }
}
