//! LTE tables of TS 36.213: transport block size of a grant, and number of its resource elements.
//!
//! All tables are constants: a cell makes a million look-ups per second.

mod tbs;

use super::{Cqi, Modulation, cqi_row, modulation};
use crate::units::Bits;

/// Numbers of PRB pairs of the channel bandwidths 1.4, 3, 5, 10, 15 and 20 MHz.
///
/// Source: TS 36.101 Table 5.6-1
pub const BANDWIDTH_PRBS: [u16; 6] = [6, 15, 25, 50, 75, 100];

/// Code rate above which a device may skip decoding a first transmission.
///
/// Source: TS 36.213 §7.1.7
pub const MAX_CODE_RATE: f64 = 0.930;

/// Maximum size of a code block including its CRC (bits).
///
/// Source: TS 36.212 §5.1.2
const MAX_CODE_BLOCK_BITS: u64 = 6144;

/// Size of the CRC of a transport block, and of each code block if the transport block has several (bits).
///
/// Source: TS 36.212 §5.1.1
const CRC_BITS: u64 = 24;

/// Size of one transport block of TBS index `i_tbs` (0…33) on `n_prb` PRB pairs (1…110), mapped to `layers` (1 or 2)
/// spatial layers; `None` outside these ranges.
///
/// A transmission of rank 2 usually has two codewords of one layer each. Call this function with `layers` = 1 for each
/// codeword.
///
/// Source: TS 36.213 §7.1.7.2
pub fn tbs(i_tbs: u8, n_prb: u16, layers: u8) -> Option<Bits> {
    let sizes = match layers {
        1 => &tbs::ONE_LAYER,
        2 => &tbs::TWO_LAYERS,
        _ => return None,
    };
    let column = usize::from(n_prb).checked_sub(1)?;
    sizes.get(usize::from(i_tbs))?.get(column).map(|&bits| Bits(u64::from(bits)))
}

/// Transport block size of DCI format 1C for TBS index `i_tbs` (0…31), independent of the number of PRBs. The cell uses
/// this format for paging, random-access responses and system information.
///
/// Source: TS 36.213 §7.1.7.2.3 Table 7.1.7.2.3-1
pub fn tbs_format_1c(i_tbs: u8) -> Option<Bits> {
    tbs::FORMAT_1C.get(usize::from(i_tbs)).map(|&bits| Bits(u64::from(bits)))
}

/// Configured MCS and CQI tables of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum McsTable {
    /// The tables with modulations up to 64QAM.
    #[default]
    Qam64,
    /// The tables with modulations up to 256QAM (`altCQI-Table-r12`).
    Qam256,
}

/// One row of a downlink MCS table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mcs {
    /// Modulation.
    pub modulation: Modulation,
    /// TBS index; `None` in a reserved row. A grant with such a row retransmits a block with its earlier size.
    pub i_tbs: Option<u8>,
}

impl McsTable {
    /// Highest MCS index that is not reserved.
    pub const fn last_mcs(self) -> u8 {
        match self {
            McsTable::Qam64 => 28,
            McsTable::Qam256 => 27,
        }
    }

    /// Row `index` (0…31) of the MCS table; `None` above 31.
    ///
    /// Source: TS 36.213 §7.1.7.1 Tables 7.1.7.1-1 and 7.1.7.1-1A
    pub fn mcs(self, index: u8) -> Option<Mcs> {
        let rows = match self {
            McsTable::Qam64 => &MCS_64QAM,
            McsTable::Qam256 => &MCS_256QAM,
        };
        rows.get(usize::from(index)).copied()
    }

    /// Row `index` (1…15) of the CQI table; `None` for 0, which means out of range, and above 15.
    ///
    /// Source: TS 36.213 §7.2.3 Tables 7.2.3-1 and 7.2.3-2
    pub fn cqi(self, index: u8) -> Option<Cqi> {
        let rows = match self {
            McsTable::Qam64 => &CQI_64QAM,
            McsTable::Qam256 => &CQI_256QAM,
        };
        rows.get(usize::from(index).checked_sub(1)?).copied()
    }

    /// Transport block size of MCS `index` on `n_prb` PRB pairs and `layers` layers; `None` for a reserved row and
    /// outside the tables.
    pub fn tbs(self, index: u8, n_prb: u16, layers: u8) -> Option<Bits> {
        tbs(self.mcs(index)?.i_tbs?, n_prb, layers)
    }

