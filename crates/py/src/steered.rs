//! Flows that agents steer: their controllers, and the turns that all of them share.
//!
//! ```text
//! agents ─actions─▶ Turns ─▶ Control of each flow ─▶ simulated step ─▶ … ─▶ on_timer ─observations─▶ agents
//! ```
//!
//! The agents are outside, in an environment that waits for the simulator ([`Ask::Outside`]), or a Python function that
//! the simulator calls ([`Ask::Policy`]).
//!
//! A turn is an instant of the run at which all agents choose their actions. The first controller whose timer expires
//! at a turn requests the actions of all agents; the other controllers read their actions from the shared state.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use airpace_cc::controller::{Ack, Control, Controller, Inspect, Loss, Sent};
use airpace_core::{Bytes, Rate, Time};
use airpace_sim::DeviceClock;
use numpy::PyArray1;
use pyo3::prelude::*;

use crate::calls::Calls;

/// Number of values in an observation.
pub(crate) const NUMBERS: usize = 8;

/// The observation of an agent: the last step of its flow. `airpace.gym` describes each value.
pub(crate) type Observation = [f32; NUMBERS];

/// The observations that the environment receives at the end of a step.
pub(crate) struct Told {
    pub(crate) seen: Vec<Observation>,
    /// By agent: whether its flow has ended.
    pub(crate) ended: Vec<bool>,
}

/// The quantity that an agent sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lever {
    Rate,
    Window,
}

/// The source of the agents' actions.
pub(crate) enum Ask {
    /// An environment, which owns the other ends of these channels.
    Outside { tell: Sender<Told>, hear: Receiver<Vec<f64>> },
    /// A Python callable that maps the observation of the only agent to its action. Its exception is kept.
    Policy { policy: Py<PyAny>, calls: Arc<Calls> },
}

impl Ask {
    /// The agents' actions; `None` if the agents have left or the callable raised.
    fn actions(&self, told: Told) -> Option<Vec<f64>> {
        match self {
            Ask::Outside { tell, hear } => {
                tell.send(told).ok()?;
                hear.recv().ok()
            }
            Ask::Policy { policy, calls } => calls.make(|py| {
                let rows = told.seen.iter();
                let rows = rows.map(|row| policy.bind(py).call1((PyArray1::from_slice(py, row),)));
                rows.map(|action| action?.extract::<f64>()).collect()
            }),
        }
    }
}

impl Lever {
    /// The lever of this name.
    pub(crate) fn named(name: &str) -> Option<Lever> {
        [("rate", Lever::Rate), ("window", Lever::Window)].into_iter().find(|it| it.0 == name).map(|it| it.1)
    }
}

/// Counters of one flow since the agents' last turn, measured by the flow's sender.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    acked: Bytes,
    sent: Bytes,
    lost: Bytes,
    marked: u64,
    packets: u64,
    rtt_sum_ms: f64,
    rtts: u64,
    rtt_ms: f64,
    min_rtt_ms: f64,
    inflight_packets: f64,
    /// The rate or window in force.
    value: f64,
}

impl Seen {
    /// Returns the observation since the last turn, and resets the counters.
    fn observe(&mut self, step: Duration) -> Observation {
        if self.rtts > 0 {
            self.rtt_ms = self.rtt_sum_ms / self.rtts as f64;
        }
        let mbps = |bytes: Bytes| bytes.0 as f64 * 8e-6 / step.as_secs_f64();
        let ended = (self.acked + self.lost).0.max(1) as f64;
        let seen = [
            mbps(self.acked),
            mbps(self.sent),
            self.lost.0 as f64 / ended,
            self.rtt_ms,
            self.min_rtt_ms,
            self.inflight_packets,
            self.marked as f64 / self.packets.max(1) as f64,
            self.value,
        ];
        let Seen { rtt_ms, min_rtt_ms, inflight_packets, value, .. } = *self;
        *self = Seen { rtt_ms, min_rtt_ms, inflight_packets, value, ..Seen::default() };
        seen.map(|number| number as f32)
    }
}

/// The state that the agents of a simulator share.
pub(crate) struct Turns {
    lever: Lever,
    step: Duration,
    /// Set once the agents have left: the run is about to be stopped.
    pub(crate) have_left: AtomicBool,
    state: Mutex<State>,
}

struct State {
    flows: Vec<Seen>,
    /// Departure time of the first packet of all flows.
    begin: Option<Time>,
    /// Number of completed turns of the agents.
    over: u32,
    /// By agent: the time at which its flow ends, if before the end of the run.
    stops: Vec<Time>,
    ask: Ask,
}

impl Turns {
    /// Makes the turns of flows that end at `stops` and have `start` as their initial rate or window.
    pub(crate) fn new(lever: Lever, step: Duration, start: f64, stops: Vec<Time>, ask: Ask) -> Turns {
        let flows = vec![Seen { value: start, ..Seen::default() }; stops.len()];
        let state = Mutex::new(State { flows, begin: None, over: 0, stops, ask });
        Turns { lever, step, have_left: AtomicBool::new(false), state }
    }

