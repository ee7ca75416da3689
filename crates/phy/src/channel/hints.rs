//! Timing and carrier measurements from reference signals.

use num_complex::Complex32;

/// Synchronisation measurements from one subframe, or the sum over several.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Hints {
    /// Sum of products of neighbouring reference signals of a port, the signal on the lower subcarrier conjugated. Its
    /// angle is the phase rotation of a delay over six subcarriers.
    pub neighbours: Complex32,
    /// Sum of the powers of all reference signals.
    pub power: f32,
    /// Number of pairs of neighbouring reference signals.
    pub pairs: usize,
    /// Number of reference signals.
    pub count: usize,
    /// Sum of products of the reference signals of the first symbol, conjugated, with the reference signals of the
    /// third symbol from the end of the first slot. Its angle is the phase rotation of a carrier offset over the time
    /// between these symbols.
    pub turn: Complex32,
    /// Maximum possible magnitude of `turn`.
    pub most_turn: f32,
    /// Whether the channel moves so fast that these two symbols may differ.
    pub is_fast: bool,
}

impl Hints {
    /// Adds the measurements of another subframe.
    pub(crate) fn add(&mut self, other: &Hints) {
        self.neighbours += other.neighbours;
        self.power += other.power;
        self.pairs += other.pairs;
        self.count += other.count;
        self.turn += other.turn;
        self.most_turn += other.most_turn;
        self.is_fast |= other.is_fast;
    }

    /// Returns the measurements, scaled to signals with `by` times the power.
    pub(crate) fn times(&self, by: f32) -> Hints {
        Hints {
            neighbours: self.neighbours * by,
            power: self.power * by,
            turn: self.turn * by,
            most_turn: self.most_turn * by,
            ..*self
        }
    }

    /// Coherence of neighbouring reference signals: 1 without noise and echoes, around [`Hints::of_noise`] without a
    /// cell.
    pub fn coherence(&self) -> f32 {
        self.neighbours.norm_sqr().sqrt() / self.power.max(f32::MIN_POSITIVE)
    }

    /// Minimum of the coherence within a symbol and from the first symbol to a later symbol. If samples are missing
    /// between them, the later samples are not a symbol, and only the second coherence drops.
    pub fn clarity(&self) -> f32 {
        let steadiness = self.turn.norm_sqr().sqrt() / self.most_turn.max(f32::MIN_POSITIVE);
        if self.most_turn > 0.0 && !self.is_fast {
            self.coherence().min(steadiness)
        } else {
            self.coherence()
        }
    }

    /// Threshold of coherence that noise alone exceeds in about one of 8000 subframes.
    pub fn of_noise(&self) -> f32 {
        3.0 / (self.pairs.max(1) as f32).sqrt()
    }
}
