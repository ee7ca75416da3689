//! Reader for grants in log packets.

use std::collections::{BTreeMap, BTreeSet};

use airpace_core::tables::{Modulation, lte};
use airpace_core::{Bits, Bytes, Direction};
use airpace_radio::{CarrierId, DciFormat, Numerology, PrbSet};

use super::clock::FrameClock;
use super::dci::{self, CHECKSUM_BITS};
use super::origin::{Column, ORIGINS, OWN, Origin, Shape};
use super::{Block, Checksum, Grant, GrantReport, Oracle, Rat, Source, Sum};
use crate::layout::{Cell, MAX_FIELDS, Pick, Version};
use crate::log;
use crate::packet::{LogCode, LogPacket, Radio};

/// Delay from an uplink grant to its transmission in FDD (subframes).
///
/// Source: TS 36.213 §8.0
pub const UPLINK_DELAY: u64 = 4;

/// Maximum distance in subframes at which an unchanged new-data indicator of a HARQ process means the same block. At
/// longer distances, the log may lack grants in between.
///
/// Chosen: 80 ms, ten round trips of an LTE HARQ process (eight, and two as margin).
const SAME_BLOCK: u64 = 80;

/// Maximum carrier number.
///
/// Source: TS 36.212 §5.3.3.1 (a carrier indicator has three bits)
const LAST_CARRIER: u64 = 7;

/// Reads grants from log packets; see [`super`].
#[derive(Debug, Default)]
pub struct Grants {
    plans: BTreeMap<(LogCode, Version), Option<Plan>>,
    clocks: BTreeMap<(Radio, Rat), FrameClock>,
    cells: BTreeMap<(Radio, Rat), u64>,
    checksums: BTreeMap<(LogCode, Version), Checksum>,
    processes: BTreeMap<Process, Carried>,
    widths: BTreeMap<Place, u16>,
    has_256qam: BTreeMap<Place, bool>,
    /// The previous DCI, for detecting repetitions: several hypotheses of one subframe may contain the same DCI.
    last_dci: Option<(Place, u64, u64)>,
    troubles: Troubles,
    rows: Vec<Row>,
}

/// A carrier of a phone: modems number the carriers of LTE and of NR both from 0.
type Place = (Radio, Rat, CarrierId);

/// Counters of unreadable packets and DCIs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Troubles {
    /// Packets of a version without a layout, or without any of the fields.
    pub versions: u64,
    /// Packets whose layout does not fit.
    pub misfits: u64,
    /// DCIs that the modem accepted and that could not be read.
    pub dcis: u64,
    /// Grants with a carrier number that no phone has: their packet was misread.
    pub carriers: u64,
}

/// A HARQ process in the reports of one source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Process {
    place: Place,
    direction: Direction,
    source: Source,
    harq: u8,
    codeword: usize,
}

/// The last block of a HARQ process.
#[derive(Clone, Copy, Debug)]
struct Carried {
    subframe: u64,
    ndi: bool,
    bits: Option<Bits>,
}

/// Fields to read from one version of a packet.
#[derive(Debug)]
struct Plan {
    origin: &'static Origin,
    pick: Pick,
    columns: Vec<Column>,
}

/// A row of a packet: one number per column.
#[derive(Clone, Copy, Debug)]
struct Row([Option<u64>; MAX_FIELDS]);

impl Plan {
    /// Creates a plan with those fields of the origin that exist in the version's layout.
    fn new(origin: &'static Origin, version: Version) -> Option<Plan> {
        let layout = log::code(LogCode(origin.code))?.layout(version)?;
        let (mut columns, mut paths) = (vec![], vec![]);
        for &(column, path) in origin.columns {
            if !columns.contains(&column) && Pick::new(layout, &[path]).is_ok() {
                columns.push(column);
                paths.push(path);
            }
        }
        let pick = Pick::new(layout, &paths).ok()?;
        Some(Plan { origin, pick, columns })
    }

    fn has(&self, column: Column) -> bool {
        self.columns.contains(&column)
    }

    fn get(&self, row: &Row, column: Column) -> Option<u64> {
        let at = self.columns.iter().position(|own| *own == column)?;
        row.0[at]
    }
}

impl Grants {
    /// A reader in its initial state.
    pub fn new() -> Grants {
        Grants::default()
    }

    /// The log packets that the reader uses, to be requested from a modem.
    pub fn codes() -> BTreeSet<LogCode> {
        ORIGINS.iter().map(|origin| LogCode(origin.code)).collect()
    }

