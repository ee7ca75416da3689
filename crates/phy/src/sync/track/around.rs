//! Search for a displaced subframe: samples, or whole subframes, may be missing without notice.

use num_complex::Complex32;

use super::{CLEAR_BESIDE, FramePosition, Tracker};
use crate::observation::Observation;
use crate::sync::prefix;
use crate::sync::stream::Stream;

/// Maximum number of whole subframes missing without notice that the tracker skips. If more subframes are missing, the
/// listener searches for the cell again.
///
/// Chosen: 4. If five or more subframes are missing, the cell search and the next PSS reveal this as soon. Each
/// additional number costs several attempts.
const MAX_MISSING: usize = 4;

/// Accept a subframe at an unexpected offset or index if its coherence exceeds the noise level by this factor.
///
/// Chosen: noise reaches this coherence once in four million attempts. Without the factor, a narrow cell below 0 dB, whose
/// coherence is always close to that of noise, is mistaken for a later subframe.
const SURE_ELSEWHERE: f32 = 1.3;

impl Tracker {
    /// Receives the subframe at an offset where, according to the cyclic prefixes, symbols start; this may be the start
    /// of another symbol. Accepts the first offset without doubt. If whole subframes are missing, the received subframe
    /// is a later subframe than expected.
    pub(super) fn look_around(&mut self, there: i64, stream: &Stream<'_>, symbols: &[usize]) -> Observation {
        let here = self.place;
        let symbol = (self.numerology.symbol_start(2) - self.numerology.symbol_start(1)) as i64;
        let subframe = self.numerology.subframe_samples() as i64;
        let half = self.numerology.fft_size() as i64 / 2;
        // If the listener found the cell in these samples, no samples are missing before this subframe: they are missing
        // after it. Therefore offsets up to half a subframe in both directions are searched.
        let is_early = self.early > 0;
        let (earliest, latest) = if is_early { (-subframe / 2, subframe / 2) } else { (-subframe, half) };
        let first = earliest + (there - earliest).rem_euclid(symbol);
        let mut places: Vec<i64> = (first..=latest).step_by(symbol as usize).collect();
        if there == 0 {
            places = vec![0];
        }
        places.sort_by_key(|later| later.abs());
        let FramePosition { cfo_hz, drift, .. } = self.last_sure;
        // Other subframe numbers need many attempts: try them only in the first doubtful subframe and the next one.
        let is_time = !is_early && (there == 0 || self.health.is_new_doubt());
        for missing in 0..=if is_time { MAX_MISSING } else { 0 } {
            for &later in &places {
                self.place =
                    FramePosition { start: here.start + later as f64, cfo_hz, drift, ..here.later(missing) };
                let there = self.receive_anew(stream, symbols);
                let hints = self.antennas.hints();
                let is_sure = hints.coherence() > (SURE_ELSEWHERE * hints.of_noise()).min(CLEAR_BESIDE);
                if is_sure && !self.health.is_doubtful(hints, &there) {
                    // Reference signals give the timing to a fraction of a sample.
                    self.place.start += self.delay(self.antennas.hints());
                    return self.receive_anew(stream, symbols);
                }
            }
        }
        self.place = here;
        self.receive_anew(stream, symbols)
    }

    /// Returns the delay of the next subframe relative to its expected start (samples), if the cyclic prefixes of its
    /// symbols up to `last` show it.
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
