//! The search for a cell, stretch by stretch.

use num_complex::Complex32;

use super::following::Following;
use super::lost::LostCell;
use super::rates::numerology;
use super::{Heard, KEPT_S, Listener, Lock, State, forget_before};
use crate::cell::Cell;
use crate::resample::Resampler;
use crate::sync::broadcast::{Broadcast, BroadcastReader};
use crate::sync::search::{Candidate, Duplex, Search};
use crate::sync::{Ring, VIEW_HZ, VIEW_PASSBAND_HZ};

/// A stretch of samples that the listener searches.
pub(super) struct Searching {
    /// What each antenna hears.
    pub(super) views: Vec<View>,
    /// Number of the raw sample at the time of the view's first sample.
    pub(super) origin: f64,
    /// Number of the next raw sample to look at.
    pub(super) next: i64,
    /// Length of the view at the last search.
    searched: usize,
}

/// Samples of an antenna at [`VIEW_HZ`].
pub(super) struct View {
    resampler: Option<Resampler>,
    pub(super) samples: Vec<Complex32>,
    /// The same without tones, if there are any, as of the last search.
    clean: Option<Vec<Complex32>>,
}

/// Most samples of the view in one search; how many the first search takes; and after how many more the listener
/// searches again, early and later.
///
/// Chosen: 40 ms hold a whole block of the PBCH. The first 10 ms hold a frame, and enough subframes for the loops to
/// settle: after 5 ms the search finds many cells, but badly where noise is loud. A cell of medium strength needs the
/// first 20 ms: until then the listener searches every 5 ms, afterwards every 20 ms. That takes half of the time that
/// passes.
const LONGEST_VIEW: usize = VIEW_HZ as usize / 25;
const FIRST_VIEW: usize = VIEW_HZ as usize / 100;
const SEARCH_STEP: usize = VIEW_HZ as usize / 200;
const LATER_STEP: usize = VIEW_HZ as usize / 50;

/// Samples of the view in a frame.
const FRAME_SAMPLES: f64 = (VIEW_HZ / 100) as f64;

/// Samples of the view that may still be inside the filter.
const IN_FILTER: usize = 64;

/// Samples are kept for one second divided by this while no cell is found.
///
/// Chosen: 200 ms, 50 MB at 30.72 Msps. A weak cell may be found late, and is then read from the beginning.
const KEPT: u64 = 5;

/// Number of cells of a search whose PBCH the listener reads.
const BEST: usize = 3;

/// A cell is taken off another if it has at least this share of its power.
///
/// Chosen: 3 dB below. In fades the stronger of two cells is the weaker at times, and a cell that is nearly as strong is worth
/// taking off too.
const AS_LOUD: f32 = 0.5;

/// Beside a cell of at least this share of its power, the listener looks again soon: 6 dB below.
const NEAR: f32 = 0.25;

/// In place of a cell that was lost a moment ago another is taken if it is so many times as loud as that one usually was.
///
/// Chosen: 1.8 dB. Twenty drawings of two cells that are equally loud for half a second before one is 8 dB louder for 0.7 s,
/// each full of data: 0.53 of the messages of the louder one are read, 0.41 without the rule, and as many with 0 dB or 3 dB.
/// Forty in which one is 8 dB louder all along are as without it.
const AS_LOUD_AS_LOST: f32 = 1.5;

/// In noise, the correlation with a PSS hardly ever reaches this share of the power.
const HEARD_PRIMARY: f32 = 0.1;

impl Listener {
    /// Looks at some more samples. `None` if there are none; otherwise whether a cell was found.
    pub(super) fn find(&mut self) -> Option<Option<Heard>> {
        let is_finished = self.is_at_end();
        let State::Searching(searching) = &mut self.state else { return Some(None) };
        let rate_hz = self.options.rate_hz;
        let run = self.raw[0].run_from(searching.next)?;
        if searching.next < run.start {
            let lost = run.start - searching.next;
            if lost as u64 / LONGEST_VIEW as u64 <= rate_hz / VIEW_HZ {
                // Time goes on: the samples before and after the gap are searched together.
                searching.look_at_nothing(lost as usize);
                return Some(None);
            }
            if searching.has_fresh() {
                return Some(self.search());
            }
            forget_before(&mut self.raw, run.start - (KEPT_S * rate_hz) as i64);
            searching.restart(run.start);
        }
        let there = (run.end - searching.next) as usize;
        let end = self.raw[0].end();
        let goes_on = run.end == end && !is_finished;
        // Whole steps only: so the time at which a cell is found does not depend on the pieces in which samples come.
        let step = (rate_hz / 200) as usize;
        if there < step && goes_on {
            return None;
        }
        let count = step.min(there);
        searching.look(&self.raw, count);
        self.watch.pass(count as u64 * 1000 / rate_hz);
        self.reached = self.reached.max(searching.next);
        // At the very end, the rest is searched as well.
        let is_last = is_finished && searching.next == end;
        if is_last && !searching.has_fresh() {
            return None;
        }
        let enough = match searching.searched {
            0 => FIRST_VIEW,
            searched if searched + IN_FILTER < LATER_STEP => SEARCH_STEP,
            _ => LATER_STEP,
        };
        if searching.len() + IN_FILTER < searching.searched + enough && !is_last {
            return Some(None);
        }
        Some(self.search())
    }

