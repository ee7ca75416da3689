//! MAC headers of LTE and the control elements behind them, which 0xB063 and 0xB064 carry as `mac_hdr_ce`.
//!
//! All subheaders come first, then the control elements in their order; the payloads are not logged. Blocks that answer
//! random accesses have subheaders and payloads of their own ([`visit_answers`]); paging and system information have none
//! ([`Kind::Transparent`]).
//!
//! Source: TS 36.321 §6.1.2, §6.1.4, §6.1.5

use std::fmt;

/// Which way a transport block goes. Logical channel ids mean different things in the two directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the phone.
    Down,
    /// From the phone.
    Up,
}

/// How a block of the downlink begins, which depends on the identity for which it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// With subheaders.
    Subheaders,
    /// With a message of RRC, which is the whole block: paging and system information.
    Transparent,
    /// With subheaders of answers to random accesses.
    Answers,
}

impl Kind {
    /// What a block begins with that is for the identity of this number in the log; `None` where that is not known: blocks
    /// of a multicast channel have subheaders with meanings of their own, and the other identities have no blocks.
    ///
    /// Source: TS 36.321 §6.1.2, §6.1.4, §6.1.5; §7.1 Table 7.1-2 tells which identity carries what.
    pub fn of_rnti(number: u64) -> Option<Kind> {
        match number {
            0 | 1 | 4 => Some(Kind::Subheaders),
            2 | 5 => Some(Kind::Transparent),
            3 => Some(Kind::Answers),
            _ => None,
        }
    }
}

/// An answer to random accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// How long phones without an answer may wait, as an index.
    Backoff(u8),
    /// To the phones that sent this preamble.
    Response {
        /// The preamble.
        preamble: u8,
        /// How much earlier the phone must send, in steps of 16 Ts.
        timing_advance: u16,
        /// The grant of its first message, 20 bits. NB-IoT uses the upper 15 of them.
        grant: u32,
        /// The identity that it gets.
        temporary_crnti: u16,
    },
}

/// One subheader, with the element that it announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subheader<'a> {
    /// Logical channel id, or the kind of a control element.
    pub lcid: u8,
    /// Bytes of the announced element, if the header tells: the last element of a block takes the rest.
    pub length: Option<u16>,
    /// The announced element.
    pub element: Element<'a>,
}

/// What a subheader announces.
///
/// Source: TS 36.321 §6.1.3
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element<'a> {
    /// Data of a logical channel, which is not logged.
    Data,
    /// Padding.
    Padding,
    /// How much data waits in one group of logical channels, as an index into the table of buffer sizes.
    ShortBsr {
        /// The group.
        group: u8,
        /// Index into the table of buffer sizes.
        index: u8,
        /// Whether data waits in other groups as well.
        truncated: bool,
    },
    /// How much data waits in each group of logical channels, as indices into the table of buffer sizes.
    LongBsr([u8; 4]),
    /// Power headroom, from −23 dB on in steps of 1 dB.
    PowerHeadroom(u8),
    /// The phone's identity.
    Crnti(u16),
    /// The uplink's timing changes.
    TimingAdvance {
        /// Which group of carriers.
        tag: u8,
        /// Index of the step; 31 means no step.
        command: u8,
    },
    /// The phone that won a random access.
    ContentionResolution([u8; 6]),
    /// Which secondary cells are active, one bit each.
    Activation(u8),
    /// The phone may sleep.
    DrxCommand,
    /// The phone may sleep for long.
    LongDrxCommand,
    /// A control element that is not decoded here.
    Other(&'a [u8]),
}

/// A header that ends too early, or that has a control element of unknown length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The byte where the header ends, or where the subheader is.
    pub at: usize,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the MAC header cannot be followed beyond byte {}", self.at)
    }
}

impl std::error::Error for Broken {}

/// The most bytes that wait, by the index of a buffer status report.
///
/// Chosen: the last index only says more than 150,000; it counts as 150,000.
///
/// Source: TS 36.321 §6.1.3.1 Table 6.1.3.1-1
#[rustfmt::skip]
pub static BUFFER_SIZES: [u32; 64] = [
    0, 10, 12, 14, 17, 19, 22, 26, 31, 36, 42, 49, 57, 67, 78, 91, 107, 125, 146, 171, 200, 234, 274, 321, 376, 440,
    515, 603, 706, 826, 967, 1132, 1326, 1552, 1817, 2127, 2490, 2915, 3413, 3995, 4677, 5476, 6411, 7505, 8787,
    10287, 12043, 14099, 16507, 19325, 22624, 26487, 31009, 36304, 42502, 49759, 58255, 68201, 79846, 93479, 109439,
    128125, 150000, 150000,
];

