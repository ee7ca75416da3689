//! What was heard of one subframe: what the receiver gives to the search for messages.

mod joint;

pub use joint::{Both, Layout, MOST_ANTENNAS, SYMBOLS};

use num_complex::Complex32;

use crate::cell::Cell;
use crate::channel::Channel;
use crate::grid::{BITS_PER_CCE, ControlRegion, Grid, REGS_PER_CCE, Reg};
use crate::pdcch::Place;
use crate::sequence::gold::{Gold, pdcch_seed};
use crate::{pcfich, phich};

/// The control region of one subframe, as it was heard.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// System frame number, 0…1023.
    pub sfn: u16,
    /// Number within the frame, 0…9.
    pub number: usize,
    /// The subframe's first sample, counted from the first that was pushed; negative if the subframe began before that.
    pub sample: i64,
    /// The likeliest control format indicator.
    pub cfi: u8,
    /// The logarithm of how much likelier this CFI is than the next.
    pub cfi_margin: f32,
    /// How well the PCFICH fits that indicator: 1 without noise, 0 where it was not heard.
    pub cfi_fit: f32,
    /// Whether the cell's subframe may not have been heard at all. If no message is found in it, nothing is known of
    /// it.
    pub is_doubtful: bool,
    /// Log-likelihood ratios ln P(0)/P(1) of the bits of all CCEs, 72 each, without scrambling.
    pub llrs: Vec<f32>,
    /// For each CCE: the mean size of a log-likelihood ratio of a message as strong as the reference signals. It
    /// differs because the channel differs over the band. Empty if only the mean over the band is known.
    pub expected: Vec<f32>,
    /// For each CCE: the mean power on its resource elements over that of the noise. It is about 1 if nothing was sent
    /// there, and more by the signal to noise ratio if something was. Empty if that is not known.
    pub powers: Vec<f32>,
    /// What was heard of each PHICH group's sequences; the cyclic prefix gives their number per group.
    pub answers: Vec<AnswerHeard>,
    /// Power of a resource element of all ports over that of the noise, mean over the band.
    pub snr_db: f32,
}

/// What was heard of one sequence of a PHICH group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AnswerHeard {
    /// Amplitude over that of a resource element of unit power: about 1 for an ACK, −1 for a NACK, 0 if nothing was
    /// sent.
    pub amplitude: f32,
    /// ln P(ACK)/P(NACK), if an answer was sent.
    pub llr: f32,
}

impl Observation {
    /// CCEs of the control region.
    pub fn cces(&self) -> usize {
        self.llrs.len() / BITS_PER_CCE
    }

    /// The log-likelihood ratios of one CCE.
    pub fn cce(&self, cce: usize) -> &[f32] {
        &self.llrs[cce * BITS_PER_CCE..][..BITS_PER_CCE]
    }

    /// The CCEs in which a message may have been sent: those that are louder than noise, and those where noise does not
    /// allow to tell.
    pub fn loud(&self) -> CceSet {
        let heard = self.powers.iter().zip(&self.expected);
        let ratios = heard.map(|(&power, &expected)| (power, expected / 2.0));
        // A value that is not a number does not count as silence.
        let is_silent = |(power, ratio): (f32, f32)| {
            ratio >= LEAST_RATIO && power <= NOISE_POWER.max(1.0 + FAINTEST_SHARE * ratio)
        };
        let loud = ratios.enumerate().filter(|&(_, heard)| !is_silent(heard));
        loud.map(|(cce, _)| cce).collect()
    }
}

/// If the mean power of the 36 resource elements of a CCE is more than this times that of the noise, it is not noise.
///
/// Chosen: noise is that loud in one of 10⁷ CCEs. It is in one of 10⁶ if four antenna ports are heard so differently
/// that only three quarters of the degrees of freedom count, and in one of 40,000 if the noise was also taken for 10 %
/// weaker than it is. For subframes of 25 CCEs, that is less than one idle subframe in a thousand.
const NOISE_POWER: f32 = 2.2;

