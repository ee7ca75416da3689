//! Round trips: their ends, the least RTT of each, and the least RTT of all.

use std::time::Duration;

use airpace_core::{Bytes, Time};

use crate::controller::Ack;
use crate::filter::WindowedMin;

/// After this many samples, the least RTT of a round counts.
///
/// Source: RFC 9406 §4.3 (`N_RTT_SAMPLE`)
const SAMPLES: u32 = 8;

/// Counts rounds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rounds {
    /// The round ends when a packet of at least this number is acknowledged.
    end: u64,
    samples: u32,
    least: Option<Duration>,
    least_of_last: Option<Duration>,
}

impl Rounds {
    /// Takes in one ACK. Returns whether it began a round.
    pub fn on_ack(&mut self, ack: &Ack<'_>) -> bool {
        let begins = ack.packets.last().is_some_and(|packet| packet.number >= self.end);
        if begins {
            self.end = ack.next_number;
            self.least_of_last = self.least.take().or(self.least_of_last);
            self.samples = 0;
        }
        if let Some(rtt) = ack.rtt.latest {
            self.samples += 1;
            self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
        }
        begins
    }

    /// The least RTT of the current round or, while that has too few samples, of the last one. It contains a standing
    /// queue, but no jitter.
    pub fn standing_rtt(&self) -> Option<Duration> {
        if self.samples >= SAMPLES { self.least } else { self.least_of_last.or(self.least) }
    }
}

/// How the round-trip time without a queue is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RttMemory {
    /// The least of the connection.
    ///
    /// Source: BISCAY §A.5.1 (`rtt = min(rtt, MeasureRTT(last_ack))`)
    Life,
    /// The least of this last span of time.
    Window(Duration),
}

impl RttMemory {
    /// The time over which the least counts.
    pub fn window(self) -> Duration {
        match self {
            RttMemory::Life => Duration::MAX,
            RttMemory::Window(window) => window,
        }
    }

    /// Whether the least RTT must be measured again: an instant for that has come after `seen`.
    pub fn is_old(self, seen: Time, now: Time) -> bool {
        let period = (self.window() / RENEW_PARTS).as_nanos();
        // A connection's least never expires: its period does not fit.
        u64::try_from(period)
            .is_ok_and(|period| now.as_nanos() / period.max(1) > seen.as_nanos() / period.max(1))
    }
}

/// The part of its window after which the least RTT is measured again by draining, if it has not been seen since.
///
/// Chosen: with two, a round trip without a queue is seen before the last one is forgotten. The multiples of this
/// period on the clock are the same for all flows of a device, so they drain their common queue together.
const RENEW_PARTS: u32 = 2;

/// The longest that a drain may take.
///
/// Chosen: a queue of several round trips is gone by then, if it is this sender's.
pub const LONGEST_DRAIN: Duration = Duration::from_secs(1);

/// The round-trip time without a queue, and the drains that show it.
#[derive(Clone, Copy, Debug)]
pub struct LeastRtt {
    memory: RttMemory,
    life: Option<Duration>,
    recent: WindowedMin<Duration, Time>,
    /// When the last drain ended.
    drained: Time,
    drain: Option<Drain>,
    /// The least RTT that the last drain showed.
    last_shown: Option<Duration>,
}

#[derive(Clone, Copy, Debug)]
struct Drain {
    /// The latest time at which it ends.
    until: Time,
    /// It ends when this packet, sent into the drained path, is acknowledged.
    ends_with: Option<u64>,
    least: Option<Duration>,
}

impl LeastRtt {
    /// No sample yet.
    pub fn new(memory: RttMemory) -> LeastRtt {
        LeastRtt {
            memory,
            life: None,
            recent: WindowedMin::new(memory.window()),
            drained: Time::ZERO,
            drain: None,
            last_shown: None,
        }
    }

    /// Takes in one ACK. `drained` is what may be in flight in a drain; `may_drain` is whether one may begin now.
    pub fn on_ack(&mut self, ack: &Ack<'_>, drained: Bytes, may_drain: bool) {
        if let Some(rtt) = ack.rtt.latest {
            self.life = Some(self.life.map_or(rtt, |life| life.min(rtt)));
            self.recent.update(ack.now, rtt);
        }
        if self.memory == RttMemory::Life {
            return;
        }
        if self.drain.is_some() {
            self.go_on_draining(ack, drained);
        } else if may_drain && self.memory.is_old(self.seen(ack.now), ack.now) {
            self.drain = Some(Drain { until: ack.now + LONGEST_DRAIN, ends_with: None, least: None });
        }
    }

    /// When the least RTT was last seen, or last measured by draining.
    fn seen(&self, now: Time) -> Time {
        self.recent.position().unwrap_or(now).max(self.drained)
    }

    /// If two drains in a row show an RTT, it is the path's; a lesser one from long before belonged to another path.
    /// A single drain may have met a queue that had just formed elsewhere.
    fn go_on_draining(&mut self, ack: &Ack<'_>, drained: Bytes) {
        let Some(drain) = &mut self.drain else { return };
        if drain.ends_with.is_some() {
            drain.least = [drain.least, ack.rtt.latest].into_iter().flatten().min();
        } else if ack.inflight <= drained {
            drain.ends_with = Some(ack.next_number);
        }
        let seen = |number| ack.packets.last().is_some_and(|packet| packet.number >= number);
        if ack.now < drain.until && !drain.ends_with.is_some_and(seen) {
            return;
        }
        let shown = std::mem::replace(&mut self.last_shown, drain.least);
        if let (Some(before), Some(now)) = (shown, drain.least) {
            self.recent.reset();
            self.recent.update(ack.now, now.min(before));
        }
        self.drain = None;
        self.drained = ack.now;
    }

    /// The round-trip time without a queue; `None` before the first sample.
    pub fn get(&self) -> Option<Duration> {
        match self.memory {
            RttMemory::Life => self.life,
            RttMemory::Window(_) => self.recent.get(),
        }
    }

    /// Whether the sender holds back in order to measure it.
    pub fn is_draining(&self) -> bool {
        self.drain.is_some()
    }
}
