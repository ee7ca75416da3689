//! Air interface of a downlink carrier: what LTE and NR do differently in the steps of a slot.

use airpace_core::Time;
use airpace_radio::{Dci, DciFormat, PrbSet, Rnti, Slot};

use super::lte;
use super::region::DataRegion;

/// Air interface of a downlink carrier.
#[derive(Debug)]
pub(super) enum Air {
    /// A carrier of LTE FDD.
    Lte(lte::Downlink),
}

/// Times of the HARQ feedback of a transmission.
#[derive(Clone, Copy, Debug)]
pub(super) struct FeedbackTimes {
    /// Time at which link adaptation knows the acknowledgement.
    pub known_at: Time,
    /// The earliest time of a retransmission, and of new data in the process.
    pub resend_from: Time,
}

impl Air {
    /// The slot with this number on the carrier.
    pub(super) fn slot(&self, index: u64) -> Slot {
        match self {
            Air::Lte(_) => Slot::subframe_of_lte(index),
        }
    }

    /// The slot before `index` in which the carrier could send data.
    pub(super) fn previous(&self, index: u64) -> Option<u64> {
        match self {
            Air::Lte(_) => index.checked_sub(1),
        }
    }

    /// Chooses the size of the control region for this number of DCIs.
    pub(super) fn make_room(&mut self, dcis: usize, carrier_prbs: u16) {
        match self {
            Air::Lte(air) => air.choose_cfi(dcis, carrier_prbs),
        }
    }

    /// The part of the current slot that carries data.
    pub(super) fn region(&self) -> DataRegion {
        match self {
            Air::Lte(air) => DataRegion::Lte { cfi: air.cfi },
        }
    }

    /// Times of the feedback for a transmission in the slot that starts at `now`.
    pub(super) fn feedback_times(&self, now: Time) -> FeedbackTimes {
        match self {
            Air::Lte(air) => {
                FeedbackTimes { known_at: now + lte::FEEDBACK, resend_from: now + air.round_trip }
            }
        }
    }

    /// Format of a grant with this number of layers.
    pub(super) fn format(&self, layers: u8) -> DciFormat {
        match self {
            Air::Lte(_) if layers > 1 => DciFormat::F2A,
            Air::Lte(_) => DciFormat::F1,
        }
    }

    /// The DCI of a control message.
    pub(super) fn control_dci(&self, rnti: Rnti, prbs: PrbSet) -> Dci {
        match self {
            Air::Lte(_) => lte::control_dci(rnti, prbs),
        }
    }
}
