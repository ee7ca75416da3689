//! Runs and what they measured: metrics, expectations, summaries, run folders, matrices and sweeps.
//!
//! A [`Matrix`] of scenarios × schemes × seeds runs on threads. Each run sends its events to a [`Judge`], which computes
//! [`metrics`] and, if there is a [`RunFolder`], writes Parquet tables ([`airpace_tables`]) and [`qlog`]. Afterwards the
//! scenarios' expectations are judged, and the [`summary`] is written. The report page is made from the folder by the
//! crate `page`.
//!
//! ```text
//! Scenario × SchemeSpec × seed → sim → Event → Judge ─┬─ Meter  → summary.json → --json, table, exit code
//!                                                     ├─ Tables → Parquet ─┐
//!                                                     └─ Qlogs             └→ report.html
//! ```
//!
//! A [`sweep`] is a matrix over values of a scenario's keys. It keeps only the metrics of each run.
//!
//! Runs of programs behind an emulated network are evaluated by the same code: [`emulation`]. The comparison of such a
//! network with the simulated one is in [`agreement`].
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]
#![warn(missing_docs)]

pub mod agreement;
pub mod comparison;
pub mod emulation;
pub mod error;
pub mod expect;
pub mod facts;
pub mod flows;
pub mod folder;
pub mod judge;
pub mod manifest;
pub mod matrix;
pub mod metrics;
pub mod numbers;
pub mod qlog;
mod reports;
pub mod seeds;
pub mod shelf;
pub mod shell;
pub mod statistics;
pub mod summary;
pub mod sweep;
pub mod threads;
pub mod transfers;
pub mod videos;
pub mod wire;

pub use agreement::Agreement;
pub use emulation::EmulatedRun;
pub use error::RunError;
pub use expect::value as metric;
pub use folder::RunFolder;
pub use judge::{Judge, Keep, Room};
pub use manifest::{Choice, Host, Manifest, ReplayedTrace};
pub use matrix::{Listener, Matrix, Outcome, Progress};
pub use metrics::{FlowMetrics, Measured, Meter, Transfers};
pub use summary::{FlowLine, FlowSummary, LinkSummary, NotJudged, RunSummary, Summary, Verdict};
