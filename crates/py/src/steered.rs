//! Flows that an agent steers: simulators that run until the agent's next turn and then wait for it.
//!
//! ```text
//! agent ─action─▶ Steered (on_timer) ─▶ Control ─▶ the simulator goes on ─▶ … ─▶ on_timer ─observation─▶ agent
//! ```
//!
//! Each simulator is on a thread of its own. While it waits for an action, it takes no processor.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use airpace_cc::SchemeSpec;
use airpace_cc::controller::{Ack, Control, Controller, Inspect, Loss, Sent};
use airpace_cc::scheme::{Ends, Setup};
use airpace_core::{Bytes, Rate, Time};
use airpace_event::Discard;
use airpace_sim::{Prepared, Scenario};
use numpy::{PyArray1, PyArray2, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::raise;

/// How many numbers an observation has.
const NUMBERS: usize = 8;

/// What an agent sees: the last step of its flow. `airpace.gym` says what each number is.
type Observation = [f32; NUMBERS];

/// What the agent sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lever {
    Rate,
    Window,
}

/// One flow's controller, as its agent steers it.
struct Steered {
    lever: Lever,
    mss: Bytes,
    step: Duration,
    value: f64,
    due: Option<Time>,
    tell: Sender<Observation>,
    hear: Receiver<f64>,
    has_left: Arc<AtomicBool>,
    acked: Bytes,
    sent: Bytes,
    lost: Bytes,
    marked: u64,
    packets: u64,
    rtt_sum_ms: f64,
    rtts: u64,
    rtt_ms: f64,
    min_rtt_ms: f64,
    inflight: Bytes,
}

impl Steered {
    fn mbps(&self, bytes: Bytes) -> f64 {
        bytes.0 as f64 * 8e-6 / self.step.as_secs_f64()
    }

    /// What happened since the last step; counts begin anew.
    fn observe(&mut self) -> Observation {
        if self.rtts > 0 {
            self.rtt_ms = self.rtt_sum_ms / self.rtts as f64;
        }
        let ended = (self.acked + self.lost).0.max(1) as f64;
        let seen = [
            self.mbps(self.acked),
            self.mbps(self.sent),
            self.lost.0 as f64 / ended,
            self.rtt_ms,
            self.min_rtt_ms,
            self.inflight.0 as f64 / self.mss.0 as f64,
            self.marked as f64 / self.packets.max(1) as f64,
            self.value,
        ];
        (self.acked, self.sent, self.lost) = (Bytes::ZERO, Bytes::ZERO, Bytes::ZERO);
        (self.marked, self.packets, self.rtts, self.rtt_sum_ms) = (0, 0, 0, 0.0);
        seen.map(|number| number as f32)
    }
}

impl Controller for Steered {
    fn on_sent(&mut self, sent: &Sent) {
        self.sent += sent.bytes;
        self.inflight = sent.inflight;
        // The first step begins with the first packet.
        self.due.get_or_insert(sent.now + self.step);
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.acked += ack.acked;
        self.inflight = ack.inflight;
        self.marked += ack.ce;
        self.packets += ack.packets.len() as u64;
        self.min_rtt_ms = ack.rtt.min.as_secs_f64() * 1e3;
        if let Some(rtt) = ack.rtt.latest {
            self.rtt_sum_ms += rtt.as_secs_f64() * 1e3;
            self.rtts += 1;
        }
    }

    fn on_loss(&mut self, loss: &Loss<'_>) {
        self.lost += loss.lost;
        self.inflight = loss.inflight;
    }

    fn on_timer(&mut self, now: Time) {
        let seen = self.observe();
        let told = self.tell.send(seen);
        match told.ok().and_then(|()| self.hear.recv().ok()) {
            Some(value) => {
                self.value = value;
                self.due = Some(now + self.step);
            }
            // The agent has left: the run is about to be stopped.
            None => {
                self.due = Some(Time::from_nanos(u64::MAX));
                self.has_left.store(true, Ordering::Relaxed);
            }
        }
    }

