//! Work of every millisecond, with or without packets: the last hop's capacity, the last hop's radio reports, the
//! reports for Oracles, and samples of every flow's state.

use std::ops::ControlFlow;
use std::time::Duration;

use airpace_cc::controller::Truth;
use airpace_core::{Bytes, Direction, FlowId, Rate, Time};
use airpace_event::{Event, Inspected, Reported, Source};
use airpace_path::network::{CellService, LinkState, SharedLink};
use airpace_radio::RadioReport;

use super::{DeviceState, Driver, Progress};
use crate::flow::FlowState;

/// Interval of the samples of every running flow, in ms; changes of state are detected every millisecond.
///
/// Chosen: 10 ms, fine enough to plot the shortest RTprop in use.
const INSPECT_EVERY_MS: u64 = 10;

/// Interval of calls of `progress`, in ms.
const PROGRESS_EVERY_MS: u64 = 100;

/// Target queueing delay of an Oracle in the Internet's queue where that queue limits a flow over a cell.
///
/// Chosen: 2 ms, the default of the Oracle's own option.
const BEFORE_THE_CELL: Duration = Duration::from_millis(2);

impl Driver<'_> {
    /// Processes the outputs of the last hop after the last hop has run: records the outputs, and passes radio reports
    /// to devices.
    pub(super) fn hear_radio(&mut self) {
        if self.tell_radio() {
            (0..self.devices.len()).for_each(|device| self.wake_modem_listeners(device));
        }
    }

    /// Records the last hop's outputs, and passes radio reports to devices. Returns whether the outputs contained a
    /// modem report.
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

    /// Work of every millisecond: outputs of the network, reports for Oracles, and samples of every flow's state.
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

    /// Passes each device's view of its flows to the controllers that request this view. Then the flows of these
    /// controllers send, since the view and the radio reports may have changed the controllers' limits.
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

    /// Passes the device's view of the flows that the device sends to the controller of flow `index`.
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

    /// Reports the capacity of an Oracle's path to the Oracle.
    fn tell_truth(&mut self, index: usize) {
        if !self.flows[index].wants_truth {
            return;
        }
        let id = self.flows[index].id;
        let cell = self.network.cell_service(id);
        if let (Some(course), Some(cell)) = (self.foresight.gathered(index), cell) {
            let state_of = |link| self.network.shared_link(id, link, self.now);
            let in_cell = state_of(SharedLink::LastHop).map_or(Bytes::ZERO, |state| state.backlog);
            course.note(cell, in_cell, state_of(SharedLink::Internet));
        }
        if !self.flows[index].is_running(self.now) {
            return;
        }
        let is_gathering = self.foresight.gathered(index).is_some();
        let truth = match cell {
            Some(cell) if is_gathering => self.truth_at_the_base_station(index, cell),
            Some(cell) if self.flows[index].direction == Direction::Uplink => {
                self.truth_at_the_device(index, cell)
            }
            _ => self.truth_from_afar(index),
        };
        if let Some(truth) = truth {
            self.flows[index].sender.on_truth(&truth);
            self.transmit(index);
        }
    }

    /// Returns the state of a link for one flow: an equal share of the link's rate, the flow's part of the backlog, and
    /// the number of flows that share the link.
    fn share_of(&self, id: FlowId, link: SharedLink, at: Time) -> Option<(LinkState, u64)> {
        let state = self.network.shared_link(id, link, at)?;
        let others =
            self.flows.iter().filter(|other| other.id != id && self.network.meet(link, id, other.id));
        let sharers = 1 + others.clone().filter(|other| other.is_heard(self.now)).count() as u64;
        let own = self.network.in_links(id);
        let all: Bytes = others.map(|other| self.network.in_links(other.id)).sum();
        let backlog = state.backlog.scaled(own.0 as f64 / (all + own).0.max(1) as f64);
        let rate = state.rate.map(|rate| Rate::from_bps(rate.as_bps() / sharers));
        Some((LinkState { rate, backlog }, sharers))
    }

    /// Returns the report for a sender that is separated from the links by its wire: the state of the links when the
    /// sender's packets arrive at the links.
    fn truth_from_afar(&mut self, index: usize) -> Option<Truth> {
        let id = self.flows[index].id;
        let wire_delay = &mut self.flows[index].wire_delay;
        for (at, took) in self.network.crossings(id) {
            wire_delay.update(at, took);
        }
        let forward_delay = wire_delay.get().unwrap_or_else(|| self.network.entry_delay(id));
        let (mut capacity, mut enough, mut backlog) = (None, Bytes::ZERO, Bytes::ZERO);
        let foreseen = self.foresight.known(index).and_then(|course| course.at(self.now + forward_delay));
        for link in SharedLink::ALL {
            let Some((state, sharers)) = self.share_of(id, link, self.now + forward_delay) else { continue };
            backlog += state.backlog;
            match (foreseen, link) {
                // The rate that the cell served is used, since this rate already includes the limit of the Internet's
                // queue.
                (Some((rate, whole)), SharedLink::LastHop) => {
                    capacity = Some(Rate::from_bps(rate.as_bps() / sharers));
                    enough = Bytes(whole.0 / sharers);
                }
                (Some(_), SharedLink::Internet) => {}
                (None, _) => capacity = [capacity, state.rate].into_iter().flatten().min(),
            }
        }
        let (now, on_wire) = (self.flows[index].sender_time(self.now), self.network.on_wire(id));
        Some(Truth { now, capacity: capacity?, enough, backlog, on_wire, forward_delay })
    }

    /// Returns the report for a sender at the base station, in a gathering run: a target backlog in the cell or, where
    /// a queue precedes the cell, in the queue and the cell together. In the run between the first and the last run,
    /// the target is only the required backlog.
    fn truth_at_the_base_station(&self, index: usize, cell: CellService) -> Option<Truth> {
        let flow = &self.flows[index];
        let (in_cell, sharers) = self.share_of(flow.id, SharedLink::LastHop, self.now)?;
        let (mut enough, mut backlog) = (Bytes(cell.saturating.0 / sharers), in_cell.backlog);
        if let Some((before, _)) = self.share_of(flow.id, SharedLink::Internet, self.now) {
            let needed = self.foresight.course(index).and_then(|course| course.needed_at(self.now));
            (enough, backlog) = match needed {
                Some(needed) => {
                    // More bytes before the cell would not arrive at the cell earlier, and would overflow the queue;
                    // bytes beyond the cell's free buffer are lost.
                    let soon = before.rate.map_or(Bytes(u64::MAX), |rate| rate.bytes_in(2 * BEFORE_THE_CELL));
                    let most = in_cell.backlog + soon.min(Bytes(cell.room.0 / sharers));
                    (Bytes((needed - cell.sent).0 / sharers).min(most), in_cell.backlog + before.backlog)
                }
                None if cell.room < cell.saturating => (enough, in_cell.backlog),
                None => match before.rate {
                    Some(rate) => (rate.bytes_in(BEFORE_THE_CELL), before.backlog),
                    // The queue has no rate yet while it serves its first packets. When the queue has a rate, the bytes
                    // that the cell can transmit at that rate must already wait in front of the cell.
                    None => (enough, Bytes::ZERO),
                },
            };
        }
        let (now, capacity) = (flow.sender_time(self.now), Rate::from_bps(0));
        Some(Truth { now, capacity, enough, backlog, on_wire: Bytes::ZERO, forward_delay: Duration::ZERO })
    }

    /// Returns the report for a device that sends over a cell: the target backlog is enough for all grants until the
    /// next BSR takes effect.
    fn truth_at_the_device(&self, index: usize, cell: CellService) -> Option<Truth> {
        let flow = &self.flows[index];
        let (in_device, sharers) = self.share_of(flow.id, SharedLink::LastHop, self.now)?;
        let (mut enough, mut backlog) = (Bytes(cell.whole_band.0 / sharers), in_device.backlog);
        let mut capacity = in_device.rate?;
        if let Some((behind, _)) = self.share_of(flow.id, SharedLink::Internet, self.now) {
            backlog += behind.backlog;
            if let Some(rate) = behind.rate {
                enough = enough.min(rate.bytes_in(self.network.entry_delay(flow.id) + BEFORE_THE_CELL));
                capacity = capacity.min(rate);
            }
        }
        let now = flow.sender_time(self.now);
        Some(Truth { now, capacity, enough, backlog, on_wire: Bytes::ZERO, forward_delay: Duration::ZERO })
    }

    /// Records the state of a flow if a sample is due (`is_time`) or the scheme's state has changed.
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

/// Passes a control channel report to the receivers on a device, with the time of the device's clock.
fn tell_channel_listeners(flows: &mut [FlowState], device: &DeviceState, report: &mut RadioReport) {
    report.time = device.clock.read(report.time);
    for &listener in &device.channel_listeners {
        flows[listener].acker.on_radio(report);
        flows[listener].connections.hear_channel(report);
    }
}

/// Passes a modem report to the controllers on a device, with the time of the steady clock that the controllers' timers
/// use.
fn tell_modem_listeners(flows: &mut [FlowState], device: &DeviceState, now: Time, report: &mut RadioReport) {
    report.time = device.clock.steady(report.time);
    for &listener in &device.modem_listeners {
        flows[listener].sender.on_radio(device.clock.steady(now), report);
        flows[listener].connections.hear_modem(device.clock.steady(now), report);
    }
}
