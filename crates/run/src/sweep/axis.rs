//! Axes of a sweep: a key of the scenario with a list of values.
//!
//! | argument | values |
//! | --- | --- |
//! | `50` | one value, with which the key is set for all runs |
//! | `25,50,100` | the listed values |
//! | `1..4` | integers, both limits included: 1, 2, 3, 4 |
//! | `10..300/8` | eight numbers with equal differences, both limits included |
//! | `1..100/5log` | five numbers with equal ratios, both limits included |
//! | `20,100..300/3` | a list may contain ranges |
//! | `[1,2],[3]` | a comma inside brackets, braces or quotes belongs to the value |

use std::fmt;

use airpace_core::Refused;
use serde::{Deserialize, Serialize};
use toml::Value;

/// Maximum number of values of a key. More values are probably a typing error.
pub(super) const MAX_VALUES: usize = 1_000_000;

/// A key of the scenario with its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// Dotted path of the key.
    pub key: String,
    /// The values, in the syntax of `--set`. There is at least one value, and there are no duplicates.
    pub values: Vec<String>,
}

/// Type of an axis's column, which all values of the axis have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Whole,
    Number,
    Truth,
    Text,
}

impl Axis {
    /// Parses values as a user types them: `25,50` or `10..300/8`.
    ///
    /// # Errors
    /// There is no value, a duplicate value, or an invalid range.
    pub fn parse(key: &str, values: &str) -> Result<Axis, Refused> {
        let mut spelled = vec![];
        for part in parts(values) {
            spelled.extend(range(part).map_err(|reason| refuse(key, reason))?);
        }
        Axis::of(key, spelled)
    }

    /// An axis with these values, each as a user types it.
    ///
    /// # Errors
    /// There is no value, or a duplicate value.
    pub fn of(key: &str, values: impl IntoIterator<Item = String>) -> Result<Axis, Refused> {
        let values: Vec<String> = values.into_iter().map(|value| normal(value.trim())).collect();
        let mut sorted: Vec<String> = values.iter().map(|value| sense(value)).collect();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(refuse(key, format!("the value {} is there twice; give each once", pair[0])));
        }
        match values.len() {
            0 => Err(refuse(key, "no value: give at least one".to_owned())),
            many if many > MAX_VALUES => Err(refuse(key, format!("more than {MAX_VALUES} values"))),
            _ => Ok(Axis { key: key.to_owned(), values }),
        }
    }

    /// The type that can represent all values of the axis.
    pub(super) fn kind(&self) -> Kind {
        let kinds = self.values.iter().map(|value| match value.parse() {
            Ok(Value::Integer(_)) => Kind::Whole,
            Ok(Value::Float(_)) => Kind::Number,
            Ok(Value::Boolean(_)) => Kind::Truth,
            _ => Kind::Text,
        });
        let together = |one, other| match (one, other) {
            _ if one == other => one,
            (Kind::Whole, Kind::Number) | (Kind::Number, Kind::Whole) => Kind::Number,
            _ => Kind::Text,
        };
        kinds.reduce(together).unwrap_or(Kind::Text)
    }
}

/// The axis as a user types it: `key=values`.
impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.values.iter().map(|value| typed(value)).collect();
        write!(f, "{}={}", self.key, words.join(","))
    }
}

fn refuse(key: &str, reason: String) -> Refused {
    Refused::new(reason).at(key)
}

/// Quotes a value that would otherwise be parsed as several values or a range, or that contains an unbalanced bracket or
/// quote.
fn typed(value: &str) -> String {
    let (parts, is_closed) = scan(value);
    let is_one = is_closed && parts.len() == 1 && range(value).is_ok_and(|values| values == [value]);
    if is_one { value.to_owned() } else { quoted(value) }
}

/// A single-line string in double quotes. The escapes of JSON are valid TOML. TOML's own writer may produce triple
/// quotes, which [`scan`] does not support. TOML requires an escape for U+007F, which JSON does not produce.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}

/// The value without quotes.
pub(super) fn text_of(value: &str) -> String {
    match value.parse() {
        Ok(Value::String(text)) => text,
        _ => value.to_owned(),
    }
}

/// Normal form of a value for comparison: 50 and 50.0 are equal.
fn sense(value: &str) -> String {
    match value.parse() {
        Ok(Value::Integer(whole)) => format!("{:?}", whole as f64),
        Ok(Value::Float(number)) => format!("{number:?}"),
        _ => text_of(value),
    }
}

