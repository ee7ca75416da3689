//! The learner of `morc`: the rate that is best a few intervals ahead.
//!
//! ```text
//!              q > target             q > 2 targets, an overflow, or 2 s without an empty queue
//!  SlowStart ─────────────▶ Drain ◀──────────────────────────────── RateAdjusting
//!                             └───────────── empty ────────────────────▶
//!                             └─ not empty, twice ─▶ Competing ── empty ─▶
//! ```
//!
//! The paper's trials measure which of two rates has the higher utility at present. The present round-trip time is a
//! result of all earlier rates. It is therefore the same for both rates, and the trials do not show how the rate
//! affects the round-trip time (`docs/papers/morc-departures.md`). The utility a time H ahead does depend on the rate.
//! If a flow sends at r into a queue q with capacity C, the queue is q + H·(r − C)/C after the time H. While there is a
//! queue, the throughput T equals C. The utility u is therefore maximal if the round-trip time then equals its target:
//!
//! ```text
//!  r = C · (1 + (target − q)/H),   C = the received rate
//! ```
//!
//! This rule needs no trial. To compensate for random losses, the flow sends the lost share in addition
//! ([`losses`](super::losses)). The random loss rate is the same at any sending rate, so it does not change the rate
//! with the maximal u.
//!
//! Source: MORC §3.1 Utility
//!
//! Differs: MORC §3.1 uses Allegro's decision mode. With this rule, five flows have a Jain's index above 0.97 instead
//! of 0.7, and a cell's queue is 40 ms long instead of 400 ms.

use std::time::Duration;

use airpace_core::{Bytes, Rate, Time};

use super::look::{Ear, Look, to_ms};
use super::losses::{Losses, OVERFLOW_PACKETS};
use super::profile::Profile;
use super::rival::{Rival, SURE};
use super::start::Start;
use super::target::Target;
use crate::controller::{Ack, Inspect};
use crate::filter::{WindowedMax, WindowedMin};
use crate::pcc::interval::Report;
use crate::pcc::{Learner, PathView, Pcc, Role, Tag, Trial};

/// Number of packets per round trip in the first interval.
///
/// Source: RFC 6928 §2
const FIRST_PACKETS: f64 = 10.0;

/// Minimum number of packets in a monitor interval, and minimum number of packets between two samples of the ACKs.
///
/// Chosen: a rate cannot be measured with fewer packets.
const MIN_PACKETS: f64 = 5.0;

/// Maximum number of intervals with a doubled rate that may start before the report of the first arrives.
///
/// Chosen: as in PCC's own start. The report of an interval arrives when the second interval after it ends.
const MAX_UNKNOWN: u32 = 2;

/// The round-trip time with which the pacing rate is computed before the first ACK.
///
/// Differs: PCC spreads the first packets over an assumed round trip. Short downloads then start 50 ms later than with
/// any TCP.
///
/// Source: Linux `tcp_update_pacing_rate`, which takes 1 ms while no round trip was measured (6.18, 2025)
const BLIND_RTT: Duration = Duration::from_millis(1);

/// Minimum ratio of arrived to sent data at which a failed drain indicates other flows. Below this ratio, the link has
/// become so slow that the flow alone fills the queue.
///
/// Chosen: next to a rival that keeps the queue constant, as much data arrives as is sent. Next to a rival whose queue
/// grows, a little less arrives.
const FAIR_DRAIN: f64 = 0.75;

/// Slow start ends if the ratio of received to sent rate is below this value in two consecutive intervals.
///
/// Chosen: the bound of the paper's avoidance. A low ratio in a single interval may be caused by jitter.
const SATURATED: f64 = 0.75;

/// Slow start also ends if the loss rate of an interval exceeds this value.
///
/// Source: MORC §3.1 pL (a tenth lost makes the utility zero)
const START_LOSS: f64 = 0.1;

/// A queueing delay below this fraction of the target counts as an empty queue in the rule.
///
/// Chosen: the jitter of an empty cell is about 10 ms, a fourth of its target.
const EMPTY: f64 = 0.25;

/// A single sample of the queueing delay below this fraction of the target shows that the queue has been empty, so that
/// RTTmin is correct for all flows.
///
/// Chosen: half of [`EMPTY`]. It limits the differences of RTTmin between flows to a tenth of the target.
const EMPTIED: f64 = 0.125;

