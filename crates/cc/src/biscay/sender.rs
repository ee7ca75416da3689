//! The controller of BISCAY with its states STARTUP, BISCAY and FALLBACK.
//!
//! ```text
//! STARTUP ──bandwidth from KPIs──▶ BISCAY ──cell above end to end──▶ FALLBACK
//!                                    ▲                                  │
//!                                    └───────cell meets end to end──────┘
//! ```
//!
//! Source: BISCAY §A.5.1; BISCAY §3.2.4

use std::time::Duration;

use airpace_core::{Bytes, Direction, Rate, Rng, Time};
use airpace_radio::RadioReport;

use crate::bbr::full_pipe::FullPipe;
use crate::bbr::{self, Bbr};
use crate::controller::{Ack, Control, Controller, Inspect, Loss, LossCause, Sees, Sent};
use crate::cubic::Cubic;
use crate::registry::DeviceFlows;
use crate::reno::Reno;
use crate::window::initial_window;

use super::bandwidth::CellularBandwidth;
use super::bottleneck::{Bottleneck, Evidence};
use super::feedback::Feedback;
use super::rounds::{LeastRtt, Rounds};
use super::signals::Signals;
use super::startup::StartWatch;
use super::{Startup, Tuning, Wired};

/// Minimum window, in packets, so that ACKs keep arriving.
///
/// Chosen: the minimum of BBR.
pub const MIN_PACKETS: u64 = 4;

/// Gains of the pacing rate: the first in slow start, the second afterwards. A gain of 1 is one window per smoothed
/// round-trip time.
///
/// Source: Linux net/ipv4/tcp_input.c (`tcp_pacing_ss_ratio`, `tcp_pacing_ca_ratio`)
///
/// Differs: the rate is at least the bandwidth times this gain. After a stall of the radio, the smoothed round-trip
/// time stays too long for many round trips.
const PACING_GAINS: (f64, f64) = (2.0, 1.2);

/// Fraction of a bandwidth-delay product that stays in flight while the path is drained.
///
/// Source: draft-ietf-ccwg-bbr §2.5 (`BBR.ProbeRTTCwndGain`)
pub const DRAIN_GAIN: f64 = 0.5;

/// Waiting time of data in a device whose queue is empty: the device reports the data, gets a grant four subframes
/// later, and sends the data four subframes after the grant.
///
/// Chosen: the time for report, grant and transmission, plus half of a scheduling request's period of 10 ms.
const GRANT_WAIT: Duration = Duration::from_millis(13);

/// Increment of [`Biscay::extra`] after a round without loss.
const EXTRA_STEP: f64 = 1.0 / 64.0;

/// The state of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Biscay,
    Fallback,
}

/// The controller of BISCAY.
pub struct Biscay {
    tuning: Tuning,
    mss: Bytes,
    state: State,

    /// The bandwidth from the radio of the sender's device; unknown without such a radio.
    own: CellularBandwidth,
    /// Whether a radio report has arrived since the last ACK. Reports have no time of arrival; the ACK provides the
    /// time.
    heard: bool,
    last_heard: Option<Time>,
    device: DeviceFlows,
    /// Bytes that wait in the device for its uplink.
    uplink_queue: Bytes,
    /// The last feedback with the bandwidth from the receiver's radio; `None` if the receiver has no radio.
    fed: Option<Feedback>,

    /// This BBR's model provides the end-to-end bandwidth in every state.
    ///
    /// Source: BISCAY §4
    bbr: Bbr,
    /// The controller in FALLBACK if it is not BBR.
    wired: Option<Box<dyn Controller>>,
    bottleneck: Bottleneck,
    signals: Signals,
    rounds: Rounds,
    least_rtt: LeastRtt,
    full_pipe: FullPipe,
    start: StartWatch,
    /// Whether a packet was lost in slow start.
    lost_in_startup: bool,

    /// The device's cellular bandwidth that the window is computed from.
    cellular: Option<Rate>,
    /// This flow's share of that bandwidth.
    share: f64,
    /// Until this time, a bandwidth sample may be from a time when the device requested less than now.
    unsettled_until: Time,
    end_to_end: Rate,
    smoothed_rtt: Option<Duration>,
    /// The last delivery-rate sample.
    delivery_rate: Rate,
    /// Factor, 0…1, of the terms by which the window exceeds one bandwidth-delay product.
    extra: f64,
    cwnd: Bytes,
    own_control: Control,
    /// Whether all outstanding packets were lost. The state of the path is then unknown until the next ACK.
    silenced: bool,
}