/// Power headroom of a report's index 0, in dB.
///
/// Source: TS 36.133 §9.1.8.4 Table 9.1.8.4-1
pub const LEAST_HEADROOM_DB: i32 = -23;

/// The command that leaves the uplink's timing as it is.
///
/// Source: TS 36.213 §4.2.3
pub const TIMING_STAYS: u8 = 31;

const PADDING: u8 = 31;
/// Higher numbers are control elements.
const LAST_DATA: u8 = 10;

/// Visits the subheaders of a transport block.
///
/// # Errors
/// If the header ends too early, or announces an unknown element. Then no subheader has been visited.
pub fn visit<'a>(
    direction: Direction,
    header: &'a [u8],
    mut visit: impl FnMut(Subheader<'a>),
) -> Result<(), Broken> {
    let mut takes = 0;
    let behind = walk(direction, header, |lcid, _| takes += fixed_length(direction, lcid).unwrap_or(0))?;
    let mut elements = &header[behind..];
    if elements.len() < takes {
        return Err(Broken { at: header.len() });
    }
    walk(direction, header, |lcid, length| {
        let (own, rest) = elements.split_at(fixed_length(direction, lcid).unwrap_or(0));
        elements = rest;
        visit(Subheader { lcid, length, element: element(direction, lcid, own) });
    })?;
    Ok(())
}

/// Bytes of the response to a preamble.
const RESPONSE: usize = 6;

/// Visits the answers in a block for random accesses.
///
/// # Errors
/// If the block ends before the last response does. Then no answer has been visited.
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

/// Goes through the subheaders; returns where they end.
fn walk(direction: Direction, header: &[u8], mut each: impl FnMut(u8, Option<u16>)) -> Result<usize, Broken> {
    let mut at = 0;
    loop {
        let byte = |at: usize| header.get(at).copied().ok_or(Broken { at });
        let first = byte(at)?;
        let (lcid, more, long) = (first & 31, first & 0x20 != 0, first & 0x40 != 0);
        let is_data = lcid <= LAST_DATA;
        if !is_data && lcid != PADDING && fixed_length(direction, lcid).is_none() {
            return Err(Broken { at });
        }
        at += 1;
        let mut length = None;
        if is_data && more {
            // 16 bits if the first byte says so, else 7 or 15.
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

/// Bytes of a control element, if its length is fixed.
///
/// Source: TS 36.321 §6.2.1 Tables 6.2.1-1 and 6.2.1-2
fn fixed_length(direction: Direction, lcid: u8) -> Option<usize> {
    match (direction, lcid) {
        (Direction::Down, 24) => Some(4),
        (Direction::Down, 26 | 30) => Some(0),
        (Direction::Down, 27 | 29) => Some(1),
        (Direction::Down, 28) => Some(6),
        (Direction::Up, 26 | 28 | 29) => Some(1),
        (Direction::Up, 27) => Some(2),
        (Direction::Up, 30) => Some(3),
        _ => None,
    }
}

fn element(direction: Direction, lcid: u8, bytes: &[u8]) -> Element<'_> {
    match (direction, lcid, bytes) {
        (_, 0..=LAST_DATA, _) => Element::Data,
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
        _ => Element::Other(bytes),
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
        // Power headroom, a long report, two bytes of channel 3, padding; then the two elements.
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
    fn what_ends_too_early_or_is_unknown_is_broken_and_nothing_of_it_is_told() {
        assert_eq!(all(Direction::Up, &[]), Err(Broken { at: 0 }));
        assert_eq!(all(Direction::Up, &[0x3A, 0x1F]), Err(Broken { at: 2 }), "no power headroom behind");
        assert_eq!(all(Direction::Up, &[0x23]), Err(Broken { at: 1 }));
        assert_eq!(all(Direction::Down, &[0x23, 2, 0x11]), Err(Broken { at: 2 }), "17 is no element of ours");
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
        // A block of a real log; its identity is that of the phone's next blocks.
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
