//! Cell tracking: timing, carrier and channel from subframe to subframe.

mod around;
mod beside;
mod data;
mod rebuild;
mod renumber;
mod settle;

pub use data::{DataReader, ReceivedPair};
pub use rebuild::{Rebuilder, Reception, Signal};

use num_complex::Complex32;

use super::antennas::Antennas;
use super::company::Company;
use super::health::Health;
use super::lookout::Lookout;
use super::stream::{Reach, Stream};
use super::tuning::{Ramp, Tuning, sum};
use crate::cell::Cell;
use crate::channel::{Estimator, Hints};
use crate::coding::Viterbi;
use crate::complex::{angle, phasor};
use crate::numerology::Numerology;
use crate::observation::{Observation, Observer};
use crate::ofdm::{Correction, Demodulator, Transform};
use crate::pbch;
use crate::sequence::crs;
use crate::sequence::pss::pss;

/// Position of a cell in time and frequency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FramePosition {
    /// System frame number of the next subframe.
    pub sfn: u16,
    /// Number of that subframe within the frame, 0…9.
    pub number: usize,
    /// First sample of that subframe. It may be fractional.
    pub start: f64,
    /// Carrier offset: the cell's carrier frequency minus the receiver's, in Hz.
    pub cfo_hz: f64,
    /// Clock drift: number of samples by which a subframe is longer than nominal, measured by the receiver's clock.
    pub drift: f64,
}

impl FramePosition {
    fn advance(&mut self, samples: usize) {
        *self = self.later(1);
        self.start += samples as f64 + self.drift;
    }

    /// Returns this position with a subframe number that is higher by `subframes` (up to 10), for the same samples.
    fn later(&self, subframes: usize) -> FramePosition {
        let number = self.number + subframes;
        FramePosition { sfn: (self.sfn + (number / 10) as u16) % 1024, number: number % 10, ..*self }
    }
}

/// Result of [`Tracker::step`] for the next subframe.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Some samples of the subframe have not arrived yet.
    Wait,
    /// Samples of the subframe were lost.
    Gap,
    /// The subframe was received.
    Subframe(Observation),
    /// The cell is barely detectable in the subframe; it may be gone.
    Faint,
    /// The cell is gone.
    Lost {
        /// First sample from which reception was uncertain.
        since: i64,
    },
}

/// Tracks one cell.
pub struct Tracker {
    numerology: Numerology,
    demodulator: Demodulator,
    antennas: Antennas,
    observer: Observer,
    lookout: Lookout,
    company: Option<Box<Company>>,
    place: FramePosition,
    /// Carrier phase at `place.start`, in cycles.
    turns: f64,
    ramp: Ramp,
    tuning: Tuning,
    health: Health,
    viterbi: Viterbi,
    broadcast: Vec<crate::grid::Reg>,
    /// Last subframe position at which the PSS was at its expected position.
    last_sure: FramePosition,
    /// Position at which the loops settled (`settled`), and the number of subframes from the next subframe to that
    /// position.
    settled: FramePosition,
    early: usize,
    /// Whether a subframe before the position `settled` was doubtful.
    strayed: bool,
    /// Mean received power on the reference signals at the position `settled`, including noise and interference
    /// (`found_level`), and the power of one port without noise and interference (`found_loudness`).
    found_level: f32,
    found_loudness: f32,
    /// Displacement of the cell according to the previous PSS, in sixths of a symbol.
    suspected: f64,
    /// Position of the last subframe received, and the carrier phase there, in cycles.
    received: (FramePosition, f64),
    /// Whether the reference signals of the last subframe were clear enough to estimate other symbols.
    is_clear: bool,
}

/// Number of subframes from one PSS to the next.
const PRIMARY_PERIOD: usize = 5;

/// Minimum coherence of neighbouring PSS subcarriers for which a single PSS determines the displacement. Noise alone
/// reaches 0.4 occasionally; a cell at 0 dB reaches 0.5.
const CLEAR_PRIMARY: f32 = 0.6;

/// Minimum coherence of neighbouring PSS subcarriers for which two consecutive PSS that agree determine the displacement.
const FAINT_PRIMARY: f32 = 0.3;

/// Coherence that confirms a jump in timing even in a narrow cell with few reference signals.
const CLEAR_BESIDE: f32 = 0.8;