/// Canonical spelling of a value.
fn normal(value: &str) -> String {
    match value.parse() {
        Ok(Value::Integer(whole)) => whole.to_string(),
        Ok(Value::Float(number)) => format!("{number:?}"),
        Ok(Value::String(text)) => match text.parse::<Value>() {
            // Without quotes, the text would be parsed as a value of another type.
            Ok(_) => quoted(&text),
            Err(_) if text.trim() == text && !text.is_empty() => text,
            Err(_) => quoted(&text),
        },
        Ok(other) => other.to_string(),
        Err(_) => value.to_owned(),
    }
}

/// Splits at commas outside of brackets, braces and quotes.
fn parts(text: &str) -> Vec<&str> {
    scan(text).0
}

/// Returns [`parts`], and whether all brackets, braces and quotes are balanced.
fn scan(text: &str) -> (Vec<&str>, bool) {
    let (mut found, mut begin, mut depth) = (vec![], 0, 0_usize);
    let mut quote: Option<char> = None;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(_), _) if escaped => escaped = false,
            (Some('"'), '\\') => escaped = true,
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                found.push(text[begin..at].trim());
                begin = at + 1;
            }
            (None, _) => {}
        }
    }
    found.push(text[begin..].trim());
    // An unbalanced quote is part of the text.
    if quote.is_some() {
        return (text.split(',').map(str::trim).collect(), false);
    }
    (found, depth == 0)
}

/// The values of one part: the values of a range, or the part itself.
fn range(part: &str) -> Result<Vec<String>, String> {
    let itself = || Ok(vec![part.to_owned()]);
    let Some((first, rest)) = part.split_once("..") else {
        return if part.is_empty() {
            Err("there is nothing between two commas; give a value".to_owned())
        } else {
            itself()
        };
    };
    let (last, steps) = rest.split_once('/').map_or((rest, None), |(last, steps)| (last, Some(steps)));
    let (Some(from), Some(to)) = (number(first), number(last)) else { return itself() };
    if from >= to {
        return Err(format!("`{part}` runs backwards; give the smaller end first"));
    }
    let ends = (first.trim().parse::<i64>(), last.trim().parse::<i64>());
    let Some(steps) = steps else {
        let (Ok(from), Ok(to)) = ends else {
            return Err(format!("`{part}` does not say how many values: give `{part}/5`, or `{part}/5log`"));
        };
        return match to.checked_sub(from) {
            Some(span) if (span as usize) < MAX_VALUES => {
                Ok((from..=to).map(|value| value.to_string()).collect())
            }
            _ => Err(format!("`{part}` has more than {MAX_VALUES} values")),
        };
    };
    let (count, is_log) = steps.strip_suffix("log").map_or((steps, false), |count| (count, true));
    let count = match count.trim().parse::<usize>() {
        Ok(count) if (2..=MAX_VALUES).contains(&count) => count,
        _ => {
            return Err(format!(
                "`{part}`: behind the slash stands how many values there are, from 2 to {MAX_VALUES}, and `log` for \
                 equal factors"
            ));
        }
    };
    if is_log && from <= 0.0 {
        return Err(format!("`{part}`: equal factors need ends above 0"));
    }
    let inner = |step: usize| {
        let share = step as f64 / (count - 1) as f64;
        let value = match is_log {
            true => libm::exp(libm::log(from) + (libm::log(to) - libm::log(from)) * share),
            false => from + (to - from) * share,
        };
        rounded(value)
    };
    let values: Vec<f64> =
        std::iter::once(from).chain((1..count - 1).map(inner)).chain(std::iter::once(to)).collect();
    let is_whole = ends.0.is_ok() && ends.1.is_ok() && values.iter().all(|value| value.fract() == 0.0);
    let spelled = |value: &f64| if is_whole { format!("{value}") } else { format!("{value:?}") };
    Ok(values.iter().map(spelled).collect())
}

fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let is_plain = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    text.parse::<f64>().ok().filter(|value| is_plain && value.is_finite())
}

