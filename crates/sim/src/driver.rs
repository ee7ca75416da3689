//! The virtual clock: goes from deadline to deadline and hands packets from one component to the next.
//!
//! ```text
//! down: Sender ─▶ forward wire ─▶ [internet] ─▶ last hop ─▶ Acker + receiver half
//!          ▲                                                   │
//!          └────────── reverse wire ◀───── [cell's uplink] ◀────┘
//!
//! up:   Sender ─▶ last hop ─▶ [internet] ─▶ forward wire ─▶ Acker + receiver half
//!          ▲                                                   │
//!          └───── [cell's downlink] ◀───── reverse wire ◀───────┘
//! ```
//!
//! Every method in `data` and `acks` is one arrow or one box of that picture; `millisecond` is what happens in every
//! millisecond whatever flows: capacities, radio reports, truths, looks into schemes.

use std::ops::ControlFlow;
use std::time::Duration;

use airpace_cc::registry::FlowRegistry;
use airpace_cc::{Inspect, SchemeError, SchemeSpec};
use airpace_core::{DeviceId, Direction, Rate, Streams, Time};
use airpace_event::{Acked, Detail, Event, Lost, Recorder, Source};
use airpace_path::queue::Queue;

use crate::agenda::{Agenda, Part};
use crate::antenna::Antenna;
use crate::clock::DeviceClock;
use crate::flow::FlowState;
use crate::hop::{LastHop, SmoothedCapacity, grant_delay};
use crate::prepare::{Prepared, RunError};
use crate::scenario::Outage;
use crate::stats::RunStats;

mod acks;
mod data;
mod millisecond;

/// Who is told how far a run is, and may stop it.
pub type Progress<'a> = dyn FnMut(Time) -> ControlFlow<()> + 'a;

/// One run.
pub(crate) struct Driver<'a> {
    now: Time,
    agenda: Agenda,
    flows: Vec<FlowState>,
    /// The Internet's queues, by direction.
    internet: [Option<Queue>; 2],
    hop: LastHop,
    /// Rate of a forward wire, the same for each flow.
    wire_rate: Option<Rate>,
    /// What it takes to be granted the cell's uplink.
    grant_delay: Duration,
    devices: Vec<DeviceState>,
    /// By device: those that decode the control channel themselves.
    antennas: Vec<Option<Antenna>>,
    ack_outage: &'a [Outage],
    recorder: &'a mut dyn Recorder,
    wants_subframes: bool,
    inspect: Inspect,
    /// Whether more packets are under way than memory should hold.
    crowded: bool,
    stats: RunStats,
}

/// What a run keeps of a device.
struct DeviceState {
    clock: DeviceClock,
    /// The ways in which it moves data; one that has no flow could receive.
    directions: Vec<Direction>,
    /// The flows that move data, by direction.
    registry: [FlowRegistry; 2],
    /// What a cell could carry, by direction.
    capacity: [SmoothedCapacity; 2],
    /// Whether the recorder wants what the control channel and the modem tell the device, by source.
    is_recorded: [bool; 2],
    /// Flows whose receiver half hears its radio.
    listeners: Vec<usize>,
    /// Flows whose controller is told what the device knows.
    confidants: Vec<usize>,
}

impl DeviceState {
    /// Device `index`, which the flows among `flows` that name it use.
    fn new(index: usize, clock: DeviceClock, flows: &[FlowState]) -> DeviceState {
        let its = |direction: Direction| {
            let of_device = move |flow: &&FlowState| usize::from(flow.device.0) == index;
            flows.iter().filter(of_device).filter(move |flow| flow.direction == direction)
        };
        let hear = |direction: Direction| {
            its(direction).filter(|flow| flow.hears_radio).map(|flow| usize::from(flow.id.0)).collect()
        };
        let mut directions = vec![];
        if its(Direction::Downlink).next().is_some() || its(Direction::Uplink).next().is_none() {
            directions.push(Direction::Downlink);
        }
        if its(Direction::Uplink).next().is_some() {
            directions.push(Direction::Uplink);
        }
        DeviceState {
            clock,
            directions,
            registry: Default::default(),
            capacity: Default::default(),
            is_recorded: [false; 2],
            listeners: hear(Direction::Downlink),
            confidants: hear(Direction::Uplink),
        }
    }
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
        let mut flows = Vec::with_capacity(scenario.flow.len());
        for index in 0..scenario.flow.len() {
            let spec = scenario.scheme_of(index, scheme);
            flows.push(FlowState::new(scenario, index, &spec, &internet, &hop, &streams)?);
        }
        let clocks = scenario.device.iter().map(|device| DeviceClock::new(&device.clock));
        let mut devices: Vec<DeviceState> =
            clocks.enumerate().map(|(index, clock)| DeviceState::new(index, clock, &flows)).collect();
        let antennas =
            (0..scenario.device.len()).map(|device| Antenna::new(scenario, device, &streams)).collect();
        let wants_subframes = recorder.wants(Detail::Subframes);
        if let LastHop::Cell(cell) = &mut hop {
            cell.set_recording(wants_subframes);
            for (index, device) in devices.iter_mut().enumerate() {
                let id = DeviceId(index as u16);
                device.is_recorded = [Source::Modem, Source::ControlChannel]
                    .map(|source| recorder.wants(Detail::Reports(id, source)));
                let [log_is_recorded, channel_is_recorded] = device.is_recorded;
                cell.set_listening(id, !device.listeners.is_empty() || channel_is_recorded);
                cell.set_logging(id, !device.confidants.is_empty() || log_is_recorded);
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
            grant_delay: scenario.cell.as_ref().map_or(Duration::ZERO, grant_delay),
            devices,
            antennas,
            ack_outage: &scenario.ack_outage,
            recorder,
            wants_subframes,
            inspect: Inspect::default(),
            crowded: false,
            stats: RunStats::default(),
        })
    }

    /// Runs until `end` or until `progress` says stop.
    ///
    /// # Errors
    /// More packets under way than memory should hold.
    pub(crate) fn run(mut self, end: Time, progress: &mut Progress<'_>) -> Result<RunStats, RunError> {
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
                Part::Internet(direction) => self.drain_internet(direction),
                Part::Forward(flow) => self.drain_forward(flow),
                Part::Reverse(flow) => self.drain_reverse(flow),
                Part::Acker(flow) => self.acknowledge(flow),
                Part::Traffic(flow) => self.wake_traffic(flow),
                Part::Sender(flow) => self.wake_sender(flow),
                Part::Tick => {
                    self.is_crowded();
                    if self.tick(progress).is_break() {
                        self.stats.interrupted = true;
                        break;
                    }
                }
            }
            if self.crowded {
                return Err(RunError::Crowded { at: self.now });
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
        Ok(self.stats)
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
        self.agenda.set(Part::Traffic(index), Some(flow.traffic.next()));
        if starts && flow.direction == Direction::Uplink && flow.hears_radio {
            self.confide(index);
        }
        self.transmit(index);
    }

    fn wake_sender(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        let outcome = flow.sender.on_timeout(flow.sender_time(self.now));
        self.record_outcome(outcome);
        self.transmit(index);
    }

    /// Records what a sender saw, by the run's clock rather than its own.
    fn record_outcome(&mut self, outcome: airpace_cc::endpoint::Outcome) {
        let time = self.now;
        if let Some(lost) = outcome.lost {
            self.record(Event::Lost(Lost { time, ..lost }));
        }
        if let Some(acked) = outcome.acked {
            self.record(Event::Acked(Acked { time, ..acked }));
        }
    }
}
