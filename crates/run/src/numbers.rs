//! Formatting of metrics for people: terminal and report print the same digits.
//!
//! A metric has the same unit and number of decimals in every output. Only [`text`] turns a metric into digits, and
//! rounds it once, from the unrounded value. The report's data contains these texts, so that the page does not round.

/// Format of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shown {
    /// Path of the metric in `summary.json`.
    pub path: &'static str,
    /// Unit of the printed value.
    pub unit: &'static str,
    /// Factor from the value in `summary.json` to the printed unit.
    pub factor: f64,
    /// Number of decimals.
    pub decimals: usize,
}

/// Path of the share of the Oracle's rate ([`crate::comparison::share_of_oracle`]). The share compares two runs, so it is
/// not among the metrics of a run.
pub const SHARE_OF_ORACLE: &str = "share_of_oracle";

/// Formats of all metrics that tables show.
///
/// Chosen: the decimals that different seeds have in common, limited by the width of a terminal.
pub static SHOWN: [Shown; 19] = [
    shown_as("throughput_mbps", "Mbit/s", 1.0, 2),
    shown_as("utilization", "%", 100.0, 1),
    shown_as(SHARE_OF_ORACLE, "%", 100.0, 1),
    shown_as("one_way_delay_ms.p95", "ms", 1.0, 1),
    shown_as("one_way_delay_ms.mean", "ms", 1.0, 1),
    shown_as("one_way_delay_ms.p50", "ms", 1.0, 1),
    shown_as("one_way_delay_ms.p99", "ms", 1.0, 1),
    shown_as("queueing_delay_ms.p95", "ms", 1.0, 1),
    shown_as("queueing_delay_ms.p50", "ms", 1.0, 1),
    shown_as("queueing_delay_ms.mean", "ms", 1.0, 1),
    shown_as("queueing_delay_ms.p99", "ms", 1.0, 1),
    shown_as("loss_rate", "%", 100.0, 3),
    shown_as("power", "Mbit/s per ms", 1.0, 3),
    shown_as("jain", "index", 1.0, 3),
    shown_as("throughput_100ms.p10", "Mbit/s", 1.0, 2),
    shown_as("throughput_100ms.p25", "Mbit/s", 1.0, 2),
    shown_as("throughput_100ms.p50", "Mbit/s", 1.0, 2),
    shown_as("throughput_100ms.p75", "Mbit/s", 1.0, 2),
    shown_as("throughput_100ms.p90", "Mbit/s", 1.0, 2),
];

const fn shown_as(path: &'static str, unit: &'static str, factor: f64, decimals: usize) -> Shown {
    Shown { path, unit, factor, decimals }
}

/// The format of the metric at `path`.
///
/// # Panics
/// If no table shows the metric, which is a bug of the caller.
pub fn shown(path: &str) -> &'static Shown {
    let found = SHOWN.iter().find(|shown| shown.path == path);
    found.unwrap_or_else(|| panic!("no table shows `{path}`; list it in `SHOWN`"))
}

impl Shown {
    /// Formats a value of `summary.json` in [`Shown::unit`]; a dash for `None`.
    pub fn text(&self, value: Option<f64>) -> String {
        value.map_or_else(|| "–".to_owned(), |value| text(value * self.factor, self.decimals))
    }
}

/// Digits of `value` with `decimals` decimals: the decimal number nearest to the binary value. The result is never a
/// negative zero.
pub fn text(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    match text.strip_prefix('-') {
        Some(digits) if digits.chars().all(|c| c == '0' || c == '.') => digits.to_owned(),
        _ => text,
    }
}

/// Mean and deviation of a metric over seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The sample standard deviation; `None` for fewer than two values.
    pub deviation: Option<f64>,
}

impl Spread {
    /// Mean and deviation of all `values`. `None` if a value is missing or there are no values, because a mean over only
    /// some seeds would not be comparable with other metrics.
    pub fn of(values: impl IntoIterator<Item = Option<f64>>) -> Option<Spread> {
        let values = values.into_iter().collect::<Option<Vec<f64>>>()?;
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let deviation = (values.len() >= 2).then(|| (squares / (count - 1.0)).sqrt());
        (!values.is_empty()).then_some(Spread { mean, deviation })
    }
}

/// Whether the text of a number is zero, such as `0.00`. A deviation with such a text is not printed.
pub fn is_zero(text: &str) -> bool {
    !text.contains(|digit: char| ('1'..='9').contains(&digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_rounded_once_from_what_it_is() {
        assert_eq!(text(44.604_999, 2), "44.60", "not 44.61, as by way of 44.605");
        assert_eq!(text(0.125, 2), "0.12", "0.125 is as close to 0.12 as to 0.13; the even digit is taken");
        assert_eq!(text(-0.004, 2), "0.00", "no negative zero");
        assert_eq!(text(-0.006, 2), "-0.01");
        assert_eq!(text(1234.56, 0), "1235");
    }

    #[test]
    fn a_metric_is_shown_in_its_unit() {
        assert_eq!(shown("utilization").text(Some(0.978_4)), "97.8");
        assert_eq!(shown("loss_rate").text(Some(0.000_03)), "0.003");
        assert_eq!(shown("jain").text(None), "–");
    }

    #[test]
    fn numbers_over_seeds_have_a_mean_and_a_deviation() {
        let spread = Spread::of([Some(1.0), Some(3.0)]).unwrap();
        assert_eq!((spread.mean, spread.deviation), (2.0, Some(2f64.sqrt())));
        assert_eq!(Spread::of([Some(0.5)]).unwrap().deviation, None, "one seed has no deviation");
        assert_eq!(Spread::of([Some(1.0), None]), None, "if a seed lacks the number, there is no mean");
        assert_eq!(Spread::of([]), None, "nothing was measured");
    }
}
