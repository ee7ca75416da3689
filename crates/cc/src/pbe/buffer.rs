//! Target length of the flow's queue in the base station. With some data queued there, the flow can use a rise of the
//! capacity at once instead of one round trip later. The cost is that each packet waits longer.
//!
//! ```text
//! target = 0 | fixed | GAIN · (mean rise of the capacity per span) · span
//! span   = the number of round trips that reaches 40 ms; at least one
//! rate   = Ct · (1 + (target − queue) / RTprop),  at least Ct, at most 1.25·Ct
//! ```
//!
//! Source: PBE-CC §7 (some buffering helps to use increases at once; future work adjusts it adaptively)
//! Differs: the paper's system keeps no queue. On fading channels and recorded links, it then leaves a tenth of the
//! capacity unused.
//! Chosen: all rules and numbers, since the paper gives none.

use std::time::Duration;

use airpace_core::Rate;

/// Ratio of the adaptive target to the rise of the capacity within a span.
///
/// Chosen: the size of rises varies by a similar factor as their duration.
const GAIN: u64 = 4;

/// Maximum adaptive target.
///
/// Chosen: below PBE-CC's threshold for a queue outside of the cell (27 ms).
const MAX_TARGET: Duration = Duration::from_millis(25);

/// Minimum span over which the capacity is averaged and compared.
///
/// Chosen: a scheduler leaves a fading phone unserved for tens of milliseconds, even if the phone's round trip is
/// short, and grants more afterwards.
const MIN_SPAN: Duration = Duration::from_millis(40);

/// Number of spans over which rises are averaged.
const SPANS: u64 = 32;

/// Fixed-point value of a relative rise of 1, which is a doubling of the capacity. Integers make the C port compute
/// identical values.
const UNIT: u64 = 1 << 24;

/// Maximum span that is used in the target, so that the product of span and rise fits into 64 bits.
const MAX_SPAN: Duration = Duration::from_secs(16);

/// Maximum ratio of the rate to the capacity while the queue is filled.
///
/// Chosen: the gain of BBR's probe.
const MAX_GAIN: f64 = 1.25;

/// The target of the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Goal {
    /// No queue, as in the paper's system.
    None,
    /// A queue of fixed length.
    Fixed(Duration),
    /// A queue whose length adapts to the variation of the capacity.
    #[default]
    Adaptive,
}

/// The buffer state of one flow.
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    goal: Goal,
    /// Sum (bit/s) and number of the capacity samples in the current span.
    capacity: (u64, u64),
    /// Mean capacity of the previous span, in bit/s; zero before the first complete span.
    before: u64,
    /// Number of rounds in the current span.
    rounds: u32,
    /// Length of the last complete span.
    span: Duration,
    /// Mean relative rise from one span to the next, times [`SPANS`], in parts of [`UNIT`]. Spans in which the capacity
    /// fell count as zero.
    rises: u64,
    least_rtt: Option<Duration>,
    /// Queueing delay in the last round.
    queue: Duration,
    rtprop: Duration,
}

impl Buffer {
    /// The state of a new flow with this target.
    pub fn new(goal: Goal) -> Buffer {
        Buffer {
            goal,
            capacity: (0, 0),
            before: 0,
            rounds: 0,
            span: Duration::ZERO,
            rises: 0,
            least_rtt: None,
            queue: Duration::ZERO,
            rtprop: Duration::ZERO,
        }
    }

    /// Processes one ACK with its reported capacity.
    pub fn on_ack(&mut self, round_start: bool, capacity: Rate, rtt: Option<Duration>, rtprop: Duration) {
        if round_start {
            self.on_round(rtprop);
        }
        self.capacity = (self.capacity.0.saturating_add(capacity.as_bps()), self.capacity.1 + 1);
        self.least_rtt = [self.least_rtt, rtt].into_iter().flatten().min();
    }

    fn on_round(&mut self, rtprop: Duration) {
        self.rtprop = rtprop;
        if let Some(least) = self.least_rtt.take() {
            self.queue = least.saturating_sub(rtprop);
        }
        self.rounds = self.rounds.saturating_add(1);
        let span = rtprop.saturating_mul(self.rounds);
        if span >= MIN_SPAN {
            self.on_span(span);
        }
    }

    fn on_span(&mut self, span: Duration) {
        (self.rounds, self.span) = (0, span);
        let (sum, count) = std::mem::take(&mut self.capacity);
        let mean = sum / count.max(1);
        if self.before > 0 {
            let rise = mean.saturating_sub(self.before).min(self.before);
            let rise = (u128::from(rise) * u128::from(UNIT) / u128::from(self.before)) as u64;
            self.rises = self.rises - self.rises / SPANS + rise;
        }
        self.before = mean;
    }

