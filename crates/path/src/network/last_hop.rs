//! The last hop of a network: a cell, a trace, a cellular link, or nothing.

use std::time::Duration;

use airpace_core::{Bytes, DeviceId, Direction, FlowId, Packet, Rate, Streams, Time};
use airpace_event::{Source, Subframe};
use airpace_radio::RadioReport;

use super::flow_config::{DATA_BYTES, FlowConfig};
use crate::cell::Cell;
use crate::cellular::CellularLink;
use crate::link::{Exit, Link};
use crate::trace::TraceLink;

mod plan;
mod trace_radio;

pub use plan::{CellularPlan, LastHopPlan, TracePlan};
use trace_radio::TraceRadio;

/// Number of subframes from the transmission of an uplink block to its decoding, during which its data still counts as
/// queued.
///
/// Source: TS 36.213 §8.3 (the answer to a block comes four subframes after the block)
const ON_THE_AIR: u64 = 4;

/// One millisecond.
pub(super) const MILLISECOND: Duration = Duration::from_millis(1);

/// The last hop.
#[derive(Debug)]
pub(super) enum LastHop {
    Cell(Box<CellHop>),
    Trace(Box<TraceRadio>),
    /// One cellular link per direction.
    Cellular(Box<[CellularLink; 2]>),
    /// There is no last hop: the devices are at the end of the wires. Each wire may have a rate.
    Nothing(Option<Rate>),
}

/// A cell, with the capacity of its last subframe.
#[derive(Debug)]
pub(super) struct CellHop {
    cell: Cell,
    /// Maximum time for which data of a busy device waits for an uplink grant.
    grant_delay: Duration,
    /// Capacity by device and direction.
    capacity: Vec<[SmoothedCapacity; 2]>,
    /// Packet size for which capacity is computed, by device and direction.
    packet_bytes: Vec<[Bytes; 2]>,
    /// Number of subframes that had been run when the network last reported subframes.
    told: u64,
    /// Time of the last drain of the cell; reports that were due at that time are returned to the driver.
    drained_at: Time,
}

/// Service of a cell for the device of a flow, in the direction of the flow's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellService {
    /// Number of the device's bytes that the base station has put into blocks so far. Always 0 for the uplink.
    pub sent: Bytes,
    /// Capacity of the whole band at the present MCS over the cell's reaction time: for the downlink, a subframe and the
    /// processing of a packet; for the uplink, the delay until a grant and a subframe.
    pub whole_band: Bytes,
    /// Minimum queue with which the device is served as with an infinite queue.
    pub saturating: Bytes,
    /// Free space in the device's queue in the base station. Infinite for the uplink, whose data is queued in the device.
    pub room: Bytes,
}

impl LastHop {
    pub(super) fn new(plan: &LastHopPlan, flows: &[FlowConfig], streams: &Streams) -> LastHop {
        match plan {
            LastHopPlan::Cell(plan) => {
                let cell = plan.build(streams);
                let grant_delay = cell.grant_delay();
                let capacity = vec![Default::default(); plan.devices()];
                let packet_bytes = (0..plan.devices()).map(|device| packet_bytes(device, flows)).collect();
                let hop =
                    CellHop { cell, grant_delay, capacity, packet_bytes, told: 0, drained_at: Time::ZERO };
                LastHop::Cell(Box::new(hop))
            }
            LastHopPlan::Trace(plan) => LastHop::Trace(Box::new(TraceRadio::new(plan, streams))),
            LastHopPlan::Cellular(plan) => {
                let [down, up] = plan.links.clone();
                let links = [down.begin(streams, "cellular.down"), up.begin(streams, "cellular.up")];
                LastHop::Cellular(Box::new(links))
            }
            LastHopPlan::Nothing(rate) => LastHop::Nothing(*rate),
        }
    }

