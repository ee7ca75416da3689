//! Decoding of recordings and live radios: each carrier on a separate thread, with their events merged in one order.
//!
//! ```text
//! Source ─thread─▶ Decoder ─┐
//! Source ─thread─▶ Decoder ─┼─▶ Decoding: order, alignment ─▶ CarrierEvent ─┬─▶ messages, as soon as they are accepted
//! Source ─thread─▶ Decoder ─┘                                               └─▶ PendingSubframes ─▶ whole subframes
//!                                                                                                        ▼
//!                                                                                                Reports ─▶ Fused
//! ```
//!
//! [`Decoding`] is an iterator. The iterator returns events of recordings in the order of time, so that identical
//! recordings give identical output. If all sources are live, each event is returned as soon as it is available,
//! without waiting for other sources. The iterator does not wait for a live source that has had no events for a while.

pub mod capture;
mod pending;
pub mod probe;
pub mod recording;
mod reports;
mod stream;
pub mod tally;
mod thread;
pub mod users;

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
use thread::{Event, MAX_WAITING};

/// Timeout of a wait that has no deadline.
const LONG: Duration = Duration::from_secs(3600);

/// Error that prevents the decoding of samples, or ends it early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No cell can be decoded at this sample rate.
    #[error("{name}: {cause}")]
    Rate {
        /// Name of the recording or radio.
        name: String,
        /// The problem with the rate, and the required rate. The cause is part of this error's message. Therefore it is
        /// not the error's `source`, which would be printed again.
        cause: UnsupportedRate,
    },
    /// There are more carriers than carrier numbers.
    #[error("{count} cells at once: at most 256 carriers are possible; decode fewer at once")]
    TooMany {
        /// Number of carriers.
        count: usize,
    },
    /// The system cannot start a thread.
    #[error("{name}: cannot start a thread: {cause}; end other programs, or decode fewer cells at once")]
    Thread {
        /// Name of the recording or radio.
        name: String,
        /// The error of the system, which is part of this error's message.
        cause: std::io::Error,
    },
    /// Samples cannot be read.
    #[error(transparent)]
    Samples(#[from] iq::Error),
    /// A decoding thread ended because of a bug.
    #[error("{name}: its decoder crashed")]
    Crashed {
        /// Name of the recording or radio.
        name: String,
    },
}

/// Options of the decoding.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Physical cell identity of the only cell to decode; `None` selects the strongest cell.
    pub pci: Option<u16>,
    /// Conditions for the acceptance of messages.
    pub caution: Caution,
    /// Method by which subframes of two recordings are matched.
    pub align: Align,
    /// Time without events after which the iterator does not wait for a live source any more.
    pub stall: Duration,
}

impl Default for Options {
    /// Default options: the strongest cell, the default caution, [`Align::Auto`] and two seconds.
    fn default() -> Options {
        Options {
            pci: None,
            caution: Caution::default(),
            align: Align::default(),
            stall: Duration::from_secs(2),
        }
    }
}

/// An event on one carrier.
#[derive(Debug)]
pub struct CarrierEvent {
    /// Number of the recording or radio, from 0.
    pub carrier: CarrierId,
    /// The event.
    pub event: DecodeEvent,
}

/// Kinds of events on a carrier.
#[derive(Debug)]
pub enum DecodeEvent {
    /// The carrier's time offset to the first carrier, at the start or after a change. This event occurs only with
    /// several carriers. The event precedes the subframe from which the offset was determined.
    Shift {
        /// First subframe of the carrier to which the offset applies.
        from: u64,
        /// The offset.
        shift: Shift,
    },
    /// The cell's frame numbers jump. This event precedes the subframe after the jump.
    Leap {
        /// Position and size of the jump.
        leap: Leap,
        /// New offset of the carrier to the first carrier, if it changes.
        shift: Option<Shift>,
    },
    /// An output of the decoder.
    Heard(Box<Output>),
    /// The receiver lost samples.
    Gap,
    /// The samples have a flaw.
    Flaw(Flaw),
    /// Processor time of the decoder's thread since the last event of this kind, in microseconds.
    Cost(f64),
    /// The carrier has had no events for a while, and the iterator does not wait for it.
    Stalled,
    /// The carrier has events again, and the iterator waits for it again.
    Back,
    /// The carrier has ended.
    End(Box<End>),
}

/// Final results of a carrier.
#[derive(Debug)]
pub struct End {
    /// Last decoding stage that the samples reached; `None` if the decoder crashed.
    pub ladder: Option<Ladder>,
    /// Work of the search, if a cell was found.
    pub work: Option<Work>,
    /// The error, if the decoding ended early.
    pub failure: Option<Error>,
}

/// A recording or radio that is decoded.
struct Input {
    name: String,
    rate_hz: f64,
    /// Whether samples arrive at the receiver's pace, and may be interrupted for a while.
    is_live: bool,
    /// Time of the source's first sample, in milliseconds since the first sample of all sources.
    begin_ms: f64,
    /// Position up to which the samples were read, in milliseconds from the first sample.
    at_ms: f64,
    share: Option<f64>,
    state: State,
    /// Arrival time of the source's last event.
    last: Instant,
    /// Physical cell identity of the last subframe.
    pci: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The iterator waits for events of this source.
    Heard,
    /// The source has had no events for a while, and the iterator does not wait for it.
    Stalled,
    /// The source has ended.
    Ended,
}

