//! Distinguishes losses by buffer overflow from random losses.
//!
//! A radio link or the Internet can lose packets independently of the queue. If a sender mistakes such a loss for an
//! overflow, it assumes that the buffer is as short as the present queue. It then aims at a delay that is lower than
//! the jitter, and its rate falls with each round. An overflow is therefore defined as a loss rate above the random
//! loss rate, with a queueing delay that exceeds jitter and is near the maximum since the queue was last empty.
//!
//! The random loss rate is measured while no buffer can be full. While the queue may be a full buffer, only losses up
//! to the random loss rate are included in the mean. Otherwise, consecutive overflows would become the mean, and a flow
//! next to a rival in a short buffer would take the whole link.
//!
//! Differs: MORC §3.1 pL counts all losses equally.

use super::target::MIN_FULL_MS;
use crate::pcc::interval::Report;

/// Minimum number of lost packets in an interval that counts as a buffer overflow.
///
/// Chosen: one or two lost packets may be random losses in any interval.
pub const OVERFLOW_PACKETS: u64 = 3;

/// Minimum excess of the loss rate of a buffer overflow over [`OF_MEAN`] times the mean loss rate.
///
/// Chosen: four times the paper's greatest random loss of 0.5 %.
const OVERFLOW_LOSS: f64 = 0.02;

/// Maximum loss rate that [`Losses::sent_per_arrived`] compensates.
///
/// Chosen: a little more than a tenth, the loss rate at which the paper's utility is zero.
const MAX_MADE_UP: f64 = 0.11;

/// Multiple of the mean loss rate up to which a loss is random.
///
/// Chosen: the mean of sixteen intervals sometimes has an error of a quarter.
const OF_MEAN: f64 = 1.5;

/// Square of the minimum number of standard deviations by which the loss of an overflow exceeds the random loss.
///
/// Chosen: two standard deviations. On a link that loses a tenth of the packets, an interval with fifty packets loses
/// five packets with a standard deviation of two. Without this bound, one interval in twenty of such a link counted as
/// an overflow. The effect of an overflow lasts for ten seconds or more.
const DEVIATIONS_SQUARED: f64 = 4.0;

/// Number of intervals over which the random loss rate is averaged.
///
/// Chosen: sixteen intervals, less than a second, distinguish a lossy link from an overflow. Each of the first sixteen
/// intervals has the same weight, so that an estimate of the link's loss rate exists from the first interval on.
const MEAN_OF: u32 = 16;

/// Minimum queueing delay of a buffer overflow (ns).
///
/// Chosen: the minimum target in a short buffer. A queue with a lower delay cannot be distinguished from jitter.
const MIN_QUEUE_NS: f64 = MIN_FULL_MS * 1e6;

/// The random loss rate of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Losses {
    /// Mean share of packets lost at random.
    mean: f64,
    /// Number of intervals up to now, at most [`MEAN_OF`].
    intervals: u32,
}

impl Losses {
    /// Processes the report of an interval in which packets arrived. Returns whether a buffer overflowed in the
    /// interval. `queue_ms`: the mean queueing delay. `is_near_crest`: whether this delay is near the maximum since the
    /// queue was last empty.
    pub fn learn(&mut self, report: &Report, queue_ms: f64, is_near_crest: bool) -> bool {
        let sent = report.packets as f64;
        let bound = OVERFLOW_LOSS + OF_MEAN * self.mean;
        let beyond = report.lost as f64 - sent * bound;
        let is_no_chance = report.loss > bound && beyond * beyond > DEVIATIONS_SQUARED * sent * self.mean;
        // The delay is rounded to whole nanoseconds. Otherwise, rounding errors of doubles could exclude a value that
        // equals the bound.
        let is_queue = (queue_ms * 1e6).round() >= MIN_QUEUE_NS;
        let may_be_full = is_queue && is_near_crest;
        let is_first = self.intervals == 0;
        if is_first || !may_be_full || report.loss <= bound {
            self.intervals = (self.intervals + 1).min(MEAN_OF);
            self.mean += (report.loss - self.mean) / f64::from(self.intervals);
        }
        !is_first && report.lost >= OVERFLOW_PACKETS && is_no_chance && may_be_full
    }

    /// Ratio of sent bytes to arriving bytes at the random loss rate.
    ///
    /// A path that loses a tenth of the packets delivers less than its capacity unless the sender sends more than the
    /// capacity. Without this compensation, the rate would fall with each sample whose queue is below the target by
    /// less than the loss rate times H.
    pub fn sent_per_arrived(&self) -> f64 {
        1.0 / (1.0 - self.mean.min(MAX_MADE_UP))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::pcc::trend::Trend;
    use crate::pcc::{Role, Tag, Trial};

    fn report(packets: u64, lost: u64) -> Report {
        let tag = Tag { decision: 0, role: Role::Step };
        Report {
            trial: Trial { rate_mbps: 6.0, span: Duration::from_millis(100), tag },
            sent_mbps: 6.0,
            acked_mbps: 6.0,
            received_mbps: None,
            packets,
            lost,
            loss: lost as f64 / packets as f64,
            rtt_s: 0.1,
            previous_rtt_s: 0.1,
            trend: Trend::default(),
        }
    }

    /// The state after thirty intervals of fifty packets, of which `lost` were lost in each interval.
    fn after(lost: u64) -> Losses {
        let mut losses = Losses::default();
        for _ in 0..30 {
            assert!(
                !losses.learn(&report(50, lost), 40.0, true),
                "the same loss in each interval is the link's"
            );
        }
        losses
    }

    #[test]
    fn a_burst_of_losses_at_a_full_queue_is_an_overflow() {
        assert!(after(0).learn(&report(50, 3), 40.0, true));
        assert!(after(5).learn(&report(50, 20), 40.0, true));
    }

    #[test]
    fn a_loss_that_chance_explains_is_none() {
        assert!(!after(0).learn(&report(50, 2), 40.0, true), "two packets");
        assert!(!after(0).learn(&report(500, 10), 40.0, true), "2 %");
        assert!(!after(5).learn(&report(50, 12), 40.0, true), "less than two deviations");
        assert!(!Losses::default().learn(&report(50, 20), 40.0, true), "nothing is known of the link yet");
    }

    #[test]
    fn overflows_in_a_row_do_not_become_chance() {
        let mut losses = after(0);
        for _ in 0..30 {
            assert!(losses.learn(&report(50, 15), 40.0, true));
        }
        assert_eq!(losses.sent_per_arrived(), 1.0);
        for _ in 0..30 {
            losses.learn(&report(50, 15), 3.0, true);
        }
        assert!(!losses.learn(&report(50, 15), 40.0, true), "the link loses that at an empty queue too");
    }

    #[test]
    fn what_is_lost_by_chance_is_made_up_for_within_a_bound() {
        assert!((after(5).sent_per_arrived() - 1.0 / 0.9).abs() < 1e-9, "a tenth");
        assert!((after(20).sent_per_arrived() - 1.0 / 0.89).abs() < 1e-9, "eleven in a hundred at most");
    }

    #[test]
    fn nor_is_a_loss_at_a_queue_that_is_jitter_or_below_the_crest() {
        assert!(!after(0).learn(&report(50, 20), 4.9, true));
        assert!(after(0).learn(&report(50, 20), 5.0, true));
        assert!(!after(0).learn(&report(50, 20), 40.0, false));
    }
}
