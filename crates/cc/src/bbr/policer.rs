//! Long-term sampling. It detects a token-bucket policer, whose bursts make the maximum delivery rate too high.
//!
//! If two intervals have a high loss rate and the same throughput, there is a policer. Its rate is then used for some
//! rounds.
//!
//! Source: Linux tcp_bbr.c

use std::time::Duration;

use airpace_core::{Bytes, Rate, Time};

/// Minimum length of an interval, in rounds.
const INTERVAL_ROUNDS: u64 = 4;
/// Maximum length of an interval, in rounds. Longer intervals are discarded.
const INTERVAL_ROUNDS_MAX: u64 = 4 * INTERVAL_ROUNDS;
/// Minimum ratio of lost to delivered data in an interval that can show a policer: 50/256.
const LOSS: f64 = 50.0 / 256.0;
/// Maximum relative difference of two throughputs that count as equal.
const SAME_RATIO: f64 = 1.0 / 8.0;
/// Maximum absolute difference of two throughputs that count as equal.
const SAME_RATE: Rate = Rate::from_bps(4_000);
/// Number of rounds for which the policer's rate is used.
const USE_ROUNDS: u64 = 48;

/// Detects a policer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Policer {
    sampling: Option<Interval>,
    seen: Option<Rate>,
    obeyed: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Interval {
    since: Time,
    delivered: Bytes,
    lost: Bytes,
    rounds: u64,
}

/// The values of an ACK that the detection uses.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Time of the ACK.
    pub now: Time,
    /// Bytes delivered over the connection's life.
    pub delivered: Bytes,
    /// Bytes lost over the connection's life.
    pub lost: Bytes,
    /// Whether this ACK showed a loss.
    pub loss_seen: bool,
    /// Whether the ACK starts a round.
    pub round_start: bool,
    /// Whether the application or ProbeRTT limited the sender.
    pub app_limited: bool,
    /// Whether the sender is in ProbeBW.
    pub probing_bandwidth: bool,
}

impl Policer {
    /// The policer's rate; `None` while BBR need not obey a policer.
    pub fn rate(&self) -> Option<Rate> {
        self.obeyed.and(self.seen)
    }

    /// Processes one ACK. Returns whether the policer's rate has just expired, so that ProbeBW must restart.
    pub fn on_ack(&mut self, at: &Progress) -> bool {
        if let Some(rounds) = &mut self.obeyed {
            if at.probing_bandwidth && at.round_start {
                *rounds += 1;
                if *rounds >= USE_ROUNDS {
                    *self = Policer::default();
                    return true;
                }
            }
            return false;
        }
        let Some(mut interval) = self.sampling else {
            if at.loss_seen {
                self.sampling = Some(Interval::start(at));
            }
            return false;
        };
        if at.app_limited {
            *self = Policer::default();
            return false;
        }
        interval.rounds += u64::from(at.round_start);
        self.sampling = Some(interval);
        if interval.rounds > INTERVAL_ROUNDS_MAX {
            *self = Policer::default();
        } else if interval.rounds >= INTERVAL_ROUNDS && at.loss_seen {
            self.finish(&interval, at);
        }
        false
    }

    fn finish(&mut self, interval: &Interval, at: &Progress) {
        let delivered = at.delivered - interval.delivered;
        let lost = at.lost - interval.lost;
        let span = at.now - interval.since;
        if delivered == Bytes::ZERO || lost < delivered.scaled(LOSS) || span < Duration::from_millis(1) {
            return;
        }
        let rate = Rate::from_bytes_per(delivered, span);
        if let Some(seen) = self.seen {
            let apart = rate.max(seen) - rate.min(seen);
            if apart <= seen.scaled(SAME_RATIO) || apart <= SAME_RATE {
                self.seen = Some((rate + seen).scaled(0.5));
                self.obeyed = Some(0);
                return;
            }
        }
        self.seen = Some(rate);
        self.sampling = Some(Interval::start(at));
    }
}

impl Interval {
    fn start(at: &Progress) -> Interval {
        Interval { since: at.now, delivered: at.delivered, lost: at.lost, rounds: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_lossy_intervals_of_one_throughput_are_a_policer_for_48_rounds() {
        let mut policer = Policer::default();
        let round = |n: u64| Progress {
            now: Time::from_millis(40 * n),
            delivered: Bytes(50_000 * n),
            lost: Bytes(15_000 * n),
            loss_seen: true,
            round_start: true,
            app_limited: false,
            probing_bandwidth: true,
        };
        let mut n = 0;
        while policer.rate().is_none() {
            n += 1;
            assert!(n < 12, "a policer is detected after two intervals of four rounds");
            policer.on_ack(&round(n));
        }
        assert_eq!(policer.rate(), Some(Rate::from_mbps(10.0)));
        let gave_up = (1..=USE_ROUNDS).position(|more| policer.on_ack(&round(n + more)));
        assert_eq!(
            gave_up,
            Some(USE_ROUNDS as usize - 1),
            "the policer may be gone: its rate is not used for ever"
        );
    }

    #[test]
    fn light_loss_is_no_policer() {
        let mut policer = Policer::default();
        for n in 1..200 {
            policer.on_ack(&Progress {
                now: Time::from_millis(40 * n),
                delivered: Bytes(50_000 * n),
                lost: Bytes(5_000 * n),
                loss_seen: true,
                round_start: true,
                app_limited: false,
                probing_bandwidth: true,
            });
            assert_eq!(policer.rate(), None);
        }
    }
}
