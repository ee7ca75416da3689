//! Signals that a path is full: ECN marks, losses, a delay that only rises. These signals make the estimate of the
//! end-to-end bandwidth more precise.
//!
//! The end-to-end bandwidth is the maximum delivery rate of ten rounds. It therefore falls only ten rounds after the
//! bandwidth of the path. Each of these signals shows at once that the path is full, and therefore that the present
//! delivery rate is its capacity. All are off by default, as in the paper.
//!
//! Source: BISCAY §A.5.3

use std::time::Duration;

use airpace_core::{Bytes, Rate, Time};

use crate::controller::{Ack, Loss};

/// Maximum share of a round's bytes that can be lost without congestion.
///
/// Source: draft-ietf-ccwg-bbr §2.5 (`BBR.LossThresh`)
const LOSS_THRESHOLD: f64 = 0.02;

/// Minimum rise of the delay that indicates a queue.
///
/// Source: RFC 9406 §4.3 (`MIN_RTT_THRESH`)
const MIN_RISE: Duration = Duration::from_millis(4);

/// The signals that are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heeded {
    /// ECN marks of queues.
    pub ecn: bool,
    /// Losses.
    pub loss: bool,
    /// A delay that has risen and does not fall, although the cell's bandwidth does not fall.
    pub delay_gradient: bool,
}

/// The result of one ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Whether one of the used signals shows that the path is full.
    pub path_is_full: bool,
    /// At the end of a round: whether more than 2 % of its bytes were lost.
    pub lossy_round: Option<bool>,
}

/// Detector of the signals.
#[derive(Clone, Copy, Debug)]
pub struct Signals {
    heeded: Heeded,
    /// Maximum age of the cell's bandwidth value.
    lag: Duration,
    acked: Bytes,
    lost: Bytes,
    last_rtt: Option<Duration>,
    rise: Option<Rise>,
}

/// A rise of the delay, from its start.
#[derive(Clone, Copy, Debug)]
struct Rise {
    since: Time,
    /// The RTT before the rise.
    from: Duration,
    /// The cell's bandwidth at the time of the rise.
    cellular: Rate,
}

impl Signals {
    /// State without signals. `lag` is the maximum age of the cell's bandwidth value.
    pub fn new(heeded: Heeded, lag: Duration) -> Signals {
        Signals { heeded, lag, acked: Bytes::ZERO, lost: Bytes::ZERO, last_rtt: None, rise: None }
    }

    /// Records lost packets.
    pub fn on_loss(&mut self, loss: &Loss<'_>) {
        self.lost += loss.lost;
    }

    /// Processes one ACK. `round` is the minimum RTT of the round that this ACK ends, if any. `cellular` is the cell's
    /// bandwidth.
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

    /// Whether the delay rose and did not fall, for longer than the cell's bandwidth value may be old.
    fn has_only_risen(&mut self, now: Time, rtt: Duration, cellular: Rate) -> bool {
        let last = self.last_rtt.replace(rtt).unwrap_or(rtt);
        let is_over = |rise: &Rise| rtt <= rise.from + MIN_RISE || cellular < rise.cellular;
        self.rise = self.rise.filter(|rise| !is_over(rise));
        if rtt > last + MIN_RISE && self.rise.is_none() {
            self.rise = Some(Rise { since: now, from: last, cellular });
        }
        self.rise.is_some_and(|rise| now - rise.since > self.lag)
    }
}
