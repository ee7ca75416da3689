//! An axis with its final range and ticks, which places values.

use super::extent::Extent;
use super::text;
use super::ticks::{self, Tick, Ticks};
use crate::{Axis, Scale};

/// Size of the labels of ticks (px).
pub const TICK_SIZE: f64 = 12.0;

/// Minimum gap between labels in a row (px).
const LABEL_GAP: f64 = 12.0;

/// Minimum distance of labels above each other (px).
pub const LINE_HEIGHT: f64 = 15.0;

/// Share of the range that is added on both sides for markers.
const PADDING: f64 = 0.04;

/// Limit of places outside the plot area, in lengths of the axis. It avoids an overflow of coordinates.
const MAX_SHARE: f64 = 1e6;

/// A smallest value below this share of the largest value extends the axis to 0, which such a range almost contains.
const NEAR_ZERO: f64 = 0.2;

/// Smallest magnitude that a linear axis can show.
const MIN_MAGNITUDE: f64 = 1e-290;

/// Smallest range of a linear axis, as a share of its values: beyond it, ticks would have too many digits.
const MIN_SPAN: f64 = 1e-9;

/// Direction of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Horizontal,
    Vertical,
}

/// An axis with its final range and ticks.
#[derive(Clone, Debug)]
pub struct Scaled {
    scale: Scale,
    is_reversed: bool,
    low: f64,
    high: f64,
    pub ticks: Vec<Tick>,
}

impl Scaled {
    /// Chooses range and ticks for an axis of `length` px.
    pub fn new(axis: &Axis, extent: &Extent, length: f64, direction: Direction) -> Scaled {
        let Some((low, high)) = range(axis, extent) else {
            let (low, high) = (1.0, 10.0);
            return Scaled { scale: axis.scale, is_reversed: axis.reversed, low, high, ticks: Vec::new() };
        };
        let scaled = |ticks: Ticks| Scaled {
            scale: axis.scale,
            is_reversed: axis.reversed,
            low: ticks.low,
            high: ticks.high,
            ticks: ticks.ticks,
        };
        if let Some(own) = &axis.ticks {
            let mut scaled = scaled(Ticks { low, high, ticks: Vec::new() });
            let shown = own.iter().filter(|(value, _)| {
                scaled.share(*value).is_some_and(|share| (-MIN_SPAN..=1.0 + MIN_SPAN).contains(&share))
            });
            scaled.ticks = shown.map(|(value, label)| Tick { value: *value, label: label.clone() }).collect();
            scaled.ticks.sort_by(|one, other| one.value.total_cmp(&other.value));
            return scaled;
        }
        let is_fixed = axis.fixed_range().is_some();
        let candidates = match axis.scale {
            Scale::Linear => {
                let distance = if direction == Direction::Horizontal { 48.0 } else { 36.0 };
                let max = (length / distance).clamp(1.0, 10.0) as usize;
                (1..=max).rev().map(|intervals| ticks::linear(low, high, is_fixed, intervals)).collect()
            }
            Scale::Log => ticks::logarithmic(low, high, is_fixed),
        };
        let mut candidates = candidates.into_iter().map(scaled).peekable();
        loop {
            let candidate = candidates.next().expect("there is a candidate for every range");
            if candidates.peek().is_none() || candidate.fits(length, direction) {
                return candidate;
            }
        }
    }

    /// Place of a value: 0 at the start of the axis (left or bottom), 1 at its end. `None` if the axis cannot show the value.
    pub fn share(&self, value: f64) -> Option<f64> {
        let place = |value: f64| match self.scale {
            // The difference of two halves does not overflow.
            Scale::Linear => value / 2.0,
            Scale::Log => libm::log10(value),
        };
        let (low, high) = (place(self.low), place(self.high));
        self.scale.accepts(value).then(|| {
            let share = ((place(value) - low) / (high - low)).clamp(-MAX_SHARE, MAX_SHARE);
            if self.is_reversed { 1.0 - share } else { share }
        })
    }

    /// The value at which bars and areas start: 0, or the limit of the axis that is nearest to it.
    pub fn base(&self) -> f64 {
        if self.scale == Scale::Log { self.low } else { 0f64.clamp(self.low, self.high) }
    }

    /// Whether neighbouring labels have a gap.
    fn fits(&self, length: f64, direction: Direction) -> bool {
        let labels: Vec<(f64, f64)> = self
            .ticks
            .iter()
            .filter(|tick| !tick.label.is_empty())
            .filter_map(|tick| Some((self.share(tick.value)? * length, text::width(&tick.label, TICK_SIZE))))
            .collect();
        labels.windows(2).all(|pair| {
            let distance = (pair[1].0 - pair[0].0).abs();
            distance
                >= match direction {
                    Direction::Horizontal => (pair[0].1 + pair[1].1) / 2.0 + LABEL_GAP,
                    Direction::Vertical => LINE_HEIGHT + 2.0,
                }
        })
    }
}

