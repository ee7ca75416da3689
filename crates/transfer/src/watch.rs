//! Values over the course of a transfer: its present rate, and the states of its scheme.

use std::collections::VecDeque;
use std::time::Duration;

use airpace_core::{Bytes, Rate, Time};
use airpace_rt::clock;
use serde_json::{Value, json};

use crate::progress::Progress;

/// Averaging interval of the rate.
const SPEED_OVER: Duration = Duration::from_secs(2);

/// Computes the rate over the last 2 s.
#[derive(Debug, Default)]
pub struct Speed {
    seen: VecDeque<(Duration, u64)>,
}

impl Speed {
    /// Records that `done` bytes were transferred after `elapsed`. Returns the rate, if enough time has passed to compute
    /// one. A smaller number than before restarts the measurement.
    pub fn at(&mut self, elapsed: Duration, done: u64) -> Option<Rate> {
        if self.seen.back().is_some_and(|(_, before)| *before > done) {
            self.seen.clear();
        }
        self.seen.push_back((elapsed, done));
        while self.seen.len() > 2 && self.seen[1].0 + SPEED_OVER <= elapsed {
            self.seen.pop_front();
        }
        let (first, before) = *self.seen.front()?;
        let span = elapsed.checked_sub(first).filter(|span| *span >= Duration::from_millis(100))?;
        Some(Rate::from_bytes_per(Bytes(done - before), span))
    }
}

/// The states of a scheme during a transfer, sampled several times per second.
#[derive(Debug, Default)]
pub struct States {
    seen: Vec<(Duration, &'static str)>,
    looked: Time,
}

/// Maximum number of stored changes of state.
///
/// Chosen: enough for minutes of a scheme whose state changes at every sample.
const MAX_STATES: usize = 1_000;

impl States {
    /// Samples the state of the transfer.
    pub fn note(&mut self, progress: &Progress) {
        self.looked = clock::now();
        let state = progress.inspect.state;
        let is_new = !state.is_empty() && self.seen.last().is_none_or(|(_, before)| *before != state);
        if is_new && self.seen.len() < MAX_STATES {
            self.seen.push((progress.elapsed, state));
        }
    }

    /// Time of the last sample. The final sample is taken at the transfer's end.
    pub fn looked(&self) -> Time {
        self.looked
    }

    /// JSON for programs: each state, and the seconds until its first occurrence.
    pub fn json(&self) -> Value {
        let state = |(at, state): &(Duration, &str)| json!({"seconds": at.as_secs_f64(), "state": state});
        self.seen.iter().map(state).collect()
    }
}

/// The capacity of the cell as estimated by the scheme: PBE-CC's fair share or capacity, BISCAY's and MORC's grants.
pub fn capacity(progress: &Progress) -> Option<Rate> {
    let named = |name: &str| progress.inspect.values.iter().find(|(other, _)| *other == name);
    let known = ["ct_mbps", "cellular_mbps", "downlink_mbps", "target_mbps"];
    let known = known.iter().filter_map(|name| named(name)).map(|(_, mbps)| *mbps);
    known.filter(|mbps| mbps.is_finite() && *mbps > 0.0).map(Rate::from_mbps).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_is_that_of_the_last_seconds() {
        let mut speed = Speed::default();
        assert_eq!(speed.at(Duration::ZERO, 0), None);
        let mut last = None;
        for tenth in 1..=100_u32 {
            // 1 MB/s, and 10 MB/s after the eighth second.
            let bytes = u64::from(tenth) * 100_000 + u64::from(tenth.saturating_sub(80)) * 900_000;
            last = speed.at(Duration::from_millis(100) * tenth, bytes);
            if tenth == 80 {
                assert_eq!(last.map(Rate::as_mbps), Some(8.0));
            }
        }
        assert_eq!(last.map(Rate::as_mbps), Some(80.0));
        assert_eq!(speed.at(Duration::from_secs(11), 5), None, "a new connection counts from the beginning");
    }
}
