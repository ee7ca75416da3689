//! Converts messages to payloads and back. Packing a parsed message gives the same bits.

use super::allocation::{Allocation, Gap, riv, riv_bits, run_of_riv, subset_bits, subset_map_bits};
use super::message::{Block, Compact, Downlink, Message, Order, Power, Spatial, Uplink};
use super::payload::{Payload, Reader, Writer};
use super::size::{HARQ_BITS, MCS_BITS, TPC_BITS, compact_step};
use super::{Audience, Carrier, Extras, Format};
use airpace_core::tables::lte;

/// Reason why a payload is not a valid message of the format: no base station would send it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Illegal {
    /// The number of bits differs from the size of the format.
    #[error("the payload has another size than the format")]
    Size,
    /// The flag for format 0 / format 1A differentiation has the other value.
    #[error("the flag of the payload names the other format of the pair 0 and 1A")]
    OtherFormat,
    /// No run of PRBs has this resource indication value.
    #[error("no run of resource blocks has this value")]
    Run,
    /// The index of the RBG subset does not exist.
    #[error("no such subset of resource block groups")]
    Subset,
    /// The grant contains no PRB.
    #[error("no resource block is granted")]
    Nothing,
    /// The number of PRBs is not valid for the uplink's DFT precoding.
    #[error("an uplink of this many resource blocks does not exist")]
    UplinkSize,
    /// The precoding information is reserved for this number of blocks and antenna ports.
    #[error("the precoding information is reserved")]
    Precoding,
    /// Uplink allocation type 1 (several clusters), which is not supported.
    #[error("uplink allocation type 1 is not read")]
    Clusters,
    /// A padding bit or reserved bit is set.
    #[error("a padding bit is set")]
    Padding,
}

/// Adjacent fields in the formats with one block.
struct BlockFields {
    block: Block,
    harq: u8,
    tpc: u8,
}

/// Parses a payload of `format`.
///
/// # Errors
/// The reason why the payload is invalid. Most payloads from noise are.
pub fn parse(
    carrier: &Carrier,
    extras: Extras,
    audience: Audience,
    format: Format,
    payload: Payload,
) -> Result<Message, Illegal> {
    if payload.len() != carrier.size(format, extras) {
        return Err(Illegal::Size);
    }
    let mut fields = Fields { carrier, extras, audience, reader: Reader::new(payload) };
    let message = match format {
        Format::F0 => fields.uplink()?,
        Format::F1A => fields.format_1a()?,
        Format::F1 | Format::F1B | Format::F1D => fields.one_block(format)?,
        Format::F1C => fields.compact()?,
        Format::F2 | Format::F2A | Format::F2B => fields.two_blocks(format)?,
        Format::F3 | Format::F3A => return power(format, payload),
    };
    if fields.reader.rest_is_zero() { Ok(message) } else { Err(Illegal::Padding) }
}

/// Reads the fields of a message from a payload, in the order of the specification.
struct Fields<'a> {
    carrier: &'a Carrier,
    extras: Extras,
    audience: Audience,
    reader: Reader,
}

