//! The original HyStart, as in Linux. Slow start ends at once in two cases: the ACKs of a round form a train as long as
//! half the minimum RTT, or the minimum RTT of a round is an eighth above the overall minimum RTT.
//!
//! Source: Ha and Rhee, Taming the Elephants: New TCP Slow Start, 2011; Linux tcp_cubic.c

use std::time::Duration;

use airpace_core::{Bytes, Rate, Time};

use crate::controller::Ack;

/// Maximum time between two ACKs of one train.
const SPACING: Duration = Duration::from_millis(2); // Linux tcp_cubic.c
/// Minimum number of RTT samples in a round for which the minimum RTT of the round is used.
const SAMPLES: u32 = 8; // Linux tcp_cubic.c
const MIN_RISE: Duration = Duration::from_millis(4); // Linux tcp_cubic.c
const MAX_RISE: Duration = Duration::from_millis(16); // Linux tcp_cubic.c
/// Minimum window at which a round is evaluated, in packets of the flow's MSS.
const MIN_WINDOW: u64 = 16; // Linux tcp_cubic.c
/// Maximum time that segmentation offloads may add to a train. Below this maximum, the time is that of four bursts of
/// the largest size.
const MAX_BURSTS: Duration = Duration::from_millis(1); // Linux tcp_cubic.c
const BURSTS: Bytes = Bytes(4 * 65_536); // Linux tcp_cubic.c

/// Detector for the end of slow start.
#[derive(Clone, Debug, Default)]
pub struct AckTrain {
    /// The round ends when a packet of at least this number is acknowledged.
    window_end: u64,
    round_start: Time,
    /// The last ACK of the train.
    last_ack: Time,
    round_min: Option<Duration>,
    samples: u32,
}

impl AckTrain {
    /// Whether slow start ends with this ACK, at a window of `cwnd`.
    pub fn on_ack(&mut self, ack: &Ack<'_>, cwnd: Bytes, paced: bool) -> bool {
        let Some(newest) = ack.packets.last() else { return false };
        let Some(rtt) = ack.rtt.latest else { return false };
        if newest.number >= self.window_end {
            self.window_end = ack.next_number;
            self.round_start = ack.now;
            self.last_ack = ack.now;
            self.round_min = None;
            self.samples = 0;
        }
        if cwnd.0 < MIN_WINDOW * newest.bytes.0 {
            return false;
        }
        self.is_train_long(ack, cwnd, paced) || self.is_round_slow(ack, rtt)
    }

    fn is_train_long(&mut self, ack: &Ack<'_>, cwnd: Bytes, paced: bool) -> bool {
        if ack.now - self.last_ack > SPACING {
            return false;
        }
        self.last_ack = ack.now;
        let rate = Rate::from_bytes_per(Bytes(2 * cwnd.0), ack.rtt.smoothed.max(Duration::from_nanos(1)));
        let whole = ack.rtt.min + rate.time_for(BURSTS).min(MAX_BURSTS);
        // With pacing, the packets of a window are already spread over half a round, so the train may be longer.
        let longest = if paced { whole } else { whole / 2 };
        ack.now - self.round_start > longest
    }

    fn is_round_slow(&mut self, ack: &Ack<'_>, rtt: Duration) -> bool {
        let round_min = self.round_min.map_or(rtt, |min| min.min(rtt));
        self.round_min = Some(round_min);
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        round_min > ack.rtt.min + (ack.rtt.min / 8).clamp(MIN_RISE, MAX_RISE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::{RateSample, Rtt, SentPacket};

    const MSS: Bytes = Bytes(1500);

    /// A slow start with 32 packets a round.
    struct Start {
        train: AckTrain,
        paced: bool,
        number: u64,
    }

    impl Start {
        fn new(paced: bool) -> Start {
            Start { train: AckTrain::default(), paced, number: 0 }
        }

        /// Returns the time of the ACK that ends slow start within a round, in ms after the start of the round. One ACK
        /// arrives each `gap_ms`, each of them after `rtt_ms`.
        fn round(&mut self, begin_ms: u64, gap_us: u64, rtt_ms: u64) -> Option<f64> {
            let rtt = Duration::from_millis(rtt_ms);
            let end = self.number + 32;
            let mut over = None;
            for index in 0..32 {
                let packet = SentPacket {
                    number: self.number,
                    bytes: MSS,
                    sent: Time::ZERO,
                    inflight_at_send: MSS,
                    app_limited: false,
                    declared_lost: false,
                    lost_at_send: Bytes::ZERO,
                };
                let ack = Ack {
                    now: Time::from_millis(begin_ms) + Duration::from_micros(index * gap_us),
                    packets: &[packet],
                    acked: MSS,
                    prior_inflight: MSS,
                    inflight: MSS,
                    next_number: end,
                    rtt: Rtt {
                        latest: Some(rtt),
                        smoothed: rtt,
                        variation: Duration::ZERO,
                        min: Duration::from_millis(40),
                    },
                    rate: RateSample::default(),
                    ce: 0,
                    cwnd_limited: true,
                    feedback: &[],
                };
                self.number += 1;
                if self.train.on_ack(&ack, Bytes(32 * MSS.0), self.paced) && over.is_none() {
                    over = Some((index * gap_us) as f64 / 1e3);
                }
            }
            over
        }
    }

    #[test]
    fn a_train_longer_than_half_the_least_rtt_ends_slow_start() {
        let mut start = Start::new(false);
        assert_eq!(start.round(0, 600, 40), None, "a train of 19 ms is too short");
        assert_eq!(
            start.round(40, 1_000, 40),
            Some(21.0),
            "the limit is half of 40 ms plus half of the millisecond for bursts"
        );
        let mut start = Start::new(false);
        assert_eq!(start.round(0, 2_500, 40), None, "ACKs 2.5 ms apart are no train");
        assert_eq!(Start::new(true).round(0, 1_000, 40), None, "a paced train may be twice as long");
    }

    #[test]
    fn a_round_whose_least_rtt_is_an_eighth_above_the_least_of_all_ends_slow_start() {
        assert_eq!(Start::new(false).round(0, 10, 45), None);
        assert_eq!(Start::new(false).round(0, 10, 46), Some(0.08), "slow start ends after eight RTT samples");
    }

    #[test]
    fn small_windows_are_not_judged() {
        let mut train = AckTrain::default();
        let rtt = Duration::from_millis(90);
        for index in 0..15 {
            let packet = SentPacket {
                number: index,
                bytes: MSS,
                sent: Time::ZERO,
                inflight_at_send: MSS,
                app_limited: false,
                declared_lost: false,
                lost_at_send: Bytes::ZERO,
            };
            let ack = Ack {
                now: Time::from_millis(index),
                packets: &[packet],
                acked: MSS,
                prior_inflight: MSS,
                inflight: MSS,
                next_number: 20,
                rtt: Rtt { latest: Some(rtt), smoothed: rtt, variation: Duration::ZERO, min: rtt / 2 },
                rate: RateSample::default(),
                ce: 0,
                cwnd_limited: true,
                feedback: &[],
            };
            assert!(!train.on_ack(&ack, Bytes(15 * MSS.0), false), "fifteen packets are too few");
        }
    }
}
