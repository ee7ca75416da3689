//! Estimates the channel from all received reference signals.
//!
//! ```text
//! reference signals ─▶ divided by the known symbols ─▶ averaged over time, within the coherence time
//!     ─▶ smoothed over frequency, within the coherence bandwidth ─▶ channel ─▶ residual is noise
//! ```

mod between;
mod learn;
mod narrow;
mod spread;

use num_complex::Complex32;

use self::narrow::Narrow;
use self::spread::{FIRST_SPREAD, MIN_OTHERS, Spread, distance};
use super::wiener::{Key, PAIRS, STEP, Weights, spread_s};
use super::{Channel, Hints, MIN_NOISE};
use crate::cell::Cell;
use crate::complex::{angle, correlate};
use crate::grid::Grid;
use crate::sequence::crs;

/// Estimates the channel of one cell, subframe by subframe: [`Estimator::begin`], then [`Estimator::add`] for every
/// received symbol with reference signals, with the first symbol last, then [`Estimator::finish`].
#[derive(Clone, Debug)]
pub struct Estimator {
    /// Reference signals by subframe, symbol and port.
    pilots: Vec<Vec<[Option<Pilots>; 4]>>,
    ports: Vec<Port>,
    /// Interpolation weights by port.
    weights: [(Key, Weights); 4],
    /// Interpolation weights for the later reference symbol of the first slot.
    late_weights: (Key, Weights),
    spread: Spread,
    narrow: Narrow,
    statistics: Statistics,
    hints: Hints,
    channel: Channel,
    work: Work,
}

/// Reference signals of a port in one OFDM symbol.
#[derive(Clone, Debug)]
struct Pilots {
    /// 0 for the lower, 1 for the upper comb.
    comb: usize,
    first: usize,
    /// Complex conjugates of the transmitted reference symbols.
    conjugates: Vec<Complex32>,
}

/// Channel of a port at its reference signals. The two combs have every sixth subcarrier each, three subcarriers apart.
#[derive(Clone, Debug)]
struct Port {
    combs: [Comb; 2],
}

#[derive(Clone, Debug)]
struct Comb {
    gains: Vec<Complex32>,
    /// Error of `gains` due to residual noise and to channel variation since the measurement; `None` before the first
    /// measurement.
    residual: Option<Residual>,
    /// Product of (1 − weight) over the measurements of this subframe: the weight left for older subframes.
    older_weight: f32,
}

/// Error of estimated gains (power).
#[derive(Clone, Copy, Debug)]
struct Residual {
    noise: f32,
    error: f32,
    /// Part of `error` due to channel variation.
    moved: f32,
}

/// Statistics over many subframes.
#[derive(Clone, Copy, Debug, Default)]
struct Statistics {
    /// Noise power per resource element.
    noise: Option<f32>,
    /// Channel power of a port.
    power: f32,
    /// Channel variation within a millisecond: mean squared change of a gain.
    motion: f32,
    /// Mean power, with noise, of the reference signals in the last symbol that has them: index 0 for ports 2 and 3,
    /// index 1 for ports 0 and 1.
    levels: [Option<f32>; 2],
    /// Number of reference signals averaged in `noise`, at most [`MAX_BEHIND`].
    behind: f32,
    /// Whether the last noise measurement was far from `noise`.
    is_odd: bool,
    /// Channel variation within the first slot, extrapolated to a millisecond.
    fast: f32,
    /// Weight of the next value in the average `fast`.
    fast_share: f32,
    /// Noise power estimated from the curvature over frequency within one symbol. It contains the curvature due to
    /// echoes, but no channel variation over time.
    bends: f32,
}

/// Long-term statistics of an [`Estimator`], without the current channel.
#[derive(Clone, Copy, Debug)]
pub struct Learnt {
    statistics: Statistics,
}

impl Learnt {
    /// Signal power of all ports over the noise power (dB).
    pub fn snr_db(&self) -> f32 {
        let Statistics { power, noise, .. } = self.statistics;
        let noise = noise.unwrap_or(power).max(f32::MIN_POSITIVE);
        10.0 * libm::log10f(power.max(f32::MIN_POSITIVE) / noise)
    }
}

#[derive(Clone, Debug, Default)]
struct Work {
    /// For each port: reference signals of the current symbol, divided by the known reference symbols.
    raw: [Vec<Complex32>; 4],
    /// For ports 0 and 1: comb and reference signals of the third symbol from the end of the first slot.
    late: [(usize, Vec<Complex32>); 2],
    smooth: Vec<Complex32>,
    sums: Vec<Complex32>,
}

