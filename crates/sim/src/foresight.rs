//! What an Oracle knows of a cell's downlink beforehand.
//!
//! A scheduler's decisions depend on what waits and on the other users, so nobody can compute them without a run. A run with
//! Oracles over a cell is therefore made twice, with the same seed. In the first, each Oracle stands at the base station,
//! begins when its first packet could have got there, and keeps more waiting than a subframe could take: it is served as a
//! sender that always has data waiting.
//!
//! Where a queue of the Internet is before the cell, a sender that always has data waiting fills both, and what has gathered in
//! the cell while the cell was slow is carried faster than the Internet could bring it later. So the Oracle fills both in the first
//! run; a run between the two then brings to the cell only what the first run shows to be needed, as late as the Internet can bring
//! it. That is counted from the start of the run, not by what waits: where rivals make the cell slower than it was in the first run,
//! the Internet must not pause, because it cannot bring those bytes later.
//!
//! In the second run each of its packets leaves earlier by what it takes to the base station, and so gets there at the same
//! instant: the second run is the first one, seen from afar. (A packet that jitter would hold up leaves earlier still, and
//! those behind it may come a little too early.) Where that cannot be, because what a wire does to a packet depends on when it
//! leaves, or because flows carry transfers that wait for requests, the Oracle follows what the cell did in the first run,
//! millisecond by millisecond.

use std::borrow::Cow;
use std::time::Duration;

use airpace_core::{Bytes, Rate, Time};
use airpace_path::network::{CellService, LinkState};
use airpace_scenario::Flow;

/// How far ahead the whole band is looked at, so that enough waits before the channel becomes better.
///
/// Chosen: four milliseconds. That is the Oracle's own reaction time.
const AHEAD_MS: usize = 4;

/// How far ahead the run between looks at what must wait in the cell.
///
/// Chosen: what is sent in a millisecond is in the cell after the next one.
const SOON_MS: usize = 3;

const MILLISECOND: Duration = Duration::from_millis(1);

/// The role of a run; courses by flow, `None` for flows that are no Oracle's over the downlink of a cell.
#[derive(Debug, Default)]
pub(crate) enum Foresight {
    /// Its Oracles know nothing beforehand, or it has none over a cell's downlink.
    #[default]
    None,
    /// It is a run before the last.
    Gathered(Vec<Option<Course>>),
    /// It is the last run.
    Known(Vec<Option<Course>>),
    /// The packets of every flow leave at these times.
    Given(Vec<Vec<Time>>),
}

/// What a cell does for one flow over a run.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    /// How long the flow's first packet takes to the base station.
    lead: Duration,
    /// By millisecond from the start of the run.
    moments: Vec<Moment>,
    /// When its packets left the base station; `None` if the second run does not repeat that.
    departures: Option<Vec<Time>>,
    /// By millisecond, what must have reached the cell so far, if a run before this one has shown that.
    needed: Option<Vec<Bytes>>,
}

/// When the packets of a flow must leave.
#[derive(Debug, Default)]
pub(crate) struct Departures {
    times: Vec<Time>,
    /// How many of them have come.
    due: usize,
}

impl Departures {
    /// When the next packet must leave.
    pub(crate) fn next(&self) -> Option<Time> {
        self.times.get(self.due).copied()
    }

    /// How many packets must have left by `now`, if that has changed.
    pub(crate) fn due(&mut self, now: Time) -> Option<u64> {
        let before = self.due;
        while self.next().is_some_and(|next| next <= now) {
            self.due += 1;
        }
        (self.due > before).then_some(self.due as u64)
    }
}

/// The state at the beginning of a millisecond.
#[derive(Clone, Copy, Debug)]
struct Moment {
    /// What the device had been sent so far.
    sent: Bytes,
    /// What the whole band could take.
    whole_band: Bytes,
    /// With this much waiting, the device is served as if data without end waited.
    saturating: Bytes,
    /// What waits in the cell.
    in_cell: Bytes,
    /// The state of the queue before the cell, if there is one.
    before: Option<LinkState>,
}

