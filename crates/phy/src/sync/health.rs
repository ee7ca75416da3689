//! Reception quality of a cell over subframes: distinguishes a short disturbance from the loss of the cell.

use num_complex::Complex32;

use crate::channel::Hints;
use crate::observation::Observation;

/// Reception quality of a cell.
#[derive(Clone, Copy, Debug)]
pub struct Health {
    /// Averages of the products of neighbouring reference signals and of their powers, as in [`Hints`].
    neighbours: Complex32,
    power: f32,
    /// Number of consecutive faint subframes, and the first sample of the present series of faint or uncertain subframes.
    faint: u32,
    since: i64,
    /// Number of subframes since the cell was last received with certainty.
    unsure: u32,
    /// Number of consecutive frames with an undecodable PBCH.
    unread_pbch: u32,
    /// Average clarity of the subframes in which the PSS was at its expected position.
    clarity_at_pss: f32,
    /// Number of displaced PSS since the PSS was last at its expected position, counted while the reference signals
    /// were blurred.
    displaced_pss: u32,
    /// Average clarity of all subframes.
    usual: f32,
    /// Number of consecutive doubtful subframes.
    doubtful: u32,
    /// Number of subframes accepted in spite of blurred reference signals since the last clear subframe.
    beside: u32,
}

/// Number of consecutive faint subframes after which a previously clear cell counts as lost.
///
/// Chosen: two in a row may be a deep fade or a burst of noise.
const MAX_FAINT: u32 = 3;

/// Number of consecutive uncertain subframes after which a cell that was never clear counts as lost.
const MAX_UNSURE: u32 = 200;

/// Number of consecutive frames with an undecodable PBCH after which a cell counts as lost: first for a clear cell,
/// then for any other cell.
///
/// Chosen: the PBCH of a single frame tolerates more noise than any message. If it cannot be decoded, there is another
/// cause: the timing error exceeds the range that reference signals can resolve.
const MAX_UNREAD_PBCH: [u32; 2] = [3, 10];

/// Number of displaced PSS after which a cell counts as lost.
const MAX_DISPLACED_PSS: u32 = 2;

/// Threshold of blurred reference signals: their clarity is below this share of its average. A displaced PSS counts only
/// if the reference signals are blurred relative to subframes in which the PSS was at its expected position.
const BLURRED: f32 = 0.7;

/// Weight of a subframe in the average clarity.
const USUAL_SHARE: f32 = 0.1;

/// Weight of a doubtful subframe in the average clarity.
const DOUBTFUL_SHARE: f32 = 0.02;

/// Number of consecutive doubtful subframes after which doubt counts as the cell's normal state.
const MAX_DOUBTFUL: u32 = 10;

/// Minimum correlation of the PCFICH with the best CFI codeword in a received subframe.
///
/// Chosen: at a wrong subframe start, the 32 received bits correlate with the best of three code words by 0.2 on
/// average and rarely by 0.6. At −3 dB, where a message on a single CCE cannot be decoded, the correct code word still
/// correlates by 0.7. A receiver that cannot decode the length of the control region cannot decode its content either.
const MIN_FIT: f32 = 0.6;

/// Minimum log-likelihood ratio between the best CFI and any other CFI (nats).
const MIN_MARGIN: f32 = 5.0;

/// Maximum number of subframes accepted in spite of blurred reference signals.
///
/// Chosen: a fade at walking pace is shorter than this.
const MAX_BESIDE: u32 = 100;

/// Minimum coherence of a clear cell.
const CLEAR: f32 = 0.6;

impl Health {
    /// State of a cell for which only the average clarity is known.
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

    /// Resets the state, except for the clarity averages.
    pub fn renew(&mut self) {
        *self = Health { clarity_at_pss: self.clarity_at_pss, ..Health::new(self.usual) };
    }

