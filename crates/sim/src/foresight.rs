//! Advance information about a cell's downlink for an Oracle, a sender with perfect reports about its path.
//!
//! A scheduler's decisions depend on the backlog and on the other users, so they cannot be computed without a run. A
//! scenario with Oracles over a cell is therefore run twice, with the same seed. In the first run, each Oracle is
//! located at the base station, starts when its first packet could have arrived at the base station, and keeps a larger
//! backlog than a subframe can transmit: the cell serves the Oracle as it serves a sender that always has data waiting.
//!
//! Where a queue of the Internet precedes the cell, a sender that always has data waiting fills the queue and the cell.
//! The cell then transmits the backlog that it accumulated in slow phases faster than the Internet could deliver this
//! backlog later. The Oracle therefore fills the queue and the cell in the first run. An additional run between the
//! first and the last run delivers to the cell only the bytes that the cell needs according to the first run, as late
//! as the Internet can deliver them. These bytes are counted from the start of the run, not from the backlog: where
//! competing flows make the cell slower than in the first run, the Internet must not pause, because it cannot deliver
//! the bytes later.
//!
//! In the second run, each packet is sent earlier by its delay to the base station, and so arrives at the base station
//! at the same instant: the second run reproduces the first run from the sender's location. (A packet that jitter would
//! delay is sent still earlier, and the packets behind it may arrive slightly early.) This reproduction is impossible
//! where a wire's effect on a packet depends on the packet's send time, or where flows have transfers that wait for
//! requests. In these cases, the Oracle follows the cell's service in the first run, millisecond by millisecond.

use std::borrow::Cow;
use std::time::Duration;

use airpace_core::{Bytes, Rate, Time};
use airpace_path::network::{CellService, LinkState};
use airpace_scenario::{Flow, RateChange};

/// Time for which an Oracle looks ahead at the capacity of the whole band, in ms, so that enough bytes wait before the
/// channel improves.
///
/// Chosen: four milliseconds, the Oracle's own reaction time.
const AHEAD_MS: usize = 4;

/// Time for which an Oracle looks ahead at the required backlog in the cell in the run between the first and the last
/// run, in ms.
///
/// Chosen: bytes sent in a millisecond are in the cell after the next millisecond.
const SOON_MS: usize = 3;

const MILLISECOND: Duration = Duration::from_millis(1);

/// Role of a run, with a course (departures over time) for each flow. Only flows of the Oracle over the downlink of a
/// cell have a course; for other flows it is `None`.
#[derive(Debug, Default)]
pub(crate) enum Foresight {
    /// The run's Oracles have no advance information, or the run has no Oracle over a cell's downlink.
    #[default]
    None,
    /// The run gathers information and is followed by a further run.
    Gathered(Vec<Option<Course>>),
    /// The run is the last run, and its Oracles use the courses of the run before.
    Known(Vec<Option<Course>>),
    /// The send times of all packets are given, by flow.
    Given(Vec<Vec<Time>>),
}

/// A cell's service of one flow during a run.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    /// Delay of the flow's first packet from the sender to the base station.
    lead: Duration,
    /// State at each millisecond from the start of the run.
    moments: Vec<Moment>,
    /// Times at which packets left the sender at the base station; `None` if the second run does not reproduce these
    /// times.
    departures: Option<Vec<Time>>,
    /// For each millisecond: number of bytes that must have reached the cell, according to the previous run; `None`
    /// without a previous run.
    needed: Option<Vec<Bytes>>,
}

/// Prescribed send times of a flow's packets.
#[derive(Debug, Default)]
pub(crate) struct Departures {
    times: Vec<Time>,
    /// Number of send times that have passed.
    due: usize,
}

impl Departures {
    /// Returns the next send time.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.times.get(self.due).copied()
    }

    /// Returns the number of packets that must have been sent by `now`, if this number has changed.
    pub(crate) fn due(&mut self, now: Time) -> Option<u64> {
        let before = self.due;
        while self.poll_timeout().is_some_and(|next| next <= now) {
            self.due += 1;
        }
        (self.due > before).then_some(self.due as u64)
    }
}

