//! Parser for the bits of a DCI: PRBs, MCS and HARQ process of the phone's grant.
//!
//! The modem logs a DCI as a little-endian number of 64 bits. The highest bit is transmitted first, and the bits after
//! the last are zero. The logged length includes the checksum of 16 bits. Recorded logs verify this format: every DCI
//! parsed in this way agrees with the report of the shared channel for the same subframe (`tests/grants.rs`).
//!
//! Source: TS 36.212 §5.3.3.1; TS 36.213 §7.1.6 and §8.1

use airpace_core::Direction;
use airpace_core::tables::lte;
use airpace_radio::{DciFormat, PrbSet};

/// Length of the checksum, which the length of a logged DCI includes (bits).
///
/// Source: TS 36.212 §5.3.3.2
pub const CHECKSUM_BITS: u8 = 16;

/// The part of a carrier's configuration that determines the meaning of the bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// PRB pairs of the carrier.
    pub prbs: u16,
    /// Whether the carrier uses TDD.
    pub is_tdd: bool,
    /// Whether DCIs contain a carrier indicator: three bits at the start.
    pub names_carrier: bool,
    /// Whether the CSI request has two bits.
    pub two_csi_bits: bool,
    /// Whether a DCI has an SRS request.
    pub asks_sounding: bool,
    /// Antenna ports of the cell; 0 if unknown.
    pub ports: u8,
}

/// Fields of a DCI for one transport block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codeword {
    /// MCS index.
    pub mcs: u8,
    /// Redundancy version; 0 in the uplink, where the MCS determines it.
    pub rv: u8,
    /// New-data indicator.
    pub ndi: bool,
    /// Number of layers of this block.
    pub layers: u8,
}

/// A parsed DCI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dci {
    /// Format of the DCI.
    pub format: DciFormat,
    /// The carrier indicator, if present.
    pub carrier: Option<u8>,
    /// Number of PRB pairs.
    pub prbs: u16,
    /// The assigned PRB pairs; `None` if they are distributed or hop.
    pub prb_set: Option<PrbSet>,
    /// HARQ process; `None` in the uplink, where the subframe determines it.
    pub harq: Option<u8>,
    /// Transport blocks.
    pub blocks: [Option<Codeword>; 2],
}

impl Dci {
    /// Direction of the data.
    pub fn direction(&self) -> Direction {
        if self.format == DciFormat::F0 { Direction::Uplink } else { Direction::Downlink }
    }

    /// Parses `bits` bits, without the checksum, from the highest bit of `word` on. `None` if the bits are not a grant:
    /// a PDCCH order for random access, an impossible allocation, two clusters in the uplink, or a format that does not
    /// address a single phone.
    pub fn read(format: DciFormat, word: u64, bits: u8, shape: &Shape) -> Option<Dci> {
        let mut air = Air { word, left: bits.min(64) };
        let carrier = if shape.names_carrier { Some(air.take(3)? as u8) } else { None };
        let dci = match format {
            DciFormat::F0 => uplink(&mut air, shape)?,
            DciFormat::F1A => {
                if air.take(1)? != 1 {
                    return None;
                }
                compact(&mut air, format, shape)?
            }
            DciFormat::F1B | DciFormat::F1D => compact(&mut air, format, shape)?,
            DciFormat::F1 => one_block(&mut air, shape)?,
            DciFormat::F2 | DciFormat::F2A | DciFormat::F2B => two_blocks(&mut air, format, shape)?,
            DciFormat::F1C => return None,
            DciFormat::Nr00 | DciFormat::Nr01 | DciFormat::Nr10 | DciFormat::Nr11 => return None,
        };
        Some(Dci { carrier, ..dci })
    }
}

/// The remaining bits, aligned to the highest bit.
struct Air {
    word: u64,
    left: u8,
}

impl Air {
    fn take(&mut self, bits: u8) -> Option<u64> {
        if bits == 0 {
            return Some(0);
        }
        self.left = self.left.checked_sub(bits)?;
        let value = self.word >> (64 - bits);
        self.word <<= bits;
        Some(value)
    }
}

