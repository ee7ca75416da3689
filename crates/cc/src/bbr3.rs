//! BBR version 3: a model of the path's bandwidth and propagation time, as in version 1. The losses caused by probes
//! bound the data in flight, so that other flows keep their share.
//!
//! ```text
//! Startup ─▶ Drain ─▶ DOWN ─▶ CRUISE ─▶ REFILL ─▶ UP ─▶ DOWN …          any ─▶ ProbeRTT (every 5 s) ─▶ CRUISE
//! ```
//!
//! | module | content |
//! | --- | --- |
//! | [`sample`] | values of an ACK; rounds; maximum bandwidth of two cycles |
//! | [`signals`] | loss and marks, round by round |
//! | [`bounds`] | long-term and short-term bounds |
//! | [`cycle`] | the times of probes |
//! | [`full_pipe`], [`startup`] | the end of Startup and of each probe |
//! | [`min_rtt`] | the propagation time and ProbeRTT |
//! | [`machine`] | the states and their order |
//! | [`control`], [`window`], [`aggregation`] | pacing rate and congestion window |
//! | [`undo`] | undoes the reaction to spurious losses |
//! | [`marks`] | ECN |
//! | [`profile`] | differences between the draft and Google's program |
//!
//! Source: draft-ietf-ccwg-bbr-06 (6 July 2026); google/bbr v3 net/ipv4/tcp_bbr.c

pub mod aggregation;
pub mod bounds;
pub mod control;
pub mod cycle;
pub mod full_pipe;
pub mod machine;
pub mod marks;
pub mod min_rtt;
pub mod profile;
pub mod sample;
pub mod signals;
pub mod startup;
pub mod undo;
pub mod window;

use std::time::Duration;

use airpace_core::{Bytes, Rate, Rng};

use crate::controller::{Ack, Control, Controller, Inspect, Loss, Sent};
use crate::scheme::{Ends, OptionSpec, Options, Preset, Scheme, SchemeError, Setup, Style};
use crate::window::initial_window;

use aggregation::Aggregation;
use bounds::{Bounds, Growth};
use control::STARTUP_GAIN;
use cycle::Cycle;
use full_pipe::FullPipe;
use marks::Marks;
use min_rtt::MinRtt;
use profile::DelayProfile;
use sample::{CwndLimited, MaxBandwidth, Rounds, Sample};
use signals::{Signals, inflight_at_loss, is_too_lossy};
use startup::StartupLoss;
use undo::Undo;
use window::Window;

/// The scheme `bbr3`.
pub static SCHEME: Scheme = Scheme {
    name: "bbr3",
    summary: "BBRv3: paces at the measured bandwidth; probes every few seconds; losses of a probe set bounds",
    source: "draft-ietf-ccwg-bbr-06 (6 July 2026); google/bbr v3",
    style: Style { colour: "#661100", marker: "triangle" },
    presets: &[Preset {
        name: "google",
        summary: "as Google's Linux program, where it differs from the draft",
        set: &[("profile", "google")],
    }],
    options: &[
        OptionSpec {
            name: "profile",
            default: "draft",
            summary: "`draft` or `google`: gains of Drain and DOWN, offload budget, room for bunched ACKs",
        },
        OptionSpec {
            name: "precaution",
            default: "on",
            summary: "after a probe that lost too much, the next one only reaches the bound; if safe, another goes on",
        },
        OptionSpec {
            name: "ecn",
            default: "off",
            summary: "ask queues for ECN marks; the share of marks bounds what is in flight, as in Google's program",
        },
    ],
    takes_ran: false,
    build,
};

fn build(setup: &Setup, options: &Options) -> Result<Ends, SchemeError> {
    let profile = match options.text("profile") {
        "draft" => DelayProfile::DRAFT,
        "google" => DelayProfile::GOOGLE,
        _ => return Err(options.refuse("profile", "`draft` or `google`")),
    };
    let marks = options.switch("ecn")?.then(Marks::default);
    let precaution = options.switch("precaution")?;
    let bbr = Bbr3 { precaution, marks, ..Bbr3::new(setup.mss, setup.rng.clone(), profile) };
    Ok(Ends { controller: Box::new(bbr), receiver: None })
}

/// The state of BBR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Searching for the bandwidth, doubling the rate every round.
    Startup,
    /// Draining the queue that Startup built.
    Drain {
        /// Number of the round in which Drain started.
        since_round: u64,
    },
    /// ProbeBW: sending below the capacity of the path, until the path holds no queue of this flow.
    Down,
    /// ProbeBW: sending at the capacity of the path, with headroom for other flows.
    Cruise,
    /// ProbeBW: filling the pipe, for a round, before probing.
    Refill,
    /// ProbeBW: sending above the estimated capacity of the path.
    Up,
    /// Keeping half of the bandwidth-delay product in flight, to measure the propagation time.
    ProbeRtt,
}

impl State {
    /// The name of the state in the draft.
    pub fn name(self) -> &'static str {
        match self {
            State::Startup => "Startup",
            State::Drain { .. } => "Drain",
            State::Down => "ProbeBW_DOWN",
            State::Cruise => "ProbeBW_CRUISE",
            State::Refill => "ProbeBW_REFILL",
            State::Up => "ProbeBW_UP",
            State::ProbeRtt => "ProbeRTT",
        }
    }

    fn is_probe_bw(self) -> bool {
        matches!(self, State::Down | State::Cruise | State::Refill | State::Up)
    }

    /// Whether the flow accelerates. Losses are then expected, and the long-term model evaluates them.
    fn is_accelerating(self) -> bool {
        matches!(self, State::Startup | State::Refill | State::Up)
    }
}

