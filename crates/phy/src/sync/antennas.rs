//! The antennas of one receiver. They share its clock and oscillator; each has its own channel and its own noise.
//!
//! What antennas hear is added up behind the matched filters, each with the weight that its noise leaves it:
//! maximum-ratio combining, subcarrier by subcarrier.
//!
//! Source: D. G. Brennan, "Linear Diversity Combining Techniques", Proc. IRE 47, 1959, §VI

use num_complex::Complex32;

use super::correlate;
use super::stream::Window;
use crate::cell::Cell;
use crate::channel::{Channel, Estimator, Hints, Learnt, Turn};
use crate::diversity::Quad;
use crate::grid::{Grid, Reg};

/// All antennas; at least one.
pub struct Antennas {
    all: Vec<Antenna>,
    hints: Hints,
}

/// One antenna.
pub struct Antenna {
    pub grid: Grid,
    pub window: Window,
    /// The mean of its samples, which is the receiver's own.
    pub dc: Complex32,
    /// The share by which the next mean of a symbol changes it.
    dc_share: f32,
    estimator: Estimator,
    /// What the estimator knew before the subframe.
    before: Learnt,
    /// Averages of products of neighbours, of their squares, and of powers, as in [`Hints`].
    neighbours: Complex32,
    squares: f32,
    power: f32,
    /// Subframes behind the averages, up to [`WATCHED`].
    watched: f32,
    /// What its power counts beside that of the best antenna; 0 if it does not hear the cell.
    weight: f32,
}

/// An antenna whose signal to noise ratio is less than this share of the best antenna's is left out.
///
/// Chosen: it would add 0.1 dB, and more noise than that if its channel is not known well.
const LEAST_SHARE: f32 = 0.03;

/// The share by which the mean of a symbol changes the estimate of DC.
const DC_SHARE: f32 = 0.1;

/// By this factor, the square of an average must exceed that of an average of independent values.
///
/// Chosen: once averages run over all their subframes, chance reaches it once in 2000.
const STEADY: f32 = 4.0;

/// Subframes over which averages run.
///
/// Chosen: noise adds up to a third of its coherence in one subframe, and a fade is seldom shorter.
const WATCHED: f32 = 9.0;

impl Antennas {
    /// `count` antennas (at least one) that listen to a cell.
    pub fn new(cell: &Cell, count: usize) -> Antennas {
        let antenna = |_| {
            let estimator = Estimator::new(cell);
            Antenna {
                grid: Grid::new(cell),
                window: Window::default(),
                dc: Complex32::default(),
                // What a dead antenna gives is mostly DC: beside others, none of it may pass for a cell.
                dc_share: if count > 1 { 1.0 } else { DC_SHARE },
                before: estimator.learnt(),
                estimator,
                neighbours: Complex32::default(),
                squares: 0.0,
                power: 0.0,
                watched: 0.0,
                weight: 1.0,
            }
        };
        Antennas { all: (0..count.max(1)).map(antenna).collect(), hints: Hints::default() }
    }

