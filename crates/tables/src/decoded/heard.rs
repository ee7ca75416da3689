//! Conversion of decoded messages to rows, and of rows to an in-memory table.

use std::sync::Arc;

use airpace_core::Rate;
use airpace_phy::answers::Answered;
use airpace_phy::decoder::Reading;
use airpace_phy::follow::OwnGrant;
use airpace_phy::found::Found;
use airpace_phy::found::words::{blocks, direction_of, harq, mcs_table, ranges};
use airpace_phy::load::Load;
use airpace_radio::{CarrierId, Rnti};
use arrow_array::RecordBatch;
use arrow_schema::Schema;

use super::rows::{Answer, Gain, Message, MessageRows, Subframe};
use crate::columns::Columns;
use crate::memory::Batches;

impl Message {
    /// The row of a message that was decoded on `carrier`. `time_ms` is the start of its subframe, in milliseconds after
    /// the first sample. If given, `pseudonym` replaces the RNTI.
    pub fn of(found: &Found, carrier: CarrierId, time_ms: f64, pseudonym: Option<Rnti>) -> Message {
        let blocks = blocks(found);
        let table = mcs_table(found);
        let ranges_of = |slot: usize| Some(ranges(found.prbs?[slot]).into_flattened());
        Message {
            carrier: carrier.0,
            cell: found.pci,
            time_ms,
            index: found.index,
            sfn: found.sfn,
            subframe: found.subframe,
            cfi: found.cfi,
            rnti: pseudonym.unwrap_or(found.rnti).0,
            rnti_type: found.kind.name(),
            dir: direction_of(found),
            format: found.format(),
            format_known: found.is_format_known,
            l: found.place.cces,
            // The RNTI determines the search space, so the position could disclose the RNTI.
            ncce: pseudonym.is_none().then_some(found.place.cce),
            bits: found.payload.to_string(),
            alloc: found.allocation(),
            prb_slot0: ranges_of(0),
            prb_slot1: ranges_of(1),
            n_prb: found.prbs.map(|[first, _]| first.len()),
            mcs: blocks.iter().map(|block| block.mcs).collect(),
            rv: blocks.iter().map(|block| block.rv).collect(),
            ndi: blocks.iter().map(|block| block.ndi.map(u8::from)).collect(),
            modulation: blocks.iter().map(|block| block.modulation).collect(),
            tbs: blocks.iter().map(|block| block.tbs_bits.map(|bits| bits as i64)).collect(),
            mcs_table: table,
            mcs_table_known: table.map(|_| found.is_table_known),
            harq: harq(found),
            tpc: found.power_command(),
            snr_db: found.snr_db,
            confidence: found.confidence,
        }
    }
}

impl Answer {
    /// The row of an answer that was decoded on `carrier` in this subframe, which starts `time_ms` milliseconds after the
    /// first sample. `rnti` is the user's RNTI or its pseudonym.
    pub fn of(
        reading: &Reading,
        answered: &Answered,
        carrier: CarrierId,
        time_ms: f64,
        rnti: Rnti,
    ) -> Answer {
        Answer {
            carrier: carrier.0,
            cell: reading.pci,
            time_ms,
            index: reading.index,
            sfn: reading.sfn,
            subframe: reading.subframe,
            rnti: rnti.0,
            phich: answered.word(),
            granted: answered.granted,
            attempt: answered.attempt,
            snr_db: reading.snr_db,
            confidence: answered.confidence,
        }
    }
}

impl Subframe {
    /// The row of a completed subframe of `carrier`, which starts `time_ms` milliseconds after the first sample.
    pub fn of(reading: &Reading, carrier: CarrierId, time_ms: f64) -> Subframe {
        let load = Load::of(reading);
        Subframe {
            carrier: carrier.0,
            cell: reading.pci,
            time_ms,
            index: reading.index,
            sfn: reading.sfn,
            subframe: reading.subframe,
            cfi: reading.cfi,
            cces: reading.cces as u16,
            cces_used: load.cces_used,
            cces_unread: load.cces_unread,
            messages: reading.found.len() as u16,
            downlink: load.downlink,
            uplink: load.uplink,
            formats: reading.found.iter().map(Found::format).collect(),
            prbs: reading.prbs,
            prbs_used: load.prbs_used,
            prbs_idle: load.prbs_idle,
            users: load.users,
            snr_db: reading.snr_db,
        }
    }
}

impl Gain {
    /// The gain of a grant to the tracked user. `throughput` is that of new bits up to this message in its direction.
    pub fn of(own: &OwnGrant, throughput: Rate) -> Gain {
        let sent = own.dci.mcs.iter().zip(own.dci.retransmission).filter(|(mcs, _)| mcs.is_some());
        Gain {
            new_bits: own.new_bits.0,
            retransmission: sent.map(|(_, again)| again).collect(),
            again: own.again,
            unknown: own.unknown,
            throughput_bps: throughput.as_bps(),
        }
    }
}

/// An in-memory table of these messages, in their order.
pub fn messages(rows: impl IntoIterator<Item = Message>) -> Batches {
    let mut columns = MessageRows::default();
    let mut count = 0;
    for row in rows {
        columns.push(row);
        count += 1;
    }
    let schema = Arc::new(Schema::new(columns.fields()));
    let batch = (count > 0).then(|| {
        RecordBatch::try_new(schema.clone(), columns.take()).expect("columns have the types of their fields")
    });
    Batches { schema, batches: batch.into_iter().collect() }
}
