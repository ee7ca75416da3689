//! One flow of a run: its two ends, its two wires and what is under way on them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use airpace_cc::controller::{Arrival, Sees};
use airpace_cc::endpoint::{AckFrame, Acker, Sender, SenderConfig};
use airpace_cc::filter::WindowedMax;
use airpace_cc::pacer::PacerConfig;
use airpace_cc::registry::{ACTIVE_FOR, DeviceFlows, FlowKey};
use airpace_cc::{SchemeError, SchemeSpec, Setup};
use airpace_core::{Bytes, DeviceId, Direction, FlowId, Packet, Rider, Streams, Time};
use airpace_event::Fate;
use airpace_path::queue::Queue;
use airpace_path::wire::{Wire, WireConfig};
use airpace_path::{ConfigError, Link};

use crate::clock::DeviceClock;
use crate::hop::LastHop;
use crate::in_flight::InFlight;
use crate::scenario::{AckPath, Flow, Scenario};
use crate::stats::FlowStats;
use crate::traffic::Traffic;

/// Bytes of a full-sized packet on the wire.
///
/// Source: PBE-CC §4.1 (1500-byte packets)
pub(crate) const MSS: Bytes = Bytes(1500);

/// Bytes of an ACK on the wire.
///
/// Chosen: 20 IP, 8 UDP, 32 for ranges and feedback.
pub(crate) const ACK_BYTES: Bytes = Bytes(60);

/// A flow starts up to this much later than the scenario says, so that seeds sample how it meets the subframes.
///
/// Chosen: one subframe.
const START_SPREAD_MS: f64 = 1.0;

/// How long an Oracle remembers what the forward wire took.
///
/// Chosen: some hundred packets.
const WIRE_DELAY_WINDOW: Duration = Duration::from_millis(100);

/// One flow.
pub(crate) struct FlowState {
    pub(crate) id: FlowId,
    pub(crate) device: DeviceId,
    /// Which way its data goes.
    pub(crate) direction: Direction,
    pub(crate) ack_path: AckPath,
    /// What its device knows it by.
    pub(crate) key: FlowKey,
    /// The application that it belongs to.
    pub(crate) app: u32,
    pub(crate) crosses_internet: bool,
    /// Whether data crosses the forward wire before the links that flows share: what a device receives does, and what
    /// shares nothing.
    pub(crate) wire_first: bool,
    /// Whether the sender is told the truth.
    pub(crate) wants_truth: bool,
    /// Whether the end at the device uses its radio: its receiver half, or its controller.
    pub(crate) hears_radio: bool,
    /// Its device's.
    clock: DeviceClock,
    pub(crate) sender: Sender,
    pub(crate) acker: Acker,
    fixed_delay_of_mss: Duration,
    pub(crate) forward: Wire,
    pub(crate) reverse: Wire,
    pub(crate) headers: InFlight<Rider>,
    pub(crate) frames: InFlight<AckFrame>,
    /// ACKs put on the reverse wire so far.
    pub(crate) acks_on_path: u64,
    pub(crate) traffic: Traffic,
    pub(crate) has_started: bool,
    pub(crate) last_arrival: Option<Time>,
    /// What the forward wire took lately; kept for an Oracle only.
    pub(crate) wire_delay: WindowedMax<Duration, Time>,
    /// Bytes that have not reached the shared links yet, and bytes in them.
    pub(crate) on_wire: Bytes,
    pub(crate) in_links: Bytes,
    pub(crate) state: &'static str,
    pub(crate) stats: FlowStats,
}