impl Fields<'_> {
    /// Source: TS 36.212 §5.3.3.1.1
    fn uplink(&mut self) -> Result<Message, Illegal> {
        let carrier = self.carrier_indicator();
        if self.reader.flag() {
            return Err(Illegal::OtherFormat);
        }
        let hops = self.reader.flag();
        let prbs = self.carrier.uplink_prbs;
        let hopping_bits = if hops { hopping_bits(prbs) } else { 0 };
        let hopping = hops.then(|| self.reader.small(hopping_bits));
        let value = self.reader.take(riv_bits(prbs) - hopping_bits);
        let mcs = self.reader.small(MCS_BITS);
        let ndi = self.reader.flag();
        let tpc = self.reader.small(TPC_BITS);
        let cyclic_shift = self.reader.small(3);
        let csi_request = self.reader.small(self.extras.csi_request_bits());
        let srs_request = self.srs_request();
        if self.carrier.uplink_type_bits() == 1 && self.reader.flag() {
            return Err(Illegal::Clusters);
        }
        let (start, len) = run_of_riv(prbs, value).ok_or(Illegal::Run)?;
        // Source: TS 36.211 §5.3.3
        if lte::pusch_size_within(len) != len {
            return Err(Illegal::UplinkSize);
        }
        let uplink =
            Uplink { carrier, hopping, start, len, mcs, ndi, tpc, cyclic_shift, csi_request, srs_request };
        Ok(Message::Uplink(uplink))
    }

    /// Source: TS 36.212 §5.3.3.1.3
    fn format_1a(&mut self) -> Result<Message, Illegal> {
        let carrier = self.carrier_indicator();
        if !self.reader.flag() {
            return Err(Illegal::OtherFormat);
        }
        if self.audience == Audience::User
            && let Some(order) = self.order(carrier)
        {
            return Ok(Message::Order(order));
        }
        let distributed = self.reader.flag();
        let gap_in_ndi = distributed && gap_is_in_ndi(self.carrier, self.audience);
        let run = self.run(distributed, !gap_in_ndi);
        let BlockFields { block: first, harq, tpc } = self.block_and_harq();
        let srs_request = self.srs_request();
        let mut allocation = run?;
        if let Allocation::Distributed { gap, start, len } = &mut allocation {
            if gap_in_ndi && first.ndi {
                *gap = Gap::Second;
            }
            check_virtual(self.carrier, *gap, *start, *len)?;
        }
        let spatial = Spatial::Plain;
        let format = Format::F1A;
        let downlink =
            Downlink { format, carrier, allocation, first, second: None, harq, tpc, spatial, srs_request };
        Ok(Message::Downlink(downlink))
    }

    /// Reads a PDCCH order if all of its fixed bits match; otherwise consumes nothing.
    ///
    /// Source: TS 36.212 §5.3.3.1.3
    fn order(&mut self, carrier: Option<u8>) -> Option<Order> {
        let mut reader = self.reader.clone();
        let bits = riv_bits(self.carrier.prbs);
        let marked = !reader.flag() && reader.take(bits) == (1 << bits) - 1;
        let order = Order { carrier, preamble: reader.small(6), mask: reader.small(4) };
        if marked && reader.rest_is_zero() {
            self.reader = reader;
            return Some(order);
        }
        None
    }

    /// Source: TS 36.212 §5.3.3.1.2, §5.3.3.1.3A and §5.3.3.1.4A
    fn one_block(&mut self, format: Format) -> Result<Message, Illegal> {
        let carrier = self.carrier_indicator();
        let allocation = if format == Format::F1 {
            self.groups()?
        } else {
            let distributed = self.reader.flag();
            let run = self.run(distributed, true)?;
            if let Allocation::Distributed { gap, start, len } = run {
                check_virtual(self.carrier, gap, start, len)?;
            }
            run
        };
        let BlockFields { block: first, harq, tpc } = self.block_and_harq();
        let mut beam = || (self.reader.small(self.carrier.tpmi_bits()), self.reader.flag());
        let spatial = match format {
            Format::F1B => {
                let (tpmi, reported) = beam();
                Spatial::Beam { tpmi, reported }
            }
            Format::F1D => {
                let (tpmi, offset) = beam();
                Spatial::Shared { tpmi, offset }
            }
            _ => Spatial::Plain,
        };
        let downlink = Downlink {
            format,
            carrier,
            allocation,
            first,
            second: None,
            harq,
            tpc,
            spatial,
            srs_request: None,
        };
        Ok(Message::Downlink(downlink))
    }

    /// Source: TS 36.212 §5.3.3.1.5, §5.3.3.1.5A and §5.3.3.1.5B
    fn two_blocks(&mut self, format: Format) -> Result<Message, Illegal> {
        let carrier = self.carrier_indicator();
        let allocation = self.groups()?;
        let tpc = self.reader.small(TPC_BITS);
        let harq = self.reader.small(HARQ_BITS);
        let swap_or_scrambling = self.reader.flag();
        let first = self.block();
        let second = Some(self.block());
        let precoding = self.reader.small(self.carrier.precoding_bits(format));
        let spatial = if format == Format::F2B {
            Spatial::Dual { scrambling: swap_or_scrambling }
        } else {
            Spatial::Layers { swap: swap_or_scrambling, precoding }
        };
        let downlink =
            Downlink { format, carrier, allocation, first, second, harq, tpc, spatial, srs_request: None };
        if downlink.blocks() == [None, None] {
            return Err(Illegal::Nothing);
        }
        downlink.layers(self.carrier.ports).ok_or(Illegal::Precoding)?;
        Ok(Message::Downlink(downlink))
    }

    /// Source: TS 36.212 §5.3.3.1.4
    fn compact(&mut self) -> Result<Message, Illegal> {
        let gap = if self.reader.take(self.carrier.gap_bits()) == 1 { Gap::Second } else { Gap::First };
        let steps = self.carrier.compact_steps();
        let value = self.reader.take(riv_bits(steps));
        let i_tbs = self.reader.small(MCS_BITS);
        // Source: TS 36.213 §7.1.6.3: the RIV counts runs in allocation steps. With the second gap, the carrier may
        // have fewer steps than the width of the field allows.
        let step = compact_step(self.carrier.prbs);
        let (start, len) =
            run_of_riv(gap.virtual_blocks(self.carrier.prbs) / step, value).ok_or(Illegal::Run)?;
        let allocation = Allocation::Distributed { gap, start: start * step, len: len * step };
        Ok(Message::Compact(Compact { allocation, i_tbs }))
    }

    fn carrier_indicator(&mut self) -> Option<u8> {
        self.extras.carrier_indicator.then(|| self.reader.small(3))
    }

    fn srs_request(&mut self) -> Option<bool> {
        self.extras.srs_request.then(|| self.reader.flag())
    }

    fn block(&mut self) -> Block {
        Block { mcs: self.reader.small(MCS_BITS), ndi: self.reader.flag(), rv: self.reader.small(2) }
    }

    /// MCS, HARQ process, NDI, RV, TPC: the field order of formats with one block.
    fn block_and_harq(&mut self) -> BlockFields {
        let mcs = self.reader.small(MCS_BITS);
        let harq = self.reader.small(HARQ_BITS);
        let ndi = self.reader.flag();
        let rv = self.reader.small(2);
        BlockFields { block: Block { mcs, ndi, rv }, harq, tpc: self.reader.small(TPC_BITS) }
    }

    /// Resource allocation types 0 and 1.
    fn groups(&mut self) -> Result<Allocation, Illegal> {
        let prbs = self.carrier.prbs;
        let allocation = if self.reader.take(self.carrier.header_bits()) == 0 {
            Allocation::Groups { map: self.reader.take(self.carrier.group_bits()) }
        } else {
            let subset = self.reader.small(subset_bits(prbs));
            if u16::from(subset) >= lte::rbg_size(prbs) {
                return Err(Illegal::Subset);
            }
            let shift = self.reader.flag();
            Allocation::Subset { subset, shift, map: self.reader.take(subset_map_bits(prbs)) }
        };
        if allocation.prbs(prbs)[0].is_empty() { Err(Illegal::Nothing) } else { Ok(allocation) }
    }

    /// Resource allocation type 2. Consumes all of its bits, even if they are invalid. `with_gap`: the first bit of a
    /// distributed allocation selects the gap.
    fn run(&mut self, distributed: bool, with_gap: bool) -> Result<Allocation, Illegal> {
        let prbs = self.carrier.prbs;
        let gap_bits = if distributed && with_gap { self.carrier.gap_bits() } else { 0 };
        let gap = if self.reader.take(gap_bits) == 1 { Gap::Second } else { Gap::First };
        let value = self.reader.take(riv_bits(prbs) - gap_bits);
        let (start, len) = run_of_riv(prbs, value).ok_or(Illegal::Run)?;
        Ok(if distributed {
            Allocation::Distributed { gap, start, len }
        } else {
            Allocation::Run { start, len }
        })
    }
}

