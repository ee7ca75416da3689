//! Samples in, subframes out: finds a cell, follows it, finds it again.
//!
//! ```text
//!             a cell and its master information block
//!  Searching ────────────────────────────────────────▶ Following ──▶ one observation per subframe
//!      ▲                                                   │
//!      └───────────────── nothing heard any more ──────────┘
//! ```
//!
//! Samples that were used to find a cell are kept and read afterwards, so that a recording loses no subframe.

use std::collections::VecDeque;

use num_complex::Complex32;

use crate::cell::Cell;
use crate::ladder::{Ladder, least_rate_hz};
use crate::numerology::{Bandwidth, Numerology, SUBCARRIER_HZ};
use crate::observation::Observation;
use crate::ofdm::Transform;
use crate::resample::Resampler;
use crate::sync::broadcast::{Broadcast, BroadcastReader};
use crate::sync::search::{Candidate, Duplex, Search};
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

/// Why one cannot listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Deaf {
    /// Too few samples per second for any cell.
    #[error("{rate_hz} samples per second are too few: the narrowest cell needs 1920000")]
    Slow {
        /// Samples per second.
        rate_hz: u64,
    },
}

/// A cell that is followed from now on.
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
    /// Samples that had come when the cell was found.
    pub after: u64,
}

/// What was heard next.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// A cell was found: all subframes that follow are its.
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
    ladder: Ladder,
    is_finished: bool,
}

enum State {
    Searching(Box<Searching>),
    Following(Box<Following>),
}

/// A stretch of samples that is searched.
struct Searching {
    resampler: Option<Resampler>,
    /// Samples at [`VIEW_HZ`].
    view: Vec<Complex32>,
    /// Number of the raw sample at the time of the view's first.
    origin: f64,
    /// Number of the next raw sample to look at.
    next: i64,
    /// Length of the view when it was searched last.
    searched: usize,
}

/// A cell that is followed.
struct Following {
    tracker: Tracker,
    /// Where samples have another rate than an FFT can take.
    native: Option<Native>,
}

/// Samples at a rate that suits the cell.
struct Native {
    resampler: Resampler,
    ring: Ring,
    /// What the resampler gave last.
    fresh: Vec<Complex32>,
    /// Raw samples per sample.
    ratio: f64,
    /// Number of the raw sample at the time of sample 0.
    origin: f64,
    /// Number of the next raw sample to take.
    next: i64,
    is_flushed: bool,
}

/// Samples of the view that are searched at once, at most, and after how many more the search is tried again.
///
/// Chosen: 40 ms hold a whole block of the PBCH. What a cell of middling strength needs is in the first 20: until then the
/// search is tried every 5 ms, then every 20, which takes half of the time that passes.
const LONGEST_VIEW: usize = VIEW_HZ as usize / 25;
const SEARCH_STEP: usize = VIEW_HZ as usize / 200;
const LATER_STEP: usize = VIEW_HZ as usize / 50;

/// For how long samples are kept while no cell is found, per second.
///
/// Chosen: 200 ms, 50 MB at 30.72 Msps: a weak cell may be found late, and is read from the beginning then.
const KEPT: u64 = 5;

/// Cells of a search whose PBCH is read.
const BEST: usize = 3;

/// A share of the power that a correlation with a PSS hardly reaches in noise.
const HEARD_PRIMARY: f32 = 0.1;

/// Logarithm of the likelihood ratio from which on a CFI counts as sure: one in 150 is wrong.
const SURE_CFI: f32 = 5.0;

/// Of how many samples one is inspected for silence and clipping.
const INSPECTED: usize = 331;

impl Listener {
    /// Starts to search.
    ///
    /// # Errors
    /// If the sample rate is below that of the narrowest cell.
    pub fn new(options: Options) -> Result<Listener, Deaf> {
        if options.rate_hz < VIEW_HZ {
            return Err(Deaf::Slow { rate_hz: options.rate_hz });
        }
        Ok(Listener {
            search: Search::by(options.transform, options.max_cfo_hz),
            raw: Ring::new(0),
            state: State::Searching(Box::new(Searching::new(options.rate_hz, 0))),
            heard: VecDeque::new(),
            ladder: Ladder::default(),
            is_finished: false,
            options,
        })
    }