    /// Searches the view.
    fn search(&mut self) -> Option<Heard> {
        let State::Searching(searching) = &mut self.state else { return None };
        searching.searched = searching.len();
        let found = self.try_candidates();
        let State::Searching(searching) = &mut self.state else { return found };
        let rate_hz = self.options.rate_hz;
        // Half of the view is kept: a signal across its end is then whole in the next search.
        if searching.len() >= LONGEST_VIEW {
            let gone = searching.len() - LONGEST_VIEW + LATER_STEP;
            searching.forget(gone, rate_hz);
        }
        forget_before(&mut self.raw, searching.next - (KEPT_S * rate_hz) as i64);
        self.raw.iter_mut().for_each(|raw| raw.keep((rate_hz / KEPT) as usize));
        found
    }

    /// Reads the PBCH of the best cells of the view, and follows the first that can be followed. At the end of the
    /// samples, a cell that was followed before needs no PBCH. A cell that was lost a moment ago is the only one that
    /// counts, unless another is louder than that one was. If a cell that is asked for has stronger ones beside it, the first of them is taken off the samples.
    fn try_candidates(&mut self) -> Option<Heard> {
        let State::Searching(searching) = &mut self.state else { return None };
        let (candidates, primary) = searching.candidates(&mut self.search);
        let State::Searching(searching) = &self.state else { return None };
        self.ladder.searches += 1;
        self.ladder.primaries += u64::from(primary > HEARD_PRIMARY);
        self.ladder.secondaries += u64::from(!candidates.is_empty());
        let is_last = self.is_at_end() && searching.next == self.raw[0].end();
        let next = searching.next;
        let asked = self.options.pci;
        let held = self.lost.filter(|lost| lost.is_held(next, asked));
        let is_asked_for = |pci: u16| asked.is_none_or(|asked| asked == pci);
        let wanted = |candidate: &&Candidate| {
            is_asked_for(candidate.pci) && held.is_none_or(|lost| lost.pci() == candidate.pci)
        };
        let louder =
            held.filter(|_| asked.is_none()).and_then(|lost| self.louder_than(&lost, &candidates, next));
        let found = louder.or_else(|| {
            candidates.iter().filter(wanted).find_map(|candidate| {
                let lock = self.read_lock(candidate, is_last)?;
                Some((lock, self.try_to_follow(&lock, next)?))
            })
        });
        if self.beside.is_none() && self.watch.is_rested() {
            let loudness = found.as_ref().map(|(_, following)| following.tracker.found_loudness());
            let State::Searching(searching) = &self.state else { return None };
            let (stronger, is_near) = self.stronger(searching, &candidates, next, loudness);
            // Of two cells, the one that is found first may be the weaker.
            let is_other = |other: &&Candidate| {
                asked.is_none() && found.as_ref().is_some_and(|(lock, _)| lock.cell.pci != other.pci)
            };
            let is_other_there = candidates
                .iter()
                .filter(is_other)
                .any(|other| read_broadcast(&searching.views, other).is_some());
            if stronger.is_some_and(|stronger| self.take_off(stronger)) {
                return None;
            }
            // Where no cell is asked for, one that is lost in its fades and found again is still compared with others.
            let found = found.as_ref().map(|(lock, _)| lock.cell.pci);
            let is_again = found.is_some() && found == self.lost.as_ref().map(LostCell::pci);
            if asked.is_some() || !is_again {
                self.watch.begin(is_near || is_other_there);
            }
        }
        // A cell in a fade is not found by its synchronisation signals, but still by its reference signals.
        let after = self.reached.max(0) as u64;
        let expected = held.filter(|lost| is_asked_for(lost.pci()));
        let expected = expected.map(|lost| Lock { after, ..lost.expected(next) });
        let found =
            found.or_else(|| expected.and_then(|lock| Some((lock, self.try_to_follow(&lock, next)?))));
        // At the end of the samples, nothing is gained by waiting for a cell that was lost.
        let mut others = candidates.iter().filter(|other| is_last && is_asked_for(other.pci));
        let found = found.or_else(|| {
            held?;
            others.find_map(|other| {
                let lock = self.read_lock(other, is_last)?;
                Some((lock, self.try_to_follow(&lock, next)?))
            })
        });
        if let Some((lock, mut following)) = found {
            self.ladder.locks += 1;
            self.louder.begin(lock.cell.pci, self.lost.as_ref().map(LostCell::pci));
            self.lost.iter().for_each(|lost| following.remember(lost));
            self.state = State::Following(Box::new(following));
            return Some(Heard::Locked(lock));
        }
        let State::Searching(searching) = &self.state else { return None };
        // A user who asks for a cell that is not there should learn which cells are.
        for other in &candidates {
            if !is_asked_for(other.pci)
                && !self.ladder.others.contains(&Some(other.pci))
                && read_broadcast(&searching.views, other).is_some()
            {
                self.ladder.hear_other(other.pci);
            }
        }
        self.ladder.cfo_hz = candidates.first().map_or(self.ladder.cfo_hz, |best| best.cfo_hz);
        None
    }

