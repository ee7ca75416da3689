//! BBR version 1: it sends at the bottleneck's bandwidth, keeps a bandwidth-delay product in flight, and probes for
//! more.
//!
//! ```text
//! Startup ──pipe full──▶ Drain ──queue gone──▶ ProbeBW ◀──▶ ProbeRTT (RTprop not renewed for 10 s)
//! ```
//!
//! | module | content |
//! | --- | --- |
//! | [`model`] | BtlBw, RTprop, rounds |
//! | [`cycle`] | ProbeBW's phases |
//! | [`full_pipe`] | the end of Startup |
//! | [`window`] | the congestion window and recovery |
//! | [`aggregation`] | window allowance for ACK aggregation |
//! | [`policer`] | detects token-bucket policers by the losses that they cause |
//!
//! PBE-CC uses the same [`Bbr`] in its Internet state, with its own [`Tuning`].
//!
//! Source: Linux tcp_bbr.c

pub mod aggregation;
pub mod cycle;
pub mod full_pipe;
pub mod model;
pub mod policer;
pub mod window;

use std::time::Duration;

use airpace_core::{Bytes, Rate, Rng, Time};

use crate::controller::{Ack, Control, Controller, Inspect, Loss, LossCause, Sent};
use crate::scheme::{Ends, Options, Preset, Scheme, SchemeError, Setup, Style};
use crate::window::Holes;

use aggregation::Aggregation;
use cycle::{Cycle, Phase, PhaseEnd};
use full_pipe::FullPipe;
use model::{Ageing, Model, Observed};
use policer::{Policer, Progress};
use window::{Target, Window};

/// The scheme `bbr`.
pub static SCHEME: Scheme = Scheme {
    name: "bbr",
    summary: "BBRv1 as in Linux: paces at the measured bottleneck bandwidth and probes in an eight-phase cycle",
    source: "Cardwell et al., BBR: Congestion-Based Congestion Control, 2016; Linux tcp_bbr.c",
    style: Style { colour: "#D55E00", marker: "triangle" },
    presets: &[] as &[Preset],
    options: &[],
    takes_ran: false,
    build,
};

fn build(setup: &Setup, _: &Options) -> Result<Ends, SchemeError> {
    let controller = Box::new(Bbr::new(setup.mss, setup.rng.clone(), Tuning::default()));
    Ok(Ends { controller, receiver: None })
}

/// Gain that doubles the delivery rate every round: 2/ln 2.
///
/// Source: Linux tcp_bbr.c
pub const STARTUP_GAIN: f64 = 2.885;

/// Initial window in packets.
///
/// Source: RFC 6928 §2
const INITIAL_PACKETS: u64 = 10;

/// Time for which ProbeRTT keeps the congestion window at the minimum window.
///
/// Source: Linux tcp_bbr.c
const PROBE_RTT_SPAN: Duration = Duration::from_millis(200);

/// Maximum of the time by which the window exceeds one RTprop (its slack), in multiples of RTprop.
///
/// Chosen: a path with a radio has an RTprop of milliseconds. On a path of microseconds, ACK aggregation yields rate
/// samples far above the path's capacity. At such a rate, a slack of milliseconds would be a window that overflows any
/// queue.
const SLACK_RTPROPS: u32 = 4;

/// Parameters of a BBR. The defaults are those of Linux.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tuning {
    /// Congestion window in ProbeBW, in bandwidth-delay products.
    pub cwnd_gain: f64,
    /// Time that ProbeBW adds to RTprop when it computes the window: delay of the path that is not caused by a queue.
    /// At most four times RTprop.
    pub cwnd_slack: Duration,
    /// Fraction of BtlBw by which BBR paces slower, so that queues drain in the long run.
    pub pacing_margin: f64,
    /// Expiry rule of RTprop.
    pub rtprop: Ageing,
    /// Whether BBR detects token-bucket policers.
    pub finds_policers: bool,
}

impl Default for Tuning {
    fn default() -> Tuning {
        // Source: Linux tcp_bbr.c
        Tuning {
            cwnd_gain: 2.0,
            cwnd_slack: Duration::ZERO,
            pacing_margin: 0.01,
            rtprop: Ageing::Renewed,
            finds_policers: true,
        }
    }
}