    /// Counters of unreadable packets so far.
    pub fn troubles(&self) -> Troubles {
        self.troubles
    }

    /// Whether sizes in a version of a packet include the block's checksum, as far as learned from its blocks.
    pub fn checksum(&self, code: LogCode, version: Version) -> Checksum {
        self.checksums.get(&(code, version)).copied().unwrap_or_default()
    }

    /// Processes a packet. Calls `each` for the reports of the phone's own grants in it, in the order of the packet.
    /// Packets with other codes are ignored.
    pub fn push(&mut self, packet: &LogPacket<'_>, mut each: impl FnMut(GrantReport)) {
        let Ok(at) = ORIGINS.binary_search_by_key(&packet.code.0, |origin| origin.code) else { return };
        let Some(Ok(version)) = log::code(packet.code).map(|code| code.version(packet.payload)) else {
            self.troubles.misfits += 1;
            return;
        };
        let key = (packet.code, version);
        let plan = self.plans.entry(key).or_insert_with(|| Plan::new(&ORIGINS[at], version));
        let Some(plan) = plan.take() else {
            self.troubles.versions += u64::from(ORIGINS[at].shape != Shape::Cell);
            return;
        };
        let mut rows = std::mem::take(&mut self.rows);
        rows.clear();
        let result = plan.pick.visit(packet.payload, |cells| rows.push(Row::of(&plan, cells)));
        self.troubles.misfits += u64::from(result.is_err());
        match plan.origin.shape {
            Shape::Sum => rows
                .iter()
                .filter_map(|row| sum(packet, &plan, row))
                .for_each(|sum| each(GrantReport::Sum(sum))),
            Shape::Cell => rows.iter().for_each(|row| self.of_cell(packet, &plan, row)),
            shape => {
                let mut before: Option<Grant> = None;
                for row in &rows {
                    let grant = match shape {
                        Shape::Dci => self.of_dci(packet, &plan, row),
                        Shape::Demapped => self.of_demapper(packet, &plan, row),
                        _ => self.of_block(packet, version, &plan, row),
                    };
                    let Some(grant) = grant else { continue };
                    match &mut before {
                        Some(first) if shape == Shape::Block && joins(first, &grant) => {
                            let empty = usize::from(first.blocks[0].is_some());
                            first.blocks[empty] = grant.blocks[1].or(grant.blocks[0]);
                        }
                        _ => {
                            if let Some(whole) = before.replace(grant) {
                                each(GrantReport::Grant(self.followed(whole)));
                            }
                        }
                    }
                }
                if let Some(whole) = before {
                    each(GrantReport::Grant(self.followed(whole)));
                }
            }
        }
        self.rows = rows;
        self.plans.insert(key, Some(plan));
    }

    /// Returns a grant with the fields common to all rows: radio, carrier and time. Returns `None` if the row is not
    /// addressed to the phone.
    fn grant(&mut self, packet: &LogPacket<'_>, plan: &Plan, row: &Row) -> Option<Grant> {
        if plan.get(row, Column::Rnti).is_some_and(|rnti| !OWN.contains(&rnti)) {
            return None;
        }
        let carrier = plan.get(row, Column::Carrier).unwrap_or(0);
        if carrier > LAST_CARRIER {
            self.troubles.carriers += 1;
            return None;
        }
        let rat = plan.origin.rat;
        let carrier = CarrierId(carrier as u8);
        let clock = self.clocks.entry((packet.radio, rat)).or_default();
        if let Some(cell) = plan.get(row, Column::Cell)
            && self.cells.insert((packet.radio, rat), cell).is_some_and(|before| before != cell)
        {
            clock.new_cell();
        }
        let mu = plan.get(row, Column::Numerology).unwrap_or(0).min(4) as u8;
        let numerology = Numerology::new(mu).unwrap_or_default();
        let (within, slot) = match plan.get(row, Column::Both) {
            Some(both) => (both, 0),
            None => {
                let (frame, slots) = (plan.get(row, Column::Frame)?, plan.get(row, Column::Subframe)?);
                (10 * frame + (slots >> mu), slots & ((1 << mu) - 1))
            }
        };
        let within = within + plan.get(row, Column::Offset).unwrap_or(0);
        let is_prompt = plan.origin.source != Source::Mac;
        let placed = clock.place(packet.stamp, (within % super::clock::CYCLE) as u16, is_prompt);
        Some(Grant {
            radio: packet.radio,
            rat,
            direction: plan.origin.direction,
            carrier,
            source: plan.origin.source,
            code: packet.code,
            stamp: packet.stamp,
            time: placed.time,
            subframe: placed.subframe,
            numerology,
            slot: slot as u8,
            carrier_prbs: self.widths.get(&(packet.radio, rat, carrier)).copied(),
            prbs: 0,
            prb_set: None,
            layers: 1,
            harq: plan.get(row, Column::Harq).map(|harq| harq as u8),
            format: None,
            blocks: [None; 2],
        })
    }