/// Minimum coherence of the reference signals for which the symbols of a subframe can be estimated, even if the subframe is
/// doubtful otherwise.
///
/// Chosen: the coherence is 0.4 if noise and interference are 2 dB stronger than the cell.
const MIN_CLEAR: f32 = 0.4;

/// SNR below which all reference signals of a subframe are demodulated (dB). Above it, fewer symbols suffice.
const CLEAN_DB: f32 = 18.0;

impl Tracker {
    /// Creates a tracker for a cell that `antennas` antennas of a receiver found at position `place`. `place` counts
    /// samples at the FFT rate of `numerology`.
    pub fn new(
        cell: Cell,
        numerology: Numerology,
        place: FramePosition,
        transform: Transform,
        antennas: usize,
    ) -> Tracker {
        Tracker {
            numerology,
            demodulator: Demodulator::by(transform, numerology),
            antennas: Antennas::new(&cell, antennas),
            observer: Observer::new(cell),
            lookout: Lookout::new(),
            company: None,
            place,
            turns: 0.0,
            ramp: Ramp::default(),
            tuning: Tuning::default(),
            health: Health::new(0.0),
            viterbi: Viterbi::default(),
            broadcast: pbch::elements(&cell),
            last_sure: place,
            settled: place,
            early: 0,
            strayed: false,
            found_level: 0.0,
            found_loudness: 0.0,
            suspected: 0.0,
            received: (place, 0.0),
            is_clear: false,
        }
    }

    /// Returns the configuration of the cell.
    pub fn cell(&self) -> &Cell {
        self.observer.cell()
    }

    /// Returns the position of the next subframe.
    pub fn place(&self) -> &FramePosition {
        &self.place
    }

    /// Length of a subframe including clock drift, in samples.
    pub fn subframe_samples(&self) -> f64 {
        self.numerology.subframe_samples() as f64 + self.place.drift
    }

    /// Returns the channel estimator of the antenna with the highest SNR.
    pub fn estimator(&self) -> &Estimator {
        self.antennas.estimator()
    }

    /// Received power of one port when the cell was found.
    pub fn found_loudness(&self) -> f32 {
        self.found_loudness
    }

    /// Present received power of one port.
    pub fn loudness(&self) -> f32 {
        self.estimator().channel().power_of_port()
    }

    /// Decodes the next subframe.
    pub fn step(&mut self, stream: &Stream<'_>) -> Step {
        let all = self.antennas.snr_db() < CLEAN_DB;
        let mut symbols = self.pilot_symbols(all);
        let mut last = self.last_control_symbol(&symbols);
        // Subframes with a PSS or PBCH must wait for these symbols, unless the samples will never arrive.
        let has_more = match self.last_of_more() {
            None => false,
            Some(more) => match self.reach(stream, last.max(more)) {
                Reach::There => true,
                Reach::NotYet if !stream.is_finished() => return Step::Wait,
                Reach::NotYet | Reach::Lost => false,
            },
        };
        let reach = self.reach(stream, last);
        if reach == Reach::NotYet {
            return Step::Wait;
        }
        if reach == Reach::Lost {
            let Some(whole) = self.last_before_gap(stream, last) else {
                self.advance();
                self.antennas.each_estimator(Estimator::forget);
                self.company.iter_mut().for_each(|company| company.forget());
                return Step::Gap;
            };
            last = whole;
            symbols.retain(|symbol| *symbol <= last);
        }
        self.antennas.remember();
        let number = self.place.number;
        let mut heard = self.receive_subframe(stream, &symbols);
        if self.early > 0 {
            self.health.renew();
            if level(self.antennas.hints()) < SILENT * self.found_level {
                self.antennas.each_estimator(Estimator::restart);
                self.advance();
                return Step::Faint;
            }
        }
        let is_moved = has_more && self.is_elsewhere(stream) || self.jumps();
        if is_moved {
            heard = self.receive_anew(stream, &symbols);
        }
        let is_beside = self.hear_beside(&symbols, &mut heard);
        if !is_beside
            && !self.health.is_doubtful_for_long()
            && self.health.is_doubtful(self.antennas.hints(), &heard)
        {
            // If whole subframes are missing without notice, symbols still start at the expected times, but they belong
            // to a later subframe.
            let is_absent = self.antennas.hints().coherence() < self.antennas.hints().of_noise();
            let there = self.displacement(stream, last).or((is_absent && self.early == 0).then_some(0));
            if let Some(there) = there {
                heard = self.look_around(there, stream, &symbols);
            }
        }
        let hints = *self.antennas.hints();
        let is_spoilt = self.antennas.snr_db() < self.antennas.snr_db_before() - SPOILT_DB;
        // If the subframe turned out to be a later subframe, its PSS or PBCH symbols may not have arrived.
        let has_more = has_more && heard.number == number;
        heard.is_doubtful = !is_beside && (is_spoilt || self.health.is_doubtful(&hints, &heard));
        self.is_clear = hints.coherence() > MIN_CLEAR;
        let is_faint = if is_beside {
            self.health.observe_beside(&hints);
            false
        } else {
            self.health.observe(&hints, heard.is_doubtful, heard.sample)
        };
        let is_spoilt = is_spoilt && !is_beside;
        for symbol in 1..self.cell().control_symbols(heard.cfi) {
            if !symbols.contains(&symbol) {
                self.demodulate(stream, symbol);
            }
        }
        heard.snr_db = self.antennas.snr_db();
        if !self.read_beside(&mut heard) {
            self.observer.bits(self.antennas.heard(), &mut heard);
        }
        if has_more {
            self.look_beside(stream, number);
        }
        self.observer.answers(self.antennas.heard(), &mut heard);
        if has_more && heard.number == 0 && !is_faint {
            self.renumber(stream);
            heard.sfn = self.place.sfn;
        }
        if !(is_faint || is_spoilt) {
            self.correct(&hints, heard.snr_db);
        } else if self.health.is_doubtful_for_long() {
            self.antennas.each_estimator(Estimator::restart);
        } else {
            // Do not update the estimator with this subframe.
            self.antennas.unlearn();
            self.strayed |= self.early > 0;
        }
        self.advance();
        if reach == Reach::Lost {
            self.antennas.each_estimator(Estimator::forget);
        }
        match self.health.lost_since(heard.sample) {
            Some(since) => Step::Lost { since },
            None if is_faint && heard.is_doubtful => Step::Faint,
            None => Step::Subframe(heard),
        }
    }

