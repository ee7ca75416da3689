//! Wire: the part of a path between two queues. It delays packets. If configured, it also adds jitter and sway, loses
//! packets, loses all packets at times (is off), reorders, duplicates, serialises and batches packets.
//!
//! Order of processing: whether the wire is on, serialisation at the wire's rate, loss, propagation with jitter and sway,
//! reordering, and release in batches. Packets stay in order unless reordering is configured.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use airpace_core::{Bytes, Packet, Rate, Rng, Streams, Time};
use airpace_event::Fate;
use serde::Deserialize;

use crate::config_error::{ConfigError, duration_ms, positive, probability};
use crate::link::{Exit, Link};

mod on_off;
mod sway;

pub use on_off::{OnOff, OnOffConfig};
pub use sway::SwayConfig;

use on_off::{Switch, SwitchPlan};
use sway::{Sway, SwayPlan};

/// Configuration of a wire. By default, all impairments are off, and the wire is ideal, without delay.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WireConfig {
    /// Propagation delay in milliseconds.
    pub delay_ms: f64,
    /// Mean of an exponentially distributed extra delay, in milliseconds; it never makes a packet overtake another.
    pub jitter_mean_ms: f64,
    /// An extra delay that is common to all packets for some time, and is then redrawn.
    pub sway: Option<SwayConfig>,
    /// Probability that a packet is lost, independently of other packets.
    pub loss: f64,
    /// Losses in bursts, on top of `loss`.
    pub burst: Option<BurstConfig>,
    /// Times in which the wire is off and loses every packet, on top of other losses.
    pub on_off: Option<OnOffConfig>,
    /// Packets that are delayed so that later packets overtake them.
    pub reorder: Option<ReorderConfig>,
    /// Probability that a packet arrives twice.
    pub duplicate: f64,
    /// Rate of serialisation in Mbit/s, with unlimited space for waiting packets; `None` serialises immediately.
    pub rate_mbps: Option<f64>,
    /// Packets leave only at multiples of this many milliseconds, so that ACKs leave in bunches; 0: packets leave
    /// immediately.
    pub batch_ms: f64,
}

/// Burst losses according to the Gilbert–Elliott model: a wire is in a good or a bad state, and the state may change
/// before each packet.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BurstConfig {
    /// Probability that a good wire turns bad before a packet.
    pub to_bad: f64,
    /// Probability that a bad wire turns good before a packet; a burst is 1 / `to_good` packets long on average.
    pub to_good: f64,
    /// Probability that a packet is lost while the wire is bad.
    #[serde(default = "certain")]
    pub loss_in_bad: f64,
    /// Probability that a packet is lost while the wire is good.
    #[serde(default)]
    pub loss_in_good: f64,
}

fn certain() -> f64 {
    1.0
}

/// Packets that take a longer path.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReorderConfig {
    /// Probability that a packet takes the longer path.
    pub probability: f64,
    /// Additional delay of a packet on the longer path, in milliseconds.
    pub extra_ms: f64,
}

/// A wire.
#[derive(Debug)]
pub struct Wire {
    delay: Duration,
    /// Packets in flight, in order of their arrival at the end of the wire. `late` contains the packets in flight on
    /// the longer path, and packets that overtake others.
    fifo: VecDeque<Exit>,
    late: BinaryHeap<Reverse<Late>>,
    /// The impairments; `None` on a wire that only delays packets, for which `fifo` is sufficient.
    impairments: Option<Box<Impairments>>,
}

