//! Native module of the Python package `airpace`, called by `python/airpace`.
//!
//! ```text
//! Python ─▶ python/airpace ─▶ _airpace ─┬─▶ run: matrices of runs ─▶ Table ─▶ polars, pandas, DuckDB
//!                                       ├─▶ cc, core: capacities, block sizes, controllers in Python
//!                                       ├─▶ lab: programs on an emulated network, real transports
//!                                       └─▶ phy, diag: samples and logs ─▶ Table
//! ```
//!
//! | module | contents |
//! | --- | --- |
//! | `simulate` | runs scenarios on threads |
//! | `sweep` | many runs, on this machine or on workers of a cluster |
//! | `reproduce` | the papers' experiments, on this machine or on workers of a cluster |
//! | `attend` | long work, while Python shows progress and handles Ctrl-C |
//! | `calls` | calls from simulations into Python code of users |
//! | `run` | results of a simulation or of a run folder |
//! | `table` | tables that other libraries read without a copy |
//! | `controller` | adapter of a controller in Python to `cc` |
//! | `events` | the events that such a controller receives |
//! | `simulators` | simulators that wait for agents at every step |
//! | `steered` | flows that agents steer, in such simulators or as a scheme |
//! | `lab` | experiments in real time, and the parts of them that run in processes of their own |
//! | `send` | files to another machine |
//! | `decode`, `diag` | radio samples and modem logs |
//! | `radio` | PBE-CC's capacities and 3GPP's block sizes, over arrays |
//! | `statistics` | means with intervals |
//! | `raise` | errors as Python's exceptions |
//!
//! Long calls let other threads of Python run. This crate computes no results of its own: the crates that it calls do.
#![warn(missing_docs)]

mod attend;
mod calls;
mod controller;
mod decode;
mod diag;
mod events;
mod lab;
mod radio;
mod raise;
mod reproduce;
mod run;
mod send;
mod simulate;
mod simulators;
mod statistics;
mod steered;
mod sweep;
mod table;

use pyo3::prelude::*;

/// Native module of airpace. Use the package `airpace` instead of calling this module.
#[pymodule]
mod _airpace {
    #[pymodule_export]
    use super::decode::decode;
    #[pymodule_export]
    use super::diag::{bandwidth, diag, kpis};
    #[pymodule_export]
    use super::events::{Ack, Loss, Sent, Setup};
    #[pymodule_export]
    use super::lab::{agree, agree_emulator, emulate, part};
    #[pymodule_export]
    use super::radio::{capacity, lte_mcs_tbs, lte_tbs, nr_mcs_tbs};
    #[pymodule_export]
    use super::reproduce::{Reproduction, ReproductionPlan, experiments};
    #[pymodule_export]
    use super::run::{Run, figures, open, page};
    #[pymodule_export]
    use super::send::send;
    #[pymodule_export]
    use super::simulate::{scenarios, schemes, simulate};
    #[pymodule_export]
    use super::simulators::Simulators;
    #[pymodule_export]
    use super::statistics::geometric_mean;
    #[pymodule_export]
    use super::sweep::{SweepPlan, SweepSession, open_sweep};
    #[pymodule_export]
    use super::table::Table;

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
