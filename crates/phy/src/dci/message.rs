//! The fields of each format.

use super::allocation::Allocation;
use super::payload::Payload;
use super::{Carrier, Format};

/// What one PDCCH says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// Format 0: the device may send.
    Uplink(Uplink),
    /// Formats 1, 1A, 1B, 1D, 2, 2A, 2B: data for the device follows in this subframe.
    Downlink(Downlink),
    /// Format 1C: data for everyone follows in this subframe.
    Compact(Compact),
    /// Format 1A: the device shall send a preamble.
    Order(Order),
    /// Formats 3 and 3A: the devices of a group shall send louder or softer.
    Power(Power),
}

impl Message {
    /// How it is coded.
    pub const fn format(&self) -> Format {
        match self {
            Message::Uplink(_) => Format::F0,
            Message::Downlink(downlink) => downlink.format,
            Message::Compact(_) => Format::F1C,
            Message::Order(_) => Format::F1A,
            Message::Power(power) => power.format,
        }
    }
}

/// The MCS of one transport block, and where it stands in its HARQ process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Block {
    /// MCS index, 0…31.
    pub mcs: u8,
    /// New-data indicator: toggles with new data.
    pub ndi: bool,
    /// Redundancy version, 0…3.
    pub rv: u8,
}

impl Block {
    /// How formats with two blocks write that one is not sent.
    ///
    /// Source: TS 36.213 §7.1.7.2
    pub const DISABLED: Block = Block { mcs: 0, ndi: false, rv: 1 };

    /// Whether this block tells, in a format with two blocks, that it is not sent.
    ///
    /// Source: TS 36.213 §7.1.7.2
    pub const fn is_disabled(&self) -> bool {
        self.mcs == 0 && self.rv == 1
    }
}

/// Format 0.
///
/// Source: TS 36.212 §5.3.3.1.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uplink {
    /// Carrier indicator, where the user has one.
    pub carrier: Option<u8>,
    /// How the allocation hops in frequency; `None` if it does not. One bit below 50 PRB pairs, two from there.
    ///
    /// Source: TS 36.213 §8.4 Tables 8.4-1 and 8.4-2
    pub hopping: Option<u8>,
    /// First PRB (in the first slot).
    pub start: u16,
    /// PRBs.
    pub len: u16,
    /// MCS and redundancy version, 0…31.
    pub mcs: u8,
    /// New-data indicator.
    pub ndi: bool,
    /// Power command, 0…3.
    pub tpc: u8,
    /// Cyclic shift of the demodulation reference signal, 0…7.
    pub cyclic_shift: u8,
    /// Whether a channel report is asked for; with two bits, also which.
    pub csi_request: u8,
    /// Whether a sounding signal is asked for, where the user has this field.
    pub srs_request: Option<bool>,
}

/// A grant of data in the same subframe.
///
/// Source: TS 36.212 §5.3.3.1.2, §5.3.3.1.3, §5.3.3.1.3A, §5.3.3.1.4A, §5.3.3.1.5, §5.3.3.1.5A, §5.3.3.1.5B
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Downlink {
    /// 1, 1A, 1B, 1D, 2, 2A or 2B.
    pub format: Format,
    /// Carrier indicator, where the user has one.
    pub carrier: Option<u8>,
    /// The granted PRBs.
    pub allocation: Allocation,
    /// The first transport block.
    pub first: Block,
    /// The second, in formats 2, 2A and 2B; it or the first may be disabled.
    pub second: Option<Block>,
    /// HARQ process, 0…7; reserved in messages to everyone.
    pub harq: u8,
    /// Power command, 0…3. In messages to everyone, its lower bit chooses the column of transport block sizes, 2 or 3
    /// PRB pairs.
    pub tpc: u8,
    /// How the blocks go onto antennas.
    pub spatial: Spatial,
    /// Whether a sounding signal is asked for, where the user has this field (format 1A).
    pub srs_request: Option<bool>,
}

/// How transport blocks go onto antennas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spatial {
    /// Formats 1 and 1A: one port or transmit diversity; nothing is said.
    Plain,
    /// Format 1B: one precoded layer.
    Beam {
        /// Index of the precoding matrix.
        tpmi: u8,
        /// Whether the matrix of the device's last report is used instead.
        reported: bool,
    },
    /// Format 1D: one precoded layer of several users.
    Shared {
        /// Index of the precoding matrix.
        tpmi: u8,
        /// Whether another user takes half of the power.
        offset: bool,
    },
    /// Formats 2 (closed loop) and 2A (open loop).
    Layers {
        /// Whether the blocks change codewords.
        swap: bool,
        /// The field of precoding information; 0 where the format has none.
        precoding: u8,
    },
    /// Format 2B: one or two layers of user-specific ports 7 and 8.
    Dual {
        /// Scrambling identity of the ports.
        scrambling: bool,
    },
}

/// Format 1C.
///
/// Source: TS 36.212 §5.3.3.1.4
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compact {
    /// Where; always distributed.
    pub allocation: Allocation,
    /// Index of the transport block size, 0…31.
    pub i_tbs: u8,
}

/// A PDCCH order: the device shall start a random access.
///
/// Source: TS 36.212 §5.3.3.1.3
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Carrier indicator, where the user has one.
    pub carrier: Option<u8>,
    /// Preamble, 0…63.
    pub preamble: u8,
    /// In which of the cell's occasions, 0…15.
    pub mask: u8,
}

/// Power commands of a group.
///
/// Source: TS 36.212 §5.3.3.1.6 and §5.3.3.1.7
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Power {
    /// 3 (two bits per command) or 3A (one).
    pub format: Format,
    /// All commands, in order.
    pub commands: Payload,
}

impl Power {
    /// Command `index`; `None` beyond the last.
    pub fn command(&self, index: u8) -> Option<u8> {
        let width = if self.format == Format::F3 { 2 } else { 1 };
        let before = index.checked_mul(width)?;
        let after = self.commands.len().checked_sub(before + width)?;
        Some((self.commands.bits() >> after) as u8 & ((1 << width) - 1))
    }
}

impl Carrier {
    /// The format of a message of the size of format 0, by its first bit (after a carrier indicator).
    ///
    /// Source: TS 36.212 §5.3.3.1.1 and §5.3.3.1.3
    pub fn uplink_or_downlink(&self, payload: Payload, extras: super::Extras) -> Format {
        let skipped = extras.carrier_indicator_bits() as u8;
        let at = payload.len().saturating_sub(skipped + 1);
        if payload.bits() >> at & 1 == 0 { Format::F0 } else { Format::F1A }
    }
}
