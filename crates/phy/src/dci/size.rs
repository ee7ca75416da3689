//! Number of bits of each DCI format.

use airpace_core::tables::lte;

use super::Format;
use super::allocation::{Gap, riv_bits};
use crate::cell::Ports;

/// Carrier parameters that determine sizes and fields of its messages (FDD).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Carrier {
    /// Downlink PRB pairs, 6…110.
    pub prbs: u16,
    /// Uplink PRB pairs, 6…110. Nearly always equal to the downlink; only the system information reports the value.
    pub uplink_prbs: u16,
    /// Cell-specific antenna ports.
    pub ports: Ports,
}

/// Optional fields of Release 10. They are configured per user, and appear only in the user-specific search space.
///
/// Source: TS 36.212 §5.3.3.1.1
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extras {
    /// Carrier indicator of three bits, at the front.
    pub carrier_indicator: bool,
    /// CSI request of two bits instead of one, in format 0.
    pub long_csi_request: bool,
    /// SRS request of one bit, in formats 0 and 1A.
    pub srs_request: bool,
}

impl Extras {
    /// No optional field: the common search space, and most users.
    pub const NONE: Extras = Extras { carrier_indicator: false, long_csi_request: false, srs_request: false };

    /// Number of bits of the carrier indicator.
    pub const fn carrier_indicator_bits(self) -> u32 {
        if self.carrier_indicator { 3 } else { 0 }
    }

    /// Number of bits of the CSI request.
    pub const fn csi_request_bits(self) -> u32 {
        if self.long_csi_request { 2 } else { 1 }
    }

    /// Number of bits of the SRS request.
    pub const fn srs_request_bits(self) -> u32 {
        self.srs_request as u32
    }
}

/// Ambiguous payload sizes: they could be decoded with a wrong number of CCEs.
///
/// Source: TS 36.212 §5.3.3.1.2 Table 5.3.3.1.2-1
const AMBIGUOUS: [u32; 10] = [12, 14, 16, 20, 24, 26, 32, 40, 44, 56];

impl Carrier {
    /// A carrier with equal bandwidth in uplink and downlink.
    pub const fn symmetric(prbs: u16, ports: Ports) -> Carrier {
        Carrier { prbs, uplink_prbs: prbs, ports }
    }

    /// Payload size of a format (bits), without CRC, with padding.
    pub fn size(&self, format: Format, extras: Extras) -> u8 {
        let bare = self.bare_size(format, extras);
        let size = match format {
            // Source: TS 36.212 §5.3.3.1.1, §5.3.3.1.3, §5.3.3.1.6, §5.3.3.1.7
            Format::F0 | Format::F1A | Format::F3 | Format::F3A => self.compact_size(extras),
            // Source: TS 36.212 §5.3.3.1.2, §5.3.3.1.3A, §5.3.3.1.4A
            Format::F1 | Format::F1B | Format::F1D => {
                let compact = self.compact_size(extras);
                let fits = |size: &u32| *size != compact && !AMBIGUOUS.contains(size);
                (bare..).find(fits).unwrap_or(bare)
            }
            // Source: TS 36.212 §5.3.3.1.4
            Format::F1C => bare,
            // Source: TS 36.212 §5.3.3.1.5, §5.3.3.1.5A, §5.3.3.1.5B
            Format::F2 | Format::F2A | Format::F2B => bare + u32::from(AMBIGUOUS.contains(&bare)),
        };
        size as u8
    }

    /// Common size of formats 0, 1A, 3 and 3A.
    ///
    /// Source: TS 36.212 §5.3.3.1.1 and §5.3.3.1.3
    fn compact_size(&self, extras: Extras) -> u32 {
        let larger = self.bare_size(Format::F0, extras).max(self.bare_size(Format::F1A, extras));
        larger + u32::from(AMBIGUOUS.contains(&larger))
    }

