//! Composes the DCI message of a grant that is given in the type of other crates.

use airpace_core::tables::lte::{self, McsTable};
use airpace_core::{Bits, Direction};
use airpace_radio::{Dci, DciFormat, PrbSet};

use super::allocation::Gap;
use super::message::{Block, Compact, Downlink, Message, Spatial, Uplink};
use super::{Allocation, Carrier, Format};

/// Reason why no message can express a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The allocation field of the format cannot express these PRBs.
    #[error("format {} cannot name the PRBs {prbs:?}", format.name())]
    Prbs {
        /// DCI format.
        format: Format,
        /// Granted PRBs.
        prbs: PrbSet,
    },
    /// The format is one of NR.
    #[error("DCI formats of NR are not written yet")]
    Nr,
    /// The grant has no transport block.
    #[error("the grant has no transport block")]
    Empty,
    /// The MCS index is larger than its field.
    #[error("MCS {mcs} is beyond 31")]
    Mcs {
        /// MCS index of the grant.
        mcs: u8,
    },
}

impl Message {
    /// Composes the message of a grant, without optional fields.
    ///
    /// Chosen: no power change (TPC 1), no CSI request, no hopping, uplink cyclic shift 0, no preferred precoding matrix.
    /// A disabled block gets the NDI in the grant.
    ///
    /// # Errors
    /// If the format cannot express the grant.
    pub fn of_dci(carrier: &Carrier, dci: &Dci) -> Result<Message, EncodeError> {
        const NO_CHANGE: u8 = 1;
        let first = block(dci, 0)?;
        if !dci.format.is_nr() && (dci.direction == Direction::Uplink || dci.format == DciFormat::F0) {
            let (start, len) = run(Format::F0, dci.prbs)?;
            // Source: TS 36.211 §5.3.3
            if lte::pusch_size_from(len) != Some(len) {
                return Err(EncodeError::Prbs { format: Format::F0, prbs: dci.prbs });
            }
            return Ok(Message::Uplink(Uplink {
                carrier: None,
                hopping: None,
                start,
                len,
                mcs: first.ok_or(EncodeError::Empty)?.mcs,
                ndi: ndi(dci, 0),
                tpc: NO_CHANGE,
                cyclic_shift: 0,
                csi_request: 0,
                srs_request: None,
            }));
        }
        let (format, spatial) = match dci.format {
            DciFormat::F0 | DciFormat::F1 => (Format::F1, Spatial::Plain),
            DciFormat::F1A => (Format::F1A, Spatial::Plain),
            DciFormat::F1B => (Format::F1B, Spatial::Beam { tpmi: 0, reported: true }),
            DciFormat::F1C => return compact(carrier, dci),
            DciFormat::F1D => (Format::F1D, Spatial::Shared { tpmi: 0, offset: false }),
            DciFormat::F2 => (Format::F2, Spatial::Layers { swap: false, precoding: 0 }),
            DciFormat::F2A => (Format::F2A, Spatial::Layers { swap: false, precoding: 0 }),
            DciFormat::F2B => (Format::F2B, Spatial::Dual { scrambling: false }),
            DciFormat::Nr00 | DciFormat::Nr01 | DciFormat::Nr10 | DciFormat::Nr11 => {
                return Err(EncodeError::Nr);
            }
        };
        let allocation = match format {
            Format::F1A | Format::F1B | Format::F1D => {
                let (start, len) = run(format, dci.prbs)?;
                Allocation::Run { start, len }
            }
            _ => groups(carrier, dci.prbs)
                .or_else(|| subset(carrier, dci.prbs))
                .ok_or(EncodeError::Prbs { format, prbs: dci.prbs })?,
        };
        let second = block(dci, 1)?;
        let (first, second) = match spatial {
            Spatial::Layers { .. } | Spatial::Dual { .. } => {
                if first.or(second).is_none() {
                    return Err(EncodeError::Empty);
                }
                let or_off = |block: Option<Block>, ndi| block.unwrap_or(Block { ndi, ..Block::DISABLED });
                (or_off(first, ndi(dci, 0)), Some(or_off(second, ndi(dci, 1))))
            }
            _ => (first.ok_or(EncodeError::Empty)?, None),
        };
        let mut downlink = Downlink {
            format,
            carrier: None,
            allocation,
            first,
            second,
            harq: dci.harq.unwrap_or(0),
            tpc: NO_CHANGE,
            spatial,
            srs_request: None,
        };
        let layers = downlink.layers(carrier.ports).unwrap_or([1, 1]);
        for (at, block) in [Some(&mut downlink.first), downlink.second.as_mut()].into_iter().enumerate() {
            if let Some(block) = block.filter(|_| dci.retransmission[at]) {
                block.mcs = mcs_of_retransmission(block.mcs, dci.prbs.len(), layers[at], dci.tbs[at]);
            }
        }
        Ok(Message::Downlink(downlink))
    }
}

