//! Drawing of axes: grid, ticks and labels.

use super::canvas::Canvas;
use super::frame::Frame;
use super::geometry::{Point, Rect};
use super::scaled::{LINE_HEIGHT, Scaled, TICK_SIZE};
use super::text;
use crate::{Anchor, Axis};

/// Size of the labels of axes (px).
pub const LABEL_SIZE: f64 = 13.0;

/// Height of a line of an axis' label (px).
const LABEL_HEIGHT: f64 = 16.0;

/// Length of a tick (px).
const TICK_LENGTH: f64 = 5.0;

/// Space between a tick and its label (px).
const TICK_GAP: f64 = 4.0;

/// Maximum number of lines of a category's name.
const MAX_LINES: usize = 3;

/// Maximum number of lines of a vertical axis' label, which take width from the plot area.
const MAX_UPRIGHT: usize = 2;

/// Maximum width of a slanted label (px).
const MAX_SLANTED: f64 = 120.0;

/// Slope of slanted labels: degrees, cosine and sine.
const SLANT: (i32, f64, f64) = (-40, 0.766, 0.643);

/// Minimum distance of slanted labels (px).
const SLANTED_DISTANCE: f64 = 15.0;

/// Labels of the ticks of a horizontal axis. They stand on one line if there is space, otherwise on several lines,
/// otherwise they are slanted.
#[derive(Debug)]
pub struct Row {
    /// The lines of each label, with its place relative to the left end of the axis (px).
    labels: Vec<(f64, Vec<String>)>,
    is_slanted: bool,
    /// Height of the labels (px).
    height: f64,
}

impl Row {
    /// Arranges the labels of an axis of this `length`; `margin` is the space on its left (px).
    pub fn new(axis: &Scaled, length: f64, margin: f64) -> Row {
        let ticks = axis.ticks.iter().filter(|tick| !tick.label.trim().is_empty());
        let mut places: Vec<(f64, &str)> =
            ticks.filter_map(|tick| Some((axis.share(tick.value)? * length, tick.label.as_str()))).collect();
        places.sort_by(|one, other| one.0.total_cmp(&other.0));
        let distance = places.windows(2).map(|pair| pair[1].0 - pair[0].0).fold(length, f64::min);
        let width = |label: &str| text::width(label, TICK_SIZE);
        let fits = places
            .windows(2)
            .all(|pair| pair[1].0 - pair[0].0 >= (width(pair[0].1) + width(pair[1].1)) / 2.0 + TICK_GAP);
        if fits {
            let labels = places.iter().map(|(x, label)| (*x, vec![(*label).to_owned()])).collect();
            return Row { labels, is_slanted: false, height: LINE_HEIGHT };
        }
        let room = distance - TICK_GAP;
        let has_long_word =
            places.iter().flat_map(|place| place.1.split_whitespace()).any(|word| width(word) > room);
        let labels: Vec<(f64, Vec<String>)> =
            places.iter().map(|(x, label)| (*x, text::wrap(label, TICK_SIZE, room))).collect();
        let lines = labels.iter().map(|label| label.1.len()).max().unwrap_or(1);
        if !has_long_word && lines <= MAX_LINES {
            return Row { labels, is_slanted: false, height: lines as f64 * LINE_HEIGHT };
        }
        let mut labels: Vec<(f64, Vec<String>)> = Vec::new();
        for (x, label) in places {
            if labels.last().is_none_or(|last| x - last.0 >= SLANTED_DISTANCE) {
                let limit = MAX_SLANTED.min((x + margin) / SLANT.1);
                labels.push((x, vec![text::shorten(label, TICK_SIZE, limit)]));
            }
        }
        let widest = labels.iter().map(|label| width(&label.1[0])).fold(0.0, f64::max);
        Row { labels, is_slanted: true, height: widest * SLANT.2 + LINE_HEIGHT }
    }
}

/// Space below the plot area for a horizontal axis (px). `room` is the width of the panel.
pub fn space_below(axis: &Axis, row: &Row, room: f64) -> f64 {
    let lines = text::wrap(&axis.label, LABEL_SIZE, room).len() as f64;
    let labels = if row.labels.is_empty() { 0.0 } else { row.height };
    TICK_LENGTH + TICK_GAP + labels + lines * LABEL_HEIGHT + 6.0
}

/// Space beside the plot area for a vertical axis of this `length` (px).
pub fn space_beside(axis: &Axis, scaled: &Scaled, length: f64) -> f64 {
    let lines = upright(axis, length).len() as f64;
    let widest = scaled.ticks.iter().map(|tick| text::width(&tick.label, TICK_SIZE)).fold(0.0, f64::max);
    lines * LABEL_HEIGHT + widest + TICK_LENGTH + TICK_GAP + 4.0
}

/// Draws the grid. A panel with bars has no vertical lines, because bars stand at the ticks.
pub fn grid(canvas: &mut Canvas, frame: &Frame, has_bars: bool) {
    let Rect { left, top, right, bottom } = frame.area;
    canvas.push("<g>");
    for y in places(&frame.y, true).filter_map(|value| frame.y(value, false)) {
        canvas.ruler((left, y), (right, y), "grid");
    }
    for x in places(&frame.x, true).filter_map(|value| frame.x(value)).filter(|_| !has_bars) {
        canvas.ruler((x, top), (x, bottom), "grid");
    }
    canvas.push("</g>\n");
}