    /// Highest MCS index up to `limit` whose transport block on `n_prb` PRB pairs of `res_per_prb` resource elements
    /// ([`pdsch_res_per_prb`]) has a code rate of at most [`MAX_CODE_RATE`]; 0 if no index has such a code rate.
    ///
    /// Source: TS 36.213 §7.1.7
    pub fn highest_mcs(self, limit: u8, n_prb: u16, res_per_prb: u32) -> u8 {
        let res = u64::from(n_prb) * u64::from(res_per_prb);
        let decodable = |index: u8| {
            let row = self.mcs(index)?;
            let coded = coded_bits(tbs(row.i_tbs?, n_prb, 1)?);
            // Checks the code rate in integers: coded bits / (Q_m · resource elements) ≤ 0.930.
            Some(1000 * coded.0 <= 930 * u64::from(row.modulation.bits_per_symbol()) * res)
        };
        (1..=limit.min(self.last_mcs())).rev().find(|&index| decodable(index) == Some(true)).unwrap_or(0)
    }
}

/// One row of the uplink MCS table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UplinkMcs {
    /// Modulation and TBS index; `None` if the row retransmits a block granted before.
    pub initial: Option<(Modulation, u8)>,
    /// Redundancy version of the transmission.
    pub rv: u8,
}

/// Row `index` (0…31) of the uplink MCS table, for a device that may transmit 64QAM.
///
/// Source: TS 36.213 §8.6.1 Table 8.6.1-1
pub fn uplink_mcs(index: u8) -> Option<UplinkMcs> {
    let initial = match index {
        0..=10 => Some((Modulation::Qpsk, index)),
        11..=20 => Some((Modulation::Qam16, index - 1)),
        21..=28 => Some((Modulation::Qam64, index - 2)),
        29..=31 => None,
        _ => return None,
    };
    Some(UplinkMcs { initial, rv: index.saturating_sub(28) })
}

/// PUSCH resource elements of a PRB pair: 12 subcarriers in 12 of 14 symbols, because two symbols contain reference
/// signals. Valid for a normal cyclic prefix and a subframe without SRS.
///
/// Source: TS 36.211 §5.2 and §5.5.2.1
pub const PUSCH_RES_PER_PRB: u32 = 144;

/// Largest valid number of PRB pairs of an uplink grant up to `limit` (at most 110); 0 if `limit` is 0. Valid numbers
/// have only the prime factors 2, 3 and 5, for the DFT of the SC-FDMA transmitter.
///
/// Source: TS 36.211 §5.3.3
pub const fn pusch_size_within(limit: u16) -> u16 {
    PUSCH_SIZES[if limit > 110 { 110 } else { limit as usize }] as u16
}

/// Smallest valid number of PRB pairs of an uplink grant that is at least `least`; `None` if `least` is above 108.
///
/// Source: TS 36.211 §5.3.3
pub fn pusch_size_from(least: u16) -> Option<u16> {
    (least.max(1)..=110).find(|&prbs| pusch_size_within(prbs) == prbs)
}

/// For each number of PRB pairs, the largest valid size of an uplink grant up to this number.
static PUSCH_SIZES: [u8; 111] = {
    let mut sizes = [0; 111];
    let mut prbs = 1;
    while prbs < sizes.len() {
        let mut rest = prbs;
        while rest.is_multiple_of(2) {
            rest /= 2;
        }
        while rest.is_multiple_of(3) {
            rest /= 3;
        }
        while rest.is_multiple_of(5) {
            rest /= 5;
        }
        sizes[prbs] = if rest == 1 { prbs as u8 } else { sizes[prbs - 1] };
        prbs += 1;
    }
    sizes
};

/// RBG size in PRB pairs on a carrier of `carrier_prbs` PRB pairs.
///
/// Source: TS 36.213 §7.1.6.1 Table 7.1.6.1-1
pub const fn rbg_size(carrier_prbs: u16) -> u16 {
    match carrier_prbs {
        0..=10 => 1,
        11..=26 => 2,
        27..=63 => 3,
        _ => 4,
    }
}

