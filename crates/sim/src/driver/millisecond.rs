//! What happens in every millisecond whatever flows: the last hop's capacity, its radio reports, the truth for Oracles,
//! a look into every flow.

use std::ops::ControlFlow;

use airpace_cc::controller::Truth;
use airpace_core::{Bytes, DeviceId, Direction, Rate, Time};
use airpace_event::{Capacity, Event, Fate, Inspected, Reported, Source};
use airpace_path::Link;
use airpace_path::queue::Queue;
use airpace_radio::RadioReport;

use super::{DeviceState, Driver, Progress};
use crate::agenda::Part;
use crate::flow::{FlowState, MSS};
use crate::hop::{LastHop, MILLISECOND};

/// Milliseconds between looks into every running flow; changes of state are seen every millisecond.
///
/// Chosen: 10 ms, fine enough to plot the shortest RTprop in use.
const INSPECT_EVERY_MS: u64 = 10;

/// Milliseconds between calls of `progress`.
const PROGRESS_EVERY_MS: u64 = 100;

impl Driver<'_> {
    pub(super) fn drain_last_hop(&mut self) {
        let subframes_before = self.subframes_run();
        while let Some((direction, exit)) = self.hop.pop(self.now) {
            let is_data = self.flows[usize::from(exit.packet.flow.0)].direction == direction;
            match exit.fate {
                fate if !is_data => self.ack_leaves_cell(direction, exit.packet, fate),
                Fate::Delivered => self.leave_last_hop(direction, exit.packet),
                fate => self.drop_in_links(exit.packet, fate),
            }
        }
        if self.subframes_run() > subframes_before {
            self.tell_subframe();
        }
        self.tell_reports();
        self.agenda.set(Part::LastHop, self.hop.next());
    }

    fn subframes_run(&self) -> u64 {
        match &self.hop {
            LastHop::Cell(cell) => cell.subframes_run(),
            _ => 0,
        }
    }

    /// Records the subframe that the cell has just run and what it could have carried.
    fn tell_subframe(&mut self) {
        let LastHop::Cell(cell) = &mut self.hop else { return };
        if self.wants_subframes {
            for subframe in cell.subframes() {
                self.stats.events += 1;
                self.recorder.record(Event::Subframe(&subframe));
            }
        }
        for index in 0..self.devices.len() {
            let device = DeviceId(index as u16);
            for place in 0..self.devices[index].directions.len() {
                let LastHop::Cell(cell) = &mut self.hop else { return };
                let direction = self.devices[index].directions[place];
                let capacity = match direction {
                    Direction::Downlink => cell.capacity(device),
                    Direction::Uplink => cell.uplink_capacity(device),
                };
                self.devices[index].capacity[direction as usize].observe(capacity.bytes);
                self.record_capacity(capacity.time, device, direction, Some(capacity.bytes));
            }
        }
    }

    /// Records what the path could carry for a device in the millisecond from `from` on: its last hop or, where
    /// narrower, the Internet's queue (whole: it is not known who else could have used it).
    fn record_capacity(
        &mut self,
        from: Time,
        device: DeviceId,
        direction: Direction,
        last_hop: Option<Bytes>,
    ) {
        let its = |flow: &&FlowState| flow.device == device && flow.direction == direction;
        let crosses = self.flows.iter().filter(its).any(|flow| flow.crosses_internet);
        let queue = self.internet[direction as usize].as_ref().filter(|_| crosses);
        let internet = queue.and_then(Queue::rate).map(|rate| rate.bytes_in(MILLISECOND));
        if let Some(bytes) = [last_hop, internet].into_iter().flatten().min() {
            let span = MILLISECOND;
            self.record(Event::Capacity(Capacity { time: from, span, device, direction, bytes }));
        }
    }

    /// Hands on what the cell's radio told.
    fn tell_reports(&mut self) {
        while let LastHop::Cell(cell) = &mut self.hop
            && let Some((device, report)) = cell.pop_report(self.now)
        {
            let index = usize::from(device.0);
            let mut tell = |report: &RadioReport| {
                if self.devices[index].is_recorded[Source::ControlChannel as usize] {
                    let source = Source::ControlChannel;
                    self.recorder.record(Event::Reported(&Reported { device, source, report }));
                }
                tell_listeners(&mut self.flows, &self.devices[index], report);
            };
            match &mut self.antennas[index] {
                Some(antenna) => antenna.hear(report, &mut tell),
                None => tell(report),
            }
        }
        let mut told_any = false;
        while let LastHop::Cell(cell) = &mut self.hop
            && let Some((device, report)) = cell.pop_own_report(self.now)
        {
            let state = &self.devices[usize::from(device.0)];
            if state.is_recorded[Source::Modem as usize] {
                self.recorder.record(Event::Reported(&Reported { device, source: Source::Modem, report }));
            }
            tell_confidants(&mut self.flows, state, self.now, report);
            told_any = true;
        }
        if told_any {
            (0..self.devices.len()).for_each(|device| self.wake_confidants(device));
        }
    }

    /// What happens every millisecond: the trace's radio, the truth for Oracles, a look into every flow.
    pub(super) fn tick(&mut self, progress: &mut Progress<'_>) -> ControlFlow<()> {
        let millis = self.now.as_millis();
        match &mut self.hop {
            LastHop::Cell(_) => {}
            LastHop::Trace(trace) => {
                let device = &self.devices[0];
                if trace.has_telemetry
                    && millis > 0
                    && (!device.listeners.is_empty() || !device.confidants.is_empty())
                {
                    let report = trace.report(self.now);
                    tell_listeners(&mut self.flows, device, &report);
                    tell_confidants(&mut self.flows, device, self.now, &report);
                }
                let (direction, capacity) = (trace.direction, trace.capacity(self.now));
                self.record_capacity(self.now, DeviceId(0), direction, Some(capacity));
            }
            LastHop::Nothing => self.tell_wires(),
        }
        self.confide_in_all();
        for index in 0..self.flows.len() {
            self.tell_truth(index);
            self.look_into(index, millis.is_multiple_of(INSPECT_EVERY_MS));
        }
        self.agenda.set(Part::Tick, Some(self.now + MILLISECOND));
        if millis.is_multiple_of(PROGRESS_EVERY_MS) { progress(self.now) } else { ControlFlow::Continue(()) }
    }

    /// Records what can be carried where there is no last hop.
    fn tell_wires(&mut self) {
        for index in 0..self.devices.len() {
            let device = DeviceId(index as u16);
            for place in 0..self.devices[index].directions.len() {
                let direction = self.devices[index].directions[place];
                let its = |flow: &&FlowState| flow.device == device && flow.direction == direction;
                let flows = self.flows.iter().filter(its).count() as u64;
                let wires = self.wire_rate.map(|rate| Bytes(rate.bytes_in(MILLISECOND).0 * flows));
                self.record_capacity(self.now, device, direction, wires);
            }
        }
    }

    /// Devices tell the controllers that ask for it what they know of their flows; what that or the radio changed
    /// takes effect.
    fn confide_in_all(&mut self) {
        for device in 0..self.devices.len() {
            for place in 0..self.devices[device].confidants.len() {
                let index = self.devices[device].confidants[place];
                if self.flows[index].is_running(self.now) {
                    self.confide(index);
                }
            }
            self.wake_confidants(device);
        }
    }

    /// A flow's controller is told what its device knows of the flows that it sends.
    pub(super) fn confide(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        let sent = &self.devices[usize::from(flow.device.0)].registry[Direction::Uplink as usize];
        let flows = sent.view(self.now, &flow.key);
        flow.sender.on_device(flow.sender_time(self.now), &flows);
    }

    fn wake_confidants(&mut self, device: usize) {
        for place in 0..self.devices[device].confidants.len() {
            self.transmit(self.devices[device].confidants[place]);
        }
    }

    /// Tells an Oracle what its path can carry.
    fn tell_truth(&mut self, index: usize) {
        let flow = &self.flows[index];
        if !flow.wants_truth || !flow.is_running(self.now) {
            return;
        }
        let direction = flow.direction;
        let forward_delay = match flow.wire_first {
            true => flow.wire_delay.get().unwrap_or_else(|| flow.forward.base_delay(MSS)),
            // What a device asks a cell to grant is a wire of its own.
            false => self.grant_delay,
        };
        let sharing = |also: &dyn Fn(&FlowState) -> bool| {
            let same_way = |other: &&FlowState| other.id != flow.id && other.direction == direction;
            let others = self.flows.iter().filter(same_way).filter(|other| also(other));
            let heard = others.clone().filter(|other| other.is_heard(self.now)).count() as u64;
            let inside: Bytes = others.map(|other| other.in_links).sum();
            let all = (inside + flow.in_links).0.max(1);
            (1 + heard, flow.in_links.0 as f64 / all as f64)
        };
        let (sharers, share) = sharing(&|other| other.device == flow.device);
        let last_hop = match &self.hop {
            LastHop::Cell(_) => {
                Some(self.devices[usize::from(flow.device.0)].capacity[direction as usize].rate())
            }
            LastHop::Trace(trace) => {
                let arrival_ms = (self.now + forward_delay).as_millis();
                Some(Rate::from_bytes_per(trace.capacity(Time::from_millis(arrival_ms)), MILLISECOND))
            }
            LastHop::Nothing => self.wire_rate,
        };
        let mut backlog = self.hop.backlog_of(direction, flow.device).scaled(share);
        let mut capacity = last_hop.map(|rate| Rate::from_bps(rate.as_bps() / sharers));
        if let Some(queue) = self.internet[direction as usize].as_ref().filter(|_| flow.crosses_internet) {
            let (sharers, share) = sharing(&|other| other.crosses_internet);
            backlog += queue.backlog().scaled(share);
            let rate = queue.rate().map(|rate| Rate::from_bps(rate.as_bps() / sharers));
            capacity = [capacity, rate].into_iter().flatten().min();
        }
        let Some(capacity) = capacity else { return };
        let now = flow.sender_time(self.now);
        let truth = Truth { now, capacity, backlog, on_wire: flow.on_wire, forward_delay };
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
fn tell_listeners(flows: &mut [FlowState], device: &DeviceState, report: &RadioReport) {
    if device.listeners.is_empty() {
        return;
    }
    let report = RadioReport { time: device.clock.read(report.time), ..report.clone() };
    for &listener in &device.listeners {
        flows[listener].acker.on_radio(&report);
    }
}

/// The controllers on a device read its modem's log, by the clock that their timers run on.
fn tell_confidants(flows: &mut [FlowState], device: &DeviceState, now: Time, report: &RadioReport) {
    if device.confidants.is_empty() {
        return;
    }
    let report = RadioReport { time: device.clock.steady(report.time), ..report.clone() };
    for &confidant in &device.confidants {
        flows[confidant].sender.on_radio(device.clock.steady(now), &report);
    }
}
