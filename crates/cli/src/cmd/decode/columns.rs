//! What is printed, in columns: a row per message, subframe or answer, with the names of the JSON.

use std::sync::Arc;

use airpace_phy::answers::Answered;
use airpace_phy::decoder::Reading;
use airpace_phy::found::Found;
use airpace_radio::Rnti;
use arrow_array::builder::{
    BooleanBuilder, Float32Builder, Float64Builder, Int64Builder, ListBuilder, StringBuilder, UInt8Builder,
    UInt16Builder, UInt64Builder,
};

use super::answer;
use super::message::{Name, blocks, direction_of, harq, mcs_table, ranges};
use super::recording::Gain;
use super::subframes::Account;
use crate::parquet_file::{Column, Rows};

/// Where something was heard.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// In which recording, from 0.
    pub carrier: u8,
    /// When its subframe began, in milliseconds from the recording's first sample.
    pub time_ms: f64,
}

/// Messages.
#[derive(Default)]
pub struct MessageRows {
    when: When,
    cfi: UInt8Builder,
    rnti: UInt16Builder,
    rnti_type: StringBuilder,
    dir: StringBuilder,
    format: StringBuilder,
    format_known: BooleanBuilder,
    l: UInt8Builder,
    ncce: UInt16Builder,
    bits: StringBuilder,
    alloc: StringBuilder,
    /// Of each slot: first and last PRB of each range, one after the other.
    prb: [ListBuilder<UInt16Builder>; 2],
    n_prb: UInt16Builder,
    mcs: ListBuilder<UInt8Builder>,
    rv: ListBuilder<UInt8Builder>,
    ndi: ListBuilder<UInt8Builder>,
    modulation: ListBuilder<StringBuilder>,
    tbs: ListBuilder<Int64Builder>,
    mcs_table: StringBuilder,
    mcs_table_known: BooleanBuilder,
    harq: UInt8Builder,
    tpc: UInt8Builder,
    snr_db: Float32Builder,
    confidence: Float32Builder,
}

impl MessageRows {
    /// Adds a message.
    pub fn add(&mut self, at: At, found: &Found, name: Name) {
        self.when.add(at, (found.pci, found.index, found.sfn, found.subframe));
        self.cfi.append_value(found.cfi);
        self.rnti.append_value(name.rnti.0);
        self.rnti_type.append_value(found.kind.name());
        self.dir.append_value(direction_of(found));
        self.format.append_value(found.format());
        self.format_known.append_value(found.is_format_known);
        self.l.append_value(found.place.cces);
        self.ncce.append_option((!name.is_pseudonym).then_some(found.place.cce));
        self.bits.append_value(found.payload.to_string());
        self.alloc.append_option(found.allocation());
        for (slot, column) in self.prb.iter_mut().enumerate() {
            for range in found.prbs.iter().flat_map(|slots| ranges(slots[slot])) {
                column.values().append_slice(&range);
            }
            column.append(found.prbs.is_some());
        }
        self.n_prb.append_option(found.prbs.map(|[first, _]| first.len()));
        for block in blocks(found) {
            self.mcs.values().append_value(block.mcs);
            self.rv.values().append_option(block.rv);
            self.ndi.values().append_option(block.ndi.map(u8::from));
            self.modulation.values().append_option(block.modulation);
            self.tbs.values().append_option(block.tbs_bits.map(|bits| bits as i64));
        }
        self.mcs.append(true);
        self.rv.append(true);
        self.ndi.append(true);
        self.modulation.append(true);
        self.tbs.append(true);
        let table = mcs_table(found);
        self.mcs_table.append_option(table);
        self.mcs_table_known.append_option(table.map(|_| found.is_table_known));
        self.harq.append_option(harq(found));
        self.tpc.append_option(found.power_command());
        self.snr_db.append_value(found.snr_db);
        self.confidence.append_value(found.confidence);
    }
}

