//! Records the flows of a run: arrivals, queueing delays, and states of their schemes.
#![allow(dead_code)] // each test file uses only some items

use std::ops::{ControlFlow, Range};

use airpace_core::Time;
use airpace_event::{Event, Fate, Recorder};
use airpace_sim::{Scenario, SchemeSpec, builtin};

/// Runs a built-in scenario with the keys of `sets` (`key=value`, separated by spaces); returns the scenario's first
/// flow.
pub fn first(name: &str, sets: &str, scheme: &str, seed: u64) -> Watched {
    flows(name, sets, scheme, seed).swap_remove(0)
}

/// Runs a built-in scenario with the keys of `sets`; returns all flows of the scenario.
pub fn flows(name: &str, sets: &str, scheme: &str, seed: u64) -> Vec<Watched> {
    let (_, text) = builtin().iter().find(|(known, _)| *known == name).expect("a built-in scenario");
    let sets: Vec<_> = sets
        .split_whitespace()
        .map(|set| set.split_once('=').expect("key=value"))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    let scenario = Scenario::load(text, name, &sets).unwrap_or_else(|error| panic!("{error}"));
    watch(&scenario, scheme, seed)
}

/// Runs a scenario; returns all flows of the scenario.
pub fn watch(scenario: &Scenario, scheme: &str, seed: u64) -> Vec<Watched> {
    let spec = SchemeSpec::parse(scheme).unwrap();
    let mut watch = Watch { flows: scenario.flow.iter().map(|flow| Watched::of(flow.device)).collect() };
    airpace_sim::run(scenario, &spec, seed, &mut watch, &mut |_| ControlFlow::Continue(()))
        .unwrap_or_else(|error| panic!("{error}"));
    watch.flows
}

/// Runs a scenario with the packet send times `departures`, by flow; returns all flows of the scenario.
pub fn watch_departures(scenario: &Scenario, departures: Vec<Vec<Time>>, seed: u64) -> Vec<Watched> {
    let mut watch = Watch { flows: scenario.flow.iter().map(|flow| Watched::of(flow.device)).collect() };
    let prepared = scenario.prepare().unwrap_or_else(|error| panic!("{error}"));
    let mut go_on = |_| ControlFlow::Continue(());
    airpace_sim::run_departures(&prepared, departures, seed, &mut watch, &mut go_on)
        .unwrap_or_else(|error| panic!("{error}"));
    watch.flows
}

struct Watch {
    flows: Vec<Watched>,
}

/// The records of a flow and its device; times are in s.
#[derive(Default)]
pub struct Watched {
    device: u16,
    /// Send time of each packet.
    sent: Vec<f64>,
    /// Arrival time (s), size (bytes) and queueing delay (ms) of every arrived packet.
    arrivals: Vec<(f64, u64, f64)>,
    pub dropped: u64,
    /// Send times of the packets that never arrived.
    lost: Vec<f64>,
    /// Times at which the scheme entered states, and the names of the states.
    pub states: Vec<(f64, String)>,
    /// Samples of the scheme's state.
    pub looks: Vec<Look>,
    /// Capacity of the device's radio: start of each interval, and bytes.
    capacity: Vec<(f64, u64)>,
}

/// A sample of a scheme's state, taken every 10 ms and at changes of state.
#[derive(Clone, Debug)]
pub struct Look {
    pub at_s: f64,
    pub state: String,
    /// Pacing rate; NaN if the scheme does not pace.
    pub pacing_mbps: f64,
    values: Vec<(&'static str, f64)>,
}

impl Look {
    /// Returns whether the sample has a value with this name.
    pub fn has(&self, name: &str) -> bool {
        self.values.iter().any(|(known, _)| *known == name)
    }

    /// Returns the value with this name.
    pub fn value(&self, name: &str) -> f64 {
        self.values.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("no {name}")).1
    }
}

impl Watched {
    fn of(device: u16) -> Watched {
        Watched { device, ..Watched::default() }
    }

    /// Returns the send time of each packet.
    pub fn departures(&self) -> Vec<Time> {
        self.sent.iter().map(|&at| Time::from_secs_f64(at)).collect()
    }

    /// Returns the arrived packets: arrival time in s, size in bytes, and queueing delay in ms.
    pub fn arrivals(&self) -> &[(f64, u64, f64)] {
        &self.arrivals
    }

    /// Returns the mean rate (Mbit/s) of the data that arrived in `span` (s).
    pub fn mbps(&self, span: Range<f64>) -> f64 {
        let arrived = self.arrivals.iter().filter(|(at, ..)| span.contains(at));
        arrived.map(|(_, bytes, _)| *bytes as f64 * 8e-6).sum::<f64>() / (span.end - span.start)
    }

    /// Returns the mean rate (Mbit/s) that the radio could have transferred in `span` (s).
    pub fn capacity_mbps(&self, span: Range<f64>) -> f64 {
        let possible = self.capacity.iter().filter(|(at, _)| span.contains(at));
        possible.map(|(_, bytes)| *bytes as f64 * 8e-6).sum::<f64>() / (span.end - span.start)
    }

