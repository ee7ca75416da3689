//! Figures, panels and legends.

use crate::{Axis, Mark, Style};

/// Width of a panel that stays readable on a phone (390 px with its margins).
pub const NARROW: f64 = 380.0;

/// A figure of one or several panels.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Title. [`Figure::svg`] draws it; in a page, it is for screen readers.
    pub title: String,
    /// Description below the figure. [`Figure::svg`] draws it; in a page, it is for screen readers.
    pub caption: String,
    /// The panels, row by row.
    pub panels: Vec<Panel>,
    /// Number of panels in a row, at least 1.
    pub columns: usize,
    /// The legend, above the panels.
    pub legend: Vec<Entry>,
    /// Width of a panel with the labels of its axes (px, 240 to 4000). Text has 12 to 14 px.
    pub panel_width: f64,
    /// Height of the plot area of a panel (px, 80 to 4000).
    pub plot_height: f64,
}

impl Default for Figure {
    /// A figure without panels, for one column of narrow panels.
    fn default() -> Figure {
        Figure {
            title: String::new(),
            caption: String::new(),
            panels: Vec::new(),
            columns: 1,
            legend: Vec::new(),
            panel_width: NARROW,
            plot_height: 220.0,
        }
    }
}

impl Figure {
    /// The same figure with one narrow panel per row, for phones.
    pub fn stacked(&self) -> Figure {
        Figure { columns: 1, panel_width: self.panel_width.min(NARROW), ..self.clone() }
    }

    /// Whether [`Figure::stacked`] has another layout than this figure.
    pub fn is_wide(&self) -> bool {
        self.columns.min(self.panels.len()) > 1 || self.panel_width > NARROW
    }
}

/// A panel: axes and data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    /// Title above the plot area, or an empty text.
    pub title: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis on the left.
    pub y: Axis,
    /// Vertical axis on the right. Marks choose it with `second_y`.
    pub second_y: Option<Axis>,
    /// The data.
    pub marks: Vec<Mark>,
}

/// An entry of a legend.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Appearance and name.
    pub style: Style,
    /// Form of the sample.
    pub swatch: Swatch,
}

impl Entry {
    /// The entries for all marks of these panels: one for each name, in the order of the marks. Styles without a name have
    /// none.
    pub fn of(panels: &[Panel]) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut add = |style: &Style, swatch| {
            if !style.name.is_empty() && entries.iter().all(|entry| entry.style.name != style.name) {
                entries.push(Entry { style: style.clone(), swatch });
            }
        };
        for mark in panels.iter().flat_map(|panel| &panel.marks) {
            match mark {
                Mark::Line(line) => add(&line.style, if line.markers { Swatch::Both } else { Swatch::Line }),
                Mark::Area(area) => add(&area.style, Swatch::Shade),
                Mark::Stack(stack) => stack.layers.iter().for_each(|layer| add(&layer.style, Swatch::Fill)),
                Mark::Points(points) => add(&points.style, Swatch::Marker),
                Mark::Cross(spread) => add(&spread.style, Swatch::Both),
                Mark::PercentileBox(spread) => add(&spread.style, Swatch::Box),
                Mark::Bars(bars) => add(&bars.style, Swatch::Fill),
                Mark::Interval(interval) => add(&interval.style, Swatch::Both),
                Mark::Spans(spans) => add(&spans.style, Swatch::Shade),
                Mark::HorizontalLine(rule) | Mark::VerticalLine(rule) => add(&rule.style, Swatch::Line),
                Mark::Text(_) => {}
            }
        }
        entries
    }
}

/// Form of the sample in a legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swatch {
    /// A line.
    Line,
    /// A line with a marker.
    Both,
    /// A marker.
    Marker,
    /// A filled rectangle.
    Fill,
    /// A translucent rectangle, as of [`Mark::Spans`] and [`Mark::Area`].
    Shade,
    /// A translucent rectangle with a border and a marker, as of [`Mark::PercentileBox`].
    Box,
}
