//! Round numbers along an axis.

use super::number::Decimal;

/// A tick of an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    pub value: f64,
    /// Empty for a minor tick.
    pub label: String,
}

/// Range and ticks of an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Ticks {
    pub low: f64,
    pub high: f64,
    pub ticks: Vec<Tick>,
}

/// Limit of the ratio of rounding errors, so that a limit of 0.30000000000000004 is the tick 0.3.
const TOLERANCE: f64 = 1e-9;

/// Maximum number of ticks of an axis. Only ranges near the precision of `f64` reach it.
const MAX_TICKS: i64 = 100;

/// Ticks at multiples of 1, 2 or 5 times a power of ten, which divide the range into at most `intervals` parts. Unless the
/// range is fixed, it is extended to multiples of a fraction of the distance between ticks.
pub fn linear(low: f64, high: f64, is_fixed: bool, intervals: usize) -> Ticks {
    let step = step(low, high, intervals.max(1) as f64);
    let size = step.value();
    let (mut low, mut high) = (low, high);
    if !is_fixed {
        let fine = size / if step.digits == 2 { 4.0 } else { 5.0 };
        let below = (low / fine + TOLERANCE).floor() * fine;
        let above = (high / fine - TOLERANCE).ceil() * fine;
        // Rounding must not leave a limit of the data outside of the range.
        (low, high) = (low.min(finite(below, low)), high.max(finite(above, high)));
    }
    let first = (low / size - TOLERANCE).ceil() as i64;
    let last = (high / size + TOLERANCE).floor() as i64;
    let ticks = (first..=last.min(first.saturating_add(MAX_TICKS)))
        .map(|count| Decimal { digits: count.saturating_mul(step.digits), exponent: step.exponent })
        .map(|number| Tick { value: number.value(), label: number.to_string() })
        .collect();
    Ticks { low, high, ticks }
}

/// The smallest of 1, 2 and 5 times a power of ten that divides the range into at most this many intervals.
fn step(low: f64, high: f64, intervals: f64) -> Decimal {
    // Two divisions, because the difference of huge numbers would overflow.
    let raw = high / intervals - low / intervals;
    let exponent = libm::log10(raw).floor() as i32;
    let steps = [1, 2, 5, 10].map(|digits| Decimal { digits, exponent });
    let fit = steps.into_iter().find(|step| step.value() >= raw * (1.0 - TOLERANCE));
    match fit {
        Some(Decimal { digits: 10, exponent }) => Decimal { digits: 1, exponent: exponent + 1 },
        Some(step) => step,
        None => Decimal { digits: 2, exponent: exponent + 1 },
    }
}

fn finite(value: f64, otherwise: f64) -> f64 {
    if value.is_finite() { value } else { otherwise }
}

/// Ticks of a logarithmic axis in order of preference: labels at 1, 2 and 5 times each power of ten, labels at powers of ten,
/// labels at every second, third … power. Unless the range is fixed, it is extended to 1, 2, 3 … times a power of ten.
///
/// A short range that has fewer than three of these numbers has linear ticks.
pub fn logarithmic(low: f64, high: f64, is_fixed: bool) -> Vec<Ticks> {
    let (low, high) = if is_fixed { (low, high) } else { round_limits(low, high) };
    let ticks: Vec<Decimal> = multiples(&[1, 2, 5], low, high)
        .filter(|number| (low * (1.0 - TOLERANCE)..=high * (1.0 + TOLERANCE)).contains(&number.value()))
        .collect();
    let decades = libm::log10(high) - libm::log10(low);
    let labelled = |has_label: &dyn Fn(&Decimal) -> bool, is_shown: &dyn Fn(&Decimal) -> bool| Ticks {
        low,
        high,
        ticks: ticks
            .iter()
            .filter(|number| is_shown(number))
            .map(|number| Tick {
                value: number.value(),
                label: if has_label(number) { number.to_string() } else { String::new() },
            })
            .collect(),
    };
    let mut all = Vec::new();
    if ticks.len() < 3 {
        all.extend([6, 5, 4, 3, 2, 1].map(|intervals| linear(low, high, true, intervals)));
    } else if decades <= MAX_DECADES_OF_1_2_5 {
        all.push(labelled(&|_| true, &|_| true));
    }
    if ticks.iter().filter(|number| number.digits == 1).count() >= 2 {
        all.push(labelled(&|number| number.digits == 1, &|_| true));
        for every in [2, 3, 5, 10, 20, 50, 100, 200] {
            let is_labelled = |number: &Decimal| number.digits == 1 && number.exponent % every == 0;
            // Ticks of many decades would become a solid line.
            let is_shown = |number: &Decimal| {
                number.digits == 1 && number.exponent % (every / 10).max(1) == 0 || is_labelled(number)
            };
            all.push(labelled(&is_labelled, &is_shown));
        }
    }
    if all.is_empty() {
        all.push(labelled(&|_| true, &|_| true));
    }
    all
}

