//! One-way delay relative to its minimum of the last ten seconds (Dprop).
//!
//! Only differences of one-way delays are used, so the offset between the two clocks cancels. A drift of 100 ppm moves
//! a ten-second minimum by at most 1 ms, a thirtieth of the threshold. The effect of a clock step ends after one
//! window.
//!
//! Source: PBE-CC §4.2.2

use std::time::Duration;

use airpace_core::Time;

use crate::filter::WindowedMin;

use super::harq::Timing;

/// Window of the minimum one-way delay, Dprop.
///
/// Source: PBE-CC §4.2.2
const DPROP_WINDOW: Duration = Duration::from_secs(10);

/// Maximum delay that the radio of LTE adds without a queue: three retransmissions of eight subframes each, and 3 ms of
/// jitter.
///
/// ```text
/// Dth = Dprop + 3·8 + 3 ms
/// ```
///
/// Source: PBE-CC §4.2.2
pub const RADIO_DELAY: Duration = Timing::LTE.radio_delay;

/// The one-way delay of a flow and its minimum.
#[derive(Clone, Debug)]
pub struct OneWayDelay {
    /// Dprop (ns). It contains the offset between the clocks of sender and receiver.
    dprop: WindowedMin<i64, Time>,
    latest: i64,
}

impl Default for OneWayDelay {
    fn default() -> OneWayDelay {
        OneWayDelay { dprop: WindowedMin::new(DPROP_WINDOW), latest: 0 }
    }
}

impl OneWayDelay {
    /// Processes a packet that left at `sent` and arrived at `now`.
    pub fn on_packet(&mut self, now: Time, sent: Time) {
        self.latest = now.signed_nanos_since(sent);
        self.dprop.update(now, self.latest);
    }

    /// Delay of the last packet beyond Dprop.
    pub fn excess(&self) -> Duration {
        let dprop = self.dprop.get().unwrap_or(self.latest);
        Duration::from_nanos(self.latest.saturating_sub(dprop).max(0) as u64)
    }

    /// Whether the last packet's delay exceeds Dth = Dprop + `radio_delay`.
    ///
    /// Source: PBE-CC §4.2.2
    pub fn exceeds_threshold(&self, radio_delay: Duration) -> bool {
        self.excess() > radio_delay
    }

    /// One-way delay of the last packet, and the minimum of the window, in nanoseconds. Both contain the unknown offset
    /// of the clocks.
    pub fn raw(&self) -> (i64, Option<i64>) {
        (self.latest, self.dprop.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends one packet per millisecond for `seconds`. Returns the number of packets above the threshold, and the
    /// maximum excess of the last second. The receiver's clock shows `clock(true time)`.
    fn run(seconds: u64, delay: impl Fn(u64) -> u64, clock: impl Fn(u64) -> u64) -> (usize, Duration) {
        let mut tracked = OneWayDelay::default();
        let mut exceeded = 0;
        let mut last = Duration::ZERO;
        for millis in 0..seconds * 1_000 {
            let sent = millis * 1_000_000;
            tracked.on_packet(Time::from_nanos(clock(sent + delay(sent))), Time::from_nanos(sent));
            exceeded += usize::from(tracked.exceeds_threshold(RADIO_DELAY));
            if millis + 1_000 > seconds * 1_000 {
                last = last.max(tracked.excess());
            }
        }
        (exceeded, last)
    }

    const FLAT: fn(u64) -> u64 = |_| 20_000_000;

    #[test]
    fn three_retransmissions_are_no_queue_and_four_are() {
        assert_eq!(run(2, |sent| if sent % 50_000_000 == 0 { 46_900_000 } else { 20_000_000 }, |t| t).0, 0);
        assert!(run(2, |sent| if sent > 1_000_000_000 { 53_000_000 } else { 20_000_000 }, |t| t).0 > 990);
    }

    #[test]
    fn the_clocks_need_not_agree() {
        assert_eq!(run(3, FLAT, |t| t + 7_200_000_000_000).0, 0, "two hours ahead");
        assert_eq!(run(3, FLAT, |t| t.saturating_sub(15_000_000)).0, 0, "15 ms behind");
    }

    #[test]
    fn a_drift_of_100_ppm_is_at_most_a_millisecond() {
        for ppm in [-100i64, 100] {
            let (exceeded, last) = run(60, FLAT, move |t| (t as i64 + t as i64 / 1_000_000 * ppm) as u64);
            assert_eq!(exceeded, 0);
            assert!(last <= Duration::from_micros(1_010), "{last:?} at {ppm} ppm");
        }
    }

    #[test]
    fn a_step_of_the_clock_is_forgotten_with_the_window() {
        let (exceeded, last) = run(40, FLAT, |t| if t > 20_000_000_000 { t + 50_000_000 } else { t });
        assert!((9_900..=10_100).contains(&exceeded), "{exceeded}");
        assert_eq!(last, Duration::ZERO);
    }
}
