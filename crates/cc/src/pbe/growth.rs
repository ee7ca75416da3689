//! Detects that the linear start has stalled. If the receive rate did not rise for one RTprop while the one-way delay
//! rose all the time, a link narrower than the cell is full.
//!
//! Source: PBE-CC §4.1

use std::time::Duration;

use airpace_core::{Bytes, Rate, Time};

/// Number of parts into which RTprop is divided. The delay counts as rising if the minimum delay of each part exceeds
/// the minimum delay of the previous part.
///
/// Chosen: four. A single retransmission delays the packets of one or two parts; it does not make the delay rise from
/// each part to the next.
const PARTS: usize = 4;

/// Minimum factor by which the receive rate must grow per RTprop. If it grows less, the rate has stopped rising.
///
/// Chosen: the linear start lasts three RTprop. On a path without a bottleneck, the rate grows at least by the factor
/// 1.2 from one RTprop to the next.
const RISE: f64 = 1.05;

/// Observes a linear start at the receiver.
#[derive(Clone, Copy, Debug, Default)]
pub struct Growth {
    began: Option<Time>,
    bytes: Bytes,
    least: [Option<Duration>; PARTS],
    previous: Option<Rate>,
}

impl Growth {
    /// Processes a packet of the start. Returns whether the start has stalled. A rise of the delay by at most `no_queue`
    /// is no queue: jitter and one retransmission can cause it at a constant delay. Within a round trip of some
    /// milliseconds, one retransmission delays every packet more than the previous one.
    pub fn on_packet(
        &mut self,
        now: Time,
        bytes: Bytes,
        excess: Duration,
        rtprop: Duration,
        no_queue: Duration,
    ) -> bool {
        let began = *self.began.get_or_insert(now);
        if now - began < rtprop {
            let part = ((now - began).as_nanos() * PARTS as u128 / rtprop.as_nanos().max(1)) as usize;
            let least = &mut self.least[part.min(PARTS - 1)];
            *least = Some(least.map_or(excess, |least| least.min(excess)));
            self.bytes += bytes;
            return false;
        }
        let rate = Rate::from_bytes_per(self.bytes, rtprop);
        let stalled =
            self.previous.is_some_and(|previous| rate < previous.scaled(RISE)) && self.delay_rose(no_queue);
        *self = Growth { began: Some(now), bytes, previous: Some(rate), ..Growth::default() };
        self.least[0] = Some(excess);
        stalled
    }

    fn delay_rose(&self, no_queue: Duration) -> bool {
        let [Some(first), .., Some(last)] = self.least else { return false };
        self.least.windows(2).all(|pair| pair[0].is_some() && pair[0] < pair[1]) && last > first + no_queue
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pbe::harq::Timing;

    const RTPROP: Duration = Duration::from_millis(40);

    /// Sends `packets_per_ms(ms)` packets for 120 ms with the delay `excess(ms)`. Returns whether the start stalls.
    fn stalls(packets_per_ms: impl Fn(u64) -> u64, excess: impl Fn(u64) -> u64) -> bool {
        let mut growth = Growth::default();
        (0..130).any(|ms| {
            (0..packets_per_ms(ms)).any(|_| {
                growth.on_packet(
                    Time::from_millis(ms),
                    Bytes(1500),
                    Duration::from_millis(excess(ms)),
                    RTPROP,
                    Timing::LTE.one_retransmission(),
                )
            })
        })
    }

    #[test]
    fn a_start_that_meets_a_bottleneck_stalls_and_one_that_grows_does_not() {
        assert!(stalls(|_| 2, |ms| ms), "a constant rate with a growing delay");
        assert!(!stalls(|ms| 1 + ms / 20, |ms| ms), "the rate still grows");
        assert!(!stalls(|_| 2, |ms| ms % 9), "delays go up and down with retransmissions");
        assert!(!stalls(|_| 2, |ms| ms / 4), "no more delay than one retransmission makes");
        assert!(!stalls(|_| 2, |_| 0), "no delay at all");
    }
}