    /// Takes samples. They are worked on by [`Listener::pop`].
    pub fn push(&mut self, samples: &[Complex32]) {
        self.ladder.samples += samples.len() as u64;
        for sample in samples.iter().step_by(INSPECTED) {
            self.ladder.inspected += 1;
            self.ladder.silent += u64::from(*sample == Complex32::default());
            self.ladder.clipped += u64::from(sample.re.abs().max(sample.im.abs()) >= FULL_SCALE);
        }
        self.raw.push(samples);
    }

    /// `count` samples were lost. Subframes in between are left out; frame numbers go on.
    pub fn skip(&mut self, count: u64) {
        while let Some(heard) = self.advance() {
            self.heard.push_back(heard);
        }
        self.ladder.lost_samples += count;
        self.raw.skip(count);
        let (rate_hz, next) = (self.options.rate_hz, self.raw.end());
        match &mut self.state {
            State::Searching(searching) => **searching = Searching::new(rate_hz, next),
            State::Following(following) => {
                if let Some(native) = &mut following.native {
                    native.restart(next);
                }
            }
        }
    }

    /// No more samples will come: what waits for more is read as far as it goes.
    pub fn finish(&mut self) {
        self.is_finished = true;
    }

    /// What was heard next; `None` if more samples are needed.
    pub fn pop(&mut self) -> Option<Heard> {
        self.heard.pop_front().or_else(|| self.advance())
    }

    /// The cell that is followed.
    pub fn cell(&self) -> Option<&Cell> {
        match &self.state {
            State::Following(following) => Some(following.tracker.cell()),
            State::Searching(_) => None,
        }
    }

    /// What follows the cell.
    pub fn tracker(&self) -> Option<&Tracker> {
        match &self.state {
            State::Following(following) => Some(&following.tracker),
            State::Searching(_) => None,
        }
    }

    /// Samples that are held, for they may be needed again: up to 250 ms while searching, some subframes while following.
    pub fn samples_held(&self) -> usize {
        let of_view = match &self.state {
            State::Searching(searching) => searching.view.len(),
            State::Following(following) => following.native.as_ref().map_or(0, |native| native.ring.len()),
        };
        self.raw.len() + of_view
    }

    /// How far the samples led.
    pub fn ladder(&self) -> &Ladder {
        &self.ladder
    }

