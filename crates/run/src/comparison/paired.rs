//! Comparison of two schemes by pairs of runs under the same conditions: the same seed, or the same point of a sweep.
//!
//! What a condition does to both schemes of a pair alike cancels in their ratio, so pairs show differences that are smaller
//! than the deviation over seeds.

use std::collections::BTreeMap;

use crate::statistics::Estimate;

/// Minimum number of pairs that are compared: the number from which on an [`Estimate`] has an interval.
const FEWEST: usize = 5;

/// The result of a scheme under one condition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    /// The condition: a seed or a point.
    pub(super) condition: u64,
    /// Throughput in Mbit/s.
    pub(super) rate_mbps: f64,
    /// 95th percentile of the queueing delay in ms.
    pub(super) queueing_p95_ms: Option<f64>,
}

/// Ratios of a scheme's results to those of a reference.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ratios {
    rate: Estimate,
    /// `None` if a run has no queueing delay, or one of 0.
    queueing: Option<Estimate>,
}

/// The sentence that compares schemes with a reference, both given by name and cases. `pairing` says what a pair has in
/// common, as in "Seed by seed". `None` with fewer than five pairs.
pub(super) fn sentence(
    pairing: &str,
    (reference, of_reference): (&str, &[Case]),
    others: &[(&str, Vec<Case>)],
) -> Option<String> {
    let mut text = String::new();
    for (scheme, cases) in others {
        let Some(Ratios { rate, queueing }) = ratios(cases, of_reference) else { continue };
        let is_first = text.is_empty();
        text += if is_first { "" } else { "; " };
        text += &match is_first {
            true => format!("{scheme} has {rate} of {reference}'s rate"),
            false => format!("{scheme} {rate}"),
        };
        if let Some(queueing) = queueing {
            text += &match is_first {
                true => format!(" and {queueing} of its queueing delay"),
                false => format!(" and {queueing}"),
            };
        }
    }
    (!text.is_empty()).then(|| format!("{pairing}, with 95 % intervals: {text}."))
}

/// Geometric means of the ratios over all conditions that both have. `None` if these are too few, or if a scheme carried
/// nothing.
///
/// Chosen: geometric, so that the ratio of one scheme to another is the inverse of the reverse ratio.
fn ratios(cases: &[Case], of_reference: &[Case]) -> Option<Ratios> {
    let by_condition: BTreeMap<u64, &Case> = of_reference.iter().map(|case| (case.condition, case)).collect();
    let pairs: Vec<(&Case, &Case)> =
        cases.iter().filter_map(|case| Some((case, *by_condition.get(&case.condition)?))).collect();
    if pairs.len() < FEWEST {
        return None;
    }
    let geometric = |ratio: &dyn Fn(&Case, &Case) -> Option<f64>| {
        Estimate::geometric(
            &pairs.iter().map(|(one, other)| ratio(one, other)).collect::<Option<Vec<f64>>>()?,
        )
    };
    Some(Ratios {
        rate: geometric(&|one, other| Some(one.rate_mbps / other.rate_mbps))?,
        queueing: geometric(&|one, other| Some(one.queueing_p95_ms? / other.queueing_p95_ms?)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cases(rates: &[f64], queue_ms: f64) -> Vec<Case> {
        let case = |(index, rate_mbps): (usize, &f64)| Case {
            condition: index as u64,
            rate_mbps: *rate_mbps,
            queueing_p95_ms: (queue_ms > 0.0).then_some(queue_ms * rate_mbps),
        };
        rates.iter().enumerate().map(case).collect()
    }

    const RATES: [f64; 6] = [10.0, 20.0, 40.0, 15.0, 5.0, 30.0];

    #[test]
    fn pairs_show_a_difference_far_below_the_deviation_over_seeds() {
        let slower: Vec<f64> =
            RATES.iter().enumerate().map(|(at, rate)| rate * (0.97 + 0.002 * at as f64)).collect();
        let Ratios { rate, queueing } = ratios(&cases(&slower, 3.0), &cases(&RATES, 1.0)).unwrap();
        let (low, high) = rate.interval.unwrap();
        assert!(low > 0.969 && high < 0.981 && low < rate.value && rate.value < high, "{rate:?}");
        assert!((queueing.unwrap().value / rate.value - 3.0).abs() < 1e-9);
        let reverse = ratios(&cases(&RATES, 1.0), &cases(&slower, 3.0)).unwrap();
        assert!((reverse.rate.value * rate.value - 1.0).abs() < 1e-12);
    }

    #[test]
    fn only_common_conditions_are_compared_and_few_are_not() {
        assert_eq!(ratios(&cases(&RATES[..4], 1.0), &cases(&RATES, 1.0)), None, "four pairs");
        let most = ratios(&cases(&RATES[..5], 1.0), &cases(&RATES, 1.0)).unwrap();
        assert_eq!((most.rate.value, most.rate.interval), (1.0, None), "five equal pairs");
        assert_eq!(ratios(&cases(&RATES, 0.0), &cases(&RATES, 1.0)).unwrap().queueing, None);
        assert_eq!(ratios(&cases(&[0.0; 6], 1.0), &cases(&RATES, 1.0)), None, "it carried nothing");
    }

    #[test]
    fn a_sentence_names_the_reference_once() {
        let reference = cases(&RATES, 1.0);
        let half: Vec<f64> = RATES.iter().map(|rate| rate / 2.0).collect();
        let others = [("bbr", cases(&half, 8.0)), ("copa", cases(&RATES, 0.0)), ("few", vec![])];
        assert_eq!(
            sentence("Seed by seed", ("pbe", &reference), &others).unwrap(),
            "Seed by seed, with 95 % intervals: bbr has 0.5 of pbe's rate and 4 of its queueing delay; copa 1."
        );
        assert_eq!(sentence("Seed by seed", ("pbe", &reference), &others[2..]), None);
    }
}
