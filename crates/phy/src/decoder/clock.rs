//! Subframe numbers from the cell's frame numbers and the elapsed time.

use crate::observation::Observation;

/// Numbers subframes without the wrap of frame numbers. After a jump of frame numbers, the clock counts by elapsed
/// time.
#[derive(Clone, Debug)]
pub struct Clock {
    samples_per_subframe: f64,
    last: Option<Last>,
    /// For each followed cell: PCI, and offset of the decoder's subframe numbers from the cell's own numbers. The
    /// current cell is the last entry.
    shifts: Vec<(u16, i64)>,
    /// Offset of the subframe numbers from the elapsed time (subframes). The offset is needed because subframes of
    /// another cell may start at any time between those of the first cell.
    lead: i64,
}

/// The previous subframe.
#[derive(Clone, Copy, Debug)]
struct Last {
    number: i64,
    sample: i64,
    /// Elapsed time in subframes of the first cell. The time is fractional for other cells, so rounding errors do not
    /// accumulate over changes of the cell.
    time: f64,
}

/// Number of subframes after which frame numbers wrap.
const WRAP: i64 = 10_240;

/// Maximum difference between frame numbers and elapsed time (subframes) that counts as a loss of samples without a
/// notification. A larger difference is a jump of frame numbers.
///
/// Chosen: receivers lose buffers of tens of milliseconds. The numbers of another base station are this close by chance
/// in two of a hundred cases.
const MISSING: i64 = 100;

impl Clock {
    /// Creates a clock for samples at a rate (Hz).
    pub fn new(rate_hz: u64) -> Clock {
        Clock { samples_per_subframe: rate_hz as f64 / 1000.0, last: None, shifts: Vec::new(), lead: 0 }
    }

    /// Returns the number of a subframe of cell `pci`, larger than all previous ones, and the jump of the cell's own
    /// numbers against the returned ones before it (subframes), forward or backward.
    ///
    /// The first number returned is the cell's own, 10 · SFN + subframe.
    pub fn number(&mut self, pci: u16, observation: &Observation) -> (u64, i64) {
        let own = i64::from(observation.sfn) * 10 + observation.number as i64;
        let sample = observation.sample;
        let before = self.shifts.last().map_or(0, |(_, shift)| *shift);
        let known = self.shifts.iter().position(|(cell, _)| *cell == pci).map(|at| self.shifts.remove(at).1);
        let (number, time, leap) = match self.last {
            None => (own, own as f64, 0),
            Some(last) => {
                let time = last.time + (sample - last.sample) as f64 / self.samples_per_subframe;
                let by_time = libm::round(time) as i64 + self.lead;
                let off = own + known.unwrap_or(before) - by_time;
                let off = (off + WRAP / 2).rem_euclid(WRAP) - WRAP / 2;
                if known.is_some() && off.abs() <= MISSING && by_time + off > last.number {
                    (by_time + off, time + off as f64, 0)
                } else {
                    let number = (libm::round(time) as i64).max(last.number + 1);
                    self.lead = number - libm::round(time) as i64;
                    (number, time, off + by_time - number)
                }
            }
        };
        self.shifts.push((pci, number - own));
        self.last = Some(Last { number, sample, time });
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
        assert_eq!(clock.number(1, &heard(1023, 9, 0)), (10_239, 0));
        assert_eq!(clock.number(1, &heard(0, 0, 1)), (10_240, 0), "frame numbers begin again");
        assert_eq!(clock.number(1, &heard(1, 5, 16)), (10_255, 0), "samples were lost");
        let turn = 16 + 10_239;
        assert_eq!(
            clock.number(1, &heard(1, 4, turn)),
            (20_494, 0),
            "for nearly a whole turn of frame numbers"
        );
        let more = clock.number(1, &heard(9, 5, turn + 2));
        assert_eq!(more, (20_575, 0), "and more than is said: frame numbers tell how many");
    }

    #[test]
    fn numbers_go_on_with_time_where_frame_numbers_leap() {
        let mut clock = Clock::new(1_920_000);
        assert_eq!(clock.number(1, &heard(3, 0, 0)), (30, 0));
        assert_eq!(clock.number(1, &heard(700, 3, 5)), (35, 7003 - 35 - 10_240), "the cell counts otherwise");
        assert_eq!(clock.number(1, &heard(700, 4, 6)), (36, 0));
        assert_eq!(clock.number(1, &heard(702, 0, 22)), (52, 0), "by its own count from now on");
        assert_eq!(clock.number(1, &heard(701, 0, 23)), (53, -11), "numbers go back, time does not");
        assert_eq!(clock.number(1, &heard(0, 0, 23)), (54, 3229), "no number comes twice");
    }

    /// Two cells with subframes offset by 0.4 ms, followed alternately.
    #[test]
    fn however_often_cells_change_numbers_do_not_drift_away() {
        let mut clock = Clock::new(1_920_000);
        let mut last = 0;
        for turn in 0..200u16 {
            let first = i64::from(turn) * 20 * 1920;
            let of_one = Observation { sfn: 2 * turn, number: 0, sample: first, ..Observation::default() };
            let sample = first + 9 * 1920 + 768;
            let of_other = Observation { sfn: 2 * turn + 500, number: 3, sample, ..Observation::default() };
            let (one, other) = (clock.number(1, &of_one).0, clock.number(2, &of_other).0);
            assert_eq!(one, u64::from(turn) * 20, "in turn {turn}");
            assert!(
                other > one && one >= last && other.abs_diff(one + 9) <= 1,
                "in turn {turn}: {one}, {other}"
            );
            last = other;
        }
    }

    /// The frame numbers of the other cell are close to the frame numbers of the first cell. The change of the cell
    /// must not count as a loss of samples.
    #[test]
    fn another_cell_is_counted_by_time_and_the_first_by_its_own_numbers_again() {
        let mut clock = Clock::new(1_920_000);
        assert_eq!(clock.number(1, &heard(3, 0, 0)), (30, 0));
        assert_eq!(clock.number(2, &heard(3, 8, 1)), (31, 7));
        assert_eq!(clock.number(2, &heard(3, 9, 2)), (32, 0));
        assert_eq!(clock.number(1, &heard(3, 3, 3)), (33, 0));
        assert_eq!(clock.number(2, &heard(4, 6, 4)), (39, 0), "five subframes are missing");
        assert_eq!(clock.number(1, &heard(4, 5, 10)), (45, 0));
    }
}
