//! Verus: it learns a curve of the delay as a function of the window. In each epoch of 5 ms it raises or lowers a
//! target delay, depending on whether the measured delay falls or rises, and takes the window for this delay from the
//! curve.
//!
//! ```text
//!  slow start ── loss, or delay > N·Dmin ──▶ epochs of 5 ms ⟲ loss: window × M, until a packet of the new window is back
//!      ▲        the profile D(w) is built      │  delay rose: Dest − δ1   too long: Dest − δ2   else: Dest + δ2
//!      └──── the profile cannot be inverted ───┘  window: the w with D(w) = Dest
//! ```
//!
//! Delays are round-trip times in milliseconds, and windows are in packets, as in the paper.
//!
//! | file | content |
//! | --- | --- |
//! | `profile` | delays per window, and the curve through them |
//! | `spline` | two methods of fitting a curve: through all points, or smoothly between the points |
//! | `sent` | the window at the departure of each packet |
//!
//! Source: Verus §4 (Zaki, Pötsch, Chen, Subramanian and Görg, SIGCOMM 2015); verus src/verus_server.cpp (the program)
//!
//! `verus@pantheon` is the program that Pantheon runs. The options of [`SCHEME`] name the differences from the paper.
//!
//! Differs: the program's epochs last as long as the machine needs to process them, at least 5 ms. Here they last 5 ms.

mod profile;
mod sent;
mod spline;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use airpace_core::{Bytes, Time};

use crate::controller::{Ack, Control, Controller, Inspect, Loss, LossCause, Sent};
use crate::scheme::{Ends, OptionSpec, Options, Preset, Scheme, SchemeError, Setup, Style};
use profile::{DelayProfile, Fit};
use sent::SentWindows;

/// The scheme `verus`.
pub static SCHEME: Scheme = Scheme {
    name: "verus",
    summary: "learns which delay each window causes, and picks its window by that every 5 ms",
    source: "Zaki et al., SIGCOMM 2015",
    style: Style { colour: "#AA4499", marker: "rect" },
    presets: &[Preset {
        name: "pantheon",
        summary: "the authors' program, with its constants",
        set: &[
            ("r", "6"),
            ("decrease", "0.7"),
            ("exit_ratio", "off"),
            ("exit_ms", "500"),
            ("exit_least_packets", "20"),
            ("spline", "penalised"),
            ("ratio", "last"),
            ("exit_forgets", "on"),
        ],
    }],
    options: &[
        OptionSpec {
            name: "r",
            default: "2",
            summary: "the longest delay that is accepted, in multiples of the least; 2, 4 or 6 in the paper",
        },
        OptionSpec {
            name: "decrease",
            default: "0.5",
            summary: "the window after a loss, as a share; 0.1 to 1",
        },
        OptionSpec {
            name: "exit_ratio",
            default: "15",
            summary: "slow start ends at this multiple of the least delay; off: not",
        },
        OptionSpec { name: "exit_ms", default: "off", summary: "slow start ends at this delay; off: not" },
        OptionSpec {
            name: "exit_least_packets",
            default: "5",
            summary: "a loss ends slow start only if the reduced window is larger; 5 or more",
        },
        OptionSpec {
            name: "spline",
            default: "interpolated",
            summary: "interpolated: the curve goes through all points; penalised: smoothly between them",
        },
        OptionSpec {
            name: "ratio",
            default: "epoch",
            summary: "r limits the longest delay up to: epoch (the end of this one), last (the end of the last one)",
        },
        OptionSpec {
            name: "exit_forgets",
            default: "off",
            summary: "after a loss ends slow start, packets sent before do not count: neither in flight nor as delays",
        },
        OptionSpec {
            name: "hole_ms",
            default: "150",
            summary: "a missing packet counts as lost after this time",
        },
    ],
    takes_ran: false,
    build,
};

