//! The target of the queueing delay.
//!
//! The paper's target is 60 ms for every flow. Here, the target also depends on three conditions: the flow's rate,
//! queues that run dry (empty), and buffers that are too short for the target.
//!
//! Source: MORC §3.1 RTTtarget

/// The rate (Mbit/s) at which the target equals the target of the paper.
///
/// Chosen: the usual share of a phone in a cell; at 1 to 200 Mbit/s the target is then 80 to 17 ms.
const REFERENCE_MBPS: f64 = 10.0;

/// Minimum target (ms).
///
/// Chosen: HARQ, scheduling and ACK aggregation in an empty LTE cell cause 15 ms of delay without a queue.
const MIN_MS: f64 = 15.0;

/// Maximum target (ms) of a flow whose queue does not run empty.
///
/// Chosen: the target at a quarter of the reference rate. At much lower rates, such as one packet in 100 ms, the flow's
/// share of a queue does not matter.
const MAX_MS: f64 = 80.0;

/// Relative increase of the target's factor for dry queues, per sample with an empty queue. A queue is dry if it often
/// runs empty.
///
/// Chosen: ten samples (five round trips) double the factor.
const DRY_RISE: f64 = 0.1;

/// Relative decrease of the target's factor for dry queues, per sample with a queue that is not empty.
///
/// Chosen: a queue that is empty in less than a fourth of the samples does not count as dry. Otherwise a queue that
/// five flows drain would count as dry.
const DRY_FALL: f64 = 0.03;

/// Maximum ratio of the target to the queueing delay at which the buffer overflowed.
///
/// Chosen: CUBIC needs space above the target in which its window can grow. On a link with a buffer of one BDP, CUBIC
/// keeps 5 % of the capacity with a ratio of 0.8, and more than a third with 0.5.
const FULL_PART: f64 = 0.5;

/// Minimum target in a short buffer (ms).
///
/// Chosen: a third of the minimum target. A queue with a lower delay cannot be distinguished from jitter.
pub(super) const MIN_FULL_MS: f64 = 5.0;

/// Relative increase per second of the stored overflow delay.
///
/// Chosen: a buffer of a fixed number of packets has a longer delay when its link becomes slower. Ten seconds double
/// the value.
const FULL_FADE_PER_S: f64 = 0.1;

/// Options that the user may set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// The target at the reference rate.
    ///
    /// Source: MORC §3.1 RTTtarget
    pub target_ms: f64,
    /// Decrease of the target per doubling of the rate (ms).
    pub octave_ms: f64,
    /// Maximum factor by which a dry queue raises the target; 1: a dry queue has no effect.
    pub dry_most: f64,
}

/// The target, and the state on which the target depends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    shape: Shape,
    /// The factor due to dry queues.
    dry: f64,
    /// The queueing delay at which the buffer overflowed; infinite before an overflow.
    full_ms: f64,
}

impl Target {
    /// The initial target of a connection.
    pub fn new(shape: Shape) -> Target {
        Target { shape, dry: 1.0, full_ms: f64::INFINITY }
    }

    /// The target of a flow that receives `mbps`.
    ///
    /// Differs: MORC §3.1 RTTtarget does not depend on the rate. If all flows change their rates by the same factor
    /// because of the same delay, the ratio of their rates never changes. If the target is lower at a higher rate, the
    /// larger of two flows yields to the smaller one.
    pub fn ms(&self, mbps: f64) -> f64 {
        let octaves = libm::log2((mbps / REFERENCE_MBPS).max(1e-6));
        let most_ms = MAX_MS.max(self.shape.target_ms);
        let of_rate = self.shape.target_ms - self.shape.octave_ms * octaves;
        let of_rate = of_rate.clamp(MIN_MS.min(self.shape.target_ms), most_ms);
        (self.dry * of_rate).min((FULL_PART * self.full_ms).max(MIN_FULL_MS))
    }

    /// Adapts the factor for dry queues to one sample of the queue.
    ///
    /// Differs: MORC §3.1 RTTtarget is fixed. A link that changes faster than a round trip empties any fixed queue, and
    /// its capacity is lost while the queue is empty.
    pub fn look(&mut self, is_empty: bool) {
        let change = if is_empty { DRY_RISE } else { -DRY_FALL };
        self.dry = (self.dry + change).clamp(1.0, self.shape.dry_most.max(1.0));
    }

    /// Records that the buffer overflowed at the queueing delay `queue_ms`.
    ///
    /// Differs: MORC §3.1 pL makes losses cost utility, but the paper does not cover a buffer shorter than the target:
    /// the sender would overflow it permanently.
    pub fn overflowed(&mut self, queue_ms: f64) {
        self.full_ms = queue_ms.max(1.0);
    }

    /// Records that a queue with the delay `queue_ms` did not overflow for `since_s` seconds.
    pub fn held(&mut self, since_s: f64, queue_ms: f64) {
        self.full_ms = (self.full_ms * (1.0 + FULL_FADE_PER_S * since_s)).max(queue_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> Target {
        Target::new(Shape { target_ms: 60.0, octave_ms: 10.0, dry_most: 2.0 })
    }

    #[test]
    fn an_octave_of_rate_lowers_it_within_bounds() {
        let of = |mbps| target().ms(mbps);
        assert_eq!((of(10.0), of(20.0), of(40.0)), (60.0, 50.0, 40.0));
        assert_eq!((of(0.0), of(1.0)), (80.0, 80.0));
        assert_eq!((of(1e4), of(1e9)), (15.0, 15.0));
    }

    #[test]
    fn a_dry_queue_raises_it_and_a_lasting_one_lowers_it_again() {
        let mut dry = target();
        for _ in 0..20 {
            dry.look(true);
        }
        assert_eq!(dry.ms(10.0), 120.0, "twice the target at most");
        for _ in 0..40 {
            dry.look(false);
        }
        assert_eq!(dry.ms(10.0), 60.0);
    }

    #[test]
    fn half_of_a_short_buffer_is_the_target_until_more_is_seen_to_fit() {
        let mut short = target();
        short.overflowed(40.0);
        assert_eq!(short.ms(10.0), 20.0);
        short.overflowed(2.0);
        assert_eq!(short.ms(10.0), 5.0);
        short.held(0.1, 100.0);
        assert_eq!(short.ms(10.0), 50.0, "a queue of 100 ms fitted");
        short.held(1000.0, 0.0);
        assert_eq!(short.ms(10.0), 60.0, "and in time it is forgotten");
    }
}