    /// Adds what a search for messages counted.
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
        // Whatever is left at the very end is searched as well.
        let step = (rate_hz / 200) as usize;
        let there = usize::try_from(self.raw.end() - searching.next).unwrap_or(0);
        if there == 0 && !self.is_finished {
            return None;
        }
        for samples in self.raw.pieces(searching.next, step.min(there)).into_iter().flatten() {
            searching.next += samples.len() as i64;
            searching.look(samples);
        }
        let fresh = searching.view.len() - searching.searched;
        let is_last = self.is_finished && there <= step;
        let enough = if searching.searched < LATER_STEP { SEARCH_STEP } else { LATER_STEP };
        if fresh < enough && !(is_last && fresh > 0) {
            return if is_last { None } else { Some(None) };
        }
        searching.searched = searching.view.len();
        let found = self.try_candidates();
        let State::Searching(searching) = &mut self.state else { return Some(found) };
        // Half of the view is kept: what lies across its end is seen whole next time.
        if searching.view.len() >= LONGEST_VIEW {
            let gone = searching.view.len() - LONGEST_VIEW + LATER_STEP;
            searching.forget(gone, rate_hz);
        }
        self.raw.forget_before(searching.next - (rate_hz / KEPT) as i64);
        Some(found)
    }

    /// Reads the PBCH of the best cells of the view; follows the first that can be followed.
    fn try_candidates(&mut self) -> Option<Heard> {
        let State::Searching(searching) = &self.state else { return None };
        let candidates = self.search.find(&searching.view, BEST);
        self.ladder.searches += 1;
        self.ladder.primaries += u64::from(self.search.strongest_primary() > HEARD_PRIMARY);
        self.ladder.secondaries += u64::from(!candidates.is_empty());
        let wanted = |candidate: &&Candidate| self.options.pci.is_none_or(|pci| pci == candidate.pci);
        for candidate in candidates.iter().filter(wanted) {
            let Some((broadcast, frame)) = read_broadcast(&searching.view, candidate) else { continue };
            self.ladder.cfo_hz = candidate.cfo_hz;
            self.ladder.broadcasts += 1;
            if candidate.duplex == Duplex::Tdd {
                self.ladder.tdd += 1;
                continue;
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
            let Some(numerology) = numerology(&cell, self.options.rate_hz) else {
                self.ladder.too_wide = Some(cell.bandwidth);
                continue;
            };
            let frame_start = searching.origin + frame * self.options.rate_hz as f64 / VIEW_HZ as f64;
            let lock = Lock {
                cell,
                cfo_hz: candidate.cfo_hz,
                frame_start,
                sfn: broadcast.sfn,
                after: self.raw.end().max(0) as u64,
            };
            let following = Following::new(&lock, numerology, &self.raw, &self.options);
            // A checksum of 16 bits fits by chance now and then; reference signals all over the band do not.
            if let Some(following) = following {
                self.ladder.locks += 1;
                self.state = State::Following(Box::new(following));
                return Some(Heard::Locked(lock));
            }
        }
        self.ladder.cfo_hz = candidates.first().map_or(self.ladder.cfo_hz, |best| best.cfo_hz);
        None
    }

    /// Reads the next subframe. `None` if its samples are not there yet.
    fn follow(&mut self) -> Option<Option<Heard>> {
        let State::Following(following) = &mut self.state else { return Some(None) };
        let ladder = &mut self.ladder;
        let step = match &mut following.native {
            None => {
                let step = following.tracker.step(&self.raw);
                let samples = (self.options.rate_hz / 1000) as i64;
                let needed = following.tracker.place().start as i64 - KEPT_SUBFRAMES * samples;
                self.raw.forget_before(needed);
                step
            }
            Some(native) => {
                native.take(&self.raw, self.is_finished);
                let step = following.tracker.step(&native.ring);
                let place = following.tracker.place().start;
                let kept = KEPT_SUBFRAMES as f64 * self.options.rate_hz as f64 / 1000.0;
                self.raw.forget_before((native.raw_sample(place) - kept) as i64);
                native.ring.forget_before(place as i64 - KEPT_SUBFRAMES * (kept / native.ratio) as i64);
                step
            }
        };
        let raw_sample = |sample: i64| match &following.native {
            None => sample,
            Some(native) => libm::round(native.raw_sample(sample as f64)) as i64,
        };
        Some(match step {
            Step::Wait => return None,
            Step::Gap => {
                ladder.gaps += 1;
                None
            }
            Step::Faint => {
                ladder.faint += 1;
                None
            }
            Step::Heard(mut observation) => {
                ladder.subframes += 1;
                ladder.sure_cfis += u64::from(observation.cfi_margin > SURE_CFI);
                observation.sample = raw_sample(observation.sample);
                Some(Heard::Subframe(observation))
            }
            Step::Lost { since } => {
                ladder.losses += 1;
                let since = raw_sample(since).clamp(self.raw.start(), self.raw.end());
                self.raw.forget_before(since);
                self.state = State::Searching(Box::new(Searching::new(self.options.rate_hz, since)));
                Some(Heard::Lost)
            }
        })
    }
}

/// Samples are from −1 to 1; eight bits reach 127/128.
const FULL_SCALE: f32 = 0.99;