fn build(setup: &Setup, options: &Options) -> Result<Ends, SchemeError> {
    let off_or = |name: &str| match options.text(name) {
        "off" => Ok(f64::INFINITY),
        _ => options.number(name, 1.0),
    };
    let tuning = Tuning {
        r: match options.number("r", 1.0)? {
            r if r > 1.0 => r,
            _ => return Err(options.refuse("r", "a number above 1: delay over the least delay")),
        },
        decrease: match options.number("decrease", 0.1)? {
            share if share <= 1.0 => share,
            _ => return Err(options.refuse("decrease", "0.1 to 1")),
        },
        exit_ratio: off_or("exit_ratio")?,
        exit_ms: off_or("exit_ms")?,
        exit_least_packets: options.number("exit_least_packets", 5.0)?,
        fit: match options.text("spline") {
            "interpolated" => Fit::Interpolated,
            "penalised" => Fit::Penalised,
            _ => return Err(options.refuse("spline", "`interpolated` or `penalised`")),
        },
        is_ratio_last: match options.text("ratio") {
            "epoch" => false,
            "last" => true,
            _ => return Err(options.refuse("ratio", "`epoch` or `last`")),
        },
        exit_forgets: options.switch("exit_forgets")?,
        hole: Duration::from_secs_f64(options.number("hole_ms", 0.0)?.min(10_000.0) * 1e-3),
    };
    Ok(Ends { controller: Box::new(Verus::new(tuning, setup.mss)), receiver: None })
}

/// Length of an epoch.
///
/// Source: Verus §5 (ε)
const EPOCH: Duration = Duration::from_millis(5);

/// Interval at which the curve is fitted.
///
/// Source: Verus §5
const REFIT: Duration = Duration::from_secs(1);

/// Decrease of the target delay if the delay rose, in ms.
///
/// Source: Verus §4 (δ1)
const DELTA_1_MS: f64 = 1.0;

/// Increase of the target delay, and its decrease if the delay is too long, in ms.
///
/// Source: Verus §4 (δ2)
const DELTA_2_MS: f64 = 2.0;

/// Weight of the previous value in the smoothed maximum delay of an epoch.
///
/// Source: verus src/verus_server.cpp
const KEPT_OF_MAX: f64 = 0.2;

/// Weight of the old value in the average delay, per packet.
///
/// Source: verus src/verus_server.cpp
const KEPT_OF_DELAY: f64 = 0.875;

/// Minimum rise of the delay that counts as a rise, in ms.
///
/// Source: verus src/verus_server.cpp
const RISE_MS: f64 = 1e-4;

/// Increase of the minimum delay per epoch if almost nothing is in flight and the delay is still too long.
///
/// Source: verus src/verus_server.cpp
const DMIN_STEP_MS: f64 = 10.0;

/// Timeout without ACKs, in multiples of the delay; at least 150 ms and at most a second.
///
/// Source: verus src/verus_server.cpp
const TIMEOUT_DELAYS: f64 = 5.0;
/// Minimum and maximum of the timeout; see [`TIMEOUT_DELAYS`].
const TIMEOUT_MS: (f64, f64) = (150.0, 1_000.0);

/// When a loss ends slow start, the delays of all windows from the window of the lost packet on are discarded, because
/// the queue was overfull. Windows below this value (packets) are never discarded.
///
/// Source: verus src/verus_server.cpp
const SPOILT_FROM: f64 = 100.0;

/// The values of the options.
#[derive(Clone, Copy, Debug)]
struct Tuning {
    r: f64,
    decrease: f64,
    exit_ratio: f64,
    exit_ms: f64,
    exit_least_packets: f64,
    fit: Fit,
    is_ratio_last: bool,
    exit_forgets: bool,
    hole: Duration,
}

/// Packets that are missing between acknowledged packets, and the time at which they count as lost.
#[derive(Clone, Copy, Debug)]
struct Hole {
    due: Time,
    packets: u64,
    /// The window when the first of these packets was sent.
    window: f64,
}

