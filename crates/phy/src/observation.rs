//! Soft bits and measurements of one subframe's control region: the input of the search for messages.

mod joint;

pub use joint::{Layout, MAX_ANTENNAS, OtherSubframe, SYMBOLS, TwoCellSignal};

use num_complex::Complex32;

use crate::cell::Cell;
use crate::channel::Channel;
use crate::grid::{BITS_PER_CCE, ControlRegion, Grid, REGS_PER_CCE, Reg};
use crate::pdcch::CceRange;
use crate::sequence::gold::{Gold, pdcch_seed};
use crate::{pcfich, phich};

/// Received control region of one subframe.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// System frame number, 0…1023.
    pub sfn: u16,
    /// Subframe number within the frame, 0…9.
    pub number: usize,
    /// Index of the subframe's first sample; the first pushed sample is 0. Negative if the subframe started before that
    /// sample.
    pub sample: i64,
    /// Most likely control format indicator (CFI).
    pub cfi: u8,
    /// Log-likelihood ratio between this CFI and the second most likely CFI.
    pub cfi_margin: f32,
    /// Match of the PCFICH with this CFI: 1 without noise, 0 if no PCFICH was received.
    pub cfi_fit: f32,
    /// Whether the subframe was possibly not received. If no message is found in such a subframe, its content counts as
    /// unknown.
    pub is_doubtful: bool,
    /// Log-likelihood ratios ln P(0)/P(1) of the bits of all CCEs, 72 per CCE, descrambled.
    pub llrs: Vec<f32>,
    /// For each CCE: expected mean magnitude of the log-likelihood ratios of a message with the power of the reference
    /// signals. The value differs between CCEs because the channel varies over the band. Empty if only the mean over
    /// the band is known.
    pub expected: Vec<f32>,
    /// For each CCE: mean power on its resource elements over the noise power. About 1 if nothing was transmitted there,
    /// otherwise about 1 + SNR. Empty if unknown.
    pub powers: Vec<f32>,
    /// Measurements of the sequences of all PHICH groups. The cyclic prefix determines the number of sequences per group.
    pub answers: Vec<AnswerHeard>,
    /// Signal power of all ports per resource element over the noise power (dB), mean over the band.
    pub snr_db: f32,
}

/// Measurement of one sequence of a PHICH group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AnswerHeard {
    /// Amplitude relative to a resource element of unit power: about 1 for an ACK, −1 for a NACK, 0 if nothing was
    /// transmitted.
    pub amplitude: f32,
    /// Log-likelihood ratio ln P(ACK)/P(NACK), given that an ACK or NACK was transmitted.
    pub llr: f32,
}

impl Observation {
    /// Number of CCEs in the control region.
    pub fn cces(&self) -> usize {
        self.llrs.len() / BITS_PER_CCE
    }

    /// Log-likelihood ratios of one CCE.
    pub fn cce(&self, cce: usize) -> &[f32] {
        &self.llrs[cce * BITS_PER_CCE..][..BITS_PER_CCE]
    }

    /// CCEs that may contain a message: those with more power than noise, and those whose SNR is too low to distinguish
    /// a message from noise.
    pub fn loud(&self) -> CceSet {
        let heard = self.powers.iter().zip(&self.expected);
        let ratios = heard.map(|(&power, &expected)| (power, expected / 2.0));
        // NaN does not count as silence.
        let is_silent = |(power, ratio): (f32, f32)| {
            ratio >= MIN_RATIO && power <= NOISE_POWER.max(1.0 + FAINTEST_SHARE * ratio)
        };
        let loud = ratios.enumerate().filter(|&(_, heard)| !is_silent(heard));
        loud.map(|(cce, _)| cce).collect()
    }
}

/// Threshold of the mean power of the 36 resource elements of a CCE over the noise power: above it, the CCE is not noise.
///
/// Chosen: noise exceeds this threshold in one of 10⁷ CCEs. The rate is one of 10⁶ CCEs if four antenna ports are
/// received with such different power that only three quarters of the degrees of freedom count. The rate is one of
/// 40,000 CCEs if the noise is also underestimated by 10 %. With this rate and 25 CCEs per subframe, noise exceeds the
/// threshold in less than one idle subframe in a thousand.
const NOISE_POWER: f32 = 2.2;

/// Minimum power of a message as a share of the SNR.
///
/// Chosen: half the power of a message that is 6 dB below the reference signals. So weak signals of other cells, and
/// leakage due to receiver impairments, do not count as messages.
const FAINTEST_SHARE: f32 = 0.125;

/// Minimum SNR (ratio) at which a message is distinguished from an empty CCE.
///
/// Chosen: 3.5 dB. At this SNR, less than one in a hundred messages with the power of the reference signals is below
/// [`NOISE_POWER`].
const MIN_RATIO: f32 = 2.25;

/// A set of CCEs of a subframe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CceSet(u128);

