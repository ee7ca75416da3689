//! Samples in, subframes out: the listener finds a cell, follows it, and finds it again.
//!
//! ```text
//!             a cell and its master information block
//!  Searching ────────────────────────────────────────▶ Following ──▶ one observation per subframe
//!      ▲                                                   │
//!      └───────────────── nothing heard any more ──────────┘
//! ```
//!
//! The listener keeps the samples with which it found a cell and reads them afterwards, so that a recording loses no
//! subframe.

mod lost;
mod rates;

use std::collections::VecDeque;

use num_complex::Complex32;

use self::lost::LostCell;
use self::rates::{half_band_hz, numerology};
use crate::cell::Cell;
use crate::ladder::Ladder;
use crate::numerology::Numerology;
use crate::observation::Observation;
use crate::ofdm::Transform;
use crate::resample::Resampler;
use crate::sync::broadcast::{Broadcast, BroadcastReader};
use crate::sync::search::{Candidate, Duplex, Search};
use crate::sync::stream::{Conversion, Stream};
use crate::sync::track::{Place, Step, Tracker};
use crate::sync::{Ring, VIEW_HZ, VIEW_PASSBAND_HZ};

/// How to listen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Samples per second.
    pub rate_hz: u64,
    /// Listen to this cell only, however strong others are.
    pub pci: Option<u16>,
    /// How far the receiver may be off the cell's carrier, in Hz.
    pub max_cfo_hz: f64,
    /// How samples become subcarriers.
    pub transform: Transform,
}

impl Options {
    /// For samples at a rate: the strongest cell, up to 12 kHz off, by the fastest transform.
    ///
    /// Chosen: 5 parts in a million at 2.4 GHz. Wider searches take longer.
    pub const fn new(rate_hz: u64) -> Options {
        Options { rate_hz, pci: None, max_cfo_hz: 12_000.0, transform: Transform::Fastest }
    }
}

/// Why no listener can be made for a sample rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnsupportedRate {
    /// Too few samples per second for any cell.
    #[error("{rate_hz} samples per second are too few: the narrowest cell needs 1920000")]
    TooLow {
        /// Samples per second.
        rate_hz: u64,
    },
    /// More samples per second than memory and filters are designed for.
    #[error("{rate_hz} samples per second are too many: resample them to {MOST_RATE_HZ} or fewer")]
    TooHigh {
        /// Samples per second.
        rate_hz: u64,
    },
}

/// The highest sample rate that the listener accepts.
///
/// Chosen: no receiver gives more today. The samples that are kept while no cell is found then take 800 MB.
pub const MOST_RATE_HZ: u64 = 500_000_000;

/// A cell that the listener follows from now on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lock {
    /// The cell.
    pub cell: Cell,
    /// How far its carrier lies above the receiver's, in Hz.
    pub cfo_hz: f64,
    /// Where a frame begins, in samples since the first that was pushed.
    pub frame_start: f64,
    /// The number of that frame.
    pub sfn: u16,
    /// How many samples had come when the cell was found.
    pub after: u64,
}

/// What the listener heard next.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// A cell was found. All subframes that follow belong to it.
    Locked(Lock),
    /// The control region of a subframe.
    Subframe(Observation),
    /// The cell was lost; the search goes on.
    Lost,
}

/// Finds and follows a cell. Push samples, then pop until nothing more is heard.
pub struct Listener {
    options: Options,
    search: Search,
    /// Samples as they came.
    raw: Ring,
    state: State,
    heard: VecDeque<Heard>,
    lost: Option<LostCell>,
    ladder: Ladder,
    is_finished: bool,
}

enum State {
    Searching(Box<Searching>),
    Following(Box<Following>),
}

/// A stretch of samples that the listener searches.
struct Searching {
    resampler: Option<Resampler>,
    /// Samples at [`VIEW_HZ`].
    view: Vec<Complex32>,
    /// Number of the raw sample at the time of the view's first sample.
    origin: f64,
    /// Number of the next raw sample to look at.
    next: i64,
    /// Length of the view at the last search.
    searched: usize,
}

