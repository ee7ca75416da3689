//! Times between the messages of cell and device, in subframes.

/// Number of subframes from a transmission to its acknowledgement.
///
/// Source: TS 36.213 §10.2 (FDD: n+4)
pub(super) const FEEDBACK: u64 = 4;
