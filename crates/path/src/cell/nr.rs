//! NR: what an NR carrier has and an LTE carrier has not.

pub(super) mod coreset;
pub(super) mod downlink;
pub mod pattern;
