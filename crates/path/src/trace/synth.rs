//! Synthetic traces: traces with a constant rate, with steps of the rate, with Poisson-distributed opportunities, and
//! with a rate that follows a random walk with outages, like a cellular link. The caller gives either the rate
//! parameter of the model, or the mean rate of the trace.

use std::time::Duration;

use airpace_core::{Rate, Rng, Streams};
use serde::Deserialize;

use super::chances::{CHANCE, Trace};
use crate::config_error::{ConfigError, duration_ms, not_negative, positive};

/// Maximum duration of a synthetic trace. While a trace is generated, the rate of every millisecond is stored in
/// memory.
///
/// Chosen: a day.
const MAX_DURATION: Duration = Duration::from_secs(86_400);

/// How the rate of a synthetic trace varies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Model {
    /// Opportunities are random. The rate of opportunities varies between zero and twice its start value, and at times
    /// is zero for some tenths of a second.
    #[default]
    Cellular,
    /// Opportunities are random, at a constant rate.
    Poisson,
    /// Opportunities are spaced as evenly as milliseconds permit.
    Constant,
}

impl Model {
    /// A trace of `duration` whose mean equals `mean` to the nearest opportunity, with any model. The number of
    /// opportunities follows from the mean, and the model distributes them over time. The last opportunity is at the
    /// end, where the trace repeats.
    ///
    /// The variation of the rate is drawn from the stream `trace.synth`, the opportunities from `trace.synth.chances`.
    ///
    /// # Errors
    /// `mean_mbps` or `seconds` is so small that there is no opportunity, or so large that there are too many.
    pub fn with_mean(self, mean: Rate, duration: Duration, streams: &Streams) -> Result<Trace, ConfigError> {
        check_size("mean_mbps", mean, duration)?;
        let length_ms = duration.as_millis() as u64;
        let chances = libm::round(chances_at(mean.as_bps() as f64, length_ms)) as u64;
        if chances == 0 {
            return trace(Vec::new()).map_err(|error| of_mean(&error));
        }
        let rates: Vec<f64> = match self {
            Model::Cellular => {
                RandomWalk::around(mean).near_its_centre(length_ms, &mut streams.stream("trace.synth"))?
            }
            Model::Poisson => vec![1.0; length_ms as usize],
            Model::Constant => return constant(mean, duration).map_err(|error| of_mean(&error)),
        };
        let mut times_ms = scattered(&rates, chances - 1, &mut streams.stream("trace.synth.chances"));
        times_ms.push(length_ms);
        trace(times_ms).map_err(|error| of_mean(&error))
    }

    /// A trace of `duration` with `rate` as the model's rate: the rates of `constant` and `poisson` have this mean;
    /// `cellular` starts at this rate, and its mean may be half of it or twice as high. Random numbers are drawn from
    /// the stream `trace.synth`.
    ///
    /// # Errors
    /// `rate_mbps` or `seconds` is so small that there is no opportunity, or so large that there are too many.
    pub fn with_rate(self, rate: Rate, duration: Duration, streams: &Streams) -> Result<Trace, ConfigError> {
        // A random walk may reach twice its initial rate.
        let most = if self == Model::Cellular { rate.scaled(2.0) } else { rate };
        check_size("rate_mbps", most, duration)?;
        let rng = &mut streams.stream("trace.synth");
        match self {
            Model::Cellular => RandomWalk::around(rate).generate(duration, rng),
            Model::Poisson => poisson(rate, duration, rng),
            Model::Constant => constant(rate, duration),
        }
    }
}

/// A trace of `duration` with opportunities at a constant rate.
///
/// # Errors
/// `rate_mbps` or `duration_s` is so small that there is no opportunity.
pub fn constant(rate: Rate, duration: Duration) -> Result<Trace, ConfigError> {
    steps(&[(duration, rate)])
}

/// A trace with opportunities at successive rates, each rate for its duration.
///
/// # Errors
/// The rates and times are so small that there is no opportunity.
pub fn steps(steps: &[(Duration, Rate)]) -> Result<Trace, ConfigError> {
    let mut credit = Credit::default();
    for &(duration, rate) in steps {
        credit.run(rate.as_bps() as f64, duration.as_millis() as u64);
    }
    trace(credit.into_times_ms())
}

/// A trace of `duration` with independent (Poisson) opportunities at this mean rate.
///
/// # Errors
/// `rate_mbps` or `duration_s` is so small that there is no opportunity.
pub fn poisson(rate: Rate, duration: Duration, rng: &mut Rng) -> Result<Trace, ConfigError> {
    let mut times_ms = Vec::new();
    for ms in 1..=duration.as_millis() as u64 {
        chances_of_ms(ms, rate.as_bps() as f64, rng, &mut times_ms);
    }
    trace(times_ms)
}

