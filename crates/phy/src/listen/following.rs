//! Tracking state: decodes an acquired cell subframe by subframe.

use super::lost::LostCell;
use super::rates::{half_band_hz, numerology};
use super::searching::Searching;
use super::usual::Usual;
use super::{Heard, Listener, Lock, MAX_GAP_S, Options, State, forget_before};
use crate::numerology::Numerology;
use crate::resample::Resampler;
use crate::sync::Ring;
use crate::sync::stream::{Conversion, Stream};
use crate::sync::track::{Place, Step, Tracker};

/// An acquired cell and its tracker.
pub(super) struct Following {
    pub(super) tracker: Tracker,
    /// Resampler to a rate with a supported FFT size; `None` if the samples already have such a rate.
    pub(super) conversion: Option<Conversion>,
    usual: Usual,
    /// Number of subframes decoded since the cell was found, and the raw sample of the previous loss.
    followed: u32,
    lost_before: Option<f64>,
}

/// Minimum log-likelihood ratio for which a CFI counts as certain: one in 150 is wrong.
const SURE_CFI: f32 = 5.0;

impl Listener {
    /// Starts to track a cell found in the raw samples before `next`. Returns `None` if the cell is not confirmed.
    pub(super) fn try_to_follow(&mut self, lock: &Lock, next: i64) -> Option<Following> {
        let Some(numerology) = numerology(&lock.cell, self.options.rate_hz) else {
            self.ladder.too_wide = Some(lock.cell);
            return None;
        };
        // Drop the samples beyond a gap that is too long to track a cell across: they are not decoded as this cell's
        // samples.
        let longest = (MAX_GAP_S * self.options.rate_hz) as i64;
        self.raw.iter_mut().for_each(|raw| raw.forget_beyond_gap(next, longest));
        // A 16-bit CRC sometimes matches by chance. Reference signals across the whole band do not, so they confirm the
        // cell.
        Following::new(lock, numerology, &self.raw, next, &self.options)
    }

    /// Decodes the next subframe. Returns `None` if its samples have not arrived yet.
    pub(super) fn follow(&mut self) -> Option<Option<Heard>> {
        self.look_for_stronger();
        if let Some(moved) = self.look_for_louder() {
            return Some(Some(moved));
        }
        let is_finished = self.is_at_end();
        let State::Following(following) = &mut self.state else { return Some(None) };
        let ladder = &mut self.ladder;
        let Following { tracker, conversion, usual, followed, .. } = &mut **following;
        let conversion = conversion.as_ref();
        let raw_sample = |sample: f64| conversion.map_or(sample, |conversion| conversion.raw_sample(sample));
        let antennas = self.raw.len();
        let step = tracker.step(&Stream::new(&self.raw, conversion, is_finished));
        let next = raw_sample(tracker.place().start) as i64;
        self.reached = self.reached.max(next.min(self.raw[0].end()));
        let rate_hz = self.options.rate_hz;
        // After a loss, samples are searched and decoded again. Do not return the same subframe twice.
        let is_put_out = |sample: f64| {
            self.put_out.is_some_and(|(pci, last)| {
                let apart = if pci == tracker.cell().pci { APART } else { APART_FROM_ANOTHER };
                sample - last < apart * rate_hz as f64 / 1000.0
            })
        };
        let search_from = |since: i64| State::Searching(Box::new(Searching::new(rate_hz, antennas, since)));
        let kept = next - KEPT_SUBFRAMES * (rate_hz / 1000) as i64;
        forget_before(&mut self.raw, self.watch.needed_from().map_or(kept, |from| from.min(kept)));
        if !matches!(step, Step::Wait | Step::Gap) {
            self.watch.pass(1);
        }
        Some(match step {
            Step::Wait => return None,
            Step::Gap => {
                ladder.gaps += 1;
                let run = self.raw[0].run_from(next);
                match run.filter(|run| run.start - next > (MAX_GAP_S * rate_hz) as i64) {
                    None => None,
                    Some(run) => {
                        ladder.losses += 1;
                        forget_before(&mut self.raw, run.start);
                        self.state = search_from(run.start);
                        Some(Heard::Lost)
                    }
                }
            }
            Step::Faint => {
                ladder.faint += 1;
                None
            }
            Step::Heard(observation) if is_put_out(raw_sample(observation.sample as f64)) => None,
            Step::Heard(mut observation) => {
                ladder.subframes += 1;
                *followed = followed.saturating_add(1);
                let loudness = tracker.loudness();
                usual.hear(observation.snr_db, loudness);
                self.louder.hear(loudness);
                ladder.sure_cfis += u64::from(observation.cfi_margin > SURE_CFI);
                let sample = raw_sample(observation.sample as f64);
                self.put_out = Some((tracker.cell().pci, sample));
                observation.sample = libm::round(sample) as i64;
                Some(Heard::Subframe(observation))
            }
            Step::Lost { since } => {
                ladder.losses += 1;
                let since = (raw_sample(since as f64) as i64).clamp(self.raw[0].start(), self.raw[0].end());
                self.lost = Some(following.lost(rate_hz));
                forget_before(&mut self.raw, since);
                self.state = search_from(since);
                Some(Heard::Lost)
            }
        })
    }
}

/// Number of subframes after acquisition during which the listener switches at once to another cell that is stronger by
/// [`OUTSHINES_DB`] on average.
///
/// Chosen: the stronger of two cells is found first, unless it fades at that moment. At walking pace such a fade is over
/// after a tenth of a second.
const NEW_SUBFRAMES: u32 = 300;

/// Minimum mean power of the other cell relative to the tracked one for that switch (dB).
const OUTSHINES_DB: f32 = 5.0;

/// Minimum distance between the starts of two different subframes of the same cell (subframes).
///
/// Chosen: samples may be missing without notice, so that a subframe starts too early. The subframes of another cell may
/// start at any time; the remaining distance keeps their numbers apart from those of the previous cell.
const APART: f64 = 0.5;

/// Minimum distance between the start of a subframe and the start of the previous cell's last subframe (subframes).
const APART_FROM_ANOTHER: f64 = 0.9;

/// Number of subframes before the next one whose samples are kept during tracking: they may turn out not to have been
/// received.
const KEPT_SUBFRAMES: i64 = 5;

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
        let place = Place { sfn: lock.sfn, number: 0, start, cfo_hz: lock.cfo_hz, drift: 0.0 };
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
