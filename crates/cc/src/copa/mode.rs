//! Default or competitive mode, which determines the target length of the queue.

use std::time::Duration;

use airpace_core::Time;

/// Effect of losses on δ while the flow competes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Competition {
    /// AIMD per window of data, as in NewReno: 1/δ grows by a packet after each window without loss, and is halved
    /// after a window with a loss.
    ///
    /// Source: Copa §2.2
    Windows,
    /// As in Pantheon's program: 1/δ grows by a packet per RTT and is halved at each ACK that shows a loss.
    ///
    /// Source: genericCC markoviancc
    Acks,
}

/// The mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The flow is alone, or among flows of the same kind: δ is constant.
    Default,
    /// Other flows fill the buffer: δ decreases until a packet is lost.
    Competitive,
}

/// The mode and its δ.
#[derive(Clone, Debug)]
pub struct Aggressiveness {
    competition: Competition,
    default_delta: f64,
    mode: Mode,
    delta: f64,
    /// Whether there was a loss in the current window of data.
    lost: bool,
    /// Time of the last setting or reduction of δ.
    changed: Option<Time>,
    /// Last time at which a loss increased δ.
    raised: Time,
}

impl Aggressiveness {
    /// The default mode.
    pub fn new(competition: Competition, default_delta: f64) -> Aggressiveness {
        Aggressiveness {
            competition,
            default_delta,
            mode: Mode::Default,
            delta: default_delta,
            lost: false,
            changed: None,
            raised: Time::ZERO,
        }
    }

    /// δ: the target is 1/δ packets in the queue.
    pub fn delta(&self) -> f64 {
        self.delta
    }

    /// The current mode.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Processes an ACK. `empties`: whether the queue was recently nearly empty.
    pub fn on_ack(&mut self, now: Time, empties: bool, latest_rtt: Duration) {
        let mode = if empties { Mode::Default } else { Mode::Competitive };
        let is_new = mode != std::mem::replace(&mut self.mode, mode);
        match (self.competition, mode) {
            (Competition::Windows, Mode::Default) => self.delta = self.default_delta,
            (Competition::Windows, Mode::Competitive) => self.lost &= !is_new,
            (Competition::Acks, Mode::Default) => {
                if self.changed.is_none() || self.raised + latest_rtt < now {
                    self.delta = self.default_delta;
                    self.changed = Some(now);
                }
            }
            (Competition::Acks, Mode::Competitive) => {
                let changed = *self.changed.get_or_insert(Time::ZERO);
                if changed + latest_rtt < now {
                    self.lower();
                    self.changed = Some(now);
                }
            }
        }
    }

    /// Processes the end of a window of data.
    pub fn on_round(&mut self) {
        let lost = std::mem::take(&mut self.lost);
        if (self.competition, self.mode) == (Competition::Windows, Mode::Competitive) && !lost {
            self.lower();
        }
    }

    /// Processes the first loss in a window of data.
    pub fn on_lost_window(&mut self) {
        if (self.competition, self.mode) == (Competition::Windows, Mode::Competitive) {
            self.raise();
            self.lost = true;
        }
    }

    /// Processes an ACK that showed a loss.
    pub fn on_lossy_ack(&mut self, now: Time) {
        match (self.competition, self.mode) {
            (Competition::Acks, Mode::Default) => self.delta = self.default_delta,
            (Competition::Acks, Mode::Competitive) if self.raised < now => {
                self.raise();
                self.raised = now;
            }
            _ => {}
        }
    }

    fn lower(&mut self) {
        self.delta = 1.0 / (1.0 / self.delta + 1.0);
    }

    /// Source: Copa §2.2 (in competitive mode δ is at most that of the default mode)
    fn raise(&mut self) {
        self.delta = (2.0 * self.delta).min(self.default_delta);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(40);

    fn inverse(of: &Aggressiveness) -> f64 {
        (1.0 / of.delta() * 100.0).round() / 100.0
    }

    #[test]
    fn competing_is_aimd_on_one_over_delta() {
        let mut flow = Aggressiveness::new(Competition::Windows, 0.5);
        flow.on_ack(Time::from_secs(1), false, RTT);
        assert_eq!(flow.mode(), Mode::Competitive);
        for _ in 0..8 {
            flow.on_round();
        }
        assert_eq!(inverse(&flow), 10.0, "1/δ grows by a packet per window");
        flow.on_lost_window();
        flow.on_round();
        assert_eq!(inverse(&flow), 5.0, "a loss halves 1/δ, and that window brings no growth");
        flow.on_round();
        assert_eq!(inverse(&flow), 6.0);
        flow.on_lost_window();
        flow.on_lost_window();
        flow.on_lost_window();
        assert_eq!(inverse(&flow), 2.0, "1/δ is never below that of the default mode");
        flow.on_round();
        flow.on_round();
        flow.on_ack(Time::from_secs(2), true, RTT);
        assert_eq!((flow.mode(), inverse(&flow)), (Mode::Default, 2.0));
        flow.on_lost_window();
        flow.on_round();
        assert_eq!(inverse(&flow), 2.0, "losses do not count in the default mode");
    }

    #[test]
    fn the_program_halves_at_each_ack_that_shows_a_loss() {
        let mut flow = Aggressiveness::new(Competition::Acks, 0.1);
        for step in 0..200 {
            flow.on_ack(Time::from_millis(1_000 + step), false, RTT);
        }
        assert_eq!(inverse(&flow), 15.0, "1/δ grows by a packet per RTT, from 10");
        flow.on_lossy_ack(Time::from_millis(1_201));
        assert_eq!(inverse(&flow), 10.0, "7.5 would be below the value of the default mode");
        for step in 200..1_200 {
            flow.on_ack(Time::from_millis(1_002 + step), false, RTT);
        }
        let before = inverse(&flow);
        flow.on_lossy_ack(Time::from_millis(2_210));
        flow.on_lossy_ack(Time::from_millis(2_211));
        assert!(
            before > 30.0 && inverse(&flow) == 10.0,
            "1/δ halves twice within a millisecond: {before} to {}",
            inverse(&flow)
        );
    }
}
