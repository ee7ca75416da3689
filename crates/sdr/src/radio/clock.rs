//! Detection of lost samples from a radio's time stamps and error reports.

/// Maximum deviation of a time stamp that does not count as a loss, in samples. Radios lose whole packets, and a cell's
/// tracker tolerates the loss of a few samples.
const SLACK: f64 = 4.0;
/// Additional deviation of a time stamp that does not count as a loss, as a share of the samples since the last stamp.
/// It allows for a rounded rate in the driver's report.
const SLACK_SHARE: f64 = 50e-6;
/// Minimum agreement count (of stamps that agree with the number of samples) for which a deviating stamp indicates a
/// loss.
const BELIEVED: u32 = 8;
/// Maximum of the agreement count.
const MAX_BELIEVED: u32 = 64;
/// Decrease of the agreement count after a stamp that deviates without a report of lost samples.
const DOUBT: u32 = 2;
/// Maximum duration of a loss, in s. A longer jump means that the radio's clock was set.
const MAX_LOSS_S: f64 = 10.0;

/// Compares the number of samples with the radio's clock.
///
/// Chosen: stamps are trusted once they have advanced with the samples for a while. Drivers that take stamps from the
/// computer's clock, or count in other units, are never trusted. For these drivers, only reported losses are known.
#[derive(Debug)]
pub struct Clock {
    rate_hz: f64,
    /// The last stamp, and the number of samples since the sample to which it belongs.
    last: Option<(i64, u64)>,
    agreement: u32,
    has_complained: bool,
}

impl Clock {
    /// Creates a clock for samples at this rate.
    pub fn new(rate_hz: f64) -> Clock {
        Clock { rate_hz, last: None, agreement: 0, has_complained: false }
    }

    /// Notes that the radio reported lost or corrupted samples.
    pub fn complain(&mut self) {
        self.has_complained = true;
    }

    /// Counts `count` samples; `time_ns` is the radio's time stamp of these samples; if they have no stamp, it is 0 or
    /// the stamp of earlier samples. Returns whether samples were lost before these samples, with the number of lost
    /// samples if known.
    pub fn take(&mut self, count: usize, time_ns: i64) -> Option<Option<u64>> {
        let has_complained = std::mem::take(&mut self.has_complained);
        let is_stamped = time_ns != 0 && self.last.is_none_or(|(last_ns, _)| last_ns != time_ns);
        let gap = match self.last {
            Some((last_ns, since)) if is_stamped => {
                let elapsed = time_ns.wrapping_sub(last_ns) as f64 * 1e-9 * self.rate_hz;
                self.judge(elapsed - since as f64, since, has_complained)
            }
            _ => has_complained.then_some(None),
        };
        self.last = match self.last {
            _ if is_stamped => Some((time_ns, count as u64)),
            Some((last_ns, since)) => Some((last_ns, since + count as u64)),
            None => None,
        };
        gap
    }

    /// Judges a stamp: the clock advanced by `missing` more samples than arrived since the last stamp.
    fn judge(&mut self, missing: f64, since: u64, has_complained: bool) -> Option<Option<u64>> {
        if missing.abs() <= SLACK + SLACK_SHARE * since as f64 {
            self.agreement = (self.agreement + 1).min(MAX_BELIEVED);
            return has_complained.then_some(None);
        }
        let is_believed = self.agreement >= BELIEVED;
        if !has_complained {
            self.agreement = self.agreement.saturating_sub(DOUBT);
        }
        let is_loss = missing > 0.0 && missing < MAX_LOSS_S * self.rate_hz;
        match (is_believed, is_loss) {
            (true, true) => Some(Some(missing.round() as u64)),
            (true, false) => Some(None),
            (false, _) => has_complained.then_some(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: f64 = 1.92e6;

    /// Returns a clock that has counted this many consecutive blocks of 100 samples, and the time after them.
    fn settled(blocks: u64) -> (Clock, i64) {
        let mut clock = Clock::new(RATE);
        for block in 0..blocks {
            assert_eq!(clock.take(100, time_ns(block * 100)), None, "block {block} follows");
        }
        (clock, time_ns(blocks * 100))
    }

    fn time_ns(sample: u64) -> i64 {
        (5.0e9 + sample as f64 * 1e9 / RATE).round() as i64
    }

    #[test]
    fn a_jump_of_a_steady_clock_is_a_loss_of_that_many_samples() {
        let (mut clock, _) = settled(20);
        assert_eq!(clock.take(100, time_ns(2000 + 777)), Some(Some(777)));
        assert_eq!(clock.take(100, time_ns(2100 + 777)), None, "and then it goes on");
        clock.complain();
        assert_eq!(clock.take(100, time_ns(2200 + 1000)), Some(Some(223)), "an overflow's size is known too");
    }

    #[test]
    fn blocks_without_a_stamp_follow_those_before() {
        let (mut clock, now) = settled(20);
        assert_eq!(clock.take(100, now), None);
        assert_eq!(clock.take(50, now), None, "the driver leaves the time as it was");
        assert_eq!(clock.take(50, 0), None, "or says none");
        assert_eq!(clock.take(100, time_ns(2200)), None);
        assert_eq!(clock.take(100, time_ns(2301)), None, "a sample more is no loss");
        assert_eq!(clock.take(100, time_ns(2500)), Some(Some(99)));
    }

    #[test]
    fn without_a_clock_a_loss_is_known_but_not_its_size() {
        let mut clock = Clock::new(RATE);
        assert_eq!(clock.take(100, 0), None);
        clock.complain();
        assert_eq!(clock.take(100, 0), Some(None));
        assert_eq!(clock.take(100, 0), None);
    }

    #[test]
    fn a_clock_that_does_not_keep_time_with_the_samples_is_not_believed() {
        // Test two clocks: one that is twice as fast as the samples, as of drivers that count bytes; and the computer's
        // clock, which jumps.
        for time in [|at: u64| time_ns(2 * at), |at: u64| time_ns(at + at * 7919 % 997)] {
            let mut clock = Clock::new(RATE);
            for block in 0..200 {
                assert_eq!(clock.take(100, time(block * 100)), None, "block {block}");
            }
            clock.complain();
            assert_eq!(clock.take(100, time(30_000)), Some(None));
        }
    }

    #[test]
    fn a_clock_that_is_set_says_that_something_is_missing_and_not_what() {
        let (mut clock, now) = settled(20);
        assert_eq!(clock.take(100, now + 3_600_000_000_000), Some(None));
        assert_eq!(clock.take(100, now), Some(None), "back");
        let (mut clock, _) = settled(20);
        assert_eq!(clock.take(100, i64::MIN), Some(None), "no number is too strange");
        clock.take(100, i64::MAX);
    }
}
