//! The look for a subframe that is not where it is expected: samples, or whole subframes, may be missing without notice.

use num_complex::Complex32;

use super::{CLEAR_BESIDE, Place, Tracker};
use crate::observation::Observation;
use crate::sync::prefix;
use crate::sync::stream::Stream;

/// So many whole subframes may be missing without notice and are skipped; if more are, the cell is searched anew.
///
/// Chosen: 4. A fifth and the next PSS are found by the search as soon, and each number costs some tries.
const MOST_MISSING: usize = 4;

/// With so many times the coherence that noise reaches, a subframe is one of the cell, wherever and of whatever number it is.
///
/// Chosen: noise is that coherent in one of four million tries. Of a narrow cell below 0 dB, whose coherence is never far from
/// that of noise, subframes were taken for later ones.
const SURE_ELSEWHERE: f32 = 1.3;

impl Tracker {
    /// Receives the subframe where the cyclic prefixes show that symbols begin, at the same symbol or another. Stays at
    /// the first place where there is no doubt. If more than a subframe is missing, a later one is there.
    pub(super) fn look_around(&mut self, there: i64, stream: &Stream<'_>, symbols: &[usize]) -> Observation {
        let here = self.place;
        let symbol = (self.numerology.symbol_start(2) - self.numerology.symbol_start(1)) as i64;
        let subframe = self.numerology.subframe_samples() as i64;
        let half = self.numerology.fft_size() as i64 / 2;
        // Samples for later places are all there only if the cell was found with them. If it was, subframes before are
        // searched for: those that are missing lie behind them.
        let is_early = self.early > 0;
        let (earliest, latest) = if is_early { (-subframe / 2, subframe / 2) } else { (-subframe, half) };
        let first = earliest + (there - earliest).rem_euclid(symbol);
        let mut places: Vec<i64> = (first..=latest).step_by(symbol as usize).collect();
        if there == 0 {
            places = vec![0];
        }
        places.sort_by_key(|later| later.abs());
        let Place { cfo_hz, drift, .. } = self.last_sure;
        // Other numbers take many tries: only in the subframe in which something happened, and in the next.
        let is_time = !is_early && (there == 0 || self.health.is_new_doubt());
        for missing in 0..=if is_time { MOST_MISSING } else { 0 } {
            for &later in &places {
                self.place = Place { start: here.start + later as f64, cfo_hz, drift, ..here.later(missing) };
                let there = self.receive_anew(stream, symbols);
                let hints = self.antennas.hints();
                let is_sure = hints.coherence() > (SURE_ELSEWHERE * hints.of_noise()).min(CLEAR_BESIDE);
                if is_sure && !self.health.is_doubtful(hints, &there) {
                    // Reference signals tell the place to a fraction of a sample.
                    self.place.start += self.delay(self.antennas.hints());
                    return self.receive_anew(stream, symbols);
                }
            }
        }
        self.place = here;
        self.receive_anew(stream, symbols)
    }

    /// By how many samples the next subframe is later than expected, if the cyclic prefixes of its symbols up to `last`
    /// show it.
    pub(super) fn displacement(&mut self, stream: &Stream<'_>, last: usize) -> Option<i64> {
        let size = self.numerology.fft_size();
        let before = size / 2 + self.numerology.prefix_samples(1);
        let first = libm::round(self.place.start) as i64 - before as i64;
        let end = self.numerology.symbol_start(last) + size;
        let best = self.antennas.best();
        let stream = stream.of(best);
        let (_, antenna) = self.antennas.iter_mut().nth(best)?;
        let pieces = stream.pieces(first, before + end, &mut antenna.window)?;
        let samples: Vec<Complex32> = pieces.flatten().copied().collect();
        prefix::displacement(self.numerology, &samples, last)
    }
}
