//! Follows a cell: timing, carrier and channel from subframe to subframe.

use num_complex::Complex32;

use super::prefix;
use super::stream::{Reach, Stream, Window};
use super::{angle, correlate, phasor, phasors_back};
use crate::cell::Cell;
use crate::channel::{Estimator, Hints};
use crate::coding::Viterbi;
use crate::grid::Grid;
use crate::modulation::soft_bits;
use crate::numerology::Numerology;
use crate::observation::{Observation, Observer};
use crate::ofdm::{Correction, Demodulator, Transform};
use crate::pbch::{self, Mib};
use crate::sequence::crs;
use crate::sequence::pss::pss;

/// Where a cell is in time and frequency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// System frame number of the next subframe.
    pub sfn: u16,
    /// Its number within the frame, 0…9.
    pub number: usize,
    /// Its first sample.
    pub start: f64,
    /// How far the cell's carrier lies above the receiver's, in Hz.
    pub cfo_hz: f64,
    /// How many samples too many a subframe has, as the receiver's clock counts.
    pub drift: f64,
}

impl Place {
    fn advance(&mut self, samples: usize) {
        self.start += samples as f64 + self.drift;
        self.number += 1;
        if self.number == 10 {
            self.number = 0;
            self.sfn = (self.sfn + 1) % 1024;
        }
    }
}

/// What came of the next subframe.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Its samples are not all there yet.
    Wait,
    /// Its samples were lost.
    Gap,
    /// It was heard.
    Heard(Observation),
    /// The cell can hardly be heard in it; maybe it is gone.
    Faint,
    /// The cell is not there any more: nothing was heard since this sample.
    Lost {
        /// The first sample in which nothing is known to be heard.
        since: i64,
    },
}

/// Follows one cell.
pub struct Tracker {
    numerology: Numerology,
    demodulator: Demodulator,
    estimator: Estimator,
    observer: Observer,
    grid: Grid,
    place: Place,
    /// Turns of the carrier until `place.start`.
    turns: f64,
    ramp: Ramp,
    tuning: Tuning,
    dc: Complex32,
    health: Health,
    viterbi: Viterbi,
    broadcast: Vec<crate::grid::Reg>,
    window: Window,
    /// Where the PSS was last where it was expected.
    last_sure: Place,
    /// Where the frame began by which the cell was found: before it there may have been none.
    found_at: f64,
    /// The power of reference signals there.
    found_level: f32,
    /// By how many sixths of a symbol it was elsewhere the last time.
    suspected: f64,
}

/// How well the cell is heard.
#[derive(Clone, Copy, Debug, Default)]
struct Health {
    /// Averages of products of neighbours and of powers, as in [`Hints`].
    neighbours: Complex32,
    power: f32,
    /// Faint subframes in a row, and where they began.
    faint: u32,
    since: i64,
    /// Subframes since the cell was last heard for sure.
    doubtful: u32,
    /// Frames in a row whose PBCH could not be read.
    mute: u32,
    /// The coherence of subframes in which the PSS was where it was expected, and how many since in which it was not, and
    /// reference signals were blurred.
    sharp: f32,
    astray: u32,
    /// The usual coherence.
    usual: f32,
}

/// Subframes after which a cell that was clear and is gone counts as lost.
///
/// Chosen: two in a row may be a deep fade or a burst of noise.
const GONE: u32 = 3;

/// Subframes after which a cell that was hard to hear all along counts as lost.
const TOO_FAINT: u32 = 200;

/// Frames without a readable PBCH after which a cell counts as lost: one that is clear, and one that is not.
///
/// Chosen: the PBCH of a single frame bears more noise than any message; unread, something else is wrong: timing by more
/// than reference signals can tell.
const MUTE: [u32; 2] = [3, 10];

/// Subframes from one PSS to the next.
const PRIMARY_PERIOD: usize = 5;

/// PSS that are not where they are expected, with reference signals of less than this share of their coherence before, after
/// which a cell counts as lost.
const ASTRAY: u32 = 2;
const BLURRED: f32 = 0.7;

/// A share of the usual coherence below which timing is doubted.
const SUDDEN: f32 = 0.85;

