//! Numbers of subframes, from the frame numbers that the cell sends and from the time that passes.

use crate::observation::Observation;

/// Numbers subframes without the wrap of frame numbers. When frame numbers leap, it counts on by time.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    samples_per_subframe: f64,
    /// Number and first sample of the previous subframe.
    last: Option<(i64, i64)>,
    /// What is added to the cell's own numbers.
    shift: i64,
}

/// Subframes after which frame numbers begin again.
const WRAP: i64 = 10_240;

/// Frame numbers are believed if they differ from the time that passed by no more than this many subframes: so many
/// samples may be lost without notice. If they differ by more, somebody counts otherwise.
///
/// Chosen: receivers lose buffers of tens of milliseconds. Another base station comes that close by chance in two of a
/// hundred cases.
const MISSING: i64 = 100;

impl Clock {
    /// For samples at a rate.
    pub fn new(rate_hz: u64) -> Clock {
        Clock { samples_per_subframe: rate_hz as f64 / 1000.0, last: None, shift: 0 }
    }

    /// The number of a subframe, higher than all before, and by how many subframes the cell's own numbers leapt before
    /// it, forward or back.
    ///
    /// The first number is the cell's own, 10 · SFN + subframe.
    pub fn number(&mut self, observation: &Observation) -> (u64, i64) {
        let own = i64::from(observation.sfn) * 10 + observation.number as i64;
        let (number, leap) = match self.last {
            None => (own, 0),
            Some((last, sample)) => {
                let passed = (observation.sample - sample) as f64 / self.samples_per_subframe;
                let by_time = last + libm::round(passed) as i64;
                let off = (own + self.shift - by_time + WRAP / 2).rem_euclid(WRAP) - WRAP / 2;
                if off.abs() <= MISSING && by_time + off > last {
                    (by_time + off, 0)
                } else {
                    (by_time.max(last + 1), off)
                }
            }
        };
        self.shift = number - own;
        self.last = Some((number, observation.sample));
        (number as u64, leap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(sfn: u16, number: usize, ms: i64) -> Observation {
        Observation { sfn, number, sample: ms * 1920 + 7, ..Observation::default() }
    }

    #[test]
    fn numbers_go_on_over_wraps_and_gaps() {
        let mut clock = Clock::new(1_920_000);
        assert_eq!(clock.number(&heard(1023, 9, 0)), (10_239, 0));
        assert_eq!(clock.number(&heard(0, 0, 1)), (10_240, 0), "frame numbers begin again");
        assert_eq!(clock.number(&heard(1, 5, 16)), (10_255, 0), "samples were lost");
        let turn = 16 + 10_239;
        assert_eq!(clock.number(&heard(1, 4, turn)), (20_494, 0), "for nearly a whole turn of frame numbers");
        let more = clock.number(&heard(9, 5, turn + 2));
        assert_eq!(more, (20_575, 0), "and more than is said: frame numbers tell how many");
    }

    #[test]
    fn numbers_go_on_with_time_where_frame_numbers_leap() {
        let mut clock = Clock::new(1_920_000);
        assert_eq!(clock.number(&heard(3, 0, 0)), (30, 0));
        assert_eq!(
            clock.number(&heard(700, 3, 5)),
            (35, 7003 - 35 - 10_240),
            "another cell counts otherwise"
        );
        assert_eq!(clock.number(&heard(700, 4, 6)), (36, 0));
        assert_eq!(clock.number(&heard(702, 0, 22)), (52, 0), "by its own count from now on");
        assert_eq!(clock.number(&heard(701, 0, 23)), (53, -11), "numbers go back, time does not");
        assert_eq!(clock.number(&heard(0, 0, 23)), (54, 3230), "no number comes twice");
    }
}
