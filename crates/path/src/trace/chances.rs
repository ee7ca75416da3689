//! Trace: the times of a link's delivery opportunities, and their statistics.

use std::time::Duration;

use airpace_core::{Bytes, Rate};
use serde::Serialize;

use super::error::TraceError;

/// Number of bytes per delivery opportunity with which opportunities are converted to rates.
pub const CHANCE: Bytes = Bytes(1500);

/// A trace: the milliseconds at which a link could deliver one full-sized packet, starting from 0, never decreasing.
/// The trace repeats. Its period is the time of its last opportunity, or longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    times_ms: Vec<u64>,
    period_ms: u64,
}

/// The longest time without an opportunity in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    /// The millisecond of the last opportunity before the hole.
    pub start_ms: u64,
    /// Duration of the hole.
    pub length: Duration,
}

/// Statistics of a trace; rates count 1500 bytes per opportunity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TraceInfo {
    /// Number of delivery opportunities.
    pub opportunities: u64,
    /// Period in seconds.
    pub seconds: f64,
    /// Mean rate in Mbit/s.
    pub mean_mbps: f64,
    /// Standard deviation of the rates of all whole seconds, in Mbit/s.
    pub sd_1s_mbps: f64,
    /// Number of whole seconds with a rate below 0.1 Mbit/s.
    pub seconds_below_100_kbps: u64,
    /// Longest time without an opportunity, in seconds.
    pub longest_hole_s: f64,
}

impl Trace {
    /// Maximum duration of a trace (ms): eleven days, which is also the maximum duration of a run.
    pub(super) const MAX_MS: u64 = 1_000_000_000;
    /// Maximum number of opportunities of a trace: an hour and a half at 100 Mbit/s.
    ///
    /// Chosen: such a trace needs 400 MB of memory.
    pub(super) const MAX_CHANCES: usize = 50_000_000;

    /// The trace with opportunities at these milliseconds.
    ///
    /// # Errors
    /// The trace is empty, goes back in time, or has a duration of zero or above the maximum. The error counts lines
    /// from 1.
    pub fn from_times_ms(times_ms: Vec<u64>) -> Result<Trace, TraceError> {
        if let Some(at) = times_ms.windows(2).position(|two| two[1] < two[0]) {
            let what = format!("time {} after {}", times_ms[at + 1], times_ms[at]);
            return Err(TraceError::at(
                at as u64 + 2,
                what,
                "times never decrease; sort the lines by number",
            ));
        }
        match times_ms.last() {
            None => Err(TraceError::whole(
                "the trace is empty",
                "give one millisecond per line, each an opportunity to deliver 1500 bytes",
            )),
            Some(0) => Err(TraceError::at(
                times_ms.len() as u64,
                "the last time is 0",
                "the last time is the trace's period in ms; it must be at least 1",
            )),
            Some(&last) if last > Trace::MAX_MS => Err(TraceError::at(
                times_ms.len() as u64,
                format!("time {last} is more than eleven days"),
                "times are milliseconds from the start of the trace; subtract the first one",
            )),
            Some(_) if times_ms.len() > Trace::MAX_CHANCES => Err(TraceError::at(
                Trace::MAX_CHANCES as u64 + 1,
                format!("there are more than {} chances", Trace::MAX_CHANCES),
                "cut the trace",
            )),
            Some(&period_ms) => Ok(Trace { times_ms, period_ms }),
        }
    }

    /// The trace with a period of at least `period_ms`, which may add an outage at its end.
    pub(crate) fn lasting(mut self, period_ms: u64) -> Trace {
        self.period_ms = self.period_ms.max(period_ms);
        self
    }

    /// Duration of the outage at the end of the trace, in milliseconds. Mahimahi's format cannot express it.
    pub fn final_outage_ms(&self) -> u64 {
        self.period_ms - self.times_ms[self.times_ms.len() - 1]
    }

    /// The milliseconds of the opportunities; never empty.
    pub fn times_ms(&self) -> &[u64] {
        &self.times_ms
    }

    /// Period in milliseconds after which the trace repeats, at least 1.
    pub fn period_ms(&self) -> u64 {
        self.period_ms
    }

