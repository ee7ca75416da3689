//! Turns grants into radio reports.
//!
//! A report has only the phone's own grants: a modem does not log the grants of others. PRBs without a grant in it seem
//! free to the phone, but not all of them are.

use std::collections::VecDeque;

use airpace_core::{Bits, Direction, Time};
use airpace_radio::{BitLayer, CarrierId, Dci, DciFormat, OwnRadio, PrbSet, RadioReport, Rnti, Scope, Slot};

use super::read::UPLINK_DELAY;
use super::{Grant, Merge, Rat};
use crate::packet::Radio;
use crate::stamp::Stamp;

/// The user of the grants in the reports: a modem tells which grants are its own, not its RNTI.
///
/// Chosen: the first RNTI that a cell gives out.
///
/// Source: TS 36.321 Table 7.1-1
pub const OWN_RNTI: Rnti = Rnti(61);

/// Most reports that wait for the width of their carrier.
///
/// Chosen: a minute of a carrier, in some twenty megabytes.
const MOST_HELD: usize = 60_000;

/// How far a faster packet may set the clock of subframes back: times stand still for that long.
///
/// Chosen: 20 ms, as much as the delays of the fastest packets differ.
const SET_BACK_NANOS: u64 = 20_000_000;

/// After this many subframes without any grant, reports pause.
///
/// Chosen: a second. A modem without traffic logs nothing. An empty report says that nothing was granted, so that is
/// reported for a while. In a longer silence, for example between two logs, nothing is known.
const SILENCE: u64 = 1_000;

/// Makes reports from one radio's grants: one per carrier and subframe, also for subframes without a grant.
#[derive(Clone, Debug)]
pub struct Reports {
    radio: Radio,
    merge: Merge,
    /// When subframe 0 of the reports' clock is, known from the first grant.
    origin: Option<Stamp>,
    carriers: Vec<Carrier>,
    /// Grants from before are left out.
    since: Stamp,
    /// PRB pairs for carriers of unknown width.
    assumed: Option<u16>,
    /// Whether reports wait for the width of their carrier.
    waits: bool,
    held: VecDeque<RadioReport>,
    early: u64,
    late: u64,
}

#[derive(Clone, Copy, Debug)]
struct Carrier {
    id: CarrierId,
    prbs: Option<u16>,
    bits_per_prb: Option<f64>,
    /// The slot after the last one that was reported, and when it begins.
    next: u64,
    time: Stamp,
    /// When the last reported subframe began.
    last: Stamp,
}

impl Reports {
    /// Reports from the grants of this radio.
    pub fn new(radio: Radio) -> Reports {
        Reports {
            radio,
            merge: Merge::new(),
            origin: None,
            carriers: vec![],
            since: Stamp::default(),
            assumed: None,
            waits: true,
            held: VecDeque::new(),
            early: 0,
            late: 0,
        }
    }

    /// The same, with `carrier_prbs` PRB pairs for carriers of unknown width.
    pub fn assuming(self, carrier_prbs: u16) -> Reports {
        Reports { assumed: Some(carrier_prbs), ..self }
    }

    /// The same, but reports do not wait until the width of their carrier is known: it is `None` until then.
    pub fn without_waiting(self) -> Reports {
        Reports { waits: false, ..self }
    }

    /// Leaves out grants before `since`: a log's first packets report times before the log, with gaps.
    pub fn begin(&mut self, since: Stamp) {
        self.since = since;
    }

    /// PRB pairs of a carrier, as far as known or assumed.
    pub fn carrier_prbs(&self, carrier: CarrierId) -> Option<u16> {
        let at = self.carriers.binary_search_by_key(&carrier, |carrier| carrier.id).ok()?;
        self.carriers[at].prbs.or(self.assumed)
    }

    /// Grants that were left out: from before the begin, or so late that later reports had already been given out.
    pub fn left_out(&self) -> u64 {
        self.early + self.late + self.merge.late()
    }

    /// Takes a grant. Grants of other radios are ignored.
    pub fn push(&mut self, grant: &Grant) {
        if grant.radio != self.radio {
            return;
        }
        if grant.time < self.since {
            self.early += 1;
            return;
        }
        // A report is about what the cell says. In LTE the cell grants the uplink four subframes before the phone sends. In NR
        // each grant has a delay of its own, which the modem's packets do not have: such a grant stays where the phone sends.
        let is_earlier = grant.rat == Rat::Lte && grant.direction == Direction::Uplink;
        let delay = if is_earlier { UPLINK_DELAY.min(grant.subframe) } else { 0 };
        let time = Stamp::from_nanos(grant.time.nanos().saturating_sub(delay * 1_000_000));
        // The uplink of LTE uses its processes in turn.
        // Source: TS 36.321 §5.4.2.1
        let harq = grant.harq.or(is_earlier.then_some((grant.subframe % 8) as u8));
        self.merge.push(&Grant { subframe: grant.subframe - delay, time, harq, ..*grant });
    }

    /// Gives out the reports of all subframes before this one, in their order. They wait until the width of their
    /// carriers is known; but not forever, and not if `before` is `u64::MAX`.
    pub fn take(&mut self, before: u64) -> Vec<RadioReport> {
        let mut reports = vec![];
        for grant in self.merge.take(before) {
            self.report(&grant, &mut reports);
        }
        reports.sort_by_key(|report| (report.slot.subframe(), report.slot.index, report.carrier));
        self.held.extend(reports);
        let mut given = vec![];
        while let Some(mut report) = self.held.pop_front() {
            let prbs = self.carrier_prbs(report.carrier);
            if self.waits && prbs.is_none() && before < u64::MAX && self.held.len() < MOST_HELD {
                self.held.push_front(report);
                break;
            }
            report.carrier_prbs = report.carrier_prbs.or(prbs);
            given.push(report);
        }
        given
    }

    fn report(&mut self, grant: &Grant, reports: &mut Vec<RadioReport>) {
        let (slot, time) = (grant.on_air(), grant.time);
        let slot_nanos = slot.numerology.slot_duration().as_nanos() as u64;
        let origin = *self.origin.get_or_insert(time);
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
        // Frames of another cell have increasing numbers too, but the numbers do not fit the time that has passed.
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
    /// The report of a slot in which nothing was granted.
    fn empty(&self, origin: Stamp, slot: Slot, time: Stamp) -> RadioReport {
        RadioReport {
            carrier: self.id,
            slot,
            time: Time::from_nanos(time.nanos().saturating_sub(origin.nanos())),
            scope: Scope::Own,
            carrier_prbs: self.prbs,
            cfi: None,
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

/// A grant in the form of a DCI.
fn dci_of(grant: &Grant) -> Dci {
    let blocks = grant.blocks;
    let format = match (grant.direction, blocks) {
        (Direction::Uplink, _) => DciFormat::F0,
        (Direction::Downlink, [Some(_), Some(_)]) => DciFormat::F2,
        (Direction::Downlink, _) => DciFormat::F1,
    };
    Dci {
        rnti: OWN_RNTI,
        direction: grant.direction,
        format: grant.format.unwrap_or(format),
        // If it is not known which PRBs, the first ones: only the number counts.
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
