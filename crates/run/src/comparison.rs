//! Comparison of a scenario's schemes as sentences: rate and queueing delay of each scheme.
//!
//! The terminal prints these sentences below the table, and the page shows them at its top.

mod paired;
mod tally;

use airpace_core::count::count;

use crate::Transfers;
use crate::expect::value;
use crate::numbers::{self, Spread};
use crate::summary::{RunSummary, by_scheme, is_under_test};

use paired::Case;
pub use tally::Tally;

/// Minimum rate of the best scheme, relative to the highest rate of all schemes. For transfers: minimum share that
/// arrived, relative to the highest share.
///
/// Chosen: users do not notice 5 % less rate, but notice the additional queueing delay that the last 5 % cost.
const NEAR: f64 = 0.95;

/// Minimum loss rate that a sentence mentions.
///
/// Chosen: from 1 % on, interactive programs suffer.
const NOTABLE_LOSS: f64 = 0.01;

/// Name of the scheme that knows the capacity. It is not a candidate for the best scheme.
const ORACLE: &str = "oracle";

/// Mean share of the Oracle's rate or, if the Oracle did not run, of the path's capacity. 1 means all of that rate.
#[derive(Clone, Copy, Debug)]
struct Used {
    share: f64,
    /// The reference of the share, as the end of a sentence. A share of the Oracle's rate can be above 1, a share of the
    /// path's capacity cannot.
    of_what: &'static str,
}

/// The results of one scheme under test, over its seeds.
#[derive(Debug)]
struct Standing<'a> {
    scheme: &'a str,
    /// For each seed: throughput of all flows under test together, and queueing delay of the flow with the longest delay.
    cases: Vec<Case>,
    /// Share of the available rate that the flow used. `None` if the path has no capacity, the flow is not greedy, or
    /// several flows ran the scheme.
    used: Option<Used>,
    /// 95th percentile of the queueing delay, in ms, of the flow with the longest delay; mean over seeds.
    queueing_p95_ms: Option<f64>,
    /// Mean loss rate, in [0, 1], of the flow with the highest loss rate.
    loss: f64,
    /// Median completion time of transfers, in s; `None` if no transfer was completed.
    completion_s: Option<f64>,
    /// Transfers of the first flow under test that has transfers: (number that arrived, number that were due).
    transfers: Option<(u64, u64)>,
}

/// Sentences that compare `runs`, which must be all runs of one scenario. The best scheme comes first and the Oracle
/// last. Empty if no flow ran a scheme under test.
pub fn sentences(runs: &[&RunSummary]) -> Vec<String> {
    let mut standings: Vec<Standing> = by_scheme(runs)
        .into_iter()
        .filter_map(|(scheme, of_scheme)| Standing::of(scheme, &of_scheme, runs))
        .collect();
    let oracles: Vec<Standing> = standings.extract_if(.., |standing| standing.is_oracle()).collect();
    let transfers = standings.iter().chain(&oracles).any(|standing| standing.transfers.is_some());
    let unit = if transfers { Unit::Completion } else { Unit::Rate };
    if let Some(best) = unit.best(&standings) {
        standings.swap(0, best);
        standings[1..].sort_by(|a, b| unit.goodness(b).total_cmp(&unit.goodness(a)));
    }
    let mut sentences = Vec::new();
    if let Some((best, others)) = standings.split_first() {
        let prefix = if others.is_empty() { String::new() } else { format!("Best here: {}. ", best.scheme) };
        sentences.push(format!("{prefix}{} {}.", best.scheme, unit.text(best, true)));
        let others: Vec<String> = others
            .iter()
            .map(|standing| format!("{} {}", standing.scheme, unit.text(standing, false)))
            .collect();
        if !others.is_empty() {
            sentences.push(format!("{}.", others.join("; ")));
        }
    }
    if let (Some((best, others)), Unit::Rate) = (standings.split_first(), unit) {
        let others: Vec<(&str, Vec<Case>)> =
            others.iter().map(|other| (other.scheme, other.cases.clone())).collect();
        sentences.extend(paired::sentence("Seed by seed", (best.scheme, &best.cases), &others));
    }
    let is_alone = standings.is_empty();
    sentences.extend(oracles.into_iter().map(|mut oracle| {
        // If only the Oracle ran, its share of its own rate is always 1 and is omitted.
        oracle.used = oracle.used.filter(|_| !is_alone);
        format!(
            "{} {}; it is given the path's capacity in advance.",
            oracle.scheme,
            unit.text(&oracle, is_alone)
        )
    }));
    sentences
}

/// Whether a scheme is the Oracle, with any preset and options.
pub fn is_oracle(scheme: &str) -> bool {
    scheme.split([':', '@']).next() == Some(ORACLE)
}

