//! The learner of `morc`: the rate that is best a few intervals ahead.
//!
//! ```text
//!              q > target             q > 2 targets, an overflow, or 2 s without an empty queue
//!  SlowStart ─────────────▶ Drain ◀──────────────────────────────── RateAdjusting
//!                             └───────────── empty ────────────────────▶
//!                             └─ not empty, twice ─▶ Competing ── empty ─▶
//! ```
//!
//! The text's trials ask which of two rates has the higher utility now. The round-trip time of now is the sum of all
//! rates until now, so both have the same, and the trials learn nothing about it (`docs/papers/morc-departures.md`).
//! The utility of the time ahead does depend on the rate. A queue q with a capacity C, into which a flow sends at r,
//! is q + H·(r − C)/C after a time H. T is C while there is a queue, so u is greatest where the round-trip time is on
//! target then:
//!
//! ```text
//!  r = C · (1 + (target − q)/H),   C = the received rate
//! ```
//!
//! No trial is needed for it. What the path loses by chance is sent in addition ([`losses`](super::losses)): it is the same at
//! any rate, so it does not move the rate at which u is greatest.
//!
//! Source: MORC §3.1 Utility
//!
//! Differs: MORC §3.1 has Allegro's decision mode. With this rule, five flows have a Jain's index above 0.97 instead
//! of 0.7, and a cell's queue is 40 ms long instead of 400.

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

/// Packets per round trip of the first interval.
///
/// Source: RFC 6928 §2
const FIRST_PACKETS: f64 = 10.0;

/// The fewest packets of an interval, and of a look.
///
/// Chosen: fewer packets give no rate.
const LEAST_PACKETS: f64 = 5.0;

/// Doublings that may have begun without a report of the first of them.
///
/// Chosen: as in the frame's own start. The report of an interval comes when the second interval after it ends.
const MOST_UNKNOWN: u32 = 2;

/// The round-trip time by which the first packets are paced, before the first ACK.
///
/// Differs: PCC spreads them over a round trip that it assumes. Short downloads then begin 50 ms later than those of
/// every TCP.
///
/// Source: Linux `tcp_update_pacing_rate`, which takes 1 ms while no round trip was measured (6.18, 2025)
const BLIND_RTT: Duration = Duration::from_millis(1);

/// A drain says something of other flows if this part of what it sent arrived. If less did, the link has become so slow
/// that the flow fills the queue alone.
///
/// Chosen: beside a rival that holds the queue, as much arrives as is sent; beside one that grows, a little less.
const FAIR_DRAIN: f64 = 0.75;

/// Slow start ends if two intervals in a row arrived at less than this part of the rate at which they were sent.
///
/// Chosen: as the bound of the text's avoidance here. One interval alone may be jitter.
const SATURATED: f64 = 0.75;

/// And if an interval lost more than this part.
///
/// Source: MORC §3.1 pL (a tenth lost makes the utility zero)
const START_LOSS: f64 = 0.1;

/// A queue below this part of the target is empty for the rule.
///
/// Chosen: jitter of an empty cell is some 10 ms, a fourth of its target.
const EMPTY: f64 = 0.25;

/// A single sample below this part of the target shows that the queue has been empty, and everyone's RTTmin is true.
///
/// Chosen: half of the above. It bounds the error of RTTmin between flows to a tenth of the target.
const EMPTIED: f64 = 0.125;

/// The same at least, in milliseconds.
///
/// Chosen: the time of two full packets at 10 Mbit/s.
const LEAST_EMPTIED_MS: f64 = 2.0;

/// The most by which the rule lowers or raises the rate at once, as a part of it.
///
/// Chosen: a rise by a half per look doubles the rate per round trip, as slow start does. A fall by a half drains a
/// queue in the time that it is long.
const MOST_CHANGE: f64 = 0.5;

