//! Judging runs: what every number means, what a run leaves behind, and the page that shows who wins.
//!
//! A [`Matrix`] of scenarios × schemes × seeds runs on threads. Each run sends its events to a [`Judge`], which
//! measures ([`metrics`]) and, if there is a [`RunFolder`], writes Parquet ([`tables`]) and [`qlog`]. Then come
//! the verdicts on what the scenarios expect, the [`summary`], and the [`report`], which is made from the
//! folder alone.
//!
//! ```text
//! Scenario × SchemeSpec × seed → sim → Event → Judge ─┬─ Meter  → summary.json → --json, table, exit code
//!                                                     ├─ Tables → Parquet ─┐
//!                                                     └─ Qlogs             └→ report.html
//! ```
//!
//! A [`sweep`] is a matrix over the keys of a scenario, of which only the numbers are kept.
//!
//! Programs that ran behind an emulated network are judged by the same code: [`emulation`]. Whether such a network does what
//! the simulated one does: [`agreement`].
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]
#![warn(missing_docs)]

pub mod agreement;
pub mod comparison;
pub mod direction;
pub mod emulation;
pub mod error;
mod expect;
pub mod facts;
pub mod folder;
pub mod judge;
pub mod kernel_truth;
pub mod matrix;
pub mod metrics;
pub mod numbers;
pub mod qlog;
pub mod report;
mod reports;
pub mod seeds;
pub mod shell;
pub mod summary;
pub mod sweep;
pub mod tables;
mod threads;
pub mod transfers;
pub mod wire;

pub use agreement::Agreement;
pub use emulation::EmulatedRun;
pub use error::EvalError;
pub use expect::{Verdict, value as metric};
pub use facts::{FlowFacts, RunFacts, Span};
pub use folder::{Host, Manifest, ReplayedTrace, RunFolder};
pub use judge::{Judge, Keep, Room};
pub use matrix::{Choice, Listener, Matrix, Outcome, Progress};
pub use metrics::{FlowMetrics, Measured, Meter, Transfers};
pub use summary::{FlowLine, FlowSummary, LinkSummary, NotJudged, RunSummary, Summary};
pub use tables::Tables;
pub use tables::memory::{Batches, Memory};