/// Carrier phase measurement from the reference signals of a symbol. Measurements of several antennas are added.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turn {
    /// Sum of conjugated estimated gains times measured gains, over the noise power.
    product: Complex32,
    /// Sum of the measured powers over the noise power, minus the number of measurements; at least 0.
    ratio: f32,
}

impl std::ops::AddAssign for Turn {
    fn add_assign(&mut self, other: Turn) {
        self.product += other.product;
        self.ratio += other.ratio;
    }
}

/// Standard deviation of the carrier phase between measurements, after the correction by the carrier loop (radians).
const PHASE_WANDER: f32 = 0.1;

impl Estimator {
    /// Creates an estimator for a cell.
    pub fn new(cell: &Cell) -> Estimator {
        Estimator::of_subframes(cell, 10)
    }

    /// Creates an estimator for a cell when only the first `count` subframes of each frame are received.
    pub(crate) fn of_subframes(cell: &Cell, count: usize) -> Estimator {
        let per_slot = cell.cp.symbols_per_slot();
        let pilots = |number, symbol, port| {
            if port >= cell.ports.count() {
                return None;
            }
            let pilots = crs::pilots(cell, port, number, symbol)?;
            Some(Pilots {
                comb: usize::from(pilots.first >= STEP),
                first: pilots.first,
                conjugates: pilots.values.iter().map(Complex32::conj).collect(),
            })
        };
        let of_symbol = |number, symbol| [0, 1, 2, 3].map(|port| pilots(number, symbol, port));
        let places = 2 * usize::from(cell.bandwidth.prbs());
        let comb = Comb { gains: vec![Complex32::default(); places], residual: None, older_weight: 1.0 };
        let port = Port { combs: [comb.clone(), comb] };
        let key = Key::new([1.0, 1.0], FIRST_SPREAD);
        let weights = (key, Weights::new(key));
        Estimator {
            pilots: (0..count)
                .map(|number| (0..2 * per_slot).map(|symbol| of_symbol(number, symbol)).collect())
                .collect(),
            ports: vec![port; cell.ports.count()],
            spread: Spread::new(weights.clone()),
            narrow: Narrow::new(cell, 2 * places),
            weights: std::array::from_fn(|_| weights.clone()),
            late_weights: weights.clone(),
            statistics: Statistics::default(),
            hints: Hints::default(),
            channel: Channel::known(
                vec![vec![Complex32::default(); cell.bandwidth.subcarriers()]; cell.ports.count()],
                0.0,
            ),
            work: Work::default(),
        }
    }

    /// Discards the channel after a jump in time. Keeps the statistics.
    pub fn forget(&mut self) {
        for comb in self.ports.iter_mut().flat_map(|port| &mut port.combs) {
            comb.residual = None;
        }
    }

    /// Discards the channel and all statistics except `levels`, because they were measured on another signal than the
    /// present one.
    pub fn restart(&mut self) {
        self.forget();
        self.statistics = Statistics { levels: self.statistics.levels, ..Statistics::default() };
        self.spread.restart();
        self.narrow.restart();
    }

    /// Returns the long-term statistics of the channel.
    pub fn learnt(&self) -> Learnt {
        Learnt { statistics: self.statistics }
    }

    /// Discards the channel, and restores the statistics to `before`.
    pub fn unlearn(&mut self, before: &Learnt) {
        self.forget();
        self.statistics = before.statistics;
    }

    /// Discards the channel and the statistics of its variation. Call this after a correction of carrier or timing,
    /// because most of the measured variation came from their error.
    pub(crate) fn forget_channel_and_motion(&mut self) {
        self.forget();
        self.statistics.motion = 0.0;
        (self.statistics.fast, self.statistics.fast_share) = (0.0, learn::FIRST_SHARE);
    }

    /// Starts a new subframe. The expected error of the gains grows by the channel variation.
    pub fn begin(&mut self) {
        self.hints = Hints { is_fast: self.is_fast(), ..Hints::default() };
        let (motion, noise) = (self.motion(), self.statistics.noise);
        for (port, Port { combs }) in self.ports.iter_mut().enumerate() {
            for (which, comb) in combs.iter_mut().enumerate() {
                let doubt = noise.unwrap_or_default() * self.weights[port].1.own(which);
                comb.older_weight = 1.0;
                if let Some(residual) = &mut comb.residual {
                    residual.error += motion.max(MIN_MOTION * doubt);
                    residual.moved += motion.max(0.0);
                }
            }
        }
        self.work.late.iter_mut().for_each(|(_, raw)| raw.clear());
    }

