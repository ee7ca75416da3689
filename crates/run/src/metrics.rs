//! Metrics of a run, each defined once.
//!
//! A [`Meter`] receives the events of one run. Its memory per flow is limited: two histograms, and a counter per 100 ms
//! of the run. Tables, `--json`, `[[expect]]` and figures use only the metrics that the meter returns at the end.
//!
//! | metric | definition |
//! | --- | --- |
//! | throughput | bytes that arrived for the first time while the flow was active, over its active time |
//! | utilization | those bytes over the path's capacity to (`up`: from) the device in the active time; at most 1 (see below) |
//! | one-way delay | from the sender handing a packet to the path to its first arrival; delivered packets only |
//! | queueing delay | one-way delay minus the delay of the empty path |
//! | loss rate | packets that were lost, over all packets that were delivered or lost |
//! | power | throughput over the 95th percentile of one-way delay, in Mbit/s per ms |
//! | Jain's index | (Σx)² / (n · Σx²) over the n greedy flows of a direction active together, per 1 s window; then the mean |
//! | throughput per 100 ms | percentiles over the 100 ms intervals that lie wholly in the active time |
//! | completion time, start-up | of a flow's transfers: see [`Transfers`] |
//! | start-up, stalls, bitrate, score | of a flow's adaptive video: see [`Video`] |
//! | share of a state | fraction of the active time that the controller spent in that state |
//! | use of the radio, users of the carrier | see [`RadioUse`] |
//!
//! A path reports the capacity of its narrowest link. While the Internet is the bottleneck, this is the Internet's rate.
//! When the Internet becomes the bottleneck, packets that are already queued at the last hop arrive faster than this
//! rate. Therefore the capacity over the active time is taken as at least the bytes that arrived in it, and utilization
//! is at most 1.
//!
//! Percentiles of delay are computed from a histogram with three significant digits. They are at most 0.1 % above the
//! exact nearest-rank value, and exact to the microsecond below 2 ms. Means are exact.

pub mod course;
mod delay;
mod fairness;
mod flow;
mod radio;
pub mod radio_trace;
#[cfg(test)]
mod tests;
mod transfers;
mod video;

use airpace_core::Direction;
use airpace_event::{Event, Owner};
use airpace_radio::RadioReport;
use airpace_tables::facts::RunFacts;
use serde::{Deserialize, Serialize};

pub use course::{Course, CourseMeter};
pub use delay::Delays;
use fairness::{Fairness, FairnessMeter, Sharer};
pub use fairness::{JainWindow, jain};
use flow::FlowMeter;
pub use flow::{FlowMetrics, Throughput100ms};
use radio::RadioMeter;
pub use radio::{RadioUse, USER_WINDOW};
pub use radio_trace::{RadioTrace, RadioTraceMeter};
pub use transfers::{Times, TransferTimes, Transfers};
pub use video::{SegmentRates, SegmentTimes, Video};

/// Receives the events of a run, and returns the metrics of every flow at the end.
pub struct Meter {
    flows: Vec<FlowMeter>,
    fairness: FairnessMeter,
    radio: RadioMeter,
    carriers: Vec<Carrier>,
}

/// All metrics of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Metrics per flow, in the order of the facts.
    pub flows: Vec<FlowMetrics>,
    /// Jain's index of delivered bytes, for each window of 1 s in which at least two greedy flows of a direction were
    /// active.
    pub jain: Vec<JainWindow>,
    /// Jain's index of the PRBs granted to the devices of greedy flows of a direction, for each window of 1 s with at
    /// least two such devices.
    pub jain_prbs: Vec<JainWindow>,
    /// The same index of the PRBs on the primary carrier that the devices share. Devices with different primary carriers are
    /// not compared.
    ///
    /// The fairness figures of PBE-CC show this index.
    pub jain_primary: Vec<JainWindow>,
    /// The carriers in the events, in ascending order of their numbers.
    pub carriers: Vec<Carrier>,
}

/// A carrier of the cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carrier {
    /// Number of the carrier.
    pub carrier: u8,
    /// Bandwidth of the carrier, in PRB pairs.
    pub prbs: u16,
    /// Slots of a carrier of NR; `None` for a carrier of LTE, which has a slot per subframe in each direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nr: Option<NrSlots>,
}

/// Slots of a carrier of NR during a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NrSlots {
    /// Numerology µ, 0…4: a subframe of 1 ms has 2^µ slots.
    pub numerology: u8,
    /// Number of all slots.
    pub slots: u64,
    /// Number of slots with symbols for downlink data, including special slots.
    pub downlink: u64,
}

impl NrSlots {
    fn count(&mut self, symbols: u8) {
        self.slots += 1;
        self.downlink += u64::from(symbols > 0);
    }
}

impl Carrier {
    /// Number of slots per subframe of 1 ms whose PRBs can carry data of this direction, on average over the run. Of a TDD
    /// pattern, a special slot counts as a downlink slot only. On FDD, all slots count in both directions.
    pub fn slots_per_ms(&self, direction: Direction) -> f64 {
        let Some(nr) = self.nr.filter(|nr| nr.slots > 0) else { return 1.0 };
        let uplink = nr.slots.saturating_sub(nr.downlink);
        let usable = match direction {
            Direction::Downlink => nr.downlink,
            Direction::Uplink if uplink > 0 => uplink,
            Direction::Uplink => nr.slots,
        };
        // The numerology is an untrusted number of a run folder.
        f64::from(1 << nr.numerology.min(4)) * usable as f64 / nr.slots as f64
    }
}

