//! The plot area of a panel with its axes.

use super::geometry::{Point, Rect};
use super::scaled::Scaled;

/// The plot area of a panel with its axes.
pub struct Frame {
    pub area: Rect,
    pub x: Scaled,
    pub y: Scaled,
    pub second_y: Option<Scaled>,
}

impl Frame {
    /// Place of a value on the x axis (px).
    pub fn x(&self, value: f64) -> Option<f64> {
        Some(self.area.left + self.x.share(value)? * self.area.width())
    }

    /// Place of a value on a y axis (px).
    pub fn y(&self, value: f64, is_second: bool) -> Option<f64> {
        Some(self.area.bottom - self.y_axis(is_second).share(value)? * self.area.height())
    }

    /// Place of a point (px). `None` if an axis cannot show it.
    pub fn point(&self, (x, y): (f64, f64), is_second: bool) -> Option<Point> {
        Some((self.x(x)?, self.y(y, is_second)?))
    }

    /// The first or the second y axis. A panel without a second one has all marks on the first.
    pub fn y_axis(&self, is_second: bool) -> &Scaled {
        self.second_y.as_ref().filter(|_| is_second).unwrap_or(&self.y)
    }
}
