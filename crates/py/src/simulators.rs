//! Simulators that run until the next turn of their agents and then wait for actions. Each simulator has a thread of its own,
//! which uses no processor time while it waits.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use airpace_cc::SchemeSpec;
use airpace_cc::scheme::{Ends, Setup};
use airpace_core::{Direction, Refused, Time};
use airpace_event::Discard;
use airpace_sim::scenario::Connection;
use airpace_sim::{DeviceClock, Prepared, Scenario};
use numpy::{PyArray1, PyArray2, PyArray3, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::raise;
use crate::steered::{Ask, Lever, NUMBERS, Steered, Told, Turns};

/// A simulator that waits for its agents.
struct Simulator {
    act: Sender<Vec<f64>>,
    /// The mutex makes the class `Sync`, as pyo3 requires. The mutex is accessed through `get_mut` only.
    see: Mutex<Receiver<Told>>,
    /// The reason of the failure, if the run failed.
    failed: Arc<OnceLock<String>>,
    steps: u64,
    thread: JoinHandle<()>,
    /// The process that has the thread. A process that was forked from it has no such thread.
    process: u32,
}

impl Simulator {
    /// Ends the run, and waits until its thread has ended.
    fn end(self) {
        let Simulator { act, see, thread, process, .. } = self;
        drop((act, see));
        match process == std::process::id() {
            // An error means that the thread panicked, so it has ended too.
            true => drop(thread.join()),
            // The thread belongs to the other process.
            false => std::mem::forget(thread),
        }
    }
}

/// Several simulators of one scenario.
#[pyclass(module = "airpace")]
pub struct Simulators {
    prepared: Arc<Prepared>,
    /// By agent: the sender's clock, if the sender is on a device.
    clocks: Vec<Option<DeviceClock>>,
    labels: Vec<String>,
    /// By agent: the time at which its flow ends, if before the end of the scenario.
    stops: Vec<Time>,
    lever: Lever,
    start: f64,
    step: Duration,
    steps: u64,
    all: Vec<Option<Simulator>>,
}

/// Observations; by agent, whether its flow has ended; and by simulator, whether the scenario has ended.
type Steps<'py> = (Bound<'py, PyArray3<f32>>, Bound<'py, PyArray2<bool>>, Bound<'py, PyArray1<bool>>);

#[pymethods]
impl Simulators {
    #[new]
    #[pyo3(signature = (scenario, *, count, flows, set, others, lever, start, step_ms))]
    #[allow(clippy::too_many_arguments, reason = "the arguments of a function of Python")]
    fn new(
        scenario: &str,
        count: usize,
        flows: Option<Vec<usize>>,
        mut set: Vec<(String, String)>,
        others: &str,
        lever: &str,
        start: f64,
        step_ms: f64,
    ) -> PyResult<Simulators> {
        let named = Scenario::named(scenario, &set).map_err(raise::refused)?;
        let agents = agents(scenario, &named, flows)?;
        // Agents steer these flows only. Other flows without a scheme run under `others`.
        for (other, of) in named.flow.iter().enumerate() {
            if of.scheme.is_none() && !agents.contains(&other) {
                set.push((format!("flow.{other}.scheme"), others.to_owned()));
            }
        }
        let named = Scenario::named(scenario, &set).map_err(raise::refused)?;
        let prepared = named.prepare().map_err(raise::refused)?;
        let lever =
            Lever::named(lever).ok_or_else(|| raise::value(format!("no action is called `{lever}`")))?;
        // A flow starts up to a millisecond late, and the last step must end before the run does.
        let starts = agents.iter().map(|agent| named.flow[*agent].start_s);
        let start_s = starts.fold(f64::INFINITY, f64::min);
        let stops: Vec<Time> = agents.iter().map(|agent| named.flow[*agent].stop()).collect();
        let until_s = |end_s: f64| ((end_s - start_s - 0.002) * 1e3 / step_ms).floor();
        let duration_s = named.duration().as_secs_f64();
        let steps = until_s(duration_s);
        let last_s = stops.iter().map(|stop| stop.as_secs_f64()).fold(0.0, f64::max).min(duration_s);
        if steps.is_nan() || until_s(last_s) < 2.0 {
            let reason =
                format!("step_ms={step_ms}: the flow runs for less than two steps; give a shorter one");
            return Err(raise::value(reason));
        }
        let clock = |agent: &usize| {
            let flow = &named.flow[*agent];
            let of_device = || DeviceClock::new(&named.device[usize::from(flow.device)].clock);
            (flow.direction == Direction::Uplink).then(of_device)
        };
        Ok(Simulators {
            clocks: agents.iter().map(clock).collect(),
            labels: agents.iter().map(|agent| named.flow[*agent].label.clone()).collect(),
            prepared: Arc::new(prepared),
            stops,
            lever,
            start,
            step: Duration::from_secs_f64(step_ms / 1e3),
            steps: steps as u64,
            all: (0..count).map(|_| None).collect(),
        })
    }