impl Biscay {
    /// The controller of a new flow.
    pub fn new(tuning: Tuning, mss: Bytes, rng: Rng) -> Biscay {
        let cwnd = initial_window(mss);
        Biscay {
            tuning,
            mss,
            state: State::Startup,
            own: CellularBandwidth::new(Direction::Uplink, tuning.determination),
            heard: false,
            last_heard: None,
            device: DeviceFlows::ALONE,
            uplink_queue: Bytes::ZERO,
            fed: None,
            bbr: Bbr::new(mss, rng, bbr::Tuning::default()),
            wired: None,
            bottleneck: Bottleneck::new(tuning.bottleneck),
            signals: Signals::new(tuning.signals, tuning.lag()),
            rounds: Rounds::default(),
            least_rtt: LeastRtt::new(tuning.rtt_memory),
            full_pipe: FullPipe::default(),
            start: StartWatch::default(),
            lost_in_startup: false,
            cellular: None,
            share: 1.0,
            unsettled_until: Time::ZERO,
            end_to_end: Rate::ZERO,
            smoothed_rtt: None,
            delivery_rate: Rate::ZERO,
            extra: 1.0,
            cwnd,
            own_control: Control { cwnd, pacing_rate: None },
            silenced: false,
        }
    }

    /// The bandwidth from the KPIs and this flow's share of it: from the radio of the sender's device or, without it,
    /// from the feedback.
    ///
    /// Source: BISCAY §A.5.1 (`getCellularBW`)
    fn sample(&self, now: Time) -> Option<(Rate, f64)> {
        let is_fresh = self.last_heard.is_some_and(|heard| now - heard <= self.tuning.stale_after);
        match self.own.get() {
            Some(rate) if is_fresh => Some((rate, self.tuning.split.share(&self.device))),
            _ => self.fed.and_then(|fed| Some((fed.bandwidth?, fed.share))),
        }
    }

    /// Updates the cellular bandwidth from which the window is computed.
    ///
    /// Differs: the value can be held. A cell grants as much as is requested. Without a queue anywhere, a low grant
    /// means low demand, not low bandwidth. A window computed from such a grant would request even less. Therefore the
    /// value falls only while there is a queue. A sample from before the flow's present request cannot lower the value
    /// either.
    fn update_cellular(&mut self, ack: &Ack<'_>, queue: bool) {
        if ack.rate.app_limited {
            self.unsettled_until = self.unsettled_until.max(ack.now + self.tuning.lag());
        }
        let Some((sampled, share)) = self.sample(ack.now) else {
            self.cellular = None;
            return;
        };
        self.share = share;
        let may_fall = queue && sampled > Rate::ZERO && ack.now >= self.unsettled_until;
        self.cellular = match self.cellular {
            Some(held) if self.tuning.hold && !may_fall => Some(held.max(sampled)),
            _ => Some(sampled),
        };
    }

    fn flow_share(&self) -> Option<Rate> {
        Some(self.cellular?.scaled(self.share))
    }

    fn step(&mut self, ack: &Ack<'_>, queue: bool, path_is_full: bool) {
        let cellular = self.flow_share();
        let evidence = Evidence {
            now: ack.now,
            cellular: cellular.unwrap_or(Rate::ZERO),
            end_to_end: self.end_to_end,
            queue,
            certain: path_is_full,
        };
        match self.state {
            State::Startup => {
                self.slow_start(ack);
                if self.is_reliable(cellular, queue) {
                    self.enter_biscay(ack.now);
                } else if self.lost_in_startup || self.fills_path() && self.slow_start_is_over(queue) {
                    // Chosen: if the path is full and the KPIs provide no bandwidth, STARTUP does not wait any longer.
                    self.enter_fallback(ack.now);
                }
            }
            State::Biscay if cellular.is_none() => self.enter_fallback(ack.now),
            State::Biscay => {
                self.cwnd = self.window(ack);
                if ack.rate.app_limited {
                    self.bottleneck.forget();
                } else if !self.least_rtt.is_draining() && self.bottleneck.is_wired(&evidence) {
                    self.enter_fallback(ack.now);
                }
            }
            State::Fallback => {
                if cellular.is_some() && self.bottleneck.is_cellular(&evidence) {
                    self.state = State::Biscay;
                    self.wired = None;
                    self.bottleneck.forget();
                    self.cwnd = self.window(ack);
                }
            }
        }
    }

