//! Adapter that runs a controller written in Python as a controller of `cc`.
//!
//! Window and rate are requested once after each event, not for each packet. An exception of the controller stops the runs,
//! and `simulate` raises it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use airpace_cc::SchemeSpec;
use airpace_cc::controller::{Ack, Control, Controller, Inspect, Loss, Sent};
use airpace_cc::scheme::{Ends, Setup};
use airpace_core::{Bytes, Rate, Refused, Time};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::calls::Calls;
use crate::steered::{Ask, Lever, Steered, Turns};
use crate::{events, raise};

/// Maximum number of names of values and states, which are kept for the life of the process.
///
/// Chosen: more than any plot shows. Without a limit, a controller with new names at every call would fill the memory.
const MAX_NAMES: usize = 10_000;

/// Maximum rate in Mbit/s.
///
/// Chosen: more than the path of any scenario; larger numbers are mistakes.
const MAX_MBPS: f64 = 1e6;

/// Maximum length of a value in an error text (characters).
const MAX_SHOWN: usize = 60;

/// A scheme whose controllers are made by `factory`: a Python callable that takes an `airpace.Setup`.
pub fn scheme(name: &str, factory: Py<PyAny>, calls: &Arc<Calls>) -> PyResult<SchemeSpec> {
    let calls = calls.clone();
    let make = move |setup: &Setup| {
        let made = calls.make(|py| made(py, &factory, setup, &calls));
        // The caller receives the exception that was kept, not this text.
        made.ok_or_else(|| Refused::new("no controller was made: Python raised an exception"))
    };
    let make = move |setup: &Setup| Ok(Ends { controller: make(setup)?, receiver: None });
    SchemeSpec::own(name, Arc::new(make)).map_err(raise::value)
}

/// Calls `factory` for one flow. The result is a controller, or an agent that is asked for an action at every step.
fn made(
    py: Python<'_>,
    factory: &Py<PyAny>,
    setup: &Setup,
    calls: &Arc<Calls>,
) -> PyResult<Box<dyn Controller>> {
    let seed = setup.rng.clone().next_u64();
    let object = factory.bind(py).call1((events::Setup { mss_bytes: setup.mss.0, seed },))?;
    if !object.hasattr("_steering")? {
        return Ok(Box::new(InPython::new(py, &object, setup, calls)?));
    }
    let steering = object.call_method0("_steering")?;
    let (policy, lever, step_ms, start): (Py<PyAny>, String, f64, f64) = steering.extract()?;
    let lever = Lever::named(&lever).ok_or_else(|| raise::value(format!("no action is called `{lever}`")))?;
    let ask = Ask::Policy { policy, calls: calls.clone() };
    let turns = Turns::new(lever, Duration::from_secs_f64(step_ms / 1e3), start, vec![Time::NEVER], ask);
    Ok(Box::new(Steered::new(&Arc::new(turns), 0, setup.mss, None)))
}

/// The controller of one flow.
struct InPython {
    on_ack: Py<PyAny>,
    on_loss: Py<PyAny>,
    ask: Py<PyAny>,
    /// This hook and the next two are `None` if the class does not override them.
    on_sent: Option<Py<PyAny>>,
    on_timer: Option<Py<PyAny>>,
    next_timer: Option<Py<PyAny>>,
    look: Py<PyAny>,
    mss: Bytes,
    control: Control,
    timer: Option<Time>,
    calls: Arc<Calls>,
}

impl InPython {
    fn new(
        py: Python<'_>,
        object: &Bound<'_, PyAny>,
        setup: &Setup,
        calls: &Arc<Calls>,
    ) -> PyResult<InPython> {
        // The base class reports which methods are overridden.
        let hooks = object.call_method0("_hooks")?.cast_into::<PyTuple>()?;
        let hook = |at: usize| -> PyResult<Py<PyAny>> { Ok(hooks.get_item(at)?.unbind()) };
        let maybe = |at: usize| -> PyResult<Option<Py<PyAny>>> {
            Ok(Some(hooks.get_item(at)?).filter(|hook| !hook.is_none()).map(Bound::unbind))
        };
        let mut made = InPython {
            on_ack: hook(0)?,
            on_loss: hook(1)?,
            ask: hook(2)?,
            look: hook(3)?,
            on_sent: maybe(4)?,
            on_timer: maybe(5)?,
            next_timer: maybe(6)?,
            mss: setup.mss,
            control: Control { cwnd: setup.mss, pacing_rate: None },
            timer: None,
            calls: calls.clone(),
        };
        made.refresh(py)?;
        Ok(made)
    }

