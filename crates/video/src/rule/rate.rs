//! The rate-based rule: the highest representation that recent throughputs can sustain.

use std::collections::VecDeque;

use super::{Sample, Situation, sustainable};

/// Number of recent segments in the mean.
///
/// Source: Yin, Jindal, Sekar, Sinopoli 2015 (the past five chunks)
///
/// Differs: Jiang, Sekar, Zhang 2012 (FESTIVE) uses 20, which are 80 s here. Mobile networks change faster.
const WINDOW: usize = 5;

/// The rate-based rule: the highest representation whose bitrate is at most 0.85 of the harmonic mean of the throughputs of
/// the last segments. The first segment has the lowest representation.
///
/// A segment's throughput is its size divided by the time from its request to its last byte. The harmonic mean limits the
/// influence of segments that were much faster than the others.
///
/// Source: Jiang, Sekar, Zhang 2012 (FESTIVE); Yin, Jindal, Sekar, Sinopoli 2015 (RB)
///
/// Differs: no part of FESTIVE that serves players which share a bottleneck: neither the randomised times of requests, nor
/// the steps by one representation at a time, nor the weights of stability against efficiency.
#[derive(Clone, Debug, Default)]
pub(crate) struct RateRule {
    /// Throughputs of the last segments in Mbit/s.
    recent: VecDeque<f64>,
}

impl RateRule {
    pub(crate) fn observe(&mut self, sample: &Sample) {
        self.recent.push_back(sample.throughput().as_mbps());
        if self.recent.len() > WINDOW {
            self.recent.pop_front();
        }
    }

    pub(crate) fn choose(&self, situation: &Situation<'_>) -> usize {
        self.mean_mbps().map_or(0, |mbps| sustainable(situation.ladder, mbps))
    }

    /// Harmonic mean of the recent throughputs in Mbit/s.
    fn mean_mbps(&self) -> Option<f64> {
        let inverse: f64 = self.recent.iter().map(|mbps| 1.0 / mbps).sum();
        (!self.recent.is_empty()).then(|| self.recent.len() as f64 / inverse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ladder::Ladder;
    use airpace_core::{Bytes, Rate};
    use std::time::Duration;

    fn chosen_after(throughputs_mbps: &[f64]) -> usize {
        let (ladder, mut rule) = (Ladder::default(), RateRule::default());
        for &mbps in throughputs_mbps {
            let bytes = Bytes(1_000_000);
            rule.observe(&Sample { bytes, took: Rate::from_mbps(mbps).time_for(bytes) });
        }
        let second = Duration::from_secs(1);
        rule.choose(&Situation { ladder: &ladder, buffered: second, max_buffer: 50 * second, previous: None })
    }

    #[test]
    fn the_harmonic_mean_of_five_segments_decides() {
        assert_eq!(chosen_after(&[]), 0, "the first segment has the lowest representation");
        assert_eq!(chosen_after(&[10.0]), 9, "8.1 Mbit/s is below 85 % of 10");
        assert_eq!(chosen_after(&[9.5]), 8, "8.1 Mbit/s is above 85 % of 9.5");
        assert_eq!(
            chosen_after(&[10.0, 10.0, 10.0, 10.0, 1000.0]),
            9,
            "mean 12.5: one fast segment is no 4K"
        );
        assert_eq!(chosen_after(&[10.0, 10.0, 10.0, 10.0, 1.0]), 5, "mean 3.6: a slow segment counts much");
        assert_eq!(chosen_after(&[1.0, 30.0, 30.0, 30.0, 30.0, 30.0]), 11, "the sixth last is forgotten");
        assert_eq!(chosen_after(&[0.01]), 0, "below the ladder");
    }
}
