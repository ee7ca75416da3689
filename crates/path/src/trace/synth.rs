//! Made-up traces: constant, in steps, Poisson, and a random walk with outages like a cellular link.

use std::time::Duration;

use airpace_core::{Rate, Rng, Streams};
use serde::Deserialize;

use super::chances::{CHANCE, Trace};
use crate::config_error::{ConfigError, duration_ms, not_negative, positive};

/// How the rate of a made trace moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Model {
    /// Chances at random, at a rate that wanders between nothing and twice of where it starts, and at times stays away
    /// for some tenths of a second.
    #[default]
    Cellular,
    /// Chances at random, at a fixed rate.
    Poisson,
    /// Chances as even as milliseconds allow.
    Constant,
}

impl Model {
    /// A trace of `duration` around `rate`; what is random in it is drawn from the stream `trace.synth`.
    ///
    /// # Errors
    /// `rate_mbps` or `duration_s` is so small that there is no chance at all.
    pub fn make(self, rate: Rate, duration: Duration, streams: &Streams) -> Result<Trace, ConfigError> {
        let rng = &mut streams.stream("trace.synth");
        match self {
            Model::Cellular => RandomWalk::around(rate).generate(duration, rng),
            Model::Poisson => poisson(rate, duration, rng),
            Model::Constant => constant(rate, duration),
        }
    }
}

/// Chances at a constant rate, for `duration`.
///
/// # Errors
/// `rate_mbps` or `duration_s` is so small that there is no chance at all.
pub fn constant(rate: Rate, duration: Duration) -> Result<Trace, ConfigError> {
    steps(&[(duration, rate)])
}

/// Chances at one rate after the other, each for its time.
///
/// # Errors
/// The rates and times are so small that there is no chance at all.
pub fn steps(steps: &[(Duration, Rate)]) -> Result<Trace, ConfigError> {
    let mut credit = Credit::default();
    for &(duration, rate) in steps {
        credit.run(rate.as_bps() as f64, duration.as_millis() as u64);
    }
    trace(credit.into_times_ms())
}

/// Chances that come independently of each other, at this mean rate, for `duration`.
///
/// # Errors
/// `rate_mbps` or `duration_s` is so small that there is no chance at all.
pub fn poisson(rate: Rate, duration: Duration, rng: &mut Rng) -> Result<Trace, ConfigError> {
    let mut times_ms = Vec::new();
    for ms in 1..=duration.as_millis() as u64 {
        chances_of_ms(ms, rate.as_bps() as f64, rng, &mut times_ms);
    }
    trace(times_ms)
}

/// A link whose rate wanders, stays away for a while when it falls to zero, and comes back: chances are Poisson
/// at a rate in Brownian motion between zero and a maximum, with sticky outages.
///
/// Source: Sprout (NSDI '13) §3, its model of a cellular link
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RandomWalk {
    /// Rate at the start in Mbit/s.
    pub start_mbps: f64,
    /// The rate is reflected here, in Mbit/s.
    pub max_mbps: f64,
    /// Standard deviation of the change of rate over one second, in Mbit/s.
    pub volatility_mbps: f64,
    /// Mean length of an outage, in milliseconds; 0 for none.
    pub outage_mean_ms: f64,
}

impl Default for RandomWalk {
    fn default() -> RandomWalk {
        // Chosen: Sprout's volatility, 200 packets/s per √s, and its mean outage of 1 s, around 6 Mbit/s.
        RandomWalk { start_mbps: 6.0, max_mbps: 20.0, volatility_mbps: 2.4, outage_mean_ms: 1000.0 }
    }
}

/// How often the rate of a walk changes.
///
/// Source: Sprout (NSDI '13) §3, its tick
const TICK_MS: u64 = 20;

impl RandomWalk {
    /// A link like a cellular one, around `rate`.
    ///
    /// Chosen: the walk of Sprout's model, 200 on a scale from 0 to 1000 in one second, scaled to this rate; outages of
    /// 0.3 s in the mean and not of 1 s, or a minute often has one that a transport does not survive.
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
    /// Names the key that is out of range, or says that there is no chance at all.
    pub fn generate(&self, duration: Duration, rng: &mut Rng) -> Result<Trace, ConfigError> {
        let max = positive("max_mbps", self.max_mbps)?;
        let mut mbps = not_negative("start_mbps", self.start_mbps)?.min(max);
        let volatility = not_negative("volatility_mbps", self.volatility_mbps)?;
        let outage = duration_ms("outage_mean_ms", self.outage_mean_ms)?.as_secs_f64() * 1e3;
        let step = volatility * libm::sqrt(TICK_MS as f64 * 1e-3);
        let (mut times_ms, mut outage_until) = (Vec::new(), 0.0);
        for ms in 1..=duration.as_millis() as u64 {
            if ms % TICK_MS == 1 && ms as f64 > outage_until {
                mbps += step * rng.normal();
                if mbps <= 0.0 {
                    mbps = -mbps;
                    if outage > 0.0 {
                        outage_until = ms as f64 + rng.exponential(outage);
                    }
                }
                mbps = if mbps > max { (2.0 * max - mbps).max(0.0) } else { mbps };
            }
            if ms as f64 > outage_until {
                chances_of_ms(ms, mbps * 1e6, rng, &mut times_ms);
            }
        }
        trace(times_ms)
    }
}

/// Adds the chances of one millisecond at a rate in bit/s.
fn chances_of_ms(ms: u64, rate_bps: f64, rng: &mut Rng, times_ms: &mut Vec<u64>) {
    let mean = rate_bps / 1000.0 / CHANCE.bits().0 as f64;
    // The draw is meant for small means; a sum of draws is a draw of the sum.
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

/// What a rate has earned and not yet spent on chances. The sum is one of floating-point numbers on purpose: traces
/// that others converted by the same rule come out alike, rounding included.
#[derive(Debug, Default)]
pub(super) struct Credit {
    chances: f64,
    ms: u64,
    times_ms: Vec<u64>,
}

impl Credit {
    /// Lets `span_ms` pass at `rate_bps`; a chance comes at the end of the millisecond that completes it.
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

    /// The milliseconds of the chances so far.
    pub fn into_times_ms(self) -> Vec<u64> {
        self.times_ms
    }
}
