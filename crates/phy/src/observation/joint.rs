//! Joint detection: soft bits of a cell under interference from another cell with a known channel.
//!
//! Control elements carry QPSK. If the symbols of two cells are aligned in time, a received element is the sum of two
//! points plus noise. The decoded cell contributes one of four QPSK points or zero, and the other cell contributes one
//! of a few points. Only the distance of the received element from the nearest of these sums is noise.
//!
//! ```text
//! P(own | received) = sum over all possible symbols of the other cell of P(own, other | received)
//! ```

mod sums;

use num_complex::Complex32;

use super::{Observation, Observer, expected_of};
use crate::cell::{Cell, Ports};
use crate::channel::Channel;
use crate::grid::{BITS_PER_CCE, ControlRegion, Grid, REGS_PER_CCE, Reg};
use crate::sequence::crs;
use sums::{Sums, points_of};

/// Received signal of an antenna, with the channels of two cells.
#[derive(Clone, Copy)]
pub struct TwoCellSignal<'a> {
    /// Received resource elements.
    pub grid: &'a Grid,
    /// Channel of the decoded cell. Its noise power includes all interference.
    pub own: &'a Channel,
    /// Gains of the other cell's ports, one or two, on every subcarrier.
    pub other: &'a [Vec<Complex32>],
}

/// Maximum number of symbols in a control region.
pub const SYMBOLS: usize = 4;

/// Maximum number of antennas in joint detection; further antennas are ignored.
pub const MAX_ANTENNAS: usize = 4;

/// Content of an element in the other cell's control region.
#[derive(Clone, Copy, Debug)]
enum Element {
    /// A control symbol or silence.
    Control,
    /// A reference signal of a port.
    Pilot(u8, Complex32),
}

/// Contents of the other cell's control region.
pub struct Layout {
    /// By subframe and symbol: content of every subcarrier.
    elements: Vec<[Vec<Element>; SYMBOLS]>,
}

/// A subframe of the other cell.
#[derive(Clone, Copy)]
pub struct OtherSubframe<'a> {
    /// Layout of the other cell.
    pub layout: &'a Layout,
    /// Index of the subframe in its frame; only the remainder modulo 10 counts.
    pub number: usize,
}

impl Layout {
    /// Creates the layout of a cell with the reference signals of two ports. If the cell has only one port, the elements
    /// of the second port's reference signals are empty.
    pub fn new(cell: &Cell) -> Layout {
        let count = cell.bandwidth.subcarriers();
        let of_symbol = |number: usize, symbol: usize| {
            let mut row = vec![Element::Control; count];
            for port in 0..cell.ports.count().max(2) {
                let of_two = Cell { ports: Ports::Two, ..*cell };
                let Some(pilots) = crs::pilots(&of_two, port, number, symbol) else { continue };
                for (at, value) in pilots.values.iter().enumerate() {
                    row[pilots.first + at * crs::Pilots::SPACING] = Element::Pilot(port as u8, *value);
                }
            }
            row
        };
        let elements = (0..10).map(|number| std::array::from_fn(|symbol| of_symbol(number, symbol)));
        Layout { elements: elements.collect() }
    }
}

impl Layout {
    /// Sum of products of neighbouring reference signals of a port in the first symbol of subframe `number`.
    pub fn neighbours(&self, number: usize, port: usize, row: &[Complex32]) -> Complex32 {
        let elements = self.elements[number % 10][0].iter().zip(row);
        let mut before: Option<Complex32> = None;
        let mut sum = Complex32::default();
        for (element, got) in elements {
            if let Element::Pilot(of, value) = element
                && usize::from(*of) == port
            {
                let gain = got * value.conj();
                sum += before.map_or(Complex32::default(), |before| before.conj() * gain);
                before = Some(gain);
            }
        }
        sum
    }
}

const BITS_PER_REG: usize = BITS_PER_CCE / REGS_PER_CCE;

/// Prior probability that a cell transmits on an element.
const SENT: f32 = 0.5;

/// Minimum ratio of the noise power without the other cell to the noise power with it.
const MIN_SHARE: f32 = 1e-3;

