//! Buffer of the samples still needed, addressed by sample number.

use std::collections::VecDeque;
use std::ops::Range;

use num_complex::Complex32;

/// Sample buffer. Contiguous samples form a run. A run stores its samples in blocks, so that no sample is ever moved.
#[derive(Clone, Debug)]
pub struct Ring {
    /// At least one run. New samples are appended to the last run.
    runs: VecDeque<Run>,
    /// Unused blocks, kept for reuse.
    spare: Vec<Vec<Complex32>>,
}

/// Contiguous samples without a gap.
#[derive(Clone, Debug)]
struct Run {
    /// Blocks of samples. All blocks except the last are full.
    blocks: VecDeque<Vec<Complex32>>,
    /// Number of samples in the first block that are no longer needed.
    done: usize,
    /// Number of the first sample still stored.
    start: i64,
    /// Number of samples stored.
    len: usize,
}

/// Length of a block (samples): half a subframe of the widest cell.
const BLOCK: usize = 1 << 14;

/// Maximum number of unused blocks kept for reuse.
const SPARES: usize = 8;

/// Maximum number of runs.
///
/// Chosen: a receiver that loses samples more often than this during one cell search is unusable.
const MAX_RUNS: usize = 16;

/// Maximum length of a gap (samples), about a day. Longer gaps are shortened to it, so that floating-point numbers can
/// represent fractional sample numbers.
const MAX_LOST: u64 = 1 << 42;

impl Ring {
    /// Creates an empty buffer whose next sample has number `start`.
    pub fn new(start: i64) -> Ring {
        Ring { runs: VecDeque::from([Run::new(start)]), spare: Vec::new() }
    }

    /// Number of the first sample stored.
    pub fn start(&self) -> i64 {
        self.runs.front().map_or(0, |run| run.start)
    }

    /// Number of the next sample to be pushed.
    pub fn end(&self) -> i64 {
        self.runs.back().map_or(0, Run::end)
    }

    /// Number of samples stored.
    pub fn len(&self) -> usize {
        self.runs.iter().map(|run| run.len).sum()
    }

    /// Returns whether no sample is stored.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the sample numbers of the run that contains `number`, or else of the next run after it. The last run is
    /// still growing and may be empty. Returns `None` only if `number` lies after the end.
    pub fn run_from(&self, number: i64) -> Option<Range<i64>> {
        let mut runs = self.runs.iter().map(|run| run.start..run.end());
        let last = self.end();
        runs.find(|run| number < run.end || run.end == last && number == last)
    }

    /// Appends samples.
    pub fn push(&mut self, mut samples: &[Complex32]) {
        let Some(run) = self.runs.back_mut() else { return };
        run.len += samples.len();
        while !samples.is_empty() {
            if run.blocks.back().is_none_or(|block| block.len() == BLOCK) {
                let mut block = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(BLOCK));
                block.clear();
                run.blocks.push_back(block);
            }
            let Some(block) = run.blocks.back_mut() else { return };
            let (now, later) = samples.split_at(samples.len().min(BLOCK - block.len()));
            block.extend_from_slice(now);
            samples = later;
        }
    }

    /// Inserts a gap of `count` lost samples. Samples before and after the gap belong to different runs.
    pub fn skip(&mut self, count: u64) {
        if count == 0 {
            return;
        }
        let next = self.end().saturating_add(count.min(MAX_LOST) as i64);
        if let Some(run) = self.runs.back_mut().filter(|run| run.len == 0) {
            run.start = next;
            return;
        }
        self.runs.push_back(Run::new(next));
        if self.runs.len() > MAX_RUNS {
            self.drop_first();
        }
    }

    /// Drops the samples before number `first`.
    pub fn forget_before(&mut self, first: i64) {
        while self.runs.len() > 1 && self.runs[0].end() <= first {
            self.drop_first();
        }
        let Some(run) = self.runs.front_mut() else { return };
        let count = (first - run.start).clamp(0, run.len as i64) as usize;
        run.start += count as i64;
        run.len -= count;
        run.done += count;
        while run.done >= BLOCK {
            run.done -= BLOCK;
            let block = run.blocks.pop_front();
            // Keep only a few spare blocks, and release the memory of a long search.
            self.spare.extend(block.filter(|_| self.spare.len() < SPARES));
        }
    }

    /// Drops the samples before the last gap that is longer than `longest` samples and ends before `number`.
    pub fn forget_beyond_gap(&mut self, number: i64, longest: i64) {
        let mut gaps = self.runs.iter().zip(self.runs.iter().skip(1));
        let is_long =
            |(before, after): &(&Run, &Run)| after.start < number && after.start - before.end() > longest;
        if let Some((_, after)) = gaps.rfind(is_long) {
            self.forget_before(after.start);
        }
    }

    /// Drops all but the last `count` samples.
    pub fn keep(&mut self, count: usize) {
        let mut gone = self.len().saturating_sub(count);
        while let Some(run) = self.runs.front().filter(|_| gone > 0) {
            let here = gone.min(run.len);
            self.forget_before(run.start + here as i64);
            gone -= here;
        }
    }

    /// Returns `count` samples from number `first` on, in pieces. Returns `None` if some are not stored, or if there is a
    /// gap between them.
    pub fn pieces(&self, first: i64, count: usize) -> Option<impl Iterator<Item = &[Complex32]> + Clone> {
        let run =
            self.runs.iter().find(|run| run.start <= first && first < run.end() || run.start == first)?;
        let from = usize::try_from(first - run.start).ok()?;
        if from + count > run.len {
            return None;
        }
        let (from, to) = (run.done + from, run.done + from + count);
        let blocks = from / BLOCK..to.div_ceil(BLOCK);
        Some(
            run.blocks.range(blocks.clone()).zip(blocks).map(move |(block, at)| {
                &block[from.saturating_sub(at * BLOCK)..(to - at * BLOCK).min(BLOCK)]
            }),
        )
    }

    fn drop_first(&mut self) {
        let blocks = self.runs.pop_front().map(|run| run.blocks).unwrap_or_default();
        let room = SPARES.saturating_sub(self.spare.len());
        self.spare.extend(blocks.into_iter().take(room));
    }
}

