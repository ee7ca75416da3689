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

/// Turns `samples` back by a carrier offset of `turns` per sample; the first is turned by `first` turns.
pub(crate) fn turn_back(samples: &mut [Complex32], first: f64, turns: f64) {
    const LANES: usize = 32;
    if turns == 0.0 && first == 0.0 {
        return;
    }
    let phasor = |turns: f64| {
        let angle = -std::f64::consts::TAU * (turns - libm::floor(turns));
        Complex64::new(libm::cos(angle), libm::sin(angle))
    };
    let narrow = |value: Complex64| Complex32::new(value.re as f32, value.im as f32);
    let step = phasor(turns);
    let mut lane = Complex64::new(1.0, 0.0);
    let lanes: [Complex32; LANES] = std::array::from_fn(|_| {
        let now = narrow(lane);
        lane *= step;
        now
    });
    // After the last lane comes the next block.
    let mut start = phasor(first);
    for block in samples.chunks_mut(LANES) {
        let by = narrow(start);
        for (sample, lane) in block.iter_mut().zip(&lanes) {
            *sample *= by * lane;
        }
        start *= lane;
    }
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
        let first = 0.3;
        let mut samples: Vec<Complex32> = (0..2048)
            .map(|n| {
                let angle = std::f64::consts::TAU * (first + turns * f64::from(n));
                Complex32::new(libm::cos(angle) as f32, libm::sin(angle) as f32)
            })
            .collect();
        turn_back(&mut samples, first, turns);
        for sample in samples {
            assert!((sample - Complex32::new(1.0, 0.0)).norm() < 1e-4, "{sample}");
        }
    }
}
