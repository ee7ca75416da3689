//! The linear start: from one rate to the fair share in three round trips.
//!
//! Source: PBE-CC §4.1

use std::time::Duration;

use airpace_core::{Rate, Time};

/// Round trips that the start takes.
///
/// Source: PBE-CC §4.1
const ROUND_TRIPS: u32 = 3;

/// Rate until the first ACK brings RTprop and Cf. It is also the least rate of any start.
///
/// Chosen: one packet every 10 ms; the paper starts "from zero", at which no ACK would ever come.
pub const FIRST_RATE: Rate = Rate::from_bps(1_200_000);

/// A rate that rises on a straight line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ramp {
    from: Rate,
    /// When it began and how long it takes; `None` until the first ACK.
    course: Option<(Time, Duration)>,
}

impl Ramp {
    /// A ramp that waits for its first ACK.
    pub fn waiting() -> Ramp {
        Ramp { from: FIRST_RATE, course: None }
    }

    /// A ramp that waits for its first ACK, at a rate that a request has told.
    pub fn asked(rate: Rate) -> Ramp {
        Ramp { from: rate, course: None }
    }

    /// A ramp from the rate `from`, begun at `now`.
    pub fn begin(from: Rate, now: Time, rtt: Duration) -> Ramp {
        Ramp { from, course: Some((now, rtt * ROUND_TRIPS)) }
    }

    /// Whether it has begun.
    pub fn has_begun(&self) -> bool {
        self.course.is_some()
    }

    /// The rate at `now` on the way to `goal`.
    pub fn rate(&self, now: Time, goal: Rate) -> Rate {
        let Some((began, span)) = self.course else { return self.from.max(FIRST_RATE) };
        let part = ((now - began).as_secs_f64() / span.as_secs_f64().max(1e-6)).min(1.0);
        let (from, to) = (self.from.as_bps() as f64, goal.as_bps() as f64);
        Rate::from_bps_f64(from + (to - from) * part).max(FIRST_RATE.min(goal))
    }

    /// The rate it began at.
    pub fn from(&self) -> Rate {
        self.from
    }

    /// Whether the goal has been reached.
    pub fn is_done(&self, now: Time) -> bool {
        self.course.is_some_and(|(began, span)| now - began >= span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_rises_on_a_line_over_three_round_trips() {
        let ramp = Ramp::begin(Rate::ZERO, Time::from_millis(100), Duration::from_millis(40));
        let goal = Rate::from_mbps(60.0);
        assert_eq!(ramp.rate(Time::from_millis(160), goal), Rate::from_mbps(30.0));
        assert_eq!(ramp.rate(Time::from_millis(220), goal), goal);
        assert!(ramp.is_done(Time::from_millis(220)) && !ramp.is_done(Time::from_millis(219)));
        assert_eq!(
            ramp.rate(Time::from_millis(100), goal),
            FIRST_RATE,
            "a rate of zero would never see an ACK"
        );
        assert_eq!(Ramp::waiting().rate(Time::from_secs(9), goal), FIRST_RATE);
    }
}
