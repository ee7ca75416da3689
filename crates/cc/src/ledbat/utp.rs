//! libutp, the program that generates most LEDBAT traffic.
//!
//! Its slow start adds a packet per RTT, which is no faster than the subsequent growth of two packets (3000 bytes) per
//! RTT. This implementation always uses the higher growth.
//!
//! Source: libutp utp_internal.cpp
//!
//! Differs: the window is at least a packet; libutp's window falls to ten bytes until the timeout sets the window to
//! one packet. Byte counts include packet headers, not only the payload. All packets have one size.

use std::time::Duration;

use airpace_core::{Bytes, Time};

use crate::controller::{Ack, Control, Controller, Inspect, Loss, LossCause};

use super::Tuning;
use super::delays::Unwrap;
use super::feedback::{Feedback, micros};

/// Maximum growth of the window per RTT, in bytes.
///
/// Source: libutp `MAX_CWND_INCREASE_BYTES_PER_RTT`
const MAX_PER_RTT: f64 = 3000.0;

/// Period within which several losses count as one.
///
/// Source: libutp `MAX_WINDOW_DECAY`
const DECAY_EVERY: Duration = Duration::from_millis(100);

/// Fraction of the target at which slow start ends.
///
/// Source: libutp `apply_ccontrol`
const SLOW_START_UNTIL: f64 = 0.9;

/// If the window was not filled for this time, it stops growing.
///
/// Source: libutp `apply_ccontrol`
const UNFILLED: Duration = Duration::from_secs(1);

/// Maximum correction of this direction's base delay by a change of the other direction's base delay.
///
/// Source: libutp `utp_process_incoming`
const MAX_SHIFT_US: i64 = 10_000;

/// The controller. Windows are in whole bytes, and the increment per ACK is rounded down, as in libutp.
#[derive(Clone, Debug)]
pub struct Utp {
    mss: Bytes,
    target_us: i64,
    send_buffer: u64,
    window: u64,
    ssthresh: u64,
    slow_start: bool,
    /// Delays of the data packets. `theirs` has the delays of the ACKs.
    ours: DelayHistory,
    theirs: DelayHistory,
    drift: Drift,
    decayed: Option<Time>,
    filled: Time,
    delay_us: Option<i64>,
}

impl Utp {
    /// A new flow.
    pub fn new(mss: Bytes, tuning: &Tuning) -> Utp {
        let history = DelayHistory::new(tuning.base_history_minutes, tuning.current_filter);
        let send_buffer = tuning.send_buffer.max(mss).0;
        Utp {
            mss,
            target_us: tuning.target.as_micros() as i64,
            send_buffer,
            window: mss.0,
            ssthresh: send_buffer,
            slow_start: true,
            ours: history.clone(),
            theirs: history,
            drift: Drift::default(),
            decayed: None,
            filled: Time::ZERO,
            delay_us: None,
        }
    }

    /// Processes the delays of both directions.
    fn learn(&mut self, now: Time, feedback: &Feedback, delay_us: u32, rtt_us: i64) {
        let their_base = self.theirs.base_us();
        self.theirs.add(now, micros(now).wrapping_sub(feedback.clock_us));
        // If the base delay of the other direction falls, a clock drifts. The base delay of the data is then wrong by
        // the same amount with the opposite sign.
        if let (Some(before), Some(after)) = (their_base, self.theirs.base_us())
            && (1..=MAX_SHIFT_US).contains(&(before - after))
        {
            self.ours.shift(before - after);
        }
        let relative_us = self.ours.add(now, delay_us);
        self.drift.on_delay(now, relative_us);
        let excess_us = self.ours.value_us() - rtt_us;
        if excess_us > 0 {
            self.ours.shift(excess_us);
        }
    }

