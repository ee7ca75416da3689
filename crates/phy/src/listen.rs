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
//!
//! If a cell is asked for and another is as loud, or louder, that one is followed beside, and what it sent is taken off the
//! samples before the listener sees them. If none is asked for and another is louder for longer than a fade lasts, that one is
//! followed from then on.

mod beside;
mod following;
mod lost;
mod louder;
mod rates;
mod resent;
mod searching;
mod usual;
mod watch;

use std::collections::VecDeque;

use num_complex::Complex32;

use self::beside::{Beside, Progress};
use self::following::Following;
use self::lost::LostCell;
use self::louder::{Louder, Verdict};
use self::rates::half_band_hz;
use self::searching::Searching;
use self::watch::Watch;
use crate::cell::Cell;
use crate::ladder::Ladder;
use crate::observation::Observation;
use crate::ofdm::Transform;
use crate::sync::search::{Candidate, Search};
use crate::sync::track::Tracker;
use crate::sync::{Ring, VIEW_HZ};

/// How to listen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Samples per second.
    pub rate_hz: u64,
    /// Antennas of the receiver: [`Listener::push`] takes a sample of each at a time. They share a clock and an
    /// oscillator. 0 counts as 1.
    pub antennas: usize,
    /// Listen to this cell only, however strong others are. The first that is found and less than 3 dB weaker, or stronger,
    /// is decoded too, to be taken off the samples: that takes two to four times as long.
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
    /// The cell is left for a louder one, which is locked next.
    Moved(Moved),
}

/// A cell was left for another, because that one was louder for longer than a fade lasts. It happens only if no cell was
/// asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moved {
    /// The cell that was followed.
    pub from: u16,
    /// The cell that is followed from now on.
    pub to: u16,
    /// How much louder that one was in the mean, in dB.
    pub louder_db: f32,
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
    /// A cell that is stronger than the one that is asked for. It takes the samples first.
    beside: Option<Box<Beside>>,
    watch: Watch,
    /// If no cell is asked for: whether another is louder.
    louder: Louder,
    /// Number of the sample after the last that was ever looked at.
    reached: i64,
    /// The cell of the last subframe that was put out, and the raw sample at which it began.
    put_out: Option<(u16, f64)>,
    ladder: Ladder,
    is_finished: bool,
}