/// A broadcast message has no new-data indicator; its bit selects the gap.
///
/// Source: TS 36.212 §5.3.3.1.3
fn gap_is_in_ndi(carrier: &Carrier, audience: Audience) -> bool {
    audience == Audience::Everyone && carrier.gap_bits() == 1
}

/// Source: TS 36.213 §7.1.6.3
fn check_virtual(carrier: &Carrier, gap: Gap, start: u16, len: u16) -> Result<(), Illegal> {
    if start + len <= gap.virtual_blocks(carrier.prbs) { Ok(()) } else { Err(Illegal::Run) }
}

/// Number of bits of the hopping field of format 0. They are the first bits of its allocation field.
///
/// Source: TS 36.213 §8.4 Table 8.4-1
const fn hopping_bits(uplink_prbs: u16) -> u32 {
    if uplink_prbs < 50 { 1 } else { 2 }
}

/// Source: TS 36.212 §5.3.3.1.6 and §5.3.3.1.7
fn power(format: Format, payload: Payload) -> Result<Message, Illegal> {
    let padding = if format == Format::F3 { payload.len() % 2 } else { 0 };
    if payload.bits() & ((1 << padding) - 1) != 0 {
        return Err(Illegal::Padding);
    }
    let commands = Payload::new(payload.bits() >> padding, payload.len() - padding).ok_or(Illegal::Size)?;
    Ok(Message::Power(Power { format, commands }))
}