/// A wire that can be instantiated any number of times.
#[derive(Clone, Debug, PartialEq)]
pub struct WirePlan {
    delay: Duration,
    /// The impairments; `None` on a wire that only delays packets.
    impairments: Option<ImpairmentsPlan>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct ImpairmentsPlan {
    jitter_mean_ns: f64,
    /// Whether packets are delayed by their jitter, which is drawn in any case.
    delays_by_jitter: bool,
    sway: Option<SwayPlan>,
    loss: f64,
    burst: Option<BurstConfig>,
    on_off: Option<SwitchPlan>,
    reorder: f64,
    reorder_extra: Duration,
    duplicate: f64,
    rate: Option<Rate>,
    batch: Duration,
}

#[derive(Debug)]
struct Impairments {
    plan: ImpairmentsPlan,
    rng: Rng,
    sway: Option<Sway>,
    switch: Option<Switch>,
    bad: bool,
    /// Time at which the serialisation of all pushed packets ends.
    busy_until: Time,
    /// The latest time that was passed to the wire.
    now: Time,
    /// Number of packets put into `late` so far. It defines the order of packets that arrive at the same time.
    late_count: u64,
}

impl WireConfig {
    /// The plan of this wire.
    ///
    /// # Errors
    /// A value is out of range; the error names the key.
    pub fn plan(&self) -> Result<WirePlan, ConfigError> {
        if let Some(burst) = &self.burst {
            probability("burst.to_bad", burst.to_bad)?;
            probability("burst.to_good", burst.to_good)?;
            probability("burst.loss_in_bad", burst.loss_in_bad)?;
            probability("burst.loss_in_good", burst.loss_in_good)?;
        }
        let (reorder, reorder_extra) = match &self.reorder {
            None => (0.0, Duration::ZERO),
            Some(reorder) => (
                probability("reorder.probability", reorder.probability)?,
                duration_ms("reorder.extra_ms", reorder.extra_ms)?,
            ),
        };
        let rate = self.rate_mbps.map(|mbps| positive("rate_mbps", mbps)).transpose()?;
        let impairments = ImpairmentsPlan {
            jitter_mean_ns: duration_ms("jitter_mean_ms", self.jitter_mean_ms)?.as_nanos() as f64,
            delays_by_jitter: true,
            sway: self.sway.map(|sway| sway.plan().map_err(|error| error.within("sway"))).transpose()?,
            loss: probability("loss", self.loss)?,
            burst: self.burst,
            on_off: self
                .on_off
                .map(|on_off| on_off.plan().map_err(|error| error.within("on_off")))
                .transpose()?,
            reorder,
            reorder_extra,
            duplicate: probability("duplicate", self.duplicate)?,
            rate: rate.map(Rate::from_mbps),
            batch: duration_ms("batch_ms", self.batch_ms)?,
        };
        let only_delays = WireConfig { delay_ms: self.delay_ms, ..WireConfig::default() } == *self;
        Ok(WirePlan {
            delay: duration_ms("delay_ms", self.delay_ms)?,
            impairments: (!only_delays).then_some(impairments),
        })
    }
}

impl WirePlan {
    /// A wire that forwards all packets immediately.
    pub(crate) const IDEAL: WirePlan = WirePlan { delay: Duration::ZERO, impairments: None };

    /// This wire with another propagation delay.
    pub fn with_delay(&self, delay: Duration) -> WirePlan {
        WirePlan { delay, ..self.clone() }
    }

    /// This wire as observed at its far end: packets that would be lost on the wire are lost, and all other packets are
    /// forwarded immediately. `None` if the treatment of a packet depends on the time at which the packet enters the
    /// wire.
    pub(crate) fn seen_from_far_end(&self) -> Option<WirePlan> {
        let plan = self.impairments.map(|plan| ImpairmentsPlan { delays_by_jitter: false, ..plan });
        let depends_on_time = |plan: &ImpairmentsPlan| {
            let ImpairmentsPlan { sway, on_off, reorder, rate, batch, .. } = plan;
            sway.is_some() || on_off.is_some() || rate.is_some() || *reorder > 0.0 || *batch > Duration::ZERO
        };
        let is_same = !plan.as_ref().is_some_and(depends_on_time);
        is_same.then_some(WirePlan { delay: Duration::ZERO, impairments: plan })
    }