/// A cell that is followed.
struct Following {
    tracker: Tracker,
    /// The conversion, if the samples have a rate that no FFT can take.
    conversion: Option<Conversion>,
    /// The signal to noise ratio of the subframes that were heard, averaged, in dB.
    usual_db: Option<f32>,
}

/// The share by which the usual signal to noise ratio follows that of a subframe.
const USUAL_SHARE: f32 = 0.02;

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

/// Seconds after which the samples before a gap are dropped.
///
/// Chosen: a clock may be off by two parts in a million before anyone knows. After this time it is off by as much as
/// reference signals can show.
const KEPT_S: u64 = 2;

/// If more seconds of samples than this are lost, the listener searches for a cell anew.
///
/// Chosen: once the drift of a clock is known to a tenth of a part in a million, the clock is then off by a
/// microsecond, which reference signals can still show.
const LONGEST_GAP_S: u64 = 10;

/// Number of cells of a search whose PBCH the listener reads.
const BEST: usize = 3;

/// In noise, the correlation with a PSS hardly ever reaches this share of the power.
const HEARD_PRIMARY: f32 = 0.1;

/// From this logarithm of the likelihood ratio on, a CFI counts as sure: one in 150 is wrong.
const SURE_CFI: f32 = 5.0;

/// One of this many samples is inspected for silence and clipping.
const INSPECTED: usize = 331;

impl Listener {
    /// Starts to search.
    ///
    /// # Errors
    /// If the sample rate is below that of the narrowest cell, or above [`MOST_RATE_HZ`].
    pub fn new(options: Options) -> Result<Listener, UnsupportedRate> {
        if options.rate_hz < VIEW_HZ {
            return Err(UnsupportedRate::TooLow { rate_hz: options.rate_hz });
        }
        if options.rate_hz > MOST_RATE_HZ {
            return Err(UnsupportedRate::TooHigh { rate_hz: options.rate_hz });
        }
        Ok(Listener {
            search: Search::by(options.transform, options.max_cfo_hz),
            raw: Ring::new(0),
            state: State::Searching(Box::new(Searching::new(options.rate_hz, 0))),
            heard: VecDeque::new(),
            lost: None,
            ladder: Ladder { rate_hz: options.rate_hz, wanted: options.pci, ..Ladder::default() },
            is_finished: false,
            options,
        })
    }

    /// Takes samples. [`Listener::pop`] does the work on them.
    pub fn push(&mut self, samples: &[Complex32]) {
        self.ladder.samples += samples.len() as u64;
        samples.iter().step_by(INSPECTED).for_each(|sample| self.ladder.inspect(*sample));
        self.raw.push(samples);
    }

    /// `count` samples were lost. The listener leaves out the subframes in between; frame numbers go on. Samples before
    /// the gap are kept until they are searched and read.
    pub fn skip(&mut self, count: u64) {
        self.ladder.lost_samples = self.ladder.lost_samples.saturating_add(count);
        self.raw.skip(count);
    }

    /// No more samples will come. Subframes that wait for more samples are read as far as their samples go.
    pub fn finish(&mut self) {
        self.is_finished = true;
    }

    /// What was heard next; `None` if the listener needs more samples.
    pub fn pop(&mut self) -> Option<Heard> {
        self.heard.pop_front().or_else(|| self.advance())
    }

    /// The cell that the listener follows.
    pub fn cell(&self) -> Option<&Cell> {
        match &self.state {
            State::Following(following) => Some(following.tracker.cell()),
            State::Searching(_) => None,
        }
    }

    /// The tracker that follows the cell.
    pub fn tracker(&self) -> Option<&Tracker> {
        match &self.state {
            State::Following(following) => Some(&following.tracker),
            State::Searching(_) => None,
        }
    }

    /// Samples that are held because they may be needed again: up to 250 ms while searching, some subframes while
    /// following.
    pub fn samples_held(&self) -> usize {
        let of_view = match &self.state {
            State::Searching(searching) => searching.view.len(),
            State::Following(_) => 0,
        };
        self.raw.len() + of_view
    }

    /// How far the samples led.
    pub fn ladder(&self) -> &Ladder {
        &self.ladder
    }

    /// Lets a search for messages add its counts.
    pub fn ladder_mut(&mut self) -> &mut Ladder {
        &mut self.ladder
    }

