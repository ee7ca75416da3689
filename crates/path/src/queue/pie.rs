//! Proportional integral controller enhanced (PIE): arriving packets are dropped at random, with a probability that
//! depends on the queueing delay and on its change.
//!
//! An ECN-capable packet is marked instead of dropped while the probability is low.

use std::time::Duration;

use airpace_core::{Bytes, Packet, Rng, Streams, Time};

use super::fifo::Fifo;
use crate::config_error::ConfigError;

/// Interval between updates of the drop probability.
///
/// Source: RFC 8033 §4.2
const UPDATE_EVERY: Duration = Duration::from_millis(15);

/// Increase of the probability per update: `ALPHA` for each second of delay above the reference, `BETA` for each second
/// of growth of the delay since the previous update.
///
/// Source: RFC 8033 §4.2
const ALPHA: f64 = 0.125;
const BETA: f64 = 1.25;

/// Divisors for changes of a small drop probability, as (limit, divisor). If the probability is below the limit, its
/// change is divided by the divisor.
///
/// Source: RFC 8033 §4.2
const DIVIDED_BELOW: [(f64, f64); 6] =
    [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)];

/// Factor by which the drop probability is multiplied in an update without a queue.
///
/// Source: RFC 8033 §4.2
const DECAY: f64 = 0.98;

/// Minimum drop probability from which on the probability rises by at most [`MAX_RISE`] per update.
///
/// Source: RFC 8033 §5.5
const HIGH: f64 = 0.1;
const MAX_RISE: f64 = 0.02;

/// Maximum probability at which packets are marked. At higher probabilities, packets are dropped.
///
/// Source: RFC 8033 §5.1
const MAX_MARKED: f64 = 0.1;

/// Drop probability below which no packet is dropped while the queueing delay is below half of the reference.
///
/// Source: RFC 8033 §4.1
const LOW: f64 = 0.2;

/// Maximum size of a queue that drops no packets (bytes): two packets.
///
/// Source: RFC 8033 §4.1
/// Chosen: packets of 1500 bytes, the usual size on a wire.
const SHORT: Bytes = Bytes(3000);

/// The state of the controller of one queue.
///
/// Source: RFC 8033 §4
/// Chosen: the delay at an update is the waiting time of the packet at the head (§4.3 permits this). This value is
/// correct even if the rate changes, as over a trace, and needs no estimate of the rate. The controller is always
/// active, and drops are independent of each other (§5.3 and §5.4 are options).
/// Differs: mahimahi follows an earlier draft: mahimahi estimates the rate, updates the probability every 30 ms, and
/// changes the probability more per update.
#[derive(Clone, Debug)]
pub(super) struct Pie {
    qdelay_ref: Duration,
    max_burst: Duration,
    probability: f64,
    /// Remaining time of a burst in which no packet is dropped.
    burst_allowance: Duration,
    /// The queueing delay at the latest update.
    delay: Duration,
    next_update: Time,
    rng: Rng,
}

impl Pie {
    /// A controller in its initial state. The random numbers are those of seed 0 until [`Pie::begin`] is called.
    ///
    /// # Errors
    /// The reference delay is zero; the error names the key.
    pub fn new(qdelay_ref: Duration, max_burst: Duration) -> Result<Pie, ConfigError> {
        if qdelay_ref.is_zero() {
            return Err(ConfigError::new(
                "qdelay_ref_ms",
                "is 0; give the delay that may persist, 15 by default",
            ));
        }
        Ok(Pie {
            qdelay_ref,
            max_burst,
            probability: 0.0,
            burst_allowance: max_burst,
            delay: Duration::ZERO,
            next_update: Time::ZERO + UPDATE_EVERY,
            rng: Streams::new(0).stream("pie"),
        })
    }

    /// Sets the random numbers of a run.
    pub fn begin(&mut self, rng: Rng) {
        self.rng = rng;
    }

    /// Performs the updates that are due by `now`. `fifo` must not have changed since the last call.
    pub fn update(&mut self, now: Time, fifo: &Fifo) {
        while self.next_update <= now {
            let at = self.next_update;
            let arrived = fifo.front().map(|head| head.arrived);
            self.update_with(arrived.map_or(Duration::ZERO, |arrived| at - arrived));
            self.next_update += UPDATE_EVERY;
            if arrived.is_none() && self.is_at_rest() {
                // Further updates have no effect until a packet arrives.
                let periods = (now - at).as_nanos() / UPDATE_EVERY.as_nanos();
                let periods = u32::try_from(periods).unwrap_or(u32::MAX);
                self.next_update = self.next_update.max(at + UPDATE_EVERY.saturating_mul(periods));
            }
        }
    }

    /// Whether an update without a queue would have no effect.
    fn is_at_rest(&self) -> bool {
        self.probability == 0.0 && self.delay.is_zero() && self.burst_allowance == self.max_burst
    }