    /// Reads the PBCH of a candidate.
    fn read_lock(&mut self, candidate: &Candidate, is_last: bool) -> Option<Lock> {
        let State::Searching(searching) = &self.state else { return None };
        let read = read_broadcast(&searching.views, candidate);
        self.ladder.broadcasts += u64::from(read.is_some());
        let rate_hz = self.options.rate_hz;
        let raw_sample = |of_view: f64| searching.origin + of_view * rate_hz as f64 / VIEW_HZ as f64;
        let known = || {
            let lost = self.lost.filter(|_| is_last)?;
            // The last frame: the samples before it may hold only the disturbance by which the cell was lost.
            let frames = (searching.len() as f64 - candidate.frame_start) / FRAME_SAMPLES;
            let frame = candidate.frame_start + libm::floor(frames) * FRAME_SAMPLES;
            Some((lost.broadcast(candidate, raw_sample(frame))?, frame))
        };
        let (broadcast, frame) = read.or_else(known)?;
        self.ladder.cfo_hz = candidate.cfo_hz;
        if candidate.duplex == Duplex::Tdd {
            self.ladder.tdd += 1;
            return None;
        }
        let (frame_start, after) = (raw_sample(frame), self.reached.max(0) as u64);
        let cell = cell_of(candidate, &broadcast);
        Some(Lock { cell, cfo_hz: candidate.cfo_hz, frame_start, sfn: broadcast.sfn, after })
    }

    /// The first other cell that is heard now louder than the lost one usually was. A fade of the one does not make another
    /// that loud: the lost one was the weaker of both.
    fn louder_than(&self, lost: &LostCell, candidates: &[Candidate], next: i64) -> Option<(Lock, Following)> {
        let State::Searching(searching) = &self.state else { return None };
        let others: Vec<Candidate> =
            candidates.iter().filter(|other| other.pci != lost.pci()).copied().collect();
        let mut others = self.others(searching, &others, next);
        others.find(|(_, other)| other.tracker.found_loudness() >= AS_LOUD_AS_LOST * lost.usual().loudness)
    }

    /// The first cell beside the one that is asked for that is heard as loud as that one, which has a `loudness` unless it
    /// was not found; and that can be followed in the raw samples before `next`. And whether another is nearly as loud.
    pub(super) fn stronger(
        &self,
        searching: &Searching,
        candidates: &[Candidate],
        next: i64,
        loudness: Option<f32>,
    ) -> (Option<Following>, bool) {
        let Some(asked) = self.options.pci else { return (None, false) };
        let candidates: Vec<Candidate> =
            candidates.iter().filter(|candidate| candidate.pci != asked).copied().collect();
        let mut is_near = false;
        for (_, other) in self.others(searching, &candidates, next) {
            let ratio = loudness.map_or(f32::INFINITY, |loudness| other.tracker.found_loudness() / loudness);
            if ratio >= AS_LOUD {
                return (Some(other), true);
            }
            is_near |= ratio >= NEAR;
        }
        (None, is_near)
    }

