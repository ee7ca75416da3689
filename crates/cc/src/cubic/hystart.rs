//! HyStart++: it leaves slow start when the RTT of a round rises, after five slower rounds have confirmed the rise.
//!
//! Source: RFC 9406 §4

use std::time::Duration;

use crate::controller::Ack;

const MIN_RTT_THRESH: Duration = Duration::from_millis(4); // RFC 9406 §4.3
const MAX_RTT_THRESH: Duration = Duration::from_millis(16); // RFC 9406 §4.3
const MIN_RTT_DIVISOR: u32 = 8; // RFC 9406 §4.3
const N_RTT_SAMPLE: u32 = 8; // RFC 9406 §4.3
const CSS_GROWTH_DIVISOR: f64 = 4.0; // RFC 9406 §4.3
const CSS_ROUNDS: u32 = 5; // RFC 9406 §4.3

/// Maximum number of packets that one ACK adds to the window in slow start.
///
/// Source: RFC 9406 §4.3 (`L`)
pub fn most_per_ack(paced: bool) -> f64 {
    if paced { f64::INFINITY } else { 8.0 }
}

/// The phase of slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The window doubles each round.
    SlowStart,
    /// The RTT has risen. The window grows at a quarter of the speed for several rounds. `round` is the number of these
    /// rounds, the current round included.
    Conservative { round: u32 },
    /// The RTT did not fall again: slow start is over.
    Done,
}

/// Detector for the end of the first slow start.
#[derive(Clone, Debug)]
pub struct Hystart {
    phase: Phase,
    /// The round ends when a packet of at least this number is acknowledged.
    window_end: u64,
    last_round_min: Option<Duration>,
    this_round_min: Option<Duration>,
    samples: u32,
    /// The RTT at which the conservative phase started.
    baseline: Duration,
}

impl Hystart {
    /// The initial state of a flow.
    pub fn new() -> Hystart {
        Hystart {
            phase: Phase::SlowStart,
            window_end: 0,
            last_round_min: None,
            this_round_min: None,
            samples: 0,
            baseline: Duration::ZERO,
        }
    }

    /// Whether the conservative phase is active.
    pub fn is_conservative(&self) -> bool {
        matches!(self.phase, Phase::Conservative { .. })
    }

    /// Fraction of slow start's growth that is permitted.
    ///
    /// Source: RFC 9406 §4.2
    pub fn growth(&self) -> f64 {
        if self.is_conservative() { 1.0 / CSS_GROWTH_DIVISOR } else { 1.0 }
    }

    /// Processes an ACK of slow start.
    pub fn on_ack(&mut self, ack: &Ack<'_>) -> Phase {
        if ack.packets.last().is_some_and(|packet| packet.number >= self.window_end) {
            self.begin_round(ack.next_number);
        }
        if let Some(rtt) = ack.rtt.latest {
            self.this_round_min = Some(self.this_round_min.map_or(rtt, |min| min.min(rtt)));
            self.samples += 1;
        }
        if let Some(min) = self.this_round_min.filter(|_| self.samples >= N_RTT_SAMPLE) {
            self.judge(min);
        }
        self.phase
    }

    /// Source: RFC 9406 §4.2
    fn begin_round(&mut self, next_number: u64) {
        self.window_end = next_number;
        self.last_round_min = self.this_round_min.take();
        self.samples = 0;
        if let Phase::Conservative { round } = self.phase {
            self.phase =
                if round >= CSS_ROUNDS { Phase::Done } else { Phase::Conservative { round: round + 1 } };
        }
    }

    /// Source: RFC 9406 §4.2
    fn judge(&mut self, min: Duration) {
        match (self.phase, self.last_round_min) {
            (Phase::SlowStart, Some(last)) => {
                let threshold = (last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if min >= last + threshold {
                    self.baseline = min;
                    self.phase = Phase::Conservative { round: 1 };
                }
            }
            (Phase::Conservative { .. }, _) if min < self.baseline => self.phase = Phase::SlowStart,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use airpace_core::{Bytes, Time};

    use super::*;
    use crate::controller::{RateSample, Rtt, SentPacket};

    /// A round of ten packets, all with the same RTT.
    fn round(hystart: &mut Hystart, number: u64, rtt_ms: u64) -> Phase {
        let rtt = Duration::from_millis(rtt_ms);
        for index in 0..10 {
            let packet = SentPacket {
                number: number * 10 + index,
                bytes: Bytes(1500),
                sent: Time::ZERO,
                inflight_at_send: Bytes(1500),
                ..SentPacket::default()
            };
            hystart.on_ack(&Ack {
                now: Time::ZERO,
                packets: &[packet],
                acked: Bytes(1500),
                prior_inflight: Bytes(15_000),
                inflight: Bytes(13_500),
                next_number: number * 10 + 10,
                rtt: Rtt { latest: Some(rtt), smoothed: rtt, variation: Duration::ZERO, min: rtt },
                rate: RateSample::default(),
                cwnd_limited: true,
                ce: 0,
                feedback: &[],
            });
        }
        hystart.phase
    }

    #[test]
    fn a_rise_by_an_eighth_begins_five_conservative_rounds() {
        let mut hystart = Hystart::new();
        assert_eq!(round(&mut hystart, 0, 80), Phase::SlowStart);
        assert_eq!(round(&mut hystart, 1, 89), Phase::SlowStart, "89 is less than 80 plus an eighth");
        assert_eq!(round(&mut hystart, 2, 101), Phase::Conservative { round: 1 });
        assert_eq!(hystart.growth(), 0.25);
        for number in 3..7 {
            assert!(matches!(round(&mut hystart, number, 101), Phase::Conservative { .. }));
        }
        assert_eq!(round(&mut hystart, 7, 101), Phase::Done);
    }

    #[test]
    fn an_rtt_that_falls_back_was_jitter_and_slow_start_goes_on() {
        let mut hystart = Hystart::new();
        round(&mut hystart, 0, 80);
        assert_eq!(round(&mut hystart, 1, 120), Phase::Conservative { round: 1 });
        assert_eq!(round(&mut hystart, 2, 82), Phase::SlowStart);
        assert_eq!(hystart.growth(), 1.0);
    }

    #[test]
    fn short_paths_need_four_milliseconds() {
        let mut hystart = Hystart::new();
        round(&mut hystart, 0, 5);
        assert_eq!(round(&mut hystart, 1, 8), Phase::SlowStart);
        assert_eq!(round(&mut hystart, 2, 12), Phase::Conservative { round: 1 });
    }
}