impl Rows for MessageRows {
    fn finish(&mut self) -> Vec<Column> {
        let [first, second] = &mut self.prb;
        let mut columns = self.when.finish();
        columns.extend::<[Column; 24]>([
            ("cfi", Arc::new(self.cfi.finish()), false),
            ("rnti", Arc::new(self.rnti.finish()), false),
            ("rnti_type", Arc::new(self.rnti_type.finish()), false),
            ("dir", Arc::new(self.dir.finish()), false),
            ("format", Arc::new(self.format.finish()), false),
            ("format_known", Arc::new(self.format_known.finish()), false),
            ("l", Arc::new(self.l.finish()), false),
            ("ncce", Arc::new(self.ncce.finish()), true),
            ("bits", Arc::new(self.bits.finish()), false),
            ("alloc", Arc::new(self.alloc.finish()), true),
            ("prb_slot0", Arc::new(first.finish()), true),
            ("prb_slot1", Arc::new(second.finish()), true),
            ("n_prb", Arc::new(self.n_prb.finish()), true),
            ("mcs", Arc::new(self.mcs.finish()), false),
            ("rv", Arc::new(self.rv.finish()), false),
            ("ndi", Arc::new(self.ndi.finish()), false),
            ("modulation", Arc::new(self.modulation.finish()), false),
            ("tbs", Arc::new(self.tbs.finish()), false),
            ("mcs_table", Arc::new(self.mcs_table.finish()), true),
            ("mcs_table_known", Arc::new(self.mcs_table_known.finish()), true),
            ("harq", Arc::new(self.harq.finish()), true),
            ("tpc", Arc::new(self.tpc.finish()), true),
            ("snr_db", Arc::new(self.snr_db.finish()), false),
            ("confidence", Arc::new(self.confidence.finish()), false),
        ]);
        columns
    }
}

/// Messages of who is followed, and what they mean to it: nothing, where they are no grants.
#[derive(Default)]
pub struct OwnRows {
    messages: MessageRows,
    new_bits: UInt64Builder,
    retransmission: ListBuilder<BooleanBuilder>,
    again: UInt8Builder,
    unknown: UInt8Builder,
    throughput_bps: UInt64Builder,
}

impl OwnRows {
    /// Adds a message.
    pub fn add(&mut self, at: At, found: &Found, name: Name, gain: Option<&Gain>) {
        self.messages.add(at, found, name);
        self.new_bits.append_option(gain.map(|gain| gain.new_bits));
        for again in gain.iter().flat_map(|gain| &gain.retransmission) {
            self.retransmission.values().append_value(*again);
        }
        self.retransmission.append(gain.is_some());
        self.again.append_option(gain.map(|gain| gain.again));
        self.unknown.append_option(gain.map(|gain| gain.unknown));
        self.throughput_bps.append_option(gain.map(|gain| gain.throughput_bps));
    }
}

impl Rows for OwnRows {
    fn finish(&mut self) -> Vec<Column> {
        let mut columns = self.messages.finish();
        columns.extend::<[Column; 5]>([
            ("own_new_bits", Arc::new(self.new_bits.finish()), true),
            ("own_retransmission", Arc::new(self.retransmission.finish()), true),
            ("own_again", Arc::new(self.again.finish()), true),
            ("own_unknown", Arc::new(self.unknown.finish()), true),
            ("own_throughput_bps", Arc::new(self.throughput_bps.finish()), true),
        ]);
        columns
    }
}

/// Answers to uplink blocks.
#[derive(Default)]
pub struct AnswerRows {
    when: When,
    rnti: UInt16Builder,
    phich: StringBuilder,
    granted: UInt64Builder,
    attempt: UInt8Builder,
    snr_db: Float32Builder,
    confidence: Float32Builder,
}

impl AnswerRows {
    /// Adds an answer; `rnti` is how the user is named.
    pub fn add(&mut self, at: At, reading: &Reading, answer: &Answered, rnti: Rnti) {
        self.when.of_reading(at, reading);
        self.rnti.append_value(rnti.0);
        self.phich.append_value(answer::word(answer));
        self.granted.append_value(answer.granted);
        self.attempt.append_value(answer.attempt);
        self.snr_db.append_value(reading.snr_db);
        self.confidence.append_value(answer.confidence);
    }
}