/// Draws the line at which bars start, in a panel with negative and positive values.
pub fn base(canvas: &mut Canvas, frame: &Frame) {
    let Rect { left, right, .. } = frame.area;
    if let Some(y) = frame.y(frame.y.base(), false) {
        canvas.ruler((left, y), (right, y), "axis");
    }
}

/// Draws the horizontal axis. `cell` is the panel with all its labels.
pub fn horizontal(canvas: &mut Canvas, frame: &Frame, axis: &Axis, row: &Row, cell: &Rect) {
    let Rect { left, right, bottom, .. } = frame.area;
    canvas.push("<g>");
    canvas.ruler((left, bottom), (right, bottom), "axis");
    for (is_major, length) in [(true, TICK_LENGTH), (false, TICK_LENGTH / 2.0)] {
        for x in places(&frame.x, is_major).filter_map(|value| frame.x(value)) {
            canvas.ruler((x, bottom), (x, bottom + length), "axis");
        }
    }
    let top = bottom + TICK_LENGTH + TICK_GAP;
    for (x, lines) in &row.labels {
        let x = left + x;
        if row.is_slanted {
            canvas.turned_text((x + 3.0, top + 6.0), SLANT.0, Anchor::End, "", &lines[0]);
            continue;
        }
        for (number, line) in lines.iter().enumerate() {
            let y = top + 9.0 + number as f64 * LINE_HEIGHT;
            canvas.text((inside(x, line, TICK_SIZE, cell), y), Anchor::Middle, "", line);
        }
    }
    let labels = if row.labels.is_empty() { 0.0 } else { row.height };
    for (number, line) in text::wrap(&axis.label, LABEL_SIZE, cell.width()).iter().enumerate() {
        let x = inside((left + right) / 2.0, line, LABEL_SIZE, cell);
        canvas.text((x, top + labels + 12.0 + number as f64 * LABEL_HEIGHT), Anchor::Middle, "label", line);
    }
    canvas.push("</g>\n");
}

/// Draws the first vertical axis, or the second one on the right.
pub fn vertical(canvas: &mut Canvas, frame: &Frame, axis: &Axis, is_second: bool, cell: &Rect) {
    let Rect { left, top, right, bottom } = frame.area;
    let scaled = frame.y_axis(is_second);
    let (x, out, anchor) = if is_second { (right, 1.0, Anchor::Start) } else { (left, -1.0, Anchor::End) };
    canvas.push("<g>");
    canvas.ruler((x, top), (x, bottom), "axis");
    for (is_major, length) in [(true, TICK_LENGTH), (false, TICK_LENGTH / 2.0)] {
        for y in places(scaled, is_major).filter_map(|value| frame.y(value, is_second)) {
            canvas.ruler((x, y), (x + out * length, y), "axis");
        }
    }
    let mut labels: Vec<(f64, &str)> = scaled
        .ticks
        .iter()
        .filter(|tick| !tick.label.trim().is_empty())
        .filter_map(|tick| Some((frame.y(tick.value, is_second)?, tick.label.as_str())))
        .collect();
    labels.sort_by(|one, other| other.0.total_cmp(&one.0));
    let mut last = f64::INFINITY;
    for (y, label) in labels {
        // The labels of a caller's own ticks may be too close to each other.
        if last - y >= LINE_HEIGHT - 2.0 {
            let beside: Point = (x + out * (TICK_LENGTH + TICK_GAP), y + 4.0);
            canvas.text(beside, anchor, "", label);
            last = y;
        }
    }
    let lines = upright(axis, bottom - top);
    let edge = if is_second { cell.right } else { cell.left };
    for (number, line) in lines.iter().enumerate() {
        // Lines are read from the bottom upwards, so the first line is on the left.
        let depth = number as f64 * LABEL_HEIGHT;
        let first =
            if is_second { edge - (lines.len() - 1) as f64 * LABEL_HEIGHT - 4.0 } else { edge + 13.0 };
        canvas.turned_text((first + depth, (top + bottom) / 2.0), -90, Anchor::Middle, "label", line);
    }
    canvas.push("</g>\n");
}

/// The lines of the label of a vertical axis.
fn upright(axis: &Axis, length: f64) -> Vec<String> {
    text::wrap_at_most(MAX_UPRIGHT, &axis.label, LABEL_SIZE, length)
}

/// Values of the ticks with labels, or of those without.
fn places(axis: &Scaled, is_major: bool) -> impl Iterator<Item = f64> {
    axis.ticks.iter().filter(move |tick| tick.label.is_empty() != is_major).map(|tick| tick.value)
}

/// The middle of a text, moved so that all of the text is inside the panel.
fn inside(x: f64, text: &str, size: f64, cell: &Rect) -> f64 {
    let half = text::width(text, size) / 2.0;
    if 2.0 * half > cell.width() {
        return (cell.left + cell.right) / 2.0;
    }
    x.clamp(cell.left + half, (cell.right - half).max(cell.left + half))
}