/// How fast it follows.
const USUAL_SHARE: f32 = 0.1;

/// How alike neighbours in a PSS are, at least, that tells where the cell is: once, or twice the same. Noise alone reaches
/// 0.4 now and then, a cell at 0 dB 0.5.
const CLEAR_PRIMARY: f32 = 0.6;
const FAINT_PRIMARY: f32 = 0.3;

/// A coherence beyond which a cell is clear.
const CLEAR: f32 = 0.6;

/// A coherence that makes a jump sure also where a narrow cell has few reference signals.
const CLEAR_BESIDE: f32 = 0.8;

/// Signal to noise below which all reference signals of a subframe are worth their Fourier transforms.
const CLEAN_DB: f32 = 18.0;

impl Tracker {
    /// For a cell that was found at `place`, in samples at the rate of an FFT of `numerology`.
    pub fn new(cell: Cell, numerology: Numerology, place: Place, transform: Transform) -> Tracker {
        Tracker {
            numerology,
            demodulator: Demodulator::by(transform, numerology),
            estimator: Estimator::new(&cell),
            observer: Observer::new(cell),
            grid: Grid::new(&cell),
            place,
            turns: 0.0,
            ramp: Ramp::default(),
            tuning: Tuning::default(),
            dc: Complex32::default(),
            health: Health::default(),
            viterbi: Viterbi::default(),
            broadcast: pbch::elements(&cell),
            window: Window::default(),
            last_sure: place,
            found_at: place.start,
            found_level: 0.0,
            suspected: 0.0,
        }
    }

    /// The cell.
    pub fn cell(&self) -> &Cell {
        self.observer.cell()
    }

    /// Where the next subframe is.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// What the channel estimate knows.
    pub fn estimator(&self) -> &Estimator {
        &self.estimator
    }

    /// Lets the loops come to rest on what `stream` holds, then goes back to the first subframe that it holds: what was used
    /// to find the cell is read too. Whether its reference signals are there at all.
    pub fn settle(&mut self, stream: &Stream<'_>) -> bool {
        let samples = self.numerology.subframe_samples();
        let enough = (SETTLING * samples) as f64;
        while (stream.end() as f64) < self.place.start + enough && self.go_back(stream) {}
        self.rehearse(stream, true);
        // One subframe tells little where noise is loud: all of them together have the last word.
        let all = self.rehearse(stream, false);
        let is_there = all.coherence() > all.of_noise();
        if is_there {
            self.place.start += self.delay(&all);
            self.place.cfo_hz += self.carrier_error_hz(&all);
        }
        while self.go_back(stream) {}
        self.turns = 0.0;
        self.estimator.hold_still();
        self.found_level = level(&all);
        is_there
    }

    /// Receives the next subframes, correcting timing and carrier by each of them if it `follows`, and goes back to the first.
    /// Gives what all told together.
    fn rehearse(&mut self, stream: &Stream<'_>, follows: bool) -> Hints {
        let samples = self.numerology.subframe_samples();
        let first = self.place;
        let (mut passed, mut heard) = (0, 0);
        let mut all = Hints::default();
        let symbols = self.pilot_symbols(true);
        while heard < SETTLING {
            match self.reach(stream, self.last_control_symbol(&symbols)) {
                Reach::NotYet => break,
                Reach::Lost => {}
                Reach::There => {
                    self.receive(stream, &symbols);
                    heard += 1;
                    let hints = *self.estimator.hints();
                    all.add(&hints);
                    if follows && hints.coherence() > hints.of_noise() {
                        self.place.start += self.delay(&hints);
                        self.place.cfo_hz += 0.5 * self.carrier_error_hz(&hints);
                    }
                    // What was learnt with another timing does not fit any more.
                    self.estimator.forget();
                }
            }
            self.place.advance(samples);
            passed += 1;
        }
        let start = self.place.start - (passed * samples) as f64;
        self.place = Place { start, cfo_hz: self.place.cfo_hz, ..first };
        all
    }

