//! Decodes recordings and radios: every carrier on a thread of its own, and their events in one order.
//!
//! ```text
//! Source ─thread─▶ Decoder ─┐
//! Source ─thread─▶ Decoder ─┼─▶ Decoding: order, alignment ─▶ CarrierEvent ─┬─▶ messages, as soon as they are believed
//! Source ─thread─▶ Decoder ─┘                                               └─▶ PendingSubframes ─▶ whole subframes
//!                                                                                                        ▼
//!                                                                                                Reports ─▶ Fused
//! ```
//!
//! [`Decoding`] is an iterator. Recordings come in the order of time, so that the same recordings give the same output.
//! If all sources are live, each event comes as soon as it is there: nothing waits for anything else. A live source that
//! says nothing for a while is not waited for.

mod pending;
mod reports;
mod stream;
mod thread;

pub use pending::PendingSubframes;
pub use reports::Reports;
pub use stream::ReportStream;

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

use airpace_phy::Ladder;
use airpace_phy::decoder::{self, Output, Reading};
use airpace_phy::evidence::Caution;
use airpace_phy::listen::UnsupportedRate;
use airpace_phy::search::Work;
use airpace_radio::CarrierId;
use airpace_radio::align::{Align, Alignment, Leap, Shift};

use crate::iq::{self, Flaw, Source};
use thread::{Event, MOST_WAITING};

/// For how long one waits where there is nothing else to do.
const LONG: Duration = Duration::from_secs(3600);

/// Why samples cannot be decoded, or not to their end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No cell can be read at the sample rate.
    #[error("{name}: {cause}")]
    Rate {
        /// The recording or radio.
        name: String,
        /// What is wrong with the rate, and what it should be. It is part of the message and so not a source, which would
        /// be printed again.
        cause: UnsupportedRate,
    },
    /// There are more carriers than can be told apart.
    #[error("{count} cells at once: 256 carriers can be told apart; decode fewer at once")]
    TooMany {
        /// How many there are.
        count: usize,
    },
    /// The system gives no thread.
    #[error("{name}: cannot start a thread: {cause}; end other programs, or decode fewer cells at once")]
    Thread {
        /// The recording or radio.
        name: String,
        /// What the system says, as above.
        cause: std::io::Error,
    },
    /// Samples cannot be read.
    #[error(transparent)]
    Samples(#[from] iq::Error),
    /// A thread of decoding came to an end by a mistake of ours.
    #[error("{name}: its decoder crashed")]
    Crashed {
        /// The recording or radio.
        name: String,
    },
}

/// How to decode.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The identity of the only cell that is wanted; `None` takes the strongest.
    pub pci: Option<u16>,
    /// What to believe.
    pub caution: Caution,
    /// What tells that subframes of two recordings are the same.
    pub align: Align,
    /// A live source that says nothing for so long is not waited for.
    pub stall: Duration,
}

impl Default for Options {
    /// The strongest cell, the usual caution, [`Align::Auto`] and two seconds.
    fn default() -> Options {
        Options {
            pci: None,
            caution: Caution::default(),
            align: Align::default(),
            stall: Duration::from_secs(2),
        }
    }
}

/// Something that happened on one carrier.
#[derive(Debug)]
pub struct CarrierEvent {
    /// The place of the recording or radio among all, from 0.
    pub carrier: CarrierId,
    /// What happened.
    pub event: DecodeEvent,
}

/// What can happen on a carrier.
#[derive(Debug)]
pub enum DecodeEvent {
    /// With several carriers: how this one stands to the first, or does from now on. It comes before the subframe that
    /// tells it.
    Shift {
        /// The carrier's subframe from which on it holds.
        from: u64,
        /// How it stands.
        shift: Shift,
    },
    /// Frame numbers leap. It comes before the subframe behind the leap.
    Leap {
        /// From where to where.
        leap: Leap,
        /// How the carrier stands to the first from then on, if that changes.
        shift: Option<Shift>,
    },
    /// An output of the decoder.
    Heard(Box<Output>),
    /// The receiver lost samples.
    Gap,
    /// Something is wrong with the samples.
    Flaw(Flaw),
    /// What the decoder's thread spent since the last such event, in microseconds of processor time.
    Cost(f64),
    /// It says nothing, and is not waited for.
    Stalled,
    /// It goes on after it was not waited for.
    Back,
    /// Nothing more will come.
    End(Box<End>),
}

/// What is known of a carrier in the end.
#[derive(Debug)]
pub struct End {
    /// How far the samples led; `None` if the decoder crashed.
    pub ladder: Option<Ladder>,
    /// What the search did, if a cell was found.
    pub work: Option<Work>,
    /// Why it ended, if that was too early.
    pub failure: Option<Error>,
}