    /// Advances to the next subframe. If a subframe before the position `settled` was doubtful, the tracker restores
    /// the settled values when it reaches that position.
    fn advance(&mut self) {
        self.place.advance(self.numerology.subframe_samples());
        if self.early > 0 {
            self.early -= 1;
            if self.early == 0 && self.strayed {
                self.place = self.settled;
                self.antennas.each_estimator(Estimator::restart);
            }
        }
    }

    /// Receives the next subframe up to its CFI.
    fn receive_subframe(&mut self, stream: &Stream<'_>, symbols: &[usize]) -> Observation {
        self.receive(stream, symbols);
        self.received = (self.place, self.turns);
        let mut heard = Observation {
            sfn: self.place.sfn,
            number: self.place.number,
            sample: libm::round(self.place.start) as i64,
            ..Observation::default()
        };
        self.observer.cfi(self.antennas.heard(), &mut heard);
        heard
    }

    /// Receives the subframe again, at another position. The estimates from the old position are dropped. Earlier
    /// estimates are kept, unless the previous subframe was doubtful too.
    fn receive_anew(&mut self, stream: &Stream<'_>, symbols: &[usize]) -> Observation {
        if self.health.was_sure() && self.early == 0 {
            self.antennas.unlearn();
        } else {
            self.antennas.each_estimator(Estimator::restart);
            self.strayed |= self.early > 0;
        }
        self.receive_subframe(stream, symbols)
    }

    /// Returns whether the cell is displaced because samples were lost or duplicated. If so, moves to the new timing.
    fn jumps(&mut self) -> bool {
        let hints = self.antennas.hints();
        let delay = self.delay(hints);
        let is_beside =
            delay.abs() > self.lead() && hints.coherence() > (2.0 * hints.of_noise()).min(CLEAR_BESIDE);
        if is_beside {
            self.place.start += delay;
        }
        is_beside
    }

