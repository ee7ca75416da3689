//! Air interface of a downlink carrier: what LTE and NR do differently in the steps of a slot.

use std::time::Duration;

use airpace_core::{Direction, Time};
use airpace_radio::{Dci, DciFormat, PrbSet, Rnti, Slot};

use super::background::ControlGrant;
use super::config::Rat;
use super::harq::FeedbackTimes;
use super::region::DataRegion;
use super::{lte, nr};

/// Air interface of a downlink carrier.
#[derive(Debug)]
pub(super) enum Air {
    /// A carrier of LTE FDD.
    Lte(lte::Downlink),
    /// A carrier of NR.
    Nr(Box<nr::Downlink>),
}

impl Air {
    /// Radio access technology.
    pub(super) fn rat(&self) -> Rat {
        match self {
            Air::Lte(_) => Rat::Lte,
            Air::Nr(_) => Rat::Nr,
        }
    }

    /// The slot with this number on the carrier.
    pub(super) fn slot(&self, index: u64) -> Slot {
        match self {
            Air::Lte(_) => Slot::subframe_of_lte(index),
            Air::Nr(air) => air.slot(index),
        }
    }

    /// Number of slots in a millisecond.
    pub(super) fn slots_per_ms(&self) -> u64 {
        self.slot(0).numerology.slots_per_subframe()
    }

    /// Starts a slot.
    pub(super) fn begin(&mut self, slot: u64) {
        match self {
            Air::Lte(_) => {}
            Air::Nr(air) => air.begin(slot),
        }
    }

    /// The last slot before `index` in which the carrier could send data.
    pub(super) fn previous(&self, index: u64) -> Option<u64> {
        match self {
            Air::Lte(_) => index.checked_sub(1),
            Air::Nr(air) => air.previous(index),
        }
    }

    /// Chooses the size of the control region for this number of DCIs.
    pub(super) fn make_room(&mut self, dcis: usize, carrier_prbs: u16) {
        match self {
            Air::Lte(air) => air.choose_cfi(dcis, carrier_prbs),
            Air::Nr(_) => {}
        }
    }

    /// Places a DCI for a device with this SINR in the control region of the current slot. Returns whether there was space
    /// for the DCI. The control region of LTE grows with the number of DCIs.
    pub(super) fn place(&mut self, rnti: Rnti, sinr_db: f64) -> bool {
        match self {
            Air::Lte(_) => true,
            Air::Nr(air) => air.place(rnti, sinr_db),
        }
    }

    /// The part of a slot that carries data; in LTE, that of the current slot.
    pub(super) fn region(&self, slot: u64) -> DataRegion {
        match self {
            Air::Lte(air) => DataRegion::Lte { cfi: air.cfi },
            Air::Nr(air) => air.region(slot),
        }
    }

    /// The part of a slot to which the bits per PRB of a radio report belong: in LTE the current slot, in NR a full slot.
    pub(super) fn reported_region(&self) -> DataRegion {
        match self {
            Air::Lte(air) => DataRegion::Lte { cfi: air.cfi },
            Air::Nr(air) => air.full_region(),
        }
    }

    /// Mean number of slots with data per ms, each counted by its share of the data of a full slot.
    pub(super) fn full_slots_per_ms(&self) -> f64 {
        match self {
            Air::Lte(_) => 1.0,
            Air::Nr(air) => air.full_slots_per_ms(),
        }
    }

    /// Mean number of slots with data per ms.
    pub(super) fn data_slots_per_ms(&self) -> f64 {
        match self {
            Air::Lte(_) => 1.0,
            Air::Nr(air) => air.data_slots_per_ms(),
        }
    }

    /// Minimum time in which `count` slots with data can be sent; `count` is at least 1.
    pub(super) fn shortest(&self, count: u64) -> Duration {
        match self {
            Air::Lte(_) => Duration::from_millis(count),
            Air::Nr(air) => air.shortest(count),
        }
    }

    /// PRBs of the current slot that cannot carry data.
    pub(super) fn reserved(&self) -> PrbSet {
        match self {
            Air::Lte(_) => PrbSet::EMPTY,
            Air::Nr(air) => air.reserved(),
        }
    }

    /// The message with system information that becomes due in the current slot.
    ///
    /// Chosen: a carrier of LTE sends none, because it would take one of 50 subframes.
    pub(super) fn system_information(&self) -> Option<ControlGrant> {
        match self {
            Air::Lte(_) => None,
            Air::Nr(air) => air.system_information(),
        }
    }

    /// Times of the feedback for a transmission in slot `slot`.
    pub(super) fn feedback_times(&self, slot: u64) -> FeedbackTimes {
        match self {
            Air::Lte(air) => {
                let now = Time::from_millis(slot);
                FeedbackTimes { known_at: now + lte::FEEDBACK, resend_from: now + air.round_trip }
            }
            Air::Nr(air) => air.feedback_times(slot),
        }
    }

    /// A grant of data in the current slot, without the properties of its blocks.
    pub(super) fn grant(&self, slot: u64, layers: u8) -> Dci {
        let dci = Dci { direction: Direction::Downlink, ..Dci::default() };
        match self {
            Air::Lte(_) => Dci { format: if layers > 1 { DciFormat::F2A } else { DciFormat::F1 }, ..dci },
            Air::Nr(air) => Dci {
                format: DciFormat::Nr11,
                symbols: air.region(slot).symbols(),
                offset_slots: Some(0),
                ..dci
            },
        }
    }

    /// The DCI of a control message.
    pub(super) fn control_dci(&self, rnti: Rnti, prbs: PrbSet) -> Dci {
        match self {
            Air::Lte(_) => lte::control_dci(rnti, prbs),
            Air::Nr(air) => air.control_dci(rnti, prbs),
        }
    }
}
