//! What reports that lack grants cannot know, the device's own packets show: a queue that stands was made by sending more than
//! the cell gives.
//!
//! ```text
//! believed = 1 − (standing − 8 ms) / 50 ms,   at least a half
//! ```
//!
//! `standing` is the least delay of the packets of the last 40 ms beyond Dprop. Reports that lack nothing are believed
//! whole.
//!
//! Differs: the paper's decoder reads every message, and then PBE-CC needs no delay within the cell.

use std::time::Duration;

use airpace_core::Time;

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

    /// The part of what is told that is believed, where so large a part of the messages could not be read.
    pub fn believed(&self, lacking: f64) -> f64 {
        let standing_ms = self.least.get().unwrap_or_default().as_secs_f64() * 1e3;
        if lacking <= LACKING || standing_ms <= RADIO_MS {
            return 1.0;
        }
        (1.0 - (standing_ms - RADIO_MS) / DRAIN_MS).max(LEAST)
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

    #[test]
    fn a_queue_that_stands_lowers_what_is_believed_of_reports_that_lack_something() {
        assert_eq!(after([]).believed(0.5), 1.0, "before the first packet");
        assert_eq!(after([18; 60]).believed(0.5), 0.8);
        assert_eq!(after([90; 60]).believed(0.5), 0.5);
        assert_eq!(after([90; 60]).believed(0.01), 1.0, "hardly anything is lacking");
    }

    #[test]
    fn retransmissions_are_no_queue() {
        let delays = (0..200).map(|packet| if packet % 30 < 24 { 32 } else { 8 });
        assert_eq!(after(delays).believed(0.5), 1.0);
    }
}
