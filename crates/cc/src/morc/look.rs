//! Samples of the ACKs, twice per round trip: the received rate and the mean queueing delay.
//!
//! If a link becomes ten times slower, the ACKs of an interval take ten times as long, and the queue grows until the
//! interval's report arrives. Samples triggered by ACKs avoid this delay.

use std::time::Duration;

use airpace_core::Time;

/// Minimum time between two samples.
///
/// Chosen: an LTE cell releases packets in bursts of 8 ms (HARQ). A shorter time would only measure these bursts.
const MIN_LOOK: Duration = Duration::from_millis(10);

/// Sums over the ACKs since the last sample, and the sums of the last sample.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ear {
    /// Time of the last sample; `None` before the first ACK.
    last: Option<Time>,
    /// Earliest time of the next sample.
    due: Time,
    bytes: f64,
    bytes_before: f64,
    seconds_before: f64,
    queue_ms: f64,
    samples: f64,
    /// Whether the application had nothing to send at some time in the current sample. `was_silent` is the same for the
    /// previous sample.
    is_silent: bool,
    was_silent: bool,
}

/// A sample of the ACKs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// Time since the previous sample.
    pub since_s: f64,
    /// The received rate over the last two samples.
    ///
    /// Chosen: two samples are one round trip. Over a shorter time, ACK aggregation determines the rate; over a longer
    /// time, the rate is old.
    pub received_mbps: f64,
    /// Mean queueing delay since the previous sample.
    pub queue_ms: f64,
    /// Whether the application had nothing to send for a part of the time, so that the received rate is not the rate of
    /// the path.
    pub is_silent: bool,
}

impl Ear {
    /// Records acknowledged bytes. `is_silent`: the application had no more data to send when these bytes left.
    pub fn acked(&mut self, now: Time, bytes: f64, is_silent: bool) {
        if self.last.is_none() {
            (self.last, self.due) = (Some(now), now + MIN_LOOK);
        }
        self.bytes += bytes;
        self.is_silent |= is_silent;
    }

    /// Records the queueing delay of a packet.
    pub fn waited(&mut self, queue_ms: f64) {
        self.queue_ms += queue_ms;
        self.samples += 1.0;
    }

    /// Whether a sample may be due: the last sample is at least 10 ms old.
    pub fn is_due(&self, now: Time) -> bool {
        now >= self.due
    }

    /// The next sample; `None` if the last sample is less than `every` old or no delay was recorded since then.
    pub fn look(&mut self, now: Time, every: Duration) -> Option<Look> {
        let since = now - self.last?;
        if since < every || self.samples == 0.0 {
            return None;
        }
        let since_s = since.as_secs_f64();
        let received_mbps = (self.bytes + self.bytes_before) * 8e-6 / (since_s + self.seconds_before);
        let queue_ms = self.queue_ms / self.samples;
        let is_silent = self.is_silent || self.was_silent;
        *self = Ear {
            last: Some(now),
            due: now + MIN_LOOK,
            was_silent: self.is_silent,
            bytes_before: self.bytes,
            seconds_before: since_s,
            ..Ear::default()
        };
        Some(Look { since_s, received_mbps, queue_ms, is_silent })
    }
}

/// Converts `span` to milliseconds. This conversion runs for every ACK and is faster than the standard library's.
pub fn to_ms(span: Duration) -> f64 {
    (span.as_secs() as i64 * 1_000_000_000 + i64::from(span.subsec_nanos())) as f64 * 1e-6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_has_the_rate_of_two_and_the_queue_of_one() {
        let (at, ms) = (Time::from_millis, Duration::from_millis);
        let mut ear = Ear::default();
        assert!(ear.look(at(0), Duration::ZERO).is_none(), "nothing was heard");
        ear.acked(at(0), 0.0, false);
        ear.acked(at(20), 50_000.0, true);
        ear.waited(10.0);
        assert!(ear.look(at(20), ms(30)).is_none(), "too soon");
        let first = ear.look(at(20), ms(20)).unwrap();
        assert!((first.received_mbps - 20.0).abs() < 1e-9 && first.queue_ms == 10.0, "{first:?}");
        ear.acked(at(40), 100_000.0, false);
        assert!(ear.look(at(40), ms(20)).is_none(), "no sample of the queue");
        ear.waited(30.0);
        let second = ear.look(at(40), ms(20)).unwrap();
        assert!((second.received_mbps - 30.0).abs() < 1e-9 && second.queue_ms == 30.0, "{second:?}");
        assert!(first.is_silent && second.is_silent, "both rates have the silence in them");
        ear.acked(at(60), 50_000.0, false);
        ear.waited(30.0);
        assert!(!ear.look(at(60), ms(20)).unwrap().is_silent);
    }
}