    /// Returns the 95th percentile of the queueing delay (ms) of packets that arrived in `span` (s).
    pub fn queueing_p95_ms(&self, span: Range<f64>) -> f64 {
        let arrived = self.arrivals.iter().filter(|(at, ..)| span.contains(at));
        let mut delays: Vec<f64> = arrived.map(|(.., delay)| *delay).collect();
        assert!(!delays.is_empty(), "nothing arrived in {span:?}");
        delays.sort_by(f64::total_cmp);
        delays[delays.len() * 95 / 100]
    }

    /// Returns the mean queueing delay (ms) of packets that arrived in `span` (s).
    pub fn queueing_mean_ms(&self, span: Range<f64>) -> f64 {
        let arrived = self.arrivals.iter().filter(|(at, ..)| span.contains(at));
        let (sum, count) = arrived.fold((0.0, 0.0), |(sum, count), (.., delay)| (sum + delay, count + 1.0));
        sum / count
    }

    /// Returns the share of the packets sent in `span` (s) that never arrived.
    pub fn loss_rate(&self, span: Range<f64>) -> f64 {
        let within = |times: &[f64]| times.iter().filter(|at| span.contains(at)).count() as f64;
        within(&self.lost) / within(&self.sent).max(1.0)
    }

    /// Returns the samples of the scheme's state in `span` (s).
    pub fn looks_in(&self, span: Range<f64>) -> impl Iterator<Item = &Look> {
        self.looks.iter().filter(move |look| span.contains(&look.at_s))
    }

    /// Returns the last sample of the scheme's state up to the time `time_s`.
    pub fn look_at(&self, time_s: f64) -> &Look {
        self.looks.iter().rev().find(|look| look.at_s <= time_s).expect("a look")
    }

    /// Returns the mean of the value `name` over the samples in `span` (s).
    pub fn mean(&self, name: &str, span: Range<f64>) -> f64 {
        let (sum, count) =
            self.looks_in(span).fold((0.0, 0.0), |(sum, count), look| (sum + look.value(name), count + 1.0));
        sum / count
    }

    /// Returns the pacing rates in `span` (s), every 10 ms and at changes of state.
    pub fn pacing_mbps(&self, span: Range<f64>) -> Vec<f64> {
        self.looks_in(span).map(|look| look.pacing_mbps).collect()
    }

    /// Returns the pacing rate at the time `time_s`.
    pub fn pacing_mbps_at(&self, time_s: f64) -> f64 {
        self.look_at(time_s).pacing_mbps
    }

    /// Returns the scheme's state at the time `time_s`.
    pub fn state_at(&self, time_s: f64) -> &str {
        let before = self.states.iter().rev().find(|(at, _)| *at <= time_s);
        &before.expect("a state").1
    }

    /// Returns the scheme's states from the time `from_s` on, in order.
    pub fn states_from(&self, from_s: f64) -> Vec<&str> {
        let later = self.states.iter().filter(|(at, _)| *at > from_s).map(|(_, state)| state.as_str());
        std::iter::once(self.state_at(from_s)).chain(later).collect()
    }

    /// Returns the time (s) at which the flow first enters `state` after `from_s`; infinity if the flow never enters
    /// it.
    pub fn enters(&self, state: &str, from_s: f64) -> f64 {
        let entry = self.states.iter().find(|(at, name)| *at >= from_s && name == state);
        entry.map_or(f64::INFINITY, |(at, _)| *at)
    }

    /// Checks that the flow was never in a state whose name starts with `word`.
    pub fn was_never_in(&self, word: &str) {
        assert!(!self.states.is_empty(), "states are recorded");
        assert!(self.states.iter().all(|(_, state)| !state.starts_with(word)), "{:?}", self.states);
    }
}

impl Recorder for Watch {
    fn record(&mut self, event: Event<'_>) {
        match event {
            Event::Sent(packet) => {
                self.flows[usize::from(packet.flow.0)].sent.push(packet.sent.as_secs_f64())
            }
            Event::Arrived(arrived) => {
                let flow = &mut self.flows[usize::from(arrived.packet.flow.0)];
                if arrived.fate == Fate::Delivered {
                    let one_way = arrived.time - arrived.packet.sent;
                    let queueing = one_way.as_secs_f64() - arrived.propagation_delay.as_secs_f64();
                    flow.arrivals.push((arrived.time.as_secs_f64(), arrived.packet.bytes.0, queueing * 1e3));
                } else {
                    flow.dropped += 1;
                    flow.lost.push(arrived.packet.sent.as_secs_f64());
                }
            }
            Event::Inspected(seen) => {
                let now = seen.time.as_secs_f64();
                let flow = &mut self.flows[usize::from(seen.flow.0)];
                if seen.state_changed {
                    flow.states.push((now, seen.state.to_owned()));
                }
                flow.looks.push(Look {
                    at_s: now,
                    state: seen.state.to_owned(),
                    pacing_mbps: seen.pacing_rate.map_or(f64::NAN, |rate| rate.as_mbps()),
                    values: seen.values.to_vec(),
                });
            }
            Event::Capacity(capacity) => {
                let its = self.flows.iter_mut().filter(|flow| flow.device == capacity.device.0);
                let carried = (capacity.time.as_secs_f64(), capacity.bytes.0);
                its.for_each(|flow| flow.capacity.push(carried));
            }
            _ => {}
        }
    }
}
