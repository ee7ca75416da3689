//! Axes of a panel.

/// Scale of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences have equal lengths.
    #[default]
    Linear,
    /// Equal ratios have equal lengths. Values that are not positive are left out.
    Log,
}

impl Scale {
    /// Whether the scale has a place for a value.
    pub(crate) fn accepts(self, value: f64) -> bool {
        // Smaller positive numbers have too few digits for ticks.
        value.is_finite() && (self == Scale::Linear || value >= f64::MIN_POSITIVE)
    }
}

/// An axis of a panel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// Quantity with its unit, such as `Throughput (Mbit/s)`.
    pub label: String,
    /// Linear or logarithmic.
    pub scale: Scale,
    /// Whether values become smaller to the right, or upwards.
    pub reversed: bool,
    /// Smallest and largest value of the axis. `None`, or a range that the scale cannot show: the range follows from the
    /// data, and is extended to round limits.
    pub range: Option<(f64, f64)>,
    /// Values and labels of the ticks; an empty label is a minor tick. `None`: the ticks are round numbers. An axis of
    /// categories has their names here.
    pub ticks: Option<Vec<(f64, String)>>,
}

impl Axis {
    /// A linear axis whose range and ticks follow from the data.
    pub fn linear(label: &str) -> Axis {
        Axis { label: label.to_owned(), ..Axis::default() }
    }

    /// A logarithmic axis whose range and ticks follow from the data.
    pub fn log(label: &str) -> Axis {
        Axis { label: label.to_owned(), scale: Scale::Log, ..Axis::default() }
    }

    /// An axis of categories. The first category is at 0, the second at 1.
    pub fn categories(label: &str, names: &[&str]) -> Axis {
        let ticks = names.iter().enumerate().map(|(at, name)| (at as f64, (*name).to_owned())).collect();
        Axis {
            label: label.to_owned(),
            range: Some((-0.5, names.len().max(1) as f64 - 0.5)),
            ticks: Some(ticks),
            ..Axis::default()
        }
    }

    /// Whether the axis can show a value.
    pub(crate) fn accepts(&self, value: f64) -> bool {
        self.scale.accepts(value)
    }

    /// The range that the caller set, in ascending order. `None` if the axis cannot show it.
    pub(crate) fn fixed_range(&self) -> Option<(f64, f64)> {
        let (one, other) = self.range?;
        let (low, high) = (one.min(other), one.max(other));
        (self.accepts(low) && self.accepts(high) && low < high).then_some((low, high))
    }
}
