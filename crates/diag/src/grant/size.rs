//! Sizes of transport blocks: in the tables of TS 36.213, and as modems count them.

use airpace_core::tables::{Modulation, lte};
use airpace_core::{Bits, Direction};

/// Length of a transport block's checksum (bytes).
///
/// Source: TS 36.212 §5.1.1
const CHECKSUM_BYTES: u64 = 3;

/// Whether the sizes in a version of a log packet include the block's checksum of 24 bits. Sizes include the checksum
/// in some versions only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksum {
    /// Not determined by any block so far.
    #[default]
    Unknown,
    /// Sizes equal the sizes in the tables.
    Bare,
    /// Sizes include three more bytes.
    Counted,
}

/// Result of comparing a block's size with the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The size matches the MCS and the number of PRBs.
    Agrees,
    /// The MCS determines no size: the block is a retransmission with its earlier size.
    Reserved,
    /// There is no block: the grant is only for control information.
    Empty,
    /// The size does not match.
    Differs,
}

/// Parameters for a lookup in the tables.
#[derive(Clone, Copy, Debug)]
pub struct Oracle {
    /// Direction of the data.
    pub direction: Direction,
    /// MCS index, if known.
    pub mcs: Option<u8>,
    /// Modulation, if known.
    pub modulation: Option<Modulation>,
    /// Number of PRB pairs.
    pub prbs: u16,
    /// Whether the block is for all phones (system information, paging, random access response).
    pub is_common: bool,
}

impl Oracle {
    /// Sizes in the tables, in bits: with 64QAM and with 256QAM, on one layer and on two layers.
    fn sizes(&self) -> impl Iterator<Item = Bits> + '_ {
        let indices = match (self.direction, self.mcs, self.modulation) {
            // Source: TS 36.213 §7.1.7 (format 1A for all: the MCS is the TBS index, columns 2 and 3)
            (Direction::Downlink, Some(mcs), _) if self.is_common => [Some(mcs), None],
            (Direction::Downlink, Some(mcs), _) => {
                [lte::McsTable::Qam64, lte::McsTable::Qam256].map(|table| table.mcs(mcs)?.i_tbs)
            }
            (Direction::Uplink, Some(mcs), _) => {
                [lte::uplink_mcs(mcs).and_then(|row| row.initial).map(|(_, i_tbs)| i_tbs), None]
            }
            (_, None, _) => [None; 2],
        };
        let columns = if self.is_common { [2, 3] } else { [self.prbs; 2] };
        indices.into_iter().flatten().flat_map(move |i_tbs| {
            // A block for all phones has one layer, independent of its column; an uplink block also has one layer.
            let is_single = self.is_common || self.direction == Direction::Uplink;
            let layers = if is_single { [1, 1] } else { [1, 2] };
            columns.into_iter().zip(layers).filter_map(move |(prbs, layers)| lte::tbs(i_tbs, prbs, layers))
        })
    }

    /// The MCS of a block with this size and modulation; `None` if the tables contain no such block. If there are
    /// several such MCS, an MCS without 256QAM is preferred, and among these the lowest.
    pub fn mcs_of(&self, bits: Bits) -> Option<u8> {
        let has_size =
            |i_tbs| [1, 2].into_iter().any(|layers| lte::tbs(i_tbs, self.prbs, layers) == Some(bits));
        match self.direction {
            Direction::Uplink => (0..=28).find(|&mcs| {
                let row = lte::uplink_mcs(mcs).and_then(|row| row.initial);
                row.is_some_and(|(modulation, i_tbs)| {
                    // A device without 64QAM uses 16QAM for the rows of 64QAM.
                    // Source: TS 36.213 §8.6.1
                    let is_lowered =
                        modulation == Modulation::Qam64 && self.modulation == Some(Modulation::Qam16);
                    (self.has(modulation) || is_lowered) && lte::tbs(i_tbs, self.prbs, 1) == Some(bits)
                })
            }),
            Direction::Downlink => {
                let tables = [lte::McsTable::Qam64, lte::McsTable::Qam256].into_iter();
                let mut rows = tables.flat_map(|table| (0..=28).map(move |mcs| (mcs, table.mcs(mcs))));
                rows.find_map(|(mcs, row)| {
                    let row = row.filter(|row| self.has(row.modulation))?;
                    row.i_tbs.filter(|&i_tbs| has_size(i_tbs)).map(|_| mcs)
                })
            }
        }
    }

    fn has(&self, modulation: Modulation) -> bool {
        self.modulation.is_none_or(|own| own == modulation)
    }

    /// Determines whether sizes include the checksum, from a block whose logged size is `bytes` bytes.
    pub fn learn(&self, bytes: u64) -> Checksum {
        let has =
            |bytes: Option<u64>| bytes.is_some_and(|bytes| self.sizes().any(|bits| bits.0 == 8 * bytes));
        match (has(Some(bytes)), has(bytes.checked_sub(CHECKSUM_BYTES))) {
            (true, false) => Checksum::Bare,
            (false, true) => Checksum::Counted,
            _ => Checksum::Unknown,
        }
    }

    /// Compares a block's size with the tables.
    pub fn check(&self, bits: Bits) -> Verdict {
        match self.mcs {
            _ if bits == Bits::ZERO => Verdict::Empty,
            // Source: TS 36.213 §7.1.7.2 and §8.6.2; with 256QAM row 28 is reserved too
            Some(29..) => Verdict::Reserved,
            Some(_) if self.sizes().any(|size| size == bits) => Verdict::Agrees,
            Some(28) if self.direction == Direction::Downlink => Verdict::Reserved,
            None if self.mcs_of(bits).is_some() => Verdict::Agrees,
            _ => Verdict::Differs,
        }
    }

    /// The block size according to the tables, if any: with or without 256QAM, on `layers` layers.
    pub fn bits(&self, has_256qam: bool, layers: u8) -> Option<Bits> {
        let i_tbs = match self.direction {
            Direction::Uplink => lte::uplink_mcs(self.mcs?)?.initial?.1,
            Direction::Downlink if self.is_common => return None,
            Direction::Downlink => {
                let table = if has_256qam { lte::McsTable::Qam256 } else { lte::McsTable::Qam64 };
                table.mcs(self.mcs?)?.i_tbs?
            }
        };
        lte::tbs(i_tbs, self.prbs, layers.clamp(1, 2))
    }
}

