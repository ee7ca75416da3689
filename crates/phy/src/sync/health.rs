//! How well a cell is heard, from subframe to subframe: what is a bad moment, and what is the end.

use num_complex::Complex32;

use crate::channel::Hints;
use crate::observation::Observation;

/// How well a cell is heard.
#[derive(Clone, Copy, Debug)]
pub struct Health {
    /// Averages of products of neighbours and of powers, as in [`Hints`].
    neighbours: Complex32,
    power: f32,
    /// Faint subframes in a row, and where they began.
    faint: u32,
    since: i64,
    /// Subframes since the cell was last heard for sure.
    unsure: u32,
    /// Frames in a row whose PBCH could not be read.
    mute: u32,
    /// The clarity of subframes in which the PSS was where it was expected, and how many since in which it was not, and
    /// reference signals were blurred.
    sharp: f32,
    astray: u32,
    /// The usual clarity.
    usual: f32,
    /// Doubtful subframes in a row.
    doubtful: u32,
}

/// Subframes after which a cell that was clear and is gone counts as lost.
///
/// Chosen: two in a row may be a deep fade or a burst of noise.
const GONE: u32 = 3;

/// Subframes after which a cell that was hard to hear all along counts as lost.
const TOO_FAINT: u32 = 200;

/// Frames without a readable PBCH after which a cell counts as lost: one that is clear, and one that is not.
///
/// Chosen: the PBCH of a single frame bears more noise than any message; unread, something else is wrong: timing by more
/// than reference signals can tell.
const MUTE: [u32; 2] = [3, 10];

/// PSS that are not where they are expected, with reference signals of less than this share of their clarity before, after
/// which a cell counts as lost.
const ASTRAY: u32 = 2;
const BLURRED: f32 = 0.7;

/// How fast the usual clarity follows, and how fast if it may be none of the cell's.
const USUAL_SHARE: f32 = 0.1;
const DOUBTFUL_SHARE: f32 = 0.02;

/// Doubtful subframes in a row after which they are what the cell is like from now on.
const NEW_USAGE: u32 = 10;

/// How well the PCFICH fits its indicator in a subframe that is heard, at least, and the least logarithm of how much likelier
/// that is than any other.
///
/// Chosen: 32 bits of a subframe that begins elsewhere fit the best of three words by 0.2 in the mean and hardly ever by 0.6;
/// at −3 dB, where a single CCE cannot be read, they still fit by 0.7. Whoever does not hear how long the control region is
/// does not hear what stands in it.
const LEAST_FIT: f32 = 0.6;
const LEAST_MARGIN: f32 = 5.0;

/// A coherence beyond which a cell is clear.
const CLEAR: f32 = 0.6;

impl Health {
    /// Of a cell of which nothing is known but how clear it usually is.
    pub fn new(usual: f32) -> Health {
        Health {
            neighbours: Complex32::default(),
            power: 0.0,
            faint: 0,
            since: 0,
            unsure: 0,
            mute: 0,
            sharp: usual,
            astray: 0,
            usual,
            doubtful: 0,
        }
    }

    /// As if nothing had happened.
    pub fn renew(&mut self) {
        *self = Health { sharp: self.sharp, ..Health::new(self.usual) };
    }

    /// Takes what a subframe told; whether the cell, clear before, can hardly be heard in it.
    pub fn observe(&mut self, hints: &Hints, is_doubtful: bool, sample: i64) -> bool {
        let share = if is_doubtful { DOUBTFUL_SHARE } else { USUAL_SHARE };
        self.usual += share * (hints.clarity() - self.usual);
        self.doubtful = if is_doubtful { self.doubtful + 1 } else { 0 };
        let was_clear = self.coherence() > CLEAR;
        // Within a few symbols the carrier cannot turn far: where it seems to, timing is off by whole periods of the reference
        // signals.
        let is_absurd = hints.turn.re < 0.0 && hints.turn.norm_sqr() > hints.neighbours.norm_sqr() / 16.0;
        let is_faint = is_absurd || hints.coherence() < hints.of_noise().min(0.5 * CLEAR);
        if is_faint && was_clear {
            if self.faint == 0 {
                self.since = sample;
            }
            self.faint += 1;
            return true;
        }
        self.faint = 0;
        let share = if self.power == 0.0 { 1.0 } else { 0.1 };
        self.neighbours += (hints.neighbours - self.neighbours) * share;
        self.power += (hints.power - self.power) * share;
        // Ten subframes are averaged: noise adds up to a third of that in one.
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

    /// Takes whether the PSS was where it was expected, and the clarity of the subframe that it lies in.
    pub fn observe_primary(&mut self, is_here: bool, clarity: f32) {
        if is_here {
            self.astray = 0;
            self.sharp += 0.2 * (clarity - self.sharp);
        } else {
            self.astray += u32::from(clarity < BLURRED * self.sharp);
        }
    }

    /// Takes whether the PBCH of a frame could be read.
    pub fn observe_broadcast(&mut self, is_read: bool) {
        self.mute = if is_read { 0 } else { self.mute + 1 };
    }

    /// Whether it may not be a subframe of the cell that was heard: its reference signals are suddenly blurred, or its PCFICH
    /// says nothing.
    pub fn is_doubtful(&self, hints: &Hints, heard: &Observation) -> bool {
        hints.clarity() < BLURRED * self.usual || heard.cfi_fit < LEAST_FIT || heard.cfi_margin < LEAST_MARGIN
    }

    /// Whether the last subframe was heard without doubt.
    pub fn was_sure(&self) -> bool {
        self.doubtful == 0
    }

    /// Whether there was doubt for so long that this is what the cell is like.
    pub fn is_new_usage(&self) -> bool {
        self.doubtful > NEW_USAGE
    }

    /// The first sample in which nothing is known to be heard, if the cell is not there any more. `sample` is that of the last
    /// subframe.
    pub fn lost_since(&self, sample: i64) -> Option<i64> {
        let is_mute = self.mute >= MUTE[usize::from(self.coherence() < CLEAR)];
        if is_mute || self.astray >= ASTRAY {
            return Some(sample);
        }
        (self.faint >= GONE || self.unsure >= TOO_FAINT).then_some(self.since)
    }

    fn coherence(&self) -> f32 {
        self.neighbours.norm_sqr().sqrt() / self.power.max(f32::MIN_POSITIVE)
    }
}
