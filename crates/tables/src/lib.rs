//! Parquet tables of a run's events: each row is one event, and every column names its unit.
//!
//! Rows are collected in column buffers and written as row groups of at most [`ROWS_PER_GROUP`] rows, so that memory does
//! not grow with the run. The same events give the same bytes. A file is moved to its final name only when it is
//! complete.
//!
//! | table | one row per | columns |
//! | --- | --- | --- |
//! | `packets` | data packet that was delivered or lost | [`packets`] |
//! | `acks` | acknowledgement that the sender processed | [`acks`] |
//! | `losses` | loss declaration by a sender | [`losses`] |
//! | `controller` | sample of the state of a flow's scheme | [`controller`] |
//! | `prbs` | range of adjacent PRBs granted to one user in one slot of a carrier | [`prbs`] |
//! | `capacity` | sample of the last hop's capacity to or from a device | [`capacity`] |
//! | `departures` | packet that was delivered or dropped by an emulated network | [`departures`] |
//!
//! A simulated run has all tables except the last. An emulated run has `departures`, `prbs` and `capacity`.
//!
//! Folders are hive partitions (`packets/scenario=competitor/scheme=pbe/seed=1/part.parquet`), so that
//! `pandas.read_parquet("RUN/packets")` and `polars.read_parquet("RUN/packets")` give one table with the columns
//! `scenario`, `scheme` and `seed`.
//!
//! A run that was compared with virtual time has a further table, [`agreement`], in a separate file.
//!
//! A caller that does not want files can keep the same tables in [`memory`].
//!
//! Tables outside of run folders: [`log`] contains the packets of a modem's log, [`kpis`] its samples, [`windows`] the
//! bandwidth that it granted, and [`decoded`] the messages that were decoded from radio samples. [`ParquetFile`] is for tables with columns
//! that the caller defines. [`read`] reads tables back.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]
#![warn(missing_docs)]

pub mod acks;
pub mod agreement;
pub mod capacity;
mod columns;
pub mod connection;
pub mod controller;
pub mod csv;
pub mod decoded;
pub mod departures;
pub mod direction;
pub mod error;
pub mod facts;
mod file;
pub mod kpis;
pub mod log;
pub mod losses;
pub mod memory;
mod numbers;
pub mod packets;
mod pages;
pub mod prbs;
pub mod read;
#[cfg(test)]
mod tests;
pub mod windows;
pub mod words;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use airpace_event::Event;
use arrow_schema::Field;

use columns::Columns;
use departures::{Departure, Spelled};
pub use error::FileError;
use facts::{RunFacts, RunKey};
pub use file::ParquetFile;
use file::Table;
pub use memory::{Batches, Memory};

/// Number of rows at which a row group is written. This many rows take a few megabytes of memory per table.
pub const ROWS_PER_GROUP: usize = 1 << 15;

/// Names of all tables, which are also the names of their folders.
pub const TABLES: [&str; 7] = ["packets", "acks", "losses", "controller", "prbs", "capacity", "departures"];

/// Columns of a run's tables that depend on its scenario. Tables of several runs have equal columns if they get equal
/// values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FurtherColumns<'a> {
    /// The names of all values that schemes may report. Each is a column of `controller`.
    pub inspected: &'a [String],
    /// Whether `prbs` has the columns of carriers of NR, for example `slot` (see [`prbs`]).
    pub has_nr: bool,
}

/// The tables of one simulated run, open for writing.
pub struct Tables {
    packets: Table<packets::Rows>,
    acks: Table<acks::Rows>,
    losses: Table<losses::Rows>,
    controller: Table<controller::WideRows>,
    prbs: prbs::Prbs,
    capacity: Table<capacity::Rows>,
    failure: Option<FileError>,
}

impl Tables {
    /// Opens the tables of a run below the run folder `root`, with these further columns.
    ///
    /// # Errors
    /// A folder or file cannot be created.
    pub fn create(root: &Path, facts: &RunFacts, further: FurtherColumns<'_>) -> Result<Tables, FileError> {
        let part = |table| partition(root, table, facts.key()).join("part.parquet");
        Ok(Tables {
            packets: Table::create(&part("packets"), packets::Rows::of(&facts.flows))?,
            acks: Table::create(&part("acks"), acks::Rows::of(&facts.flows))?,
            losses: Table::create(&part("losses"), losses::Rows::of(&facts.flows))?,
            controller: Table::create(
                &part("controller"),
                controller::WideRows::of(&facts.flows, further.inspected),
            )?,
            prbs: prbs::Prbs::create(&part("prbs"), further.has_nr)?,
            capacity: Table::create(&part("capacity"), capacity::Rows::default())?,
            failure: None,
        })
    }

    /// The tables of a run in `memory`, which keeps only the tables that it wants, with these further columns.
    pub fn in_memory(memory: &Memory, facts: &RunFacts, further: FurtherColumns<'_>) -> Tables {
        let part = |table| memory.part(table, facts.key());
        let controllers = controller::WideRows::of(&facts.flows, further.inspected);
        Tables {
            packets: Table::in_memory(part("packets"), packets::Rows::of(&facts.flows)),
            acks: Table::in_memory(part("acks"), acks::Rows::of(&facts.flows)),
            losses: Table::in_memory(part("losses"), losses::Rows::of(&facts.flows)),
            controller: Table::in_memory(part("controller"), controllers),
            prbs: prbs::Prbs::in_memory(part("prbs"), further.has_nr),
            capacity: Table::in_memory(part("capacity"), capacity::Rows::default()),
            failure: None,
        }
    }

