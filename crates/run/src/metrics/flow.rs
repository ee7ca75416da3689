//! Metrics of one flow.

use std::collections::BTreeMap;
use std::time::Duration;

use airpace_core::{DeviceId, Direction, Time};
use airpace_event::{Arrived, Capacity, Fate, Transfer, TransferStep, Viewed};
use airpace_tables::facts::{FlowFacts, Span};
use serde::{Deserialize, Serialize};

use super::delay::{DelayMeter, Delays};
use super::nearest_rank;
use super::radio::RadioUse;
use super::rounded;
use super::transfers::{TransferMeter, Transfers};
use super::video::Video;

/// Metrics of one flow over a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowMetrics {
    /// Bytes that arrived for the first time while the flow was active, over its active time; Mbit/s.
    pub throughput_mbps: f64,
    /// Bytes of the throughput over the path's capacity to (or from) the flow's device in the active time, in [0, 1].
    /// The capacity comprises the bytes carried for all flows of the device and the unused capacity. The capacity is
    /// taken as at least the bytes that arrived. `None` if the path reported no capacity.
    pub utilization: Option<f64>,
    /// Delay from the sender handing a packet to the path until the packet's first arrival.
    pub one_way_delay_ms: Delays,
    /// One-way delay minus the delay of the empty path.
    pub queueing_delay_ms: Delays,
    /// Packets that were lost, over all packets that were delivered or lost.
    pub loss_rate: Option<f64>,
    /// Throughput over the 95th percentile of one-way delay, in Mbit/s per ms.
    ///
    /// Chosen: the percentile of the throughput–delay figure instead of the mean.
    pub power: Option<f64>,
    /// Mean of Jain's index over the windows of 1 s in which this flow and another greedy flow were active; `None` if
    /// there is no such window.
    pub jain: Option<f64>,
    /// Percentiles of the throughput per 100 ms, over the intervals that lie wholly in the active time.
    pub throughput_100ms: Throughput100ms,
    /// Fraction of the active time, in [0, 1], that the controller spent in each of its states.
    pub state_share: BTreeMap<String, f64>,
    /// Number of entries into each state.
    pub state_entries: BTreeMap<String, u64>,
    /// Active time, in seconds.
    pub active_s: f64,
    /// Number of packets that were delivered or lost.
    pub packets: u64,
    /// Times of the flow's transfers; `None` for a flow without transfers, and for a video, whose segments have different
    /// sizes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfers: Option<Transfers>,
    /// Use of the radio by the flow's device; `None` if the last hop is no cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub radio: Option<RadioUse>,
    /// The flow's adaptive video; `None` for a flow without video.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub video: Option<Video>,
}

/// Percentiles of throughput per 100 ms in Mbit/s; `None` if no such interval lies completely in the active time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // the fields are the percentiles' own names
pub struct Throughput100ms {
    pub p10: Option<f64>,
    pub p25: Option<f64>,
    pub p50: Option<f64>,
    pub p75: Option<f64>,
    pub p90: Option<f64>,
}

/// Length of the intervals of [`Throughput100ms`].
const INTERVAL: Duration = Duration::from_millis(100);

/// Receives the events of one flow.
pub(super) struct FlowMeter {
    device: DeviceId,
    direction: Direction,
    primary: Option<u8>,
    greedy: bool,
    active: Vec<Span>,
    /// Index of the first active span that ends after the latest event.
    cursor: usize,
    /// For a flow of limited size: remaining bytes.
    to_come: Option<u64>,
    arrived_bytes: u64,
    could_carry_bytes: Option<f64>,
    /// Whether the active time consists of the durations of transfers, which are not known in advance.
    follows_transfers: bool,
    transfers: TransferMeter,
    video: Option<Video>,
    bytes_per_interval: Vec<u64>,
    one_way: DelayMeter,
    queueing: DelayMeter,
    packets: u64,
    lost: u64,
    states: Vec<TimeInState>,
    /// Index in `states` of the current state, and time of its entry.
    state: Option<(usize, Time)>,
    duration: Time,
}

