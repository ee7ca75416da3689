//! Drawing of marks into the plot area of a panel.

use std::collections::BTreeSet;

use super::bars::Groups;
use super::canvas::{Canvas, path};
use super::frame::Frame;
use super::geometry::{Point, Rect, clip_line, clip_polygon, clip_segment, stepped, thinned};
use super::labels::Labels;
use super::shapes::RADIUS;
use crate::{
    Area, Bars, Colour, Dash, Interval, Line, Mark, Panel, Percentiles, Points, Rule, Spans, Spread, Stack,
    Style,
};

/// Width of lines (px).
pub const LINE_WIDTH: f64 = 2.0;

/// Width of error bars and of lines between the 10th and 90th percentiles (px).
pub const THIN: f64 = 1.25;

/// Width of lines between the 25th and 75th percentiles (px).
const THICK: f64 = 4.0;

/// Opacity of shaded ranges and areas, through which the grid and other marks are visible.
pub const SHADE_OPACITY: f64 = 0.2;

/// A line with more points has markers at some of them only.
const MAX_MARKERS: usize = 30;

/// Minimum distance of markers on a line with many points (px).
const MARKER_DISTANCE: f64 = 30.0;

/// Minimum side of a percentile box (px). Quantities that do not vary have visible boxes too.
const MIN_BOX: f64 = 3.0;

/// Half of the length of the bars at the ends of an error interval (px).
const CAP: f64 = 4.0;

/// Draws the shaded ranges of a panel, which are below the grid.
pub fn ranges(canvas: &mut Canvas, frame: &Frame, panel: &Panel) {
    for mark in &panel.marks {
        if let Mark::Spans(spans) = mark {
            Pen { canvas, frame }.spans(spans);
        }
    }
}

/// Draws the areas and bars of a panel, which are below the axes.
pub fn areas(canvas: &mut Canvas, frame: &Frame, panel: &Panel, labels: &mut Labels) {
    let groups = Groups::of(panel);
    for (index, mark) in panel.marks.iter().enumerate() {
        let mut pen = Pen { canvas, frame };
        match mark {
            Mark::Area(area) => pen.area(area),
            Mark::Stack(stack) => pen.stack(stack),
            Mark::Bars(bars) => pen.bars(bars, index, &groups, labels),
            _ => {}
        }
    }
}

/// Draws all other marks of a panel. Their texts go to `labels`.
pub fn lines(canvas: &mut Canvas, frame: &Frame, panel: &Panel, labels: &mut Labels) {
    for mark in &panel.marks {
        let mut pen = Pen { canvas, frame };
        match mark {
            Mark::Line(line) => pen.line(line, labels),
            Mark::Points(points) => pen.points(points, labels),
            Mark::Cross(spread) => pen.cross(spread, labels),
            Mark::PercentileBox(spread) => pen.percentile_box(spread, labels),
            Mark::Interval(interval) => pen.interval(interval, labels),
            Mark::HorizontalLine(rule) => pen.horizontal(rule, labels),
            Mark::VerticalLine(rule) => pen.vertical(rule, labels),
            Mark::Text(note) => {
                let point = frame.point((note.x, note.y), false).filter(|point| frame.area.contains(*point));
                if let Some(point) = point {
                    labels.fixed(point, note.anchor, &note.text);
                }
            }
            Mark::Spans(_) | Mark::Area(_) | Mark::Stack(_) | Mark::Bars(_) => {}
        }
    }
}

struct Pen<'a> {
    canvas: &'a mut Canvas,
    frame: &'a Frame,
}

