//! Text representation of a decoded message for JSON and tables.

use airpace_core::Direction;
use airpace_core::tables::Modulation;
use airpace_core::tables::lte::McsTable;
use airpace_radio::{DciFormat, PrbSet};

use super::Found;
use crate::dci::{Audience, Message};

/// One granted transport block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    /// MCS index.
    pub mcs: u8,
    /// Redundancy version; `None` if the format does not contain it.
    pub rv: Option<u8>,
    /// New-data indicator; `None` for messages to everyone.
    pub ndi: Option<bool>,
    /// Modulation, if the grant or the grant of the first transmission determines it.
    pub modulation: Option<&'static str>,
    /// Transport block size, in bits; `None` for a retransmission whose first grant was not decoded.
    pub tbs_bits: Option<u64>,
}

/// Returns the transmitted blocks: none, one or two.
pub fn blocks(found: &Found) -> Vec<Block> {
    let Some(dci) = &found.dci else { return vec![] };
    let modulations = found.modulations();
    let is_for_one = Audience::of(found.rnti) == Some(Audience::User);
    let block = |at: usize| {
        Some(Block {
            mcs: dci.mcs[at]?,
            rv: (dci.format != DciFormat::F1C).then_some(dci.rv[at]).flatten(),
            ndi: is_for_one.then_some(dci.ndi[at]).flatten(),
            modulation: modulations[at].map(modulation),
            tbs_bits: (dci.tbs[at].0 > 0).then_some(dci.tbs[at].0),
        })
    };
    (0..2).filter_map(block).collect()
}

/// HARQ process; `None` for messages to everyone.
pub fn harq(found: &Found) -> Option<u8> {
    found.dci.filter(|_| Audience::of(found.rnti) == Some(Audience::User)).and_then(|dci| dci.harq)
}

fn modulation(modulation: Modulation) -> &'static str {
    match modulation {
        Modulation::Qpsk => "QPSK",
        Modulation::Qam16 => "16QAM",
        Modulation::Qam64 => "64QAM",
        Modulation::Qam256 => "256QAM",
    }
}

/// MCS table of a downlink or uplink grant: `64qam` or `256qam`; `None` for other messages.
pub fn mcs_table(found: &Found) -> Option<&'static str> {
    let has_one = matches!(found.message, Message::Downlink(_) | Message::Uplink(_));
    has_one.then_some(match found.table {
        McsTable::Qam64 => "64qam",
        McsTable::Qam256 => "256qam",
    })
}

/// `DL` or `UL`; `-` for commands to a group. A PDCCH order is reported as `DL`.
pub fn direction_of(found: &Found) -> &'static str {
    match found.message {
        Message::Order(_) => direction(Some(Direction::Downlink)),
        _ => direction(found.direction()),
    }
}

/// `DL`, `UL`, or `-` if nothing is granted.
pub fn direction(direction: Option<Direction>) -> &'static str {
    match direction {
        Some(Direction::Downlink) => "DL",
        Some(Direction::Uplink) => "UL",
        None => "-",
    }
}

/// Runs of PRBs as `[first, last]`.
pub fn ranges(prbs: PrbSet) -> Vec<[u16; 2]> {
    prbs.runs().map(|(start, len)| [start, start + len - 1]).collect()
}
