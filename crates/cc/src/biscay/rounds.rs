//! Counts round trips, and measures the minimum RTT of each round trip and the minimum RTT over a longer period.

use std::time::Duration;

use airpace_core::{Bytes, Time};

use crate::controller::Ack;
use crate::filter::WindowedMin;

/// Minimum number of RTT samples in a round for which the minimum RTT of the round is used.
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
    /// Processes one ACK. Returns whether the ACK starts a round.
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

    /// The minimum RTT of the current round or, while this round has too few samples, of the last round. It contains
    /// the delay of a standing queue, but no jitter.
    pub fn standing_rtt(&self) -> Option<Duration> {
        if self.samples >= SAMPLES { self.least } else { self.least_of_last.or(self.least) }
    }
}

/// Span of time over which the minimum RTT, the round-trip time without a queue, is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RttMemory {
    /// The minimum RTT over the whole connection.
    ///
    /// Source: BISCAY §A.5.1 (`rtt = min(rtt, MeasureRTT(last_ack))`)
    Life,
    /// The minimum RTT over the last period of this length.
    Window(Duration),
}

impl RttMemory {
    /// Length of the span over which the minimum RTT is taken.
    pub fn window(self) -> Duration {
        match self {
            RttMemory::Life => Duration::MAX,
            RttMemory::Window(window) => window,
        }
    }

    /// Whether the minimum RTT must be measured again: a multiple of the renewal period lies between `seen` and `now`.
    pub fn is_old(self, seen: Time, now: Time) -> bool {
        let period = (self.window() / RENEW_PARTS).as_nanos();
        // The minimum over the connection never expires: its period does not fit into 64 bits.
        u64::try_from(period)
            .is_ok_and(|period| now.as_nanos() / period.max(1) > seen.as_nanos() / period.max(1))
    }
}

/// Ratio of [`RttMemory::window`] to the renewal period. The minimum RTT is measured again by draining if it was not
/// observed within that period.
///
/// Chosen: with a ratio of two, an RTT without a queue is observed before the previous minimum expires. The multiples
/// of this period on the clock are the same for all flows of a device, so they drain their common queue together.
const RENEW_PARTS: u32 = 2;

/// Maximum duration of a drain.
///
/// Chosen: after this time, a queue of several round trips has drained if this sender caused the queue.
pub const MAX_DRAIN: Duration = Duration::from_secs(1);

/// The round-trip time without a queue, and the drains by which it is measured.
#[derive(Clone, Copy, Debug)]
pub struct LeastRtt {
    memory: RttMemory,
    life: Option<Duration>,
    recent: WindowedMin<Duration, Time>,
    /// End of the last drain.
    drained: Time,
    drain: Option<Drain>,
    /// The minimum RTT observed in the last drain; `None` before the first drain.
    last_shown: Option<Duration>,
}

#[derive(Clone, Copy, Debug)]
struct Drain {
    /// Latest end of the drain.
    until: Time,
    /// The drain ends when this packet, which is sent into the drained path, is acknowledged.
    ends_with: Option<u64>,
    least: Option<Duration>,
}

impl LeastRtt {
    /// State before the first sample.
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

    /// Processes one ACK. `drained` is the maximum amount in flight in a drain; `may_drain`: whether a drain may start
    /// now.
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
            self.drain = Some(Drain { until: ack.now + MAX_DRAIN, ends_with: None, least: None });
        }
    }

    /// Time when the minimum RTT was last observed, or last measured by draining.
    fn seen(&self, now: Time) -> Time {
        self.recent.position().unwrap_or(now).max(self.drained)
    }

    /// Continues a drain. If two consecutive drains show the same RTT, this is the RTT of the path, and a lower, older
    /// value belonged to another path. One drain is not sufficient, because it may have met a queue of other flows.
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

    /// Whether the sender is draining the path to measure the minimum RTT.
    pub fn is_draining(&self) -> bool {
        self.drain.is_some()
    }
}