impl Run {
    fn new(start: i64) -> Run {
        Run { blocks: VecDeque::new(), done: 0, start, len: 0 }
    }

    fn end(&self) -> i64 {
        self.start + self.len as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(from: i64, count: usize) -> impl Iterator<Item = Complex32> {
        (0..count).map(move |n| Complex32::new((from + n as i64) as f32, 0.0))
    }

    fn read(ring: &Ring, first: i64, count: usize) -> Option<Vec<Complex32>> {
        Some(ring.pieces(first, count)?.flatten().copied().collect())
    }

    #[test]
    fn samples_are_found_by_their_number_across_blocks() {
        let mut ring = Ring::new(-5);
        let mut next = -5;
        for count in [1, BLOCK, 3 * BLOCK - 7, 0, 100] {
            ring.push(&numbers(next, count).collect::<Vec<_>>());
            next += count as i64;
        }
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
    }

    #[test]
    fn what_lies_before_a_gap_is_kept_until_it_is_forgotten() {
        let mut ring = Ring::new(0);
        ring.push(&numbers(0, 100).collect::<Vec<_>>());
        ring.skip(50);
        ring.skip(50);
        assert_eq!((ring.run_from(100), ring.end()), (Some(200..200), 200), "the next has not come yet");
        ring.push(&numbers(200, 30).collect::<Vec<_>>());
        assert_eq!((ring.start(), ring.end(), ring.len()), (0, 230, 130));
        assert_eq!([-1, 99, 100, 229, 230].map(|at| ring.run_from(at)), {
            let (before, after) = (Some(0..100), Some(200..230));
            [before.clone(), before, after.clone(), after.clone(), after]
        });
        assert_eq!(read(&ring, 90, 10), Some(numbers(90, 10).collect()));
        assert_eq!([read(&ring, 90, 11), read(&ring, 150, 2), read(&ring, 199, 2)], [None, None, None]);
        assert_eq!(read(&ring, 200, 30), Some(numbers(200, 30).collect()));
        ring.keep(40);
        assert_eq!((ring.start(), ring.len()), (90, 40));
        ring.forget_before(100);
        assert_eq!((ring.start(), ring.len()), (200, 30));
    }

    #[test]
    fn constant_sample_loss_does_not_fill_the_memory() {
        let mut ring = Ring::new(0);
        for _ in 0..1000 {
            ring.push(&[Complex32::default(); 10]);
            ring.skip(u64::MAX >> 20);
        }
        assert!(ring.len() <= 10 * MAX_RUNS && ring.spare.len() <= SPARES);
    }

    #[test]
    fn what_lies_beyond_a_long_gap_is_forgotten() {
        let mut ring = Ring::new(0);
        for gap in [1000, 10, 1000, 10] {
            ring.push(&[Complex32::default(); 100]);
            ring.skip(gap);
        }
        ring.push(&[Complex32::default(); 100]);
        // The runs start at 0, 1100, 1210, 2310 and 2420.
        for (number, longest, start) in
            [(2420, 2000, 0), (2310, 500, 1100), (2311, 500, 2310), (2500, 5, 2420)]
        {
            let mut ring = ring.clone();
            ring.forget_beyond_gap(number, longest);
            assert_eq!((ring.start(), ring.end()), (start, 2520), "before {number}");
        }
    }
}
