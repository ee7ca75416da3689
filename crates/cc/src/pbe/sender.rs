//! The controller of PBE-CC on the server: sends at the capacity that the mobile measures, or as BBR while the
//! bottleneck is elsewhere.
//!
//! ```text
//! Start ──3 RTTs──▶ Wireless ──bottleneck bit──▶ Drain ──1 RTprop──▶ Internet.{ProbeBW, ProbeRTT, …}
//!   ▲                │    ▲                                             │
//!   └─new carrier────┘    └─────────────────bottleneck bit gone─────────┘
//!
//! any ──no fresh telemetry for some RTTs──▶ Fallback.{Startup, …} ──telemetry──▶ Start
//!
//! Start, Wireless ──less delivered than reported──▶ Check ──confirmed──▶ Held.{ProbeBW, ProbeRTT, …}
//! ```
//!
//! Source: PBE-CC §4; PBE-CC §5

use std::time::Duration;

use airpace_core::{Bytes, Rate, Rider, Rng, Time};

use crate::bbr::{self, Bbr, Probe};
use crate::controller::{Ack, Control, Controller, Inspect, Loss, LossCause, Sent};

use super::Tuning;
use super::buffer::Buffer;
use super::feedback::{Feedback, Header};
use super::guard::{self, Guard, Verdict, Witness};
use super::start::{FIRST_RATE, Ramp};

/// Number of round trips without fresh telemetry after which the sender no longer uses the old telemetry.
///
/// Chosen: the window already limits a sender whose feedback is late. This number of round trips detects feedback that
/// has stopped.
const FALLBACK_ROUND_TRIPS: u32 = 3;

/// Pacing gain, relative to BtlBw, while the queue that caused the Internet state drains.
///
/// Source: PBE-CC §4.2.3
const DRAIN_GAIN: f64 = 0.5;

/// Window before RTprop is known (packets).
///
/// Source: RFC 6928 §2
const INITIAL_PACKETS: u64 = 10;

/// Minimum window, in packets, so that ACKs keep arriving.
///
/// Chosen: the minimum of BBR.
const MIN_PACKETS: u64 = 4;

/// Interval between updates of the rate during a start while no ACK arrives.
const RAMP_STEP: Duration = Duration::from_millis(2);

/// The phase of the sender.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Start(Ramp),
    Wireless,
    /// The path is drained to measure RTprop and Dprop, as in BBR's ProbeRTT.
    ///
    /// Source: PBE-CC §4.2.2 (if the delay stays constant for ten seconds)
    /// Chosen: BBR's test, whether the minimum round-trip time is ten seconds old.
    /// Differs: this state is only used with `delay_drain=on`. Without it, the window leaves almost no queue to drain.
    /// In the Internet state, ProbeRTT measures both quantities.
    ProbeDelay,
    Drain {
        until: Time,
    },
    Internet,
    Fallback,
    /// The path is drained to find out whether the receiver reports more than the path delivers. `delivered` is the
    /// measured delivery rate.
    Check {
        delivered: Rate,
    },
    /// The receiver reported more than the path delivers. Its reports are ignored, and BBR determines window and rate.
    ///
    /// Source: PBE-CC §7
    Held,
}

/// The controller of PBE-CC.
#[derive(Clone, Debug)]
pub struct Pbe {
    tuning: Tuning,
    mss: Bytes,
    phase: Phase,
    /// Controls the rate in the Internet and fallback states. Its model is updated in every state.
    ///
    /// Source: PBE-CC §5
    bbr: Bbr,
    /// The last fresh feedback.
    feedback: Option<Feedback>,
    /// Time of the last fresh feedback; before the first feedback, the time of the first ACK.
    heard: Option<Time>,
    /// The last delivery-rate sample.
    delivery_rate: Rate,
    /// The rate of the start and wireless states.
    rate: Rate,
    rate_time: Time,
    /// Window and rate while BBR does not control the flow. They are stored because drivers read them for every packet,
    /// but only ACKs, losses and timers change them.
    own_control: Control,
    guard: Guard,
    buffer: Buffer,
    /// Whether all outstanding packets were lost. The state of the path is then unknown until the next ACK.
    silenced: bool,
}

impl Pbe {
    /// The controller of a new flow.
    pub fn new(tuning: Tuning, mss: Bytes, rng: Rng) -> Pbe {
        let mut pbe = Pbe {
            tuning,
            mss,
            phase: Phase::Start(Ramp::waiting()),
            bbr: Bbr::new(mss, rng, tuning.bbr),
            feedback: None,
            heard: None,
            delivery_rate: Rate::ZERO,
            rate: FIRST_RATE,
            rate_time: Time::ZERO,
            own_control: Control { cwnd: Bytes::ZERO, pacing_rate: None },
            guard: Guard::default(),
            buffer: Buffer::new(tuning.buffer),
            silenced: false,
        };
        pbe.update_control();
        pbe
    }