impl Pen<'_> {
    /// Draws the parts of a mark as one element with the mark's name.
    fn group(&mut self, style: &Style, draw: impl FnOnce(&mut Self)) {
        self.canvas.open(&style.name);
        draw(self);
        self.canvas.close();
    }

    /// The longest runs of points that can be drawn, in px.
    fn runs(&self, points: &[(f64, f64)], is_second: bool) -> Vec<Vec<Point>> {
        let placed: Vec<Option<Point>> =
            points.iter().map(|point| self.frame.point(*point, is_second)).collect();
        placed
            .split(Option::is_none)
            .filter(|run| !run.is_empty())
            .map(|run| run.iter().flatten().copied().collect())
            .collect()
    }

    /// Draws a segment, as far as both ends are known and it is inside the plot area.
    fn segment(
        &mut self,
        from: Option<Point>,
        to: Option<Point>,
        style: &Style,
        width: f64,
    ) -> Option<(Point, Point)> {
        let (from, to) = clip_segment(&self.frame.area, from?, to?)?;
        self.canvas.line(&[from, to], style, width);
        Some((from, to))
    }

    /// Draws markers at the points inside the plot area. Of the points in one square of 1 px, it draws the first.
    fn markers(&mut self, style: &Style, points: &[Point], labels: &mut Labels) {
        let mut squares = BTreeSet::new();
        let is_new = |(x, y): &Point| squares.insert((x.floor() as i64, y.floor() as i64));
        let inside: Vec<Point> =
            points.iter().copied().filter(|point| self.frame.area.contains(*point)).filter(is_new).collect();
        self.canvas.markers(style, &inside);
        labels.avoid_markers(&inside);
    }

    fn line(&mut self, line: &Line, labels: &mut Labels) {
        self.group(&line.style, |pen| {
            let mut marked = Vec::new();
            for run in pen.runs(&line.points, line.second_y) {
                if line.markers {
                    marked.extend(spaced(&run));
                } else if let [lone] = run[..] {
                    // A line of one point would be invisible.
                    marked.push(lone);
                }
                let course = if line.stepped { stepped(&run) } else { run };
                for part in clip_line(&pen.frame.area, &thinned(&course)) {
                    labels.avoid_line(&part);
                    pen.canvas.line(&part, &line.style, LINE_WIDTH);
                }
            }
            pen.markers(&line.style, &marked, labels);
        });
    }

    fn area(&mut self, area: &Area) {
        let base = self.frame.y(self.frame.y_axis(area.second_y).base(), area.second_y);
        self.group(&area.style, |pen| {
            let Some(base) = base else { return };
            for run in pen.runs(&area.points, area.second_y) {
                let curve = thinned(&if area.stepped { stepped(&run) } else { run });
                let (Some(first), Some(last)) = (curve.first(), curve.last()) else { continue };
                let mut outline = curve.clone();
                outline.extend([(last.0, base), (first.0, base)]);
                pen.polygon(&outline, &area.style, SHADE_OPACITY, false);
                for part in clip_line(&pen.frame.area, &curve) {
                    pen.canvas.line(&part, &area.style, THIN);
                }
            }
        });
    }

    fn stack(&mut self, stack: &Stack) {
        let base = self.frame.y_axis(false).base();
        let mut below = vec![0.0; stack.x.len()];
        for layer in &stack.layers {
            let above: Vec<f64> =
                below.iter().enumerate().map(|(at, height)| height + layer.height(at)).collect();
            let edge = |heights: &[f64]| {
                // On a logarithmic axis, zero is at the bottom.
                let places = stack.x.iter().zip(heights).map(|(x, height)| (*x, height.max(base)));
                let line: Vec<Point> = places.filter_map(|point| self.frame.point(point, false)).collect();
                thinned(&if stack.stepped { stepped(&line) } else { line })
            };
            let mut outline = edge(&above);
            outline.extend(edge(&below).into_iter().rev());
            self.group(&layer.style, |pen| pen.polygon(&outline, &layer.style, 1.0, true));
            below = above;
        }
    }

    fn polygon(&mut self, outline: &[Point], style: &Style, opacity: f64, has_edge: bool) {
        let inside = clip_polygon(&self.frame.area, outline);
        if inside.len() < 3 {
            return;
        }
        let fill = self.canvas.fill(style, has_edge);
        let opacity = if opacity < 1.0 { format!(" fill-opacity=\"{opacity}\"") } else { String::new() };
        let d = path(&inside, true);
        self.canvas.push(&format!("<path {fill}{opacity} d=\"{d}\"/>\n"));
    }

    fn points(&mut self, points: &Points, labels: &mut Labels) {
        let mut placed = Vec::new();
        for point in &points.points {
            let Some(place) = self.frame.point((point.x, point.y), points.second_y) else { continue };
            placed.push(place);
            if self.frame.area.contains(place) {
                labels.beside_marker(place, &point.label);
            }
        }
        self.group(&points.style, |pen| pen.markers(&points.style, &placed, labels));
    }

    fn cross(&mut self, spread: &Spread, labels: &mut Labels) {
        self.group(&spread.style, |pen| {
            let arms = pen.arms(spread, |of| (of.p10, of.p90), THIN, labels);
            pen.arms(spread, |of| (of.p25, of.p75), THICK, labels);
            pen.median(spread, None, arms, labels);
        });
    }

    fn percentile_box(&mut self, spread: &Spread, labels: &mut Labels) {
        self.group(&spread.style, |pen| {
            let (x, y) = (spread.x, spread.y);
            let corners = pen.frame.point((x.p25, y.p25), false).zip(pen.frame.point((x.p75, y.p75), false));
            let outline = corners.map(|(one, other)| grown(Rect::of(one, other)));
            let inside = outline.and_then(|outline| outline.common(&pen.frame.area));
            if let Some(inside) = &inside {
                let (fill, stroke) =
                    (pen.canvas.fill(&spread.style, false), pen.canvas.stroke(&spread.style.colour));
                pen.canvas.rect(inside, &format!("{fill} fill-opacity=\"{SHADE_OPACITY}\""));
                pen.canvas.rect(inside, &format!("class=\"{stroke}\" fill=\"none\" stroke-width=\"{THIN}\""));
                let Rect { left, top, right, bottom } = *inside;
                labels.avoid_line(&[(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]);
            }
            let arms = pen.arms(spread, |of| (of.p10, of.p90), THIN, labels);
            pen.median(spread, inside, arms, labels);
        });
    }

    /// A horizontal and a vertical line between two percentiles, through the medians. Returns the space that they cover.
    fn arms(
        &mut self,
        spread: &Spread,
        ends: fn(Percentiles) -> (f64, f64),
        width: f64,
        labels: &mut Labels,
    ) -> Option<Rect> {
        // Dashes would make the ends of short lines invisible.
        let style = Style { dash: Dash::Solid, ..spread.style.clone() };
        let ((left, right), (low, high)) = (ends(spread.x), ends(spread.y));
        let mut drawn =
            [((left, spread.y.p50), (right, spread.y.p50)), ((spread.x.p50, low), (spread.x.p50, high))]
                .map(|(from, to)| {
                    let [from, to] = [from, to].map(|point| self.frame.point(point, false));
                    let (from, to) = self.segment(from, to, &style, width)?;
                    labels.avoid_line(&[from, to]);
                    Some(Rect::of(from, to))
                })
                .into_iter()
                .flatten();
        let first = drawn.next()?;
        Some(drawn.fold(first, |all, arm| all.joined(&arm)))
    }

    /// The marker at the medians. Its label stands beside the box, or the marker if there is none, or beside the arms.
    fn median(&mut self, spread: &Spread, inner: Option<Rect>, arms: Option<Rect>, labels: &mut Labels) {
        let Some(point) = self.frame.point((spread.x.p50, spread.y.p50), false) else { return };
        self.markers(&spread.style, &[point], labels);
        if spread.labelled && self.frame.area.contains(point) {
            let marker = Rect::around(point, RADIUS);
            let shapes = [inner.map_or(marker, |inner| inner.joined(&marker)), arms.unwrap_or(marker)];
            labels.beside(point, &shapes, &spread.style.name);
        }
    }

    fn bars(&mut self, bars: &Bars, index: usize, groups: &Groups, labels: &mut Labels) {
        let base = self.frame.y_axis(bars.second_y).base();
        self.group(&bars.style, |pen| {
            for bar in &bars.bars {
                let half = groups.spacing / 2.0;
                let edges = pen.frame.x(bar.x - half).zip(pen.frame.x(bar.x + half));
                let room = edges.map_or(f64::INFINITY, |(left, right)| (right - left).abs());
                let Some((centre, value)) = pen.frame.point((bar.x, bar.value), bars.second_y) else {
                    continue;
                };
                let Some(base) = pen.frame.y(base, bars.second_y) else { continue };
                let (offset, width) = groups.place(bar.x, index, room);
                let whole = Rect::of((centre + offset, value), (centre + offset + width, base));
                if let Some(inside) = whole.common(&pen.frame.area) {
                    let fill = pen.canvas.fill(&bars.style, true);
                    pen.canvas.rect(&inside, &fill);
                    labels.avoid(inside);
                }
                if let Some((low, high)) = bar.error {
                    let x = centre + offset + width / 2.0;
                    let ends = [low, high].map(|value| pen.frame.y(value, bars.second_y));
                    // Bars are drawn in the colour of the series, in which an error bar would be invisible.
                    let style = Style { colour: Colour::Ink, ..Style::default() };
                    pen.error_bar(x, ends, CAP.min(width / 3.0), &style);
                }
            }
        });
    }

    fn interval(&mut self, interval: &Interval, labels: &mut Labels) {
        let Some(x) = self.frame.x(interval.x) else { return };
        self.group(&interval.style, |pen| {
            let [low, value, high] = [interval.low, interval.value, interval.high]
                .map(|value| pen.frame.y(value, interval.second_y));
            let style = Style { dash: Dash::Solid, ..interval.style.clone() };
            pen.error_bar(x, [low, high], CAP, &style);
            pen.markers(&style, &value.map(|y| (x, y)).into_iter().collect::<Vec<_>>(), labels);
            if let [Some(low), Some(high)] = [low, high] {
                labels.avoid_line(&[(x, low), (x, high)]);
            }
        });
    }

    /// A vertical line with a bar at each end that is inside the plot area.
    fn error_bar(&mut self, x: f64, ends: [Option<f64>; 2], cap: f64, style: &Style) {
        let [from, to] = ends.map(|end| end.map(|y| (x, y)));
        self.segment(from, to, style, THIN);
        for y in ends.into_iter().flatten() {
            self.segment(Some((x - cap, y)), Some((x + cap, y)), style, THIN);
        }
    }

    fn spans(&mut self, spans: &Spans) {
        let Rect { top, bottom, .. } = self.frame.area;
        self.group(&spans.style, |pen| {
            for (start, end) in &spans.ranges {
                let Some((start, end)) = pen.frame.x(*start).zip(pen.frame.x(*end)) else { continue };
                if let Some(inside) = Rect::of((start, top), (end, bottom)).common(&pen.frame.area) {
                    let fill = pen.canvas.fill(&spans.style, false);
                    pen.canvas.rect(&inside, &format!("{fill} fill-opacity=\"{SHADE_OPACITY}\""));
                }
            }
        });
    }

    fn horizontal(&mut self, rule: &Rule, labels: &mut Labels) {
        let Rect { left, right, .. } = self.frame.area;
        let Some(y) = self.frame.y(rule.at, rule.second_y) else { return };
        self.group(&rule.style, |pen| {
            if let Some((from, to)) = pen.segment(Some((left, y)), Some((right, y)), &rule.style, THIN) {
                labels.avoid_line(&[from, to]);
                labels.beside_horizontal(y, &rule.text);
            }
        });
    }

    fn vertical(&mut self, rule: &Rule, labels: &mut Labels) {
        let Rect { top, bottom, .. } = self.frame.area;
        let Some(x) = self.frame.x(rule.at) else { return };
        self.group(&rule.style, |pen| {
            if let Some((from, to)) = pen.segment(Some((x, top)), Some((x, bottom)), &rule.style, THIN) {
                labels.avoid_line(&[from, to]);
                labels.beside_vertical(x, &rule.text);
            }
        });
    }
}

/// The points of a line that have a marker: all, or some if there are many.
fn spaced(line: &[Point]) -> Vec<Point> {
    if line.len() <= MAX_MARKERS {
        return line.to_vec();
    }
    let mut chosen: Vec<Point> = Vec::new();
    for point in line {
        let is_far = chosen.last().is_none_or(|last: &Point| {
            (point.0 - last.0).abs().max((point.1 - last.1).abs()) >= MARKER_DISTANCE
        });
        if is_far {
            chosen.push(*point);
        }
    }
    chosen
}

/// A rectangle whose sides have at least [`MIN_BOX`].
fn grown(rect: Rect) -> Rect {
    let (dx, dy) = ((MIN_BOX - rect.width()).max(0.0) / 2.0, (MIN_BOX - rect.height()).max(0.0) / 2.0);
    Rect { left: rect.left - dx, right: rect.right + dx, top: rect.top - dy, bottom: rect.bottom + dy }
}