impl CceSet {
    /// Returns the CCEs of this set that none of `places` covers.
    pub fn beside(self, places: impl Iterator<Item = CceRange>) -> CceSet {
        let taken: CceSet = places.flat_map(|place| place.range()).collect();
        CceSet(self.0 & !taken.0)
    }

    /// Whether the set contains a CCE.
    pub fn contains(self, cce: usize) -> bool {
        cce < 128 && self.0 >> cce & 1 == 1
    }

    /// Number of CCEs in the set.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<usize> for CceSet {
    /// Collects CCEs below 128; cells have at most 88.
    fn from_iter<I: IntoIterator<Item = usize>>(cces: I) -> CceSet {
        CceSet(cces.into_iter().filter(|&cce| cce < 128).fold(0, |set, cce| set | 1 << cce))
    }
}

/// Demodulates control regions of one cell. Computes tables that depend only on the cell once.
#[derive(Clone, Debug)]
pub struct Observer {
    cell: Cell,
    /// Control regions for CFI 1, 2 and 3.
    regions: Vec<ControlRegion>,
    /// By subframe and CFI: signs of the 32 bits on the PCFICH.
    indicators: Vec<[[f32; 32]; 3]>,
    /// By subframe: scrambling sequence of the PDCCH as signs.
    scrambling: Vec<Vec<f32>>,
    /// By subframe: scrambling sequence of the PHICH.
    answers: Vec<[f32; 12]>,
}

impl Observer {
    /// Creates the tables for a cell.
    pub fn new(cell: Cell) -> Observer {
        let regions: Vec<_> = (1..=3).filter_map(|cfi| ControlRegion::new(&cell, cfi)).collect();
        let bits = regions.iter().map(|region| region.cces() * BITS_PER_CCE).max().unwrap_or(0);
        let indicator = |number, cfi| -> [f32; 32] {
            let quads = pcfich::encode(&cell, number, cfi);
            std::array::from_fn(|bit| {
                let symbol = quads[bit / 8][bit / 2 % 4];
                if bit % 2 == 0 { symbol.re.signum() } else { symbol.im.signum() }
            })
        };
        let signs = |number| {
            let mut bits_of_number = Gold::new(pdcch_seed(cell.pci, number));
            (0..bits).map(|_| bits_of_number.next_sign()).collect()
        };
        Observer {
            cell,
            regions,
            indicators: (0..10).map(|number| [1, 2, 3].map(|cfi| indicator(number, cfi))).collect(),
            scrambling: (0..10).map(signs).collect(),
            answers: (0..10).map(|number| phich::scrambling(cell.pci, number)).collect(),
        }
    }

    /// The observed cell.
    pub fn cell(&self) -> &Cell {
        &self.cell
    }

    /// Control region for a CFI (1…3).
    pub fn region(&self, cfi: u8) -> &ControlRegion {
        &self.regions[usize::from(cfi.clamp(1, 3)) - 1]
    }

