//! NR tables of TS 38.214: MCS and CQI, and computation of the transport block size.

mod mcs;
mod tbs;

pub use mcs::{Mcs, McsTable};
pub use tbs::{Allocation, TbsScaling, tbs, tbs_scaled};
