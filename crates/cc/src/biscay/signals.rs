//! Signals that make the end-to-end bandwidth more precise: marks, losses, a delay that only rises.
//!
//! The ten-round maximum forgets a lost bandwidth only after ten rounds. Each of these signals shows at once that the
//! path is full, and therefore that the present delivery rate is all that it has. All are off by default, as in the
//! paper.
//!
//! Source: BISCAY §A.5.3

use std::time::Duration;

use airpace_core::{Bytes, Rate, Time};

use crate::controller::{Ack, Loss};

/// If more than this part of a round's bytes is lost, the loss is no accident.
///
/// Source: draft-ietf-ccwg-bbr §2.5 (`BBR.LossThresh`)
const LOSS_THRESHOLD: f64 = 0.02;

/// If the delay rises by this much, there is a queue.
///
/// Source: RFC 9406 §4.3 (`MIN_RTT_THRESH`)
const LEAST_RISE: Duration = Duration::from_millis(4);

/// Which signals count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heeded {
    /// Marks of queues.
    pub ecn: bool,
    /// Losses.
    pub loss: bool,
    /// A delay that rises and stays, although the cell's bandwidth does not fall.
    pub delay_gradient: bool,
}

/// What an ACK shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Whether one of the signals that count shows that the path is full.
    pub path_is_full: bool,
    /// At the end of a round: whether more was lost in it than by accident.
    pub lossy_round: Option<bool>,
}

/// Watches for signals.
#[derive(Clone, Copy, Debug)]
pub struct Signals {
    heeded: Heeded,
    /// The greatest age of the value of the cell's bandwidth.
    lag: Duration,
    acked: Bytes,
    lost: Bytes,
    last_rtt: Option<Duration>,
    rise: Option<Rise>,
}

/// A delay that has risen.
#[derive(Clone, Copy, Debug)]
struct Rise {
    since: Time,
    /// From this RTT.
    from: Duration,
    /// The cell's bandwidth then.
    cellular: Rate,
}

impl Signals {
    /// No signal yet. The value of the cell's bandwidth may be as old as `lag`.
    pub fn new(heeded: Heeded, lag: Duration) -> Signals {
        Signals { heeded, lag, acked: Bytes::ZERO, lost: Bytes::ZERO, last_rtt: None, rise: None }
    }

    /// Packets were lost.
    pub fn on_loss(&mut self, loss: &Loss<'_>) {
        self.lost += loss.lost;
    }

    /// What an ACK shows. `round` is the least RTT of the round that the ACK ended, if it ended one. `cellular` is
    /// the cell's bandwidth.
    pub fn on_ack(&mut self, ack: &Ack<'_>, round: Option<Duration>, cellular: Rate) -> Shown {
        self.acked += ack.acked;
        let mut shown = Shown { path_is_full: self.heeded.ecn && ack.ce > 0, lossy_round: None };
        if let Some(rtt) = round {
            let is_lossy = self.has_lost_too_much();
            shown.lossy_round = Some(is_lossy);
            shown.path_is_full |= self.heeded.loss && is_lossy;
            shown.path_is_full |= self.heeded.delay_gradient && self.has_only_risen(ack.now, rtt, cellular);
            self.acked = Bytes::ZERO;
            self.lost = Bytes::ZERO;
        }
        shown
    }

    fn has_lost_too_much(&self) -> bool {
        self.lost.0 as f64 > LOSS_THRESHOLD * (self.acked + self.lost).0 as f64
    }

    /// Whether the delay rose and stayed, although enough time passed for the cell's bandwidth to explain it.
    fn has_only_risen(&mut self, now: Time, rtt: Duration, cellular: Rate) -> bool {
        let last = self.last_rtt.replace(rtt).unwrap_or(rtt);
        let is_over = |rise: &Rise| rtt <= rise.from + LEAST_RISE || cellular < rise.cellular;
        self.rise = self.rise.filter(|rise| !is_over(rise));
        if rtt > last + LEAST_RISE && self.rise.is_none() {
            self.rise = Some(Rise { since: now, from: last, cellular });
        }
        self.rise.is_some_and(|rise| now - rise.since > self.lag)
    }
}