/// Number of RBGs of a carrier. The last RBG is smaller if the RBG size does not divide the carrier.
///
/// Source: TS 36.213 §7.1.6.1
pub const fn rbg_count(carrier_prbs: u16) -> u16 {
    carrier_prbs.div_ceil(rbg_size(carrier_prbs))
}

/// First PRB pair and number of PRB pairs of RBG `index`. The number of PRB pairs is 0 beyond the last RBG.
pub const fn rbg(carrier_prbs: u16, index: u16) -> (u16, u16) {
    let size = rbg_size(carrier_prbs);
    let start = if index < rbg_count(carrier_prbs) { index * size } else { carrier_prbs };
    let left = carrier_prbs - start;
    (start, if left < size { left } else { size })
}

/// PDSCH resource elements of a PRB pair: 168, minus the control region, minus the CRS of `crs_ports` (1, 2 or 4)
/// antenna ports outside the control region. Valid for a normal cyclic prefix. The resource elements of PBCH and
/// synchronisation signals in the six middle PRB pairs are not subtracted.
///
/// `cfi` is 1…3. The control region has `cfi` symbols, and one symbol more on carriers of at most 10 PRB pairs.
///
/// Source: TS 36.211 §6.2, §6.7 and §6.10.1
pub const fn pdsch_res_per_prb(cfi: u8, crs_ports: u8, carrier_prbs: u16) -> u32 {
    let control_symbols = cfi as u32 + (carrier_prbs <= 10) as u32;
    let reference = match (crs_ports, control_symbols) {
        (..=1, _) => 6,
        (2, _) => 12,
        // The first CRS symbol of ports 2 and 3 is symbol 1. A control region of two or more symbols contains this
        // symbol.
        (_, ..=1) => 20,
        (_, _) => 16,
    };
    168 - 12 * control_symbols - reference
}

/// Number of code blocks of a transport block.
///
/// Source: TS 36.212 §5.1.2
pub const fn code_blocks(tbs: Bits) -> u64 {
    let bits = tbs.0 + CRC_BITS;
    if bits <= MAX_CODE_BLOCK_BITS { 1 } else { bits.div_ceil(MAX_CODE_BLOCK_BITS - CRC_BITS) }
}

/// Input bits of the channel coder: the transport block, its CRC and the CRCs of its code blocks.
///
/// Source: TS 36.212 §5.1.2
pub const fn coded_bits(tbs: Bits) -> Bits {
    let blocks = code_blocks(tbs);
    Bits(tbs.0 + CRC_BITS + if blocks > 1 { CRC_BITS * blocks } else { 0 })
}

/// Effective code rate of a transport block on `res` resource elements, counted over all layers of its codeword. The
/// code rate is infinite if `res` is zero.
///
/// Source: TS 36.213 §7.1.7
pub fn code_rate(tbs: Bits, modulation: Modulation, res: u64) -> f64 {
    coded_bits(tbs).0 as f64 / (u64::from(modulation.bits_per_symbol()) * res) as f64
}

/// A row of an MCS table, written as the specification prints it: Q_m and I_TBS.
const fn mcs_row(bits_per_symbol: u32, i_tbs: u8) -> Mcs {
    Mcs { modulation: modulation(bits_per_symbol), i_tbs: Some(i_tbs) }
}

const fn reserved_row(bits_per_symbol: u32) -> Mcs {
    Mcs { modulation: modulation(bits_per_symbol), i_tbs: None }
}

#[rustfmt::skip]
static MCS_64QAM: [Mcs; 32] = [
    mcs_row(2, 0), mcs_row(2, 1), mcs_row(2, 2), mcs_row(2, 3), mcs_row(2, 4),
    mcs_row(2, 5), mcs_row(2, 6), mcs_row(2, 7), mcs_row(2, 8), mcs_row(2, 9),
    mcs_row(4, 9), mcs_row(4, 10), mcs_row(4, 11), mcs_row(4, 12), mcs_row(4, 13), mcs_row(4, 14), mcs_row(4, 15),
    mcs_row(6, 15), mcs_row(6, 16), mcs_row(6, 17), mcs_row(6, 18), mcs_row(6, 19), mcs_row(6, 20),
    mcs_row(6, 21), mcs_row(6, 22), mcs_row(6, 23), mcs_row(6, 24), mcs_row(6, 25), mcs_row(6, 26),
    reserved_row(2), reserved_row(4), reserved_row(6),
];

