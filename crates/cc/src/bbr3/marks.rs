//! Explicit congestion notification with shallow thresholds: the share of packets that a queue marked.
//!
//! The draft does not cover ECN (its §3.7). Google's program uses it if the network is known to mark at shallow queues.
//!
//! Source: google/bbr v3 net/ipv4/tcp_bbr.c
//!
//! Differs: ECN is used at any round-trip time. The program's default is limited to 5 ms, and no mobile path has an RTT
//! that short. The program's early probe after the last mark (`ecn_reprobe_gain`) is not implemented.

use airpace_core::Bytes;

use super::sample::Sample;

/// Weight of the newest round in the average of the share of marked packets.
const ALPHA_GAIN: f64 = 1.0 / 16.0;
/// Relative reduction of the data in flight by a round in which every packet is marked.
const FACTOR: f64 = 1.0 / 3.0;
/// Marked share of the delivered packets above which there are too many marks.
const THRESHOLD: f64 = 0.5;
/// Number of rounds with too many marks after which Startup ends.
const STARTUP_ROUNDS: u8 = 2;

/// The moving average of the share of marked packets.
#[derive(Clone, Copy, Debug)]
pub struct Marks {
    alpha: f64,
    seen: u64,
    seen_before: u64,
    delivered_before: Bytes,
    startup_rounds: u8,
}

/// A new flow assumes that all packets are marked, so that it reacts quickly if the path is already congested.
impl Default for Marks {
    fn default() -> Marks {
        Marks { alpha: 1.0, seen: 0, seen_before: 0, delivered_before: Bytes::ZERO, startup_rounds: 0 }
    }
}

impl Marks {
    /// Records `ce` more packets that were reported as marked.
    pub fn on_ack(&mut self, ce: u64) {
        self.seen += ce;
    }

    /// Ends a round. `delivered` counts over the connection's life.
    pub fn on_round(&mut self, delivered: Bytes, mss: Bytes) {
        let ratio = ratio(self.seen - self.seen_before, delivered - self.delivered_before, mss);
        self.alpha += ALPHA_GAIN * (ratio - self.alpha);
        self.seen_before = self.seen;
        self.delivered_before = delivered;
        self.startup_rounds = if ratio >= THRESHOLD { self.startup_rounds.saturating_add(1) } else { 0 };
    }

    /// Whether Startup must end because of too many marks.
    pub fn ends_startup(&self) -> bool {
        self.startup_rounds >= STARTUP_ROUNDS
    }

    /// Whether the share of marked packets shows that the flow had too much data in flight.
    pub fn are_too_many(&self, sample: &Sample, mss: Bytes) -> bool {
        ratio(sample.ce, sample.delivered, mss) > THRESHOLD
    }

    /// Factor of the data in flight that remains after a round with marks.
    pub fn kept(&self) -> f64 {
        1.0 - self.alpha * FACTOR
    }

    /// The average share of marked packets.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }
}

fn ratio(ce: u64, delivered: Bytes, mss: Bytes) -> f64 {
    let packets = delivered.0 as f64 / mss.0 as f64;
    if packets > 0.0 { (ce as f64 / packets).min(1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alpha_follows_the_marked_part_by_a_sixteenth_a_round() {
        let mut marks = Marks::default();
        let mss = Bytes(1_500);
        for round in 1..=100 {
            marks.on_ack(10);
            marks.on_round(Bytes(round * 40 * 1_500), mss);
            assert!(!marks.ends_startup(), "a quarter is not too much");
        }
        assert!((marks.alpha() - 0.25).abs() < 0.01, "{}", marks.alpha());
        assert!((marks.kept() - (1.0 - 0.25 / 3.0)).abs() < 0.01);
        for round in 101..=102 {
            marks.on_ack(30);
            marks.on_round(Bytes(round * 40 * 1_500), mss);
        }
        assert!(marks.ends_startup(), "three quarters in two rounds are too much");
    }
}