    /// The labels of the agents' flows.
    #[getter]
    fn labels(&self) -> Vec<String> {
        self.labels.clone()
    }

    /// Starts a new episode with its seed in each simulator of `mask`. Returns the observations after the first step.
    fn reset<'py>(
        &mut self,
        py: Python<'py>,
        mask: PyReadonlyArray1<'py, bool>,
        seeds: Vec<u64>,
    ) -> PyResult<Bound<'py, PyArray3<f32>>> {
        let mask = mask.as_slice()?;
        for (at, _) in mask.iter().enumerate().filter(|(_, wanted)| **wanted) {
            let seed = seeds.get(at).copied().unwrap_or(0);
            let simulator = self.begin(seed)?;
            if let Some(before) = self.all.get_mut(at).and_then(|place| place.replace(simulator)) {
                py.detach(|| before.end());
            }
        }
        let seen = self.see(py, mask)?;
        Ok(seen.0)
    }

    /// Sets rates or windows in the simulators of `mask`, and runs them for a step. The observations of the other simulators
    /// are zeros. `actions` has the actions of all agents of the first simulator, then those of the second, and so on.
    fn step<'py>(
        &mut self,
        py: Python<'py>,
        mask: PyReadonlyArray1<'py, bool>,
        actions: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<Steps<'py>> {
        let (mask, actions) = (mask.as_slice()?, actions.as_slice()?);
        if actions.len() != self.all.len() * self.labels.len() {
            let wanted = self.all.len() * self.labels.len();
            return Err(raise::value(format!("{} actions; give {wanted}, one per agent", actions.len())));
        }
        let of_each = actions.chunks(self.labels.len());
        for ((simulator, wanted), actions) in self.all.iter_mut().zip(mask).zip(of_each) {
            if !wanted {
                continue;
            }
            let Some(simulator) = simulator else {
                return Err(raise::failed("an episode is over or has not begun: call reset() first"));
            };
            if simulator.process != std::process::id() {
                return Err(raise::failed(
                    "the episode was begun before this process was forked, and its simulator stayed in the other \
                     process: call reset() first",
                ));
            }
            // If the run has ended, receiving its observation reports that.
            let _ = simulator.act.send(actions.to_vec());
        }
        self.see(py, mask)
    }

    /// Ends all episodes, and returns after their threads have ended.
    fn close(&mut self, py: Python<'_>) {
        let all: Vec<Simulator> = self.all.iter_mut().filter_map(Option::take).collect();
        py.detach(|| all.into_iter().for_each(Simulator::end));
    }
}

/// The flows that agents steer: the flows in `flows`, or all flows without a scheme of their own.
fn agents(scenario: &str, named: &Scenario, flows: Option<Vec<usize>>) -> PyResult<Vec<usize>> {
    let count = named.flow.len();
    let mut agents = match flows {
        None => (0..count).filter(|at| named.flow[*at].scheme.is_none()).collect(),
        Some(flows) => flows,
    };
    // Controllers are made in the order of the flows.
    agents.sort_unstable();
    if agents.is_empty() {
        return Err(raise::value(format!(
            "no flow to steer: those of `{scenario}` have schemes of their own"
        )));
    }
    for (at, flow) in agents.iter().enumerate() {
        match named.flow.get(*flow) {
            None => {
                return Err(raise::value(format!(
                    "flow={flow}: `{scenario}` has {count} flows; count from 0"
                )));
            }
            Some(of) if of.scheme.is_some() => {
                return Err(raise::value(format!(
                    "flow={flow} of `{scenario}` has a scheme of its own; steer another"
                )));
            }
            Some(_) if agents[..at].contains(flow) => {
                return Err(raise::value(format!("flow={flow} is named twice; it has one agent")));
            }
            Some(of) if of.every_ms.is_some() && of.connection.unwrap_or_default() == Connection::New => {
                return Err(raise::value(format!(
                    "flow={flow} of `{scenario}` opens a new connection for each of its transfers, and an agent steers \
                     one connection; steer another flow, or let its transfers share one: \
                     set={{\"flow.{flow}.connection\": \"same\"}}"
                )));
            }
            Some(_) => {}
        }
    }
    Ok(agents)
}