/// Source: TS 36.212 §5.3.3.1.1
fn uplink(air: &mut Air, shape: &Shape) -> Option<Dci> {
    if air.take(1)? != 0 {
        return None;
    }
    let hops = air.take(1)? == 1;
    // Source: TS 36.213 §8.4 Table 8.4-1
    let hop_bits = match (hops, shape.prbs) {
        (false, _) => 0,
        (true, ..50) => 1,
        (true, _) => 2,
    };
    air.take(hop_bits)?;
    let (start, prbs) = run(air.take(riv_bits(shape.prbs).checked_sub(hop_bits)?)?, shape.prbs)?;
    let (mcs, ndi) = (air.take(5)? as u8, air.take(1)? == 1);
    // Skip power command and cyclic shift; the uplink index in TDD; CSI and SRS requests.
    air.take(2 + 3)?;
    air.take(if shape.is_tdd { 2 } else { 0 })?;
    air.take(if shape.two_csi_bits { 2 } else { 1 })?;
    air.take(u8::from(shape.asks_sounding))?;
    // The bit of the resource allocation type: 1 means two clusters. If the bit is absent, padding of 0 is read
    // instead.
    let has_clusters = air.take(1) == Some(1);
    let block = Codeword { mcs, rv: 0, ndi, layers: 1 };
    (!has_clusters).then_some(Dci {
        format: DciFormat::F0,
        carrier: None,
        prbs,
        prb_set: (!hops).then_some(PrbSet::run(start, prbs)),
        harq: None,
        blocks: [Some(block), None],
    })
}

/// Source: TS 36.212 §5.3.3.1.3, §5.3.3.1.3A and §5.3.3.1.4A
fn compact(air: &mut Air, format: DciFormat, shape: &Shape) -> Option<Dci> {
    let is_spread = air.take(1)? == 1;
    let bits = riv_bits(shape.prbs);
    let value = if is_spread && shape.prbs >= 50 {
        // Skip the bit that selects one of two gaps.
        air.take(1)?;
        air.take(bits - 1)?
    } else {
        air.take(bits)?
    };
    let (start, prbs) = run(value, shape.prbs)?;
    let mcs = air.take(5)? as u8;
    let harq = air.take(if shape.is_tdd { 4 } else { 3 })? as u8;
    let ndi = air.take(1)? == 1;
    let rv = air.take(2)? as u8;
    Some(Dci {
        format,
        carrier: None,
        prbs,
        prb_set: (!is_spread).then_some(PrbSet::run(start, prbs)),
        harq: Some(harq),
        blocks: [Some(Codeword { mcs, rv, ndi, layers: 1 }), None],
    })
}

/// Source: TS 36.212 §5.3.3.1.2
fn one_block(air: &mut Air, shape: &Shape) -> Option<Dci> {
    let (prbs, prb_set) = groups(air, shape.prbs)?;
    let mcs = air.take(5)? as u8;
    let harq = air.take(if shape.is_tdd { 4 } else { 3 })? as u8;
    let ndi = air.take(1)? == 1;
    let rv = air.take(2)? as u8;
    let block = Codeword { mcs, rv, ndi, layers: 1 };
    Some(Dci {
        format: DciFormat::F1,
        carrier: None,
        prbs,
        prb_set,
        harq: Some(harq),
        blocks: [Some(block), None],
    })
}

/// Source: TS 36.212 §5.3.3.1.5, §5.3.3.1.5A and §5.3.3.1.5B
fn two_blocks(air: &mut Air, format: DciFormat, shape: &Shape) -> Option<Dci> {
    let (prbs, prb_set) = groups(air, shape.prbs)?;
    air.take(2)?;
    air.take(if shape.is_tdd { 2 } else { 0 })?;
    let harq = air.take(if shape.is_tdd { 4 } else { 3 })? as u8;
    // Skip the flag that swaps blocks and codewords; in format 2B, this bit is the scrambling identity.
    air.take(1)?;
    let mut blocks = [None; 2];
    for block in &mut blocks {
        let (mcs, ndi, rv) = (air.take(5)? as u8, air.take(1)? == 1, air.take(2)? as u8);
        // Source: TS 36.213 §7.1.7.2 (a block that is not sent)
        let is_sent = !(mcs == 0 && rv == 1);
        *block = is_sent.then_some(Codeword { mcs, rv, ndi, layers: 1 });
    }
    let precoding = match (format, shape.ports) {
        (DciFormat::F2, 4) => air.take(6)?,
        (DciFormat::F2A, 4) => air.take(2)?,
        _ => 0,
    };
    if shape.ports == 4 {
        share_layers(&mut blocks, format, precoding);
    }
    Some(Dci { format, carrier: None, prbs, prb_set, harq: Some(harq), blocks })
}

