//! The look for another cell on the same carrier whose symbols begin together with those of the cell that is followed: by its
//! synchronisation signals, in subframes that are received anyway.
//!
//! The synchronisation signals of the followed cell are known, and are taken off first.

use num_complex::Complex32;

use super::{angle, correlate};
use crate::cell::Cell;
use crate::grid::Grid;
use crate::sequence::pss::{LEN, pss};
use crate::sequence::sss::sss;

/// A cell that [`Lookout::look`] found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sight {
    /// Its identity.
    pub pci: u16,
    /// By how many subframes its numbers are ahead.
    pub ahead: usize,
    /// By how many samples it is later.
    pub delay: f64,
}

/// Looks for the synchronisation signals of another cell.
pub struct Lookout {
    halves: u32,
    last: Option<(Sight, u32)>,
    /// By N_ID^(2), half and N_ID^(1); made when it looks for the first time.
    secondaries: Vec<[f32; LEN]>,
}

/// A look is taken in one of so many half frames.
///
/// Chosen: 30 ms. A look costs as much as a subframe, so that it costs a thirtieth of that.
const LOOK_PERIOD: u32 = 6;

/// At first looks are taken so often, in so many half frames.
const FIRST_PERIOD: u32 = 2;
const FIRST_HALVES: u32 = 60;

/// The least share of what is left without the followed cell that must fit an SSS.
///
/// Chosen: the best of 1008 SSS fits noise by 0.45; two looks must tell the same cell.
const LEAST_FIT: f32 = 0.6;

/// Two looks that tell the same lie at most so many half frames apart.
const MOST_HALVES_APART: u32 = 96;

/// Subcarriers over which channels of synchronisation signals are averaged: of the followed cell, and of the other.
const OWN_WIDTH: usize = 9;
const OTHER_WIDTH: usize = 5;

impl Lookout {
    pub fn new() -> Lookout {
        Lookout { halves: 0, last: None, secondaries: Vec::new() }
    }

    /// Whether this half frame is one in which to look.
    pub fn is_due(&mut self) -> bool {
        self.halves = self.halves.wrapping_add(1);
        self.halves.is_multiple_of(if self.halves < FIRST_HALVES { FIRST_PERIOD } else { LOOK_PERIOD })
    }

    /// Looks into subframe `number` (0 or 5), of which the SSS and the PSS were received, for another cell than `own`.
    /// Returns it if it was seen before.
    pub fn look(&mut self, own: &Cell, number: usize, grid: &Grid, fft_size: usize) -> Option<Sight> {
        if self.secondaries.is_empty() {
            let all =
                (0..3).flat_map(|id| (0..2).flat_map(move |half| (0..168).map(move |n| sss(n, id, half))));
            self.secondaries = all.collect();
        }
        let sight = self.see(own, number, grid, fft_size)?;
        let before = self.last.replace((sight, self.halves));
        let is_same = |(before, at): &(Sight, u32)| {
            (before.pci, before.ahead) == (sight.pci, sight.ahead)
                && self.halves.wrapping_sub(*at) <= MOST_HALVES_APART
        };
        before.filter(is_same).map(|_| sight)
    }

    fn see(&self, own: &Cell, number: usize, grid: &Grid, fft_size: usize) -> Option<Sight> {
        let symbol = own.cp.symbols_per_slot() - 1;
        let first = own.bandwidth.subcarriers() / 2 - LEN / 2;
        let primary = &grid.symbol(symbol)[first..][..LEN];
        let secondary = &grid.symbol(symbol - 1)[first..][..LEN];
        let half = number / 5;
        // The channel of the cell itself, by its SSS: the PSS may be that of both.
        let its: Vec<Complex32> =
            sss(own.n_id_1(), own.n_id_2(), half).map(|sign| Complex32::new(sign, 0.0)).to_vec();
        let gains = smooth(secondary, &its, OWN_WIDTH);
        let without = |row: &[Complex32], sent: &[Complex32]| -> Vec<Complex32> {
            row.iter().zip(sent).zip(&gains).map(|((row, sent), gain)| row - sent * gain).collect()
        };
        let (primary, secondary) = (without(primary, &pss(own.n_id_2())), without(secondary, &its));
        let mut best: Option<(f32, Sight)> = None;
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
                    if fit > best.map_or(LEAST_FIT, |(fit, _)| fit) {
                        let delay =
                            -angle(correlate(&gains, &gains[1..])) / std::f64::consts::TAU * fft_size as f64;
                        let ahead = 5 * (half + other_half) % 10;
                        best = Some((fit, Sight { pci, ahead, delay }));
                    }
                }
            }
        }
        best.map(|(_, sight)| sight)
    }
}

/// The channel of a known signal, averaged over `width` subcarriers.
fn smooth(row: &[Complex32], sent: &[Complex32], width: usize) -> Vec<Complex32> {
    let raw: Vec<Complex32> = row.iter().zip(sent).map(|(got, sent)| got * sent.conj()).collect();
    let mean = |at: usize| {
        let (from, to) = (at.saturating_sub(width / 2), (at + width / 2 + 1).min(raw.len()));
        raw[from..to].iter().sum::<Complex32>() / (to - from) as f32
    };
    (0..raw.len()).map(mean).collect()
}