    /// Returns whether the PSS shows another timing than the reference signals, which repeat every sixth of a symbol. If
    /// so, moves to that timing.
    fn is_elsewhere(&mut self, stream: &Stream<'_>) -> bool {
        let symbol = self.numerology.cp().symbols_per_slot() - 1;
        self.demodulate(stream, symbol);
        let sent = pss(self.cell().pci % 3);
        let first = self.numerology.bandwidth().subcarriers() / 2 - sent.len() / 2;
        let (neighbours, power) = self.antennas.neighbours(symbol, first, &sent);
        let size = self.numerology.fft_size() as f64;
        let delay = -angle(neighbours) / std::f64::consts::TAU * size;
        // Both the PSS and the reference signals measure the delay, but reference signals only modulo a sixth of a
        // symbol.
        let (within, sixth) = (self.delay(self.antennas.hints()), size / crs::Pilots::SPACING as f64);
        let sixths = libm::round((delay - within) / sixth);
        let (apart, coherence) = (delay - within - sixths * sixth, neighbours.norm_sqr().sqrt() / power);
        let is_there = coherence >= FAINT_PRIMARY && apart.abs() <= sixth / 4.0;
        // Beyond half a symbol both measurements are blurred, and neither gives the timing.
        self.health.observe_primary(is_there && sixths == 0.0, self.antennas.hints().clarity());
        if !is_there {
            return false;
        }
        if sixths == 0.0 {
            self.last_sure = self.place;
        }
        let is_sure = coherence > CLEAR_PRIMARY || self.suspected == sixths;
        self.suspected = sixths;
        if sixths == 0.0 || !is_sure {
            return false;
        }
        // The loops tracked a false timing, so restore carrier offset and drift of the last reliable position.
        let FramePosition { cfo_hz, drift, .. } = self.last_sure;
        self.place =
            FramePosition { start: self.place.start + within + sixths * sixth, cfo_hz, drift, ..self.place };
        self.suspected = 0.0;
        true
    }

    /// Last symbol of the next subframe's PSS or PBCH; `None` if the subframe has neither.
    fn last_of_more(&self) -> Option<usize> {
        match self.place.number {
            0 => Some(self.last_broadcast_symbol()),
            PRIMARY_PERIOD => Some(self.numerology.cp().symbols_per_slot() - 1),
            _ => None,
        }
    }

    /// Symbols with reference signals to demodulate, in descending order: all such symbols, or only the symbols of the
    /// first slot.
    fn pilot_symbols(&self, all: bool) -> Vec<usize> {
        let cell = self.cell();
        let per_slot = cell.cp.symbols_per_slot();
        let of_port = |port| crs::pilot_symbols(cell.cp, port);
        let symbols = (0..2 * per_slot).filter(|&symbol| {
            let has_any = (0..cell.ports.count()).any(|port| of_port(port).any(|other| other == symbol));
            // Ports 2 and 3 have one symbol with reference signals per slot, and each port uses half of the symbol's
            // reference subcarriers, so include the symbol of the second slot.
            has_any && (all || symbol < per_slot || symbol == per_slot + 1)
        });
        symbols.rev().collect()
    }

    /// Last symbol that contains control channels or reference signals of `pilots`.
    fn last_control_symbol(&self, pilots: &[usize]) -> usize {
        pilots.iter().copied().max().unwrap_or(0).max(self.cell().control_symbols(3))
    }

    /// Last symbol of the PBCH.
    fn last_broadcast_symbol(&self) -> usize {
        self.numerology.cp().symbols_per_slot() + 3
    }

    /// Returns whether the samples of the next subframe have arrived up to symbol `last`, including a margin of half a
    /// symbol for a late start.
    fn reach(&self, stream: &Stream<'_>, last: usize) -> Reach {
        let size = self.numerology.fft_size() as i64;
        let later = size / 2;
        match stream.reach(self.first_sample(0), self.first_sample(last) + size + later) {
            // At the end of the input, drop the margin.
            Reach::NotYet if stream.is_finished() => {
                stream.reach(self.first_sample(0), self.first_sample(last) + size)
            }
            reach => reach,
        }
    }

    /// Last symbol, up to `last`, before lost samples. Returns `None` unless the longest possible control region is
    /// complete.
    fn last_before_gap(&self, stream: &Stream<'_>, last: usize) -> Option<usize> {
        let size = self.numerology.fft_size() as i64;
        let is_whole =
            |symbol| stream.reach(self.first_sample(0), self.first_sample(symbol) + size) == Reach::There;
        (self.cell().control_symbols(3) - 1..=last).rev().find(|symbol| is_whole(*symbol))
    }

    /// Demodulates symbols and estimates the channel from them.
    fn receive(&mut self, stream: &Stream<'_>, symbols: &[usize]) {
        self.antennas.each_estimator(Estimator::begin);
        for &symbol in symbols {
            self.demodulate(stream, symbol);
            self.antennas.add(self.place.number, symbol);
        }
        self.antennas.finish(self.place.number);
    }

