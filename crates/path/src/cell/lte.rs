//! LTE FDD: what an LTE carrier has and an NR carrier has not.

use std::time::Duration;

pub(super) mod control;

/// Number of HARQ processes of a downlink carrier.
///
/// Source: TS 36.213 §7
pub(super) const PROCESSES: usize = 8;

/// Time from a transmission to its acknowledgement.
///
/// Source: TS 36.213 §10.2 (FDD: n+4)
pub(super) const FEEDBACK: Duration = Duration::from_millis(4);

/// Time from a transmission to its earliest retransmission.
///
/// Source: TS 36.213 §7 (eight processes). Chosen: the base station takes 3 ms from the acknowledgement to the
/// retransmission, the minimum of FDD.
pub(super) const ROUND_TRIP: Duration = Duration::from_millis(8);

/// Time from a transmission to its earliest retransmission in ns-3's LENA.
///
/// Source: our measurement of ns-3.37
pub(super) const LENA_ROUND_TRIP: Duration = Duration::from_millis(7);