struct TimeInState {
    state: String,
    seconds: f64,
    entries: u64,
}

impl FlowMeter {
    pub(super) fn new(facts: &FlowFacts, duration: Time) -> FlowMeter {
        let run = Span { start: Time::ZERO, end: duration };
        FlowMeter {
            device: facts.device,
            direction: facts.direction,
            primary: facts.primary,
            greedy: facts.greedy,
            active: facts
                .active
                .iter()
                .map(|span| span.overlap(run))
                .filter(|span| span.start < span.end)
                .collect(),
            cursor: 0,
            to_come: facts.size.map(|size| size.0),
            arrived_bytes: 0,
            could_carry_bytes: None,
            follows_transfers: facts.active.is_empty(),
            transfers: TransferMeter::new(facts.transfers_due),
            video: None,
            bytes_per_interval: vec![0; duration.as_nanos().div_ceil(INTERVAL.as_nanos() as u64) as usize],
            one_way: DelayMeter::new(),
            queueing: DelayMeter::new(),
            packets: 0,
            lost: 0,
            states: Vec::new(),
            state: None,
            duration,
        }
    }

    /// Periods in which the flow had data to send, as far as they are known.
    pub(super) fn active(&self) -> &[Span] {
        &self.active
    }

    pub(super) fn greedy(&self) -> bool {
        self.greedy
    }

    pub(super) fn device(&self) -> DeviceId {
        self.device
    }

    /// Number of the primary carrier of the flow's device, if the last hop is a cell.
    pub(super) fn primary(&self) -> Option<u8> {
        self.primary
    }

    pub(super) fn direction(&self) -> Direction {
        self.direction
    }

    pub(super) fn on_arrived(&mut self, arrived: &Arrived) {
        if arrived.duplicate {
            return;
        }
        self.packets += 1;
        if arrived.fate != Fate::Delivered {
            self.lost += 1;
            return;
        }
        let one_way = arrived.time - arrived.packet.sent;
        self.one_way.add(one_way);
        self.queueing.add(one_way.saturating_sub(arrived.propagation_delay));
        let interval = (arrived.time.as_nanos() / INTERVAL.as_nanos() as u64) as usize;
        if let Some(bytes) = self.bytes_per_interval.get_mut(interval) {
            *bytes += arrived.packet.bytes.0;
        }
        self.forget_spans_before(arrived.time);
        if self.active.get(self.cursor).is_some_and(|span| span.start <= arrived.time) {
            self.arrived_bytes += arrived.packet.bytes.0;
        }
        if let Some(to_come) = &mut self.to_come {
            *to_come = to_come.saturating_sub(arrived.packet.bytes.0);
            if *to_come == 0 {
                self.end_at(arrived.time);
            }
        }
    }

    pub(super) fn on_capacity(&mut self, capacity: &Capacity) {
        let interval = Span { start: capacity.time, end: capacity.time + capacity.span };
        let total = self.could_carry_bytes.get_or_insert(0.0);
        // A capacity may be reported at the end of its interval, after arrivals that are later than the start of the
        // interval. Therefore the span before the cursor is included.
        for span in self.active.iter().skip(self.cursor.saturating_sub(1)) {
            if span.start >= interval.end {
                break;
            }
            let inside = span.overlap(interval);
            if inside == interval {
                *total += capacity.bytes.0 as f64;
            } else {
                *total += capacity.bytes.0 as f64 * inside.seconds() / interval.seconds();
            }
        }
    }

    pub(super) fn on_transfer(&mut self, transfer: &Transfer) {
        self.transfers.add(transfer);
        match transfer.step {
            _ if !self.follows_transfers => {}
            TransferStep::Began => {
                // A client may cancel a transfer, which then has no end.
                if let Some(last) = self.active.last_mut() {
                    last.end = last.end.min(transfer.time);
                }
                self.active.push(Span { start: transfer.time, end: self.duration });
            }
            TransferStep::Complete => {
                if let Some(last) = self.active.last_mut() {
                    last.end = transfer.time.max(last.start);
                }
            }
            TransferStep::FirstByte | TransferStep::StartedUp => {}
        }
    }

