//! LTE MAC headers and the control elements behind them, which 0xB063 and 0xB064 contain as `mac_hdr_ce`.
//!
//! All subheaders come first, then the control elements in the same order; the payloads are not logged. Random access
//! responses have their own subheaders and payloads ([`visit_answers`]); paging and system information have no MAC header
//! ([`Kind::Transparent`]).
//!
//! Source: TS 36.321 §6.1.2, §6.1.4, §6.1.5

use std::fmt;

/// Direction of a transport block. Logical channel ids have different meanings in the two directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Downlink.
    Down,
    /// Uplink.
    Up,
}

/// Kind of MAC header of a downlink block, which depends on the RNTI to which the block is addressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// MAC subheaders.
    Subheaders,
    /// No header: an RRC message fills the whole block (paging and system information).
    Transparent,
    /// Subheaders of random access responses.
    Answers,
}

impl Kind {
    /// The kind of header of a block addressed to the RNTI with this number in the log. `None` if the kind of header is
    /// unknown: blocks of a multicast channel have different subheaders, and the other RNTIs have no blocks.
    ///
    /// Source: TS 36.321 §6.1.2, §6.1.4, §6.1.5; §7.1 Table 7.1-2 lists the channels of each identity.
    pub fn of_rnti(number: u64) -> Option<Kind> {
        match number {
            0 | 1 | 4 => Some(Kind::Subheaders),
            2 | 5 => Some(Kind::Transparent),
            3 => Some(Kind::Answers),
            _ => None,
        }
    }
}

/// Content of a random access response PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Backoff index: determines the maximum waiting time of phones that received no response.
    Backoff(u8),
    /// Response to the phones that sent this preamble.
    Response {
        /// Preamble index.
        preamble: u8,
        /// Timing advance: the phone must transmit earlier by this number of steps of 16 Ts.
        timing_advance: u16,
        /// Uplink grant for the phone's first message, 20 bits. NB-IoT uses the upper 15 of these bits.
        grant: u32,
        /// The temporary C-RNTI assigned to the phone.
        temporary_crnti: u16,
    },
}

/// One subheader, with the element that it announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subheader<'a> {
    /// Logical channel id, or the kind of a control element. Extended ids, which have their own byte, start at 32.
    pub lcid: u8,
    /// Length of the announced element in bytes, if the subheader contains the length. The last element of a block
    /// extends to the end.
    pub length: Option<u16>,
    /// The announced element.
    pub element: Element<'a>,
}

/// The element that a subheader announces.
///
/// Source: TS 36.321 §6.1.3
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element<'a> {
    /// Data of a logical channel, which is not logged.
    Data,
    /// Padding.
    Padding,
    /// Short buffer status report: buffer size of one logical channel group, as an index into the table of buffer sizes.
    ShortBsr {
        /// Logical channel group.
        group: u8,
        /// Index into the table of buffer sizes.
        index: u8,
        /// Whether other groups have buffered data as well.
        truncated: bool,
    },
    /// Long buffer status report: buffer size of each logical channel group, as indices into the table of buffer sizes.
    LongBsr([u8; 4]),
    /// Power headroom: index 0 is −23 dB, in steps of 1 dB.
    PowerHeadroom(u8),
    /// The phone's C-RNTI.
    Crnti(u16),
    /// Timing advance command for the uplink.
    TimingAdvance {
        /// Timing advance group of carriers.
        tag: u8,
        /// Timing advance step as an index; 31 means no change.
        command: u8,
    },
    /// Identity of the phone that won the contention of a random access.
    ContentionResolution([u8; 6]),
    /// Activation of secondary cells, with one bit for each cell.
    Activation(u8),
    /// DRX command: the phone may stop monitoring the control channel.
    DrxCommand,
    /// Long DRX command: the phone may use the long DRX cycle.
    LongDrxCommand,
    /// A control element that is not decoded further.
    Other {
        /// Name of the control element.
        name: &'static str,
        /// Bytes of the control element.
        bytes: &'a [u8],
    },
}

/// Error: the header ends too early, or has a control element of unknown length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Offset in bytes of the header's end or of the subheader.
    pub at: usize,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the MAC header cannot be followed beyond byte {}", self.at)
    }
}