/// State of the cell for one flow at the start of a millisecond.
#[derive(Clone, Copy, Debug)]
struct Moment {
    /// Bytes that the cell has sent to the device since the start of the run.
    sent: Bytes,
    /// Bytes that the whole band can transmit to the device in the millisecond.
    whole_band: Bytes,
    /// Minimum backlog (bytes) with which the cell serves the device as with unlimited data.
    saturating: Bytes,
    /// Backlog in the cell (bytes).
    in_cell: Bytes,
    /// State of the queue before the cell, if there is one.
    before: Option<LinkState>,
}

impl Foresight {
    /// Returns the parameters of a flow for this run. In a gathering run, an Oracle's flow starts and stops later by
    /// the delay to the base station. If the second run does not reproduce the send times, the flow also has unlimited
    /// data in the gathering run.
    pub(crate) fn acted<'a>(&self, index: usize, flow: &'a Flow) -> Cow<'a, Flow> {
        let Foresight::Gathered(courses) = self else { return Cow::Borrowed(flow) };
        let Some(course) = &courses[index] else { return Cow::Borrowed(flow) };
        let lead_s = course.lead.as_secs_f64();
        let later = Flow {
            start_s: flow.start_s + lead_s,
            stop_s: flow.stop_s.map(|stop_s| stop_s + lead_s),
            schedule: flow
                .schedule
                .iter()
                .map(|change| RateChange { at_s: change.at_s + lead_s, ..*change })
                .collect(),
            ..flow.clone()
        };
        if course.departures.is_some() {
            return Cow::Owned(later);
        }
        Cow::Owned(Flow {
            rate_mbps: None,
            schedule: Vec::new(),
            bytes: None,
            every_ms: None,
            connection: None,
            request_bytes: 0,
            video: None,
            viewing: None,
            ..later
        })
    }

    /// Returns the course to be gathered for a flow.
    pub(crate) fn gathered(&mut self, flow: usize) -> Option<&mut Course> {
        match self {
            Foresight::Gathered(courses) => courses[flow].as_mut(),
            Foresight::None | Foresight::Known(_) | Foresight::Given(_) => None,
        }
    }

    /// Returns whether the run is between the first and the last run.
    pub(crate) fn is_between(&self) -> bool {
        let Foresight::Gathered(courses) = self else { return false };
        courses.iter().flatten().any(|course| course.needed.is_some())
    }

    /// Returns the information for a run between the first and the last run: the required backlog in the cell. `None`
    /// if no queue before a cell requires such a run.
    pub(crate) fn between(&self) -> Option<Foresight> {
        let Foresight::Known(courses) = self else { return None };
        let has_queue = |course: &Course| course.moments.iter().any(|moment| moment.before.is_some());
        courses.iter().flatten().any(has_queue).then(|| {
            let next = |course: &Course| Course {
                needed: has_queue(course).then(|| course.needed()),
                ..Course::new(course.lead, course.departures.is_some())
            };
            Foresight::Gathered(courses.iter().map(|course| course.as_ref().map(next)).collect())
        })
    }

    /// Returns the prescribed send times of a flow; no send times if they are unknown. `jitters` are the jitter values
    /// of the flow's wire.
    pub(crate) fn departures(
        &mut self,
        flow: usize,
        jitters: Option<impl Iterator<Item = Duration>>,
    ) -> Departures {
        let times = match self {
            Foresight::Known(courses) => courses[flow].as_mut().and_then(|course| {
                let mut times = course.departures.take()?;
                times.iter_mut().for_each(|left| *left = *left - course.lead);
                if let Some(jitters) = jitters {
                    times.iter_mut().zip(jitters).for_each(|(left, jitter)| *left = *left - jitter);
                    // A packet that jitter delays must not delay the packets that are sent after it.
                    let mut next = Time::NEVER;
                    for left in times.iter_mut().rev() {
                        next = next.min(*left);
                        *left = next;
                    }
                }
                Some(times)
            }),
            Foresight::Given(flows) => flows.get_mut(flow).map(std::mem::take),
            Foresight::None | Foresight::Gathered(_) => None,
        };
        Departures { times: times.unwrap_or_default(), due: 0 }
    }

    /// Returns the course of a flow, in a gathering run or in the last run.
    pub(crate) fn course(&self, flow: usize) -> Option<&Course> {
        match self {
            Foresight::Gathered(courses) | Foresight::Known(courses) => courses[flow].as_ref(),
            Foresight::None | Foresight::Given(_) => None,
        }
    }

    /// Returns the course of a flow in the last run.
    pub(crate) fn known(&self, flow: usize) -> Option<&Course> {
        match self {
            Foresight::Known(courses) => courses[flow].as_ref(),
            Foresight::None | Foresight::Gathered(_) | Foresight::Given(_) => None,
        }
    }
}

