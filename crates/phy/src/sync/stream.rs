//! Samples at the rate of a cell's FFT: unchanged, or resampled on demand.

use num_complex::Complex32;

use super::Ring;
use crate::resample::{Parts, Resampler};

/// Conversion from the raw sample rate to the rate of a cell's FFT.
#[derive(Clone, Debug)]
pub struct Conversion {
    resampler: Resampler,
    /// Number of the raw sample that coincides with sample 0 of the converted samples.
    origin: i64,
}

/// Samples as a [`Tracker`](super::track::Tracker) reads them.
///
/// The tracker requests only the samples of some symbols of a subframe. The samples of other symbols are never
/// resampled.
#[derive(Clone, Copy, Debug)]
pub struct Stream<'a> {
    /// Rings of all antennas, with the same gaps.
    rings: &'a [Ring],
    /// Ring of the antenna that is read.
    ring: &'a Ring,
    conversion: Option<&'a Conversion>,
    /// Limit of the raw samples used: samples from this number on are ignored.
    end: i64,
    is_finished: bool,
}

/// Availability of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// All samples are available.
    There,
    /// Some samples have not arrived yet.
    NotYet,
    /// Some samples were lost and will never arrive.
    Lost,
}

/// Buffers for resampling.
#[derive(Clone, Debug, Default)]
pub struct Window {
    inputs: Parts,
    outputs: Vec<Complex32>,
}

impl Conversion {
    /// Creates a conversion by `resampler`. Sample 0 coincides with raw sample `origin`.
    pub fn new(resampler: Resampler, origin: i64) -> Conversion {
        Conversion { resampler, origin }
    }

    /// Number of the raw sample that coincides with `sample`.
    pub fn raw_sample(&self, sample: f64) -> f64 {
        self.origin as f64 + sample * self.resampler.ratio()
    }

    /// Sample that coincides with raw sample number `raw`.
    pub fn sample(&self, raw: f64) -> f64 {
        (raw - self.origin as f64) / self.resampler.ratio()
    }
}