    pub(super) fn on_viewed(&mut self, viewed: &Viewed<'_>) {
        self.video = Some(Video::of(viewed.video));
    }

    pub(super) fn on_state(&mut self, now: Time, state: &str) {
        if let Some((present, _)) = self.state
            && self.states[present].state == state
        {
            return;
        }
        self.leave_state(now);
        let known = self.states.iter().position(|known| known.state == state);
        let next = known.unwrap_or_else(|| {
            self.states.push(TimeInState { state: state.to_owned(), seconds: 0.0, entries: 0 });
            self.states.len() - 1
        });
        self.states[next].entries += 1;
        self.state = Some((next, now));
    }

    pub(super) fn finish(mut self, jain: Option<f64>) -> FlowMetrics {
        self.leave_state(self.duration);
        let active_s: f64 = self.active.iter().map(|span| span.seconds()).sum();
        let throughput_mbps = if active_s > 0.0 { self.arrived_bytes as f64 * 8e-6 / active_s } else { 0.0 };
        let one_way_delay_ms = self.one_way.finish();
        let share = |seconds: f64| if active_s > 0.0 { rounded(seconds / active_s) } else { 0.0 };
        FlowMetrics {
            throughput_mbps: rounded(throughput_mbps),
            utilization: self
                .could_carry_bytes
                .filter(|bytes| *bytes > 0.0)
                .map(|bytes| rounded(self.arrived_bytes as f64 / bytes.max(self.arrived_bytes as f64))),
            queueing_delay_ms: self.queueing.finish(),
            loss_rate: (self.packets > 0).then(|| rounded(self.lost as f64 / self.packets as f64)),
            power: one_way_delay_ms.p95.filter(|p95| *p95 > 0.0).map(|p95| rounded(throughput_mbps / p95)),
            one_way_delay_ms,
            jain,
            throughput_100ms: self.throughput_100ms(),
            state_share: self.states.iter().map(|time| (time.state.clone(), share(time.seconds))).collect(),
            state_entries: self.states.iter().map(|time| (time.state.clone(), time.entries)).collect(),
            active_s: rounded(active_s),
            packets: self.packets,
            transfers: self.transfers.finish().filter(|_| self.video.is_none()),
            video: self.video,
            radio: None,
        }
    }

    fn forget_spans_before(&mut self, now: Time) {
        while self.active.get(self.cursor).is_some_and(|span| span.end <= now) {
            self.cursor += 1;
        }
    }

    /// Ends the active time at `now`, because all data has arrived.
    fn end_at(&mut self, now: Time) {
        let past = Span { start: Time::ZERO, end: now };
        self.active.iter_mut().for_each(|span| *span = span.overlap(past));
        self.active.retain(|span| span.start < span.end);
    }

    fn leave_state(&mut self, now: Time) {
        if let Some((present, since)) = self.state.take() {
            let stay = Span { start: since, end: now.max(since) };
            let seconds: f64 = self.active.iter().map(|span| span.overlap(stay).seconds()).sum();
            self.states[present].seconds += seconds;
        }
    }

    fn throughput_100ms(&self) -> Throughput100ms {
        let mut bytes: Vec<u64> = (0_u64..)
            .zip(&self.bytes_per_interval)
            .filter(|(index, _)| {
                let interval = Span {
                    start: Time::ZERO + INTERVAL * (*index as u32),
                    end: Time::ZERO + INTERVAL * (*index as u32 + 1),
                };
                self.active.iter().any(|span| span.covers(interval))
            })
            .map(|(_, bytes)| *bytes)
            .collect();
        bytes.sort_unstable();
        let at =
            |q| nearest_rank(&bytes, q).map(|bytes| rounded(*bytes as f64 * 8e-6 / INTERVAL.as_secs_f64()));
        Throughput100ms { p10: at(0.10), p25: at(0.25), p50: at(0.50), p75: at(0.75), p90: at(0.90) }
    }
}
