//! The queueing delay at which `morc` aims.
//!
//! The text's target is 60 ms for every flow. Three things move it here: the flow's rate, queues that run dry, and
//! buffers that are too short for it.
//!
//! Source: MORC §3.1 RTTtarget

/// The rate at which the target is the text's.
///
/// Chosen: a phone's usual share of a cell; at 1 to 200 Mbit/s the target is then 80 to 17 ms.
const REFERENCE_MBPS: f64 = 10.0;

/// The shortest target.
///
/// Chosen: HARQ, scheduling and bunches of an empty LTE cell make 15 ms of delay without a queue.
const LEAST_MS: f64 = 15.0;

/// The longest target of a queue that does not run dry.
///
/// Chosen: two octaves below the reference; one packet in 100 ms is no flow whose share matters.
const MOST_MS: f64 = 80.0;

/// How much a look at an empty queue raises the target, as a part of it.
///
/// Chosen: ten looks, five round trips, double it.
const DRY_RISE: f64 = 0.1;

/// How much any other look lowers it again.
///
/// Chosen: a queue that is empty in less than a fourth of all looks is not dry. A drain of five flows would otherwise
/// count.
const DRY_FALL: f64 = 0.03;

/// The part of the buffer that the target leaves below it.
///
/// Chosen: CUBIC needs room above it in which its window can grow. With 0.8, it keeps 5 % of a link with a buffer of
/// one BDP, with 0.5 more than a third.
const FULL_PART: f64 = 0.5;

/// The target in the shortest buffer.
///
/// Chosen: a third of the least target; below it, a queue does not differ from jitter.
pub(super) const LEAST_FULL_MS: f64 = 5.0;

/// How fast the memory of a full buffer fades, per second.
///
/// Chosen: a buffer of packets holds more milliseconds when its link becomes slower. Ten seconds double it.
const FULL_FADE_PER_S: f64 = 0.1;

/// What the user may set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// The target at the reference rate.
    ///
    /// Source: MORC §3.1 RTTtarget
    pub target_ms: f64,
    /// How much shorter it is for twice the rate.
    pub octave_ms: f64,
    /// The most by which a dry queue multiplies it; 1: a dry queue does not count.
    pub dry_most: f64,
}

/// The target and what moves it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    shape: Shape,
    /// The factor because of dry queues.
    dry: f64,
    /// The queueing delay at which the buffer overflowed; infinite if it did not.
    full_ms: f64,
}

impl Target {
    /// A connection's first target.
    pub fn new(shape: Shape) -> Target {
        Target { shape, dry: 1.0, full_ms: f64::INFINITY }
    }

    /// The target of a flow that receives `mbps`.
    ///
    /// Differs: MORC §3.1 RTTtarget has no rate in it. Multiplicative steps on a signal that all flows share keep the
    /// ratio of their rates. With a lower target for more rate, the larger of two flows yields to the smaller one.
    pub fn ms(&self, mbps: f64) -> f64 {
        let octaves = libm::log2((mbps / REFERENCE_MBPS).max(1e-6));
        let most_ms = MOST_MS.max(self.shape.target_ms);
        let of_rate = self.shape.target_ms - self.shape.octave_ms * octaves;
        let of_rate = of_rate.clamp(LEAST_MS.min(self.shape.target_ms), most_ms);
        (self.dry * of_rate).min((FULL_PART * self.full_ms).max(LEAST_FULL_MS))
    }

    /// Takes in whether the queue was empty at a look.
    ///
    /// Differs: MORC §3.1 RTTtarget is fixed. A link that changes faster than a round trip empties any fixed queue,
    /// and what it could have carried is lost.
    pub fn look(&mut self, is_empty: bool) {
        let change = if is_empty { DRY_RISE } else { -DRY_FALL };
        self.dry = (self.dry + change).clamp(1.0, self.shape.dry_most.max(1.0));
    }

    /// The buffer overflowed at this queueing delay.
    ///
    /// Differs: MORC §3.1 pL makes losses cost utility, but the text does not say what a sender does whose buffer is
    /// shorter than its target: it would overflow it for good.
    pub fn overflowed(&mut self, queue_ms: f64) {
        self.full_ms = queue_ms.max(1.0);
    }

    /// Time passes, and a queue of `queue_ms` did not overflow.
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
