//! Grants in a capture file for Wireshark.
//!
//! Wireshark has no dissector for PDCCH messages. It has a dissector for LTE MAC blocks, which takes the parameters of
//! the grant as the block's context. Each granted transport block is therefore a frame: the file contains the context,
//! but not the block's data, which is not decoded. A frame is as long as its block, so Wireshark's statistics count its
//! bytes (Telephony, LTE, MAC Statistics). Frames are exported PDUs, which Wireshark opens without any setting.
//!
//! Source: Wireshark 4.0 epan/dissectors/packet-mac-lte.h (framing, BSD licence), packet-mac-lte.c (values), epan/exported_pdu.h;
//! draft-ietf-opsawg-pcap; link type 252: the tcpdump group's list

use std::io::{self, BufWriter, Write};

use airpace_core::tables::lte;
use airpace_files::Whole;
use airpace_phy::dci::Message;
use airpace_phy::found::words::{Block, blocks, harq};
use airpace_phy::found::{Found, RntiKind};
use airpace_phy::pseudonym::Name;
use airpace_radio::CarrierId;

/// Magic number of a capture with timestamps in nanoseconds, written in little-endian order.
const MAGIC: u32 = 0xA1B2_3C4D;
/// `LINKTYPE_WIRESHARK_UPPER_PDU`.
const LINK_EXPORTED: u32 = 252;
/// Maximum length of a frame, with the 299,856 bits of the largest block.
const SNAP_LENGTH: u32 = 65_535;
const DISSECTOR: &[u8] = b"mac-lte-framed";
/// `EXP_PDU_TAG_DISSECTOR_NAME`.
const NAME_TAG: u16 = 12;

/// Tags of the context's fields.
const RNTI: u8 = 0x02;
const UE_ID: u8 = 0x03;
const FRAME_AND_SUBFRAME: u8 = 0x04;
/// Tag of block data that the dissector must not interpret.
const PREDEFINED_DATA: u8 = 0x05;
const RETRANSMISSIONS: u8 = 0x06;
const CARRIER: u8 = 0x0A;
const PHY: u8 = 0x0B;
/// Tag before the block's data.
const DATA: u8 = 0x01;

/// The capture file. It gets its name when it is complete.
pub struct CaptureFile {
    out: BufWriter<Whole>,
    contents: Contents,
}

/// Contents of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Number of transport blocks.
    pub blocks: u64,
    /// Number of messages without a grant, which are not in the capture.
    pub left_out: u64,
}

impl CaptureFile {
    /// Writes into a file that is already open.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn new(file: Whole) -> io::Result<CaptureFile> {
        let mut file = CaptureFile { out: BufWriter::new(file), contents: Contents::default() };
        let mut head = MAGIC.to_le_bytes().to_vec();
        // Version 2.4, then two reserved words.
        head.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        head.extend(SNAP_LENGTH.to_le_bytes());
        head.extend(LINK_EXPORTED.to_le_bytes());
        file.out.write_all(&head)?;
        Ok(file)
    }

    /// Adds the blocks of a message. Its subframe started `at_ms` after the first sample. Timestamps in the capture are
    /// relative to the first sample, so Wireshark shows them as times after 1970-01-01.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn message(&mut self, carrier: CarrierId, at_ms: f64, found: &Found, name: Name) -> io::Result<()> {
        let blocks = blocks(found);
        self.contents.left_out += u64::from(blocks.is_empty());
        for (index, block) in blocks.iter().enumerate() {
            let frame = frame(carrier, found, name, (index, block));
            let nanos = (at_ms.max(0.0) * 1e6) as u64;
            let captured = frame.len() as u32;
            let length = captured + block.tbs_bits.unwrap_or(0) as u32 / 8;
            let mut head = vec![];
            for word in [(nanos / 1_000_000_000) as u32, (nanos % 1_000_000_000) as u32, captured, length] {
                head.extend(word.to_le_bytes());
            }
            self.out.write_all(&head)?;
            self.out.write_all(&frame)?;
            self.contents.blocks += 1;
        }
        Ok(())
    }

    /// Completes the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self) -> io::Result<Contents> {
        let file = self.out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.finish()?;
        Ok(self.contents)
    }
}

