//! From samples of which nothing is known to a cell that is followed.
//!
//! | module | from | to |
//! | --- | --- | --- |
//! | [`search`] | samples at 1.92 million per second | cells: identity, prefix, duplex, timing, carrier offset |
//! | [`broadcast`] | a cell of the search | bandwidth, ports, PHICH, frame number |
//! | [`track`] | a cell that is known, samples at its own rate | subframe after subframe, as it was heard |

pub mod broadcast;
pub mod search;
pub mod track;

use std::collections::VecDeque;

use num_complex::{Complex32, Complex64};

/// Samples per second at which cells are searched: enough for the six PRBs in the middle that every cell has.
pub const VIEW_HZ: u64 = 1_920_000;

/// How far from the centre what is searched reaches: synchronisation signals and the PBCH, and a carrier offset.
pub const VIEW_PASSBAND_HZ: u64 = 600_000;

/// The angle of a number, in radians.
pub(crate) fn angle(of: Complex32) -> f64 {
    libm::atan2(f64::from(of.im), f64::from(of.re))
}

/// Turns `samples` back by a carrier offset of `turns` per sample.
pub(crate) fn turn_back(samples: &mut [Complex32], turns: f64) {
    let mut phasors = Vec::new();
    phasors_back(turns, samples.len(), &mut phasors);
    for (sample, phasor) in samples.iter_mut().zip(&phasors) {
        *sample *= phasor;
    }
}

/// What turns `count` samples back by a carrier offset of `turns` per sample.
pub(crate) fn phasors_back(turns: f64, count: usize, out: &mut Vec<Complex32>) {
    let step = phasor(-turns);
    let mut now = Complex64::new(1.0, 0.0);
    out.clear();
    out.extend((0..count).map(|_| {
        let narrow = Complex32::new(now.re as f32, now.im as f32);
        now *= step;
        narrow
    }));
}

/// What turns by so many turns.
pub(crate) fn phasor(turns: f64) -> Complex64 {
    let angle = std::f64::consts::TAU * (turns - libm::floor(turns));
    Complex64::new(libm::cos(angle), libm::sin(angle))
}

/// The sum of the products of `a`, conjugated, with `b`, as far as both reach: in lanes, so that no addition waits for the one before.
pub(crate) fn correlate(a: &[Complex32], b: &[Complex32]) -> Complex32 {
    const LANES: usize = 4;
    let len = a.len().min(b.len());
    let (a, b) = (&a[..len], &b[..len]);
    let (mut re, mut im) = ([0.0f32; LANES], [0.0f32; LANES]);
    let (fours_a, fours_b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest = fours_a.remainder().iter().zip(fours_b.remainder());
    let rest: Complex32 = rest.map(|(a, b)| a.conj() * b).sum();
    for (a, b) in fours_a.zip(fours_b) {
        for lane in 0..LANES {
            re[lane] += a[lane].re * b[lane].re + a[lane].im * b[lane].im;
            im[lane] += a[lane].re * b[lane].im - a[lane].im * b[lane].re;
        }
    }
    rest + Complex32::new(re.iter().sum(), im.iter().sum())
}

/// The samples that are still needed, each by its number since the first.
///
/// They lie in blocks, so that none is ever moved.
#[derive(Clone, Debug, Default)]
pub struct Ring {
    /// Every block but the last is full.
    blocks: VecDeque<Vec<Complex32>>,
    /// Blocks that are not needed at the moment.
    spare: Vec<Vec<Complex32>>,
    /// Samples of the first block that are not needed any more.
    done: usize,
    /// Number of the first sample that is left.
    start: i64,
    /// How many there are.
    len: usize,
}

/// Samples of a block: half a subframe of the widest cell.
const BLOCK: usize = 1 << 14;

impl Ring {
    /// Empty; the next sample has number `start`.
    pub fn new(start: i64) -> Ring {
        Ring { start, ..Ring::default() }
    }

    /// Number of the first sample that is there.
    pub fn start(&self) -> i64 {
        self.start
    }

    /// Number of the next sample to come.
    pub fn end(&self) -> i64 {
        self.start + self.len as i64
    }

    /// How many are there.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none is there.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends samples.
    pub fn push(&mut self, mut samples: &[Complex32]) {
        self.len += samples.len();
        while !samples.is_empty() {
            if self.blocks.back().is_none_or(|block| block.len() == BLOCK) {
                let mut block = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(BLOCK));
                block.clear();
                self.blocks.push_back(block);
            }
            let Some(block) = self.blocks.back_mut() else { return };
            let (now, later) = samples.split_at(samples.len().min(BLOCK - block.len()));
            block.extend_from_slice(now);
            samples = later;
        }
    }

    /// `count` samples were lost: those before cannot be joined with those after.
    pub fn skip(&mut self, count: u64) {
        self.start = self.end() + count as i64;
        self.spare.extend(self.blocks.drain(..));
        (self.done, self.len) = (0, 0);
    }

    /// Forgets samples before number `first`.
    pub fn forget_before(&mut self, first: i64) {
        let count = (first - self.start).clamp(0, self.len as i64) as usize;
        self.start += count as i64;
        self.len -= count;
        self.done += count;
        while self.done >= BLOCK {
            self.done -= BLOCK;
            let block = self.blocks.pop_front();
            // Some are enough: what a long search held is given back.
            self.spare.extend(block.filter(|_| self.spare.len() < SPARES));
        }
    }

    /// `count` samples from number `first` on, in pieces; `None` if some are not there.
    pub fn pieces(&self, first: i64, count: usize) -> Option<impl Iterator<Item = &[Complex32]>> {
        let from = usize::try_from(first - self.start).ok()?;
        if from + count > self.len {
            return None;
        }
        let (from, to) = (self.done + from, self.done + from + count);
        let blocks = from / BLOCK..to.div_ceil(BLOCK);
        Some(
            self.blocks.range(blocks.clone()).zip(blocks).map(move |(block, at)| {
                &block[from.saturating_sub(at * BLOCK)..(to - at * BLOCK).min(BLOCK)]
            }),
        )
    }
}