    /// The current target of the queue, as a delay.
    pub fn target(&self) -> Duration {
        match self.goal {
            Goal::None => Duration::ZERO,
            Goal::Fixed(span) => span,
            Goal::Adaptive => {
                let span = self.span.min(MAX_SPAN).as_nanos() as u64;
                Duration::from_nanos(span * self.rises / (SPANS * UNIT / GAIN)).min(MAX_TARGET)
            }
        }
    }

    /// The sending rate at this capacity: higher while the queue is below its target.
    pub fn fill(&self, capacity: Rate) -> Rate {
        let missing = self.target().saturating_sub(self.queue);
        if missing.is_zero() || self.rtprop.is_zero() {
            return capacity;
        }
        capacity.scaled((1.0 + missing.as_secs_f64() / self.rtprop.as_secs_f64()).min(MAX_GAIN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTPROP: Duration = Duration::from_millis(40);

    /// The state after rounds of ten ACKs with these reported capacities (Mbit/s) and the queueing delay `queue`.
    fn after(goal: Goal, rounds: impl IntoIterator<Item = f64>, queue: Duration) -> Buffer {
        with_rtprop(RTPROP, goal, rounds, queue)
    }

    fn with_rtprop(
        rtprop: Duration,
        goal: Goal,
        rounds: impl IntoIterator<Item = f64>,
        queue: Duration,
    ) -> Buffer {
        let mut buffer = Buffer::new(goal);
        for mbps in rounds {
            for ack in 0..10 {
                buffer.on_ack(ack == 0, Rate::from_mbps(mbps), Some(rtprop + queue), rtprop);
            }
        }
        buffer
    }

    #[test]
    fn without_a_goal_the_rate_is_the_capacity() {
        let buffer = after(Goal::None, (0..99).map(|n| if n % 2 == 0 { 20.0 } else { 60.0 }), Duration::ZERO);
        assert_eq!(buffer.fill(Rate::from_mbps(50.0)), Rate::from_mbps(50.0));
        assert_eq!(buffer.target(), Duration::ZERO);
    }

    #[test]
    fn a_fixed_goal_is_filled_and_then_kept() {
        let (goal, rate) = (Goal::Fixed(Duration::from_millis(8)), Rate::from_mbps(50.0));
        assert_eq!(after(goal, [50.0; 9], Duration::ZERO).fill(rate), rate.scaled(1.2), "8 ms in 40 ms");
        assert_eq!(after(goal, [50.0; 9], Duration::from_millis(4)).fill(rate), rate.scaled(1.1));
        assert_eq!(after(goal, [50.0; 9], Duration::from_millis(9)).fill(rate), rate);
        let far = Goal::Fixed(Duration::from_millis(80));
        assert_eq!(after(far, [50.0; 9], Duration::ZERO).fill(rate), rate.scaled(MAX_GAIN));
    }

    #[test]
    fn the_adaptive_goal_follows_how_much_the_capacity_rises() {
        let target = |swing: f64| {
            let course = (0..400).map(|n| if n % 2 == 0 { 50.0 } else { 50.0 * (1.0 + swing) });
            after(Goal::Adaptive, course, Duration::ZERO).target()
        };
        assert_eq!(target(0.0), Duration::ZERO, "a steady cell needs none");
        let (small, large) = (target(0.02), target(0.1));
        // The capacity rises in half of the rounds.
        assert!((small.as_secs_f64() - 0.040 * GAIN as f64 * 0.01).abs() < 2e-4, "{small:?}");
        assert!((large.as_secs_f64() - 0.040 * GAIN as f64 * 0.05).abs() < 1e-3, "{large:?}");
        assert_eq!(target(0.9), MAX_TARGET);
    }

    #[test]
    fn a_short_round_trip_changes_nothing_of_what_the_cell_does() {
        let course = |rounds: u32| {
            // The sender's first round has no samples, so the spans are shifted by one round against the numbers of
            // the ACKs.
            let in_span = move |n: u32| if ((n + 1) / rounds).is_multiple_of(2) { 50.0 } else { 55.0 };
            (0..400 * rounds).map(in_span)
        };
        let of_40_ms = with_rtprop(RTPROP, Goal::Adaptive, course(1), Duration::ZERO).target();
        let of_10_ms = with_rtprop(RTPROP / 4, Goal::Adaptive, course(4), Duration::ZERO).target();
        // The number of rounds in the last span may differ by one.
        assert!(of_10_ms.abs_diff(of_40_ms) < Duration::from_millis(1), "{of_10_ms:?} beside {of_40_ms:?}");
    }
}
