//! Converts grants to radio reports.
//!
//! A report contains only the phone's own grants: a modem does not log the grants of other phones. PRBs without a grant
//! in a report are therefore not necessarily free.
//!
//! A phone with EN-DC has grants of LTE and of NR at the same time. Modems number the carriers of both technologies from
//! 0, and the frames of both have numbers of their own. In the reports, every carrier has its own number, and the
//! subframes of NR have the number that the subframes of LTE have at the same time.

mod technology;

use std::collections::VecDeque;

use airpace_core::Direction;
use airpace_radio::{CarrierId, RadioReport, Rnti};

use self::technology::{IDLE, Technology};
use super::read::UPLINK_DELAY;
use super::{Grant, Rat};
use crate::packet::Radio;
use crate::stamp::Stamp;

/// RNTI of the grants in the reports: a modem logs which grants are the phone's own, but not its RNTI.
///
/// Chosen: the first RNTI that a cell assigns.
///
/// Source: TS 36.321 Table 7.1-1
pub const OWN_RNTI: Rnti = Rnti(61);

/// Number that the first carrier of NR has in the reports; the numbers below are those of LTE's carriers.
///
/// Source: TS 36.212 §5.3.3.1 (a carrier indicator of LTE has three bits)
pub const FIRST_OF_NR: CarrierId = CarrierId(8);

/// Maximum time for which a report waits for other carriers and directions (subframes), if it is taken as soon as it is
/// complete.
///
/// Chosen: modems batch records of the shared channels over some tens of milliseconds. With this limit, a report still
/// arrives before telemetry counts as stale.
pub const HOLD: u64 = 40;

/// Maximum number of reports that wait until the bandwidth of their carrier is known.
///
/// Chosen: a minute of one carrier, about twenty megabytes.
const MAX_HELD: usize = 60_000;

/// The reports that [`Reports::take`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// All reports, even those of carriers whose bandwidth is unknown.
    End,
    /// Reports of subframes that are older than the newest grant by at least this number of subframes.
    Behind(u64),
    /// Reports of subframes that every active carrier and direction of the technology has reported, and of subframes
    /// that are older than the newest grant by [`HOLD`].
    Complete,
}

/// Makes reports from one radio's grants: one per carrier and slot, including slots without a grant.
#[derive(Clone, Debug)]
pub struct Reports {
    radio: Radio,
    technologies: [Technology; 2],
    /// Number that is added to the subframe numbers of each technology.
    shifts: [Option<i64>; 2],
    /// Time and subframe of the first grant of any technology.
    first: Option<(Stamp, u64)>,
    /// Time of subframe 0 of the reports' clock, determined by the first report.
    origin: Option<Stamp>,
    /// Grants before this time are dropped.
    since: Stamp,
    /// PRB pairs of carriers whose bandwidth is unknown.
    assumed: Option<u16>,
    /// Whether reports of LTE wait until the bandwidth of their carrier is known. No log packet contains the bandwidth of
    /// a carrier of NR.
    waits: bool,
    held: VecDeque<RadioReport>,
    early: u64,
}

impl Reports {
    /// Creates reports from the grants of this radio.
    pub fn new(radio: Radio) -> Reports {
        Reports {
            radio,
            technologies: [Technology::default(), Technology::default()],
            shifts: [None; 2],
            first: None,
            origin: None,
            since: Stamp::default(),
            assumed: None,
            waits: true,
            held: VecDeque::new(),
            early: 0,
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

    /// PRB pairs of a carrier of the reports, as far as known or assumed.
    pub fn carrier_prbs(&self, carrier: CarrierId) -> Option<u16> {
        let known = self.technologies.iter().find_map(|technology| technology.carrier_prbs(carrier));
        known.or(self.assumed)
    }

    /// Number of dropped grants: grants from before the start, and grants that arrived after later reports had been
    /// returned.
    pub fn left_out(&self) -> u64 {
        self.early + self.technologies.iter().map(Technology::late).sum::<u64>()
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
        let (technology, first_carrier) = match grant.rat {
            Rat::Lte => (0, CarrierId(0)),
            Rat::Nr => (1, FIRST_OF_NR),
        };
        let shift = self.shift(technology, grant);
        self.technologies[technology].push(&Grant {
            carrier: CarrierId(first_carrier.0 + grant.carrier.0),
            subframe: (grant.subframe - delay).saturating_add_signed(shift),
            time,
            harq,
            ..*grant
        });
    }

    /// The number that is added to the subframe numbers of a technology, determined by its first grant.
    fn shift(&mut self, technology: usize, grant: &Grant) -> i64 {
        let (began, number) = *self.first.get_or_insert((grant.time, grant.subframe));
        *self.shifts[technology].get_or_insert_with(|| {
            let passed = (grant.time.nanos() as i64 - began.nanos() as i64) as f64 * 1e-6;
            number as i64 + libm::round(passed) as i64 - grant.subframe as i64
        })
    }

    /// Returns reports in the order of their subframes. Reports of LTE wait until the bandwidth of their carrier is
    /// known, but at most `MAX_HELD` reports wait.
    pub fn take(&mut self, until: Until) -> Vec<RadioReport> {
        let mut reports = vec![];
        let ends = self.ends(until);
        for (technology, before) in self.technologies.iter_mut().zip(ends) {
            technology.take(before, &mut self.origin, &mut reports);
        }
        let is_nr = |report: &RadioReport| report.carrier >= FIRST_OF_NR;
        reports
            .sort_by_key(|report| (report.slot.subframe(), is_nr(report), report.slot.index, report.carrier));
        self.held.extend(reports);
        let mut given = vec![];
        while let Some(mut report) = self.held.pop_front() {
            let prbs = self.carrier_prbs(report.carrier);
            let waits = self.waits && !is_nr(&report) && prbs.is_none();
            if waits && until != Until::End && self.held.len() < MAX_HELD {
                self.held.push_front(report);
                break;
            }
            report.carrier_prbs = report.carrier_prbs.or(prbs);
            given.push(report);
        }
        given
    }

    /// The first subframe whose reports are not returned, for each technology.
    fn ends(&mut self, until: Until) -> [u64; 2] {
        let newest = self.technologies.each_ref().map(Technology::newest);
        std::array::from_fn(|at| match until {
            Until::End => u64::MAX,
            Until::Complete => {
                let technology = &mut self.technologies[at];
                let complete = technology.reported_by_all().zip(newest[at]);
                complete.map_or(0, |(all, newest)| all.max(newest.saturating_sub(HOLD)) + 1)
            }
            // Technologies whose numbers agree end at the same subframe, so that their reports stay in order. After a
            // change of the cell, the numbers of one technology are ahead.
            Until::Behind(subframes) => newest[at].map_or(0, |own| {
                let near = newest.iter().flatten().filter(|other| own.abs_diff(**other) <= IDLE);
                (near.min().unwrap_or(&own) + 1).saturating_sub(subframes)
            }),
        })
    }
}
