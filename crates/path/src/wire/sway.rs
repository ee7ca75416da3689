//! Sway: an extra delay that is redrawn at intervals, as in experiments in which a link emulator changes its delay
//! periodically.

use std::time::Duration;

use airpace_core::{Rng, Time};
use serde::Deserialize;

use crate::config_error::{ConfigError, duration_ms};

/// Minimum interval between two draws, in milliseconds.
///
/// Chosen: a millisecond. Faster changes would be jitter.
const MIN_EVERY_MS: f64 = 1.0;

/// An extra delay, uniform between 0 and `up_to_ms`, that is redrawn every `every_ms`. The delay therefore varies by ±
/// `up_to_ms` / 2 around its mean, and a flow's `rtt_ms` remains the minimum round-trip time.
///
/// Every packet that leaves in the same interval has the same extra delay. The draws depend on the run's seed and on
/// time, not on packets: all schemes get the same delays.
///
/// Source: MORC §4.1 Table 1 (the round-trip time is changed every 100 ms)
/// Chosen: a uniform distribution; the paper states only the range.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwayConfig {
    /// Maximum extra delay, in milliseconds.
    pub up_to_ms: f64,
    /// Interval between draws, in milliseconds; at least 1.
    pub every_ms: f64,
    /// Whether packets that leave after a draw may overtake packets that left before the draw. If not, they wait for
    /// the earlier packets.
    #[serde(default)]
    pub may_reorder: bool,
}

/// A sway that can be instantiated any number of times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SwayPlan {
    up_to: Duration,
    every: Duration,
    pub(super) may_reorder: bool,
}

/// The sway of one wire.
#[derive(Debug)]
pub(super) struct Sway {
    plan: SwayPlan,
    rng: Rng,
    /// The current extra delay. `until` is the time of the next draw.
    extra: Duration,
    until: Time,
}

impl SwayConfig {
    /// The plan of this sway.
    ///
    /// # Errors
    /// A value is out of range; the error names the key.
    pub(super) fn plan(&self) -> Result<SwayPlan, ConfigError> {
        let up_to = duration_ms("up_to_ms", self.up_to_ms)?;
        let every = duration_ms("every_ms", self.every_ms)?;
        if self.every_ms < MIN_EVERY_MS {
            let reason = format!(
                "is {}; the least is {MIN_EVERY_MS}: for a delay of each packet's own, set `jitter_mean_ms`",
                self.every_ms
            );
            return Err(ConfigError::new("every_ms", reason));
        }
        Ok(SwayPlan { up_to, every, may_reorder: self.may_reorder })
    }
}

impl Sway {
    pub(super) fn new(plan: SwayPlan, rng: Rng) -> Sway {
        Sway { plan, rng, extra: Duration::ZERO, until: Time::ZERO }
    }

    /// The extra delay of a packet that leaves at `now`. `now` must not decrease from call to call.
    pub(super) fn at(&mut self, now: Time) -> Duration {
        while self.until <= now {
            let nanos = self.rng.range(0.0, self.plan.up_to.as_nanos() as f64);
            self.extra = Duration::from_nanos(libm::round(nanos) as u64);
            self.until += self.plan.every;
        }
        self.extra
    }
}
