//! LEDBAT++: its window grows no faster than Reno's at any RTT, and decreases in proportion to the delay above the
//! target. From time to time LEDBAT++ sends almost nothing for two RTTs, so that the base delay can be measured.
//!
//! ```text
//!  slow start ──delay > ¾ target──▶ congestion avoidance ──2 RTTs, then every tenth of the time──▶ slowdown
//!                                          ▲                                                          │
//!                                          └────────── slow start to the old window ◀──2 RTTs─────────┘
//! ```
//!
//! LEDBAT++ measures RTTs instead of one-way delays, and needs no receiver part.
//!
//! Source: draft-irtf-iccrg-ledbat-plus-plus-01

use std::time::Duration;

use airpace_core::{Bytes, Time};

use crate::controller::{Ack, Control, Controller, Inspect, Loss, LossCause};
use crate::window::Recovery;

use super::delays::QueueingDelay;
use super::{MIN_WINDOW, Tuning};

/// Maximum divisor of the window's growth, relative to Reno's growth.
///
/// Source: draft-irtf-iccrg-ledbat-plus-plus-01 §4.2
const MIN_GAIN_PARTS: f64 = 16.0;

/// Fraction of the target delay at which the first slow start ends.
///
/// Source: draft-irtf-iccrg-ledbat-plus-plus-01 §4.1
const SLOW_START_UNTIL: f64 = 0.75;

/// Slope of the window's decrease when the delay exceeds the target.
///
/// Source: draft-irtf-iccrg-ledbat-plus-plus-01 §4.3 (`Constant`)
const DECREASE: f64 = 1.0;

/// Number of RTTs before the first slowdown, and number of RTTs for which each slowdown keeps the minimum window.
///
/// Source: draft-irtf-iccrg-ledbat-plus-plus-01 §4.4
const SLOWDOWN_RTTS: u32 = 2;

/// Time between two slowdowns, in multiples of the length of the first of them. Slowdowns therefore take at most a
/// tenth of the time.
///
/// Source: draft-irtf-iccrg-ledbat-plus-plus-01 §4.4
const SLOWDOWN_EVERY: u32 = 9;

/// The controller. Windows are in bytes.
#[derive(Clone, Debug)]
pub struct PlusPlus {
    mss: f64,
    tuning: Tuning,
    cwnd: f64,
    ssthresh: f64,
    phase: Phase,
    delay: QueueingDelay,
    srtt: Duration,
    recovery: Recovery,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The first slow start, which ends when the delay rises.
    SlowStart,
    /// The usual phase, with the time of the next slowdown.
    Avoidance { slowdown: Time },
    /// A slowdown: the window is at its minimum.
    Slowdown { begun: Time, until: Time },
    /// Slow start back to the window before the slowdown.
    Return { begun: Time },
}

impl PlusPlus {
    /// A new flow.
    pub fn new(mss: Bytes, tuning: Tuning) -> PlusPlus {
        let mss = mss.0 as f64;
        PlusPlus {
            mss,
            tuning,
            cwnd: MIN_WINDOW * mss,
            ssthresh: f64::INFINITY,
            phase: Phase::SlowStart,
            delay: QueueingDelay::new(tuning.base_history_minutes, tuning.current_filter),
            srtt: Duration::ZERO,
            recovery: Recovery::default(),
        }
    }

    fn least_window(&self) -> f64 {
        MIN_WINDOW * self.mss
    }

    fn target_us(&self) -> f64 {
        self.tuning.target.as_micros() as f64
    }

    /// `1 / min(16, ceil(2 · TARGET / base))`
    ///
    /// Source: draft-irtf-iccrg-ledbat-plus-plus-01 §4.2
    fn gain(&self) -> f64 {
        let base_us = self.delay.base_us().unwrap_or(0).max(1) as f64;
        1.0 / libm::ceil(2.0 * self.target_us() / base_us).clamp(1.0, MIN_GAIN_PARTS)
    }

