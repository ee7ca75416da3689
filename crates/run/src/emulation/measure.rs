//! Metrics of an emulated run, computed from its tables. The connections with their own metrics are known only after the
//! last packet, so the tables are read back.

use std::path::Path;
use std::time::Duration;

use airpace_core::{Bytes, DeviceId, Ecn, FlowId, Packet, Time};
use airpace_event::{Arrived, Capacity, Event, Fate};
use airpace_tables::FileError;
use airpace_tables::direction;
use airpace_tables::facts::{FlowFacts, RunFacts, Span};
use airpace_tables::read::{Part, Words};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, UInt16Type, UInt32Type};

use super::SCHEME;
use super::departures::{self, Departed};
use super::largest::{Flows, Registry, Side};
use crate::error::RunError;
use crate::metrics::{Carrier, Measured, Meter};
use crate::summary::{LinkSummary, RunSummary};

/// Metrics of the run with tables below `root`. `facts` does not contain flows yet.
pub(super) fn measure(
    root: &Path,
    facts: RunFacts,
    registry: &Registry,
    carriers: Vec<Carrier>,
) -> Result<RunSummary, RunError> {
    let flows = registry.flows();
    let (packets, capacity) =
        (Part::of(root, "departures", facts.key()), Part::of(root, "capacity", facts.key()));
    let spans = spans(&packets, &flows)?;
    let links = links(&capacity, &flows)?;
    let whole = Span { start: Time::ZERO, end: facts.duration };
    // The meter treats flows and links (device and direction) alike. Links come after all flows, and count the packets of
    // all of their flows.
    let of_flows = flows.iter().cloned().zip(spans);
    let of_links = links.iter().map(|side| ((String::new(), *side), Some(whole)));
    let metered = RunFacts { flows: facts_of(of_flows.chain(of_links)), ..facts };
    let mut meter = Meter::new(&metered);
    each_capacity(&capacity, |capacity| {
        meter.record(&Event::Capacity(capacity));
        Ok(())
    })?;
    let link_of: Vec<Option<usize>> =
        flows.iter().map(|(_, side)| links.iter().position(|link| link == side)).collect();
    departures::read(&packets, &flows, |flow, departed| {
        let Some(arrived) = arrived(departed)? else { return Ok(()) };
        let link = link_of[flow].map(|link| flows.iter().count() + link);
        for slot in [Some(flow), link].into_iter().flatten() {
            let facts = &metered.flows[slot];
            let packet = Packet { flow: facts.flow, device: facts.device, ..arrived.packet };
            meter.record(&Event::Arrived(Arrived { packet, ..arrived }));
        }
        Ok(())
    })?;
    let mut measured = meter.finish();
    let of_links = measured.flows.split_off(flows.iter().count());
    let links = links.into_iter().zip(of_links).map(|(side, metrics)| LinkSummary {
        device: side.0.0,
        direction: side.1,
        connections: registry.seen(side),
        metrics,
    });
    let links = links.collect();
    Ok(RunSummary { links, ..RunSummary::new(&metered, Measured { carriers, ..measured }) })
}

/// For each flow, the time from its first packet to the arrival of its last packet.
fn spans(packets: &Part, flows: &Flows) -> Result<Vec<Option<Span>>, RunError> {
    let mut spans: Vec<Option<Span>> = flows.iter().map(|_| None).collect();
    departures::read(packets, flows, |flow, departed| {
        let (start, last) = (time(departed.in_ms), time(departed.out_ms.unwrap_or(departed.release_ms)));
        // The span includes the time of the last packet.
        let end = last + Duration::from_nanos(1);
        let span = spans[flow].get_or_insert(Span { start, end });
        *span = Span { start: span.start.min(start), end: span.end.max(end) };
        Ok(())
    })?;
    Ok(spans)
}

/// Every device and direction with packets or a capacity, in ascending order.
fn links(capacity: &Part, flows: &Flows) -> Result<Vec<Side>, RunError> {
    let mut sides: Vec<Side> = flows.iter().map(|(_, side)| *side).collect();
    each_capacity(capacity, |capacity| {
        let side = (capacity.device, capacity.direction);
        if sides.last() != Some(&side) && !sides.contains(&side) {
            sides.push(side);
        }
        Ok(())
    })?;
    sides.sort_unstable();
    sides.dedup();
    Ok(sides)
}

fn facts_of(flows: impl Iterator<Item = ((String, Side), Option<Span>)>) -> Vec<FlowFacts> {
    let facts =
        |(index, ((name, (device, direction)), active)): (u16, ((String, Side), Option<Span>))| FlowFacts {
            flow: FlowId(index),
            name,
            device,
            direction,
            // The metrics of a cell's radio are those of simulated flows.
            primary: None,
            scheme: SCHEME.to_owned(),
            // Whether a program would use more capacity is unknown.
            greedy: false,
            active: active.into_iter().collect(),
            size: None,
            transfers_due: 0,
        };
    (0..).zip(flows).map(facts).collect()
}

/// Converts a departure to the meter's event. The emulator's lateness is part of the one-way delay, but not of the
/// queueing delay. `None` if the network released the packet, but the packet was not handed over before the end of the
/// run.
fn arrived(departed: &Departed<'_>) -> Result<Option<Arrived>, String> {
    let fate = Fate::ALL.into_iter().find(|fate| fate.name() == departed.fate);
    let fate = fate.ok_or_else(|| format!("its column `fate` has the word `{}`", departed.fate))?;
    let released = time(departed.release_ms);
    let end = match departed.out_ms {
        Some(out_ms) => time(out_ms),
        None if fate == Fate::Delivered => return Ok(None),
        None => released,
    };
    let packet = Packet {
        flow: FlowId(0),
        device: DeviceId(0),
        number: 0,
        bytes: Bytes(u64::from(departed.bytes)),
        sent: time(departed.in_ms),
        ecn: Ecn::NotEct,
    };
    Ok(Some(Arrived {
        time: end,
        packet,
        fate,
        duplicate: departed.duplicate,
        propagation_delay: span(departed.propagation_delay_ms) + (end - released),
    }))
}

fn each_capacity(part: &Part, mut each: impl FnMut(Capacity) -> Result<(), String>) -> Result<(), FileError> {
    part.for_each(&["time_ms", "span_ms", "device", "direction", "capacity_bytes"], |batch| {
        let time_ms = batch["time_ms"].as_primitive::<Float64Type>();
        let span_ms = batch["span_ms"].as_primitive::<Float32Type>();
        let device = batch["device"].as_primitive::<UInt16Type>();
        let bytes = batch["capacity_bytes"].as_primitive::<UInt32Type>();
        let ways = Words::of(batch, "direction");
        for row in 0..batch.num_rows() {
            each(Capacity {
                time: time(time_ms.value(row)),
                span: span(span_ms.value(row)),
                device: DeviceId(device.value(row)),
                direction: direction::of_word(ways.word(row)),
                bytes: Bytes(u64::from(bytes.value(row))),
            })?;
        }
        Ok(())
    })
}

/// Time from a table's milliseconds, rounded to nanoseconds.
fn time(ms: f64) -> Time {
    Time::from_nanos((ms * 1e6).round() as u64)
}

/// Duration from a table's milliseconds: exact to the nanosecond below 16 ms, otherwise to 1 in 16 million.
fn span(ms: f32) -> Duration {
    Duration::from_nanos((f64::from(ms) * 1e6).round() as u64)
}
