//! Host session on a diagnostic port: requests log packets from the modem, and restores the modem's masks at the end.
//!
//! ```text
//! identify → plain framing, if offered → number of items → read masks → events off, logs off → set masks
//!    → Streaming ⇄ want(): set the masks that differ
//!    → leave(): restore the original masks → Closed
//! ```
//!
//! At most one request is outstanding. An unanswered request is retransmitted. If the modem refuses an optional
//! request, the session continues without the result. Otherwise the session fails with a [`Trouble`] whose text
//! describes a remedy. The caller passes the time to every call. The session handles message bodies; a [`Line`] frames
//! them.

mod line;
mod status;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use airpace_core::Time;

use crate::command::{Answer, EventMask, Request};
use crate::control::{Control, Drain};
use crate::frame::Framing;
use crate::mask::{EQUIPMENTS, Mask};
use crate::packet::{LogCode, Message};

pub use line::Line;
pub use status::{Identity, Missing, State, Step, Trouble};

/// Options of a session.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Whether to request plain framing, which has fewer bytes, no escapes and no checksums. A modem returns to HDLC
    /// when its port closes, or when it receives bytes that are not a plain frame.
    ///
    /// Source: Linux drivers/char/diag/diagfwd.c, of Android's kernels (it is not known which DM ports offer plain
    /// framing)
    pub wants_plain: bool,
    /// Time to wait for an answer before the request is sent again.
    ///
    /// Chosen: modems answer within tens of milliseconds. A port under load takes longer.
    pub answer_within: Duration,
    /// Time without any message after which the masks are read again while streaming, because a modem that restarted
    /// has lost them. With `None`, the masks are never read again.
    pub check_after: Option<Duration>,
    /// The masks before an earlier session of the same host changed them; with `None`, the session reads them from the
    /// modem.
    pub original: Option<Original>,
    /// In-band control of the modem's buffer: sets the buffering mode and drains the buffer. Only a
    /// [`Modem`](crate::modem::Modem) of this crate supports this. If the modem refuses the control, the session
    /// continues without it.
    pub drain: Option<Drain>,
}

impl Default for SessionOptions {
    fn default() -> SessionOptions {
        SessionOptions {
            wants_plain: true,
            answer_within: Duration::from_millis(500),
            check_after: Some(Duration::from_secs(5)),
            original: None,
            drain: None,
        }
    }
}

/// The modem's masks before a session changed them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Original {
    /// Log masks that have at least one code on.
    pub logs: Vec<Mask>,
    /// The event mask, if any event was on.
    pub events: Option<EventMask>,
}

/// The host side of a diagnostic port.
#[derive(Clone, Debug)]
pub struct Session {
    wanted: BTreeSet<LogCode>,
    options: SessionOptions,
    state: State,
    /// Framing of the last answer, or expected framing of the next answer.
    framing: Framing,
    identity: Identity,
    /// Steps that are complete or skipped.
    done: BTreeSet<Step>,
    /// Number of items of each equipment.
    items: [u32; EQUIPMENTS],
    /// Log masks as last confirmed by the modem; `None` if unknown.
    masks: [Option<Mask>; EQUIPMENTS],
    /// Reason why the modem did not accept the mask of an equipment.
    refused: BTreeMap<u8, Missing>,
    original: Original,
    /// Whether the original masks are known.
    is_original_known: bool,
    /// Whether the modem's masks may differ from the original masks.
    is_changed: bool,
    /// Remaining requests that restore the modem.
    undo: VecDeque<Request>,
    under_way: Option<UnderWay>,
    transmit: VecDeque<Vec<u8>>,
    drain: Option<Drain>,
    /// Whether no request is left to send.
    is_settled: bool,
    /// Time at which the last message arrived.
    heard: Option<Time>,
}

/// A request that is not answered yet.
#[derive(Clone, Debug)]
struct UnderWay {
    step: Step,
    request: Request,
    /// Number of transmissions of the request.
    tries: u32,
    deadline: Time,
}

/// Maximum number of transmissions of a necessary request; together, these transmissions take `6 × answer_within`.
const TRIES: u32 = 6;
/// Maximum number of transmissions of an optional request.
const OPTIONAL_TRIES: u32 = 3;

