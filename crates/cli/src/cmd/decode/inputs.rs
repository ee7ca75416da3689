//! Takes what the recordings' decoders say: in the order of time where that can be had, as it comes where it is live.

use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

use airpace_live::iq::Source;
use anyhow::bail;

use super::cell::{self, Event, MOST_WAITING, Task, Told};
use super::sink::Sink;

/// For how long one waits for who is alone: there is nothing else to do.
const LONG: Duration = Duration::from_secs(3600);

/// A recording that is decoded.
struct Input {
    name: String,
    /// It comes as fast as a receiver gives it, and may stop for a while.
    is_live: bool,
    at_ms: f64,
    share: Option<f64>,
    state: State,
    /// When it said something last.
    last: Instant,
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

/// Recordings, each with its thread.
pub struct Inputs {
    all: Vec<Input>,
    /// One for each recording, or one for all if all are live.
    told: Vec<Receiver<Told>>,
    /// One that says nothing for so long is not waited for.
    stall: Duration,
}

impl Inputs {
    /// Starts to decode recordings, `task` as far as they have it in common.
    ///
    /// # Errors
    /// If samples are too few per second for any cell, or no thread can be had.
    pub fn start(
        sources: Vec<(String, Box<dyn Source>)>,
        task: Task,
        stall: Duration,
    ) -> anyhow::Result<Inputs> {
        let is_live = sources.iter().all(|(_, source)| source.is_live());
        let mut inputs = Inputs { all: vec![], told: vec![], stall };
        let mut sender = None;
        for (carrier, (name, source)) in sources.into_iter().enumerate() {
            inputs.all.push(Input {
                name: name.clone(),
                is_live: source.is_live(),
                at_ms: 0.0,
                share: source.progress(),
                state: State::Heard,
                last: Instant::now(),
            });
            let tell = sender.take().unwrap_or_else(|| {
                let (tell, told) = sync_channel(MOST_WAITING);
                inputs.told.push(told);
                tell
            });
            sender = is_live.then(|| tell.clone());
            cell::start(&name, source, Task { carrier, ..task }, tell)?;
        }
        Ok(inputs)
    }

    /// Whether all come as fast as receivers give them: nothing waits for anything else then.
    pub fn are_live(&self) -> bool {
        self.all.iter().all(|input| input.is_live)
    }

    /// Takes all to the end.
    ///
    /// # Errors
    /// If something cannot be written.
    pub fn take_all(mut self, sink: &mut Sink<'_>) -> anyhow::Result<()> {
        if self.are_live() { self.take_as_it_comes(sink) } else { self.take_in_order(sink) }
    }

    /// In the order of time, so that the same recordings give the same output. Only who is live can stall.
    fn take_in_order(&mut self, sink: &mut Sink<'_>) -> anyhow::Result<()> {
        loop {
            for carrier in 0..self.all.len() {
                while self.all[carrier].state == State::Stalled
                    && let Ok(told) = self.told[carrier].try_recv()
                {
                    self.take(told, sink)?;
                }
            }
            let Some(carrier) = self.first(State::Heard, sink).or_else(|| self.first(State::Stalled, sink))
            else {
                return Ok(());
            };
            let waits = if self.all[carrier].is_live && !self.is_last() { self.stall } else { LONG };
            match receive(&self.told[carrier], waits, sink)? {
                Ok(told) => self.take(told, sink)?,
                Err(RecvTimeoutError::Timeout) if waits == LONG => {}
                Err(RecvTimeoutError::Timeout) => self.mark_stalled(sink, |at, _| at == carrier),
                Err(RecvTimeoutError::Disconnected) => {
                    bail!("{}: its decoder is gone", self.all[carrier].name)
                }
            }
        }
    }

    /// The recording in a state that was read least far.
    fn first(&self, state: State, sink: &Sink<'_>) -> Option<usize> {
        let of_state = self.all.iter().enumerate().filter(|(_, input)| input.state == state);
        let at_ms = |carrier: usize, input: &Input| sink.begin_ms(carrier) + input.at_ms;
        of_state.min_by(|(a, one), (b, other)| at_ms(*a, one).total_cmp(&at_ms(*b, other))).map(|(at, _)| at)
    }

    /// As it comes: a message does not wait for another cell's.
    fn take_as_it_comes(&mut self, sink: &mut Sink<'_>) -> anyhow::Result<()> {
        while self.all.iter().any(|input| input.state != State::Ended) {
            let heard = self.all.iter().filter(|input| input.state == State::Heard);
            let oldest = heard.map(|input| input.last).min().filter(|_| !self.is_last());
            let waits = oldest.map_or(LONG, |last| self.stall.saturating_sub(last.elapsed()));
            match receive(&self.told[0], waits, sink)? {
                Ok(told) => self.take(told, sink)?,
                Err(RecvTimeoutError::Timeout) if waits == LONG => {}
                Err(RecvTimeoutError::Timeout) => {
                    let stall = self.stall;
                    self.mark_stalled(sink, |_, input| input.last.elapsed() >= stall);
                }
                Err(RecvTimeoutError::Disconnected) => bail!("the decoders are gone"),
            }
        }
        Ok(())
    }

    /// Whether one alone is not over: its silence is no stall, for nobody waits.
    fn is_last(&self) -> bool {
        self.all.iter().filter(|input| input.state != State::Ended).count() == 1
    }

    fn mark_stalled(&mut self, sink: &mut Sink<'_>, is_silent: impl Fn(usize, &Input) -> bool) {
        let seconds = self.stall.as_secs_f64();
        for (carrier, input) in self.all.iter_mut().enumerate() {
            if input.state == State::Heard && is_silent(carrier, input) {
                input.state = State::Stalled;
                sink.say(&format!("{} says nothing for {seconds} s and is not waited for", input.name));
                sink.stall(carrier);
            }
        }
    }

    fn take(&mut self, told: Told, sink: &mut Sink<'_>) -> anyhow::Result<()> {
        let input = &mut self.all[told.carrier];
        (input.at_ms, input.last) = (told.at_ms, Instant::now());
        if std::mem::replace(&mut input.state, State::Heard) == State::Stalled {
            sink.say(&format!("{} goes on", input.name));
        }
        match told.event {
            Event::Progress { share, .. } => input.share = share,
            Event::End(..) => (input.state, input.share) = (State::Ended, Some(1.0)),
            Event::Heard(_) | Event::Gap | Event::Flaw(_) => {}
        }
        sink.take(told)?;
        let shares: Option<f64> = self.all.iter().map(|input| input.share).sum();
        let at_ms = self.all.iter().map(|input| input.at_ms).fold(0.0, f64::max);
        sink.progress(shares.map(|shares| shares / self.all.len() as f64), at_ms);
        Ok(())
    }
}

/// What comes next. Before one has to wait for it, all that was said so far is written.
fn receive(
    told: &Receiver<Told>,
    waits: Duration,
    sink: &mut Sink<'_>,
) -> anyhow::Result<Result<Told, RecvTimeoutError>> {
    match told.try_recv() {
        Ok(told) => return Ok(Ok(told)),
        Err(TryRecvError::Disconnected) => return Ok(Err(RecvTimeoutError::Disconnected)),
        Err(TryRecvError::Empty) => {}
    }
    sink.flush()?;
    Ok(told.recv_timeout(waits))
}