/// MCS index for the retransmission of a block of `size`. If the number of PRBs has changed, the block's own MCS index
/// would mean another size; then a reserved MCS index with the same modulation is used.
///
/// Source: TS 36.213 §7.1.7.2 (a reserved MCS leaves the size as it was)
fn mcs_of_retransmission(mcs: u8, prbs: u16, layers: u8, size: Bits) -> u8 {
    let is_named = |table: McsTable| table.tbs(mcs, prbs, layers) == Some(size);
    let Some(row) = McsTable::Qam64.mcs(mcs) else { return mcs };
    if size == Bits(0) || row.i_tbs.is_none() || is_named(McsTable::Qam64) || is_named(McsTable::Qam256) {
        return mcs;
    }
    let same_modulation = |reserved: &u8| {
        McsTable::Qam64.mcs(*reserved).is_some_and(|other| other.modulation == row.modulation)
    };
    (29..=31).find(same_modulation).unwrap_or(mcs)
}

/// New-data indicator to transmit: false if unknown.
fn ndi(dci: &Dci, at: usize) -> bool {
    dci.ndi[at].unwrap_or(false)
}

fn block(dci: &Dci, at: usize) -> Result<Option<Block>, EncodeError> {
    match dci.mcs[at] {
        Some(mcs) if mcs > 31 => Err(EncodeError::Mcs { mcs }),
        mcs => Ok(mcs.map(|mcs| Block { mcs, ndi: ndi(dci, at), rv: dci.rv[at].unwrap_or(0) })),
    }
}

/// Returns the PRBs as one contiguous run; an error if they are not contiguous.
fn run(format: Format, prbs: PrbSet) -> Result<(u16, u16), EncodeError> {
    let mut runs = prbs.runs();
    match (runs.next(), runs.next()) {
        (Some(run), None) => Ok(run),
        _ => Err(EncodeError::Prbs { format, prbs }),
    }
}

/// Type 0 allocation, if the set consists of whole RBGs.
fn groups(carrier: &Carrier, prbs: PrbSet) -> Option<Allocation> {
    let count = lte::rbg_count(carrier.prbs);
    let taken = |group: &u16| !PrbSet::of_rbg(carrier.prbs, *group).intersection(prbs).is_empty();
    let map = (0..count).filter(taken).fold(0, |map, group| map | 1u32 << (count - 1 - group));
    let allocation = Allocation::Groups { map };
    (!prbs.is_empty() && allocation.prbs(carrier.prbs)[0] == prbs).then_some(allocation)
}

/// Type 1 allocation, if the set lies in one subset. Carriers with at most 10 PRB pairs have only type 0.
///
/// Source: TS 36.213 §7.1.6.2
fn subset(carrier: &Carrier, prbs: PrbSet) -> Option<Allocation> {
    let subsets = lte::rbg_size(carrier.prbs) as u8;
    if carrier.prbs <= 10 || prbs.is_empty() {
        return None;
    }
    let bits = super::allocation::subset_map_bits(carrier.prbs);
    (0..subsets).flat_map(|subset| [(subset, false), (subset, true)]).find_map(|(subset, shift)| {
        let of = |map| Allocation::Subset { subset, shift, map };
        let map = (0..bits)
            .map(|bit| 1u32 << bit)
            .filter(|&bit| !of(bit).prbs(carrier.prbs)[0].intersection(prbs).is_empty())
            .fold(0, |map, bit| map | bit);
        (of(map).prbs(carrier.prbs)[0] == prbs).then_some(of(map))
    })
}

