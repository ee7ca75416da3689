//! What reference signals tell about the noise, and about how far the channel moves.
//!
//! Noise is what reference signals are off the estimated channel. Where the channel moves fast, they are off it because it
//! moved. But within a symbol it stands still: there, only noise and echoes bend the lines between neighbours.

use super::{Estimator, LEAST_NOISE, Statistics, correlate};

/// The share by which averages of motion take a new value.
///
/// Chosen: some twenty milliseconds, because noise hides the motion.
const SLOW: f32 = 0.05;

/// If the power of a symbol's reference signals differs from that of the last by more than this factor, it is not
/// fading.
const STEP_OF_LEVEL: f32 = 10.0;

/// A measurement of the noise that differs by more than this factor is odd.
const ODD_NOISE: f32 = 10.0;

/// Most measurements that count for the noise: the average reaches back that far.
const MOST_BEHIND: f32 = 1200.0;

/// Motion is told from noise up to so many times the power of the channel within a millisecond.
///
/// Chosen: that of a Doppler shift of 1 kHz, above which nothing is read. Half of the slot is then a sixth of the wave.
const MOST_MOTION: f32 = 20.0;

/// The share with which the first value counts for the motion within a slot.
///
/// Chosen: after three subframes a receiver at 1 kHz is known as one, and one that stands still is hardly ever taken for it.
pub(super) const FIRST_SHARE: f32 = 0.25;

/// From this motion on, over the power of the channel, the channel of one slot is not that of the other, whatever the noise.
///
/// Chosen: that of a Doppler shift of 350 Hz. A burst of noise in one subframe, however loud, is not taken for it.
const LEAST_FAST: f32 = 2.5;

/// From this motion on, over the power of the noise, the same holds: an average over a subframe costs more by motion than it
/// gains from noise.
///
/// Chosen: at 100 PRB pairs, EVA, 300 Hz and 25 dB, 0.99 of the messages are read where 0.87 were with [`LEAST_FAST`] alone.
/// With ten times the noise it is as many, but at 200 Hz and 10 dB 0.53 in place of 0.58. Nothing tried was worse than before.
const LEAST_OVER_NOISE: f32 = 4.0;

/// But less motion than this, over the power of the channel, is not: what is left of a carrier's offset looks the same.
///
/// Chosen: that of a carrier that is 110 Hz off.
const LEAST_TOLD: f32 = 0.5;

/// What is measured as noise is at most so many times the noise that bends show.
///
/// Chosen: chance hardly reaches it in an average over twenty subframes.
const MOST_BENDS: f32 = 1.25;

impl Estimator {
    /// If everything becomes louder or softer at once, the cause is the receiver's gain, a burst of noise, or silence.
    /// What was learnt of the channel is then of no use, and the noise is measured anew.
    /// Ports 0 and 1 fade apart from ports 2 and 3, which have reference signals in other symbols: each two are compared with
    /// themselves.
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

    /// Estimates the noise from the very first symbol: noise bends the lines between neighbours.
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

    /// The power of the noise, as the bends of the lines between neighbours in the current symbol tell it.
    pub(super) fn bends(&self) -> f32 {
        let (mut bends, mut count) = (0.0, 0);
        for raw in self.work.raw.iter().filter(|raw| raw.len() > 2) {
            bends += raw.windows(3).map(|at| (at[0] + at[2] - at[1] * 2.0).norm_sqr()).sum::<f32>() / 6.0;
            count += raw.len() - 2;
        }
        bends / count.max(1) as f32
    }