/// By how much the gain grows with each look at an empty queue.
///
/// Chosen: twice per round trip.
const BOOST: f64 = std::f64::consts::SQRT_2;

/// The greatest such growth.
///
/// Chosen: from a gain of 1 % to [`MOST_CHANGE`].
const MOST_BOOST: f64 = 64.0;

/// The rate of a drain, as a part of the received rate.
///
/// Chosen: a queue of q drains in 2 q if all its flows do so, and at the end the link stays half used for a round trip
/// at most.
const DRAIN_RATE: f64 = 0.5;

/// The longest drain, beyond a round trip.
///
/// Chosen: twice the longest queue of the paper's laboratory (300 ms), and a reserve.
const LONGEST_DRAIN_MS: f64 = 1000.0;

/// A drain succeeded if a queue below this part of the target was seen.
///
/// Chosen: between the target, at which flows of this scheme would stop it, and jitter.
const DRAINED: f64 = 0.5;

/// Round trips between drains, at least.
///
/// Chosen: a drain leaves a link half used for a round trip, so this costs 2.5 % at most.
const DRAIN_ROUNDS: u32 = 20;

/// Drains beside a rival come this many times less often.
///
/// Chosen: the rival takes the room of each. Eight seconds are CUBIC's epoch at 50 Mbit/s.
const RIVAL_DRAINS: u32 = 4;

/// How long RTTmin is remembered.
///
/// Source: MORC §3.1 RTTtarget (RTTmin is tracked; the text does not say for how long)
///
/// Chosen: BBR's 10 s, five drains.
const RTT_MIN_S: f64 = 10.0;

/// How long it is remembered while drains fail.
///
/// Chosen: beside a rival, the queue is never empty; after 10 s its whole length would be forgotten. A route that has
/// become longer is believed after a minute.
const RTT_MIN_BESIDE_RIVAL_S: f64 = 60.0;

/// The least window in packets where little more arrives than PCC's least rate. Elsewhere it is that of the start.
///
/// Chosen: of fewer packets, losses would not show in time. Ten would be a queue of half a second at 0.2 Mbit/s.
const SLOW_PACKETS: u64 = 4;

/// The window beside a rival has this much room above what the rate needs.
///
/// Chosen: bunches of ACKs.
const RIVAL_ROOM: f64 = 1.1;

/// What the learner does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Starting(Start),
    Adjusting,
    Draining {
        /// When it has failed.
        until: Time,
        /// When it began.
        since: Time,
        /// The queueing delay at its beginning, and the least since.
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
    /// Its value, also in milliseconds.
    least: Option<(Duration, f64)>,
    /// The best received rate lately.
    best: WindowedMax<f64, Time>,
    now: Time,
    /// When the queue was last seen empty, or a drain ended; `None` before the first ACK.
    emptied: Option<Time>,
    /// When the last drain ended.
    resumed: Time,
    /// The target of the last look.
    target_ms: f64,
    /// The newest queueing delay.
    queue_ms: f64,
    /// The rate that the last look received.
    received_mbps: f64,
    /// C of the rule.
    base_mbps: f64,
    rate_mbps: f64,
    boost: f64,
    /// The rate at which the last reported interval was sent, without what it lost.
    arrived_mbps: f64,
    /// Whether the application or the window kept that interval below its rate.
    is_limited: bool,
    /// Whether a buffer has overflowed since the last drain.
    overflowed: bool,
    losses: Losses,
    decision: u32,
}

