//! Time series of a flow's packets, read from `packets` for simulated runs and from `departures` for emulated runs.

use airpace_core::DeviceId;
use airpace_run::emulation::Flows;
use airpace_run::emulation::departures;
use airpace_run::metrics::significant;
use airpace_run::summary::RunSummary;
use airpace_tables::read::Source;
use arrow_array::cast::AsArray;
use arrow_array::{Array, BooleanArray, Float32Array, Float64Array, RecordBatch, UInt16Array, UInt32Array};
use serde::Serialize;

use super::delays::Delays;
use super::intervals::Intervals;
use crate::PageError;

/// Time series of a flow's packets.
#[derive(Serialize)]
pub(super) struct PacketCourse {
    /// Throughput per interval, starting with the first arrival; `None` before it.
    throughput_mbps: Vec<Option<f64>>,
    /// Mean delay of the packets that arrived in the interval.
    queueing_delay_ms: Vec<Option<f64>>,
    /// Maximum delay of these packets.
    queueing_delay_max_ms: Vec<Option<f64>>,
    /// Dropped or lost packets, as (interval, packets), without intervals that have none.
    dropped: Vec<(usize, u64)>,
    /// Distribution of the one-way delays: (delay, fraction of delivered packets with at most this delay).
    one_way_delay_cdf: Vec<(f64, f64)>,
}

/// The time series of all flows of a simulated run.
pub(super) fn of_packets(
    source: Source<'_>,
    run: &RunSummary,
    intervals: Intervals,
) -> Result<Vec<PacketCourse>, PageError> {
    let mut counts: Vec<Counts> = run.flows.iter().map(|_| Counts::new(intervals)).collect();
    source.part("packets", run.key())?.for_each(&PacketColumns::NAMES, |batch| {
        let columns = PacketColumns::of(batch);
        for row in 0..batch.num_rows() {
            if let Some(counts) = counts.get_mut(usize::from(columns.flow.value(row))) {
                counts.read(&columns, row);
            }
        }
        Ok(())
    })?;
    Ok(counts.into_iter().map(Counts::finish).collect())
}

/// The time series of all flows of an emulated run.
pub(super) fn of_departures(
    source: Source<'_>,
    run: &RunSummary,
    intervals: Intervals,
) -> Result<Vec<PacketCourse>, PageError> {
    let flows = run.flows.iter().map(|flow| (flow.flow.clone(), (DeviceId(flow.device), flow.direction)));
    let mut counts: Vec<Counts> = run.flows.iter().map(|_| Counts::new(intervals)).collect();
    departures::read(&source.part("departures", run.key())?, &Flows::of(flows), |flow, departed| {
        let counts = &mut counts[flow];
        match departed.out_ms {
            _ if departed.duplicate => {}
            Some(out_ms) => {
                let bytes = u64::from(departed.bytes);
                counts.arrived(out_ms, bytes, departed.one_way_delay_ms, departed.queueing_delay_ms);
            }
            // The network released the packet, but the packet was not handed over before the end of the run.
            None if departed.fate == airpace_event::Fate::Delivered.name() => {}
            None => counts.dropped(departed.release_ms),
        }
        Ok(())
    })?;
    Ok(counts.into_iter().map(|counts| counts.finish().until_its_end()).collect())
}

/// Columns of packets from which a time series is computed.
struct PacketColumns<'a> {
    flow: &'a UInt16Array,
    bytes: &'a UInt32Array,
    arrived_ms: &'a Float64Array,
    dropped_ms: &'a Float64Array,
    one_way_delay_ms: &'a Float32Array,
    queueing_delay_ms: &'a Float32Array,
    duplicate: &'a BooleanArray,
}

