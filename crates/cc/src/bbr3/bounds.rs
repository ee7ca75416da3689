//! Bounds of the sending rate and of the data in flight: a long-term bound found by probing, and short-term bounds. Any
//! congestion lowers the short-term bounds until the next probe.
//!
//! Source: draft-ietf-ccwg-bbr-06 §5.5.10

use airpace_core::{Bytes, Rate};

use super::signals::Signals;

/// Minimum factor of a bound that remains after one round with losses.
///
/// Source: draft-ietf-ccwg-bbr-06 §2.8 (`BBR.Beta`)
pub const BETA: f64 = 0.7;

/// Fraction of the long-term bound that is left to other flows.
///
/// Source: draft-ietf-ccwg-bbr-06 §2.8 (`BBR.Headroom`)
const HEADROOM: f64 = 0.15;

/// Maximum number of doublings of a probe's growth.
///
/// Source: draft-ietf-ccwg-bbr-06 §5.3.3.9
const MAX_DOUBLINGS: u32 = 30;

/// The bounds. `None` means that there is no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bounds {
    /// Maximum safe bandwidth until the next probe.
    pub bw_shortterm: Option<Rate>,
    /// Maximum safe amount in flight until the next probe.
    pub inflight_shortterm: Option<Bytes>,
    /// Maximum amount in flight that probing found to be safe.
    pub inflight_longterm: Option<Bytes>,
}

impl Bounds {
    /// Processes a round outside of a probe in which packets were lost. The bounds fall towards the data delivered in
    /// that round, but at most to [`BETA`] times their value.
    ///
    /// Source: draft-ietf-ccwg-bbr-06 §5.5.10.3 (`InitLowerBounds`, `LossLowerBounds`)
    pub fn on_lossy_round(&mut self, signals: &Signals, max_bw: Rate, cwnd: Bytes) {
        let bw = self.bw_shortterm.unwrap_or(max_bw);
        let inflight = self.inflight_shortterm.unwrap_or(cwnd);
        self.bw_shortterm = Some(signals.bw_latest().max(bw.scaled(BETA)));
        self.inflight_shortterm = Some(signals.inflight_latest().max(inflight.scaled(BETA)));
    }

    /// Processes a round outside of a probe in which packets were marked. The bound of the data in flight is multiplied
    /// by `kept`.
    ///
    /// Source: google/bbr v3 (`bbr_ecn_lower_bounds`)
    pub fn on_marked_round(&mut self, kept: f64, cwnd: Bytes) {
        self.inflight_shortterm = Some(self.inflight_shortterm.unwrap_or(cwnd).scaled(kept));
    }

    /// Removes the short-term bounds: a probe starts, or the reason for the bounds has ended.
    pub fn reset_shortterm(&mut self) {
        self.bw_shortterm = None;
        self.inflight_shortterm = None;
    }

    /// Maximum amount in flight that leaves headroom for other flows; at least `floor`.
    ///
    /// Source: draft-ietf-ccwg-bbr-06 §5.3.3.9 (`InflightWithHeadroom`)
    pub fn with_headroom(&self, mss: Bytes, floor: Bytes) -> Option<Bytes> {
        let longterm = self.inflight_longterm?;
        Some((longterm - mss.max(longterm.scaled(HEADROOM))).max(floor))
    }

    /// Takes the higher value of each bound, because a recovery without real losses must not lower the bounds.
    ///
    /// Source: draft-ietf-ccwg-bbr-06 §5.5.11.2
    pub fn loosen(&mut self, other: &Bounds) {
        self.bw_shortterm = self.bw_shortterm.zip(other.bw_shortterm).map(|(a, b)| a.max(b));
        self.inflight_shortterm =
            self.inflight_shortterm.zip(other.inflight_shortterm).map(|(a, b)| a.max(b));
        self.inflight_longterm = self.inflight_longterm.zip(other.inflight_longterm).map(|(a, b)| a.max(b));
    }
}

/// Growth of the long-term bound in a probe: 1, 2, 4, 8, … packets in successive rounds, spread over the ACKs of each
/// round.
///
/// Source: draft-ietf-ccwg-bbr-06 §5.3.3.9 (`RaiseInflightLongtermSlope`, `ProbeInflightLongtermUpward`)
#[derive(Clone, Copy, Debug, Default)]
pub struct Growth {
    doublings: u32,
    acked: Bytes,
    /// Bytes to be acknowledged per packet of growth; `None` outside a probe.
    acked_per_packet: Option<Bytes>,
}

impl Growth {
    /// Resets the growth before a probe.
    pub fn prepare(&mut self) {
        *self = Growth { acked_per_packet: self.acked_per_packet, ..Growth::default() };
    }

    /// Ends a probe.
    pub fn stop(&mut self) {
        self.acked_per_packet = None;
    }

    /// Doubles the growth from now on.
    pub fn raise(&mut self, cwnd: Bytes, mss: Bytes) {
        self.acked_per_packet = Some(Bytes(cwnd.0 >> self.doublings).max(mss));
        self.doublings = (self.doublings + 1).min(MAX_DOUBLINGS);
    }

    /// Processes `newly_acked` bytes. Returns the number of packets by which the bound grows.
    pub fn on_acked(&mut self, newly_acked: Bytes) -> u64 {
        let Some(per_packet) = self.acked_per_packet else { return 0 };
        self.acked += newly_acked;
        let packets = self.acked.0 / per_packet.0;
        self.acked -= Bytes(packets * per_packet.0);
        packets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_doubles_every_round_and_never_exceeds_what_is_acknowledged() {
        let (mss, cwnd) = (Bytes(1_500), Bytes(96_000));
        let mut growth = Growth::default();
        growth.prepare();
        let mut grown = vec![];
        for _ in 0..9 {
            growth.raise(cwnd, mss);
            grown.push((0..64).map(|_| growth.on_acked(mss)).sum::<u64>());
        }
        assert_eq!(grown, [1, 2, 4, 8, 16, 32, 64, 64, 64]);
        growth.stop();
        assert_eq!(growth.on_acked(cwnd), 0, "the bound grows only in a probe");
    }

    #[test]
    fn headroom_is_fifteen_percent_or_a_packet() {
        let bounds = |longterm| Bounds { inflight_longterm: Some(Bytes(longterm)), ..Bounds::default() };
        let left = |longterm| bounds(longterm).with_headroom(Bytes(1_500), Bytes(6_000));
        assert_eq!(left(150_000), Some(Bytes(127_500)));
        assert_eq!(left(9_000), Some(Bytes(7_500)));
        assert_eq!(left(6_000), Some(Bytes(6_000)), "four packets are always allowed");
        assert_eq!(Bounds::default().with_headroom(Bytes(1_500), Bytes(6_000)), None);
    }

    #[test]
    fn an_infinite_bound_stays_infinite_after_a_recovery_for_nothing() {
        let before = Bounds { inflight_longterm: Some(Bytes(90_000)), ..Bounds::default() };
        let mut after = Bounds {
            bw_shortterm: Some(Rate::from_mbps(3.0)),
            inflight_shortterm: Some(Bytes(30_000)),
            inflight_longterm: Some(Bytes(60_000)),
        };
        after.loosen(&before);
        assert_eq!(after, before);
    }
}