/// Maximum number of decades in which 2 and 5 have labels too.
const MAX_DECADES_OF_1_2_5: f64 = 2.5;

/// These multiples of all powers of ten in and around a range.
fn multiples(digits: &[i64], low: f64, high: f64) -> impl DoubleEndedIterator<Item = Decimal> {
    let first = libm::log10(low).floor() as i32 - 1;
    let last = libm::log10(high).floor() as i32 + 1;
    (first..=last).flat_map(|exponent| digits.iter().map(move |&digits| Decimal { digits, exponent }))
}

fn round_limits(low: f64, high: f64) -> (f64, f64) {
    let values = || multiples(&[1, 2, 3, 4, 5, 6, 7, 8, 9], low, high).map(Decimal::value);
    let below = values().rev().find(|value| *value > 0.0 && *value <= low * (1.0 + TOLERANCE));
    let above = values().find(|value| value.is_finite() && *value >= high * (1.0 - TOLERANCE));
    (below.unwrap_or(low), above.unwrap_or(high))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &Ticks) -> Vec<&str> {
        ticks.ticks.iter().map(|tick| tick.label.as_str()).filter(|label| !label.is_empty()).collect()
    }

    #[test]
    fn linear_ticks_are_round() {
        let ticks = linear(0.02, 0.97, false, 5);
        assert_eq!((ticks.low, ticks.high), (0.0, 1.0));
        assert_eq!(labels(&ticks), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        assert_eq!(labels(&linear(0.0, 0.1 + 0.2, true, 3)), ["0", "0.1", "0.2", "0.3"]);
        assert_eq!(labels(&linear(-7.0, 43_000.0, true, 3)), ["0", "20\u{2009}000", "40\u{2009}000"]);
        assert_eq!(linear(0.0, 61.3, false, 7).high, 62.0, "a limit need not be a tick");
    }

    #[test]
    fn logarithmic_ticks_depend_on_the_number_of_decades() {
        let first = |low, high| logarithmic(low, high, true).remove(0);
        assert_eq!(labels(&first(30.0, 640.0)), ["50", "100", "200", "500"]);
        assert_eq!(labels(&first(1.0, 1e4)), ["1", "10", "100", "1000", "10\u{2009}000"]);
        assert_eq!(labels(&first(30.0, 44.0)), ["30", "35", "40"], "too short for 1, 2 and 5");
        let limits = &logarithmic(37.0, 612.0, false)[0];
        assert_eq!((limits.low, limits.high), (30.0, 700.0));
    }

    #[test]
    fn extreme_ranges_have_finite_ticks() {
        for (low, high) in [(-1.7e308, 1.7e308), (0.0, 1e-290), (1e15, 1e15 + 1e7), (-1e-280, 1e300)] {
            for is_fixed in [true, false] {
                let ticks = linear(low, high, is_fixed, 5);
                assert!(ticks.low <= low && ticks.high >= high, "{ticks:?}");
                assert!(ticks.ticks.iter().all(|tick| tick.value.is_finite()), "{ticks:?}");
                assert!(ticks.ticks.len() <= 8, "{ticks:?}");
            }
        }
        for ticks in logarithmic(1e-300, 1e300, false) {
            assert!(ticks.ticks.iter().all(|tick| tick.value.is_finite()));
        }
    }
}
