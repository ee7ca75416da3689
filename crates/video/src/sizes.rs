//! The sizes of segments, which vary around the bitrate of their representation.

use airpace_core::{Bytes, Draws};

use crate::ladder::Ladder;

/// Maximum size of a segment, in multiples of the size at the average bitrate.
///
/// Source: Apple, HLS Authoring Specification for Apple Devices, 2017 (peak bit rate at most 200 % of the average)
const MAX_FACTOR: f64 = 2.0;

/// Minimum size of a segment, in multiples of the size at the average bitrate.
///
/// Chosen: the inverse of the maximum.
const MIN_FACTOR: f64 = 1.0 / MAX_FACTOR;

/// The sizes of all segments of a video with a variable bitrate.
///
/// Each segment has one random factor, with which its size in every representation is multiplied: a scene that is hard to
/// encode is large in all of them. Factors of different segments are independent.
///
/// Differs: scenes of real videos are longer than a segment, so that sizes of adjacent segments are correlated.
///
/// Chosen: a log-normal factor with mean 1, limited to ½ to 2.
#[derive(Clone, Copy, Debug)]
pub struct SegmentSizes {
    draws: Draws,
    /// Standard deviation of the logarithm of the factor.
    sigma: f64,
}

impl SegmentSizes {
    /// Sizes whose factors have the coefficient of variation `variation` (standard deviation divided by mean; 0 for a
    /// constant bitrate), drawn from `draws`.
    pub fn new(draws: Draws, variation: f64) -> SegmentSizes {
        SegmentSizes { draws, sigma: libm::sqrt(libm::log1p(variation * variation)) }
    }

    /// The size of segment `segment` in representation `representation` of `ladder`; at least one byte. A representation
    /// that the ladder does not have counts as the highest.
    pub fn bytes(&self, ladder: &Ladder, segment: u32, representation: usize) -> Bytes {
        let one = ladder.representation.get(representation).or(ladder.representation.last());
        let average = one.map_or(0.0, |one| one.bitrate_mbps * 1e6 / 8.0 * ladder.segment_s);
        Bytes(libm::round(average * self.factor(segment)) as u64).max(Bytes(1))
    }

    /// The size of a segment, in multiples of the size at the average bitrate.
    fn factor(&self, segment: u32) -> f64 {
        // The mean of exp(sigma · normal) is exp(sigma² / 2).
        let normal = self.draws.at(u64::from(segment), 0).normal();
        libm::exp(self.sigma * (normal - self.sigma / 2.0)).clamp(MIN_FACTOR, MAX_FACTOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpace_core::Streams;

    #[test]
    fn sizes_vary_around_the_bitrate_of_their_representation() {
        let ladder = Ladder::default();
        let draws = Streams::new(1).draws("video.sizes");
        let sizes = SegmentSizes::new(draws, 0.3);
        let factors: Vec<f64> = (0..10_000).map(|segment| sizes.factor(segment)).collect();
        let mean = factors.iter().sum::<f64>() / 1e4;
        let variance = factors.iter().map(|factor| (factor - mean).powi(2)).sum::<f64>() / 1e4;
        assert!((mean - 1.0).abs() < 0.02, "the mean bitrate is that of the representation: {mean}");
        assert!((variance.sqrt() - 0.3).abs() < 0.03, "the coefficient of variation: {}", variance.sqrt());
        let largest = factors.iter().copied().fold(0.0, f64::max);
        assert!(largest > 1.9 && largest <= 2.0, "the peak is at most twice the mean: {largest}");
        let constant = SegmentSizes::new(draws, 0.0);
        assert_eq!(constant.bytes(&ladder, 5, 11), Bytes(8_400_000), "16.8 Mbit/s for 4 s");
    }

    #[test]
    fn a_scene_is_large_in_every_representation() {
        let ladder = Ladder::default();
        let sizes = SegmentSizes::new(Streams::new(3).draws("video.sizes"), 0.3);
        for segment in 0..100 {
            let ratio =
                sizes.bytes(&ladder, segment, 10).0 as f64 / sizes.bytes(&ladder, segment, 1).0 as f64;
            assert!((ratio - 11.6 / 0.3).abs() < 1e-3, "segment {segment}: {ratio}");
        }
        assert_eq!(sizes.bytes(&ladder, 0, 99), sizes.bytes(&ladder, 0, 11), "no panic");
    }
}
