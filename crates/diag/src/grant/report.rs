//! Converts grants to radio reports.
//!
//! A report contains only the phone's own grants: a modem does not log the grants of other phones. PRBs without a grant
//! in a report are therefore not necessarily free.

use std::collections::VecDeque;

use airpace_core::{Bits, Direction, Time};
use airpace_radio::{BitLayer, CarrierId, Dci, DciFormat, OwnRadio, PrbSet, RadioReport, Rnti, Scope, Slot};

use super::read::UPLINK_DELAY;
use super::{Grant, Merge, Rat};
use crate::packet::Radio;
use crate::stamp::Stamp;

/// RNTI of the grants in the reports: a modem logs which grants are the phone's own, but not its RNTI.
///
/// Chosen: the first RNTI that a cell assigns.
///
/// Source: TS 36.321 Table 7.1-1
pub const OWN_RNTI: Rnti = Rnti(61);

/// Maximum number of reports that wait until the bandwidth of their carrier is known.
///
/// Chosen: a minute of one carrier, about twenty megabytes.
const MAX_HELD: usize = 60_000;

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

/// Makes reports from one radio's grants: one per carrier and subframe, including subframes without a grant.
#[derive(Clone, Debug)]
pub struct Reports {
    radio: Radio,
    merge: Merge,
    /// Time of subframe 0 of the reports' clock, determined by the first grant.
    origin: Option<Stamp>,
    carriers: Vec<Carrier>,
    /// Grants before this time are dropped.
    since: Stamp,
    /// PRB pairs of carriers whose bandwidth is unknown.
    assumed: Option<u16>,
    /// Whether reports wait until the bandwidth of their carrier is known.
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
    /// Number of the slot after the last reported slot (`next`), and the start time of that slot.
    next: u64,
    time: Stamp,
    /// Start of the last reported subframe.
    last: Stamp,
}

impl Reports {
    /// Creates reports from the grants of this radio.
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

    /// Assumes `carrier_prbs` PRB pairs for carriers of unknown bandwidth.
    pub fn assuming(self, carrier_prbs: u16) -> Reports {
        Reports { assumed: Some(carrier_prbs), ..self }
    }

    /// Returns reports even before the bandwidth of their carrier is known; the bandwidth in these reports is `None`.
    pub fn without_waiting(self) -> Reports {
        Reports { waits: false, ..self }
    }

    /// Drops grants before `since`: the first packets of a log contain grants from before the start of the log, with
    /// gaps.
    pub fn begin(&mut self, since: Stamp) {
        self.since = since;
    }

    /// PRB pairs of a carrier, as far as known or assumed.
    pub fn carrier_prbs(&self, carrier: CarrierId) -> Option<u16> {
        let at = self.carriers.binary_search_by_key(&carrier, |carrier| carrier.id).ok()?;
        self.carriers[at].prbs.or(self.assumed)
    }

    /// Number of dropped grants: grants from before the start, and grants that arrived after later reports had been
    /// returned.
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
        // A report describes the subframe of the DCIs. In LTE, the cell sends an uplink grant four subframes before the
        // transmission. In NR each grant has its own delay, which the modem's packets do not contain: such a grant is
        // reported in the slot of the transmission.
        let is_earlier = grant.rat == Rat::Lte && grant.direction == Direction::Uplink;
        let delay = if is_earlier { UPLINK_DELAY.min(grant.subframe) } else { 0 };
        let time = Stamp::from_nanos(grant.time.nanos().saturating_sub(delay * 1_000_000));
        // The uplink of LTE uses its HARQ processes in turn.
        // Source: TS 36.321 §5.4.2.1
        let harq = grant.harq.or(is_earlier.then_some((grant.subframe % 8) as u8));
        self.merge.push(&Grant { subframe: grant.subframe - delay, time, harq, ..*grant });
    }

    /// Returns the reports of all subframes before `before`, in order. Reports wait until the bandwidth of their
    /// carrier is known, but at most `MAX_HELD` reports wait. If `before` is `u64::MAX`, no report waits.
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
            if self.waits && prbs.is_none() && before < u64::MAX && self.held.len() < MAX_HELD {
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
    let format = match (grant.direction, blocks) {
        (Direction::Uplink, _) => DciFormat::F0,
        (Direction::Downlink, [Some(_), Some(_)]) => DciFormat::F2,
        (Direction::Downlink, _) => DciFormat::F1,
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
