//! Radio reports of one radio access technology.

use airpace_core::{Bits, Direction, Time};
use airpace_radio::{BitLayer, CarrierId, Dci, DciFormat, OwnRadio, PrbSet, RadioReport, Scope, Slot};

use super::OWN_RNTI;
use crate::grant::{Grant, Merge, Rat};
use crate::stamp::Stamp;

/// Maximum time by which a faster packet may set back the frame clock (ns). Report times do not advance during such a
/// correction.
///
/// Chosen: 20 ms, the difference between the delays of the fastest packets.
const SET_BACK_NANOS: u64 = 20_000_000;

/// Number of subframes without any grant after which reports pause.
///
/// Chosen: a second. A modem without traffic logs nothing. For this time, empty reports are made, which mean that
/// nothing was granted. In a longer gap, for example between two logs, the grants are unknown.
const SILENCE: u64 = 1_000;

/// Number of subframes without any report after which a carrier and direction counts as inactive.
///
/// Chosen: a second.
pub(super) const IDLE: u64 = 1_000;

/// Makes the reports of one technology: one per carrier and slot, including slots without a grant.
#[derive(Clone, Debug, Default)]
pub(super) struct Technology {
    merge: Merge,
    carriers: Vec<Carrier>,
    /// The newest subframe reported for each carrier and direction.
    newest: Vec<((CarrierId, Direction), u64)>,
    late: u64,
}

#[derive(Clone, Copy, Debug)]
struct Carrier {
    id: CarrierId,
    prbs: Option<u16>,
    bits_per_prb: Option<f64>,
    /// Number of the slot after the last reported slot (`next`), and the start time of that slot.
    next: u64,
    time: Stamp,
    /// Start of the last reported subframe.
    last: Stamp,
}

impl Technology {
    /// PRB pairs of a carrier, if known.
    pub(super) fn carrier_prbs(&self, carrier: CarrierId) -> Option<u16> {
        let at = self.carriers.binary_search_by_key(&carrier, |carrier| carrier.id).ok()?;
        self.carriers[at].prbs
    }

    /// Number of grants that arrived after the reports of their subframes had been returned.
    pub(super) fn late(&self) -> u64 {
        self.late + self.merge.late()
    }

    /// The newest subframe of all carriers and directions; `None` before the first grant.
    pub(super) fn newest(&self) -> Option<u64> {
        self.newest.iter().map(|(_, newest)| *newest).max()
    }

    /// The newest subframe that every active carrier and direction has reported; `None` before the first grant.
    pub(super) fn reported_by_all(&mut self) -> Option<u64> {
        let newest = self.newest()?;
        self.newest.retain(|(_, reported)| reported + IDLE >= newest);
        self.newest.iter().map(|(_, newest)| *newest).min()
    }

    /// Takes a grant in the subframe of its DCI.
    pub(super) fn push(&mut self, grant: &Grant) {
        let place = (grant.carrier, grant.direction);
        match self.newest.iter_mut().find(|(other, _)| *other == place) {
            // Subframe numbers never decrease at a change of the cell, so the maximum is the newest subframe.
            Some((_, newest)) => *newest = grant.subframe.max(*newest),
            None => self.newest.push((place, grant.subframe)),
        }
        self.merge.push(grant);
    }

    /// Appends the reports of all subframes before `before`. The first report of all technologies determines `origin`, the
    /// time of subframe 0 of the reports' clock.
    pub(super) fn take(&mut self, before: u64, origin: &mut Option<Stamp>, reports: &mut Vec<RadioReport>) {
        for grant in self.merge.take(before) {
            self.report(&grant, origin, reports);
        }
    }

