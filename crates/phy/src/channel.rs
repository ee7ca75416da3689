//! Channel estimate from each antenna port to the receiver, obtained from cell-specific reference signals.

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

/// Channel of each antenna port on every subcarrier, and noise power.
#[derive(Clone, Debug, PartialEq)]
pub struct Channel {
    ports: Vec<Vec<Complex32>>,
    /// Gains in each later control symbol, starting with the second symbol. Empty if the channel counts as constant
    /// over the control symbols.
    later: Vec<Vec<Vec<Complex32>>>,
    /// Mean power of a port over the band.
    power: f32,
    noise: f32,
    /// Error power per resource element, by control symbol, due to channel variation since the reference signals.
    moved: [f32; MAX_CONTROL_SYMBOLS],
    /// Weight of each subcarrier, at most 1: noise power over noise plus interference power. Empty if all weights are 1.
    weights: Vec<f32>,
}

impl Channel {
    /// Builds a known channel from the gain of each antenna port on every subcarrier and the noise power per resource
    /// element.
    pub fn known(ports: Vec<Vec<Complex32>>, noise: f32) -> Channel {
        let count = ports.iter().map(Vec::len).sum::<usize>().max(1);
        let power = ports.iter().flatten().map(Complex32::norm_sqr).sum::<f32>() / count as f32;
        Channel {
            ports,
            later: Vec::new(),
            power,
            noise: noise.max(MIN_NOISE * power),
            moved: [0.0; MAX_CONTROL_SYMBOLS],
            weights: Vec::new(),
        }
    }

    /// Gains of all ports in an OFDM symbol.
    #[inline]
    fn rows(&self, symbol: u8) -> &[Vec<Complex32>] {
        let later = usize::from(symbol).checked_sub(1).and_then(|at| self.later.get(at));
        later.unwrap_or(&self.ports)
    }

    /// Gains of each antenna port on every subcarrier, in the first OFDM symbol.
    pub fn gains(&self) -> &[Vec<Complex32>] {
        &self.ports
    }

    /// Noise power per resource element.
    pub fn noise(&self) -> f32 {
        self.noise
    }

    /// Noise power per resource element of a REG, plus the error power due to channel variation until the REG's symbol.
    #[inline]
    pub fn noise_at(&self, reg: &Reg) -> f32 {
        self.noise + self.moved.get(usize::from(reg.symbol)).copied().unwrap_or_default()
    }

    /// Mean power of a port over the band.
    pub fn power_of_port(&self) -> f32 {
        self.power
    }

    /// Signal power of all ports per resource element over the noise power (dB).
    pub fn snr_db(&self) -> f32 {
        10.0 * libm::log10f(self.power.max(f32::MIN_POSITIVE) / self.noise.max(f32::MIN_POSITIVE))
    }

    /// SNR as a ratio; 0 if no power was received.
    pub(crate) fn ratio(&self) -> f32 {
        self.power / self.noise.max(f32::MIN_POSITIVE)
    }

    /// Gains of each port on the four resource elements of a REG; zero for ports that the cell does not have.
    #[inline]
    pub fn quads(&self, reg: &Reg) -> [Quad; 4] {
        let rows = self.rows(reg.symbol);
        std::array::from_fn(|port| match rows.get(port) {
            Some(row) => reg.subcarriers.map(|k| row[usize::from(k)]),
            None => Quad::default(),
        })
    }

    /// Mean power per port on a REG, computed from the channel at the REG's third resource element.
    #[inline]
    pub fn power(&self, reg: &Reg) -> f32 {
        let ports = self.ports.len().max(1) as f32;
        let rows = self.rows(reg.symbol).iter();
        rows.map(|row| row[usize::from(reg.subcarriers[2])].norm_sqr()).sum::<f32>() / ports
    }

    /// Channel power of each symbol of a REG: [`Channel::matched`] returns a symbol multiplied by this power.
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
            // A cell's channel has all of its ports.
            _ => [0.0; 4],
        }
    }

    /// Weight of each symbol of a REG: 1, or less if interference disturbs a subcarrier that carries the symbol.
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

    /// Weight of each subcarrier. Empty if all weights are 1.
    pub(crate) fn all_weights(&self) -> &[f32] {
        &self.weights
    }

    /// Matched-filter output on a REG: each symbol multiplied by its channel power.
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

    /// Matched-filter output on several REGs, each symbol multiplied by its channel power and its weight.
    pub fn symbols(&self, cell: &Cell, grid: &Grid, regs: &[Reg]) -> Vec<Quad> {
        let weighed = |reg: &Reg| {
            let mut quad = self.matched(cell.ports, grid, reg);
            quad.iter_mut().zip(self.weights(reg)).for_each(|(symbol, weight)| *symbol *= weight);
            quad
        };
        regs.iter().map(weighed).collect()
    }
}

/// Maximum number of OFDM symbols in a control region.
const MAX_CONTROL_SYMBOLS: usize = 4;

/// Minimum noise power, relative to the power of a port. With this minimum, likelihoods stay within the range of `f32`.
///
/// Chosen: 70 dB, a higher SNR than any receiver has.
const MIN_NOISE: f32 = 1e-7;

/// Same result as [`combine`] for two symbols over two ports, computed directly.
#[inline]
fn alamouti(
    row: &[Complex32],
    first: &[Complex32],
    second: &[Complex32],
    a: usize,
    b: usize,
) -> [Complex32; 2] {
    // 0.5 turns the sum into the mean of two neighbouring gains; 1/√2 is the power factor of the Alamouti code.
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
