//! What happens in every millisecond whatever flows: the last hop's capacity, its radio reports, the truth for Oracles,
//! a look into every flow.

use std::ops::ControlFlow;

use airpace_cc::controller::Truth;
use airpace_core::{Bytes, Direction, Rate, Time};
use airpace_event::{Event, Inspected, Reported, Source};
use airpace_path::network::SharedLink;
use airpace_radio::RadioReport;

use super::{DeviceState, Driver, Progress};
use crate::flow::FlowState;

/// Milliseconds between looks into every running flow; changes of state are seen every millisecond.
///
/// Chosen: 10 ms, fine enough to plot the shortest RTprop in use.
const INSPECT_EVERY_MS: u64 = 10;

/// Milliseconds between calls of `progress`.
const PROGRESS_EVERY_MS: u64 = 100;

impl Driver<'_> {
    /// The last hop has run: what it says of itself is recorded, and devices hear their radio.
    pub(super) fn hear_radio(&mut self) {
        if self.tell_radio() {
            (0..self.devices.len()).for_each(|device| self.wake_modem_listeners(device));
        }
    }

    /// Records what the network says of its last hop, and hands on what radios told; whether a modem told something.
    fn tell_radio(&mut self) -> bool {
        if self.wants_subframes {
            for subframe in self.network.subframes() {
                self.stats.events += 1;
                self.recorder.record(Event::Subframe(&subframe));
            }
        }
        for &capacity in self.network.capacities() {
            self.stats.events += 1;
            self.recorder.record(Event::Capacity(capacity));
        }
        let mut modem_told = false;
        while let Some((device, source, report)) = self.network.pop_report() {
            let state = &self.devices[usize::from(device.0)];
            let mut tell = |report: &mut RadioReport| {
                if state.is_recorded[source as usize] {
                    self.recorder.record(Event::Reported(&Reported { device, source, report }));
                }
                match source {
                    Source::ControlChannel => tell_channel_listeners(&mut self.flows, state, report),
                    Source::Modem => tell_modem_listeners(&mut self.flows, state, self.now, report),
                }
            };
            modem_told |= source == Source::Modem;
            match &mut self.antennas[usize::from(device.0)] {
                Some(antenna) if source == Source::ControlChannel => antenna.hear(report, &mut tell),
                _ => tell(report),
            }
        }
        modem_told
    }

    /// What happens every millisecond: what the network tells then, the truth for Oracles, a look into every flow.
    pub(super) fn tick(&mut self, progress: &mut Progress<'_>) -> ControlFlow<()> {
        let millis = self.now.as_millis();
        self.tell_radio();
        self.tell_all_of_flows();
        for index in 0..self.flows.len() {
            self.tell_truth(index);
            self.look_into(index, millis.is_multiple_of(INSPECT_EVERY_MS));
        }
        if millis.is_multiple_of(PROGRESS_EVERY_MS) { progress(self.now) } else { ControlFlow::Continue(()) }
    }

    /// Devices tell the controllers that ask for it what they know of their flows; what that or the radio changed
    /// takes effect.
    fn tell_all_of_flows(&mut self) {
        for device in 0..self.devices.len() {
            for place in 0..self.devices[device].modem_listeners.len() {
                let index = self.devices[device].modem_listeners[place];
                if self.flows[index].is_running(self.now) {
                    self.tell_of_flows(index);
                }
            }
            self.wake_modem_listeners(device);
        }
    }

    /// A flow's controller is told what its device knows of the flows that it sends.
    pub(super) fn tell_of_flows(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        let sent = &self.devices[usize::from(flow.device.0)].registry[Direction::Uplink as usize];
        let flows = sent.view(self.now, &flow.key);
        flow.sender.on_device(flow.sender_time(self.now), &flows);
    }

    fn wake_modem_listeners(&mut self, device: usize) {
        for place in 0..self.devices[device].modem_listeners.len() {
            self.transmit(self.devices[device].modem_listeners[place]);
        }
    }

    /// Tells an Oracle what its path can carry.
    fn tell_truth(&mut self, index: usize) {
        let flow = &self.flows[index];
        if !flow.wants_truth || !flow.is_running(self.now) {
            return;
        }
        let id = flow.id;
        let wire_delay = &mut self.flows[index].wire_delay;
        for (at, took) in self.network.crossings(id) {
            wire_delay.update(at, took);
        }
        let forward_delay = wire_delay.get().unwrap_or_else(|| self.network.entry_delay(id));
        let (mut capacity, mut backlog) = (None, Bytes::ZERO);
        for link in SharedLink::ALL {
            let Some(state) = self.network.shared_link(id, link, self.now + forward_delay) else { continue };
            let others =
                self.flows.iter().filter(|other| other.id != id && self.network.meet(link, id, other.id));
            let heard = others.clone().filter(|other| other.is_heard(self.now)).count() as u64;
            let own = self.network.in_links(id);
            let all: Bytes = others.map(|other| self.network.in_links(other.id)).sum();
            backlog += state.backlog.scaled(own.0 as f64 / (all + own).0.max(1) as f64);
            let rate = state.rate.map(|rate| Rate::from_bps(rate.as_bps() / (1 + heard)));
            capacity = [capacity, rate].into_iter().flatten().min();
        }
        let Some(capacity) = capacity else { return };
        let flow = &self.flows[index];
        let (now, on_wire) = (flow.sender_time(self.now), self.network.on_wire(id));
        let truth = Truth { now, capacity, backlog, on_wire, forward_delay };
        self.flows[index].sender.on_truth(&truth);
        self.transmit(index);
    }

    /// Records a flow's inside if it is time or its state has changed.
    fn look_into(&mut self, index: usize, is_time: bool) {
        let flow = &mut self.flows[index];
        if !flow.is_running(self.now) {
            return;
        }
        self.inspect.clear();
        flow.sender.inspect(&mut self.inspect);
        let state_changed = self.inspect.state != flow.state;
        if !is_time && !state_changed {
            return;
        }
        flow.acker.inspect(&mut self.inspect);
        flow.state = self.inspect.state;
        let control = flow.sender.control();
        self.stats.events += 1;
        self.recorder.record(Event::Inspected(&Inspected {
            time: self.now,
            flow: flow.id,
            state: self.inspect.state,
            state_changed,
            cwnd: control.cwnd,
            pacing_rate: control.pacing_rate,
            inflight: flow.sender.inflight(),
            values: &self.inspect.values,
        }));
    }
}

/// The receiver halves on a device hear its radio, by the device's clock.
fn tell_channel_listeners(flows: &mut [FlowState], device: &DeviceState, report: &mut RadioReport) {
    report.time = device.clock.read(report.time);
    for &listener in &device.channel_listeners {
        flows[listener].acker.on_radio(report);
        flows[listener].connections.hear_channel(report);
    }
}

/// The controllers on a device read its modem's log, by the clock that their timers run on.
fn tell_modem_listeners(flows: &mut [FlowState], device: &DeviceState, now: Time, report: &mut RadioReport) {
    report.time = device.clock.steady(report.time);
    for &listener in &device.modem_listeners {
        flows[listener].sender.on_radio(device.clock.steady(now), report);
        flows[listener].connections.hear_modem(device.clock.steady(now), report);
    }
}
