//! Fields of each DCI format.

use super::allocation::Allocation;
use super::payload::Payload;
use super::{Carrier, Format};

/// Contents of a DCI message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// Format 0: uplink grant.
    Uplink(Uplink),
    /// Formats 1, 1A, 1B, 1D, 2, 2A, 2B: downlink assignment in the same subframe.
    Downlink(Downlink),
    /// Format 1C: compact downlink assignment of a broadcast in the same subframe.
    Compact(Compact),
    /// Format 1A: PDCCH order to start a random access.
    Order(Order),
    /// Formats 3 and 3A: power control commands for a group of devices.
    Power(Power),
}

impl Message {
    /// DCI format of the message.
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

/// MCS, NDI and RV of a transport block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Block {
    /// MCS index, 0…31.
    pub mcs: u8,
    /// New-data indicator: toggles with each new transport block.
    pub ndi: bool,
    /// Redundancy version, 0…3.
    pub rv: u8,
}

impl Block {
    /// Encoding of a disabled block in formats with two blocks.
    ///
    /// Source: TS 36.213 §7.1.7.2
    pub const DISABLED: Block = Block { mcs: 0, ndi: false, rv: 1 };

    /// Whether this block is disabled, in a format with two blocks.
    ///
    /// Source: TS 36.213 §7.1.7.2
    pub const fn is_disabled(&self) -> bool {
        self.mcs == 0 && self.rv == 1
    }
}

/// Format 0: uplink grant.
///
/// Source: TS 36.212 §5.3.3.1.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uplink {
    /// Carrier indicator, if configured.
    pub carrier: Option<u8>,
    /// Hopping bits of the allocation; `None` without hopping. One bit on carriers with fewer than 50 PRB pairs,
    /// otherwise two.
    ///
    /// Source: TS 36.213 §8.4 Tables 8.4-1 and 8.4-2
    pub hopping: Option<u8>,
    /// First PRB (of the first slot).
    pub start: u16,
    /// Number of PRBs.
    pub len: u16,
    /// Index of MCS and redundancy version, 0…31.
    pub mcs: u8,
    /// New-data indicator.
    pub ndi: bool,
    /// Transmit power control command, 0…3.
    pub tpc: u8,
    /// Cyclic shift of the demodulation reference signal, 0…7.
    pub cyclic_shift: u8,
    /// CSI request. A field of one bit contains whether a report is requested. A field of two bits also selects the
    /// carriers.
    pub csi_request: u8,
    /// Whether a sounding reference signal is requested, if this field is configured.
    pub srs_request: Option<bool>,
}

/// Downlink assignment in the same subframe.
///
/// Source: TS 36.212 §5.3.3.1.2, §5.3.3.1.3, §5.3.3.1.3A, §5.3.3.1.4A, §5.3.3.1.5, §5.3.3.1.5A, §5.3.3.1.5B
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Downlink {
    /// Format: 1, 1A, 1B, 1D, 2, 2A or 2B.
    pub format: Format,
    /// Carrier indicator, if configured.
    pub carrier: Option<u8>,
    /// Granted PRBs.
    pub allocation: Allocation,
    /// First transport block.
    pub first: Block,
    /// Second transport block in formats 2, 2A and 2B. Either block may be disabled.
    pub second: Option<Block>,
    /// HARQ process, 0…7; reserved in broadcast messages.
    pub harq: u8,
    /// Transmit power control command, 0…3. In broadcast messages, its lower bit selects the column of the transport
    /// block size table: 2 or 3 PRB pairs.
    pub tpc: u8,
    /// Mapping of the transport blocks to antennas.
    pub spatial: Spatial,
    /// Whether a sounding reference signal is requested, if this field is configured (format 1A).
    pub srs_request: Option<bool>,
}

/// Mapping of transport blocks to antennas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spatial {
    /// Formats 1 and 1A: one antenna port or transmit diversity, without further fields.
    Plain,
    /// Format 1B: one precoded layer.
    Beam {
        /// Index of the precoding matrix.
        tpmi: u8,
        /// Whether the matrix of the device's last report applies instead.
        reported: bool,
    },
    /// Format 1D: one precoded layer in multi-user MIMO.
    Shared {
        /// Index of the precoding matrix.
        tpmi: u8,
        /// Whether the power is reduced by half for another user.
        offset: bool,
    },
    /// Formats 2 (closed loop) and 2A (open loop).
    Layers {
        /// Whether the blocks and codewords are swapped.
        swap: bool,
        /// Precoding information; 0 if the format has none.
        precoding: u8,
    },
    /// Format 2B: one or two layers on user-specific antenna ports 7 and 8.
    Dual {
        /// Scrambling identity of the antenna ports.
        scrambling: bool,
    },
}

/// Format 1C: compact downlink assignment.
///
/// Source: TS 36.212 §5.3.3.1.4
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compact {
    /// Granted virtual resource blocks; always distributed.
    pub allocation: Allocation,
    /// Transport block size index, 0…31.
    pub i_tbs: u8,
}

/// PDCCH order: the device shall start a random access.
///
/// Source: TS 36.212 §5.3.3.1.3
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Carrier indicator, if configured.
    pub carrier: Option<u8>,
    /// Preamble index, 0…63.
    pub preamble: u8,
    /// PRACH mask index, 0…15: the allowed random-access occasions of the cell.
    pub mask: u8,
}

/// Power control commands of a group.
///
/// Source: TS 36.212 §5.3.3.1.6 and §5.3.3.1.7
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Power {
    /// Format 3 (two bits per command) or 3A (one bit per command).
    pub format: Format,
    /// Concatenated commands.
    pub commands: Payload,
}

impl Power {
    /// Command `index`; `None` if the message has fewer commands.
    pub fn command(&self, index: u8) -> Option<u8> {
        let width = if self.format == Format::F3 { 2 } else { 1 };
        let before = index.checked_mul(width)?;
        let after = self.commands.len().checked_sub(before + width)?;
        Some((self.commands.bits() >> after) as u8 & ((1 << width) - 1))
    }
}

impl Carrier {
    /// Format of a payload that has the size of formats 0 and 1A, determined by the flag after the carrier indicator.
    ///
    /// Source: TS 36.212 §5.3.3.1.1 and §5.3.3.1.3
    pub fn uplink_or_downlink(&self, payload: Payload, extras: super::Extras) -> Format {
        let skipped = extras.carrier_indicator_bits() as u8;
        let at = payload.len().saturating_sub(skipped + 1);
        if payload.bits() >> at & 1 == 0 { Format::F0 } else { Format::F1A }
    }
}
