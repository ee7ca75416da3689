//! Channel between two symbols with reference signals, for channels that change within a slot.
//!
//! Ports 0 and 1 have reference signals in the first symbol and in a later symbol of the same slot. In the control
//! symbols between them, the channel is interpolated linearly.

use super::{Estimator, make, spread};
use crate::channel::MAX_CONTROL_SYMBOLS;
use crate::channel::wiener::Key;

/// Curvature of the channel between two symbols: power of the deviation from the line, in units of the squared channel
/// variation between the symbols over the channel power.
///
/// Chosen: a channel with the Jakes spectrum (correlation J0) deviates by 0.028 in the middle between both symbols at 1
/// kHz, and by 0.023 at a low Doppler shift.
const BEND: f32 = 0.03;

/// Maximum channel variation from one symbol to another, in units of the channel power.
const MAX_MOVED: f32 = 2.0;

impl Estimator {
    /// Computes the channel of later control symbols if the channel differs from the channel of the first symbol.
    pub(super) fn interpolate(&mut self) {
        self.channel.later.clear();
        if !self.lies_between() {
            return;
        }
        let (lowest, late_symbol) = (self.lowest(), self.late_symbol());
        let power = self.statistics.power.max(f32::MIN_POSITIVE);
        let noise = self.statistics.noise.unwrap_or_default();
        let moved = self.moved_until(late_symbol);
        let mut late = self.channel.ports.clone();
        for (port, row) in late.iter_mut().enumerate() {
            let (comb, raw) = &self.work.late[port];
            // The first symbol measured the other comb.
            let other = &self.ports[port].combs[1 - comb];
            let mut noises = [(other.residual.map_or(noise, |residual| residual.noise) + moved) / power; 2];
            noises[*comb] = noise / power;
            let mut combs = [&other.gains; 2];
            combs[*comb] = raw;
            make(&mut self.late_weights, Key::new(noises, self.spread.step));
            self.late_weights.1.apply(combs.map(Vec::as_slice), &mut self.work.smooth, &mut self.work.sums);
            spread(&self.work.smooth, lowest, row);
        }
        for symbol in 1..late_symbol.min(MAX_CONTROL_SYMBOLS) {
            let share = symbol as f32 / late_symbol as f32;
            let row = |(first, late): (&Vec<_>, &Vec<_>)| {
                first.iter().zip(late).map(|(first, late)| first + (late - first) * share).collect()
            };
            self.channel.later.push(self.channel.ports.iter().zip(&late).map(row).collect());
        }
    }

    fn lies_between(&self) -> bool {
        let late = &self.work.late[..self.ports.len().min(2)];
        self.is_fast()
            && self.ports.len() <= 2
            && late.iter().all(|(_, raw)| raw.len() == self.work.raw[0].len())
    }

    /// Error power per resource element in a control symbol due to channel variation.
    pub(super) fn moved_by(&self, symbol: usize) -> f32 {
        let late = self.late_symbol();
        // The first symbol has the smallest error: with fast channels, most measurements come from it.
        if self.channel.later.is_empty() || symbol > late {
            // Ports 2 and 3 have their reference signals in the second symbol.
            let all = self.ports.len() as f32;
            let second = (all - 2.0).max(0.0) / all;
            return (1.0 - second) * self.moved_until(symbol) + second * self.moved_until(symbol.abs_diff(1));
        }
        let away = self.moved_until(late);
        let place = (4 * symbol * (late - symbol)) as f32 / (late * late) as f32;
        place * BEND * away * away / self.channel.power.max(f32::MIN_POSITIVE)
    }

    /// Channel variation from the first symbol to a later symbol.
    fn moved_until(&self, symbol: usize) -> f32 {
        let symbols = self.pilots[0].len() as f32;
        let motion = self.motion().max(0.0);
        (motion * (symbol * symbol) as f32 / (symbols * symbols)).min(MAX_MOVED * self.channel.power)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Estimator;
    use crate::grid::Grid;
    use crate::sequence::crs;
    use crate::{Bandwidth, Cell, CyclicPrefix, PhichDuration, PhichResource, Ports};

    /// Ports 2 and 3 are measured in the second symbol, so their channel in the first symbol has an additional error if
    /// it varies.
    #[test]
    fn the_first_symbol_of_four_ports_is_not_known_as_well_as_that_of_two() {
        for ports in [Ports::Two, Ports::Four] {
            let cell = Cell {
                pci: 424,
                bandwidth: Bandwidth::from_prbs(25).expect("a bandwidth of LTE"),
                ports,
                cp: CyclicPrefix::Normal,
                phich_duration: PhichDuration::Normal,
                phich_resource: PhichResource::One,
            };
            let mut estimator = Estimator::new(&cell);
            let mut grid = Grid::new(&cell);
            for index in 0..60 {
                let number = index % 10;
                for symbol in [4, 1, 0] {
                    for port in 0..ports.count() {
                        let Some(pilots) = crs::pilots(&cell, port, number, symbol) else { continue };
                        let turns = 0.9 * (index as f64 + symbol as f64 / 14.0) + 0.2 * port as f64;
                        let gain = libm::cos(std::f64::consts::TAU * turns) as f32;
                        for (at, value) in pilots.values.iter().enumerate() {
                            grid.symbol_mut(symbol)[pilots.first + at * crs::Pilots::SPACING] = value * gain;
                        }
                    }
                }
                estimator.begin();
                [4, 1, 0].into_iter().for_each(|symbol| estimator.add(number, symbol, &grid));
                estimator.finish(number);
            }
            let moved = estimator.channel.moved[0] / estimator.channel.power;
            match ports {
                Ports::Four => assert!((0.005..0.3).contains(&moved), "{moved}"),
                _ => assert_eq!(moved, 0.0),
            }
        }
    }
}
