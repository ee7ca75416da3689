//! The channel from each antenna port to the receiver, learnt from reference signals.

mod estimator;
mod wiener;

pub use estimator::{Estimator, Hints};

use num_complex::Complex32;

use crate::cell::{Cell, Ports};
use crate::diversity::{Quad, combine};
use crate::grid::{Grid, Reg};
use crate::sequence::crs;

/// The channel of each antenna port on every subcarrier, and the noise.
#[derive(Clone, Debug, PartialEq)]
pub struct Channel {
    ports: Vec<Vec<Complex32>>,
    /// Mean of a port, over the band.
    power: f32,
    noise: f32,
}

impl Channel {
    /// From the reference signals of a port's first symbol from `from` on: divided by what was sent, and a straight line
    /// between neighbours. The noise is what bends the line.
    ///
    /// Chosen: one symbol, no smoothing; good as far as noise is small against the signal.
    pub fn estimate(cell: &Cell, subframe: usize, from: usize, grid: &Grid) -> Channel {
        let mut bends = (0.0, 0);
        let mut of_port = |port| {
            let symbol = crs::pilot_symbols(cell.cp, port).find(|&symbol| symbol >= from)?;
            let pilots = crs::pilots(cell, port, subframe, symbol)?;
            let row = grid.symbol(symbol).iter().skip(pilots.first).step_by(crs::Pilots::SPACING);
            let gains: Vec<_> = row.zip(&pilots.values).map(|(got, sent)| got * sent.conj()).collect();
            bends.0 += gains.windows(3).map(|at| (at[0] + at[2] - at[1] * 2.0).norm_sqr()).sum::<f32>();
            bends.1 += gains.len() - 2;
            Some((0..grid.symbol(symbol).len()).map(|k| line(&gains, pilots.first, k)).collect())
        };
        let ports: Vec<Vec<Complex32>> =
            (0..cell.ports.count()).map(|port| of_port(port).unwrap_or_default()).collect();
        let count = ports.iter().map(Vec::len).sum::<usize>().max(1);
        let power = ports.iter().flatten().map(Complex32::norm_sqr).sum::<f32>() / count as f32;
        // A bend is n₋₁ + n₁ − 2·n₀, of six times the noise.
        let noise = bends.0 / (6 * bends.1.max(1)) as f32;
        Channel { ports, power, noise: noise.max(LEAST_NOISE * power) }
    }

    /// Power of the noise on a resource element.
    pub fn noise(&self) -> f32 {
        self.noise
    }

    /// The same channel with another noise: where it is known better than it can be learnt.
    pub fn with_noise(self, noise: f32) -> Channel {
        Channel { noise, ..self }
    }

    /// Power of what all ports send on a resource element, over that of the noise.
    pub fn snr_db(&self) -> f32 {
        10.0 * libm::log10f(self.power.max(f32::MIN_POSITIVE) / self.noise.max(f32::MIN_POSITIVE))
    }

    /// Of each port on the four elements of a group; zero for ports that the cell does not have.
    #[inline]
    pub fn quads(&self, reg: &Reg) -> [Quad; 4] {
        std::array::from_fn(|port| match self.ports.get(port) {
            Some(row) => reg.subcarriers.map(|k| row[usize::from(k)]),
            None => Quad::default(),
        })
    }

    /// The symbols on a group of resource elements, each times the power of its channel.
    #[inline]
    pub fn matched(&self, ports: Ports, grid: &Grid, reg: &Reg) -> Quad {
        match (ports, &self.ports[..]) {
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

    /// The symbols on groups of resource elements, each times the power of its channel.
    pub fn symbols(&self, cell: &Cell, grid: &Grid, regs: &[Reg]) -> Vec<Quad> {
        regs.iter().map(|reg| self.matched(cell.ports, grid, reg)).collect()
    }
}

/// The least noise, over the power of a port: likelihoods stay within the range of numbers.
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

/// The value at subcarrier `k` of a line through the two nearest of `gains`, which begin at `first`.
fn line(gains: &[Complex32], first: usize, k: usize) -> Complex32 {
    let spacing = crs::Pilots::SPACING;
    let left = (k.saturating_sub(first) / spacing).min(gains.len().saturating_sub(2));
    let (a, b) = (gains[left], gains[left + 1]);
    let share = (k as f32 - (first + left * spacing) as f32) / spacing as f32;
    a + (b - a).scale(share)
}