    /// Takes a packet in this direction. Returns whether the time of [`LastHop::poll_timeout`] may have become earlier.
    pub(super) fn push(&mut self, now: Time, direction: Direction, packet: Packet) -> bool {
        match (self, direction) {
            (LastHop::Cell(hop), direction) => {
                match direction {
                    Direction::Downlink => hop.cell.push(now, packet),
                    Direction::Uplink => hop.cell.push_uplink(now, packet),
                }
                // Packets in the cell wait for the cell's next subframe.
                hop.cell.has_refused()
            }
            (LastHop::Trace(trace), direction) => {
                trace.push(now, direction, packet);
                true
            }
            (LastHop::Cellular(links), direction) => {
                links[direction as usize].push(now, packet);
                true
            }
            (LastHop::Nothing(_), _) => unreachable!("no route crosses what is not there"),
        }
    }

    /// The next packet that crossed the last hop or was lost, with its direction.
    pub(super) fn pop(&mut self, now: Time) -> Option<(Direction, Exit)> {
        match self {
            LastHop::Cell(hop) => {
                let down = hop.cell.pop(now).map(|exit| (Direction::Downlink, exit));
                down.or_else(|| Some((Direction::Uplink, hop.cell.pop_uplink(now)?)))
            }
            LastHop::Trace(trace) => trace.pop(now),
            LastHop::Cellular(links) => Direction::BOTH
                .into_iter()
                .find_map(|direction| Some((direction, links[direction as usize].pop(now)?))),
            LastHop::Nothing(_) => None,
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Time> {
        match self {
            LastHop::Cell(hop) => hop.cell.poll_timeout(),
            LastHop::Trace(trace) => trace.poll_timeout(),
            LastHop::Cellular(links) => links.iter().filter_map(Link::poll_timeout).min(),
            LastHop::Nothing(_) => None,
        }
    }

    pub(super) fn base_delay(&self, direction: Direction, bytes: Bytes) -> Duration {
        match (self, direction) {
            (LastHop::Cell(hop), Direction::Downlink) => hop.cell.base_delay(bytes),
            (LastHop::Cell(hop), Direction::Uplink) => hop.cell.uplink_base_delay(bytes),
            (LastHop::Trace(trace), direction) => {
                trace.link(direction).map_or(Duration::ZERO, |link| link.base_delay(bytes))
            }
            (LastHop::Cellular(links), direction) => links[direction as usize].base_delay(bytes),
            (LastHop::Nothing(_), _) => Duration::ZERO,
        }
    }

    /// Bytes queued in this direction for this device.
    pub(super) fn backlog_of(&self, direction: Direction, device: DeviceId) -> Bytes {
        match (self, direction) {
            (LastHop::Cell(hop), Direction::Downlink) => hop.cell.backlog_of(device),
            (LastHop::Cell(hop), Direction::Uplink) => hop.cell.uplink_backlog_of(device),
            (LastHop::Trace(trace), direction) => trace.link(direction).map_or(Bytes::ZERO, Link::backlog),
            (LastHop::Cellular(links), direction) => links[direction as usize].backlog(),
            (LastHop::Nothing(_), _) => Bytes::ZERO,
        }
    }

    /// Bytes of a flow in this direction that are held for a delay before they are queued, and the current duration of
    /// that delay.
    pub(super) fn held_of(&self, direction: Direction, flow: FlowId) -> (Bytes, Duration) {
        match self {
            LastHop::Cellular(links) => {
                let link = &links[direction as usize];
                (link.held_of(flow), link.held_for())
            }
            LastHop::Cell(_) | LastHop::Trace(_) | LastHop::Nothing(_) => (Bytes::ZERO, Duration::ZERO),
        }
    }

    /// The rate in this direction for a device at `at`. For a cell, it is the recent capacity; for recordings, the
    /// capacity of the millisecond that contains `at`.
    pub(super) fn rate(&self, direction: Direction, device: DeviceId, at: Time) -> Option<Rate> {
        match self {
            LastHop::Cell(hop) => Some(hop.capacity[usize::from(device.0)][direction as usize].rate()),
            LastHop::Trace(trace) => {
                let bytes = trace.capacity(direction, Time::from_millis(at.as_millis()))?;
                Some(Rate::from_bytes_per(bytes, MILLISECOND))
            }
            LastHop::Cellular(links) => {
                let from = Time::from_millis(at.as_millis());
                let bytes = links[direction as usize].capacity_between(from, from + MILLISECOND);
                Some(Rate::from_bytes_per(bytes, MILLISECOND))
            }
            LastHop::Nothing(rate) => *rate,
        }
    }

    /// Service of a cell for a device in this direction; `None` if there is no cell.
    pub(super) fn cell_service(&mut self, direction: Direction, device: DeviceId) -> Option<CellService> {
        let LastHop::Cell(hop) = self else { return None };
        Some(match direction {
            Direction::Downlink => {
                let subframes = hop.cell.subframes_in_preparation();
                CellService {
                    sent: hop.cell.sent_to(device),
                    whole_band: Bytes(hop.cell.whole_band(device).0 * subframes),
                    saturating: hop.cell.saturating(device),
                    room: hop.cell.room_for(device),
                }
            }
            Direction::Uplink => {
                let packet = hop.packet_bytes[usize::from(device.0)][direction as usize];
                let subframes = hop.grant_delay.as_millis() as u64 + 1 + ON_THE_AIR;
                let whole_band = Bytes(hop.cell.uplink_whole_band(device, packet).0 * subframes);
                CellService { sent: Bytes::ZERO, whole_band, saturating: whole_band, room: Bytes(u64::MAX) }
            }
        })
    }

    /// Maximum time that a device must wait before it may send, in addition to the wait for earlier data in its queue.
    pub(super) fn grant_delay(&self) -> Duration {
        match self {
            LastHop::Cell(hop) => hop.grant_delay,
            LastHop::Trace(_) | LastHop::Cellular(_) | LastHop::Nothing(_) => Duration::ZERO,
        }
    }

    /// Must be called when all outputs due at `now` have been popped. Returns whether a subframe has been run since the
    /// last call.
    pub(super) fn end_of_drain(&mut self, now: Time) -> bool {
        let LastHop::Cell(hop) = self else { return false };
        hop.drained_at = now;
        let run = hop.cell.subframes_run();
        std::mem::replace(&mut hop.told, run) < run
    }

    /// The capacity in this direction for a device, and the start of the millisecond for which it holds: for a cell,
    /// the last subframe; otherwise, the millisecond that starts at `now`. Without a last hop, the result is the
    /// capacity of the `wires`.
    pub(super) fn capacity(
        &mut self,
        now: Time,
        direction: Direction,
        device: DeviceId,
        wires: Option<Bytes>,
    ) -> (Time, Option<Bytes>) {
        match self {
            LastHop::Cell(hop) => {
                let packet = hop.packet_bytes[usize::from(device.0)][direction as usize];
                let capacity = match direction {
                    Direction::Downlink => hop.cell.capacity(device, packet),
                    Direction::Uplink => hop.cell.uplink_capacity(device, packet),
                };
                hop.capacity[usize::from(device.0)][direction as usize].observe(capacity.bytes);
                (capacity.time, Some(capacity.bytes))
            }
            LastHop::Trace(trace) => (now, trace.capacity(direction, now)),
            LastHop::Cellular(links) => {
                (now, Some(links[direction as usize].capacity_between(now, now + MILLISECOND)))
            }
            LastHop::Nothing(_) => (now, wires),
        }
    }

    /// Starts a millisecond of a last hop without subframes.
    pub(super) fn begin_millisecond(&mut self, now: Time) {
        if let LastHop::Trace(trace) = self {
            trace.begin_millisecond(now);
        }
    }

    /// The next report that was ready at the last run of the last hop, with its source.
    pub(super) fn pop_report(&mut self) -> Option<(DeviceId, Source, &mut RadioReport)> {
        match self {
            LastHop::Cell(hop) => {
                // `has_report` is called first, because the borrow checker does not allow the cell to be used again after
                // a report was borrowed and returned.
                if hop.cell.has_report(hop.drained_at) {
                    let (device, report) = hop.cell.pop_report(hop.drained_at)?;
                    return Some((device, Source::ControlChannel, report));
                }
                let (device, report) = hop.cell.pop_own_report(hop.drained_at)?;
                Some((device, Source::Modem, report))
            }
            LastHop::Trace(trace) => trace.pop_report(),
            LastHop::Cellular(_) | LastHop::Nothing(_) => None,
        }
    }

    /// Records of the last subframe; empty while recording is off.
    pub(super) fn subframes(&self) -> impl Iterator<Item = Subframe<'_>> {
        let cell = match self {
            LastHop::Cell(hop) => Some(&hop.cell),
            LastHop::Trace(_) | LastHop::Cellular(_) | LastHop::Nothing(_) => None,
        };
        cell.into_iter().flat_map(Cell::subframes)
    }

    /// The link of the trace in this direction; `None` if the last hop is not a trace or has no link in this direction.
    pub(super) fn trace_mut(&mut self, direction: Direction) -> Option<&mut TraceLink> {
        match self {
            LastHop::Trace(trace) => trace.link_mut(direction),
            LastHop::Cell(_) | LastHop::Cellular(_) | LastHop::Nothing(_) => None,
        }
    }

    pub(super) fn subframes_run(&self) -> u64 {
        match self {
            LastHop::Cell(hop) => hop.cell.subframes_run(),
            LastHop::Trace(_) | LastHop::Cellular(_) | LastHop::Nothing(_) => 0,
        }
    }

    pub(super) fn set_recording(&mut self, is_recording: bool) {
        if let LastHop::Cell(hop) = self {
            hop.cell.set_recording(is_recording);
        }
    }

    /// Sets whether a device receives the reports of this source.
    pub(super) fn set_reported(&mut self, device: DeviceId, source: Source, is_reported: bool) {
        match (self, source) {
            (LastHop::Cell(hop), Source::ControlChannel) => hop.cell.set_listening(device, is_reported),
            (LastHop::Cell(hop), Source::Modem) => hop.cell.set_logging(device, is_reported),
            (LastHop::Trace(trace), source) => trace.set_reported(source, is_reported),
            (LastHop::Cellular(_) | LastHop::Nothing(_), _) => {}
        }
    }
}

/// The maximum packet size of a device's flows, by direction; without flows, the default size.
///
/// Chosen: the maximum size, with which the device's flows together can transfer the most data.
fn packet_bytes(device: usize, flows: &[FlowConfig]) -> [Bytes; 2] {
    Direction::BOTH.map(|direction| {
        let its =
            flows.iter().filter(|flow| usize::from(flow.device.0) == device && flow.direction == direction);
        its.map(|flow| flow.data_bytes).max().unwrap_or(DATA_BYTES)
    })
}

/// Capacity of a cell for a device in one direction, smoothed over milliseconds.
#[derive(Clone, Copy, Debug, Default)]
struct SmoothedCapacity {
    bytes_per_ms: Option<f64>,
}

impl SmoothedCapacity {
    /// Chosen: a gain of an eighth per millisecond, which averages over about one HARQ round trip.
    const GAIN: f64 = 1.0 / 8.0;

    fn observe(&mut self, bytes: Bytes) {
        let sample = bytes.0 as f64;
        let before = self.bytes_per_ms.unwrap_or(sample);
        self.bytes_per_ms = Some(before + (sample - before) * Self::GAIN);
    }

    fn rate(&self) -> Rate {
        Rate::from_bps_f64(self.bytes_per_ms.unwrap_or(0.0) * 8e3)
    }
}
