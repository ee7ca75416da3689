//! LEDBAT: a background transport. It fills a path as long as the queue is shorter than a target, and yields to other
//! flows before they notice it.
//!
//! ```text
//!  data ──▶ DelayMeter: one-way delay of each packet ──feedback on ACKs──▶ Ledbat: cwnd ∝ (target − queueing delay)
//! ```
//!
//! | module | content | section of the RFC |
//! | --- | --- | --- |
//! | here | the controller of the RFC | §2.4.2 |
//! | [`feedback`] | the receiver of LEDBAT and its feedback bytes | §2.4.1 |
//! | [`delays`] | base delay, current delay | §2.4.2 |
//! | [`utp`] | `ledbat@utp`: libutp | libutp |
//! | [`plusplus`] | `ledbat@plusplus`: LEDBAT++ | draft-irtf-iccrg-ledbat-plus-plus-01 |
//!
//! Source: RFC 6817

pub mod delays;
pub mod feedback;
pub mod plusplus;
pub mod utp;

use std::time::Duration;

use airpace_core::{Bytes, Time};

use crate::controller::{Ack, Control, Controller, Inspect, Loss, LossCause};
use crate::scheme::{Ends, OptionSpec, Options, Preset, Scheme, SchemeError, Setup, Style};
use crate::window::Recovery;

use delays::{QueueingDelay, Unwrap};
use feedback::{DelayMeter, Feedback};
use plusplus::PlusPlus;
use utp::Utp;

/// The scheme `ledbat`.
pub static SCHEME: Scheme = Scheme {
    name: "ledbat",
    summary: "keeps its queue below 100 ms and yields to all others",
    source: "RFC 6817",
    style: Style { colour: "#44AA99", marker: "circle" },
    presets: &[
        Preset {
            name: "utp",
            summary: "libutp, BitTorrent's program",
            set: &[("rules", "utp"), ("base_history_minutes", "13"), ("current_filter_samples", "3")],
        },
        Preset {
            name: "plusplus",
            summary: "LEDBAT++: gain depends on the RTT; multiplicative decrease; periodic slowdowns",
            set: &[("rules", "plusplus"), ("target_ms", "60")],
        },
    ],
    options: &[
        OptionSpec {
            name: "rules",
            default: "rfc6817",
            summary: "how the window moves: rfc6817, utp, plusplus",
        },
        OptionSpec { name: "target_ms", default: "100", summary: "queueing delay to aim at, at most 100" },
        OptionSpec {
            name: "gain",
            default: "1",
            summary: "growth of the window with an empty queue, packets per RTT, at most 1 (rfc6817)",
        },
        OptionSpec {
            name: "allowed_increase_packets",
            default: "1",
            summary: "most by which the window may exceed what is in flight (rfc6817)",
        },
        OptionSpec {
            name: "base_history_minutes",
            default: "10",
            summary: "the base delay is the least of this time, 1 to 60",
        },
        OptionSpec {
            name: "current_filter_samples",
            default: "4",
            summary: "the current delay is the least of this many, 1 to 64",
        },
        OptionSpec {
            name: "send_buffer_bytes",
            default: "1048576",
            summary: "limit of the window, and first threshold of slow start (utp)",
        },
    ],
    takes_ran: true,
    build,
};

/// The window at the start of a flow, in packets. Delays and losses do not reduce the window below this value.
///
/// Source: RFC 6817 §2.5 (`INIT_CWND`, `MIN_CWND`)
const MIN_WINDOW: f64 = 2.0;

fn build(setup: &Setup, options: &Options) -> Result<Ends, SchemeError> {
    let tuning = Tuning::read(options)?;
    let (controller, receiver): (Box<dyn Controller>, Option<DelayMeter>) = match tuning.rules {
        Rules::Rfc6817 => (Box::new(Ledbat::new(setup.mss, tuning)), Some(DelayMeter::default())),
        Rules::Utp => (Box::new(Utp::new(setup.mss, &tuning)), Some(DelayMeter::default())),
        Rules::PlusPlus => (Box::new(PlusPlus::new(setup.mss, tuning)), None),
    };
    Ok(Ends { controller, receiver: receiver.map(|meter| Box::new(meter) as _) })
}

/// The rules by which the window changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// The rules of the RFC.
    Rfc6817,
    /// The rules of libutp.
    Utp,
    /// The rules of the draft of LEDBAT++.
    PlusPlus,
}