    /// Number of opportunities before millisecond `ms` of the repeated trace.
    pub fn opportunities_before(&self, ms: u64) -> u64 {
        let (lap, within) = (ms / self.period_ms(), ms % self.period_ms());
        let all = self.times_ms.len() as u64;
        let below = |limit| self.times_ms.partition_point(|&time| time < limit) as u64;
        if within == 0 && lap > 0 {
            // The last opportunities of a repetition are at the same time as the start of the next repetition.
            return (lap - 1).saturating_mul(all) + below(self.period_ms());
        }
        lap.saturating_mul(all) + below(within)
    }

    /// The mean rate of the trace, with `per_chance` bytes per opportunity.
    pub fn mean_rate(&self, per_chance: Bytes) -> Rate {
        let bytes = Bytes((self.times_ms.len() as u64).saturating_mul(per_chance.0));
        Rate::from_bytes_per(bytes, Duration::from_millis(self.period_ms))
    }

    /// The longest time without an opportunity, including the start of the trace.
    pub fn longest_hole(&self) -> Hole {
        let starts = std::iter::once(0).chain(self.times_ms.iter().copied());
        let holes = starts.zip(&self.times_ms).map(|(start, &end)| (end - start, start));
        // If several holes have the same length, the first is returned.
        let last = self.times_ms[self.times_ms.len() - 1];
        // An outage at the end continues until the first opportunity of the next repetition.
        let end = (self.period_ms > last).then(|| (self.period_ms - last + self.times_ms[0], last));
        let (length, start_ms) =
            holes.chain(end).fold((0, 0), |best, hole| if hole.0 > best.0 { hole } else { best });
        Hole { start_ms, length: Duration::from_millis(length) }
    }

    /// The longest time without an opportunity in the `for_ms` milliseconds of the repeated trace from `from_ms` on.
    pub fn longest_hole_in(&self, from_ms: u64, for_ms: u64) -> Hole {
        let period = self.period_ms;
        if for_ms >= period {
            return self.longest_hole();
        }
        let (from, to) = (from_ms % period, from_ms % period + for_ms);
        let first = self.times_ms.partition_point(|&time| time < from);
        let next_lap = self.times_ms.iter().map(|time| time + period);
        let chances = self.times_ms[first..].iter().copied().chain(next_lap).take_while(|&time| time < to);
        let (mut last, mut hole) = (from, (0, from));
        for time in chances.chain([to]) {
            if time - last > hole.0 {
                hole = (time - last, last);
            }
            last = time;
        }
        Hole { start_ms: hole.1 % period, length: Duration::from_millis(hole.0) }
    }

    /// The mean rate in the `for_ms` milliseconds of the repeated trace from `from_ms` on, with `per_chance` bytes per
    /// opportunity.
    pub fn mean_rate_in(&self, from_ms: u64, for_ms: u64, per_chance: Bytes) -> Rate {
        let to_ms = from_ms.saturating_add(for_ms);
        let chances = self.opportunities_before(to_ms) - self.opportunities_before(from_ms);
        Rate::from_bytes_per(
            Bytes(chances.saturating_mul(per_chance.0)),
            Duration::from_millis(for_ms.max(1)),
        )
    }

    /// Statistics of the trace.
    pub fn info(&self) -> TraceInfo {
        let chances: Vec<u64> = (0..self.period_ms() / 1000)
            .scan(0, |index, second| {
                let end = self.times_ms.partition_point(|&time| time < (second + 1) * 1000);
                Some((end - std::mem::replace(index, end)) as u64)
            })
            .collect();
        let mbps_per_chance = CHANCE.bits().0 as f64 * 1e-6;
        let count = chances.len().max(1) as f64;
        let mean = chances.iter().sum::<u64>() as f64 / count;
        // An empty sum is -0.0. Adding 0.0 converts it to +0.0.
        let variance =
            chances.iter().map(|&n| (n as f64 - mean) * (n as f64 - mean)).sum::<f64>() / count + 0.0;
        TraceInfo {
            opportunities: self.times_ms.len() as u64,
            seconds: self.period_ms() as f64 * 1e-3,
            mean_mbps: self.mean_rate(CHANCE).as_mbps(),
            sd_1s_mbps: libm::sqrt(variance) * mbps_per_chance,
            seconds_below_100_kbps: chances.iter().filter(|&&n| n as f64 * mbps_per_chance < 0.1).count()
                as u64,
            longest_hole_s: self.longest_hole().length.as_secs_f64(),
        }
    }
}