    /// The jitter of each packet of the wire that is built with the same arguments, as an infinite sequence in the
    /// order of the packets. `None` if the wire has no jitter.
    pub(crate) fn jitters(
        &self,
        streams: &Streams,
        name: &str,
    ) -> Option<impl Iterator<Item = Duration> + use<>> {
        let mut wire = Wire::new(self, streams, name).impairments?;
        (wire.plan.jitter_mean_ns > 0.0).then(|| std::iter::repeat_with(move || wire.draw(true).jitter))
    }

    /// The rate at which the wire serialises; `None` serialises immediately.
    pub fn rate(&self) -> Option<Rate> {
        self.impairments.as_ref().and_then(|impairments| impairments.rate)
    }
}

impl Wire {
    /// A wire that only delays packets.
    pub fn with_delay(delay: Duration) -> Wire {
        Wire { delay, fifo: VecDeque::new(), late: BinaryHeap::new(), impairments: None }
    }

    /// Builds the wire of a plan. Its random numbers come from the stream `name`, the random numbers of its sway from
    /// `name.sway`, and the random numbers of its on and off times from `name.on_off`.
    pub fn new(plan: &WirePlan, streams: &Streams, name: &str) -> Wire {
        let impairments = plan.impairments.map(|plan| {
            let (busy_until, now) = (Time::ZERO, Time::ZERO);
            let sway = plan.sway.map(|sway| Sway::new(sway, streams.stream(&format!("{name}.sway"))));
            let switch = plan.on_off.map(|plan| Switch::new(plan, streams.stream(&format!("{name}.on_off"))));
            let rng = streams.stream(name);
            Box::new(Impairments { plan, rng, sway, switch, bad: false, busy_until, now, late_count: 0 })
        });
        Wire { impairments, ..Wire::with_delay(plan.delay) }
    }

    fn push_impaired(&mut self, now: Time, packet: Packet) {
        let Some(wire) = self.impairments.as_deref_mut() else { return };
        wire.now = now;
        let is_on = wire.switch.as_mut().is_none_or(|switch| switch.is_on(now));
        let sent = if is_on { wire.serialised(now, packet.bytes) } else { now };
        let Drawn { fate, copies, jitter } = wire.draw(is_on);
        let arrival = sent + self.delay + jitter + wire.extra_delay(sent);
        let earliest = self.fifo.back().map_or(Time::ZERO, |before| before.time);
        let takes_longer_way = wire.chance(wire.plan.reorder);
        let released =
            wire.released(if takes_longer_way { arrival + wire.plan.reorder_extra } else { arrival });
        if takes_longer_way || (released < earliest && wire.may_overtake()) {
            for _ in 0..copies {
                wire.late_count += 1;
                let exit = Exit { time: released, packet, fate };
                self.late.push(Reverse(Late { order: wire.late_count, exit }));
            }
            return;
        }
        let time = released.max(earliest);
        self.fifo.extend(std::iter::repeat_n(Exit { time, packet, fate }, copies));
    }
}

/// Random draws for a packet that enters a wire.
struct Drawn {
    fate: Fate,
    copies: usize,
    jitter: Duration,
}

impl Impairments {
    /// Draws the treatment of the next packet; the packet is lost if the wire is off.
    fn draw(&mut self, is_on: bool) -> Drawn {
        let fate = if self.loses() || !is_on { Fate::WireLoss } else { Fate::Delivered };
        let copies = if fate == Fate::Delivered && self.chance(self.plan.duplicate) { 2 } else { 1 };
        let jitter = self.jitter();
        Drawn { fate, copies, jitter: if self.plan.delays_by_jitter { jitter } else { Duration::ZERO } }
    }

    /// Time at which the last bit of a packet that arrives at `now` is on the wire.
    fn serialised(&mut self, now: Time, bytes: Bytes) -> Time {
        if let Some(rate) = self.plan.rate {
            self.busy_until = self.busy_until.max(now) + rate.time_for(bytes);
            return self.busy_until;
        }
        now
    }

