//! Reduces the rates of incomplete reports according to the delay of the device's own packets. A standing queue shows
//! that the sender exceeds the capacity of the cell; and while the cell has a queue for the device, no PRB is idle.
//!
//! ```text
//! reported rate above the device's own     · (2 − standing / harq),                at least nothing
//! the sum of both parts                    · (1 − (standing − harq) / 50 ms),      at least a half
//! ```
//!
//! `harq` is the time until a retransmission, 8 ms on LTE. `standing` is the minimum delay beyond Dprop of the packets of the last 40 ms. The rates of complete reports are not
//! reduced.
//!
//! Differs: the paper's decoder decodes every message, so that PBE-CC needs no delay within the cell.

use std::time::Duration;

use airpace_core::{Rate, Time};

use crate::filter::WindowedMin;

/// Period over which the minimum delay is taken. The queue is a standing queue if no packet of this period found the
/// queue empty.
///
/// Chosen: five HARQ round trips, so that at least one packet was not retransmitted.
const STANDING: Duration = Duration::from_millis(40);

/// Time in which the additional queue drains if the other part of the reported rate is correct.
///
/// Chosen: about one round trip. With twice this time, the mean queue of `decoder-in-the-loop` at 0 dB was 22 ms
/// instead of 17 ms (seeds 1 to 4). Shorter times were not tried.
const DRAIN_MS: f64 = 50.0;

/// Minimum factor by which the reported rate is multiplied.
///
/// Source: PBE-CC §4.2.3 (what drains a queue sends at half of the rate)
const MIN_FACTOR: f64 = 0.5;

/// Maximum share of recently undecoded messages up to which reports are accepted in full.
///
/// Chosen: the mean error of a decoder that misses one message in fifty is negligible.
const LACKING: f64 = 0.02;

/// The state that determines the factors for rates from incomplete reports.
#[derive(Clone, Debug)]
pub struct Doubt {
    least: WindowedMin<Duration, Time>,
}

impl Default for Doubt {
    fn default() -> Doubt {
        Doubt { least: WindowedMin::new(STANDING) }
    }
}

impl Doubt {
    /// Processes a packet whose delay exceeds the minimum delay by `excess`.
    pub fn on_packet(&mut self, now: Time, excess: Duration) {
        self.least.update(now, excess);
    }

    /// The factors for reported rates if the fraction `lacking` of the messages could not be decoded. `harq` is the time
    /// from a transmission to its retransmission.
    ///
    /// Chosen: in a busy cell, the radio itself delays every packet by one retransmission.
    pub fn belief(&self, lacking: f64, harq: Duration) -> Belief {
        if lacking <= LACKING {
            return Belief::WHOLE;
        }
        let standing_ms = self.least.get().unwrap_or_default().as_secs_f64() * 1e3;
        let radio_ms = harq.as_secs_f64() * 1e3;
        if standing_ms <= radio_ms {
            return Belief::WHOLE;
        }
        Belief {
            more: (2.0 - standing_ms / radio_ms).max(0.0),
            all: (1.0 - (standing_ms - radio_ms) / DRAIN_MS).max(MIN_FACTOR),
        }
    }
}

/// Factors by which a reported rate is reduced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Belief {
    /// Factor of the part of the reported rate that exceeds the device's current rate. This part comes from PRBs that
    /// seem idle, or from users that seem to have left.
    ///
    /// Chosen: the factor is zero if the standing queue has at least the delay of two retransmissions.
    more: f64,
    /// Factor of the sum of the device's current rate and the part that exceeds it.
    all: f64,
}

impl Belief {
    /// Every rate is accepted as reported.
    pub const WHOLE: Belief = Belief { more: 1.0, all: 1.0 };

    /// The accepted part of the reported rate `told`, if the device has the rate `own` now.
    pub fn of(self, told: Rate, own: Rate) -> Rate {
        let sure = told.min(own);
        let more = (told.as_bps() - sure.as_bps()) as f64;
        Rate::from_bps_f64((sure.as_bps() as f64 + self.more * more) * self.all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pbe::harq::Timing;

    fn after(delays_ms: impl IntoIterator<Item = u64>) -> Doubt {
        let mut doubt = Doubt::default();
        for (ms, delay) in (0..).zip(delays_ms) {
            doubt.on_packet(Time::from_nanos(ms * 1_000_000), Duration::from_millis(delay));
        }
        doubt
    }

    /// The accepted part of a reported rate of 20 Mbit/s, if the device has 12 Mbit/s.
    fn believed_mbps(delays_ms: impl IntoIterator<Item = u64>, lacking: f64) -> f64 {
        let believed = after(delays_ms)
            .belief(lacking, Timing::LTE.harq)
            .of(Rate::from_mbps(20.0), Rate::from_mbps(12.0));
        (believed.as_mbps() * 1e3).round() / 1e3
    }

    #[test]
    fn a_queue_that_stands_lowers_what_is_believed_of_reports_that_lack_something() {
        assert_eq!(believed_mbps([], 0.5), 20.0, "before the first packet");
        assert_eq!(believed_mbps([12; 60], 0.5), 14.72);
        assert_eq!(believed_mbps([18; 60], 0.5), 9.6, "nothing is idle");
        assert_eq!(believed_mbps([90; 60], 0.5), 6.0);
        assert_eq!(believed_mbps([90; 60], 0.01), 20.0, "hardly anything is lacking");
    }

    #[test]
    fn of_less_than_the_device_has_nothing_depends_on_what_is_idle() {
        let belief = after([18; 60]).belief(0.5, Timing::LTE.harq);
        assert_eq!(belief.of(Rate::from_mbps(5.0), Rate::from_mbps(12.0)), Rate::from_mbps(4.0));
        assert_eq!(belief.of(Rate::ZERO, Rate::ZERO), Rate::ZERO);
    }

    #[test]
    fn retransmissions_are_no_queue() {
        let delays = (0..200).map(|packet| if packet % 30 < 24 { 32 } else { 8 });
        assert_eq!(believed_mbps(delays, 0.5), 20.0);
    }
}
