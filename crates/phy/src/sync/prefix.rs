//! Where symbols begin, found by their cyclic prefixes. This works even if timing is off by more than reference signals
//! can show.

use num_complex::Complex32;

use crate::numerology::Numerology;

/// The least share of the prefixes' power that must come again at the ends of their symbols, times the root of their
/// samples, and the share that is always enough; and how many times the share at the expected place it must be.
///
/// Chosen: without noise, a symbol's prefix comes again in full; in a cell that is idle and noisy, a fifth of it. Anything
/// else comes again only by chance. In a wide cell, whose prefixes have a thousand samples, chance reaches hardly a
/// twelfth in any place; in a narrow one, over three symbols, a fifth.
const LEAST_LIKENESS: f32 = 5.0;
const ALWAYS_ENOUGH: f32 = 0.3;
const LEAST_RATIO: f32 = 1.5;

/// By how many samples the symbols of a subframe begin later than expected, up to half a symbol either way; `None` if
/// their prefixes do not show it. `samples` begin half a symbol and a prefix before the subframe, and reach half a
/// symbol beyond the end of its first `symbols` symbols.
pub fn displacement(numerology: Numerology, samples: &[Complex32], symbols: usize) -> Option<i64> {
    let size = numerology.fft_size();
    let prefix = numerology.prefix_samples(1);
    // Running sums of products of samples that should be alike, and of their powers.
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
    let least = (LEAST_LIKENESS / libm::sqrtf((symbols * prefix) as f32)).min(ALWAYS_ENOUGH);
    (most > least && most > LEAST_RATIO * here).then_some(shift)
}