impl Session {
    /// A session that requests these codes. Sends nothing before the first [`handle_timeout`](Session::handle_timeout).
    pub fn new(codes: BTreeSet<LogCode>, mut options: SessionOptions) -> Session {
        let original = options.original.take();
        let drain = options.drain.take();
        Session {
            wanted: codes,
            options,
            state: State::Opening(Step::Version),
            framing: Framing::Hdlc,
            identity: Identity::default(),
            done: BTreeSet::new(),
            items: [0; EQUIPMENTS],
            masks: [const { None }; EQUIPMENTS],
            refused: BTreeMap::new(),
            is_original_known: original.is_some(),
            // Masks that an earlier session changed must be restored, even if this session changes nothing.
            is_changed: original.is_some(),
            original: original.unwrap_or_default(),
            undo: VecDeque::new(),
            under_way: None,
            transmit: VecDeque::new(),
            drain,
            is_settled: false,
            heard: None,
        }
    }

    /// State of the session.
    pub fn state(&self) -> State {
        self.state
    }

    /// Current framing of bodies in both directions. Any call with a `now` argument may change the framing.
    pub fn framing(&self) -> Framing {
        let is_other = self.under_way.as_ref().is_some_and(|under_way| match under_way.step {
            // An earlier host may have left the modem in the other framing, so alternate between both framings.
            Step::Version => under_way.tries.is_multiple_of(3),
            // The answer that changed the framing may have been lost, so alternate between both framings.
            Step::Framing => under_way.tries.is_multiple_of(2),
            _ => false,
        });
        if is_other { other(self.framing) } else { self.framing }
    }

    /// The modem's identity, as far as it was received.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Requested codes that the modem cannot send, each with the reason. The list is empty until the modem has reported
    /// its number of log items for each equipment.
    pub fn missing(&self) -> Vec<(LogCode, Missing)> {
        if !self.done.contains(&Step::Items) {
            return vec![];
        }
        let why = |code: LogCode| match self.items[usize::from(code.equipment())] {
            0 => Some(Missing::Equipment),
            items if code.item() >= items => Some(Missing::Items(items)),
            _ => self.refused.get(&code.equipment()).copied(),
        };
        self.wanted.iter().filter_map(|&code| Some((code, why(code)?))).collect()
    }

    /// The modem's original masks, for the options of a later session; `None` if they are not known (yet).
    pub fn original(&self) -> Option<&Original> {
        self.is_original_known.then_some(&self.original)
    }

    /// Whether the modem accepted the in-band control of its buffer and the session drains the buffer.
    pub fn is_draining(&self) -> bool {
        self.state == State::Streaming && self.drain.is_some()
    }

    /// Replaces the requested codes. The change takes effect at the next [`handle_timeout`](Session::handle_timeout),
    /// which is due at once.
    pub fn want(&mut self, codes: BTreeSet<LogCode>) {
        self.wanted = codes;
        self.refused.clear();
        self.is_settled = false;
    }

    /// Restores the modem. The restoration starts at the next [`handle_timeout`](Session::handle_timeout), which is due
    /// at once.
    pub fn leave(&mut self) {
        if matches!(self.state, State::Opening(_) | State::Streaming) {
            self.state = State::Leaving;
            self.is_settled = false;
            self.under_way = None;
            self.transmit.clear();
            self.undo = self.undoing().into();
        }
    }

    /// The bodies that restore the modem, as [`leave`](Session::leave) would send them, for a caller that must restore
    /// the modem without a session. The caller must frame them in [`framing`](Session::framing). Empty if nothing was
    /// changed.
    pub fn restore(&self) -> Vec<Vec<u8>> {
        self.undoing().iter().map(Request::body).collect()
    }