    fn obey(&mut self, ack: &Ack<'_>, fed: Feedback) {
        let activated = self.feedback.is_some_and(|before| before.activations != fed.activations);
        self.feedback = Some(fed);
        self.heard = Some(ack.now);
        match self.phase {
            // Chosen: the three round trips start at the departure of the packet that caused the first feedback, not
            // when the feedback arrives.
            Phase::Start(ramp) if !ramp.has_begun() => {
                let asked = ack.packets.first().map_or(ack.now, |packet| packet.sent);
                self.start(ack, Rate::ZERO, asked);
            }
            Phase::Fallback => self.resume(ack),
            Phase::Start(_) | Phase::Wireless | Phase::Check { .. } if fed.internet => self.enter_drain(ack),
            Phase::Start(ramp) if ramp.is_done(ack.now) => self.phase = Phase::Wireless,
            // Source: PBE-CC §4.1 (the fair share has grown, and the rate approaches it as at the start)
            // Differs: the start rises from the current rate. If the rate rose from zero, a new carrier would cost two
            // round trips.
            Phase::Wireless if activated => {
                let from = if self.tuning.restart_from_zero { Rate::ZERO } else { self.rate };
                self.start(ack, from, ack.now);
            }
            Phase::Drain { until } if ack.now >= until => {
                self.forget_btlbw(ack.now);
                self.bbr.restart_cycle(ack.now);
                self.phase = Phase::Internet;
            }
            Phase::ProbeDelay if !matches!(self.bbr.state(), bbr::State::ProbeRtt { .. }) => {
                self.phase = Phase::Wireless;
            }
            Phase::Internet if !fed.internet => self.phase = Phase::Wireless,
            Phase::Held => {
                // If the receiver reports a bottleneck in the Internet, its reported capacity is not used, so it cannot
                // be too high.
                let reported = fed.capacity.filter(|_| !fed.internet).unwrap_or(Rate::ZERO);
                let btlbw = self.bbr.model().btlbw();
                if self.guard.on_held(ack.now, reported, btlbw) {
                    self.resume(ack);
                }
            }
            _ => {}
        }
    }

    /// Returns control of the rate from BBR to the receiver's feedback.
    fn resume(&mut self, ack: &Ack<'_>) {
        let rate = self.bbr.control().pacing_rate.unwrap_or(FIRST_RATE);
        self.start(ack, rate.min(self.bbr.bandwidth()), ack.now);
    }

    fn start(&mut self, ack: &Ack<'_>, from: Rate, began: Time) {
        self.phase = Phase::Start(Ramp::begin(from, began, ack.rtt.smoothed));
    }

    /// Enters the drain, because a queue has formed in the Internet. The flow drains this queue for one RTprop. After
    /// that, the flow competes for the bottleneck as BBR.
    ///
    /// Source: PBE-CC §4.2.3
    fn enter_drain(&mut self, ack: &Ack<'_>) {
        self.bbr.enter_probe_bw(ack.now, None);
        let rtprop = self.bbr.model().rtprop().unwrap_or(ack.rtt.min);
        self.phase = Phase::Drain { until: ack.now + rtprop };
    }

    /// Differs: the ten-round maximum still contains the capacity of the cell. If BBR used that rate, the queue of the
    /// new bottleneck would overflow for ten rounds, and each round would be longer than the previous round. The first
    /// samples after the switch partly reflect the old rate, the last samples of the drain almost do not. The samples
    /// do not yet reflect that the sender is slower in the drain. If the switch of states was wrong, BtlBw is therefore
    /// the rate that the path carried before.
    fn forget_btlbw(&mut self, now: Time) {
        if self.tuning.btlbw_reset && self.delivery_rate > Rate::ZERO {
            self.bbr.enter_probe_bw(now, Some(self.delivery_rate));
        }
    }

    /// Enters the fallback: there is no telemetry, so BBR, which needs no telemetry, takes over.
    fn fall_back(&mut self, now: Time) {
        // A start without any feedback continues with BBR's own start. After any later phase, BBR's model of the path
        // is good.
        if !matches!(self.phase, Phase::Start(_)) {
            self.bbr.enter_probe_bw(now, None);
        }
        self.bbr.set_probe(Probe::default());
        self.phase = Phase::Fallback;
    }

