//! On-off wire: a wire that is off at random times; packets that arrive while it is off are lost.

use std::time::Duration;

use airpace_core::{Rng, Time};
use serde::Deserialize;

use crate::config_error::{ConfigError, not_negative};

/// Minimum mean time on or off that is not 0, in seconds.
///
/// Chosen: a millisecond; faster changes are independent losses of single packets.
const MIN_MEAN_S: f64 = 1e-3;

/// A wire that is alternately on and off; both times are drawn from exponential distributions. A packet that arrives
/// while the wire is off is lost. A packet that is already in flight arrives.
///
/// The draws depend on the run's seed and on time, not on packets: all schemes meet the same outages. Each wire has its
/// own draws.
///
/// Source: mahimahi `loss_queue.cc` (StochasticSwitchingLink of `mm-onoff`)
/// Differs: mm-onoff rounds each time down to whole milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OnOffConfig {
    /// The mean time that the wire is on, in seconds. At 0, it is never on.
    pub on_mean_s: f64,
    /// The mean time that the wire is off, in seconds. At 0, it is never off.
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
    /// Mean times in nanoseconds.
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
    /// The plan of these times.
    ///
    /// # Errors
    /// An out-of-range value, with its key.
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
        // The switch changes at time zero to its initial state.
        Switch { plan, rng, is_on: !plan.starts_on, until: Time::ZERO }
    }

    /// Whether the wire is on at `now`, which never decreases over the calls.
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