    /// Number of samples by which the FFT window starts before its symbol. The window then covers echoes before the
    /// mean delay, and late echoes that the prefix covers.
    fn lead(&self) -> f64 {
        (self.numerology.prefix_samples(1) / 4) as f64
    }

    /// First sample of the FFT window of a symbol.
    fn first_sample(&self, symbol: usize) -> i64 {
        libm::floor(self.place.start - self.lead()) as i64 + self.numerology.symbol_start(symbol) as i64
    }

    fn demodulate(&mut self, stream: &Stream<'_>, symbol: usize) {
        let first = self.first_sample(symbol);
        let size = self.numerology.fft_size();
        let late = self.place.start + self.numerology.symbol_start(symbol) as f64 - first as f64;
        self.ramp.make(self.numerology, late);
        self.tuning.tune(self.place.cfo_hz, self.numerology);
        let rate_hz = f64::from(self.numerology.sample_rate_hz());
        let first_turn = self.turns + self.place.cfo_hz / rate_hz * (first as f64 - self.place.start);
        let turn = phasor(-first_turn);
        let turn = Complex32::new(turn.re as f32, turn.im as f32);
        for (at, antenna) in self.antennas.iter_mut() {
            let row = antenna.grid.symbol_mut(symbol);
            let stream = stream.of(at);
            let Some(samples) = stream.pieces(first, size, &mut antenna.window) else {
                row.fill(Complex32::default());
                continue;
            };
            // The mean of the samples is the receiver's DC offset: the cell transmits nothing at its centre.
            let mean = (symbol == 0).then(|| samples.clone().map(sum).sum::<Complex32>() / size as f32);
            let (phasors, ramp) = (&self.tuning.phasors[..], &self.ramp.values[..]);
            let correction = Correction { dc: antenna.dc, phasors, ramp, turn };
            self.demodulator.symbol(samples, &correction, row);
            if let Some(mean) = mean {
                antenna.learn_dc(mean);
            }
        }
    }

    /// Updates timing, drift and carrier offset with the measurements of the reference signals.
    fn correct(&mut self, hints: &Hints, snr_db: f32) {
        let samples = self.numerology.subframe_samples() as f64;
        self.turns +=
            self.place.cfo_hz / f64::from(self.numerology.sample_rate_hz()) * (samples + self.place.drift);
        self.turns -= libm::floor(self.turns);
        let ratio = libm::pow(10.0, f64::from(snr_db) / 10.0);
        let trust = hints.pairs as f64 * ratio.min(10.0);
        let share = LOOP_SHARE * trust / (trust + 30.0);
        if hints.coherence() > hints.of_noise() {
            let delay = self.delay(hints);
            self.place.start += share * delay;
            self.place.drift = (self.place.drift + share * share / 8.0 * delay)
                .clamp(-MAX_DRIFT * samples, MAX_DRIFT * samples);
            self.place.cfo_hz += share * self.carrier_error_hz(hints);
        }
    }

    /// Delay of the cell relative to the expected timing, in samples.
    fn delay(&self, hints: &Hints) -> f64 {
        let per_sample =
            std::f64::consts::TAU * crs::Pilots::SPACING as f64 / self.numerology.fft_size() as f64;
        -angle(hints.neighbours) / per_sample
    }

    fn carrier_error_hz(&self, hints: &Hints) -> f64 {
        let late = self.numerology.cp().symbols_per_slot() - 3;
        let samples = self.numerology.symbol_start(late) - self.numerology.symbol_start(0);
        let seconds = samples as f64 / f64::from(self.numerology.sample_rate_hz());
        angle(hints.turn) / (std::f64::consts::TAU * seconds)
    }
}

/// Mean received power of reference signals.
fn level(hints: &Hints) -> f32 {
    hints.power / hints.count.max(1) as f32
}

/// Threshold of power relative to the level at the settled position: an earlier subframe with less power counts as
/// silence, because no fade is as deep.
const SILENT: f32 = 1e-3;

/// Drop in SNR within one subframe that indicates something other than a subframe of the cell (dB).
const SPOILT_DB: f32 = 8.0;

/// Maximum loop gain: the share of an error that is corrected per subframe.
const LOOP_SHARE: f64 = 0.15;

/// Maximum clock drift, relative.
const MAX_DRIFT: f64 = 50e-6;
