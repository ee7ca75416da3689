//! Means with intervals, ratios, fairness, rank correlation.

use airpace_core::Streams;
use airpace_run::metrics::jain;

use crate::number::Ours;

/// Number of resamples of a bootstrap.
///
/// Chosen: the ends of the interval then have an error of some percent of its length.
const RESAMPLES: usize = 2_000;

/// Mean of independent values, with its 95 % interval by the percentile bootstrap; `None` without values. Two values or fewer
/// have no interval, and neither have equal values.
///
/// Source: Efron 1979, Bootstrap Methods: Another Look at the Jackknife
pub fn mean(values: &[f64]) -> Option<Ours> {
    let value = average(values)?;
    let is_spread = values.len() > 2 && values.iter().any(|one| *one != values[0]);
    Some(Ours { value, interval: is_spread.then(|| bootstrap(values)) })
}

/// Mean of values; `None` without values, or if one is not finite.
pub fn average(values: &[f64]) -> Option<f64> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    mean.is_finite().then_some(mean)
}

fn bootstrap(values: &[f64]) -> (f64, f64) {
    let mut rng = Streams::new(1).stream("bootstrap");
    let count = values.len() as u64;
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| (0..count).map(|_| values[rng.below(count) as usize]).sum::<f64>() / count as f64)
        .collect();
    means.sort_by(f64::total_cmp);
    let at = |share: f64| means[(share * (RESAMPLES - 1) as f64) as usize];
    (at(0.025), at(0.975))
}

/// Median of values; `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    airpace_run::metrics::nearest_rank(&sorted, 0.5).copied()
}

/// Sample standard deviation; `None` with fewer than two values.
pub fn deviation(values: &[f64]) -> Option<f64> {
    let mean = average(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    (values.len() > 1).then(|| libm::sqrt(squares / (values.len() - 1) as f64))
}

/// Jain's index of shares, in percent.
pub fn jain_percent(shares: &[f64]) -> Option<f64> {
    jain(shares).map(|index| 100.0 * index)
}

/// Rank correlation of two lists: 1 if they have the same order, -1 if the reverse one. Ties count half. `None` with fewer
/// than two values.
///
/// Source: Kendall 1938, A New Measure of Rank Correlation
pub fn kendall(one: &[f64], other: &[f64]) -> Option<f64> {
    let count = one.len().min(other.len());
    if count < 2 {
        return None;
    }
    let sign = |from: f64, to: f64| {
        if from < to {
            1
        } else if from > to {
            -1
        } else {
            0
        }
    };
    let pairs = (0..count).flat_map(|first| (first + 1..count).map(move |second| (first, second)));
    let sum: i64 = pairs.map(|(a, b)| sign(one[a], one[b]) * sign(other[a], other[b])).sum();
    Some(sum as f64 / (count * (count - 1) / 2) as f64)
}

/// Correlation of two lists: 1 if one rises linearly with the other, -1 if it falls. `None` with fewer than two values, or if
/// the values of a list are equal.
///
/// Source: Pearson 1895, Note on Regression and Inheritance in the Case of Two Parents
pub fn pearson(one: &[f64], other: &[f64]) -> Option<f64> {
    let count = one.len().min(other.len());
    let (one, other) = (&one[..count], &other[..count]);
    let (one_mean, other_mean) = (average(one)?, average(other)?);
    let (mut products, mut one_squares, mut other_squares) = (0.0, 0.0, 0.0);
    for (a, b) in one.iter().zip(other) {
        let (a, b) = (a - one_mean, b - other_mean);
        products += a * b;
        one_squares += a * a;
        other_squares += b * b;
    }
    let scale = libm::sqrt(one_squares * other_squares);
    (scale > 0.0).then(|| products / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_holds_the_mean_and_narrows_with_more_values() {
        let values: Vec<f64> = (0..10).map(f64::from).collect();
        let few = mean(&values).unwrap();
        assert_eq!(few.value, 4.5);
        let (low, high) = few.interval.unwrap();
        assert!(low > 2.4 && low < 3.2 && high > 5.8 && high < 6.6, "{low} {high}");
        let many: Vec<f64> = (0..400).map(|index| f64::from(index % 10)).collect();
        let (narrow_low, narrow_high) = mean(&many).unwrap().interval.unwrap();
        assert!(narrow_high - narrow_low < (high - low) / 4.0);
        assert_eq!(mean(&values), mean(&values), "the same values give the same interval");
        assert_eq!(mean(&[2.0, 2.0, 2.0]).unwrap().interval, None);
        assert_eq!(mean(&[]), None);
    }

    #[test]
    fn values_correlate() {
        assert_eq!(pearson(&[1.0, 2.0, 3.0], &[5.0, 7.0, 9.0]), Some(1.0));
        assert_eq!(pearson(&[1.0, 2.0, 3.0], &[3.0, 1.0, -1.0]), Some(-1.0));
        assert_eq!(pearson(&[1.0, 2.0, 1.0, 2.0], &[1.0, 1.0, 2.0, 2.0]), Some(0.0));
        assert_eq!(pearson(&[1.0, 1.0], &[1.0, 2.0]), None, "a constant correlates with nothing");
        assert_eq!(pearson(&[1.0], &[1.0]), None);
    }

    #[test]
    fn ranks_agree_or_disagree() {
        assert_eq!(kendall(&[1.0, 2.0, 3.0], &[10.0, 20.0, 30.0]), Some(1.0));
        assert_eq!(kendall(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]), Some(-1.0));
        assert_eq!(kendall(&[1.0], &[1.0]), None);
        assert_eq!(deviation(&[2.0, 4.0]), Some(libm::sqrt(2.0)));
    }
}
