//! Sweeps: any key of a scenario × schemes × seeds, each run by itself, and all numbers in one dataset.
//!
//! ```text
//! words or file ─▶ Spec ─▶ Plan ─┬─▶ Runner on threads here ──────────┬─▶ Sweep ─▶ results/, failures.json, report.html
//!                                └─▶ Runner elsewhere ─▶ Record lines ┘     cells/
//! ```
//!
//! | module | what it is |
//! | --- | --- |
//! | `axis` | a key and its values: lists and ranges |
//! | `spec` | what is swept, from options or from a file |
//! | `plan` | the runs in their order, the hash by which each is known, and how one is made |
//! | `record` | what is kept of a run, as a line of text |
//! | `store` | the records of a folder |
//! | `dataset` | the Parquet dataset that they become |
//! | `session` | a sweep in its folder, from the first run to the page |
//!
//! A sweep keeps the numbers of runs, not their packets; `airpace sim` makes one of its runs again with all tables.

mod axis;
mod dataset;
mod plan;
mod record;
mod session;
mod spec;
mod store;
#[cfg(test)]
mod tests;

pub use axis::Axis;
pub use plan::{Cell, Plan, PointDigest, Runner};
pub use record::{Key, Record};
pub use session::{
    Sweep, SweepListener, SweepManifest, SweepOutcome, SweepProgress, Todo, Told, manifest, results,
    usual_folder,
};
pub use spec::{MOST_CELLS, Spec};