/// Number of iterations of the noise estimate in a subframe.
///
/// Chosen: the iteration starts from the estimate of the previous subframes. A third iteration changes nothing.
const ROUNDS: usize = 2;

/// Target for the product of two numbers: the REGs used for the noise estimate of a symbol, and the hypotheses per
/// unit. Only every n-th REG is used so that the product is about this number.
///
/// Chosen: 24 REGs of a cell with one port, and 7 of a cell with two ports.
const LEARNT_FROM: usize = 120;

/// e^−x for x from 0 to 80, with a relative error below 0.001; close to zero for larger x.
#[inline(always)]
fn exp_of_minus(x: f32) -> f32 {
    /// If this constant is added to a small number, the lowest bits of the sum are the nearest integer.
    const WHOLE: f32 = 1.5 * (1 << 23) as f32;
    // NaN becomes the minimum.
    let turns = (x * -std::f32::consts::LOG2_E).max(-120.0);
    let whole = turns + WHOLE;
    let part = turns - (whole - WHOLE);
    let power = 1.0 + part * (std::f32::consts::LN_2 + part * (0.240_227 + part * 0.055_504));
    f32::from_bits((whole.to_bits() << 23).wrapping_add(127 << 23)) * power
}

impl Observer {
    /// Sets the most likely CFI as [`Observer::cfi`] does, with joint detection of another cell. Uses only the first
    /// entry of `shares`. Returns the log-likelihood ratio between a transmitted PCFICH and silence (nats).
    pub fn cfi_beside(
        &self,
        both: &[TwoCellSignal<'_>],
        other: OtherSubframe<'_>,
        shares: &[f32; SYMBOLS],
        out: &mut Observation,
    ) -> f32 {
        let (mut llrs, mut presence) = ([0.0; 32], 0.0);
        let mut sums = Sums::new(self.cell.ports, both, Some(other));
        self.regions[0].pcfich.iter().for_each(|reg| sums.add(reg, shares[0]));
        let bits_per_unit = sums.bits_per_unit();
        for (unit, bits) in sums.units().zip(llrs.chunks_exact_mut(bits_per_unit)) {
            presence += unit.presence();
            unit.bits(bits);
        }
        self.indicator(&llrs, out);
        presence
    }

    /// Demodulates the bits of all CCEs as [`Observer::bits`] does, with joint detection of another cell. `shares` is,
    /// by symbol, the ratio of the noise power without the other cell to the noise power with it. The function updates
    /// these ratios.
    pub fn bits_beside(
        &self,
        both: &[TwoCellSignal<'_>],
        other: OtherSubframe<'_>,
        shares: &mut [f32; SYMBOLS],
        out: &mut Observation,
    ) {
        self.bits(both.iter().map(|one| (one.grid, one.own)), out);
        let region = self.region(out.cfi);
        let mut is_joint = [false; SYMBOLS];
        for (symbol, is_joint) in is_joint.iter_mut().enumerate().take(self.cell.control_symbols(out.cfi)) {
            *is_joint = self.learn_share(both, other, region, symbol, &mut shares[symbol]);
        }
        let scrambling = &self.scrambling[out.number % 10];
        let mut sums = Sums::new(self.cell.ports, both, Some(other));
        let bits_per_unit = sums.bits_per_unit();
        for (cce, regs) in region.pdcch.chunks_exact(REGS_PER_CCE).enumerate() {
            let joint = || regs.iter().filter(|reg| is_joint[usize::from(reg.symbol)]);
            if joint().next().is_none() {
                continue;
            }
            let (mut expected, mut presence) = (0.0, 0.0);
            sums.clear();
            joint().for_each(|reg| sums.add(reg, shares[usize::from(reg.symbol)]));
            let mut units = sums.units();
            for (at, reg) in regs.iter().enumerate() {
                let first = cce * BITS_PER_CCE + BITS_PER_REG * at;
                let bits = &mut out.llrs[first..][..BITS_PER_REG];
                if !is_joint[usize::from(reg.symbol)] {
                    let mean = both.iter().map(|one| expected_of(one.own, reg)).sum::<f32>();
                    expected += mean;
                    // These bits have mean ±m and variance 2m if something was transmitted, otherwise mean 0.
                    presence += bits.iter().map(|llr| log_cosh(llr / 2.0)).sum::<f32>() - 2.0 * mean;
                    continue;
                }
                for (bits, unit) in bits.chunks_exact_mut(bits_per_unit).zip(&mut units) {
                    presence += unit.presence();
                    unit.bits(bits);
                }
                for (llr, sign) in bits.iter_mut().zip(&scrambling[first..]) {
                    // Expected magnitude of a bit with log-likelihood ratio L: |L| · tanh |L| / 2.
                    let error = exp_of_minus(llr.abs());
                    expected += llr.abs() * (1.0 - error) / (1.0 + error) / BITS_PER_REG as f32;
                    *llr *= sign;
                }
            }
            let mean = expected / REGS_PER_CCE as f32;
            out.expected[cce] = mean;
            out.powers[cce] = if presence > 0.0 { 1.0 + mean / 2.0 } else { 1.0 };
            if presence < 0.0 {
                // Probably nothing was transmitted in this CCE. Then no hypothesis is right, and the soft bits only show
                // which wrong hypothesis is nearest to the received signal. Scale them down.
                let factor = exp_of_minus(-presence / 4.0);
                out.llrs[cce * BITS_PER_CCE..][..BITS_PER_CCE].iter_mut().for_each(|llr| *llr *= factor);
            }
        }
    }

    /// Updates the noise share of a symbol. Returns whether joint detection explains the received signal better than
    /// the assumption that all interference is noise. If not, the other cell transmits something else in this symbol,
    /// or its channel is unknown.
    fn learn_share(
        &self,
        both: &[TwoCellSignal<'_>],
        other: OtherSubframe<'_>,
        region: &ControlRegion,
        symbol: usize,
        share: &mut f32,
    ) -> bool {
        let all = || region.pdcch.iter().filter(|reg| usize::from(reg.symbol) == symbol);
        let step = (all().count() * (points_of(self.cell.ports) + 1) / LEARNT_FROM).max(1);
        let regs: Vec<&Reg> = all().step_by(step).collect();
        let mut beside = Sums::new(self.cell.ports, both, Some(other));
        let values_per_unit = beside.values_per_unit();
        for _ in 0..ROUNDS {
            let (mut sum, mut count) = (0.0, 0.0);
            for regs in regs.chunks(REGS_PER_CCE) {
                beside.clear();
                regs.iter().for_each(|reg| beside.add(reg, *share));
                for unit in beside.units() {
                    sum += unit.distance();
                    count += values_per_unit;
                }
            }
            if count > 0.0 && sum.is_finite() {
                *share = (*share * sum / count).clamp(MIN_SHARE, 1.0);
            }
        }
        let (mut joint, mut alone) = (0.0, 0.0);
        let density = values_per_unit * libm::logf(*share);
        let mut without = Sums::new(self.cell.ports, both, None);
        for regs in regs.chunks(REGS_PER_CCE) {
            beside.clear();
            without.clear();
            for reg in regs {
                beside.add(reg, *share);
                without.add(reg, 1.0);
            }
            joint += beside.units().map(|unit| unit.likelihood() - density).sum::<f32>();
            alone += without.units().map(|unit| unit.likelihood()).sum::<f32>();
        }
        joint > alone
    }
}

/// ln cosh x.
fn log_cosh(x: f32) -> f32 {
    let x = x.abs();
    x + libm::log1pf(libm::expf(-2.0 * x)) - std::f32::consts::LN_2
}

#[cfg(test)]
mod tests {
    use super::exp_of_minus;

    #[test]
    fn the_fast_exponential_is_near_the_true_one() {
        for x in (0..8_000).map(|x| x as f32 / 100.0) {
            let exact = f64::exp(-f64::from(x));
            let off = (f64::from(exp_of_minus(x)) / exact - 1.0).abs();
            assert!(off < 1e-3, "e^-{x}: {off}");
        }
        assert!([200.0, f32::INFINITY, f32::NAN].into_iter().all(|x| exp_of_minus(x) < 1e-30));
    }
}