    /// Processes a row that describes the serving cell, which is carrier 0.
    fn of_cell(&mut self, packet: &LogPacket<'_>, plan: &Plan, row: &Row) {
        let prbs = plan.get(row, Column::CarrierPrbs).and_then(|prbs| u16::try_from(prbs).ok());
        if let Some(prbs) = prbs.filter(|prbs| lte::BANDWIDTH_PRBS.contains(prbs)) {
            self.widths.insert((packet.radio, plan.origin.rat, CarrierId(0)), prbs);
        }
    }

    /// The grant in a row that is a transport block.
    fn of_block(
        &mut self,
        packet: &LogPacket<'_>,
        version: Version,
        plan: &Plan,
        row: &Row,
    ) -> Option<Grant> {
        let mut grant = self.grant(packet, plan, row)?;
        let get = |column| plan.get(row, column);
        // A PRB number that no carrier has is treated as absent.
        let prb = |column| get(column).and_then(|prb| u16::try_from(prb).ok());
        grant.prbs = prb(Column::Prbs).unwrap_or(0);
        let first = prb(Column::FirstPrb);
        grant.prb_set = first.and_then(|first| PrbSet::checked_run(first, grant.prbs));
        grant.layers = get(Column::Layers).unwrap_or(1).clamp(1, 8) as u8;
        let modulation = get(Column::ModulationBits)
            .and_then(modulation_of_bits)
            .or_else(|| get(Column::ModulationUplink).and_then(|order| modulation_of_bits(2 * order)));
        let bytes = get(Column::Bytes)?;
        let oracle = Oracle {
            direction: grant.direction,
            mcs: get(Column::Mcs).map(|mcs| mcs as u8),
            modulation,
            prbs: grant.prbs,
            is_common: false,
        };
        let bits = match plan.origin.rat {
            Rat::Lte if plan.has(Column::Mcs) => {
                let checksum = self.checksums.entry((packet.code, version)).or_default();
                if *checksum == Checksum::Unknown {
                    *checksum = oracle.learn(bytes);
                }
                checksum.bits(bytes)
            }
            _ => Bits(8 * bytes),
        };
        let by_size = || plan.has(Column::Prbs).then(|| oracle.mcs_of(bits)).flatten();
        let block = Block {
            bits: Some(bits),
            mcs: oracle.mcs.or_else(by_size),
            modulation,
            rv: get(Column::Rv).map(|rv| rv as u8),
            ndi: get(Column::Ndi).map(|ndi| ndi == 1),
            crc: get(Column::Crc).map(|crc| crc == 1),
            again: get(Column::Again).or(get(Column::IsAgain)).is_some_and(|times| times > 0),
        };
        let at = usize::from(get(Column::Index) == Some(1));
        // A size of zero: the subframe carried only control information.
        if bits > Bits::ZERO {
            grant.blocks[at] = Some(block);
        }
        Some(grant)
    }

    /// The grant in a row that is a subframe with up to two blocks.
    fn of_demapper(&mut self, packet: &LogPacket<'_>, plan: &Plan, row: &Row) -> Option<Grant> {
        let mut grant = self.grant(packet, plan, row)?;
        let get = |column| plan.get(row, column);
        let words = [get(Column::PrbsLow)?, get(Column::PrbsHigh).unwrap_or(0)];
        let set = (0..128)
            .filter(|prb| words[usize::from(prb / 64)] >> (prb % 64) & 1 == 1)
            .fold(PrbSet::EMPTY, |set, prb| set.union(PrbSet::run(prb, 1)));
        grant.prbs = set.len();
        grant.prb_set = Some(set);
        grant.layers = get(Column::Layers).unwrap_or(0) as u8 + 1;
        let sizes =
            [(Column::Bits, Column::ModulationRank), (Column::BitsSecond, Column::ModulationRankSecond)];
        for (block, (bits, rank)) in grant.blocks.iter_mut().zip(sizes) {
            let Some(bits) = get(bits).filter(|bits| *bits > 0).map(Bits) else { continue };
            let modulation = get(rank).and_then(|rank| modulation_of_bits(2 * rank + 2));
            let oracle = Oracle {
                direction: Direction::Downlink,
                mcs: None,
                modulation,
                prbs: grant.prbs,
                is_common: false,
            };
            let mcs = oracle.mcs_of(bits);
            *block = Some(Block {
                bits: Some(bits),
                mcs,
                modulation,
                rv: None,
                ndi: None,
                crc: None,
                again: false,
            });
        }
        Some(grant)
    }