    /// Adds the reference signals of one symbol of subframe `number` (0…9). Ignores symbols without reference signals.
    pub fn add(&mut self, number: usize, symbol: usize, grid: &Grid) {
        let turn = self.measure(number, symbol, grid);
        self.take(number, symbol, turn);
    }

    /// First part of [`Estimator::add`]: stores the received reference signals, and returns the carrier phase
    /// measurement.
    pub(crate) fn measure(&mut self, number: usize, symbol: usize, grid: &Grid) -> Turn {
        let Some(of_ports) = self.pilots.get(number).and_then(|symbols| symbols.get(symbol)) else {
            return Turn::default();
        };
        let mut turn = Complex32::default();
        let mut all = (0.0, 0.0);
        let (power, count) = (self.hints.power, self.hints.count);
        for (port, raw) in self.work.raw.iter_mut().enumerate() {
            raw.clear();
            let Some(pilots) = &of_ports[port] else { continue };
            let row = grid.symbol(symbol)[pilots.first..].iter().step_by(crs::Pilots::SPACING);
            raw.extend(row.zip(&pilots.conjugates).map(|(got, sent)| got * sent));
            self.hints.neighbours += correlate(raw, &raw[1..]);
            self.hints.power += correlate(raw, raw).re;
            self.hints.pairs += raw.len() - 1;
            self.hints.count += raw.len();
        }
        let count = self.hints.count - count;
        if count > 0 {
            self.follow_level((self.hints.power - power) / count as f32, of_ports[0].is_some());
        }
        for (port, raw) in self.work.raw.iter().enumerate().take(self.ports.len()) {
            let Some(pilots) = &self.pilots[number][symbol][port] else { continue };
            let comb = &self.ports[port].combs[pilots.comb];
            if comb.residual.is_some() {
                turn += correlate(&comb.gains, raw);
                all.0 += correlate(raw, raw).re;
                all.1 += raw.len() as f32;
            }
        }
        self.start_statistics();
        let noise = self.statistics.noise.unwrap_or_default().max(f32::MIN_POSITIVE);
        Turn { product: turn / noise, ratio: (all.0 / noise - all.1).max(0.0) }
    }

    /// Second part of [`Estimator::add`]: updates the estimate. `turn` is the sum of the measurements of all antennas.
    pub(crate) fn take(&mut self, number: usize, symbol: usize, turn: Turn) {
        if self.pilots.get(number).is_none_or(|symbols| symbol >= symbols.len()) {
            return;
        }
        let noise = self.statistics.noise.unwrap_or_default();
        // All ports and antennas share one oscillator, so a common phase rotation is a carrier error and not fading.
        // Noise limits the accuracy of the measured rotation, so the correction is weighted.
        if turn.product != Complex32::default() && turn.product.is_finite() {
            let doubt = 1.0 / (2.0 * turn.ratio.max(f32::MIN_POSITIVE));
            let share = PHASE_WANDER * PHASE_WANDER / (PHASE_WANDER * PHASE_WANDER + doubt);
            self.turn(number, symbol, angle(turn.product) * f64::from(share));
        }
        for (port, raw) in self.work.raw.iter_mut().enumerate().take(self.ports.len()) {
            let Some(pilots) = &self.pilots[number][symbol][port] else { continue };
            let comb = &self.ports[port].combs[pilots.comb];
            if comb.residual.is_some() {
                self.narrow.observe(pilots.comb, raw, &comb.gains, noise);
            }
            self.narrow.mend(pilots.comb, raw);
        }
        for port in 0..self.ports.len() {
            let Some(pilots) = &self.pilots[number][symbol][port] else { continue };
            let (comb, smoothing) = (pilots.comb, self.weights[port].1.own(pilots.comb));
            if symbol == 0 && port < 2 {
                self.learn_motion(port, comb);
            }
            self.average(port, comb, symbol, smoothing, noise);
        }
        if symbol == 0 {
            self.compare_late(number);
        } else if symbol == self.late_symbol() {
            for (port, late) in self.work.late.iter_mut().enumerate().take(self.ports.len()) {
                late.0 = self.pilots[number][symbol][port].as_ref().map_or(0, |pilots| pilots.comb);
                late.1.clone_from(&self.work.raw[port]);
            }
        }
    }