impl FlowState {
    /// Flow `index` of a scenario under the scheme `spec`, over this last hop and, each for its direction, these queues
    /// of the Internet.
    pub(crate) fn new(
        scenario: &Scenario,
        index: usize,
        spec: &SchemeSpec,
        internet: &[Option<Queue>; 2],
        hop: &LastHop,
        streams: &Streams,
    ) -> Result<FlowState, SchemeError> {
        let flow = &scenario.flow[index];
        let stream = |part: &str| streams.stream(&format!("flow.{index}.{part}"));
        let ends = spec.build(&Setup { mss: MSS, rng: stream("controller") })?;
        let receiver_sees = ends.receiver.as_ref().map_or(Sees::Packets, |receiver| receiver.sees());
        if receiver_sees == Sees::DeviceOnly && flow.direction == Direction::Uplink {
            return Err(SchemeError::DownloadsOnly(spec.text().to_owned()));
        }
        let late = stream("start").range(0.0, START_SPREAD_MS) * 1e-3;
        let mut traffic = Traffic::new(flow, Duration::from_secs_f64(late), MSS);
        let ack = flow.ack_policy();
        let id = FlowId(index as u16);
        let config = SenderConfig { flow: id, mss: MSS, pacer: PacerConfig::default(), ack };
        let hop_delay = hop.base_delay(flow.direction, MSS);
        let internet = internet[flow.direction as usize].as_ref();
        let delay_ms =
            wire_delay_ms(scenario, index, hop, internet).expect("loading refuses too small an RTT");
        let crosses_internet = internet.is_some() && flow.internet;
        let shares_nothing = !crosses_internet && matches!(hop, LastHop::Nothing);
        let wire = |config: &WireConfig, part| {
            Wire::new(&WireConfig { delay_ms, ..config.clone() }, stream(part)).expect("loading checks wires")
        };
        let forward = wire(&scenario.forward, "forward");
        Ok(FlowState {
            id,
            device: DeviceId(flow.device),
            direction: flow.direction,
            ack_path: flow.acks,
            key: key(flow, id),
            // Applications that the scenario does not name get numbers that it cannot name.
            app: flow.app.map_or(u32::from(u16::MAX) + 1 + index as u32, u32::from),
            crosses_internet,
            wire_first: flow.direction == Direction::Downlink || shares_nothing,
            wants_truth: ends.controller.sees() == Sees::Truth,
            hears_radio: match flow.direction {
                Direction::Downlink => receiver_sees.is_device(),
                Direction::Uplink => ends.controller.sees().is_device(),
            },
            clock: DeviceClock::new(&scenario.device[usize::from(flow.device)].clock),
            sender: Sender::new(config, ends.controller, traffic.backlog()),
            acker: Acker::new(ack, ends.receiver),
            fixed_delay_of_mss: forward.base_delay(MSS) + hop_delay,
            forward,
            reverse: wire(&scenario.reverse, "reverse"),
            headers: InFlight::new(),
            frames: InFlight::new(),
            acks_on_path: 0,
            traffic,
            has_started: false,
            last_arrival: None,
            wire_delay: WindowedMax::new(WIRE_DELAY_WINDOW),
            on_wire: Bytes::ZERO,
            in_links: Bytes::ZERO,
            state: "",
            stats: FlowStats::default(),
        })
    }

    /// Whether its application runs at `now`.
    pub(crate) fn is_running(&self, now: Time) -> bool {
        self.has_started && now < self.traffic.stop()
    }

    /// Whether data arrived lately.
    pub(crate) fn is_heard(&self, now: Time) -> bool {
        self.last_arrival.is_some_and(|last| now - last < ACTIVE_FOR)
    }

    /// What the sender's clock shows at `now`.
    pub(crate) fn sender_time(&self, now: Time) -> Time {
        match self.direction {
            Direction::Downlink => now,
            Direction::Uplink => self.clock.steady(now),
        }
    }

    /// What the receiver's clock shows at `now`.
    pub(crate) fn receiver_time(&self, now: Time) -> Time {
        match self.direction {
            Direction::Downlink => self.clock.read(now),
            Direction::Uplink => now,
        }
    }

    /// When the sender is due.
    pub(crate) fn next_of_sender(&self) -> Option<Time> {
        let due = self.sender.next()?;
        Some(match self.direction {
            Direction::Downlink => due,
            Direction::Uplink => self.clock.when(due),
        })
    }

    /// A copy of a packet comes out of the forward wire.
    pub(crate) fn leave_wire(&mut self, now: Time, packet: &Packet) {
        let is_first = self.headers.left_wire(packet.number);
        if !is_first {
            self.stats.duplicated += 1;
        }
        if !self.wire_first {
            return;
        }
        if is_first {
            self.on_wire -= packet.bytes;
            if self.wants_truth {
                self.wire_delay.update(now, now - packet.sent);
            }
        }
        self.in_links += packet.bytes;
    }