    /// Source: BISCAY §A.5.1 (`SlowStart`); RFC 5681 §3.1
    ///
    /// Differs: the window quadruples per round trip, as long as it is less than half of the path's bandwidth-delay
    /// product at the burst rate. The radio's grants show the rate at which a burst passed the whole path.
    fn slow_start(&mut self, ack: &Ack<'_>) {
        if ack.rate.app_limited {
            return;
        }
        let least = self.least_rtt.get().unwrap_or_default();
        let known = self.burst().bytes_in(least).scaled(0.5);
        self.cwnd = (self.cwnd + ack.acked).max((self.cwnd + Bytes(3 * ack.acked.0)).min(known));
    }

    /// This flow's share of the maximum rate at which the radio carried a burst; zero unless the option `startup` uses
    /// bursts.
    fn burst(&self) -> Rate {
        if self.tuning.startup != Startup::Bursts {
            return Rate::ZERO;
        }
        let (burst, share) = match self.own.get() {
            Some(_) => (self.own.burst(), self.tuning.split.share(&self.device)),
            None => self.fed.map_or((Rate::ZERO, 1.0), |fed| (fed.burst, fed.share)),
        };
        burst.scaled(share)
    }

    /// Whether STARTUP continues until the path is full.
    fn fills_path(&self) -> bool {
        self.tuning.startup != Startup::First
    }

    /// Whether the bandwidth from the KPIs is reliable.
    ///
    /// Differs: the first bandwidth value may only reflect the requests of slow start a tenth of a second ago. The
    /// value is reliable once slow start has ended, or if the cell grants clearly more than the flow requests.
    fn is_reliable(&self, cellular: Option<Rate>, queue: bool) -> bool {
        let Some(cellular) = cellular.filter(|rate| *rate > Rate::ZERO) else { return false };
        !self.fills_path() || self.start.is_offer(cellular) || self.slow_start_is_over(queue)
    }

    /// Whether slow start has filled the path: there is a queue, packets were lost, or the bandwidth no longer grows.
    ///
    /// Source: BISCAY §A.5.1 (how other schemes leave slow start)
    fn slow_start_is_over(&self, queue: bool) -> bool {
        queue || self.lost_in_startup || self.full_pipe.reached() || self.start.carried().is_some()
    }

    fn enter_biscay(&mut self, now: Time) {
        self.state = State::Biscay;
        if self.tuning.hold {
            // The last sample of the cellular bandwidth is older than the present rate of slow start. The end-to-end
            // bandwidth is the rate that slow start has reached.
            let reached = self.start.carried().unwrap_or(Rate::ZERO).max(self.end_to_end);
            let reached = reached.scaled(1.0 / self.share.max(1e-3));
            self.cellular = self.cellular.max(Some(reached));
            self.unsettled_until = self.unsettled_until.max(now + self.tuning.lag());
        }
        self.bottleneck.forget();
    }

    /// Source: BISCAY §A.5.1 (`setCWNDfromFallbackCCA`); BISCAY §A.5.3 (CUBIC and Reno)
    fn enter_fallback(&mut self, now: Time) {
        let was = std::mem::replace(&mut self.state, State::Fallback);
        self.bottleneck.forget();
        let ecn = self.tuning.signals.ecn;
        self.wired = match self.tuning.wired {
            Wired::Bbr => {
                // If the path was never full, BBR starts in its state Startup and fills the path.
                if was != State::Startup || self.full_pipe.reached() {
                    self.bbr.enter_probe_bw(now, None);
                }
                None
            }
            Wired::Cubic => Some(Box::new(Cubic::resumed(self.mss, self.wired_window(), ecn))),
            Wired::Reno => Some(Box::new(Reno::resumed(self.mss, self.wired_window(), ecn))),
        };
    }

    /// The window that fills the path at its end-to-end bandwidth.
    fn wired_window(&self) -> Bytes {
        self.end_to_end.bytes_in(self.least_rtt.get().unwrap_or_default()).max(self.floor())
    }

    /// One bandwidth-delay product, plus the data that is in flight because of the radio's own delays.
    ///
    /// ```text
    /// cwnd = split(bw) · (RTT + slack) + what the path acknowledges in one go + packets
    /// ```
    ///
    /// Source: BISCAY §A.5.1 (`BandwidthDelayProduct(BWSplitPolicy(cellular_bw), rtt)`)
    /// Differs: in every term except split(bw)·RTT. The minimum round-trip time does not contain the waits for grants
    /// and retransmissions, so with a window of split(bw)·RTT the flow does not reach bw. In addition, with a window
    /// that leaves no queue at all, the device never requests more from the cell.
    fn window(&self, ack: &Ack<'_>) -> Bytes {
        let share = self.flow_share().unwrap_or(Rate::ZERO);
        let rtt = self.least_rtt.get().unwrap_or(ack.rtt.min);
        if self.least_rtt.is_draining() {
            return self.drained();
        }
        let bunch = if self.tuning.bunching { self.bbr.extra_acked() } else { Bytes::ZERO };
        let packets = Bytes(self.tuning.packets * self.mss.0);
        let extra = (share.bytes_in(self.tuning.slack) + bunch + packets).scaled(self.extra);
        (share.bytes_in(rtt) + extra - self.surplus()).max(self.floor())
    }