    /// Returns the channel of the control region, after all symbols of subframe `number` were added.
    pub fn finish(&mut self, number: usize) -> &Channel {
        for port in 0..self.ports.len() {
            let of_comb = |comb: usize| {
                let residual = self.ports[port].combs[comb].residual;
                residual.map_or(f32::INFINITY, |residual| {
                    (residual.noise + residual.moved) / self.statistics.power.max(f32::MIN_POSITIVE)
                })
            };
            let noise = [of_comb(0), of_comb(1)];
            make(&mut self.weights[port], Key::new(noise, self.spread.step));
            if port == 0 {
                let step = self.spread.trial_step();
                make(self.spread.trial_mut(), Key::new(noise, step));
            }
        }
        let mut misfit = (0.0, 0.0);
        self.channel.power = 0.0;
        for port in 0..self.ports.len() {
            let weights = &self.weights[port].1;
            let combs = &self.ports[port].combs;
            weights.apply([&combs[0].gains, &combs[1].gains], &mut self.work.smooth, &mut self.work.sums);
            if let Some(pilots) = &self.pilots[number][0][port] {
                let own = (1.0 - combs[pilots.comb].older_weight) * weights.own(pilots.comb);
                let others = (1.0 - own).max(MIN_OTHERS);
                // Disturbed reference signals measure the interference, not the error of the channel estimate.
                let disturbed = self.narrow.disturbed(pilots.comb);
                let sum = distance(&self.work.raw[port], &self.work.smooth, pilots.comb, disturbed);
                // The residual does not contain the part of an estimate that comes from the measurement itself.
                misfit.0 += sum / others;
                misfit.1 += (self.work.raw[port].len() - disturbed.len()) as f32;
                if port == 0 {
                    self.spread.compare(
                        &self.work.raw[0],
                        combs,
                        pilots.comb,
                        disturbed,
                        sum / (others * others),
                    );
                }
            }
            self.channel.power += mean_power(&self.work.smooth) / self.ports.len() as f32;
            let lowest = self.lowest();
            spread(&self.work.smooth, lowest, &mut self.channel.ports[port]);
        }
        self.learn_noise(misfit.0 / misfit.1.max(1.0), misfit.1);
        if self.channel.power.is_finite() {
            self.statistics.power += 0.2 * (self.channel.power - self.statistics.power);
        }
        self.interpolate();
        self.channel.moved = std::array::from_fn(|symbol| self.moved_by(symbol));
        let lowest = self.lowest();
        self.narrow.weigh(lowest, &mut self.channel.weights);
        self.channel.noise = self.statistics.noise.unwrap_or_default();
        if self.statistics.is_odd {
            self.channel.noise = self.channel.noise.max(misfit.0 / misfit.1.max(1.0));
        }
        &self.channel
    }

    /// Detects disturbed subcarriers from the control elements of the first symbol, for use in later subframes. `grid` is
    /// the grid passed to [`Estimator::add`]; call this after [`Estimator::finish`].
    pub fn hear(&mut self, grid: &Grid) {
        self.narrow.hear(grid, &self.channel);
    }

    /// Channel of the last finished subframe.
    pub fn channel(&self) -> &Channel {
        &self.channel
    }

    /// Measurements of timing and carrier from the symbols of this subframe.
    pub fn hints(&self) -> &Hints {
        &self.hints
    }

    /// Estimated root-mean-square delay spread (s).
    pub fn spread_s(&self) -> f64 {
        spread_s(self.spread.step)
    }

    /// Second symbol of the first slot with reference signals of ports 0 and 1 (after symbol 0).
    fn late_symbol(&self) -> usize {
        self.pilots[0].len() / 2 - 3
    }

    /// First subcarrier of the lower comb.
    fn lowest(&self) -> usize {
        self.pilots[0][0][0].as_ref().map_or(0, |pilots| pilots.first % STEP)
    }

    /// Rotates the gains of the combs that a symbol measures. The other combs keep the phase of their own last
    /// measurement; the carrier loop keeps that phase accurate.
    fn turn(&mut self, number: usize, symbol: usize, radians: f64) {
        let by = Complex32::new(libm::cos(radians) as f32, libm::sin(radians) as f32);
        for (port, pilots) in self.ports.iter_mut().zip(&self.pilots[number][symbol]) {
            if let Some(pilots) = pilots {
                port.combs[pilots.comb].gains.iter_mut().for_each(|gain| *gain *= by);
            }
        }
    }