impl Rows for AnswerRows {
    fn finish(&mut self) -> Vec<Column> {
        let mut columns = self.when.finish();
        columns.extend::<[Column; 6]>([
            ("rnti", Arc::new(self.rnti.finish()), false),
            ("phich", Arc::new(self.phich.finish()), false),
            ("granted", Arc::new(self.granted.finish()), false),
            ("attempt", Arc::new(self.attempt.finish()), false),
            ("snr_db", Arc::new(self.snr_db.finish()), false),
            ("confidence", Arc::new(self.confidence.finish()), false),
        ]);
        columns
    }
}

/// Subframes.
#[derive(Default)]
pub struct SubframeRows {
    when: When,
    cfi: UInt8Builder,
    cces: UInt16Builder,
    cces_used: UInt16Builder,
    cces_unread: UInt16Builder,
    messages: UInt16Builder,
    downlink: UInt16Builder,
    uplink: UInt16Builder,
    /// The format of every message.
    formats: ListBuilder<StringBuilder>,
    prbs: UInt16Builder,
    prbs_used: UInt16Builder,
    prbs_idle: UInt16Builder,
    users: UInt16Builder,
    snr_db: Float32Builder,
}

impl SubframeRows {
    /// Adds a whole subframe.
    pub fn add(&mut self, at: At, reading: &Reading) {
        let account = Account::of(reading);
        self.when.of_reading(at, reading);
        self.cfi.append_value(reading.cfi);
        self.cces.append_value(reading.cces as u16);
        self.cces_used.append_value(account.cces_used);
        self.cces_unread.append_value(account.cces_unread);
        self.messages.append_value(reading.found.len() as u16);
        self.downlink.append_value(account.downlink);
        self.uplink.append_value(account.uplink);
        for found in &reading.found {
            self.formats.values().append_value(found.format());
        }
        self.formats.append(true);
        self.prbs.append_value(reading.prbs);
        self.prbs_used.append_value(account.prbs_used);
        self.prbs_idle.append_option(account.prbs_idle);
        self.users.append_value(account.users);
        self.snr_db.append_value(reading.snr_db);
    }
}

impl Rows for SubframeRows {
    fn finish(&mut self) -> Vec<Column> {
        let mut columns = self.when.finish();
        columns.extend::<[Column; 13]>([
            ("cfi", Arc::new(self.cfi.finish()), false),
            ("cces", Arc::new(self.cces.finish()), false),
            ("cces_used", Arc::new(self.cces_used.finish()), false),
            ("cces_unread", Arc::new(self.cces_unread.finish()), false),
            ("messages", Arc::new(self.messages.finish()), false),
            ("downlink", Arc::new(self.downlink.finish()), false),
            ("uplink", Arc::new(self.uplink.finish()), false),
            ("formats", Arc::new(self.formats.finish()), false),
            ("prbs", Arc::new(self.prbs.finish()), false),
            ("prbs_used", Arc::new(self.prbs_used.finish()), false),
            ("prbs_idle", Arc::new(self.prbs_idle.finish()), true),
            ("users", Arc::new(self.users.finish()), false),
            ("snr_db", Arc::new(self.snr_db.finish()), false),
        ]);
        columns
    }
}

/// Which subframe of which cell: what all rows begin with.
#[derive(Default)]
struct When {
    carrier: UInt8Builder,
    cell: UInt16Builder,
    time_ms: Float64Builder,
    index: UInt64Builder,
    sfn: UInt16Builder,
    subframe: UInt8Builder,
}

impl When {
    fn add(&mut self, at: At, (pci, index, sfn, subframe): (u16, u64, u16, u8)) {
        self.carrier.append_value(at.carrier);
        self.cell.append_value(pci);
        self.time_ms.append_value(at.time_ms);
        self.index.append_value(index);
        self.sfn.append_value(sfn);
        self.subframe.append_value(subframe);
    }

    fn of_reading(&mut self, at: At, reading: &Reading) {
        self.add(at, (reading.pci, reading.index, reading.sfn, reading.subframe));
    }

    fn finish(&mut self) -> Vec<Column> {
        vec![
            ("carrier", Arc::new(self.carrier.finish()), false),
            ("cell", Arc::new(self.cell.finish()), false),
            ("time_ms", Arc::new(self.time_ms.finish()), false),
            ("index", Arc::new(self.index.finish()), false),
            ("sfn", Arc::new(self.sfn.finish()), false),
            ("subframe", Arc::new(self.subframe.finish()), false),
        ]
    }
}
