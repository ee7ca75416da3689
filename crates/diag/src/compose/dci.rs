//! Encoder for the bits of a DCI: the inverse of [`grant::dci`](crate::grant::dci).
//!
//! Source: TS 36.212 §5.3.3.1

use airpace_core::tables::lte;
use airpace_radio::{Dci, DciFormat, PrbSet};

/// Encodes a DCI on a carrier of `carrier_prbs` PRB pairs, with FDD and two antenna ports. Returns its bits, aligned to
/// the highest bit, and their number without the checksum. Unknown fields are zero. `None` if the format or its PRBs
/// cannot be encoded by this function.
pub(super) fn write(dci: &Dci, carrier_prbs: u16) -> Option<(u64, u8)> {
    let mut air = Air::default();
    let [first, second] = dci.mcs;
    let mcs = u64::from(first.or(second)?);
    let codeword = usize::from(first.is_none());
    match dci.format {
        DciFormat::F0 => {
            // Two zero bits: the flag of format 0, and no hopping.
            air.put(0, 2);
            air.put(run(dci.prbs, carrier_prbs)?, run_bits(carrier_prbs));
            air.put(mcs, 5);
            air.put(u64::from(dci.ndi[codeword].unwrap_or(false)), 1);
            // Power command 1 (no change), then zeros: cyclic shift, no CSI request, one cluster.
            air.put(1, 2);
            air.put(0, 3 + 1 + 1);
        }
        DciFormat::F1A => {
            air.put(0b10, 2);
            air.put(run(dci.prbs, carrier_prbs)?, run_bits(carrier_prbs));
            air.put(mcs, 5);
            air.put(u64::from(dci.harq.unwrap_or(0)), 3);
            air.put(u64::from(dci.ndi[codeword].unwrap_or(false)), 1);
            air.put(u64::from(dci.rv[codeword].unwrap_or(0)), 2);
            air.put(1, 2);
        }
        DciFormat::F1 => {
            groups(&mut air, dci.prbs, carrier_prbs)?;
            air.put(mcs, 5);
            air.put(u64::from(dci.harq.unwrap_or(0)), 3);
            air.put(u64::from(dci.ndi[codeword].unwrap_or(false)), 1);
            air.put(u64::from(dci.rv[codeword].unwrap_or(0)), 2);
            air.put(1, 2);
        }
        DciFormat::F2 | DciFormat::F2A => {
            groups(&mut air, dci.prbs, carrier_prbs)?;
            air.put(1, 2);
            air.put(u64::from(dci.harq.unwrap_or(0)), 3);
            air.put(0, 1);
            for codeword in 0..2 {
                // Source: TS 36.213 §7.1.7.2 (a block that is not sent)
                let (mcs, rv) = dci.mcs[codeword].map_or((0, 1), |mcs| (mcs, dci.rv[codeword].unwrap_or(0)));
                air.put(u64::from(mcs), 5);
                air.put(u64::from(dci.ndi[codeword].unwrap_or(false)), 1);
                air.put(u64::from(rv), 2);
            }
            if dci.format == DciFormat::F2 {
                air.put(0, 3);
            }
        }
        DciFormat::F1B | DciFormat::F1C | DciFormat::F1D | DciFormat::F2B => return None,
        DciFormat::Nr00 | DciFormat::Nr01 | DciFormat::Nr10 | DciFormat::Nr11 => return None,
    }
    Some((air.word, air.used))
}

/// Bit writer, starting from the highest bit.
#[derive(Default)]
struct Air {
    word: u64,
    used: u8,
}

impl Air {
    fn put(&mut self, value: u64, bits: u8) {
        let value = value & ((1 << bits) - 1);
        self.used += bits;
        self.word |= value << (64 - self.used);
    }
}

/// Encodes whole resource block groups.
///
/// Source: TS 36.213 §7.1.6.1
fn groups(air: &mut Air, prbs: PrbSet, carrier_prbs: u16) -> Option<()> {
    if carrier_prbs > 10 {
        air.put(0, 1);
    }
    let count = lte::rbg_count(carrier_prbs);
    let mut whole = PrbSet::EMPTY;
    for group in 0..count {
        let set = PrbSet::of_rbg(carrier_prbs, group);
        let is_in = set.without(prbs).is_empty();
        if is_in {
            whole = whole.union(set);
        }
        air.put(u64::from(is_in), 1);
    }
    (whole == prbs).then_some(())
}

/// Source: TS 36.212 §5.3.3.1.1: ⌈log₂(N (N + 1) / 2)⌉
fn run_bits(carrier_prbs: u16) -> u8 {
    let runs = u32::from(carrier_prbs) * (u32::from(carrier_prbs) + 1) / 2;
    runs.next_power_of_two().trailing_zeros() as u8
}

/// The resource indication value (RIV) of a contiguous run of PRBs.
///
/// Source: TS 36.213 §7.1.6.3
fn run(prbs: PrbSet, carrier_prbs: u16) -> Option<u64> {
    let mut runs = prbs.runs();
    let (start, length) = runs.next().filter(|_| prbs.runs().count() == 1)?;
    let (start, length, all) = (u64::from(start), u64::from(length), u64::from(carrier_prbs));
    if start + length > all {
        return None;
    }
    Some(match length - 1 <= all / 2 {
        true => all * (length - 1) + start,
        false => all * (all - length + 1) + (all - 1 - start),
    })
}
