//! Symbol timing from cyclic prefixes. The range exceeds the timing error that reference signals can resolve.

use num_complex::Complex32;

use crate::numerology::Numerology;

/// Minimum normalised correlation of the prefixes with the ends of their symbols, times the square root of the number of
/// prefix samples.
///
/// Chosen: without noise, the correlation is 1; in an idle cell with strong noise, it is a fifth. At any other
/// position, the correlation is due to chance. In a wide cell, whose prefixes have a thousand samples, the chance
/// correlation barely reaches a twelfth; in a narrow cell, over three symbols, it reaches a fifth.
const MIN_LIKENESS: f32 = 5.0;

/// Correlation that is always sufficient: upper limit of the threshold that follows from [`MIN_LIKENESS`].
const ALWAYS_ENOUGH: f32 = 0.3;

/// Minimum ratio of the best correlation to the correlation at the expected position.
const MIN_RATIO: f32 = 1.5;

/// Returns the delay of a subframe's symbols relative to their expected start (samples), up to half a symbol in either
/// direction; `None` if the prefixes do not show it. `samples` start half a symbol and a prefix before the subframe,
/// and end half a symbol after the end of the subframe's first `symbols` symbols.
pub fn displacement(numerology: Numerology, samples: &[Complex32], symbols: usize) -> Option<i64> {
    let size = numerology.fft_size();
    let prefix = numerology.prefix_samples(1);
    // Running sums: products of samples that repeat within a symbol, and their powers.
    let (mut product, mut power) = (Complex32::default(), 0.0f32);
    let mut sums = vec![(product, power)];
    for (early, late) in samples.iter().zip(samples.get(size..)?) {
        product += early.conj() * late;
        power += 0.5 * (early.norm_sqr() + late.norm_sqr());
        sums.push((product, power));
    }
    let margin = size / 2 + prefix;
    let likeness = |shift: i64| -> Option<f32> {
        let (mut product, mut power) = (Complex32::default(), 0.0);
        for symbol in 0..symbols {
            let first = (margin + numerology.symbol_start(symbol)) as i64 - prefix as i64 + shift;
            let first = usize::try_from(first).ok()?;
            let (before, after) = (sums.get(first)?, sums.get(first + prefix)?);
            product += after.0 - before.0;
            power += after.1 - before.1;
        }
        Some(product.norm_sqr().sqrt() / power.max(f32::MIN_POSITIVE))
    };
    let half = size as i64 / 2;
    let here = likeness(0)?;
    let best = (-half..half).filter_map(|shift| Some((shift, likeness(shift)?)));
    let (shift, most) = best.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let least = (MIN_LIKENESS / libm::sqrtf((symbols * prefix) as f32)).min(ALWAYS_ENOUGH);
    (most > least && most > MIN_RATIO * here).then_some(shift)
}
