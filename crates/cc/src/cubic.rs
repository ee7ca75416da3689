//! CUBIC: after a loss, the window returns to its old value along a cubic function of time, stays near this value for a
//! while, and then grows further to probe.
//!
//! ```text
//!  slow start ──RTT rises──▶ conservative slow start ──5 rounds──▶ congestion avoidance ⟲ loss: window × 0.7
//! ```
//!
//! Source: RFC 9438; RFC 9406 (HyStart++)
//!
//! Differs: except with `recovery=linux`, the window falls at once at a loss, not along RFC 6937.

mod ack_train;
mod curve;
mod hystart;

use std::time::Duration;

use airpace_core::{Bytes, Rate, Time};

use crate::controller::{Ack, Control, Controller, Inspect, Loss, LossCause, Sent};
use crate::scheme::{Ends, OptionSpec, Options, Preset, Scheme, SchemeError, Setup, Style};
use crate::window::{Idle, Kind, Recovery, initial_window};
use ack_train::AckTrain;
use curve::{BETA, Epoch, Growth};
use hystart::{Hystart, Phase};

/// The scheme `cubic`.
pub static SCHEME: Scheme = Scheme {
    name: "cubic",
    summary: "grows its window along a cubic function of the time since the last loss",
    source: "RFC 9438, RFC 9406",
    style: Style { colour: "#009E73", marker: "rect" },
    presets: &[Preset {
        name: "linux",
        summary: "as in Linux where Linux differs from RFC 9438 and 9406; compared with Linux 6.18",
        set: &[("hystart", "linux"), ("growth", "linux"), ("recovery", "linux")],
    }],
    options: &[
        OptionSpec {
            name: "hystart",
            default: "on",
            summary: "on: end slow start when the RTT rises (HyStart++); linux: the older HyStart; off: at a loss",
        },
        OptionSpec {
            name: "growth",
            default: "rfc",
            summary: "rfc: aim a smoothed RTT ahead; linux: a least RTT ahead, and grow 5 % a round before any loss",
        },
        Kind::OPTION,
        OptionSpec {
            name: "pacing",
            default: "off",
            summary: "pace at 200 % (slow start) or 120 % of cwnd/RTT; off: send on each ACK, as kernels do",
        },
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
    let start = match options.text("hystart") {
        "on" => Start::PlusPlus(Hystart::new()),
        "linux" => Start::Linux(AckTrain::default()),
        "off" => Start::UntilLoss,
        _ => return Err(options.refuse("hystart", "`on`, `linux` or `off`")),
    };
    let growth = match options.text("growth") {
        "rfc" => Growth::Rfc,
        "linux" => Growth::Linux,
        _ => return Err(options.refuse("growth", "`rfc` or `linux`")),
    };
    let cubic = Cubic {
        growth,
        paced: options.switch("pacing")?,
        ecn: options.switch("ecn")?,
        ..Cubic::new(setup.mss, start, Kind::of(options)?)
    };
    Ok(Ends { controller: Box::new(cubic), receiver: None })
}

/// The controller. Windows are in packets, as in the RFC.
#[derive(Clone, Debug)]
pub struct Cubic {
    mss: Bytes,
    cwnd: f64,
    /// Slow-start threshold; infinite until the first slow start has ended.
    ssthresh: f64,
    /// The window just before the last reduction; `None` before the first one, and after a timeout.
    w_max: Option<f64>,
    /// The window when `ssthresh` was last set.
    cwnd_prior: f64,
    epoch: Option<Epoch>,
    /// The time up to which the epoch's time on the curve was advanced.
    counted: Time,
    start: Start,
    growth: Growth,
    paced: bool,
    /// Whether queues may mark the flow's packets (ECN).
    ecn: bool,
    srtt: Option<Duration>,
    recovery: Recovery,
    /// The values before the last reduction.
    before: Option<Before>,
    idle: Idle,
}

/// The values that a reduction changes.
///
/// Source: RFC 9438 §4.9.1
#[derive(Clone, Debug)]
struct Before {
    cwnd: f64,
    ssthresh: f64,
    w_max: Option<f64>,
    cwnd_prior: f64,
    epoch: Option<Epoch>,
}

/// The method that ends slow start before a loss.
#[derive(Clone, Debug)]
enum Start {
    PlusPlus(Hystart),
    Linux(AckTrain),
    UntilLoss,
}

impl Cubic {
    /// A new flow.
    fn new(mss: Bytes, start: Start, recovery: Kind) -> Cubic {
        let cwnd = initial_window(mss).0 as f64 / mss.0 as f64;
        Cubic {
            mss,
            cwnd,
            ssthresh: f64::INFINITY,
            w_max: None,
            cwnd_prior: cwnd,
            epoch: None,
            counted: Time::ZERO,
            start,
            growth: Growth::Rfc,
            paced: false,
            ecn: false,
            srtt: None,
            recovery: Recovery::new(recovery),
            before: None,
            idle: Idle::default(),
        }
    }

    /// A flow that takes over a full path from another controller, with `cwnd` in flight. It does not start with slow
    /// start.
    pub fn resumed(mss: Bytes, cwnd: Bytes, ecn: bool) -> Cubic {
        let cwnd = (cwnd.0 as f64 / mss.0 as f64).max(2.0);
        Cubic { cwnd, ssthresh: cwnd, cwnd_prior: cwnd, ecn, ..Cubic::new(mss, Start::UntilLoss, Kind::Quic) }
    }

    fn is_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    fn packets(&self, bytes: Bytes) -> f64 {
        bytes.0 as f64 / self.mss.0 as f64
    }

    fn slow_start(&mut self, ack: &Ack<'_>) {
        let mut growth = self.packets(ack.acked);
        let mut done = false;
        match &mut self.start {
            // Only the first slow start is evaluated: a later slow start ends at `ssthresh`. Source: RFC 9406 §4.3
            Start::PlusPlus(hystart) if self.ssthresh.is_infinite() => {
                done = hystart.on_ack(ack) == Phase::Done;
                growth = growth.min(hystart::most_per_ack(self.paced)) * hystart.growth();
            }
            Start::Linux(train) => done = train.on_ack(ack, self.mss.scaled(self.cwnd), self.paced),
            Start::PlusPlus(_) | Start::UntilLoss => {}
        }
        if ack.cwnd_limited {
            self.cwnd += growth;
        }
        if done {
            self.ssthresh = self.cwnd; // RFC 9406 §4.2: enter congestion avoidance
            self.cwnd_prior = self.cwnd; // RFC 9438 §4.3
        }
    }

    /// Source: RFC 9438 §4.2 to §4.5
    fn avoid_congestion(&mut self, ack: &Ack<'_>) {
        let acked = self.packets(ack.acked);
        let cwnd = self.cwnd;
        let epoch = self.epoch.get_or_insert_with(|| {
            self.counted = ack.now;
            Epoch::new(self.growth, cwnd, self.w_max, self.cwnd_prior)
        });
        epoch.advance(ack.now - self.counted);
        epoch.on_acked(acked, cwnd);
        self.cwnd = epoch.next_window(acked, cwnd, &ack.rtt);
    }

    /// Saves the values that a reduction changes.
    fn remember(&mut self) {
        self.before = Some(Before {
            cwnd: self.cwnd,
            ssthresh: self.ssthresh,
            w_max: self.w_max,
            cwnd_prior: self.cwnd_prior,
            epoch: self.epoch.take(),
        });
    }

    /// Source: RFC 9438 §4.6, §4.7
    fn reduce(&mut self, prior_inflight: Bytes) {
        self.remember();
        // RFC 9438 §4.7: a flow that did not return to its last maximum leaves capacity for others.
        let fast_convergence = self.w_max.is_some_and(|w_max| self.cwnd < w_max);
        self.w_max = Some(if fast_convergence { self.cwnd * (1.0 + BETA) / 2.0 } else { self.cwnd });
        self.set_threshold(prior_inflight);
        let [prior, target] = [self.cwnd, self.ssthresh].map(|packets| self.mss.scaled(packets));
        self.recovery.falls(prior, target, self.mss);
        self.cwnd = self.ssthresh;
    }

    /// Undoes the last reduction, because the loss was spurious.
    ///
    /// Source: RFC 9438 §4.9.1
    fn undo(&mut self) {
        let Some(before) = self.before.take().filter(|before| self.cwnd < before.cwnd) else { return };
        self.cwnd = before.cwnd;
        self.ssthresh = before.ssthresh;
        self.w_max = before.w_max;
        self.cwnd_prior = before.cwnd_prior;
        self.epoch = before.epoch;
    }

    /// Source: RFC 9438 §4.6
    fn set_threshold(&mut self, prior_inflight: Bytes) {
        self.cwnd_prior = self.cwnd;
        let whole = self.recovery.reduced_from(prior_inflight, self.mss.scaled(self.cwnd));
        self.ssthresh = (self.packets(whole) * BETA).max(2.0);
    }
}

impl Controller for Cubic {
    fn on_sent(&mut self, sent: &Sent) {
        self.recovery.on_sent(sent);
        if self.idle.on_sent(sent).is_some() {
            self.cwnd = self.cwnd.min(self.packets(initial_window(self.mss))); // RFC 5681 §4.1
            self.epoch = None;
        }
        if sent.inflight == sent.bytes {
            self.counted = sent.now; // RFC 9438 §5.8: idle time does not advance the curve
        }
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.idle.on_ack(ack);
        self.srtt = Some(ack.rtt.smoothed);
        if self.recovery.was_none(ack) {
            self.undo();
        }
        if !self.recovery.rests(ack) {
            if self.is_slow_start() {
                self.slow_start(ack);
            } else if ack.cwnd_limited {
                self.avoid_congestion(ack);
            }
        }
        if self.ecn && self.recovery.begins_by_mark(ack) {
            self.reduce(ack.prior_inflight);
        }
        self.counted = ack.now; // RFC 9438 §5.8: nor does time when other limits apply
    }

    fn on_loss(&mut self, loss: &Loss<'_>) {
        match loss.cause {
            LossCause::Threshold if self.recovery.begins(loss) => self.reduce(loss.prior_inflight),
            LossCause::Threshold => {}
            LossCause::Persistent => {
                if self.recovery.collapse(loss) {
                    self.remember();
                    self.set_threshold(loss.prior_inflight); // RFC 9438 §4.8
                }
                self.w_max = None; // RFC 9438 §4.8: the next curve begins where slow start ends
                if let Start::Linux(train) = &mut self.start {
                    *train = AckTrain::default(); // Linux evaluates every slow start
                }
                self.cwnd = 1.0; // RFC 5681 §3.1
                self.epoch = None;
            }
        }
    }

    fn control(&self) -> Control {
        let cwnd = self.recovery.window().unwrap_or(self.mss.scaled(self.cwnd));
        let pacing_rate = self.srtt.filter(|_| self.paced).map(|srtt| {
            let gain = if self.is_slow_start() { 2.0 } else { 1.2 }; // Linux tcp_pacing_ss_ratio, tcp_pacing_ca_ratio
            Rate::from_bytes_per(cwnd, srtt).scaled(gain).max(Rate::from_bps(1))
        });
        Control { cwnd, pacing_rate }
    }

    fn is_ecn_capable(&self) -> bool {
        self.ecn
    }

    fn inspect(&self, out: &mut Inspect) {
        let conservative = matches!(&self.start, Start::PlusPlus(hystart) if hystart.is_conservative());
        out.state = match (self.recovery.is_active(), self.is_slow_start()) {
            (true, _) => "Recovery",
            (_, false) => "CongestionAvoidance",
            (_, true) if conservative && self.ssthresh.is_infinite() => "ConservativeSlowStart",
            (_, true) => "SlowStart",
        };
        let known = |value: f64| if value.is_finite() { value } else { f64::NAN };
        out.value("ssthresh_packets", known(self.ssthresh));
        out.value("w_max_packets", self.w_max.unwrap_or(f64::NAN));
        out.value("w_est_packets", self.epoch.as_ref().map_or(f64::NAN, |epoch| epoch.w_est));
        out.value("k_s", self.epoch.as_ref().map_or(f64::NAN, |epoch| epoch.k_s));
    }
}
