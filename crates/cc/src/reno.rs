//! Reno: doubles the window each round until something is lost, then halves it at a loss and adds a packet a round.
//!
//! Source: RFC 5681; RFC 6582 (episodes of loss); RFC 3465 (growth by bytes); RFC 6928 (initial window)
//!
//! Differs: the window falls at once and not along RFC 6937, hence nothing is sent for half a round after a loss.

use airpace_core::Bytes;

use crate::controller::{Ack, Control, Controller, Inspect, Loss, LossCause, Sent};
use crate::scheme::{Ends, Options, Scheme, SchemeError, Setup, Style};
use crate::window::{Idle, Recovery, initial_window};

/// Reno as users know it.
pub static SCHEME: Scheme = Scheme {
    name: "reno",
    summary: "halves its window at a loss, adds a packet per round trip",
    source: "RFC 5681, RFC 6582",
    style: Style { colour: "#56B4E9", marker: "diamond" },
    presets: &[],
    options: &[],
    build,
};

fn build(setup: &Setup, _: &Options) -> Result<Ends, SchemeError> {
    Ok(Ends { controller: Box::new(Reno::new(setup.mss)), receiver: None })
}

/// The controller.
#[derive(Clone, Debug)]
pub struct Reno {
    mss: Bytes,
    cwnd: Bytes,
    ssthresh: Bytes,
    /// Bytes acknowledged towards the next packet of growth.
    counted: Bytes,
    recovery: Recovery,
    /// Whether the window collapsed and nothing was acknowledged since.
    collapsed: bool,
    idle: Idle,
}

impl Reno {
    /// A flow that begins.
    pub fn new(mss: Bytes) -> Reno {
        Reno {
            mss,
            cwnd: initial_window(mss),
            ssthresh: Bytes(u64::MAX), // RFC 5681 §3.1: arbitrarily high
            counted: Bytes::ZERO,
            recovery: Recovery::default(),
            collapsed: false,
            idle: Idle::default(),
        }
    }

    fn is_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
}

impl Controller for Reno {
    fn on_sent(&mut self, sent: &Sent) {
        if self.idle.on_sent(sent).is_some() {
            self.cwnd = self.cwnd.min(initial_window(self.mss)); // RFC 5681 §4.1: restart window
        }
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.idle.on_ack(ack);
        self.collapsed = false;
        if self.recovery.rests(ack) || !ack.cwnd_limited {
            return;
        }
        if self.is_slow_start() {
            self.cwnd += ack.acked.min(Bytes(2 * self.mss.0)); // RFC 3465 §2.2: L = 2
        } else {
            self.counted += ack.acked;
            if self.counted >= self.cwnd {
                self.counted -= self.cwnd; // RFC 3465 §2.1
                self.cwnd += self.mss;
            }
        }
    }

    fn on_loss(&mut self, loss: &Loss<'_>) {
        let half = Bytes(loss.prior_inflight.0 / 2).max(Bytes(2 * self.mss.0)); // RFC 5681 §3.1 Eq. 4
        self.counted = Bytes::ZERO;
        match loss.cause {
            LossCause::Threshold if self.recovery.begins(loss) => {
                self.ssthresh = half;
                self.cwnd = half;
            }
            LossCause::Threshold => {}
            LossCause::Persistent => {
                if !self.collapsed {
                    self.ssthresh = half; // RFC 5681 §3.1: not again for what was sent again
                }
                self.cwnd = self.mss; // RFC 5681 §3.1: loss window
                self.collapsed = true;
                self.recovery.collapse(loss);
            }
        }
    }

    fn control(&self) -> Control {
        Control { cwnd: self.cwnd, pacing_rate: None }
    }

    fn inspect(&self, out: &mut Inspect) {
        out.state = if self.recovery.is_active() {
            "Recovery"
        } else if self.is_slow_start() {
            "SlowStart"
        } else {
            "CongestionAvoidance"
        };
        out.value("ssthresh_bytes", known(self.ssthresh));
    }
}

/// A threshold for plots; NaN while there is none.
pub(crate) fn known(ssthresh: Bytes) -> f64 {
    if ssthresh == Bytes(u64::MAX) { f64::NAN } else { ssthresh.0 as f64 }
}