    fn advance(&mut self) -> Option<Heard> {
        loop {
            let heard = match &mut self.state {
                State::Searching(_) => self.find()?,
                State::Following(_) => self.follow()?,
            };
            if let Some(heard) = heard {
                return Some(heard);
            }
        }
    }

    /// Looks at some more samples. `None` if there are none; otherwise whether a cell was found.
    fn find(&mut self) -> Option<Option<Heard>> {
        let State::Searching(searching) = &mut self.state else { return Some(None) };
        let rate_hz = self.options.rate_hz;
        let run = self.raw.run_from(searching.next)?;
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
            self.raw.forget_before(run.start - (KEPT_S * rate_hz) as i64);
            **searching = Searching::new(rate_hz, run.start);
        }
        let there = (run.end - searching.next) as usize;
        let goes_on = run.end == self.raw.end() && !self.is_finished;
        // Whole steps only: so the time at which a cell is found does not depend on the pieces in which samples come.
        let step = (rate_hz / 200) as usize;
        if there < step && goes_on {
            return None;
        }
        for samples in self.raw.pieces(searching.next, step.min(there)).into_iter().flatten() {
            searching.look(samples);
        }
        // At the very end, the rest is searched as well.
        let is_last = self.is_finished && searching.next == self.raw.end();
        if is_last && !searching.has_fresh() {
            return None;
        }
        let enough = match searching.searched {
            0 => FIRST_VIEW,
            searched if searched + IN_FILTER < LATER_STEP => SEARCH_STEP,
            _ => LATER_STEP,
        };
        if searching.view.len() + IN_FILTER < searching.searched + enough && !is_last {
            return Some(None);
        }
        Some(self.search())
    }

    /// Searches the view.
    fn search(&mut self) -> Option<Heard> {
        let State::Searching(searching) = &mut self.state else { return None };
        searching.searched = searching.view.len();
        let found = self.try_candidates();
        let State::Searching(searching) = &mut self.state else { return found };
        let rate_hz = self.options.rate_hz;
        // Half of the view is kept: a signal across its end is then whole in the next search.
        if searching.view.len() >= LONGEST_VIEW {
            let gone = searching.view.len() - LONGEST_VIEW + LATER_STEP;
            searching.forget(gone, rate_hz);
        }
        self.raw.forget_before(searching.next - (KEPT_S * rate_hz) as i64);
        self.raw.keep((rate_hz / KEPT) as usize);
        found
    }

    /// Reads the PBCH of the best cells of the view, and follows the first that can be followed. At the end of the
    /// samples, a cell that was followed before needs no PBCH. A cell that was lost a moment ago is the only one that
    /// counts.
    fn try_candidates(&mut self) -> Option<Heard> {
        let State::Searching(searching) = &self.state else { return None };
        let candidates = self.search.find(&searching.view, BEST);
        self.ladder.searches += 1;
        self.ladder.primaries += u64::from(self.search.strongest_primary() > HEARD_PRIMARY);
        self.ladder.secondaries += u64::from(!candidates.is_empty());
        let is_last = self.is_finished && searching.next == self.raw.end();
        let next = searching.next;
        let asked = self.options.pci;
        let held = self.lost.filter(|lost| !is_last && lost.is_held(next, asked));
        let is_asked_for = |pci: u16| asked.is_none_or(|asked| asked == pci);
        let wanted = |candidate: &&Candidate| {
            is_asked_for(candidate.pci) && held.is_none_or(|lost| lost.pci() == candidate.pci)
        };
        let found = candidates.iter().filter(wanted).find_map(|candidate| {
            let lock = self.read_lock(candidate, is_last)?;
            self.try_to_follow(&lock, next).then_some(lock)
        });
        // A cell in a fade is not found by its synchronisation signals, but still by its reference signals.
        let expected = held.filter(|lost| is_asked_for(lost.pci())).map(|lost| lost.expected(next));
        let found = found.or_else(|| expected.filter(|lock| self.try_to_follow(lock, next)));
        if let Some(lock) = found {
            return Some(Heard::Locked(lock));
        }
        let State::Searching(searching) = &self.state else { return None };
        // A user who asks for a cell that is not there should learn which cells are.
        for other in &candidates {
            if !is_asked_for(other.pci)
                && !self.ladder.others.contains(&Some(other.pci))
                && read_broadcast(&searching.view, other).is_some()
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
        let read = read_broadcast(&searching.view, candidate);
        self.ladder.broadcasts += u64::from(read.is_some());
        let rate_hz = self.options.rate_hz;
        let raw_sample = |of_view: f64| searching.origin + of_view * rate_hz as f64 / VIEW_HZ as f64;
        let known = || {
            let lost = self.lost.filter(|_| is_last)?;
            // The last frame: the samples before it may hold only the disturbance by which the cell was lost.
            let frames = (searching.view.len() as f64 - candidate.frame_start) / FRAME_SAMPLES;
            let frame = candidate.frame_start + libm::floor(frames) * FRAME_SAMPLES;
            Some((lost.broadcast(candidate, raw_sample(frame))?, frame))
        };
        let (broadcast, frame) = read.or_else(known)?;
        self.ladder.cfo_hz = candidate.cfo_hz;
        if candidate.duplex == Duplex::Tdd {
            self.ladder.tdd += 1;
            return None;
        }
        let mib = broadcast.mib;
        let cell = Cell {
            pci: candidate.pci,
            bandwidth: mib.bandwidth,
            ports: broadcast.ports,
            cp: candidate.cp,
            phich_duration: mib.phich_duration,
            phich_resource: mib.phich_resource,
        };
        let (frame_start, after) = (raw_sample(frame), searching.next.max(0) as u64);
        Some(Lock { cell, cfo_hz: candidate.cfo_hz, frame_start, sfn: broadcast.sfn, after })
    }

    /// Follows a cell that was found in the raw samples before `next`. Returns whether it is there.
    fn try_to_follow(&mut self, lock: &Lock, next: i64) -> bool {
        let Some(numerology) = numerology(&lock.cell, self.options.rate_hz) else {
            self.ladder.too_wide = Some(lock.cell);
            return false;
        };
        // Samples beyond a gap that is too long to follow a cell across are not read as this cell's.
        self.raw.forget_beyond_gap(next, (LONGEST_GAP_S * self.options.rate_hz) as i64);
        // A checksum of 16 bits sometimes fits by chance; reference signals all over the band do not.
        let Some(following) = Following::new(lock, numerology, &self.raw, &self.options) else {
            return false;
        };
        self.ladder.locks += 1;
        self.state = State::Following(Box::new(following));
        true
    }

    /// Reads the next subframe. `None` if its samples are not there yet.
    fn follow(&mut self) -> Option<Option<Heard>> {
        let State::Following(following) = &mut self.state else { return Some(None) };
        let ladder = &mut self.ladder;
        let Following { tracker, conversion, usual_db } = &mut **following;
        let conversion = conversion.as_ref();
        let raw_sample = |sample: f64| conversion.map_or(sample, |conversion| conversion.raw_sample(sample));
        let step = tracker.step(&Stream::new(&self.raw, conversion, self.is_finished));
        let next = raw_sample(tracker.place().start) as i64;
        let rate_hz = self.options.rate_hz;
        let search_from = |since: i64| State::Searching(Box::new(Searching::new(rate_hz, since)));
        self.raw.forget_before(next - KEPT_SUBFRAMES * (rate_hz / 1000) as i64);
        Some(match step {
            Step::Wait => return None,
            Step::Gap => {
                ladder.gaps += 1;
                let run = self.raw.run_from(next);
                match run.filter(|run| run.start - next > (LONGEST_GAP_S * rate_hz) as i64) {
                    None => None,
                    Some(run) => {
                        ladder.losses += 1;
                        self.raw.forget_before(run.start);
                        self.state = search_from(run.start);
                        Some(Heard::Lost)
                    }
                }
            }
            Step::Faint => {
                ladder.faint += 1;
                None
            }
            Step::Heard(mut observation) => {
                ladder.subframes += 1;
                let usual_db = usual_db.get_or_insert(observation.snr_db);
                *usual_db += USUAL_SHARE * (observation.snr_db - *usual_db);
                ladder.sure_cfis += u64::from(observation.cfi_margin > SURE_CFI);
                observation.sample = libm::round(raw_sample(observation.sample as f64)) as i64;
                Some(Heard::Subframe(observation))
            }
            Step::Lost { since } => {
                ladder.losses += 1;
                let place = tracker.place();
                let start = raw_sample(place.start);
                let subframe = raw_sample(place.start + tracker.subframe_samples()) - start;
                let lost = LostCell::new(*tracker.cell(), place, start, subframe, rate_hz);
                self.lost = Some(lost.with_ratio(usual_db.unwrap_or_default()));
                let since = (raw_sample(since as f64) as i64).clamp(self.raw.start(), self.raw.end());
                self.raw.forget_before(since);
                self.state = search_from(since);
                Some(Heard::Lost)
            }
        })
    }
}