/// Model of a link with a varying rate. Opportunities are a Poisson process whose rate follows a Brownian motion
/// between zero and a maximum. When the rate falls to zero, it stays there for some time (an outage) before it rises
/// again.
///
/// Source: Sprout (NSDI '13) §3, its model of a cellular link
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RandomWalk {
    /// Rate at the start in Mbit/s.
    pub start_mbps: f64,
    /// Maximum rate in Mbit/s, at which the Brownian motion is reflected.
    pub max_mbps: f64,
    /// Standard deviation of the change of rate over one second, in Mbit/s.
    pub volatility_mbps: f64,
    /// Mean duration of an outage, in milliseconds; 0 for no outages.
    pub outage_mean_ms: f64,
}

impl Default for RandomWalk {
    fn default() -> RandomWalk {
        // Chosen: the volatility of Sprout's model, 200 packets/s per √s, and its mean outage of 1 s, with a start rate
        // of 6 Mbit/s.
        RandomWalk { start_mbps: 6.0, max_mbps: 20.0, volatility_mbps: 2.4, outage_mean_ms: 1000.0 }
    }
}

/// Interval of changes of the rate.
///
/// Source: Sprout (NSDI '13) §3, its tick
const TICK_MS: u64 = 20;

impl RandomWalk {
    /// A random walk like the rate of a cellular link, around `rate`.
    ///
    /// Chosen: the walk of Sprout's model, scaled to this rate. In Sprout's model, the standard deviation after one
    /// second is 200 on a scale from 0 to 1000. Outages last 0.3 s on average instead of 1 s, because otherwise a
    /// minute often has an outage that a transport does not survive.
    pub fn around(rate: Rate) -> RandomWalk {
        let mbps = rate.as_mbps();
        RandomWalk {
            start_mbps: mbps,
            max_mbps: 2.0 * mbps,
            volatility_mbps: 0.4 * mbps,
            outage_mean_ms: 300.0,
        }
    }

    /// A trace of `duration`.
    ///
    /// # Errors
    /// A value is out of range, or the trace would have no opportunity.
    pub fn generate(&self, duration: Duration, rng: &mut Rng) -> Result<Trace, ConfigError> {
        let mut walk = self.start()?;
        let mut times_ms = Vec::new();
        for ms in 1..=duration.as_millis() as u64 {
            let mbps = walk.mbps_in(ms, rng);
            chances_of_ms(ms, mbps * 1e6, rng, &mut times_ms);
        }
        trace(times_ms)
    }

    /// The rate in each of `length_ms` milliseconds, in Mbit/s. Walks are drawn until the mean of a walk is near
    /// `start_mbps`. A walk with a very different mean would have to be scaled so strongly that its peaks would no
    /// longer fit the model.
    ///
    /// Chosen: "near" is a difference of less than a tenth, which is the case for one in five walks of a minute. If
    /// none of a hundred walks is near, the walk with the nearest mean is used.
    fn near_its_centre(&self, length_ms: u64, rng: &mut Rng) -> Result<Vec<f64>, ConfigError> {
        let mut nearest = (f64::INFINITY, Vec::new());
        for _ in 0..100 {
            let mut walk = self.start()?;
            let rates: Vec<f64> = (1..=length_ms).map(|ms| walk.mbps_in(ms, rng)).collect();
            let mean = rates.iter().sum::<f64>() / length_ms.max(1) as f64;
            let away = (mean / self.start_mbps - 1.0).abs();
            if away < nearest.0 {
                nearest = (away, rates);
            }
            if nearest.0 < 0.1 {
                break;
            }
        }
        Ok(nearest.1)
    }

    /// The state of the walk before its first step.
    fn start(&self) -> Result<Walk, ConfigError> {
        let max = positive("max_mbps", self.max_mbps)?;
        let volatility = not_negative("volatility_mbps", self.volatility_mbps)?;
        Ok(Walk {
            mbps: not_negative("start_mbps", self.start_mbps)?.min(max),
            max,
            step: volatility * libm::sqrt(TICK_MS as f64 * 1e-3),
            outage_ms: duration_ms("outage_mean_ms", self.outage_mean_ms)?.as_secs_f64() * 1e3,
            outage_until: 0.0,
        })
    }
}

/// The state of a random walk.
struct Walk {
    mbps: f64,
    max: f64,
    /// Standard deviation of the change of the rate in one step (Mbit/s).
    step: f64,
    /// Mean length of an outage (ms).
    outage_ms: f64,
    /// The millisecond in which the outage ends.
    outage_until: f64,
}

