//! Block error model: from SINR to the probability that a transport block is lost.
//!
//! Per-RBG SINRs → effective SINR ([`information`]) → curve of one code block of this MCS and size → all `C` code blocks
//! of the transport block, `1 - (1 - p)^C`. The error of a retransmission depends on the content of the soft buffer
//! ([`SoftBuffer`]). The paper's model, which does not use the SINR, is an alternative ([`BlerModel::Pbe`]).

use airpace_core::Bits;
use airpace_core::tables::Modulation;
use airpace_core::tables::lte::{self, coded_bits};
use airpace_core::tables::nr;
use serde::{Deserialize, Serialize};

use crate::config_error::{ConfigError, not_negative, probability};

mod curves;
pub mod information;
mod ldpc;

use curves::MEASURED;
use information::{mutual_information, sinr_db_of};

/// Model of transport block errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlerModel {
    /// The error depends on SINR, MCS and block size, according to measured curves.
    #[default]
    Sinr,
    /// The error depends on the block size alone: bit errors are independent.
    ///
    /// Source: PBE-CC §4.2.1
    Pbe,
    /// No block is ever lost.
    None,
}

/// How the receiver combines the transmissions of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Combining {
    /// Retransmissions repeat the same bits: the SINRs of the transmissions add up. After 2, 3 and 4 transmissions with
    /// equal SINR, the gain is 3.0, 4.8 and 6.0 dB.
    #[default]
    Chase,
    /// Retransmissions first send new parity bits. The mutual information of the transmissions adds up until all bits
    /// of the rate 1/3 mother code were sent. After that, SINRs add up.
    IncrementalRedundancy,
}

/// Configuration of transport block errors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BlerConfig {
    /// Model of transport block errors.
    pub model: BlerModel,
    /// Bit error probability of the `pbe` model.
    ///
    /// Chosen: 3e-6, the middle of the paper's three curves.
    pub pbe_bit_error_rate: f64,
    /// In the `pbe` model, error probability of a retransmission divided by that of the first transmission.
    ///
    /// Chosen: 0.1, to account for combining, which the paper does not mention; 1.0 gives the paper's independent
    /// errors literally.
    pub pbe_retransmission_factor: f64,
    /// Implementation loss: additional SINR in dB that a real receiver needs compared with the curves (`sinr` model).
    ///
    /// Chosen: 1 dB; 1…2 dB is common.
    pub implementation_loss_db: f64,
    /// Combining of retransmissions (`sinr` model).
    pub combining: Combining,
    /// Whether the curve of a block is chosen by the size of its code blocks, as in ns-3's LENA, which has a curve for
    /// each of nine sizes. Otherwise the curve is interpolated by the size of the whole block (`sinr` model).
    pub by_code_block: bool,
}

impl Default for BlerConfig {
    fn default() -> BlerConfig {
        BlerConfig {
            model: BlerModel::Sinr,
            pbe_bit_error_rate: 3e-6,
            pbe_retransmission_factor: 0.1,
            implementation_loss_db: 1.0,
            combining: Combining::Chase,
            by_code_block: false,
        }
    }
}

/// Properties of a transport block that the error model uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The MCS table to which `mcs` refers.
    pub table: CodeTable,
    /// MCS of the block's first transmission.
    pub mcs: u8,
    /// Transport block size.
    pub bits: Bits,
}

impl Block {
    /// Modulation of the block's first transmission.
    pub fn modulation(&self) -> Modulation {
        self.table.modulation(self.mcs)
    }

    /// Number of code blocks of the transport block.
    pub fn code_blocks(&self) -> u64 {
        match self.table {
            CodeTable::Turbo(_) => lte::code_blocks(self.bits),
            CodeTable::Ldpc(_) => ldpc::code_blocks(self.bits, self.table.nominal_rate(self.mcs)),
        }
    }
}

/// An MCS table, and the channel code of the blocks with its MCSs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeTable {
    /// A table of LTE, with turbo codes.
    Turbo(lte::McsTable),
    /// A table of NR, with LDPC codes.
    Ldpc(nr::McsTable),
}

impl From<lte::McsTable> for CodeTable {
    fn from(table: lte::McsTable) -> CodeTable {
        CodeTable::Turbo(table)
    }
}

impl From<nr::McsTable> for CodeTable {
    fn from(table: nr::McsTable) -> CodeTable {
        CodeTable::Ldpc(table)
    }
}

impl CodeTable {
    /// The highest MCS that is not reserved.
    pub fn last_mcs(self) -> u8 {
        match self {
            CodeTable::Turbo(table) => table.last_mcs(),
            CodeTable::Ldpc(table) => table.last_mcs(),
        }
    }