    /// A packet is lost in the links that flows share.
    pub(crate) fn lose_in_links(&mut self, packet: &Packet, fate: Fate) {
        self.in_links -= packet.bytes;
        if !self.wire_first {
            // It never gets to the wire.
            self.headers.left_wire(packet.number);
        }
        self.end_journey(packet, fate);
    }

    /// The journey of a copy of a packet ends before it arrives.
    pub(crate) fn end_journey(&mut self, packet: &Packet, fate: Fate) {
        self.stats.ended(fate);
        self.headers.ended(packet.number);
    }

    /// A copy of a packet arrives at the receiver's end, where the radio is shared as `device` says; whether it is a
    /// duplicate.
    pub(crate) fn arrive(&mut self, now: Time, packet: &Packet, device: DeviceFlows) -> bool {
        self.last_arrival = Some(now);
        self.stats.ended(Fate::Delivered);
        let arrival = Arrival {
            now: self.receiver_time(now),
            // What a sender writes into its packets is the time of day, which may be set.
            sent: match self.direction {
                Direction::Downlink => packet.sent,
                Direction::Uplink => self.clock.read(packet.sent),
            },
            number: packet.number,
            bytes: packet.bytes,
            ecn: packet.ecn,
            header: self.headers.ended(packet.number).as_bytes(),
            device,
        };
        self.acker.on_packet(&arrival).duplicate
    }

    /// What the forward wire and the empty last hop take for a packet of this size.
    pub(crate) fn fixed_delay(&self, bytes: Bytes, hop: &LastHop) -> Duration {
        if bytes == MSS {
            return self.fixed_delay_of_mss;
        }
        self.forward.base_delay(bytes) + hop.base_delay(self.direction, bytes)
    }
}

/// Addresses of a flow: one per device, one server for all, a port per flow.
///
/// Source: RFC 1918 §3; RFC 5737 §3
fn key(flow: &Flow, id: FlowId) -> FlowKey {
    let [high, low] = flow.device.to_be_bytes();
    let local = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, high, low, 2)), id.0);
    let remote = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 443);
    FlowKey { protocol: flow.protocol, local, remote }
}

/// The delay of each of a flow's two wires, in ms: half of what its RTT leaves beside the other links.
///
/// # Errors
/// The RTT is below what the other links take.
pub(crate) fn wire_delay_ms(
    scenario: &Scenario,
    index: usize,
    hop: &LastHop,
    internet: Option<&Queue>,
) -> Result<f64, ConfigError> {
    let flow = &scenario.flow[index];
    let rtt_ms = flow.rtt_ms;
    let mut shared_delay = hop.base_delay(flow.direction, MSS);
    if let Some(queue) = internet.filter(|_| flow.internet) {
        shared_delay = shared_delay.saturating_add(queue.base_delay(MSS));
    }
    if flow.acks == AckPath::Cell {
        shared_delay = shared_delay.saturating_add(hop.base_delay(opposite(flow.direction), ACK_BYTES));
    }
    let serialisation = |config: &WireConfig, bytes| {
        let rate = config.rate_mbps.map(airpace_core::Rate::from_mbps);
        rate.map_or(Duration::ZERO, |rate| rate.time_for(bytes))
    };
    let others = shared_delay
        .saturating_add(serialisation(&scenario.forward, MSS))
        .saturating_add(serialisation(&scenario.reverse, ACK_BYTES));
    let others_ms = others.as_secs_f64() * 1e3;
    if rtt_ms < others_ms {
        let reason =
            format!("is {rtt_ms}, but the empty links alone take {others_ms:.3} ms; give at least that");
        return Err(ConfigError::new(format!("flow.{index}.rtt_ms"), reason));
    }
    Ok((rtt_ms - others_ms) / 2.0)
}

/// The way back.
pub(crate) fn opposite(direction: Direction) -> Direction {
    match direction {
        Direction::Downlink => Direction::Uplink,
        Direction::Uplink => Direction::Downlink,
    }
}
