//! Acquisition: the listener searches until a cell is found and can be tracked.

use super::following::Following;
use super::lost::LostCell;
use super::rates::numerology;
use super::searching::{FRAME_SAMPLES, LATER_STEP, MAX_VIEW, Searching, read_broadcast};
use super::{KEPT_S, Listener, ListenerEvent, Lock, State, forget_before};
use crate::cell::Cell;
use crate::pbch::Broadcast;
use crate::sync::VIEW_HZ;
use crate::sync::search::{Candidate, Duplex};

/// Divisor for the length of the sample buffer while no cell is found: one second divided by this number.
///
/// Chosen: 200 ms, 50 MB at 30.72 Msps. A weak cell may be found late; its samples are then decoded from the start of the
/// buffer.
const KEPT: u64 = 5;

/// Minimum power of another cell, relative to the requested cell, for which the other cell is subtracted.
///
/// Chosen: 3 dB below. In a fade, the stronger of two cells is temporarily the weaker cell, and subtracting a cell that
/// is nearly as strong helps too.
const AS_LOUD: f32 = 0.5;

/// Minimum relative power of a neighbour for which the listener checks again soon: 6 dB below the tracked cell.
const NEAR: f32 = 0.25;

/// Minimum power of another cell, relative to the usual power of a cell lost a moment ago, for which the other cell
/// replaces it.
///
/// Chosen: 1.8 dB. The rule was evaluated in twenty random draws: two fully loaded cells are equally strong for half a
/// second, and then one of them is 8 dB stronger for 0.7 s. With this rule, the decoder reads 53 % of the stronger
/// cell's messages; without the rule, and with 0 dB or 3 dB, it reads 41 %. The rule makes no difference in forty draws
/// in which one cell is 8 dB stronger throughout.
const AS_LOUD_AS_LOST: f32 = 1.5;

/// Minimum correlation with a PSS, as a share of the received power, for which the PSS counts as detected. Noise rarely
/// exceeds this value.
const HEARD_PRIMARY: f32 = 0.1;

/// Minimum length of the view for the first search (samples of the view): 10 ms.
const FIRST_VIEW: usize = VIEW_HZ as usize / 100;

/// Interval between searches in the first 20 ms (samples of the view): 5 ms.
const SEARCH_STEP: usize = VIEW_HZ as usize / 200;

/// Maximum number of samples of the view still held inside the resampling filter.
const IN_FILTER: usize = 64;

impl Listener {
    /// Examines the next samples. Returns `None` if there are no samples; otherwise the event of a found cell, if any.
    pub(super) fn find(&mut self) -> Option<Option<ListenerEvent>> {
        let is_finished = self.is_at_end();
        let State::Searching(searching) = &mut self.state else { return Some(None) };
        let rate_hz = self.options.rate_hz;
        let run = self.raw[0].run_from(searching.next)?;
        if searching.next < run.start {
            let lost = run.start - searching.next;
            if lost as u64 / MAX_VIEW as u64 <= rate_hz / VIEW_HZ {
                // Fill a short gap with zeros, so that the samples before and after the gap are searched together.
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
        // Use whole steps only, so that the time at which a cell is found does not depend on how the input is divided.
        let step = (rate_hz / 200) as usize;
        if there < step && goes_on {
            return None;
        }
        let count = step.min(there);
        searching.look(&self.raw, count);
        self.watch.pass(count as u64 * 1000 / rate_hz);
        self.reached = self.reached.max(searching.next);
        // At the end of the input, search the remaining samples too.
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
    fn search(&mut self) -> Option<ListenerEvent> {
        let State::Searching(searching) = &mut self.state else { return None };
        searching.searched = searching.len();
        let found = self.try_candidates();
        let State::Searching(searching) = &mut self.state else { return found };
        let rate_hz = self.options.rate_hz;
        // Keep half of the view, so that a signal that crosses the end of this view lies completely within the next
        // view.
        if searching.len() >= MAX_VIEW {
            let gone = searching.len() - MAX_VIEW + LATER_STEP;
            searching.forget(gone, rate_hz);
        }
        forget_before(&mut self.raw, searching.next - (KEPT_S * rate_hz) as i64);
        self.raw.iter_mut().for_each(|raw| raw.keep((rate_hz / KEPT) as usize));
        found
    }

    /// Decodes the PBCH of the best cells of the view and starts to track the first cell that can be tracked. At the
    /// end of the samples, a cell that was tracked before needs no PBCH. If a cell was lost a moment ago, only that
    /// cell is accepted, unless another cell is stronger than the lost cell was on average. If other cells are stronger
    /// than a requested cell, the first of them is subtracted from the samples.
    fn try_candidates(&mut self) -> Option<ListenerEvent> {
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
            // The cell that is found first may be the weaker of two cells.
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
            // If no PCI is requested, keep comparing a cell that was lost in a fade and found again with other cells.
            let found = found.as_ref().map(|(lock, _)| lock.cell.pci);
            let is_again = found.is_some() && found == self.lost.as_ref().map(LostCell::pci);
            if asked.is_some() || !is_again {
                self.watch.begin(is_near || is_other_there);
            }
        }
        // In a fade, the synchronisation signals of a cell cannot be detected, but its reference signals still can be
        // detected.
        let after = self.reached.max(0) as u64;
        let expected = held.filter(|lost| is_asked_for(lost.pci()));
        let expected = expected.map(|lost| Lock { after, ..lost.expected(next) });
        let found =
            found.or_else(|| expected.and_then(|lock| Some((lock, self.try_to_follow(&lock, next)?))));
        // At the end of the samples, waiting for a lost cell gains nothing.
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
            return Some(ListenerEvent::Locked(lock));
        }
        let State::Searching(searching) = &self.state else { return None };
        // Record which other cells are present, for a user who requests a cell that is absent.
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

    /// Decodes the PBCH of a candidate and returns the lock it allows.
    fn read_lock(&mut self, candidate: &Candidate, is_last: bool) -> Option<Lock> {
        let State::Searching(searching) = &self.state else { return None };
        let read = read_broadcast(&searching.views, candidate);
        self.ladder.broadcasts += u64::from(read.is_some());
        let rate_hz = self.options.rate_hz;
        let raw_sample = |of_view: f64| searching.origin + of_view * rate_hz as f64 / VIEW_HZ as f64;
        let known = || {
            let lost = self.lost.filter(|_| is_last)?;
            // Use the last frame: the samples before it may contain only the interference that caused the loss of the cell.
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

    /// Returns the first other cell whose present power exceeds the usual power of the lost cell by the factor
    /// [`AS_LOUD_AS_LOST`]. A fade of the lost cell does not make another cell that strong, so the lost cell was the
    /// weaker of the two.
    fn louder_than(&self, lost: &LostCell, candidates: &[Candidate], next: i64) -> Option<(Lock, Following)> {
        let State::Searching(searching) = &self.state else { return None };
        let others: Vec<Candidate> =
            candidates.iter().filter(|other| other.pci != lost.pci()).copied().collect();
        let mut others = self.others(searching, &others, next);
        others.find(|(_, other)| other.tracker.found_loudness() >= AS_LOUD_AS_LOST * lost.usual().loudness)
    }

    /// Returns the first cell other than the requested cell that has at least [`AS_LOUD`] times the power of the
    /// requested cell and that can be tracked in the raw samples before `next`. `loudness` is the power of the
    /// requested cell, `None` if it was not found. The flag reports whether another cell has at least [`NEAR`] times
    /// that power.
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

    /// Returns the cells among `candidates` that can be tracked in the raw samples before `next`.
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

/// Combines a candidate and its broadcast into a cell configuration.
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
