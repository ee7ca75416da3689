//! Log packets about carriers of NR: uplink transmissions of each slot (0xB883), and counters of downlink blocks (0xB888).
//!
//! No public layout contains the single blocks of the downlink with their sizes, so the packets have only the sums of
//! the downlink.

use std::collections::BTreeMap;
use std::time::Duration;

use airpace_core::{Bits, Bytes, Direction, Time};
use airpace_radio::{CarrierId, Dci, RadioReport};

use super::{ComposeOptions, Composed, carrier_number, written};
use crate::layout::{Fill, Version};
use crate::packet::LogCode;

pub(super) const B883: LogCode = LogCode(0xB883);
pub(super) const B888: LogCode = LogCode(0xB888);

/// Interval between two packets with counters.
///
/// Chosen: the interval of the sums of LTE's MAC layer in 0xB067.
const COUNTERS_EVERY: Duration = Duration::from_millis(100);

/// Maximum number of carriers of NR, because readers accept no higher carrier numbers.
///
/// Source: TS 36.212 §5.3.3.1 (a carrier indicator has three bits)
const MAX_CARRIERS: usize = 8;

/// Number of frames after which frame numbers wrap, and slots of 1 ms in a frame.
///
/// Source: TS 38.211 §4.3.1
const FRAMES: u64 = 1_024;
const SUBFRAMES_PER_FRAME: u64 = 10;

/// Whether a report is about a carrier of NR: only such reports contain the symbols of the slot.
pub(super) fn is_nr(report: &RadioReport) -> bool {
    report.symbols.is_some() || report.dcis.iter().any(|dci| dci.format.is_nr())
}

/// Composes the packets about carriers of NR.
#[derive(Clone, Debug, Default)]
pub(super) struct Nr {
    /// Carriers in the order of their first report, from which their numbers in packets follow.
    carriers: Vec<CarrierId>,
    /// Block in each HARQ process; the key is direction, carrier and process.
    processes: BTreeMap<(Direction, usize, Option<u8>), Bits>,
    /// Uplink transmissions that no packet contains yet, and the time of the first one.
    sent: Vec<Fill>,
    since: Time,
    /// Counters since the last packet, by carrier, and the time of the next packet; `None` before the first downlink
    /// block after a packet.
    counters: BTreeMap<usize, Counters>,
    due: Option<Time>,
}

/// Downlink blocks of a carrier since the last packet.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    slots: u64,
    passed: Sum,
    failed: Sum,
    again: Sum,
}

/// Number and size of blocks.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    blocks: u64,
    bytes: Bytes,
}

impl Sum {
    fn add(&mut self, bytes: Bytes) {
        self.blocks += 1;
        self.bytes += bytes;
    }
}

impl Nr {
    /// Processes a report of a slot. The modem knows its contents at `now`.
    pub(super) fn push(&mut self, report: &RadioReport, now: Time) {
        let Some(carrier) = carrier_number(&mut self.carriers, report.carrier, MAX_CARRIERS) else { return };
        self.counters.entry(carrier).or_default().slots += 1;
        for dci in &report.dcis {
            let bits = self.block(carrier, dci);
            match dci.direction {
                Direction::Downlink => self.received(report, carrier, dci, bits, now),
                Direction::Uplink => {
                    if self.sent.is_empty() {
                        self.since = now;
                    }
                    self.sent.push(transmission(report, carrier, dci, bits));
                }
            }
        }
    }

    /// Packets that the modem sends up to `now` because they have waited for their time.
    pub(super) fn due(&mut self, now: Time, options: &ComposeOptions) -> Vec<Composed> {
        let mut composed = vec![];
        let batch_due = self.since + options.batch_for;
        if !self.sent.is_empty() && batch_due <= now {
            composed.push(self.transmissions(batch_due));
        }
        if let Some(due) = self.due.filter(|due| *due <= now) {
            composed.push(self.counters(due));
        }
        composed
    }

    /// The packet of uplink transmissions, if it is full.
    pub(super) fn full(&mut self, now: Time, options: &ComposeOptions) -> Option<Composed> {
        (self.sent.len() >= options.batch).then(|| self.transmissions(now))
    }