enum State {
    Searching(Box<Searching>),
    Following(Box<Following>),
}

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
            beside: None,
            watch: Watch::new(),
            louder: Louder::new(),
            reached: 0,
            put_out: None,
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
        let rings = self.beside.as_mut().map_or(&mut self.raw[..], |beside| &mut beside.rings_mut()[..]);
        if let [raw] = rings {
            return raw.push(samples);
        }
        for (at, raw) in rings.iter_mut().enumerate() {
            self.of_antenna.clear();
            self.of_antenna.extend(samples.chunks_exact(antennas).map(|instant| instant[at]));
            raw.push(&self.of_antenna);
        }
    }

    /// `count` samples were lost. The listener leaves out the subframes in between; frame numbers go on. Samples before
    /// the gap are kept until they are searched and read.
    pub fn skip(&mut self, count: u64) {
        self.ladder.lost_samples = self.ladder.lost_samples.saturating_add(count);
        let rings = self.beside.as_mut().map_or(&mut self.raw[..], |beside| &mut beside.rings_mut()[..]);
        rings.iter_mut().for_each(|raw| raw.skip(count));
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
        let beside = self.beside.as_ref().map_or(0, |beside| beside.samples_held());
        self.raw.iter().map(Ring::len).sum::<usize>() + of_view + beside + self.watch.samples_held()
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
                State::Searching(_) => self.find(),
                State::Following(_) => self.follow(),
            };
            match heard {
                Some(Some(heard)) => return Some(heard),
                Some(None) => {}
                None if self.take_more() => {}
                None => return None,
            }
        }
    }

    /// Whether no samples will come after those in `raw`.
    fn is_at_end(&self) -> bool {
        self.is_finished && self.beside.is_none()
    }

    /// Takes more samples from the stronger cell beside. Returns whether it got on.
    fn take_more(&mut self) -> bool {
        let Some(beside) = &mut self.beside else { return false };
        match beside.step(self.is_finished, &mut self.raw) {
            Progress::Wait => false,
            Progress::More => true,
            Progress::Over => {
                self.watch.lose(beside.subframes());
                self.beside = None;
                true
            }
        }
    }

    /// While a cell that was asked for is followed: looks for a stronger one from time to time.
    fn look_for_stronger(&mut self) {
        if self.options.pci.is_none() || self.beside.is_some() {
            return;
        }
        let State::Following(following) = &self.state else { return };
        let next = following.raw_sample(following.tracker.place().start) as i64;
        let Some(view) = self.watch.look(&self.raw, next, self.options.rate_hz) else { return };
        let (candidates, _) = view.candidates(&mut self.search);
        let Some(view) = self.watch.view() else { return };
        let loudness = following.tracker.loudness();
        if let (Some(stronger), _) = self.stronger(view, &candidates, next, Some(loudness)) {
            self.take_off(stronger);
        }
    }

    /// While no cell was asked for: looks for a louder one from time to time. Moves to it if it is louder for long enough.
    fn look_for_louder(&mut self) -> Option<Heard> {
        if self.options.pci.is_some() {
            return None;
        }
        let State::Following(following) = &self.state else { return None };
        let outshone = following.outshone();
        if outshone.is_some() {
            self.watch.rush();
        }
        let next = following.raw_sample(following.tracker.place().start) as i64;
        let view = self.watch.look(&self.raw, next, self.options.rate_hz)?;
        let (candidates, _) = view.candidates(&mut self.search);
        let view = self.watch.view()?;
        let own = following.tracker.cell().pci;
        let others: Vec<Candidate> = candidates
            .into_iter()
            .filter(|other| other.pci != own && !self.louder.was_left(other.pci))
            .collect();
        let loudest = self
            .others(view, &others, next)
            .max_by(|a, b| a.1.tracker.found_loudness().total_cmp(&b.1.tracker.found_loudness()));
        let loudness =
            loudest.as_ref().map(|(lock, following)| (lock.cell.pci, following.tracker.found_loudness()));
        let verdict = match (self.louder.look(loudness, following), outshone, loudness) {
            // The cell that was found first was the weaker one.
            (_, Some((to, louder_db)), Some((pci, _))) if to == pci => {
                Verdict::Louder(Moved { from: own, to, louder_db })
            }
            (verdict, ..) => verdict,
        };
        self.watch.hurry(verdict == Verdict::Unsure);
        let (Verdict::Louder(moved), Some((lock, following))) = (verdict, loudest) else { return None };
        if lock.cell.pci != moved.to {
            return None;
        }
        self.louder.leave(moved.from);
        self.lost = None;
        self.watch.begin(false);
        self.ladder.locks += 1;
        self.state = State::Following(Box::new(following));
        self.heard.push_back(Heard::Locked(lock));
        Some(Heard::Moved(moved))
    }

    /// From the first sample that is kept on, takes a stronger cell off the samples. A search begins again. Returns whether
    /// the cell can be taken off.
    fn take_off(&mut self, stronger: Following) -> bool {
        let start = self.raw[0].start();
        let pci = stronger.tracker.cell().pci;
        let rings = vec![Ring::new(start); self.raw.len()];
        let Some(mut beside) = Beside::new(stronger, rings, &self.options) else { return false };
        std::mem::swap(&mut self.raw, beside.rings_mut());
        self.beside = Some(Box::new(beside));
        if !self.ladder.others.contains(&Some(pci)) {
            self.ladder.hear_other(pci);
        }
        if let State::Searching(searching) = &mut self.state {
            searching.restart(start);
        }
        true
    }
}

/// Forgets the samples of all antennas before number `first`.
fn forget_before(raw: &mut [Ring], first: i64) {
    raw.iter_mut().for_each(|raw| raw.forget_before(first));
}