    /// Learns the motion from what neighbours moved by together: their noise is independent.
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
        // An average with this weight for new values lags behind a wandering channel by this much. What was measured in this
        // subframe is half a millisecond old, and what moves as far in half of the time moves four times as far in all of it.
        let measured = 1.0 - comb.older_weight;
        let weight = if measured > 0.0 { measured } else { self.typical_weight(port) };
        let lag = 1.0 - 0.5 * measured;
        let motion = (moved * weight * (2.0 - weight) / (lag * lag)).min(MOST_MOTION * self.statistics.power);
        self.statistics.motion += SLOW * (motion - self.statistics.motion);
    }

    /// How much the channel moves within a millisecond, as far as it matters.
    pub(super) fn motion(&self) -> f32 {
        let Statistics { motion, fast, .. } = self.statistics;
        if self.is_fast() { motion.max(fast) } else { motion }
    }

    /// Whether the channel of one slot is not that of the other.
    pub(crate) fn is_fast(&self) -> bool {
        let Statistics { fast, power, bends, .. } = self.statistics;
        fast > LEAST_FAST * power || fast > LEAST_TOLD * power && fast > LEAST_OVER_NOISE * bends
    }

    /// The weight that the next measurement would get.
    fn typical_weight(&self, port: usize) -> f32 {
        let noise = self.statistics.noise.unwrap_or_default() * self.weights[port].1.own(0);
        let comb = &self.ports[port].combs[0];
        comb.residual.map_or(1.0, |residual| residual.error / (residual.error + noise).max(f32::MIN_POSITIVE))
    }

    /// How far the carrier turned, and how far the channel moved, between the first symbol and a later one.
    pub(super) fn compare_late(&mut self, number: usize) {
        let mut moved = (0.0, 0.0);
        for port in 0..self.ports.len().min(2) {
            let (late_comb, late) = &self.work.late[port];
            let first = &self.work.raw[port];
            let Some(pilots) = &self.pilots[number][0][port] else { continue };
            if late.len() != first.len() || *late_comb == pilots.comb {
                continue;
            }
            // Each place of the upper comb lies between two of the lower.
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
            // Those next to each other have noise in common.
            let others = moves.get(2..).unwrap_or_default();
            moved.0 += correlate(&moves[..others.len()], others).re;
            moved.1 += others.len() as f32;
        }
        if moved.1 > 0.0 {
            let lag = self.late_symbol() as f32 / self.pilots[0].len() as f32;
            self.learn_fast(moved.0 / moved.1 / (lag * lag));
        }
    }

    /// Takes how far the channel moved within a slot, extrapolated to a millisecond. The first values count more.
    fn learn_fast(&mut self, moved: f32) {
        let Statistics { power, fast, fast_share, .. } = &mut self.statistics;
        if moved.is_finite() {
            *fast += *fast_share * (moved.min(MOST_MOTION * *power) - *fast);
            *fast_share = (*fast_share / (1.0 + *fast_share)).max(SLOW);
        }
    }

    /// Takes a measurement of the noise by `count` reference signals: by how much they are off the channel. What they are
    /// off because the channel moves does not count, so far as [`Estimator::bends`] shows it.
    pub(super) fn learn_noise(&mut self, measured: f32, count: f32) {
        let bends = self.bends();
        if count == 0.0 || !measured.is_finite() || !bends.is_finite() {
            return;
        }
        self.statistics.bends += SLOW * (bends - self.statistics.bends);
        let measured = if self.is_fast() {
            measured.min(MOST_BENDS * self.statistics.bends.max(bends))
        } else {
            measured
        };
        let Statistics { noise, behind, is_odd, power, .. } = &mut self.statistics;
        let noise = noise.get_or_insert(measured);
        // One burst says nothing about what comes next; a second odd measurement does.
        let ratio = measured / noise.max(f32::MIN_POSITIVE);
        if *behind > 0.0 && !(1.0 / ODD_NOISE..=ODD_NOISE).contains(&ratio) {
            if !std::mem::replace(is_odd, true) {
                return;
            }
            *behind = 0.0;
        }
        *is_odd = false;
        *behind = (*behind + count).min(MOST_BEHIND.max(count / 0.3));
        let share = (count / *behind).max(0.05);
        *noise += share * (measured - *noise);
        *noise = noise.max(LEAST_NOISE * *power).max(f32::MIN_POSITIVE);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Estimator;
    use crate::grid::Grid;
    use crate::sequence::crs;
    use crate::{Bandwidth, Cell, CyclicPrefix, PhichDuration, PhichResource, Ports};
    use num_complex::Complex32;

    /// Two ports in a fade beside two that are not are no sign that the receiver's gain was changed.
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
