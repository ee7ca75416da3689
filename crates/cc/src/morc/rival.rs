//! Rivals, which are flows that do not drain a queue: their detection, and a window with which `morc` keeps its share
//! next to them.
//!
//! CUBIC and BBR keep a queue as long as the buffer or their own estimates permit. A flow that reduces its rate at a
//! queueing delay of 60 ms would leave the link to CUBIC and BBR. If two drains in a row did not empty the queue,
//! another flow fills it. Until a drain succeeds, `morc` then uses a window that grows and is cut like CUBIC's.
//!
//! Differs: MORC §3.1 has no such mode; §6 leaves "friendliness to legacy TCP" to later work.

use std::time::Duration;

use airpace_core::Time;

/// Weight of a failed drain of a flow that was fast enough before the drain to fill the queue by itself.
pub const SURE: u32 = 3;

/// Total weight of failed drains at which a rival is assumed: two drains of full weight, or six drains of weight 1. A
/// drain of a slow flow consists of one packet and has weight 1, because this packet may also wait because the link
/// stalls.
///
/// Chosen: flows of this scheme that joined recently may drain at another time than the older flows once. If one failed
/// drain were sufficient, five flows would treat each other as rivals. On 3G links, a third of the single packets wait
/// longer than the maximum duration of a drain.
const ENOUGH: u32 = 2 * SURE;

/// Time in which the window grows by one packet (ms).
///
/// Chosen: CUBIC's window depends on time, not on round trips. At 20 to 100 Mbit/s, CUBIC's epochs last 5 to 10 s, and
/// its window grows by about 25 packets per second on average.
const PACKET_MS: f64 = 40.0;

/// Factor by which a cut reduces the window.
///
/// Source: RFC 9438 §4.6 (CUBIC's β)
const CUT: f64 = 0.7;

/// Minimum number of round trips between two cuts.
///
/// Chosen: BBR overflows a short buffer continually. With one cut per round trip, `morc` keeps only an eighth of the
/// link.
const CUT_ROUNDS: u32 = 16;

/// Minimum queueing delay at which a loss counts as an overflow, in tenths of the maximum queueing delay.
///
/// Chosen: CUBIC's own cut lowers the queue by 30 %; a loss at a lower delay is no overflow.
const TENTHS_OF_CREST: f64 = 7.0;

/// The state of the detection of rivals.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rival {
    failed: u32,
    /// The window in bytes; `None` without a rival.
    window: Option<f64>,
    /// The maximum queueing delay since the queue was last empty.
    crest_ms: f64,
    last_cut: Time,
}

impl Rival {
    /// The window in bytes, if there is a rival.
    pub fn window(&self) -> Option<f64> {
        self.window
    }

    /// Whether the last drain failed.
    pub fn is_suspected(&self) -> bool {
        self.failed > 0
    }

    /// Processes a new sample of the queueing delay.
    pub fn hear(&mut self, queue_ms: f64) {
        self.crest_ms = self.crest_ms.max(queue_ms);
    }

    /// Processes the observation of an empty queue, which shows that there is no rival.
    pub fn emptied(&mut self) {
        *self = Rival { last_cut: self.last_cut, ..Rival::default() };
    }

    /// Processes a drain that did not empty the queue. `outstanding`: the flow's bytes in flight. `weight`: weight of
    /// this drain as evidence, up to [`SURE`].
    pub fn failed(&mut self, outstanding: f64, weight: u32) {
        self.failed = self.failed.saturating_add(weight);
        if self.failed >= ENOUGH && self.window.is_none() {
            self.window = Some(outstanding);
        }
    }

    /// Increases the window according to the time since the last sample.
    pub fn grow(&mut self, since_s: f64, mss_bytes: f64) {
        if let Some(window) = &mut self.window {
            *window += mss_bytes * since_s * 1e3 / PACKET_MS;
        }
    }

    /// Whether this queueing delay is near the maximum since the queue was last empty, so that losses may be an
    /// overflow.
    pub fn is_near_crest(&self, queue_ms: f64) -> bool {
        is_near(self.crest_ms, queue_ms)
    }

    /// Processes a loss at the queueing delay `queue_ms`. The window is cut if the queue overflowed.
    pub fn lost(&mut self, now: Time, queue_ms: f64, rtt: Duration) {
        let is_due = now - self.last_cut > rtt.saturating_mul(CUT_ROUNDS);
        if let Some(window) = &mut self.window
            && is_due
            && is_near(self.crest_ms, queue_ms)
        {
            *window *= CUT;
            self.last_cut = now;
        }
    }
}

/// Compares in whole nanoseconds. Otherwise, rounding errors of doubles could exclude a value that equals the bound.
fn is_near(crest_ms: f64, queue_ms: f64) -> bool {
    let ns = |ms: f64| (ms * 1e6).round();
    10.0 * ns(queue_ms) > TENTHS_OF_CREST * ns(crest_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    #[test]
    fn two_drains_that_fail_show_a_rival_and_an_empty_queue_ends_it() {
        let mut rival = Rival::default();
        rival.failed(100e3, SURE);
        assert!(rival.is_suspected() && rival.window().is_none());
        rival.failed(90e3, SURE);
        assert_eq!(rival.window(), Some(90e3));
        rival.grow(0.4, 1500.0);
        assert_eq!(rival.window(), Some(105e3), "ten packets in 400 ms");
        rival.emptied();
        assert!(rival.window().is_none() && !rival.is_suspected());
    }

    #[test]
    fn only_losses_of_a_long_queue_cut_the_window_and_not_all_of_them() {
        let mut rival = Rival::default();
        rival.hear(200.0);
        rival.failed(100e3, SURE);
        rival.failed(100e3, SURE);
        rival.lost(Time::from_secs(10), 100.0, RTT);
        assert_eq!(rival.window(), Some(100e3), "half of the longest queue is no overflow");
        rival.lost(Time::from_secs(10), 190.0, RTT);
        assert_eq!(rival.window(), Some(70e3));
        rival.lost(Time::from_secs(11), 190.0, RTT);
        assert_eq!(rival.window(), Some(70e3), "within 16 round trips, it is the same overflow");
        rival.lost(Time::from_secs(12), 190.0, RTT);
        assert!((rival.window().unwrap() - 49e3).abs() < 1e-6);
    }
}