impl Meter {
    /// A meter for a run with these flows.
    pub fn new(facts: &RunFacts) -> Meter {
        Meter {
            flows: facts.flows.iter().map(|flow| FlowMeter::new(flow, facts.duration)).collect(),
            fairness: FairnessMeter::new(facts),
            radio: RadioMeter::new(facts),
            carriers: Vec::new(),
        }
    }

    /// Processes one event. Events must be in order of time. Events of unknown flows and devices are ignored.
    pub fn record(&mut self, event: &Event<'_>) {
        match event {
            Event::Arrived(arrived) => {
                let slot = usize::from(arrived.packet.flow.0);
                if let Some(flow) = self.flows.get_mut(slot) {
                    flow.on_arrived(arrived);
                    self.fairness.on_arrived(slot, arrived);
                    self.radio.on_arrived((flow.device(), flow.direction()), arrived);
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
                    self.see_carrier(report, prbs);
                }
                for (dci, owner) in report.dcis.iter().zip(subframe.owners) {
                    if let Owner::Device(device) = owner {
                        let prbs = dci.prbs.len();
                        self.fairness.on_prbs((*device, dci.direction), report.time, report.carrier.0, prbs);
                    }
                }
                self.radio.on_subframe(subframe);
            }
            Event::Transfer(transfer) => {
                if let Some(flow) = self.flows.get_mut(usize::from(transfer.flow.0)) {
                    flow.on_transfer(transfer);
                }
            }
            Event::Viewed(viewed) => {
                if let Some(flow) = self.flows.get_mut(usize::from(viewed.flow.0)) {
                    flow.on_viewed(viewed);
                }
            }
            Event::Sent(_) | Event::Acked(_) | Event::Lost(_) | Event::Reported(_) => {}
        }
    }

    /// The metrics of every flow.
    pub fn finish(self) -> Measured {
        let sharers: Vec<Sharer> = self
            .flows
            .iter()
            .map(|flow| Sharer {
                device: flow.device(),
                direction: flow.direction(),
                primary: flow.primary(),
                greedy: flow.greedy(),
                active: flow.active().to_vec(),
            })
            .collect();
        let Fairness { bytes: jain, prbs: jain_prbs, primary } = self.fairness.finish(&sharers);
        let metrics = |(flow, sharer): (FlowMeter, &Sharer)| {
            let side = (flow.device(), flow.direction());
            let mut metrics = flow.finish(sharer.mean(&jain));
            let windows = primary.iter().find(|(carrier, _)| Some(*carrier) == sharer.primary);
            let jain_primary = windows.and_then(|(_, windows)| sharer.mean(windows));
            metrics.radio = self.radio.of_flow(side).map(|radio| RadioUse { jain_primary, ..radio });
            metrics
        };
        let flows = self.flows.into_iter().zip(&sharers).map(metrics).collect();
        let jain_primary = primary.into_iter().flat_map(|(_, windows)| windows).collect();
        Measured { flows, jain, jain_prbs, jain_primary, carriers: self.carriers }
    }

    fn see_carrier(&mut self, report: &RadioReport, prbs: u16) {
        let carrier = report.carrier.0;
        let place = match self.carriers.binary_search_by_key(&carrier, |known| known.carrier) {
            Ok(place) => place,
            Err(place) => {
                self.carriers.insert(place, Carrier { carrier, prbs, nr: None });
                place
            }
        };
        // Reports of LTE do not contain the symbols.
        if let Some(symbols) = report.symbols {
            let numerology = report.slot.numerology.mu();
            let of_nr = NrSlots { numerology, ..NrSlots::default() };
            self.carriers[place].nr.get_or_insert(of_nr).count(symbols);
        }
    }
}

/// `value` rounded to six decimals, which is more precise than any metric is meaningful, and short in JSON.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// Nearest-rank quantile: the smallest value for which at least a fraction `q` of the sorted values are not larger.
/// `None` if there are no values.
pub fn nearest_rank<T>(sorted: &[T], q: f64) -> Option<&T> {
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1)
}

/// Quantiles at which a distribution is drawn: every percent, and more above 99 %.
pub fn parts() -> impl Iterator<Item = f64> {
    (0..=99).map(|percent| f64::from(percent) / 100.0).chain([0.995, 0.999, 1.0])
}

/// Distribution of sorted values as (value, fraction of values not above it): every percent, and more in the upper tail.
pub fn cdf(sorted: &[f64]) -> Vec<(f64, f64)> {
    parts().filter_map(|part| Some((significant(*nearest_rank(sorted, part)?), part))).collect()
}

/// Rounds to five significant digits, which is more precise than a figure and short in JSON.
pub fn significant(value: f64) -> f64 {
    // Round with decimal text, so that the result is short when it is printed.
    format!("{value:.4e}").parse().expect("a printed number can be read")
}
