//! Medians, fairness, correlation.

use airpace_run::metrics::jain;
use airpace_run::statistics::mean;

/// Median of values; `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    airpace_run::metrics::nearest_rank(&sorted, 0.5).copied()
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
/// Source: Rodgers and Nicewander 1988, Thirteen Ways to Look at the Correlation Coefficient
pub fn pearson(one: &[f64], other: &[f64]) -> Option<f64> {
    let count = one.len().min(other.len());
    let (one, other) = (&one[..count], &other[..count]);
    let (one_mean, other_mean) = (mean(one)?, mean(other)?);
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
    }
}
