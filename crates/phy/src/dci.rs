//! Downlink control information: the words of the PDCCH.
//!
//! | module | what it knows |
//! | --- | --- |
//! | [`payload`] | a row of up to 64 bits |
//! | [`size`] | how long each format is on which carrier |
//! | [`message`] | the fields of each format |
//! | [`fields`] | messages to payloads and back |
//! | [`allocation`] | which PRBs a field of resource blocks names |
//! | [`grant`] | transport blocks, and the words of the rest of the house |

pub mod allocation;
pub mod compose;
pub mod fields;
pub mod grant;
pub mod message;
pub mod payload;
pub mod size;

pub use allocation::{Allocation, Gap};
pub use compose::EncodeError;
pub use fields::{Illegal, pack, parse};
pub use message::{Block, Compact, Downlink, Message, Order, Power, Spatial, Uplink};
pub use payload::Payload;
pub use size::{Carrier, Extras};

use airpace_radio::Rnti;

/// The DCI formats of LTE that are read here.
///
/// Source: TS 36.212 §5.3.3.1
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // the variants are the formats' own names
pub enum Format {
    F0,
    F1,
    F1A,
    F1B,
    F1C,
    F1D,
    F2,
    F2A,
    F2B,
    F3,
    F3A,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 11] = [
        Format::F0,
        Format::F1,
        Format::F1A,
        Format::F1B,
        Format::F1C,
        Format::F1D,
        Format::F2,
        Format::F2A,
        Format::F2B,
        Format::F3,
        Format::F3A,
    ];

    /// As the specification writes it: `1A`.
    pub const fn name(self) -> &'static str {
        match self {
            Format::F0 => "0",
            Format::F1 => "1",
            Format::F1A => "1A",
            Format::F1B => "1B",
            Format::F1C => "1C",
            Format::F1D => "1D",
            Format::F2 => "2",
            Format::F2A => "2A",
            Format::F2B => "2B",
            Format::F3 => "3",
            Format::F3A => "3A",
        }
    }
}

/// To whom a message is sent: some fields mean something else in messages to everyone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Audience {
    /// One device: its C-RNTI (also temporary or semi-persistent), or a group's TPC-RNTI.
    User,
    /// Everyone, or everyone who sent a preamble: SI-, P-, RA- and M-RNTI.
    Everyone,
}

impl Audience {
    /// The highest RA-RNTI of FDD and TDD without coverage enhancement.
    ///
    /// Source: TS 36.321 §7.1 Table 7.1-1
    pub const LAST_RA_RNTI: u16 = 0x003C;

    /// The audience of an RNTI, by its range; `None` for zero and the reserved ones.
    ///
    /// Source: TS 36.321 §7.1 Table 7.1-1
    pub const fn of(rnti: Rnti) -> Option<Audience> {
        match rnti.0 {
            0x0000 | 0xFFF4..=0xFFFC => None,
            0x0001..=Self::LAST_RA_RNTI | 0xFFFD..=0xFFFF => Some(Audience::Everyone),
            _ => Some(Audience::User),
        }
    }
}
