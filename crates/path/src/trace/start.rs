//! Start of a run within a recording.

use std::fmt;

use airpace_core::{Streams, Time};
use serde::de::{Deserialize, Deserializer, Error, Visitor};

use crate::config_error::{ConfigError, not_negative};

/// Start of a run within a recording: a number of seconds, or the word `random`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Start {
    /// The run starts this many seconds after the start of the recording.
    AtS(f64),
    /// The run starts at a random millisecond, which is drawn from the seed. All milliseconds of the recording are
    /// equally likely.
    Random,
}

impl Default for Start {
    fn default() -> Start {
        Start::AtS(0.0)
    }
}

impl Start {
    /// Name of the stream of random numbers from which starts are drawn.
    const STREAM: &str = "trace.start";

    /// The millisecond of the recording at which every run starts; `None` if the start is drawn for each seed.
    ///
    /// # Errors
    /// The time is negative or not finite; the error has the key `start_s`.
    pub fn fixed_ms(self) -> Result<Option<u64>, ConfigError> {
        match self {
            Start::AtS(seconds) => {
                Ok(Some(Time::from_secs_f64(not_negative("start_s", seconds)?).as_millis()))
            }
            Start::Random => Ok(None),
        }
    }

    /// The millisecond at which a run with these streams starts in a recording that repeats after `period_ms`.
    ///
    /// Chosen: all links draw the first number of one stream, so that recordings of equal length, such as those of the
    /// two directions of a link, start at the same time.
    ///
    /// # Panics
    /// If a fixed start is negative or not finite, which [`Start::fixed_ms`] rejects.
    pub fn ms(self, period_ms: u64, streams: &Streams) -> u64 {
        let fixed = self.fixed_ms().expect("a link refuses a start that is no time");
        fixed.unwrap_or_else(|| streams.stream(Start::STREAM).below(period_ms))
    }
}

impl<'de> Deserialize<'de> for Start {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Start, D::Error> {
        deserializer.deserialize_any(StartVisitor)
    }
}

struct StartVisitor;

impl Visitor<'_> for StartVisitor {
    type Value = Start;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of seconds, or \"random\"")
    }

    fn visit_f64<E: Error>(self, seconds: f64) -> Result<Start, E> {
        Ok(Start::AtS(seconds))
    }

    fn visit_i64<E: Error>(self, seconds: i64) -> Result<Start, E> {
        Ok(Start::AtS(seconds as f64))
    }

    fn visit_u64<E: Error>(self, seconds: u64) -> Result<Start, E> {
        Ok(Start::AtS(seconds as f64))
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<Start, E> {
        match word {
            "random" => Ok(Start::Random),
            _ => Err(E::invalid_value(serde::de::Unexpected::Str(word), &self)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_start_is_the_seeds_own_and_the_same_for_recordings_of_one_length() {
        let starts: Vec<u64> = (0..100).map(|seed| Start::Random.ms(60_000, &Streams::new(seed))).collect();
        assert!(starts.iter().all(|&ms| ms < 60_000), "a start lies in the recording: {starts:?}");
        let (low, high) = (starts.iter().min().unwrap(), starts.iter().max().unwrap());
        assert!(*low < 6_000 && *high > 54_000, "every part of the recording is drawn: {starts:?}");
        assert_eq!(Start::Random.ms(60_000, &Streams::new(7)), starts[7]);
        assert_eq!(Start::AtS(1.5).ms(60_000, &Streams::new(7)), 1500);
        assert!(Start::AtS(-1.0).fixed_ms().is_err());
    }
}
