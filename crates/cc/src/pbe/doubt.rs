//! What reports that lack grants cannot know, the device's own packets show: a queue that stands was made by sending more than
//! the cell gives, and a cell that has a queue for the device leaves no PRB idle.
//!
//! ```text
//! what more is told than the device has   · (2 − standing / 8 ms),                at least nothing
//! the sum of both                         · (1 − (standing − 8 ms) / 50 ms),      at least a half
//! ```
//!
//! `standing` is the least delay of the packets of the last 40 ms beyond Dprop. Reports that lack nothing are believed
//! whole.
//!
//! Differs: the paper's decoder reads every message, and then PBE-CC needs no delay within the cell.

use std::time::Duration;

use airpace_core::{Rate, Time};

use crate::filter::WindowedMin;

/// A queue stands if no packet of this time found it empty.
///
/// Chosen: five rounds of HARQ, so that one packet at least was not sent again.
const STANDING: Duration = Duration::from_millis(40);

/// What the radio itself adds to every packet of a busy cell.
///
/// Chosen: one retransmission after eight subframes.
const RADIO_MS: f64 = 8.0;

/// The time in which the queue beyond that is drained, if the rest of what is told is right.
///
/// Chosen: about a round trip. With twice the time, the mean queue of `decoder-in-the-loop` at 0 dB was 22 ms in place of 17
/// (seeds 1 to 4). Shorter times were not tried.
const DRAIN_MS: f64 = 50.0;

/// The least part that is believed.
///
/// Source: PBE-CC §4.2.3 (what drains a queue sends at half of the rate)
const LEAST: f64 = 0.5;

/// If no more than this part of the messages was unread lately, reports are believed whole.
///
/// Chosen: a decoder that misses one message of fifty is right in the mean.
const LACKING: f64 = 0.02;

/// How far reports that lack something are believed.
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
    /// A packet came that was delayed by `excess` beyond the least delay.
    pub fn on_packet(&mut self, now: Time, excess: Duration) {
        self.least.update(now, excess);
    }

    /// What is believed where so large a part of the messages could not be read.
    pub fn belief(&self, lacking: f64) -> Belief {
        if lacking <= LACKING {
            return Belief::WHOLE;
        }
        let standing_ms = self.least.get().unwrap_or_default().as_secs_f64() * 1e3;
        if standing_ms <= RADIO_MS {
            return Belief::WHOLE;
        }
        Belief {
            more: (2.0 - standing_ms / RADIO_MS).max(0.0),
            all: (1.0 - (standing_ms - RADIO_MS) / DRAIN_MS).max(LEAST),
        }
    }
}

/// How far a rate is believed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Belief {
    /// The part of what more is told than the device has: it comes from PRBs that seem idle, or from users that seem gone.
    ///
    /// Chosen: nothing as of a queue of two retransmissions.
    more: f64,
    /// The part of the sum.
    all: f64,
}

impl Belief {
    /// Every rate is believed as it is reported.
    pub const WHOLE: Belief = Belief { more: 1.0, all: 1.0 };

    /// What is believed of the rate `told`, if the device has the rate `own` now.
    pub fn of(self, told: Rate, own: Rate) -> Rate {
        let sure = told.min(own);
        let more = (told.as_bps() - sure.as_bps()) as f64;
        Rate::from_bps_f64((sure.as_bps() as f64 + self.more * more) * self.all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(delays_ms: impl IntoIterator<Item = u64>) -> Doubt {
        let mut doubt = Doubt::default();
        for (ms, delay) in (0..).zip(delays_ms) {
            doubt.on_packet(Time::from_nanos(ms * 1_000_000), Duration::from_millis(delay));
        }
        doubt
    }

    /// Of 20 Mbit/s told, where the device has 12.
    fn believed_mbps(delays_ms: impl IntoIterator<Item = u64>, lacking: f64) -> f64 {
        let believed = after(delays_ms).belief(lacking).of(Rate::from_mbps(20.0), Rate::from_mbps(12.0));
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
        let belief = after([18; 60]).belief(0.5);
        assert_eq!(belief.of(Rate::from_mbps(5.0), Rate::from_mbps(12.0)), Rate::from_mbps(4.0));
        assert_eq!(belief.of(Rate::ZERO, Rate::ZERO), Rate::ZERO);
    }

    #[test]
    fn retransmissions_are_no_queue() {
        let delays = (0..200).map(|packet| if packet % 30 < 24 { 32 } else { 8 });
        assert_eq!(believed_mbps(delays, 0.5), 20.0);
    }
}
