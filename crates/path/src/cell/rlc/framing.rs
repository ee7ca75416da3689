//! Headers of layer 2 in transport blocks.
//!
//! LTE's RLC puts all packets of a block into one PDU, whose header has a length indicator for each packet. NR's RLC has
//! one PDU for each packet or part of a packet, and MAC has a subheader for each PDU.
//!
//! Source: TS 36.322 §6.2.1; TS 38.322 §6.2.2; TS 38.321 §6.1.2

use airpace_core::Bytes;

use super::super::config::{Rat, RlcConfig, RlcMode};

/// Sizes of the headers in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Framing {
    rat: Rat,
    /// Headers of each packet.
    pub per_packet: u32,
    /// Headers of a block's data: in LTE the fixed part of the RLC header, in NR the headers of the part of a packet with
    /// which the block starts.
    pub per_pdu: u32,
    /// Headers of a retransmitted PDU.
    pub per_repeat: u32,
    /// Header of each block.
    pub per_block: u32,
    /// Subheader of a STATUS.
    pub per_status: u32,
}

/// Minimum size of the fixed part of the header of a retransmitted PDU in acknowledged mode, in bytes. This header also
/// contains the offset of the segment.
///
/// Source: TS 36.322 §6.2.1.5 (LSF and SO). Chosen: every retransmitted PDU counts as a segment, because the new
/// block rarely has the size of the first block.
const SEGMENT_HEADER: u32 = 4;

/// Maximum length of a STATUS's MAC subheader, in bytes.
///
/// Source: TS 36.321 §6.1.2 (R/F2/E/LCID and a length of 7 bits); TS 38.321 §6.1.2 (R/F/LCID/L)
const STATUS_SUBHEADER: u32 = 2;

/// Headers of NR.
///
/// Source: TS 37.324 §6.2.2.2 (SDAP), TS 38.323 §6.2.2.3 (PDCP with an 18-bit sequence number), TS 38.322 §6.2.2.4 (RLC
/// in acknowledged mode with an 18-bit sequence number, and 2 bytes more for a segment's offset), TS 38.321 §6.1.2 (MAC
/// subheader with a 16-bit length)
mod nr {
    pub const SDAP: u32 = 1;
    pub const PDCP: u32 = 3;
    pub const RLC: u32 = 3;
    pub const RLC_SEGMENT: u32 = RLC + 2;
    pub const MAC: u32 = 3;
}

impl Framing {
    /// The headers on carriers of this technology. `config` contains those of LTE.
    pub fn new(rat: Rat, config: &RlcConfig) -> Framing {
        match rat {
            Rat::Lte => Framing {
                rat,
                per_packet: config.pdcp_header_bytes,
                per_pdu: config.rlc_header_bytes,
                per_repeat: match config.mode {
                    RlcMode::Acknowledged => config.rlc_header_bytes.max(SEGMENT_HEADER),
                    RlcMode::Unacknowledged => config.rlc_header_bytes,
                },
                per_block: config.mac_header_bytes,
                per_status: STATUS_SUBHEADER.min(config.mac_header_bytes),
            },
            Rat::Nr => Framing {
                rat,
                per_packet: nr::SDAP + nr::PDCP + nr::RLC + nr::MAC,
                per_pdu: nr::RLC_SEGMENT + nr::MAC,
                per_repeat: nr::RLC_SEGMENT + nr::MAC,
                per_block: 0,
                per_status: STATUS_SUBHEADER,
            },
        }
    }

    /// Size of the length indicators of a PDU with `elements` packets or parts of packets: in LTE 12 bits for each element
    /// except the last.
    ///
    /// Source: TS 36.322 §6.2.1.3
    pub fn length_indicators(self, elements: u64) -> u64 {
        match self.rat {
            Rat::Lte => (3 * elements.saturating_sub(1)).div_ceil(2),
            Rat::Nr => 0,
        }
    }

    /// Number of IP bytes in `blocks` transport blocks with `bits` bits in total, for packets of `packet` bytes.
    pub fn ip_bytes(self, bits: f64, blocks: u8, packet: Bytes) -> Bytes {
        let length_indicator = match self.rat {
            Rat::Lte => 1.5,
            Rat::Nr => 0.0,
        };
        let per_block = f64::from(self.per_pdu + self.per_block);
        let payload = (bits / 8.0 - per_block * f64::from(blocks)).max(0.0);
        let packet = packet.0 as f64;
        Bytes((payload * packet / (packet + length_indicator + f64::from(self.per_packet))) as u64)
    }

    /// Size of a STATUS PDU that reports this many PDUs as lost: in LTE 15 bits and 12 bits per PDU, in NR 3 bytes and 3
    /// bytes per PDU.
    ///
    /// Source: TS 36.322 §6.2.1.6 (D/C, CPT, ACK_SN, E1; NACK_SN, E1, E2); TS 38.322 §6.2.2.5 (with an 18-bit sequence
    /// number: D/C, CPT, ACK_SN, E1, R; NACK_SN, E1, E2, E3, R)
    pub fn status_bytes(self, missing: usize) -> u32 {
        match self.rat {
            Rat::Lte => (15 + 12 * missing as u32).div_ceil(8),
            Rat::Nr => 3 + 3 * missing as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_grows_with_each_loss() {
        let of = |rat, missing| Framing::new(rat, &RlcConfig::default()).status_bytes(missing);
        assert_eq!([0, 1, 2, 3].map(|missing| of(Rat::Lte, missing)), [2, 4, 5, 7]);
        assert_eq!([0, 1, 2, 3].map(|missing| of(Rat::Nr, missing)), [3, 6, 9, 12]);
    }

    #[test]
    fn headers_of_nr_take_ten_bytes_per_packet_and_eight_per_block() {
        let framing = Framing::new(Rat::Nr, &RlcConfig::default());
        assert_eq!(framing.ip_bytes(8.0 * (8.0 + 2.0 * 1510.0), 1, Bytes(1500)), Bytes(3000));
    }
}