/// A message is at least as loud as this share of the signal to noise ratio.
///
/// Chosen: half of a message that is sent 6 dB below the reference signals. So weak signals of other cells, and what
/// the receiver's own faults spill, do not count as messages.
const FAINTEST_SHARE: f32 = 0.125;

/// Below this signal to noise ratio, a message cannot be told from silence.
///
/// Chosen: 3.5 dB, where less than one in a hundred messages as strong as the reference signals is not above [`NOISE_POWER`].
const LEAST_RATIO: f32 = 2.25;

/// Some CCEs of a subframe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CceSet(u128);

impl CceSet {
    /// The CCEs of this set that none of the places takes.
    pub fn beside(self, places: impl Iterator<Item = Place>) -> CceSet {
        let taken: CceSet = places.flat_map(|place| place.range()).collect();
        CceSet(self.0 & !taken.0)
    }

    /// Whether a CCE is among them.
    pub fn contains(self, cce: usize) -> bool {
        cce < 128 && self.0 >> cce & 1 == 1
    }

    /// How many CCEs there are.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<usize> for CceSet {
    /// Takes CCEs below 128: no cell has more than 88.
    fn from_iter<I: IntoIterator<Item = usize>>(cces: I) -> CceSet {
        CceSet(cces.into_iter().filter(|&cce| cce < 128).fold(0, |set, cce| set | 1 << cce))
    }
}

/// Reads control regions of one cell. Tables that depend only on the cell are made once.
#[derive(Clone, Debug)]
pub struct Observer {
    cell: Cell,
    /// Of CFI 1, 2 and 3.
    regions: Vec<ControlRegion>,
    /// By subframe and CFI: the signs of the 32 bits that the PCFICH sends.
    indicators: Vec<[[f32; 32]; 3]>,
    /// By subframe: the scrambling of the PDCCH as signs.
    scrambling: Vec<Vec<f32>>,
    /// By subframe: that of the PHICH.
    answers: Vec<[f32; 12]>,
}

impl Observer {
    /// For a cell.
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

    /// The cell.
    pub fn cell(&self) -> &Cell {
        &self.cell
    }

    /// The region of a CFI (1…3).
    pub fn region(&self, cfi: u8) -> &ControlRegion {
        &self.regions[usize::from(cfi.clamp(1, 3)) - 1]
    }

    /// The likeliest CFI of subframe `out.number` that the cell may use, and how sure it is. Needs the first symbol only.
    /// `heard` is what each antenna received, and through which channel: what they tell adds up.
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

    /// The likeliest CFI by the bits of the PCFICH.
    fn indicator(&self, llrs: &[f32; 32], out: &mut Observation) {
        // The likelihood of a word is the product of its bits', each e^(±L/2) up to a common factor.
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

    /// Reads the bits of all CCEs of subframe `out.number`; `out.cfi` gives the number of control symbols.
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
                // Each part of a symbol is 1/√2, so that a bit is expected to be this times the power of its channel …
                let mean: f32 = heard.clone().map(|(_, channel)| expected_of(channel, reg)).sum();
                // … and where nothing was sent, its square is expected to be twice that.
                power +=
                    eight.iter().map(|llr| llr * llr).sum::<f32>() / (16.0 * mean.max(f32::MIN_POSITIVE));
                sum += mean;
            }
            out.expected.push(sum / REGS_PER_CCE as f32);
            out.powers.push(power / REGS_PER_CCE as f32);
        }
    }

    /// Listens to all sequences of all PHICH groups of subframe `out.number`; `out.cfi` must be known.
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
            // A level is ±`full`, with noise of power `full`·`noise`/2 as only one part counts.
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

/// The factor from the outputs of matched filters to log-likelihood ratios. An output is the power g of its channel
/// times a symbol of ±1/√2 in each part, with noise of power g·`noise`.
fn llr_scale(noise: f32) -> f32 {
    2.0 * std::f32::consts::SQRT_2 / noise.max(f32::MIN_POSITIVE)
}

/// The mean size of a log-likelihood ratio of a group that is as strong as the reference signals.
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
