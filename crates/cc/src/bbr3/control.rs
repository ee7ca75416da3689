//! The pacing rate and the window, computed from the model.
//!
//! Source: draft-ietf-ccwg-bbr-06 §5.6

use std::time::Duration;

use airpace_core::{Bytes, Rate};

use super::window::Target;
use super::{Bbr3, State};
use crate::controller::Ack;

/// Minimum gain with which the sending rate doubles every round: 4 ln 2.
///
/// Source: draft-ietf-ccwg-bbr-06 §5.3.1.1
pub const STARTUP_GAIN: f64 = 2.772_588_722_239_781;
/// Pacing gain of ProbeBW_UP.
///
/// Source: draft-ietf-ccwg-bbr-06 §5.6.1
const UP_GAIN: f64 = 1.25;
/// Congestion window outside of ProbeBW_UP and ProbeRTT, in bandwidth-delay products.
///
/// Source: draft-ietf-ccwg-bbr-06 §5.6.1
const CWND_GAIN: f64 = 2.0;
/// Congestion window in ProbeBW_UP, in bandwidth-delay products.
///
/// Source: draft-ietf-ccwg-bbr-06 §5.6.1
const UP_CWND_GAIN: f64 = 2.25;
/// Congestion window in ProbeRTT, in bandwidth-delay products.
///
/// Source: draft-ietf-ccwg-bbr-06 §5.3.4
const PROBE_RTT_CWND_GAIN: f64 = 0.5;
/// Fraction of the bandwidth by which BBR paces slower, so that queues drain in the long run.
///
/// Source: draft-ietf-ccwg-bbr-06 §5.6.2
const PACING_MARGIN: f64 = 0.01;
/// Maximum size of a burst.
///
/// Source: draft-ietf-ccwg-bbr-06 §5.6.3
const MAX_QUANTUM: Bytes = Bytes(64 * 1024);

impl Bbr3 {
    pub(super) fn update_control(&mut self, ack: &Ack<'_>) {
        if !self.has_seen_rtt && ack.rtt.latest.is_some_and(|rtt| !rtt.is_zero()) {
            self.has_seen_rtt = true;
            self.pacing_rate =
                Rate::from_bytes_per(self.window.cwnd(), ack.rtt.smoothed).scaled(STARTUP_GAIN);
        }
        let (pacing_gain, cwnd_gain) = self.gains();
        self.set_pacing_rate(pacing_gain);
        let extra = self.aggregation.extra_acked();
        let extra = self.profile.extra_acked_cap.map_or(extra, |cap| extra.min(self.bw.bytes_in(cap)));
        let target = Target {
            max_inflight: self.with_quanta(self.bdp(self.bw, cwnd_gain) + extra),
            cap: self.inflight_cap(),
            probe_rtt: (self.state == State::ProbeRtt).then(|| self.probe_rtt_cwnd()),
            was_full: self.full_pipe.ever(),
        };
        self.window.grow(ack.acked, self.delivered, &target);
    }

    /// The gain of the pacing rate and the gain of the window in the present state.
    ///
    /// Source: draft-ietf-ccwg-bbr-06 §5.6.1
    fn gains(&self) -> (f64, f64) {
        match self.state {
            State::Startup => (STARTUP_GAIN, CWND_GAIN),
            State::Drain { .. } => (self.profile.drain_gain, CWND_GAIN),
            State::Down => (self.profile.down_gain, CWND_GAIN),
            State::Cruise | State::Refill => (1.0, CWND_GAIN),
            State::Up => (UP_GAIN, UP_CWND_GAIN),
            State::ProbeRtt => (1.0, PROBE_RTT_CWND_GAIN),
        }
    }

    /// Source: draft-ietf-ccwg-bbr-06 §5.6.4.7 (`BoundCwndForModel`)
    fn inflight_cap(&self) -> Option<Bytes> {
        let longterm = match self.state {
            State::Down | State::Refill | State::Up => self.bounds.inflight_longterm,
            State::Cruise | State::ProbeRtt => self.bounds.with_headroom(self.mss, self.window.floor()),
            State::Startup | State::Drain { .. } => None,
        };
        [longterm, self.bounds.inflight_shortterm].into_iter().flatten().min()
    }

    /// Source: draft-ietf-ccwg-bbr-06 §5.6.2
    pub(super) fn set_pacing_rate(&mut self, gain: f64) {
        if self.bw == Rate::ZERO {
            return;
        }
        let rate = self.bw.scaled(gain * (1.0 - PACING_MARGIN));
        // A rate measured before the pipe was full is the sending rate, not the capacity.
        if self.full_pipe.ever() || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// Bytes delivered at `bw` in the propagation time, times `gain`.
    pub(super) fn bdp(&self, bw: Rate, gain: f64) -> Bytes {
        self.min_rtt.get().map_or(self.initial, |rtprop| bw.bytes_in(rtprop).scaled(gain))
    }

    /// Source: draft-ietf-ccwg-bbr-06 §5.6.4.2 (`Inflight`)
    pub(super) fn inflight(&self, bw: Rate, gain: f64) -> Bytes {
        self.with_quanta(self.bdp(bw, gain))
    }

    /// Source: draft-ietf-ccwg-bbr-06 §5.6.4.2 (`QuantizationBudget`), §5.6.3
    fn with_quanta(&self, inflight: Bytes) -> Bytes {
        let quantum = self.pacing_rate.bytes_in(Duration::from_millis(1));
        let quantum = quantum.min(MAX_QUANTUM).max(Bytes(2 * self.mss.0));
        let budget = Bytes(self.profile.offload_quanta * quantum.0);
        let probe = if self.state == State::Up { Bytes(2 * self.mss.0) } else { Bytes::ZERO };
        inflight.max(budget).max(self.window.floor()) + probe
    }

    pub(super) fn probe_rtt_cwnd(&self) -> Bytes {
        self.bdp(self.bw, PROBE_RTT_CWND_GAIN).max(self.window.floor())
    }

    /// Source: draft-ietf-ccwg-bbr-06 §5.3.3.8.3 (`TargetInflight`)
    pub(super) fn target_inflight(&self) -> Bytes {
        self.bdp(self.bw, 1.0).min(self.window.cwnd())
    }

    /// Minimum sending rate, one packet in ten seconds, so that the rate is never zero.
    pub(super) fn least_rate(&self) -> Rate {
        Rate::from_bytes_per(self.mss, Duration::from_secs(10))
    }
}
