//! What is wrong with a link's configuration, and what to do about it.

use std::fmt;
use std::time::Duration;

/// A configuration that cannot be built. Its text names the key and the remedy; who read the file adds its name
/// and the table in which the key stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The key, as it is written in a scenario (`burst.loss_in_bad`).
    pub key: String,
    /// What is wrong and what would be right, as a clause that follows the key ("is 1.5; a probability is 0 to 1").
    pub reason: String,
}

impl ConfigError {
    /// An error about `key`.
    pub fn new(key: impl Into<String>, reason: impl Into<String>) -> ConfigError {
        ConfigError { key: key.into(), reason: reason.into() }
    }

    /// The same error one table further out: `key` becomes `table.key`.
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

/// Refuses what is not a probability.
pub fn probability(key: &str, value: f64) -> Result<f64, ConfigError> {
    if (0.0..=1.0).contains(&value) {
        return Ok(value);
    }
    Err(ConfigError::new(key, format!("is {value}; a probability is 0 to 1 (0.01 is one in a hundred)")))
}

/// Refuses what is not a finite amount of at least zero.
pub fn not_negative(key: &str, value: f64) -> Result<f64, ConfigError> {
    if value.is_finite() && value >= 0.0 {
        return Ok(value);
    }
    Err(ConfigError::new(key, format!("is {value}; give a number of at least 0")))
}

/// Refuses what is not a finite amount above zero.
pub fn positive(key: &str, value: f64) -> Result<f64, ConfigError> {
    if value.is_finite() && value > 0.0 {
        return Ok(value);
    }
    Err(ConfigError::new(key, format!("is {value}; give a number above 0")))
}

/// The duration of `ms` milliseconds, rounded to the nanosecond; refuses what is negative or not finite.
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
    }
}
