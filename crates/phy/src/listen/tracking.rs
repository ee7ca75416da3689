//! Tracking: the listener decodes an acquired cell subframe by subframe.

use super::following::Following;
use super::rates::numerology;
use super::searching::Searching;
use super::{Listener, ListenerEvent, Lock, MAX_GAP_S, State, forget_before};
use crate::sync::stream::Stream;
use crate::sync::track::Step;

/// Minimum log-likelihood ratio for which a CFI counts as certain. At this ratio, one in 150 CFIs is wrong.
const SURE_CFI: f32 = 5.0;

/// Minimum distance between the starts of two different subframes of the same cell (subframes).
///
/// Chosen: samples may be missing without notice, so that a subframe starts up to half a subframe too early.
const APART: f64 = 0.5;

/// Minimum distance between the start of a subframe and the start of the previous cell's last subframe (subframes). The
/// subframes of the new cell may start at any time. This distance keeps their numbers distinct from the numbers of the
/// previous cell.
const APART_FROM_ANOTHER: f64 = 0.9;

/// Number of subframes before the next subframe whose samples are kept during tracking. The tracker may find out later
/// that the cell was not received in them.
const KEPT_SUBFRAMES: i64 = 5;

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
        // A 16-bit CRC sometimes matches by chance. Reference signals across the whole band do not match by chance, so
        // they confirm the cell.
        Following::new(lock, numerology, &self.raw, next, &self.options)
    }

    /// Decodes the next subframe. Returns `None` if its samples have not arrived yet.
    pub(super) fn follow(&mut self) -> Option<Option<ListenerEvent>> {
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
                        Some(ListenerEvent::Lost)
                    }
                }
            }
            Step::Faint => {
                ladder.faint += 1;
                None
            }
            Step::Subframe(observation) if is_put_out(raw_sample(observation.sample as f64)) => None,
            Step::Subframe(mut observation) => {
                ladder.subframes += 1;
                *followed = followed.saturating_add(1);
                let loudness = tracker.loudness();
                usual.hear(observation.snr_db, loudness);
                self.louder.hear(loudness);
                ladder.sure_cfis += u64::from(observation.cfi_margin > SURE_CFI);
                let sample = raw_sample(observation.sample as f64);
                self.put_out = Some((tracker.cell().pci, sample));
                observation.sample = libm::round(sample) as i64;
                Some(ListenerEvent::Subframe(observation))
            }
            Step::Lost { since } => {
                ladder.losses += 1;
                let since = (raw_sample(since as f64) as i64).clamp(self.raw[0].start(), self.raw[0].end());
                self.lost = Some(following.lost(rate_hz));
                forget_before(&mut self.raw, since);
                self.state = search_from(since);
                Some(ListenerEvent::Lost)
            }
        })
    }
}
