//! Cell acquisition and tracking: turns receiver samples into decoded subframes, and reacquires a cell after a loss.
//!
//! ```text
//!             a cell and its master information block
//!  Searching ────────────────────────────────────────▶ Following ──▶ one observation per subframe
//!      ▲                                                   │
//!      └──────────────── cell no longer detected ──────────┘
//! ```
//!
//! The listener keeps the samples in which it found a cell and decodes them after the search, so that a recording loses no
//! subframe.
//!
//! If a PCI is requested and another cell is as strong or stronger, the listener tracks that other cell as well. It
//! subtracts the reconstructed signal of that cell from the samples before it decodes the requested cell. If no PCI is
//! requested and another cell is stronger for longer than a typical fade, the listener switches to the other cell.

mod acquisition;
mod beside;
mod following;
mod lost;
mod louder;
mod rates;
mod resent;
mod searching;
mod tracking;
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

/// Configuration of a [`Listener`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// Sample rate, in samples per second and antenna.
    pub rate_hz: u64,
    /// Number of receive antennas. [`Listener::push`] takes one sample per antenna for each instant. The antennas share a
    /// clock and an oscillator. 0 counts as 1.
    pub antennas: usize,
    /// PCI of the only cell to track, however strong other cells are. The first other cell found that is at most 3 dB
    /// weaker, or stronger, is decoded too, so that it can be subtracted from the samples. Decoding both takes two to four
    /// times as long.
    pub pci: Option<u16>,
    /// Maximum offset between the receiver's and the cell's carrier frequency, in Hz.
    pub max_cfo_hz: f64,
    /// FFT implementation that converts samples to subcarriers.
    pub transform: Transform,
}

impl Options {
    /// Options for one antenna at the given sample rate: the strongest cell, a carrier offset of up to 12 kHz, the fastest
    /// transform.
    ///
    /// Chosen: 12 kHz are 5 ppm at 2.4 GHz. A wider search takes longer.
    pub const fn new(rate_hz: u64) -> Options {
        Options { rate_hz, antennas: 1, pci: None, max_cfo_hz: 12_000.0, transform: Transform::Fastest }
    }
}

/// Reasons why a sample rate is not supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnsupportedRate {
    /// The sample rate is too low for any cell.
    #[error("{rate_hz} samples per second are too few: the narrowest cell needs 1920000")]
    TooLow {
        /// Requested sample rate, in samples per second.
        rate_hz: u64,
    },
    /// The sample rate exceeds the limit for which memory and filters are designed.
    #[error("{rate_hz} samples per second are too many: resample them to {MAX_RATE_HZ} or fewer")]
    TooHigh {
        /// Requested sample rate, in samples per second.
        rate_hz: u64,
    },
}

/// Maximum sample rate that the listener accepts, in samples per second.
///
/// Chosen: no current receiver exceeds it. At this rate, the samples kept while no cell is found take 800 MB.
pub const MAX_RATE_HZ: u64 = 500_000_000;

/// A cell that the listener has acquired and now tracks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lock {
    /// Configuration of the cell.
    pub cell: Cell,
    /// Carrier offset: the cell's carrier frequency minus the receiver's, in Hz.
    pub cfo_hz: f64,
    /// Start of a frame, in samples since the first sample pushed.
    pub frame_start: f64,
    /// System frame number (SFN) of that frame.
    pub sfn: u16,
    /// Number of samples examined when the cell was found. The value does not decrease if the samples of a lost cell are
    /// searched again.
    pub after: u64,
}

/// Event that [`Listener::pop`] returns.
#[derive(Clone, Debug, PartialEq)]
pub enum ListenerEvent {
    /// A cell was acquired. All following subframes belong to this cell.
    Locked(Lock),
    /// The decoded control region of one subframe.
    Subframe(Observation),
    /// The cell was lost. The listener searches for a cell again.
    Lost,
    /// The listener leaves the cell for a stronger cell. The next event is [`ListenerEvent::Locked`] for the stronger
    /// cell.
    Moved(CellChange),
}

/// Change to another cell that was stronger for longer than a fade lasts. The listener changes the cell only if no PCI was
/// requested.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellChange {
    /// PCI of the cell that was tracked.
    pub from: u16,
    /// PCI of the cell that is tracked from now on.
    pub to: u16,
    /// Mean received power of the new cell relative to the old cell, in dB.
    pub louder_db: f32,
}

/// Finds and tracks a cell. Push samples, then pop events until [`Listener::pop`] returns `None`.
pub struct Listener {
    options: Options,
    search: Search,
    /// Unprocessed samples, one ring per antenna.
    raw: Vec<Ring>,
    /// Scratch buffer: samples of one antenna, separated from the interleaved input.
    of_antenna: Vec<Complex32>,
    state: State,
    heard: VecDeque<ListenerEvent>,
    lost: Option<LostCell>,
    /// Tracker of a cell that is stronger than the requested cell. The tracker receives the samples first and passes
    /// them on without the signal of that cell.
    beside: Option<Box<Beside>>,
    watch: Watch,
    /// Comparison of another cell's power with the tracked cell's. Used only if no PCI is requested.
    louder: Louder,
    /// Number of the sample after the last sample ever examined.
    reached: i64,
    /// PCI of the cell of the last subframe returned, and the raw sample at which that subframe started.
    put_out: Option<(u16, f64)>,
    ladder: Ladder,
    is_finished: bool,
}

