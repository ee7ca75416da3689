//! Convergence of the tracking loops on the samples in which a cell was found.

use super::{FramePosition, Tracker, level};
use crate::channel::{Estimator, Hints};
use crate::sync::health::Health;
use crate::sync::stream::{Reach, Stream};

/// Number of subframes on which the loops converge before the first subframe is decoded.
const SETTLING: usize = 8;

impl Tracker {
    /// Lets the loops converge on the samples of `stream`, then returns to its first subframe, so that the tracker also
    /// decodes the samples in which the cell was found. Returns whether the reference signals of the cell are present.
    pub fn settle(&mut self, stream: &Stream<'_>) -> bool {
        let samples = self.numerology.subframe_samples();
        while self.first_sample(0) < stream.start() {
            self.place.advance(samples);
        }
        let enough = (SETTLING * samples) as f64;
        while (stream.end() as f64) < self.place.start + enough && self.go_back(stream) {}
        // The cyclic prefixes may be those of a stronger cell that was not requested. Then they give no information
        // about this cell.
        let by_prefix = self.rehearse(stream, true, true).count > 0;
        if !by_prefix {
            self.rehearse(stream, true, false);
        }
        // A single subframe gives little information in strong noise, so the decision uses all of them.
        let all = self.rehearse(stream, false, by_prefix);
        let is_there = all.coherence() > all.of_noise();
        if is_there {
            self.place.start += self.delay(&all);
            self.place.cfo_hz += self.carrier_error_hz(&all);
        }
        self.last_sure = self.place;
        self.settled = self.place;
        (0..self.early).for_each(|_| self.settled.advance(samples));
        while self.go_back(stream) {}
        self.turns = 0.0;
        self.antennas.each_estimator(Estimator::forget_channel_and_motion);
        self.found_level = level(&all);
        self.found_loudness = all.neighbours.norm_sqr().sqrt() / all.pairs.max(1) as f32;
        self.health = Health::new(all.clarity());
        is_there
    }

    /// Receives the next subframes and returns to the first subframe. If `follows` is set, each subframe corrects
    /// timing and carrier. If `by_prefix` is set, subframes whose cyclic prefixes show another start are skipped:
    /// samples were lost between these subframes and the position where the cell was found. Returns the sum of all
    /// measurements.
    fn rehearse(&mut self, stream: &Stream<'_>, follows: bool, by_prefix: bool) -> Hints {
        let samples = self.numerology.subframe_samples();
        let first = self.place;
        let (mut passed, mut heard) = (0, 0);
        let mut all = Hints::default();
        let symbols = self.pilot_symbols(true);
        let last = self.last_control_symbol(&symbols);
        while heard < SETTLING {
            match self.reach(stream, last) {
                Reach::NotYet => break,
                Reach::Lost => {}
                Reach::There if by_prefix && self.displacement(stream, last).is_some() => {}
                Reach::There => {
                    self.receive(stream, &symbols);
                    heard += 1;
                    let hints = *self.antennas.hints();
                    all.add(&hints);
                    if follows && hints.coherence() > hints.of_noise() {
                        self.place.start += self.delay(&hints);
                        self.place.cfo_hz += 0.5 * self.carrier_error_hz(&hints);
                    }
                    // Drop the channel estimate, because it was made with another timing.
                    self.antennas.each_estimator(Estimator::forget);
                }
            }
            self.place.advance(samples);
            passed += 1;
        }
        let start = self.place.start - (passed * samples) as f64;
        self.place = FramePosition { start, cfo_hz: self.place.cfo_hz, ..first };
        all
    }

    /// Moves one subframe back, if its samples may be available.
    fn go_back(&mut self, stream: &Stream<'_>) -> bool {
        let samples = self.numerology.subframe_samples() as i64;
        if self.first_sample(0) - samples < stream.start() {
            return false;
        }
        self.early += 1;
        self.place.start -= samples as f64;
        self.place.number = (self.place.number + 9) % 10;
        if self.place.number == 9 {
            self.place.sfn = (self.place.sfn + 1023) % 1024;
        }
        true
    }
}