/// The controller.
#[derive(Clone, Debug)]
struct Verus {
    tuning: Tuning,
    mss: Bytes,
    /// The window W, in packets.
    window: f64,
    /// Number of packets that may still leave in this epoch.
    allowance: u64,
    /// Packets in flight in Verus's own count. A timeout sets it to zero.
    in_flight: u64,
    inflight: Bytes,
    in_slow_start: bool,
    /// Whether a recovery from a loss is in progress, in which the window does not change.
    recovering: bool,
    /// Whether a long delay ended slow start and packets with long delays still arrive.
    draining: bool,
    /// The minimum delay; infinite before the first delay.
    d_min_ms: f64,
    /// The target delay.
    d_est_ms: f64,
    /// The maximum delay of an epoch, smoothed.
    d_max_ms: Option<f64>,
    /// Maximum delay of this epoch up to now.
    epoch_max_ms: Option<f64>,
    mean_ms: Option<f64>,
    last_ms: Option<f64>,
    profile: DelayProfile,
    sent: SentWindows,
    holes: VecDeque<Hole>,
    next_number: u64,
    /// Packets with numbers below this number were sent before the last timeout or restart.
    session: u64,
    last_ack: Time,
    /// Time from which on the timeout is measured.
    silent_since: Time,
    next_epoch: Option<Time>,
    next_fit: Time,
}

impl Verus {
    fn new(tuning: Tuning, mss: Bytes) -> Verus {
        Verus {
            tuning,
            mss,
            window: 1.0,
            allowance: 1,
            in_flight: 0,
            inflight: Bytes::ZERO,
            in_slow_start: true,
            recovering: false,
            draining: false,
            d_min_ms: f64::INFINITY,
            d_est_ms: 0.0,
            d_max_ms: None,
            epoch_max_ms: None,
            mean_ms: None,
            last_ms: None,
            profile: DelayProfile::new(tuning.fit),
            sent: SentWindows::default(),
            holes: VecDeque::new(),
            next_number: 0,
            session: 0,
            last_ack: Time::ZERO,
            silent_since: Time::ZERO,
            next_epoch: None,
            next_fit: Time::NEVER,
        }
    }

    /// Restarts slow start, and discards the learned profile.
    ///
    /// Source: verus src/verus_server.cpp
    fn restart(&mut self) {
        let fresh = Verus::new(self.tuning, self.mss);
        let sent = std::mem::take(&mut self.sent);
        *self = Verus {
            sent,
            inflight: self.inflight,
            next_number: self.next_number,
            session: self.next_number,
            last_ack: self.last_ack,
            silent_since: self.silent_since,
            next_epoch: self.next_epoch,
            ..fresh
        };
    }

    /// Processes one acknowledged packet and its delay.
    fn on_packet(&mut self, now: Time, number: u64, delay_ms: f64) {
        let window = self.sent.window_of(number).unwrap_or(self.window);
        let too_long = delay_ms > self.tuning.exit_ms || delay_ms > self.tuning.exit_ratio * self.d_min_ms;
        if self.in_slow_start && too_long {
            self.window = (self.tuning.decrease * window).max(1.0);
            self.leave_slow_start(now);
            (self.recovering, self.draining) = (!self.in_slow_start, !self.in_slow_start);
        }
        // Source: Verus §4; the first packet of the new window is back.
        if self.recovering && window <= self.window {
            (self.recovering, self.draining) = (false, false);
            self.epoch_max_ms = None;
        }
        self.in_flight = self.in_flight.saturating_sub(1);
        self.epoch_max_ms = Some(self.epoch_max_ms.map_or(delay_ms, |max| max.max(delay_ms)));
        self.mean_ms = Some(ewma(self.mean_ms, delay_ms, KEPT_OF_DELAY));
        self.last_ms = Some(delay_ms);
        self.d_min_ms = self.d_min_ms.min(delay_ms);
        if self.recovering {
            self.window += 1.0 / self.window;
            if let Some(delay_ms) = self.profile.delay_ms(self.window) {
                self.d_est_ms = self.d_est_ms.min(delay_ms);
            }
        } else {
            self.profile.record(window, delay_ms);
        }
        if self.in_slow_start {
            self.window += 1.0;
            self.allowance = (self.window as u64).saturating_sub(self.in_flight);
        }
    }

    /// Fits the first curve, and takes its delay at the current window as the target.
    ///
    /// Source: Verus §4
    fn leave_slow_start(&mut self, now: Time) {
        if !self.profile.fit() {
            self.restart();
            return;
        }
        self.in_slow_start = false;
        self.next_fit = now + REFIT;
        self.d_est_ms = self.profile.delay_ms(self.window).unwrap_or(self.d_min_ms);
    }