/// Parameters of ProbeBW's probes; the default is Linux's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probe {
    /// Pacing gain of a probe, relative to BtlBw.
    pub gain: f64,
    /// Maximum rate of a probe.
    pub cap: Option<Rate>,
    /// Whether probes continue as long as BtlBw grows by a quarter in each one, as in Startup.
    pub while_growing: bool,
}

impl Default for Probe {
    fn default() -> Probe {
        Probe { gain: cycle::PROBE_GAIN, cap: None, while_growing: false }
    }
}

/// The state of BBR.
#[derive(Clone, Copy, Debug)]
pub enum State {
    /// Searching for the bandwidth, doubling the rate every round.
    Startup,
    /// Draining the queue that Startup built.
    Drain,
    /// Sending at the known bandwidth, with a probe in one of every eight phases.
    ProbeBw(Cycle),
    /// Keeping nearly nothing in flight, to measure RTprop.
    ProbeRtt {
        /// End of the hold time; `None` until the window has drained.
        until: Option<Time>,
        /// Whether a round has passed during the hold.
        round_done: bool,
    },
}

/// The controller of BBR.
#[derive(Clone, Debug)]
pub struct Bbr {
    tuning: Tuning,
    mss: Bytes,
    rng: Rng,
    state: State,
    model: Model,
    full_pipe: FullPipe,
    aggregation: Aggregation,
    policer: Policer,
    window: Window,
    holes: Holes,
    pacing_rate: Rate,
    probe: Probe,
    /// BtlBw at the start of the last probe.
    probed_from: Rate,
    /// End of the last ProbeRTT.
    rtt_probed: Time,
    lost: Bytes,
    lost_at_last_ack: Bytes,
    app_was_idle: bool,
    restarting_from_idle: bool,
    has_seen_rtt: bool,
}

impl Bbr {
    /// The state at the start of a connection.
    pub fn new(mss: Bytes, rng: Rng, tuning: Tuning) -> Bbr {
        let initial = Bytes(INITIAL_PACKETS * mss.0);
        Bbr {
            tuning,
            mss,
            rng,
            state: State::Startup,
            model: Model::new(tuning.rtprop),
            full_pipe: FullPipe::default(),
            aggregation: Aggregation::default(),
            policer: Policer::default(),
            window: Window::new(mss, initial),
            holes: Holes::default(),
            // Source: Linux tcp_bbr.c (an RTT of 1 ms is assumed before the first RTT sample)
            pacing_rate: Rate::from_bytes_per(initial, Duration::from_millis(1)).scaled(STARTUP_GAIN),
            probe: Probe::default(),
            probed_from: Rate::ZERO,
            rtt_probed: Time::ZERO,
            lost: Bytes::ZERO,
            lost_at_last_ack: Bytes::ZERO,
            app_was_idle: false,
            restarting_from_idle: false,
            has_seen_rtt: false,
        }
    }

    /// The model of the path.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The current state.
    pub fn state(&self) -> State {
        self.state
    }

