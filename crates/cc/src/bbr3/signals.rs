//! Congestion signals by rounds: the delivery of the last round, and whether it had losses or marks.

use airpace_core::{Bytes, Rate};

use super::sample::Sample;

/// Maximum acceptable ratio of lost data to data in flight.
///
/// Source: draft-ietf-ccwg-bbr-06 §2.8 (`BBR.LossThresh`)
pub const LOSS_THRESHOLD: f64 = 0.02;

/// Whether the loss shows that the flow had too much in flight.
///
/// Source: draft-ietf-ccwg-bbr-06 §5.5.10.2 (`IsInflightTooHigh`)
pub fn is_too_lossy(lost: Bytes, tx_in_flight: Bytes) -> bool {
    lost.0 as f64 > tx_in_flight.0 as f64 * LOSS_THRESHOLD
}

/// Amount in flight at which the losses crossed [`LOSS_THRESHOLD`]. They crossed it within a lost packet of `size`
/// bytes: up to and including that packet, `lost` of `tx_in_flight` bytes were lost.
///
/// Source: draft-ietf-ccwg-bbr-06 §5.5.10.2 (`InflightAtLoss`)
pub fn inflight_at_loss(tx_in_flight: Bytes, lost: Bytes, size: Bytes) -> Bytes {
    let before = tx_in_flight - size;
    let lost_before = (lost - size).0 as f64;
    let prefix = (LOSS_THRESHOLD * before.0 as f64 - lost_before) / (1.0 - LOSS_THRESHOLD);
    // Source: google/bbr v3
    // If the threshold was crossed before this packet, no part of this packet counts.
    before + Bytes(prefix.max(0.0) as u64)
}

/// The signals of the current round.
///
/// Source: draft-ietf-ccwg-bbr-06 §5.5.10.3
#[derive(Clone, Copy, Debug, Default)]
pub struct Signals {
    bw_latest: Rate,
    inflight_latest: Bytes,
    round_delivered: Bytes,
    round_ends: bool,
    loss_in_round: bool,
    marks_in_round: bool,
}

impl Signals {
    /// Processes one ACK, before the state machine uses the signals.
    pub fn on_ack(&mut self, sample: &Sample) {
        self.bw_latest = self.bw_latest.max(sample.rate);
        self.inflight_latest = self.inflight_latest.max(sample.delivered);
        self.round_ends = sample.prior_delivered >= self.round_delivered;
        if self.round_ends {
            self.round_delivered = sample.total;
        }
    }

    /// Processes a packet declared lost when `delivered` bytes had been delivered. Returns whether this is the first
    /// loss of the round; the round then starts with this loss.
    pub fn on_loss(&mut self, delivered: Bytes) -> bool {
        let first = !std::mem::replace(&mut self.loss_in_round, true);
        if first {
            self.round_delivered = delivered;
        }
        first
    }

    /// Records that packets were reported as marked.
    pub fn on_marks(&mut self) {
        self.marks_in_round = true;
    }

    /// Whether the current ACK ends a round. The losses and marks of that round are then still available.
    pub fn round_ends(&self) -> bool {
        self.round_ends
    }

    /// Whether a packet was lost in the round.
    pub fn loss_in_round(&self) -> bool {
        self.loss_in_round
    }

    /// Whether a packet was marked in the round.
    pub fn marks_in_round(&self) -> bool {
        self.marks_in_round
    }

    /// The maximum delivery rate of the round.
    pub fn bw_latest(&self) -> Rate {
        self.bw_latest
    }

    /// The maximum number of bytes delivered during one sample of the round.
    pub fn inflight_latest(&self) -> Bytes {
        self.inflight_latest
    }

    /// Deletes the losses and marks of the current round.
    pub fn forget_congestion(&mut self) {
        self.loss_in_round = false;
        self.marks_in_round = false;
    }

    /// Ends the processing of an ACK. If the ACK ended a round, the new round starts with the sample of this ACK.
    pub fn advance(&mut self, sample: &Sample) {
        if self.round_ends {
            self.bw_latest = sample.rate;
            self.inflight_latest = sample.delivered;
        }
    }

    /// Discards the signals that probing caused, before a phase that would slow down because of them.
    pub fn reset(&mut self) {
        self.forget_congestion();
        self.bw_latest = Rate::ZERO;
        self.inflight_latest = Bytes::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threshold_is_crossed_where_two_percent_are_lost() {
        // 100 packets were in flight, and the last three of them were lost: the third loss crosses 2 %.
        let at = inflight_at_loss(Bytes(150_000), Bytes(4_500), Bytes(1_500));
        assert_eq!(at, Bytes(148_500), "two lost packets of 99 are already over 2 %");
        // A burst of 100 lost packets follows 900 delivered packets. The losses reach 2 % of the data in flight within
        // the first fifth of the burst.
        let at = inflight_at_loss(Bytes(1_500_000), Bytes(150_000), Bytes(150_000));
        assert_eq!(at, Bytes(1_350_000 + 27_551), "the first fifth of the burst is below the threshold");
        assert!(!is_too_lossy(Bytes(3_000), Bytes(150_000)) && is_too_lossy(Bytes(3_001), Bytes(150_000)));
    }
}
