//! Course of a run over time: what each flow received and waited, and the PRBs of its device, in intervals of 100 ms.
//!
//! Figures over time and metrics over a span of time are computed from it: medians per 2 s, Jain's index of the PRBs of the
//! primary cell while three flows are active, the share of time with a second carrier.

use std::time::Duration;

use airpace_core::{DeviceId, Direction, Time};
use airpace_event::{Detail, Event, Fate, Owner, Recorder};
use airpace_tables::facts::RunFacts;
use serde::{Deserialize, Serialize};

use super::{nearest_rank, significant};

/// Length of an interval.
pub const INTERVAL: Duration = Duration::from_millis(100);

/// Quantiles of one-way delay of a whole run.
pub const QUANTILES: [f64; 5] = [0.1, 0.25, 0.5, 0.75, 0.9];

/// Course of one flow. The lists have an entry per interval, from the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Course {
    /// Bytes that arrived for the first time.
    pub bytes: Vec<u64>,
    /// Median one-way delay of the packets that arrived, in ms; `None` if none arrived.
    pub delay_ms: Vec<Option<f64>>,
    /// PRBs granted to the flow's device in its direction on the device's primary carrier, over all slots.
    pub primary_prbs: Vec<u64>,
    /// PRBs granted to it on its other carriers.
    pub other_prbs: Vec<u64>,
    /// Bytes that the last hop could have carried to or from the device, if it reports them.
    pub capacity_bytes: Vec<f64>,
    /// Quantiles of the one-way delay over the whole run, in ms, at [`QUANTILES`]; empty if no packet arrived.
    pub delay_quantiles_ms: Vec<f64>,
    /// Number of blocks of the device's grants.
    pub blocks: u64,
    /// How many of these blocks were retransmissions.
    pub again: u64,
    /// The states of the controller, each with the time in seconds at which the flow entered it; at most
    /// [`MAX_STATES`].
    pub states: Vec<(f64, String)>,
}

/// Maximum number of states of a course.
///
/// Chosen: a change every 10 ms for a minute.
pub const MAX_STATES: usize = 6_000;

impl Course {
    /// Throughput in Mbit/s per interval.
    pub fn mbps(&self) -> impl Iterator<Item = f64> + '_ {
        self.bytes.iter().map(|&bytes| bytes as f64 * 8e-6 / INTERVAL.as_secs_f64())
    }

    /// Share of the intervals in `span_s` (from, until) in which the device had PRBs beyond its primary carrier.
    pub fn share_beyond_primary(&self, span_s: (f64, f64)) -> f64 {
        let others = between(&self.other_prbs, span_s);
        others.iter().filter(|&&prbs| prbs > 0).count() as f64 / others.len().max(1) as f64
    }
}

/// The entries of the intervals that lie in `span_s` (from, until).
pub fn between<T>(entries: &[T], (from_s, until_s): (f64, f64)) -> &[T] {
    let index = |at_s: f64| (at_s / INTERVAL.as_secs_f64()).round().clamp(0.0, entries.len() as f64) as usize;
    let (from, until) = (index(from_s), index(until_s));
    &entries[from.min(until)..until]
}

/// Records the courses of all flows of a run.
pub struct CourseMeter {
    flows: Vec<Flow>,
    intervals: usize,
}

struct Flow {
    device: DeviceId,
    direction: Direction,
    course: Course,
    /// The number of the device's primary carrier: its first carrier, on which it always has grants.
    primary: Option<u8>,
    /// Delays of the present interval, and its number, in µs.
    delays_us: Vec<u32>,
    interval: usize,
    all_delays_us: Vec<u32>,
}

impl CourseMeter {
    /// A meter for a run with these flows.
    pub fn new(facts: &RunFacts) -> CourseMeter {
        let intervals = facts.duration.as_nanos().div_ceil(INTERVAL.as_nanos() as u64) as usize;
        let flow = |flow: &airpace_tables::facts::FlowFacts| Flow {
            device: flow.device,
            direction: flow.direction,
            primary: flow.primary,
            delays_us: Vec::new(),
            interval: 0,
            all_delays_us: Vec::new(),
            course: Course {
                bytes: vec![0; intervals],
                delay_ms: vec![None; intervals],
                primary_prbs: vec![0; intervals],
                other_prbs: vec![0; intervals],
                capacity_bytes: vec![0.0; intervals],
                ..Course::default()
            },
        };
        CourseMeter { flows: facts.flows.iter().map(flow).collect(), intervals }
    }

