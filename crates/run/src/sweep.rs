//! Sweeps: independent runs over values of any keys of a scenario × schemes × seeds, with all metrics in one dataset.
//!
//! ```text
//! words or file ─▶ Spec ─▶ Plan ─┬─▶ Runner on threads here ──────────┬─▶ Sweep ─▶ results/, failures.json, report.html
//!                                └─▶ Runner elsewhere ─▶ Record lines ┘     cells/
//! ```
//!
//! | module | contents |
//! | --- | --- |
//! | `about` | what a page of the sweep is made from |
//! | `axis` | a key with its values: lists and ranges |
//! | `spec` | specification of a sweep, from options or a file |
//! | `plan` | numbering of the runs, their keys (hashes), and execution of one run |
//! | `estimate` | time and size of the missing runs, from a few of them |
//! | `record` | results of a run, as a line of text |
//! | `store` | record files of a sweep's folder |
//! | `dataset` | Parquet dataset of the results |
//! | `session` | a sweep in its folder, from the first run to the page |
//!
//! A sweep keeps the metrics of its runs, but not the packets. `airpace sim` can repeat one of its runs with all tables.

mod about;
mod axis;
mod dataset;
mod estimate;
mod plan;
mod record;
mod session;
mod spec;
mod store;
#[cfg(test)]
mod tests;

pub use about::{About, Failure, SweepReport};
pub use axis::Axis;
pub use estimate::Estimate;
pub use plan::{Cell, Executed, Plan, PointDigest, Runner};
pub use record::{Key, Record};
pub use session::{
    Sweep, SweepListener, SweepManifest, SweepOutcome, SweepProgress, Todo, Told, manifest, results,
    usual_folder,
};
pub use spec::{MAX_CELLS, Spec, VARIANT};