    /// Source: libutp `apply_ccontrol`
    fn steer(&mut self, now: Time, acked: u64, rtt_us: i64) {
        let delay_us = self.ours.value_us().min(rtt_us) + self.drift.penalty_us();
        self.delay_us = Some(delay_us);
        let window_factor = acked.min(self.window) as f64 / acked.max(self.window) as f64;
        let delay_factor = (self.target_us - delay_us) as f64 / self.target_us as f64;
        let mut gain = MAX_PER_RTT * window_factor * delay_factor;
        if gain > 0.0 && now - self.filled > UNFILLED {
            gain = 0.0;
        }
        // The cast with `as` rounds down, and maps a negative sum to zero.
        let steered = (self.window as f64 + gain) as u64;
        if self.slow_start {
            let stepped = (self.window as f64 + window_factor * self.mss.0 as f64) as u64;
            if stepped > self.ssthresh {
                self.slow_start = false;
            } else if delay_us as f64 > SLOW_START_UNTIL * self.target_us as f64 {
                self.slow_start = false;
                self.ssthresh = self.window;
            } else {
                self.window = stepped.max(steered);
            }
        } else {
            self.window = steered;
        }
        self.window = self.window.clamp(self.mss.0, self.send_buffer);
    }
}

impl Controller for Utp {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        if ack.cwnd_limited {
            self.filled = ack.now;
        }
        let Some(newest) = ack.packets.last() else { return };
        let rtt_us = ack.rtt.latest.unwrap_or(ack.now - newest.sent).as_micros() as i64;
        let Some(feedback) = Feedback::read(ack.feedback) else { return };
        let Some(&delay_us) = feedback.delays_us().last() else { return };
        self.learn(ack.now, &feedback, delay_us, rtt_us);
        self.steer(ack.now, ack.acked.0, rtt_us);
    }

    fn on_loss(&mut self, loss: &Loss<'_>) {
        match loss.cause {
            LossCause::Threshold => {
                // libutp maybe_decay_win
                if self.decayed.is_none_or(|decayed| loss.now - decayed >= DECAY_EVERY) {
                    self.window = (self.window / 2).max(self.mss.0);
                    self.decayed = Some(loss.now);
                    self.slow_start = false;
                    self.ssthresh = self.window;
                }
            }
            LossCause::Persistent => {
                // libutp check_timeouts
                self.window = self.mss.0;
                self.slow_start = true;
            }
        }
    }

    fn control(&self) -> Control {
        Control { cwnd: Bytes(self.window), pacing_rate: None }
    }

    fn inspect(&self, out: &mut Inspect) {
        out.state = if self.slow_start { "SlowStart" } else { "Ledbat" };
        out.value("queueing_delay_ms", self.delay_us.map_or(f64::NAN, |delay_us| delay_us as f64 * 1e-3));
        out.value("ssthresh_bytes", self.ssthresh as f64);
        out.value("clock_drift_us", self.drift.slope_us as f64);
    }
}

/// Base and current delay of one direction. Each current delay is relative to the base delay at the time of the
/// measurement.
///
/// Source: libutp `DelayHist`
#[derive(Clone, Debug)]
struct DelayHistory {
    unwrap: Unwrap,
    /// The minimum delay of each minute, in a ring; empty before the first delay.
    minutes_us: Vec<i64>,
    length: usize,
    minute: usize,
    minute_since: Time,
    base_us: i64,
    /// The last delays, in a ring that starts with zeros.
    current_us: Vec<i64>,
    next: usize,
}

impl DelayHistory {
    fn new(minutes: usize, current: usize) -> DelayHistory {
        DelayHistory {
            unwrap: Unwrap::default(),
            minutes_us: Vec::with_capacity(minutes),
            length: minutes,
            minute: 0,
            minute_since: Time::ZERO,
            base_us: 0,
            current_us: vec![0; current],
            next: 0,
        }
    }

    /// Adds a delay. Returns the delay relative to the first delay.
    fn add(&mut self, now: Time, delay_us: u32) -> i64 {
        let delay_us = self.unwrap.relative_us(delay_us);
        if self.minutes_us.is_empty() {
            self.minutes_us.resize(self.length, delay_us);
            self.base_us = delay_us;
            self.minute_since = now;
        }
        self.minutes_us[self.minute] = self.minutes_us[self.minute].min(delay_us);
        self.base_us = self.base_us.min(delay_us);
        self.current_us[self.next] = delay_us - self.base_us;
        self.next = (self.next + 1) % self.current_us.len();
        if now - self.minute_since > Duration::from_secs(60) {
            self.minute_since = now;
            self.minute = (self.minute + 1) % self.minutes_us.len();
            self.minutes_us[self.minute] = delay_us;
            self.base_us = self.minutes_us.iter().copied().min().unwrap_or(delay_us);
        }
        delay_us
    }