    /// Modulation of an MCS. A reserved MCS has the modulation of the highest MCS.
    fn modulation(self, mcs: u8) -> Modulation {
        let mcs = mcs.min(self.last_mcs());
        match self {
            CodeTable::Turbo(table) => table.mcs(mcs).map_or(Modulation::Qpsk, |row| row.modulation),
            CodeTable::Ldpc(table) => table.mcs(mcs).map_or(Modulation::Qpsk, |row| row.modulation),
        }
    }

    /// The nominal code rate of an MCS.
    fn nominal_rate(self, mcs: u8) -> f64 {
        match self {
            CodeTable::Turbo(table) => nominal_rate(table, mcs),
            CodeTable::Ldpc(table) => {
                let rate = table.mcs(mcs.min(table.last_mcs())).and_then(|row| row.rate);
                rate.map_or(0.0, |rate| f64::from(rate.as_2048ths()) / 2048.0)
            }
        }
    }

    /// The inverse of the mother code's rate: coded bits per information bit before bits are repeated.
    fn expansion(self, bits: Bits, mcs: u8) -> f64 {
        match self {
            CodeTable::Turbo(_) => 3.0,
            CodeTable::Ldpc(_) => ldpc::expansion(bits, self.nominal_rate(mcs)),
        }
    }
}

/// A receiver's soft buffer for one block: energy and information of its transmissions so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SoftBuffer {
    transmissions: u8,
    /// Sum of the SINRs of all transmissions.
    sinr_db: f64,
    information: f64,
}

impl SoftBuffer {
    /// Adds a transmission, received at this effective SINR, of a block with this modulation.
    pub fn add(&mut self, modulation: Modulation, sinr_db: f64) {
        let linear = |db: f64| libm::pow(10.0, db / 10.0);
        self.sinr_db = match self.transmissions {
            0 => sinr_db,
            _ => 10.0 * libm::log10(linear(self.sinr_db) + linear(sinr_db)),
        };
        self.transmissions = self.transmissions.saturating_add(1);
        self.information += mutual_information(modulation, sinr_db);
    }

    /// Number of transmissions in the buffer.
    pub fn transmissions(&self) -> u8 {
        self.transmissions
    }
}

/// The error model of a cell. It is built once and used for every transport block.
#[derive(Clone, Debug)]
pub struct Bler {
    config: BlerConfig,
    curves: Vec<[Curve; 6]>,
    ldpc: ldpc::Curves,
    /// ln(1 - p), where p is the bit error probability of the `pbe` model.
    log_of_bit_success: f64,
}

/// Error curve of one code block of an MCS, in transport blocks of about `bits` bits: a logistic function of the SINR
/// in dB.
#[derive(Clone, Copy, Debug)]
struct Curve {
    bits: f64,
    middle_db: f64,
    slope_db: f64,
}

impl Bler {
    /// Builds the curves. Returns an error if a probability is outside 0…1 or the implementation loss is negative.
    pub fn new(config: &BlerConfig) -> Result<Bler, ConfigError> {
        probability("pbe_bit_error_rate", config.pbe_bit_error_rate)?;
        probability("pbe_retransmission_factor", config.pbe_retransmission_factor)?;
        not_negative("implementation_loss_db", config.implementation_loss_db)?;
        let log_of_bit_success = libm::log1p(-config.pbe_bit_error_rate);
        let curves = all_curves();
        let ldpc = ldpc::Curves::new(&curves);
        Ok(Bler { config: config.clone(), curves, ldpc, log_of_bit_success })
    }

    /// Model of transport block errors.
    pub fn model(&self) -> BlerModel {
        self.config.model
    }

    /// Probability that a first transmission at this effective SINR is lost.
    pub fn first_error(&self, block: Block, sinr_db: f64) -> f64 {
        match self.config.model {
            BlerModel::Sinr => self.curve_error(block, sinr_db),
            BlerModel::Pbe => self.pbe_error(block),
            BlerModel::None => 0.0,
        }
    }

    /// Probability that the block is still not decoded after its latest transmission. `held` must contain all
    /// transmissions of the block (at least one).
    pub fn error(&self, block: Block, held: &SoftBuffer) -> f64 {
        match self.config.model {
            BlerModel::Sinr => self.curve_error(block, self.combined_sinr_db(block, held)),
            BlerModel::Pbe if held.transmissions > 1 => {
                self.pbe_error(block) * self.config.pbe_retransmission_factor
            }
            BlerModel::Pbe => self.pbe_error(block),
            BlerModel::None => 0.0,
        }
    }

    /// The effective SINR in dB at which the share `error` of first transmissions is lost. The `sinr` model's curves and
    /// implementation loss are used with every model.
    pub fn sinr_db_for(&self, block: Block, error: f64) -> f64 {
        let (middle_db, slope_db) = self.code_block_curve(block);
        let of_one = -libm::expm1(libm::log1p(-error) / block.code_blocks() as f64);
        middle_db + slope_db * libm::log((1.0 - of_one) / of_one) + self.config.implementation_loss_db
    }