/// A recording or radio that is decoded.
struct Input {
    name: String,
    rate_hz: f64,
    /// It comes as fast as a receiver gives it, and may stop for a while.
    is_live: bool,
    /// When it began, in milliseconds since the first did.
    begin_ms: f64,
    /// How far it was read, in milliseconds from its first sample.
    at_ms: f64,
    share: Option<f64>,
    state: State,
    /// When it said something last.
    last: Instant,
    /// Whose its last subframe was.
    pci: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It is waited for.
    Heard,
    /// It says nothing: it is not waited for.
    Stalled,
    /// It is over.
    Ended,
}

/// Recordings and radios, each decoded on a thread. The threads end when this is dropped.
pub struct Decoding {
    all: Vec<Input>,
    /// One for each recording, or one for all if all are live.
    receivers: Vec<Receiver<thread::ThreadEvent>>,
    stall: Duration,
    /// With several recordings: how they stand to each other.
    alignment: Option<Alignment>,
    /// Events that come before any others.
    events: VecDeque<CarrierEvent>,
}

impl Decoding {
    /// Starts to decode sources, each with its name for people. Their places are their carriers' numbers.
    ///
    /// # Errors
    /// If there are more than 256 sources, if one's samples are too few or too many per second, or if no thread can be had.
    pub fn start(sources: Vec<(String, Box<dyn Source>)>, options: Options) -> Result<Decoding, Error> {
        let count = sources.len();
        if count > 256 {
            return Err(Error::TooMany { count });
        }
        let are_live = sources.iter().all(|(_, source)| source.is_live());
        let mut decoding = Decoding {
            all: vec![],
            receivers: vec![],
            stall: options.stall,
            alignment: (count > 1).then(|| Alignment::new(options.align, count)),
            events: VecDeque::new(),
        };
        let mut sender = None;
        for (carrier, (name, source)) in sources.into_iter().enumerate() {
            let rate_hz = source.sample_rate_hz();
            decoding.all.push(Input {
                name: name.clone(),
                rate_hz,
                is_live: source.is_live(),
                begin_ms: 0.0,
                at_ms: 0.0,
                share: source.progress(),
                state: State::Heard,
                last: Instant::now(),
                pci: None,
            });
            let tell = sender.take().unwrap_or_else(|| {
                let (tell, receiver) = sync_channel(MOST_WAITING);
                decoding.receivers.push(receiver);
                tell
            });
            sender = are_live.then(|| tell.clone());
            let mut how = decoder::Options::new(rate_hz.round() as u64);
            (how.listen.pci, how.caution) = (options.pci, options.caution);
            how.listen.antennas = source.antennas();
            thread::start(&name, source, carrier, how, tell)?;
        }
        Ok(decoding)
    }

    /// Whether all sources come as fast as receivers give them: nothing waits for anything else then.
    pub fn are_live(&self) -> bool {
        self.all.iter().all(|input| input.is_live)
    }

    /// How much of all sources is read, 0 to 1, if that is known.
    pub fn share(&self) -> Option<f64> {
        let shares: Option<f64> = self.all.iter().map(|input| input.share).sum();
        shares.map(|shares| shares / self.all.len().max(1) as f64)
    }

    /// How far the source that was read farthest was read, in milliseconds from its first sample.
    pub fn at_ms(&self) -> f64 {
        self.all.iter().map(|input| input.at_ms).fold(0.0, f64::max)
    }

