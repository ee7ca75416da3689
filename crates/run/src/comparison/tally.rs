//! Comparison of schemes over the points of a sweep.

use std::collections::{BTreeMap, BTreeSet};

use airpace_core::count::count;

use super::paired::{self, Case};
use super::{best_of_rates, is_oracle};
use crate::flows::FlowRow;

/// Counts at how many points of a sweep each scheme is best.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    schemes: Vec<String>,
    /// Sums of the results, by point and then by scheme.
    points: BTreeMap<u64, Vec<Sums>>,
}

/// Sums over the seeds of one point.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    runs: u32,
    rate_mbps: f64,
    queueing_ms: f64,
    /// Number of runs with a queueing delay.
    queued: u32,
}

impl Tally {
    /// An empty tally for these schemes.
    pub fn of(schemes: &[String]) -> Tally {
        Tally { schemes: schemes.to_vec(), points: BTreeMap::new() }
    }

    /// Adds a run of a scheme (by index) at a point, by the first flow that ran this scheme; `own` has the indices of the flows
    /// with a scheme of their own.
    pub fn add_run(&mut self, point: u64, scheme: usize, flows: &[FlowRow], own: &BTreeSet<u16>) {
        let Some(first) = flows.iter().find(|flow| !own.contains(&flow.index)) else { return };
        if let Some(rate_mbps) = first.value("throughput_mbps") {
            self.add(point, scheme, rate_mbps, first.value("queueing_delay_ms.p95"));
        }
    }

    /// Adds a run of a scheme at a point: rate in Mbit/s, and 95th percentile of the queueing delay in ms.
    fn add(&mut self, point: u64, scheme: usize, rate_mbps: f64, queueing_p95_ms: Option<f64>) {
        let at_point = self.points.entry(point).or_insert_with(|| vec![Sums::default(); self.schemes.len()]);
        let sums = &mut at_point[scheme];
        sums.runs += 1;
        sums.rate_mbps += rate_mbps;
        sums.queued += u32::from(queueing_p95_ms.is_some());
        sums.queueing_ms += queueing_p95_ms.unwrap_or_default();
    }

    /// The tally as sentences; empty if fewer than two schemes remain without the Oracle. The first names the points at which
    /// each scheme is best, the second compares the schemes with the one that is best at most points.
    pub fn sentences(&self) -> Vec<String> {
        let judged: Vec<usize> =
            (0..self.schemes.len()).filter(|&at| !is_oracle(&self.schemes[at])).collect();
        if judged.len() < 2 || self.points.is_empty() {
            return Vec::new();
        }
        let mut wins = vec![0; judged.len()];
        for sums in self.points.values() {
            let mean = |&at: &usize| (sums[at].rate_mbps(), sums[at].queueing_p95_ms());
            if let Some(best) = best_of_rates(&judged.iter().map(mean).collect::<Vec<_>>()) {
                wins[best] += 1;
            }
        }
        let mut order: Vec<usize> = (0..judged.len()).collect();
        order.sort_by_key(|&at| std::cmp::Reverse(wins[at]));
        let winners = order.iter().filter(|&&at| wins[at] > 0);
        let each = winners.map(|&at| format!("{} at {}", self.schemes[judged[at]], wins[at]));
        let points = count(self.points.len() as u64, "point");
        let best = format!(
            "Best of {points}: {} (within 5 % of the highest rate, the shortest queueing delay).",
            each.collect::<Vec<_>>().join(", ")
        );
        let mut each = order.iter().map(|&at| (self.schemes[judged[at]].as_str(), self.cases(judged[at])));
        let Some((name, reference)) = each.next() else { return vec![best] };
        let others: Vec<(&str, Vec<Case>)> = each.collect();
        let paired = paired::sentence("Point by point", (name, &reference), &others);
        std::iter::once(best).chain(paired).collect()
    }

    /// Means over the seeds of each point at which the scheme ran.
    fn cases(&self, scheme: usize) -> Vec<Case> {
        let ran = self.points.iter().filter(|(_, sums)| sums[scheme].runs > 0);
        ran.map(|(point, sums)| Case {
            condition: *point,
            rate_mbps: sums[scheme].rate_mbps(),
            queueing_p95_ms: sums[scheme].queueing_p95_ms(),
        })
        .collect()
    }
}

impl Sums {
    fn rate_mbps(self) -> f64 {
        self.rate_mbps / f64::from(self.runs.max(1))
    }

    fn queueing_p95_ms(self) -> Option<f64> {
        (self.queued > 0).then(|| self.queueing_ms / f64::from(self.queued))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_counts_the_points_at_which_each_scheme_is_best() {
        let mut tally = Tally::of(&["bbr", "pbe", "oracle"].map(str::to_owned));
        for (point, pbe_mbps) in [(0, 49.0), (1, 48.0), (2, 30.0)] {
            tally.add(point, 0, 49.5, Some(160.0));
            tally.add(point, 1, pbe_mbps, Some(20.0));
            tally.add(point, 2, 50.0, Some(1.0));
        }
        assert_eq!(
            tally.sentences(),
            [
                "Best of 3 points: pbe at 2, bbr at 1 (within 5 % of the highest rate, the shortest queueing delay)."
            ]
        );
        assert!(
            Tally::of(&["bbr", "oracle"].map(str::to_owned)).sentences().is_empty(),
            "nothing is compared"
        );
    }
    #[test]
    fn five_points_are_compared_one_by_one() {
        let mut tally = Tally::of(&["bbr", "pbe"].map(str::to_owned));
        for (point, mbps) in [(0, 50.0), (1, 20.0), (2, 5.0), (3, 70.0), (4, 10.0)] {
            for seed in 0..2 {
                tally.add(point, 0, mbps + f64::from(seed), Some(100.0));
                tally.add(point, 1, mbps + f64::from(seed), Some(25.0));
            }
        }
        let paired =
            "Point by point, with 95 % intervals: bbr has 1 of pbe's rate and 4 of its queueing delay.";
        assert_eq!(tally.sentences()[1], paired);
    }
}