    /// Limits the last reported capacity to the delivery rate of the path, because the receiver decodes no reports at
    /// present.
    ///
    /// Differs: the paper has no receiver that loses the control channel. A receiver that decoded only a part of the
    /// cell's messages just before reported more than its share. Without the limit, a queue would grow until the
    /// receiver decodes messages again.
    fn doubt_capacity(&mut self) {
        let delivered = self.bbr.model().btlbw();
        if let (Phase::Wireless, Some(fed)) = (self.phase, &mut self.feedback)
            && delivered > Rate::ZERO
        {
            fed.capacity = fed.capacity.map(|capacity| capacity.min(delivered));
        }
    }

    /// Compares the receiver's reports with the delivery rate of the path.
    fn watch(&mut self, ack: &Ack<'_>, round_start: bool) {
        let capacity = self.feedback.and_then(|fed| fed.capacity).unwrap_or(Rate::ZERO);
        let reported = match self.phase {
            Phase::Start(_) => self.rate,
            Phase::Wireless | Phase::Check { .. } => capacity,
            _ => return self.guard.interrupt(),
        };
        let Some(rtprop) = self.bbr.model().rtprop() else { return };
        self.buffer.on_ack(round_start, capacity, ack.rtt.latest, rtprop);
        if !self.tuning.guard {
            return;
        }
        let witness = Witness {
            now: ack.now,
            round_start,
            acked: ack.acked,
            rtt: ack.rtt.latest,
            rtprop,
            reported,
            app_limited: ack.rate.app_limited,
        };
        match self.guard.on_ack(&witness) {
            Verdict::Nothing => {}
            Verdict::Check(delivered) => self.phase = Phase::Check { delivered },
            Verdict::Release => self.phase = Phase::Wireless,
            Verdict::Flag => {
                let Phase::Check { delivered } = self.phase else { return };
                self.bbr.enter_probe_bw(ack.now, Some(delivered));
                self.bbr.set_probe(Probe::default());
                self.phase = Phase::Held;
            }
        }
    }

    fn is_silent(&self, ack: &Ack<'_>) -> bool {
        self.heard.is_some_and(|heard| ack.now - heard > ack.rtt.smoothed * FALLBACK_ROUND_TRIPS)
    }

    /// Whether this feedback reports that the telemetry has ended. Between two carriers there is a short time without
    /// telemetry, which does not count as the end of the telemetry.
    fn has_ended(&self, told: Option<Feedback>) -> bool {
        self.feedback.is_some() && told.is_some_and(|told| !told.fresh && told.carriers > 0)
    }

    /// Whether the sender ignores its receiver's feedback at present.
    fn is_on_its_own(&self) -> bool {
        matches!(self.phase, Phase::Fallback | Phase::Held)
    }

    fn update_rate(&mut self, now: Time) {
        let Some(fed) = self.feedback else { return };
        let capacity = fed.capacity.unwrap_or(Rate::ZERO);
        match self.phase {
            Phase::Start(ramp) => self.rate = ramp.rate(now, self.start_goal(ramp)),
            // Source: PBE-CC §5 (the send rate is the capacity that was fed back)
            // Differs: the rate is higher while the queue in the base station is shorter than its target (`buffer_ms`).
            Phase::Wireless => self.rate = self.buffer.fill(capacity),
            Phase::ProbeDelay | Phase::Drain { .. } | Phase::Internet | Phase::Fallback => {}
            Phase::Check { .. } | Phase::Held => {}
        }
        self.rate_time = now;
    }

    /// The target rate of a start: the maximum of the fair share and the rate from which the start rises.
    ///
    /// Source: PBE-CC §4.1
    fn start_goal(&self, ramp: Ramp) -> Rate {
        let fair_share = self.feedback.and_then(|fed| fed.fair_share).unwrap_or(Rate::ZERO);
        fair_share.max(ramp.from())
    }

    /// Sets the limits of BBR's probes from the receiver's reports.
    fn update_probe(&mut self) {
        let Some(fed) = self.feedback else { return };
        // Differs: if the last packets met no queue, the bottleneck may have gone. With a gain of 1.25 per cycle, the
        // sender would need seconds to detect this. If the bottleneck is still there, the window limits the length of
        // such a probe.
        let fast = fed.clear && self.tuning.probe_gain > bbr::cycle::PROBE_GAIN;
        let gain = if fast { self.tuning.probe_gain } else { bbr::cycle::PROBE_GAIN };
        // Source: PBE-CC §4.2.3 Eq. 7
        self.bbr.set_probe(Probe { gain, cap: fed.fair_share, while_growing: fast });
    }

