//! Measures the reordering of a path, and decides from it when a packet that was overtaken by later packets counts as
//! lost.
//!
//! ```text
//!  in order so far      lost: a packet three numbers higher was acknowledged, or 9/8 of the RTT have passed
//!  reordering was seen  lost: a later packet was acknowledged, and the RTT and a window have passed
//!                       window: a quarter of the least RTT, a quarter more after each round with a loss that was none
//! ```
//!
//! Each packet has its own number, so the acknowledgement of a packet that was declared lost proves that the loss was
//! spurious. This proof replaces TCP's DSACK.
//!
//! Source: RFC 8985 §6.2; RFC 9002 §6.1.1, §6.1.2 (which let implementations adapt both thresholds)

use std::time::Duration;

use crate::controller::Rtt;
use crate::endpoint::rtt::{GRANULARITY, RttEstimator};

/// Packet threshold while no reordering was observed: a packet counts as lost if a packet whose number is this much
/// higher was acknowledged.
///
/// Source: RFC 9002 §6.1.1 (`kPacketThreshold`)
const PACKET_THRESHOLD: u64 = 3;

/// Ratio of the minimum RTT to the step by which the reordering window grows.
///
/// Source: RFC 8985 §6.2 step 4
const STEPS_PER_RTT: u32 = 4;

/// Number of recoveries without a spurious loss after which the window returns to its initial length.
///
/// Source: RFC 8985 §6.2 step 4 (`RACK.reo_wnd_persist`)
const PERSISTENT_RECOVERIES: u32 = 16;

/// The observed reordering of a path.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reordering {
    /// Whether a packet ever arrived behind a later one.
    is_seen: bool,
    /// Length of the reordering window, in steps beyond the first step.
    more_steps: u32,
    /// Number of recoveries until the reordering window returns to its initial length.
    recoveries_left: u32,
    /// The reordering window may grow again when a packet of at least this number is acknowledged.
    round_end: u64,
    /// The current recovery ends when a packet of at least this number is acknowledged; `None` outside recovery.
    recovery_end: Option<u64>,
}

/// Conditions under which packets count as lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Packet threshold: a packet counts as lost if a packet whose number is this much higher was acknowledged.
    pub packets: u64,
    /// Time threshold: a packet counts as lost if this time has passed since its departure, and a later packet was
    /// acknowledged.
    pub delay: Duration,
}

impl Reordering {
    /// Processes an ACK of new packets. `is_overtaken`: one of these packets is older than the newest packet
    /// acknowledged before. `is_spurious`: one of these packets had been declared lost. `largest`: number of the newest
    /// packet that was acknowledged.
    pub fn on_ack(&mut self, is_overtaken: bool, is_spurious: bool, largest: u64, next_number: u64) {
        if let Some(end) = self.recovery_end
            && largest >= end
        {
            self.recovery_end = None;
            self.recoveries_left = self.recoveries_left.saturating_sub(1);
            if self.recoveries_left == 0 {
                self.more_steps = 0;
            }
        }
        self.is_seen |= is_overtaken;
        if is_overtaken && is_spurious && largest >= self.round_end {
            self.more_steps = self.more_steps.saturating_add(1);
            self.recoveries_left = PERSISTENT_RECOVERIES;
            self.round_end = next_number;
        }
    }

    /// Records that packets were declared lost.
    pub fn on_loss(&mut self, next_number: u64) {
        self.recovery_end.get_or_insert(next_number);
    }

    /// The current conditions under which packets count as lost.
    pub fn bounds(&self, rtt: &RttEstimator) -> Bounds {
        if !self.is_seen {
            return Bounds { packets: PACKET_THRESHOLD, delay: rtt.loss_delay() };
        }
        let Rtt { latest, smoothed, min, .. } = rtt.get();
        let window = (min / STEPS_PER_RTT).saturating_mul(1 + self.more_steps).min(smoothed);
        let delay = latest.unwrap_or(smoothed) + window;
        Bounds { packets: u64::MAX, delay: delay.max(GRANULARITY) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rtt(millis: u64) -> RttEstimator {
        let mut rtt = RttEstimator::default();
        rtt.update(Duration::from_millis(millis), Duration::ZERO);
        rtt
    }

    fn delay_ms(path: &Reordering) -> u128 {
        path.bounds(&rtt(80)).delay.as_millis()
    }

    #[test]
    fn three_packets_in_order_and_a_quarter_of_the_rtt_once_one_was_overtaken() {
        let mut path = Reordering::default();
        path.on_ack(false, true, 10, 20);
        assert_eq!(path.bounds(&rtt(80)), Bounds { packets: 3, delay: Duration::from_millis(90) });
        path.on_ack(true, false, 11, 20);
        assert_eq!(path.bounds(&rtt(80)), Bounds { packets: u64::MAX, delay: Duration::from_millis(100) });
    }

    #[test]
    fn the_window_grows_once_a_round_up_to_the_smoothed_rtt() {
        let mut path = Reordering::default();
        path.on_ack(true, true, 10, 20);
        path.on_ack(true, true, 11, 21);
        assert_eq!(delay_ms(&path), 80 + 40, "once in a round");
        path.on_ack(true, true, 20, 30);
        assert_eq!(delay_ms(&path), 80 + 60);
        (3..20).for_each(|round| path.on_ack(true, true, round * 10, round * 10 + 10));
        assert_eq!(delay_ms(&path), 80 + 80, "never more than the smoothed RTT");
    }

    #[test]
    fn sixteen_recoveries_from_real_losses_make_it_short_again() {
        let mut path = Reordering::default();
        path.on_ack(true, true, 10, 20);
        for recovery in 1..=16 {
            assert_eq!(delay_ms(&path), 80 + 40, "recovery {recovery}");
            path.on_loss(recovery * 100);
            path.on_loss(recovery * 100 + 50);
            path.on_ack(false, false, recovery * 100, recovery * 100 + 60);
        }
        assert_eq!(delay_ms(&path), 80 + 20);
    }
}
