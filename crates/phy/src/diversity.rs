//! Transmit diversity: maps control symbols to one, two or four antenna ports, and combines them at the receiver.
//!
//! The unit is the quadruplet: four symbols on the four resource elements of a REG.

use num_complex::Complex32;

use crate::cell::Ports;

/// Four symbols, on four resource elements.
pub type Quad = [Complex32; 4];

/// Signal of each port on the four resource elements; zero for ports that the cell does not have.
///
/// Source: TS 36.211 §6.3.3.3 (layers) and §6.3.4.1, §6.3.4.3 (precoding)
pub fn precode(ports: Ports, x: &Quad) -> [Quad; 4] {
    let mut out = [Quad::default(); 4];
    match ports {
        Ports::One => out[0] = *x,
        Ports::Two => {
            pair(&mut out, (0, 1), x, 0);
            pair(&mut out, (0, 1), x, 2);
        }
        Ports::Four => {
            pair(&mut out, (0, 2), x, 0);
            pair(&mut out, (1, 3), x, 2);
        }
    }
    out
}

/// Alamouti code for two symbols over two neighbouring subcarriers and two ports.
pub(crate) fn pair(out: &mut [Quad; 4], (p, q): (usize, usize), x: &Quad, at: usize) {
    let half_power = std::f32::consts::FRAC_1_SQRT_2;
    out[p][at] = x[at] * half_power;
    out[p][at + 1] = x[at + 1] * half_power;
    out[q][at] = -x[at + 1].conj() * half_power;
    out[q][at + 1] = x[at].conj() * half_power;
}

/// Matched-filter outputs for the symbols on four received resource elements `y`. Each symbol is multiplied by its
/// channel power, so its real and imaginary part are log-likelihood ratios up to a common factor.
///
/// `h[port]` is the channel on the four elements. For two and four ports, the mean channel of two neighbouring
/// subcarriers is used for both.
pub fn combine(ports: Ports, y: &Quad, h: &[Quad; 4]) -> Quad {
    match ports {
        Ports::One => std::array::from_fn(|i| h[0][i].conj() * y[i]),
        Ports::Two => {
            let [a, b] = unpair(y, h, (0, 1), 0);
            let [c, d] = unpair(y, h, (0, 1), 2);
            [a, b, c, d]
        }
        Ports::Four => {
            let [a, b] = unpair(y, h, (0, 2), 0);
            let [c, d] = unpair(y, h, (1, 3), 2);
            [a, b, c, d]
        }
    }
}

pub(crate) fn unpair(y: &Quad, h: &[Quad; 4], (p, q): (usize, usize), at: usize) -> [Complex32; 2] {
    let half_power = std::f32::consts::FRAC_1_SQRT_2;
    let hp = (h[p][at] + h[p][at + 1]).scale(0.5);
    let hq = (h[q][at] + h[q][at + 1]).scale(0.5);
    let (first, second) = (y[at], y[at + 1]);
    [
        (hp.conj() * first + hq * second.conj()).scale(half_power),
        (hp.conj() * second - hq * first.conj()).scale(half_power),
    ]
}

/// Channel power by which [`unpair`] multiplies symbols. `rows` contains the gains of the two ports by subcarrier; `a`
/// and `b` are the subcarriers of the pair.
#[inline]
pub(crate) fn pair_power(rows: [&[Complex32]; 2], a: usize, b: usize) -> f32 {
    let [first, second] = rows.map(|row| (row[a] + row[b]).scale(0.5).norm_sqr());
    0.5 * (first + second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modulation::qpsk;

    #[test]
    fn symbols_come_back_times_the_power_of_the_channel() {
        let x: Quad = [qpsk(0, 1), qpsk(1, 1), qpsk(0, 0), qpsk(1, 0)];
        let gains = [(0.9, -0.4), (-0.2, 1.1), (0.3, 0.3), (-1.0, 0.1)];
        for ports in Ports::ALL {
            let h: [Quad; 4] = std::array::from_fn(|p| [Complex32::new(gains[p].0, gains[p].1); 4]);
            let sent = precode(ports, &x);
            let y: Quad = std::array::from_fn(|i| (0..4).map(|p| h[p][i] * sent[p][i]).sum());
            let power = |p: usize| h[p][0].norm_sqr();
            let expected = match ports {
                Ports::One => [power(0); 4],
                Ports::Two => [(power(0) + power(1)) / 2.0; 4],
                Ports::Four => {
                    let (a, b) = ((power(0) + power(2)) / 2.0, (power(1) + power(3)) / 2.0);
                    [a, a, b, b]
                }
            };
            for (i, got) in combine(ports, &y, &h).iter().enumerate() {
                assert!((got - x[i] * expected[i]).norm() < 1e-5, "{ports:?} symbol {i}");
            }
        }
    }

    #[test]
    fn every_resource_element_has_unit_power_over_all_ports() {
        let x = [qpsk(0, 0); 4];
        for ports in Ports::ALL {
            let sent = precode(ports, &x);
            for i in 0..4 {
                let power: f32 = sent.iter().map(|quad| quad[i].norm_sqr()).sum();
                assert!((power - 1.0).abs() < 1e-5);
            }
        }
    }
}