    fn next_timer(&self) -> Option<Time> {
        self.due
    }

    fn control(&self) -> Control {
        match self.lever {
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

/// A simulator that waits for its agent, and what it saw last.
struct Simulator {
    act: Sender<f64>,
    /// It has one owner at a time; Python wants to be sure of that.
    see: Mutex<Receiver<Observation>>,
    steps: u64,
}

/// Several simulators of one scenario.
#[pyclass(module = "airpace")]
pub struct Simulators {
    prepared: Arc<Prepared>,
    lever: Lever,
    start: f64,
    step: Duration,
    steps: u64,
    all: Vec<Option<Simulator>>,
}

/// Observations, and whether the scenario is over.
type Steps<'py> = (Bound<'py, PyArray2<f32>>, Bound<'py, PyArray1<bool>>);

#[pymethods]
impl Simulators {
    #[new]
    #[pyo3(signature = (scenario, *, count, flow, set, others, lever, start, step_ms))]
    #[allow(clippy::too_many_arguments, reason = "the arguments of a function of Python")]
    fn new(
        scenario: &str,
        count: usize,
        flow: usize,
        mut set: Vec<(String, String)>,
        others: &str,
        lever: &str,
        start: f64,
        step_ms: f64,
    ) -> PyResult<Simulators> {
        let named = Scenario::named(scenario, &set).map_err(raise::value)?;
        let flows = named.flow.len();
        match named.flow.get(flow) {
            None => {
                return Err(raise::value(format!(
                    "flow={flow}: `{scenario}` has {flows} flows; count from 0"
                )));
            }
            Some(of) if of.scheme.is_some() => {
                return Err(raise::value(format!(
                    "flow={flow} of `{scenario}` has a scheme of its own; steer another"
                )));
            }
            Some(_) => {}
        }
        // Only one flow is the agent's.
        for (other, _) in named.flow.iter().enumerate().filter(|(at, of)| *at != flow && of.scheme.is_none())
        {
            set.push((format!("flow.{other}.scheme"), others.to_owned()));
        }
        let named = Scenario::named(scenario, &set).map_err(raise::value)?;
        let prepared = named.prepare().map_err(raise::value)?;
        let lever = match lever {
            "rate" => Lever::Rate,
            "window" => Lever::Window,
            other => return Err(raise::value(format!("action=`{other}`; give `rate` or `window`"))),
        };
        // A flow begins up to a millisecond late, and its last step must end before the run does.
        let start_s = named.flow[flow].start_s;
        let steps = ((named.duration().as_secs_f64() - start_s - 0.002) * 1e3 / step_ms).floor();
        if steps.is_nan() || steps < 2.0 {
            let reason =
                format!("step_ms={step_ms}: the flow runs for less than two steps; give a shorter one");
            return Err(raise::value(reason));
        }
        Ok(Simulators {
            prepared: Arc::new(prepared),
            lever,
            start,
            step: Duration::from_secs_f64(step_ms / 1e3),
            steps: steps as u64,
            all: (0..count).map(|_| None).collect(),
        })
    }

    /// Begins anew where `mask` says so, with these seeds. Returns what each agent sees after its first step.
    fn reset<'py>(
        &mut self,
        py: Python<'py>,
        mask: PyReadonlyArray1<'py, bool>,
        seeds: Vec<u64>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let mask = mask.as_slice()?;
        for (at, _) in mask.iter().enumerate().filter(|(_, wanted)| **wanted) {
            let seed = seeds.get(at).copied().unwrap_or(0);
            let simulator = self.begin(seed);
            if let Some(place) = self.all.get_mut(at) {
                *place = Some(simulator);
            }
        }
        let seen = self.see(py, mask)?;
        Ok(seen.0)
    }

    /// Sets rates or windows where `mask` says so, and goes on for a step. What is not meant sees zeros.
    fn step<'py>(
        &mut self,
        py: Python<'py>,
        mask: PyReadonlyArray1<'py, bool>,
        actions: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<Steps<'py>> {
        let (mask, actions) = (mask.as_slice()?, actions.as_slice()?);
        for (at, simulator) in self.all.iter_mut().enumerate() {
            if mask.get(at) != Some(&true) {
                continue;
            }
            let Some(simulator) = simulator else {
                return Err(raise::failed("an episode is over or has not begun: call reset() first"));
            };
            let action = actions.get(at).copied().unwrap_or(self.start);
            // If it has ended, that shows when it should tell what it saw.
            let _ = simulator.act.send(action);
        }
        self.see(py, mask)
    }
}

impl Simulators {
    /// A simulator on its thread. It ends when it is dropped.
    fn begin(&self, seed: u64) -> Simulator {
        let (act, hear) = channel();
        let (tell, see) = channel();
        let (prepared, lever, step, start) = (self.prepared.clone(), self.lever, self.step, self.start);
        let agent = Mutex::new(Some((tell, hear)));
        std::thread::spawn(move || {
            let has_left = Arc::new(AtomicBool::new(false));
            let leaves = has_left.clone();
            let make = move |setup: &Setup| {
                let taken = agent.lock().unwrap_or_else(PoisonError::into_inner).take();
                let (tell, hear) = taken.ok_or("a flow that opens connections anew cannot be steered")?;
                let steered = Steered {
                    lever,
                    mss: setup.mss,
                    step,
                    value: start,
                    due: None,
                    tell,
                    hear,
                    has_left: leaves.clone(),
                    acked: Bytes::ZERO,
                    sent: Bytes::ZERO,
                    lost: Bytes::ZERO,
                    marked: 0,
                    packets: 0,
                    rtt_sum_ms: 0.0,
                    rtts: 0,
                    rtt_ms: 0.0,
                    min_rtt_ms: 0.0,
                    inflight: Bytes::ZERO,
                };
                Ok(Ends { controller: Box::new(steered), receiver: None })
            };
            if let Ok(spec) = SchemeSpec::own("agent", Arc::new(make)) {
                let mut go_on = |_: Time| match has_left.load(Ordering::Relaxed) {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                };
                // Whatever it says, the agent sees that nothing more comes.
                let _ = airpace_sim::run_prepared(&prepared, &spec, seed, &mut Discard, &mut go_on);
            }
        });
        Simulator { act, see: Mutex::new(see), steps: 0 }
    }

