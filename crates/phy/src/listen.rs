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
    /// Antennas of the receiver: [`Listener::push`] takes a sample of each at a time. They share a clock and an
    /// oscillator. 0 counts as 1.
    pub antennas: usize,
    /// Listen to this cell only, however strong others are.
    pub pci: Option<u16>,
    /// How far the receiver may be off the cell's carrier, in Hz.
    pub max_cfo_hz: f64,
    /// How samples become subcarriers.
    pub transform: Transform,
}

impl Options {
    /// For samples of one antenna at a rate: the strongest cell, up to 12 kHz off, by the fastest transform.
    ///
    /// Chosen: 5 parts in a million at 2.4 GHz. Wider searches take longer.
    pub const fn new(rate_hz: u64) -> Options {
        Options { rate_hz, antennas: 1, pci: None, max_cfo_hz: 12_000.0, transform: Transform::Fastest }
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
    /// How many samples had been looked at when the cell was found. If samples are searched again because a cell was lost
    /// in them, this does not go back.
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
    /// Samples as they came, of each antenna.
    raw: Vec<Ring>,
    /// Samples of one antenna among several.
    of_antenna: Vec<Complex32>,
    state: State,
    heard: VecDeque<Heard>,
    lost: Option<LostCell>,
    /// Number of the sample after the last that was ever looked at.
    reached: i64,
    ladder: Ladder,
    is_finished: bool,
}

enum State {
    Searching(Box<Searching>),
    Following(Box<Following>),
}

/// A stretch of samples that the listener searches.
struct Searching {
    /// What each antenna hears.
    views: Vec<View>,
    /// Number of the raw sample at the time of the view's first sample.
    origin: f64,
    /// Number of the next raw sample to look at.
    next: i64,
    /// Length of the view at the last search.
    searched: usize,
}

/// Samples of an antenna at [`VIEW_HZ`].
struct View {
    resampler: Option<Resampler>,
    samples: Vec<Complex32>,
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
        let antennas = options.antennas.max(1);
        Ok(Listener {
            search: Search::by(options.transform, options.max_cfo_hz),
            raw: vec![Ring::new(0); antennas],
            of_antenna: Vec::new(),
            state: State::Searching(Box::new(Searching::new(options.rate_hz, antennas, 0))),
            heard: VecDeque::new(),
            lost: None,
            reached: 0,
            ladder: Ladder { rate_hz: options.rate_hz, wanted: options.pci, ..Ladder::default() },
            is_finished: false,
            options,
        })
    }

    /// Takes samples; [`Listener::pop`] does the work on them. With several antennas, the samples of an instant lie side
    /// by side, in the order of the antennas, and a part of an instant at the end is left out.
    pub fn push(&mut self, samples: &[Complex32]) {
        let antennas = self.raw.len();
        self.ladder.samples += (samples.len() / antennas) as u64;
        samples.iter().step_by(INSPECTED).for_each(|sample| self.ladder.inspect(*sample));
        if let [raw] = &mut self.raw[..] {
            return raw.push(samples);
        }
        for (at, raw) in self.raw.iter_mut().enumerate() {
            self.of_antenna.clear();
            self.of_antenna.extend(samples.chunks_exact(antennas).map(|instant| instant[at]));
            raw.push(&self.of_antenna);
        }
    }