    /// Adds the measurements of a subframe. Returns whether the subframe is faint: the cell can barely be detected in it.
    pub fn observe(&mut self, hints: &Hints, is_doubtful: bool, sample: i64) -> bool {
        let share = if is_doubtful { DOUBTFUL_SHARE } else { USUAL_SHARE };
        self.usual += share * (hints.clarity() - self.usual);
        self.doubtful = if is_doubtful { self.doubtful + 1 } else { 0 };
        let was_clear = self.coherence() > CLEAR;
        // The carrier phase cannot rotate far within a few symbols. If it appears to rotate far, the timing is off by
        // whole periods of the reference signals.
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
        // The average covers ten subframes. The coherence of noise in this average is a third of its coherence in a
        // single subframe.
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

    /// Records whether the PSS was at its expected position, and the clarity of its subframe.
    pub fn observe_primary(&mut self, is_here: bool, clarity: f32) {
        if is_here {
            self.displaced_pss = 0;
            self.clarity_at_pss += 0.2 * (clarity - self.clarity_at_pss);
        } else {
            self.displaced_pss += u32::from(clarity < BLURRED * self.clarity_at_pss);
        }
    }

    /// Records whether the PBCH of a frame could be decoded.
    pub fn observe_broadcast(&mut self, is_read: bool) {
        self.unread_pbch = if is_read { 0 } else { self.unread_pbch + 1 };
    }

    /// Returns whether the subframe may not belong to the cell: its reference signals are suddenly blurred, or its PCFICH
    /// cannot be decoded.
    pub fn is_doubtful(&self, hints: &Hints, heard: &Observation) -> bool {
        hints.clarity() < BLURRED * self.usual || heard.cfi_fit < MIN_FIT || heard.cfi_margin < MIN_MARGIN
    }

    /// Returns whether the PCFICH can be decoded.
    pub fn is_read(heard: &Observation) -> bool {
        heard.cfi_fit >= MIN_FIT && heard.cfi_margin >= MIN_MARGIN
    }

    /// Returns whether a subframe with blurred reference signals may be accepted: only [`MAX_BESIDE`] times in a row.
    pub fn may_be_beside(&self, hints: &Hints) -> bool {
        hints.coherence() > hints.of_noise() || self.beside < MAX_BESIDE
    }

    /// Records an accepted subframe whose reference signals may be blurred by another, known cell.
    pub fn observe_beside(&mut self, hints: &Hints) {
        self.beside = if hints.coherence() > hints.of_noise() { 0 } else { self.beside + 1 };
        (self.faint, self.doubtful) = (0, 0);
        (self.unread_pbch, self.displaced_pss) = (0, 0);
    }

    /// Returns whether the last subframe was not doubtful.
    pub fn was_sure(&self) -> bool {
        self.doubtful == 0
    }

    /// Returns whether all subframes before the last subframe were free of doubt.
    pub fn is_new_doubt(&self) -> bool {
        self.doubtful <= 1
    }

    /// Returns whether more than [`MAX_DOUBTFUL`] consecutive subframes were doubtful, so that doubt counts as the
    /// cell's normal state.
    pub fn is_doubtful_for_long(&self) -> bool {
        self.doubtful > MAX_DOUBTFUL
    }

    /// If the cell is lost, returns the first sample from which reception was uncertain. `sample` is the first sample of
    /// the last subframe.
    pub fn lost_since(&self, sample: i64) -> Option<i64> {
        let is_unread = self.unread_pbch >= MAX_UNREAD_PBCH[usize::from(self.coherence() < CLEAR)];
        if is_unread || self.displaced_pss >= MAX_DISPLACED_PSS {
            return Some(sample);
        }
        (self.faint >= MAX_FAINT || self.unsure >= MAX_UNSURE).then_some(self.since)
    }

    fn coherence(&self) -> f32 {
        self.neighbours.norm_sqr().sqrt() / self.power.max(f32::MIN_POSITIVE)
    }
}
