//! One flow of a run: its two ends, its two wires and what is under way on them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use airpace_cc::controller::Arrival;
use airpace_cc::endpoint::{AckFrame, Acker, Sender, SenderConfig};
use airpace_cc::filter::WindowedMax;
use airpace_cc::pacer::PacerConfig;
use airpace_cc::registry::{ACTIVE_FOR, DeviceFlows, FlowKey, Protocol};
use airpace_cc::{SchemeError, SchemeSpec, Setup};
use airpace_core::event::Fate;
use airpace_core::{Bytes, DeviceId, FlowId, Packet, Rider, Streams, Time};
use airpace_path::wire::{Wire, WireConfig};
use airpace_path::{ConfigError, Link};

use crate::hop::LastHop;
use crate::in_flight::InFlight;
use crate::scenario::Scenario;
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
    /// What its device knows it by.
    pub(crate) key: FlowKey,
    pub(crate) crosses_internet: bool,
    /// Whether the sender is told the truth.
    pub(crate) wants_truth: bool,
    /// Whether the scheme has a half at the receiver, which then hears the radio.
    pub(crate) has_receiver: bool,
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
    /// Bytes between the sender and the end of the forward wire, and from there to the device.
    pub(crate) on_wire: Bytes,
    pub(crate) in_links: Bytes,
    pub(crate) state: &'static str,
    pub(crate) stats: FlowStats,
}

impl FlowState {
    /// Flow `index` of a scenario under the scheme `spec`; `queue_delay` is what the Internet's empty queue takes
    /// for a full-sized packet.
    pub(crate) fn new(
        scenario: &Scenario,
        index: usize,
        spec: &SchemeSpec,
        queue_delay: Duration,
        hop: &LastHop,
        streams: &Streams,
    ) -> Result<FlowState, SchemeError> {
        let flow = &scenario.flow[index];
        let stream = |part: &str| streams.stream(&format!("flow.{index}.{part}"));
        let ends = spec.build(&Setup { mss: MSS, rng: stream("controller") })?;
        let late = stream("start").range(0.0, START_SPREAD_MS) * 1e-3;
        let mut traffic = Traffic::new(flow, Duration::from_secs_f64(late), MSS);
        let ack = flow.ack_policy();
        let id = FlowId(index as u16);
        let config = SenderConfig { flow: id, mss: MSS, pacer: PacerConfig::default(), ack };
        let hop_delay = hop.base_delay(MSS);
        let shared_delay = hop_delay + if flow.internet { queue_delay } else { Duration::ZERO };
        let delay_ms =
            wire_delay_ms(scenario, index, shared_delay).expect("loading refuses too small an RTT");
        let wire = |config: &WireConfig, part| {
            Wire::new(&WireConfig { delay_ms, ..config.clone() }, stream(part)).expect("loading checks wires")
        };
        let forward = wire(&scenario.forward, "forward");
        Ok(FlowState {
            id,
            device: DeviceId(flow.device),
            key: key(flow.device, id),
            crosses_internet: scenario.internet.is_some() && flow.internet,
            wants_truth: spec.scheme().name == "oracle",
            has_receiver: ends.receiver.is_some(),
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

    /// The journey of a copy of a packet ends before it arrives.
    pub(crate) fn end_journey(&mut self, packet: &Packet, fate: Fate) {
        self.in_links -= packet.bytes;
        self.stats.ended(fate);
        self.headers.ended(packet.number);
    }

    /// A copy of a packet arrives at the device, whose clock shows `clock`; whether it is a duplicate.
    pub(crate) fn arrive(&mut self, packet: &Packet, clock: Time, device: DeviceFlows) -> bool {
        self.in_links -= packet.bytes;
        self.stats.ended(Fate::Delivered);
        let arrival = Arrival {
            now: clock,
            sent: packet.sent,
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
        self.forward.base_delay(bytes) + hop.base_delay(bytes)
    }
}

/// Addresses of a flow: one per device, one server for all, a port per flow.
///
/// Source: RFC 1918 §3; RFC 5737 §3
fn key(device: u16, flow: FlowId) -> FlowKey {
    let [high, low] = device.to_be_bytes();
    let local = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, high, low, 2)), flow.0);
    let remote = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 443);
    FlowKey { protocol: Protocol::Udp, local, remote }
}

/// The delay of each of a flow's two wires, in ms: half of what its RTT leaves beside the other links.
///
/// # Errors
/// The RTT is below what the other links take.
pub(crate) fn wire_delay_ms(
    scenario: &Scenario,
    index: usize,
    shared_delay: Duration,
) -> Result<f64, ConfigError> {
    let rtt_ms = scenario.flow[index].rtt_ms;
    let serialisation = |config: &WireConfig, bytes| {
        let rate = config.rate_mbps.map(airpace_core::Rate::from_mbps);
        rate.map_or(Duration::ZERO, |rate| rate.time_for(bytes))
    };
    let others =
        shared_delay + serialisation(&scenario.forward, MSS) + serialisation(&scenario.reverse, ACK_BYTES);
    let others_ms = others.as_secs_f64() * 1e3;
    if rtt_ms < others_ms {
        let reason =
            format!("is {rtt_ms}, but the empty links alone take {others_ms:.3} ms; give at least that");
        return Err(ConfigError::new(format!("flow.{index}.rtt_ms"), reason));
    }
    Ok((rtt_ms - others_ms) / 2.0)
}