    /// Sets the most likely CFI of subframe `out.number` among the CFIs that the cell may use, and its confidence. Needs
    /// only the first symbol. `heard` contains each antenna's grid and channel; the log-likelihood ratios of all antennas
    /// are added.
    ///
    /// Source: TS 36.211 §6.7
    pub fn cfi<'h>(&self, heard: impl IntoIterator<Item = (&'h Grid, &'h Channel)>, out: &mut Observation) {
        let mut llrs = [0.0; 32];
        for (grid, channel) in heard {
            for (reg, eight) in self.regions[0].pcfich.iter().zip(llrs.chunks_exact_mut(8)) {
                let symbols = channel.matched(self.cell.ports, grid, reg);
                let scale = llr_scale(channel.noise_at(reg));
                add_llrs(&symbols, channel.weights(reg).map(|weight| weight * scale), &[1.0; 8], eight);
            }
        }
        self.indicator(&llrs, out);
    }

    /// Sets the most likely CFI from the soft bits of the PCFICH.
    fn indicator(&self, llrs: &[f32; 32], out: &mut Observation) {
        // The likelihood of a codeword is the product of its bits' likelihoods, each e^(±L/2) up to a common factor.
        let likelihood = |cfi: u8| -> f32 {
            let word = &self.indicators[out.number % 10][usize::from(cfi) - 1];
            word.iter().zip(llrs).map(|(sign, llr)| 0.5 * sign * llr).sum()
        };
        let mut best = (self.cell.least_cfi(), f32::NEG_INFINITY);
        let mut margin = f32::INFINITY;
        for cfi in self.cell.least_cfi()..=3 {
            let likelihood = likelihood(cfi);
            margin = margin.min((likelihood - best.1).abs());
            if likelihood > best.1 {
                margin = likelihood - best.1;
                best = (cfi, likelihood);
            }
        }
        let most = 0.5 * llrs.iter().map(|llr| llr.abs()).sum::<f32>();
        (out.cfi, out.cfi_margin) = (best.0, margin);
        out.cfi_fit = best.1 / most.max(f32::MIN_POSITIVE);
    }

    /// Demodulates the bits of all CCEs of subframe `out.number`; `out.cfi` determines the number of control symbols.
    ///
    /// Source: TS 36.211 §6.8
    pub fn bits<'h, H>(&self, heard: H, out: &mut Observation)
    where
        H: IntoIterator<Item = (&'h Grid, &'h Channel), IntoIter: Clone>,
    {
        let heard = heard.into_iter();
        let region = self.region(out.cfi);
        let count = region.cces() * BITS_PER_CCE;
        out.llrs.clear();
        out.llrs.resize(count, 0.0);
        for (grid, channel) in heard.clone() {
            let scrambling = self.scrambling[out.number % 10].chunks_exact(8);
            for ((reg, signs), eight) in region.pdcch.iter().zip(scrambling).zip(out.llrs.chunks_exact_mut(8))
            {
                let symbols = channel.matched(self.cell.ports, grid, reg);
                let scale = llr_scale(channel.noise_at(reg));
                add_llrs(&symbols, channel.weights(reg).map(|weight| weight * scale), signs, eight);
            }
        }
        out.expected.clear();
        out.powers.clear();
        let bits = out.llrs.chunks_exact(BITS_PER_CCE);
        for (regs, bits) in region.pdcch.chunks_exact(REGS_PER_CCE).zip(bits) {
            let (mut sum, mut power) = (0.0, 0.0);
            for (reg, eight) in regs.iter().zip(bits.chunks_exact(8)) {
                // The real and imaginary part of a symbol are ±1/√2, so the expected magnitude of a bit is this factor
                // times the channel power.
                let mean: f32 = heard.clone().map(|(_, channel)| expected_of(channel, reg)).sum();
                // Where nothing was transmitted, the expected square of a bit is twice that expected magnitude.
                power +=
                    eight.iter().map(|llr| llr * llr).sum::<f32>() / (16.0 * mean.max(f32::MIN_POSITIVE));
                sum += mean;
            }
            out.expected.push(sum / REGS_PER_CCE as f32);
            out.powers.push(power / REGS_PER_CCE as f32);
        }
    }

    /// Measures all sequences of all PHICH groups of subframe `out.number`; `out.cfi` must be set.
    ///
    /// Source: TS 36.211 §6.9
    pub fn answers<'h, H>(&self, heard: H, out: &mut Observation)
    where
        H: IntoIterator<Item = (&'h Grid, &'h Channel), IntoIter: Clone>,
    {
        let heard = heard.into_iter();
        let (cell, region) = (&self.cell, self.region(out.cfi));
        let sequences = phich::sequences(cell.cp);
        out.answers.clear();
        for group in 0..cell.phich_groups() {
            let unit = &region.phich[phich::unit(cell.cp, group)];
            // A level is ±`full`, plus noise of power `full`·`noise`/2, because only the real part counts.
            let (mut sums, mut sum_full) = ([0.0; 8], 0.0);
            for (grid, channel) in heard.clone() {
                let noise = channel.noise().max(f32::MIN_POSITIVE);
                let (y, h) = (unit.map(|reg| grid.quad(&reg)), unit.map(|reg| channel.quads(&reg)));
                let (levels, full) = phich::levels(cell, &self.answers[out.number % 10], group, &y, &h);
                sums.iter_mut().zip(levels).for_each(|(sum, level)| *sum += level / noise);
                sum_full += full / noise;
            }
            out.answers.extend(sums[..sequences].iter().map(|level| AnswerHeard {
                amplitude: level / sum_full.max(f32::MIN_POSITIVE),
                llr: 4.0 * level,
            }));
        }
    }
}

/// Factor from matched-filter outputs to log-likelihood ratios. An output is the channel power g times a symbol with
/// parts ±1/√2, plus noise of power g·`noise`.
fn llr_scale(noise: f32) -> f32 {
    2.0 * std::f32::consts::SQRT_2 / noise.max(f32::MIN_POSITIVE)
}

/// Expected mean magnitude of the log-likelihood ratios of a REG that has the power of the reference signals.
fn expected_of(channel: &Channel, reg: &Reg) -> f32 {
    let scale = llr_scale(channel.noise_at(reg)) * std::f32::consts::FRAC_1_SQRT_2;
    scale * channel.power(reg) * channel.weights(reg).iter().sum::<f32>() / 4.0
}

#[inline]
fn add_llrs(symbols: &[Complex32; 4], scales: [f32; 4], signs: &[f32], out: &mut [f32]) {
    for (((symbol, scale), signs), out) in
        symbols.iter().zip(scales).zip(signs.chunks_exact(2)).zip(out.chunks_exact_mut(2))
    {
        out[0] += symbol.re * scale * signs[0];
        out[1] += symbol.im * scale * signs[1];
    }
}