    /// The name of the state.
    pub fn state_name(&self) -> &'static str {
        match self.state {
            State::Startup => "Startup",
            State::Drain => "Drain",
            State::ProbeBw(_) => "ProbeBW",
            State::ProbeRtt { .. } => "ProbeRTT",
        }
    }

    /// The bandwidth at which BBR sends: BtlBw, or the policer's rate.
    pub fn bandwidth(&self) -> Rate {
        self.policer.rate().unwrap_or_else(|| self.model.btlbw())
    }

    /// Bytes that the path acknowledges in one burst, beyond those that BtlBw explains.
    pub fn extra_acked(&self) -> Bytes {
        self.aggregation.allowance(self.bandwidth())
    }

    /// Sets the parameters of ProbeBW's probes.
    pub fn set_probe(&mut self, probe: Probe) {
        self.probe = probe;
    }

    /// Processes one ACK while another controller sends at `rate`. Only the model of the path is updated.
    pub fn observe(&mut self, ack: &Ack<'_>, rate: Rate) -> Observed {
        // The other controller's window is not known, but the bytes in flight did not exceed that window.
        self.learn(ack, rate, ack.prior_inflight)
    }

    /// Updates the model. The expected delivery rate is BBR's bandwidth, or `least` if that is higher. `cwnd` is the
    /// maximum number of bytes that can be acknowledged at once.
    fn learn(&mut self, ack: &Ack<'_>, least: Rate, cwnd: Bytes) -> Observed {
        self.holes.on_ack(ack);
        let seen = self.model.on_ack(ack);
        let expected = self.bandwidth().max(least);
        if seen.round_start {
            self.window.on_round();
        }
        self.aggregation.on_ack(ack.now, ack.acked, expected, cwnd, seen.round_start);
        seen
    }

    /// Takes over from another controller and enters ProbeBW. `recent`, if given, replaces all earlier samples of
    /// BtlBw.
    pub fn enter_probe_bw(&mut self, now: Time, recent: Option<Rate>) {
        if let Some(rate) = recent {
            self.model.reset_btlbw(rate);
        }
        self.policer = Policer::default();
        self.aggregation = Aggregation::default();
        self.aggregation.restart(now);
        self.full_pipe.assume();
        self.has_seen_rtt = true;
        self.restart_cycle(now);
        self.pacing_rate = self.paced(self.bandwidth(), 1.0);
        self.window.set(self.window_target().cwnd);
    }

    /// Takes over from another controller to drain the path and measure RTprop, as in ProbeRTT; afterwards BBR enters
    /// ProbeBW.
    pub fn enter_probe_rtt(&mut self, now: Time) {
        self.enter_probe_bw(now, None);
        self.begin_probe_rtt(now);
    }

    /// Replaces all earlier samples of BtlBw by `recent`, because the path does not have more bandwidth than `recent`.
    pub fn reset_btlbw(&mut self, recent: Rate) {
        self.model.reset_btlbw(recent);
    }

    /// Whether RTprop must be measured again: RTprop was not renewed for [`model::RTPROP_WINDOW`], and there was no
    /// ProbeRTT in this time.
    pub fn is_rtprop_due(&self, now: Time, seen: Observed) -> bool {
        seen.rtprop_expired && now - self.rtt_probed > model::RTPROP_WINDOW
    }

    /// Restarts ProbeBW's cycle.
    pub fn restart_cycle(&mut self, now: Time) {
        self.state = State::ProbeBw(Cycle::start(now, &mut self.rng));
    }

    fn steer(&mut self, ack: &Ack<'_>, seen: Observed) {
        let loss_seen = self.lost > self.lost_at_last_ack;
        if self.tuning.finds_policers {
            let policer_gone = self.policer.on_ack(&Progress {
                now: ack.now,
                delivered: ack.rate.delivered,
                lost: self.lost,
                loss_seen,
                round_start: seen.round_start,
                app_limited: seen.app_limited,
                probing_bandwidth: matches!(self.state, State::ProbeBw(_)),
            });
            if policer_gone && matches!(self.state, State::ProbeBw(_)) {
                self.restart_cycle(ack.now);
            }
        }
        if seen.round_start && !seen.app_limited {
            self.full_pipe.on_round(self.model.btlbw());
        }
        self.step(ack, seen, loss_seen);
        self.update_pacing_rate(ack);
        let initial = Bytes(INITIAL_PACKETS * self.mss.0);
        if self.window.on_ack(ack, initial, &self.window_target(), self.holes.recovered()) {
            // Packet conservation lasts a whole round.
            self.model.restart_round(ack.rate.delivered);
        }
        self.lost_at_last_ack = self.lost;
        self.restarting_from_idle = false;
    }

    fn step(&mut self, ack: &Ack<'_>, seen: Observed, loss_seen: bool) {
        let drained = self.inflight_at(self.model.btlbw(), 1.0);
        if let (State::ProbeBw(cycle), Some(rtprop)) = (self.state, self.model.rtprop()) {
            self.step_cycle(cycle, ack, rtprop, drained, loss_seen);
        }
        if matches!(self.state, State::Startup) && self.full_pipe.reached() {
            self.state = State::Drain;
        }
        if matches!(self.state, State::Drain) && ack.inflight <= drained {
            self.restart_cycle(ack.now);
        }
        let due = self.is_rtprop_due(ack.now, seen);
        if due && !self.restarting_from_idle && !matches!(self.state, State::ProbeRtt { .. }) {
            self.begin_probe_rtt(ack.now);
        }
        self.step_probe_rtt(ack, seen.round_start);
    }

    fn begin_probe_rtt(&mut self, now: Time) {
        self.window.save(true);
        self.model.hold_back(now);
        self.state = State::ProbeRtt { until: None, round_done: false };
    }

    fn step_cycle(&mut self, before: Cycle, ack: &Ack<'_>, rtprop: Duration, drained: Bytes, lost: bool) {
        // The data in flight cannot exceed the window. A probe that has the window minus one packet in flight therefore
        // counts as having filled the path.
        let probed = self.inflight_at(self.probe_rate(), 1.0).min(self.window.cwnd() - self.mss);
        let mut cycle = before;
        cycle.advance(&PhaseEnd {
            now: ack.now,
            rtprop,
            inflight: ack.prior_inflight,
            probed,
            drained,
            lost,
        });
        let btlbw = self.model.btlbw();
        let was_probe = before.phase() == Phase::Probe;
        if was_probe && cycle.phase() != Phase::Probe && self.probe.while_growing && !lost {
            // Source: Linux tcp_bbr.c (the end of Startup)
            if btlbw >= self.probed_from.scaled(full_pipe::GROWTH) {
                cycle = Cycle::probe(ack.now);
                self.probed_from = btlbw;
            }
        }
        if !was_probe {
            self.probed_from = btlbw;
        }
        self.state = State::ProbeBw(cycle);
    }

    fn step_probe_rtt(&mut self, ack: &Ack<'_>, round_start: bool) {
        let State::ProbeRtt { until, round_done } = &mut self.state else { return };
        match until {
            None if ack.inflight <= self.window.floor() => {
                *until = Some(ack.now + PROBE_RTT_SPAN);
                self.model.restart_round(ack.rate.delivered);
            }
            None => {}
            Some(until) => {
                *round_done |= round_start;
                if *round_done && ack.now > *until {
                    self.leave_probe_rtt(ack.now);
                }
            }
        }
    }

    fn leave_probe_rtt(&mut self, now: Time) {
        self.rtt_probed = now;
        self.model.release(now);
        self.window.restore();
        if self.full_pipe.reached() {
            self.restart_cycle(now);
        } else {
            self.state = State::Startup;
        }
    }

    fn gains(&self) -> (f64, f64) {
        match self.state {
            State::Startup => (STARTUP_GAIN, STARTUP_GAIN),
            State::Drain => (1.0 / STARTUP_GAIN, STARTUP_GAIN),
            State::ProbeBw(_) if self.policer.rate().is_some() => (1.0, self.tuning.cwnd_gain),
            State::ProbeBw(cycle) => match cycle.phase() {
                Phase::Probe => (self.probe.gain, self.tuning.cwnd_gain),
                Phase::Drain => (cycle::DRAIN_GAIN, self.tuning.cwnd_gain),
                Phase::Cruise => (1.0, self.tuning.cwnd_gain),
            },
            State::ProbeRtt { .. } => (1.0, 1.0),
        }
    }

    /// The rate of a probe.
    ///
    /// ```text
    /// C_probe = min{probe gain · BtlBw, C_f}
    /// ```
    ///
    /// Source: PBE-CC §4.2.3 Eq. 7
    fn probe_rate(&self) -> Rate {
        let probe = self.model.btlbw().scaled(self.probe.gain);
        self.probe.cap.map_or(probe, |cap| probe.min(cap))
    }

    fn update_pacing_rate(&mut self, ack: &Ack<'_>) {
        if !self.has_seen_rtt && self.model.rtprop().is_some() {
            self.has_seen_rtt = true;
            self.pacing_rate =
                Rate::from_bytes_per(self.window.cwnd(), ack.rtt.smoothed).scaled(STARTUP_GAIN);
        }
        let bandwidth = self.bandwidth();
        if bandwidth == Rate::ZERO {
            return;
        }
        let probing = matches!(self.state, State::ProbeBw(cycle) if cycle.phase() == Phase::Probe);
        let rate = if probing && self.policer.rate().is_none() {
            self.paced(self.probe_rate(), 1.0)
        } else {
            self.paced(bandwidth, self.gains().0)
        };
        // Source: Linux tcp_bbr.c
        // A rate measured before the pipe is full is the sending rate, not the capacity.
        if self.full_pipe.reached() || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    fn paced(&self, bandwidth: Rate, gain: f64) -> Rate {
        bandwidth.scaled(gain * (1.0 - self.tuning.pacing_margin)).max(self.least_rate())
    }

    /// Minimum sending rate, one packet in ten seconds, so that the rate is never zero.
    fn least_rate(&self) -> Rate {
        Rate::from_bytes_per(self.mss, Duration::from_secs(10))
    }

    fn window_target(&self) -> Target {
        let full_pipe = self.full_pipe.reached();
        let bandwidth = self.bandwidth();
        let slack = match (self.state, self.model.rtprop()) {
            (State::ProbeBw(_), Some(rtprop)) => self.tuning.cwnd_slack.min(rtprop * SLACK_RTPROPS),
            _ => Duration::ZERO,
        };
        let bdp =
            self.model.bdp(bandwidth, self.gains().1, slack).unwrap_or(Bytes(INITIAL_PACKETS * self.mss.0));
        let extra = if full_pipe { self.aggregation.allowance(bandwidth) } else { Bytes::ZERO };
        let cap = matches!(self.state, State::ProbeRtt { .. }).then(|| self.window.floor());
        Target { cwnd: self.with_quanta(bdp + extra), full_pipe, cap }
    }

    fn inflight_at(&self, rate: Rate, gain: f64) -> Bytes {
        self.with_quanta(self.model.bdp(rate, gain, Duration::ZERO).unwrap_or(Bytes::ZERO))
    }

    /// Adds the packets of three bursts of the sender to `bytes`, rounds up to an even number of packets, and adds two
    /// more packets while probing, so that small windows probe too.
    ///
    /// Source: Linux tcp_bbr.c
    fn with_quanta(&self, bytes: Bytes) -> Bytes {
        let packets = bytes.0.div_ceil(self.mss.0) + 3 * self.quantum_packets();
        let even = packets + packets % 2;
        let probing = matches!(self.state, State::ProbeBw(cycle) if cycle.phase() == Phase::Probe);
        Bytes((even + if probing { 2 } else { 0 }) * self.mss.0)
    }

    /// Number of packets that the sender releases at once: the packets of one millisecond at the pacing rate.
    ///
    /// Source: Linux tcp_bbr.c (TSO autosizing)
    fn quantum_packets(&self) -> u64 {
        let least = if self.pacing_rate < Rate::from_bps(1_200_000) { 1 } else { 2 };
        let most = (65_536 / self.mss.0).max(least);
        (self.pacing_rate.bytes_in(Duration::from_millis(1)).0 / self.mss.0).clamp(least, most)
    }
}