    /// One subframe back, if its samples may be there.
    fn go_back(&mut self, stream: &Stream<'_>) -> bool {
        let samples = self.numerology.subframe_samples() as i64;
        if self.first_sample(0) - samples < stream.start() {
            return false;
        }
        self.place.start -= samples as f64;
        self.place.number = (self.place.number + 9) % 10;
        if self.place.number == 9 {
            self.place.sfn = (self.place.sfn + 1023) % 1024;
        }
        true
    }

    /// Reads the next subframe.
    pub fn step(&mut self, stream: &Stream<'_>) -> Step {
        let all = self.estimator.channel().snr_db() < CLEAN_DB;
        let symbols = self.pilot_symbols(all);
        let last = self.last_control_symbol(&symbols);
        // Some subframes wait for a synchronisation signal or the PBCH, unless that never comes.
        let has_more = match self.last_of_more() {
            None => false,
            Some(more) => match self.reach(stream, last.max(more)) {
                Reach::There => true,
                Reach::NotYet if !stream.is_finished() => return Step::Wait,
                Reach::NotYet | Reach::Lost => false,
            },
        };
        match self.reach(stream, last) {
            Reach::There => {}
            Reach::NotYet => return Step::Wait,
            Reach::Lost => {
                self.place.advance(self.numerology.subframe_samples());
                self.estimator.forget();
                return Step::Gap;
            }
        }
        self.receive(stream, &symbols);
        if self.place.start < self.found_at {
            self.health = Health::default();
            if level(self.estimator.hints()) < SILENT * self.found_level {
                self.estimator.restart();
                self.place.advance(self.numerology.subframe_samples());
                return Step::Faint;
            }
        }
        let mut heard = Observation {
            sfn: self.place.sfn,
            number: self.place.number,
            sample: libm::round(self.place.start) as i64,
            ..Observation::default()
        };
        if has_more && self.is_elsewhere(stream) || self.jumps() || self.is_displaced(stream, last) {
            self.estimator.restart();
            self.receive(stream, &symbols);
            heard.sample = libm::round(self.place.start) as i64;
        }
        let hints = *self.estimator.hints();
        let is_faint = self.health.observe(&hints, heard.sample);
        let coherence = hints.coherence();
        let share = if self.health.usual == 0.0 { 1.0 } else { USUAL_SHARE };
        self.health.usual += share * (coherence - self.health.usual);
        let channel = self.estimator.channel();
        (heard.cfi, heard.cfi_margin) = self.observer.cfi(heard.number, &self.grid, channel);
        for symbol in 1..self.cell().control_symbols(heard.cfi) {
            if !symbols.contains(&symbol) {
                self.demodulate(stream, symbol);
            }
        }
        let channel = self.estimator.channel();
        heard.snr_db = channel.snr_db();
        self.observer.bits(&self.grid, channel, &mut heard);
        self.observer.answers(&self.grid, channel, &mut heard);
        if has_more && heard.number == 0 && !is_faint {
            self.renumber(stream);
            heard.sfn = self.place.sfn;
        }
        self.correct(&hints, heard.snr_db);
        self.place.advance(self.numerology.subframe_samples());
        if self.health.is_mute() || self.health.astray >= ASTRAY {
            return Step::Lost { since: heard.sample };
        }
        match (self.health.is_lost(), is_faint) {
            (true, _) => Step::Lost { since: self.health.since },
            (_, true) => Step::Faint,
            _ => Step::Heard(heard),
        }
    }

    /// Whether the cell is somewhat beside where it was: samples were lost or doubled. Goes there.
    fn jumps(&mut self) -> bool {
        let hints = self.estimator.hints();
        let delay = self.delay(hints);
        let is_beside =
            delay.abs() > self.lead() && hints.coherence() > (2.0 * hints.of_noise()).min(CLEAR_BESIDE);
        if is_beside {
            self.place.start += delay;
        }
        is_beside
    }