    /// Source: RFC 8033 §4.2, §4.4
    fn update_with(&mut self, delay: Duration) {
        let seconds = |delay: Duration| delay.as_secs_f64();
        let mut change = ALPHA * (seconds(delay) - seconds(self.qdelay_ref))
            + BETA * (seconds(delay) - seconds(self.delay));
        if let Some((_, by)) = DIVIDED_BELOW.iter().find(|(limit, _)| self.probability < *limit) {
            change /= by;
        }
        if self.probability >= HIGH {
            change = change.min(MAX_RISE);
        }
        self.probability += change;
        if delay.is_zero() && self.delay.is_zero() {
            self.probability *= DECAY;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.burst_allowance = self.burst_allowance.saturating_sub(UPDATE_EVERY);
        let is_short = |delay: Duration| delay < self.qdelay_ref / 2;
        if self.probability == 0.0 && is_short(delay) && is_short(self.delay) {
            self.burst_allowance = self.max_burst;
        }
        self.delay = delay;
    }

    /// Whether an arriving packet may enter the queue; the packet may be marked here. [`Pie::update`] must have been
    /// called.
    ///
    /// Source: RFC 8033 §4.1, §4.4, §5.1
    pub fn admits(&mut self, packet: &mut Packet, fifo: &Fifo) -> bool {
        let is_calm = self.delay < self.qdelay_ref / 2 && self.probability < LOW;
        if !self.burst_allowance.is_zero() || is_calm || fifo.bytes() <= SHORT {
            return true;
        }
        !self.rng.chance(self.probability) || (self.probability <= MAX_MARKED && packet.mark())
    }
}

#[cfg(test)]
mod tests {
    use airpace_core::{DeviceId, Ecn, FlowId};

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn pie() -> Pie {
        Pie::new(15 * MS, 150 * MS).expect("a legal reference")
    }

    fn packet(number: u64) -> Packet {
        let (flow, device, sent) = (FlowId(0), DeviceId(0), Time::ZERO);
        Packet { flow, device, number, bytes: Bytes(1500), sent, ecn: Ecn::NotEct }
    }

    #[test]
    fn the_probability_follows_the_delay_and_its_trend() {
        let mut pie = pie();
        pie.update_with(35 * MS);
        let first = (0.125 * 0.020 + 1.25 * 0.035) / 2048.0;
        assert!((pie.probability - first).abs() < 1e-15, "{} after a first update", pie.probability);
        pie.probability = 0.05;
        pie.update_with(30 * MS);
        let second = 0.05 + (0.125 * 0.015 - 1.25 * 0.005) / 2.0;
        assert!((pie.probability - second).abs() < 1e-12, "{} as the delay falls", pie.probability);
        pie.probability = 0.3;
        pie.update_with(530 * MS);
        assert!(
            (pie.probability - 0.32).abs() < 1e-12,
            "a high probability rises slowly: {}",
            pie.probability
        );
        pie.delay = Duration::ZERO;
        pie.update_with(Duration::ZERO);
        let decayed = (0.32 - 0.125 * 0.015) * 0.98;
        assert!((pie.probability - decayed).abs() < 1e-12, "{} without a queue", pie.probability);
    }

    #[test]
    fn a_burst_is_allowed_again_when_the_queue_has_gone() {
        let mut pie = pie();
        let mut updates = 0;
        while !pie.burst_allowance.is_zero() {
            pie.update_with(40 * MS);
            updates += 1;
        }
        assert_eq!(updates, 10, "150 ms are ten updates");
        while pie.burst_allowance.is_zero() {
            pie.update_with(Duration::ZERO);
        }
        assert_eq!((pie.burst_allowance, pie.probability), (150 * MS, 0.0));
    }

    #[test]
    fn updates_that_are_made_late_are_those_that_were_due() {
        let mut rng = Streams::new(5).stream("late");
        let (mut often, mut seldom) = (pie(), pie());
        let mut fifo = Fifo::new(Bytes::ZERO);
        let mut now = Time::ZERO;
        for number in 0..4000 {
            // The time until the next arrival or departure. In some cases, the queue is empty for hours.
            let gap_us = if fifo.len() == 0 && rng.chance(0.05) { 20_000_000_000 } else { rng.below(40_000) };
            let later = now + Duration::from_micros(gap_us);
            while gap_us < 1_000_000 && now < later {
                now = later.min(now + 3 * MS);
                often.update(now, &fifo);
            }
            now = later;
            often.update(now, &fifo);
            seldom.update(now, &fifo);
            let state = |pie: &Pie| (pie.probability, pie.burst_allowance, pie.delay, pie.next_update);
            assert_eq!(state(&often), state(&seldom), "at {now}");
            assert!(seldom.next_update > now && seldom.next_update <= now + UPDATE_EVERY);
            assert_eq!(seldom.next_update.as_nanos() % 15_000_000, 0, "updates keep their beat");
            if rng.chance(0.52) {
                fifo.push(now, packet(number));
            } else {
                fifo.pop();
            }
        }
        assert!(seldom.probability > 0.0 || seldom.burst_allowance < 150 * MS, "the queue was long at times");
    }
}