    /// Size of the fields of a format (bits), without padding.
    fn bare_size(&self, format: Format, extras: Extras) -> u32 {
        let carrier_indicator = extras.carrier_indicator_bits();
        let srs = extras.srs_request_bits();
        let riv = riv_bits(self.prbs);
        let one_block = BLOCK_BITS + HARQ_BITS + TPC_BITS;
        match format {
            Format::F0 | Format::F3 | Format::F3A => {
                let run = riv_bits(self.uplink_prbs);
                let type_bit = self.uplink_type_bits();
                carrier_indicator
                    + 2
                    + run
                    + MCS_BITS
                    + 1
                    + TPC_BITS
                    + 3
                    + extras.csi_request_bits()
                    + srs
                    + type_bit
            }
            Format::F1 => carrier_indicator + self.header_bits() + self.group_bits() + one_block,
            Format::F1A => carrier_indicator + 2 + riv + one_block + srs,
            Format::F1B | Format::F1D => carrier_indicator + 1 + riv + one_block + self.tpmi_bits() + 1,
            Format::F1C => self.gap_bits() + riv_bits(self.compact_steps()) + MCS_BITS,
            Format::F2 | Format::F2A | Format::F2B => {
                let allocation = self.header_bits() + self.group_bits();
                let precoding = self.precoding_bits(format);
                carrier_indicator + allocation + TPC_BITS + HARQ_BITS + 1 + 2 * BLOCK_BITS + precoding
            }
        }
    }

    /// Number of header bits that select resource allocation type 0 or 1: none on narrow carriers, which have no type 1.
    ///
    /// Source: TS 36.212 §5.3.3.1.2
    pub(crate) fn header_bits(&self) -> u32 {
        u32::from(self.prbs > 10)
    }

    /// Number of bits of the RBG map: one bit per RBG.
    ///
    /// Source: TS 36.213 §7.1.6.1
    pub(crate) fn group_bits(&self) -> u32 {
        u32::from(lte::rbg_count(self.prbs))
    }

    /// Number of bits that select the gap: 1 if the carrier has two gaps, otherwise 0.
    ///
    /// Source: TS 36.211 §6.2.3.2
    pub(crate) fn gap_bits(&self) -> u32 {
        u32::from(Gap::Second.exists(self.prbs))
    }

    /// Number of allocation steps of virtual resource blocks in format 1C.
    ///
    /// Source: TS 36.212 §5.3.3.1.4
    pub(crate) fn compact_steps(&self) -> u16 {
        Gap::First.virtual_blocks(self.prbs) / compact_step(self.prbs)
    }

    /// Number of bits of the precoding matrix index in formats 1B and 1D.
    ///
    /// Source: TS 36.212 §5.3.3.1.3A Table 5.3.3.1.3A-1
    pub(crate) fn tpmi_bits(&self) -> u32 {
        if self.ports == Ports::Four { 4 } else { 2 }
    }

    /// Number of bits of the precoding information in formats 2 and 2A; 0 in format 2B.
    ///
    /// Source: TS 36.212 §5.3.3.1.5 Table 5.3.3.1.5-3 and §5.3.3.1.5A Table 5.3.3.1.5A-1
    pub(crate) fn precoding_bits(&self, format: Format) -> u32 {
        match (format, self.ports) {
            (Format::F2, Ports::Four) => 6,
            (Format::F2, _) => 3,
            (Format::F2A, Ports::Four) => 2,
            _ => 0,
        }
    }

    /// Number of bits that select uplink resource allocation type 0 or 1 (Release 10).
    ///
    /// Source: TS 36.212 §5.3.3.1.1
    pub(crate) fn uplink_type_bits(&self) -> u32 {
        u32::from(self.uplink_prbs <= self.prbs)
    }
}

/// Number of virtual resource blocks per allocation step of format 1C.
///
/// Source: TS 36.213 §7.1.6.3 Table 7.1.6.3-1
pub(crate) const fn compact_step(prbs: u16) -> u16 {
    if prbs < 50 { 2 } else { 4 }
}

pub(crate) const MCS_BITS: u32 = 5;
pub(crate) const HARQ_BITS: u32 = 3;
pub(crate) const TPC_BITS: u32 = 2;
/// Number of bits of MCS, NDI and RV of a block.
const BLOCK_BITS: u32 = MCS_BITS + 1 + 2;