impl Walk {
    /// The rate in millisecond `ms`. Must be called for each millisecond in order, from 1 on.
    fn mbps_in(&mut self, ms: u64, rng: &mut Rng) -> f64 {
        if ms % TICK_MS == 1 && ms as f64 > self.outage_until {
            self.mbps += self.step * rng.normal();
            if self.mbps <= 0.0 {
                self.mbps = -self.mbps;
                if self.outage_ms > 0.0 {
                    self.outage_until = ms as f64 + rng.exponential(self.outage_ms);
                }
            }
            if self.mbps > self.max {
                self.mbps = (2.0 * self.max - self.mbps).max(0.0);
            }
        }
        if ms as f64 > self.outage_until { self.mbps } else { 0.0 }
    }
}

/// The milliseconds, from 1 on, of `count` opportunities. For each opportunity, the millisecond is drawn independently,
/// with a probability proportional to the rate in the millisecond. This is the distribution of a Poisson process
/// conditioned on its number of opportunities.
fn scattered(rates: &[f64], count: u64, rng: &mut Rng) -> Vec<u64> {
    let all: f64 = rates.iter().sum();
    let mut places: Vec<f64> = (0..count).map(|_| rng.uniform() * all).collect();
    places.sort_unstable_by(f64::total_cmp);
    let (mut ms, mut up_to_ms) = (0, 0.0);
    let mut ms_of = |place: f64| {
        while place >= up_to_ms && ms < rates.len() {
            up_to_ms += rates[ms];
            ms += 1;
        }
        ms as u64
    };
    places.into_iter().map(&mut ms_of).collect()
}

/// Number of opportunities at this rate in `span_ms` milliseconds.
fn chances_at(rate_bps: f64, span_ms: u64) -> f64 {
    rate_bps * span_ms as f64 * 1e-3 / CHANCE.bits().0 as f64
}

/// Rejects a trace that would be too long, or that has too many opportunities at the rate `most`. `key` is the key of
/// the rate.
fn check_size(key: &str, most: Rate, duration: Duration) -> Result<(), ConfigError> {
    if duration > MAX_DURATION {
        let reason =
            format!("is {}; the most that it may be is {}", duration.as_secs(), MAX_DURATION.as_secs());
        return Err(ConfigError::new("seconds", reason));
    }
    if chances_at(most.as_bps() as f64, duration.as_millis() as u64) > Trace::MAX_CHANCES as f64 {
        let reason = format!(
            "makes more than {} delivery opportunities in {} s; give less of either",
            Trace::MAX_CHANCES,
            duration.as_secs()
        );
        return Err(ConfigError::new(key, reason));
    }
    Ok(())
}

/// Replaces the key of the error by `mean_mbps`, for a trace that was requested by its mean.
fn of_mean(error: &ConfigError) -> ConfigError {
    ConfigError::new("mean_mbps", error.reason.clone())
}

/// Adds the opportunities of one millisecond at a rate in bit/s.
fn chances_of_ms(ms: u64, rate_bps: f64, rng: &mut Rng, times_ms: &mut Vec<u64>) {
    let mean = rate_bps / 1000.0 / CHANCE.bits().0 as f64;
    // The algorithm for Poisson numbers is designed for small means. The sum of several such numbers has the same
    // distribution as one number with the summed mean.
    let parts = libm::ceil(mean / 30.0) as u32;
    for _ in 0..parts {
        let count = rng.poisson(mean / f64::from(parts));
        times_ms.extend(std::iter::repeat_n(ms, count as usize));
    }
}

fn trace(times_ms: Vec<u64>) -> Result<Trace, ConfigError> {
    let nothing = "give a rate and a duration that make at least one packet of 1500 bytes";
    Trace::from_times_ms(times_ms)
        .map_err(|error| ConfigError::new("rate_mbps", format!("gives no trace ({}): {nothing}", error.what)))
}

/// Converts rates to opportunities by summing the fractions of an opportunity per millisecond. The sum deliberately
/// uses floating-point numbers, so that the result equals the result of other programs with the same rule, including
/// rounding.
#[derive(Debug, Default)]
pub(super) struct Credit {
    chances: f64,
    ms: u64,
    times_ms: Vec<u64>,
}

impl Credit {
    /// Adds `span_ms` milliseconds at `rate_bps`. An opportunity is at the end of the millisecond in which the sum
    /// reaches the next integer.
    pub fn run(&mut self, rate_bps: f64, span_ms: u64) {
        let per_ms = rate_bps / 1000.0 / CHANCE.bits().0 as f64;
        for _ in 0..span_ms {
            self.ms += 1;
            self.chances += per_ms;
            while self.chances >= 1.0 {
                self.chances -= 1.0;
                self.times_ms.push(self.ms);
            }
        }
    }

    /// Approximate total number of opportunities after a further `span_ms` milliseconds at `rate_bps`.
    pub fn chances_in(&self, rate_bps: f64, span_ms: u64) -> f64 {
        self.times_ms.len() as f64 + chances_at(rate_bps, span_ms)
    }

    /// The milliseconds of the opportunities so far.
    pub fn into_times_ms(self) -> Vec<u64> {
        self.times_ms
    }
}
