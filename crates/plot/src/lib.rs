//! Draws the figures of papers as static SVG: axes, marks and legends.
//!
//! A [`Figure`] is plain data: panels with axes, and marks with their values. [`Figure::svg`] returns a file,
//! [`Figure::inline_svg`] an element of an HTML page. The crate computes no results; it only draws values.
//!
//! Data flow: the values of all marks give the range of each axis (`render/extent.rs`), the range gives ticks
//! (`render/ticks.rs`), the ticks give the space that the labels need (`render/panel.rs`), and the remaining space is the
//! plot area, into which the marks are drawn (`render/marks.rs`). Labels of points come last, because they need free space.
//!
//! - Values that are not finite are left out, and so are values that are not positive on a logarithmic axis. Values
//!   outside an axis' range are cut off at the plot area, so every coordinate lies inside the `viewBox`.
//! - The same figure gives the same bytes on any machine: logarithms come from `libm`, and nothing iterates over hash maps.
//! - The width of text depends on the reader's font. The layout uses the widths of DejaVu Sans, which is wider than other
//!   system fonts, so that no label is cut.
//!
//! ```
//! use airpace_plot::{Axis, Entry, Figure, Line, Mark, Panel, Style};
//!
//! let pbe = Line::new(Style::new("PBE-CC", "#0072B2"), vec![(0.0, 12.0), (1.0, 48.0), (2.0, 55.0)]);
//! let panel = Panel {
//!     x: Axis::linear("Time (s)"),
//!     y: Axis::linear("Throughput (Mbit/s)"),
//!     marks: vec![Mark::Line(pbe)],
//!     ..Panel::default()
//! };
//! let figure = Figure {
//!     title: "One flow".to_owned(),
//!     legend: Entry::of(std::slice::from_ref(&panel)),
//!     panels: vec![panel],
//!     ..Figure::default()
//! };
//! assert!(figure.svg().starts_with("<svg xmlns="));
//! ```
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]
#![warn(missing_docs)]

mod axis;
mod figure;
mod mark;
mod render;
mod statistics;
mod style;

pub use axis::{Axis, Scale};
pub use figure::{Entry, Figure, NARROW, Panel, Swatch};
pub use mark::{
    Anchor, Area, Bar, Bars, Interval, Layer, Line, Mark, Note, Point, Points, Rule, Spans, Spread, Stack,
};
pub use statistics::{Percentiles, empirical_cdf};
pub use style::{Colour, Dash, Hatch, Marker, Style};