    fn loses(&mut self) -> bool {
        let mut lost = self.chance(self.plan.loss);
        if let Some(burst) = self.plan.burst {
            let turn = if self.bad { burst.to_good } else { burst.to_bad };
            self.bad ^= self.chance(turn);
            lost |= self.chance(if self.bad { burst.loss_in_bad } else { burst.loss_in_good });
        }
        lost
    }

    fn jitter(&mut self) -> Duration {
        if self.plan.jitter_mean_ns == 0.0 {
            return Duration::ZERO;
        }
        Duration::from_nanos(libm::round(self.rng.exponential(self.plan.jitter_mean_ns)) as u64)
    }

    /// Extra delay by sway of a packet that leaves at `sent`.
    fn extra_delay(&mut self, sent: Time) -> Duration {
        self.sway.as_mut().map_or(Duration::ZERO, |sway| sway.at(sent))
    }

    /// Whether a packet may arrive before packets that left earlier, because the delay has become shorter.
    fn may_overtake(&self) -> bool {
        self.plan.sway.is_some_and(|sway| sway.may_reorder)
    }

    /// The first release time at or after `arrival`.
    fn released(&self, arrival: Time) -> Time {
        let batch = self.plan.batch.as_nanos() as u64;
        if batch == 0 {
            return arrival;
        }
        Time::from_nanos(arrival.as_nanos().div_ceil(batch).saturating_mul(batch))
    }

    /// Returns true with this probability. If the probability is zero, no random number is drawn.
    fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.rng.chance(probability)
    }
}

impl Link for Wire {
    #[inline]
    fn push(&mut self, now: Time, packet: Packet) {
        if self.impairments.is_some() {
            self.push_impaired(now, packet);
        } else {
            self.fifo.push_back(Exit { time: now + self.delay, packet, fate: Fate::Delivered });
        }
    }

    #[inline]
    fn pop(&mut self, now: Time) -> Option<Exit> {
        if let Some(wire) = self.impairments.as_deref_mut() {
            wire.now = now;
        }
        let on_time = self.fifo.front().map(|exit| exit.time);
        if let Some(Reverse(late)) = self.late.peek() {
            let late = late.exit.time;
            if late <= now && on_time.is_none_or(|on_time| late < on_time) {
                return self.late.pop().map(|Reverse(late)| late.exit);
            }
        }
        if on_time? > now {
            return None;
        }
        self.fifo.pop_front()
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Time> {
        let on_time = self.fifo.front().map(|exit| exit.time);
        match self.late.peek() {
            None => on_time,
            Some(Reverse(late)) => {
                Some(on_time.map_or(late.exit.time, |on_time| on_time.min(late.exit.time)))
            }
        }
    }

    fn base_delay(&self, bytes: Bytes) -> Duration {
        let rate = self.impairments.as_deref().and_then(|wire| wire.plan.rate);
        self.delay.saturating_add(rate.map_or(Duration::ZERO, |rate| rate.time_for(bytes)))
    }

    fn backlog(&self) -> Bytes {
        let wire = self.impairments.as_deref();
        wire.and_then(|wire| Some(wire.plan.rate?.bytes_in(wire.busy_until - wire.now))).unwrap_or_default()
    }
}

/// A packet in `late`. Such packets are ordered by arrival time, then by the order in which they were sent.
#[derive(Debug)]
struct Late {
    order: u64,
    exit: Exit,
}

impl Late {
    fn key(&self) -> (Time, u64) {
        (self.exit.time, self.order)
    }
}

impl PartialEq for Late {
    fn eq(&self, other: &Late) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Late {}

impl PartialOrd for Late {
    fn partial_cmp(&self, other: &Late) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Late {
    fn cmp(&self, other: &Late) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

#[cfg(test)]
mod tests;