    /// Error probability of a transport block of L bits: 1 - (1 - p)^L.
    ///
    /// Source: PBE-CC §4.2.1
    fn pbe_error(&self, block: Block) -> f64 {
        -libm::expm1(block.bits.0 as f64 * self.log_of_bit_success)
    }

    fn curve_error(&self, block: Block, sinr_db: f64) -> f64 {
        let (middle_db, slope_db) = self.code_block_curve(block);
        let excess = (sinr_db - self.config.implementation_loss_db - middle_db) / slope_db;
        if excess > 40.0 {
            // The error is so small that 1 minus the error cannot be distinguished from 1.
            return 0.0;
        }
        let success = 1.0 / (1.0 + libm::exp(-excess));
        1.0 - power(success, block.code_blocks())
    }

    /// Middle and slope, in dB, of the error curve for one code block of this block. Between the measured sizes, the
    /// curve is interpolated. Beyond the largest size, the curve of the largest size is used. Below the smallest size,
    /// slope ∝ 1/√bits, and the middle rises by three times the increase of the slope, as among the smallest measured
    /// sizes.
    fn code_block_curve(&self, block: Block) -> (f64, f64) {
        let table = match block.table {
            CodeTable::Turbo(table) => table,
            CodeTable::Ldpc(table) => {
                let size = block.bits.0.div_ceil(block.code_blocks());
                let curve = self.ldpc.curve(table, block.mcs, size);
                return (curve.middle_db, curve.slope_db);
            }
        };
        let sizes = &self.curves[curve_index(table, block.mcs)];
        let bits = block.bits.0.max(16) as f64;
        if self.config.by_code_block
            && let Some(curve) = curve_of_code_blocks(sizes, block.bits)
        {
            return (curve.middle_db, curve.slope_db);
        }
        if bits <= sizes[0].bits {
            let slope_db = sizes[0].slope_db * libm::sqrt(sizes[0].bits / bits);
            return (sizes[0].middle_db + 3.0 * (slope_db - sizes[0].slope_db), slope_db);
        }
        let Some(above) = sizes.iter().position(|size| bits <= size.bits) else {
            return (sizes[5].middle_db, sizes[5].slope_db);
        };
        let (low, high) = (sizes[above - 1], sizes[above]);
        let share = (bits - low.bits) / (high.bits - low.bits);
        (
            low.middle_db + share * (high.middle_db - low.middle_db),
            low.slope_db + share * (high.slope_db - low.slope_db),
        )
    }

    /// SINR in dB of a single transmission with the same error probability as the whole content of the buffer.
    ///
    /// Incremental redundancy: at code rate `R`, `3R` transmissions send all bits of a mother code of rate 1/3; bits
    /// sent after that are repetitions. The share of new bits adds mutual information, the share of repeated bits adds
    /// SINR.
    fn combined_sinr_db(&self, block: Block, held: &SoftBuffer) -> f64 {
        if held.transmissions < 2 || self.config.combining == Combining::Chase {
            return held.sinr_db;
        }
        let n = f64::from(held.transmissions);
        let modulation = block.modulation();
        let expansion = block.table.expansion(block.bits, block.mcs);
        let fillings = (expansion * block.table.nominal_rate(block.mcs)).max(1.0);
        let new = (n.min(fillings) - 1.0) / (n - 1.0);
        let information = new * held.information + (1.0 - new) * mutual_information(modulation, held.sinr_db);
        sinr_db_of(modulation, information.min(1.0)).max(held.sinr_db)
    }
}

/// The measured curve whose code blocks are in the same LENA class as those of a block of `bits`; if there are several
/// such curves, the curve with the nearest code block size.
fn curve_of_code_blocks(sizes: &[Curve; 6], bits: Bits) -> Option<Curve> {
    let size = code_block_size(bits);
    let size_of = |curve: &Curve| code_block_size(Bits(curve.bits as u64));
    let same = sizes.iter().filter(|curve| lena_class(size_of(curve)) == lena_class(size));
    same.min_by_key(|curve| size_of(curve).abs_diff(size)).copied()
}

/// Size in bits of the code blocks of a transport block, rounded up to a valid size of the turbo code.
///
/// Source: TS 36.212 §5.1.2, §5.1.3.2.3 Table 5.1.3-3
fn code_block_size(bits: Bits) -> u64 {
    let data = coded_bits(bits).0.div_ceil(lte::code_blocks(bits));
    let step = match data {
        0..=512 => 8,
        513..=1024 => 16,
        1025..=2048 => 32,
        _ => 64,
    };
    data.next_multiple_of(step)
}

