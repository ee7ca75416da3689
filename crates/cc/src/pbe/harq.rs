//! The delay that HARQ retransmissions add, per carrier. A retransmission of LTE follows after eight subframes. On NR,
//! the time depends on the numerology, the TDD pattern and the base station, so it is learned from the device's own
//! retransmissions.
//!
//! ```text
//! Dth = Dprop + 3·harq + 3 ms
//! ```
//!
//! Source: PBE-CC §4.2.2 (the form, with a retransmission after 8 ms); TS 38.213 §9.2.3 (the slot of the answer); TS 38.214
//! §5.3 (the device's processing time)

use std::collections::VecDeque;
use std::time::Duration;

use airpace_radio::Slot;

use crate::nr::TddPattern;

/// Time from a transmission of LTE to its retransmission.
///
/// Source: PBE-CC §4.2.2
const LTE_HARQ: Duration = Duration::from_millis(8);

/// Minimum of the first assumption on NR.
///
/// Chosen: the pattern DDDSU at 30 kHz has 2.5 to 4.5 ms.
const FIRST_NR_HARQ: Duration = Duration::from_millis(4);

/// Number of TDD periods of the first assumption on NR.
///
/// Chosen: in the worst case, answer and retransmission each wait for one period.
const FIRST_PERIODS: u32 = 2;

/// Maximum number of retransmissions before a packet is delivered.
///
/// Source: PBE-CC §4.2.2
const RETRANSMISSIONS: u32 = 3;

/// Jitter that the radio adds.
///
/// Source: PBE-CC §4.2.2 (at most 3 ms in 94.1 % of the time)
const JITTER: Duration = Duration::from_millis(3);

/// Minimum on NR of the delay that counts as a queue.
///
/// Chosen: retransmissions of 120 kHz follow after a millisecond, but the scheduler and the clocks of the devices have
/// the same jitter at every numerology.
const MIN_NR_DELAY: Duration = Duration::from_millis(12);

/// Number of stored times.
const GAPS: usize = 64;

/// Minimum number of retransmissions from which the time is learned.
///
/// Chosen: about a hundred blocks at the usual block error rate.
const MIN_GAPS: usize = 8;

/// Percentile of the times that is used.
const PERCENTILE: usize = 90;

/// Maximum time between a transmission and its retransmission. After a longer time, a new block with the same NDI is
/// more likely, with a grant in between that was not decoded.
///
/// Chosen: four TDD periods of the longest pattern.
const MAX_GAP: Duration = Duration::from_millis(40);

/// Maximum number of HARQ processes.
///
/// Source: TS 36.321 §5.3.2; TS 38.214 §5.1 (up to 32)
const PROCESSES: usize = 32;

/// Delays that the radio adds without a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Time from a transmission to its retransmission.
    pub harq: Duration,
    /// Maximum delay that the radio adds: Dth − Dprop.
    pub radio_delay: Duration,
}

impl Timing {
    /// The delays of LTE.
    pub const LTE: Timing =
        Timing { harq: LTE_HARQ, radio_delay: Duration::from_millis(3 * LTE_HARQ.as_millis() as u64 + 3) };

    /// The delays of NR, with retransmissions after `harq`.
    fn of_nr(harq: Duration) -> Timing {
        Timing { harq, radio_delay: (harq * RETRANSMISSIONS + JITTER).max(MIN_NR_DELAY) }
    }

    /// The larger of both delays.
    pub fn max(self, other: Timing) -> Timing {
        Timing { harq: self.harq.max(other.harq), radio_delay: self.radio_delay.max(other.radio_delay) }
    }

    /// Delay of one retransmission and the jitter.
    pub fn one_retransmission(&self) -> Duration {
        self.harq + JITTER
    }
}

impl Default for Timing {
    fn default() -> Timing {
        Timing::LTE
    }
}

/// Learns the time from a transmission to its retransmission on one carrier.
#[derive(Clone, Debug, Default)]
pub struct HarqTiming {
    /// The slot of the last transmission of each process.
    last: [Option<u64>; PROCESSES],
    /// The latest times, oldest first.
    gaps: VecDeque<Duration>,
    percentile: Option<Duration>,
}

