//! The ranges of values in a panel.

use super::bars::Groups;
use crate::{Axis, Mark, Panel};

/// Smallest and largest value on an axis.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    pub low: f64,
    pub high: f64,
    /// Whether the axis contains 0, because bars and areas start there.
    pub has_zero: bool,
    /// Whether markers need space beside the outermost values.
    pub is_padded: bool,
}

impl Extent {
    fn new() -> Extent {
        Extent { low: f64::INFINITY, high: f64::NEG_INFINITY, has_zero: false, is_padded: false }
    }

    pub fn add(&mut self, value: f64) {
        self.low = self.low.min(value);
        self.high = self.high.max(value);
    }

    pub fn is_empty(&self) -> bool {
        self.low > self.high
    }
}

/// The extents of all axes of a panel.
#[derive(Debug)]
pub struct Extents {
    pub x: Extent,
    pub y: Extent,
    pub second_y: Extent,
    /// Whether the panel shows any value. Reference lines, shaded ranges and texts are not data.
    pub has_data: bool,
}

impl Extents {
    pub fn of(panel: &Panel) -> Extents {
        let empty = Extent::new();
        let extents = Extents { x: empty, y: empty, second_y: empty, has_data: false };
        let mut collector = Collector { panel, extents };
        for mark in &panel.marks {
            collector.mark(mark);
        }
        for mark in &panel.marks {
            collector.reference(mark);
        }
        collector.extents
    }
}

struct Collector<'a> {
    panel: &'a Panel,
    extents: Extents,
}

impl<'a> Collector<'a> {
    fn mark(&mut self, mark: &Mark) {
        match mark {
            Mark::Line(line) => line.points.iter().for_each(|&point| self.point(point, line.second_y)),
            Mark::Area(area) => {
                self.y(area.second_y).1.has_zero = true;
                area.points.iter().for_each(|&point| self.point(point, area.second_y));
            }
            Mark::Stack(stack) => {
                self.extents.y.has_zero = true;
                for (at, &x) in stack.x.iter().enumerate() {
                    let top = stack.layers.iter().map(|layer| layer.height(at)).sum();
                    self.point((x, top), false);
                }
            }
            Mark::Points(points) => {
                self.pad(points.second_y);
                points.points.iter().for_each(|point| self.point((point.x, point.y), points.second_y));
            }
            Mark::Cross(spread) | Mark::PercentileBox(spread) => {
                self.pad(false);
                // Percentiles of x belong to the median of y, and the other way round.
                spread.x.all().into_iter().for_each(|x| self.point((x, spread.y.p50), false));
                spread.y.all().into_iter().for_each(|y| self.point((spread.x.p50, y), false));
            }
            Mark::Bars(bars) => {
                self.y(bars.second_y).1.has_zero = true;
                let half = Groups::of(self.panel).spacing / 2.0;
                for bar in &bars.bars {
                    let (low, high) = bar.error.unwrap_or((bar.value, bar.value));
                    for x in [bar.x - half, bar.x, bar.x + half] {
                        for value in [low, bar.value, high] {
                            self.point((x, value), bars.second_y);
                        }
                    }
                }
            }
            Mark::Interval(it) => {
                self.pad(it.second_y);
                for value in [it.low, it.value, it.high] {
                    self.point((it.x, value), it.second_y);
                }
            }
            Mark::HorizontalLine(_) | Mark::VerticalLine(_) | Mark::Spans(_) | Mark::Text(_) => {}
        }
    }

    /// Reference lines widen the range of the data. Shaded ranges and texts only matter in a panel without data.
    fn reference(&mut self, mark: &Mark) {
        match mark {
            Mark::HorizontalLine(rule) => {
                let (axis, extent) = self.y(rule.second_y);
                if axis.accepts(rule.at) {
                    extent.add(rule.at);
                }
            }
            Mark::VerticalLine(rule) => self.x(rule.at),
            Mark::Spans(spans) if !self.extents.has_data => {
                spans.ranges.iter().flat_map(|&(start, end)| [start, end]).for_each(|x| self.x(x));
            }
            _ => {}
        }
    }

    fn y(&mut self, is_second: bool) -> (&'a Axis, &mut Extent) {
        let panel = self.panel;
        match &panel.second_y {
            Some(axis) if is_second => (axis, &mut self.extents.second_y),
            _ => (&panel.y, &mut self.extents.y),
        }
    }

    fn x(&mut self, x: f64) {
        if self.panel.x.accepts(x) {
            self.extents.x.add(x);
        }
    }

    fn pad(&mut self, is_second: bool) {
        self.y(is_second).1.is_padded = true;
        self.extents.x.is_padded = true;
    }

    fn point(&mut self, (x, y): (f64, f64), is_second: bool) {
        // Values at places that the x axis does not show have no influence on the y axis.
        let across = &self.panel.x;
        let is_shown = across.fixed_range().is_none_or(|(low, high)| (low..=high).contains(&x));
        let (axis, extent) = self.y(is_second);
        if across.accepts(x) && axis.accepts(y) {
            if is_shown {
                extent.add(y);
            }
            self.extents.x.add(x);
            self.extents.has_data = true;
        }
    }
}