/// The controller of BBRv3.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    profile: DelayProfile,
    precaution: bool,
    mss: Bytes,
    initial: Bytes,
    rng: Rng,
    state: State,

    rounds: Rounds,
    max_bw: MaxBandwidth,
    /// The bandwidth at which BBR sends: the maximum bandwidth within the short-term bound.
    bw: Rate,
    min_rtt: MinRtt,
    aggregation: Aggregation,
    signals: Signals,
    bounds: Bounds,
    growth: Growth,
    full_pipe: FullPipe,
    startup: StartupLoss,
    cycle: Cycle,
    marks: Option<Marks>,
    cwnd_limited: CwndLimited,

    window: Window,
    pacing_rate: Rate,
    undo: Undo,
    delivered: Bytes,
    lost: Bytes,
    has_seen_rtt: bool,
    app_was_idle: bool,
    restarting_from_idle: bool,
}

impl Bbr3 {
    /// The state at the start of a connection, without ECN.
    pub fn new(mss: Bytes, rng: Rng, profile: DelayProfile) -> Bbr3 {
        let initial = initial_window(mss);
        Bbr3 {
            profile,
            precaution: true,
            mss,
            initial,
            rng,
            state: State::Startup,
            rounds: Rounds::default(),
            max_bw: MaxBandwidth::default(),
            bw: Rate::ZERO,
            min_rtt: MinRtt::default(),
            aggregation: Aggregation::default(),
            signals: Signals::default(),
            bounds: Bounds::default(),
            growth: Growth::default(),
            full_pipe: FullPipe::default(),
            startup: StartupLoss::default(),
            cycle: Cycle::default(),
            marks: None,
            cwnd_limited: CwndLimited::default(),
            window: Window::new(mss, initial),
            // Source: draft-ietf-ccwg-bbr-06 §5.6.2 (an RTT of 1 ms is assumed before the first RTT sample)
            pacing_rate: Rate::from_bytes_per(initial, Duration::from_millis(1)).scaled(STARTUP_GAIN),
            undo: Undo::default(),
            delivered: Bytes::ZERO,
            lost: Bytes::ZERO,
            has_seen_rtt: false,
            app_was_idle: false,
            restarting_from_idle: false,
        }
    }
}

impl Controller for Bbr3 {
    /// Source: draft-ietf-ccwg-bbr-06 §5.4.1
    fn on_sent(&mut self, sent: &Sent) {
        let path_was_empty = sent.inflight == sent.bytes;
        if path_was_empty && self.app_was_idle {
            self.restarting_from_idle = true;
            self.aggregation.restart(sent.now);
            if self.state.is_probe_bw() {
                self.set_pacing_rate(1.0);
            } else if self.state == State::ProbeRtt && self.min_rtt.finish(sent.now) {
                self.leave_probe_rtt(sent.now);
            }
        }
        self.app_was_idle = sent.app_limited;
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.delivered = ack.rate.delivered;
        self.min_rtt.on_delivered(ack.now, self.delivered);
        self.check_spurious(ack.packets);
        let was_recovering = self.window.is_recovering();
        self.window.on_ack(ack);
        if let Some(marks) = &mut self.marks
            && ack.ce > 0
        {
            marks.on_ack(ack.ce);
            self.signals.on_marks();
        }
        let held_back = ack.packets.last().is_some_and(|packet| self.min_rtt.held(packet));
        if let Some(sample) = Sample::of(ack, held_back) {
            self.update_model_and_state(ack, &sample, was_recovering);
        }
        self.update_control(ack);
    }

    /// Source: draft-ietf-ccwg-bbr-06 §5.5.10.2 (`HandleLostPacket`)
    fn on_loss(&mut self, loss: &Loss<'_>) {
        let first = loss.packets.first().map_or(0, |packet| packet.number);
        if self.window.on_loss(loss, self.state == State::ProbeRtt) {
            self.save_state(first);
        }
        for packet in loss.packets {
            self.lost += packet.bytes;
            if self.signals.on_loss(self.delivered) {
                self.save_state(packet.number);
            }
            self.undo.lost += 1;
            self.startup.on_lost(packet.number);
            let lost = self.lost - packet.lost_at_send;
            if self.cycle.is_probe_sample && is_too_lossy(lost, packet.inflight_at_send) {
                let inflight = inflight_at_loss(packet.inflight_at_send, lost, packet.bytes);
                let app_limited = packet.app_limited || self.min_rtt.held(packet);
                self.inflight_too_high(loss.now, inflight, app_limited);
            }
        }
    }

    fn control(&self) -> Control {
        Control {
            cwnd: self.window.cwnd().max(self.mss),
            pacing_rate: Some(self.pacing_rate.max(self.least_rate())),
        }
    }

    fn is_ecn_capable(&self) -> bool {
        self.marks.is_some()
    }

    fn inspect(&self, out: &mut Inspect) {
        out.state = self.state.name();
        let bytes = |bound: Option<Bytes>| bound.map_or(f64::NAN, |bytes| bytes.0 as f64);
        out.value("rtprop_ms", self.min_rtt.get().map_or(f64::NAN, |rtprop| rtprop.as_secs_f64() * 1e3));
        out.value("btlbw_mbps", self.max_bw.get().as_mbps());
        out.value("bw_shortterm_mbps", self.bounds.bw_shortterm.map_or(f64::NAN, Rate::as_mbps));
        out.value("inflight_shortterm_bytes", bytes(self.bounds.inflight_shortterm));
        out.value("inflight_longterm_bytes", bytes(self.bounds.inflight_longterm));
        out.value("extra_acked_bytes", self.aggregation.extra_acked().0 as f64);
        out.value("ecn_alpha_ratio", self.marks.map_or(f64::NAN, |marks| marks.alpha()));
    }
}

#[cfg(test)]
mod tests;
