//! The simulation loop: it advances the virtual clock from deadline to deadline, and drives endpoints and network.
//!
//! ```text
//! Traffic ─▶ Sender ──────▶ Network ──────▶ Acker + receiver
//!               ▲              │  ▲                │
//!               └──────────────┘  └────────────────┘
//! ```
//!
//! The modules `data` and `acks` contain the arrows of this figure. The module `millisecond` runs every millisecond
//! with or without packets: it handles capacities, radio reports, reports for Oracles, and samples of the schemes'
//! state.

use std::ops::ControlFlow;

use airpace_cc::registry::{DeviceFlows, FlowRegistry};
use airpace_cc::{Inspect, SchemeSpec};
use airpace_core::{DeviceId, Direction, FlowId, Packet, Rider, Streams, Time};
use airpace_event::{Acked, Detail, Event, Lost, Recorder, Source};
use airpace_path::Network;
use airpace_path::network::NetworkPlan;

use crate::agenda::{Agenda, FlowPart};
use crate::antenna::Antenna;
use crate::clock::DeviceClock;
use crate::error::RunError;
use crate::flow::FlowState;
use crate::foresight::{Course, Foresight};
use crate::replacement::EndpointReplacement;
use crate::stats::RunStats;
use airpace_scenario::Outage;
use airpace_scenario::Prepared;

mod acks;
mod data;
mod millisecond;
mod proxies;
mod transfers;

use transfers::ReturnPacket;

/// A callback that receives the current time of a run, and may stop the run.
pub type Progress<'a> = dyn FnMut(Time) -> ControlFlow<()> + 'a;

/// The state of one run.
pub(crate) struct Driver<'a> {
    now: Time,
    agenda: Agenda,
    flows: Vec<FlowState>,
    network: Network<Rider, ReturnPacket>,
    devices: Vec<DeviceState>,
    /// For each device: its antenna, if the device decodes the control channel itself.
    antennas: Vec<Option<Antenna>>,
    ack_outage: &'a [Outage],
    recorder: &'a mut dyn Recorder,
    wants_subframes: bool,
    inspect: Inspect,
    foresight: Foresight,
    /// Whether more than `MAX_UNDER_WAY` packets are under way.
    crowded: bool,
    stats: RunStats,
}

/// State of a device during a run.
struct DeviceState {
    clock: DeviceClock,
    /// Registry of active flows, by direction.
    registry: [FlowRegistry; 2],
    /// Whether the recorder requests the device's radio reports, by source: the modem and the control channel.
    is_recorded: [bool; 2],
    /// Flows whose receiver uses control channel reports.
    channel_listeners: Vec<usize>,
    /// Flows whose controller uses modem reports and the device's view of its flows.
    modem_listeners: Vec<usize>,
}

impl DeviceState {
    /// Creates the state of device `index`. `flows` are all flows of the run.
    fn new(index: usize, clock: DeviceClock, flows: &[FlowState]) -> DeviceState {
        let its = |direction: Direction| {
            let of_device = move |flow: &&FlowState| usize::from(flow.device.0) == index;
            flows.iter().filter(of_device).filter(move |flow| flow.direction == direction)
        };
        let hear = |direction: Direction| {
            its(direction).filter(|flow| flow.hears_radio).map(|flow| usize::from(flow.id.0)).collect()
        };
        DeviceState {
            clock,
            registry: Default::default(),
            is_recorded: [false; 2],
            channel_listeners: hear(Direction::Downlink),
            modem_listeners: hear(Direction::Uplink),
        }
    }

    /// Notes that a packet arrives at the device. Returns how the device's flows share the device's radio.
    fn observe_received(&mut self, now: Time, flow: &FlowState, packet: &Packet) -> DeviceFlows {
        if self.channel_listeners.is_empty() {
            return DeviceFlows::ALONE;
        }
        let received = &mut self.registry[Direction::Downlink as usize];
        received.observe(now, &flow.key, flow.app, packet.bytes);
        if flow.hears_radio { received.view(now, &flow.key) } else { DeviceFlows::ALONE }
    }
}

