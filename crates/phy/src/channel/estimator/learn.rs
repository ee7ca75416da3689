//! Estimates noise power and channel variation from reference signals.
//!
//! The noise power is estimated from the residual between reference signals and channel estimate. In fast fading the
//! residual also contains channel variation. Within one symbol the channel is constant: there, only noise and echoes
//! cause curvature between neighbours.

use super::{Estimator, MIN_NOISE, Statistics};
use crate::complex::correlate;

/// Weight of a new value in averages of the channel variation.
///
/// Chosen: an average over about twenty milliseconds, because noise masks the variation.
const SLOW: f32 = 0.05;

/// Threshold: a larger power ratio between the reference signals of two successive symbols is not fading.
const STEP_OF_LEVEL: f32 = 10.0;

/// Threshold: a noise measurement that differs by more than this factor counts as an outlier.
const ODD_NOISE: f32 = 10.0;

/// Maximum number of reference signals in the noise average.
const MAX_BEHIND: f32 = 1200.0;

/// Maximum channel variation per millisecond that is distinguished from noise, in units of the channel power.
///
/// Chosen: the variation at a Doppler shift of 1 kHz; above it no message is decoded. At 1 kHz half a slot is a sixth of
/// the fading period.
const MAX_MOTION: f32 = 20.0;

/// Weight of the first value of the channel variation within a slot.
///
/// Chosen: three subframes suffice to detect a Doppler shift of 1 kHz, and a static receiver is almost never mistaken
/// for a fast receiver.
pub(super) const FIRST_SHARE: f32 = 0.25;

/// Threshold of variation over channel power, at any noise level: above it, the channel differs between the two slots.
///
/// Chosen: the variation at a Doppler shift of 350 Hz. A burst of noise in one subframe, even a strong burst, does not
/// exceed this threshold.
const MIN_FAST_RATIO: f32 = 2.5;

/// Threshold of variation over noise power: above it, averaging over a subframe loses more to channel variation than it
/// gains against noise. The channel then also counts as different between the slots.
///
/// Chosen: at 100 PRB pairs, EVA, 300 Hz and 25 dB SNR this threshold decodes a share of 0.99 of the messages, and
/// [`MIN_FAST_RATIO`] alone decodes 0.87. Ten times the noise power as threshold decodes the same share there, but only
/// 0.53 instead of 0.58 at 200 Hz and 10 dB.
const MIN_OVER_NOISE: f32 = 4.0;

/// Minimum variation over channel power for [`MIN_OVER_NOISE`]: a residual carrier offset can cause a smaller
/// variation.
///
/// Chosen: the apparent variation of a carrier offset of 110 Hz.
const MIN_TOLD: f32 = 0.5;

/// Maximum noise measurement, in units of the noise estimated from curvature.
///
/// Chosen: noise alone rarely makes an average over twenty subframes exceed this ratio.
const MAX_BENDS: f32 = 1.25;

impl Estimator {
    /// Detects a sudden change of the level of all reference signals. The cause of such a change is the receiver's
    /// gain, a burst of noise, or silence. The estimate is then invalid, and the noise is measured again. Ports 0 and 1
    /// fade independently of ports 2 and 3, which have reference signals in other symbols. So each pair of ports is
    /// compared with its own previous level.
    pub(super) fn follow_level(&mut self, level: f32, is_of_first_ports: bool) {
        if !level.is_finite() {
            return;
        }
        let levels = &mut self.statistics.levels[usize::from(is_of_first_ports)];
        let Some(before) = levels.replace(level) else { return };
        let ratio = level.max(f32::MIN_POSITIVE) / before.max(f32::MIN_POSITIVE);
        if !(1.0 / STEP_OF_LEVEL..=STEP_OF_LEVEL).contains(&ratio) {
            self.restart();
        }
    }

    /// Estimates the noise from the very first symbol by the curvature between neighbours.
    pub(super) fn start_statistics(&mut self) {
        if self.statistics.noise.is_some() {
            return;
        }
        let (mut powers, mut count) = (0.0, 0);
        for raw in self.work.raw.iter().filter(|raw| raw.len() > 2) {
            powers += raw.windows(3).map(|at| at[1].norm_sqr()).sum::<f32>();
            count += raw.len() - 2;
        }
        if count > 0 {
            let noise = self.bends().max(f32::MIN_POSITIVE);
            self.statistics.noise = Some(noise);
            self.statistics.bends = noise;
            self.statistics.power = (powers / count as f32 - noise).max(noise * 0.1);
        }
    }

