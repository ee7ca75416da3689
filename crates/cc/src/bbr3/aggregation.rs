//! ACK aggregation: the number of bytes acknowledged in one burst, beyond those that the bandwidth explains. The window
//! must include them, or aggregated ACKs would stop the sender.
//!
//! Source: draft-ietf-ccwg-bbr-06 §5.5.9

use airpace_core::{Bytes, Rate, Time};

use crate::filter::WindowedMax;

/// Length of the window over which the maximum is taken, in rounds, once the pipe has been full. Before that, the
/// window is one round.
const ROUNDS: u64 = 10;

/// The windowed maximum of the bytes acknowledged beyond those that the bandwidth explains.
#[derive(Clone, Copy, Debug)]
pub struct Aggregation {
    interval: Time,
    delivered: Bytes,
    filter: WindowedMax<Bytes, u64>,
    long: bool,
}

impl Default for Aggregation {
    fn default() -> Aggregation {
        Aggregation { interval: Time::ZERO, delivered: Bytes::ZERO, filter: WindowedMax::new(1), long: false }
    }
}

impl Aggregation {
    /// Processes one ACK in round `round`. At most `cwnd` bytes can be acknowledged at once.
    pub fn on_ack(&mut self, now: Time, acked: Bytes, bw: Rate, cwnd: Bytes, round: u64, was_full: bool) {
        if was_full != self.long {
            self.long = was_full;
            self.filter.set_window(if was_full { ROUNDS } else { 1 });
        }
        let mut expected = bw.bytes_in(now - self.interval);
        if self.delivered <= expected {
            self.restart(now);
            expected = Bytes::ZERO;
        }
        self.delivered += acked;
        self.filter.update(round, (self.delivered - expected).min(cwnd));
    }

    /// Starts a new measuring interval, because the flow was idle.
    pub fn restart(&mut self, now: Time) {
        self.interval = now;
        self.delivered = Bytes::ZERO;
    }

    /// Bytes to add to the window.
    pub fn extra_acked(&self) -> Bytes {
        self.filter.get().unwrap_or(Bytes::ZERO)
    }
}
