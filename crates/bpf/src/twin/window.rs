//! The window that a device advertises to a sender without BISCAY, as the kernel computes it.

use std::time::Duration;

use airpace_core::{Bytes, Rate, Time};

use super::{KernelTuning, NONE, nanos};

mod sys;

/// `struct window` of `window.h`, and BISCAY's options.
pub struct Window {
    words: Box<[u64]>,
    tuning: KernelTuning,
}

impl Window {
    /// Creates the state of a new download.
    pub fn new(tuning: KernelTuning) -> Window {
        Window { words: sys::window(), tuning }
    }

    /// Processes the arrival of data that echoes the time stamp of an ACK. The ACK was sent one round trip (`rtt`) ago.
    pub fn on_echo(&mut self, now: Time, rtt: Duration) {
        sys::echo(&mut self.words, &self.tuning, now.as_nanos(), nanos(rtt));
    }

    /// Returns the window, in bytes of packets of size `mss`, for the share `part` (numerator and denominator) of the
    /// device's bandwidth `sampled`. `None`: the sender is not limited.
    pub fn get(&mut self, now: Time, mss: Bytes, sampled: Option<Rate>, part: [u64; 2]) -> Option<Bytes> {
        let sampled = sampled.map_or(NONE, Rate::as_bps);
        let window = sys::window_of(&mut self.words, &self.tuning, now.as_nanos(), mss.0, sampled, part);
        (window != NONE).then_some(Bytes(window))
    }
}