    /// Each antenna, with its number.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut Antenna)> {
        self.all.iter_mut().enumerate()
    }

    /// The number of the antenna that hears the cell best.
    pub fn best(&self) -> usize {
        let ratios = self.all.iter().map(Antenna::ratio).enumerate();
        ratios.reduce(|best, next| if next.1 > best.1 { next } else { best }).map_or(0, |(at, _)| at)
    }

    /// The estimator of the antenna that hears the cell best.
    pub fn estimator(&self) -> &Estimator {
        &self.all[self.best()].estimator
    }

    /// What each antenna that hears the cell received, and through which channel.
    pub fn heard(&self) -> impl Iterator<Item = (&Grid, &Channel)> + Clone {
        let heard = self.all.iter().filter(|antenna| antenna.weight > 0.0);
        heard.map(|antenna| (&antenna.grid, antenna.estimator.channel()))
    }

    /// What each antenna received, and through which channel; `None` if it does not hear the cell.
    pub fn each(&self) -> impl Iterator<Item = Option<(&Grid, &Channel)>> {
        self.all.iter().map(|one| (one.weight > 0.0).then(|| (&one.grid, one.estimator.channel())))
    }

    /// The same of all antennas, whether they hear the cell or not.
    pub fn every(&self) -> impl Iterator<Item = (&Grid, &Channel)> {
        self.all.iter().map(|one| (&one.grid, one.estimator.channel()))
    }

    /// Of each antenna: the gain of each port on every subcarrier; `None` if the antenna does not hear the cell.
    pub fn gains(&self) -> impl Iterator<Item = Option<&[Vec<Complex32>]>> {
        self.all.iter().map(|one| (one.weight > 0.0).then(|| one.estimator.channel().gains()))
    }

    /// Of each antenna: the power of the noise on a resource element.
    pub fn noises(&self) -> impl Iterator<Item = f32> {
        self.all.iter().map(|one| one.estimator.channel().noise())
    }

    /// The symbols that each antenna received last.
    pub fn grids(&self) -> impl Iterator<Item = &Grid> {
        self.all.iter().map(|one| &one.grid)
    }

    /// What the symbols of this subframe tell about synchronisation, on all antennas.
    pub fn hints(&self) -> &Hints {
        &self.hints
    }

    /// Power of what all ports send on a resource element over that of the noise, after combining.
    pub fn snr_db(&self) -> f32 {
        match &self.all[..] {
            [only] => only.estimator.channel().snr_db(),
            all => {
                sum_db(all.iter().filter(|one| one.weight > 0.0).map(|one| one.estimator.channel().snr_db()))
            }
        }
    }

    /// The same before this subframe.
    pub fn snr_db_before(&self) -> f32 {
        match &self.all[..] {
            [only] => only.before.snr_db(),
            all => sum_db(all.iter().filter(|one| one.weight > 0.0).map(|one| one.before.snr_db())),
        }
    }

    /// A subframe begins of which it is not known yet whether it is one of the cell: [`Antennas::unlearn`] goes back to
    /// what was known before it.
    pub fn remember(&mut self) {
        self.all.iter_mut().for_each(|one| one.before = one.estimator.learnt());
    }

    /// Forgets the channels, and everything that was learnt since [`Antennas::remember`].
    pub fn unlearn(&mut self) {
        self.all.iter_mut().for_each(|one| one.estimator.unlearn(&one.before));
    }

    /// Changes every estimator.
    pub fn each_estimator(&mut self, change: impl FnMut(&mut Estimator)) {
        self.all.iter_mut().map(|one| &mut one.estimator).for_each(change);
    }

    /// Takes the reference signals of a symbol that all antennas received.
    pub fn add(&mut self, number: usize, symbol: usize) {
        // One oscillator turns all of them.
        let mut turn = Turn::default();
        for one in &mut self.all {
            let of_one = one.estimator.measure(number, symbol, &one.grid);
            if one.weight > 0.0 {
                turn += of_one;
            }
        }
        self.all.iter_mut().for_each(|one| one.estimator.take(number, symbol, turn));
    }

    /// Once all symbols of a subframe are in: the channels of its control region, and who hears the cell how well.
    pub fn finish(&mut self, number: usize) {
        for one in &mut self.all {
            one.estimator.finish(number);
            one.estimator.hear(&one.grid);
        }
        if let [only] = &self.all[..] {
            self.hints = *only.estimator.hints();
            return;
        }
        self.all.iter_mut().for_each(Antenna::watch);
        let best = self.all.iter().map(Antenna::ratio).fold(0.0, f32::max);
        let noise = self.all[self.best()].estimator.channel().noise();
        let is_any_heard = self.all.iter().any(Antenna::hears);
        for one in &mut self.all {
            let counts = one.ratio() > LEAST_SHARE * best && (one.hears() || !is_any_heard);
            one.weight =
                if counts { noise / one.estimator.channel().noise().max(f32::MIN_POSITIVE) } else { 0.0 };
        }
        if self.all.iter().all(|one| one.weight == 0.0) {
            self.all[0].weight = 1.0;
        }
        self.hints = Hints::default();
        for one in self.all.iter().filter(|one| one.weight > 0.0) {
            self.hints.add(&one.estimator.hints().times(one.weight));
        }
    }

    /// The sums of products of neighbours, and of powers, of a signal that is known, from subcarrier `first` of a symbol
    /// on.
    pub fn neighbours(&self, symbol: usize, first: usize, sent: &[Complex32]) -> (Complex32, f32) {
        let mut sums = (Complex32::default(), 0.0);
        for one in self.all.iter().filter(|one| one.weight > 0.0) {
            let row = &one.grid.symbol(symbol)[first..];
            let mut gains: Vec<_> = row.iter().zip(sent).map(|(got, sent)| got * sent.conj()).collect();
            // A tone on one of them may be louder than all others.
            let weights = one.estimator.channel().all_weights();
            for (gain, weight) in gains.iter_mut().zip(weights.get(first..).unwrap_or_default()) {
                *gain *= weight.sqrt();
            }
            sums.0 += correlate(&gains, &gains[1..]) * one.weight;
            sums.1 += correlate(&gains, &gains).re * one.weight;
        }
        sums
    }

    /// The symbols on groups of resource elements in the second slot of subframe `number`, each times the power of its
    /// channels.
    pub fn symbols(&self, cell: &Cell, number: usize, regs: &[Reg]) -> Vec<Quad> {
        let mut sums = vec![Quad::default(); regs.len()];
        for one in self.all.iter().filter(|one| one.weight > 0.0) {
            let symbols = if one.estimator.is_fast() {
                one.estimator.of_second_slot(number, &one.grid).symbols(cell, &one.grid, regs)
            } else {
                one.estimator.channel().symbols(cell, &one.grid, regs)
            };
            for (sum, symbol) in sums.iter_mut().flatten().zip(symbols.iter().flatten()) {
                *sum += symbol * one.weight;
            }
        }
        sums
    }
}

