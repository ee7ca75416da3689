//! A second queue on the path. It is drop-tail, and its rate may change.

use std::time::Duration;

use airpace_core::{Bytes, Rate, Time};

use super::InQueue;

/// The wired part of a path. Without a rate, it carries everything at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wired {
    pub rate: Option<Rate>,
    busy_until: Time,
}

impl Wired {
    /// Time that `packet`, which arrives at `now`, needs to pass the wired part; zero if it does not cross that part.
    /// `None` if the queue of `buffer` bytes is full.
    pub fn wait(&mut self, now: Time, packet: &InQueue, buffer: Bytes, crosses: bool) -> Option<Duration> {
        let Some(rate) = self.rate.filter(|_| crosses) else { return Some(Duration::ZERO) };
        let start = self.busy_until.max(now);
        if rate.bytes_in(start - now) + packet.bytes > buffer {
            return None;
        }
        self.busy_until = start + rate.time_for(packet.bytes);
        Some(self.busy_until - now)
    }
}
