//! The emulated modem's packet buffer.

use std::collections::VecDeque;
use std::time::Duration;

use airpace_core::Time;

use crate::control::{Buffering, Control};

/// Packets, the oldest first: released packets that can be sent, then packets that are still kept.
#[derive(Clone, Debug)]
pub(super) struct Buffer {
    pub buffering: Buffering,
    /// Maximum time for which a packet is kept in threshold mode.
    hold: Duration,
    /// Whether packets are wanted in real time; if not, the buffer releases packets only at the watermark.
    is_real_time: bool,
    memory: usize,
    used: usize,
    kept: VecDeque<(Time, Vec<u8>)>,
    to_send: VecDeque<Vec<u8>>,
    /// Bytes of the packets that are still kept.
    kept_bytes: usize,
}

impl Buffer {
    pub fn new(buffering: Buffering, hold: Duration, memory: usize) -> Buffer {
        Buffer {
            buffering,
            hold,
            is_real_time: true,
            memory,
            used: 0,
            kept: VecDeque::new(),
            to_send: VecDeque::new(),
            kept_bytes: 0,
        }
    }

    /// Takes a packet; returns the number of packets lost because of it.
    pub fn put(&mut self, now: Time, body: Vec<u8>) -> u64 {
        let mut lost = 0;
        if self.buffering == Buffering::Circular {
            while self.used + body.len() > self.memory && !self.kept.is_empty() {
                let (_, oldest) = self.kept.pop_front().expect("it is not empty");
                self.kept_bytes -= oldest.len();
                self.used -= oldest.len();
                lost += 1;
            }
        }
        if self.used + body.len() > self.memory {
            return lost + 1;
        }
        self.used += body.len();
        self.kept_bytes += body.len();
        self.kept.push_back((now, body));
        self.release(now);
        lost
    }

    /// Releases the packets that are due to be sent at time `now`.
    pub fn release(&mut self, now: Time) {
        match self.buffering {
            Buffering::Streaming => self.release_down_to(0),
            Buffering::Circular => {}
            Buffering::Threshold { high, low } => {
                let share = |percent: u8| self.memory / 100 * usize::from(percent);
                if self.timer().is_some_and(|due| due <= now) {
                    self.release_down_to(0);
                } else if self.kept_bytes >= share(high) {
                    self.release_down_to(share(low));
                }
            }
        }
    }

    /// Time of the next release, if no packet arrives.
    pub fn poll_timeout(&self) -> Option<Time> {
        if self.to_send.is_empty() { self.timer() } else { Some(Time::ZERO) }
    }

    fn timer(&self) -> Option<Time> {
        let (oldest, _) = self.kept.front()?;
        let is_timed = self.is_real_time && matches!(self.buffering, Buffering::Threshold { .. });
        is_timed.then(|| *oldest + self.hold)
    }

    /// The next packet to send.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        let body = self.to_send.pop_front()?;
        self.used -= body.len();
        Some(body)
    }

    pub fn control(&mut self, control: Control) {
        match control {
            Control::RealTime(is_real_time) => self.is_real_time = is_real_time,
            Control::Drain => self.release_down_to(0),
            Control::Mode(0) => self.buffering = Buffering::Streaming,
            Control::Mode(1) => {
                if !matches!(self.buffering, Buffering::Threshold { .. }) {
                    self.buffering = Buffering::THRESHOLD;
                }
            }
            Control::Mode(_) => self.buffering = Buffering::Circular,
            Control::Watermarks { high, low } => {
                if let Buffering::Threshold { .. } = self.buffering {
                    self.buffering = Buffering::Threshold { high, low };
                }
            }
        }
    }

    fn release_down_to(&mut self, bytes: usize) {
        while self.kept_bytes > bytes {
            let Some((_, body)) = self.kept.pop_front() else { return };
            self.kept_bytes -= body.len();
            self.to_send.push_back(body);
        }
    }
}