    /// This flow's share of the data that waits in the device beyond the usual wait for a grant.
    ///
    /// Source: BISCAY §A.5.3 (RLC-layer queue sizes)
    fn surplus(&self) -> Bytes {
        let Some(cellular) = self.cellular.filter(|_| self.tuning.queue) else { return Bytes::ZERO };
        (self.uplink_queue - cellular.bytes_in(GRANT_WAIT)).scaled(self.share)
    }

    /// Adapts [`Biscay::extra`]. The extra terms of the window form a queue of this flow. If a buffer is too small for
    /// this queue, the flow halves the factor, and increases the factor again slowly.
    ///
    /// Chosen: the factor falls as in BBRv3 after a loss above its threshold, and grows as slowly as BBRv3 probes.
    fn size_extra(&mut self, is_lossy: bool) {
        self.extra = if is_lossy { self.extra / 2.0 } else { (self.extra + EXTRA_STEP).min(1.0) };
    }

    /// Maximum number of bytes in flight while the path is drained. If the delivery rate is below the cell's bandwidth,
    /// the queue is elsewhere, and a lower amount in flight drains it.
    fn drained(&self) -> Bytes {
        let rate = self.flow_share().unwrap_or(Rate::ZERO).min(self.delivery_rate);
        let bdp = rate.bytes_in(self.least_rtt.get().unwrap_or_default());
        bdp.scaled(DRAIN_GAIN).max(self.floor())
    }

    fn floor(&self) -> Bytes {
        Bytes(MIN_PACKETS * self.mss.0)
    }

    /// Whether there is a queue anywhere on the path.
    fn has_queue(&self) -> bool {
        match (self.rounds.standing_rtt(), self.least_rtt.get()) {
            (Some(standing), Some(least)) => standing > least + queue_threshold(least),
            _ => false,
        }
    }

    fn update_control(&mut self) {
        if self.silenced {
            self.cwnd = self.floor();
        }
        let gain = if self.state == State::Startup { PACING_GAINS.0 } else { PACING_GAINS.1 };
        let pacing_rate = self.smoothed_rtt.filter(|_| self.tuning.pacing).map(|smoothed| {
            let window = Rate::from_bytes_per(self.cwnd, smoothed);
            let known = match self.state {
                State::Biscay => self.flow_share().unwrap_or(Rate::ZERO),
                State::Startup | State::Fallback => self.burst(),
            };
            window.max(known).scaled(gain).max(Rate::from_bps(1_000))
        });
        self.own_control = Control { cwnd: self.cwnd.max(self.mss), pacing_rate };
    }
}

/// Threshold of the delay beyond the minimum RTT. A delay above the threshold is caused by a queue, not by jitter.
///
/// Source: RFC 9406 §4.3
pub fn queue_threshold(least_rtt: Duration) -> Duration {
    (least_rtt / 8).clamp(Duration::from_millis(4), Duration::from_millis(16))
}

