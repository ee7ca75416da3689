//! Controlled delay (CoDel): if a queue persists, packets at its head are dropped at decreasing intervals until the queue
//! is short.
//!
//! An ECN-capable packet is marked instead of dropped.

use std::time::Duration;

use airpace_core::{Bytes, Packet, Time};

use super::fifo::{Fifo, Queued};
use crate::config_error::ConfigError;

/// Size up to which a queue never counts as persistent (bytes): one packet of the largest usual size.
///
/// Source: RFC 8289 §5.3
const MAX_PACKET: Bytes = Bytes(1514);

/// The state of the control law of one queue.
///
/// Source: RFC 8289 §5
#[derive(Clone, Debug)]
pub(super) struct CoDel {
    target: Duration,
    interval: Duration,
    /// Time at which the delay will have been above the target for a whole interval; `None` while the delay is below
    /// the target.
    first_above: Option<Time>,
    dropping: bool,
    /// While dropping: time of the next drop.
    drop_next: Time,
    /// Number of drops since dropping started.
    count: u32,
    /// `count` at the last start of dropping.
    last_count: u32,
}

impl CoDel {
    /// A controller in its initial state.
    ///
    /// # Errors
    /// The interval is zero; the error names the key.
    pub fn new(target: Duration, interval: Duration) -> Result<CoDel, ConfigError> {
        if interval.is_zero() {
            let remedy = "is 0; give about the round-trip time of the path, 100 by default";
            return Err(ConfigError::new("interval_ms", remedy));
        }
        let drop_next = Time::ZERO;
        Ok(CoDel { target, interval, first_above: None, dropping: false, drop_next, count: 0, last_count: 0 })
    }

    /// The next packet to be served. `drop` is called for packets that the control law selects and that cannot be marked.
    ///
    /// Source: RFC 8289 §5.5; RFC 8290 §5.2.6 (marks)
    pub fn dequeue(&mut self, now: Time, fifo: &mut Fifo, drop: &mut impl FnMut(Packet)) -> Option<Queued> {
        let (mut head, mut standing) = self.head(now, fifo);
        if self.dropping {
            self.dropping = standing;
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                if head.as_mut()?.packet.mark() {
                    self.drop_next = self.control_law(self.drop_next);
                    break;
                }
                drop(head?.packet);
                (head, standing) = self.head(now, fifo);
                self.dropping = standing;
                if standing {
                    self.drop_next = self.control_law(self.drop_next);
                }
            }
        } else if standing {
            if !head.as_mut()?.packet.mark() {
                drop(head?.packet);
                (head, _) = self.head(now, fifo);
            }
            self.dropping = true;
            // Dropping ended recently: dropping resumes near the drop rate that controlled the queue before.
            let drops = self.count.saturating_sub(self.last_count);
            let recent = now < self.drop_next + 16 * self.interval;
            self.count = if drops > 1 && recent { drops } else { 1 };
            self.drop_next = self.control_law(now);
            self.last_count = self.count;
        }
        head
    }

    /// Takes the packet at the head of the queue. Also returns whether the delay has been above the target for a whole
    /// interval.
    ///
    /// Source: RFC 8289 §5.6
    fn head(&mut self, now: Time, fifo: &mut Fifo) -> (Option<Queued>, bool) {
        let Some(head) = fifo.pop() else {
            self.first_above = None;
            return (None, false);
        };
        if now - head.arrived < self.target || fifo.bytes() <= MAX_PACKET {
            self.first_above = None;
            return (Some(head), false);
        }
        let first_above = *self.first_above.get_or_insert(now + self.interval);
        (Some(head), now >= first_above)
    }

    /// The time of the next drop: `from` plus the interval divided by the square root of the count.
    ///
    /// Source: RFC 8289 §5.6
    fn control_law(&self, from: Time) -> Time {
        let nanos = self.interval.as_nanos() as f64 / libm::sqrt(f64::from(self.count));
        from + Duration::from_nanos(libm::round(nanos) as u64)
    }
}