impl Checksum {
    /// Bits of a block whose logged size is `bytes` bytes.
    pub fn bits(self, bytes: u64) -> Bits {
        Bits(8 * if self == Checksum::Counted { bytes.saturating_sub(CHECKSUM_BYTES) } else { bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: Oracle =
        Oracle { direction: Direction::Downlink, mcs: Some(0), modulation: None, prbs: 3, is_common: false };

    #[test]
    fn a_block_shows_whether_sizes_include_its_checksum() {
        assert_eq!((BLOCK.learn(7), BLOCK.learn(10)), (Checksum::Bare, Checksum::Counted));
        assert_eq!(BLOCK.learn(8), Checksum::Unknown);
        assert_eq!(Checksum::Counted.bits(10), Bits(56));
        assert_eq!(Oracle { mcs: Some(29), ..BLOCK }.learn(10), Checksum::Unknown, "no size of its own");
    }

    #[test]
    fn system_information_has_two_or_three_columns_whatever_its_prbs() {
        let all = Oracle { mcs: Some(7), prbs: 21, is_common: true, ..BLOCK };
        assert_eq!(all.check(Bits(224)), Verdict::Agrees);
        assert_eq!(Oracle { is_common: false, ..all }.check(Bits(224)), Verdict::Differs);
    }

    #[test]
    fn an_mcs_is_found_by_size_and_modulation() {
        let sent = Oracle {
            direction: Direction::Uplink,
            mcs: None,
            modulation: Some(Modulation::Qam16),
            prbs: 3,
            is_common: false,
        };
        assert_eq!((sent.mcs_of(Bits(744)), sent.check(Bits(744))), (Some(14), Verdict::Agrees));
        assert_eq!(sent.check(Bits(745)), Verdict::Differs);
        assert_eq!(sent.check(Bits(0)), Verdict::Empty);
        let sent = Oracle { modulation: Some(Modulation::Qpsk), ..sent };
        assert_eq!(sent.mcs_of(Bits(744)), None, "not with QPSK");
    }
}
