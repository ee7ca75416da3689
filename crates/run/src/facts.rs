//! Facts of a simulated run, from its scenario: the flows and their active times.

use std::time::Duration;

use airpace_core::{DeviceId, FlowId, Time};
use airpace_sim::scenario::Flow;
use airpace_sim::{Scenario, SchemeSpec};
use airpace_tables::facts::{FlowFacts, RunFacts, Span};

/// Facts of a run of `scenario` with the scheme `under_test`.
pub fn of(scenario: &Scenario, under_test: &SchemeSpec, seed: u64) -> RunFacts {
    let duration = Time::ZERO + scenario.duration();
    let flows = scenario.flow.iter().enumerate().map(|(index, flow)| {
        let scheme = scenario.scheme_of(index, under_test);
        FlowFacts {
            flow: FlowId(index as u16),
            name: flow.label.clone(),
            device: DeviceId(flow.device),
            direction: flow.direction,
            primary: primary(scenario, flow),
            greedy: is_greedy(flow, &scheme),
            scheme: scheme.text().to_owned(),
            active: active(flow, duration),
            size: flow.size(),
            transfers_due: transfers_due(flow, duration),
        }
    });
    RunFacts {
        scenario: scenario.name.clone(),
        scheme: under_test.text().to_owned(),
        seed,
        duration,
        flows: flows.collect(),
    }
}

/// Whether a flow takes all that the path gives.
fn is_greedy(flow: &Flow, scheme: &SchemeSpec) -> bool {
    // A server leg sends as fast as the leg behind it, with which it shares nothing.
    let is_limited = flow.rate_mbps.is_some() || flow.video.is_some() || flow.ends_at_proxy();
    !is_limited && scheme.scheme().name != "cbr"
}

/// Number of the primary carrier of the flow's device, if the last hop is a cell.
fn primary(scenario: &Scenario, flow: &Flow) -> Option<u8> {
    scenario.cell.as_ref()?;
    let carriers = &scenario.device[usize::from(flow.device)].radio.carriers;
    Some(carriers.first().copied().unwrap_or(0))
}

/// Whether the cell of `scenario` has carriers of NR.
pub(crate) fn has_nr(scenario: &Scenario) -> bool {
    scenario.cell.as_ref().is_some_and(|cell| cell.nr_carriers() > 0)
}

/// Number of a flow's transfers that are due before the run's end or the flow's stop. Transfers that still wait for
/// earlier transfers at that time are included.
fn transfers_due(flow: &Flow, duration: Time) -> u64 {
    let span = flow.stop().min(duration) - flow.start();
    match (flow.transfer_size().filter(|_| !flow.ends_at_proxy()), flow.transfers_every()) {
        (None, _) => 0,
        (Some(_), None) => u64::from(!span.is_zero()),
        (Some(_), Some(every)) => span.as_nanos().div_ceil(every.as_nanos().max(1)) as u64,
    }
}

/// Periods in which the flow's application sends: from start to stop, `on_s` of every `on_s + off_s`. The list is empty
/// for a flow with several transfers, or with a video, which is active during each transfer; these periods are known only from the
/// events.
fn active(flow: &Flow, duration: Time) -> Vec<Span> {
    if flow.every_ms.is_some() || flow.video.is_some() {
        return Vec::new();
    }
    let (start, stop) = (flow.start(), flow.stop().min(duration));
    let (Some(on), Some(off)) = (flow.on_s, flow.off_s) else {
        return vec![Span { start, end: stop }];
    };
    let (on, off) = (Duration::from_secs_f64(on), Duration::from_secs_f64(off));
    let starts = std::iter::successors(Some(start), |start| Some(*start + on + off));
    starts
        .take_while(|start| *start < stop)
        .map(|start| Span { start, end: (start + on).min(stop) })
        .collect()
}
