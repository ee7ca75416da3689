//! A trace as the last hop, with synthetic radio reports: each millisecond is a subframe of one carrier.

use std::sync::Arc;
use std::time::Duration;

use airpace_core::{Bits, Bytes, DeviceId, Direction, Packet, Streams, Time};
use airpace_event::Source;
use airpace_radio::{BitLayer, CarrierId, Dci, DciFormat, OwnRadio, PrbSet, RadioReport, Rnti, Scope, Slot};

use super::MILLISECOND;
use super::plan::TracePlan;
use crate::link::{Exit, Link};
use crate::trace::{KpiTrace, TraceLink};

/// A trace for one direction, and optionally a trace for the opposite direction. The radio reports are those of the
/// first trace.
#[derive(Debug)]
pub(in super::super) struct TraceRadio {
    link: TraceLink,
    direction: Direction,
    back: Option<TraceLink>,
    has_telemetry: bool,
    kpi: Option<Arc<KpiTrace>>,
    /// Number of opportunities used at the time of the last report.
    used: u64,
    /// For each source, whether the device receives its reports.
    is_reported: [bool; 2],
    /// The report of the last millisecond. `is_pending` is, for each source, whether this report has not been delivered
    /// yet.
    report: Option<RadioReport>,
    is_pending: [bool; 2],
    /// The copy of the report that was returned last.
    lent: Option<RadioReport>,
}

/// RNTI of a trace's only device: the first RNTI that a cell assigns.
///
/// Source: TS 36.321 §7.1 Table 7.1-1
const TRACE_RNTI: Rnti = Rnti(61);

impl TraceRadio {
    pub(super) fn new(plan: &TracePlan, streams: &Streams) -> TraceRadio {
        let begin = |link: &TraceLink, direction: Direction| {
            let name = match direction {
                Direction::Downlink => "trace.down",
                Direction::Uplink => "trace.up",
            };
            link.clone().begin(streams, name)
        };
        TraceRadio {
            link: begin(&plan.link, plan.direction),
            direction: plan.direction,
            back: plan.back.as_ref().map(|back| begin(back, plan.direction.opposite())),
            has_telemetry: plan.has_telemetry,
            kpi: plan.kpi.clone(),
            used: 0,
            is_reported: [false; 2],
            report: None,
            is_pending: [false; 2],
            lent: None,
        }
    }

    /// The link of this direction.
    pub(super) fn link(&self, direction: Direction) -> Option<&TraceLink> {
        if direction == self.direction { Some(&self.link) } else { self.back.as_ref() }
    }

    pub(super) fn link_mut(&mut self, direction: Direction) -> Option<&mut TraceLink> {
        if direction == self.direction { Some(&mut self.link) } else { self.back.as_mut() }
    }

    /// Takes a packet in this direction.
    ///
    /// # Panics
    /// If there is no link in this direction; no route crosses a missing link.
    pub(super) fn push(&mut self, now: Time, direction: Direction, packet: Packet) {
        self.link_mut(direction).expect("a route crosses links that are there").push(now, packet);
    }

    /// The next packet that leaves either link, and its direction.
    pub(super) fn pop(&mut self, now: Time) -> Option<(Direction, Exit)> {
        if let Some(exit) = self.link.pop(now) {
            return Some((self.direction, exit));
        }
        Some((self.direction.opposite(), self.back.as_mut()?.pop(now)?))
    }

    pub(super) fn poll_timeout(&self) -> Option<Time> {
        [Some(&self.link), self.back.as_ref()].into_iter().flatten().filter_map(Link::poll_timeout).min()
    }

    /// Capacity of the link in this direction in the millisecond from `from` on; `None` if there is no such link. The
    /// value is exact for the past and the future.
    pub(super) fn capacity(&self, direction: Direction, from: Time) -> Option<Bytes> {
        Some(self.link(direction)?.capacity_between(from, from + MILLISECOND))
    }

    /// Sets whether the device receives reports of this source; a trace has the same reports for both sources.
    pub(super) fn set_reported(&mut self, source: Source, is_reported: bool) {
        self.is_reported[source as usize] = is_reported && self.has_telemetry;
    }

    /// Starts the millisecond at `now`. `now` must be consecutive whole milliseconds. The previous millisecond can then
    /// be reported.
    pub(super) fn begin_millisecond(&mut self, now: Time) {
        if now > Time::ZERO && self.is_reported.contains(&true) {
            self.report = Some(self.report(now));
            self.is_pending = self.is_reported;
        }
    }