impl std::error::Error for Broken {}

/// Maximum buffer size in bytes for each index of a buffer status report.
///
/// Chosen: the last index means more than 150,000 bytes; it counts as 150,000.
///
/// Differs: if the network set `extendedBSR-Sizes`, phones use another table, with sizes up to 3,000,000 bytes. The log
/// does not contain which table a phone uses. The table here is always applied; its values are too low for phones that
/// use the other table.
///
/// Source: TS 36.321 §6.1.3.1 Tables 6.1.3.1-1 and 6.1.3.1-2
#[rustfmt::skip]
pub static BUFFER_SIZES: [u32; 64] = [
    0, 10, 12, 14, 17, 19, 22, 26, 31, 36, 42, 49, 57, 67, 78, 91, 107, 125, 146, 171, 200, 234, 274, 321, 376, 440,
    515, 603, 706, 826, 967, 1132, 1326, 1552, 1817, 2127, 2490, 2915, 3413, 3995, 4677, 5476, 6411, 7505, 8787,
    10287, 12043, 14099, 16507, 19325, 22624, 26487, 31009, 36304, 42502, 49759, 58255, 68201, 79846, 93479, 109439,
    128125, 150000, 150000,
];

/// Power headroom for index 0 of a report, in dB.
///
/// Source: TS 36.133 §9.1.8.4 Table 9.1.8.4-1
pub const MIN_HEADROOM_DB: i32 = -23;

/// The timing advance command that leaves the uplink's timing unchanged.
///
/// Source: TS 36.213 §4.2.3
pub const TIMING_STAYS: u8 = 31;

const PADDING: u8 = 31;
/// Id that announces an extended id: the next byte plus [`FIRST_EXTENDED`].
const EXTENDED: u8 = 16;
const FIRST_EXTENDED: u8 = 32;
/// Maximum id of a data channel. Higher ids are control elements, except for those in [`COMMON`] and the extended ids.
const LAST_DATA: u8 = 10;
/// Uplink ids of the common control channel of phones with reduced capability.
const COMMON: std::ops::RangeInclusive<u8> = 11..=13;

/// Visits the subheaders of a transport block.
///
/// # Errors
/// The header ends too early, or announces an unknown element. After an error, `visit` has not been called for any
/// subheader.
pub fn visit<'a>(
    direction: Direction,
    header: &'a [u8],
    mut visit: impl FnMut(Subheader<'a>),
) -> Result<(), Broken> {
    let mut takes = 0;
    let behind = walk(direction, header, |lcid, length| takes += takes_of(direction, lcid, length, 0))?;
    let mut elements = &header[behind..];
    if elements.len() < takes {
        return Err(Broken { at: header.len() });
    }
    walk(direction, header, |lcid, length| {
        let (own, rest) = elements.split_at(takes_of(direction, lcid, length, elements.len()));
        elements = rest;
        visit(Subheader { lcid, length, element: element(direction, lcid, own) });
    })?;
    Ok(())
}

/// Bytes that an announced element occupies in the header, out of `left` remaining bytes: the last element may take all
/// remaining bytes.
fn takes_of(direction: Direction, lcid: u8, length: Option<u16>, left: usize) -> usize {
    match size(direction, lcid) {
        Size::Data => 0,
        Size::Fixed(_, bytes) => bytes,
        Size::Told(_) => length.map_or(left, usize::from),
        Size::Unknown => 0,
    }
}

/// Length of the response to a preamble (bytes).
const RESPONSE: usize = 6;

