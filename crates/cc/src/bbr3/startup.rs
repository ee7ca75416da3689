//! Ends Startup if there are too many losses or marks before the delivery rate stops growing.

use super::sample::Sample;
use super::signals::is_too_lossy;

/// Minimum number of separate runs of lost packets in a round that is not explained by random loss.
///
/// Source: draft-ietf-ccwg-bbr-06 §5.3.1.3 (`BBRStartupFullLossCnt`)
const LOST_RANGES: u32 = 6;

/// Losses of Startup's current round.
#[derive(Clone, Copy, Debug, Default)]
pub struct StartupLoss {
    ranges: u32,
    /// The packet number that follows the last lost packet.
    next: u64,
}

impl StartupLoss {
    /// Records that packet `number` was declared lost.
    pub fn on_lost(&mut self, number: u64) {
        self.ranges += u32::from(number != self.next || self.ranges == 0);
        self.next = number + 1;
    }

    /// Processes the ACK that ends a round with losses. Returns whether Startup must end. `recovering`: whether the
    /// whole round was in recovery.
    ///
    /// Source: draft-ietf-ccwg-bbr-06 §5.3.1.3
    pub fn on_round(&mut self, sample: &Sample, recovering: bool) -> bool {
        let ranges = std::mem::take(&mut self.ranges);
        recovering && ranges >= LOST_RANGES && is_too_lossy(sample.lost, sample.tx_in_flight)
    }
}
