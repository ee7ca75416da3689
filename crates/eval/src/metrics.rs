//! Every number by which a run is judged. Each is defined once, here.
//!
//! A [`Meter`] receives the events of one run and needs a bounded amount of memory per flow: two histograms
//! and a counter per 100 ms of the run. Tables, `--json`, `[[expect]]` and figures use only the numbers that it returns
//! at the end.
//!
//! | metric | definition |
//! | --- | --- |
//! | throughput | bytes that arrived for the first time while the flow was active, over its active time |
//! | utilization | those bytes over what the path could have carried to (or, `up`, from) the flow's device in that time; never above 1 (see below) |
//! | one-way delay | from the sender handing a packet to the path to its first arrival; delivered packets only |
//! | queueing delay | one-way delay less what the path takes when it is empty |
//! | loss rate | packets whose journey ended without arrival, over all packets whose journey ended |
//! | power | throughput over the 95th percentile of one-way delay, in Mbit/s per ms |
//! | Jain's index | (Σx)² / (n · Σx²) over the n greedy flows of a direction active together, per window of 1 s; then the mean |
//! | throughput per 100 ms | percentiles over the 100 ms intervals that lie wholly in the active time |
//! | completion time, start-up | of a flow's transfers: see [`Transfers`] |
//! | share of a state | part of the active time that the controller spent in that state |
//!
//! A path tells what it can carry as its narrowest link: while the Internet is narrow, that is the Internet's rate. What
//! waits at the last hop when the Internet becomes narrow arrives faster than that. What was carried could be carried, so
//! what could be carried over the active time counts as at least what arrived in it, and utilization is at most 1.
//!
//! Percentiles of delay come from a histogram with three significant digits: at most 0.1 % above the exact
//! nearest-rank value, and exact below 2 ms to the microsecond. Means are exact.

mod delay;
mod fairness;
mod flow;
#[cfg(test)]
mod tests;
mod transfers;

use airpace_event::{Event, Owner};
use serde::{Deserialize, Serialize};

pub use delay::Delays;
pub use fairness::{JainWindow, jain};
pub(crate) use flow::nearest_rank;
pub use flow::{FlowMetrics, Throughput100ms};
pub use transfers::{Times, TransferTimes, Transfers};

use crate::facts::RunFacts;
use fairness::{Fairness, FairnessMeter, Sharer};
use flow::FlowMeter;

/// Receives the events of a run and, at its end, returns the numbers of every flow.
pub struct Meter {
    flows: Vec<FlowMeter>,
    fairness: FairnessMeter,
    carriers: Vec<Carrier>,
}

/// All the numbers of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Per flow, in the order of the facts.
    pub flows: Vec<FlowMetrics>,
    /// Jain's index of bytes delivered, for each window of 1 s with at least two greedy flows of a direction.
    pub jain: Vec<JainWindow>,
    /// Jain's index of PRBs given to the devices of greedy flows of a direction, for each window of 1 s with at least
    /// two.
    ///
    /// The fairness figures of PBE-CC show it.
    pub jain_prbs: Vec<JainWindow>,
    /// The carriers that were seen, by rising number.
    pub carriers: Vec<Carrier>,
}

/// A carrier of the cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carrier {
    /// Its number.
    pub carrier: u8,
    /// Its width in PRB pairs.
    pub prbs: u16,
}

impl Meter {
    /// A meter for a run with these flows.
    pub fn new(facts: &RunFacts) -> Meter {
        Meter {
            flows: facts.flows.iter().map(|flow| FlowMeter::new(flow, facts.duration)).collect(),
            fairness: FairnessMeter::new(facts),
            carriers: Vec::new(),
        }
    }

    /// Takes one event. Events come in order of time. Events of unknown flows and devices are ignored.
    pub fn record(&mut self, event: &Event<'_>) {
        match event {
            Event::Arrived(arrived) => {
                let slot = usize::from(arrived.packet.flow.0);
                if let Some(flow) = self.flows.get_mut(slot) {
                    flow.on_arrived(arrived);
                    self.fairness.on_arrived(slot, arrived);
                }
            }
            Event::Capacity(capacity) => {
                let whose = (capacity.device, capacity.direction);
                for flow in self.flows.iter_mut().filter(|flow| (flow.device(), flow.direction()) == whose) {
                    flow.on_capacity(capacity);
                }
            }
            Event::Inspected(inspected) => {
                if let Some(flow) = self.flows.get_mut(usize::from(inspected.flow.0)) {
                    flow.on_state(inspected.time, inspected.state);
                }
            }
            Event::Subframe(subframe) => {
                let report = subframe.report;
                if let Some(prbs) = report.carrier_prbs {
                    self.see_carrier(report.carrier.0, prbs);
                }
                for (dci, owner) in report.dcis.iter().zip(subframe.owners) {
                    if let Owner::Device(device) = owner {
                        self.fairness.on_prbs((*device, dci.direction), report.time, dci.prbs.len());
                    }
                }
            }
            Event::Transfer(transfer) => {
                if let Some(flow) = self.flows.get_mut(usize::from(transfer.flow.0)) {
                    flow.on_transfer(transfer);
                }
            }
            Event::Sent(_) | Event::Acked(_) | Event::Lost(_) | Event::Reported(_) => {}
        }
    }

    /// The numbers of every flow.
    pub fn finish(self) -> Measured {
        let sharers: Vec<Sharer> = self
            .flows
            .iter()
            .map(|flow| Sharer {
                device: flow.device(),
                direction: flow.direction(),
                greedy: flow.greedy(),
                active: flow.active().to_vec(),
            })
            .collect();
        let Fairness { bytes: jain, prbs: jain_prbs } = self.fairness.finish(&sharers);
        let flows = self.flows.into_iter().zip(&sharers);
        let flows = flows.map(|(flow, sharer)| flow.finish(sharer.mean(&jain))).collect();
        Measured { flows, jain, jain_prbs, carriers: self.carriers }
    }

    fn see_carrier(&mut self, carrier: u8, prbs: u16) {
        match self.carriers.binary_search_by_key(&carrier, |known| known.carrier) {
            Ok(_) => {}
            Err(place) => self.carriers.insert(place, Carrier { carrier, prbs }),
        }
    }
}

/// `value` rounded to six decimals: finer than any of these numbers is meaningful, and short in JSON.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}
