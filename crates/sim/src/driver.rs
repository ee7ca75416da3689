//! The virtual clock: goes from deadline to deadline and hands packets from one component to the next.
//!
//! ```text
//! Sender ─▶ forward wire ─▶ [internet] ─▶ last hop ─▶ Acker + receiver half
//!    ▲                                                   │
//!    └───────────────── reverse wire ◀───────────────────┘
//! ```
//!
//! Every method of [`Driver`] below [`Driver::run`] is one arrow or one box of that picture.

use std::ops::ControlFlow;
use std::time::Duration;

use airpace_cc::controller::Truth;
use airpace_cc::registry::FlowRegistry;
use airpace_cc::{Inspect, SchemeError, SchemeSpec};
use airpace_core::event::{Arrived, Capacity, Fate, Inspected};
use airpace_core::radio::Direction;
use airpace_core::{Bytes, DeviceId, Ecn, Event, Packet, RadioReport, Rate, Recorder, Streams, Time};
use airpace_path::Link;
use airpace_path::queue::Queue;

use crate::agenda::{Agenda, Part};
use crate::clock::DeviceClock;
use crate::flow::{ACK_BYTES, FlowState, MSS};
use crate::hop::{LastHop, MILLISECOND, SmoothedCapacity};
use crate::prepare::Prepared;
use crate::scenario::Outage;
use crate::stats::RunStats;

/// Milliseconds between looks into every running flow; changes of state are seen every millisecond.
///
/// Chosen: 10 ms, fine enough to plot the shortest RTprop in use.
const INSPECT_EVERY_MS: u64 = 10;

/// Milliseconds between calls of `progress`.
const PROGRESS_EVERY_MS: u64 = 100;

/// Who is told how far a run is, and may stop it.
pub type Progress<'a> = dyn FnMut(Time) -> ControlFlow<()> + 'a;

/// One run.
pub(crate) struct Driver<'a> {
    now: Time,
    agenda: Agenda,
    flows: Vec<FlowState>,
    internet: Option<Queue>,
    hop: LastHop,
    /// Rate of a forward wire, the same for each flow.
    wire_rate: Option<Rate>,
    devices: Vec<DeviceState>,
    ack_outage: &'a [Outage],
    recorder: &'a mut dyn Recorder,
    wants_subframes: bool,
    inspect: Inspect,
    stats: RunStats,
}

/// What a run keeps of a device.
struct DeviceState {
    clock: DeviceClock,
    /// The flows that data arrives for; each is an application of its own.
    downlink: FlowRegistry,
    capacity: SmoothedCapacity,
    /// Flows whose receiver half hears its radio.
    listeners: Vec<usize>,
}

