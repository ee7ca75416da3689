//! Errors in a link's configuration, with their remedies.

use std::fmt;
use std::time::Duration;

/// An invalid configuration. The text of the error contains the key and the remedy. The code that reads the file adds
/// the file's name and the table that contains the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The key as written in a scenario (`burst.loss_in_bad`).
    pub key: String,
    /// The problem and a valid value, as a clause that follows the key ("is 1.5; a probability is 0 to 1").
    pub reason: String,
}

impl ConfigError {
    /// An error in `key`.
    pub fn new(key: impl Into<String>, reason: impl Into<String>) -> ConfigError {
        ConfigError { key: key.into(), reason: reason.into() }
    }

    /// The error with its key in the enclosing table: `key` becomes `table.key`.
    pub fn within(self, table: &str) -> ConfigError {
        ConfigError { key: format!("{table}.{}", self.key), ..self }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.key, self.reason)
    }
}

impl std::error::Error for ConfigError {}

/// Rejects a value that is not a probability.
pub fn probability(key: &str, value: f64) -> Result<f64, ConfigError> {
    if (0.0..=1.0).contains(&value) {
        return Ok(value);
    }
    Err(ConfigError::new(key, format!("is {value}; a probability is 0 to 1 (0.01 is one in a hundred)")))
}

/// Maximum values of keys, by the unit suffix of the key. Values far beyond any network would only need time and
/// memory.
///
/// Chosen: 100 Gbit/s, eleven days, and for other units more than occurs in reality.
const MAX_BY_SUFFIX: [(&str, f64); 9] = [
    ("_mbps", 1e5),
    ("ms", 1e9),
    ("_s", 1e6),
    ("_db", 1e3),
    ("_m", 1e7),
    ("_kmh", 1e5),
    ("_hz", 1e6),
    ("_kilobytes", 1e9),
    ("_per_subframe", 1e3),
];

/// Maximum value for keys without a unit suffix.
const MAX_OF_ANY_KEY: f64 = 1e12;

/// Minimum rate (Mbit/s).
const MIN_MBPS: f64 = 1e-6;

/// Rejects a value that is negative, not a number, or above the limit of its unit.
pub fn not_negative(key: &str, value: f64) -> Result<f64, ConfigError> {
    if value >= 0.0 {
        return not_too_much(key, value);
    }
    Err(ConfigError::new(key, format!("is {value}; give a number of at least 0")))
}

/// Rejects a value that is zero or less, not a number, or above the limit of its unit; and a rate below one bit per
/// second.
pub fn positive(key: &str, value: f64) -> Result<f64, ConfigError> {
    if value > 0.0 && value < MIN_MBPS && key.ends_with("_mbps") {
        let reason = format!("is {value}; the least that it may be is {MIN_MBPS}, a bit per second");
        return Err(ConfigError::new(key, reason));
    }
    if value > 0.0 {
        return not_too_much(key, value);
    }
    Err(ConfigError::new(key, format!("is {value}; give a number above 0")))
}

fn not_too_much(key: &str, value: f64) -> Result<f64, ConfigError> {
    let known = MAX_BY_SUFFIX.iter().find(|(end, _)| key.ends_with(end));
    let most = known.map_or(MAX_OF_ANY_KEY, |(_, most)| *most);
    if value <= most {
        return Ok(value);
    }
    Err(ConfigError::new(key, format!("is {value}; the most that it may be is {most}")))
}

/// The duration of `ms` milliseconds, rounded to the nanosecond. Rejects a value that is negative or not finite.
pub fn duration_ms(key: &str, ms: f64) -> Result<Duration, ConfigError> {
    not_negative(key, ms).map(|ms| Duration::from_nanos(libm::round(ms * 1e6) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_key_and_remedy() {
        let error = probability("loss", 1.5).unwrap_err().within("wire");
        assert_eq!(
            error.to_string(),
            "`wire.loss` is 1.5; a probability is 0 to 1 (0.01 is one in a hundred)"
        );
        assert!(probability("loss", f64::NAN).is_err());
        assert!(not_negative("delay_ms", -0.1).is_err() && not_negative("delay_ms", 0.0).is_ok());
        assert_eq!(duration_ms("delay_ms", 0.25), Ok(Duration::from_micros(250)));
        assert!(positive("rate_mbps", 0.0).is_err() && positive("rate_mbps", f64::INFINITY).is_err());
        let error = positive("rate_mbps", 1e308).unwrap_err().to_string();
        assert!(error.ends_with("; the most that it may be is 100000"), "{error}");
        let error = positive("rate_mbps", 1e-9).unwrap_err().to_string();
        assert!(error.ends_with("; the least that it may be is 0.000001, a bit per second"), "{error}");
        for (key, most) in [("buffer.ms", 1e9), ("delay_ms", 1e9), ("at_s", 1e6), ("weight", 1e12)] {
            assert!(not_negative(key, most).is_ok() && not_negative(key, 1.1 * most).is_err(), "{key}");
            assert!(not_negative(key, f64::NAN).is_err(), "{key}");
        }
    }
}