/// The payload of a message. Truncates values to the width of their fields. A message from [`parse`] gives the same
/// payload again.
pub fn pack(carrier: &Carrier, extras: Extras, audience: Audience, message: &Message) -> Payload {
    let mut writer = Writer::default();
    let format = message.format();
    match message {
        Message::Uplink(uplink) => put_uplink(&mut writer, carrier, extras, uplink),
        Message::Downlink(downlink) => put_downlink(&mut writer, carrier, extras, audience, downlink),
        Message::Compact(compact) => put_compact(&mut writer, carrier, compact),
        Message::Order(order) => {
            put_carrier(&mut writer, extras, order.carrier);
            let bits = riv_bits(carrier.prbs);
            writer.put(0b10u8, 2).put((1u32 << bits) - 1, bits).put(order.preamble, 6).put(order.mask, 4);
        }
        Message::Power(power) => {
            let (high, low) = (power.commands.bits() >> 32, power.commands.bits() as u32);
            let len = u32::from(power.commands.len());
            writer.put(high as u32, len.saturating_sub(32)).put(low, len.min(32));
        }
    }
    writer.padded_to(carrier.size(format, extras))
}

/// Source: TS 36.212 §5.3.3.1.1
fn put_uplink(writer: &mut Writer, carrier: &Carrier, extras: Extras, uplink: &Uplink) {
    let prbs = carrier.uplink_prbs;
    let hopping_bits = if uplink.hopping.is_some() { hopping_bits(prbs) } else { 0 };
    put_carrier(writer, extras, uplink.carrier);
    writer
        .put(0u8, 1)
        .put(uplink.hopping.is_some(), 1)
        .put(uplink.hopping.unwrap_or(0), hopping_bits)
        .put(riv(prbs, uplink.start, uplink.len), riv_bits(prbs) - hopping_bits)
        .put(uplink.mcs, MCS_BITS)
        .put(uplink.ndi, 1)
        .put(uplink.tpc, TPC_BITS)
        .put(uplink.cyclic_shift, 3)
        .put(uplink.csi_request, extras.csi_request_bits())
        .put(uplink.srs_request.unwrap_or(false), extras.srs_request_bits())
        .put(0u8, carrier.uplink_type_bits());
}