    /// Whether reference signals are suddenly blurred, and cyclic prefixes show that symbols begin elsewhere. Goes there.
    fn is_displaced(&mut self, stream: &Stream<'_>, last: usize) -> bool {
        let coherence = self.estimator.hints().coherence();
        if coherence > SUDDEN * self.health.usual {
            return false;
        }
        let size = self.numerology.fft_size();
        let before = size / 2 + self.numerology.prefix_samples(1);
        let first = libm::round(self.place.start) as i64 - before as i64;
        let end = self.numerology.symbol_start(last) + size;
        let samples: Vec<Complex32> = match stream.pieces(first, before + end, &mut self.window) {
            Some(pieces) => pieces.flatten().copied().collect(),
            None => return false,
        };
        let Some(shift) = prefix::displacement(self.numerology, &samples, last) else { return false };
        let Place { cfo_hz, drift, .. } = self.last_sure;
        self.place = Place { start: self.place.start + shift as f64, cfo_hz, drift, ..self.place };
        true
    }

    /// Whether the PSS shows that the cell is elsewhere than its reference signals tell, which repeat every sixth of a
    /// symbol. Goes there.
    fn is_elsewhere(&mut self, stream: &Stream<'_>) -> bool {
        let symbol = self.numerology.cp().symbols_per_slot() - 1;
        self.demodulate(stream, symbol);
        let row = self.grid.symbol(symbol);
        let sent = pss(self.cell().pci % 3);
        let first = row.len() / 2 - sent.len() / 2;
        let gains: Vec<_> = row[first..].iter().zip(&sent).map(|(got, sent)| got * sent.conj()).collect();
        let neighbours = correlate(&gains, &gains[1..]);
        let power = correlate(&gains, &gains).re;
        let size = self.numerology.fft_size() as f64;
        let delay = -angle(neighbours) / std::f64::consts::TAU * size;
        // Both know the delay, one of them but for sixths.
        let (within, sixth) = (self.delay(self.estimator.hints()), size / crs::Pilots::SPACING as f64);
        let sixths = libm::round((delay - within) / sixth);
        let (apart, coherence) = (delay - within - sixths * sixth, neighbours.norm_sqr().sqrt() / power);
        let hints = self.estimator.hints().coherence();
        // Beyond half a symbol both are blurred, and neither tells where the cell is.
        self.health.astray += u32::from(hints < BLURRED * self.health.sharp);
        if coherence < FAINT_PRIMARY || apart.abs() > sixth / 4.0 {
            return false;
        }
        if sixths == 0.0 {
            self.last_sure = self.place;
            self.health.astray = 0;
            self.health.sharp += 0.2 * (hints - self.health.sharp);
        }
        let is_sure = coherence > CLEAR_PRIMARY || self.suspected == sixths;
        self.suspected = sixths;
        if sixths == 0.0 || !is_sure {
            return false;
        }
        // The loops followed what was not there.
        let Place { cfo_hz, drift, .. } = self.last_sure;
        self.place = Place { start: self.place.start + within + sixths * sixth, cfo_hz, drift, ..self.place };
        self.suspected = 0.0;
        true
    }

    /// Of the next subframe the last symbol of the PSS or PBCH, if it has any.
    fn last_of_more(&self) -> Option<usize> {
        match self.place.number {
            0 => Some(self.last_broadcast_symbol()),
            PRIMARY_PERIOD => Some(self.numerology.cp().symbols_per_slot() - 1),
            _ => None,
        }
    }

    /// Symbols with reference signals that are received, the first last: those of the first slot, or all.
    fn pilot_symbols(&self, all: bool) -> Vec<usize> {
        let cell = self.cell();
        let per_slot = cell.cp.symbols_per_slot();
        let of_port = |port| crs::pilot_symbols(cell.cp, port);
        let symbols = (0..2 * per_slot).filter(|&symbol| {
            let has_any = (0..cell.ports.count()).any(|port| of_port(port).any(|other| other == symbol));
            // Ports 2 and 3 have one symbol per slot, at half of their subcarriers each.
            has_any && (all || symbol < per_slot || symbol == per_slot + 1)
        });
        symbols.rev().collect()
    }

    /// The last symbol that control channels or some reference signals lie in.
    fn last_control_symbol(&self, pilots: &[usize]) -> usize {
        pilots.iter().copied().max().unwrap_or(0).max(self.cell().control_symbols(3))
    }