/// Blocks that are kept for what comes.
const SPARES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_found_by_their_number_across_blocks() {
        let mut ring = Ring::new(-5);
        let numbers =
            |from: i64, count: usize| (0..count).map(move |n| Complex32::new((from + n as i64) as f32, 0.0));
        let mut next = -5;
        for count in [1, BLOCK, 3 * BLOCK - 7, 0, 100] {
            ring.push(&numbers(next, count).collect::<Vec<_>>());
            next += count as i64;
        }
        let read = |ring: &Ring, first: i64, count: usize| -> Option<Vec<Complex32>> {
            Some(ring.pieces(first, count)?.flatten().copied().collect())
        };
        for first in [-5, 0, BLOCK as i64 - 6, 2 * BLOCK as i64] {
            for count in [0, 1, BLOCK, BLOCK + 9] {
                assert_eq!(
                    read(&ring, first, count),
                    Some(numbers(first, count).collect()),
                    "{count} from {first}"
                );
            }
        }
        assert_eq!(read(&ring, next - 3, 4), None);
        assert_eq!(read(&ring, -6, 2), None);
        ring.forget_before(2 * BLOCK as i64 + 3);
        assert_eq!((ring.start(), ring.end()), (2 * BLOCK as i64 + 3, next));
        assert_eq!(read(&ring, ring.start(), 50), Some(numbers(ring.start(), 50).collect()));
        ring.skip(10);
        assert!(ring.is_empty());
        ring.push(&numbers(next + 10, 3).collect::<Vec<_>>());
        assert_eq!(read(&ring, next + 11, 2), Some(numbers(next + 11, 2).collect()));
    }

    #[test]
    fn turning_back_undoes_a_carrier_offset() {
        let turns = 0.012_345;
        let mut samples: Vec<Complex32> = (0..2048)
            .map(|n| phasor(turns * f64::from(n)))
            .map(|value| Complex32::new(value.re as f32, value.im as f32))
            .collect();
        turn_back(&mut samples, turns);
        for sample in samples {
            assert!((sample - Complex32::new(1.0, 0.0)).norm() < 1e-4, "{sample}");
        }
    }

    #[test]
    fn lanes_add_up() {
        let a: Vec<_> = (0..11).map(|n| Complex32::new(n as f32, 1.0)).collect();
        let b: Vec<_> = (0..11).map(|n| Complex32::new(2.0, n as f32)).collect();
        for len in 0..a.len() {
            let expected: Complex32 = a[..len].iter().zip(&b).map(|(a, b)| a.conj() * b).sum();
            assert_eq!(correlate(&a[..len], &b[..len]), expected);
        }
    }
}
