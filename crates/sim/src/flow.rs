//! One flow of a run: its two endpoints and its application.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use airpace_cc::controller::{Arrival, Sees};
use airpace_cc::endpoint::{Acker, Backlog, Sender, SenderConfig, Transmit};
use airpace_cc::filter::WindowedMax;
use airpace_cc::registry::{ACTIVE_FOR, DeviceFlows, FlowKey};
use airpace_cc::{SchemeError, SchemeSpec};
use airpace_core::{Bytes, DeviceId, Direction, FlowId, Packet, Rider, Streams, Time};
use airpace_event::Fate;

use crate::clock::DeviceClock;
use crate::connections::{Connections, Maker};
use crate::error::RunError;
use crate::foresight::Departures;
use crate::lie;
use crate::playing::Playing;
use crate::relay::AtProxy;
use crate::replacement::Replace;
use crate::stats::FlowStats;
use crate::traffic::Traffic;
use crate::transfers::Transfers;
use airpace_scenario::{Flow, Misreport, Part, Scenario};

/// Maximum random delay of a flow's start after the scenario's start time, in ms, so that different seeds start flows at
/// different points of a subframe.
///
/// Chosen: one subframe.
const START_SPREAD_MS: f64 = 1.0;

/// Duration over which an Oracle keeps the maximum delay of the forward wire.
///
/// Chosen: the time in which a sender sends about a hundred packets.
const WIRE_DELAY_WINDOW: Duration = Duration::from_millis(100);

/// The state of one flow during a run.
pub(crate) struct FlowState {
    pub(crate) id: FlowId,
    pub(crate) device: DeviceId,
    /// Direction of the flow's data.
    pub(crate) direction: Direction,
    /// Key by which the device identifies the flow.
    pub(crate) key: FlowKey,
    /// Number of the flow's application.
    pub(crate) app: u32,
    /// Whether the sender receives perfect reports about the network.
    pub(crate) wants_truth: bool,
    /// Whether the endpoint at the device uses radio reports: the receiver, or the controller.
    pub(crate) hears_radio: bool,
    /// Clocks of the two endpoints; `None` at the server, whose clock is true time.
    sender_clock: Option<DeviceClock>,
    receiver_clock: Option<DeviceClock>,
    pub(crate) sender: Sender,
    pub(crate) acker: Acker,
    /// Configuration of a receiver that misreports.
    lie: Option<Misreport>,
    pub(crate) connections: Connections,
    /// `None` if the flow has unlimited data, or its application writes at a fixed rate.
    pub(crate) transfers: Option<Transfers>,
    /// The part of its connection that the flow is.
    pub(crate) part: Part,
    /// The bytes of a server leg that have arrived at the proxy.
    pub(crate) at_proxy: AtProxy,
    /// Bytes that the application has written: only kept for a server leg.
    pub(crate) written: Bytes,
    /// Number of ACKs and requests that were put on the network.
    pub(crate) acks_on_path: u64,
    pub(crate) traffic: Traffic,
    pub(crate) has_started: bool,
    pub(crate) last_arrival: Option<Time>,
    /// Prescribed send times of packets, if known in advance.
    pub(crate) departures: Departures,
    /// Recent delays of the forward wire; only kept for an Oracle.
    pub(crate) wire_delay: WindowedMax<Duration, Time>,
    pub(crate) state: &'static str,
    pub(crate) stats: FlowStats,
}

impl FlowState {
    /// Creates flow `index` of a scenario with the parameters `flow` and the scheme `spec`. `replace` replaces the
    /// endpoints of the first connection.
    pub(crate) fn new(
        scenario: &Scenario,
        index: usize,
        flow: &Flow,
        spec: &SchemeSpec,
        streams: &Streams,
        replace: Option<Replace>,
    ) -> Result<FlowState, RunError> {
        let stream = |part: &str| streams.stream(&format!("flow.{index}.{part}"));
        let mss = flow.mss();
        let (id, ack) = (FlowId(index as u16), flow.ack_policy());
        let config = SenderConfig::new(id, mss).with_ack(ack);
        let maker = Maker { spec: spec.clone(), streams: *streams, index, config, ack };
        let mut ends = maker.ends(0)?;
        if let Some(replace) = replace {
            ends = replace(ends, spec);
        }
        let receiver_sees = ends.receiver.as_ref().map_or(Sees::Packets, |receiver| receiver.sees());
        if receiver_sees == Sees::DeviceOnly && flow.direction == Direction::Uplink {
            return Err(SchemeError::DownloadsOnly(spec.text().to_owned()).into());
        }
        let is_known = match flow.part {
            Part::Whole => true,
            // A proxy has no radio, and its capacity depends on what the other leg brings.
            Part::ToProxy { .. } => receiver_sees == Sees::Packets && ends.controller.sees() == Sees::Packets,
            Part::FromProxy { .. } => ends.controller.sees() != Sees::Truth,
        };
        if !is_known {
            return Err(RunError::NotSplit(spec.text().to_owned()));
        }
        let late = stream("start").range(0.0, START_SPREAD_MS) * 1e-3;
        let mut traffic = Traffic::new(flow, Duration::from_secs_f64(late), mss);
        let playing = flow.video.as_ref().map(|config| {
            let span = (traffic.start(), traffic.stop());
            let sizes = streams.draws(&format!("flow.{index}.video"));
            Playing::new(config, flow.viewing.unwrap_or_default(), sizes, span)
        });
        let transfers = Transfers::new(flow, traffic.start(), playing).filter(|_| !flow.ends_at_proxy());
        let backlog = match (&transfers, flow.part) {
            (None, Part::Whole) => traffic.backlog(),
            _ => Backlog::Limited(Bytes::ZERO),
        };
        let are_renewed = transfers.as_ref().is_some_and(Transfers::need_connections);
        let clock = DeviceClock::new(&scenario.device[usize::from(flow.device)].clock);
        let device_receives = flow.direction == Direction::Downlink;
        let sees = if device_receives { receiver_sees } else { ends.controller.sees() };
        Ok(FlowState {
            id,
            device: DeviceId(flow.device),
            direction: flow.direction,
            key: key(flow, id),
            // A flow without `app` gets a number above all application numbers that a scenario can assign.
            app: flow.app.map_or(u32::from(u16::MAX) + 1 + index as u32, u32::from),
            wants_truth: ends.controller.sees() == Sees::Truth,
            hears_radio: sees.is_device(),
            sender_clock: (!device_receives).then_some(clock),
            receiver_clock: device_receives.then_some(clock),
            sender: Sender::new(config, ends.controller, backlog),
            acker: Acker::new(ack, ends.receiver),
            lie: flow.misreport.filter(|_| spec.scheme().name == "pbe"),
            connections: Connections::new(maker, are_renewed)?,
            transfers,
            part: flow.part,
            at_proxy: AtProxy::default(),
            written: Bytes::ZERO,
            acks_on_path: 0,
            traffic,
            has_started: false,
            last_arrival: None,
            departures: Departures::default(),
            wire_delay: WindowedMax::new(WIRE_DELAY_WINDOW),
            state: "",
            stats: FlowStats::default(),
        })
    }