/// The range of an axis before its extension to round limits. `None` if nothing is known about it.
fn range(axis: &Axis, extent: &Extent) -> Option<(f64, f64)> {
    if let Some((low, high)) = axis.fixed_range() {
        return Some(widened(low, high, axis.scale));
    }
    let mut extent = *extent;
    let own = axis.ticks.iter().flatten().map(|tick| tick.0).filter(|value| axis.accepts(*value));
    own.for_each(|value| extent.add(value));
    if extent.is_empty() {
        return None;
    }
    if axis.scale == Scale::Log {
        let (low, high) = widened(extent.low, extent.high, axis.scale);
        let factor = if extent.is_padded { libm::pow(high / low, PADDING).min(10.0) } else { 1.0 };
        return Some(((low / factor).max(f64::MIN_POSITIVE), (high * factor).min(f64::MAX)));
    }
    let is_near_zero = extent.low > 0.0 && extent.low < NEAR_ZERO * extent.high;
    if extent.has_zero || is_near_zero {
        extent.add(0.0);
    }
    let (low, high) = widened(extent.low, extent.high, axis.scale);
    let pad = if extent.is_padded { high * PADDING - low * PADDING } else { 0.0 };
    // The padding does not make an axis of positive values start below zero.
    let below = if low >= 0.0 { (low - pad).max(0.0) } else { low - pad };
    Some((below.max(-f64::MAX), (high + pad).min(f64::MAX)))
}

/// Widens a range that is too short for ticks.
fn widened(low: f64, high: f64, scale: Scale) -> (f64, f64) {
    if scale == Scale::Log {
        let is_short = high / low < 1.0 + MIN_SPAN;
        return if is_short {
            ((low / 2.0).max(f64::MIN_POSITIVE), (high * 2.0).min(f64::MAX))
        } else {
            (low, high)
        };
    }
    let magnitude = low.abs().max(high.abs());
    if magnitude < MIN_MAGNITUDE {
        (0.0, 1.0)
    } else if high / 2.0 - low / 2.0 <= MIN_SPAN * magnitude {
        ((low - magnitude / 2.0).max(-f64::MAX), (high + magnitude / 2.0).min(f64::MAX))
    } else {
        (low, high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaled(axis: &Axis, low: f64, high: f64) -> Scaled {
        let extent = Extent { low, high, has_zero: false, is_padded: false };
        Scaled::new(axis, &extent, 300.0, Direction::Horizontal)
    }

    #[test]
    fn values_have_places() {
        let log = scaled(&Axis { range: Some((1.0, 100.0)), ..Axis::log("") }, 5.0, 6.0);
        assert_eq!(log.share(10.0), Some(0.5));
        assert_eq!((log.share(0.0), log.share(f64::NAN)), (None, None));
        let reversed = scaled(&Axis { reversed: true, ..Axis::linear("") }, 0.0, 10.0);
        assert_eq!((reversed.share(0.0), reversed.share(10.0)), (Some(1.0), Some(0.0)));
    }

    #[test]
    fn a_useless_range_is_replaced_by_that_of_the_data() {
        for range in [(f64::NAN, 1.0), (5.0, 5.0), (-1.0, 10.0)] {
            let axis = scaled(&Axis { range: Some(range), ..Axis::log("") }, 1.0, 100.0);
            assert_eq!((axis.low, axis.high), (1.0, 100.0), "{range:?}");
        }
        let axis = scaled(&Axis { range: Some((8.0, 2.0)), ..Axis::linear("") }, 0.0, 1.0);
        assert_eq!((axis.low, axis.high), (2.0, 8.0), "limits in the wrong order are exchanged");
    }

    #[test]
    fn one_value_has_a_range_around_it() {
        for value in [0.0, 5.0, -3.0, 1e-300, 1.7e308, f64::MAX] {
            let axis = scaled(&Axis::linear(""), value, value);
            assert!(axis.share(value).is_some_and(|share| (0.0..=1.0).contains(&share)), "{value}: {axis:?}");
        }
        for value in [f64::MIN_POSITIVE, 1.0, f64::MAX] {
            let axis = scaled(&Axis::log(""), value, value);
            assert!(axis.share(value).is_some_and(|share| (0.0..=1.0).contains(&share)), "{value}: {axis:?}");
        }
    }
}
