//! The linear start: from one rate to the fair share in three round trips.
//!
//! Source: PBE-CC §4.1

use std::time::Duration;

use airpace_core::{Rate, Time};

/// Duration of the start, in round trips.
///
/// Source: PBE-CC §4.1
const ROUND_TRIPS: u32 = 3;

/// Sending rate until the first ACK provides RTprop and Cf. It is also the minimum rate of any start.
///
/// Chosen: one packet every 10 ms. The paper starts "from zero", at which no ACK would ever arrive.
pub const FIRST_RATE: Rate = Rate::from_bps(1_200_000);

/// A rate that rises linearly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ramp {
    from: Rate,
    /// Start time and duration of the rise; `None` until the first ACK.
    course: Option<(Time, Duration)>,
}

impl Ramp {
    /// A ramp that waits for the first ACK.
    pub fn waiting() -> Ramp {
        Ramp { from: FIRST_RATE, course: None }
    }

    /// A ramp that waits for the first ACK, at the rate that a request has provided.
    pub fn asked(rate: Rate) -> Ramp {
        Ramp { from: rate, course: None }
    }

    /// A ramp that starts at `now` from the rate `from`.
    pub fn begin(from: Rate, now: Time, rtt: Duration) -> Ramp {
        Ramp { from, course: Some((now, rtt * ROUND_TRIPS)) }
    }

    /// Whether the ramp has started.
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

    /// The rate at the start of the ramp.
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