/// MORC's controller.
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

    /// RTTmin and one target: the time in which a change of the rate shows.
    fn loop_ms(&self, path: &PathView) -> f64 {
        self.rtt_min_ms(path) + self.target_ms
    }

    /// An interval, if it has enough packets.
    ///
    /// Source: MORC §3.1 Intervals
    ///
    /// Differs: MORC §3.1 Intervals follow the round-trip time however long it is. A queue of a second would make the
    /// reaction to it a second late. Two targets are the longest queue that the rule does not drain.
    fn span_s(&self, path: &PathView) -> f64 {
        let most_ms = self.loop_ms(path) + self.target_ms;
        (path.rtt.as_secs_f64() * 1e3).min(most_ms).max(1.0) * 1e-3
    }

    fn packets_s(&self, path: &PathView, rate_mbps: f64) -> f64 {
        LEAST_PACKETS * path.mss.0 as f64 * 8e-6 / rate_mbps.max(1e-3)
    }

    /// Takes in a look. Returns whether the rate changes now.
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

    /// The rate that is best a time H ahead.
    fn rule(&mut self, look: Look, path: &PathView) -> f64 {
        // Source: MORC §3.1 Burstiness
        if look.is_silent && look.queue_ms < self.target_ms {
            return self.rate_mbps;
        }
        let is_empty = look.queue_ms < EMPTY * self.target_ms;
        // H is a multiple of the time in which a change shows. A shorter one would react again before it does.
        let ahead_ms = self.profile.ahead_loops * self.loop_ms(path);
        // The queue that the flow's own drain has emptied says nothing about the link.
        if (self.now - self.resumed).as_secs_f64() * 1e3 > ahead_ms && !self.is_limited {
            self.target.look(is_empty);
        }
        self.boost = if is_empty && self.profile.boost { (self.boost * BOOST).min(MOST_BOOST) } else { 1.0 };
        self.best.set_window(Duration::from_secs_f64(self.profile.memory_loops * self.loop_ms(path) * 1e-3));
        // In whole bit/s, so that a constant rate is no less at the next look, however doubles round.
        let best_mbps = self.best.update(self.now, (look.received_mbps * 1e6).round() * 1e-6);
        // What arrives over an empty queue is what was sent, not what would fit. The capacity is then at least the
        // rate that was sent, and probably the best one lately.
        self.base_mbps = match is_empty {
            true => look.received_mbps.max(self.arrived_mbps.min(self.rate_mbps)).max(best_mbps),
            false => look.received_mbps,
        };
        let gain = (self.target_ms - look.queue_ms) / ahead_ms * self.boost;
        let rate_mbps =
            self.base_mbps * self.losses.sent_per_arrived() * (1.0 + gain.clamp(-MOST_CHANGE, MOST_CHANGE));
        // An interval that the window or the application kept below its rate does not show that the rate was too high.
        if self.is_limited && look.queue_ms < self.target_ms {
            rate_mbps.max(self.rate_mbps)
        } else {
            rate_mbps
        }
    }

    /// Whether the queue must be drained now.
    ///
    /// Differs: MORC §3.1 RTTtarget knows no drains. Whoever joins over a standing queue takes that queue's end for
    /// RTTmin and aims above everyone else. Its slow start makes the queue longer than two targets, so that all drain
    /// at the same time, and see the same RTTmin. The drain after a time is for those whose start did not.
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
        // Two round trips later, the queue shows what the last drain did.
        is_due || (!has_rival && since > rtt_min.saturating_mul(2) && (is_long || self.overflowed))
    }

    fn drain(&mut self, received_mbps: f64, path: &PathView) {
        // A fade makes one look at the rate worthless.
        self.base_mbps = received_mbps.max(0.5 * self.base_mbps);
        self.rate_mbps = DRAIN_RATE * self.base_mbps;
        let rtt_min_ms = self.rtt_min_ms(path);
        let most_ms =
            (self.queue_ms / (1.0 - DRAIN_RATE) + 2.0 * rtt_min_ms).min(LONGEST_DRAIN_MS + rtt_min_ms);
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

    /// Whether the window holds the flow in a drain, packet by packet. The frame sends no slower than PCC's least rate, so
    /// a slower drain would be none.
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

    /// The queue is empty.
    fn empty(&mut self) {
        if self.rival.is_suspected() {
            self.rtt_min.set_window(Duration::from_secs_f64(RTT_MIN_S));
        }
        self.rival.emptied();
    }

    /// A drain has lasted as long as it may.
    fn end_drain(&mut self, from_ms: f64, least_ms: f64, path: &PathView) {
        // A link that delivers a packet at a time keeps a packet for one such time.
        let packet_ms =
            if self.is_held(path) { path.mss.0 as f64 * 8e-3 / self.received_mbps.max(1e-3) } else { 0.0 };
        if least_ms < (DRAINED * self.target_ms).max(packet_ms) {
            self.empty();
        } else if self.received_mbps < FAIR_DRAIN * self.rate_mbps {
            // The link became slower than the drain.
            self.base_mbps = self.received_mbps;
        } else if self.profile.rival {
            self.rtt_min.set_window(Duration::from_secs_f64(RTT_MIN_BESIDE_RIVAL_S));
            let outstanding = self.base_mbps * 125.0 * (self.rtt_min_ms(path) + from_ms);
            self.rival.failed(outstanding, if self.is_held(path) { 1 } else { SURE });
        }
        self.resume();
    }

    /// Takes in an interval of which nothing arrived. Returns whether the rate changes now.
    ///
    /// Chosen: nothing is known of such a path but that the rate was too much for it.
    fn learn_void(&mut self, report: &Report, path: &PathView) -> bool {
        match &mut self.phase {
            Phase::Starting(start) => start.learnt(report),
            Phase::Adjusting => {
                self.rate_mbps = path.bounded(self.rate_mbps * MOST_CHANGE);
                return true;
            }
            Phase::Draining { .. } => {}
        }
        false
    }

    /// Takes in an interval of slow start. Returns whether it ends.
    ///
    /// Differs: MORC §3.1 leaves it when the utility falls. One interval with jitter in it then ends it for good.
    fn learn_start(&mut self, report: &Report, queue_ms: f64, path: &PathView) -> bool {
        let Phase::Starting(start) = &mut self.phase else { return false };
        start.learnt(report);
        let received_mbps = report.received_mbps.unwrap_or(report.acked_mbps);
        let is_short = received_mbps < SATURATED * report.sent_mbps && queue_ms > LEAST_EMPTIED_MS;
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
            let is_held = start.sent_mbps.is_some() && start.unknown >= MOST_UNKNOWN;
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
            // In whole nanoseconds, so that the bound itself is reached, however doubles round.
            let fewest = Duration::from_secs_f64(self.packets_s(path, self.rate_mbps));
            let every = (Duration::from_secs_f64(self.span_s(path)) / 2).max(fewest);
            let look = self.ear.look(ack.now, every);
            look.is_some_and(|look| self.learn_look(look, path))
        };
        self.rival.hear(self.queue_ms);
        let is_empty = self.queue_ms <= (EMPTIED * self.target_ms).max(LEAST_EMPTIED_MS);
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
                // What waited for a packet that was sent alone was not the flow's.
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
        // An application that pauses, or a full window, keeps an interval below its rate.
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

    /// What the rate needs on the empty path and with a queue of some targets.
    ///
    /// Differs: MORC §3.1 has no window. Where a link loses nine tenths of its capacity, all that is outstanding
    /// becomes queue, and the window bounds it.
    fn window(&self, path: &PathView) -> Option<Bytes> {
        let first = Bytes(FIRST_PACKETS as u64 * path.mss.0);
        if !path.is_known {
            return Some(first);
        }
        let targets = self.profile.window_targets?;
        if let Some(window) = self.rival.window().filter(|_| self.phase == Phase::Adjusting) {
            return Some(Bytes((RIVAL_ROOM * window) as u64).max(Bytes(SLOW_PACKETS * path.mss.0)));
        }
        // In slow start, the rate doubles before the received rate is known to.
        let is_starting = matches!(self.phase, Phase::Starting(_));
        // PCC's least rate may be above that of the link.
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