    /// Returns the report of the last millisecond, first with the control channel as its source, then with the modem.
    pub(super) fn pop_report(&mut self) -> Option<(DeviceId, Source, &mut RadioReport)> {
        let source =
            [Source::ControlChannel, Source::Modem].into_iter().find(|&it| self.is_pending[it as usize])?;
        self.is_pending[source as usize] = false;
        self.lent.clone_from(&self.report);
        Some((DeviceId(0), source, self.lent.as_mut()?))
    }

    /// The report of the millisecond that ends at `now`. `now` must be consecutive whole milliseconds.
    fn report(&mut self, now: Time) -> RadioReport {
        let start = now - MILLISECOND;
        match self.kpi.clone() {
            Some(kpi) => self.report_of_kpi(start, &kpi),
            None => self.report_of_chances(start, now),
        }
    }

    /// The report has one PRB for each opportunity of the millisecond. The PRB is granted to the device if packets used
    /// the opportunity; otherwise it is idle. An opportunity at the end of a millisecond belongs to that millisecond:
    /// only packets that arrived in this millisecond or earlier can use the opportunity.
    ///
    /// If there are more opportunities than a carrier has PRBs, each PRB represents several opportunities.
    fn report_of_chances(&mut self, start: Time, now: Time) -> RadioReport {
        let next = Duration::from_nanos(1);
        let chances = self.link.opportunities_in(start + next, now + next);
        let used = self.link.used() - std::mem::replace(&mut self.used, self.link.used());
        let bits = self.link.opportunity_bytes().bits().0;
        let chances_per_prb = chances.div_ceil(PrbSet::CAPACITY.into()).max(1);
        let prbs = |chances: u64| chances.div_ceil(chances_per_prb) as u16;
        let bits_per_prb = (bits * chances_per_prb) as f64;
        self.report_with(start, Some(prbs(chances)), prbs(used), Bits(bits * used), Some(bits_per_prb))
    }

    /// In this report, the device has a grant with the bandwidth that its modem reported, on unknown PRBs.
    fn report_of_kpi(&self, start: Time, kpi: &KpiTrace) -> RadioReport {
        let in_trace = (start.as_millis() + self.link.start_ms()) % self.link.trace().period_ms();
        let tbs = Bits(kpi.bandwidth_at(in_trace).as_bps() / 1000);
        self.report_with(start, None, 0, tbs, None)
    }

    /// A report of the millisecond from `start` on. It contains only the device's own grant, or no grant if the grant
    /// has no bits.
    fn report_with(
        &self,
        start: Time,
        carrier_prbs: Option<u16>,
        prbs: u16,
        tbs: Bits,
        bits_per_prb: Option<f64>,
    ) -> RadioReport {
        let is_uplink = self.direction == Direction::Uplink;
        let (scope, layer) = match self.kpi {
            Some(_) => (Scope::Own, BitLayer::Physical),
            // A trace of the uplink has no information about idle PRBs of the downlink.
            None if is_uplink => (Scope::Own, BitLayer::Transport),
            None => (Scope::Everyone, BitLayer::Transport),
        };
        let grant = Dci {
            rnti: TRACE_RNTI,
            direction: self.direction,
            format: if is_uplink { DciFormat::F0 } else { DciFormat::default() },
            prbs: PrbSet::run(0, prbs),
            tbs: [tbs, Bits::ZERO],
            layers: 1,
            ..Dci::default()
        };
        RadioReport {
            carrier: CarrierId(0),
            slot: Slot::subframe_of_lte(start.as_millis()),
            time: start,
            scope,
            carrier_prbs,
            cfi: None,
            symbols: None,
            dcis: if tbs == Bits::ZERO { Vec::new() } else { vec![grant] },
            own: Some(OwnRadio {
                rnti: TRACE_RNTI,
                active: true,
                sinr_db: None,
                bits_per_prb,
                decoded: (tbs > Bits::ZERO).then_some(true),
                uplink_queue: is_uplink.then(|| self.link.backlog()),
            }),
            layer,
        }
    }
}

#[cfg(test)]
mod tests {
    use airpace_core::{Ecn, FlowId};

    use super::*;
    use crate::trace::{Start, Trace, TraceConfig};

