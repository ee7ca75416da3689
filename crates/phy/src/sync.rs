//! From samples of which nothing is known to a cell that is followed.
//!
//! | module | from | to |
//! | --- | --- | --- |
//! | [`search`] | samples at 1.92 million per second | cells: identity, prefix, duplex, timing, carrier offset |
//! | [`broadcast`] | a cell of the search | bandwidth, ports, PHICH, frame number |

pub mod broadcast;
pub mod search;

use num_complex::Complex32;

/// Samples per second at which cells are searched: enough for the six PRBs in the middle that every cell has.
pub const VIEW_HZ: u64 = 1_920_000;

/// How far from the centre what is searched reaches: synchronisation signals and the PBCH, and a carrier offset.
pub const VIEW_PASSBAND_HZ: u64 = 600_000;

/// The angle of a number, in radians.
pub(crate) fn angle(of: Complex32) -> f64 {
    libm::atan2(f64::from(of.im), f64::from(of.re))
}

/// Turns `samples` back by a carrier offset of `turns` per sample; the first is turned by `first` turns.
pub(crate) fn turn_back(samples: &mut [Complex32], first: f64, turns: f64) {
    const LANES: usize = 32;
    let phasor = |turns: f64| {
        let angle = -std::f64::consts::TAU * (turns - libm::floor(turns));
        Complex32::new(libm::cos(angle) as f32, libm::sin(angle) as f32)
    };
    if turns == 0.0 && first == 0.0 {
        return;
    }
    let lanes: [Complex32; LANES] = std::array::from_fn(|lane| phasor(turns * lane as f64));
    for (block, samples) in samples.chunks_mut(LANES).enumerate() {
        let start = phasor(first + turns * (block * LANES) as f64);
        for (sample, lane) in samples.iter_mut().zip(&lanes) {
            let by = Complex32::new(
                start.re * lane.re - start.im * lane.im,
                start.re * lane.im + start.im * lane.re,
            );
            *sample =
                Complex32::new(sample.re * by.re - sample.im * by.im, sample.re * by.im + sample.im * by.re);
        }
    }
}
