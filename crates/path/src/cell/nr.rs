//! NR: what an NR carrier has and an LTE carrier has not.

mod broadcast;
mod coreset;
mod downlink;
mod pattern;
mod uplink;

pub(super) use broadcast::ss_block_symbols;
pub(super) use downlink::Downlink;
pub use pattern::{Pattern, PatternError, SlotSymbols};
pub(super) use uplink::{UPLINK_PROCESSES, Uplink};