impl Antenna {
    /// Takes the mean of a symbol's samples, in which the cell has no part.
    pub fn learn_dc(&mut self, mean: Complex32) {
        if mean.re.is_finite() && mean.im.is_finite() {
            self.dc += (mean - self.dc) * self.dc_share;
            self.dc_share = DC_SHARE;
        }
    }

    /// The power of the channel over that of the noise; 0 if nothing is heard at all.
    fn ratio(&self) -> f32 {
        self.estimator.channel().ratio()
    }

    /// Takes what the subframe told into the averages.
    fn watch(&mut self) {
        let hints = self.estimator.hints();
        if !hints.power.is_finite() {
            return;
        }
        self.watched = (self.watched + 1.0).min(WATCHED);
        let share = 1.0 / self.watched;
        self.neighbours += (hints.neighbours - self.neighbours) * share;
        self.squares += (hints.neighbours.norm_sqr() - self.squares) * share;
        self.power += (hints.power - self.power) * share;
    }

    /// Whether its reference signals are more than noise: neighbours are alike, and in the same way in all subframes. What a
    /// dead antenna gives may lie on a few subcarriers, of which chance makes more than of many.
    fn hears(&self) -> bool {
        let coherence = self.neighbours.norm_sqr().sqrt() / self.power.max(f32::MIN_POSITIVE);
        let is_steady = self.neighbours.norm_sqr() * self.watched > STEADY * self.squares;
        is_steady && coherence > self.estimator.hints().of_noise() / self.watched.max(1.0).sqrt()
    }
}

/// The sum of ratios in dB.
fn sum_db(all: impl Iterator<Item = f32>) -> f32 {
    10.0 * libm::log10f(all.map(|db| libm::powf(10.0, db / 10.0)).sum::<f32>().max(f32::MIN_POSITIVE))
}
