//! Judging runs: metrics, Parquet tables, expectations, qlog and the report.
#![warn(missing_docs)]

pub mod error;
pub mod facts;
pub mod metrics;
pub mod tables;

pub use error::EvalError;
pub use facts::{FlowFacts, RunFacts, Span};
pub use metrics::{Measured, Meter};
pub use tables::Tables;
