//! Distribution of a flow's delays. A small file can declare billions of packets, so memory must not grow with the number
//! of packets.

use airpace_run::metrics::{parts, significant};

/// Number of delays that are buffered individually before equal ones are merged.
const RECENT: usize = 1 << 20;

/// Delays with their counts. Memory grows with the number of distinct delays. Each distinct delay occupies bytes in the
/// file, so a small file cannot cause a large allocation.
#[derive(Default)]
pub(super) struct Delays {
    /// Buffered delays as [`key`]s, which are sorted in half of the time of `f32`.
    recent: Vec<i32>,
    /// Counts by delay, in ascending order.
    counted: Vec<(i32, u64)>,
}

impl Delays {
    pub(super) fn push(&mut self, delay_ms: f32) {
        if self.recent.len() == RECENT {
            self.count();
        }
        self.recent.push(key(delay_ms));
    }

    /// Merges equal delays.
    fn count(&mut self) {
        self.recent.sort_unstable();
        let mut before = std::mem::take(&mut self.counted).into_iter().peekable();
        let mut all: Vec<(i32, u64)> = Vec::with_capacity(before.len());
        for delay in self.recent.drain(..) {
            while let Some(earlier) = before.next_if(|(earlier, _)| *earlier <= delay) {
                all.push(earlier);
            }
            match all.last_mut().filter(|(last, _)| *last == delay) {
                Some((_, count)) => *count += 1,
                None => all.push((delay, 1)),
            }
        }
        all.extend(before);
        self.counted = all;
    }

    /// Distribution of the delays: (delay, fraction of packets with at most this delay), by nearest rank.
    pub(super) fn cdf(mut self) -> Vec<(f64, f64)> {
        self.count();
        let packets: u64 = self.counted.iter().map(|(_, count)| count).sum();
        let mut delays = self.counted.iter();
        let (mut delay_ms, mut up_to) = (0.0, 0);
        let mut point = |part: f64| {
            let rank = ((part * packets as f64).ceil() as u64).max(1);
            while up_to < rank {
                let (next, count) = delays.next()?;
                (delay_ms, up_to) = (f64::from(delay(*next)), up_to + count);
            }
            Some((significant(delay_ms), part))
        };
        parts().filter_map(&mut point).collect()
    }
}

/// Integer key of a delay. Keys have the order of [`f32::total_cmp`].
fn key(delay_ms: f32) -> i32 {
    flipped(delay_ms.to_bits() as i32)
}

/// Delay of a key.
fn delay(key: i32) -> f32 {
    f32::from_bits(flipped(key) as u32)
}

/// Inverts all bits except the sign if the sign is set, because the bit patterns of negative numbers are in reverse
/// order.
fn flipped(bits: i32) -> i32 {
    bits ^ (((bits >> 31) as u32) >> 1) as i32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use airpace_run::metrics::cdf;

    proptest! {
        #[test]
        fn counted_delays_have_the_distribution_of_all_delays(
            delays in prop::collection::vec(0u8..40, 0..400),
            counts_after in 1usize..50,
        ) {
            let mut counted = Delays::default();
            let mut all: Vec<f64> = vec![];
            for (at, delay) in delays.iter().enumerate() {
                let delay = f32::from(*delay) * 0.37;
                counted.push(delay);
                all.push(f64::from(delay));
                if at % counts_after == 0 {
                    counted.count();
                }
            }
            all.sort_unstable_by(f64::total_cmp);
            prop_assert_eq!(counted.cdf(), cdf(&all));
        }
    }

    proptest! {
        #[test]
        fn keys_are_ordered_as_delays(a in prop::num::f32::ANY, b in prop::num::f32::ANY) {
            prop_assert_eq!(key(a).cmp(&key(b)), a.total_cmp(&b));
            prop_assert_eq!(delay(key(a)).to_bits(), a.to_bits());
        }
    }

    #[test]
    fn memory_grows_with_different_delays_and_not_with_packets() {
        let mut delays = Delays::default();
        for packet in 0..5 * RECENT {
            delays.push((packet % 1_000) as f32);
        }
        assert!(delays.recent.capacity() <= 2 * RECENT && delays.counted.len() == 1_000);
        assert_eq!(delays.cdf().last(), Some(&(999.0, 1.0)));
    }
}
