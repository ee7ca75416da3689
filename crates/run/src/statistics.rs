//! Means of independent values with intervals.

use std::fmt;

use airpace_core::Streams;
use serde::Serialize;

/// Minimum number of values of an interval.
///
/// Chosen: resamples of fewer than five values have too few different means for a percentile of 2.5 %.
const FEWEST: usize = 5;

/// Maximum number of values that are resampled. More values have the interval of the normal distribution, because their mean
/// is nearly normal.
const MOST_RESAMPLED: usize = 1_000;

/// Number of resamples of a bootstrap.
///
/// Chosen: the ends of the interval then have an error of some percent of its length.
const RESAMPLES: usize = 2_000;

/// 97.5th percentile of the normal distribution, in standard deviations.
const NORMAL_P97_5: f64 = 1.959_964;

/// Mean of independent values, with the interval that holds the mean with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Mean.
    pub value: f64,
    /// Lower and upper end of the interval; `None` for fewer than five values, or if all values are equal.
    pub interval: Option<(f64, f64)>,
}

impl Estimate {
    /// The mean of `values` with its interval by the percentile bootstrap; `None` without values, or if a value is not finite.
    /// The same values give the same interval.
    ///
    /// Source: Efron 1979, Bootstrap Methods: Another Look at the Jackknife
    pub fn of(values: &[f64]) -> Option<Estimate> {
        let value = mean(values)?;
        let is_spread = values.len() >= FEWEST && values.iter().any(|one| *one != values[0]);
        let interval = is_spread.then(|| match values.len() > MOST_RESAMPLED {
            true => normal(values, value),
            false => bootstrap(values),
        });
        Some(Estimate { value, interval })
    }

    /// The geometric mean of `ratios` with its interval; `None` without ratios, or if a ratio is not positive and finite. The
    /// inverse ratios have the inverse mean.
    pub fn geometric(ratios: &[f64]) -> Option<Estimate> {
        let logarithms: Vec<f64> = ratios.iter().map(|ratio| libm::log(*ratio)).collect();
        let Estimate { value, interval } = Estimate::of(&logarithms)?;
        let interval = interval.map(|(low, high)| (libm::exp(low), libm::exp(high)));
        Some(Estimate { value: libm::exp(value), interval })
    }

    /// A value that is no mean over several ones.
    pub fn single(value: f64) -> Estimate {
        Estimate { value, interval: None }
    }
}

/// Mean of values; `None` without values, or if one is not finite.
pub fn mean(values: &[f64]) -> Option<f64> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    mean.is_finite().then_some(mean)
}

/// Sample standard deviation; `None` for fewer than two values.
pub fn deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    (values.len() > 1).then(|| libm::sqrt(squares / (values.len() - 1) as f64))
}

fn normal(values: &[f64], mean: f64) -> (f64, f64) {
    let error = deviation(values).unwrap_or(0.0) / libm::sqrt(values.len() as f64);
    (mean - NORMAL_P97_5 * error, mean + NORMAL_P97_5 * error)
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

/// A number with three significant digits, as a person writes it; a dash if it is not finite.
pub fn three_digits(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = 2 - (libm::floor(libm::log10(value.abs())) as i32);
    let decimals = digits.clamp(0, 6) as usize;
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&three_digits(self.value))?;
        match self.interval.map(|(low, high)| (three_digits(low), three_digits(high))) {
            Some((low, high)) if low != high => write!(f, " ({low} … {high})"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_holds_the_mean_and_narrows_with_more_values() {
        let values: Vec<f64> = (0..10).map(f64::from).collect();
        let few = Estimate::of(&values).unwrap();
        assert_eq!(few.value, 4.5);
        let (low, high) = few.interval.unwrap();
        assert!(low > 2.4 && low < 3.2 && high > 5.8 && high < 6.6, "{low} {high}");
        let many: Vec<f64> = (0..400).map(|index| f64::from(index % 10)).collect();
        let (narrow_low, narrow_high) = Estimate::of(&many).unwrap().interval.unwrap();
        assert!(narrow_high - narrow_low < (high - low) / 4.0);
        assert_eq!(Estimate::of(&values), Estimate::of(&values), "the same values give the same interval");
    }

    #[test]
    fn few_or_equal_values_have_no_interval() {
        assert_eq!(Estimate::of(&[1.0, 2.0, 3.0, 4.0]).unwrap().interval, None);
        assert_eq!(Estimate::of(&[2.0; 9]).unwrap().interval, None);
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Estimate::of(&[1.0, f64::INFINITY]), None);
    }

    #[test]
    fn the_two_kinds_of_intervals_agree_where_one_replaces_the_other() {
        let values: Vec<f64> = (0..1_000).map(|index| f64::from(index * 7919 % 1_000)).collect();
        let (low, high) = bootstrap(&values);
        let (normal_low, normal_high) = normal(&values, mean(&values).unwrap());
        let length = high - low;
        assert!((low - normal_low).abs() < 0.1 * length && (high - normal_high).abs() < 0.1 * length);
    }

    #[test]
    fn numbers_have_three_digits() {
        let texts = [54.93, 0.0, 1.0, 1234.5, 0.00361, 98.7, f64::NAN].map(three_digits);
        assert_eq!(texts, ["54.9", "0", "1", "1234", "0.00361", "98.7", "–"]);
        assert_eq!(Estimate { value: 1.0, interval: Some((0.9, 1.1)) }.to_string(), "1 (0.9 … 1.1)");
        assert_eq!(Estimate { value: 1.0, interval: Some((0.9999, 1.0001)) }.to_string(), "1");
        assert_eq!(deviation(&[2.0, 4.0]), Some(libm::sqrt(2.0)));
    }
}