/// Throughput of flow `index` of `runs` relative to the same flow in the Oracle's runs of the same scenario and seeds,
/// which are taken from `all`; mean and deviation over the seeds. 1 means the Oracle's throughput. `None` if the Oracle
/// did not run, or carried nothing.
pub fn share_of_oracle(runs: &[&RunSummary], all: &[&RunSummary], index: usize) -> Option<Spread> {
    let mbps = |run: &RunSummary| run.flows[index].metrics.throughput_mbps;
    let share = |run: &&RunSummary| {
        let oracle = all.iter().find(|other| other.seed == run.seed && is_oracle(&other.scheme))?;
        Some(mbps(run) / mbps(oracle)).filter(|share| share.is_finite())
    };
    Spread::of(runs.iter().map(share))
}

/// The quantity that a scenario compares.
#[derive(Clone, Copy)]
enum Unit {
    /// The rate of flows that have no end.
    Rate,
    /// The completion time of transfers.
    Completion,
}

impl Unit {
    /// Sort key of the schemes: larger is better.
    fn goodness(self, standing: &Standing) -> f64 {
        match self {
            Unit::Rate => standing.rate_mbps(),
            Unit::Completion => -standing.completion_s.unwrap_or(f64::INFINITY),
        }
    }

    /// Index of the best scheme. For rates: the scheme with the shortest queueing delay among those near the highest
    /// rate. For transfers: the scheme with the shortest completion time among those near the largest share that arrived.
    fn best(self, standings: &[Standing]) -> Option<usize> {
        let all = standings.iter().enumerate();
        match self {
            Unit::Rate => {
                let each = standings.iter().map(|it| (it.rate_mbps(), it.queueing_p95_ms));
                best_of_rates(&each.collect::<Vec<_>>())
            }
            Unit::Completion => {
                let most = standings.iter().map(Standing::arrived).fold(0.0, f64::max);
                let near = all.filter(|(_, standing)| standing.arrived() >= NEAR * most);
                let best = near.max_by(|(_, a), (_, b)| self.goodness(a).total_cmp(&self.goodness(b)));
                best.map(|(index, _)| index)
            }
        }
    }

    /// Text about one scheme. The first scheme of a comparison (`is_first`) gets the complete wording.
    fn text(self, standing: &Standing, is_first: bool) -> String {
        let mut text = match self {
            Unit::Rate => standing.rate_text(is_first),
            Unit::Completion => match standing.completion_s {
                Some(seconds) => {
                    let some = match standing.transfers {
                        Some((complete, due)) if complete < due => {
                            format!("completed {complete} of {}, each", count(due, "transfer"))
                        }
                        _ => "completed a transfer".to_owned(),
                    };
                    format!("{some} in {} s in the median", numbers::text(seconds, 3))
                }
                None => "completed no transfer".to_owned(),
            },
        };
        if matches!(self, Unit::Rate)
            && let Some(queue) = standing.queueing_p95_ms
        {
            let what = if is_first { " of queueing delay (95th percentile)" } else { "" };
            text += &format!(" with {} ms{what}", numbers::text(queue, 0));
        }
        if standing.loss >= NOTABLE_LOSS {
            text += &format!(" and lost {} % of its packets", numbers::text(100.0 * standing.loss, 1));
        }
        text
    }
}

/// Index of the best entry of (rate in Mbit/s, queueing delay): the shortest delay among those near the highest rate.
/// `None` if `each` is empty.
fn best_of_rates(each: &[(f64, Option<f64>)]) -> Option<usize> {
    let highest = each.iter().map(|(rate_mbps, _)| *rate_mbps).fold(0.0, f64::max);
    let near = each.iter().enumerate().filter(|(_, (rate_mbps, _))| *rate_mbps >= NEAR * highest);
    let queue = |(_, (_, queue_ms)): &(usize, &(f64, Option<f64>))| queue_ms.unwrap_or(f64::INFINITY);
    near.min_by(|a, b| queue(a).total_cmp(&queue(b))).map(|(index, _)| index)
}