    /// Declares packets lost that have been missing for the required time.
    ///
    /// Source: Verus §4
    fn expire_holes(&mut self, now: Time) {
        while let Some(hole) = self.holes.front().copied().filter(|hole| hole.due <= now) {
            self.holes.pop_front();
            self.in_flight = self.in_flight.saturating_sub(hole.packets);
            if !self.recovering {
                self.recovering = true;
                self.window = self.window.min(self.tuning.decrease * hole.window).max(1.0);
                self.d_est_ms = self.profile.delay_ms(self.window).unwrap_or(self.d_est_ms);
            }
            if self.in_slow_start && self.window > self.tuning.exit_least_packets {
                self.profile.forget_from(hole.window.max(SPOILT_FROM));
                if self.tuning.exit_forgets {
                    self.in_flight = 0;
                    self.session = self.next_number;
                    self.holes.clear();
                }
                self.leave_slow_start(now);
            }
        }
    }

    /// The time of the timeout, if no ACK arrives before.
    fn timeout(&self) -> Time {
        let least_most = |ms: f64| ms.clamp(TIMEOUT_MS.0, TIMEOUT_MS.1);
        let ms = self.last_ms.map_or(TIMEOUT_MS.1, |last| least_most(TIMEOUT_DELAYS * last));
        self.silent_since + Duration::from_secs_f64(ms * 1e-3)
    }

    /// Source: verus src/verus_server.cpp
    fn handle_timeout(&mut self, now: Time) {
        self.silent_since = now;
        if self.last_ms.is_none() {
            self.restart();
        } else if self.in_slow_start {
            self.leave_slow_start(now);
        } else {
            self.recovering = true;
            self.in_flight = 0;
            self.d_est_ms = self.d_min_ms;
            self.session = self.next_number;
            self.holes.clear();
        }
    }

    /// Ends an epoch: raises or lowers the target delay, and computes the number of packets for the next epoch.
    ///
    /// Source: Verus §4
    fn end_epoch(&mut self, now: Time) {
        let heard = self.epoch_max_ms.take();
        let silence_ms = (now - self.last_ack).as_secs_f64() * 1e3;
        let max_ms = heard.unwrap_or_else(|| self.d_max_ms.unwrap_or(0.0).max(silence_ms));
        let last_ms = self.d_max_ms.unwrap_or(max_ms);
        let smoothed_ms = ewma(self.d_max_ms, max_ms, KEPT_OF_MAX);
        self.d_max_ms = Some(smoothed_ms);
        let mut rests = false;
        // Source: verus src/verus_server.cpp (2015; compares before it smooths)
        let limited_ms = if self.tuning.is_ratio_last { last_ms } else { smoothed_ms };
        if limited_ms > self.tuning.r * self.d_min_ms {
            if !self.draining {
                self.d_est_ms = (self.d_est_ms - DELTA_2_MS).max(self.d_min_ms);
                if self.d_est_ms == self.d_min_ms {
                    // The queue is empty and the delay is still long, so the path's delay without a queue may have
                    // risen.
                    if self.in_flight < 2 {
                        self.d_min_ms += DMIN_STEP_MS;
                    } else {
                        rests = true;
                    }
                }
            }
        } else if max_ms - last_ms > RISE_MS {
            self.d_est_ms = (self.d_est_ms - DELTA_1_MS).max(self.d_min_ms);
        } else if self.allowance == 0 {
            // Chosen: the target does not rise if the application does not use the allowance.
            self.d_est_ms += DELTA_2_MS;
        }
        match self.profile.window(self.d_est_ms) {
            Some(window) => {
                self.window = window.max(1.0);
                self.allowance = if rests { 0 } else { self.due_this_epoch() };
            }
            None => self.restart(),
        }
    }

