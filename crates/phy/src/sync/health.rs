//! How well a cell is heard, from subframe to subframe: tells a bad moment from the loss of the cell.

use num_complex::Complex32;

use crate::channel::Hints;
use crate::observation::Observation;

/// How well a cell is heard.
#[derive(Clone, Copy, Debug)]
pub struct Health {
    /// Averages of products of neighbours and of powers, as in [`Hints`].
    neighbours: Complex32,
    power: f32,
    /// Faint subframes in a row, and the first sample of the faint or unsure ones.
    faint: u32,
    since: i64,
    /// Subframes since the cell was last heard for sure.
    unsure: u32,
    /// Frames in a row whose PBCH could not be read.
    unread_pbch: u32,
    /// The clarity of subframes in which the PSS was at its expected place.
    clarity_at_pss: f32,
    /// How often since then the PSS was elsewhere while reference signals were blurred.
    displaced_pss: u32,
    /// The usual clarity.
    usual: f32,
    /// Doubtful subframes in a row.
    doubtful: u32,
    /// Subframes that count as heard although their reference signals are blurred, since one that was clear.
    beside: u32,
}

/// Subframes after which a cell that was clear and is gone counts as lost.
///
/// Chosen: two in a row may be a deep fade or a burst of noise.
const MOST_FAINT: u32 = 3;

/// Subframes after which a cell that was hard to hear all along counts as lost.
const MOST_UNSURE: u32 = 200;

/// A cell counts as lost after this many frames without a readable PBCH: for a clear cell, and for any other.
///
/// Chosen: the PBCH of a single frame bears more noise than any message. If it is unread, something else is wrong:
/// timing is off by more than reference signals can show.
const MOST_UNREAD_PBCH: [u32; 2] = [3, 10];

/// After this many PSS away from their expected place, a cell counts as lost. They count only if the clarity of
/// reference signals is below this share of its value before.
const MOST_DISPLACED_PSS: u32 = 2;
const BLURRED: f32 = 0.7;

/// How fast the usual clarity follows; and how fast if the subframe may not be the cell's.
const USUAL_SHARE: f32 = 0.1;
const DOUBTFUL_SHARE: f32 = 0.02;

/// After this many doubtful subframes in a row, they count as the cell's normal state.
const MOST_DOUBTFUL: u32 = 10;

/// The least fit of the PCFICH to its indicator in a subframe that is heard; and the least logarithm of how much
/// likelier this indicator is than any other.
///
/// Chosen: 32 bits of a subframe that begins elsewhere fit the best of three words by 0.2 in the mean and hardly ever
/// by 0.6. At −3 dB, where a single CCE cannot be read, true ones still fit by 0.7. A receiver that cannot read the
/// length of the control region cannot read its content either.
const LEAST_FIT: f32 = 0.6;
const LEAST_MARGIN: f32 = 5.0;

/// So many subframes count as heard although their reference signals are blurred.
///
/// Chosen: a fade at walking pace is over by then.
const MOST_BESIDE: u32 = 100;

/// Above this coherence a cell is clear.
const CLEAR: f32 = 0.6;

impl Health {
    /// For a cell of which only the usual clarity is known.
    pub fn new(usual: f32) -> Health {
        Health {
            neighbours: Complex32::default(),
            power: 0.0,
            faint: 0,
            since: 0,
            unsure: 0,
            unread_pbch: 0,
            clarity_at_pss: usual,
            displaced_pss: 0,
            usual,
            doubtful: 0,
            beside: 0,
        }
    }

    /// Starts again, as if nothing had happened.
    pub fn renew(&mut self) {
        *self = Health { clarity_at_pss: self.clarity_at_pss, ..Health::new(self.usual) };
    }

