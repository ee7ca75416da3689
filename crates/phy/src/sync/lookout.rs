//! Detection of an interfering cell on the same carrier whose symbol timing is aligned with the tracked cell: by its
//! synchronisation signals, in subframes that are received anyway.
//!
//! The known synchronisation signals of the tracked cell are subtracted first.

use num_complex::Complex32;

use crate::cell::Cell;
use crate::complex::{angle, correlate};
use crate::grid::Grid;
use crate::sequence::pss::{LEN, pss};
use crate::sequence::sss::sss;

/// A cell detected by [`Lookout::look`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DetectedCell {
    /// Physical cell identity.
    pub pci: u16,
    /// Number of subframes by which its subframe numbers are ahead of the tracked cell's.
    pub ahead: usize,
    /// Delay relative to the tracked cell, in samples.
    pub delay: f64,
}

/// Detects the synchronisation signals of another cell.
pub struct Lookout {
    halves: u32,
    last: Option<(DetectedCell, u32)>,
    /// SSS by N_ID^(2), half frame and N_ID^(1); computed at the first check.
    secondaries: Vec<[f32; LEN]>,
}

/// Interval between checks, in half frames.
///
/// Chosen: 30 ms. A check costs as much as decoding a subframe, so checks add a thirtieth of the decoding cost.
const LOOK_PERIOD: u32 = 6;

/// Interval between the first checks, in half frames.
const FIRST_PERIOD: u32 = 2;

/// Number of half frames in which [`FIRST_PERIOD`] applies.
const FIRST_HALVES: u32 = 60;

/// Minimum normalised correlation of an SSS with the signal that remains without the tracked cell.
///
/// Chosen: the best of 1008 SSS correlates with noise by 0.45. Two checks must find the same cell.
const MIN_FIT: f32 = 0.6;

/// Maximum interval between two checks that find the same cell, in half frames.
const MAX_HALVES_APART: u32 = 96;

/// Number of subcarriers over which the channel of the tracked cell's synchronisation signals is averaged.
const OWN_WIDTH: usize = 9;

/// Number of subcarriers over which the channel of the other cell's synchronisation signals is averaged.
const OTHER_WIDTH: usize = 5;

impl Lookout {
    pub fn new() -> Lookout {
        Lookout { halves: 0, last: None, secondaries: Vec::new() }
    }

    /// Counts a half frame and returns whether a check is due in it.
    pub fn is_due(&mut self) -> bool {
        self.halves = self.halves.wrapping_add(1);
        self.halves.is_multiple_of(if self.halves < FIRST_HALVES { FIRST_PERIOD } else { LOOK_PERIOD })
    }

    /// Searches subframe `number` (0 or 5), whose SSS and PSS were received, for a cell other than `own`. Returns the cell
    /// if the previous check found it too.
    pub fn look(&mut self, own: &Cell, number: usize, grid: &Grid, fft_size: usize) -> Option<DetectedCell> {
        if self.secondaries.is_empty() {
            let all =
                (0..3).flat_map(|id| (0..2).flat_map(move |half| (0..168).map(move |n| sss(n, id, half))));
            self.secondaries = all.collect();
        }
        let sight = self.see(own, number, grid, fft_size)?;
        let before = self.last.replace((sight, self.halves));
        let is_same = |(before, at): &(DetectedCell, u32)| {
            (before.pci, before.ahead) == (sight.pci, sight.ahead)
                && self.halves.wrapping_sub(*at) <= MAX_HALVES_APART
        };
        before.filter(is_same).map(|_| sight)
    }

    fn see(&self, own: &Cell, number: usize, grid: &Grid, fft_size: usize) -> Option<DetectedCell> {
        let symbol = own.cp.symbols_per_slot() - 1;
        let first = own.bandwidth.subcarriers() / 2 - LEN / 2;
        let primary = &grid.symbol(symbol)[first..][..LEN];
        let secondary = &grid.symbol(symbol - 1)[first..][..LEN];
        let half = number / 5;
        // Estimate the tracked cell's channel from its SSS, because both cells may share the PSS.
        let its: Vec<Complex32> =
            sss(own.n_id_1(), own.n_id_2(), half).map(|sign| Complex32::new(sign, 0.0)).to_vec();
        let gains = smooth(secondary, &its, OWN_WIDTH);
        let without = |row: &[Complex32], sent: &[Complex32]| -> Vec<Complex32> {
            row.iter().zip(sent).zip(&gains).map(|((row, sent), gain)| row - sent * gain).collect()
        };
        let (primary, secondary) = (without(primary, &pss(own.n_id_2())), without(secondary, &its));
        let mut best: Option<(f32, DetectedCell)> = None;
        for id in 0..3u16 {
            let gains = smooth(&primary, &pss(id), OTHER_WIDTH);
            let real: Vec<f32> =
                secondary.iter().zip(&gains).map(|(got, gain)| (got * gain.conj()).re).collect();
            let all = (correlate(&secondary, &secondary).re * correlate(&gains, &gains).re).sqrt();
            for other_half in 0..2 {
                for n in 0..168u16 {
                    let pci = 3 * n + id;
                    if pci == own.pci {
                        continue;
                    }
                    let signs = &self.secondaries[(usize::from(id) * 2 + other_half) * 168 + usize::from(n)];
                    let fit = real.iter().zip(signs).map(|(value, sign)| value * sign).sum::<f32>()
                        / all.max(f32::MIN_POSITIVE);
                    if fit > best.map_or(MIN_FIT, |(fit, _)| fit) {
                        let delay =
                            -angle(correlate(&gains, &gains[1..])) / std::f64::consts::TAU * fft_size as f64;
                        let ahead = 5 * (half + other_half) % 10;
                        best = Some((fit, DetectedCell { pci, ahead, delay }));
                    }
                }
            }
        }
        best.map(|(_, sight)| sight)
    }
}

/// Channel estimate from a known signal, averaged over `width` subcarriers.
fn smooth(row: &[Complex32], sent: &[Complex32], width: usize) -> Vec<Complex32> {
    let raw: Vec<Complex32> = row.iter().zip(sent).map(|(got, sent)| got * sent.conj()).collect();
    let mean = |at: usize| {
        let (from, to) = (at.saturating_sub(width / 2), (at + width / 2 + 1).min(raw.len()));
        raw[from..to].iter().sum::<Complex32>() / (to - from) as f32
    };
    (0..raw.len()).map(mean).collect()
}