    /// Channel of the second slot of subframe `number`. `grid` contains the received first symbols of that slot.
    pub(crate) fn of_second_slot(&self, number: usize, grid: &Grid) -> Channel {
        let mut estimator = self.clone();
        let slot = self.pilots[0].len() / 2;
        estimator.forget();
        estimator.begin();
        // The symbol nearest to the PBCH comes last.
        [self.late_symbol(), slot + 1, slot]
            .into_iter()
            .for_each(|symbol| estimator.add(number, symbol, grid));
        // `finish` must not interpolate: these reference signals were received before the first symbol of the second
        // slot, not after it.
        estimator.work.late.iter_mut().for_each(|(_, raw)| raw.clear());
        estimator.finish(number);
        estimator.channel
    }

    /// Averages a symbol's measurements into the gains of its comb, weighted by the expected errors of both.
    fn average(&mut self, port: usize, comb: usize, symbol: usize, smoothing: f32, noise: f32) {
        // Control symbols lie around symbol 1. If the channel moves fast, the first symbol is the reference.
        let middle = if self.is_fast() { 0 } else { 1 };
        let symbols_away = symbol.abs_diff(middle) as f32 / self.pilots[0].len() as f32;
        let motion = self.motion().max(MIN_MOTION * noise * smoothing);
        let moved = motion * symbols_away * symbols_away;
        let doubt = noise * smoothing + moved;
        let comb = &mut self.ports[port].combs[comb];
        let raw = &self.work.raw[port];
        let weight = match &mut comb.residual {
            None => {
                comb.gains.clone_from(raw);
                comb.residual = Some(Residual { noise, error: doubt, moved });
                1.0
            }
            Some(residual) => {
                let error = residual.error.max(MIN_MOTION * noise * smoothing);
                let weight = error / (error + doubt).max(f32::MIN_POSITIVE);
                residual.error = (1.0 - weight) * error;
                let (old, new) = ((1.0 - weight) * (1.0 - weight), weight * weight);
                residual.noise = old * residual.noise + new * noise;
                residual.moved = old * residual.moved + new * moved;
                for (gain, raw) in comb.gains.iter_mut().zip(raw) {
                    *gain += (raw - *gain) * weight;
                }
                weight
            }
        };
        comb.older_weight *= 1.0 - weight;
    }
}

/// Minimum channel variation per subframe, over the residual noise after smoothing. The average then reaches back about
/// 40 subframes.
const MIN_MOTION: f32 = 6e-4;

/// Recomputes the weights for `key` if they were computed for another key.
fn make(weights: &mut (Key, Weights), key: Key) {
    if weights.0 != key {
        *weights = (key, Weights::new(key));
    }
}

/// Mean power of values, summed in eight lanes.
fn mean_power(of: &[Complex32]) -> f32 {
    let mut lanes = [0.0f32; 8];
    for eight in of.chunks_exact(8) {
        for (lane, value) in lanes.iter_mut().zip(eight) {
            *lane += value.norm_sqr();
        }
    }
    let rest: f32 = of.chunks_exact(8).remainder().iter().map(Complex32::norm_sqr).sum();
    (lanes.iter().sum::<f32>() + rest) / of.len().max(1) as f32
}

/// Interpolates linearly between estimates that lie three subcarriers apart. The first estimate is at subcarrier
/// `lowest`.
fn spread(estimates: &[Complex32], lowest: usize, row: &mut [Complex32]) {
    for (pair, three) in estimates.windows(2).zip(row[lowest..].chunks_exact_mut(STEP)) {
        let third = (pair[1] - pair[0]) / STEP as f32;
        three[0] = pair[0];
        three[1] = pair[0] + third;
        three[2] = pair[1] - third;
    }
    let slope = (estimates[1] - estimates[0]) / STEP as f32;
    for (k, value) in row[..lowest].iter_mut().enumerate() {
        *value = estimates[0] - slope * (lowest - k) as f32;
    }
    let last = lowest + STEP * (estimates.len() - 1);
    let before = estimates[estimates.len() - 2];
    let slope = (estimates[estimates.len() - 1] - before) / STEP as f32;
    for (past, value) in row[last..].iter_mut().enumerate() {
        *value = estimates[estimates.len() - 1] + slope * past as f32;
    }
}

const _: () = assert!(PAIRS <= 12, "the narrowest cell has twelve reference signals in a symbol");