/// Minimum of the threshold that [`EMPTIED`] defines, in milliseconds.
///
/// Chosen: the transmission time of two full packets at 10 Mbit/s.
const MIN_EMPTIED_MS: f64 = 2.0;

/// Maximum relative change of the rate per application of the rule.
///
/// Chosen: a rise by a half per sample doubles the rate per round trip, as in slow start. A fall by a half drains a
/// queue in a time equal to its delay.
const MAX_CHANGE: f64 = 0.5;

/// Growth factor of the gain per sample with an empty queue.
///
/// Chosen: a factor of two per round trip.
const BOOST: f64 = std::f64::consts::SQRT_2;

/// Maximum factor by which [`BOOST`] can multiply the gain.
///
/// Chosen: this factor raises a gain of 1 % to more than [`MAX_CHANGE`].
const MAX_BOOST: f64 = 64.0;

/// Rate of a drain, relative to the received rate.
///
/// Chosen: a queue with the delay q drains in the time 2 q if all its flows drain. At the end of a drain, the link is
/// half used for one round trip at most.
const DRAIN_RATE: f64 = 0.5;

/// Maximum duration of a drain, in addition to a round trip.
///
/// Chosen: twice the longest queue of the paper's laboratory (300 ms), plus a reserve.
const MAX_DRAIN_MS: f64 = 1000.0;

/// A drain has succeeded if a queueing delay below this fraction of the target was observed.
///
/// Chosen: a value between the target, which other flows of this scheme try to keep, and the jitter of an empty queue.
const DRAINED: f64 = 0.5;

/// Minimum interval between drains, in round trips.
///
/// Chosen: a drain leaves a link half used for one round trip, so this costs 2.5 % at most.
const DRAIN_ROUNDS: u32 = 20;

/// Factor by which drains are less frequent next to a rival.
///
/// Chosen: four, because the rival takes the capacity that each drain frees. With this factor, drains are 8 s apart,
/// which is the length of CUBIC's epoch at 50 Mbit/s.
const RIVAL_DRAINS: u32 = 4;

/// Period over which RTTmin, the minimum round-trip time, is taken (s).
///
/// Source: MORC §3.1 RTTtarget (RTTmin is tracked; the text does not say for how long)
///
/// Chosen: the 10 s of BBR, in which there are five drains.
const RTT_MIN_S: f64 = 10.0;

/// Period over which RTTmin is taken while drains fail (s).
///
/// Chosen: next to a rival, the queue is never empty. With a period of 10 s, RTTmin would then contain the delay of the
/// whole queue. A route that has become longer is accepted after a minute.
const RTT_MIN_BESIDE_RIVAL_S: f64 = 60.0;

/// Minimum window (packets) if the received rate is not much above PCC's minimum rate. At higher rates, the minimum
/// window is the initial window.
///
/// Chosen: with fewer packets, losses would not be detected in time. Ten packets would form a queue of half a second at
/// 0.2 Mbit/s.
const SLOW_PACKETS: u64 = 4;

/// While there is a rival, the ratio of the window to the window that the sending rate needs.
///
/// Chosen: a margin for ACK aggregation.
const RIVAL_ROOM: f64 = 1.1;

/// The phase of the learner.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Starting(Start),
    Adjusting,
    Draining {
        /// Time at which the drain counts as failed if the queue is not empty.
        until: Time,
        /// Start of the drain.
        since: Time,
        /// The queueing delay at the start of the drain. `least_ms` is the minimum queueing delay since then.
        from_ms: f64,
        least_ms: f64,
    },
}

/// The learner.
#[derive(Clone, Debug)]
pub struct Ahead {
    profile: Profile,
    phase: Phase,
    ear: Ear,
    target: Target,
    rival: Rival,
    rtt_min: WindowedMin<Duration, Time>,
    /// The minimum of `rtt_min`, as a duration and in milliseconds.
    least: Option<(Duration, f64)>,
    /// The maximum of the recent received rates.
    best: WindowedMax<f64, Time>,
    now: Time,
    /// Time when the queue was last observed empty, or a drain ended; `None` before the first ACK.
    emptied: Option<Time>,
    /// End of the last drain.
    resumed: Time,
    /// The target of the queueing delay at the last sample.
    target_ms: f64,
    /// The newest queueing delay.
    queue_ms: f64,
    /// The received rate of the last sample.
    received_mbps: f64,
    /// The capacity C of the rule.
    base_mbps: f64,
    rate_mbps: f64,
    boost: f64,
    /// The rate of the last reported interval, without its lost packets.
    arrived_mbps: f64,
    /// Whether the application or the window limited the flow to less than the rate of the last reported interval.
    is_limited: bool,
    /// Whether a buffer has overflowed since the last drain.
    overflowed: bool,
    losses: Losses,
    decision: u32,
}

