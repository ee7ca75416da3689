//! Statistics that figures show: percentiles and the empirical distribution.

/// Five percentiles of a quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percentiles {
    /// 10th percentile.
    pub p10: f64,
    /// 25th percentile.
    pub p25: f64,
    /// Median.
    pub p50: f64,
    /// 75th percentile.
    pub p75: f64,
    /// 90th percentile.
    pub p90: f64,
}

impl Percentiles {
    /// Percentiles of the finite values: linear interpolation between the sorted values. `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Percentiles> {
        let sorted = sorted(values);
        let last = sorted.len().checked_sub(1)?;
        let at = |share: f64| {
            let place = share * last as f64;
            let below = place.floor();
            let (low, high) = (sorted[below as usize], sorted[(below as usize + 1).min(last)]);
            // Weights instead of a difference, which could overflow.
            low * (1.0 - (place - below)) + high * (place - below)
        };
        Some(Percentiles { p10: at(0.1), p25: at(0.25), p50: at(0.5), p75: at(0.75), p90: at(0.9) })
    }

    /// A quantity with one known value.
    pub fn exact(value: f64) -> Percentiles {
        Percentiles { p10: value, p25: value, p50: value, p75: value, p90: value }
    }

    pub(crate) fn all(&self) -> [f64; 5] {
        [self.p10, self.p25, self.p50, self.p75, self.p90]
    }
}

/// The empirical distribution of the finite values, as points of a stepped line: each distinct value, with the share
/// (0 to 1) of values up to it. The first point has the smallest value and the share 0.
pub fn empirical_cdf(values: &[f64]) -> Vec<(f64, f64)> {
    let sorted = sorted(values);
    let mut points: Vec<(f64, f64)> = sorted.first().map(|first| (*first, 0.0)).into_iter().collect();
    for (index, value) in sorted.iter().enumerate() {
        if sorted.get(index + 1) != Some(value) {
            points.push((*value, (index + 1) as f64 / sorted.len() as f64));
        }
    }
    points
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_lie_between_sorted_values() {
        let values: Vec<f64> = (0..=10).rev().map(f64::from).chain([f64::NAN, f64::INFINITY]).collect();
        let found = Percentiles::of(&values).expect("there are values");
        assert_eq!(found.all(), [1.0, 2.5, 5.0, 7.5, 9.0]);
        assert_eq!(Percentiles::of(&[f64::NAN]), None);
        assert_eq!(Percentiles::of(&[3.0]), Some(Percentiles::exact(3.0)));
        let huge = Percentiles::of(&[-1e308, 1e308]).expect("there are values");
        assert!(huge.all().iter().all(|value| value.is_finite()), "no overflow: {huge:?}");
    }

    #[test]
    fn a_distribution_rises_from_0_to_1_once_per_distinct_value() {
        let points = empirical_cdf(&[3.0, 1.0, f64::NAN, 3.0, 2.0]);
        assert_eq!(points, [(1.0, 0.0), (1.0, 0.25), (2.0, 0.5), (3.0, 1.0)]);
        assert!(empirical_cdf(&[f64::INFINITY]).is_empty());
    }
}