/// Visits the responses in a random access response PDU.
///
/// Differs: the responses of a phone with enhanced coverage (figures 6.1.5-3a and 6.1.5-3c) have other fields. A block
/// does not indicate which fields it has; all blocks are read according to figure 6.1.5-3.
///
/// # Errors
/// If the block ends before the last response does. In that case no response is visited.
///
/// Source: TS 36.321 §6.1.5, §6.2.2, §6.2.3
pub fn visit_answers(block: &[u8], mut visit: impl FnMut(Answer)) -> Result<(), Broken> {
    const GOES_ON: u8 = 0x80;
    const IS_PREAMBLE: u8 = 0x40;
    let last = block.iter().position(|byte| byte & GOES_ON == 0).ok_or(Broken { at: block.len() })?;
    let (subheaders, mut responses) = block.split_at(last + 1);
    let preambles = subheaders.iter().filter(|byte| **byte & IS_PREAMBLE != 0).count();
    if responses.len() < RESPONSE * preambles {
        return Err(Broken { at: block.len() });
    }
    for &subheader in subheaders {
        if subheader & IS_PREAMBLE == 0 {
            visit(Answer::Backoff(subheader & 0x0F));
        } else if let Some((&[a, b, c, d, e, f], rest)) = responses.split_first_chunk::<RESPONSE>() {
            responses = rest;
            visit(Answer::Response {
                preamble: subheader & 0x3F,
                timing_advance: u16::from(a & 0x7F) << 4 | u16::from(b >> 4),
                grant: u32::from(b & 0x0F) << 16 | u32::from(c) << 8 | u32::from(d),
                temporary_crnti: u16::from_be_bytes([e, f]),
            });
        }
    }
    Ok(())
}

/// Calls `each` for every subheader; returns the offset of their end.
fn walk(direction: Direction, header: &[u8], mut each: impl FnMut(u8, Option<u16>)) -> Result<usize, Broken> {
    let mut at = 0;
    loop {
        let byte = |at: usize| header.get(at).copied().ok_or(Broken { at });
        let first = byte(at)?;
        let (lcid, more, long) = (first & 31, first & 0x20 != 0, first & 0x40 != 0);
        let size = size(direction, lcid);
        if matches!(size, Size::Unknown) {
            return Err(Broken { at });
        }
        at += 1;
        let mut length = None;
        let lcid = if lcid == EXTENDED {
            let lcid = FIRST_EXTENDED + (byte(at)? & 63);
            at += 1;
            lcid
        } else {
            lcid
        };
        if lcid != PADDING && !matches!(size, Size::Fixed(..)) && more {
            // The length has 16 bits if the first byte's flag is set, otherwise 7 or 15.
            let high = byte(at)?;
            at += 1;
            length = Some(if long || high & 0x80 != 0 {
                let low = byte(at)?;
                at += 1;
                u16::from_be_bytes([if long { high } else { high & 0x7F }, low])
            } else {
                u16::from(high)
            });
        }
        each(lcid, length);
        if !more {
            return Ok(at);
        }
    }
}