impl<'a> Driver<'a> {
    pub(crate) fn new(
        prepared: &'a Prepared,
        scheme: &SchemeSpec,
        seed: u64,
        recorder: &'a mut dyn Recorder,
    ) -> Result<Driver<'a>, SchemeError> {
        let scenario = prepared.scenario();
        let streams = Streams::new(seed);
        let mut hop = prepared.last_hop(&streams);
        let internet = prepared.internet();
        let queue_delay = internet.as_ref().map_or(Duration::ZERO, |queue| queue.base_delay(MSS));
        let mut flows = Vec::with_capacity(scenario.flow.len());
        for index in 0..scenario.flow.len() {
            let spec = scenario.scheme_of(index, scheme);
            flows.push(FlowState::new(scenario, index, &spec, queue_delay, &hop, &streams)?);
        }
        let listeners = |device: usize| {
            let hears = |flow: &&FlowState| flow.has_receiver && usize::from(flow.device.0) == device;
            flows.iter().filter(hears).map(|flow| usize::from(flow.id.0)).collect()
        };
        let devices: Vec<DeviceState> = scenario
            .device
            .iter()
            .enumerate()
            .map(|(index, device)| DeviceState {
                clock: DeviceClock::new(&device.clock),
                downlink: FlowRegistry::default(),
                capacity: SmoothedCapacity::default(),
                listeners: listeners(index),
            })
            .collect();
        let wants_subframes = recorder.wants_subframes();
        if let LastHop::Cell(cell) = &mut hop {
            cell.set_recording(wants_subframes);
            for (index, device) in devices.iter().enumerate() {
                cell.set_listening(DeviceId(index as u16), !device.listeners.is_empty());
            }
        }
        let mut agenda = Agenda::new(flows.len(), &mut streams.stream("ties"));
        agenda.set(Part::LastHop, hop.next());
        agenda.set(Part::Tick, Some(Time::ZERO));
        for (index, flow) in flows.iter().enumerate() {
            agenda.set(Part::Traffic(index), Some(flow.traffic.next()));
        }
        Ok(Driver {
            now: Time::ZERO,
            agenda,
            flows,
            internet,
            hop,
            wire_rate: scenario.forward.rate_mbps.map(Rate::from_mbps),
            devices,
            ack_outage: &scenario.ack_outage,
            recorder,
            wants_subframes,
            inspect: Inspect::default(),
            stats: RunStats::default(),
        })
    }

    /// Runs until `end` or until `progress` says stop.
    pub(crate) fn run(mut self, end: Time, progress: &mut Progress<'_>) -> RunStats {
        loop {
            let (deadline, part) = self.agenda.next();
            if deadline >= end {
                self.now = end;
                break;
            }
            // A component that is told late would make time run backwards for those that follow.
            self.now = self.now.max(deadline);
            match part {
                Part::LastHop => self.drain_last_hop(),
                Part::Internet => self.drain_internet(),
                Part::Forward(flow) => self.drain_forward(flow),
                Part::Reverse(flow) => self.drain_reverse(flow),
                Part::Acker(flow) => self.acknowledge(flow),
                Part::Traffic(flow) => self.wake_traffic(flow),
                Part::Sender(flow) => self.wake_sender(flow),
                Part::Tick => {
                    if self.tick(progress).is_break() {
                        self.stats.interrupted = true;
                        break;
                    }
                }
            }
        }
        self.stats.ended = self.now;
        if let LastHop::Cell(cell) = &self.hop {
            self.stats.subframes = cell.subframes_run();
        }
        for flow in &mut self.flows {
            flow.stats.inside = flow.headers.under_way();
        }
        self.stats.flows = self.flows.iter().map(|flow| flow.stats).collect();
        self.stats
    }

    fn record(&mut self, event: Event<'_>) {
        self.stats.events += 1;
        self.recorder.record(event);
    }

    fn wake_traffic(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        flow.has_started |= self.now >= flow.traffic.start();
        flow.traffic.wake(self.now, &mut flow.sender);
        self.agenda.set(Part::Traffic(index), Some(flow.traffic.next()));
        self.transmit(index);
    }

    fn wake_sender(&mut self, index: usize) {
        let outcome = self.flows[index].sender.on_timeout(self.now);
        self.record_outcome(outcome);
        self.transmit(index);
    }

    /// Puts on the path whatever the sender may send now.
    fn transmit(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        if !flow.has_started {
            return;
        }
        let mut sent_any = false;
        loop {
            flow.traffic.top_up(&mut flow.sender);
            let Some(transmit) = flow.sender.poll_transmit(self.now) else { break };
            let packet = Packet {
                flow: flow.id,
                device: flow.device,
                number: transmit.number,
                bytes: transmit.bytes,
                sent: self.now,
                ecn: transmit.ecn,
            };
            self.stats.events += 1;
            self.recorder.record(Event::Sent(packet));
            flow.headers.push(packet.number, transmit.header);
            flow.stats.sent += 1;
            flow.on_wire += packet.bytes;
            flow.forward.push(self.now, packet);
            sent_any = true;
        }
        if sent_any {
            self.agenda.set(Part::Forward(index), flow.forward.next());
        }
        self.agenda.set(Part::Sender(index), flow.sender.next());
    }

    fn drain_forward(&mut self, index: usize) {
        while let Some(exit) = self.flows[index].forward.pop(self.now) {
            let flow = &mut self.flows[index];
            let packet = exit.packet;
            if flow.headers.left_wire(packet.number) {
                flow.on_wire -= packet.bytes;
                if flow.wants_truth {
                    flow.wire_delay.update(self.now, self.now - packet.sent);
                }
            } else {
                flow.stats.duplicated += 1;
            }
            flow.in_links += packet.bytes;
            if exit.fate != Fate::Delivered {
                self.drop_packet(packet, exit.fate);
                continue;
            }
            match &mut self.internet {
                Some(queue) if flow.crosses_internet => {
                    queue.push(self.now, packet);
                    self.agenda.set(Part::Internet, queue.next());
                }
                _ => self.enter_last_hop(packet),
            }
        }
        self.agenda.set(Part::Forward(index), self.flows[index].forward.next());
    }

    fn drain_internet(&mut self) {
        while let Some(exit) = self.internet.as_mut().and_then(|queue| queue.pop(self.now)) {
            match exit.fate {
                Fate::Delivered => self.enter_last_hop(exit.packet),
                fate => self.drop_packet(exit.packet, fate),
            }
        }
        self.agenda.set(Part::Internet, self.internet.as_ref().and_then(|queue| queue.next()));
    }

    fn enter_last_hop(&mut self, packet: Packet) {
        if self.hop.push(self.now, packet) {
            self.agenda.set(Part::LastHop, self.hop.next());
        } else {
            self.arrive(packet);
        }
    }

    fn drain_last_hop(&mut self) {
        let subframes_before = self.subframes_run();
        while let Some(exit) = self.hop.pop(self.now) {
            match exit.fate {
                Fate::Delivered => self.arrive(exit.packet),
                fate => self.drop_packet(exit.packet, fate),
            }
        }
        if self.subframes_run() > subframes_before {
            self.tell_subframe();
        }
        while let LastHop::Cell(cell) = &mut self.hop
            && let Some((device, report)) = cell.pop_report(self.now)
        {
            tell_device(&mut self.flows, &self.devices[usize::from(device.0)], report);
        }
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
            let LastHop::Cell(cell) = &mut self.hop else { return };
            let capacity = cell.capacity(DeviceId(index as u16));
            self.devices[index].capacity.observe(capacity.bytes);
            self.record_capacity(capacity.time, DeviceId(index as u16), Some(capacity.bytes));
        }
    }

    /// Records what the path could carry to a device in the millisecond from `from` on: its last hop or, where
    /// narrower, the Internet's queue (whole: it is not known who else could have used it).
    fn record_capacity(&mut self, from: Time, device: DeviceId, last_hop: Option<Bytes>) {
        let mut flows = self.flows.iter().filter(|flow| flow.device == device);
        let internet = flows.any(|flow| flow.crosses_internet).then_some(self.internet_rate()).flatten();
        let internet = internet.map(|rate| rate.bytes_in(MILLISECOND));
        if let Some(bytes) = [last_hop, internet].into_iter().flatten().min() {
            let direction = Direction::Downlink;
            self.record(Event::Capacity(Capacity {
                time: from,
                span: MILLISECOND,
                device,
                direction,
                bytes,
            }));
        }
    }

    fn internet_rate(&self) -> Option<Rate> {
        self.internet.as_ref().and_then(Queue::rate)
    }

    fn drop_packet(&mut self, packet: Packet, fate: Fate) {
        let flow = &mut self.flows[usize::from(packet.flow.0)];
        flow.end_journey(&packet, fate);
        self.record_arrival(packet, fate, false);
    }

    fn arrive(&mut self, packet: Packet) {
        let index = usize::from(packet.flow.0);
        self.flows[index].last_arrival = Some(self.now);
        let flow = &mut self.flows[index];
        let device = &mut self.devices[usize::from(packet.device.0)];
        device.downlink.observe(self.now, &flow.key, u32::from(flow.id.0), packet.bytes);
        let clock = device.clock.read(self.now);
        let is_duplicate = flow.arrive(&packet, clock, device.downlink.view(self.now, &flow.key));
        self.record_arrival(packet, Fate::Delivered, is_duplicate);
        self.acknowledge(index);
    }

    /// Puts the ACK that is due, if one is, on the path back, and waits for the next.
    fn acknowledge(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        let clock = self.devices[usize::from(flow.device.0)].clock.read(self.now);
        let ack = flow.acker.poll_ack(clock);
        // A span of the device's clock is taken for one of true time: where it drifts, the rest is waited for again.
        let due = flow.acker.next().map(|due| self.now + (due - clock).max(Duration::from_nanos(1)));
        self.agenda.set(Part::Acker(index), due);
        let Some(frame) = ack else { return };
        flow.stats.acks += 1;
        if self.ack_outage.iter().any(|outage| outage.covers(self.now)) {
            return;
        }
        let number = flow.acks_on_path;
        flow.acks_on_path += 1;
        flow.frames.push(number, frame);
        let ack = Packet {
            flow: flow.id,
            device: flow.device,
            number,
            bytes: ACK_BYTES,
            sent: self.now,
            ecn: Ecn::NotEct,
        };
        flow.reverse.push(self.now, ack);
        self.agenda.set(Part::Reverse(index), flow.reverse.next());
    }

    fn record_arrival(&mut self, packet: Packet, fate: Fate, duplicate: bool) {
        let flow = &self.flows[usize::from(packet.flow.0)];
        let queue = self.internet.as_ref().filter(|_| flow.crosses_internet);
        let propagation_delay = flow.fixed_delay(packet.bytes, &self.hop)
            + queue.map_or(Duration::ZERO, |queue| queue.base_delay(packet.bytes));
        let time = self.now;
        self.record(Event::Arrived(Arrived { time, packet, fate, duplicate, propagation_delay }));
    }

    fn drain_reverse(&mut self, index: usize) {
        while let Some(exit) = self.flows[index].reverse.pop(self.now) {
            let flow = &mut self.flows[index];
            flow.frames.left_wire(exit.packet.number);
            let frame = flow.frames.ended(exit.packet.number);
            if exit.fate == Fate::Delivered {
                let outcome =
                    flow.sender.on_ack(self.now, frame).expect("an acker acknowledges what arrived");
                self.record_outcome(outcome);
                self.transmit(index);
            }
        }
        self.agenda.set(Part::Reverse(index), self.flows[index].reverse.next());
    }

    fn record_outcome(&mut self, outcome: airpace_cc::endpoint::Outcome) {
        if let Some(lost) = outcome.lost {
            self.record(Event::Lost(lost));
        }
        if let Some(acked) = outcome.acked {
            self.record(Event::Acked(acked));
        }
    }

    /// What happens every millisecond: the trace's radio, the truth for Oracles, a look into every flow.
    fn tick(&mut self, progress: &mut Progress<'_>) -> ControlFlow<()> {
        let millis = self.now.as_millis();
        match &mut self.hop {
            LastHop::Cell(_) => {}
            LastHop::Trace(trace) => {
                if trace.has_telemetry && millis > 0 && !self.devices[0].listeners.is_empty() {
                    let report = trace.report(self.now);
                    tell_device(&mut self.flows, &self.devices[0], &report);
                }
                let capacity = trace.capacity(self.now);
                self.record_capacity(self.now, DeviceId(0), Some(capacity));
            }
            LastHop::Nothing => {
                for index in 0..self.devices.len() {
                    let device = DeviceId(index as u16);
                    let flows = self.flows.iter().filter(|flow| flow.device == device).count() as u64;
                    let wires = self.wire_rate.map(|rate| Bytes(rate.bytes_in(MILLISECOND).0 * flows));
                    self.record_capacity(self.now, device, wires);
                }
            }
        }
        for index in 0..self.flows.len() {
            self.tell_truth(index);
            self.look_into(index, millis.is_multiple_of(INSPECT_EVERY_MS));
        }
        self.agenda.set(Part::Tick, Some(self.now + MILLISECOND));
        if millis.is_multiple_of(PROGRESS_EVERY_MS) { progress(self.now) } else { ControlFlow::Continue(()) }
    }

    /// Tells an Oracle what its path can carry.
    fn tell_truth(&mut self, index: usize) {
        let flow = &self.flows[index];
        if !flow.wants_truth || !flow.is_running(self.now) {
            return;
        }
        let forward_delay = flow.wire_delay.get().unwrap_or_else(|| flow.forward.base_delay(MSS));
        let sharing = |also: &dyn Fn(&FlowState) -> bool| {
            let others = self.flows.iter().filter(|other| other.id != flow.id && also(other));
            let heard = others.clone().filter(|other| other.is_heard(self.now)).count() as u64;
            let inside: Bytes = others.map(|other| other.in_links).sum();
            let all = (inside + flow.in_links).0.max(1);
            (1 + heard, flow.in_links.0 as f64 / all as f64)
        };
        let (sharers, share) = sharing(&|other| other.device == flow.device);
        let last_hop = match &self.hop {
            LastHop::Cell(_) => Some(self.devices[usize::from(flow.device.0)].capacity.rate()),
            LastHop::Trace(trace) => {
                let arrival_ms = (self.now + forward_delay).as_millis();
                Some(Rate::from_bytes_per(trace.capacity(Time::from_millis(arrival_ms)), MILLISECOND))
            }
            LastHop::Nothing => self.wire_rate,
        };
        let mut backlog = self.hop.backlog_of(flow.device).scaled(share);
        let mut capacity = last_hop.map(|rate| Rate::from_bps(rate.as_bps() / sharers));
        if let Some(queue) = self.internet.as_ref().filter(|_| flow.crosses_internet) {
            let (sharers, share) = sharing(&|other| other.crosses_internet);
            backlog += queue.backlog().scaled(share);
            let rate = queue.rate().map(|rate| Rate::from_bps(rate.as_bps() / sharers));
            capacity = [capacity, rate].into_iter().flatten().min();
        }
        let Some(capacity) = capacity else { return };
        let truth = Truth { now: self.now, capacity, backlog, on_wire: flow.on_wire, forward_delay };
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
fn tell_device(flows: &mut [FlowState], device: &DeviceState, report: &RadioReport) {
    let report = RadioReport { time: device.clock.read(report.time), ..report.clone() };
    for &listener in &device.listeners {
        flows[listener].acker.on_radio(&report);
    }
}
