//! Changes of the rate at which the application of a flow produces data.

use airpace_core::{Rate, Time};
use airpace_path::ConfigError;
use airpace_path::config_error::{not_negative, positive};
use serde::Deserialize;

use super::Flow;

/// Maximum number of changes of a flow's rate.
///
/// Chosen: a change every millisecond for ten seconds.
const MAX_CHANGES: usize = 10_000;

/// Maximum rate of an application, in Mbit/s.
///
/// Chosen: the maximum rate of the scheme `cbr`.
const MAX_MBPS: f64 = 1e5;

/// A change of the rate at which an application produces data.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateChange {
    /// Time of the change, in s of the run's clock.
    pub at_s: f64,
    /// The rate from this time on, in Mbit/s; at 0, the application produces no data until the next change.
    pub rate_mbps: f64,
}

impl RateChange {
    /// Time of the change.
    pub fn at(&self) -> Time {
        Time::from_secs_f64(self.at_s)
    }

    /// The rate from this time on.
    pub fn rate(&self) -> Rate {
        Rate::from_mbps(self.rate_mbps)
    }
}

impl Flow {
    /// Rejects rates of the application that are out of range, and changes that are not in order of time.
    pub(crate) fn check_rates(&self) -> Result<(), ConfigError> {
        match self.rate_mbps {
            Some(rate) => drop(positive("rate_mbps", rate)?),
            None if self.schedule.is_empty() => return Ok(()),
            None => {
                let reason = "changes the rate of an application that has none; add `rate_mbps`, the rate until the first \
                              change";
                return Err(ConfigError::new("schedule", reason));
            }
        }
        if self.schedule.len() > MAX_CHANGES {
            let reason = format!("has {} entries; the most are {MAX_CHANGES}", self.schedule.len());
            return Err(ConfigError::new("schedule", reason));
        }
        let mut last_s = self.start_s;
        for (index, change) in self.schedule.iter().enumerate() {
            let RateChange { at_s, rate_mbps } = *change;
            let key = |name: &str| format!("schedule.{index}.{name}");
            if not_negative(&key("at_s"), at_s)? <= last_s {
                let (before, remedy) = match index {
                    0 => ("`start_s`", "set `rate_mbps` for the rate at the start"),
                    _ => ("the change before", "put the changes in order of time"),
                };
                let reason = format!("is {at_s}, not after {before} ({last_s}); {remedy}");
                return Err(ConfigError::new(key("at_s"), reason));
            }
            if not_negative(&key("rate_mbps"), rate_mbps)? > MAX_MBPS {
                return Err(ConfigError::new(
                    key("rate_mbps"),
                    format!("is {rate_mbps}; the most is {MAX_MBPS}"),
                ));
            }
            last_s = at_s;
        }
        Ok(())
    }
}
