//! Interference cancellation: tracks a cell stronger than the requested one and subtracts its reconstructed signal from the
//! samples.
//!
//! ```text
//! samples ─▶ the stronger cell's tracker ─▶ transmitted grid ─▶ received signal
//!    └────────────────────── minus ◀──────────────────────────────┘ ─▶ the listener
//! ```

use num_complex::Complex32;

use super::following::Following;
use super::lost::LostCell;
use super::resent::Resender;
use super::{Options, forget_before, half_band_hz};
use crate::grid::Grid;
use crate::observation::Observation;
use crate::resample::Resampler;
use crate::sync::Ring;
use crate::sync::stream::Stream;
use crate::sync::track::{DataReader, Rebuilder, ReceivedPair, Reception, Signal, Step};

/// The stronger cell, and the samples not yet passed on.
pub(super) struct Beside {
    following: Following,
    /// Unprocessed samples, one ring per antenna.
    raw: Vec<Ring>,
    resender: Resender,
    rebuilder: Rebuilder,
    /// The last subframe received, with the reconstructed transmission. The channel at the end of this subframe is
    /// estimated better after the next subframe was received.
    last: Option<DecodedSubframe>,
    data: DataReader,
    /// Reconstructed signal of the cell at each antenna.
    of_antennas: Vec<Received>,
    /// Number of the next raw sample to pass on.
    given: i64,
    difference: Vec<Complex32>,
    /// Number of subframes since the cell was found.
    subframes: u64,
    /// State of the cell if it was lost, and the number of attempts to reacquire it since.
    lost: Option<LostCell>,
    tries: u32,
    options: Options,
}

/// Maximum number of attempts to reacquire a lost cell at its extrapolated timing, one per frame.
///
/// Chosen: a receiver at walking pace is out of a fade within some tens of milliseconds. Samples are passed on in the
/// meantime.
const MAX_TRIES: u32 = 20;

/// Divisor for the maximum gap: if more samples are lost than one second divided by this number, the cell is given up.
///
/// Chosen: 100 ms. A shorter gap is filled with zeros at the cell's sample rate, which must not take long.
const MAX_GAP_PARTS: u64 = 10;

/// Number of subframes after which the count of attempts is reset to zero.
const STEADY: u64 = 256;

/// One subframe of the cell.
struct DecodedSubframe {
    reception: Reception,
    /// Transmitted resource grid of each port.
    grids: Vec<Grid>,
    number: usize,
    cfi: u8,
}

/// Reconstructed signal of the cell at one antenna.
struct Received {
    /// Signal at the sample rate of the cell's FFT.
    own: Signal,
    /// Resampler from that rate to the raw sample rate; `None` if the rates are equal.
    to_raw: Option<Resampler>,
    /// Signal at the raw sample rate.
    raw: Signal,
}

/// Result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// More samples are needed.
    Wait,
    /// A subframe was processed.
    More,
    /// The cell is gone, or the input has ended. All samples have been passed on.
    Over,
}

impl Beside {
    /// Starts to cancel a cell. `raw` are empty rings that start at the position where the cell was found.
    pub(super) fn new(following: Following, raw: Vec<Ring>, options: &Options) -> Option<Beside> {
        let numerology = following.tracker.numerology();
        let (own_hz, rate_hz) = (u64::from(numerology.sample_rate_hz()), options.rate_hz);
        let given = raw[0].start();
        let received = |_: &Ring| {
            let to_raw = match following.conversion {
                None => None,
                Some(_) => Some(Resampler::new(own_hz, rate_hz, half_band_hz(numerology.bandwidth()))?),
            };
            // Sample 0 at the cell's sample rate is the first raw sample.
            let first = if to_raw.is_some() { 0 } else { given };
            Some(Received { own: Signal::new(first), to_raw, raw: Signal::new(given) })
        };
        Some(Beside {
            of_antennas: raw.iter().map(received).collect::<Option<Vec<_>>>()?,
            resender: Resender::new(*following.tracker.cell()),
            data: DataReader::new(*following.tracker.cell()),
            rebuilder: Rebuilder::new(options.transform, numerology),
            following,
            raw,
            last: None,
            given,
            difference: Vec::new(),
            subframes: 0,
            lost: None,
            tries: 0,
            options: *options,
        })
    }

    /// Returns the rings of samples that wait for processing, one per antenna.
    pub(super) fn rings_mut(&mut self) -> &mut Vec<Ring> {
        &mut self.raw
    }

    /// Number of samples held for all antennas.
    pub(super) fn samples_held(&self) -> usize {
        let of_antenna = |one: &Received| one.own.samples.len() + one.raw.samples.len();
        self.raw.iter().map(Ring::len).sum::<usize>() + self.of_antennas.iter().map(of_antenna).sum::<usize>()
    }

    /// Number of subframes in which the cell was tracked.
    pub(super) fn subframes(&self) -> u64 {
        self.subframes
    }