/// The values of all options.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tuning {
    /// The rules by which the window changes.
    pub rules: Rules,
    /// Target of the queueing delay.
    ///
    /// Source: RFC 6817 §2.5 (`TARGET`, at most 100 ms); draft-irtf-iccrg-ledbat-plus-plus-01 §4.1 (60 ms)
    pub target: Duration,
    /// Growth of the window with an empty queue, in packets per RTT.
    ///
    /// Source: RFC 6817 §2.5 (`GAIN`, at most 1)
    pub gain: f64,
    /// Number of packets by which the window may exceed the amount in flight.
    ///
    /// Source: RFC 6817 §2.5 (`ALLOWED_INCREASE`)
    pub allowed_increase_packets: f64,
    /// Number of minutes over which the base delay, the minimum delay, is taken.
    ///
    /// Source: RFC 6817 §2.5 (`BASE_HISTORY`); libutp `DELAY_BASE_HISTORY`
    pub base_history_minutes: usize,
    /// Number of the last delays over which the current delay, their minimum, is taken.
    ///
    /// Source: RFC 6817 §2.5 (`CURRENT_FILTER`); libutp `CUR_DELAY_SIZE`
    pub current_filter: usize,
    /// Size of libutp's send buffer.
    ///
    /// Source: libutp `opt_sndbuf`
    pub send_buffer: Bytes,
}

impl Tuning {
    /// Parses the options.
    ///
    /// # Errors
    /// The value of an option cannot be read.
    pub fn read(options: &Options) -> Result<Tuning, SchemeError> {
        let within = |name, least: f64, most: f64, may_be| match options.number(name, least)? {
            number if number <= most => Ok(number),
            _ => Err(options.refuse(name, may_be)),
        };
        let target_ms = within("target_ms", 1.0, 100.0, "milliseconds, 1 to 100")?;
        Ok(Tuning {
            rules: match options.text("rules") {
                "rfc6817" => Rules::Rfc6817,
                "utp" => Rules::Utp,
                "plusplus" => Rules::PlusPlus,
                _ => return Err(options.refuse("rules", "`rfc6817`, `utp` or `plusplus`")),
            },
            target: Duration::from_secs_f64(target_ms * 1e-3),
            gain: within("gain", 0.0, 1.0, "a number of at most 1")?,
            allowed_increase_packets: options.number("allowed_increase_packets", 0.0)?,
            base_history_minutes: within("base_history_minutes", 1.0, 60.0, "minutes, 1 to 60")? as usize,
            current_filter: within("current_filter_samples", 1.0, 64.0, "samples, 1 to 64")? as usize,
            send_buffer: Bytes(within("send_buffer_bytes", 1.0, 1e12, "bytes")? as u64),
        })
    }
}

/// The controller of the RFC. Windows are in bytes.
#[derive(Clone, Debug)]
pub struct Ledbat {
    mss: f64,
    tuning: Tuning,
    cwnd: f64,
    unwrap: Unwrap,
    delay: QueueingDelay,
    recovery: Recovery,
}

impl Ledbat {
    /// A new flow.
    pub fn new(mss: Bytes, tuning: Tuning) -> Ledbat {
        let mss = mss.0 as f64;
        Ledbat {
            mss,
            tuning,
            cwnd: MIN_WINDOW * mss,
            unwrap: Unwrap::default(),
            delay: QueueingDelay::new(tuning.base_history_minutes, tuning.current_filter),
            recovery: Recovery::default(),
        }
    }

    fn learn(&mut self, now: Time, feedback: &Feedback) {
        for delay_us in feedback.delays_us() {
            self.delay.update(now, self.unwrap.relative_us(*delay_us));
        }
    }
}

impl Controller for Ledbat {
    /// Source: RFC 6817 §2.4.2 (`on acknowledgment`)
    fn on_ack(&mut self, ack: &Ack<'_>) {
        if let Some(feedback) = Feedback::read(ack.feedback) {
            self.learn(ack.now, &feedback);
        }
        let Some(queueing_us) = self.delay.get_us() else { return };
        let target_us = self.tuning.target.as_micros() as f64;
        let off_target = (target_us - queueing_us as f64) / target_us;
        let acked = ack.acked.0 as f64;
        self.cwnd += self.tuning.gain * off_target * acked * self.mss / self.cwnd;
        let most = ack.prior_inflight.0 as f64 + self.tuning.allowed_increase_packets * self.mss;
        self.cwnd = self.cwnd.min(most).max(MIN_WINDOW * self.mss);
    }

    /// Source: RFC 6817 §2.4.2 (`on data loss`, at most once per RTT; no ACK within `CTO`)
    fn on_loss(&mut self, loss: &Loss<'_>) {
        match loss.cause {
            LossCause::Threshold if self.recovery.begins(loss) => {
                self.cwnd = self.cwnd.min((self.cwnd / 2.0).max(MIN_WINDOW * self.mss));
            }
            LossCause::Threshold => {}
            LossCause::Persistent => {
                self.cwnd = self.mss;
                self.recovery.collapse(loss);
            }
        }
    }

    fn control(&self) -> Control {
        Control { cwnd: Bytes::scaled(Bytes(1), self.cwnd), pacing_rate: None }
    }

    fn inspect(&self, out: &mut Inspect) {
        out.state = "Ledbat";
        out.value("queueing_delay_ms", self.delay.get_us().map_or(f64::NAN, |us| us as f64 * 1e-3));
    }
}
