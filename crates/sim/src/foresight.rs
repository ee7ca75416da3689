//! What an Oracle knows of a cell's downlink beforehand.
//!
//! A scheduler's decisions depend on what waits and on the other users, so nobody can compute them without a run. A run with
//! Oracles over a cell is therefore made twice, with the same seed. In the first, each Oracle stands at the base station,
//! begins when its first packet could have got there, and keeps more waiting than a subframe could take: it is served as a
//! sender that always has data waiting. What the cell does then, millisecond by millisecond, is what the Oracle of the second
//! run knows in advance.

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
    /// station, and always has data, whatever its application would write.
    pub(crate) fn acted<'a>(&self, index: usize, flow: &'a Flow) -> Cow<'a, Flow> {
        let Foresight::Gathered(courses) = self else { return Cow::Borrowed(flow) };
        let Some(course) = &courses[index] else { return Cow::Borrowed(flow) };
        let lead_s = course.lead.as_secs_f64();
        Cow::Owned(Flow {
            start_s: flow.start_s + lead_s,
            stop_s: flow.stop_s.map(|stop_s| stop_s + lead_s),
            rate_mbps: None,
            bytes: None,
            every_ms: None,
            connection: None,
            request_bytes: 0,
            ..flow.clone()
        })
    }

    /// The course that is gathered for a flow.
    pub(crate) fn gathered(&mut self, flow: usize) -> Option<&mut Course> {
        match self {
            Foresight::Gathered(courses) => courses[flow].as_mut(),
            Foresight::None | Foresight::Known(_) => None,
        }
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
    /// A course that is gathered for a flow whose first packet takes `lead` to the base station.
    pub(crate) fn new(lead: Duration) -> Course {
        Course { lead, moments: vec![] }
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
