//! By how much more some places deviate than a typical one.

use super::median::Median;

/// From this excess on, a place counts as disturbed.
pub const DISTURBED: f32 = 3.0;

/// A single measurement counts for at most this many times what was known before: a burst is not a tone.
const MOST: f32 = 100.0;

/// A typical place counts for at most this many times the noise.
///
/// Chosen: without trying others. It keeps one odd subframe from lowering the weight of every disturbed place for long.
const MOST_TYPICAL: f32 = 100.0;

/// What was measured at a place.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// The squared deviation from what was expected.
    pub deviation: f32,
    /// How many times the typical deviation is still usual there: 1 or more.
    pub allowed: f32,
}

/// The mean squared deviation at each place, over that of a typical one.
#[derive(Clone, Debug)]
pub struct Excess {
    excess: Vec<f32>,
    /// The squared deviation of a typical place over the noise, 1 or more: where channels bend or move, no place fits.
    typical: f32,
    is_any: bool,
    deviations: Vec<f32>,
    median: Median,
}

impl Excess {
    /// For so many places.
    pub fn new(places: usize) -> Excess {
        Excess {
            excess: vec![1.0; places],
            typical: 1.0,
            is_any: false,
            deviations: Vec::new(),
            median: Median::default(),
        }
    }

    /// Begins anew.
    pub fn restart(&mut self) {
        self.excess.fill(1.0);
        (self.typical, self.is_any) = (1.0, false);
    }

    /// Takes what was measured at some places into the means, with this share. Most of them must be undisturbed. `noise` is
    /// its power as the channel's estimate knows it; 0 if it is not known. Returns the squared deviation of a typical place.
    pub fn take(
        &mut self,
        share: f32,
        places: impl Iterator<Item = usize>,
        measured: &[Measured],
        noise: f32,
    ) -> Option<f32> {
        self.deviations.clear();
        self.deviations.extend(measured.iter().map(|measured| measured.deviation));
        // The mean of an exponential distribution is its median over ln 2.
        let typical = self.median.of(&mut self.deviations)? / std::f32::consts::LN_2;
        if !(typical.is_finite() && typical > 0.0) {
            return None;
        }
        let over = typical / noise;
        if over.is_finite() {
            self.typical += share * (over.clamp(1.0, MOST_TYPICAL) - self.typical);
        }
        // In a pass of its own: so the compiler divides several at once.
        let new = measured.iter().map(|measured| measured.deviation / (typical * measured.allowed));
        self.deviations.clear();
        self.deviations.extend(new);
        for (place, new) in places.zip(&self.deviations) {
            let excess = &mut self.excess[place];
            // What is not a number says nothing.
            if new.is_finite() {
                *excess += share * (new.min(MOST * excess.max(1.0)) - *excess);
            }
        }
        // Without an early end: so the compiler compares several at once.
        self.is_any = self.excess.iter().fold(false, |is_any, excess| is_any | (*excess > DISTURBED));
        Some(typical)
    }

    /// By place.
    pub fn all(&self) -> &[f32] {
        &self.excess
    }

    /// Whether a place is disturbed.
    pub fn is_disturbed(&self, place: usize) -> bool {
        self.excess[place] > DISTURBED
    }

    /// Whether some are.
    pub fn is_any(&self) -> bool {
        self.is_any
    }

    /// How much a disturbed place counts: the noise over what disturbs it. An undisturbed one counts 1.
    pub fn weight(&self, place: usize) -> f32 {
        if self.is_disturbed(place) { self.weight_of(self.excess[place]) } else { 1.0 }
    }

    /// How much a place of this excess counts.
    pub fn weight_of(&self, excess: f32) -> f32 {
        (1.0 / (excess * self.typical)).max(LEAST_WEIGHT)
    }
}

/// The least weight.
///
/// Chosen: a tone at a tenth of a cell's power is up to 21 dB above a subcarrier, and a clear cell 40 dB above the noise.
const LEAST_WEIGHT: f32 = 1e-6;