impl HarqTiming {
    /// Processes a downlink grant of the device for HARQ process `process`. `is_again`: whether it is a retransmission.
    pub fn on_grant(&mut self, slot: Slot, process: u8, is_again: bool) {
        let before = self.last[usize::from(process) % PROCESSES].replace(slot.index);
        let Some(slots) = before.and_then(|before| slot.index.checked_sub(before)).filter(|_| is_again)
        else {
            return;
        };
        let slot_nanos = slot.numerology.slot_duration().as_nanos() as u64;
        let gap = Duration::from_nanos(slots.saturating_mul(slot_nanos));
        if gap.is_zero() || gap > MAX_GAP {
            return;
        }
        if self.gaps.len() == GAPS {
            self.gaps.pop_front();
        }
        self.gaps.push_back(gap);
        if self.gaps.len() >= MIN_GAPS {
            let mut sorted: Vec<_> = self.gaps.iter().copied().collect();
            sorted.sort_unstable();
            self.percentile = Some(sorted[(sorted.len() * PERCENTILE).div_ceil(100) - 1]);
        }
    }

    /// The delays of the carrier. The delays of LTE are constants.
    pub fn timing(&self, pattern: &TddPattern) -> Timing {
        if !pattern.is_nr() {
            return Timing::LTE;
        }
        let first = || {
            let period = Duration::from_micros(pattern.tdd_period_us().unwrap_or(0));
            FIRST_NR_HARQ.max(period * FIRST_PERIODS)
        };
        Timing::of_nr(self.percentile.unwrap_or_else(first))
    }
}

#[cfg(test)]
mod tests {
    use airpace_core::Time;
    use airpace_radio::{CarrierId, Numerology, RadioReport};

    use super::*;

    fn slot(mu: u8, index: u64) -> Slot {
        Slot { numerology: Numerology::new(mu).unwrap(), index }
    }

    /// The pattern of a carrier after 30 ms.
    fn pattern(mu: u8, symbols: &[u8]) -> TddPattern {
        let mut pattern = TddPattern::default();
        for index in 0..30u64 << mu {
            let symbols = symbols.get(index as usize % symbols.len().max(1)).copied();
            let report = RadioReport::new(CarrierId(0), slot(mu, index), Time::ZERO);
            pattern.on_report(&RadioReport { symbols, ..report });
        }
        pattern
    }

    /// Timing after retransmissions that follow after these numbers of slots.
    fn after(pattern: &TddPattern, mu: u8, gaps: impl IntoIterator<Item = u64>) -> (f64, f64) {
        let mut timing = HarqTiming::default();
        let mut index = 0;
        for gap in gaps {
            timing.on_grant(slot(mu, index), 3, false);
            timing.on_grant(slot(mu, index + gap), 3, true);
            index += 1_000;
        }
        let timing = timing.timing(pattern);
        (timing.harq.as_secs_f64() * 1e3, timing.radio_delay.as_secs_f64() * 1e3)
    }

    #[test]
    fn lte_has_eight_subframes_whatever_was_learned() {
        let lte = pattern(0, &[]);
        assert_eq!((after(&lte, 0, []), after(&lte, 0, [12; 70])), ((8.0, 27.0), (8.0, 27.0)));
    }

    #[test]
    fn nr_starts_with_two_tdd_periods_and_learns_the_rest() {
        let dddsu = pattern(1, &[13, 13, 13, 9, 0]);
        assert_eq!(after(&dddsu, 1, []), (5.0, 18.0));
        assert_eq!(after(&dddsu, 1, [7, 6, 5]), (5.0, 18.0), "too few retransmissions");
        // Retransmissions of the pattern's four downlink slots follow after 3.5, 3.0, 2.5 and 4.5 ms.
        assert_eq!(after(&dddsu, 1, [7, 6, 5, 9].into_iter().cycle().take(64)), (4.5, 16.5));
        let fdd = pattern(1, &[13]);
        assert_eq!((after(&fdd, 1, []), after(&fdd, 1, [5; 64])), ((4.0, 15.0), (2.5, 12.0)));
        let long = pattern(1, &[13, 13, 13, 13, 13, 13, 13, 9, 0, 0]);
        assert_eq!(after(&long, 1, []), (10.0, 33.0));
        assert_eq!(after(&pattern(3, &[13, 13, 13, 9, 0]), 3, [8; 64]), (1.0, 12.0), "the minimum of NR");
    }

    #[test]
    fn rare_and_impossible_times_do_not_count() {
        let fdd = pattern(1, &[13]);
        assert_eq!(after(&fdd, 1, (0..64).map(|n| if n % 20 == 0 { 40 } else { 6 })), (3.0, 12.0));
        assert_eq!(after(&fdd, 1, [200; 64]), (4.0, 15.0), "a later block with the same NDI");
        let old = [30; 64].into_iter().chain([6; 64]);
        assert_eq!(after(&fdd, 1, old), (3.0, 12.0), "only the last 64 count");
    }
}