impl Course {
    /// Creates an empty course for a flow whose first packet needs the time `lead` from the sender to the base station.
    /// `is_repeated`: whether the second run reproduces the send times.
    pub(crate) fn new(lead: Duration, is_repeated: bool) -> Course {
        Course { lead, moments: vec![], departures: is_repeated.then(Vec::new), needed: None }
    }

    /// Notes that the sender at the base station sends a packet at `now`.
    pub(crate) fn note_departure(&mut self, now: Time) {
        if let Some(departures) = &mut self.departures {
            departures.push(now);
        }
    }

    /// Notes the state at the next millisecond: the cell's service, the cell's backlog, and the state of the queue
    /// before the cell, if there is such a queue.
    pub(crate) fn note(&mut self, cell: CellService, in_cell: Bytes, before: Option<LinkState>) {
        let CellService { sent, whole_band, saturating, .. } = cell;
        self.moments.push(Moment { sent, whole_band, saturating, in_cell, before });
    }

    /// Returns, for each millisecond, the number of bytes that must have reached the cell for the same service as in
    /// the previous run: the bytes that the cell sent later, minus the bytes that the queue before the cell can deliver
    /// in time.
    fn needed(&self) -> Vec<Bytes> {
        let (mut by_then, mut rate_after) = (Bytes::ZERO, None);
        let needed = self.moments.iter().rev().map(|moment| {
            // The queue may switch to a new rate later within the millisecond in which the new rate is noted.
            let rate = moment.before.and_then(|before| before.rate);
            let lowest = [rate, rate_after].into_iter().flatten().min();
            let brought = lowest.map_or(Bytes(u64::MAX), |rate| rate.bytes_in(MILLISECOND));
            rate_after = rate;
            by_then = (by_then - brought).max(moment.sent + moment.in_cell.min(moment.saturating));
            by_then
        });
        let mut needed: Vec<Bytes> = needed.collect();
        needed.reverse();
        needed
    }

    /// Returns the number of bytes that must have reached the cell when a packet sent at `at` arrives at the cell;
    /// `None` without a previous run.
    pub(crate) fn needed_at(&self, at: Time) -> Option<Bytes> {
        let needed = self.needed.as_ref()?;
        let place = at.as_millis() as usize;
        needed[place.min(needed.len())..].iter().take(SOON_MS).copied().max()
    }

    /// Returns the cell's service rate in the millisecond of `at`, and the backlog that must wait for the cell in this
    /// millisecond.
    pub(crate) fn at(&self, at: Time) -> Option<(Rate, Bytes)> {
        let last = self.moments.len().checked_sub(2)?;
        let place = (at.as_millis() as usize).min(last);
        let served = self.moments[place + 1].sent - self.moments[place].sent;
        let ahead = &self.moments[place..self.moments.len().min(place + AHEAD_MS)];
        let whole_band = ahead.iter().map(|moment| moment.whole_band).max()?;
        let now = &self.moments[place];
        let enough = now.before.map_or(whole_band, |before| before.backlog + now.in_cell);
        Some((Rate::from_bytes_per(served, MILLISECOND), enough))
    }
}
