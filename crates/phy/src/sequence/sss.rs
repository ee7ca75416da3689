//! Secondary synchronisation signal (SSS): group of cell identities, N_ID^(1), and half of the frame.

use super::pss::LEN;

/// SSS of a cell in subframe 0 (`half` 0) or 5 (`half` 1), ±1, lowest subcarrier first.
///
/// `n_id_1` is 0…167, `n_id_2` 0…2.
///
/// Source: TS 36.211 §6.11.2.1
pub fn sss(n_id_1: u16, n_id_2: u16, half: usize) -> [f32; LEN] {
    let s = m_sequence(|x, i| x[i + 2] ^ x[i]);
    let c = m_sequence(|x, i| x[i + 3] ^ x[i]);
    let z = m_sequence(|x, i| x[i + 4] ^ x[i + 2] ^ x[i + 1] ^ x[i]);
    let n_id_2 = usize::from(n_id_2);
    let (m0, m1) = shifts(n_id_1);
    let (even, odd) = if half == 0 { (m0, m1) } else { (m1, m0) };
    std::array::from_fn(|at| {
        let n = at / 2;
        if at % 2 == 0 {
            s[(n + even) % 31] * c[(n + n_id_2) % 31]
        } else {
            s[(n + odd) % 31] * c[(n + n_id_2 + 3) % 31] * z[(n + even % 8) % 31]
        }
    })
}

/// Cyclic shifts m_0 and m_1 for a group of cell identities.
///
/// Source: TS 36.211 §6.11.2.1 Table 6.11.2.1-1
pub const fn shifts(n_id_1: u16) -> (usize, usize) {
    let n = n_id_1 as usize;
    let q_prime = n / 30;
    let q = (n + q_prime * (q_prime + 1) / 2) / 30;
    let m_prime = n + q * (q + 1) / 2;
    let m0 = m_prime % 31;
    (m0, (m0 + m_prime / 31 + 1) % 31)
}

/// The m-sequence of length 31, as ±1. `next` returns x(i+5) from the previous values.
fn m_sequence(next: impl Fn(&[u8; 36], usize) -> u8) -> [f32; 31] {
    let mut x = [0u8; 36];
    x[4] = 1;
    for i in 0..31 {
        x[i + 5] = next(&x, i);
    }
    std::array::from_fn(|i| 1.0 - 2.0 * f32::from(x[i]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn shifts_are_those_of_the_table() {
        assert_eq!(shifts(0), (0, 1));
        assert_eq!(shifts(29), (29, 30));
        assert_eq!(shifts(30), (0, 2));
        assert_eq!(shifts(59), (0, 3));
        assert_eq!(shifts(114), (0, 5));
        assert_eq!(shifts(167), (2, 9));
        let all: BTreeSet<_> = (0..168).map(shifts).collect();
        assert_eq!(all.len(), 168, "every group has its own pair");
    }

    #[test]
    fn groups_and_halves_are_distinguished() {
        let all: Vec<_> = (0..168).flat_map(|n| [sss(n, 1, 0), sss(n, 1, 1)]).collect();
        for (i, a) in all.iter().enumerate() {
            for b in &all[..i] {
                let correlation: f32 = a.iter().zip(b).map(|(x, y)| x * y).sum();
                assert!(correlation.abs() < 0.7 * LEN as f32);
            }
        }
    }
}
