//! The part of a packet's delay that the cell explains: the subframes in which the cell had no idle PRBs while the
//! packet was on its way.
//!
//! A base station that has data for a device leaves no PRBs idle. So a packet can have waited in the cell only in
//! subframes without idle PRBs. The rest of the packet's delay has another cause.
//!
//! Source: Gandalf, 2025, arXiv:2507.00337 (the delays of the radio are subtracted before any test of the delay)

use std::time::Duration;

/// Number of stored subframes. If a delay is longer, only the part within these subframes counts.
///
/// Chosen: one second. After an outage of several seconds, the delay of the waiting packets only reflects the outage.
pub const MAX_SUBFRAMES: u64 = 1_024;

/// One subframe, summed over the active carriers.
#[derive(Clone, Copy, Debug, Default)]
struct Subframe {
    idle_prbs: f64,
    carrier_prbs: u32,
    is_reported: bool,
}

/// The latest subframes.
#[derive(Clone, Debug)]
pub struct Explained {
    /// Subframe n is at index n modulo [`MAX_SUBFRAMES`].
    subframes: Vec<Subframe>,
    newest: u64,
    /// A subframe is full if at most this fraction of its PRBs is idle.
    idle_share: f64,
}

impl Explained {
    /// State without any report.
    pub fn new(idle_share: f64) -> Explained {
        Explained { subframes: vec![Subframe::default(); MAX_SUBFRAMES as usize], newest: 0, idle_share }
    }

    /// Processes a subframe of an active carrier.
    pub fn on_report(&mut self, subframe: u64, idle_prbs: f64, carrier_prbs: u16) {
        if subframe > self.newest {
            let first = (self.newest + 1).max(subframe.saturating_sub(MAX_SUBFRAMES - 1));
            for skipped in first..=subframe {
                *self.entry_mut(skipped) = Subframe::default();
            }
            self.newest = subframe;
        } else if self.newest - subframe >= MAX_SUBFRAMES {
            return;
        }
        let entry = self.entry_mut(subframe);
        entry.idle_prbs += idle_prbs;
        entry.carrier_prbs += u32::from(carrier_prbs);
        entry.is_reported = true;
    }

    /// Whether more than `most` of the `delay` of a packet that arrives now is unexplained. Only the part of the delay
    /// within the subframes in memory counts. A subframe without a report does not explain a delay. A subframe without
    /// capacity, as in a gap of a trace, counts as full.
    pub fn leaves_more_than(&self, most: Duration, delay: Duration) -> bool {
        let millis = |span: Duration| span.as_nanos() as u64 / 1_000_000;
        let delay = delay.min(Duration::from_millis(MAX_SUBFRAMES));
        let (mut left, mut subframe) = (delay, self.newest);
        for _ in 0..millis(delay) {
            if self.is_full(subframe) {
                left = left.saturating_sub(Duration::from_millis(1));
                if left <= most {
                    return false;
                }
            }
            let Some(before) = subframe.checked_sub(1) else { break };
            subframe = before;
        }
        left > most
    }

    fn entry_mut(&mut self, subframe: u64) -> &mut Subframe {
        &mut self.subframes[(subframe % MAX_SUBFRAMES) as usize]
    }

    /// Whether `subframe`, which is one of the last [`MAX_SUBFRAMES`], was full.
    fn is_full(&self, subframe: u64) -> bool {
        let entry = self.subframes[(subframe % MAX_SUBFRAMES) as usize];
        let most_idle = f64::from(entry.carrier_prbs) * self.idle_share;
        entry.is_reported && entry.idle_prbs <= most_idle
    }

    /// The newest subframe, and one bit per subframe of the last [`MAX_SUBFRAMES`]: whether it was full. Subframe n is bit n
    /// modulo [`MAX_SUBFRAMES`].
    pub fn full_subframes(&self) -> (u64, [u64; MAX_SUBFRAMES as usize / 64]) {
        let mut words = [0; MAX_SUBFRAMES as usize / 64];
        for place in (0..MAX_SUBFRAMES).filter(|&place| self.is_full(place)) {
            words[(place / 64) as usize] |= 1 << (place % 64);
        }
        (self.newest, words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_DELAY: Duration = Duration::from_millis(27);

    fn reported(idle: impl Fn(u64) -> u16) -> Explained {
        let mut explained = Explained::new(0.1);
        for subframe in 0..3_000 {
            explained.on_report(subframe, f64::from(idle(subframe)), 100);
        }
        explained
    }

    #[test]
    fn full_subframes_explain_a_delay_and_idle_ones_do_not() {
        let delay = Duration::from_millis(300);
        assert!(!reported(|_| 0).leaves_more_than(MAX_DELAY, delay));
        assert!(reported(|_| 50).leaves_more_than(MAX_DELAY, delay));
        assert!(
            !reported(|_| 50).leaves_more_than(MAX_DELAY, MAX_DELAY),
            "as much as the radio adds is no queue"
        );
        // The last 280 ms were full: 20 ms are unexplained.
        assert!(
            !reported(|subframe| if subframe >= 2_720 { 5 } else { 50 }).leaves_more_than(MAX_DELAY, delay)
        );
        // The last 200 ms were full: 100 ms are unexplained.
        assert!(
            reported(|subframe| if subframe >= 2_800 { 5 } else { 50 }).leaves_more_than(MAX_DELAY, delay)
        );
        let long = Duration::from_secs(9);
        assert!(!reported(|_| 0).leaves_more_than(MAX_DELAY, long), "full as far as memory goes");
        assert!(reported(|_| 50).leaves_more_than(MAX_DELAY, long));
        assert!(
            reported(|subframe| if subframe >= 2_100 { 0 } else { 50 }).leaves_more_than(MAX_DELAY, long)
        );
    }

    #[test]
    fn a_subframe_is_full_if_all_carriers_together_are() {
        let mut explained = Explained::new(0.1);
        for subframe in 0..500 {
            explained.on_report(subframe, 0.0, 100);
            explained.on_report(subframe, 50.0, 100);
        }
        assert!(explained.leaves_more_than(MAX_DELAY, Duration::from_millis(100)));
    }

    #[test]
    fn what_was_not_reported_explains_nothing() {
        let mut explained = Explained::new(0.1);
        explained.on_report(0, 0.0, 100);
        explained.on_report(5_000, 0.0, 100);
        explained.on_report(4_999, 0.0, 100);
        explained.on_report(3, 0.0, 100);
        assert!(explained.leaves_more_than(MAX_DELAY, Duration::from_millis(30)));
        assert!(!explained.leaves_more_than(MAX_DELAY, Duration::from_millis(29)));
    }
}