    /// Records one event. The first write error is stored for [`Tables::finish`], and later events are ignored.
    pub fn record(&mut self, event: &Event<'_>) {
        if self.failure.is_some() {
            return;
        }
        let written = match event {
            Event::Arrived(arrived) if self.packets.is_kept() => packets::push(&mut self.packets, arrived),
            Event::Acked(acked) if self.acks.is_kept() => acks::push(&mut self.acks, acked),
            Event::Lost(lost) if self.losses.is_kept() => losses::push(&mut self.losses, lost),
            Event::Inspected(inspected) if self.controller.is_kept() => {
                controller::push(&mut self.controller, inspected)
            }
            Event::Subframe(subframe) => self.prbs.push(subframe),
            Event::Capacity(capacity) if self.capacity.is_kept() => {
                capacity::push(&mut self.capacity, capacity)
            }
            _ => Ok(()),
        };
        self.failure = written.err();
    }

    /// Writes the remaining rows and moves the files to their final names.
    ///
    /// # Errors
    /// The first write error since [`Tables::create`].
    pub fn finish(self) -> Result<(), FileError> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        self.packets.finish()?;
        self.acks.finish()?;
        self.losses.finish()?;
        self.controller.finish()?;
        self.prbs.finish()?;
        self.capacity.finish()
    }
}

/// The tables of one emulated run, open for writing.
pub struct EmulatedTables {
    departures: Table<departures::Rows>,
    prbs: prbs::Prbs,
    capacity: Table<capacity::Rows>,
}

impl EmulatedTables {
    /// Opens the tables below the run folder `root`. `has_nr`: the cell has carriers of NR, so `prbs` has their columns.
    ///
    /// # Errors
    /// A folder or file cannot be created.
    pub fn create(root: &Path, facts: &RunFacts, has_nr: bool) -> Result<EmulatedTables, FileError> {
        let part = |table| partition(root, table, facts.key()).join("part.parquet");
        Ok(EmulatedTables {
            departures: Table::create(&part("departures"), departures::Rows::default())?,
            prbs: prbs::Prbs::create(&part("prbs"), has_nr)?,
            capacity: Table::create(&part("capacity"), capacity::Rows::default())?,
        })
    }

    /// Records a departure. `spelled` is its connection as text.
    pub fn depart(&mut self, departure: &Departure, spelled: &Spelled) -> Result<(), FileError> {
        departures::push(&mut self.departures, departure, spelled)
    }

    /// Records an event of the last hop. Other events have no table.
    pub fn record(&mut self, event: &Event<'_>) -> Result<(), FileError> {
        match event {
            Event::Subframe(subframe) => self.prbs.push(subframe),
            Event::Capacity(capacity) => capacity::push(&mut self.capacity, capacity),
            _ => Ok(()),
        }
    }

    /// Writes the remaining rows and moves the files to their final names.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn finish(self) -> Result<(), FileError> {
        self.departures.finish()?;
        self.prbs.finish()?;
        self.capacity.finish()
    }
}

/// The columns that a table has in every run, with their types. `controller` has further columns, one per value of the
/// schemes.
fn fields(table: &str) -> Vec<Field> {
    match table {
        "packets" => packets::Rows::default().fields(),
        "acks" => acks::Rows::default().fields(),
        "losses" => losses::Rows::default().fields(),
        "controller" => controller::WideRows::of(&[], &[]).fields(),
        "prbs" => prbs::Rows::default().fields(),
        "capacity" => capacity::Rows::default().fields(),
        "departures" => departures::Rows::default().fields(),
        _ => Vec::new(),
    }
}

/// The columns that a table has in any run, with their types, without the values of schemes in `controller`.
fn known_fields(table: &str) -> Vec<Field> {
    let of_nr = if table == "prbs" { prbs::of_nr().fields() } else { Vec::new() };
    [fields(table), of_nr].concat()
}

/// Whether the table `controller` has a column with this name in every run. A scheme cannot use such a name for its own
/// value.
pub fn is_controller_column(name: &str) -> bool {
    static NAMES: OnceLock<BTreeSet<String>> = OnceLock::new();
    let all = || {
        let fields = fields("controller");
        let own = fields.iter().map(|field| field.name().clone());
        own.chain(["scenario", "scheme", "seed"].map(str::to_owned)).collect()
    };
    NAMES.get_or_init(all).contains(name)
}

/// Folder of a run's table.
pub fn partition(root: &Path, table: &str, run: RunKey<'_>) -> PathBuf {
    root.join(table)
        .join(format!("scenario={}", percent_encoded(run.scenario)))
        .join(format!("scheme={}", percent_encoded(run.scheme)))
        .join(format!("seed={}", run.seed))
}

/// Percent-encodes every byte of `text` except unreserved ones. The result is safe in paths, and readers of hive
/// partitions decode it.
///
/// Source: RFC 3986 §2.1
pub fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte))
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// A time in milliseconds, rounded only once.
fn millis(time: airpace_core::Time) -> f64 {
    time.as_nanos() as f64 / 1e6
}

/// A duration in milliseconds, rounded only once.
fn span_millis(span: std::time::Duration) -> f32 {
    (nanos(span) as f64 / 1e6) as f32
}

/// A duration in nanoseconds. The type can hold 584 years, which no run reaches.
fn nanos(span: std::time::Duration) -> u64 {
    span.as_secs() * 1_000_000_000 + u64::from(span.subsec_nanos())
}

/// A count, limited to the maximum of its column.
fn fit(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
