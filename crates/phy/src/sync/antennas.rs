//! Receive antennas of one receiver. The antennas share the receiver's clock and oscillator; each antenna has its own
//! channel and its own noise.
//!
//! The matched-filter outputs of the antennas are added per subcarrier, each weighted by the inverse of its noise power:
//! maximum-ratio combining.
//!
//! Source: D. G. Brennan, "Linear Diversity Combining Techniques", Proc. IRE 47, 1959, §VI

use num_complex::Complex32;

use super::stream::Window;
use crate::cell::Cell;
use crate::channel::{Channel, Estimator, Hints, Learnt, Turn};
use crate::complex::correlate;
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
    /// Mean of the samples: the receiver's DC offset, because a cell transmits nothing at its centre.
    pub dc: Complex32,
    /// Weight of the next symbol's mean in the estimate of the DC offset.
    dc_share: f32,
    estimator: Estimator,
    /// State of the estimator before the current subframe.
    before: Learnt,
    /// Averages of the products of neighbouring reference signals, of the squared magnitudes of these products, and of
    /// the powers, as in [`Hints`].
    neighbours: Complex32,
    squares: f32,
    power: f32,
    /// Number of subframes in the averages, up to [`WATCHED`].
    watched: f32,
    /// Combining weight of this antenna, relative to the best antenna; 0 if the antenna does not receive the cell.
    weight: f32,
}

/// Minimum SNR of an antenna, relative to the SNR of the best antenna. An antenna with a lower SNR is not used.
///
/// Chosen: such an antenna would add 0.1 dB of signal power, and would add more noise than signal if its channel
/// estimate is poor.
const MIN_SHARE: f32 = 0.03;

/// Weight of the mean of one symbol in the estimate of the DC offset.
const DC_SHARE: f32 = 0.1;

/// Minimum ratio of the squared magnitude of the averaged products to the value expected for independent products.
/// Below it, an antenna does not receive the cell.
///
/// Chosen: once the averages cover all their subframes, independent products reach this ratio by chance once in 2000.
const STEADY: f32 = 4.0;

/// Number of subframes in the averages.
///
/// Chosen: the coherence of noise in the average is a third of its coherence in a single subframe, and most fades are
/// longer.
const WATCHED: f32 = 9.0;