/// The controller of MORC.
pub fn new(mss: Bytes, profile: Profile) -> Pcc<Ahead> {
    Pcc::new(
        mss,
        Ahead {
            profile,
            phase: Phase::Starting(Start::default()),
            ear: Ear::default(),
            target: Target::new(profile.shape),
            rival: Rival::default(),
            rtt_min: WindowedMin::new(Duration::from_secs_f64(RTT_MIN_S)),
            least: None,
            best: WindowedMax::new(Duration::ZERO),
            now: Time::ZERO,
            emptied: None,
            resumed: Time::ZERO,
            target_ms: profile.shape.target_ms,
            queue_ms: 0.0,
            received_mbps: 0.0,
            base_mbps: 0.0,
            rate_mbps: 0.0,
            boost: 1.0,
            arrived_mbps: 0.0,
            is_limited: false,
            overflowed: false,
            losses: Losses::default(),
            decision: 0,
        },
    )
}

impl Ahead {
    fn rtt_min_ms(&self, path: &PathView) -> f64 {
        self.least.map_or_else(|| to_ms(path.rtt_min), |(_, ms)| ms)
    }

    /// RTTmin plus one target, in milliseconds: the delay until a change of the rate is observable.
    fn loop_ms(&self, path: &PathView) -> f64 {
        self.rtt_min_ms(path) + self.target_ms
    }

    /// Length of an interval, if it has enough packets.
    ///
    /// Source: MORC §3.1 Intervals
    ///
    /// Differs: MORC §3.1 Intervals follow the round-trip time without a limit. With a queue of one second, the flow
    /// would react to this queue one second late. The longest queue that is not drained has a delay of two targets.
    fn span_s(&self, path: &PathView) -> f64 {
        let most_ms = self.loop_ms(path) + self.target_ms;
        (path.rtt.as_secs_f64() * 1e3).min(most_ms).max(1.0) * 1e-3
    }

    fn packets_s(&self, path: &PathView, rate_mbps: f64) -> f64 {
        MIN_PACKETS * path.mss.0 as f64 * 8e-6 / rate_mbps.max(1e-3)
    }

    /// Processes a sample of the ACKs. Returns whether the rate changes now.
    fn learn_look(&mut self, look: Look, path: &PathView) -> bool {
        self.received_mbps = look.received_mbps;
        self.target_ms = self.target.ms(look.received_mbps);
        if !self.overflowed {
            self.target.held(look.since_s, look.queue_ms);
        }
        if self.phase != Phase::Adjusting {
            return false;
        }
        self.rival.grow(look.since_s, path.mss.0 as f64);
        let rate_mbps = match self.rival.window() {
            Some(window) => {
                self.base_mbps = look.received_mbps;
                window * 8e-3 / (self.rtt_min_ms(path) + look.queue_ms)
            }
            None => self.rule(look, path),
        };
        self.rate_mbps = path.bounded(rate_mbps);
        true
    }

    /// The best rate for the time H ahead.
    fn rule(&mut self, look: Look, path: &PathView) -> f64 {
        // Source: MORC §3.1 Burstiness
        if look.is_silent && look.queue_ms < self.target_ms {
            return self.rate_mbps;
        }
        let is_empty = look.queue_ms < EMPTY * self.target_ms;
        // H is a multiple of the time after which a change is observable. With a shorter H, the rule would react
        // several times to one change.
        let ahead_ms = self.profile.ahead_loops * self.loop_ms(path);
        // If the flow's own drain has emptied the queue, the empty queue gives no information about the link.
        if (self.now - self.resumed).as_secs_f64() * 1e3 > ahead_ms && !self.is_limited {
            self.target.look(is_empty);
        }
        self.boost = if is_empty && self.profile.boost { (self.boost * BOOST).min(MAX_BOOST) } else { 1.0 };
        self.best.set_window(Duration::from_secs_f64(self.profile.memory_loops * self.loop_ms(path) * 1e-3));
        // Round to whole bit/s, so that rounding errors of doubles do not make a constant rate lower.
        let best_mbps = self.best.update(self.now, (look.received_mbps * 1e6).round() * 1e-6);
        // If the queue is empty, the received rate is the sending rate, not the capacity. The capacity is then at least
        // the sending rate, and probably the maximum of the recent received rates.
        self.base_mbps = match is_empty {
            true => look.received_mbps.max(self.arrived_mbps.min(self.rate_mbps)).max(best_mbps),
            false => look.received_mbps,
        };
        let gain = (self.target_ms - look.queue_ms) / ahead_ms * self.boost;
        let rate_mbps =
            self.base_mbps * self.losses.sent_per_arrived() * (1.0 + gain.clamp(-MAX_CHANGE, MAX_CHANGE));
        // If the window or the application limited an interval, the interval does not show that the rate was too high.
        if self.is_limited && look.queue_ms < self.target_ms {
            rate_mbps.max(self.rate_mbps)
        } else {
            rate_mbps
        }
    }

