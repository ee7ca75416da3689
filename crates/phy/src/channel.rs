//! The channel from each antenna port to the receiver, learnt from reference signals.

mod estimator;
mod hints;
mod wiener;

pub(crate) use estimator::Turn;
pub use estimator::{Estimator, Learnt};
pub use hints::Hints;

use num_complex::Complex32;

use crate::cell::{Cell, Ports};
use crate::diversity::{Quad, combine, pair_power};
use crate::grid::{Grid, Reg};

/// The channel of each antenna port on every subcarrier, and the noise.
#[derive(Clone, Debug, PartialEq)]
pub struct Channel {
    ports: Vec<Vec<Complex32>>,
    /// The same in each later control symbol, the second first. Empty where the channel is taken to hold still.
    later: Vec<Vec<Vec<Complex32>>>,
    /// Mean power of a port over the band.
    power: f32,
    noise: f32,
    /// How far the channel may have moved by the time of each control symbol, as a power on a resource element.
    moved: [f32; MOST_CONTROL_SYMBOLS],
    /// How much each subcarrier counts, 1 or less: the noise over what disturbs it. Empty if all count the same.
    weights: Vec<f32>,
}

impl Channel {
    /// A known channel: the gain of each antenna port on every subcarrier, and the power of the noise on a resource
    /// element.
    pub fn known(ports: Vec<Vec<Complex32>>, noise: f32) -> Channel {
        let count = ports.iter().map(Vec::len).sum::<usize>().max(1);
        let power = ports.iter().flatten().map(Complex32::norm_sqr).sum::<f32>() / count as f32;
        Channel {
            ports,
            later: Vec::new(),
            power,
            noise: noise.max(LEAST_NOISE * power),
            moved: [0.0; MOST_CONTROL_SYMBOLS],
            weights: Vec::new(),
        }
    }

    /// The gains in a symbol.
    #[inline]
    fn rows(&self, symbol: u8) -> &[Vec<Complex32>] {
        let later = usize::from(symbol).checked_sub(1).and_then(|at| self.later.get(at));
        later.unwrap_or(&self.ports)
    }

    /// The gain with which each antenna port is received on every subcarrier, in the first symbol.
    pub fn gains(&self) -> &[Vec<Complex32>] {
        &self.ports
    }

    /// Power of the noise on a resource element.
    pub fn noise(&self) -> f32 {
        self.noise
    }

    /// The same on one of a group in a control symbol: also what the channel may have moved until then.
    #[inline]
    pub fn noise_at(&self, reg: &Reg) -> f32 {
        self.noise + self.moved.get(usize::from(reg.symbol)).copied().unwrap_or_default()
    }

    /// Mean power of a port over the band.
    pub fn power_of_port(&self) -> f32 {
        self.power
    }

    /// Power of what all ports send on a resource element, over that of the noise.
    pub fn snr_db(&self) -> f32 {
        10.0 * libm::log10f(self.power.max(f32::MIN_POSITIVE) / self.noise.max(f32::MIN_POSITIVE))
    }

    /// The same as a ratio; 0 if nothing was heard at all.
    pub(crate) fn ratio(&self) -> f32 {
        self.power / self.noise.max(f32::MIN_POSITIVE)
    }

    /// The gains of each port on the four elements of a group; zero for ports that the cell does not have.
    #[inline]
    pub fn quads(&self, reg: &Reg) -> [Quad; 4] {
        let rows = self.rows(reg.symbol);
        std::array::from_fn(|port| match rows.get(port) {
            Some(row) => reg.subcarriers.map(|k| row[usize::from(k)]),
            None => Quad::default(),
        })
    }

    /// The power of a symbol on a group of resource elements, by the channel in the middle of the group.
    #[inline]
    pub fn power(&self, reg: &Reg) -> f32 {
        let ports = self.ports.len().max(1) as f32;
        let rows = self.rows(reg.symbol).iter();
        rows.map(|row| row[usize::from(reg.subcarriers[2])].norm_sqr()).sum::<f32>() / ports
    }

