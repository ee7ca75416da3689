//! State of an acquired cell: its tracker, and averages of its signal quality.

use super::lost::LostCell;
use super::rates::half_band_hz;
use super::usual::Usual;
use super::{Lock, Options};
use crate::numerology::Numerology;
use crate::resample::Resampler;
use crate::sync::Ring;
use crate::sync::stream::{Conversion, Stream};
use crate::sync::track::{FramePosition, Tracker};

/// An acquired cell and its tracker.
pub(super) struct Following {
    pub(super) tracker: Tracker,
    /// Resampler to a rate with a supported FFT size; `None` if the samples already have such a rate.
    pub(super) conversion: Option<Conversion>,
    pub(super) usual: Usual,
    /// Number of subframes decoded since the cell was found, and the raw sample of the previous loss.
    pub(super) followed: u32,
    lost_before: Option<f64>,
}

/// Number of subframes after acquisition during which the listener switches at once to another cell that is stronger by
/// [`OUTSHINES_DB`] on average.
///
/// Chosen: the stronger of two cells is found first, unless it fades at that moment. At walking pace such a fade is over
/// after a tenth of a second.
const NEW_SUBFRAMES: u32 = 300;

/// Minimum mean power of the other cell relative to the tracked cell for a switch within [`NEW_SUBFRAMES`] (dB).
const OUTSHINES_DB: f32 = 5.0;

impl Following {
    /// Estimates timing and channel of the cell from the samples before number `searched`. Returns `None` if the cell is
    /// not confirmed.
    pub(super) fn new(
        lock: &Lock,
        numerology: Numerology,
        raw: &[Ring],
        searched: i64,
        options: &Options,
    ) -> Option<Following> {
        let own_hz = u64::from(numerology.sample_rate_hz());
        let conversion = if own_hz == options.rate_hz {
            None
        } else {
            let resampler = Resampler::new(options.rate_hz, own_hz, half_band_hz(numerology.bandwidth()))?;
            Some(Conversion::new(resampler, raw[0].start()))
        };
        let start = match &conversion {
            None => lock.frame_start,
            Some(conversion) => conversion.sample(lock.frame_start),
        };
        let place = FramePosition { sfn: lock.sfn, number: 0, start, cfo_hz: lock.cfo_hz, drift: 0.0 };
        let mut tracker = Tracker::new(lock.cell, numerology, place, options.transform, raw.len());
        let is_there = tracker.settle(&Stream::new(raw, conversion.as_ref(), false).until(searched));
        is_there.then_some(Following {
            tracker,
            conversion,
            usual: Usual::default(),
            followed: 0,
            lost_before: None,
        })
    }

    /// Converts a sample number of the tracker to a raw sample number.
    pub(super) fn raw_sample(&self, sample: f64) -> f64 {
        self.conversion.as_ref().map_or(sample, |conversion| conversion.raw_sample(sample))
    }

    /// Returns the averages of the cell's signal quality.
    pub(super) fn usual(&self) -> &Usual {
        &self.usual
    }

    /// Returns the PCI and relative power (dB) of another cell that has been stronger since this cell was found.
    pub(super) fn outshone(&self) -> Option<(u16, f32)> {
        let is_new = self.usual.subframes < NEW_SUBFRAMES;
        self.tracker.louder_beside().filter(|(_, louder_db)| is_new && *louder_db >= OUTSHINES_DB)
    }

    /// Restores the averages of a lost cell if this is the same cell.
    pub(super) fn remember(&mut self, lost: &LostCell) {
        if lost.pci() == self.tracker.cell().pci {
            self.usual = *lost.usual();
            self.lost_before = Some(lost.held_from());
            lost.beside().into_iter().for_each(|sight| self.tracker.expect_beside(sight));
        }
    }

    /// Returns the state of the cell at its loss.
    pub(super) fn lost(&self, rate_hz: u64) -> LostCell {
        let place = self.tracker.place();
        let start = self.raw_sample(place.start);
        let subframe = self.raw_sample(place.start + self.tracker.subframe_samples()) - start;
        let lost = LostCell::new(*self.tracker.cell(), place, start, subframe, rate_hz);
        lost.with_usual(self.usual)
            .with_beside(self.tracker.beside())
            .lost_again(self.lost_before, self.followed)
    }
}
