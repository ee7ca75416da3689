//! Narrowband interference on control elements between the reference signals.
//!
//! In the first symbol, elements of the PDCCH and the PCFICH carry a QPSK symbol or nothing. The distance of a received
//! element from both expected values measures the interference. In this way, a tone between two reference signals is
//! detected. A subcarrier next to a disturbed reference signal keeps its full weight if its own element is undisturbed.

use num_complex::Complex32;

use super::USUAL_POWER;
use super::excess::{Excess, Measured};
use super::median::Median;
use crate::cell::{Cell, Ports};
use crate::channel::Channel;
use crate::grid::{ControlRegion, Grid, Reg};

/// Interference on each subcarrier that has a control element in the first symbol.
#[derive(Clone, Debug)]
pub struct Elements {
    ports: Ports,
    regs: Vec<Reg>,
    /// By subcarrier: whether a REG in `regs` contains it.
    is_measured: Vec<bool>,
    /// By subcarrier: mean squared deviation of its element over the typical squared deviation.
    excess: Excess,
    /// Measurements of the elements of `regs`, in their order.
    measured: Vec<Measured>,
    /// Whether something was transmitted on the elements of `regs`, in their order.
    is_sent: Vec<bool>,
    /// Mean ratio of the deviations of transmitted and of silent elements, at least 1. An error of the channel estimate
    /// appears only on transmitted elements.
    sent: f32,
    silent_kind: Kind,
    sent_kind: Kind,
}

/// Deviations of the silent or of the transmitted elements.
#[derive(Clone, Debug, Default)]
struct Kind {
    deviations: Vec<f32>,
    median: Median,
}

impl Kind {
    /// The median, or `None` if there are too few elements.
    fn median(&mut self) -> Option<f32> {
        let is_enough = self.deviations.len() >= MIN_ELEMENTS;
        is_enough.then(|| self.median.of(&mut self.deviations)).flatten()
    }
}

/// Weight of a new value in the averages of the excess and of the deviation ratio.
///
/// Chosen: a new value comes once per subframe. With pure noise, the mean of 31 values almost never deviates by half.
const SHARE: f32 = 0.06;

/// Minimum number of silent or of transmitted elements for a meaningful median.
///
/// Chosen: two REGs.
const MIN_ELEMENTS: usize = 8;

/// Maximum ratio of the deviations of transmitted and of silent elements.
///
/// Chosen: not tuned. At 40 dB SNR, a channel estimate with an error of 0.01 of its power causes this ratio.
const MAX_SENT: f32 = 100.0;

impl Elements {
    /// Creates the state for a cell.
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
            is_sent: Vec::new(),
            sent: 1.0,
            silent_kind: Kind::default(),
            sent_kind: Kind::default(),
        }
    }

    /// Resets all measurements.
    pub fn restart(&mut self) {
        self.excess.restart();
        self.sent = 1.0;
    }

    /// Whether a control element measures this subcarrier.
    pub fn measures(&self, subcarrier: usize) -> bool {
        self.is_measured.get(subcarrier).is_some_and(|is_measured| *is_measured)
    }

    /// Measures the elements of a subframe, given its channel.
    pub fn observe(&mut self, grid: &Grid, channel: &Channel) {
        let usual = (USUAL_POWER * channel.power_of_port()).max(f32::MIN_POSITIVE);
        self.measured.clear();
        self.is_sent.clear();
        for reg in &self.regs {
            let symbols = channel.matched(self.ports, grid, reg);
            let powers = channel.powers(self.ports, reg);
            let of = |at: usize| {
                let (symbol, power) = (symbols[at], powers[at].max(f32::MIN_POSITIVE));
                let level = power * std::f32::consts::FRAC_1_SQRT_2;
                let off = Complex32::new(symbol.re.abs() - level, symbol.im.abs() - level);
                let (if_sent, if_silent) = (off.norm_sqr(), symbol.norm_sqr());
                let deviation = if_sent.min(if_silent) / power;
                (Measured { deviation, allowed: (power / usual).max(1.0) }, if_sent < if_silent)
            };
            // Interference on one element of a pair affects both symbols of the pair.
            let pair = |at: usize| {
                let (one, other) = (of(at), of(at + 1));
                let deviation = (one.0.deviation + other.0.deviation) / 2.0;
                [(Measured { deviation, ..one.0 }, one.1 || other.1); 2]
            };
            let each = match self.ports {
                Ports::One => [0, 1, 2, 3].map(of),
                Ports::Two | Ports::Four => {
                    let ([first, second], [third, fourth]) = (pair(0), pair(2));
                    [first, second, third, fourth]
                }
            };
            self.measured.extend(each.map(|(measured, _)| measured));
            self.is_sent.extend(each.map(|(_, is_sent)| is_sent));
        }
        self.learn_sent();
        let sent = self.measured.iter_mut().zip(&self.is_sent).filter(|(_, is_sent)| **is_sent);
        sent.for_each(|(measured, _)| measured.deviation /= self.sent);
        let subcarriers = self.regs.iter().flat_map(|reg| reg.subcarriers).map(usize::from);
        self.excess.take(SHARE, subcarriers, &self.measured, channel.noise());
    }

    /// Updates the ratio of the deviations of transmitted and of silent elements.
    fn learn_sent(&mut self) {
        let (silent, sent) = (&mut self.silent_kind, &mut self.sent_kind);
        silent.deviations.clear();
        sent.deviations.clear();
        for (measured, is_sent) in self.measured.iter().zip(&self.is_sent) {
            let kind = if *is_sent { &mut sent.deviations } else { &mut silent.deviations };
            kind.push(measured.deviation / measured.allowed);
        }
        if let (Some(sent), Some(silent)) = (sent.median(), silent.median()) {
            let over = sent / silent;
            if over.is_finite() {
                self.sent += SHARE * (over.clamp(1.0, MAX_SENT) - self.sent);
            }
        }
    }

    /// Ratio of each subcarrier's squared deviation to the typical squared deviation.
    pub fn excess(&self) -> &Excess {
        &self.excess
    }
}