    /// Source: draft-irtf-iccrg-ledbat-plus-plus-01 §4.4
    fn change_phase(&mut self, ack: &Ack<'_>, queueing_us: f64) {
        let rtt = self.srtt;
        match self.phase {
            Phase::SlowStart
                if queueing_us > SLOW_START_UNTIL * self.target_us() || self.cwnd >= self.ssthresh =>
            {
                self.ssthresh = self.ssthresh.min(self.cwnd);
                self.phase = Phase::Avoidance { slowdown: ack.now + rtt * SLOWDOWN_RTTS };
            }
            Phase::Avoidance { slowdown } if ack.now >= slowdown => {
                self.ssthresh = self.cwnd;
                self.cwnd = self.least_window();
                self.phase = Phase::Slowdown { begun: ack.now, until: ack.now + rtt * SLOWDOWN_RTTS };
            }
            Phase::Slowdown { begun, until } if ack.now >= until => self.phase = Phase::Return { begun },
            Phase::Return { begun } if self.cwnd >= self.ssthresh => self.end_slowdown(begun, ack.now),
            _ => {}
        }
    }

    fn end_slowdown(&mut self, begun: Time, now: Time) {
        self.phase = Phase::Avoidance { slowdown: now + (now - begun).saturating_mul(SLOWDOWN_EVERY) };
    }

    /// Source: draft-irtf-iccrg-ledbat-plus-plus-01 §4.2, §4.3
    fn move_window(&mut self, ack: &Ack<'_>, queueing_us: f64) {
        let acked = ack.acked.0 as f64;
        let gain = self.gain();
        match self.phase {
            Phase::SlowStart | Phase::Return { .. } if ack.cwnd_limited => {
                self.cwnd = (self.cwnd + gain * acked).min(self.ssthresh.max(self.least_window()));
            }
            Phase::Avoidance { .. } => {
                let excess = queueing_us / self.target_us() - 1.0;
                let per_rtt = if excess <= 0.0 {
                    if ack.cwnd_limited { gain * self.mss } else { 0.0 }
                } else {
                    (gain * self.mss - DECREASE * self.cwnd * excess).max(-self.cwnd / 2.0)
                };
                self.cwnd = (self.cwnd + per_rtt * acked / self.cwnd).max(self.least_window());
            }
            _ => {}
        }
    }
}

impl Controller for PlusPlus {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        if let Some(rtt) = ack.rtt.latest {
            self.delay.update(ack.now, rtt.as_micros() as i64);
        }
        self.srtt = ack.rtt.smoothed;
        let queueing_us = self.delay.get_us().unwrap_or(0) as f64;
        self.move_window(ack, queueing_us);
        self.change_phase(ack, queueing_us);
    }

    /// A loss halves the window, once per RTT, as in Reno.
    fn on_loss(&mut self, loss: &Loss<'_>) {
        match loss.cause {
            LossCause::Threshold if self.recovery.begins(loss) => {
                self.cwnd = (self.cwnd / 2.0).max(self.least_window());
                self.ssthresh = self.cwnd;
                match self.phase {
                    // Chosen: the first slowdown starts after two RTTs, as when the delay ends slow start.
                    Phase::SlowStart => {
                        self.phase = Phase::Avoidance { slowdown: loss.now + self.srtt * SLOWDOWN_RTTS }
                    }
                    Phase::Return { begun } => self.end_slowdown(begun, loss.now),
                    Phase::Avoidance { .. } | Phase::Slowdown { .. } => {}
                }
            }
            LossCause::Threshold => {}
            LossCause::Persistent => {
                // Chosen: the draft leaves this to RFC 5681 §3.1, whose slow start ends at half of the window.
                self.ssthresh = (self.cwnd / 2.0).max(self.least_window());
                self.cwnd = self.least_window();
                self.phase = Phase::SlowStart;
                self.recovery.collapse(loss);
            }
        }
    }

    fn control(&self) -> Control {
        Control { cwnd: Bytes::scaled(Bytes(1), self.cwnd), pacing_rate: None }
    }

    fn inspect(&self, out: &mut Inspect) {
        out.state = match self.phase {
            Phase::SlowStart => "SlowStart",
            Phase::Avoidance { .. } => "CongestionAvoidance",
            Phase::Slowdown { .. } => "Slowdown",
            Phase::Return { .. } => "Return",
        };
        let base = self.delay.base_us().map(|us| Duration::from_micros(us.max(0) as u64));
        out.value("queueing_delay_ms", self.delay.get_us().map_or(f64::NAN, |us| us as f64 * 1e-3));
        out.value("base_rtt_ms", base.map_or(f64::NAN, |base| base.as_secs_f64() * 1e3));
        out.value("gain_packets", self.gain());
    }
}