    /// The grant in a row that is a DCI, if the modem accepted it.
    fn of_dci(&mut self, packet: &LogPacket<'_>, plan: &Plan, row: &Row) -> Option<Grant> {
        let get = |column| plan.get(row, column);
        // Source: mobileinsight-core @4330fa9 (1 to 6 are successes)
        if !(1..=6).contains(&get(Column::Verdict)?) {
            return None;
        }
        let mut grant = self.grant(packet, plan, row)?;
        let prbs = u16::try_from(get(Column::Width)?).ok()?;
        let key = grant.place();
        self.widths.insert(key, prbs);
        grant.carrier_prbs = Some(prbs);
        let word = get(Column::Payload)?;
        // Skip a DCI that an earlier hypothesis of the same subframe contains.
        let seen = Some((key, grant.subframe, word));
        if std::mem::replace(&mut self.last_dci, seen) == seen {
            return None;
        }
        let shape = dci::Shape {
            prbs,
            is_tdd: get(Column::Duplex) == Some(1),
            names_carrier: get(Column::NamesCarrier) == Some(1),
            two_csi_bits: get(Column::TwoCsiBits) == Some(1),
            asks_sounding: get(Column::AsksSounding) == Some(1),
            ports: match get(Column::Ports) {
                Some(2) => 4,
                Some(_) => 2,
                None => 0,
            },
        };
        let bits = (get(Column::Length)? as u8).checked_sub(CHECKSUM_BITS)?;
        let format = format_of(get(Column::Format)?);
        let Some(dci) = format.and_then(|format| dci::Dci::read(format, word, bits, &shape)) else {
            self.troubles.dcis += 1;
            return None;
        };
        grant.direction = dci.direction();
        grant.format = Some(dci.format);
        grant.carrier = CarrierId(dci.carrier.unwrap_or(grant.carrier.0));
        grant.prbs = dci.prbs;
        grant.prb_set = dci.prb_set;
        grant.harq = dci.harq;
        grant.layers = dci.blocks.iter().flatten().map(|block| block.layers).sum();
        if grant.direction == Direction::Uplink {
            grant.subframe += UPLINK_DELAY;
            grant.time = crate::Stamp::from_nanos(grant.time.nanos() + UPLINK_DELAY * 1_000_000);
        }
        // The fallback format uses the MCS table of 64QAM, independent of the configuration.
        // Source: TS 36.213 §7.1.7
        let is_fallback = dci.format == DciFormat::F1A;
        let has_256qam = get(Column::Has256Qam) == Some(1) || self.has_256qam.get(&key) == Some(&true);
        grant.blocks = dci.blocks.map(|word| {
            let word = word?;
            let oracle = Oracle {
                direction: grant.direction,
                mcs: Some(word.mcs),
                modulation: None,
                prbs: dci.prbs,
                is_common: false,
            };
            let is_uplink = grant.direction == Direction::Uplink;
            Some(Block {
                bits: oracle.bits(has_256qam && !is_fallback, word.layers),
                mcs: Some(word.mcs),
                modulation: None,
                rv: (!is_uplink).then_some(word.rv),
                ndi: Some(word.ndi),
                crc: None,
                again: is_uplink && word.mcs > 28,
            })
        });
        Some(grant)
    }