/// Format 1C message, if a run of virtual blocks maps to this set in the first slot.
fn compact(carrier: &Carrier, dci: &Dci) -> Result<Message, EncodeError> {
    let refused = EncodeError::Prbs { format: Format::F1C, prbs: dci.prbs };
    let i_tbs = dci.mcs[0].ok_or(EncodeError::Empty)?;
    let step = super::size::compact_step(carrier.prbs);
    let gaps = [Gap::First, Gap::Second].into_iter().filter(|gap| gap.exists(carrier.prbs));
    let len = dci.prbs.len();
    gaps.flat_map(|gap| {
        (0..gap.virtual_blocks(carrier.prbs).saturating_sub(len) / step + 1)
            .map(move |at| Allocation::Distributed { gap, start: at * step, len })
    })
    .find(|allocation| len > 0 && len.is_multiple_of(step) && allocation.prbs(carrier.prbs)[0] == dci.prbs)
    .map(|allocation| Message::Compact(Compact { allocation, i_tbs }))
    .ok_or(refused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Ports;
    use airpace_radio::Rnti;
    use proptest::prelude::*;

    const CARRIER: Carrier = Carrier::symmetric(50, Ports::Two);
    const USER: Rnti = Rnti(0x1234);

    fn grant(format: DciFormat, prbs: PrbSet) -> Dci {
        Dci { rnti: USER, format, prbs, mcs: [Some(9), None], harq: Some(5), ..Dci::default() }
    }

    #[test]
    fn prbs_that_a_format_cannot_name_are_refused() {
        let holes = PrbSet::run(0, 3).union(PrbSet::run(9, 3));
        assert!(Message::of_dci(&CARRIER, &grant(DciFormat::F1, holes)).is_ok());
        for (format, prbs) in [
            (DciFormat::F1A, holes),
            (DciFormat::F0, holes),
            (DciFormat::F1, PrbSet::run(1, 3)),
            (DciFormat::F1, PrbSet::EMPTY),
            (DciFormat::F1C, PrbSet::run(0, 4)),
        ] {
            let refused = Message::of_dci(&CARRIER, &grant(format, prbs)).unwrap_err();
            assert!(matches!(refused, EncodeError::Prbs { .. }), "{format:?} {prbs:?}: {refused}");
        }
        let empty = Dci { mcs: [None; 2], ..grant(DciFormat::F2A, holes) };
        assert_eq!(Message::of_dci(&CARRIER, &empty), Err(EncodeError::Empty));
        let beyond = Dci { mcs: [Some(32), None], ..grant(DciFormat::F1, holes) };
        assert_eq!(Message::of_dci(&CARRIER, &beyond), Err(EncodeError::Mcs { mcs: 32 }));
    }

    #[test]
    fn what_type_0_cannot_name_type_1_may() {
        let every_third =
            [0, 9, 18].into_iter().fold(PrbSet::EMPTY, |set, prb| set.union(PrbSet::run(prb, 1)));
        let message = Message::of_dci(&CARRIER, &grant(DciFormat::F1, every_third)).unwrap();
        assert_eq!(message.prbs(&CARRIER), Some([every_third; 2]));
    }

    #[test]
    fn a_block_that_is_sent_again_beside_a_new_one_keeps_its_size() {
        let size = |prbs| McsTable::Qam64.tbs(20, prbs, 1).unwrap();
        let dci = Dci {
            mcs: [Some(20); 2],
            tbs: [size(12), size(9)],
            retransmission: [false, true],
            ..grant(DciFormat::F2A, PrbSet::run(0, 12))
        };
        let sent = |dci: &Dci| {
            Message::of_dci(&CARRIER, dci).unwrap().to_dci(&CARRIER, USER, McsTable::Qam64).unwrap()
        };
        let told = sent(&dci);
        assert_eq!(told.mcs, [Some(20), Some(31)], "64QAM, and of the size of before");
        assert_eq!(told.tbs, [size(12), Bits(0)]);
        let same = Dci { tbs: [size(12); 2], ..dci };
        assert_eq!(sent(&same).mcs, [Some(20); 2], "on as many PRBs as before its own MCS names its size");
    }

    proptest! {
        #[test]
        fn a_grant_comes_back_from_its_message(
            map in 1u32..1 << 17,
            start in 0u16..50,
            len in 1u16..=50,
            format in prop::sample::select(vec![
                DciFormat::F0, DciFormat::F1, DciFormat::F1A, DciFormat::F1B, DciFormat::F2, DciFormat::F2A, DciFormat::F2B,
            ]),
            mcs in prop::array::uniform2(prop::option::of(1u8..29)),
            rv in prop::array::uniform2(0u8..4),
            ndi in any::<[bool; 2]>(),
            harq in 0u8..8,
        ) {
            let direction = if format == DciFormat::F0 { Direction::Uplink } else { Direction::Downlink };
            let is_double = matches!(format, DciFormat::F2 | DciFormat::F2A | DciFormat::F2B);
            let prbs = match format {
                DciFormat::F0 | DciFormat::F1A | DciFormat::F1B => PrbSet::run(start, len.min(50 - start)),
                _ => Allocation::Groups { map }.prbs(50)[0],
            };
            let mcs = if is_double { mcs } else { [mcs[0], None] };
            let dci = Dci { rnti: USER, direction, format, prbs, mcs, rv: rv.map(Some), ndi: ndi.map(Some), harq: Some(harq), ..Dci::default() };
            let is_transformable = lte::pusch_size_from(prbs.len()) == Some(prbs.len());
            let Ok(message) = Message::of_dci(&CARRIER, &dci) else {
                let is_refused = mcs == [None; 2] || format == DciFormat::F0 && !is_transformable;
                prop_assert!(is_refused, "only a grant of nothing or of 7 PRBs cannot be said: {dci:?}");
                return Ok(());
            };
            let back = message.to_dci(&CARRIER, USER, McsTable::Qam64).unwrap();
            prop_assert_eq!((back.format, back.direction, back.prbs, back.mcs), (format, direction, prbs, mcs));
            for at in (0..2).filter(|&at| mcs[at].is_some()) {
                prop_assert_eq!(back.ndi[at], Some(ndi[at]));
                prop_assert!(format == DciFormat::F0 || back.rv[at] == Some(rv[at]));
            }
            prop_assert!(format == DciFormat::F0 || back.harq == Some(harq));
        }
    }
}