impl<'a> Standing<'a> {
    /// Results of `scheme` from its `runs`. `all` contains all runs of the scenario. `None` if no flow ran the scheme
    /// under test.
    fn of(scheme: &'a str, runs: &[&RunSummary], all: &[&RunSummary]) -> Option<Standing<'a>> {
        let indices: Vec<usize> =
            (0..runs[0].flows.len()).filter(|index| is_under_test(all, *index)).collect();
        let first = &runs[0].flows[*indices.first()?];
        let mean_of = |index: usize, path: &str| {
            Spread::of(runs.iter().map(|run| value(&run.flows[index].metrics, path)))
                .map(|spread| spread.mean)
        };
        let highest = |path: &str| indices.iter().filter_map(|index| mean_of(*index, path)).reduce(f64::max);
        let case = |run: &&RunSummary| {
            let flows = || indices.iter().map(|index| &run.flows[*index].metrics);
            let queues = flows().map(|metrics| metrics.queueing_delay_ms.p95);
            Case {
                condition: run.seed,
                rate_mbps: flows().map(|metrics| metrics.throughput_mbps).sum(),
                queueing_p95_ms: queues
                    .collect::<Option<Vec<f64>>>()
                    .and_then(|queues| queues.into_iter().reduce(f64::max)),
            }
        };
        let is_alone = indices.len() == 1 && first.greedy;
        let transfers = indices.iter().find_map(|index| {
            Transfers::pooled(runs.iter().map(|run| run.flows[*index].metrics.transfers.as_ref()))
        });
        Some(Standing {
            scheme,
            cases: runs.iter().map(case).collect(),
            used: share_of_oracle(runs, all, indices[0])
                .map(|spread| Used { share: spread.mean, of_what: " of the Oracle's rate" })
                .or_else(|| {
                    let share = mean_of(indices[0], "utilization")?;
                    Some(Used { share, of_what: " of what was possible" })
                })
                .filter(|_| is_alone),
            queueing_p95_ms: highest("queueing_delay_ms.p95"),
            loss: highest("loss_rate").unwrap_or(0.0),
            completion_s: transfers.as_ref().and_then(|transfers| transfers.completion_s.p50),
            transfers: transfers.map(|transfers| (transfers.complete, transfers.due)),
        })
    }

    fn is_oracle(&self) -> bool {
        is_oracle(self.scheme)
    }

    /// Share of the due transfers that arrived.
    fn arrived(&self) -> f64 {
        self.transfers.map_or(0.0, |(complete, due)| complete as f64 / due.max(1) as f64)
    }

    fn rate_mbps(&self) -> f64 {
        self.cases.iter().map(|case| case.rate_mbps).sum::<f64>() / self.cases.len() as f64
    }

    /// Text of the rate, such as "carried 98 % of the Oracle's rate" or "carried 45.3 Mbit/s" for the first scheme of a
    /// comparison (`is_first`), and "95 %" or "40.0 Mbit/s" for the other schemes.
    fn rate_text(&self, is_first: bool) -> String {
        if self.rate_mbps() == 0.0 {
            return "carried nothing".to_owned();
        }
        let (rate, of_what) = match self.used {
            Some(Used { share, of_what }) => (format!("{} %", numbers::text(100.0 * share, 0)), of_what),
            None => (format!("{} Mbit/s", numbers::text(self.rate_mbps(), 1)), ""),
        };
        if is_first { format!("carried {rate}{of_what}") } else { rate }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::FlowMetrics;

    /// A run of one phone, and a rival that is faster than the phone.
    fn run(scheme: &str, seed: u64, rate_mbps: f64, queue_ms: f64) -> RunSummary {
        let metrics = |rate_mbps: f64, queue_ms: f64| {
            let mut metrics = FlowMetrics {
                throughput_mbps: rate_mbps,
                utilization: Some(rate_mbps / 50.0),
                loss_rate: Some(if queue_ms > 500.0 { 0.031 } else { 0.0 }),
                ..FlowMetrics::default()
            };
            metrics.queueing_delay_ms.p95 = Some(queue_ms);
            metrics
        };
        let flow = |name: &str, index: u16, scheme: &str, metrics: &FlowMetrics| {
            let mut flow = serde_json::json!({
                "flow": name, "index": index, "device": index, "scheme": scheme, "greedy": true,
            });
            let numbers = serde_json::to_value(metrics).unwrap();
            flow.as_object_mut().unwrap().extend(numbers.as_object().unwrap().clone());
            flow
        };
        let flows = [
            flow("rival", 0, "cbr:rate_mbps=60", &metrics(60.0, 1.0)),
            flow("phone", 1, scheme, &metrics(rate_mbps, queue_ms)),
        ];
        serde_json::from_value(serde_json::json!({
            "scenario": "cell", "scheme": scheme, "seed": seed, "duration_s": 10.0, "flows": flows,
            "jain": [], "jain_prbs": [], "carriers": [],
        }))
        .unwrap()
    }

    fn words(runs: &[RunSummary]) -> String {
        sentences(&runs.iter().collect::<Vec<_>>()).join(" ")
    }

    #[test]
    fn the_best_scheme_comes_first_and_the_oracle_last() {
        let runs = [
            run("oracle", 1, 49.5, 18.0),
            run("copa", 1, 24.0, 12.0),
            run("bbr", 1, 49.2, 160.0),
            run("cubic", 1, 49.9, 640.0),
            run("pbe", 1, 49.0, 20.0),
        ];
        assert_eq!(
            words(&runs),
            "Best here: pbe. pbe carried 99 % of the Oracle's rate with 20 ms of queueing delay (95th percentile). \
             cubic 101 % with 640 ms and lost 3.1 % of its packets; bbr 99 % with 160 ms; copa 48 % with 12 ms. \
             oracle 100 % with 18 ms; it is given the path's capacity in advance."
        );
        // In competition with rivals, a scheme may carry more than the Oracle did.
        let runs = [run("oracle", 1, 40.0, 18.0), run("bbr", 1, 41.2, 60.0)];
        assert!(
            words(&runs).starts_with("bbr carried 103 % of the Oracle's rate with 60 ms"),
            "{}",
            words(&runs)
        );
    }

    #[test]
    fn a_share_of_the_oracle_is_that_of_the_same_seed_and_flow() {
        let runs = [
            run("oracle:slack_ms=5", 1, 40.0, 18.0),
            run("oracle:slack_ms=5", 2, 20.0, 18.0),
            run("pbe", 1, 30.0, 20.0),
            run("pbe", 2, 20.0, 20.0),
        ];
        let all: Vec<&RunSummary> = runs.iter().collect();
        let share = share_of_oracle(&all[2..], &all, 1).unwrap();
        assert_eq!(share.mean, 0.875, "of 0.75 and 1");
        assert_eq!(share_of_oracle(&all[2..], &all[2..], 1), None, "the Oracle did not run");
    }

    #[test]
    fn five_seeds_are_compared_one_by_one() {
        let rates = [40.0, 20.0, 45.0, 10.0, 30.0];
        let seeds = || rates.iter().zip(1..);
        let mut runs: Vec<RunSummary> = seeds().map(|(rate, seed)| run("pbe", seed, *rate, 20.0)).collect();
        runs.extend(seeds().map(|(rate, seed)| run("bbr", seed, 0.98 * rate, 150.0 + seed as f64)));
        let said = words(&runs);
        let paired = "Seed by seed, with 95 % intervals: bbr has 0.98 of pbe's rate and 7.65 (7.59 … 7.71) of its queueing \
                      delay.";
        assert!(said.contains(paired), "{said}");
        assert!(!words(&runs[1..]).contains("Seed by seed"), "four pairs are too few");
    }

    #[test]
    fn one_scheme_is_described_and_not_called_the_best() {
        assert_eq!(
            words(&[run("bbr:rtt=1", 1, 40.0, 76.4)]),
            "bbr:rtt=1 carried 80 % of what was possible with 76 ms of queueing delay (95th percentile)."
        );
        assert_eq!(
            words(&[run("oracle", 1, 49.5, 18.0)]),
            "oracle carried 49.5 Mbit/s with 18 ms of queueing delay (95th percentile); it is given the path's \
             capacity in advance."
        );
    }

    #[test]
    fn a_scheme_that_carried_nothing_is_no_candidate() {
        let runs = [run("dead", 1, 0.0, 0.0), run("bbr", 1, 30.0, 90.0)];
        assert!(words(&runs).starts_with("Best here: bbr."), "{}", words(&runs));
        assert!(words(&runs).contains("dead carried nothing"), "{}", words(&runs));
    }

    #[test]
    fn transfers_that_never_arrive_are_no_success() {
        let mut runs = [run("few", 1, 1.0, 10.0), run("all", 1, 1.0, 10.0)];
        for (run, (due, complete, took_s)) in runs.iter_mut().zip([(400, 80, 0.1), (400, 400, 0.3)]) {
            let one = |number| crate::metrics::TransferTimes {
                completion_s: (number < complete).then_some(took_s),
                ..crate::metrics::TransferTimes::default()
            };
            run.flows[1].metrics.transfers = Some(Transfers::of(due, (0..complete + 5).map(one).collect()));
        }
        let said = words(&runs);
        assert!(said.starts_with("Best here: all."), "{said}");
        assert!(said.contains("few completed 80 of 400 transfers, each in 0.100 s in the median"), "{said}");
    }

    #[test]
    fn a_rival_that_runs_the_scheme_under_test_is_a_rival_still() {
        let mut runs = [run("cubic", 1, 20.0, 90.0), run("bbr", 1, 40.0, 90.0)];
        for run in &mut runs {
            run.flows[0].scheme = "cubic".to_owned();
        }
        let said = words(&runs);
        assert!(said.starts_with("Best here: bbr. bbr carried 80 %"), "{said}");
        assert!(said.ends_with("cubic 40 % with 90 ms."), "without the rival's 60 Mbit/s: {said}");
    }

    #[test]
    fn a_rival_is_not_compared() {
        let mut alone = run("pbe", 1, 49.0, 20.0);
        alone.flows.truncate(1);
        assert!(words(&[alone]).is_empty(), "only the rival ran");
    }
}