    /// Size of the block of a grant. A retransmission has the size of its first transmission.
    fn block(&mut self, carrier: usize, dci: &Dci) -> Bits {
        let process = (dci.direction, carrier, dci.harq);
        let before = self.processes.get(&process).copied();
        let bits = before.filter(|_| dci.is_retransmission()).unwrap_or(dci.bits());
        self.processes.insert(process, bits);
        bits
    }

    fn received(&mut self, report: &RadioReport, carrier: usize, dci: &Dci, bits: Bits, now: Time) {
        self.due.get_or_insert(now + COUNTERS_EVERY);
        let is_received = report.own.as_ref().is_some_and(|own| own.decoded == Some(true));
        let counters = self.counters.entry(carrier).or_default();
        if is_received { &mut counters.passed } else { &mut counters.failed }.add(bits.bytes());
        if dci.is_retransmission() {
            counters.again.add(bits.bytes());
        }
    }

    /// 0xB883: uplink transmissions.
    fn transmissions(&mut self, at: Time) -> Composed {
        let fill = Fill::new().parts("records", std::mem::take(&mut self.sent));
        Composed { at, code: B883, payload: written(B883, Version::Pair(2, 8), fill) }
    }

    /// 0xB888: counters of downlink blocks since the last packet. No report contains padding, ACKs that were received as
    /// NACKs, or blocks that HARQ gave up: these fields are 0.
    fn counters(&mut self, at: Time) -> Composed {
        self.due = None;
        let records = std::mem::take(&mut self.counters).into_iter().map(|(carrier, own)| {
            let all = own.passed.bytes + own.failed.bytes;
            Fill::new()
                .number("carrier_id", carrier as u64)
                .number("num_slots_elapsed", own.slots)
                .number("num_pdsch_decode", own.passed.blocks + own.failed.blocks)
                .number("num_crc_pass_tb", own.passed.blocks)
                .number("num_crc_fail_tb", own.failed.blocks)
                .number("num_retx", own.again.blocks)
                .number("crc_pass_tb_bytes", own.passed.bytes.0)
                .number("crc_fail_tb_bytes", own.failed.bytes.0)
                .number("tb_bytes", all.0)
                .number("retx_bytes", own.again.bytes.0)
        });
        let fill = Fill::new().parts("records", records.collect());
        Composed { at, code: B888, payload: written(B888, Version::Pair(2, 2), fill) }
    }
}

/// A record of 0xB883: the uplink transmission of a grant, K2 slots after the report's slot.
///
/// The fields `ra_type` and `code_rate` are 0: the meaning of `ra_type` is not public, and a report does not contain the
/// MCS table from which the code rate follows. A report does not contain the first symbol either. The layout has no
/// bitmap of resource blocks, so scattered resource blocks appear as adjacent ones.
fn transmission(report: &RadioReport, carrier: usize, dci: &Dci, bits: Bits) -> Fill {
    let numerology = report.slot.numerology;
    let slots_per_frame = SUBFRAMES_PER_FRAME * numerology.slots_per_subframe();
    let slot = report.slot.index + u64::from(dci.offset_slots.unwrap_or(0));
    let first_prb = dci.prbs.runs().next().map_or(0, |(first, _)| first);
    let pusch = Fill::new()
        .number("num_symbols", dci.symbols.unwrap_or(0))
        // The field has four bits. An uplink with 32 processes, from release 18 on, does not fit.
        .number("harq_id", dci.harq.unwrap_or(0) & 0xF)
        .number("mcs", dci.mcs[0].unwrap_or(0))
        .number("rb_start", first_prb)
        .number("num_rbs", dci.prbs.len())
        .number("tb_size_bytes", bits.bytes().0)
        .number("rv", dci.rv[0].unwrap_or(0))
        .number("tx_type", dci.is_retransmission());
    let of_carrier = Fill::new().number("carrier_id", carrier as u64).parts("pusch", vec![pusch]);
    Fill::new()
        .number("slot", slot % slots_per_frame)
        .number("numerology", numerology.mu())
        .number("frame", slot / slots_per_frame % FRAMES)
        .parts("carriers", vec![of_carrier])
}