    /// Completes the grant from its HARQ process: whether blocks are retransmissions, and the size of blocks without a
    /// size.
    ///
    /// Source: TS 36.321 §5.3.2.2 and §5.4.2.2; TS 36.213 §7.1.7.2
    fn followed(&mut self, mut grant: Grant) -> Grant {
        self.learn_256qam(&grant);
        // The subframe determines the uplink's process.
        // Source: TS 36.213 §8 (eight processes in turn, where up- and downlink do not take turns)
        let harq = grant.harq.unwrap_or((grant.subframe % 8) as u8);
        let place = grant.place();
        for (codeword, block) in grant.blocks.iter_mut().enumerate() {
            let Some(block) = block else { continue };
            let Some(ndi) = block.ndi else { continue };
            let process = Process { place, direction: grant.direction, source: grant.source, harq, codeword };
            let before = self.processes.get(&process).filter(|before| {
                grant.subframe.abs_diff(before.subframe) <= SAME_BLOCK && before.subframe != grant.subframe
            });
            let is_size = |before: &Carried| before.bits == block.bits || block.bits.is_none();
            let same = before.filter(|before| before.ndi == ndi && is_size(before));
            let is_reserved = block.mcs.is_some_and(|mcs| mcs > 28);
            block.again |= is_reserved || same.is_some();
            if block.bits.is_none() {
                block.bits = same.or(before).and_then(|before| before.bits);
            }
            let carried = Carried { subframe: grant.subframe, ndi, bits: block.bits };
            self.processes.insert(process, carried);
        }
        grant
    }

    /// A block size that exists only in the MCS table with 256QAM, or only in the other table, shows which table is in
    /// use.
    fn learn_256qam(&mut self, grant: &Grant) {
        if grant.direction != Direction::Downlink || grant.source != Source::SharedChannel {
            return;
        }
        for block in grant.blocks.iter().flatten() {
            let (Some(mcs), Some(bits)) = (block.mcs, block.bits) else { continue };
            let is_fallback = grant.layers > 2 && grant.blocks[1].is_none();
            let has = |table: lte::McsTable| table.tbs(mcs, grant.prbs, 1) == Some(bits);
            match (has(lte::McsTable::Qam64), has(lte::McsTable::Qam256)) {
                (true, false) if !is_fallback => {
                    self.has_256qam.insert(grant.place(), false);
                }
                (false, true) => {
                    self.has_256qam.insert(grant.place(), true);
                }
                _ => {}
            }
        }
    }
}

impl Row {
    fn of(plan: &Plan, cells: &[Cell<'_>]) -> Row {
        let mut row = [None; MAX_FIELDS];
        for ((number, cell), column) in row.iter_mut().zip(cells).zip(&plan.columns) {
            *number = match (cell, column) {
                (Cell::Unsigned(number), _) => Some(*number),
                (Cell::Real(megahertz), Column::CarrierPrbs | Column::Width) => Some(prbs_of(*megahertz)),
                (Cell::Bytes(bytes), Column::Payload) => {
                    bytes.first_chunk().map(|word| u64::from_le_bytes(*word))
                }
                _ => None,
            };
        }
        Row(row)
    }
}

/// PRBs of a carrier: five per megahertz, but six for the narrowest carrier of 1.4 MHz.
///
/// Source: TS 36.101 §5.6 Table 5.6-1
fn prbs_of(megahertz: f64) -> u64 {
    const NARROWEST: std::ops::Range<f64> = 1.0..2.0;
    if NARROWEST.contains(&megahertz) { 6 } else { (megahertz * 5.0 + 0.5) as u64 }
}

/// Whether a row is the second block of the previous grant.
fn joins(first: &Grant, second: &Grant) -> bool {
    let is_second = first.blocks.iter().flatten().count() == 1;
    let key = |grant: &Grant| (grant.subframe, grant.slot, grant.carrier, grant.harq, grant.prbs);
    is_second && first.harq.is_some() && first.source == Source::SharedChannel && key(first) == key(second)
}

fn sum(packet: &LogPacket<'_>, plan: &Plan, row: &Row) -> Option<Sum> {
    let span_ms = plan.get(row, Column::Span)? as u32;
    (span_ms > 0).then_some(Sum {
        radio: packet.radio,
        rat: plan.origin.rat,
        direction: plan.origin.direction,
        code: packet.code,
        stamp: packet.stamp,
        span_ms,
        bytes: Bytes(plan.get(row, Column::Bytes)?),
    })
}

fn modulation_of_bits(bits: u64) -> Option<Modulation> {
    match bits {
        2 => Some(Modulation::Qpsk),
        4 => Some(Modulation::Qam16),
        6 => Some(Modulation::Qam64),
        8 => Some(Modulation::Qam256),
        _ => None,
    }
}

/// Source: mobileinsight-core @4330fa9
fn format_of(number: u64) -> Option<DciFormat> {
    use DciFormat::*;
    [F0, F1, F1A, F1B, F1C, F1D, F2, F2A].get(usize::try_from(number).ok()?).copied()
}