    /// The last symbol of the PBCH.
    fn last_broadcast_symbol(&self) -> usize {
        self.numerology.cp().symbols_per_slot() + 3
    }

    /// Whether the next subframe is there up to its symbol `last`, also if it turns out to be somewhat later.
    fn reach(&self, stream: &Stream<'_>, last: usize) -> Reach {
        let size = self.numerology.fft_size() as i64;
        let later = size / (2 * crs::Pilots::SPACING as i64);
        match stream.reach(self.first_sample(0), self.first_sample(last) + size + later) {
            // At the very end nothing later comes.
            Reach::NotYet if stream.is_finished() => {
                stream.reach(self.first_sample(0), self.first_sample(last) + size)
            }
            reach => reach,
        }
    }

    /// Demodulates symbols and learns the channel from them.
    fn receive(&mut self, stream: &Stream<'_>, symbols: &[usize]) {
        self.estimator.begin();
        for &symbol in symbols {
            self.demodulate(stream, symbol);
            self.estimator.add(self.place.number, symbol, &self.grid);
        }
        self.estimator.finish(self.place.number);
    }

    /// How many samples before its first the FFT of a symbol begins: echoes before the mean are within the symbol then, as
    /// are late ones as long as the prefix bears them.
    fn lead(&self) -> f64 {
        (self.numerology.prefix_samples(1) / 4) as f64
    }

    /// The first sample of the FFT of a symbol.
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
        let correction = Correction {
            dc: self.dc,
            phasors: &self.tuning.phasors,
            ramp: &self.ramp.values,
            turn: Complex32::new(turn.re as f32, turn.im as f32),
        };
        let Some(samples) = stream.pieces(first, size, &mut self.window) else {
            self.grid.symbol_mut(symbol).fill(Complex32::default());
            return;
        };
        // The mean of samples: the cell itself sends nothing at its centre.
        let mean = (symbol == 0).then(|| samples.clone().map(sum).sum::<Complex32>() / size as f32);
        self.demodulator.symbol(samples, &correction, self.grid.symbol_mut(symbol));
        if let Some(mean) = mean.filter(|mean| mean.re.is_finite() && mean.im.is_finite()) {
            self.dc += (mean - self.dc) * DC_SHARE;
        }
    }

    /// Corrects timing and carrier by what the reference signals told.
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
                .clamp(-MOST_DRIFT * samples, MOST_DRIFT * samples);
            self.place.cfo_hz += share * self.carrier_error_hz(hints);
        }
    }

    /// By how many samples the cell is later than thought.
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

    /// Reads the PBCH; if it tells of another frame than thought, believes it.
    fn renumber(&mut self, stream: &Stream<'_>) {
        let last = self.last_broadcast_symbol();
        (last - 3..=last).for_each(|symbol| self.demodulate(stream, symbol));
        let cell = *self.cell();
        let symbols = self.estimator.channel().symbols(&cell, &self.grid, &self.broadcast);
        let levels: Vec<f32> = symbols.iter().flatten().flat_map(|symbol| [symbol.re, symbol.im]).collect();
        let mut soft = Vec::new();
        soft_bits(&levels, &mut soft);
        let (expected, viterbi) = (self.place.sfn, &mut self.viterbi);
        self.health.mute += 1;
        if pbch::confirm(cell.pci, &soft, &Mib::new(&cell, expected), cell.ports, expected, viterbi) {
            self.health.mute = 0;
        } else if let Some((mib, ports, sfn)) = pbch::decode(cell.pci, &soft, viterbi)
            && (Mib { spare: 0, ..mib }, ports) == (Mib::new(&cell, sfn), cell.ports)
        {
            self.health.mute = 0;
            self.place.sfn = sfn;
        }
    }
}

/// The mean power of reference signals.
fn level(hints: &Hints) -> f32 {
    hints.power / hints.count.max(1) as f32
}

/// A share of the power of a cell, before it was found, that is silence: no fade is as deep.
const SILENT: f32 = 1e-3;

/// Subframes in which loops come to rest before the first is read.
const SETTLING: usize = 8;

/// The share of an error that is corrected at once, at most.
const LOOP_SHARE: f64 = 0.15;