impl<'a> Driver<'a> {
    /// Creates a run. `replacement` replaces the endpoints of one flow. `foresight` is the advance information for the
    /// run's Oracles, or the state that gathers this information for a further run.
    pub(crate) fn new(
        prepared: &'a Prepared,
        scheme: &SchemeSpec,
        seed: u64,
        recorder: &'a mut dyn Recorder,
        mut replacement: Option<EndpointReplacement>,
        foresight: Foresight,
    ) -> Result<Driver<'a>, RunError> {
        let scenario = prepared.scenario();
        let streams = Streams::new(seed);
        let mut order: Vec<usize> = (0..scenario.flow.len()).collect();
        streams.stream("ties").shuffle(&mut order);
        let mut network = match &foresight {
            Foresight::Gathered(courses) => {
                let near = courses.iter().zip(0..).filter(|(course, _)| course.is_some());
                let plan = prepared.network().seen_from_near(near.map(|(_, flow)| FlowId(flow)).collect());
                Network::new(&plan, &order, &streams)
            }
            Foresight::None | Foresight::Known(_) | Foresight::Given(_) => {
                Network::new(prepared.network(), &order, &streams)
            }
        };
        let mut flows = Vec::with_capacity(scenario.flow.len());
        for index in 0..scenario.flow.len() {
            let spec = match foresight {
                Foresight::Given(_) => scheme.clone(),
                _ => scenario.scheme_of(index, scheme),
            };
            let of_it = replacement.take_if(|it| it.flow == index).map(|it| it.replace);
            let flow = foresight.acted(index, &scenario.flow[index]);
            flows.push(FlowState::new(scenario, index, &flow, &spec, &streams, of_it)?);
        }
        if !matches!(foresight, Foresight::Gathered(_)) {
            for flow in flows.iter().filter(|flow: &&FlowState| flow.wants_truth) {
                network.watch_wire(flow.id);
            }
        }
        let clocks = scenario.device.iter().map(|device| DeviceClock::new(&device.clock));
        let mut devices: Vec<DeviceState> =
            clocks.enumerate().map(|(index, clock)| DeviceState::new(index, clock, &flows)).collect();
        let antennas =
            (0..scenario.device.len()).map(|device| Antenna::new(scenario, device, &streams)).collect();
        let wants_subframes = recorder.wants(Detail::Subframes);
        network.set_recording(wants_subframes);
        for (index, device) in devices.iter_mut().enumerate() {
            let id = DeviceId(index as u16);
            let listeners = [&device.modem_listeners, &device.channel_listeners];
            let is_sender = device.channel_listeners.is_empty() && !device.modem_listeners.is_empty();
            let used = if is_sender { Source::Modem } else { Source::ControlChannel };
            let wants_used = recorder.wants(Detail::UsedReports(id));
            for (source, listeners) in [Source::Modem, Source::ControlChannel].into_iter().zip(listeners) {
                let is_recorded =
                    recorder.wants(Detail::Reports(id, source)) || (wants_used && source == used);
                device.is_recorded[source as usize] = is_recorded;
                network.set_reported(id, source, is_recorded || !listeners.is_empty());
            }
        }
        let mut agenda = Agenda::new(&order);
        for (index, flow) in flows.iter().enumerate() {
            agenda.set(FlowPart::Traffic(index), Some(flow.traffic.poll_timeout()));
        }
        let mut driver = Driver {
            now: Time::ZERO,
            agenda,
            flows,
            network,
            devices,
            antennas,
            ack_outage: &scenario.ack_outage,
            recorder,
            wants_subframes,
            inspect: Inspect::default(),
            foresight,
            crowded: false,
            stats: RunStats::default(),
        };
        driver.plan_departures(prepared.network(), &streams);
        Ok(driver)
    }

    /// Returns an empty course (departures over time) for each flow of the Oracle over a cell's downlink, by flow.
    /// `None` if the run has no such flow.
    pub(crate) fn courses(&mut self, plan: &NetworkPlan) -> Option<Vec<Option<Course>>> {
        let is_oracle = |flow: &FlowState| flow.wants_truth && flow.direction == Direction::Downlink;
        // The bytes of a transfer become available when its request arrives, and no shift of the flow's start can
        // reproduce this dependence.
        let has_transfers = self.flows.iter().any(|flow| is_oracle(flow) && flow.transfers.is_some());
        let is_repeated = plan.is_same_from_near() && !has_transfers;
        let of_flow = |flow: &FlowState| {
            self.network.cell_service(flow.id).filter(|_| is_oracle(flow))?;
            Some(Course::new(self.network.entry_delay(flow.id), is_repeated))
        };
        let courses: Vec<_> = self.flows.iter().map(of_flow).collect();
        courses.iter().any(Option::is_some).then_some(courses)
    }

    /// Runs until `end` or until `progress` stops the run. Returns the information gathered for a further run.
    ///
    /// # Errors
    /// The same errors as [`Driver::run`].
    pub(crate) fn gather(
        mut self,
        end: Time,
        progress: &mut Progress<'_>,
    ) -> Result<(RunStats, Foresight), RunError> {
        self.advance(end, progress)?;
        let courses = match std::mem::take(&mut self.foresight) {
            Foresight::Gathered(courses) => Foresight::Known(courses),
            other => other,
        };
        Ok((self.stats, courses))
    }

    /// Sets the advance information for the Oracles of the run with `seed`.
    pub(crate) fn foresee(&mut self, foresight: Foresight, plan: &NetworkPlan, seed: u64) {
        self.foresight = foresight;
        self.plan_departures(plan, &Streams::new(seed));
    }

    fn plan_departures(&mut self, plan: &NetworkPlan, streams: &Streams) {
        for (index, flow) in self.flows.iter_mut().enumerate() {
            flow.departures = self.foresight.departures(index, plan.jitters(flow.id, streams));
        }
    }

    /// Runs until `end` or until `progress` stops the run.
    ///
    /// # Errors
    /// More than `MAX_UNDER_WAY` packets are under way.
    pub(crate) fn run(mut self, end: Time, progress: &mut Progress<'_>) -> Result<RunStats, RunError> {
        self.advance(end, progress)?;
        self.record_videos();
        self.stats.ended = self.now;
        self.stats.subframes = self.network.subframes_run();
        for flow in &mut self.flows {
            flow.stats.inside = self.network.under_way(flow.id);
            flow.stats.duplicated = self.network.duplicated(flow.id);
        }
        self.stats.flows = self.flows.iter().map(|flow| flow.stats).collect();
        Ok(self.stats)
    }

    fn advance(&mut self, end: Time, progress: &mut Progress<'_>) -> Result<(), RunError> {
        loop {
            let (of_network, of_ends) = (self.network.poll_timeout(), self.agenda.first());
            let deadline = of_network.min(of_ends);
            if deadline >= end {
                self.now = end;
                break;
            }
            // A deadline that a component reports late must not make time run backwards for the other components.
            self.now = self.now.max(deadline);
            // At equal times, packets leave the network before the endpoints put further packets on the network.
            if of_network <= of_ends {
                if self.drain_network(progress).is_break() {
                    self.stats.interrupted = true;
                    break;
                }
            } else {
                let (_, part) = self.agenda.next();
                self.wake(part);
            }
            if self.crowded {
                return Err(RunError::Crowded { at: self.now });
            }
        }
        Ok(())
    }

    /// Processes the deadline of a flow's component.
    fn wake(&mut self, part: FlowPart) {
        match part {
            FlowPart::Acker(flow) => self.acknowledge(flow),
            FlowPart::Traffic(flow) => self.wake_traffic(flow),
            FlowPart::Sender(flow) => self.wake_sender(flow),
            FlowPart::Transfer(flow) => self.wake_transfers(flow),
        }
    }

    fn record(&mut self, event: Event<'_>) {
        self.stats.events += 1;
        self.recorder.record(event);
    }

    fn wake_traffic(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        let starts = !flow.has_started && self.now >= flow.traffic.start();
        flow.has_started |= starts;
        flow.traffic.wake(self.now, &mut flow.sender);
        self.agenda.set(FlowPart::Traffic(index), Some(flow.traffic.poll_timeout()));
        if starts {
            self.begin_transfer(index);
        }
        let flow = &self.flows[index];
        if starts && flow.direction == Direction::Uplink && flow.hears_radio {
            self.tell_of_flows(index);
        }
        self.transmit(index);
    }

    fn wake_sender(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        if let Some(packets) = flow.departures.due(self.now) {
            flow.sender.on_due(flow.sender_time(self.now), packets);
        }
        let outcome = flow.sender.handle_timeout(flow.sender_time(self.now));
        self.record_outcome(index, outcome);
        self.transmit(index);
    }

    /// Records the outcome of a call to the sender of flow `index`, with true time instead of the sender's clock, and
    /// the flow's packet numbers instead of the connection's packet numbers.
    fn record_outcome(&mut self, index: usize, outcome: airpace_cc::endpoint::Outcome) {
        let (time, first) = (self.now, self.flows[index].connections.first_packet());
        if let Some(lost) = outcome.lost {
            self.record(Event::Lost(Lost { time, ..lost }));
        }
        if let Some(acked) = outcome.acked {
            let largest = first + acked.largest;
            self.record(Event::Acked(Acked { time, largest, ..acked }));
        }
    }
}