/// Rounds a number inside a range.
///
/// Chosen: six significant digits, which people can read and type.
fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values(text: &str) -> Vec<String> {
        Axis::parse("cell.prbs", text).unwrap().values
    }

    #[test]
    fn lists_and_ranges_are_read_as_they_are_typed() {
        assert_eq!(values("50"), ["50"]);
        assert_eq!(values("25, 50,100"), ["25", "50", "100"]);
        assert_eq!(values("1..4"), ["1", "2", "3", "4"], "both ends are included");
        assert_eq!(values("25..100/4"), ["25", "50", "75", "100"], "whole where all are whole");
        assert_eq!(
            values("10..300/8"),
            ["10.0", "51.4286", "92.8571", "134.286", "175.714", "217.143", "258.571", "300.0"]
        );
        assert_eq!(values("1..100/5log"), ["1.0", "3.16228", "10.0", "31.6228", "100.0"]);
        assert_eq!(values("20,100..300/3"), ["20", "100", "200", "300"]);
        assert_eq!(values("pbe,cbr:rate_mbps=60"), ["pbe", "cbr:rate_mbps=60"]);
        assert_eq!(values("../a..b/c.down"), ["../a..b/c.down"], "a path is no range");
        assert_eq!(values("[1, 2],[3]"), ["[1, 2]", "[3]"]);
        assert_eq!(values(r#""a,b",c"#), ["a,b", "c"]);
        assert_eq!(values("1e-5,0.00002"), ["1e-5", "2e-5"], "one spelling, whoever typed it");
        assert_eq!(values("it's,so"), ["it's", "so"]);
    }

    #[test]
    fn what_cannot_be_says_what_to_type() {
        let said = |text: &str| Axis::parse("cell.prbs", text).unwrap_err().to_string();
        for (text, expected) in [
            ("", "nothing between two commas"),
            ("1,,2", "nothing between two commas"),
            ("5..1", "runs backwards"),
            ("1.5..3", "give `1.5..3/5`, or `1.5..3/5log`"),
            ("1..3/1", "how many values there are, from 2"),
            ("1..3/many", "how many values there are"),
            ("0..3/4log", "ends above 0"),
            ("0..9999999", "more than 1000000 values"),
            ("1..1.000001/9", "is there twice"),
            ("50,50.0", "is there twice"),
        ] {
            assert!(said(text).contains(expected), "{text}: {}", said(text));
            assert!(said(text).starts_with("cell.prbs: "), "{}", said(text));
        }
    }

    #[test]
    fn the_type_of_an_axis_holds_all_of_its_values() {
        let kind = |text: &str| Axis::parse("key", text).unwrap().kind();
        assert_eq!(kind("1,2"), Kind::Whole);
        assert_eq!(kind("1,2.5"), Kind::Number);
        assert_eq!(kind("true,false"), Kind::Truth);
        assert_eq!(kind("1,pbe"), Kind::Text);
        assert_eq!(kind("pbe,bbr"), Kind::Text);
    }

    #[test]
    fn what_opens_in_a_value_does_not_reach_the_next() {
        for text in ["\"{\",a", "\"a[\",b", "\"a'\",\"b'\"", "{,\"',\"", "'\\,'{", "\"\u{7f}{\""] {
            let axis = Axis::parse("key", text).unwrap();
            let typed = axis.to_string();
            assert_eq!(Axis::parse("key", typed.strip_prefix("key=").unwrap()), Ok(axis), "{typed}");
        }
    }

    proptest! {
        #[test]
        fn a_range_has_its_ends_and_rises(from in -1e6..1e6_f64, span in 1e-3..1e6_f64, count in 2..50_usize) {
            let (from, to) = (rounded(from), rounded(from + span));
            prop_assume!(to - from > 1e-4 * from.abs().max(to.abs()));
            let values = values(&format!("{from:?}..{to:?}/{count}"));
            let numbers: Vec<f64> = values.iter().map(|value| value.parse().unwrap()).collect();
            prop_assert_eq!(numbers.len(), count);
            prop_assert_eq!((numbers[0], numbers[count - 1]), (from, to));
            prop_assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", numbers);
        }

        #[test]
        fn what_is_written_is_read_again(text in "[ -~]{0,12}(,[ -~]{1,8}){0,3}") {
            if let Ok(axis) = Axis::parse("key", &text) {
                let typed = axis.to_string();
                let again = Axis::parse("key", typed.strip_prefix("key=").unwrap());
                prop_assert_eq!(again, Ok(axis));
            }
        }
    }
}