    fn radio_over(times_ms: Vec<u64>, direction: Direction, kpi: Option<&[u8]>, start_s: f64) -> TraceRadio {
        let trace = Arc::new(Trace::from_times_ms(times_ms).unwrap());
        let kpi = kpi.map(|table| Arc::new(KpiTrace::parse(table).unwrap()));
        let link = TraceConfig { start_s: Start::AtS(start_s), ..TraceConfig::default() };
        TraceRadio::new(&TracePlan::new(trace, kpi, direction, true, &link).unwrap(), &Streams::new(1))
    }

    #[test]
    fn the_grants_of_a_kpi_trace_hold_until_the_next_and_wrap_with_the_trace() {
        let kpi: &[u8] = b"time_ms,bandwidth_mbps\n0,8\n100,0\n150,40\n";
        let mut radio = radio_over((1..=200).collect(), Direction::Uplink, Some(kpi), 0.05);
        let mut bits_in = |ms: u64| {
            let report = radio.report(Time::from_millis(ms + 1));
            assert_eq!((report.slot.index, report.scope, report.layer), (ms, Scope::Own, BitLayer::Physical));
            assert!(
                report
                    .dcis
                    .iter()
                    .all(|dci| dci.direction == Direction::Uplink && dci.format == DciFormat::F0)
            );
            report.dcis.iter().map(|dci| dci.bits().0).sum::<u64>()
        };
        // The run starts at 50 ms of the trace, which is 200 ms long.
        let bits = [0, 49, 50, 99, 100, 149, 150, 249, 250, 300].map(&mut bits_in);
        assert_eq!(bits, [8000, 8000, 0, 0, 40_000, 40_000, 8000, 8000, 0, 40_000]);
    }

    #[test]
    fn without_one_the_chances_are_told() {
        let mut radio = radio_over((1..=200).collect(), Direction::Downlink, None, 0.0);
        let report = radio.report(Time::from_millis(5));
        assert_eq!(report.idle_prbs(), Some(1), "the only chance is idle");
        assert_eq!((report.carrier_prbs, report.layer), (Some(1), BitLayer::Transport));
        assert!(report.dcis.is_empty(), "no packet used the chance");
    }

    /// Checks the telemetry of a link with a standing queue, for any trace and any packet sizes.
    #[test]
    fn a_standing_queue_leaves_no_chance_idle() {
        let mut rng = airpace_core::Streams::new(14).stream("standing queue");
        for case in 0..60 {
            let mut times_ms: Vec<u64> = (0..rng.below(400) + 1).map(|_| 1 + rng.below(150)).collect();
            if case % 10 == 0 {
                // One millisecond has more opportunities than a carrier has PRBs.
                times_ms.extend(std::iter::repeat_n(77, 700));
            }
            times_ms.sort_unstable();
            let trace = Trace::from_times_ms(times_ms).unwrap();
            let start_s = rng.below(400) as f64 * 1e-3;
            let direction = if case % 3 == 0 { Direction::Uplink } else { Direction::Downlink };
            let mut radio = radio_over(trace.times_ms().to_vec(), direction, None, start_s);
            let bytes = [40, 500, 1500, 1500, 4000][rng.below(5) as usize];
            let packets = (0..40_000 * 1504 / (bytes + 4)).map(|number| packet(number, bytes));
            packets.for_each(|packet| radio.link.push(Time::ZERO, packet));
            let mut reported = 0;
            for now in (1..400).map(Time::from_millis) {
                while radio.link.pop(now).is_some() {}
                let report = radio.report(now);
                let idle = report.idle_prbs();
                let expected = if direction == Direction::Uplink { None } else { Some(0) };
                assert_eq!(idle, expected, "case {case}, at {now}");
                reported += report.dcis.iter().map(|dci| dci.bits().bytes().0).sum::<u64>();
            }
            assert!(radio.link.backlog() > Bytes::ZERO, "the queue stood to the end");
            let past = Time::from_nanos(1)..Time::from_millis(399) + Duration::from_nanos(1);
            assert_eq!(
                reported,
                radio.link.capacity_between(past.start, past.end).0,
                "every chance is reported once"
            );
        }
    }

    fn packet(number: u64, bytes: u64) -> Packet {
        Packet {
            flow: FlowId(0),
            device: DeviceId(0),
            number,
            bytes: Bytes(bytes),
            sent: Time::ZERO,
            ecn: Ecn::NotEct,
        }
    }
}
