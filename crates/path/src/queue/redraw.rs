//! A rate that is redrawn at intervals, as in experiments in which a link emulator gets a new rate every second.

use std::time::Duration;

use airpace_core::{Rate, Rng, Time};
use serde::Deserialize;

use crate::config_error::{ConfigError, duration_ms, positive};

/// Minimum interval between two draws, in milliseconds.
///
/// Chosen: a millisecond; capacities are reported for each millisecond.
const MIN_EVERY_MS: f64 = 1.0;

/// A rate between `from_mbps` and `to_mbps` that is redrawn every `every_ms`, from the start of the run on.
///
/// The draws depend on the run's seed and on time, not on packets: all schemes get the same rates.
///
/// Source: MORC §4.1 Table 1 (the bandwidth is changed every second)
/// Chosen: `uniform` by default; the paper states only the range.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedrawConfig {
    /// Minimum rate, in Mbit/s.
    pub from_mbps: f64,
    /// Maximum rate, in Mbit/s.
    pub to_mbps: f64,
    /// Interval between draws, in milliseconds; at least 1.
    pub every_ms: f64,
    /// Distribution of the rates between the two bounds.
    #[serde(default)]
    pub distribution: Distribution,
}

/// A distribution of rates between two bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// All rates are equally likely.
    #[default]
    Uniform,
    /// The logarithm of the rate is uniform: a rate is as likely to be halved as to be doubled.
    LogUniform,
}

/// Source of the rates of one queue.
#[derive(Clone, Debug)]
pub(super) struct Redraw {
    config: RedrawConfig,
    every: Duration,
    /// Random numbers of the run; `None` until a run starts.
    rng: Option<Rng>,
    /// Time from which the latest drawn rate holds.
    at: Time,
}

impl Redraw {
    pub(super) fn new(config: &RedrawConfig) -> Result<Redraw, ConfigError> {
        positive("from_mbps", config.from_mbps)?;
        positive("to_mbps", config.to_mbps)?;
        if config.to_mbps < config.from_mbps {
            let reason = format!("is {}, below `from_mbps` ({})", config.to_mbps, config.from_mbps);
            return Err(ConfigError::new("to_mbps", format!("{reason}; give the lower rate first")));
        }
        let every = duration_ms("every_ms", config.every_ms)?;
        if config.every_ms < MIN_EVERY_MS {
            let reason = format!("is {}; the least is {MIN_EVERY_MS}", config.every_ms);
            return Err(ConfigError::new("every_ms", reason));
        }
        Ok(Redraw { config: *config, every, rng: None, at: Time::ZERO })
    }

    /// The maximum rate that can be drawn.
    pub(super) fn highest(&self) -> Rate {
        Rate::from_mbps(self.config.to_mbps)
    }

    /// Starts to draw rates from `rng`. Returns the first rate.
    pub(super) fn begin(&mut self, mut rng: Rng) -> Rate {
        let first = self.config.draw(&mut rng);
        self.rng = Some(rng);
        first
    }

    /// The next change of the rate; `None` before a run has started.
    pub(super) fn next(&mut self) -> Option<(Time, Option<Rate>)> {
        let rate = self.config.draw(self.rng.as_mut()?);
        self.at += self.every;
        Some((self.at, Some(rate)))
    }
}

impl RedrawConfig {
    fn draw(&self, rng: &mut Rng) -> Rate {
        let (from, to) = (self.from_mbps, self.to_mbps);
        let mbps = match self.distribution {
            Distribution::Uniform => rng.range(from, to),
            Distribution::LogUniform => libm::exp(rng.range(libm::log(from), libm::log(to))),
        };
        // Rounding errors of the logarithm may lead to a rate outside of the range.
        Rate::from_mbps(mbps.clamp(from, to))
    }
}