    /// What each agent of `mask` sees at the end of its step, and whether its episode is over.
    fn see<'py>(&mut self, py: Python<'py>, mask: &[bool]) -> PyResult<Steps<'py>> {
        let (all, steps) = (&mut self.all, self.steps);
        let seen = py.detach(|| {
            let mut rows = vec![];
            for (simulator, wanted) in all.iter_mut().zip(mask) {
                let waiting = simulator.as_mut().filter(|_| *wanted);
                rows.push(match waiting {
                    None => Some(([0.0; NUMBERS], false)),
                    Some(waiting) => {
                        let see = waiting.see.get_mut().unwrap_or_else(PoisonError::into_inner);
                        see.recv().ok().map(|seen| {
                            waiting.steps += 1;
                            (seen, waiting.steps >= steps)
                        })
                    }
                });
            }
            rows
        });
        let mut rows = vec![];
        let mut over = vec![];
        for (at, row) in seen.into_iter().enumerate() {
            let Some((row, is_over)) = row else {
                self.all[at] = None;
                return Err(raise::failed(
                    "the simulator ended early: the scenario cannot be run, or the flow stops",
                ));
            };
            if is_over {
                self.all[at] = None;
            }
            rows.push(row.to_vec());
            over.push(is_over);
        }
        let rows = PyArray2::from_vec2(py, &rows).map_err(raise::failed)?;
        Ok((rows, PyArray1::from_vec(py, over)))
    }
}