impl PacketColumns<'_> {
    const NAMES: [&'static str; 7] =
        ["flow", "bytes", "arrived_ms", "dropped_ms", "one_way_delay_ms", "queueing_delay_ms", "duplicate"];

    fn of(batch: &RecordBatch) -> PacketColumns<'_> {
        let [flow, bytes, arrived_ms, dropped_ms, one_way_delay_ms, queueing_delay_ms, duplicate] =
            PacketColumns::NAMES.map(|name| &batch[name]);
        PacketColumns {
            flow: flow.as_primitive(),
            bytes: bytes.as_primitive(),
            arrived_ms: arrived_ms.as_primitive(),
            dropped_ms: dropped_ms.as_primitive(),
            one_way_delay_ms: one_way_delay_ms.as_primitive(),
            queueing_delay_ms: queueing_delay_ms.as_primitive(),
            duplicate: duplicate.as_boolean(),
        }
    }
}

/// Counters of a flow's packets.
struct Counts {
    intervals: Intervals,
    arrived_bytes: Vec<u64>,
    queueing_ms: Vec<(f64, u64, f32)>,
    dropped: Vec<u64>,
    one_way_ms: Delays,
}

impl Counts {
    fn new(intervals: Intervals) -> Counts {
        Counts {
            intervals,
            arrived_bytes: vec![0; intervals.count()],
            queueing_ms: vec![(0.0, 0, 0.0); intervals.count()],
            dropped: vec![0; intervals.count()],
            one_way_ms: Delays::default(),
        }
    }

    fn read(&mut self, columns: &PacketColumns<'_>, row: usize) {
        match (columns.duplicate.value(row), columns.arrived_ms.is_null(row)) {
            (true, _) => {}
            (false, true) => self.dropped(columns.dropped_ms.value(row)),
            (false, false) => {
                let bytes = u64::from(columns.bytes.value(row));
                let (one_way, queueing) =
                    (columns.one_way_delay_ms.value(row), columns.queueing_delay_ms.value(row));
                self.arrived(columns.arrived_ms.value(row), bytes, one_way, queueing);
            }
        }
    }

    fn arrived(&mut self, time_ms: f64, bytes: u64, one_way_ms: f32, queueing_ms: f32) {
        self.one_way_ms.push(one_way_ms);
        if let Some(index) = self.intervals.index(time_ms) {
            self.arrived_bytes[index] += bytes;
            let (sum, count, most) = &mut self.queueing_ms[index];
            *sum += f64::from(queueing_ms);
            *count += 1;
            *most = most.max(queueing_ms);
        }
    }

    fn dropped(&mut self, time_ms: f64) {
        if let Some(index) = self.intervals.index(time_ms) {
            self.dropped[index] += 1;
        }
    }

    fn finish(self) -> PacketCourse {
        let started =
            self.arrived_bytes.iter().position(|bytes| *bytes > 0).unwrap_or(self.arrived_bytes.len());
        let throughput_mbps = self.arrived_bytes.iter().enumerate();
        PacketCourse {
            throughput_mbps: throughput_mbps
                .map(|(place, bytes)| (place >= started).then(|| self.intervals.mbps(place, *bytes)))
                .collect(),
            queueing_delay_ms: self
                .queueing_ms
                .iter()
                .map(|(sum, count, _)| (*count > 0).then(|| significant(sum / *count as f64)))
                .collect(),
            queueing_delay_max_ms: self
                .queueing_ms
                .iter()
                .map(|(_, count, most)| (*count > 0).then(|| significant(f64::from(*most))))
                .collect(),
            dropped: self.dropped.into_iter().enumerate().filter(|(_, packets)| *packets > 0).collect(),
            one_way_delay_cdf: self.one_way_ms.cdf(),
        }
    }
}

impl PacketCourse {
    /// Ends the throughput at the last arrival, because the program's connection is then over.
    fn until_its_end(mut self) -> PacketCourse {
        let last = self.throughput_mbps.iter().rposition(|mbps| mbps.is_some_and(|mbps| mbps > 0.0));
        let after = last.map_or(0, |last| last + 1);
        self.throughput_mbps.iter_mut().skip(after).for_each(|mbps| *mbps = None);
        self
    }
}