impl Controller for Biscay {
    fn on_sent(&mut self, sent: &Sent) {
        self.bbr.on_sent(sent);
        if self.state == State::Startup {
            self.start.on_sent(sent.now, sent.bytes);
        }
        if let Some(wired) = &mut self.wired {
            wired.on_sent(sent);
        }
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        if std::mem::take(&mut self.heard) {
            self.last_heard = Some(ack.now);
        }
        if std::mem::take(&mut self.silenced) {
            self.unsettled_until = self.unsettled_until.max(ack.now + self.tuning.lag());
        }
        if let Some(fed) = Feedback::read(ack.feedback) {
            self.fed = Some(fed);
        }
        if let Some(rate) = ack.rate.rate.filter(|_| !self.least_rtt.is_draining()) {
            self.delivery_rate = rate;
        }
        self.smoothed_rtt = Some(ack.rtt.smoothed);
        let round_ended = self.rounds.on_ack(ack);
        let was_draining = self.least_rtt.is_draining();
        let drained = if was_draining { self.drained() } else { Bytes::ZERO };
        self.least_rtt.on_ack(ack, drained, self.state == State::Biscay);
        if let (State::Startup, Some(least)) = (self.state, self.least_rtt.get()) {
            self.start.on_ack(ack, least + queue_threshold(least));
        }
        if was_draining && !self.least_rtt.is_draining() {
            self.unsettled_until = self.unsettled_until.max(ack.now + self.tuning.lag());
        }
        // BBR's model lags slow start by one round trip. If ACKs were compared with this model alone, slow start would
        // look like ACK aggregation.
        let burst = if self.state == State::Startup { self.burst() } else { Rate::ZERO };
        let carried = burst.max(self.flow_share().unwrap_or(Rate::ZERO));
        match (self.state, &mut self.wired) {
            (State::Fallback, None) => self.bbr.on_ack(ack),
            (_, wired) => {
                self.bbr.observe(ack, carried);
                if let Some(wired) = wired {
                    wired.on_ack(ack);
                }
            }
        }
        let queue = self.has_queue();
        self.update_cellular(ack, queue);
        let round = self.rounds.standing_rtt().filter(|_| round_ended);
        let shown = self.signals.on_ack(ack, round, self.cellular.unwrap_or(Rate::ZERO));
        if let Some(is_lossy) = shown.lossy_round.filter(|_| self.state == State::Biscay) {
            self.size_extra(is_lossy);
        }
        if let (true, Some(recent)) = (shown.path_is_full, ack.rate.rate) {
            self.bbr.reset_btlbw(recent);
        }
        self.end_to_end = self.bbr.model().btlbw();
        if round_ended && !ack.rate.app_limited && self.state == State::Startup {
            self.full_pipe.on_round(self.end_to_end);
        }
        self.step(ack, queue, shown.path_is_full);
        self.update_control();
    }

    fn on_loss(&mut self, loss: &Loss<'_>) {
        self.bbr.on_loss(loss);
        if let Some(wired) = &mut self.wired {
            wired.on_loss(loss);
        }
        self.signals.on_loss(loss);
        self.lost_in_startup |= self.state == State::Startup;
        if loss.cause == LossCause::Persistent {
            // Chosen: a bandwidth from before the time without ACKs gives no information about the path after that
            // time.
            self.silenced = true;
            self.update_control();
        }
    }

    fn sees(&self) -> Sees {
        Sees::Device
    }

    fn on_radio(&mut self, report: &RadioReport) {
        self.heard |= self.own.on_report(report);
        if let Some(queue) = report.own.as_ref().and_then(|own| own.uplink_queue) {
            self.uplink_queue = queue;
        }
    }

    fn on_device(&mut self, _: Time, flows: &DeviceFlows) {
        self.device = *flows;
    }

    fn handle_timeout(&mut self, now: Time) {
        match (self.state, &mut self.wired) {
            (State::Fallback, Some(wired)) => wired.handle_timeout(now),
            (State::Fallback, None) => self.bbr.handle_timeout(now),
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        match (self.state, &self.wired) {
            (State::Fallback, Some(wired)) => wired.poll_timeout(),
            (State::Fallback, None) => self.bbr.poll_timeout(),
            _ => None,
        }
    }

    fn control(&self) -> Control {
        match (self.state, &self.wired) {
            (State::Fallback, Some(wired)) => wired.control(),
            (State::Fallback, None) => self.bbr.control(),
            _ => self.own_control,
        }
    }

    fn is_ecn_capable(&self) -> bool {
        self.tuning.signals.ecn
    }

    fn inspect(&self, out: &mut Inspect) {
        out.state = match (self.state, self.tuning.wired, self.bbr.state_name()) {
            (State::Startup, ..) => "Startup",
            (State::Biscay, ..) if self.least_rtt.is_draining() => "Biscay.Drain",
            (State::Biscay, ..) => "Biscay",
            (State::Fallback, Wired::Cubic | Wired::Reno, _) => "Fallback",
            (State::Fallback, Wired::Bbr, "Startup") => "Fallback.Startup",
            (State::Fallback, Wired::Bbr, "Drain") => "Fallback.Drain",
            (State::Fallback, Wired::Bbr, "ProbeRTT") => "Fallback.ProbeRTT",
            (State::Fallback, Wired::Bbr, _) => "Fallback.ProbeBW",
        };
        let rtt_ms = self.least_rtt.get().map_or(f64::NAN, |rtt| rtt.as_secs_f64() * 1e3);
        out.value("rtprop_ms", rtt_ms);
        out.value("btlbw_mbps", self.end_to_end.as_mbps());
        out.value("cellular_mbps", self.cellular.map_or(f64::NAN, Rate::as_mbps));
        out.value("share", self.share);
    }
}