    /// Whether all agents' flows have ended at `now`, so that no further turn follows.
    pub(crate) fn are_over(&self, now: Time) -> bool {
        self.state().stops.iter().all(|stop| *stop <= now)
    }

    /// Sends the environment the observations of the step in which the last flow ended, at `now` or before.
    pub(crate) fn end(&self, now: Time) {
        let mut state = self.state();
        let told = state.told(now, self.step);
        if let Ask::Outside { tell, .. } = &state.ask {
            // The environment may have left.
            let _ = tell.send(told);
        }
    }

    /// Locks the state, which only the thread of the simulator uses.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The observations since the last turn, at `now`.
    fn told(&mut self, now: Time, step: Duration) -> Told {
        let seen = self.flows.iter_mut().map(|flow| flow.observe(step)).collect();
        Told { seen, ended: self.stops.iter().map(|stop| *stop <= now).collect() }
    }

    /// The instant of turn `number`, from 1.
    fn instant(&self, number: u32, step: Duration) -> Option<Time> {
        Some(self.begin? + step * number)
    }

    /// Sends the observations of all agents, and waits for their actions. Returns whether the agents are still present.
    fn ask(&mut self, step: Duration) -> bool {
        let now = self.instant(self.over + 1, step).unwrap_or(Time::ZERO);
        let told = self.told(now, step);
        let Some(values) = self.ask.actions(told) else { return false };
        for (flow, value) in self.flows.iter_mut().zip(values) {
            flow.value = value;
        }
        true
    }
}

/// The controller of one flow that an agent steers.
pub(crate) struct Steered {
    turns: Arc<Turns>,
    /// Index of the agent.
    agent: usize,
    mss: Bytes,
    /// The sender's clock, if the sender is on a device: turns are instants of true time.
    clock: Option<DeviceClock>,
    /// The next turn of this controller, from 1, and its time by the sender's clock.
    turn: u32,
    due: Option<Time>,
    value: f64,
}

impl Steered {
    /// Makes the controller of the agent with index `agent`.
    pub(crate) fn new(turns: &Arc<Turns>, agent: usize, mss: Bytes, clock: Option<DeviceClock>) -> Steered {
        let value = turns.state().flows[agent].value;
        Steered { turns: turns.clone(), agent, mss, clock, turn: 1, due: None, value }
    }

    /// Sets the timer to the turn after the completed turns, and takes over the agent's action.
    fn wait(&mut self, state: &State) {
        self.turn = state.over + 1;
        let instant = state.instant(self.turn, self.turns.step);
        self.due = instant.map(|instant| self.clock.map_or(instant, |clock| clock.steady(instant)));
        self.value = state.flows[self.agent].value;
    }
}

impl Controller for Steered {
    fn on_sent(&mut self, sent: &Sent) {
        let turns = self.turns.clone();
        let mut state = turns.state();
        let flow = &mut state.flows[self.agent];
        flow.sent += sent.bytes;
        flow.inflight_packets = sent.inflight.0 as f64 / self.mss.0 as f64;
        if self.due.is_none() {
            // The first step starts with the first packet of any of the flows.
            let now = self.clock.map_or(sent.now, |clock| clock.when(sent.now));
            state.begin.get_or_insert(now);
            self.wait(&state);
        }
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        let mut state = self.turns.state();
        let flow = &mut state.flows[self.agent];
        flow.acked += ack.acked;
        flow.inflight_packets = ack.inflight.0 as f64 / self.mss.0 as f64;
        flow.marked += ack.ce;
        flow.packets += ack.packets.len() as u64;
        flow.min_rtt_ms = ack.rtt.min.as_secs_f64() * 1e3;
        if let Some(rtt) = ack.rtt.latest {
            flow.rtt_sum_ms += rtt.as_secs_f64() * 1e3;
            flow.rtts += 1;
        }
    }

    fn on_loss(&mut self, loss: &Loss<'_>) {
        let mut state = self.turns.state();
        let flow = &mut state.flows[self.agent];
        flow.lost += loss.lost;
        flow.inflight_packets = loss.inflight.0 as f64 / self.mss.0 as f64;
    }

    fn handle_timeout(&mut self, _: Time) {
        let turns = self.turns.clone();
        let mut state = turns.state();
        if self.turn > state.over {
            if turns.have_left.load(Ordering::Relaxed) || !state.ask(turns.step) {
                turns.have_left.store(true, Ordering::Relaxed);
                self.due = Some(Time::NEVER);
                return;
            }
            state.over = self.turn;
        }
        self.wait(&state);
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.due
    }

    fn control(&self) -> Control {
        match self.turns.lever {
            Lever::Rate => Control { cwnd: Bytes(u64::MAX), pacing_rate: Some(Rate::from_mbps(self.value)) },
            Lever::Window => {
                let cwnd = Bytes((self.value * self.mss.0 as f64) as u64).max(self.mss);
                Control { cwnd, pacing_rate: None }
            }
        }
    }

    fn inspect(&self, out: &mut Inspect) {
        out.state = "Steered";
    }
}