/// Recordings and radios, each decoded on a thread. The threads end when this value is dropped.
pub struct Decoding {
    all: Vec<Input>,
    /// One channel per recording, or a single channel if all sources are live.
    receivers: Vec<Receiver<thread::ThreadEvent>>,
    stall: Duration,
    /// Time offsets of the recordings; `None` with a single recording.
    alignment: Option<Alignment>,
    /// Events that the iterator returns before any other events.
    events: VecDeque<CarrierEvent>,
}

impl Decoding {
    /// Starts the decoding of sources, each with its name for messages. The index of a source is the number of its
    /// carrier.
    ///
    /// # Errors
    /// More than 256 sources, a sample rate that is too low or too high, or a thread that cannot be started.
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
                let (tell, receiver) = sync_channel(MAX_WAITING);
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

    /// Returns whether all sources are live: if so, no source waits for another source.
    pub fn are_live(&self) -> bool {
        self.all.iter().all(|input| input.is_live)
    }

    /// Returns the share of all sources that has been read, 0 to 1, if known.
    pub fn share(&self) -> Option<f64> {
        let shares: Option<f64> = self.all.iter().map(|input| input.share).sum();
        shares.map(|shares| shares / self.all.len().max(1) as f64)
    }

    /// Returns the position of the source that was read farthest, in milliseconds from its first sample.
    pub fn at_ms(&self) -> f64 {
        self.all.iter().map(|input| input.at_ms).fold(0.0, f64::max)
    }

    /// Returns the next event, if one is available without waiting. After `None`, the iterator waits or has ended, so
    /// the caller can write its output now.
    ///
    /// # Errors
    /// The same errors as those of the iterator.
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

    /// Returns an event of a stalled source, if there is one. If all sources are live, returns `None`, because their
    /// events arrive in one channel.
    fn heard_again(&mut self) -> Option<thread::ThreadEvent> {
        if self.are_live() {
            return None;
        }
        let mut stalled = (0..self.all.len()).filter(|at| self.all[*at].state == State::Stalled);
        stalled.find_map(|at| self.receivers[at].try_recv().ok())
    }

    /// Returns the channel to wait for, and the timeout; `None` if all sources have ended.
    fn waits(&self) -> Option<(usize, Duration)> {
        if self.are_live() { self.waits_for_any() } else { self.waits_for_first() }
    }

    /// Returns the channel and timeout for a wait for any source, so that a message does not wait for the message of
    /// another cell.
    fn waits_for_any(&self) -> Option<(usize, Duration)> {
        if self.all.iter().all(|input| input.state == State::Ended) {
            return None;
        }
        let heard = self.all.iter().filter(|input| input.state == State::Heard);
        let oldest = heard.map(|input| input.last).min().filter(|_| !self.is_last());
        Some((0, oldest.map_or(LONG, |last| self.stall.saturating_sub(last.elapsed()))))
    }

    /// Returns the channel and timeout for a wait in the order of time, so that identical recordings give identical
    /// output. Only live sources can stall.
    fn waits_for_first(&self) -> Option<(usize, Duration)> {
        let at = self.first(State::Heard).or_else(|| self.first(State::Stalled))?;
        let can_stall = self.all[at].is_live && !self.is_last();
        Some((at, if can_stall { self.stall } else { LONG }))
    }

    /// Returns the recording in this state with the earliest read position.
    fn first(&self, state: State) -> Option<usize> {
        let of_state = self.all.iter().enumerate().filter(|(_, input)| input.state == state);
        let at_ms = |input: &Input| input.begin_ms + input.at_ms;
        of_state.min_by(|(_, one), (_, other)| at_ms(one).total_cmp(&at_ms(other))).map(|(at, _)| at)
    }

    /// Returns whether only one source is left: its silence is not a stall, because no other source waits for it.
    fn is_last(&self) -> bool {
        self.all.iter().filter(|input| input.state != State::Ended).count() == 1
    }

    /// Marks the source `waited_for` as stalled. If all sources are live, marks all sources that have had no events for
    /// too long.
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

    /// Ends all sources, because a thread ended without [`Event::End`].
    fn crashed(&mut self, at: usize) -> Error {
        let name = self.all[at].name.clone();
        self.all.iter_mut().for_each(|input| input.state = State::Ended);
        Error::Crashed { name }
    }

    /// Processes an event of a thread.
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

    /// Determines the position of a subframe relative to the subframes of the other carriers.
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

    /// Returns the next event, possibly after a wait; `None` when all sources have ended.
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

/// Returns the carrier number of a recording; [`Decoding::start`] limits their count to the available numbers.
fn carrier_id(at: usize) -> CarrierId {
    CarrierId(u8::try_from(at).expect("at most 256 carriers"))
}

#[cfg(test)]
mod tests;
