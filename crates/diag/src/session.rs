//! The host's side of a diagnostic port: asks the modem for log packets, and gives it back as it was.
//!
//! ```text
//! who are you → plain framing, where offered → how many items → read masks → events off, logs off → set masks
//!    → Streaming ⇄ want(): set the masks that differ
//!    → leave(): masks as they were → Closed
//! ```
//!
//! One request is under way at a time. An unanswered request is sent again. If a modem refuses a request that the
//! session does not need, the session leaves it out. Otherwise the session fails with a [`Trouble`] that says what to
//! do. The caller passes the time in. Bytes are not the session's task: a [`Line`] frames them.

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
    /// Whether to ask for plain framing, which has fewer bytes, no escapes and no checksums. A modem goes back to HDLC
    /// when its port closes, or when it gets something other than a plain frame.
    ///
    /// Source: Linux drivers/char/diag/diagfwd.c, of Android's kernels (which DM ports offer it is not known)
    pub wants_plain: bool,
    /// How long an answer may take before the request is sent again.
    ///
    /// Chosen: modems answer within some ten milliseconds. A port under load takes longer.
    pub answer_within: Duration,
    /// After a silence of this length, the masks are read again while streaming, because a modem that restarted has
    /// lost them. `None` never does this.
    pub check_after: Option<Duration>,
    /// What the modem had before an earlier session of the same host changed it; `None` reads it from the modem.
    pub original: Option<Original>,
    /// Sets buffering and drains in-band. Only a [`Modem`](crate::modem::Modem) of this crate understands this. If the
    /// modem refuses it, the session goes on without it.
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

/// What a modem sent before a session changed it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Original {
    /// Masks with a code on.
    pub logs: Vec<Mask>,
    /// Events, if any were on.
    pub events: Option<EventMask>,
}

/// The host's side of a port.
#[derive(Clone, Debug)]
pub struct Session {
    wanted: BTreeSet<LogCode>,
    options: SessionOptions,
    state: State,
    /// How the last answer was framed, or how the next one is expected to be framed.
    framing: Framing,
    identity: Identity,
    /// Steps that need not be asked (again).
    done: BTreeSet<Step>,
    /// Items of each equipment.
    items: [u32; EQUIPMENTS],
    /// Masks as the modem last confirmed them; `None` if unknown.
    masks: [Option<Mask>; EQUIPMENTS],
    /// Why the modem did not take a mask.
    refused: BTreeMap<u8, Missing>,
    original: Original,
    /// Whether the earlier masks could be read.
    is_original_known: bool,
    /// Whether the modem may differ from how it was.
    is_changed: bool,
    /// Requests that still restore the modem.
    undo: VecDeque<Request>,
    under_way: Option<UnderWay>,
    transmit: VecDeque<Vec<u8>>,
    drain: Option<Drain>,
    /// Whether nothing is left to ask.
    is_settled: bool,
    /// When the last message came.
    heard: Option<Time>,
}

/// A request without an answer yet.
#[derive(Clone, Debug)]
struct UnderWay {
    step: Step,
    request: Request,
    /// How often it was sent.
    tries: u32,
    deadline: Time,
}

/// How often a necessary request is sent; all tries take `6 × answer_within`.
const TRIES: u32 = 6;
/// How often a request is sent that the session does not need.
const OPTIONAL_TRIES: u32 = 3;

impl Session {
    /// A session that wants these codes. Nothing is sent before the first [`on_timer`](Session::on_timer).
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
            // Masks that an earlier session changed must be restored, whatever happens in this session.
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

    /// How far the session is.
    pub fn state(&self) -> State {
        self.state
    }

    /// How bodies are framed from now on, both ways. Any call that takes the time may change it.
    pub fn framing(&self) -> Framing {
        let is_other = self.under_way.as_ref().is_some_and(|under_way| match under_way.step {
            // An earlier host may have left the modem in another framing.
            Step::Version => under_way.tries.is_multiple_of(3),
            // The answer that changed the framing may have been lost.
            Step::Framing => under_way.tries.is_multiple_of(2),
            _ => false,
        });
        if is_other { other(self.framing) } else { self.framing }
    }

    /// The modem's identity, as far as it has answered.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Wanted codes that will not come, and why. Empty until the modem has told how many items it has.
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

    /// What the modem sent before; `None` if unknown (yet). For the options of a later session.
    pub fn original(&self) -> Option<&Original> {
        self.is_original_known.then_some(&self.original)
    }

    /// Whether the modem accepted the in-band control of its buffer and the session drains it.
    pub fn is_draining(&self) -> bool {
        self.state == State::Streaming && self.drain.is_some()
    }

    /// Wants these codes instead. Takes effect at the next [`on_timer`](Session::on_timer), which is due at once.
    pub fn want(&mut self, codes: BTreeSet<LogCode>) {
        self.wanted = codes;
        self.refused.clear();
        self.is_settled = false;
    }

    /// Restores the modem. Takes effect at the next [`on_timer`](Session::on_timer), which is due at once.
    pub fn leave(&mut self) {
        if matches!(self.state, State::Opening(_) | State::Streaming) {
            self.state = State::Leaving;
            self.is_settled = false;
            self.under_way = None;
            self.transmit.clear();
            self.undo = self.undoing().into();
        }
    }

    /// The bodies that restore the modem: what [`leave`](Session::leave) would send, for a caller that must restore it
    /// without a session. To be framed in [`framing`](Session::framing). Empty if nothing was changed.
    pub fn restore(&self) -> Vec<Vec<u8>> {
        self.undoing().iter().map(Request::body).collect()
    }

    /// The next body to send, if there is one; to be framed in [`framing`](Session::framing).
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.transmit.pop_front()
    }

    /// When to call [`on_timer`](Session::on_timer) next; `None` if never.
    pub fn next_timer(&self) -> Option<Time> {
        let due = match (self.state, &self.under_way) {
            (State::Closed | State::Failed(_), _) => return None,
            (_, Some(under_way)) => Some(under_way.deadline),
            (State::Streaming, None) if self.is_settled => self.next_check(),
            (_, None) => Some(Time::ZERO),
        };
        let drain = match self.state {
            State::Streaming => self.drain.as_ref().and_then(Drain::next_timer),
            _ => None,
        };
        due.into_iter().chain(drain).min()
    }

    /// A message came.
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
            // A modem that understands drains does not answer them.
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
    pub fn on_timer(&mut self, now: Time) {
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

    /// Asks the next question, if no request is under way.
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

    /// What to ask next, unless the session is leaving.
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

    /// Learns from an answer.
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
            // The modem answers, and that is all that the session needed to know.
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
        self.items = items.map(|items| items.min(crate::mask::MOST_ITEMS));
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

    /// Goes on although this request was refused or not answered.
    fn skip(&mut self, step: Step) {
        self.done.insert(step);
        match step {
            // If one mask cannot be read, the others cannot be read either.
            Step::Read(_) => self.done.extend((0..EQUIPMENTS as u8).map(Step::Read)),
            Step::Buffer(_) => self.drain = None,
            _ => {}
        }
    }

    /// When the masks are to be read again.
    fn next_check(&self) -> Option<Time> {
        Some(self.heard? + self.options.check_after?)
    }

    /// Asks again for what would have changed if the modem had restarted.
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
