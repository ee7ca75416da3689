//! What reference signals tell about timing and carrier.

use num_complex::Complex32;

/// What one subframe tells about synchronisation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Hints {
    /// Sum of products of neighbouring reference signals of a port, the lower conjugated: its angle is that of a
    /// delay over six subcarriers.
    pub neighbours: Complex32,
    /// Sum of the powers of all reference signals.
    pub power: f32,
    /// How many neighbours there were.
    pub pairs: usize,
    /// How many reference signals there were.
    pub count: usize,
    /// Sum of products of the reference signals of the first symbol, conjugated, with those of the last symbol but two
    /// of the first slot: its angle is that of a carrier offset over the time between them.
    pub turn: Complex32,
    /// The largest possible amount of `turn`.
    pub most_turn: f32,
    /// Whether the channel is known to move so fast that those symbols need not be alike.
    pub is_fast: bool,
}

impl Hints {
    /// Takes in what another subframe tells.
    pub(crate) fn add(&mut self, other: &Hints) {
        self.neighbours += other.neighbours;
        self.power += other.power;
        self.pairs += other.pairs;
        self.count += other.count;
        self.turn += other.turn;
        self.most_turn += other.most_turn;
        self.is_fast |= other.is_fast;
    }

    /// The same of signals whose power is `by` times as large.
    pub(crate) fn times(&self, by: f32) -> Hints {
        Hints {
            neighbours: self.neighbours * by,
            power: self.power * by,
            turn: self.turn * by,
            most_turn: self.most_turn * by,
            ..*self
        }
    }

    /// How alike neighbours are: 1 without noise and echoes, around [`Hints::of_noise`] without a cell.
    pub fn coherence(&self) -> f32 {
        self.neighbours.norm_sqr().sqrt() / self.power.max(f32::MIN_POSITIVE)
    }

    /// How alike neighbours are, both within a symbol and from the first symbol to a later one. If samples are missing
    /// in between, the later one is not a symbol, and only the second part shows it.
    pub fn clarity(&self) -> f32 {
        let steadiness = self.turn.norm_sqr().sqrt() / self.most_turn.max(f32::MIN_POSITIVE);
        if self.most_turn > 0.0 && !self.is_fast {
            self.coherence().min(steadiness)
        } else {
            self.coherence()
        }
    }

    /// The coherence that noise alone reaches in about one of 8000 subframes.
    pub fn of_noise(&self) -> f32 {
        3.0 / (self.pairs.max(1) as f32).sqrt()
    }
}
