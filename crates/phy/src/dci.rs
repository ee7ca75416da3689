//! Downlink control information (DCI): the messages on the PDCCH.
//!
//! | module | contents |
//! | --- | --- |
//! | [`payload`] | a sequence of up to 64 bits |
//! | [`size`] | size of each format on each carrier |
//! | [`message`] | the fields of each format |
//! | [`fields`] | messages to payloads and back |
//! | [`allocation`] | PRBs of a resource block assignment field |
//! | [`grant`] | transport blocks, and conversion to the grant type of other crates |

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

/// DCI formats of LTE that the decoder supports.
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
    /// All formats.
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

    /// Name as in the specification, for example `1A`.
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

/// Receivers of a message: some fields have another meaning in broadcast messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Audience {
    /// One device: its C-RNTI (also temporary or semi-persistent), or the TPC-RNTI of a group.
    User,
    /// All devices, or all devices that sent a random-access preamble: SI-, P-, RA- and M-RNTI.
    Everyone,
}

impl Audience {
    /// The highest RA-RNTI of FDD and TDD without coverage enhancement.
    ///
    /// Source: TS 36.321 §7.1 Table 7.1-1
    pub const LAST_RA_RNTI: u16 = 0x003C;

    /// Audience of an RNTI according to its range; `None` for zero and for reserved values.
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