/// Length of the element that an id announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Size {
    /// Data or padding, whose bytes are not logged.
    Data,
    /// A control element with this name and this fixed length in bytes.
    Fixed(&'static str, usize),
    /// A control element with this name. Its length is in its subheader; the last element extends to the end.
    Told(&'static str),
    /// The length is not known.
    Unknown,
}

/// Length of the element that an id announces.
///
/// Source: TS 36.321 §6.2.1 Tables 6.2.1-1 and 6.2.1-2, §6.1.3; Wireshark's packet-mac-lte.c has the same lengths.
/// Wireshark has no lengths for the confirmation of semi-persistent scheduling (21 in the uplink) and for the end of a
/// point-to-multipoint service (23 in the downlink).
fn size(direction: Direction, lcid: u8) -> Size {
    match (direction, lcid) {
        (_, 0..=LAST_DATA | EXTENDED | PADDING | FIRST_EXTENDED..) => Size::Data,
        (Direction::Up, lcid) if COMMON.contains(&lcid) => Size::Data,
        (Direction::Down, 17) => Size::Fixed("DCQR command", 0),
        (Direction::Down, 18) => Size::Fixed("PDCP duplication", 1),
        (Direction::Down, 19) => Size::Fixed("hibernation", 1),
        (Direction::Down, 20) => Size::Fixed("hibernation of 31 cells", 4),
        (Direction::Down, 21) => Size::Told("CSI-RS activation"),
        (Direction::Down, 22) => Size::Fixed("recommended bit rate", 2),
        (Direction::Down, 24) => Size::Fixed("activation of 31 cells", 4),
        (Direction::Down, 26) => Size::Fixed("long DRX command", 0),
        (Direction::Down, 27) => Size::Fixed("activation", 1),
        (Direction::Down, 28) => Size::Fixed("contention resolution", 6),
        (Direction::Down, 29) => Size::Fixed("timing advance", 1),
        (Direction::Down, 30) => Size::Fixed("DRX command", 0),
        (Direction::Up, 15) => Size::Fixed("timing advance report", 2),
        (Direction::Up, 17) => Size::Fixed("DCQR and AS RAI", 1),
        (Direction::Up, 18) => Size::Fixed("AUL confirmation of 31 cells", 4),
        (Direction::Up, 19) => Size::Fixed("AUL confirmation", 1),
        (Direction::Up, 20) => Size::Fixed("recommended bit rate query", 2),
        (Direction::Up, 22) => Size::Told("truncated sidelink BSR"),
        (Direction::Up, 23) => Size::Told("sidelink BSR"),
        (Direction::Up, 24) => Size::Told("dual connectivity power headroom"),
        (Direction::Up, 25) => Size::Told("extended power headroom"),
        (Direction::Up, 26) => Size::Fixed("power headroom", 1),
        (Direction::Up, 27) => Size::Fixed("C-RNTI", 2),
        (Direction::Up, 28) => Size::Fixed("truncated BSR", 1),
        (Direction::Up, 29) => Size::Fixed("short BSR", 1),
        (Direction::Up, 30) => Size::Fixed("long BSR", 3),
        _ => Size::Unknown,
    }
}

fn element(direction: Direction, lcid: u8, bytes: &[u8]) -> Element<'_> {
    match (direction, lcid, bytes) {
        (_, PADDING, _) => Element::Padding,
        (Direction::Up, 28 | 29, &[byte]) => {
            Element::ShortBsr { group: byte >> 6, index: byte & 63, truncated: lcid == 28 }
        }
        (Direction::Up, 30, &[first, second, third]) => Element::LongBsr([
            first >> 2,
            (first & 3) << 4 | second >> 4,
            (second & 15) << 2 | third >> 6,
            third & 63,
        ]),
        (Direction::Up, 26, &[byte]) => Element::PowerHeadroom(byte & 63),
        (Direction::Up, 27, &[high, low]) => Element::Crnti(u16::from_be_bytes([high, low])),
        (Direction::Down, 29, &[byte]) => Element::TimingAdvance { tag: byte >> 6, command: byte & 63 },
        (Direction::Down, 28, &[a, b, c, d, e, f]) => Element::ContentionResolution([a, b, c, d, e, f]),
        (Direction::Down, 27, &[byte]) => Element::Activation(byte),
        (Direction::Down, 30, _) => Element::DrxCommand,
        (Direction::Down, 26, _) => Element::LongDrxCommand,
        _ => match size(direction, lcid) {
            Size::Data | Size::Unknown => Element::Data,
            Size::Fixed(name, _) | Size::Told(name) => Element::Other { name, bytes },
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(direction: Direction, header: &[u8]) -> Result<Vec<Subheader<'_>>, Broken> {
        let mut all = vec![];
        visit(direction, header, |subheader| all.push(subheader)).map(|()| all)
    }

    #[test]
    fn control_elements_come_behind_all_subheaders() {
        // The header: power headroom, long BSR, two bytes of channel 3, padding. The two control elements follow.
        let header = [0x3A, 0x3E, 0x23, 2, 0x1F, 33, 0b0000_0101, 0b0010_0000, 0b1100_0100];
        let subheader = |lcid, length, element| Subheader { lcid, length, element };
        let expected = [
            subheader(26, None, Element::PowerHeadroom(33)),
            subheader(30, None, Element::LongBsr([1, 18, 3, 4])),
            subheader(3, Some(2), Element::Data),
            subheader(31, None, Element::Padding),
        ];
        assert_eq!(all(Direction::Up, &header).unwrap(), expected);
    }

    #[test]
    fn lengths_have_seven_fifteen_or_sixteen_bits() {
        let header = [0x23, 0x05, 0x23, 0x81, 0x02, 0x63, 0x81, 0x02, 0x03];
        let lengths: Vec<_> =
            all(Direction::Down, &header).unwrap().iter().map(|subheader| subheader.length).collect();
        assert_eq!(lengths, [Some(5), Some(0x102), Some(0x8102), None]);
    }

    #[test]
    fn a_cut_or_unknown_block_is_broken_and_gives_no_values() {
        assert_eq!(all(Direction::Up, &[]), Err(Broken { at: 0 }));
        assert_eq!(all(Direction::Up, &[0x3A, 0x1F]), Err(Broken { at: 2 }), "no power headroom behind");
        assert_eq!(all(Direction::Up, &[0x23]), Err(Broken { at: 1 }));
        assert_eq!(
            all(Direction::Down, &[0x23, 2, 0x17]),
            Err(Broken { at: 2 }),
            "the length of 23 is not known"
        );
        assert_eq!(
            all(Direction::Up, &[0x39, 4, 0x1F, 1, 2, 3]),
            Err(Broken { at: 6 }),
            "one of four is missing"
        );
    }

    #[test]
    fn elements_that_are_not_decoded_are_passed_and_the_others_are_read() {
        let after = |header: &[u8]| {
            all(Direction::Up, header)
                .unwrap()
                .iter()
                .map(|read| (read.lcid, read.length))
                .collect::<Vec<_>>()
        };
        let extended = [0x39, 4, 0x3D, 0x1F, 1, 2, 3, 4, 0x85];
        assert_eq!(
            after(&extended),
            [(25, Some(4)), (29, None), (31, None)],
            "its subheader tells the length"
        );
        let read = all(Direction::Up, &extended).unwrap();
        assert_eq!(read[0].element, Element::Other { name: "extended power headroom", bytes: &[1, 2, 3, 4] });
        assert_eq!(read[1].element, Element::ShortBsr { group: 2, index: 5, truncated: false });
        let last = all(Direction::Up, &[0x3A, 0x19, 33, 7, 8, 9]).unwrap();
        assert_eq!(last[1].element, Element::Other { name: "extended power headroom", bytes: &[7, 8, 9] });
        // Two headers: the common channel with id 11, then power headroom; and an extended id with a length of 15 bits.
        assert_eq!(after(&[0x3A, 0x2B, 6, 0x1F, 19]), [(26, None), (11, Some(6)), (31, None)]);
        assert_eq!(after(&[0x30, 0x01, 0x81, 0x02, 0x1F]), [(33, Some(0x102)), (31, None)]);
        assert_eq!(after(&[0x34, 0x3A, 0x1F, 1, 2, 19]), [(20, None), (26, None), (31, None)]);
    }

    #[test]
    fn answers_to_random_accesses_are_preambles_with_responses_and_a_backoff() {
        let answers = |block: &[u8]| {
            let mut answers = vec![];
            visit_answers(block, |answer| answers.push(answer)).map(|()| answers)
        };
        let response = |preamble, timing_advance, grant, temporary_crnti| Answer::Response {
            preamble,
            timing_advance,
            grant,
            temporary_crnti,
        };
        // A block of a real log; the temporary C-RNTI equals that of the phone's next blocks.
        assert_eq!(
            answers(&[0x50, 0x00, 0xB1, 0x22, 0x78, 0xF4, 0xE0]),
            Ok(vec![response(16, 11, 0x1_2278, 0xF4E0)])
        );
        let two = [0x83, 0xC5, 0x7F, 0x7F, 0xFF, 0xFF, 0xFF, 0, 1, 0x80, 0x10, 0, 0, 0xAB, 0xCD, 0, 0];
        let expected = vec![Answer::Backoff(3), response(5, 2_047, 0xF_FFFF, 1), response(63, 1, 0, 0xABCD)];
        assert_eq!(answers(&two), Ok(expected), "a backoff, two responses, padding");
        for cut in 0..15 {
            assert_eq!(answers(&two[..cut]), Err(Broken { at: cut }), "nothing of a cut block is told");
        }
        assert_eq!(answers(&[0x07]), Ok(vec![Answer::Backoff(7)]));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(header in prop::collection::vec(any::<u8>(), 0..40), up in any::<bool>()) {
            let _ = visit_answers(&header, |_| ());
            let _ = all(if up { Direction::Up } else { Direction::Down }, &header);
        }
    }
}