impl Antennas {
    /// Creates `count` antennas (at least one) for a cell.
    pub fn new(cell: &Cell, count: usize) -> Antennas {
        let antenna = |_| {
            let estimator = Estimator::new(cell);
            Antenna {
                grid: Grid::new(cell),
                window: Window::default(),
                dc: Complex32::default(),
                // A disconnected antenna delivers mostly DC. None of this DC may be mistaken for a cell if there are
                // several antennas.
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

    /// Iterates over the antennas with their indices.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut Antenna)> {
        self.all.iter_mut().enumerate()
    }

    /// Returns the index of the antenna with the highest SNR.
    pub fn best(&self) -> usize {
        let ratios = self.all.iter().map(Antenna::ratio).enumerate();
        ratios.reduce(|best, next| if next.1 > best.1 { next } else { best }).map_or(0, |(at, _)| at)
    }

    /// Returns the estimator of the antenna with the highest SNR.
    pub fn estimator(&self) -> &Estimator {
        &self.all[self.best()].estimator
    }

    /// Returns the received grid and the channel of each antenna that receives the cell.
    pub fn heard(&self) -> impl Iterator<Item = (&Grid, &Channel)> + Clone {
        let heard = self.all.iter().filter(|antenna| antenna.weight > 0.0);
        heard.map(|antenna| (&antenna.grid, antenna.estimator.channel()))
    }

    /// Returns the received grid and the channel of each antenna; `None` for an antenna that does not receive the cell.
    pub fn each(&self) -> impl Iterator<Item = Option<(&Grid, &Channel)>> {
        self.all.iter().map(|one| (one.weight > 0.0).then(|| (&one.grid, one.estimator.channel())))
    }

    /// Returns the received grid and the channel of all antennas, whether or not they receive the cell.
    pub fn every(&self) -> impl Iterator<Item = (&Grid, &Channel)> {
        self.all.iter().map(|one| (&one.grid, one.estimator.channel()))
    }

    /// Returns, per antenna, the gain of each port on every subcarrier; `None` for an antenna that does not receive the
    /// cell.
    pub fn gains(&self) -> impl Iterator<Item = Option<&[Vec<Complex32>]>> {
        self.all.iter().map(|one| (one.weight > 0.0).then(|| one.estimator.channel().gains()))
    }

    /// Returns, per antenna, the noise power on a resource element.
    pub fn noises(&self) -> impl Iterator<Item = f32> {
        self.all.iter().map(|one| one.estimator.channel().noise())
    }

    /// Returns, per antenna, the most recently received symbols.
    pub fn grids(&self) -> impl Iterator<Item = &Grid> {
        self.all.iter().map(|one| &one.grid)
    }

    /// Returns the synchronisation measurements of this subframe, combined over all antennas.
    pub fn hints(&self) -> &Hints {
        &self.hints
    }

    /// SNR after combining: power of all ports on a resource element over the noise power, in dB.
    pub fn snr_db(&self) -> f32 {
        match &self.all[..] {
            [only] => only.estimator.channel().snr_db(),
            all => {
                sum_db(all.iter().filter(|one| one.weight > 0.0).map(|one| one.estimator.channel().snr_db()))
            }
        }
    }

    /// SNR after combining before this subframe, in dB.
    pub fn snr_db_before(&self) -> f32 {
        match &self.all[..] {
            [only] => only.before.snr_db(),
            all => sum_db(all.iter().filter(|one| one.weight > 0.0).map(|one| one.before.snr_db())),
        }
    }

    /// Saves the state of the estimators before a subframe that may not belong to the cell. [`Antennas::unlearn`] restores
    /// it.
    pub fn remember(&mut self) {
        self.all.iter_mut().for_each(|one| one.before = one.estimator.learnt());
    }

    /// Drops the channels, and all estimates learnt since [`Antennas::remember`].
    pub fn unlearn(&mut self) {
        self.all.iter_mut().for_each(|one| one.estimator.unlearn(&one.before));
    }

    /// Applies `change` to the estimator of each antenna.
    pub fn each_estimator(&mut self, change: impl FnMut(&mut Estimator)) {
        self.all.iter_mut().map(|one| &mut one.estimator).for_each(change);
    }

    /// Adds the reference signals of a symbol that all antennas received.
    pub fn add(&mut self, number: usize, symbol: usize) {
        // One oscillator rotates the phase of all antennas, so their phase measurements are combined.
        let mut turn = Turn::default();
        for one in &mut self.all {
            let of_one = one.estimator.measure(number, symbol, &one.grid);
            if one.weight > 0.0 {
                turn += of_one;
            }
        }
        self.all.iter_mut().for_each(|one| one.estimator.take(number, symbol, turn));
    }

    /// After the last symbol of a subframe: estimates the channels of its control region and sets the combining weight of
    /// each antenna.
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
            let counts = one.ratio() > MIN_SHARE * best && (one.hears() || !is_any_heard);
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

    /// Multiplies a known signal, which starts at subcarrier `first` of a symbol, with the received symbol. Returns the sum
    /// of products of neighbouring gains, and the sum of their powers.
    pub fn neighbours(&self, symbol: usize, first: usize, sent: &[Complex32]) -> (Complex32, f32) {
        let mut sums = (Complex32::default(), 0.0);
        for one in self.all.iter().filter(|one| one.weight > 0.0) {
            let row = &one.grid.symbol(symbol)[first..];
            let mut gains: Vec<_> = row.iter().zip(sent).map(|(got, sent)| got * sent.conj()).collect();
            // Reduce the weight of interfered subcarriers: a tone on one subcarrier may be stronger than all other
            // subcarriers together.
            let weights = one.estimator.channel().all_weights();
            for (gain, weight) in gains.iter_mut().zip(weights.get(first..).unwrap_or_default()) {
                *gain *= weight.sqrt();
            }
            sums.0 += correlate(&gains, &gains[1..]) * one.weight;
            sums.1 += correlate(&gains, &gains).re * one.weight;
        }
        sums
    }

    /// Returns the combined symbols on groups of resource elements in the second slot of subframe `number`. Each symbol is
    /// multiplied by the power of its channels.
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
    /// Updates the DC offset with the mean of a symbol's samples, to which the cell contributes nothing.
    pub fn learn_dc(&mut self, mean: Complex32) {
        if mean.re.is_finite() && mean.im.is_finite() {
            self.dc += (mean - self.dc) * self.dc_share;
            self.dc_share = DC_SHARE;
        }
    }

    /// SNR as a power ratio; 0 if nothing is received.
    fn ratio(&self) -> f32 {
        self.estimator.channel().ratio()
    }

    /// Adds the measurements of the subframe to the averages.
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

    /// Returns whether the reference signals exceed noise: neighbouring gains are correlated, with the same phase in
    /// all subframes. The output of a disconnected antenna may be concentrated on few subcarriers, where correlations
    /// by chance are larger.
    fn hears(&self) -> bool {
        let coherence = self.neighbours.norm_sqr().sqrt() / self.power.max(f32::MIN_POSITIVE);
        let is_steady = self.neighbours.norm_sqr() * self.watched > STEADY * self.squares;
        is_steady && coherence > self.estimator.hints().of_noise() / self.watched.max(1.0).sqrt()
    }
}

/// Sum of power ratios, given and returned in dB.
fn sum_db(all: impl Iterator<Item = f32>) -> f32 {
    10.0 * libm::log10f(all.map(|db| libm::powf(10.0, db / 10.0)).sum::<f32>().max(f32::MIN_POSITIVE))
}