#[rustfmt::skip]
static MCS_256QAM: [Mcs; 32] = [
    mcs_row(2, 0), mcs_row(2, 2), mcs_row(2, 4), mcs_row(2, 6), mcs_row(2, 8),
    mcs_row(4, 10), mcs_row(4, 11), mcs_row(4, 12), mcs_row(4, 13), mcs_row(4, 14), mcs_row(4, 15),
    mcs_row(6, 16), mcs_row(6, 17), mcs_row(6, 18), mcs_row(6, 19), mcs_row(6, 20), mcs_row(6, 21),
    mcs_row(6, 22), mcs_row(6, 23), mcs_row(6, 24),
    mcs_row(8, 25), mcs_row(8, 27), mcs_row(8, 28), mcs_row(8, 29), mcs_row(8, 30), mcs_row(8, 31),
    mcs_row(8, 32), mcs_row(8, 33),
    reserved_row(2), reserved_row(4), reserved_row(6), reserved_row(8),
];

#[rustfmt::skip]
static CQI_64QAM: [Cqi; 15] = [
    cqi_row(2, 78), cqi_row(2, 120), cqi_row(2, 193), cqi_row(2, 308), cqi_row(2, 449), cqi_row(2, 602),
    cqi_row(4, 378), cqi_row(4, 490), cqi_row(4, 616),
    cqi_row(6, 466), cqi_row(6, 567), cqi_row(6, 666), cqi_row(6, 772), cqi_row(6, 873), cqi_row(6, 948),
];