/// The largest of LENA's code block sizes that is at most `size`; 0 below all sizes.
///
/// Source: ns-3 lte-mi-error-model.cc, which has curves for these sizes and takes the next lower one
fn lena_class(size: u64) -> u64 {
    const SIZES: [u64; 9] = [40, 140, 160, 256, 512, 1024, 2048, 4032, 6144];
    SIZES.into_iter().rev().find(|&class| class <= size).unwrap_or(0)
}

/// base^exponent by squaring: a few multiplications, with the same result on any machine.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut product = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            product *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    product
}

/// All error curves: 0…28 from the measurement, 29…36 for MCS 20…27 of the 256QAM table.
///
/// Chosen: each 256QAM curve is the curve of MCS 28, shifted to the SINR at which 256QAM of that code rate carries
/// enough information, plus the mean distance of the measured 64QAM curves from that bound.
fn all_curves() -> Vec<[Curve; 6]> {
    let mut curves: Vec<[Curve; 6]> = (0..29_u8).map(measured_curve).collect();
    use lte::McsTable;
    let bound_db = |table: McsTable, mcs| {
        let table = CodeTable::from(table);
        sinr_db_of(table.modulation(mcs), table.nominal_rate(mcs))
    };
    let gap_db = (20..29)
        .map(|mcs| curves[usize::from(mcs)][4].middle_db - bound_db(McsTable::Qam64, mcs))
        .sum::<f64>()
        / 9.0;
    let model = curves[28];
    for mcs in 20..28 {
        let moved_db = bound_db(McsTable::Qam256, mcs) + gap_db - model[4].middle_db;
        curves.push(model.map(|size| Curve { middle_db: size.middle_db + moved_db, ..size }));
    }
    curves
}

/// The logistic curve of one code block that reproduces the measured 50 % and 10 % points of the whole block.
fn measured_curve(mcs: u8) -> [Curve; 6] {
    MEASURED[usize::from(mcs)].map(|(bits, half_db, tenth_db)| {
        let block = Block { table: lte::McsTable::Qam64.into(), mcs, bits: Bits(u64::from(bits)) };
        let odds = |error: f64| {
            let of_one = -libm::expm1(libm::log1p(-error) / block.code_blocks() as f64);
            libm::log((1.0 - of_one) / of_one)
        };
        let slope_db = (tenth_db - half_db) / (odds(0.1) - odds(0.5));
        Curve { bits: f64::from(bits), middle_db: half_db - slope_db * odds(0.5), slope_db }
    })
}

/// The index of the curve for an MCS: 0…28 are measured curves, 29…36 are the curves derived for 256QAM.
fn curve_index(table: lte::McsTable, mcs: u8) -> usize {
    /// MCS of the 64QAM table with the same modulation and TBS index as MCS 0…19 of the 256QAM table.
    const SAME: [u8; 20] = [0, 2, 4, 6, 8, 11, 12, 13, 14, 15, 16, 18, 19, 20, 21, 22, 23, 24, 25, 26];
    let mcs = usize::from(mcs.min(table.last_mcs()));
    match table {
        lte::McsTable::Qam64 => mcs,
        lte::McsTable::Qam256 => SAME.get(mcs).map_or(9 + mcs, |&same| usize::from(same)),
    }
}

/// The nominal code rate of an MCS of LTE: the code rate of the MCS's CQI (even MCS), or the mean code rate of two CQIs (odd
/// MCS).
///
/// Source: TS 36.213 §7.2.3 Tables 7.2.3-1 and 7.2.3-2
fn nominal_rate(table: lte::McsTable, mcs: u8) -> f64 {
    /// Information bits per 1024 coded bits, 64QAM table. MCS 9 and 10 carry the same number of bits in different
    /// modulations, as do MCS 16 and 17.
    const QAM64: [f64; 29] = [
        78.0, 99.0, 120.0, 156.5, 193.0, 250.5, 308.0, 378.5, 449.0, 602.0, // QPSK
        301.0, 339.5, 378.0, 434.0, 490.0, 553.0, 616.0, // 16QAM
        410.7, 466.0, 516.5, 567.0, 616.5, 666.0, 719.0, 772.0, 822.5, 873.0, 910.5, 948.0, // 64QAM
    ];
    /// MCS 20…27 of the 256QAM table.
    const QAM256: [f64; 8] = [682.5, 711.0, 754.0, 797.0, 841.0, 885.0, 916.5, 948.0];
    match curve_index(table, mcs) {
        curve @ 0..=28 => QAM64[curve] / 1024.0,
        curve => QAM256[curve - 29] / 1024.0,
    }
}

#[cfg(test)]
mod tests;