fn put_downlink(
    writer: &mut Writer,
    carrier: &Carrier,
    extras: Extras,
    audience: Audience,
    downlink: &Downlink,
) {
    put_carrier(writer, extras, downlink.carrier);
    if downlink.format == Format::F1A {
        writer.put(1u8, 1);
    }
    let gap_in_ndi = downlink.format == Format::F1A && gap_is_in_ndi(carrier, audience);
    put_allocation(writer, carrier, downlink.allocation, !gap_in_ndi);
    match (downlink.spatial, downlink.second) {
        (Spatial::Layers { .. } | Spatial::Dual { .. }, second) => {
            let (flag, precoding) = match downlink.spatial {
                Spatial::Layers { swap, precoding } => (swap, precoding),
                Spatial::Dual { scrambling } => (scrambling, 0),
                _ => (false, 0),
            };
            writer.put(downlink.tpc, TPC_BITS).put(downlink.harq, HARQ_BITS).put(flag, 1);
            for block in [downlink.first, second.unwrap_or(Block::DISABLED)] {
                writer.put(block.mcs, MCS_BITS).put(block.ndi, 1).put(block.rv, 2);
            }
            writer.put(precoding, carrier.precoding_bits(downlink.format));
        }
        (spatial, _) => {
            let Block { mcs, ndi, rv } = downlink.first;
            let second_gap = matches!(downlink.allocation, Allocation::Distributed { gap: Gap::Second, .. });
            let is_distributed = matches!(downlink.allocation, Allocation::Distributed { .. });
            let ndi = if gap_in_ndi && is_distributed { second_gap } else { ndi };
            writer.put(mcs, MCS_BITS).put(downlink.harq, HARQ_BITS).put(ndi, 1).put(rv, 2);
            writer.put(downlink.tpc, TPC_BITS);
            match spatial {
                Spatial::Beam { tpmi, reported: flag } | Spatial::Shared { tpmi, offset: flag } => {
                    writer.put(tpmi, carrier.tpmi_bits()).put(flag, 1);
                }
                _ => {}
            }
            if downlink.format == Format::F1A {
                writer.put(downlink.srs_request.unwrap_or(false), extras.srs_request_bits());
            }
        }
    }
}

/// Source: TS 36.212 §5.3.3.1.4
fn put_compact(writer: &mut Writer, carrier: &Carrier, compact: &Compact) {
    if let Allocation::Distributed { gap, start, len } = compact.allocation {
        let step = compact_step(carrier.prbs);
        let steps = gap.virtual_blocks(carrier.prbs) / step;
        let value = riv(steps, start / step, len / step);
        writer.put(gap == Gap::Second, carrier.gap_bits()).put(value, riv_bits(carrier.compact_steps()));
    }
    writer.put(compact.i_tbs, MCS_BITS);
}

fn put_carrier(writer: &mut Writer, extras: Extras, indicator: Option<u8>) {
    writer.put(indicator.unwrap_or(0), extras.carrier_indicator_bits());
}

fn put_allocation(writer: &mut Writer, carrier: &Carrier, allocation: Allocation, with_gap: bool) {
    let prbs = carrier.prbs;
    match allocation {
        Allocation::Groups { map } => {
            writer.put(0u8, carrier.header_bits()).put(map, carrier.group_bits());
        }
        Allocation::Subset { subset, shift, map } => {
            writer.put(1u8, carrier.header_bits()).put(subset, subset_bits(prbs)).put(shift, 1);
            writer.put(map, subset_map_bits(prbs));
        }
        Allocation::Run { start, len } => {
            writer.put(0u8, 1).put(riv(prbs, start, len), riv_bits(prbs));
        }
        Allocation::Distributed { gap, start, len } => {
            let gap_bits = if with_gap { carrier.gap_bits() } else { 0 };
            writer.put(1u8, 1).put(gap == Gap::Second, gap_bits);
            writer.put(riv(prbs, start, len), riv_bits(prbs) - gap_bits);
        }
    }
}
