//! Times between the messages of cell and device.

use std::time::Duration;

/// Time from a transmission to its acknowledgement.
///
/// Source: TS 36.213 §10.2 (FDD: n+4)
pub(super) const FEEDBACK: Duration = Duration::from_millis(4);