    /// Number of packets to send in this epoch, so that a whole window is in flight after a round trip.
    ///
    /// ```text
    /// n = ⌈RTT / ε⌉,   S = max(0, W + (2 − n)/(n − 1) · in flight)
    /// ```
    ///
    /// Source: Verus §4
    fn due_this_epoch(&self) -> u64 {
        let epochs = libm::ceil(self.mean_ms.unwrap_or(0.0) / (EPOCH.as_secs_f64() * 1e3));
        let in_flight = self.in_flight as f64;
        let counted =
            if epochs > 1.0 { libm::floor(in_flight * (epochs - 2.0) / (epochs - 1.0)) } else { in_flight };
        (self.window - counted).max(0.0) as u64
    }
}

impl Controller for Verus {
    fn on_sent(&mut self, sent: &Sent) {
        if sent.inflight == sent.bytes {
            self.silent_since = sent.now;
            // A time without ACKs while nothing was in flight does not count.
            self.last_ack = self.last_ack.max(sent.now);
        }
        self.next_epoch.get_or_insert(sent.now + EPOCH);
        self.sent.push(sent.number, self.window);
        self.next_number = sent.number + 1;
        self.inflight = sent.inflight;
        self.in_flight += 1;
        self.allowance = self.allowance.saturating_sub(1);
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.inflight = ack.inflight;
        for packet in ack.packets {
            // Packets sent before the last timeout are no longer in flight, and their late ACKs are not samples of the
            // current window.
            if packet.number >= self.session {
                self.on_packet(ack.now, packet.number, (ack.now - packet.sent).as_secs_f64() * 1e3);
            }
        }
        self.last_ack = ack.now;
        self.silent_since = ack.now;
    }

    fn on_loss(&mut self, loss: &Loss<'_>) {
        self.inflight = loss.inflight;
        let Some(first) = loss.packets.iter().find(|packet| packet.number >= self.session) else { return };
        if loss.cause == LossCause::Persistent {
            self.handle_timeout(loss.now);
            return;
        }
        let packets = loss.packets.iter().filter(|packet| packet.number >= self.session).count() as u64;
        let due = loss.now + self.tuning.hole;
        match self.holes.back_mut() {
            // Holes are checked once per epoch, so holes that are due within one epoch are merged.
            Some(last) if due - last.due < EPOCH => last.packets += packets,
            _ => {
                let window = self.sent.window_of(first.number).unwrap_or(self.window);
                self.holes.push_back(Hole { due, packets, window });
            }
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        if self.next_epoch.is_none_or(|next| now < next) {
            return;
        }
        self.next_epoch = Some(now + EPOCH);
        self.expire_holes(now);
        if self.inflight > Bytes::ZERO && now >= self.timeout() {
            self.handle_timeout(now);
        }
        let idle = self.inflight == Bytes::ZERO && self.epoch_max_ms.is_none();
        if idle && self.holes.is_empty() {
            self.next_epoch = None; // until the next packet is sent
        }
        if self.in_slow_start || idle {
            self.allowance = (self.window as u64).saturating_sub(self.in_flight).max(self.allowance);
            return;
        }
        if now >= self.next_fit {
            self.next_fit = now + REFIT;
            if !self.profile.fit() {
                self.restart();
                return;
            }
        }
        self.end_epoch(now);
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.next_epoch
    }

    fn control(&self) -> Control {
        let allowance = Bytes(self.allowance.saturating_mul(self.mss.0));
        Control { cwnd: (self.inflight + allowance).max(self.mss), pacing_rate: None }
    }

    fn inspect(&self, out: &mut Inspect) {
        out.state = match (self.in_slow_start, self.recovering) {
            (true, _) => "SlowStart",
            (_, true) => "LossRecovery",
            _ => "CongestionAvoidance",
        };
        let known = |ms: f64| if ms.is_finite() { ms } else { f64::NAN };
        out.value("window_packets", self.window);
        out.value("d_est_ms", self.d_est_ms);
        out.value("d_min_ms", known(self.d_min_ms));
        out.value("d_max_ms", self.d_max_ms.unwrap_or(f64::NAN));
        out.value("profile_packets", self.profile.largest() as f64);
    }
}

/// A moving average that starts with its first value.
fn ewma(old: Option<f64>, new: f64, kept: f64) -> f64 {
    old.map_or(new, |old| old * kept + new * (1.0 - kept))
}
