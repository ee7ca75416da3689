//! The evaluations of the papers, as experiments that can be repeated: each number of a paper beside ours with a verdict, and
//! each figure in the paper's form.
//!
//! ```text
//! Experiment ─▶ Campaigns (sweeps) ─▶ Work: missing runs ─▶ Store ─▶ Results ─▶ Findings: numbers, figures ─▶ gallery, table
//! ```
//!
//! | module | content |
//! | --- | --- |
//! | [`experiment`], [`list`] | what an experiment is, and the list of all |
//! | [`number`] | a number of a paper beside ours, the rule that judges it, the verdict |
//! | [`against`] | comparison with the numbers of an earlier version |
//! | [`results`] | the runs of an experiment, and statistics over them |
//! | [`statistics`] | means, intervals, fairness, rank correlation |
//! | [`store`] | finished runs on the disk; a hash of all inputs identifies a run |
//! | [`work`] | executes the runs that are missing |
//! | [`measure`] | measurements of this machine by commands of the program |
//! | [`folder`] | the files of a reproduction |
//! | [`fitted`] | parameters that were fitted to a number of a paper |
//! | [`causes`] | why numbers differ from the papers' |
//! | [`gallery`], [`markdown`] | the page and the table of the findings |
//! | `pbe`, `biscay`, `morc` | the experiments |
//!
//! A rule is part of an experiment, and nobody types a verdict. No parameter is set per scheme.

#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]
#![warn(missing_docs)]

pub mod against;
mod biscay;
pub mod causes;
pub mod experiment;
pub mod fitted;
pub mod folder;
pub mod gallery;
pub mod list;
mod look;
pub mod markdown;
pub mod measure;
mod morc;
pub mod number;
mod pbe;
pub mod results;
pub mod statistics;
pub mod store;
pub mod work;

pub use experiment::{Campaign, Evidence, Experiment, Findings, Picture, Reproduced, Size};
pub use folder::{Folder, Origin};
pub use list::{EXPERIMENTS, named};
pub use number::{Number, Rule, Verdict};
pub use results::{Results, Run};
pub use store::Store;
pub use work::{Progress, Work};
