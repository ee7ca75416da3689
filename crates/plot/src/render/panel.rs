//! Layout of a panel: the space for its title and axes, and the plot area that remains.

use super::axes::{self, Row};
use super::canvas::Canvas;
use super::extent::{Extent, Extents};
use super::frame::Frame;
use super::geometry::{Point, Rect};
use super::labels::Labels;
use super::marks;
use super::scaled::{Direction, Scaled, TICK_SIZE};
use super::text;
use crate::{Anchor, Axis, Mark, Panel};

/// Size of the titles of panels (px).
const TITLE_SIZE: f64 = 14.0;

/// Height of a line of a title (px).
const TITLE_HEIGHT: f64 = 18.0;

/// Minimum space between the plot area and the right edge of the panel (px).
const MIN_RIGHT: f64 = 12.0;

/// Maximum share of a panel's width for the labels of ticks beside the plot area, so that every panel has a plot area.
const MAX_LABELS: f64 = 0.34;

/// Words in a panel without values.
const NO_DATA: &str = "no data";

/// A panel whose vertical axes are known. Their labels determine the width of the plot area.
pub struct Draft<'a> {
    panel: &'a Panel,
    extents: Extents,
    y: Scaled,
    second_y: Option<Scaled>,
    /// Space on the left and on the right of the plot area (px).
    pub sides: (f64, f64),
}

impl<'a> Draft<'a> {
    /// Chooses the vertical axes for a panel of this `width`, with a plot area of this `height`.
    pub fn new(panel: &'a Panel, width: f64, height: f64) -> Draft<'a> {
        let extents = Extents::of(panel);
        let limit = width * if panel.second_y.is_some() { MAX_LABELS / 2.0 } else { MAX_LABELS };
        let vertical = |axis: &Axis, extent: &Extent| {
            let mut scaled = Scaled::new(axis, extent, height, Direction::Vertical);
            for tick in &mut scaled.ticks {
                tick.label = text::shorten(&tick.label, TICK_SIZE, limit);
            }
            let space = axes::space_beside(axis, &scaled, height);
            (scaled, space)
        };
        let (y, left) = vertical(&panel.y, &extents.y);
        let second = panel.second_y.as_ref().map(|axis| vertical(axis, &extents.second_y));
        let (second_y, right) = second.map_or((None, MIN_RIGHT), |(scaled, space)| (Some(scaled), space));
        Draft { panel, extents, y, second_y, sides: (left, right) }
    }

    /// Chooses the horizontal axis for a panel of this `width`, with this space on the sides of the plot area.
    pub fn laid_out(self, width: f64, sides: (f64, f64)) -> Layout<'a> {
        let length = width - sides.0 - sides.1;
        let x = Scaled::new(&self.panel.x, &self.extents.x, length, Direction::Horizontal);
        let row = Row::new(&x, length, sides.0);
        let title = text::wrap(&self.panel.title, TITLE_SIZE * text::BOLD, width);
        let top = title.len() as f64 * TITLE_HEIGHT + 8.0;
        let bottom = axes::space_below(&self.panel.x, &row, width);
        Layout { draft: self, x, row, title, width, left: sides.0, length, ends: (top, bottom) }
    }
}

/// A panel whose axes and sizes are known.
pub struct Layout<'a> {
    draft: Draft<'a>,
    x: Scaled,
    row: Row,
    title: Vec<String>,
    width: f64,
    left: f64,
    length: f64,
    /// Space above and below the plot area (px).
    pub ends: (f64, f64),
}

impl Layout<'_> {
    /// Draws the panel. Its plot area starts at this height; `left` is the left edge of the panel.
    pub fn draw(self, canvas: &mut Canvas, (left, top): Point, height: f64) {
        let area =
            Rect { left: left + self.left, top, right: left + self.left + self.length, bottom: top + height };
        let cell = Rect {
            left,
            top: top - self.ends.0,
            right: left + self.width,
            bottom: area.bottom + self.ends.1,
        };
        let panel = self.draft.panel;
        let frame = Frame { area, x: self.x, y: self.draft.y, second_y: self.draft.second_y };
        canvas.open("");
        for (number, line) in self.title.iter().enumerate() {
            let above = (self.title.len() - number) as f64 - 1.0;
            canvas.text((cell.left, top - 12.0 - above * TITLE_HEIGHT), Anchor::Start, "title", line);
        }
        let has_bars = panel.marks.iter().any(|mark| matches!(mark, Mark::Bars(_)));
        let mut labels = Labels::new(area);
        marks::ranges(canvas, &frame, panel);
        axes::grid(canvas, &frame, has_bars);
        marks::areas(canvas, &frame, panel, &mut labels);
        axes::horizontal(canvas, &frame, &panel.x, &self.row, &cell);
        axes::vertical(canvas, &frame, &panel.y, false, &cell);
        if let Some(axis) = &panel.second_y {
            axes::vertical(canvas, &frame, axis, true, &cell);
        }
        if has_bars {
            axes::base(canvas, &frame);
        }
        marks::lines(canvas, &frame, panel, &mut labels);
        if !self.draft.extents.has_data {
            let middle = ((area.left + area.right) / 2.0, (area.top + area.bottom) / 2.0);
            labels.fixed(middle, Anchor::Middle, NO_DATA);
        }
        labels.draw(canvas);
        canvas.close();
    }
}
