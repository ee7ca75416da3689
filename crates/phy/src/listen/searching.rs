//! State of a cell search: windows ("views") of samples, the cells detected in them, and their broadcast.

use num_complex::Complex32;

use crate::pbch::Broadcast;
use crate::resample::Resampler;
use crate::sync::broadcast::BroadcastReader;
use crate::sync::search::{Candidate, Search};
use crate::sync::{Ring, VIEW_HZ, VIEW_PASSBAND_HZ};

/// The window of samples that the listener searches.
pub(super) struct Searching {
    /// Samples of each antenna at the search rate.
    pub(super) views: Vec<View>,
    /// Number of the raw sample that coincides with the first sample of the view. It may be fractional.
    pub(super) origin: f64,
    /// Number of the next raw sample to examine.
    pub(super) next: i64,
    /// Length of the view at the last search, in samples of the view.
    pub(super) searched: usize,
}

/// Samples of one antenna, resampled to [`VIEW_HZ`].
pub(super) struct View {
    resampler: Option<Resampler>,
    pub(super) samples: Vec<Complex32>,
    /// The samples with narrow-band tones removed, as in the last search; `None` if the search found no tones.
    clean: Option<Vec<Complex32>>,
}

/// Maximum length of the view in one search (samples of the view).
///
/// Chosen: 40 ms contain a whole PBCH block. The first 10 ms contain a frame, and enough subframes for the loops to settle:
/// after 5 ms the search finds many cells, but unreliably in strong noise. A cell of medium strength needs the first 20 ms.
/// So the listener searches every 5 ms until then, and every 20 ms afterwards. The searches take half of real time.
pub(super) const MAX_VIEW: usize = VIEW_HZ as usize / 25;

/// Interval between searches after the first 20 ms (samples of the view): 20 ms.
pub(super) const LATER_STEP: usize = VIEW_HZ as usize / 50;

/// Length of a frame, in samples of the view.
pub(super) const FRAME_SAMPLES: f64 = (VIEW_HZ / 100) as f64;

/// Maximum number of cells per search whose PBCH the listener decodes.
const BEST: usize = 3;

impl Searching {
    pub(super) fn new(rate_hz: u64, antennas: usize, next: i64) -> Searching {
        let view = |_| View {
            // At the view's own sample rate no resampling is needed.
            resampler: Resampler::new(rate_hz, VIEW_HZ, VIEW_PASSBAND_HZ).filter(|_| rate_hz != VIEW_HZ),
            samples: Vec::new(),
            clean: None,
        };
        let views = (0..antennas).map(view).collect();
        Searching { views, origin: next as f64, next, searched: 0 }
    }

    /// Restarts the view at raw sample number `next`.
    pub(super) fn restart(&mut self, next: i64) {
        for view in &mut self.views {
            view.samples.clear();
            view.clean = None;
            view.resampler.iter_mut().for_each(Resampler::clear);
        }
        (self.origin, self.next, self.searched) = (next as f64, next, 0);
    }

    /// Appends the next `count` raw samples to the view. The samples must be in `raw`.
    pub(super) fn look(&mut self, raw: &[Ring], count: usize) {
        for (raw, view) in raw.iter().zip(&mut self.views) {
            raw.pieces(self.next, count).into_iter().flatten().for_each(|samples| view.look(samples));
        }
        self.next += count as i64;
    }

    /// Number of samples in the view of each antenna.
    pub(super) fn len(&self) -> usize {
        self.views[0].samples.len()
    }

    /// Returns whether the view has samples that were not searched yet.
    pub(super) fn has_fresh(&self) -> bool {
        self.len() > self.searched
    }

    /// Appends zeros to the view for `count` lost samples.
    pub(super) fn look_at_nothing(&mut self, count: usize) {
        let nothing = [Complex32::default(); 4096];
        for done in (0..count).step_by(nothing.len()) {
            let nothing = &nothing[..nothing.len().min(count - done)];
            self.views.iter_mut().for_each(|view| view.look(nothing));
        }
        self.next += count as i64;
    }

    /// Drops the first `count` samples of the view.
    pub(super) fn forget(&mut self, count: usize, rate_hz: u64) {
        self.views.iter_mut().for_each(|view| drop(view.samples.drain(..count)));
        self.searched -= count;
        self.origin += count as f64 * rate_hz as f64 / VIEW_HZ as f64;
    }

    /// Returns the cells detected, each as received by the antenna with the best signal, best cell first, and the highest
    /// PSS correlation.
    pub(super) fn candidates(&mut self, search: &mut Search) -> (Vec<Candidate>, f32) {
        let (mut all, mut primary): (Vec<Candidate>, f32) = (Vec::new(), 0.0);
        for view in &mut self.views {
            view.clean = search.clean(&view.samples);
            all.extend(search.find(view.clean(), BEST));
            primary = primary.max(search.strongest_primary());
        }
        if self.views.len() > 1 {
            let fit = |candidate: &Candidate| candidate.primary * candidate.secondary;
            all.sort_by(|a, b| fit(b).total_cmp(&fit(a)));
            let mut found: Vec<Candidate> = Vec::new();
            for candidate in all {
                if found.len() < BEST && found.iter().all(|other| other.pci != candidate.pci) {
                    found.push(candidate);
                }
            }
            all = found;
        }
        (all, primary)
    }
}

impl View {
    /// Returns the samples that the last search used.
    fn clean(&self) -> &[Complex32] {
        self.clean.as_ref().unwrap_or(&self.samples)
    }

    fn look(&mut self, samples: &[Complex32]) {
        let first = self.samples.len();
        match &mut self.resampler {
            Some(resampler) => resampler.push(samples, &mut self.samples),
            None => self.samples.extend_from_slice(samples),
        }
        // Replace infinite and NaN samples by zero: they would spread over all correlations.
        for sample in &mut self.samples[first..] {
            if !(sample.re.is_finite() && sample.im.is_finite()) {
                *sample = Complex32::default();
            }
        }
    }
}

/// Decodes the PBCH of a candidate from its first readable frames. Returns the content and the start of the last of these
/// frames in the view.
pub(super) fn read_broadcast(views: &[View], candidate: &Candidate) -> Option<(Broadcast, f64)> {
    let mut reader = BroadcastReader::new(candidate.pci, candidate.cp);
    let mut start = candidate.frame_start;
    while start < views[0].clean().len() as f64 {
        let here = |first| views.iter().map(move |view| &view.clean()[first..]);
        let first = usize::try_from(libm::round(start) as i64).ok();
        let first = first.filter(|first| *first <= views[0].clean().len());
        if let Some(broadcast) = first.and_then(|first| reader.read(here(first), candidate.cfo_hz)) {
            return Some((broadcast, start));
        }
        start += FRAME_SAMPLES;
    }
    None
}