    /// Whether the queue must be drained now.
    ///
    /// Differs: MORC §3.1 RTTtarget has no drains. A flow that joins over a standing queue measures an RTTmin that
    /// contains this queue, and aims at a higher delay than the other flows. The slow start of the new flow makes the
    /// queue longer than two targets, so that all flows drain at the same time and measure the same RTTmin. The
    /// periodic drain is for flows whose start did not cause this.
    fn must_drain(&self, path: &PathView) -> bool {
        let Some(emptied) = self.emptied else { return false };
        let since = self.now - emptied;
        let is_long = self.profile.drain_above.is_some_and(|most| self.queue_ms > most * self.target_ms);
        if !is_long && !self.overflowed && self.profile.drain.is_none_or(|every| since <= every) {
            return false;
        }
        let rtt_min = self.least.map_or(path.rtt_min, |(least, _)| least);
        let has_rival = self.rival.window().is_some();
        let is_due = self.profile.drain.is_some_and(|every| {
            let every = every.max(rtt_min.saturating_mul(DRAIN_ROUNDS));
            since > if has_rival { every.saturating_mul(RIVAL_DRAINS) } else { every }
        });
        // Wait two round trips, until the queue shows the effect of the last drain.
        is_due || (!has_rival && since > rtt_min.saturating_mul(2) && (is_long || self.overflowed))
    }

    fn drain(&mut self, received_mbps: f64, path: &PathView) {
        // Fading can make a single sample of the rate too low. The estimate therefore falls to no less than half.
        self.base_mbps = received_mbps.max(0.5 * self.base_mbps);
        self.rate_mbps = DRAIN_RATE * self.base_mbps;
        let rtt_min_ms = self.rtt_min_ms(path);
        let most_ms = (self.queue_ms / (1.0 - DRAIN_RATE) + 2.0 * rtt_min_ms).min(MAX_DRAIN_MS + rtt_min_ms);
        self.phase = Phase::Draining {
            until: self.now + Duration::from_secs_f64(most_ms * 1e-3),
            since: self.now,
            from_ms: self.queue_ms,
            least_ms: self.queue_ms,
        };
        self.decision = self.decision.wrapping_add(1);
        self.boost = 1.0;
        self.overflowed = false;
    }

    /// Whether the window limits the flow in a drain to one packet at a time. PCC's pacing rate is never below PCC's
    /// minimum rate. If the drain needs a lower rate, pacing alone does not drain the queue.
    fn is_held(&self, path: &PathView) -> bool {
        matches!(self.phase, Phase::Draining { .. }) && self.rate_mbps < path.least_mbps()
    }

    fn resume(&mut self) {
        self.phase = Phase::Adjusting;
        self.decision = self.decision.wrapping_add(1);
        self.rate_mbps = self.base_mbps * self.losses.sent_per_arrived();
        self.emptied = Some(self.now);
        self.resumed = self.now;
    }

    /// Processes the observation of an empty queue.
    fn empty(&mut self) {
        if self.rival.is_suspected() {
            self.rtt_min.set_window(Duration::from_secs_f64(RTT_MIN_S));
        }
        self.rival.emptied();
    }

