//! Shapes of markers.

use std::fmt::Write;

use super::geometry::Point;
use super::number::fixed;
use crate::Marker;

/// Distance between the centre of a marker and its outermost point (px).
pub const RADIUS: f64 = 5.8;

/// Part of an outline, relative to the marker's centre (px).
enum Step {
    Move(f64, f64),
    Line(f64, f64),
    /// A clockwise arc: radius, whether it is longer than a half circle, end.
    Arc(f64, bool, f64, f64),
}

use Step::{Arc, Line, Move};

const CIRCLE: &[Step] = &[Move(0.0, -4.4), Arc(4.4, false, 0.0, 4.4), Arc(4.4, false, 0.0, -4.4)];
const SQUARE: &[Step] = &[Move(-3.9, -3.9), Line(3.9, -3.9), Line(3.9, 3.9), Line(-3.9, 3.9)];
const ROUND_SQUARE: &[Step] = &[
    Move(-2.1, -4.2),
    Line(2.1, -4.2),
    Arc(2.1, false, 4.2, -2.1),
    Line(4.2, 2.1),
    Arc(2.1, false, 2.1, 4.2),
    Line(-2.1, 4.2),
    Arc(2.1, false, -4.2, 2.1),
    Line(-4.2, -2.1),
    Arc(2.1, false, -2.1, -4.2),
];
const TRIANGLE_UP: &[Step] = &[Move(0.0, -5.0), Line(5.0, 4.0), Line(-5.0, 4.0)];
const TRIANGLE_DOWN: &[Step] = &[Move(0.0, 5.0), Line(-5.0, -4.0), Line(5.0, -4.0)];
const DIAMOND: &[Step] = &[Move(0.0, -5.4), Line(5.4, 0.0), Line(0.0, 5.4), Line(-5.4, 0.0)];
const CROSS: &[Step] = &[Move(-3.8, -3.8), Line(3.8, 3.8), Move(3.8, -3.8), Line(-3.8, 3.8)];
const PLUS: &[Step] = &[Move(-4.8, 0.0), Line(4.8, 0.0), Move(0.0, -4.8), Line(0.0, 4.8)];
const STAR: &[Step] = &[
    Move(0.0, -5.8),
    Line(1.47, -2.02),
    Line(5.52, -1.79),
    Line(2.38, 0.77),
    Line(3.41, 4.69),
    Line(0.0, 2.5),
    Line(-3.41, 4.69),
    Line(-2.38, 0.77),
    Line(-5.52, -1.79),
    Line(-1.47, -2.02),
];
const PIN: &[Step] = &[Move(0.0, 5.6), Line(-3.6, 0.6), Arc(4.2, true, 3.6, 0.6)];
const ARROW: &[Step] = &[Move(0.0, -5.2), Line(4.8, 4.6), Line(0.0, 2.0), Line(-4.8, 4.6)];

/// Whether a marker consists of lines, so that it has no inside.
pub fn is_open(marker: Marker) -> bool {
    matches!(marker, Marker::Cross | Marker::Plus)
}

/// The outline of a marker as part of the `d` of a path.
pub fn path(marker: Marker, (x, y): Point) -> String {
    let steps = match marker {
        Marker::Circle => CIRCLE,
        Marker::Square => SQUARE,
        Marker::RoundSquare => ROUND_SQUARE,
        Marker::TriangleUp => TRIANGLE_UP,
        Marker::TriangleDown => TRIANGLE_DOWN,
        Marker::Diamond => DIAMOND,
        Marker::Cross => CROSS,
        Marker::Plus => PLUS,
        Marker::Star => STAR,
        Marker::Pin => PIN,
        Marker::Arrow => ARROW,
    };
    let at = |dx: f64, dy: f64| format!("{} {}", fixed(x + dx, 2), fixed(y + dy, 2));
    let mut d = String::new();
    for step in steps {
        let _ = match *step {
            Move(dx, dy) => write!(d, "M{}", at(dx, dy)),
            Line(dx, dy) => write!(d, "L{}", at(dx, dy)),
            Arc(radius, is_long, dx, dy) => {
                write!(d, "A{radius} {radius} 0 {} 1 {}", i32::from(is_long), at(dx, dy))
            }
        };
    }
    if !is_open(marker) {
        d.push('Z');
    }
    d
}