    /// Takes what a subframe told. Returns whether the cell can hardly be heard in it.
    pub fn observe(&mut self, hints: &Hints, is_doubtful: bool, sample: i64) -> bool {
        let share = if is_doubtful { DOUBTFUL_SHARE } else { USUAL_SHARE };
        self.usual += share * (hints.clarity() - self.usual);
        self.doubtful = if is_doubtful { self.doubtful + 1 } else { 0 };
        let was_clear = self.coherence() > CLEAR;
        // Within a few symbols the carrier cannot turn far. If it seems to, timing is off by whole periods of the
        // reference signals.
        let is_absurd = !hints.is_fast
            && hints.turn.re < 0.0
            && hints.turn.norm_sqr() > hints.neighbours.norm_sqr() / 16.0;
        let is_faint = is_absurd || hints.coherence() < hints.of_noise().min(0.5 * CLEAR);
        if is_faint && was_clear {
            if self.faint == 0 {
                self.since = sample;
            }
            self.faint += 1;
            return true;
        }
        self.faint = 0;
        if !is_faint {
            self.beside = 0;
        }
        let share = if self.power == 0.0 { 1.0 } else { 0.1 };
        self.neighbours += (hints.neighbours - self.neighbours) * share;
        self.power += (hints.power - self.power) * share;
        // The average runs over ten subframes: noise adds up to a third of its size in one subframe.
        if self.coherence() > hints.of_noise() / 3.0 {
            self.unsure = 0;
        } else {
            if self.unsure == 0 {
                self.since = sample;
            }
            self.unsure += 1;
        }
        is_faint && self.unsure > 0
    }

    /// Takes whether the PSS was at its expected place, and the clarity of its subframe.
    pub fn observe_primary(&mut self, is_here: bool, clarity: f32) {
        if is_here {
            self.displaced_pss = 0;
            self.clarity_at_pss += 0.2 * (clarity - self.clarity_at_pss);
        } else {
            self.displaced_pss += u32::from(clarity < BLURRED * self.clarity_at_pss);
        }
    }

    /// Takes whether the PBCH of a frame could be read.
    pub fn observe_broadcast(&mut self, is_read: bool) {
        self.unread_pbch = if is_read { 0 } else { self.unread_pbch + 1 };
    }

    /// Whether the subframe may not be one of the cell: its reference signals are suddenly blurred, or its PCFICH
    /// cannot be read.
    pub fn is_doubtful(&self, hints: &Hints, heard: &Observation) -> bool {
        hints.clarity() < BLURRED * self.usual || heard.cfi_fit < LEAST_FIT || heard.cfi_margin < LEAST_MARGIN
    }

    /// Whether the PCFICH can be read.
    pub fn is_read(heard: &Observation) -> bool {
        heard.cfi_fit >= LEAST_FIT && heard.cfi_margin >= LEAST_MARGIN
    }

    /// Whether a subframe may count as heard although its reference signals are blurred: not too often in a row.
    pub fn may_be_beside(&self, hints: &Hints) -> bool {
        hints.coherence() > hints.of_noise() || self.beside < MOST_BESIDE
    }

    /// The subframe was heard, however blurred its reference signals are: another cell explains why they are.
    pub fn observe_beside(&mut self, hints: &Hints) {
        self.beside = if hints.coherence() > hints.of_noise() { 0 } else { self.beside + 1 };
        (self.faint, self.doubtful) = (0, 0);
        (self.unread_pbch, self.displaced_pss) = (0, 0);
    }

    /// Whether the last subframe was heard without doubt.
    pub fn was_sure(&self) -> bool {
        self.doubtful == 0
    }

    /// Whether at most one subframe before was in doubt.
    pub fn is_new_doubt(&self) -> bool {
        self.doubtful <= 1
    }

    /// Whether the doubt has lasted so long that it is the cell's normal state.
    pub fn is_doubtful_for_long(&self) -> bool {
        self.doubtful > MOST_DOUBTFUL
    }

    /// The first sample from which nothing was heard for certain, if the cell is gone. `sample` is the first of the
    /// last subframe.
    pub fn lost_since(&self, sample: i64) -> Option<i64> {
        let is_unread = self.unread_pbch >= MOST_UNREAD_PBCH[usize::from(self.coherence() < CLEAR)];
        if is_unread || self.displaced_pss >= MOST_DISPLACED_PSS {
            return Some(sample);
        }
        (self.faint >= MOST_FAINT || self.unsure >= MOST_UNSURE).then_some(self.since)
    }

    fn coherence(&self) -> f32 {
        self.neighbours.norm_sqr().sqrt() / self.power.max(f32::MIN_POSITIVE)
    }
}