/// Subframes before the next one that are kept while a cell is followed: they may turn out not to have been heard.
const KEPT_SUBFRAMES: i64 = 5;

impl Searching {
    fn new(rate_hz: u64, next: i64) -> Searching {
        Searching {
            // At the view's own rate there is nothing to do.
            resampler: Resampler::new(rate_hz, VIEW_HZ, VIEW_PASSBAND_HZ).filter(|_| rate_hz != VIEW_HZ),
            view: Vec::new(),
            origin: next as f64,
            next,
            searched: 0,
        }
    }

    fn has_fresh(&self) -> bool {
        self.view.len() > self.searched
    }

    /// `count` samples were lost.
    fn look_at_nothing(&mut self, count: usize) {
        let nothing = [Complex32::default(); 4096];
        for done in (0..count).step_by(nothing.len()) {
            self.look(&nothing[..nothing.len().min(count - done)]);
        }
    }

    fn look(&mut self, samples: &[Complex32]) {
        self.next += samples.len() as i64;
        let first = self.view.len();
        match &mut self.resampler {
            Some(resampler) => resampler.push(samples, &mut self.view),
            None => self.view.extend_from_slice(samples),
        }
        // Infinite values and NaN would spread over all correlations.
        for sample in &mut self.view[first..] {
            if !(sample.re.is_finite() && sample.im.is_finite()) {
                *sample = Complex32::default();
            }
        }
    }

