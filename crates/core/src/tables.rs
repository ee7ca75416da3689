//! Numbers of the 3GPP tables: transport block sizes, MCS and CQI of LTE and NR.

pub mod lte;
pub mod nr;