impl<'a> Stream<'a> {
    /// Creates a stream of all samples in the antennas' rings, which have the same gaps. The first antenna is selected.
    /// `is_finished`: no more samples will arrive.
    ///
    /// # Panics
    /// Panics if `rings` is empty.
    pub fn new(rings: &'a [Ring], conversion: Option<&'a Conversion>, is_finished: bool) -> Stream<'a> {
        Stream { rings, ring: &rings[0], conversion, end: rings[0].end(), is_finished }
    }

    /// Selects the samples of the antenna with this index.
    ///
    /// # Panics
    /// Panics if there is no such antenna.
    pub fn of(self, antenna: usize) -> Stream<'a> {
        Stream { ring: &self.rings[antenna], ..self }
    }

    /// Limits the stream to the samples before raw sample number `end`.
    pub fn until(self, end: i64) -> Stream<'a> {
        Stream { end: self.end.min(end), is_finished: self.is_finished && end >= self.end, ..self }
    }

    /// Number of the first sample.
    pub fn start(&self) -> i64 {
        let start = self.ring.start();
        self.conversion.map_or(start, |conversion| libm::ceil(conversion.sample(start as f64)) as i64)
    }

    /// Approximate number of the sample after the last available sample.
    pub fn end(&self) -> i64 {
        self.conversion.map_or(self.end, |conversion| libm::floor(conversion.sample(self.end as f64)) as i64)
    }

    /// Returns whether no more samples will arrive.
    pub fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// Returns whether the samples `first..end` are available without a gap.
    pub fn reach(&self, first: i64, end: i64) -> Reach {
        let (first, end, ahead) = match self.conversion {
            None => (first, end, 0),
            Some(Conversion { resampler, origin }) => {
                let times = resampler.times(first, (end - first).max(1) as usize);
                (origin + times.start, origin + times.end, resampler.ahead() as i64)
            }
        };
        match self.ring.run_from(first) {
            // Samples after the limit `end` count as not yet received, even if they were lost.
            _ if first >= self.end => Reach::NotYet,
            Some(run) if first >= run.start => {
                let is_last = run.end >= self.end;
                let ahead = if is_last && !self.is_finished { ahead } else { 0 };
                match (end + ahead <= run.end.min(self.end), is_last) {
                    (true, _) => Reach::There,
                    (false, true) => Reach::NotYet,
                    (false, false) => Reach::Lost,
                }
            }
            Some(_) => Reach::Lost,
            None => Reach::NotYet,
        }
    }

    /// Returns `count` samples from number `first` on, in pieces; `None` unless all are available.
    pub fn pieces<'b>(
        &'b self,
        first: i64,
        count: usize,
        window: &'b mut Window,
    ) -> Option<impl Iterator<Item = &'b [Complex32]> + Clone> {
        if self.reach(first, first + count as i64) != Reach::There {
            return None;
        }
        let (whole, resampled) = match self.conversion {
            None => (self.ring.pieces(first, count), None),
            Some(conversion) => {
                self.resample(conversion, first, count, window);
                (None, Some(&window.outputs[..]))
            }
        };
        Some(whole.into_iter().flatten().chain(resampled))
    }

    /// Resamples into a window. The filter uses zeros for samples before the first and after the last sample of the
    /// run.
    fn resample(&self, conversion: &Conversion, first: i64, count: usize, window: &mut Window) {
        let Conversion { resampler, origin } = conversion;
        let wanted = resampler.inputs(first, count);
        let wanted = origin + wanted.start..origin + wanted.end;
        let centre = origin + resampler.times(first, count).start;
        let run = self.ring.run_from(centre).unwrap_or(centre..centre);
        let there = wanted.start.max(run.start)..wanted.end.min(run.end.min(self.end));
        window.inputs.clear();
        window.inputs.resize((there.start - wanted.start) as usize);
        let pieces = self.ring.pieces(there.start, (there.end - there.start).max(0) as usize);
        pieces.into_iter().flatten().for_each(|piece| window.inputs.extend(piece));
        window.inputs.resize((wanted.end - wanted.start) as usize);
        window.outputs.resize(count, Complex32::default());
        resampler.resample(first, &window.inputs, &mut window.outputs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test samples: a sum of two tones, in runs with gaps.
    fn ring(runs: &[(usize, u64)]) -> Ring {
        let mut ring = Ring::new(0);
        let mut at = 0;
        for &(count, lost) in runs {
            let samples: Vec<_> = (at..at + count)
                .map(|n| Complex32::new((n as f32 * 0.02).sin(), (n as f32 * 0.013).cos()))
                .collect();
            ring.push(&samples);
            ring.skip(lost);
            at += count + lost as usize;
        }
        ring
    }

    #[test]
    fn windows_are_what_resampling_all_gives() {
        let ring = ring(&[(50_000, 0)]);
        let resampler = Resampler::new(2_500_000, 1_920_000, 600_000).expect("rates that fit");
        let mut whole = Vec::new();
        let all: Vec<Complex32> = ring.pieces(0, 50_000).expect("all of it").flatten().copied().collect();
        resampler.clone().push(&all, &mut whole);
        let conversion = Conversion::new(resampler, 0);
        let stream = Stream::new(std::slice::from_ref(&ring), Some(&conversion), false);
        let mut window = Window::default();
        for (first, count) in [(0, 10), (1, 128), (999, 2048), (30_000, 1)] {
            let read: Vec<Complex32> = stream
                .pieces(first, count, &mut window)
                .expect("samples that are there")
                .flatten()
                .copied()
                .collect();
            assert_eq!(read, whole[first as usize..][..count], "{count} from {first}");
        }
        // An output waits for the inputs after it as long as more inputs may arrive.
        let last = whole.len() as i64;
        assert_eq!(stream.reach(last - 9, last), Reach::There);
        assert_eq!(stream.reach(last - 9, last + 1), Reach::NotYet);
        let finished = Stream::new(std::slice::from_ref(&ring), Some(&conversion), true);
        assert_eq!(finished.reach(last - 9, last + 1), Reach::There);
    }

    #[test]
    fn what_is_lost_never_comes() {
        let ring = ring(&[(1000, 500), (1000, 0)]);
        let stream = Stream::new(std::slice::from_ref(&ring), None, false);
        assert_eq!(stream.reach(0, 1000), Reach::There);
        assert_eq!(stream.reach(990, 1001), Reach::Lost);
        assert_eq!(stream.reach(1200, 1600), Reach::Lost);
        assert_eq!(stream.reach(1500, 2500), Reach::There);
        assert_eq!(stream.reach(2400, 2501), Reach::NotYet);
        assert_eq!(stream.reach(9000, 9001), Reach::NotYet);
        let early = stream.until(1700);
        assert_eq!((early.reach(1500, 1700), early.reach(1500, 1701)), (Reach::There, Reach::NotYet));
    }
}