    /// Noise power estimated from the curvature between neighbours in the current symbol.
    pub(super) fn bends(&self) -> f32 {
        let (mut bends, mut count) = (0.0, 0);
        for raw in self.work.raw.iter().filter(|raw| raw.len() > 2) {
            bends += raw.windows(3).map(|at| (at[0] + at[2] - at[1] * 2.0).norm_sqr()).sum::<f32>() / 6.0;
            count += raw.len() - 2;
        }
        bends / count.max(1) as f32
    }

    /// Updates the channel variation from the common change of neighbouring subcarriers: their noise is independent.
    pub(super) fn learn_motion(&mut self, port: usize, comb: usize) {
        let comb = &self.ports[port].combs[comb];
        let raw = &self.work.raw[port];
        if comb.residual.is_none() || raw.len() < 2 {
            return;
        }
        let moves = &mut self.work.sums;
        moves.clear();
        moves.extend(raw.iter().zip(&comb.gains).map(|(new, old)| new - old));
        let moved = correlate(&moves[..moves.len() - 1], &moves[1..]).re / (moves.len() - 1) as f32;
        // An exponential average with this weight lags behind a drifting channel by this much. The measurements of this
        // subframe are half a millisecond old. A change in half of the time corresponds to four times that power in the
        // full time.
        let measured = 1.0 - comb.older_weight;
        let weight = if measured > 0.0 { measured } else { self.typical_weight(port) };
        let lag = 1.0 - 0.5 * measured;
        let motion = (moved * weight * (2.0 - weight) / (lag * lag)).min(MAX_MOTION * self.statistics.power);
        self.statistics.motion += SLOW * (motion - self.statistics.motion);
    }

    /// Channel variation within a millisecond, as used for the expected errors.
    pub(super) fn motion(&self) -> f32 {
        let Statistics { motion, fast, .. } = self.statistics;
        if self.is_fast() { motion.max(fast) } else { motion }
    }

    /// Whether the channel differs between the two slots.
    pub(crate) fn is_fast(&self) -> bool {
        let Statistics { fast, power, bends, .. } = self.statistics;
        fast > MIN_FAST_RATIO * power || fast > MIN_TOLD * power && fast > MIN_OVER_NOISE * bends
    }

    /// Weight of the next measurement.
    fn typical_weight(&self, port: usize) -> f32 {
        let noise = self.statistics.noise.unwrap_or_default() * self.weights[port].1.own(0);
        let comb = &self.ports[port].combs[0];
        comb.residual.map_or(1.0, |residual| residual.error / (residual.error + noise).max(f32::MIN_POSITIVE))
    }

    /// Measures the carrier phase rotation and the channel variation between the first symbol and the later one of the
    /// slot.
    pub(super) fn compare_late(&mut self, number: usize) {
        let mut moved = (0.0, 0.0);
        for port in 0..self.ports.len().min(2) {
            let (late_comb, late) = &self.work.late[port];
            let first = &self.work.raw[port];
            let Some(pilots) = &self.pilots[number][0][port] else { continue };
            if late.len() != first.len() || *late_comb == pilots.comb {
                continue;
            }
            // Each reference signal of the upper comb lies between two reference signals of the lower comb.
            let (lower, upper) = if pilots.comb == 0 { (first, late) } else { (late, first) };
            let between = &upper[..upper.len() - 1];
            let sum = correlate(&lower[..between.len()], between) + correlate(&lower[1..], between);
            self.hints.turn += if pilots.comb == 0 { sum } else { sum.conj() };
            self.hints.most_turn += correlate(first, first).re + correlate(late, late).re;
            let moves = &mut self.work.sums;
            moves.clear();
            moves.extend(
                lower.windows(2).zip(between).map(|(pair, between)| (pair[0] + pair[1]) * 0.5 - between),
            );
            // Adjacent differences share a noise term, so correlate differences that are two positions apart.
            let others = moves.get(2..).unwrap_or_default();
            moved.0 += correlate(&moves[..others.len()], others).re;
            moved.1 += others.len() as f32;
        }
        if moved.1 > 0.0 {
            let lag = self.late_symbol() as f32 / self.pilots[0].len() as f32;
            self.learn_fast(moved.0 / moved.1 / (lag * lag));
        }
    }