    fn forget(&mut self, count: usize, rate_hz: u64) {
        self.view.drain(..count);
        self.searched -= count;
        self.origin += count as f64 * rate_hz as f64 / VIEW_HZ as f64;
    }
}

/// What the first frames of a candidate that can be read tell, and where in the view the last of them begins.
fn read_broadcast(view: &[Complex32], candidate: &Candidate) -> Option<(Broadcast, f64)> {
    let mut reader = BroadcastReader::new(candidate.pci, candidate.cp);
    let mut start = candidate.frame_start;
    while start < view.len() as f64 {
        let here = usize::try_from(libm::round(start) as i64).ok().and_then(|first| view.get(first..));
        if let Some(broadcast) = here.and_then(|here| reader.read(here, candidate.cfo_hz)) {
            return Some((broadcast, start));
        }
        start += FRAME_SAMPLES;
    }
    None
}

impl Following {
    /// `None` if the cell turns out not to be there.
    fn new(lock: &Lock, numerology: Numerology, raw: &Ring, options: &Options) -> Option<Following> {
        let own_hz = u64::from(numerology.sample_rate_hz());
        let conversion = if own_hz == options.rate_hz {
            None
        } else {
            let resampler = Resampler::new(options.rate_hz, own_hz, half_band_hz(numerology.bandwidth()))?;
            Some(Conversion::new(resampler, raw.start()))
        };
        let start = match &conversion {
            None => lock.frame_start,
            Some(conversion) => conversion.sample(lock.frame_start),
        };
        let place = Place { sfn: lock.sfn, number: 0, start, cfo_hz: lock.cfo_hz, drift: 0.0 };
        let mut tracker = Tracker::new(lock.cell, numerology, place, options.transform);
        let is_there = tracker.settle(&Stream::new(raw, conversion.as_ref(), false).until(lock.after as i64));
        is_there.then_some(Following { tracker, conversion, usual_db: None })
    }
}