    /// The cells among `candidates` that can be followed in the raw samples before `next`.
    pub(super) fn others(
        &self,
        searching: &Searching,
        candidates: &[Candidate],
        next: i64,
    ) -> impl Iterator<Item = (Lock, Following)> {
        let after = self.reached.max(0) as u64;
        candidates.iter().filter(|candidate| candidate.duplex == Duplex::Fdd).filter_map(move |candidate| {
            let (broadcast, frame) = read_broadcast(&searching.views, candidate)?;
            let frame_start = searching.origin + frame * self.options.rate_hz as f64 / VIEW_HZ as f64;
            let (cfo_hz, sfn) = (candidate.cfo_hz, broadcast.sfn);
            let lock = Lock { cell: cell_of(candidate, &broadcast), cfo_hz, frame_start, sfn, after };
            let numerology = numerology(&lock.cell, self.options.rate_hz)?;
            Some((lock, Following::new(&lock, numerology, &self.raw, next, &self.options)?))
        })
    }
}

impl Searching {
    pub(super) fn new(rate_hz: u64, antennas: usize, next: i64) -> Searching {
        let view = |_| View {
            // At the view's own rate there is nothing to do.
            resampler: Resampler::new(rate_hz, VIEW_HZ, VIEW_PASSBAND_HZ).filter(|_| rate_hz != VIEW_HZ),
            samples: Vec::new(),
            clean: None,
        };
        let views = (0..antennas).map(view).collect();
        Searching { views, origin: next as f64, next, searched: 0 }
    }

    /// Begins again with raw sample number `next`.
    pub(super) fn restart(&mut self, next: i64) {
        for view in &mut self.views {
            view.samples.clear();
            view.clean = None;
            view.resampler.iter_mut().for_each(Resampler::clear);
        }
        (self.origin, self.next, self.searched) = (next as f64, next, 0);
    }

    /// Looks at the next `count` raw samples, which are there.
    pub(super) fn look(&mut self, raw: &[Ring], count: usize) {
        for (raw, view) in raw.iter().zip(&mut self.views) {
            raw.pieces(self.next, count).into_iter().flatten().for_each(|samples| view.look(samples));
        }
        self.next += count as i64;
    }

    /// Samples of the view of each antenna.
    pub(super) fn len(&self) -> usize {
        self.views[0].samples.len()
    }

    fn has_fresh(&self) -> bool {
        self.len() > self.searched
    }

    /// `count` samples were lost.
    fn look_at_nothing(&mut self, count: usize) {
        let nothing = [Complex32::default(); 4096];
        for done in (0..count).step_by(nothing.len()) {
            let nothing = &nothing[..nothing.len().min(count - done)];
            self.views.iter_mut().for_each(|view| view.look(nothing));
        }
        self.next += count as i64;
    }

    fn forget(&mut self, count: usize, rate_hz: u64) {
        self.views.iter_mut().for_each(|view| drop(view.samples.drain(..count)));
        self.searched -= count;
        self.origin += count as f64 * rate_hz as f64 / VIEW_HZ as f64;
    }

    /// The cells that the antennas hear, each by the antenna that hears it best, the best cell first; and how well the
    /// best PSS correlated.
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
    /// The samples as they were searched last.
    fn clean(&self) -> &[Complex32] {
        self.clean.as_ref().unwrap_or(&self.samples)
    }

    fn look(&mut self, samples: &[Complex32]) {
        let first = self.samples.len();
        match &mut self.resampler {
            Some(resampler) => resampler.push(samples, &mut self.samples),
            None => self.samples.extend_from_slice(samples),
        }
        // Infinite values and NaN would spread over all correlations.
        for sample in &mut self.samples[first..] {
            if !(sample.re.is_finite() && sample.im.is_finite()) {
                *sample = Complex32::default();
            }
        }
    }
}

/// What the first frames of a candidate that can be read tell, and where in the view the last of them begins.
fn read_broadcast(views: &[View], candidate: &Candidate) -> Option<(Broadcast, f64)> {
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

/// The cell of a candidate, with what it broadcasts.
fn cell_of(candidate: &Candidate, broadcast: &Broadcast) -> Cell {
    Cell {
        pci: candidate.pci,
        bandwidth: broadcast.mib.bandwidth,
        ports: broadcast.ports,
        cp: candidate.cp,
        phich_duration: broadcast.mib.phich_duration,
        phich_resource: broadcast.mib.phich_resource,
    }
}
