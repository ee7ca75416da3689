//! What an Oracle knows of a cell's downlink beforehand.
//!
//! A scheduler's decisions depend on what waits and on the other users, so nobody can compute them without a run. A run with
//! Oracles over a cell is therefore made twice, with the same seed. In the first, each Oracle stands at the base station,
//! begins when its first packet could have got there, and keeps more waiting than a subframe could take: it is served as a
//! sender that always has data waiting.
//!
//! In the second run each of its packets leaves earlier by what it takes to the base station, and so gets there at the same
//! instant: the second run is the first one, seen from afar. Where that cannot be, because wires do more than delay and lose
//! packets, or flows carry transfers that wait for requests, the Oracle follows what the cell did in the first run,
//! millisecond by millisecond.

use std::borrow::Cow;
use std::time::Duration;

use airpace_core::{Bytes, Rate, Time};
use airpace_path::network::CellService;
use airpace_scenario::Flow;

/// How far ahead the whole band is looked at, so that enough waits before the channel becomes better.
///
/// Chosen: four milliseconds. That is the Oracle's own reaction time.
const AHEAD_MS: usize = 4;

/// The role of a run; courses by flow, `None` for flows that are no Oracle's over the downlink of a cell.
#[derive(Debug, Default)]
pub(crate) enum Foresight {
    /// Its Oracles know nothing beforehand, or it has none over a cell's downlink.
    #[default]
    None,
    /// It is the first of two.
    Gathered(Vec<Option<Course>>),
    /// It is the second of two.
    Known(Vec<Option<Course>>),
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
    /// What waits on the way to the cell and in it, if the cell has less waiting than it could take: then a queue
    /// before the cell limits the flow, and the cell's queue comes and goes as the scheduler has it.
    limited: Option<Bytes>,
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
            Foresight::None | Foresight::Known(_) => None,
        }
    }

    /// When the packets of a flow must leave; nothing if that is not known.
    pub(crate) fn departures(&mut self, flow: usize) -> Departures {
        let Foresight::Known(courses) = self else { return Departures::default() };
        let times = courses[flow].as_mut().and_then(|course| {
            let lead = course.lead;
            Some(course.departures.take()?.into_iter().map(|left| left - lead).collect())
        });
        Departures { times: times.unwrap_or_default(), due: 0 }
    }

    /// The course that is known for a flow.
    pub(crate) fn known(&self, flow: usize) -> Option<&Course> {
        match self {
            Foresight::Known(courses) => courses[flow].as_ref(),
            Foresight::None | Foresight::Gathered(_) => None,
        }
    }
}

impl Course {
    /// A course that is gathered for a flow whose first packet takes `lead` to the base station. `is_repeated` says whether the
    /// second run repeats the departures.
    pub(crate) fn new(lead: Duration, is_repeated: bool) -> Course {
        Course { lead, moments: vec![], departures: is_repeated.then(Vec::new) }
    }

    /// Notes that a packet leaves the base station.
    pub(crate) fn note_departure(&mut self, now: Time) {
        if let Some(departures) = &mut self.departures {
            departures.push(now);
        }
    }

    /// Notes the next millisecond: what the cell does, what waits in it, and what waits before it, if there is a queue.
    pub(crate) fn note(&mut self, cell: CellService, in_cell: Bytes, before: Option<Bytes>) {
        let limited = before.filter(|_| in_cell < cell.whole_band).map(|before| before + in_cell);
        self.moments.push(Moment { sent: cell.sent, whole_band: cell.whole_band, limited });
    }

    /// What the cell serves in the millisecond of `at`, and how much must wait there.
    pub(crate) fn at(&self, at: Time) -> Option<(Rate, Bytes)> {
        let last = self.moments.len().checked_sub(2)?;
        let place = (at.as_millis() as usize).min(last);
        let served = self.moments[place + 1].sent - self.moments[place].sent;
        let ahead = &self.moments[place..self.moments.len().min(place + AHEAD_MS)];
        let whole_band = ahead.iter().map(|moment| moment.whole_band).max()?;
        let enough = self.moments[place].limited.unwrap_or(whole_band);
        Some((Rate::from_bytes_per(served, Duration::from_millis(1)), enough))
    }
}