    /// One bandwidth-delay product, plus the data that is in flight because of the radio's own delays.
    ///
    /// ```text
    /// cwnd = C · (RTprop + slack) + what the path acknowledges in one go + packets
    /// ```
    ///
    /// Source: PBE-CC §4
    /// Differs: in every term except C·RTprop. RTprop is the minimum round-trip time. The mean round-trip time is
    /// longer because of jitter, waits for the next subframe and retransmissions. Retransmissions release the packets
    /// behind them in one burst, and ACKs arrive in bursts. With a window of exactly C·RTprop, the flow does not reach
    /// C. The receiver measures the additional delay while the cell has no queue. The size of a burst is measured as in
    /// BBR.
    fn wireless_window(&self) -> Bytes {
        let rate = match self.phase {
            Phase::Start(ramp) => self.start_goal(ramp),
            _ => self.rate,
        };
        let measured = self.feedback.and_then(|fed| fed.radio_delay);
        let slack = self.tuning.cwnd_slack.or(measured).unwrap_or(self.tuning.bbr.cwnd_slack);
        let bdp = self.bbr.model().bdp(rate, 1.0, slack + self.buffer.target());
        let bunch = if self.tuning.cwnd_bunching { self.bbr.extra_acked() } else { Bytes::ZERO };
        let window = match bdp {
            Some(bdp) if self.feedback.is_some() => {
                bdp + bunch + Bytes(self.tuning.cwnd_packets * self.mss.0)
            }
            _ => Bytes(INITIAL_PACKETS * self.mss.0),
        };
        window.max(self.least_window())
    }

    fn least_window(&self) -> Bytes {
        Bytes(MIN_PACKETS * self.mss.0)
    }

    fn update_control(&mut self) {
        if self.is_steered_by_bbr() {
            return;
        }
        let (cwnd, rate) = match self.phase {
            Phase::Drain { .. } => self.drain_control(),
            Phase::Check { delivered } => self.check_control(delivered),
            _ if self.silenced => (self.least_window(), FIRST_RATE),
            _ => (self.wireless_window(), self.rate),
        };
        self.own_control = Control { cwnd, pacing_rate: Some(rate.max(self.least_rate())) };
    }

    /// Minimum sending rate, one packet every 100 ms, so that the receiver continues to send feedback.
    fn least_rate(&self) -> Rate {
        Rate::from_bytes_per(self.mss, Duration::from_millis(100))
    }

    /// Window and rate of the drain.
    ///
    /// Differs: the paper halves BtlBw. If BtlBw is still the capacity of the cell, half of it may exceed the capacity
    /// of the new bottleneck. The recent delivery rate is lower.
    fn drain_control(&self) -> (Bytes, Rate) {
        let (cwnd, btlbw) = (self.bbr.control().cwnd, self.bbr.model().btlbw());
        if !self.tuning.btlbw_reset || self.delivery_rate == Rate::ZERO {
            return (cwnd, btlbw.scaled(DRAIN_GAIN));
        }
        let recent = btlbw.min(self.delivery_rate);
        let bdp = self.bbr.model().bdp(recent, self.tuning.bbr.cwnd_gain, self.tuning.bbr.cwnd_slack);
        let most = bdp.map_or(cwnd, |bdp| bdp.max(self.least_window()));
        (cwnd.min(most), recent.scaled(DRAIN_GAIN))
    }

    /// Window and rate of a check. With these values, a queue that the flow itself causes drains.
    fn check_control(&self, delivered: Rate) -> (Bytes, Rate) {
        let bdp = self.bbr.model().bdp(delivered, guard::CHECK_WINDOW, Duration::ZERO);
        (bdp.unwrap_or_default().max(self.least_window()), delivered.scaled(guard::CHECK_GAIN))
    }

    fn is_steered_by_bbr(&self) -> bool {
        matches!(self.phase, Phase::ProbeDelay | Phase::Internet | Phase::Fallback | Phase::Held)
    }
}

impl Controller for Pbe {
    fn on_sent(&mut self, sent: &Sent) {
        self.bbr.on_sent(sent);
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.silenced = false;
        self.heard.get_or_insert(ack.now);
        if let Some(rate) = ack.rate.rate {
            self.delivery_rate = rate;
        }
        if self.phase == Phase::Internet {
            self.update_probe();
        }
        let round_start = if self.is_steered_by_bbr() {
            self.bbr.on_ack(ack);
            false
        } else {
            let seen = self.bbr.observe(ack, self.rate);
            let is_due = self.tuning.delay_drain && self.bbr.is_rtprop_due(ack.now, seen);
            if is_due && self.phase == Phase::Wireless {
                self.bbr.enter_probe_rtt(ack.now);
                self.phase = Phase::ProbeDelay;
            }
            seen.round_start
        };
        match Feedback::read(ack.feedback) {
            Some(fed) if fed.fresh => self.obey(ack, fed),
            told if !self.is_on_its_own() && (self.is_silent(ack) || self.has_ended(told)) => {
                self.fall_back(ack.now);
            }
            Some(_) => self.doubt_capacity(),
            None => {}
        }
        self.update_rate(ack.now);
        self.watch(ack, round_start);
        self.update_control();
    }