    /// Averages the channel variation within a slot, extrapolated to a millisecond. The first values get larger weights.
    fn learn_fast(&mut self, moved: f32) {
        let Statistics { power, fast, fast_share, .. } = &mut self.statistics;
        if moved.is_finite() {
            *fast += *fast_share * (moved.min(MAX_MOTION * *power) - *fast);
            *fast_share = (*fast_share / (1.0 + *fast_share)).max(SLOW);
        }
    }

    /// Averages a noise measurement: the mean squared residual of `count` reference signals. If the channel is fast, the
    /// noise from [`Estimator::bends`] limits the measurement, because the residual then contains channel variation.
    pub(super) fn learn_noise(&mut self, measured: f32, count: f32) {
        let bends = self.bends();
        if count == 0.0 || !measured.is_finite() || !bends.is_finite() {
            return;
        }
        self.statistics.bends += SLOW * (bends - self.statistics.bends);
        let measured = if self.is_fast() {
            measured.min(MAX_BENDS * self.statistics.bends.max(bends))
        } else {
            measured
        };
        let Statistics { noise, behind, is_odd, power, .. } = &mut self.statistics;
        let noise = noise.get_or_insert(measured);
        // A single outlier may be a burst and is ignored; a second consecutive outlier restarts the average.
        let ratio = measured / noise.max(f32::MIN_POSITIVE);
        if *behind > 0.0 && !(1.0 / ODD_NOISE..=ODD_NOISE).contains(&ratio) {
            if !std::mem::replace(is_odd, true) {
                return;
            }
            *behind = 0.0;
        }
        *is_odd = false;
        *behind = (*behind + count).min(MAX_BEHIND.max(count / 0.3));
        let share = (count / *behind).max(0.05);
        *noise += share * (measured - *noise);
        *noise = noise.max(MIN_NOISE * *power).max(f32::MIN_POSITIVE);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Estimator;
    use crate::grid::Grid;
    use crate::sequence::crs;
    use crate::{Bandwidth, Cell, CyclicPrefix, PhichDuration, PhichResource, Ports};
    use num_complex::Complex32;

    /// A fade of two ports is not a change of the receiver's gain if the other two ports do not fade.
    #[test]
    fn ports_in_a_fade_do_not_spoil_the_others() {
        let cell = Cell {
            pci: 424,
            bandwidth: Bandwidth::from_prbs(6).expect("a bandwidth of LTE"),
            ports: Ports::Four,
            cp: CyclicPrefix::Normal,
            phich_duration: PhichDuration::Normal,
            phich_resource: PhichResource::One,
        };
        let mut estimator = Estimator::new(&cell);
        for fade in [1.0f32, 0.5, 0.25, 0.12, 0.06, 0.03] {
            let gains = [fade, fade, 1.0, 1.0].map(|gain| Complex32::new(0.0, gain));
            for number in 0..10 {
                let mut grid = Grid::new(&cell);
                for symbol in [8, 4, 1, 0] {
                    for (port, gain) in gains.iter().enumerate() {
                        let Some(pilots) = crs::pilots(&cell, port, number, symbol) else { continue };
                        for (at, value) in pilots.values.iter().enumerate() {
                            grid.symbol_mut(symbol)[pilots.first + at * crs::Pilots::SPACING] = gain * value;
                        }
                    }
                }
                estimator.begin();
                [8, 4, 1, 0].into_iter().for_each(|symbol| estimator.add(number, symbol, &grid));
                let channel = estimator.finish(number);
                for (port, gain) in gains.iter().enumerate().skip(2) {
                    let off = (channel.gains()[port][36] - gain).norm();
                    assert!(off < 0.05, "port {port} is off by {off} while others have {fade}");
                }
            }
        }
    }
}