enum State {
    Searching(Box<Searching>),
    Following(Box<Following>),
}

/// Time after which the samples before a gap in the samples are dropped (seconds).
///
/// Chosen: a clock may be off by 2 ppm before its drift has been estimated. After this time the timing error reaches the
/// maximum that reference signals can resolve.
const KEPT_S: u64 = 2;

/// Maximum gap in the samples across which a cell is tracked (seconds). After a longer gap the listener starts a new
/// search.
///
/// Chosen: once the clock drift is estimated to 0.1 ppm, the timing error after this gap is one microsecond. Reference
/// signals can still resolve that error.
const MAX_GAP_S: u64 = 10;

/// Only one in this many samples is checked for silence and clipping.
const INSPECTED: usize = 331;

impl Listener {
    /// Creates a listener that starts with a cell search.
    ///
    /// # Errors
    /// Returns [`UnsupportedRate`] if the sample rate is below the rate of the narrowest cell, or above
    /// [`MAX_RATE_HZ`].
    pub fn new(options: Options) -> Result<Listener, UnsupportedRate> {
        if options.rate_hz < VIEW_HZ {
            return Err(UnsupportedRate::TooLow { rate_hz: options.rate_hz });
        }
        if options.rate_hz > MAX_RATE_HZ {
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

    /// Buffers samples; [`Listener::pop`] processes them. The samples of several antennas are interleaved: one sample per
    /// antenna for each instant, in antenna order. An incomplete instant at the end of `samples` is dropped.
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

    /// Reports that `count` samples per antenna were lost. The listener skips the subframes in the gap; frame numbers keep
    /// counting. Samples before the gap are kept until they are searched and decoded.
    pub fn skip(&mut self, count: u64) {
        self.ladder.lost_samples = self.ladder.lost_samples.saturating_add(count);
        let rings = self.beside.as_mut().map_or(&mut self.raw[..], |beside| &mut beside.rings_mut()[..]);
        rings.iter_mut().for_each(|raw| raw.skip(count));
    }

    /// Reports the end of the samples. Subframes that wait for more samples are decoded as far as their samples reach.
    pub fn finish(&mut self) {
        self.is_finished = true;
    }

    /// Returns the next event, or `None` if the listener needs more samples.
    pub fn pop(&mut self) -> Option<ListenerEvent> {
        self.heard.pop_front().or_else(|| self.advance())
    }

    /// Returns the tracked cell, or `None` during a search.
    pub fn cell(&self) -> Option<&Cell> {
        match &self.state {
            State::Following(following) => Some(following.tracker.cell()),
            State::Searching(_) => None,
        }
    }

    /// Returns the tracker of the current cell, or `None` during a search.
    pub fn tracker(&self) -> Option<&Tracker> {
        match &self.state {
            State::Following(following) => Some(&following.tracker),
            State::Searching(_) => None,
        }
    }

    /// Number of buffered samples that may be needed again: up to 250 ms during a search, a few subframes during tracking.
    pub fn samples_held(&self) -> usize {
        let of_view = match &self.state {
            State::Searching(searching) => searching.views.iter().map(|view| view.samples.len()).sum(),
            State::Following(_) => 0,
        };
        let beside = self.beside.as_ref().map_or(0, |beside| beside.samples_held());
        self.raw.iter().map(Ring::len).sum::<usize>() + of_view + beside + self.watch.samples_held()
    }

    /// Returns the counters of the decoding stages.
    pub fn ladder(&self) -> &Ladder {
        &self.ladder
    }

    /// Gives a search for messages mutable access to the counters.
    pub fn ladder_mut(&mut self) -> &mut Ladder {
        &mut self.ladder
    }

    fn advance(&mut self) -> Option<ListenerEvent> {
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

    /// Returns whether no more samples will follow those in `raw`.
    fn is_at_end(&self) -> bool {
        self.is_finished && self.beside.is_none()
    }

    /// Processes more samples with the tracker of the stronger cell, which subtracts that cell's signal. Returns
    /// whether there was progress.
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

    /// Checks from time to time for a cell stronger than the requested one while the requested cell is tracked.
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

    /// Checks from time to time for a stronger cell while no PCI is requested. Switches to it if it is stronger for long
    /// enough.
    fn look_for_louder(&mut self) -> Option<ListenerEvent> {
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
            // The tracked cell, which was found first, is the weaker of the two.
            (_, Some((to, louder_db)), Some((pci, _))) if to == pci => {
                Verdict::Louder(CellChange { from: own, to, louder_db })
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
        self.heard.push_back(ListenerEvent::Locked(lock));
        Some(ListenerEvent::Moved(moved))
    }

    /// Subtracts a stronger cell from the samples, starting with the first sample kept, and restarts a running search at
    /// that sample. Returns whether the cell can be subtracted.
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

/// Drops the samples of all antennas before number `first`.
fn forget_before(raw: &mut [Ring], first: i64) {
    raw.iter_mut().for_each(|raw| raw.forget_before(first));
}
