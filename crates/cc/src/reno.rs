//! Reno: it doubles the window each round until the first loss. After that, it halves the window at a loss and adds a
//! packet per round.
//!
//! Source: RFC 5681; RFC 6582 (episodes of loss); RFC 3465 (growth by bytes); RFC 6928 (initial window)
//!
//! Differs: except with `recovery=linux`, the window falls at once at a loss instead of gradually as in RFC 6937, so
//! nothing is sent for half a round after a loss.
//!
//! The reaction to a spurious loss is undone, as in Linux.

use airpace_core::Bytes;

use crate::controller::{Ack, Control, Controller, Inspect, Loss, LossCause, Sent};
use crate::scheme::{Ends, OptionSpec, Options, Preset, Scheme, SchemeError, Setup, Style};
use crate::window::{Idle, Kind, Recovery, initial_window};

/// The scheme `reno`.
pub static SCHEME: Scheme = Scheme {
    name: "reno",
    summary: "halves its window at a loss, adds a packet per round trip",
    source: "RFC 5681, RFC 6582",
    style: Style { colour: "#56B4E9", marker: "diamond" },
    presets: &[Preset {
        name: "linux",
        summary: "recovers as Linux does; compared with Linux 6.18 over recorded links and lossy paths",
        set: &[("recovery", "linux")],
    }],
    options: &[
        Kind::OPTION,
        OptionSpec {
            name: "ecn",
            default: "off",
            summary: "request ECN marks instead of drops, and react to a mark as to a loss (RFC 3168)",
        },
    ],
    takes_ran: false,
    build,
};

fn build(setup: &Setup, options: &Options) -> Result<Ends, SchemeError> {
    let reno = Reno { ecn: options.switch("ecn")?, ..Reno::new(setup.mss, Kind::of(options)?) };
    Ok(Ends { controller: Box::new(reno), receiver: None })
}

/// The controller.
#[derive(Clone, Debug)]
pub struct Reno {
    mss: Bytes,
    cwnd: Bytes,
    ssthresh: Bytes,
    /// Bytes acknowledged since the window last grew by a packet.
    counted: Bytes,
    recovery: Recovery,
    /// The window and the threshold before the last reduction.
    before: (Bytes, Bytes),
    idle: Idle,
    /// Whether queues may mark the flow's packets (ECN).
    ecn: bool,
}

impl Reno {
    /// A new flow.
    pub fn new(mss: Bytes, recovery: Kind) -> Reno {
        Reno {
            mss,
            cwnd: initial_window(mss),
            ssthresh: Bytes(u64::MAX), // RFC 5681 §3.1: arbitrarily high
            counted: Bytes::ZERO,
            recovery: Recovery::new(recovery),
            before: (Bytes::ZERO, Bytes::ZERO),
            idle: Idle::default(),
            ecn: false,
        }
    }

    /// A flow that takes over a full path from another controller, with `cwnd` in flight. It does not start with slow
    /// start.
    pub fn resumed(mss: Bytes, cwnd: Bytes, ecn: bool) -> Reno {
        let cwnd = cwnd.max(Bytes(2 * mss.0));
        Reno { cwnd, ssthresh: cwnd, ecn, ..Reno::new(mss, Kind::Quic) }
    }

    fn is_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Source: RFC 5681 §3.1 Eq. 4
    fn lower_threshold(&mut self, prior_inflight: Bytes) {
        self.before = (self.cwnd, self.ssthresh);
        let whole = self.recovery.reduced_from(prior_inflight, self.cwnd);
        self.ssthresh = Bytes(whole.0 / 2).max(Bytes(2 * self.mss.0));
    }

    fn reduce(&mut self, prior_inflight: Bytes) {
        self.lower_threshold(prior_inflight);
        self.recovery.falls(self.cwnd, self.ssthresh, self.mss);
        self.cwnd = self.ssthresh;
    }
}

impl Controller for Reno {
    fn on_sent(&mut self, sent: &Sent) {
        self.recovery.on_sent(sent);
        if self.idle.on_sent(sent).is_some() {
            self.cwnd = self.cwnd.min(initial_window(self.mss)); // RFC 5681 §4.1: restart window
        }
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.idle.on_ack(ack);
        if self.recovery.was_none(ack) {
            let (cwnd, ssthresh) = self.before;
            self.cwnd = self.cwnd.max(cwnd);
            self.ssthresh = self.ssthresh.max(ssthresh);
        }
        let rests = self.recovery.rests(ack);
        if self.ecn && self.recovery.begins_by_mark(ack) {
            self.counted = Bytes::ZERO;
            self.reduce(ack.prior_inflight);
            return;
        }
        if rests || !ack.cwnd_limited {
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
        self.counted = Bytes::ZERO;
        match loss.cause {
            LossCause::Threshold if self.recovery.begins(loss) => self.reduce(loss.prior_inflight),
            LossCause::Threshold => {}
            LossCause::Persistent => {
                if self.recovery.collapse(loss) {
                    self.lower_threshold(loss.prior_inflight);
                }
                self.cwnd = self.mss; // RFC 5681 §3.1: loss window
            }
        }
    }

    fn control(&self) -> Control {
        Control { cwnd: self.recovery.window().unwrap_or(self.cwnd), pacing_rate: None }
    }

    fn is_ecn_capable(&self) -> bool {
        self.ecn
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

/// Converts a slow-start threshold to a value for plots: bytes, or NaN if there is no threshold.
pub(crate) fn known(ssthresh: Bytes) -> f64 {
    if ssthresh == Bytes(u64::MAX) { f64::NAN } else { ssthresh.0 as f64 }
}
