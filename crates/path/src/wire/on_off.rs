//! On-off wire: a wire that is off at random times; packets that arrive while it is off are lost.

use std::time::Duration;

use airpace_core::{Rng, Time};
use serde::Deserialize;

use crate::config_error::{ConfigError, not_negative};

/// Minimum of the mean on time and of the mean off time, in seconds. The value 0 is also permitted.
///
/// Chosen: a millisecond. Faster changes would have the same effect as independent losses of single packets.
const MIN_MEAN_S: f64 = 1e-3;

/// A wire that is alternately on and off. The lengths of both periods are drawn from exponential distributions. A
/// packet that arrives while the wire is off is lost. A packet that is already in flight arrives.
///
/// The draws depend on the run's seed and on time, not on packets: all schemes get the same outages. Each wire has its
/// own draws.
///
/// Source: mahimahi `loss_queue.cc` (StochasticSwitchingLink of `mm-onoff`)
/// Differs: mm-onoff rounds each time down to whole milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OnOffConfig {
    /// The mean time that the wire is on, in seconds; 0: the wire is never on.
    pub on_mean_s: f64,
    /// The mean time that the wire is off, in seconds; 0: the wire is never off.
    pub off_mean_s: f64,
    /// State of the wire at the start of the run.
    #[serde(default)]
    pub starts: OnOff,
}

/// Whether a wire carries packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnOff {
    /// The wire carries packets.
    #[default]
    On,
    /// The wire loses packets.
    Off,
}

/// On and off times that can be instantiated any number of times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SwitchPlan {
    /// Mean time that the wire is on, in nanoseconds. `off_mean_ns` is the mean time that it is off.
    on_mean_ns: f64,
    off_mean_ns: f64,
    starts_on: bool,
}

/// The on and off times of one wire.
#[derive(Debug)]
pub(super) struct Switch {
    plan: SwitchPlan,
    rng: Rng,
    is_on: bool,
    /// Time of the next change.
    until: Time,
}

impl OnOffConfig {
    /// The plan of the on and off times.
    ///
    /// # Errors
    /// A value is out of range; the error names the key.
    pub(super) fn plan(&self) -> Result<SwitchPlan, ConfigError> {
        let mean_ns = |key: &str, seconds: f64| {
            let seconds = not_negative(key, seconds)?;
            if seconds > 0.0 && seconds < MIN_MEAN_S {
                let reason = format!(
                    "is {seconds}; the least is {MIN_MEAN_S}, or 0: for a loss of each packet's own, set `loss`"
                );
                return Err(ConfigError::new(key, reason));
            }
            Ok(seconds * 1e9)
        };
        let on_mean_ns = mean_ns("on_mean_s", self.on_mean_s)?;
        let off_mean_ns = mean_ns("off_mean_s", self.off_mean_s)?;
        if on_mean_ns == 0.0 && off_mean_ns == 0.0 {
            let reason = "is 0, and so is `off_mean_s`; give one of them more";
            return Err(ConfigError::new("on_mean_s", reason));
        }
        Ok(SwitchPlan { on_mean_ns, off_mean_ns, starts_on: self.starts == OnOff::On })
    }
}

impl Switch {
    pub(super) fn new(plan: SwitchPlan, rng: Rng) -> Switch {
        // At time zero, the switch changes to its initial state, so it is created in the opposite state.
        Switch { plan, rng, is_on: !plan.starts_on, until: Time::ZERO }
    }

    /// Whether the wire is on at `now`. `now` must not decrease from call to call.
    pub(super) fn is_on(&mut self, now: Time) -> bool {
        while self.until <= now {
            self.is_on = !self.is_on;
            let mean_ns = if self.is_on { self.plan.on_mean_ns } else { self.plan.off_mean_ns };
            if mean_ns > 0.0 {
                self.until += Duration::from_nanos(libm::round(self.rng.exponential(mean_ns)) as u64);
            }
        }
        self.is_on
    }
}