    fn report(&mut self, grant: &Grant, origin: &mut Option<Stamp>, reports: &mut Vec<RadioReport>) {
        let (slot, time) = (grant.on_air(), grant.time);
        let slot_nanos = slot.numerology.slot_duration().as_nanos() as u64;
        let origin = *origin.get_or_insert(time);
        let at = match self.carriers.binary_search_by_key(&grant.carrier, |carrier| carrier.id) {
            Ok(at) => at,
            Err(at) => {
                let carrier = Carrier {
                    id: grant.carrier,
                    prbs: None,
                    bits_per_prb: None,
                    next: slot.index,
                    time,
                    last: time,
                };
                self.carriers.insert(at, carrier);
                at
            }
        };
        let carrier = &mut self.carriers[at];
        if time.nanos() + SET_BACK_NANOS < carrier.last.nanos() {
            self.late += 1;
            return;
        }
        let time = time.max(carrier.last);
        carrier.prbs = grant.carrier_prbs.or(carrier.prbs);
        let dci = dci_of(grant);
        if grant.direction == Direction::Downlink && grant.prbs > 0 {
            carrier.bits_per_prb = Some(dci.bits().0 as f64 / f64::from(grant.prbs));
        }
        let gap = slot.index.saturating_sub(carrier.next);
        // The subframe numbers of another cell also increase, but do not match the elapsed time.
        let is_same_frames = carrier.time.nanos().saturating_add(gap.saturating_mul(slot_nanos))
            <= time.nanos().saturating_add(SET_BACK_NANOS);
        if gap <= SILENCE * slot.numerology.slots_per_subframe() && is_same_frames {
            while carrier.next < slot.index {
                let silent = Slot { index: carrier.next, ..slot };
                reports.push(carrier.empty(origin, silent, carrier.time.min(time)));
                carrier.next += 1;
                carrier.time = Stamp::from_nanos(carrier.time.nanos() + slot_nanos);
            }
        }
        let crc = grant.blocks.iter().flatten().filter_map(|block| block.crc).reduce(|all, crc| all && crc);
        let of_carrier = reports.iter_mut().rev().find(|report| report.carrier == grant.carrier);
        if let Some(report) = of_carrier.filter(|report| report.slot == slot) {
            report.dcis.push(dci);
            if let Some(own) = &mut report.own {
                own.decoded = own.decoded.or(crc);
            }
            return;
        }
        let mut report = carrier.empty(origin, slot, time);
        report.dcis.push(dci);
        if let Some(own) = &mut report.own {
            own.decoded = crc;
        }
        reports.push(report);
        carrier.next = slot.index + 1;
        carrier.last = time;
        carrier.time = Stamp::from_nanos(time.nanos() + slot_nanos);
    }
}

impl Carrier {
    /// The report of a slot without grants.
    fn empty(&self, origin: Stamp, slot: Slot, time: Stamp) -> RadioReport {
        RadioReport {
            carrier: self.id,
            slot,
            time: Time::from_nanos(time.nanos().saturating_sub(origin.nanos())),
            scope: Scope::Own,
            carrier_prbs: self.prbs,
            cfi: None,
            symbols: None,
            dcis: vec![],
            own: Some(OwnRadio {
                rnti: OWN_RNTI,
                active: true,
                sinr_db: None,
                bits_per_prb: self.bits_per_prb,
                decoded: None,
                uplink_queue: None,
            }),
            layer: BitLayer::Physical,
        }
    }
}

/// The grant as a DCI.
fn dci_of(grant: &Grant) -> Dci {
    let blocks = grant.blocks;
    let format = match (grant.rat, grant.direction, blocks) {
        (Rat::Nr, Direction::Uplink, _) => DciFormat::Nr01,
        (Rat::Nr, Direction::Downlink, _) => DciFormat::Nr11,
        (Rat::Lte, Direction::Uplink, _) => DciFormat::F0,
        (Rat::Lte, Direction::Downlink, [Some(_), Some(_)]) => DciFormat::F2,
        (Rat::Lte, Direction::Downlink, _) => DciFormat::F1,
    };
    Dci {
        rnti: OWN_RNTI,
        direction: grant.direction,
        format: grant.format.unwrap_or(format),
        // If the PRBs are unknown, use the first PRBs of the carrier: only the number of PRBs is meaningful then.
        prbs: grant.prb_set.or(PrbSet::checked_run(0, grant.prbs)).unwrap_or_default(),
        mcs: blocks.map(|block| block?.mcs),
        tbs: blocks.map(|block| block.and_then(|block| block.bits).unwrap_or(Bits::ZERO)),
        rv: blocks.map(|block| block?.rv),
        ndi: blocks.map(|block| block?.ndi),
        harq: grant.harq,
        layers: grant.layers,
        retransmission: blocks.map(|block| block.is_some_and(|block| block.again)),
    }
}