impl Controller for Bbr {
    fn on_sent(&mut self, sent: &Sent) {
        self.holes.on_sent(sent);
        let path_was_empty = sent.inflight == sent.bytes;
        if path_was_empty && self.app_was_idle {
            self.restarting_from_idle = true;
            self.aggregation.restart(sent.now);
            match self.state {
                // After an idle period there is no queue. A gain below one, which was chosen to drain a queue, is not
                // needed.
                State::ProbeBw(_) => self.pacing_rate = self.paced(self.bandwidth(), 1.0),
                State::ProbeRtt { until: Some(until), .. } if sent.now > until => {
                    self.leave_probe_rtt(sent.now)
                }
                _ => {}
            }
        }
        self.app_was_idle = sent.app_limited;
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        let seen = self.learn(ack, Rate::ZERO, self.window.cwnd());
        self.steer(ack, seen);
    }

    fn on_loss(&mut self, loss: &Loss<'_>) {
        self.lost += loss.lost;
        self.holes.on_loss(loss);
        let probes_rtt = matches!(self.state, State::ProbeRtt { .. });
        self.window.on_loss(loss, probes_rtt, self.holes.recovered());
        if loss.cause == LossCause::Persistent {
            self.full_pipe.rebase();
        }
    }

    fn control(&self) -> Control {
        Control {
            cwnd: self.window.cwnd().max(self.mss),
            pacing_rate: Some(self.pacing_rate.max(self.least_rate())),
        }
    }

    fn inspect(&self, out: &mut Inspect) {
        out.state = self.state_name();
        let rtprop = self.model.rtprop().map_or(f64::NAN, |rtprop| rtprop.as_secs_f64() * 1e3);
        out.value("rtprop_ms", rtprop);
        out.value("btlbw_mbps", self.model.btlbw().as_mbps());
        out.value("extra_acked_bytes", self.aggregation.allowance(self.bandwidth()).0 as f64);
    }
}

#[cfg(test)]
mod tests;