    /// Ends a drain that has reached its maximum duration.
    fn end_drain(&mut self, from_ms: f64, least_ms: f64, path: &PathView) {
        // If the window permits only one packet at a time, this is the transmission time of the packet (ms).
        let packet_ms =
            if self.is_held(path) { path.mss.0 as f64 * 8e-3 / self.received_mbps.max(1e-3) } else { 0.0 };
        if least_ms < (DRAINED * self.target_ms).max(packet_ms) {
            self.empty();
        } else if self.received_mbps < FAIR_DRAIN * self.rate_mbps {
            // The link became slower than the rate of the drain.
            self.base_mbps = self.received_mbps;
        } else if self.profile.rival {
            self.rtt_min.set_window(Duration::from_secs_f64(RTT_MIN_BESIDE_RIVAL_S));
            let outstanding = self.base_mbps * 125.0 * (self.rtt_min_ms(path) + from_ms);
            self.rival.failed(outstanding, if self.is_held(path) { 1 } else { SURE });
        }
        self.resume();
    }

    /// Processes an interval without a single ACK. Returns whether the rate changes now.
    ///
    /// Chosen: an interval without an ACK only shows that the rate was too high.
    fn learn_void(&mut self, report: &Report, path: &PathView) -> bool {
        match &mut self.phase {
            Phase::Starting(start) => start.learnt(report),
            Phase::Adjusting => {
                self.rate_mbps = path.bounded(self.rate_mbps * MAX_CHANGE);
                return true;
            }
            Phase::Draining { .. } => {}
        }
        false
    }

    /// Processes an interval of slow start. Returns whether slow start ends.
    ///
    /// Differs: MORC §3.1 ends slow start when the utility falls. A single interval with jitter would then end it for
    /// good.
    fn learn_start(&mut self, report: &Report, queue_ms: f64, path: &PathView) -> bool {
        let Phase::Starting(start) = &mut self.phase else { return false };
        start.learnt(report);
        let received_mbps = report.received_mbps.unwrap_or(report.acked_mbps);
        let is_short = received_mbps < SATURATED * report.sent_mbps && queue_ms > MIN_EMPTIED_MS;
        start.short = if is_short { start.short + 1 } else { 0 };
        let loses = report.loss > START_LOSS && report.lost >= OVERFLOW_PACKETS;
        if queue_ms <= self.target_ms && start.short < 2 && !loses {
            return false;
        }
        self.drain(received_mbps, path);
        true
    }
}

impl Learner for Ahead {
    fn next(&mut self, path: &PathView) -> Trial {
        let first_mbps = path.mbps_of(FIRST_PACKETS, path.rtt);
        let mut role = Role::Step;
        if let Phase::Starting(start) = &mut self.phase {
            let is_held = start.sent_mbps.is_some() && start.unknown >= MAX_UNKNOWN;
            self.rate_mbps = match start.sent_mbps {
                _ if !path.is_known => path.mbps_of(FIRST_PACKETS, BLIND_RTT),
                Some(sent_mbps) if is_held => sent_mbps,
                Some(sent_mbps) => 2.0 * sent_mbps,
                None => first_mbps,
            };
            if path.is_known && !is_held {
                start.sent_mbps = Some(self.rate_mbps);
                start.unknown += 1;
            } else {
                role = Role::Waiting;
            }
        }
        let span_s = self.span_s(path).max(self.packets_s(path, self.rate_mbps)).min(60.0);
        let tag = Tag { decision: self.decision, role };
        Trial { rate_mbps: self.rate_mbps, span: Duration::from_secs_f64(span_s), tag }
    }

    fn hear(&mut self, ack: &Ack<'_>, path: &PathView) -> bool {
        self.now = ack.now;
        self.emptied.get_or_insert(ack.now);
        let is_silent = ack.packets.iter().any(|packet| packet.app_limited);
        self.ear.acked(ack.now, ack.acked.0 as f64, is_silent);
        let Some(rtt) = ack.rtt.latest else { return false };
        let least = self.rtt_min.update(ack.now, rtt);
        if self.least.is_none_or(|(known, _)| known != least) {
            self.least = Some((least, to_ms(least)));
        }
        self.queue_ms = to_ms(rtt) - self.rtt_min_ms(path);
        self.ear.waited(self.queue_ms);
        let changed = self.ear.is_due(ack.now) && {
            // Round to whole nanoseconds, so that rounding errors of doubles do not exclude the bound itself.
            let fewest = Duration::from_secs_f64(self.packets_s(path, self.rate_mbps));
            let every = (Duration::from_secs_f64(self.span_s(path)) / 2).max(fewest);
            let look = self.ear.look(ack.now, every);
            look.is_some_and(|look| self.learn_look(look, path))
        };
        self.rival.hear(self.queue_ms);
        let is_empty = self.queue_ms <= (EMPTIED * self.target_ms).max(MIN_EMPTIED_MS);
        match &mut self.phase {
            Phase::Starting(_) => {
                let received_mbps = ack.rate.rate.map_or(self.received_mbps, Rate::as_mbps);
                let ends = self.queue_ms > self.target_ms && received_mbps > 0.0;
                if ends {
                    self.drain(received_mbps, path);
                }
                ends
            }
            Phase::Adjusting => {
                if is_empty {
                    self.emptied = Some(ack.now);
                    self.empty();
                }
                let drains = !is_empty && self.must_drain(path);
                if drains {
                    self.drain(self.received_mbps, path);
                }
                changed || drains
            }
            &mut Phase::Draining { until, since, from_ms, ref mut least_ms } => {
                *least_ms = least_ms.min(self.queue_ms);
                let least_ms = *least_ms;
                // If packets are sent one at a time, the flow itself did not cause the delay of such a packet.
                let was_alone = ack.packets.iter().any(|packet| packet.sent >= since) && self.is_held(path);
                let is_over = ack.now >= until || was_alone;
                if is_empty {
                    self.empty();
                    self.resume();
                } else if is_over {
                    self.end_drain(from_ms, least_ms, path);
                }
                is_empty || is_over
            }
        }
    }

