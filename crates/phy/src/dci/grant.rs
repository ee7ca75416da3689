//! Transport blocks of a DCI message, and conversion to the grant type of other crates.

use airpace_core::tables::lte::{self, McsTable};
use airpace_core::{Bits, Direction};
use airpace_radio::{Dci, DciFormat, PrbSet, Rnti};

use super::message::{Block, Downlink, Message, Spatial};
use super::{Audience, Carrier, Format};
use crate::cell::Ports;

impl Message {
    /// PRBs of the two slots. An uplink grant applies to the uplink carrier four subframes later; with hopping, both
    /// entries are the PRBs of the first slot. `None` for a message without a grant.
    pub fn prbs(&self, carrier: &Carrier) -> Option<[PrbSet; 2]> {
        match self {
            Message::Uplink(uplink) => Some([PrbSet::run(uplink.start, uplink.len); 2]),
            Message::Downlink(downlink) => Some(downlink.allocation.prbs(carrier.prbs)),
            Message::Compact(compact) => Some(compact.allocation.prbs(carrier.prbs)),
            Message::Order(_) | Message::Power(_) => None,
        }
    }

    /// Converts the message to the grant type of other crates; `None` for a message without a grant, or with a reserved
    /// RNTI.
    ///
    /// `table` is the MCS table configured for the user. `retransmission` is not set here, because it depends on the
    /// history of the HARQ process. Blocks with a reserved MCS index get size 0.
    ///
    /// Chosen: for distributed allocations, `prbs` is the set of the first slot; the second slot has the same number of
    /// PRBs.
    pub fn to_dci(&self, carrier: &Carrier, rnti: Rnti, table: McsTable) -> Option<Dci> {
        let audience = Audience::of(rnti)?;
        let prbs = self.prbs(carrier)?[0];
        let grant = Dci { rnti, prbs, layers: 1, ..Dci::default() };
        match self {
            Message::Uplink(uplink) => {
                let row = lte::uplink_mcs(uplink.mcs)?;
                let size = row.initial.and_then(|(_, i_tbs)| lte::tbs(i_tbs, uplink.len, 1));
                Some(Dci {
                    direction: Direction::Uplink,
                    format: DciFormat::F0,
                    mcs: [Some(uplink.mcs), None],
                    tbs: [size.unwrap_or(Bits(0)), Bits(0)],
                    rv: [Some(row.rv), None],
                    ndi: [Some(uplink.ndi), None],
                    ..grant
                })
            }
            Message::Downlink(downlink) => Some(downlink.to_dci(carrier, audience, table, grant)),
            Message::Compact(compact) => Some(Dci {
                format: DciFormat::F1C,
                mcs: [Some(compact.i_tbs), None],
                tbs: [lte::tbs_format_1c(compact.i_tbs).unwrap_or(Bits(0)), Bits(0)],
                ..grant
            }),
            Message::Order(_) | Message::Power(_) => None,
        }
    }
}

impl Downlink {
    /// Enabled transport blocks.
    pub fn blocks(&self) -> [Option<Block>; 2] {
        match self.second {
            None => [Some(self.first), None],
            Some(second) => [self.first, second].map(|block| (!block.is_disabled()).then_some(block)),
        }
    }

    /// Number of spatial layers of each block, 0 for a disabled block; `None` if the precoding information is reserved.
    pub fn layers(&self, ports: Ports) -> Option<[u8; 2]> {
        let sent = self.blocks().map(|block| block.is_some());
        let total = match self.spatial {
            Spatial::Layers { precoding, .. } => match (self.format, ports, sent == [true, true]) {
                (Format::F2, Ports::Four, both) => closed_loop_layers(precoding, both)?,
                // Source: TS 36.212 §5.3.3.1.5 Table 5.3.3.1.5-4
                (Format::F2, _, true) if precoding > 2 => return None,
                (Format::F2, _, false) if precoding > 6 => return None,
                (Format::F2A, Ports::Four, both) => open_loop_layers(precoding, both)?,
                (_, _, both) => 1 + u8::from(both),
            },
            Spatial::Dual { .. } => 1 + u8::from(sent == [true, true]),
            Spatial::Plain | Spatial::Beam { .. } | Spatial::Shared { .. } => 1,
        };
        Some(match sent {
            // Source: TS 36.211 §6.3.3.2 Table 6.3.3.2-1
            [true, true] => [total / 2, total - total / 2],
            [first, second] => [u8::from(first) * total, u8::from(second) * total],
        })
    }

    fn to_dci(self, carrier: &Carrier, audience: Audience, table: McsTable, grant: Dci) -> Dci {
        let blocks = self.blocks();
        let layers = self.layers(carrier.ports).unwrap_or([1, 1]);
        // Source: TS 36.213 §7.1.7: format 1A always uses the MCS table up to 64QAM.
        let table = if self.format == Format::F1A { McsTable::Qam64 } else { table };
        let size = |at: usize| {
            let block = blocks[at]?;
            if audience == Audience::Everyone {
                // Source: TS 36.213 §7.1.7: the size comes from the column of 2 or 3 PRB pairs, with I_TBS = I_MCS.
                return lte::tbs(block.mcs, 2 + u16::from(self.tpc & 1), 1);
            }
            table.tbs(block.mcs, grant.prbs.len(), layers[at])
        };
        Dci {
            format: match self.format {
                Format::F1A => DciFormat::F1A,
                Format::F1B => DciFormat::F1B,
                Format::F1D => DciFormat::F1D,
                Format::F2 => DciFormat::F2,
                Format::F2A => DciFormat::F2A,
                Format::F2B => DciFormat::F2B,
                _ => DciFormat::F1,
            },
            mcs: blocks.map(|block| block.map(|block| block.mcs)),
            tbs: [0, 1].map(|at| size(at).unwrap_or(Bits(0))),
            rv: blocks.map(|block| block.map(|block| block.rv)),
            ndi: blocks.map(|block| block.map(|block| block.ndi)),
            harq: Some(self.harq),
            layers: layers[0] + layers[1],
            ..grant
        }
    }
}

/// Number of layers in format 2 with four antenna ports.
///
/// Source: TS 36.212 §5.3.3.1.5 Table 5.3.3.1.5-5
const fn closed_loop_layers(precoding: u8, both: bool) -> Option<u8> {
    match (both, precoding) {
        (false, 0..=17) => Some(1),
        (false, 18..=34) => Some(2),
        (true, 0..=16) => Some(2),
        (true, 17..=33) => Some(3),
        (true, 34..=50) => Some(4),
        _ => None,
    }
}

/// Number of layers in format 2A with four antenna ports.
///
/// Source: TS 36.212 §5.3.3.1.5A Table 5.3.3.1.5A-2
const fn open_loop_layers(precoding: u8, both: bool) -> Option<u8> {
    match (both, precoding) {
        (false, 0..=1) => Some(1 + precoding),
        (true, 0..=2) => Some(2 + precoding),
        _ => None,
    }
}