/// Subframes before the next that are kept while a cell is followed: those that may turn out not to have been heard.
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

    fn look(&mut self, samples: &[Complex32]) {
        let first = self.view.len();
        match &mut self.resampler {
            Some(resampler) => resampler.push(samples, &mut self.view),
            None => self.view.extend_from_slice(samples),
        }
        // A number that is none would spread over all correlations.
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

/// What the first frames of a candidate tell that can be read, and where in the view the last of them begins.
fn read_broadcast(view: &[Complex32], candidate: &Candidate) -> Option<(Broadcast, f64)> {
    let mut reader = BroadcastReader::new(candidate.pci, candidate.cp);
    let frame_samples = (VIEW_HZ / 100) as f64;
    let mut start = candidate.frame_start;
    while start < view.len() as f64 {
        let here = usize::try_from(libm::round(start) as i64).ok().and_then(|first| view.get(first..));
        if let Some(broadcast) = here.and_then(|here| reader.read(here, candidate.cfo_hz)) {
            return Some((broadcast, start));
        }
        start += frame_samples;
    }
    None
}

/// How a cell is sampled when samples come at `rate_hz`: as they come if an FFT can take them; otherwise at the lowest rate
/// that leaves a filter room, or else the highest there is. `None` if they come too slowly.
fn numerology(cell: &Cell, rate_hz: u64) -> Option<Numerology> {
    let of_rate = |rate_hz: u64| {
        let size = usize::try_from(rate_hz / u64::from(SUBCARRIER_HZ)).ok()?;
        Numerology::new(cell.bandwidth, cell.cp, size)
    };
    if rate_hz.is_multiple_of(VIEW_HZ)
        && let Some(numerology) = of_rate(rate_hz)
    {
        return Some(numerology);
    }
    let least = least_rate_hz(cell.bandwidth);
    let roomy = 6 * cell.bandwidth.subcarriers() as u64 / 5 * u64::from(SUBCARRIER_HZ);
    let steps = (least..=rate_hz).step_by(VIEW_HZ as usize);
    steps.clone().find(|&rate_hz| rate_hz >= roomy).or_else(|| steps.last()).and_then(of_rate)
}

impl Following {
    /// `None` if the cell turns out not to be there.
    fn new(lock: &Lock, numerology: Numerology, raw: &Ring, options: &Options) -> Option<Following> {
        let rate_hz = options.rate_hz;
        let native_hz = u64::from(numerology.sample_rate_hz());
        let half_band_hz = (numerology.bandwidth().subcarriers() as u64 / 2 + 1) * u64::from(SUBCARRIER_HZ);
        let resampler = Resampler::new(rate_hz, native_hz, half_band_hz).filter(|_| native_hz != rate_hz);
        let native = resampler.map(|resampler| {
            let mut native = Native {
                resampler,
                ring: Ring::new(0),
                fresh: Vec::new(),
                ratio: rate_hz as f64 / native_hz as f64,
                origin: raw.start() as f64,
                next: raw.start(),
                is_flushed: false,
            };
            native.take(raw, false);
            native
        });
        let start = match &native {
            None => lock.frame_start,
            Some(native) => (lock.frame_start - native.origin) / native.ratio,
        };
        let place = Place { sfn: lock.sfn, number: 0, start, cfo_hz: lock.cfo_hz, drift: 0.0 };
        let mut tracker = Tracker::new(lock.cell, numerology, place, options.transform);
        let is_there = tracker.settle(native.as_ref().map_or(raw, |native| &native.ring));
        is_there.then_some(Following { tracker, native })
    }
}

impl Native {
    /// Takes all raw samples that came since; at the end also those that the filter holds back.
    fn take(&mut self, raw: &Ring, is_finished: bool) {
        let count = usize::try_from(raw.end() - self.next).unwrap_or(0);
        for samples in raw.pieces(self.next, count).into_iter().flatten() {
            self.next += samples.len() as i64;
            self.resampler.push(samples, &mut self.fresh);
        }
        if is_finished && !self.is_flushed {
            self.is_flushed = true;
            self.resampler.push(&[Complex32::default(); 256], &mut self.fresh);
        }
        self.ring.push(&self.fresh);
        self.fresh.clear();
    }

    /// Goes on at raw sample `next`, after a gap.
    fn restart(&mut self, next: i64) {
        let lost = (next - self.next) as f64 / self.ratio;
        // A new beginning on a whole sample; the fraction goes into the origin.
        let end = self.ring.end();
        let whole = libm::floor(lost) as u64;
        self.ring.skip(whole);
        let first = end + whole as i64;
        self.origin = next as f64 - first as f64 * self.ratio;
        self.next = next;
        self.resampler.clear();
    }

    fn raw_sample(&self, sample: f64) -> f64 {
        self.origin + sample * self.ratio
    }
}

/// The narrowest cell fits whatever rate one can listen at.
const _: () = assert!(least_rate_hz(Bandwidth::ALL[0]) <= VIEW_HZ);
