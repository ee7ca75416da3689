//! Air interface of an uplink carrier: what LTE and NR do differently in the steps of a slot.
//!
//! | | LTE | NR |
//! | --- | --- | --- |
//! | slots with data | all | the uplink slots of the pattern |
//! | grant | four subframes before the data | in the last downlink slot that is early enough (K2) |
//! | retransmission | eight subframes later, on the same PRBs, without a grant | when it is granted again |
//! | PRBs of a grant | 2^a 3^b 5^c | any number |

use std::time::Duration;

use airpace_core::tables::lte;
use airpace_core::{Direction, Time};
use airpace_radio::{Dci, DciFormat};

use super::super::nr::{self, UPLINK_PROCESSES};

/// Air interface of an uplink carrier.
#[derive(Clone, Debug)]
pub(in super::super) enum UplinkAir {
    /// A carrier of LTE FDD.
    Lte,
    /// A carrier of NR.
    Nr(Box<nr::Uplink>),
}

/// The number of HARQ processes of an uplink carrier of LTE. It is also the number of subframes from one transmission of
/// a block to the next.
///
/// Source: TS 36.213 §8
const LTE_PROCESSES: u64 = 8;

/// Number of subframes from a grant of LTE to the granted transmission, and from a transmission to the base station's
/// reaction.
///
/// Source: TS 36.213 §8.0, §8.3 (FDD: n+4)
const LTE_DELAY: u64 = 4;

impl UplinkAir {
    pub(super) fn slots_per_ms(&self) -> u64 {
        match self {
            UplinkAir::Lte => 1,
            UplinkAir::Nr(air) => air.slots_per_ms(),
        }
    }

    /// Start of a slot.
    pub(super) fn start(&self, slot: u64) -> Time {
        match self {
            UplinkAir::Lte => Time::from_millis(slot),
            UplinkAir::Nr(air) => air.start(slot),
        }
    }

    /// Whether a slot carries data.
    pub(super) fn has_data(&self, slot: u64) -> bool {
        match self {
            UplinkAir::Lte => true,
            UplinkAir::Nr(air) => air.is_uplink(slot),
        }
    }

    /// The slots whose data is granted in this slot.
    pub(super) fn targets(&self, slot: u64) -> Vec<u64> {
        match self {
            UplinkAir::Lte => vec![slot + LTE_DELAY],
            UplinkAir::Nr(air) => air.targets(slot).collect(),
        }
    }

    /// The last slot before `slot` in which grants are sent; `None` if there is none from slot 0 on.
    pub(super) fn previous(&self, slot: u64) -> Option<u64> {
        match self {
            UplinkAir::Lte => slot.checked_sub(1),
            UplinkAir::Nr(air) => air.previous(slot),
        }
    }

    /// Time at which the base station reacts to a transmission in this slot.
    pub(super) fn reaction(&self, slot: u64) -> Time {
        match self {
            UplinkAir::Lte => Time::from_millis(slot + LTE_DELAY),
            UplinkAir::Nr(air) => air.start(air.reaction_slot(slot)),
        }
    }

    /// The slot in which a block that was lost in this slot is retransmitted without a grant; `None` if retransmissions
    /// need a grant.
    pub(super) fn repeats_in(&self, slot: u64) -> Option<u64> {
        match self {
            UplinkAir::Lte => Some(slot + LTE_PROCESSES),
            UplinkAir::Nr(_) => None,
        }
    }

    /// The HARQ process of new data in this slot. In LTE it follows from the slot; in NR it is the lowest process whose bit
    /// in `busy` is 0. `None` if no process is free.
    pub(super) fn process(&self, slot: u64, busy: u32) -> Option<u8> {
        let free = |process: u8| (busy >> process & 1 == 0).then_some(process);
        match self {
            UplinkAir::Lte => free((slot % LTE_PROCESSES) as u8),
            UplinkAir::Nr(_) => (0..UPLINK_PROCESSES).find_map(free),
        }
    }

    /// The largest number of PRBs of a grant that is at most `prbs`.
    pub(super) fn size_within(&self, prbs: u16) -> u16 {
        match self {
            UplinkAir::Lte => lte::pusch_size_within(prbs),
            UplinkAir::Nr(_) => prbs,
        }
    }

    /// The smallest number of PRBs of a grant that is at least `prbs`; `None` if there is none.
    pub(super) fn size_from(&self, prbs: u16) -> Option<u16> {
        match self {
            UplinkAir::Lte => lte::pusch_size_from(prbs),
            UplinkAir::Nr(_) => Some(prbs.max(1)),
        }
    }

    /// A grant for data `delay` slots later, without the properties of its block.
    pub(super) fn grant(&self, delay: u64) -> Dci {
        let dci = Dci { direction: Direction::Uplink, layers: 1, ..Dci::default() };
        match self {
            UplinkAir::Lte => Dci { format: DciFormat::F0, ..dci },
            UplinkAir::Nr(_) => {
                Dci { format: DciFormat::Nr01, symbols: Some(14), offset_slots: Some(delay as u8), ..dci }
            }
        }
    }

    /// Whether a device may send a scheduling request in a slot, with opportunities in the milliseconds whose number is
    /// `offset_ms` modulo `period_ms`.
    pub(super) fn is_request_slot(&self, slot: u64, period_ms: u64, offset_ms: u64) -> bool {
        match self {
            UplinkAir::Lte => slot % period_ms == offset_ms,
            UplinkAir::Nr(air) => air.is_request_slot(slot, period_ms, offset_ms),
        }
    }

    /// Mean number of slots with data per ms.
    pub(super) fn data_slots_per_ms(&self) -> f64 {
        match self {
            UplinkAir::Lte => 1.0,
            UplinkAir::Nr(air) => air.data_slots_per_ms(),
        }
    }

    /// Minimum time in which `count` slots with data can be sent.
    pub(super) fn shortest(&self, count: u64) -> Duration {
        match self {
            UplinkAir::Lte => Duration::from_millis(count),
            UplinkAir::Nr(air) => air.shortest(count),
        }
    }

    /// Maximum time from the start of a block to the start of a block that is granted in reaction to it.
    pub(super) fn longest_turnaround(&self) -> Duration {
        match self {
            UplinkAir::Lte => Duration::from_millis(LTE_DELAY + LTE_DELAY),
            UplinkAir::Nr(air) => air.longest_turnaround(),
        }
    }
}
