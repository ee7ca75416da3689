//! A message that the decoder has accepted, with its context.

pub mod words;

use airpace_core::Direction;
use airpace_core::tables::Modulation;
use airpace_core::tables::lte::{self, McsTable};
use airpace_radio::{Dci, PrbSet, Rnti};

use crate::dci::{Allocation, Audience, Extras, Gap, Message, Payload};
use crate::pdcch::CceRange;

/// Kind of receiver that an RNTI addresses.
///
/// Source: TS 36.321 §7.1 Table 7.1-1
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RntiKind {
    /// One device: its C-RNTI, or a temporary or semi-persistent C-RNTI.
    User,
    /// A group of devices with power commands.
    Power,
    /// System information.
    SystemInformation,
    /// Paging.
    Paging,
    /// Devices that transmitted a random-access preamble in a certain subframe.
    RandomAccess,
    /// Multicast.
    Multicast,
}

impl RntiKind {
    /// Kind of an RNTI to which `message` is addressed.
    pub fn of(rnti: Rnti, message: &Message) -> RntiKind {
        match (rnti, Audience::of(rnti)) {
            (Rnti::SYSTEM_INFORMATION, _) => RntiKind::SystemInformation,
            (Rnti::PAGING, _) => RntiKind::Paging,
            (Rnti(1..=Audience::LAST_RA_RNTI), _) => RntiKind::RandomAccess,
            (_, Some(Audience::Everyone)) => RntiKind::Multicast,
            _ if matches!(message, Message::Power(_)) => RntiKind::Power,
            _ => RntiKind::User,
        }
    }

    /// Abbreviation that is common in the tables of decoders: `C`, `TPC`, `SI`, `P`, `RA`, `M`.
    pub const fn name(self) -> &'static str {
        match self {
            RntiKind::User => "C",
            RntiKind::Power => "TPC",
            RntiKind::SystemInformation => "SI",
            RntiKind::Paging => "P",
            RntiKind::RandomAccess => "RA",
            RntiKind::Multicast => "M",
        }
    }
}

/// A message that the decoder has accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Physical identity of the cell.
    pub pci: u16,
    /// Number of the subframe: 10 · frame + subframe, without the wrap of frame numbers.
    pub index: u64,
    /// System frame number, 0…1023.
    pub sfn: u16,
    /// Subframe within the frame, 0…9.
    pub subframe: u8,
    /// Control format indicator of the subframe.
    pub cfi: u8,
    /// RNTI to which the message is addressed.
    pub rnti: Rnti,
    /// Kind of the RNTI.
    pub kind: RntiKind,
    /// Payload bits, without the CRC.
    pub payload: Payload,
    /// CCEs of the message.
    pub place: CceRange,
    /// Decoded fields of the message.
    pub message: Message,
    /// Whether the format of the message is much likelier than all other formats in which its bits are valid. The
    /// formats 1B and 1D cannot be distinguished by a message, and 2A and 2B mostly not.
    pub is_format_known: bool,
    /// Fields of Release 10 with which the message was decoded.
    pub extras: Extras,
    /// PRBs in both slots; for an uplink grant, four subframes later. `None` if nothing is granted.
    pub prbs: Option<[PrbSet; 2]>,
    /// The grant, completed with the state of its HARQ process; `None` if nothing is granted.
    pub dci: Option<Dci>,
    /// MCS table used to decode the grant.
    pub table: McsTable,
    /// Whether this table is known: it is fixed for this kind of message, or was determined from the user's grants.
    /// Otherwise the table is assumed.
    pub is_table_known: bool,
    /// Signal-to-noise ratio of the control region (dB).
    pub snr_db: f32,
    /// Posterior probability that these bits were transmitted to this RNTI at this place, 0…1.
    pub confidence: f32,
}

impl Found {
    /// Name of the format; `1A-order` for a PDCCH order.
    pub fn format(&self) -> &'static str {
        match self.message {
            Message::Order(_) => "1A-order",
            _ => self.message.format().name(),
        }
    }

    /// Direction of the granted data; `None` if nothing is granted.
    pub fn direction(&self) -> Option<Direction> {
        match self.message {
            Message::Uplink(_) => Some(Direction::Uplink),
            Message::Downlink(_) | Message::Compact(_) => Some(Direction::Downlink),
            Message::Order(_) | Message::Power(_) => None,
        }
    }

    /// Resource allocation type of the message: `0`, `1`, `2L` (localised), `2D1` or `2D2` (distributed with the first
    /// or second gap).
    pub fn allocation(&self) -> Option<&'static str> {
        let name = |allocation: &Allocation| match allocation {
            Allocation::Groups { .. } => "0",
            Allocation::Subset { .. } => "1",
            Allocation::Run { .. } => "2L",
            Allocation::Distributed { gap: Gap::First, .. } => "2D1",
            Allocation::Distributed { gap: Gap::Second, .. } => "2D2",
        };
        match &self.message {
            Message::Uplink(_) => Some("2L"),
            Message::Downlink(downlink) => Some(name(&downlink.allocation)),
            Message::Compact(compact) => Some(name(&compact.allocation)),
            Message::Order(_) | Message::Power(_) => None,
        }
    }

    /// Modulation of each block. `None` for a block that is not transmitted, or for an uplink block whose MCS index
    /// does not determine the modulation.
    pub fn modulations(&self) -> [Option<Modulation>; 2] {
        match &self.message {
            Message::Uplink(uplink) => [
                lte::uplink_mcs(uplink.mcs).and_then(|row| row.initial).map(|(modulation, _)| modulation),
                None,
            ],
            // Source: TS 36.213 §7.1.7.1: broadcast messages use QPSK.
            Message::Downlink(_) if Audience::of(self.rnti) == Some(Audience::Everyone) => {
                [Some(Modulation::Qpsk), None]
            }
            Message::Downlink(downlink) => {
                downlink.blocks().map(|block| Some(self.table.mcs(block?.mcs)?.modulation))
            }
            Message::Compact(_) => [Some(Modulation::Qpsk), None],
            Message::Order(_) | Message::Power(_) => [None, None],
        }
    }

    /// Power command, 0…3. `None` if the message contains none for a single user.
    pub fn power_command(&self) -> Option<u8> {
        match &self.message {
            Message::Uplink(uplink) => Some(uplink.tpc),
            Message::Downlink(downlink) => Some(downlink.tpc),
            Message::Compact(_) | Message::Order(_) | Message::Power(_) => None,
        }
    }
}
