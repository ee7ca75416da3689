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

/// The samples that are still needed, each by its number since the first.
#[derive(Clone, Debug, Default)]
pub struct Ring {
    samples: Vec<Complex32>,
    /// Samples at the beginning that are not needed any more.
    done: usize,
    /// Number of the first that is left.
    start: i64,
}

impl Ring {
    /// Empty; the next sample has number `start`.
    pub fn new(start: i64) -> Ring {
        Ring { samples: Vec::new(), done: 0, start }
    }

    /// Number of the first sample that is there.
    pub fn start(&self) -> i64 {
        self.start
    }

    /// Number of the next sample to come.
    pub fn end(&self) -> i64 {
        self.start + (self.samples.len() - self.done) as i64
    }

    /// How many are there.
    pub fn len(&self) -> usize {
        self.samples.len() - self.done
    }

    /// Whether none is there.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends samples.
    pub fn push(&mut self, samples: &[Complex32]) {
        self.samples.extend_from_slice(samples);
    }

    /// Appends what `fill` does.
    pub fn push_with(&mut self, fill: impl FnOnce(&mut Vec<Complex32>)) {
        fill(&mut self.samples);
    }

    /// `count` samples were lost: those before cannot be joined with those after.
    pub fn skip(&mut self, count: u64) {
        self.start = self.end() + count as i64;
        self.samples.clear();
        self.done = 0;
    }

    /// Forgets samples before number `first`.
    pub fn forget_before(&mut self, first: i64) {
        let count = (first - self.start).clamp(0, (self.samples.len() - self.done) as i64);
        self.start += count;
        self.done += count as usize;
        // Moved seldom, so that each sample is moved about once.
        if self.done > self.samples.len() / 2 {
            self.samples.drain(..self.done);
            self.done = 0;
        }
    }

    /// `count` samples from number `first` on; `None` if some are not there.
    pub fn get(&self, first: i64, count: usize) -> Option<&[Complex32]> {
        let at = usize::try_from(first - self.start).ok()? + self.done;
        self.samples.get(at..at + count)
    }
}
