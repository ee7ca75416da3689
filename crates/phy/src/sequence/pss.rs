//! Primary synchronisation signal (PSS): identity within the group, N_ID^(2), and timing within five milliseconds.

use num_complex::Complex32;

/// Number of subcarriers of a synchronisation signal, around the centre. Five more on each side are empty.
///
/// Source: TS 36.211 §6.11.1.2
pub const LEN: usize = 62;

/// Roots of the Zadoff-Chu sequences, by N_ID^(2).
///
/// Source: TS 36.211 §6.11.1.1 Table 6.11.1.1-1
pub const ROOTS: [u32; 3] = [25, 29, 34];

/// PSS of N_ID^(2) `n_id_2` (0…2), lowest subcarrier first.
///
/// Source: TS 36.211 §6.11.1.1
pub fn pss(n_id_2: u16) -> [Complex32; LEN] {
    let root = ROOTS[usize::from(n_id_2 % 3)];
    std::array::from_fn(|n| {
        let n = n as u32;
        // The sample at the centre (n = 31 of a sequence of 63) is omitted. Angles are multiples of π/63.
        let half_turns = root * if n <= 30 { n * (n + 1) } else { (n + 1) * (n + 2) } % 126;
        let angle = -std::f64::consts::PI * f64::from(half_turns) / 63.0;
        Complex32::new(libm::cos(angle) as f32, libm::sin(angle) as f32)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_has_unit_power_and_the_sequence_is_symmetric() {
        for n_id_2 in 0..3 {
            let signal = pss(n_id_2);
            for (n, sample) in signal.iter().enumerate() {
                assert!((sample.norm_sqr() - 1.0).abs() < 1e-6);
                assert!((sample - signal[LEN - 1 - n]).norm() < 1e-6);
            }
        }
    }

    #[test]
    fn the_roots_29_and_34_are_conjugates() {
        for (a, b) in pss(1).iter().zip(pss(2)) {
            assert!((a - b.conj()).norm() < 1e-5);
        }
    }

    #[test]
    fn different_identities_hardly_correlate() {
        for a in 0..3 {
            for b in 0..3 {
                let product: Complex32 = pss(a).iter().zip(pss(b)).map(|(x, y)| x * y.conj()).sum();
                let correlation = product.norm() / LEN as f32;
                assert!(
                    if a == b { correlation > 0.999 } else { correlation < 0.4 },
                    "{a} {b} {correlation}"
                );
            }
        }
    }
}