    /// The power of the channel of each symbol of a group: [`Channel::matched`] gives a symbol times this.
    #[inline]
    pub fn powers(&self, ports: Ports, reg: &Reg) -> [f32; 4] {
        let [a, b, c, d] = reg.subcarriers.map(usize::from);
        let pairs = |first: [&[Complex32]; 2], second: [&[Complex32]; 2]| {
            let (ab, cd) = (pair_power(first, a, b), pair_power(second, c, d));
            [ab, ab, cd, cd]
        };
        match (ports, self.rows(reg.symbol)) {
            (Ports::One, [only, ..]) => reg.subcarriers.map(|k| only[usize::from(k)].norm_sqr()),
            (Ports::Two, [first, second, ..]) => pairs([first, second], [first, second]),
            (Ports::Four, [first, second, third, fourth]) => pairs([first, third], [second, fourth]),
            // The channel of a cell has all of its ports.
            _ => [0.0; 4],
        }
    }

    /// How much each symbol of a group counts: 1, or less if one of the subcarriers is disturbed on which it was sent.
    #[inline]
    pub fn weights(&self, reg: &Reg) -> [f32; 4] {
        if self.weights.is_empty() {
            return [1.0; 4];
        }
        let [a, b, c, d] = reg.subcarriers.map(|k| self.weights[usize::from(k)]);
        match self.ports.len() {
            1 => [a, b, c, d],
            _ => [a.min(b), a.min(b), c.min(d), c.min(d)],
        }
    }

    /// How much each subcarrier counts. Empty if all count the same.
    pub(crate) fn all_weights(&self) -> &[f32] {
        &self.weights
    }

    /// The symbols on a group of resource elements, each times the power of its channel.
    #[inline]
    pub fn matched(&self, ports: Ports, grid: &Grid, reg: &Reg) -> Quad {
        match (ports, self.rows(reg.symbol)) {
            (Ports::Two, [first, second]) => {
                let row = grid.symbol(usize::from(reg.symbol));
                let [a, b, c, d] = reg.subcarriers.map(usize::from);
                let [x0, x1] = alamouti(row, first, second, a, b);
                let [x2, x3] = alamouti(row, first, second, c, d);
                [x0, x1, x2, x3]
            }
            (Ports::One, [only]) => {
                let row = grid.symbol(usize::from(reg.symbol));
                reg.subcarriers.map(|k| only[usize::from(k)].conj() * row[usize::from(k)])
            }
            _ => combine(ports, &grid.quad(reg), &self.quads(reg)),
        }
    }

    /// The symbols on groups of resource elements, each times the power of its channel, and less where it is disturbed.
    pub fn symbols(&self, cell: &Cell, grid: &Grid, regs: &[Reg]) -> Vec<Quad> {
        let weighed = |reg: &Reg| {
            let mut quad = self.matched(cell.ports, grid, reg);
            quad.iter_mut().zip(self.weights(reg)).for_each(|(symbol, weight)| *symbol *= weight);
            quad
        };
        regs.iter().map(weighed).collect()
    }
}

/// Most symbols that a control region has.
const MOST_CONTROL_SYMBOLS: usize = 4;

/// The least noise, relative to the power of a port: so likelihoods stay within the range of numbers.
///
/// Chosen: 70 dB, more than any receiver has.
const LEAST_NOISE: f32 = 1e-7;

/// [`combine`] of two symbols over two ports, without a detour.
#[inline]
fn alamouti(
    row: &[Complex32],
    first: &[Complex32],
    second: &[Complex32],
    a: usize,
    b: usize,
) -> [Complex32; 2] {
    // Half of the sum is the mean of neighbours; the rest of the factor is that of the code.
    let scale = 0.5 * std::f32::consts::FRAC_1_SQRT_2;
    let (p, q) = ((first[a] + first[b]) * scale, (second[a] + second[b]) * scale);
    let (x, y) = (row[a], row[b]);
    [
        Complex32::new(
            p.re * x.re + p.im * x.im + q.re * y.re + q.im * y.im,
            p.re * x.im - p.im * x.re + q.im * y.re - q.re * y.im,
        ),
        Complex32::new(
            p.re * y.re + p.im * y.im - q.re * x.re - q.im * x.im,
            p.re * y.im - p.im * y.re - q.im * x.re + q.re * x.im,
        ),
    ]
}
