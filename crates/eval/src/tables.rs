//! The events of a run as Parquet tables: one row is one event, and every column names its unit.
//!
//! Rows are collected in column buffers and written as row groups of at most [`ROWS_PER_GROUP`] rows, so that memory
//! does not grow with the run. The same events give the same bytes. A table gets its name only when it is complete.
//!
//! | table | one row is | columns |
//! | --- | --- | --- |
//! | `packets` | the end of a data packet's journey | [`packets`] |
//! | `acks` | an acknowledgement as the sender processed it | [`acks`] |
//! | `losses` | packets that their sender declared lost | [`losses`] |
//! | `controller` | the state of a flow's scheme at one time | [`controller`] |
//! | `prbs` | adjacent PRBs granted to one user in one subframe | [`prbs`] |
//! | `capacity` | what the last hop could have carried to or from a device | [`capacity`] |
//! | `departures` | the end of a packet's journey through an emulated network | [`departures`] |
//!
//! A simulated run has all tables but the last. An emulated run has `departures`, `prbs` and `capacity`.
//!
//! Folders are hive partitions (`packets/scenario=competitor/scheme=pbe/seed=1/part.parquet`), so that
//! `pandas.read_parquet("RUN/packets")` and `polars.read_parquet("RUN/packets")` give one table with the columns
//! `scenario`, `scheme` and `seed`.
//!
//! A run that was compared with virtual time has one more, [`agreement`], which is a file of its own.
//!
//! A caller that wants no files has the same tables in [`memory`].
//!
//! Tables outside of run folders: [`flows`] has the numbers of a summary; [`kpis`] has
//! what a modem told; [`decoded`] has what was decoded from radio samples. [`ParquetFile`] is for tables whose
//! columns the caller defines.

pub mod acks;
pub mod agreement;
pub mod capacity;
mod columns;
pub mod controller;
pub mod decoded;
pub mod departures;
mod file;
pub mod flows;
pub mod kpis;
pub mod losses;
pub mod memory;
mod numbers;
pub mod packets;
pub mod prbs;
pub(crate) mod read;
#[cfg(test)]
mod tests;
pub mod windows;
pub(crate) mod words;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use airpace_event::Event;
use arrow_schema::Field;

use crate::emulation::Departure;
use crate::error::EvalError;
use crate::facts::RunFacts;
use columns::Columns;
pub(crate) use departures::Spelled;
pub use file::ParquetFile;
use file::Table;
pub use memory::Memory;

/// The number of rows after which a row group is written. They take a few megabytes of memory per table.
pub const ROWS_PER_GROUP: usize = 1 << 15;

/// Every table's name, which is also the name of its folder.
pub const TABLES: [&str; 7] = ["packets", "acks", "losses", "controller", "prbs", "capacity", "departures"];

/// The tables of one simulated run, open for writing.
pub struct Tables {
    packets: Table<packets::Rows>,
    acks: Table<acks::Rows>,
    losses: Table<losses::Rows>,
    controller: Table<controller::WideRows>,
    prbs: prbs::Prbs,
    capacity: Table<capacity::Rows>,
    failure: Option<EvalError>,
}

impl Tables {
    /// Opens the tables of a run below the run folder `root`.
    ///
    /// `inspected` lists the names of all values that schemes may show, each a column of `controller`; tables of
    /// several runs agree on their columns if they are given the same list.
    ///
    /// # Errors
    /// A folder or file that cannot be made.
    pub fn create(root: &Path, facts: &RunFacts, inspected: &[String]) -> Result<Tables, EvalError> {
        let part = |table| partition(root, table, facts).join("part.parquet");
        Ok(Tables {
            packets: Table::create(&part("packets"), packets::Rows::of(&facts.flows))?,
            acks: Table::create(&part("acks"), acks::Rows::of(&facts.flows))?,
            losses: Table::create(&part("losses"), losses::Rows::of(&facts.flows))?,
            controller: Table::create(
                &part("controller"),
                controller::WideRows::of(&facts.flows, inspected),
            )?,
            prbs: prbs::Prbs::create(&part("prbs"))?,
            capacity: Table::create(&part("capacity"), capacity::Rows::default())?,
            failure: None,
        })
    }

