//! The trials that are left out because their outcome is known.
//!
//! Source: MORC §3.1 Avoidance

use crate::pcc::climb::Open;
use crate::pcc::interval::Report;

/// The bounds in the conditions under which a trial is left out. The paper gives the conditions without numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Avoidance {
    /// Maximum relative excess over RTTmin at which a round-trip time counts as RTTmin, unless it is within `empty_ms`.
    pub empty_part: f64,
    /// Maximum absolute excess over RTTmin, in milliseconds.
    pub empty_ms: f64,
    /// Ratio of received to sent rate below which queues are filling.
    pub filling: f64,
    /// The same ratio for slow start. It is lower, because slow start exceeds the capacity in order to find the
    /// capacity.
    pub saturated: f64,
    /// A round-trip time is significantly above the target if it exceeds the target by more than this many times the
    /// difference between target and RTTmin.
    pub full_targets: f64,
    /// Loss rate above which a short round-trip time is attributed to a short buffer that overflows, not to an empty
    /// queue.
    pub overflowing_loss: f64,
}

/// Chosen: a twentieth of the round trip, or 2 ms, is jitter of an empty cell. The paper's example, 30 received of 100
/// sent Mbit/s, is far below 0.9, and no measurement error over a round trip is that large. A full queue is twice as
/// long as the target.
impl Default for Avoidance {
    fn default() -> Avoidance {
        Avoidance {
            empty_part: 0.05,
            empty_ms: 2.0,
            filling: 0.9,
            saturated: 0.75,
            full_targets: 1.0,
            overflowing_loss: 0.05,
        }
    }
}

/// Ratio of the received to the sent rate of an interval. The received rate is computed from the spacing of ACKs, so
/// that an outage within the interval does not count. The result is 1 if the interval has no received rate.
pub fn arrived(report: &Report) -> f64 {
    report.received_mbps.map_or(1.0, |received| (received / report.sent_mbps.max(1e-9)).min(1.0))
}

/// The directions (higher or lower rate) in which a trial is still useful after an interval. `arrived_before` is the
/// result of [`arrived`] for the previous interval.
pub fn open(
    bounds: &Avoidance,
    report: &Report,
    arrived_before: f64,
    rtt_min_ms: f64,
    target_ms: f64,
) -> Open {
    if report.is_void() {
        return Open::BOTH; // no information about queues
    }
    let rtt_ms = report.rtt_s * 1e3;
    let overflows = report.lost > 1 && report.loss > bounds.overflowing_loss;
    let is_short = rtt_ms <= rtt_min_ms + bounds.empty_ms.max(bounds.empty_part * rtt_min_ms);
    let is_empty = is_short && !overflows;
    let arrived = arrived(report);
    let lasting = arrived.max(arrived_before);
    let is_full = rtt_ms > rtt_min_ms + target_ms * (1.0 + bounds.full_targets);
    let higher = !is_full && (is_empty || lasting >= bounds.filling);
    let fits_mbps = (!is_empty && lasting < bounds.filling).then_some(lasting * report.sent_mbps);
    let doubling = is_empty || arrived > bounds.saturated;
    Open { lower: !(higher && is_empty), higher, doubling, fits_mbps }
}
