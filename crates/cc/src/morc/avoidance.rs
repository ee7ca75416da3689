//! Which trials are left out because their outcome is known.
//!
//! Source: MORC §3.1 Avoidance

use crate::pcc::climb::Open;
use crate::pcc::interval::Report;

/// The bounds; the paper names the conditions without numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Avoidance {
    /// A round-trip time within this part of RTTmin, or within `empty_ms` of it, is RTTmin.
    pub empty_part: f64,
    /// The same in milliseconds.
    pub empty_ms: f64,
    /// Received over sent below which queues are filling.
    pub filling: f64,
    /// The same for slow start, which goes past the capacity to find it.
    pub saturated: f64,
    /// A round-trip time beyond the target by so many times its distance from RTTmin is significantly higher.
    pub full_targets: f64,
    /// Loss above which a short round-trip time means a short queue that overflows, not an empty one.
    pub overflowing_loss: f64,
}

/// Chosen: a twentieth of the round trip or 2 ms are jitter of an empty cell; the paper's 30 of 100 Mbit/s are far
/// below 0.9, which no error of measurement over a round trip reaches; twice the queue that is wanted.
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

/// What arrived of an interval, as a part of what was sent: by the spacing of ACKs, so that an outage in it does not
/// count. 1 where it cannot be told.
pub fn arrived(report: &Report) -> f64 {
    report.received_mbps.map_or(1.0, |received| (received / report.sent_mbps.max(1e-9)).min(1.0))
}

/// The directions that an interval leaves open; of the one before, `arrived_before` arrived.
pub fn open(
    bounds: &Avoidance,
    report: &Report,
    arrived_before: f64,
    rtt_min_ms: f64,
    target_ms: f64,
) -> Open {
    if report.is_void() {
        return Open::BOTH; // it says nothing of queues
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
