//! Marks: the data that a panel shows.

use crate::{Percentiles, Style, empirical_cdf};

/// Data of a panel. Later marks are drawn over earlier ones, but spans are below the grid, areas, stacks and bars below the
/// axes, and all others above.
#[derive(Clone, Debug, PartialEq)]
pub enum Mark {
    /// A line through points.
    Line(Line),
    /// A filled curve, such as the capacity behind flows.
    Area(Area),
    /// Areas on top of each other.
    Stack(Stack),
    /// A scatter plot.
    Points(Points),
    /// Percentiles on both axes: a thin line from the 10th to the 90th, a thick line from the 25th to the 75th, and a marker
    /// at the medians.
    Cross(Spread),
    /// Percentiles on both axes: a rectangle from the 25th to the 75th, thin lines from the 10th to the 90th, and a marker at
    /// the medians.
    PercentileBox(Spread),
    /// Bars of one series. Several series at a category stand side by side.
    Bars(Bars),
    /// A vertical error bar.
    Interval(Interval),
    /// Shaded ranges of x.
    Spans(Spans),
    /// A line across the panel at a value of y.
    HorizontalLine(Rule),
    /// A line across the panel at a value of x.
    VerticalLine(Rule),
    /// Text at a point.
    Text(Note),
}

/// A line through points.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Colour, dashes and marker.
    pub style: Style,
    /// Points in the order of the line. A point that cannot be drawn makes a gap.
    pub points: Vec<(f64, f64)>,
    /// Whether y keeps its value until the next point, and changes there at once.
    pub stepped: bool,
    /// Whether points have markers. Of many points, only some have one.
    pub markers: bool,
    /// Whether y is on the second axis.
    pub second_y: bool,
}

impl Line {
    /// A line without markers, directly from point to point.
    pub fn new(style: Style, points: Vec<(f64, f64)>) -> Line {
        Line { style, points, stepped: false, markers: false, second_y: false }
    }

    /// The empirical distribution of values: the share (0 to 1) of values up to x.
    pub fn cdf(style: Style, values: &[f64]) -> Line {
        Line { stepped: true, ..Line::new(style, empirical_cdf(values)) }
    }
}

/// A filled curve down to zero, or to the bottom of a logarithmic axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Area {
    /// Colour and hatch. The area is translucent, and the curve has the full colour.
    pub style: Style,
    /// Points of the curve, from left to right. A point that cannot be drawn makes a gap.
    pub points: Vec<(f64, f64)>,
    /// Whether y keeps its value until the next point, and changes there at once.
    pub stepped: bool,
    /// Whether y is on the second axis.
    pub second_y: bool,
}

/// Areas on top of each other, over common x. The first layer is at the bottom.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    /// Values of x, from left to right.
    pub x: Vec<f64>,
    /// The layers, from bottom to top.
    pub layers: Vec<Layer>,
    /// Whether y keeps its value until the next x, and changes there at once.
    pub stepped: bool,
}

/// A layer of a [`Stack`].
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// Colour and hatch.
    pub style: Style,
    /// Height at each x. Missing, negative and not finite values count as 0.
    pub heights: Vec<f64>,
}

impl Layer {
    /// Height at the x with this number.
    pub(crate) fn height(&self, at: usize) -> f64 {
        self.heights.get(at).copied().filter(|height| height.is_finite() && *height > 0.0).unwrap_or(0.0)
    }
}

/// A scatter plot of one series.
#[derive(Clone, Debug, PartialEq)]
pub struct Points {
    /// Colour and marker.
    pub style: Style,
    /// The points.
    pub points: Vec<Point>,
    /// Whether y is on the second axis.
    pub second_y: bool,
}

/// A point of a scatter plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Value on the x axis.
    pub x: f64,
    /// Value on the y axis.
    pub y: f64,
    /// Text beside the marker, or an empty text. It is left out if no side of the marker is free.
    pub label: String,
}

/// Percentiles of two quantities.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    /// Colour and marker.
    pub style: Style,
    /// Percentiles on the x axis. Lines between percentiles that are not finite are left out.
    pub x: Percentiles,
    /// Percentiles on the y axis.
    pub y: Percentiles,
    /// Whether the name of the style stands beside the marker. It is left out if no side of the marker is free.
    pub labelled: bool,
}

/// Bars of one series.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// Colour and hatch.
    pub style: Style,
    /// The bars, at most one per category.
    pub bars: Vec<Bar>,
    /// Whether values are on the second axis.
    pub second_y: bool,
}

/// A bar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    /// Category: its place on the x axis.
    pub x: f64,
    /// Height of the bar.
    pub value: f64,
    /// Lower and upper end of the error interval.
    pub error: Option<(f64, f64)>,
}

/// A vertical error bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// Colour and marker.
    pub style: Style,
    /// Place on the x axis.
    pub x: f64,
    /// Lower end.
    pub low: f64,
    /// Place of the marker.
    pub value: f64,
    /// Upper end.
    pub high: f64,
    /// Whether y is on the second axis.
    pub second_y: bool,
}

/// Shaded ranges of x, such as the times at which a competitor sends.
#[derive(Clone, Debug, PartialEq)]
pub struct Spans {
    /// Colour. The ranges are translucent.
    pub style: Style,
    /// Start and end of each range.
    pub ranges: Vec<(f64, f64)>,
}

/// A line across the panel.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Colour and dashes.
    pub style: Style,
    /// Value of the axis.
    pub at: f64,
    /// Text beside the line, or an empty text.
    pub text: String,
    /// Whether a horizontal line is at a value of the second axis.
    pub second_y: bool,
}

/// Text at a point. It is left out if the point is outside the axes' ranges.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    /// Value on the x axis.
    pub x: f64,
    /// Value on the y axis.
    pub y: f64,
    /// The text, one line.
    pub text: String,
    /// The part of the text that is at the point.
    pub anchor: Anchor,
}

/// The part of a text that is at its point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Anchor {
    /// The start: text is to the right of the point.
    Start,
    /// The middle.
    #[default]
    Middle,
    /// The end: text is to the left of the point.
    End,
}