    /// The next event, if there is one without waiting. After `None` the iterator waits, or everything is over: a good
    /// moment to write out the events so far.
    ///
    /// # Errors
    /// As those of the iterator.
    pub fn ready(&mut self) -> Option<Result<CarrierEvent, Error>> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(Ok(event));
            }
            if let Some(event) = self.heard_again() {
                self.take(event);
                continue;
            }
            let (at, _) = self.waits()?;
            match self.receivers[at].try_recv() {
                Ok(event) => self.take(event),
                Err(TryRecvError::Empty) => return None,
                Err(TryRecvError::Disconnected) => return Some(Err(self.crashed(at))),
            }
        }
    }

    /// An event of a recording that was not waited for. If all are live, it comes with the rest.
    fn heard_again(&mut self) -> Option<thread::ThreadEvent> {
        if self.are_live() {
            return None;
        }
        let mut stalled = (0..self.all.len()).filter(|at| self.all[*at].state == State::Stalled);
        stalled.find_map(|at| self.receivers[at].try_recv().ok())
    }

    /// Whom to wait for, and for how long; `None` if all are over.
    fn waits(&self) -> Option<(usize, Duration)> {
        if self.are_live() { self.waits_for_any() } else { self.waits_for_first() }
    }

    /// As it comes: a message does not wait for another cell's.
    fn waits_for_any(&self) -> Option<(usize, Duration)> {
        if self.all.iter().all(|input| input.state == State::Ended) {
            return None;
        }
        let heard = self.all.iter().filter(|input| input.state == State::Heard);
        let oldest = heard.map(|input| input.last).min().filter(|_| !self.is_last());
        Some((0, oldest.map_or(LONG, |last| self.stall.saturating_sub(last.elapsed()))))
    }

    /// In the order of time, so that the same recordings give the same output. Only who is live can stall.
    fn waits_for_first(&self) -> Option<(usize, Duration)> {
        let at = self.first(State::Heard).or_else(|| self.first(State::Stalled))?;
        let can_stall = self.all[at].is_live && !self.is_last();
        Some((at, if can_stall { self.stall } else { LONG }))
    }

    /// The recording in a state that was read least far.
    fn first(&self, state: State) -> Option<usize> {
        let of_state = self.all.iter().enumerate().filter(|(_, input)| input.state == state);
        let at_ms = |input: &Input| input.begin_ms + input.at_ms;
        of_state.min_by(|(_, one), (_, other)| at_ms(one).total_cmp(&at_ms(other))).map(|(at, _)| at)
    }

    /// Whether one alone is not over: its silence is no stall, for nobody waits.
    fn is_last(&self) -> bool {
        self.all.iter().filter(|input| input.state != State::Ended).count() == 1
    }

    /// The recording that was waited for is silent; if all are live, those that said nothing for too long are.
    fn mark_stalled(&mut self, waited_for: usize) {
        let are_live = self.are_live();
        for (at, input) in self.all.iter_mut().enumerate() {
            let is_silent = if are_live { input.last.elapsed() >= self.stall } else { at == waited_for };
            if input.state == State::Heard && is_silent {
                input.state = State::Stalled;
                if let Some(alignment) = &mut self.alignment {
                    alignment.stall(at);
                }
                self.events.push_back(CarrierEvent { carrier: carrier_id(at), event: DecodeEvent::Stalled });
            }
        }
    }

    /// A thread ended without [`Event::End`]. No more events come from any.
    fn crashed(&mut self, at: usize) -> Error {
        let name = self.all[at].name.clone();
        self.all.iter_mut().for_each(|input| input.state = State::Ended);
        Error::Crashed { name }
    }

    /// Takes an event of a thread.
    fn take(&mut self, thread_event: thread::ThreadEvent) {
        let (at, carrier) = (thread_event.carrier, carrier_id(thread_event.carrier));
        let input = &mut self.all[at];
        (input.at_ms, input.last) = (thread_event.at_ms, Instant::now());
        if std::mem::replace(&mut input.state, State::Heard) == State::Stalled {
            self.events.push_back(CarrierEvent { carrier, event: DecodeEvent::Back });
        }
        let event = match thread_event.event {
            Event::Heard(output) => {
                if let Output::Subframe(reading) = &*output {
                    self.place(at, reading);
                }
                DecodeEvent::Heard(output)
            }
            Event::Gap => DecodeEvent::Gap,
            Event::Flaw(flaw) => DecodeEvent::Flaw(flaw),
            Event::Progress { share, cost_us } => {
                input.share = share;
                DecodeEvent::Cost(cost_us)
            }
            Event::End(end) => {
                (input.state, input.share) = (State::Ended, Some(1.0));
                DecodeEvent::End(end)
            }
        };
        self.events.push_back(CarrierEvent { carrier, event });
    }

    /// Finds out where a subframe stands beside those of the others.
    fn place(&mut self, at: usize, reading: &Reading) {
        let (carrier, index) = (carrier_id(at), reading.index);
        let input = &mut self.all[at];
        let at_ms = reading.sample as f64 * 1e3 / input.rate_hz;
        let is_same_cell = input.pci.replace(reading.pci) == Some(reading.pci);
        if let Some(shift) = self.alignment.as_mut().and_then(|all| all.hear(at, index, at_ms)) {
            input.begin_ms = shift.begin_ms;
            self.events.push_back(CarrierEvent { carrier, event: DecodeEvent::Shift { from: index, shift } });
        }
        if reading.leap != 0 {
            let leap = Leap { index, at_ms, by: reading.leap, is_same_cell };
            let shift = self.alignment.as_mut().and_then(|all| all.leap(at, leap));
            if let Some(shift) = &shift {
                input.begin_ms = shift.begin_ms;
            }
            self.events.push_back(CarrierEvent { carrier, event: DecodeEvent::Leap { leap, shift } });
        }
    }
}

impl Iterator for Decoding {
    type Item = Result<CarrierEvent, Error>;

    /// The next event, which may have to be waited for; `None` when all sources are over.
    fn next(&mut self) -> Option<Result<CarrierEvent, Error>> {
        loop {
            if let Some(event) = self.ready() {
                return Some(event);
            }
            let (at, waits) = self.waits()?;
            match self.receivers[at].recv_timeout(waits) {
                Ok(event) => self.take(event),
                Err(RecvTimeoutError::Timeout) if waits == LONG => {}
                Err(RecvTimeoutError::Timeout) => self.mark_stalled(at),
                Err(RecvTimeoutError::Disconnected) => return Some(Err(self.crashed(at))),
            }
        }
    }
}

/// The number of a recording; [`Decoding::start`] takes no more than there are numbers.
fn carrier_id(at: usize) -> CarrierId {
    CarrierId(u8::try_from(at).expect("at most 256 carriers"))
}

#[cfg(test)]
mod tests;
