//! Timing of bandwidth probes: by a random wait time, by the number of rounds after which a Reno flow would have
//! probed, and by the ACKs of the probe.
//!
//! Source: draft-ietf-ccwg-bbr-06 §5.3.3.8, §5.3.3.9

use std::time::Duration;

use airpace_core::{Bytes, Rng, Time};

/// Minimum wait time between two bandwidth probes (s). A random time of up to [`WAIT_SPREAD_S`] is added.
const MIN_WAIT_S: f64 = 2.0;
const WAIT_SPREAD_S: f64 = 1.0;

/// Maximum number of rounds between two bandwidth probes. With this limit, 1 % of random loss in each round does not
/// reduce the flow's rate too much.
const MAX_ROUNDS: u64 = 63;

/// Which packets, relative to the bandwidth probe, the arriving ACKs acknowledge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AckPhase {
    /// Packets without a relation to a probe.
    #[default]
    Init,
    /// ACKs of packets sent before the pipe was refilled.
    Refilling,
    /// ACKs of packets sent before the probe.
    ProbeStarting,
    /// ACKs of the probe.
    ProbeFeedback,
    /// ACKs of the last packets of the probe.
    ProbeStopping,
}

/// The timing of ProbeBW, and the results of the last probe.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cycle {
    /// Which packets, relative to the bandwidth probe, the arriving ACKs acknowledge.
    pub ack_phase: AckPhase,
    /// Whether losses can be a result of the probe, and the flow has not yet reacted to such losses.
    pub is_probe_sample: bool,
    /// Whether the last probe had too many losses or marks.
    pub prev_probe_too_high: bool,
    /// Whether the last probe stopped as soon as it reached the amount in flight that had been too high.
    pub prev_probe_precautionary: bool,
    rounds_since_up: u64,
    began: Time,
    wait: Duration,
}

impl Cycle {
    /// Starts a cycle. The wait times of a cycle are random, so that different flows do not probe at the same time.
    pub fn begin(&mut self, now: Time, rng: &mut Rng) {
        self.rounds_since_up = rng.below(2);
        self.wait = Duration::from_secs_f64(MIN_WAIT_S + rng.range(0.0, WAIT_SPREAD_S));
        self.began = now;
        self.ack_phase = AckPhase::ProbeStopping;
    }

    /// Counts the start of a round.
    pub fn on_round(&mut self) {
        self.rounds_since_up += 1;
    }

    /// Whether a bandwidth probe is due: the wait time has passed, or a Reno flow with `target` in flight would have
    /// probed by now.
    pub fn is_time_to_probe(&self, now: Time, target: Bytes, mss: Bytes) -> bool {
        now > self.began + self.wait || self.rounds_since_up >= MAX_ROUNDS.min(target.0 / mss.0)
    }
}

#[cfg(test)]
mod tests {
    use airpace_core::Streams;

    use super::*;

    #[test]
    fn small_windows_probe_as_often_as_reno_and_large_ones_every_two_to_three_seconds() {
        let mut rng = Streams::new(1).stream("cycle");
        let mss = Bytes(1_500);
        let rounds_until = |cycle: &mut Cycle, target: u64| {
            (0..)
                .find(|_| {
                    cycle.on_round();
                    cycle.is_time_to_probe(Time::from_secs(1), Bytes(target * 1_500), mss)
                })
                .unwrap()
                + 1
        };
        let mut cycle = Cycle::default();
        for _ in 0..20 {
            cycle.begin(Time::from_secs(1), &mut rng);
            assert!((19..=20).contains(&rounds_until(&mut cycle, 20)));
            cycle.begin(Time::from_secs(1), &mut rng);
            assert!((62..=63).contains(&rounds_until(&mut cycle, 5_000)));
            cycle.begin(Time::from_secs(1), &mut rng);
            assert!(!cycle.is_time_to_probe(Time::from_secs(3), Bytes(1_500_000), mss));
            assert!(cycle.is_time_to_probe(Time::from_millis(4_001), Bytes(1_500_000), mss));
        }
    }
}