    /// Decodes the cell's next subframe, and passes on the finished samples without the cell's signal.
    pub(super) fn step(&mut self, is_finished: bool, out: &mut [Ring]) -> Progress {
        if let Some(lost) = self.lost {
            return self.look_again(&lost, is_finished, out);
        }
        let Following { tracker, conversion, .. } = &mut self.following;
        let step = tracker.step(&Stream::new(&self.raw, conversion.as_ref(), is_finished));
        if step == Step::Wait && !is_finished {
            return Progress::Wait;
        }
        let next = tracker.place().start;
        self.subframes += 1;
        self.resender.advance();
        let (heard, is_over) = match step {
            Step::Wait => (None, true),
            Step::Lost { .. } => {
                self.lost = Some(self.following.lost(self.options.rate_hz));
                (None, false)
            }
            Step::Subframe(heard) => {
                let reception = tracker.reception();
                let grids = self.resender.grids(&heard, reception.is_clear());
                let Observation { number, cfi, .. } = heard;
                let said = |grids| DecodedSubframe { reception, grids, number, cfi };
                (grids.map(said), false)
            }
            Step::Faint => (None, false),
            Step::Gap => {
                let next = self.following.raw_sample(next) as i64;
                let run = self.raw[0].run_from(next);
                let longest = (self.options.rate_hz / MAX_GAP_PARTS) as i64;
                (None, run.is_some_and(|run| run.start - next > longest))
            }
        };
        let done = heard.as_ref().map_or(next, |said| said.reception.start());
        if let Some(before) = self.last.take() {
            self.rebuild(before, heard.as_ref().map(|said| &said.reception), is_finished);
        }
        if heard.is_some() && self.subframes.is_multiple_of(STEADY) {
            self.tries = 0;
        }
        self.last = heard;
        self.give(libm::round(done) as i64, out);
        if is_over {
            self.pass_on(self.raw[0].end(), out);
            return Progress::Over;
        }
        Progress::More
    }

    /// While the cell is lost: passes on a frame of unchanged samples, and tries to reacquire the cell.
    fn look_again(&mut self, lost: &LostCell, is_finished: bool, out: &mut [Ring]) -> Progress {
        let (frame, end) = ((self.options.rate_hz / 100) as i64, self.raw[0].end());
        let is_whole = self.given + frame <= end;
        if !is_whole && !is_finished {
            return Progress::Wait;
        }
        if !is_whole || self.tries == MAX_TRIES {
            self.pass_on(end, out);
            return Progress::Over;
        }
        self.tries += 1;
        self.pass_on(self.given + frame, out);
        let numerology = self.following.tracker.numerology();
        let lock = lost.expected(self.given);
        if let Some(following) = Following::new(&lock, numerology, &self.raw, self.given, &self.options) {
            let given = self.raw[0].start();
            for one in &mut self.of_antennas {
                one.own = Signal::new(if one.to_raw.is_some() { 0 } else { given });
                one.to_raw.iter_mut().for_each(Resampler::clear);
                one.raw = Signal::new(given);
            }
            self.following = following;
            self.lost = None;
        }
        Progress::More
    }

    /// Reconstructs the signal of a subframe at the antennas. `next` describes the reception of the following subframe.
    fn rebuild(&mut self, before: DecodedSubframe, next: Option<&Reception>, is_finished: bool) {
        let DecodedSubframe { reception: now, mut grids, number, cfi } = before;
        let Following { tracker, conversion, .. } = &mut self.following;
        let next = now.steady(next, tracker.numerology().subframe_samples());
        if now.is_clear() {
            let stream = Stream::new(&self.raw, conversion.as_ref(), is_finished);
            self.data.read(number, cfi, ReceivedPair { now: &now, next }, tracker, &stream, &mut grids);
        }
        let mut signals: Vec<_> =
            self.of_antennas.iter_mut().map(|one| std::mem::take(&mut one.own)).collect();
        self.rebuilder.rebuild(&grids, &now, next, &mut signals);
        for (one, signal) in self.of_antennas.iter_mut().zip(signals) {
            one.own = signal;
        }
    }

    /// Passes on the samples for which the cell's signal is reconstructed: those before sample `done` of the cell.
    fn give(&mut self, done: i64, out: &mut [Ring]) {
        for one in &mut self.of_antennas {
            let samples = one.own.take_before(done);
            match &mut one.to_raw {
                None => one.raw.samples.extend(samples),
                Some(resampler) => resampler.push(&samples, &mut one.raw.samples),
            }
        }
        let end = self.of_antennas.iter().map(|one| one.raw.end()).min().unwrap_or(self.given);
        self.pass_on(end, out);
    }

    /// Passes on the raw samples before number `end`, minus the reconstructed signal of the cell where available. A gap
    /// in the samples is passed on undivided.
    fn pass_on(&mut self, end: i64, out: &mut [Ring]) {
        while self.given < end {
            let Some(run) = self.raw[0].run_from(self.given) else { break };
            if run.start > self.given {
                out.iter_mut().for_each(|ring| ring.skip((run.start - self.given) as u64));
                self.given = run.start;
                continue;
            }
            let until = run.end.min(end);
            if until == self.given {
                break;
            }
            let count = (until - self.given) as usize;
            for ((raw, one), out) in self.raw.iter().zip(&self.of_antennas).zip(out.iter_mut()) {
                let mut of_cell = one.raw.samples_from(self.given);
                for piece in raw.pieces(self.given, count).into_iter().flatten() {
                    let (here, later) = of_cell.split_at(of_cell.len().min(piece.len()));
                    self.difference.clear();
                    self.difference.extend(piece.iter().zip(here).map(|(sample, of_cell)| sample - of_cell));
                    self.difference.extend_from_slice(&piece[here.len()..]);
                    out.push(&self.difference);
                    of_cell = later;
                }
            }
            self.given = until;
        }
        for one in &mut self.of_antennas {
            one.raw.forget_before(self.given);
        }
        // The tracker may need samples from up to half a subframe before. The reacquisition of a lost cell needs one
        // frame.
        let kept = self.options.rate_hz / if self.lost.is_some() { 100 } else { 1000 };
        forget_before(&mut self.raw, self.given - kept as i64);
    }
}
