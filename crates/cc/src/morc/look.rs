//! What ACKs say, twice per round trip: the received rate and the mean queueing delay.
//!
//! An interval whose link has become ten times slower takes ten times as long to be acknowledged, and its report comes
//! when the queue has grown for all that time. A clock of ACKs does not wait for it.

use std::time::Duration;

use airpace_core::Time;

/// The least time between two looks.
///
/// Chosen: an LTE cell releases packets in bunches of 8 ms (HARQ). A shorter time sees the bunches only.
const LEAST_LOOK: Duration = Duration::from_millis(10);

/// The sums since the last look, and those of the look before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ear {
    /// When the last look was; `None` before the first ACK.
    last: Option<Time>,
    /// When the next look may be.
    due: Time,
    bytes: f64,
    bytes_before: f64,
    seconds_before: f64,
    queue_ms: f64,
    samples: f64,
    /// Whether the application had nothing to send, now and before.
    is_silent: bool,
    was_silent: bool,
}

/// A look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// Time since the look before.
    pub since_s: f64,
    /// The rate received since the look before the last one.
    ///
    /// Chosen: two looks are a round trip. Over less, bunches of ACKs make the rate; over more, it is old.
    pub received_mbps: f64,
    /// Mean queueing delay since the last look.
    pub queue_ms: f64,
    /// Whether the application had nothing to send for a part of the time, so that the rate is not the path's.
    pub is_silent: bool,
}

impl Ear {
    /// Bytes were acknowledged. `is_silent`: the application had no more to send when they left.
    pub fn acked(&mut self, now: Time, bytes: f64, is_silent: bool) {
        if self.last.is_none() {
            (self.last, self.due) = (Some(now), now + LEAST_LOOK);
        }
        self.bytes += bytes;
        self.is_silent |= is_silent;
    }

    /// A packet waited this long.
    pub fn waited(&mut self, queue_ms: f64) {
        self.queue_ms += queue_ms;
        self.samples += 1.0;
    }

    /// Whether a look may be due: the last one is at least 10 ms ago.
    pub fn is_due(&self, now: Time) -> bool {
        now >= self.due
    }

    /// The next look, if the last one is at least `every` ago and there is a sample.
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
            due: now + LEAST_LOOK,
            was_silent: self.is_silent,
            bytes_before: self.bytes,
            seconds_before: since_s,
            ..Ear::default()
        };
        Some(Look { since_s, received_mbps, queue_ms, is_silent })
    }
}

/// Milliseconds of `span`, which is computed for every ACK.
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
