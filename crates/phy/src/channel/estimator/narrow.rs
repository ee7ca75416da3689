//! Interference in a narrow band: a tone, or a leak of the receiver.
//!
//! It disturbs the same few subcarriers in every symbol. There, what was received differs from what the channel let
//! expect by much more than elsewhere. Reference signals on such subcarriers are replaced by what their neighbours
//! tell, and control elements on them count less.

use num_complex::Complex32;

use crate::channel::wiener::STEP;

/// Which subcarriers are disturbed.
#[derive(Clone, Debug)]
pub struct Narrow {
    /// The mean squared deviation at every third subcarrier, over that of a typical one.
    excess: Vec<f32>,
    /// Whether some are disturbed.
    is_any: bool,
    sorted: Vec<f32>,
}

/// The share by which the mean takes a new value.
///
/// Chosen: some thirty measurements, which are five subframes of a cell of two ports. The mean of so many of pure noise
/// is hardly ever off by half.
const SHARE: f32 = 0.03;

/// A channel that moves deviates in proportion to its power. Where its power is above this share of the mean, more
/// deviation is allowed in proportion.
///
/// Chosen: the median of a fading channel's power.
const USUAL_POWER: f32 = 0.7;

/// From this excess on, a subcarrier counts as disturbed …
const DISTURBED: f32 = 3.0;

/// … and from this on its neighbours up to the next reference signal do too, because the disturbance may lie between.
const LOUD: f32 = 10.0;

/// The most that a single measurement counts for: a burst is not a tone.
const MOST: f32 = 100.0;

/// The least weight of a subcarrier.
const LEAST_WEIGHT: f32 = 1e-3;

impl Narrow {
    /// For reference signals at `places` places, three subcarriers apart.
    pub fn new(places: usize) -> Narrow {
        Narrow { excess: vec![1.0; places], is_any: false, sorted: Vec::new() }
    }

    /// Begins anew.
    pub fn restart(&mut self) {
        self.excess.fill(1.0);
        self.is_any = false;
    }

    /// Takes the reference signals `raw` of a comb, and what was expected of them.
    pub fn observe(&mut self, comb: usize, raw: &[Complex32], expected: &[Complex32]) {
        let deviations = raw.iter().zip(expected).map(|(raw, expected)| (raw - expected).norm_sqr());
        self.sorted.clear();
        self.sorted.extend(deviations.clone());
        let middle = self.sorted.len() / 2;
        if self.sorted.is_empty() {
            return;
        }
        let (_, median, _) = self.sorted.select_nth_unstable_by(middle, f32::total_cmp);
        // The mean of an exponential distribution is its median over ln 2.
        let typical = *median / std::f32::consts::LN_2;
        if !(typical.is_finite() && typical > 0.0) {
            return;
        }
        let usual =
            USUAL_POWER * expected.iter().map(Complex32::norm_sqr).sum::<f32>() / expected.len() as f32;
        let louder = expected.iter().map(|gain| (gain.norm_sqr() / usual.max(f32::MIN_POSITIVE)).max(1.0));
        let new =
            deviations.zip(louder).map(|(deviation, louder)| (deviation / (typical * louder)).min(MOST));
        for (excess, new) in self.excess[comb..].iter_mut().step_by(2).zip(new) {
            // What is not a number says nothing.
            if new.is_finite() {
                *excess += SHARE * (new - *excess);
            }
        }
        self.is_any = self.excess.iter().any(|excess| *excess > DISTURBED);
    }

    /// Replaces disturbed reference signals by the line between the nearest of their comb that are not.
    pub fn mend(&self, comb: usize, raw: &mut [Complex32]) {
        if !self.is_any {
            return;
        }
        let is_good = |at: usize| self.excess[2 * at + comb] <= DISTURBED;
        let mut at = 0;
        while at < raw.len() {
            if is_good(at) {
                at += 1;
                continue;
            }
            let end = (at..raw.len()).find(|&at| is_good(at)).unwrap_or(raw.len());
            let (before, behind) = (at.checked_sub(1).map(|at| raw[at]), raw.get(end).copied());
            let (Some(from), Some(to)) = (before.or(behind), behind.or(before)) else { return };
            let steps = (end - at + 1) as f32;
            for (step, value) in raw[at..end].iter_mut().enumerate() {
                *value = from + (to - from) * ((step + 1) as f32 / steps);
            }
            at = end;
        }
    }

    /// How much each subcarrier counts: 1, or less where it is disturbed. Empty if none is. The first place is that of
    /// subcarrier `lowest`.
    pub fn weigh(&self, lowest: usize, out: &mut Vec<f32>) {
        if !self.is_any {
            out.clear();
            return;
        }
        let count = STEP * self.excess.len();
        out.clear();
        out.resize(count, 1.0);
        for (at, &excess) in self.excess.iter().enumerate().filter(|(_, excess)| **excess > DISTURBED) {
            let middle = lowest + STEP * at;
            let reach = if excess > LOUD { STEP - 1 } else { STEP / 2 };
            let weight = (1.0 / excess).max(LEAST_WEIGHT);
            for value in &mut out[middle.saturating_sub(reach)..(middle + reach + 1).min(count)] {
                *value = value.min(weight);
            }
        }
        // Between two loud places it is louder than at either.
        for (at, pair) in
            self.excess.windows(2).enumerate().filter(|(_, pair)| pair.iter().all(|e| *e > LOUD))
        {
            let between = lowest + STEP * at + 1;
            let weight = (0.1 / pair[0].max(pair[1])).max(LEAST_WEIGHT);
            for value in &mut out[between.min(count)..(between + STEP - 1).min(count)] {
                *value = value.min(weight);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpace_core::Streams;

    #[test]
    fn a_tone_is_found_and_its_subcarriers_count_less() {
        let mut rng = Streams::new(1).stream("phy.narrow");
        let mut narrow = Narrow::new(100);
        let flat = vec![Complex32::new(1.0, 0.0); 50];
        let mut weights = Vec::new();
        for tone in [0.0, 2.0] {
            for _ in 0..200 {
                for comb in 0..2 {
                    let mut raw = flat.clone();
                    for value in &mut raw {
                        *value += Complex32::new(rng.normal() as f32, rng.normal() as f32) * 0.1;
                    }
                    let angle = rng.normal() as f32 * 10.0;
                    raw[20] += Complex32::new(angle.cos(), angle.sin()) * tone;
                    narrow.observe(comb, &raw, &flat);
                    narrow.mend(comb, &mut raw);
                    if tone > 0.0 && narrow.excess[40 + comb] > DISTURBED {
                        assert!((raw[20] - flat[20]).norm() < 0.5, "{}", raw[20]);
                    }
                }
            }
            narrow.weigh(1, &mut weights);
            assert_eq!(weights.is_empty(), tone == 0.0);
        }
        let light: Vec<usize> = (0..weights.len()).filter(|&k| weights[k] < 1.0).collect();
        assert_eq!(light, (119..=126).collect::<Vec<_>>(), "places 40 and 41 and what lies around them");
    }

    #[test]
    fn what_is_not_a_number_is_survived() {
        let mut narrow = Narrow::new(12);
        let odd = vec![Complex32::new(f32::NAN, f32::INFINITY); 6];
        narrow.observe(0, &odd, &odd);
        narrow.observe(1, &[], &[]);
        let mut weights = vec![1.0];
        narrow.weigh(0, &mut weights);
        assert!(weights.is_empty());
    }
}
