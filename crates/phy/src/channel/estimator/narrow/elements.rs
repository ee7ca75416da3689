//! Interference in a narrow band, as the elements between the reference signals show it.
//!
//! In the first symbol, elements of the PDCCH and the PCFICH carry QPSK or nothing. How far one is from both tells what
//! disturbs it. So a tone that lies between two reference signals is found too, and a subcarrier beside a disturbed
//! reference signal counts in full if it hears nothing.

use num_complex::Complex32;

use super::USUAL_POWER;
use super::excess::{Excess, Measured};
use super::median::Median;
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
    /// Of the same: whether something was sent there.
    is_sent: Vec<bool>,
    /// By how much more an element deviates on which something was sent than one that is silent: the mean, 1 or more. A
    /// channel that is not quite known shows only where something is sent.
    sent: f32,
    silent_kind: Kind,
    sent_kind: Kind,
}

/// The deviations of the elements that are silent, or of those on which something was sent.
#[derive(Clone, Debug, Default)]
struct Kind {
    deviations: Vec<f32>,
    median: Median,
}

impl Kind {
    /// The median, unless there are too few elements.
    fn median(&mut self) -> Option<f32> {
        let is_enough = self.deviations.len() >= LEAST_ELEMENTS;
        is_enough.then(|| self.median.of(&mut self.deviations)).flatten()
    }
}

/// The share by which the mean takes a new value.
///
/// Chosen: a new value comes once per subframe. The mean of so many (31) of pure noise is hardly ever off by half.
const SHARE: f32 = 0.06;

/// Of fewer elements of either kind, the median says too little.
///
/// Chosen: two groups of resource elements.
const LEAST_ELEMENTS: usize = 8;

/// An element on which something was sent counts as if it deviates by at most so many times more than a silent one.
///
/// Chosen: without trying others. At 40 dB, a channel whose estimate is off by a hundredth of its power deviates so.
const MOST_SENT: f32 = 100.0;

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
            is_sent: Vec::new(),
            sent: 1.0,
            silent_kind: Kind::default(),
            sent_kind: Kind::default(),
        }
    }

    /// Begins anew.
    pub fn restart(&mut self) {
        self.excess.restart();
        self.sent = 1.0;
    }

    /// Whether a subcarrier is one of those that are measured.
    pub fn measures(&self, subcarrier: usize) -> bool {
        self.is_measured.get(subcarrier).is_some_and(|is_measured| *is_measured)
    }

    /// Takes a subframe that came through this channel.
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
            // What disturbs one element of a pair shows in both of its symbols.
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

    /// Learns by how much more elements deviate on which something was sent.
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
                self.sent += SHARE * (over.clamp(1.0, MOST_SENT) - self.sent);
            }
        }
    }

    /// By subcarrier: by how much more it is disturbed than a typical one.
    pub fn excess(&self) -> &Excess {
        &self.excess
    }
}