    /// The tables of a run in `memory`, which keeps those that it wants. `inspected` is as in [`Tables::create`].
    pub fn in_memory(memory: &Memory, facts: &RunFacts, inspected: &[String]) -> Tables {
        let part = |table| memory.part(table, facts);
        let controllers = controller::WideRows::of(&facts.flows, inspected);
        Tables {
            packets: Table::in_memory(part("packets"), packets::Rows::of(&facts.flows)),
            acks: Table::in_memory(part("acks"), acks::Rows::of(&facts.flows)),
            losses: Table::in_memory(part("losses"), losses::Rows::of(&facts.flows)),
            controller: Table::in_memory(part("controller"), controllers),
            prbs: prbs::Prbs::in_memory(part("prbs")),
            capacity: Table::in_memory(part("capacity"), capacity::Rows::default()),
            failure: None,
        }
    }

    /// Takes one event. A failure to write is kept for [`Tables::finish`]; later events are then not written.
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

    /// Writes the remaining rows and gives the files their names.
    ///
    /// # Errors
    /// The first failure since [`Tables::create`].
    pub fn finish(self) -> Result<(), EvalError> {
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
pub(crate) struct EmulatedTables {
    departures: Table<departures::Rows>,
    prbs: prbs::Prbs,
    capacity: Table<capacity::Rows>,
}

impl EmulatedTables {
    /// Opens the tables below the run folder `root`.
    ///
    /// # Errors
    /// A folder or file that cannot be made.
    pub(crate) fn create(root: &Path, facts: &RunFacts) -> Result<EmulatedTables, EvalError> {
        let part = |table| partition(root, table, facts).join("part.parquet");
        Ok(EmulatedTables {
            departures: Table::create(&part("departures"), departures::Rows::default())?,
            prbs: prbs::Prbs::create(&part("prbs"))?,
            capacity: Table::create(&part("capacity"), capacity::Rows::default())?,
        })
    }

    /// Takes a departure and the names of its connection.
    pub(crate) fn depart(&mut self, departure: &Departure, spelled: &Spelled) -> Result<(), EvalError> {
        departures::push(&mut self.departures, departure, spelled)
    }

    /// Takes an event of the last hop. Other events have no table.
    pub(crate) fn record(&mut self, event: &Event<'_>) -> Result<(), EvalError> {
        match event {
            Event::Subframe(subframe) => self.prbs.push(subframe),
            Event::Capacity(capacity) => capacity::push(&mut self.capacity, capacity),
            _ => Ok(()),
        }
    }

    /// Writes the remaining rows and gives the files their names.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(crate) fn finish(self) -> Result<(), EvalError> {
        self.departures.finish()?;
        self.prbs.finish()?;
        self.capacity.finish()
    }
}

/// The columns that a table has in every run, with their types. A `controller` of runs has more, one per named value.
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

/// Whether the table `controller` has a column of this name in every run, so that a scheme cannot call a value of its own
/// by it.
pub fn is_controller_column(name: &str) -> bool {
    static NAMES: OnceLock<BTreeSet<String>> = OnceLock::new();
    let all = || {
        let fields = fields("controller");
        let own = fields.iter().map(|field| field.name().clone());
        own.chain(["scenario", "scheme", "seed"].map(str::to_owned)).collect()
    };
    NAMES.get_or_init(all).contains(name)
}

/// The folder of a run's `table`, below the run folder.
pub fn partition(root: &Path, table: &str, facts: &RunFacts) -> PathBuf {
    root.join(table)
        .join(format!("scenario={}", percent_encoded(&facts.scenario)))
        .join(format!("scheme={}", percent_encoded(&facts.scheme)))
        .join(format!("seed={}", facts.seed))
}

/// `text` with every byte except unreserved ones as `%XX`. That is safe in paths, and readers of hive partitions decode
/// it.
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

/// An instant in milliseconds, rounded once.
fn millis(time: airpace_core::Time) -> f64 {
    time.as_nanos() as f64 / 1e6
}

/// A span in milliseconds, rounded once.
fn span_millis(span: std::time::Duration) -> f32 {
    (nanos(span) as f64 / 1e6) as f32
}

/// A span in nanoseconds. The type holds up to 584 years, which no run comes near.
fn nanos(span: std::time::Duration) -> u64 {
    span.as_secs() * 1_000_000_000 + u64::from(span.subsec_nanos())
}

/// A count, or the largest value of its column if the count does not fit.
fn fit(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
