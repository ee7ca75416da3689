//! The native half of the Python package `airpace`: what `python/airpace` calls.
//!
//! ```text
//! Python ─▶ python/airpace ─▶ _airpace ─┬─▶ eval: matrices of runs ─▶ Table ─▶ polars, pandas, DuckDB
//!                                       ├─▶ cc, core: capacities, block sizes, controllers in Python
//!                                       └─▶ live, phy, diag: samples and logs ─▶ Table
//! ```
//!
//! | module | what it is |
//! | --- | --- |
//! | `simulate` | runs scenarios on threads |
//! | `sweep` | many runs, here or on workers elsewhere |
//! | `attend` | long work, while Python shows progress and hears Ctrl-C |
//! | `calls` | calls of simulations into users' code of Python |
//! | `run` | results: of a simulation, or of a run folder |
//! | `table` | rows, handed to other libraries without a copy |
//! | `controller` | a controller written in Python as one of `cc` |
//! | `events` | what such a controller is told |
//! | `simulators` | simulators that wait for agents at every step |
//! | `steered` | flows that agents steer, in such simulators or as a scheme |
//! | `decode`, `diag` | radio samples and modem logs |
//! | `radio` | PBE-CC's capacities and 3GPP's block sizes, over arrays |
//! | `raise` | errors as Python's exceptions |
//!
//! Long calls let other threads of Python run. No number is computed here: the crates above it do.
#![warn(missing_docs)]

mod attend;
mod calls;
mod controller;
mod decode;
mod diag;
mod events;
mod radio;
mod raise;
mod run;
mod simulate;
mod simulators;
mod steered;
mod sweep;
mod table;

use pyo3::prelude::*;

/// The native half of airpace. Call it through `airpace`.
#[pymodule]
mod _airpace {
    #[pymodule_export]
    use super::decode::decode;
    #[pymodule_export]
    use super::diag::{bandwidth, diag, kpis};
    #[pymodule_export]
    use super::events::{Ack, Loss, Sent, Setup};
    #[pymodule_export]
    use super::radio::{capacity, lte_mcs_tbs, lte_tbs, nr_mcs_tbs};
    #[pymodule_export]
    use super::run::{Run, figures, open, page};
    #[pymodule_export]
    use super::simulate::{scenarios, schemes, simulate};
    #[pymodule_export]
    use super::simulators::Simulators;
    #[pymodule_export]
    use super::sweep::{SweepPlan, SweepSession, in_python, open_sweep};
    #[pymodule_export]
    use super::table::Table;

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