    fn learn(&mut self, report: &Report, path: &PathView) -> bool {
        let queue_ms = report.rtt_s * 1e3 - self.rtt_min_ms(path);
        if report.is_void() {
            return self.learn_void(report, path);
        }
        // If the application pauses or the window is full, the flow sends less than the interval's rate permits.
        self.is_limited = report.sent_mbps < 0.9 * report.trial.rate_mbps;
        self.arrived_mbps = report.acked_mbps;
        let overflows = self.losses.learn(report, queue_ms, self.rival.is_near_crest(queue_ms));
        if overflows && self.profile.overflow {
            self.target.overflowed(queue_ms);
            self.overflowed = true;
        }
        if report.lost > 0 {
            self.rival.lost(self.now, queue_ms, path.rtt);
        }
        self.learn_start(report, queue_ms, path)
    }

    /// The window: the data in flight at the current rate on a path with a queue of `window_targets` targets.
    ///
    /// Differs: MORC §3.1 has no window. If a link loses nine tenths of its capacity, all outstanding data becomes a
    /// queue. The window limits the length of this queue.
    fn window(&self, path: &PathView) -> Option<Bytes> {
        let first = Bytes(FIRST_PACKETS as u64 * path.mss.0);
        if !path.is_known {
            return Some(first);
        }
        let targets = self.profile.window_targets?;
        if let Some(window) = self.rival.window().filter(|_| self.phase == Phase::Adjusting) {
            return Some(Bytes((RIVAL_ROOM * window) as u64).max(Bytes(SLOW_PACKETS * path.mss.0)));
        }
        // In slow start, the sending rate doubles before the received rate has doubled.
        let is_starting = matches!(self.phase, Phase::Starting(_));
        // PCC's minimum rate may exceed the capacity of the link.
        let is_slow = !is_starting && self.rate_mbps <= path.least_mbps();
        let rate_mbps = match is_starting {
            true => 2.0 * self.received_mbps,
            false if is_slow => self.rate_mbps.min(self.received_mbps),
            false => self.rate_mbps,
        };
        let ms = self.rtt_min_ms(path) + targets * self.target_ms;
        let bytes = Rate::from_mbps(rate_mbps).bytes_in(Duration::from_secs_f64(ms * 1e-3));
        if self.is_held(path) {
            return Some(path.mss);
        }
        let least = if is_slow { Bytes(SLOW_PACKETS * path.mss.0) } else { first };
        Some(bytes.max(least))
    }

    fn inspect(&self, out: &mut Inspect) {
        out.state = match self.phase {
            Phase::Starting(_) => "SlowStart",
            Phase::Draining { .. } => "Drain",
            Phase::Adjusting if self.rival.window().is_some() => "Competing",
            Phase::Adjusting => "RateAdjusting",
        };
        let is_heard = self.emptied.is_some();
        let known = |value: f64| if is_heard { value } else { f64::NAN };
        out.value("base_mbps", known(self.base_mbps));
        out.value("target_ms", self.target_ms);
        out.value("queue_ms", known(self.queue_ms));
        out.value("rtt_min_ms", self.least.map_or(f64::NAN, |(_, ms)| ms));
    }
}