    /// `count` samples were lost. The listener leaves out the subframes in between; frame numbers go on. Samples before
    /// the gap are kept until they are searched and read.
    pub fn skip(&mut self, count: u64) {
        self.ladder.lost_samples = self.ladder.lost_samples.saturating_add(count);
        self.raw.iter_mut().for_each(|raw| raw.skip(count));
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
            State::Searching(searching) => searching.views.iter().map(|view| view.samples.len()).sum(),
            State::Following(_) => 0,
        };
        self.raw.iter().map(Ring::len).sum::<usize>() + of_view
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
        let antennas = self.raw.len();
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
            **searching = Searching::new(rate_hz, antennas, run.start);
        }
        let there = (run.end - searching.next) as usize;
        let end = self.raw[0].end();
        let goes_on = run.end == end && !self.is_finished;
        // Whole steps only: so the time at which a cell is found does not depend on the pieces in which samples come.
        let step = (rate_hz / 200) as usize;
        if there < step && goes_on {
            return None;
        }
        let count = step.min(there);
        for (raw, view) in self.raw.iter().zip(&mut searching.views) {
            raw.pieces(searching.next, count).into_iter().flatten().for_each(|samples| view.look(samples));
        }
        searching.next += count as i64;
        self.reached = self.reached.max(searching.next);
        // At the very end, the rest is searched as well.
        let is_last = self.is_finished && searching.next == end;
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
    /// counts.
    fn try_candidates(&mut self) -> Option<Heard> {
        let State::Searching(searching) = &self.state else { return None };
        let (candidates, primary) = searching.candidates(&mut self.search);
        self.ladder.searches += 1;
        self.ladder.primaries += u64::from(primary > HEARD_PRIMARY);
        self.ladder.secondaries += u64::from(!candidates.is_empty());
        let is_last = self.is_finished && searching.next == self.raw[0].end();
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
        let after = self.reached.max(0) as u64;
        let expected = held.filter(|lost| is_asked_for(lost.pci()));
        let expected = expected.map(|lost| Lock { after, ..lost.expected(next) });
        let found = found.or_else(|| expected.filter(|lock| self.try_to_follow(lock, next)));
        if let Some(lock) = found {
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
        let mib = broadcast.mib;
        let cell = Cell {
            pci: candidate.pci,
            bandwidth: mib.bandwidth,
            ports: broadcast.ports,
            cp: candidate.cp,
            phich_duration: mib.phich_duration,
            phich_resource: mib.phich_resource,
        };
        let (frame_start, after) = (raw_sample(frame), self.reached.max(0) as u64);
        Some(Lock { cell, cfo_hz: candidate.cfo_hz, frame_start, sfn: broadcast.sfn, after })
    }

    /// Follows a cell that was found in the raw samples before `next`. Returns whether it is there.
    fn try_to_follow(&mut self, lock: &Lock, next: i64) -> bool {
        let Some(numerology) = numerology(&lock.cell, self.options.rate_hz) else {
            self.ladder.too_wide = Some(lock.cell);
            return false;
        };
        // Samples beyond a gap that is too long to follow a cell across are not read as this cell's.
        let longest = (LONGEST_GAP_S * self.options.rate_hz) as i64;
        self.raw.iter_mut().for_each(|raw| raw.forget_beyond_gap(next, longest));
        // A checksum of 16 bits sometimes fits by chance; reference signals all over the band do not.
        let Some(following) = Following::new(lock, numerology, &self.raw, next, &self.options) else {
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
        let antennas = self.raw.len();
        let step = tracker.step(&Stream::new(&self.raw, conversion, self.is_finished));
        let next = raw_sample(tracker.place().start) as i64;
        self.reached = self.reached.max(next.min(self.raw[0].end()));
        let rate_hz = self.options.rate_hz;
        let search_from = |since: i64| State::Searching(Box::new(Searching::new(rate_hz, antennas, since)));
        forget_before(&mut self.raw, next - KEPT_SUBFRAMES * (rate_hz / 1000) as i64);
        Some(match step {
            Step::Wait => return None,
            Step::Gap => {
                ladder.gaps += 1;
                let run = self.raw[0].run_from(next);
                match run.filter(|run| run.start - next > (LONGEST_GAP_S * rate_hz) as i64) {
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
                let since = (raw_sample(since as f64) as i64).clamp(self.raw[0].start(), self.raw[0].end());
                forget_before(&mut self.raw, since);
                self.state = search_from(since);
                Some(Heard::Lost)
            }
        })
    }
}

/// Subframes before the next one that are kept while a cell is followed: they may turn out not to have been heard.
const KEPT_SUBFRAMES: i64 = 5;

impl Searching {
    fn new(rate_hz: u64, antennas: usize, next: i64) -> Searching {
        let view = |_| View {
            // At the view's own rate there is nothing to do.
            resampler: Resampler::new(rate_hz, VIEW_HZ, VIEW_PASSBAND_HZ).filter(|_| rate_hz != VIEW_HZ),
            samples: Vec::new(),
        };
        let views = (0..antennas).map(view).collect();
        Searching { views, origin: next as f64, next, searched: 0 }
    }

    /// Samples of the view of each antenna.
    fn len(&self) -> usize {
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
    fn candidates(&self, search: &mut Search) -> (Vec<Candidate>, f32) {
        let (mut all, mut primary): (Vec<Candidate>, f32) = (Vec::new(), 0.0);
        for view in &self.views {
            all.extend(search.find(&view.samples, BEST));
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

/// Forgets the samples of all antennas before number `first`.
fn forget_before(raw: &mut [Ring], first: i64) {
    raw.iter_mut().for_each(|raw| raw.forget_before(first));
}

/// What the first frames of a candidate that can be read tell, and where in the view the last of them begins.
fn read_broadcast(views: &[View], candidate: &Candidate) -> Option<(Broadcast, f64)> {
    let mut reader = BroadcastReader::new(candidate.pci, candidate.cp);
    let mut start = candidate.frame_start;
    while start < views[0].samples.len() as f64 {
        let here = |first| views.iter().map(move |view| &view.samples[first..]);
        let first = usize::try_from(libm::round(start) as i64).ok();
        let first = first.filter(|first| *first <= views[0].samples.len());
        if let Some(broadcast) = first.and_then(|first| reader.read(here(first), candidate.cfo_hz)) {
            return Some((broadcast, start));
        }
        start += FRAME_SAMPLES;
    }
    None
}

impl Following {
    /// Learns the cell from the samples before number `searched`. `None` if the cell turns out not to be there.
    fn new(
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
        is_there.then_some(Following { tracker, conversion, usual_db: None })
    }
}
