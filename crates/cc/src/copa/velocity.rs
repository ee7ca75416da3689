//! The velocity: the number of steps of 1/δ packets that the window takes per round. It grows while the window keeps
//! moving in one direction.

use std::time::Duration;

use airpace_core::Time;

/// Number of rounds for which the window must move in one direction before the velocity doubles. In steady state, the
/// direction changes after 2.5 rounds.
///
/// Source: Copa §2.1
const STEADY_ROUNDS: u32 = 3;

/// Maximum velocity.
///
/// Chosen: it keeps the arithmetic finite if the velocity has no other limit.
const MAX_VELOCITY: f64 = 1_048_576.0;

/// When the velocity doubles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Once per window of data, if the congestion window has moved in the same direction for three windows of data. The
    /// velocity returns to 1 as soon as an ACK moves the window in the other direction.
    ///
    /// Source: Copa §2.1
    ///
    /// Chosen: the paper resets the velocity once per window of data. If the reset waited for the end of the window,
    /// the overshoot would be as large as the gain.
    Windows,
    /// Once per RTT, if most ACKs of this RTT moved the window in the same direction as most ACKs of the previous RTT.
    ///
    /// Source: genericCC markoviancc
    Majority,
}

/// The velocity, and the direction in which it applies.
#[derive(Clone, Debug)]
pub struct Velocity {
    rule: Rule,
    value: f64,
    /// Direction in which the window moves: 1 is up, -1 is down, 0 is none.
    direction: i64,
    /// Rounds in a row that confirmed the direction.
    steady: u32,
    /// Number of ACKs of this RTT that moved the window up, minus the number of ACKs that moved it down.
    balance: i64,
    /// Time of the last evaluation of an RTT.
    judged: Time,
    /// The congestion window at the start of the round, in packets.
    window_then: f64,
}

impl Velocity {
    /// The initial velocity is one step per round.
    pub fn new(rule: Rule, window: f64) -> Velocity {
        let upwards = i64::from(rule == Rule::Majority); // genericCC markoviancc: starts as if the window had risen
        Velocity {
            rule,
            value: 1.0,
            direction: upwards,
            steady: 0,
            balance: upwards,
            judged: Time::ZERO,
            window_then: window,
        }
    }

    /// Steps of 1/δ packets per round; at least 1.
    pub fn get(&self) -> f64 {
        self.value
    }

    /// Processes the end of a window of data; the congestion window is now `window` packets. In slow start there are no
    /// steps, so rounds of slow start do not confirm a direction.
    pub fn on_round(&mut self, window: f64, slow_start: bool) {
        let moved = i64::from(window > self.window_then) - i64::from(window < self.window_then);
        self.window_then = window;
        if slow_start || self.rule == Rule::Majority {
            return;
        }
        if moved != 0 && moved == self.direction {
            self.steady += 1;
            if self.steady >= STEADY_ROUNDS {
                self.double();
            }
        } else {
            self.turn(moved);
        }
    }

    /// Called before an ACK moves the window.
    pub fn before_step(&mut self, now: Time, latest_rtt: Duration) {
        if self.rule == Rule::Windows || self.judged + latest_rtt >= now {
            return;
        }
        if self.direction * self.balance > 0 {
            self.double();
        } else {
            self.value = 1.0;
            self.direction = -self.direction;
        }
        self.judged = now;
        self.balance = 0;
    }

    /// Records that an ACK moves the window up or down.
    pub fn on_step(&mut self, up: bool) {
        let moved = if up { 1 } else { -1 };
        self.balance += moved;
        if self.rule == Rule::Windows && self.value > 1.0 && moved != self.direction {
            self.turn(moved);
        }
    }

    /// Limits the velocity, so that a round at most doubles or empties the window. `most` is δ · window.
    ///
    /// Source: genericCC markoviancc (halved once per ACK, down to 1)
    pub fn limit(&mut self, most: f64) {
        if self.value > most {
            self.value /= 2.0;
        }
        self.value = self.value.max(1.0);
    }

    fn turn(&mut self, direction: i64) {
        self.direction = direction;
        self.steady = 0;
        self.value = 1.0;
    }

    fn double(&mut self) {
        self.value = (2.0 * self.value).min(MAX_VELOCITY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direction_counts_once_it_has_lasted_three_rounds() {
        let mut velocity = Velocity::new(Rule::Windows, 10.0);
        let mut seen = vec![];
        for window in [12.0, 14.0, 16.0, 18.0, 22.0, 30.0, 29.0, 20.0, 10.0, 5.0, 5.0] {
            velocity.on_round(window, false);
            seen.push(velocity.get());
        }
        assert_eq!(seen, [1.0, 1.0, 1.0, 2.0, 4.0, 8.0, 1.0, 1.0, 1.0, 2.0, 1.0]);
    }

    #[test]
    fn the_first_ack_the_other_way_ends_the_haste() {
        let mut velocity = Velocity::new(Rule::Windows, 10.0);
        for window in 11..16 {
            velocity.on_round(f64::from(window), false);
        }
        velocity.on_step(true);
        assert_eq!(velocity.get(), 4.0);
        velocity.on_step(false);
        assert_eq!(velocity.get(), 1.0);
    }

    #[test]
    fn the_program_doubles_each_rtt_until_most_acks_go_the_other_way() {
        let mut velocity = Velocity::new(Rule::Majority, 10.0);
        let rtt = Duration::from_millis(40);
        let mut seen = vec![];
        // There are ten ACKs per RTT. All ACKs move the window up for four RTTs. In the fifth RTT most ACKs move it
        // down, and in the last two RTTs all ACKs do.
        let ups = [10, 10, 10, 10, 4, 0, 0];
        for (index, ups) in ups.into_iter().enumerate() {
            for ack in 0..10u64 {
                velocity.before_step(Time::from_millis(100 + 45 * index as u64 + 4 * ack), rtt);
                velocity.on_step(ack < ups);
            }
            seen.push(velocity.get());
        }
        assert_eq!(seen, [2.0, 4.0, 8.0, 16.0, 32.0, 1.0, 2.0]);
    }

    #[test]
    fn a_round_never_doubles_the_window() {
        let mut velocity = Velocity::new(Rule::Windows, 1.0);
        for window in 2..12 {
            velocity.on_round(f64::from(window), false);
        }
        assert_eq!(velocity.get(), 128.0);
        for _ in 0..5 {
            velocity.limit(8.0);
        }
        assert_eq!(velocity.get(), 8.0);
        velocity.limit(0.3);
        velocity.limit(0.3);
        velocity.limit(0.3);
        velocity.limit(0.3);
        assert_eq!(velocity.get(), 1.0, "a small window still moves");
    }
}
