//! NR: what an NR carrier has and an LTE carrier has not.

mod broadcast;
mod coreset;
mod downlink;
mod uplink;

pub(super) use downlink::Downlink;
pub(super) use uplink::{UPLINK_PROCESSES, Uplink};
