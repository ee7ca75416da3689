//! LTE FDD: what an LTE carrier has and an NR carrier has not.

use std::time::Duration;

mod control;

use control::cfi_for;
pub(super) use control::control_dci;

use super::config::CellConfig;

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
const ROUND_TRIP: Duration = Duration::from_millis(8);

/// Time from a transmission to its earliest retransmission in ns-3's LENA.
///
/// Source: our measurement of ns-3.37
const LENA_ROUND_TRIP: Duration = Duration::from_millis(7);

/// Downlink of an LTE carrier.
#[derive(Debug)]
pub(super) struct Downlink {
    /// CFI of the current subframe.
    pub cfi: u8,
    /// CFI of all subframes; `None` if the CFI depends on the number of DCIs.
    fixed_cfi: Option<u8>,
    /// Time from a transmission to its earliest retransmission.
    pub round_trip: Duration,
}

impl Downlink {
    pub(super) fn new(config: &CellConfig) -> Downlink {
        Downlink {
            cfi: config.cfi.unwrap_or(1),
            fixed_cfi: config.cfi,
            round_trip: if config.lena_compat { LENA_ROUND_TRIP } else { ROUND_TRIP },
        }
    }

    /// Chooses the CFI of a subframe with this number of DCIs.
    pub(super) fn choose_cfi(&mut self, dcis: usize, carrier_prbs: u16) {
        self.cfi = self.fixed_cfi.unwrap_or_else(|| cfi_for(dcis, carrier_prbs));
    }
}