    /// Returns whether the flow's application runs at `now`.
    pub(crate) fn is_running(&self, now: Time) -> bool {
        self.has_started && now < self.traffic.stop()
    }

    /// Returns whether data of the flow arrived within [`ACTIVE_FOR`] before `now`.
    pub(crate) fn is_heard(&self, now: Time) -> bool {
        self.last_arrival.is_some_and(|last| now - last < ACTIVE_FOR)
    }

    /// Returns whether the flow's data goes to the device, and not to a server or a proxy.
    pub(crate) fn device_receives(&self) -> bool {
        self.direction == Direction::Downlink && !matches!(self.part, Part::ToProxy { .. })
    }

    /// Returns the reading of the sender's clock at `now`.
    pub(crate) fn sender_time(&self, now: Time) -> Time {
        self.sender_clock.map_or(now, |clock| clock.steady(now))
    }

    /// Returns the reading of the receiver's clock at `now`.
    pub(crate) fn receiver_time(&self, now: Time) -> Time {
        self.receiver_clock.map_or(now, |clock| clock.read(now))
    }

    /// Returns the feedback that is sent at `now`, which differs from the receiver's own feedback if the receiver
    /// misreports.
    pub(crate) fn told(&self, now: Time, feedback: Rider) -> Rider {
        self.lie.map_or(feedback, |lie| lie::told(&lie, now, feedback))
    }

    /// Returns the sender's next deadline, in true time.
    pub(crate) fn next_of_sender(&self) -> Option<Time> {
        let due =
            self.sender.poll_timeout().map(|due| self.sender_clock.map_or(due, |clock| clock.when(due)));
        [due, self.departures.poll_timeout()].into_iter().flatten().min()
    }

    /// Replaces the current connection's endpoints by the endpoints of the next connection. Returns whether the flow
    /// has several connections.
    pub(crate) fn renew(&mut self) -> bool {
        let Some(ends) = self.connections.renew(self.stats.sent) else { return false };
        (self.sender, self.acker) = *ends;
        self.state = "";
        true
    }

    /// Notes which packet the packet `transmit` retransmits, if any.
    pub(crate) fn note_copy(&mut self, transmit: &Transmit) {
        let Some(original) = transmit.copy_of else { return };
        let first = self.connections.first_packet();
        if let Some(transfers) = &mut self.transfers {
            transfers.note_copy(first + transmit.number, first + original);
        }
        if let Part::ToProxy { .. } = self.part {
            self.at_proxy.note_copy(first + transmit.number, first + original);
        }
    }

    /// Processes the arrival of a packet, or of its copy, with the scheme's header `header` at the receiver. `device`
    /// describes how flows share the device's radio. Returns whether the packet is a duplicate.
    pub(crate) fn arrive(&mut self, now: Time, packet: &Packet, header: &Rider, device: DeviceFlows) -> bool {
        self.last_arrival = Some(now);
        self.stats.ended(Fate::Delivered);
        let Some(number) = packet.number.checked_sub(self.connections.first_packet()) else {
            // The packet belongs to an earlier connection, whose bytes had all arrived.
            return true;
        };
        // A sender writes the time of day into its packets. The clock for the time of day may be set during the run.
        let sent = self.sender_clock.map_or(packet.sent, |clock| clock.read(packet.sent));
        let mut arrival = Arrival::new(self.receiver_time(now), sent, number, packet.bytes);
        (arrival.ecn, arrival.header, arrival.device) = (packet.ecn, header.as_bytes(), device);
        self.acker.on_packet(&arrival).duplicate
    }
}

/// Returns the flow's addresses: one address per device, one server for all flows, and one port per flow.
///
/// Source: RFC 1918 §3; RFC 5737 §3
fn key(flow: &Flow, id: FlowId) -> FlowKey {
    let [high, low] = flow.device.to_be_bytes();
    let local = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, high, low, 2)), id.0);
    let remote = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 443);
    FlowKey { protocol: flow.protocol, local, remote }
}