#[rustfmt::skip]
static CQI_256QAM: [Cqi; 15] = [
    cqi_row(2, 78), cqi_row(2, 193), cqi_row(2, 449),
    cqi_row(4, 378), cqi_row(4, 490), cqi_row(4, 616),
    cqi_row(6, 466), cqi_row(6, 567), cqi_row(6, 666), cqi_row(6, 772), cqi_row(6, 873),
    cqi_row(8, 711), cqi_row(8, 797), cqi_row(8, 885), cqi_row(8, 948),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_sizes_known_by_heart() {
        let one = |i_tbs, n_prb| tbs(i_tbs, n_prb, 1).unwrap().0;
        assert_eq!(
            [
                one(0, 1),
                one(6, 1),
                one(9, 50),
                one(15, 100),
                one(26, 6),
                one(26, 25),
                one(26, 50),
                one(26, 100)
            ],
            [16, 328, 7992, 30_576, 4392, 18_336, 36_696, 75_376]
        );
        assert_eq!(one(33, 100), 97_896);
    }

    #[test]
    fn two_layers_take_twice_the_column_and_then_the_translation() {
        let two = |i_tbs, n_prb| tbs(i_tbs, n_prb, 2).unwrap();
        assert_eq!(two(26, 50), tbs(26, 100, 1).unwrap());
        assert_eq!(two(26, 55), tbs(26, 110, 1).unwrap());
        assert_eq!(two(26, 100), Bits(149_776));
        assert_eq!(two(33, 100), Bits(195_816));
        for (i_tbs, n_prb) in (0..34).flat_map(|i| (56..=110).map(move |n| (i, n))) {
            let ratio = two(i_tbs, n_prb).0 as f64 / tbs(i_tbs, n_prb, 1).unwrap().0 as f64;
            assert!((1.96..2.04).contains(&ratio), "I_TBS {i_tbs}, {n_prb} PRB: ratio {ratio}");
        }
    }

    #[test]
    fn the_translation_rises_and_stays_near_the_double() {
        let pairs = &tbs::TRANSLATION;
        assert!(pairs.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 <= two[1].1));
        assert!(pairs.iter().all(|&(one, two)| two % 8 == 0 && two.abs_diff(2 * one) <= one / 25));
        // Filler bits never occur: all code blocks of a transport block have the same size, in whole bytes.
        assert!(pairs.iter().all(|&(_, two)| {
            let tbs = Bits(u64::from(two));
            coded_bits(tbs).0.is_multiple_of(8 * code_blocks(tbs))
        }));
    }

    #[test]
    fn outside_of_the_tables_there_is_nothing() {
        assert_eq!([tbs(34, 1, 1), tbs(0, 0, 1), tbs(0, 111, 1), tbs(0, 1, 0), tbs(0, 1, 3)], [None; 5]);
        assert_eq!(McsTable::Qam64.tbs(29, 50, 1), None, "a reserved MCS has no size of its own");
        assert!(McsTable::Qam64.mcs(32).is_none() && uplink_mcs(32).is_none());
        assert!(McsTable::Qam64.cqi(0).is_none() && McsTable::Qam256.cqi(16).is_none());
    }

    #[test]
    fn groups_cover_every_carrier_once() {
        let counts = BANDWIDTH_PRBS.map(|prbs| (rbg_size(prbs), rbg_count(prbs)));
        assert_eq!(counts, [(1, 6), (2, 8), (2, 13), (3, 17), (4, 19), (4, 25)]);
        for prbs in BANDWIDTH_PRBS {
            let end = (0..rbg_count(prbs)).fold(0, |end, index| {
                let (start, len) = rbg(prbs, index);
                assert!(start == end && len > 0, "the groups follow each other");
                start + len
            });
            assert_eq!(end, prbs);
            assert_eq!(rbg(prbs, rbg_count(prbs)), (prbs, 0));
        }
        assert_eq!(
            [rbg(25, 12), rbg(50, 16), rbg(75, 18)],
            [(24, 1), (48, 2), (72, 3)],
            "the last group is smaller"
        );
    }

    #[test]
    fn an_uplink_grant_is_a_product_of_twos_threes_and_fives() {
        assert_eq!([0, 1, 7, 23, 49, 96, 99, 100].map(pusch_size_within), [0, 1, 6, 20, 48, 96, 96, 100]);
        assert_eq!([0, 7, 23, 97, 110].map(pusch_size_from), [Some(1), Some(8), Some(24), Some(100), None]);
        let sizes: Vec<u16> = (1..=100).filter(|&prbs| pusch_size_within(prbs) == prbs).collect();
        assert_eq!(sizes.len(), 34, "{sizes:?}");
    }

    #[test]
    fn resource_elements_follow_control_region_and_ports() {
        let row = |ports| [1, 2, 3].map(|cfi| pdsch_res_per_prb(cfi, ports, 100));
        assert_eq!([row(1), row(2), row(4)], [[150, 138, 126], [144, 132, 120], [136, 128, 116]]);
        assert_eq!(pdsch_res_per_prb(3, 2, 6), 108, "a narrow carrier's region is one symbol longer");
        assert_eq!(pdsch_res_per_prb(1, 4, 10), 128);
    }

    #[test]
    fn the_code_rate_counts_every_crc() {
        assert_eq!(code_blocks(Bits(6120)), 1);
        assert_eq!(code_blocks(Bits(6121)), 2);
        assert_eq!(coded_bits(Bits(6120)), Bits(6144));
        assert_eq!(coded_bits(Bits(75_376)), Bits(75_376 + 24 + 13 * 24));
        let rate = |cfi| {
            let res = 100 * u64::from(pdsch_res_per_prb(cfi, 2, 100));
            (code_rate(Bits(75_376), Modulation::Qam64, res) * 1000.0).round()
        };
        assert_eq!([rate(1), rate(2), rate(3)], [876.0, 956.0, 1052.0]);
    }

    #[test]
    fn a_longer_control_region_caps_the_mcs() {
        let cap = |table: McsTable, cfi| table.highest_mcs(31, 100, pdsch_res_per_prb(cfi, 2, 100));
        assert_eq!([1, 2, 3].map(|cfi| cap(McsTable::Qam64, cfi)), [28, 27, 27]);
        assert_eq!([1, 2, 3].map(|cfi| cap(McsTable::Qam256, cfi)), [27, 26, 26]);
        assert_eq!(McsTable::Qam64.highest_mcs(5, 100, 144), 5, "the MCS is never above the limit");
        for (n_prb, res) in (1..=110).flat_map(|n| [108, 116, 150].map(|res| (n, res))) {
            let mcs = McsTable::Qam64.highest_mcs(28, n_prb, res);
            let row = McsTable::Qam64.mcs(mcs).unwrap();
            let size = McsTable::Qam64.tbs(mcs, n_prb, 1).unwrap();
            let rate = code_rate(size, row.modulation, u64::from(n_prb) * u64::from(res));
            assert!(rate <= MAX_CODE_RATE, "MCS {mcs} on {n_prb} PRB has rate {rate}");
        }
    }
}