impl Simulators {
    /// Starts a simulator on its thread. Dropping the simulator ends the run.
    ///
    /// # Errors
    /// The operating system refuses another thread.
    fn begin(&self, seed: u64) -> PyResult<Simulator> {
        let (act, hear) = channel();
        let (tell, see) = channel();
        let ask = Ask::Outside { tell, hear };
        let turns = Turns::new(self.lever, self.step, self.start, self.stops.clone(), ask);
        let failed = Arc::new(OnceLock::new());
        let reason = failed.clone();
        let (prepared, clocks) = (self.prepared.clone(), self.clocks.clone());
        let simulate = move || {
            let turns = Arc::new(turns);
            let its = turns.clone();
            let made = AtomicUsize::new(0);
            let make = move |setup: &Setup| {
                // The controllers of a run are made in the order of its flows.
                let agent = made.fetch_add(1, Ordering::Relaxed);
                let clock = clocks.get(agent).copied();
                let clock = clock.ok_or_else(|| Refused::new("more connections than agents"))?;
                let steered = Steered::new(&its, agent, setup.mss, clock);
                Ok(Ends { controller: Box::new(steered), receiver: None })
            };
            let run = || {
                let spec = SchemeSpec::own("agent", Arc::new(make)).map_err(|error| error.to_string())?;
                let mut go_on =
                    |now: Time| match turns.have_left.load(Ordering::Relaxed) || turns.are_over(now) {
                        true => ControlFlow::Break(()),
                        false => ControlFlow::Continue(()),
                    };
                airpace_sim::run_prepared(&prepared, &spec, seed, &mut Discard, &mut go_on)
                    .map_err(|error| error.to_string())
            };
            match run() {
                Ok(stats) if turns.are_over(stats.ended) => turns.end(stats.ended),
                // The scenario has ended, and the agents have its last observation, or they have left.
                Ok(_) => {}
                // This is the only place that sets the reason.
                Err(error) => drop(reason.set(error)),
            }
        };
        let thread = std::thread::Builder::new().name("simulator".to_owned()).spawn(simulate);
        let thread = thread.map_err(|error| {
            raise::failed(format!("no thread for a simulator: {error}; give fewer simulators, or close some"))
        })?;
        let process = std::process::id();
        Ok(Simulator { act, see: Mutex::new(see), failed, steps: 0, thread, process })
    }

    /// Receives the observations of each simulator of `mask` at the end of its step, and whether its episode has ended.
    fn see<'py>(&mut self, py: Python<'py>, mask: &[bool]) -> PyResult<Steps<'py>> {
        let (all, steps, agents) = (&mut self.all, self.steps, self.labels.len());
        let told = py.detach(|| {
            let waiting = all.iter_mut().zip(mask).map(|(simulator, wanted)| {
                let Some(waiting) = simulator.as_mut().filter(|_| *wanted) else {
                    let told = Told { seen: vec![[0.0; NUMBERS]; agents], ended: vec![false; agents] };
                    return Ok((told, false));
                };
                let see = waiting.see.get_mut().unwrap_or_else(PoisonError::into_inner);
                match see.recv() {
                    Ok(told) => {
                        waiting.steps += 1;
                        Ok((told, waiting.steps >= steps))
                    }
                    Err(_) => Err(waiting.failed.get().cloned()),
                }
            });
            waiting.collect::<Vec<_>>()
        });
        let (mut rows, mut ended, mut over) = (vec![], vec![], vec![]);
        for (at, told) in told.into_iter().enumerate() {
            let (told, is_over) = told.map_err(|reason| {
                self.all[at] = None;
                let reason =
                    reason.unwrap_or_else(|| "no step came of it; this is a mistake in airpace".into());
                raise::failed(format!("the simulator ended early: {reason}"))
            })?;
            if is_over || told.ended.iter().all(|ended| *ended) {
                self.all[at] = None;
            }
            rows.push(told.seen.iter().map(|seen| seen.to_vec()).collect());
            ended.push(told.ended);
            over.push(is_over);
        }
        let rows = PyArray3::from_vec3(py, &rows).map_err(raise::failed)?;
        let ended = PyArray2::from_vec2(py, &ended).map_err(raise::failed)?;
        Ok((rows, ended, PyArray1::from_vec(py, over)))
    }
}