impl Foresight {
    /// A flow as the run acts it: in a run that gathers, an Oracle's begins and ends later by what its packets take to the base
    /// station. If the second run does not repeat it, it always has data, whatever its application would write.
    pub(crate) fn acted<'a>(&self, index: usize, flow: &'a Flow) -> Cow<'a, Flow> {
        let Foresight::Gathered(courses) = self else { return Cow::Borrowed(flow) };
        let Some(course) = &courses[index] else { return Cow::Borrowed(flow) };
        let lead_s = course.lead.as_secs_f64();
        let later = Flow {
            start_s: flow.start_s + lead_s,
            stop_s: flow.stop_s.map(|stop_s| stop_s + lead_s),
            ..flow.clone()
        };
        if course.departures.is_some() {
            return Cow::Owned(later);
        }
        Cow::Owned(Flow {
            rate_mbps: None,
            bytes: None,
            every_ms: None,
            connection: None,
            request_bytes: 0,
            ..later
        })
    }

    /// The course that is gathered for a flow.
    pub(crate) fn gathered(&mut self, flow: usize) -> Option<&mut Course> {
        match self {
            Foresight::Gathered(courses) => courses[flow].as_mut(),
            Foresight::None | Foresight::Known(_) | Foresight::Given(_) => None,
        }
    }

    /// Whether the run is one between the first and the last.
    pub(crate) fn is_between(&self) -> bool {
        let Foresight::Gathered(courses) = self else { return false };
        courses.iter().flatten().any(|course| course.needed.is_some())
    }

    /// What a run between the first and the last is given: how much must wait in the cell. `None` if no queue before the cell asks
    /// for such a run.
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

    /// When the packets of a flow must leave; nothing if that is not known. `jitters` are those of its wire.
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
                    // A packet that jitter holds up must not hold up those that leave after it.
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

    /// The course of a flow, in any run that has one.
    pub(crate) fn course(&self, flow: usize) -> Option<&Course> {
        match self {
            Foresight::Gathered(courses) | Foresight::Known(courses) => courses[flow].as_ref(),
            Foresight::None | Foresight::Given(_) => None,
        }
    }

    /// The course that is known for a flow.
    pub(crate) fn known(&self, flow: usize) -> Option<&Course> {
        match self {
            Foresight::Known(courses) => courses[flow].as_ref(),
            Foresight::None | Foresight::Gathered(_) | Foresight::Given(_) => None,
        }
    }
}

impl Course {
    /// A course that is gathered for a flow whose first packet takes `lead` to the base station. `is_repeated` says whether the
    /// second run repeats the departures.
    pub(crate) fn new(lead: Duration, is_repeated: bool) -> Course {
        Course { lead, moments: vec![], departures: is_repeated.then(Vec::new), needed: None }
    }

    /// Notes that a packet leaves the base station.
    pub(crate) fn note_departure(&mut self, now: Time) {
        if let Some(departures) = &mut self.departures {
            departures.push(now);
        }
    }

    /// Notes the next millisecond: what the cell does, what waits in it, and the queue before it, if there is one.
    pub(crate) fn note(&mut self, cell: CellService, in_cell: Bytes, before: Option<LinkState>) {
        let CellService { sent, whole_band, saturating, .. } = cell;
        self.moments.push(Moment { sent, whole_band, saturating, in_cell, before });
    }

    /// By millisecond, how many bytes must have reached the cell so far, so that the flow is served as in the run before: those that
    /// the cell sent later, less those that the queue before it can bring in time.
    fn needed(&self) -> Vec<Bytes> {
        let (mut by_then, mut rate_after) = (Bytes::ZERO, None);
        let needed = self.moments.iter().rev().map(|moment| {
            // The queue may take its new rate after the millisecond has begun in which it is noted.
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

    /// How many bytes must have reached the cell when a packet sent at `at` gets there; `None` if no run before has shown that.
    pub(crate) fn needed_at(&self, at: Time) -> Option<Bytes> {
        let needed = self.needed.as_ref()?;
        let place = at.as_millis() as usize;
        needed[place.min(needed.len())..].iter().take(SOON_MS).copied().max()
    }

    /// What the cell serves in the millisecond of `at`, and how much must wait there.
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