/// With four antenna ports, a block may have two layers.
///
/// Source: TS 36.212 Tables 5.3.3.1.5-5 and 5.3.3.1.5A-2; TS 36.211 §6.3.3.2
fn share_layers(blocks: &mut [Option<Codeword>; 2], format: DciFormat, precoding: u64) {
    let layers = match (format, blocks.iter().flatten().count(), precoding) {
        (DciFormat::F2, 2, 0..=16) | (DciFormat::F2A, 2, 0) => [1, 1],
        (DciFormat::F2, 2, 17..=33) | (DciFormat::F2A, 2, 1) => [1, 2],
        (DciFormat::F2, 2, 34..) | (DciFormat::F2A, 2, 2..) => [2, 2],
        (DciFormat::F2, 1, 18..) | (DciFormat::F2A, 1, 1..) => [2, 2],
        _ => [1, 1],
    };
    for (block, layers) in blocks.iter_mut().zip(layers) {
        if let Some(block) = block {
            block.layers = layers;
        }
    }
}

/// Parses resource block groups (allocation type 0) or PRBs of one subset of the groups (type 1).
///
/// Source: TS 36.213 §7.1.6.1 and §7.1.6.2
fn groups(air: &mut Air, carrier_prbs: u16) -> Option<(u16, Option<PrbSet>)> {
    let has_subsets = carrier_prbs > 10 && air.take(1)? == 1;
    let count = lte::rbg_count(carrier_prbs);
    let bits = air.take(u8::try_from(count).ok()?)?;
    if has_subsets {
        // Type 1 consists of the subset's number and a shift bit, then a bit for each PRB.
        let head = (lte::rbg_size(carrier_prbs) as u32).next_power_of_two().trailing_zeros() + 1;
        let prbs = (bits & ((1 << (u32::from(count) - head)) - 1)).count_ones();
        return Some((u16::try_from(prbs).ok()?, None)).filter(|(prbs, _)| *prbs > 0);
    }
    let set = (0..count)
        .filter(|group| bits >> (count - 1 - group) & 1 == 1)
        .fold(PrbSet::EMPTY, |set, group| set.union(PrbSet::of_rbg(carrier_prbs, group)));
    Some((set.len(), Some(set))).filter(|(prbs, _)| *prbs > 0)
}

/// Number of bits of a resource indication value (RIV).
///
/// Source: TS 36.212 §5.3.3.1.1: ⌈log₂(N (N + 1) / 2)⌉
fn riv_bits(carrier_prbs: u16) -> u8 {
    let runs = u32::from(carrier_prbs) * (u32::from(carrier_prbs) + 1) / 2;
    runs.next_power_of_two().trailing_zeros() as u8
}

