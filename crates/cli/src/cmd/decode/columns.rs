//! Messages in a Parquet file: a row each, with the names of the JSON.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use airpace_phy::found::Found;
use anyhow::Context;
use arrow_array::builder::{
    Float32Builder, Float64Builder, Int64Builder, ListBuilder, StringBuilder, UInt8Builder, UInt16Builder,
    UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use super::message::{Name, blocks, direction, harq, ranges};

/// Rows after which a row group is written.
const ROWS_PER_GROUP: usize = 1 << 15;

/// A Parquet file on its way to disk.
pub struct Columns {
    name: String,
    file: Option<File>,
    /// Made with the first rows, whose columns say what the schema is.
    writer: Option<ArrowWriter<File>>,
    rows: Rows,
}

#[derive(Default)]
struct Rows {
    count: usize,
    carrier: UInt8Builder,
    cell: UInt16Builder,
    time_ms: Float64Builder,
    index: UInt64Builder,
    sfn: UInt16Builder,
    subframe: UInt8Builder,
    cfi: UInt8Builder,
    rnti: UInt16Builder,
    rnti_type: StringBuilder,
    dir: StringBuilder,
    format: StringBuilder,
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
    harq: UInt8Builder,
    tpc: UInt8Builder,
    snr_db: Float32Builder,
    confidence: Float32Builder,
}

impl Columns {
    /// Makes the file.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn create(path: &Path) -> anyhow::Result<Columns> {
        let name = path.display().to_string();
        let file = File::create(path)
            .with_context(|| format!("cannot write `{name}`; give --parquet a file you may write"))?;
        Ok(Columns { name, file: Some(file), writer: None, rows: Rows::default() })
    }

    /// Adds a message of a recording (0 is the first).
    ///
    /// # Errors
    /// If a row group cannot be written.
    pub fn add(&mut self, carrier: usize, time_ms: f64, found: &Found, name: Name) -> anyhow::Result<()> {
        self.rows.add(carrier as u8, time_ms, found, name);
        if self.rows.count < ROWS_PER_GROUP { Ok(()) } else { self.write() }
    }

    fn write(&mut self) -> anyhow::Result<()> {
        let batch = RecordBatch::try_from_iter_with_nullable(self.rows.finish())?;
        if let Some(file) = self.file.take() {
            let level = ZstdLevel::try_new(1).expect("1 is a level of zstd");
            let properties = WriterProperties::builder()
                .set_created_by("airpace".to_owned())
                .set_compression(Compression::ZSTD(level))
                .build();
            self.writer = Some(ArrowWriter::try_new(file, batch.schema(), Some(properties))?);
        }
        let Some(writer) = &mut self.writer else { return Ok(()) };
        writer
            .write(&batch)
            .and_then(|()| writer.flush())
            .with_context(|| format!("cannot write `{}`", self.name))
    }

    /// Ends the file, which is valid without a row too.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> anyhow::Result<()> {
        self.write()?;
        if let Some(writer) = self.writer {
            writer.close().with_context(|| format!("cannot write `{}`", self.name))?;
        }
        Ok(())
    }
}

impl Rows {
    fn add(&mut self, carrier: u8, time_ms: f64, found: &Found, name: Name) {
        self.count += 1;
        self.carrier.append_value(carrier);
        self.cell.append_value(found.pci);
        self.time_ms.append_value(time_ms);
        self.index.append_value(found.index);
        self.sfn.append_value(found.sfn);
        self.subframe.append_value(found.subframe);
        self.cfi.append_value(found.cfi);
        self.rnti.append_value(name.rnti.0);
        self.rnti_type.append_value(found.kind.name());
        self.dir.append_value(direction(found.direction()));
        self.format.append_value(found.format());
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
            self.rv.values().append_value(block.rv);
            self.ndi.values().append_option(block.ndi.map(u8::from));
            self.modulation.values().append_option(block.modulation);
            self.tbs.values().append_option(block.tbs_bits.map(|bits| bits as i64));
        }
        self.mcs.append(true);
        self.rv.append(true);
        self.ndi.append(true);
        self.modulation.append(true);
        self.tbs.append(true);
        self.harq.append_option(harq(found));
        self.tpc.append_option(found.power_command());
        self.snr_db.append_value(found.snr_db);
        self.confidence.append_value(found.confidence);
    }

    fn finish(&mut self) -> Vec<(&'static str, ArrayRef, bool)> {
        self.count = 0;
        let [first, second] = &mut self.prb;
        vec![
            ("carrier", Arc::new(self.carrier.finish()), false),
            ("cell", Arc::new(self.cell.finish()), false),
            ("time_ms", Arc::new(self.time_ms.finish()), false),
            ("index", Arc::new(self.index.finish()), false),
            ("sfn", Arc::new(self.sfn.finish()), false),
            ("subframe", Arc::new(self.subframe.finish()), false),
            ("cfi", Arc::new(self.cfi.finish()), false),
            ("rnti", Arc::new(self.rnti.finish()), false),
            ("rnti_type", Arc::new(self.rnti_type.finish()), false),
            ("dir", Arc::new(self.dir.finish()), false),
            ("format", Arc::new(self.format.finish()), false),
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
            ("harq", Arc::new(self.harq.finish()), true),
            ("tpc", Arc::new(self.tpc.finish()), true),
            ("snr_db", Arc::new(self.snr_db.finish()), false),
            ("confidence", Arc::new(self.confidence.finish()), false),
        ]
    }
}