    /// Increases the base delay, which was too low by `by_us`.
    fn shift(&mut self, by_us: i64) {
        self.minutes_us.iter_mut().for_each(|least_us| *least_us = least_us.saturating_add(by_us));
        self.base_us = self.base_us.saturating_add(by_us);
    }

    fn base_us(&self) -> Option<i64> {
        (!self.minutes_us.is_empty()).then_some(self.base_us)
    }

    fn value_us(&self) -> i64 {
        self.current_us.iter().copied().min().unwrap_or(0)
    }
}

/// Detects a receiver's clock that runs so slowly that a full queue looks empty, whether by accident or on purpose.
///
/// Source: libutp `clock_drift`
#[derive(Clone, Copy, Debug, Default)]
struct Drift {
    sum_us: i64,
    samples: i64,
    until: Option<Time>,
    average_us: i64,
    /// Drift of the clock in microseconds per five seconds, smoothed with gain 1/8.
    slope_us: i64,
}

impl Drift {
    const SPAN: Duration = Duration::from_secs(5);
    /// Threshold of the drift (µs per five seconds). A drift below this negative value causes a penalty.
    const BEARABLE_US: i64 = -200_000;
    const PENALTY_PARTS: i64 = 7;

    fn on_delay(&mut self, now: Time, delay_us: i64) {
        self.sum_us += delay_us;
        self.samples += 1;
        let until = *self.until.get_or_insert(now + Drift::SPAN);
        if now <= until {
            return;
        }
        let average_us = self.sum_us / self.samples;
        self.slope_us = (self.slope_us * 7 + average_us - self.average_us) / 8;
        *self = Drift {
            average_us,
            slope_us: self.slope_us,
            until: Some(until + Drift::SPAN),
            ..Drift::default()
        };
    }

    /// The penalty that is added to the delay.
    fn penalty_us(&self) -> i64 {
        (Drift::BEARABLE_US - self.slope_us).max(0) / Drift::PENALTY_PARTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_current_delay_stays_beside_the_base_of_its_time() {
        let mut history = DelayHistory::new(13, 3);
        for delay_us in [500, 500, 500] {
            history.add(Time::ZERO, delay_us);
        }
        assert_eq!(history.value_us(), 0);
        for delay_us in [700, 800, 900] {
            history.add(Time::ZERO, delay_us);
        }
        assert_eq!(history.value_us(), 200);
        history.add(Time::ZERO, 450);
        assert_eq!(
            (history.value_us(), history.base_us),
            (0, -50),
            "both values are relative to the first delay"
        );
        history.shift(100);
        assert_eq!((history.value_us(), history.base_us), (0, 50));
    }

    #[test]
    fn a_base_is_forgotten_after_thirteen_minutes() {
        let mut history = DelayHistory::new(13, 3);
        history.add(Time::ZERO, 0);
        let mut rose = None;
        for second in 1..1_000 {
            history.add(Time::from_secs(second), 1_000);
            if history.base_us == 1_000 && rose.is_none() {
                rose = Some(second);
            }
        }
        assert_eq!(rose, Some(13 * 61), "each of 13 slots lasts until more than a minute has passed");
    }

    #[test]
    fn a_clock_that_runs_off_is_penalized_and_a_usual_one_is_not() {
        let penalty_us = |drift_us_per_s: i64| {
            let mut drift = Drift::default();
            for second in 0..600 {
                drift.on_delay(Time::from_secs(second as u64), -drift_us_per_s * second);
            }
            drift.penalty_us()
        };
        assert_eq!(penalty_us(100), 0, "a drift of 100 ppm is usual");
        assert_eq!(penalty_us(40_000), 0, "200 ms in five seconds is the limit without a penalty");
        assert!(
            (14_200..14_400).contains(&penalty_us(60_000)),
            "a seventh of the 100 ms beyond the limit counts"
        );
    }
}