/// The run of PRBs, as (start, length), for a resource indication value; `None` if the value is invalid.
///
/// Source: TS 36.213 §7.1.6.3
fn run(value: u64, carrier_prbs: u16) -> Option<(u16, u16)> {
    let all = u64::from(carrier_prbs);
    let (longer, start) = (value.checked_div(all)?, value % all);
    // Runs longer than half the carrier are encoded from the other end of the carrier.
    if longer > all / 2 {
        return None;
    }
    let (start, length) = match start + longer < all {
        true => (start, longer + 1),
        false => ((all - 1).checked_sub(start)?, all.checked_sub(longer)? + 1),
    };
    let is_within = length >= 1 && start + length <= all;
    Some((u16::try_from(start).ok()?, u16::try_from(length).ok()?)).filter(|_| is_within)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Parses a DCI of a recorded log, given as transmitted bits.
    fn read(format: DciFormat, bits: &str, shape: &Shape) -> Option<Dci> {
        let word = u64::from_str_radix(bits, 2).unwrap() << (64 - bits.len());
        Dci::read(format, word, bits.len() as u8, shape)
    }

    const FIFTY: Shape = Shape {
        prbs: 50,
        is_tdd: false,
        names_carrier: false,
        two_csi_bits: true,
        asks_sounding: false,
        ports: 2,
    };

    #[test]
    fn a_recorded_uplink_grant_has_its_prbs_and_mcs() {
        let dci = read(DciFormat::F0, "000000111101001110101110000", &FIFTY).unwrap();
        assert_eq!((dci.prbs, dci.prb_set), (3, Some(PrbSet::run(22, 3))));
        assert_eq!(dci.blocks[0].unwrap(), Codeword { mcs: 14, rv: 0, ndi: true, layers: 1 });
        assert_eq!((dci.direction(), dci.harq), (Direction::Uplink, None));
    }

    #[test]
    fn a_recorded_grant_of_all_groups_has_one_block() {
        let dci = read(DciFormat::F2, "0111111111111111110111100010110000000001011", &FIFTY).unwrap();
        assert_eq!((dci.prbs, dci.harq), (50, Some(7)));
        assert_eq!(dci.blocks, [Some(Codeword { mcs: 5, rv: 0, ndi: true, layers: 1 }), None]);
    }

    #[test]
    fn a_recorded_fallback_grant_on_20_mhz() {
        let shape = Shape { prbs: 100, ..FIFTY };
        let dci = read(DciFormat::F1A, "1000001011011000000101110000", &shape).unwrap();
        assert_eq!((dci.prbs, dci.prb_set, dci.harq), (4, Some(PrbSet::run(64, 4)), Some(3)));
        assert_eq!(dci.blocks[0].unwrap(), Codeword { mcs: 1, rv: 0, ndi: true, layers: 1 });
    }

    #[test]
    fn runs_longer_than_half_the_carrier_are_counted_from_the_other_side() {
        let value = |start: u64, length: u64| match length - 1 <= 25 {
            true => 50 * (length - 1) + start,
            false => 50 * (50 - length + 1) + (50 - 1 - start),
        };
        for (start, length) in [(0, 1), (49, 1), (0, 26), (0, 50), (3, 40), (24, 26)] {
            assert_eq!(run(value(start, length), 50), Some((start as u16, length as u16)));
        }
        assert_eq!(run(2_047, 50), None, "all ones order a random access");
    }

    #[test]
    fn with_four_ports_blocks_share_up_to_four_layers() {
        let shape = Shape { ports: 4, ..FIFTY };
        let layers = |precoding: &str| {
            let bits = format!("0{}010000{block}{block}{precoding}", "1".repeat(17), block = "10010000");
            read(DciFormat::F2A, &bits, &shape).unwrap().blocks.map(|block| block.unwrap().layers)
        };
        assert_eq!(["00", "01", "10"].map(layers), [[1, 1], [1, 2], [2, 2]]);
    }

    #[test]
    fn one_prb_in_each_subset_is_counted() {
        // Type 1 on 50 PRBs: two bits for the subset, one for the shift, 14 PRBs.
        let bits = format!("1{}{}{}", "010", "10000000000001", "0".repeat(26));
        let dci = read(DciFormat::F2, &bits, &FIFTY).unwrap();
        assert_eq!((dci.prbs, dci.prb_set), (2, None));
    }

    proptest! {
        #[test]
        fn no_bits_make_it_panic(
            word in any::<u64>(), bits in any::<u8>(), prbs in 0u16..=110, flags in any::<[bool; 4]>(), ports in 0u8..5,
        ) {
            let [is_tdd, names_carrier, two_csi_bits, asks_sounding] = flags;
            let shape = Shape { prbs, is_tdd, names_carrier, two_csi_bits, asks_sounding, ports };
            use DciFormat::*;
            for format in [F0, F1, F1A, F1B, F1C, F1D, F2, F2A, F2B] {
                if let Some(dci) = Dci::read(format, word, bits, &shape) {
                    prop_assert!((1..=prbs).contains(&dci.prbs));
                    prop_assert!(dci.prb_set.is_none_or(|set| set.len() == dci.prbs));
                }
            }
        }
    }
}
