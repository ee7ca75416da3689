//! Median of values, fast if it changes little between calls.

/// Factor of the range around the previous median that is searched first.
///
/// Chosen: 1.25. For an exponential distribution, this range has 15 % of the values, and nearly always the median of a
/// hundred values.
const NEAR: f32 = 1.25;

/// Computes medians of non-negative values. The previous median only saves work: the result does not depend on it.
#[derive(Clone, Debug, Default)]
pub struct Median {
    previous: f32,
    near: Vec<f32>,
}

impl Median {
    /// The value at index `values.len() / 2` in the order of [`f32::total_cmp`]; `None` if `values` is empty. Reorders
    /// the values.
    pub fn of(&mut self, values: &mut [f32]) -> Option<f32> {
        if values.is_empty() {
            return None;
        }
        let middle = values.len() / 2;
        let median = self.near_previous(values, middle).unwrap_or_else(|| select(values, middle));
        self.previous = median;
        Some(median)
    }

    /// The value of this rank if it lies near the previous median, otherwise `None`.
    fn near_previous(&mut self, values: &[f32], rank: usize) -> Option<f32> {
        let (low, high) = (self.previous / NEAR, self.previous * NEAR);
        let (mut ordered, mut below_low, mut below_high) = (0, 0, 0);
        for value in values {
            ordered += u32::from(*value >= 0.0);
            below_low += u32::from(*value < low);
            below_high += u32::from(*value < high);
        }
        // Counting by comparison is invalid if one of the values is NaN.
        let is_near = ordered as usize == values.len() && (below_low..below_high).contains(&(rank as u32));
        if !is_near {
            return None;
        }
        self.near.resize(values.len(), 0.0);
        let mut count = 0;
        for value in values {
            self.near[count] = *value;
            // The last value may lie outside the range, so the index stays within the buffer.
            count = (count + usize::from(low <= *value && *value < high)).min(values.len() - 1);
        }
        let count = (below_high - below_low) as usize;
        Some(select(&mut self.near[..count], rank - below_low as usize))
    }
}

/// The value of this rank.
fn select(values: &mut [f32], rank: usize) -> f32 {
    *values.select_nth_unstable_by(rank, f32::total_cmp).1
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpace_core::Streams;

    #[test]
    fn a_median_is_that_of_the_sorted_values_whatever_came_before() {
        let mut rng = Streams::new(1).stream("phy.median");
        let mut median = Median::default();
        for round in 0..2_000 {
            let count = 1 + rng.below(40) as usize;
            let scale = if rng.chance(0.1) { 10.0 } else { 1.0 };
            let value = |rng: &mut airpace_core::Rng| match rng.below(60) {
                0 if round % 3 == 0 => f32::NAN,
                1 if round % 3 == 0 => -f32::NAN,
                2 => f32::INFINITY,
                3 => 0.0,
                4..20 => 1.0,
                _ => (scale * rng.exponential(1.0)) as f32,
            };
            let mut values: Vec<f32> = (0..count).map(|_| value(&mut rng)).collect();
            let mut sorted = values.clone();
            sorted.sort_by(f32::total_cmp);
            let found = median.of(&mut values).expect("there are values");
            assert_eq!(found.to_bits(), sorted[count / 2].to_bits(), "{sorted:?}");
        }
        assert_eq!(median.of(&mut []), None);
    }
}