    /// The courses, in the order of the flows.
    pub fn finish(self) -> Vec<Course> {
        self.flows.into_iter().map(Flow::finish).collect()
    }

    fn interval(&self, time: Time) -> Option<usize> {
        let interval = (time.as_nanos() / INTERVAL.as_nanos() as u64) as usize;
        (interval < self.intervals).then_some(interval)
    }
}

impl Recorder for CourseMeter {
    fn record(&mut self, event: Event<'_>) {
        match event {
            Event::Arrived(arrived) if arrived.fate == Fate::Delivered && !arrived.duplicate => {
                let Some(interval) = self.interval(arrived.time) else { return };
                if let Some(flow) = self.flows.get_mut(usize::from(arrived.packet.flow.0)) {
                    flow.arrive(interval, arrived.packet.bytes.0, arrived.time - arrived.packet.sent);
                }
            }
            Event::Subframe(subframe) => {
                let report = subframe.report;
                let Some(interval) = self.interval(report.time) else { return };
                for (dci, owner) in report.dcis.iter().zip(subframe.owners) {
                    let Owner::Device(device) = owner else { continue };
                    let flows = self.flows.iter_mut();
                    for flow in flows.filter(|flow| (flow.device, flow.direction) == (*device, dci.direction))
                    {
                        let is_primary = flow.primary.is_none_or(|primary| primary == report.carrier.0);
                        let prbs = match is_primary {
                            true => &mut flow.course.primary_prbs,
                            false => &mut flow.course.other_prbs,
                        };
                        prbs[interval] += u64::from(dci.prbs.len());
                        for codeword in (0..2).filter(|&codeword| dci.is_sent(codeword)) {
                            flow.course.blocks += 1;
                            flow.course.again += u64::from(dci.retransmission[codeword]);
                        }
                    }
                }
            }
            Event::Capacity(capacity) => {
                let Some(interval) = self.interval(capacity.time) else { return };
                let whose = (capacity.device, capacity.direction);
                for flow in self.flows.iter_mut().filter(|flow| (flow.device, flow.direction) == whose) {
                    flow.course.capacity_bytes[interval] += capacity.bytes.0 as f64;
                }
            }
            Event::Inspected(inspected) => {
                let Some(flow) = self.flows.get_mut(usize::from(inspected.flow.0)) else { return };
                let states = &mut flow.course.states;
                let is_new = states.last().is_none_or(|(_, state)| state != inspected.state);
                if is_new && states.len() < MAX_STATES {
                    states.push((significant(inspected.time.as_secs_f64()), inspected.state.to_owned()));
                }
            }
            _ => {}
        }
    }

    fn wants(&self, detail: Detail) -> bool {
        detail == Detail::Subframes
    }
}

impl Flow {
    fn arrive(&mut self, interval: usize, bytes: u64, delay: Duration) {
        if interval != self.interval {
            self.close_interval();
            self.interval = interval;
        }
        self.course.bytes[interval] += bytes;
        let delay_us = delay.as_micros().min(u128::from(u32::MAX)) as u32;
        self.delays_us.push(delay_us);
        self.all_delays_us.push(delay_us);
    }

    fn close_interval(&mut self) {
        self.delays_us.sort_unstable();
        self.course.delay_ms[self.interval] = nearest_rank(&self.delays_us, 0.5).map(|&us| in_ms(us));
        self.delays_us.clear();
    }

    fn finish(mut self) -> Course {
        if self.interval < self.course.delay_ms.len() {
            self.close_interval();
        }
        self.all_delays_us.sort_unstable();
        let quantile = |q: &f64| nearest_rank(&self.all_delays_us, *q).map(|&us| in_ms(us));
        self.course.delay_quantiles_ms = QUANTILES.iter().filter_map(quantile).collect();
        self.course
    }
}

fn in_ms(us: u32) -> f64 {
    significant(f64::from(us) * 1e-3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_holds_the_intervals_between_its_ends() {
        let entries: Vec<usize> = (0..50).collect();
        assert_eq!(between(&entries, (1.0, 1.5)), [10, 11, 12, 13, 14]);
        assert_eq!(between(&entries, (4.8, 9.0)), [48, 49]);
        assert!(between(&entries, (9.0, 4.0)).is_empty());
    }

    #[test]
    fn a_second_carrier_is_seen_in_the_share_of_its_intervals() {
        let course = Course { other_prbs: vec![0, 5, 5, 0], ..Course::default() };
        assert_eq!(course.share_beyond_primary((0.0, 0.4)), 0.5);
        assert_eq!(course.share_beyond_primary((0.1, 0.3)), 1.0);
    }
}
