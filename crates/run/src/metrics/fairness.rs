//! Jain's index over windows of one second.

use airpace_core::{DeviceId, Direction, Time};
use airpace_event::{Arrived, Fate};
use airpace_tables::direction::{self, is_down};
use airpace_tables::facts::{FlowFacts, RunFacts, Span};
use serde::{Deserialize, Serialize};

use super::rounded;

/// Jain's fairness index of these shares: 1 if all shares are equal, 1/n if one share is everything. `None` if all shares
/// are zero or there are none.
///
/// ```text
/// J = (Σ xᵢ)² / (n · Σ xᵢ²)
/// ```
///
/// Source: Jain, Chiu, Hawe, "A Quantitative Measure of Fairness", DEC-TR-301, 1984
pub fn jain(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    (squares > 0.0).then(|| (sum * sum / (shares.len() as f64 * squares)).min(1.0))
}

/// Jain's index of one window of 1 s.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct JainWindow {
    /// Start of the window, in seconds.
    pub time_s: f64,
    /// The index, in (0, 1].
    pub jain: f64,
    /// Number of flows or devices among which the index is computed.
    pub sharers: u16,
    /// Direction of these flows. JSON omits this field if its value is `down`.
    #[serde(with = "airpace_tables::direction", default, skip_serializing_if = "is_down")]
    pub direction: Direction,
}

/// A device and a direction.
pub(super) type Side = (DeviceId, Direction);

/// Counts bytes per flow, and PRBs per device and direction, in windows of 1 s.
pub(super) struct FairnessMeter {
    bytes: Vec<Vec<u64>>,
    /// By device and direction, in ascending order: granted PRBs per window.
    sides: Vec<SharedPrbs>,
    windows: usize,
}

/// PRBs that a device was granted in one direction, per window.
struct SharedPrbs {
    side: Side,
    /// Number of the device's primary carrier, if the last hop is a cell.
    primary: Option<u8>,
    all: Vec<u64>,
    on_primary: Vec<u64>,
}

impl FairnessMeter {
    pub(super) fn new(facts: &RunFacts) -> FairnessMeter {
        let windows = (facts.duration.as_nanos() / 1_000_000_000) as usize;
        let side = |flow: &FlowFacts| ((flow.device, flow.direction), flow.primary);
        let mut sides: Vec<(Side, Option<u8>)> = facts.flows.iter().map(side).collect();
        sides.sort_unstable();
        sides.dedup();
        FairnessMeter {
            bytes: vec![vec![0; windows]; facts.flows.len()],
            sides: sides
                .into_iter()
                .map(|(side, primary)| SharedPrbs {
                    side,
                    primary,
                    all: vec![0; windows],
                    on_primary: vec![0; windows],
                })
                .collect(),
            windows,
        }
    }

    pub(super) fn on_arrived(&mut self, slot: usize, arrived: &Arrived) {
        if arrived.fate == Fate::Delivered
            && !arrived.duplicate
            && let Some(bytes) = self.bytes[slot].get_mut(window_of(arrived.time))
        {
            *bytes += arrived.packet.bytes.0;
        }
    }

    pub(super) fn on_prbs(&mut self, side: Side, time: Time, carrier: u8, prbs: u16) {
        let window = window_of(time);
        if window < self.windows
            && let Ok(place) = self.sides.binary_search_by_key(&side, |known| known.side)
        {
            let shared = &mut self.sides[place];
            shared.all[window] += u64::from(prbs);
            shared.on_primary[window] += if shared.primary == Some(carrier) { u64::from(prbs) } else { 0 };
        }
    }

    /// Jain's indices of the windows. `sharers` determine which flows take part in which windows.
    pub(super) fn finish(&self, sharers: &[Sharer]) -> Fairness {
        let bytes = self.windows_of(|window, direction| {
            let there = (0..sharers.len()).filter(|slot| sharers[*slot].takes_part(window, direction));
            there.map(|slot| self.bytes[slot][window] as f64).collect()
        });
        let is_there = |window, direction, side: Side| {
            let takes_part =
                |sharer: &Sharer| sharer.device == side.0 && sharer.takes_part(window, direction);
            side.1 == direction && sharers.iter().any(takes_part)
        };
        let prbs = self.windows_of(|window, direction| {
            let sides = self.sides.iter().filter(|shared| is_there(window, direction, shared.side));
            sides.map(|shared| shared.all[window] as f64).collect()
        });
        let mut primaries: Vec<u8> = self.sides.iter().filter_map(|shared| shared.primary).collect();
        primaries.sort_unstable();
        primaries.dedup();
        let on_primary = |carrier: u8| {
            let windows = self.windows_of(|window, direction| {
                let sides = self.sides.iter().filter(|shared| {
                    shared.primary == Some(carrier) && is_there(window, direction, shared.side)
                });
                sides.map(|shared| shared.on_primary[window] as f64).collect()
            });
            (carrier, windows)
        };
        Fairness { bytes, prbs, primary: primaries.into_iter().map(on_primary).collect() }
    }

    /// The windows of the downlink, then the windows of the uplink. Flows of different directions do not share capacity.
    fn windows_of(&self, shares_in: impl Fn(usize, Direction) -> Vec<f64>) -> Vec<JainWindow> {
        let index = |window, direction| {
            let shares = shares_in(window, direction);
            let jain = rounded(jain(&shares).filter(|_| shares.len() >= 2)?);
            Some(JainWindow { time_s: window as f64, jain, sharers: shares.len() as u16, direction })
        };
        let windows = |direction| (0..self.windows).filter_map(move |window| index(window, direction));
        direction::BOTH.into_iter().flat_map(windows).collect()
    }
}

/// Properties of a flow that the fairness index needs.
pub(super) struct Sharer {
    pub(super) device: DeviceId,
    pub(super) direction: Direction,
    pub(super) primary: Option<u8>,
    pub(super) greedy: bool,
    pub(super) active: Vec<Span>,
}

impl Sharer {
    /// Whether the flow has this direction, is greedy, and is active for the whole window.
    fn takes_part(&self, window: usize, direction: Direction) -> bool {
        let window = Span { start: Time::from_secs(window as u64), end: Time::from_secs(window as u64 + 1) };
        self.greedy && self.direction == direction && self.active.iter().any(|span| span.covers(window))
    }

    /// Mean index over the windows in which the flow takes part.
    pub(super) fn mean(&self, windows: &[JainWindow]) -> Option<f64> {
        let its: Vec<f64> = windows
            .iter()
            .filter(|window| {
                window.direction == self.direction && self.takes_part(window.time_s as usize, self.direction)
            })
            .map(|window| window.jain)
            .collect();
        (!its.is_empty()).then(|| rounded(its.iter().sum::<f64>() / its.len() as f64))
    }
}

/// Jain's indices of a run.
pub(super) struct Fairness {
    /// Index of delivered bytes, over at least two greedy flows of a direction that are active for the whole window.
    pub(super) bytes: Vec<JainWindow>,
    /// Index of granted PRBs, over at least two devices with greedy flows that are active for the whole window.
    pub(super) prbs: Vec<JainWindow>,
    /// The index of the PRBs on a primary carrier, by number of the carrier.
    pub(super) primary: Vec<(u8, Vec<JainWindow>)>,
}

fn window_of(time: Time) -> usize {
    (time.as_nanos() / 1_000_000_000) as usize
}