    /// Processes feedback that does not acknowledge a data packet: it arrives with the request of a download.
    ///
    /// Differs: the paper's sender has no information until its first ACK. With a request, the sender sends its first
    /// window at the fair share: over a path of 42 ms, 10 kB take 47 ms from the request on, instead of 90 ms
    /// (`request_start=on`). The window is the initial window, as in a start without information, since RTprop is not
    /// known yet. The linear start follows with the first ACK. After an idle period of the connection, the rate is the
    /// phone's present measurement and not an old measurement.
    fn on_feedback(&mut self, now: Time, feedback: &[u8]) {
        let fed = Feedback::read(feedback).filter(|fed| fed.fresh && self.tuning.request_start);
        let Some(fed) = fed else { return };
        self.feedback = Some(fed);
        if let Phase::Start(ramp) = self.phase
            && !ramp.has_begun()
        {
            self.phase = Phase::Start(Ramp::asked(fed.fair_share.unwrap_or(FIRST_RATE)));
        }
        self.update_rate(now);
        self.update_control();
    }

    fn on_loss(&mut self, loss: &Loss<'_>) {
        self.bbr.on_loss(loss);
        // Chosen: a rate that was fed back before the ACKs stopped gives no information about the path after that time.
        self.silenced |= loss.cause == LossCause::Persistent;
        self.update_control();
    }

    fn handle_timeout(&mut self, now: Time) {
        self.update_rate(now);
        self.update_control();
    }

    fn poll_timeout(&self) -> Option<Time> {
        let ramps =
            matches!(self.phase, Phase::Start(ramp) if ramp.has_begun() && !ramp.is_done(self.rate_time));
        ramps.then(|| self.rate_time + RAMP_STEP)
    }

    fn control(&self) -> Control {
        if self.is_steered_by_bbr() { self.bbr.control() } else { self.own_control }
    }

    fn header(&self) -> Rider {
        let header = Header {
            starting: matches!(self.phase, Phase::Start(_)),
            rtprop: self.bbr.model().rtprop(),
            pacing_rate: self.control().pacing_rate,
        };
        header.write()
    }

    fn inspect(&self, out: &mut Inspect) {
        out.state = match (self.phase, self.bbr.state_name()) {
            (Phase::Start(_), _) => "Start",
            (Phase::Wireless, _) => "Wireless",
            (Phase::ProbeDelay, _) => "Wireless.ProbeRTT",
            (Phase::Drain { .. }, _) => "Drain",
            (Phase::Internet, "Startup") => "Internet.Startup",
            (Phase::Internet, "Drain") => "Internet.Drain",
            (Phase::Internet, "ProbeRTT") => "Internet.ProbeRTT",
            (Phase::Internet, _) => "Internet.ProbeBW",
            (Phase::Fallback, "Startup") => "Fallback.Startup",
            (Phase::Fallback, "Drain") => "Fallback.Drain",
            (Phase::Fallback, "ProbeRTT") => "Fallback.ProbeRTT",
            (Phase::Fallback, _) => "Fallback.ProbeBW",
            (Phase::Check { .. }, _) => "Check",
            (Phase::Held, "ProbeRTT") => "Held.ProbeRTT",
            (Phase::Held, _) => "Held.ProbeBW",
        };
        let rtprop = self.bbr.model().rtprop().map_or(f64::NAN, |rtprop| rtprop.as_secs_f64() * 1e3);
        let target = self.feedback.and_then(|fed| fed.capacity).map_or(f64::NAN, Rate::as_mbps);
        out.value("rtprop_ms", rtprop);
        out.value("btlbw_mbps", self.bbr.model().btlbw().as_mbps());
        out.value("target_mbps", target);
        let held = matches!(self.phase, Phase::Check { .. } | Phase::Held);
        let rate = self.control().pacing_rate.filter(|_| held);
        out.value("buffer_target_ms", self.buffer.target().as_secs_f64() * 1e3);
        out.value("held_mbps", rate.map_or(f64::NAN, Rate::as_mbps));
        out.value("misreport", f64::from(u8::from(self.guard.is_flagged())));
    }
}
