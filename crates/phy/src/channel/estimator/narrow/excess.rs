//! Ratio of the squared deviation at each place (subcarrier or reference signal) to the typical squared deviation.

use super::median::Median;

/// Threshold of the ratio: above it, a place counts as disturbed.
pub const DISTURBED: f32 = 3.0;

/// Maximum value of a single measurement, in units of the previous mean, so that a burst does not pass for a tone.
const MAX_MEASUREMENT: f32 = 100.0;

/// Maximum typical deviation, in units of the noise power.
///
/// Chosen: not tuned. The limit keeps one abnormal subframe from lowering the weight of every disturbed place for a
/// long time.
const MAX_TYPICAL: f32 = 100.0;

/// Measurement at one place.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Squared deviation from the expected value.
    pub deviation: f32,
    /// Allowed deviation at this place, in units of the typical deviation; at least 1.
    pub allowed: f32,
}

/// For each place of the grid: its mean squared deviation, divided by that of a typical place.
#[derive(Clone, Debug)]
pub struct Excess {
    excess: Vec<f32>,
    /// Squared deviation of a typical place over the noise power, at least 1. The ratio exceeds 1 if the channel is
    /// curved over frequency or varies.
    typical: f32,
    is_any: bool,
    deviations: Vec<f32>,
    median: Median,
}

impl Excess {
    /// Creates the state for this many places.
    pub fn new(places: usize) -> Excess {
        Excess {
            excess: vec![1.0; places],
            typical: 1.0,
            is_any: false,
            deviations: Vec::new(),
            median: Median::default(),
        }
    }

    /// Resets all measurements.
    pub fn restart(&mut self) {
        self.excess.fill(1.0);
        (self.typical, self.is_any) = (1.0, false);
    }

    /// Averages measurements at some places with weight `share`. Most of these places must be undisturbed. `noise` is the
    /// noise power of the channel estimate; 0 if unknown. Returns the typical squared deviation.
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
            self.typical += share * (over.clamp(1.0, MAX_TYPICAL) - self.typical);
        }
        // Compute the divisions in a separate pass, so that the compiler vectorises them.
        let new = measured.iter().map(|measured| measured.deviation / (typical * measured.allowed));
        self.deviations.clear();
        self.deviations.extend(new);
        for (place, new) in places.zip(&self.deviations) {
            let excess = &mut self.excess[place];
            // Skip NaN and infinity.
            if new.is_finite() {
                *excess += share * (new.min(MAX_MEASUREMENT * excess.max(1.0)) - *excess);
            }
        }
        // The comparison has no early exit, so that the compiler vectorises it.
        self.is_any = self.excess.iter().fold(false, |is_any, excess| is_any | (*excess > DISTURBED));
        Some(typical)
    }

    /// Ratio of the squared deviation to the typical one, by place.
    pub fn all(&self) -> &[f32] {
        &self.excess
    }

    /// Whether a place is disturbed.
    pub fn is_disturbed(&self, place: usize) -> bool {
        self.excess[place] > DISTURBED
    }

    /// Whether any place is disturbed.
    pub fn is_any(&self) -> bool {
        self.is_any
    }

    /// Weight of a place: noise power over interference power if it is disturbed, otherwise 1.
    pub fn weight(&self, place: usize) -> f32 {
        if self.is_disturbed(place) { self.weight_of(self.excess[place]) } else { 1.0 }
    }

    /// Weight of a place with the ratio `excess`.
    pub fn weight_of(&self, excess: f32) -> f32 {
        (1.0 / (excess * self.typical)).max(MIN_WEIGHT)
    }
}

/// Minimum weight.
///
/// Chosen: a tone with a tenth of a cell's power is up to 21 dB stronger than a subcarrier, and a subcarrier of a clear
/// cell is 40 dB stronger than the noise.
const MIN_WEIGHT: f32 = 1e-6;