    /// Requests window, rate and timer from the controller.
    fn refresh(&mut self, py: Python<'_>) -> PyResult<()> {
        let (cwnd_bytes, pacing_mbps): (f64, Option<f64>) = self.ask.bind(py).call0()?.extract().map_err(|_| {
            raise::value("control() must return Control(cwnd_bytes, pacing_mbps): two numbers, or a number and None")
        })?;
        if cwnd_bytes.is_nan() || cwnd_bytes < 0.0 {
            return Err(raise::value(format!("control(): a window of {cwnd_bytes} bytes; give at least 0")));
        }
        let pacing_rate = match pacing_mbps {
            None => None,
            Some(mbps) if mbps > 0.0 && mbps <= MAX_MBPS => Some(Rate::from_mbps(mbps)),
            Some(mbps) => {
                return Err(raise::value(format!(
                    "control(): a rate of {mbps} Mbit/s; give more than 0 and at most {MAX_MBPS}, or None"
                )));
            }
        };
        self.control = Control { cwnd: Bytes(cwnd_bytes as u64).max(self.mss), pacing_rate };
        self.timer = match &self.next_timer {
            None => None,
            Some(next) => {
                let due = next.bind(py).call0()?;
                match due.extract::<Option<f64>>() {
                    Ok(millis) if !millis.is_some_and(f64::is_nan) => millis.map(time),
                    _ => {
                        let reason = format!(
                            "next_timer() returned {}; give a time in milliseconds, as `now_ms`, or None",
                            shown(&due)
                        );
                        return Err(raise::value(reason));
                    }
                }
            }
        };
        Ok(())
    }

    /// Passes an event to the controller, and then requests window, rate and timer.
    fn tell(&mut self, tell: impl FnOnce(&InPython, Python<'_>) -> PyResult<Py<PyAny>>) {
        let calls = self.calls.clone();
        if calls.make(|py| tell(self, py).and_then(|_| self.refresh(py))).is_none() {
            // After an exception the controller is not called again; the run stops soon.
            self.timer = None;
        }
    }

    fn look(&self, py: Python<'_>, out: &mut Inspect) -> PyResult<()> {
        let (state, values): (Bound<'_, PyAny>, Bound<'_, PyAny>) = self.look.bind(py).call0()?.extract()?;
        let word: String = state.extract().map_err(|_| {
            raise::value(format!("state() returned {}; give a word, as \"Probing\"", shown(&state)))
        })?;
        out.state = kept(&word)?;
        // Sorted by name: the order of a dict may differ between calls.
        let values: BTreeMap<String, f64> = values.extract().map_err(|_| {
            let what = shown(&values);
            raise::value(format!(
                "inspect() returned {what}; give a dict of names and numbers, as {{\"rate_mbps\": 8.0}}"
            ))
        })?;
        for (name, value) in values {
            if airpace_tables::is_controller_column(&name) || name.is_empty() {
                return Err(raise::value(format!(
                    "inspect() names a value `{name}`, as the table `controller` calls a column of its own; call it \
                         otherwise"
                )));
            }
            out.value(kept(&name)?, value);
        }
        Ok(())
    }
}

impl Controller for InPython {
    fn on_sent(&mut self, sent: &Sent) {
        if self.on_sent.is_some() {
            self.tell(|it, py| match &it.on_sent {
                Some(hook) => hook.call1(py, (events::Sent::new(sent),)),
                None => Ok(py.None()),
            });
        }
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.tell(|it, py| it.on_ack.call1(py, (events::Ack::new(ack),)));
    }

    fn on_loss(&mut self, loss: &Loss<'_>) {
        self.tell(|it, py| it.on_loss.call1(py, (events::Loss::new(loss),)));
    }

    fn handle_timeout(&mut self, now: Time) {
        self.timer = None;
        self.tell(|it, py| match &it.on_timer {
            Some(hook) => hook.call1(py, (events::millis(now),)),
            None => Ok(py.None()),
        });
        // Remove an expired timer: a timer that the controller does not move would otherwise expire again and again.
        self.timer = self.timer.filter(|next| *next > now);
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.timer
    }

    fn control(&self) -> Control {
        self.control
    }

    fn inspect(&self, out: &mut Inspect) {
        // An exception is kept, and stops the run.
        let _ = self.calls.make(|py| self.look(py, out));
    }
}

/// Python's representation of a value, cut if it is long.
fn shown(value: &Bound<'_, PyAny>) -> String {
    let text = value.repr().map_or_else(|_| "something".to_owned(), |text| text.to_string());
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Converts milliseconds to a time. Negative times become the start of the run.
fn time(millis: f64) -> Time {
    Time::from_nanos((millis * 1e6) as u64)
}

/// Returns the same text with the lifetime of the process.
fn kept(text: &str) -> PyResult<&'static str> {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(text) {
        return Ok(known);
    }
    if names.len() >= MAX_NAMES {
        let reason = format!("inspect(): more than {MAX_NAMES} names; give the same few names at every call");
        return Err(raise::value(reason));
    }
    let name: &'static str = Box::leak(text.to_owned().into_boxed_str());
    names.insert(name);
    Ok(name)
}