/// Clocks are not worse than this.
const MOST_DRIFT: f64 = 50e-6;

/// The share of a symbol's mean that is taken over.
const DC_SHARE: f32 = 0.1;

impl Health {
    /// Takes what a subframe told; whether the cell, clear before, can hardly be heard in it.
    fn observe(&mut self, hints: &Hints, sample: i64) -> bool {
        let was_clear = self.coherence() > CLEAR;
        // Within a few symbols the carrier cannot turn far: where it seems to, timing is off by whole periods of the reference
        // signals.
        let is_absurd = hints.turn.re < 0.0 && hints.turn.norm_sqr() > hints.neighbours.norm_sqr() / 16.0;
        let is_faint = is_absurd || hints.coherence() < hints.of_noise().min(0.5 * CLEAR);
        if is_faint && was_clear {
            if self.faint == 0 {
                self.since = sample;
            }
            self.faint += 1;
            return true;
        }
        self.faint = 0;
        let share = if self.power == 0.0 { 1.0 } else { 0.1 };
        self.neighbours += (hints.neighbours - self.neighbours) * share;
        self.power += (hints.power - self.power) * share;
        // Ten subframes are averaged: noise adds up to a third of that in one.
        if self.coherence() > hints.of_noise() / 3.0 {
            self.doubtful = 0;
        } else {
            if self.doubtful == 0 {
                self.since = sample;
            }
            self.doubtful += 1;
        }
        is_faint && self.doubtful > 0
    }

    fn coherence(&self) -> f32 {
        self.neighbours.norm_sqr().sqrt() / self.power.max(f32::MIN_POSITIVE)
    }

    fn is_mute(&self) -> bool {
        self.mute >= MUTE[usize::from(self.coherence() < CLEAR)]
    }

    fn is_lost(&self) -> bool {
        self.faint >= GONE || self.doubtful >= TOO_FAINT
    }
}

/// What turns the samples of a symbol back by the carrier offset.
#[derive(Clone, Debug, Default)]
struct Tuning {
    cfo_hz: f64,
    phasors: Vec<Complex32>,
}

impl Tuning {
    /// Two hertz turn the samples of a symbol by less than 0.05°: for less nothing is made anew.
    fn tune(&mut self, cfo_hz: f64, numerology: Numerology) {
        if self.phasors.is_empty() || (cfo_hz - self.cfo_hz).abs() > 2.0 {
            self.cfo_hz = cfo_hz;
            let turns = cfo_hz / f64::from(numerology.sample_rate_hz());
            phasors_back(turns, numerology.fft_size(), &mut self.phasors);
        }
    }
}

/// The sum of samples, in lanes.
fn sum(samples: &[Complex32]) -> Complex32 {
    let mut lanes = [Complex32::default(); 8];
    let eights = samples.chunks_exact(8);
    let rest: Complex32 = eights.remainder().iter().sum();
    for eight in eights {
        for (lane, sample) in lanes.iter_mut().zip(eight) {
            *lane += sample;
        }
    }
    rest + lanes.iter().sum::<Complex32>()
}

/// What makes up for an FFT that begins before its symbol.
#[derive(Clone, Debug, Default)]
struct Ramp {
    late: f64,
    values: Vec<Complex32>,
}

impl Ramp {
    /// For a symbol that begins `late` samples after its FFT. A tone of amplitude 1 becomes a resource element of 1.
    fn make(&mut self, numerology: Numerology, late: f64) {
        // A 64th of a sample turns the outermost subcarriers by less than 2°.
        if !self.values.is_empty() && (late - self.late).abs() < 1.0 / 64.0 {
            return;
        }
        self.late = late;
        let size = numerology.fft_size() as f64;
        let count = numerology.bandwidth().subcarriers();
        let step = phasor(late / size);
        let half = (count / 2) as f64;
        let mut now = phasor(-half * late / size) / size;
        self.values.clear();
        for k in 0..count {
            if k == count / 2 {
                // Nothing is sent at the centre.
                now *= step;
            }
            self.values.push(Complex32::new(now.re as f32, now.im as f32));
            now *= step;
        }
    }
}
