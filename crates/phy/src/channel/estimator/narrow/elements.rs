//! Interference in a narrow band, as the elements between the reference signals show it.
//!
//! In the first symbol, elements of the PDCCH and the PCFICH carry QPSK or nothing. How far one is from both tells what
//! disturbs it. So a tone that lies between two reference signals is found too, and a subcarrier beside a disturbed
//! reference signal counts in full if it hears nothing.

use num_complex::Complex32;

use super::USUAL_POWER;
use super::excess::{Excess, Measured};
use crate::cell::{Cell, Ports};
use crate::channel::Channel;
use crate::grid::{ControlRegion, Grid, Reg};

/// What disturbs each subcarrier that has an element of the first symbol.
#[derive(Clone, Debug)]
pub struct Elements {
    ports: Ports,
    regs: Vec<Reg>,
    /// By subcarrier: whether one of `regs` has it.
    is_measured: Vec<bool>,
    /// By subcarrier: the mean squared deviation over that of a typical one.
    excess: Excess,
    /// Of the elements of `regs`, in their order.
    measured: Vec<Measured>,
}

/// The share by which the mean takes a new value.
///
/// Chosen: a new value comes once per subframe. The mean of so many (31) of pure noise is hardly ever off by half.
const SHARE: f32 = 0.06;

impl Elements {
    /// For a cell.
    pub fn new(cell: &Cell) -> Elements {
        let region = ControlRegion::new(cell, cell.least_cfi());
        let all = region.iter().flat_map(|region| region.pdcch.iter().chain(&region.pcfich));
        let regs: Vec<Reg> = all.filter(|reg| reg.symbol == 0).copied().collect();
        let subcarriers = cell.bandwidth.subcarriers();
        let mut is_measured = vec![false; subcarriers];
        regs.iter().flat_map(|reg| reg.subcarriers).for_each(|k| is_measured[usize::from(k)] = true);
        Elements {
            ports: cell.ports,
            regs,
            is_measured,
            excess: Excess::new(subcarriers),
            measured: Vec::new(),
        }
    }

    /// Begins anew.
    pub fn restart(&mut self) {
        self.excess.restart();
    }

    /// Whether a subcarrier is one of those that are measured.
    pub fn measures(&self, subcarrier: usize) -> bool {
        self.is_measured.get(subcarrier).is_some_and(|is_measured| *is_measured)
    }

    /// Takes a subframe that came through this channel.
    pub fn observe(&mut self, grid: &Grid, channel: &Channel) {
        let usual = (USUAL_POWER * channel.power_of_port()).max(f32::MIN_POSITIVE);
        self.measured.clear();
        for reg in &self.regs {
            let symbols = channel.matched(self.ports, grid, reg);
            let powers = channel.powers(self.ports, reg);
            let of = |at: usize| {
                let (symbol, power) = (symbols[at], powers[at].max(f32::MIN_POSITIVE));
                let level = power * std::f32::consts::FRAC_1_SQRT_2;
                let off = Complex32::new(symbol.re.abs() - level, symbol.im.abs() - level);
                Measured {
                    deviation: off.norm_sqr().min(symbol.norm_sqr()) / power,
                    allowed: (power / usual).max(1.0),
                }
            };
            // What disturbs one element of a pair shows in both of its symbols.
            let pair = |at: usize| {
                let (one, other) = (of(at), of(at + 1));
                [Measured { deviation: (one.deviation + other.deviation) / 2.0, ..one }; 2]
            };
            match self.ports {
                Ports::One => self.measured.extend([0, 1, 2, 3].map(of)),
                Ports::Two | Ports::Four => self.measured.extend([pair(0), pair(2)].as_flattened()),
            }
        }
        let subcarriers = self.regs.iter().flat_map(|reg| reg.subcarriers).map(usize::from);
        self.excess.take(SHARE, subcarriers, &self.measured, channel.noise());
    }

    /// By subcarrier: by how much more it is disturbed than a typical one.
    pub fn excess(&self) -> &Excess {
        &self.excess
    }
}