    /// The next body to send, if any. The caller must frame it in [`framing`](Session::framing).
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.transmit.pop_front()
    }

    /// Time of the next [`handle_timeout`](Session::handle_timeout); `None` if never.
    pub fn poll_timeout(&self) -> Option<Time> {
        let due = match (self.state, &self.under_way) {
            (State::Closed | State::Failed(_), _) => return None,
            (_, Some(under_way)) => Some(under_way.deadline),
            (State::Streaming, None) if self.is_settled => self.next_check(),
            (_, None) => Some(Time::ZERO),
        };
        let drain = match self.state {
            State::Streaming => self.drain.as_ref().and_then(Drain::poll_timeout),
            _ => None,
        };
        due.into_iter().chain(drain).min()
    }

    /// Handles a message from the modem.
    pub fn on_message(&mut self, now: Time, message: &Message<'_>) {
        self.heard = Some(now);
        let Message::Other { body, .. } = message else { return };
        let Some(answer) = Answer::read(body) else { return };
        let framing = self.framing();
        match self.under_way.take_if(|under_way| under_way.request.is_answered_by(&answer)) {
            Some(UnderWay { step, request, .. }) => {
                self.framing = framing;
                self.take(step, request, answer);
                self.advance(now);
            }
            // A modem that supports drains does not answer them.
            None => {
                if let Answer::Refused(..) = answer
                    && Request::Control(Control::Drain).is_answered_by(&answer)
                {
                    self.drain = None;
                }
            }
        }
    }

    /// Handles a timer that is due.
    pub fn handle_timeout(&mut self, now: Time) {
        match &mut self.under_way {
            Some(under_way) if now < under_way.deadline => {}
            Some(under_way) => {
                let (step, tries) = (under_way.step, under_way.tries);
                let is_needed = self.state == State::Streaming
                    || matches!(step, Step::Version | Step::Items | Step::Set(_) | Step::Restore);
                if tries < if is_needed { TRIES } else { OPTIONAL_TRIES } {
                    under_way.tries += 1;
                    under_way.deadline = now + self.options.answer_within;
                    self.transmit.push_back(under_way.request.body());
                } else if is_needed {
                    let trouble =
                        if self.heard.is_none() { Trouble::Silent } else { Trouble::Unanswered(step) };
                    self.fail(trouble);
                } else {
                    self.under_way = None;
                    self.skip(step);
                    self.advance(now);
                }
            }
            None => {
                let is_quiet =
                    self.state == State::Streaming && self.next_check().is_some_and(|due| due <= now);
                if is_quiet {
                    self.check();
                }
                if is_quiet || !self.is_settled {
                    self.advance(now);
                }
            }
        }
        if self.state == State::Streaming
            && let Some(control) = self.drain.as_mut().and_then(|drain| drain.poll(now))
        {
            self.transmit.push_back(Request::Control(control).body());
        }
    }

    /// Sends the next request, if none is outstanding.
    fn advance(&mut self, now: Time) {
        if self.under_way.is_some() || matches!(self.state, State::Closed | State::Failed(_)) {
            return;
        }
        let next = match self.state {
            State::Leaving => self.undo.pop_front().map(|request| (Step::Restore, request)),
            _ => self.next_step(),
        };
        self.is_settled = next.is_none();
        match (next, self.state) {
            (None, State::Leaving) => {
                self.is_changed = false;
                self.state = State::Closed;
            }
            (None, State::Opening(_)) => {
                self.state = State::Streaming;
                self.heard = Some(now);
            }
            (None, _) => {}
            (Some((step, request)), state) => {
                if let State::Opening(_) = state {
                    self.state = State::Opening(step);
                }
                self.is_changed |= matches!(step, Step::EventsOff | Step::LogsOff | Step::Set(_));
                self.transmit.push_back(request.body());
                let deadline = now + self.options.answer_within;
                self.under_way = Some(UnderWay { step, request, tries: 1, deadline });
            }
        }
    }

    /// The next step and its request, while the session is not leaving.
    fn next_step(&self) -> Option<(Step, Request)> {
        let wants_plain = self.options.wants_plain && self.framing == Framing::Hdlc;
        let first = [
            (Step::Version, Request::Version, true),
            (Step::Build, Request::Build, true),
            (Step::Protocol, Request::Protocol, true),
            (Step::Framing, Request::PlainFraming, wants_plain),
            (Step::Items, Request::LogItems, true),
            (Step::ReadEvents, Request::EventMask, !self.is_original_known),
        ];
        let equipments = 0..EQUIPMENTS as u8;
        let reads = equipments.clone().map(|equipment| {
            let is_there = self.items[usize::from(equipment)] > 0;
            (Step::Read(equipment), Request::LogMask(equipment), is_there)
        });
        let then = [(Step::EventsOff, Request::Events(false), true), (Step::LogsOff, Request::LogsOff, true)];
        let asks = first.into_iter().chain(reads).chain(then);
        let ask = asks.into_iter().find(|(step, _, is_due)| *is_due && !self.done.contains(step));
        if let Some((step, request, _)) = ask {
            return Some((step, request));
        }
        let set = equipments.into_iter().find_map(|equipment| {
            let items = self.items[usize::from(equipment)];
            let mask = Mask::of(equipment, items, self.wanted.iter().copied());
            let confirmed = self.masks[usize::from(equipment)].as_ref();
            let is_as_wanted = confirmed.is_some_and(|confirmed| confirmed.is_same(&mask));
            (items > 0 && !is_as_wanted && !self.refused.contains_key(&equipment))
                .then_some((Step::Set(equipment), Request::SetLogMask(mask)))
        });
        set.or_else(|| {
            let controls = self.drain.as_ref()?.buffering()?.controls();
            let mut steps = controls.into_iter().zip(0..).map(|(control, at)| (Step::Buffer(at), control));
            let (step, control) = steps.find(|(step, _)| !self.done.contains(step))?;
            Some((step, Request::Control(control)))
        })
    }

    /// Processes the answer to a request.
    fn take(&mut self, step: Step, request: Request, answer: Answer) {
        if self.state == State::Leaving {
            return;
        }
        if let (Answer::Refused(refusal, _), Step::Items) = (&answer, step) {
            return self.fail(Trouble::Refused(step, *refusal));
        }
        match (&answer, step) {
            (Answer::Refused(refusal, _), Step::Set(equipment)) => {
                self.refused.insert(equipment, Missing::Refused(*refusal));
                return;
            }
            // A refusal is an answer too, and the session needs nothing else from this step.
            (Answer::Refused(..), Step::Version) => {}
            (Answer::Refused(..), _) => return self.skip(step),
            _ => {}
        }
        self.done.insert(step);
        match (answer, request) {
            (Answer::Version(release), _) => self.identity.release = Some(release),
            (Answer::Build(build), _) => self.identity.build = Some(build),
            (Answer::Protocol(version), _) => self.identity.protocol = Some(version),
            (Answer::PlainFraming(true), _) => self.framing = Framing::Plain,
            (Answer::LogItems(_, items), _) => self.learn_items(items),
            (Answer::LogMask(_, mask), _) => self.learn_mask(mask),
            (Answer::EventMask(mask), _) => self.original.events = mask.filter(|mask| !mask.is_off()),
            (Answer::LogsOff(0), _) => {
                for ((equipment, mask), items) in (0..).zip(&mut self.masks).zip(self.items) {
                    *mask = Some(Mask::off(equipment, items));
                }
            }
            (Answer::SetLogMask(0, _), Request::SetLogMask(asked)) => {
                let equipment = usize::from(asked.equipment());
                self.masks[equipment] = Some(asked);
            }
            (Answer::SetLogMask(status, _), Request::SetLogMask(asked)) => {
                self.refused.insert(asked.equipment(), Missing::Status(status));
            }
            (Answer::Control(false), _) => self.drain = None,
            _ => {}
        }
    }

    fn learn_items(&mut self, items: [u32; EQUIPMENTS]) {
        self.items = items.map(|items| items.min(crate::mask::MAX_ITEMS));
        if self.is_original_known {
            self.done.extend((0..EQUIPMENTS as u8).map(Step::Read));
        }
    }

    fn learn_mask(&mut self, mask: Option<Mask>) {
        if let Some(mask) = mask {
            if !self.is_original_known && !mask.is_off() {
                self.original.logs.push(mask.clone());
            }
            let equipment = usize::from(mask.equipment());
            self.masks[equipment] = Some(mask);
        }
        let is_read = |id: u8| self.items[usize::from(id)] == 0 || self.done.contains(&Step::Read(id));
        self.is_original_known |= (0..EQUIPMENTS as u8).all(is_read);
    }

    /// Continues without the result of this step, whose request was refused or not answered.
    fn skip(&mut self, step: Step) {
        self.done.insert(step);
        match step {
            // If one mask cannot be read, the other masks cannot be read either.
            Step::Read(_) => self.done.extend((0..EQUIPMENTS as u8).map(Step::Read)),
            Step::Buffer(_) => self.drain = None,
            _ => {}
        }
    }

    /// Time at which the masks are due to be read again.
    fn next_check(&self) -> Option<Time> {
        Some(self.heard? + self.options.check_after?)
    }

    /// Repeats the steps whose result would differ after a restart of the modem.
    fn check(&mut self) {
        let equipments: BTreeSet<u8> = self.wanted.iter().map(|code| code.equipment()).collect();
        match self.is_original_known && !equipments.is_empty() {
            true => self.done.retain(|step| !matches!(step, Step::Read(id) if equipments.contains(id))),
            false => drop(self.done.remove(&Step::Version)),
        }
    }

    fn fail(&mut self, trouble: Trouble) {
        self.under_way = None;
        self.transmit.clear();
        self.state = State::Failed(trouble);
    }

    fn undoing(&self) -> Vec<Request> {
        if !self.is_changed {
            return vec![];
        }
        let masks = self.original.logs.iter().cloned().map(Request::SetLogMask);
        let events = self.original.events.iter().cloned().map(Request::SetEventMask);
        [Request::LogsOff].into_iter().chain(masks).chain(events).collect()
    }
}

fn other(framing: Framing) -> Framing {
    match framing {
        Framing::Hdlc => Framing::Plain,
        Framing::Plain => Framing::Hdlc,
    }
}