/// Frame of a block: the dissector's name and the block's context. `index` is the index of the block in its message.
fn frame(carrier: CarrierId, found: &Found, name: Name, (index, block): (usize, &Block)) -> Vec<u8> {
    let is_downlink = !matches!(found.message, Message::Uplink(_));
    let mut frame = vec![];
    for word in [NAME_TAG, DISSECTOR.len() as u16] {
        frame.extend(word.to_be_bytes());
    }
    frame.extend(DISSECTOR);
    // End of the tags, then FDD.
    frame.extend([0, 0, 0, 0, 1, u8::from(is_downlink), rnti_type(found.kind)]);
    let words = [
        (RNTI, name.rnti.0),
        // Wireshark's statistics have one row per UE id.
        (UE_ID, name.rnti.0),
        (FRAME_AND_SUBFRAME, found.sfn << 4 | u16::from(found.subframe)),
    ];
    for (tag, word) in words {
        frame.push(tag);
        frame.extend(word.to_be_bytes());
    }
    let is_again = found.dci.is_some_and(|dci| dci.retransmission[index]);
    if is_again && !is_downlink {
        // The number of retransmissions is unknown; it is at least one.
        frame.extend([RETRANSMISSIONS, 1]);
    }
    frame.extend([PREDEFINED_DATA, 1, CARRIER, carrier.0]);
    let phy = if is_downlink { downlink(found, index, block) } else { uplink(found, block) };
    frame.extend([PHY, phy.len() as u8]);
    frame.extend(phy);
    frame.push(DATA);
    frame
}

/// Context of a downlink grant. The CRC result is set to success, because the block is not decoded.
fn downlink(found: &Found, index: usize, block: &Block) -> Vec<u8> {
    /// Value of `crc_success`: the framing has no value for an unchecked block.
    const UNCHECKED: u8 = 1;
    let format = match found.format() {
        "1" => 1,
        "1A" => 2,
        "1B" => 3,
        "1C" => 4,
        "1D" => 5,
        "2" => 6,
        "2A" => 7,
        _ => 9,
    };
    let allocation = match found.allocation() {
        Some("0") => 0,
        Some("1") => 1,
        _ => 2,
    };
    vec![
        format,
        allocation,
        found.place.cces.trailing_zeros() as u8,
        block.mcs,
        block.rv.unwrap_or(0),
        prbs(found),
        UNCHECKED,
        harq(found).unwrap_or(0),
        u8::from(block.ndi.unwrap_or(false)),
        index as u8,
    ]
}

/// Context of an uplink grant.
fn uplink(found: &Found, block: &Block) -> Vec<u8> {
    let initial = lte::uplink_mcs(block.mcs).and_then(|row| row.initial);
    let bits_per_symbol = match block.modulation {
        Some("QPSK") => 2,
        Some("16QAM") => 4,
        Some("64QAM") => 6,
        Some("256QAM") => 8,
        _ => 0,
    };
    let start = found.prbs.and_then(|[first, _]| first.runs().next()).map_or(0, |(start, _)| start);
    vec![
        bits_per_symbol,
        initial.map_or(0, |(_, i_tbs)| i_tbs),
        prbs(found),
        start as u8,
        harq(found).unwrap_or(0),
        u8::from(block.ndi.unwrap_or(false)),
    ]
}

/// Number of PRB pairs; at most 110.
fn prbs(found: &Found) -> u8 {
    found.prbs.map_or(0, |[first, _]| first.len()) as u8
}

/// Source: Wireshark packet-mac-lte.h
fn rnti_type(kind: RntiKind) -> u8 {
    match kind {
        RntiKind::Power => 0,
        RntiKind::Paging => 1,
        RntiKind::RandomAccess => 2,
        RntiKind::User => 3,
        RntiKind::SystemInformation => 4,
        RntiKind::Multicast => 6,
    }
}
