//! Texts over data, placed where nothing else is.

use super::canvas::Canvas;
use super::geometry::{Point, Rect, clip_segment};
use super::scaled::TICK_SIZE;
use super::shapes::RADIUS;
use super::text;
use crate::Anchor;

/// A place for a text: its point on the baseline, and the part of the text that is there.
type Place = (Point, Anchor);

/// The texts of a panel, and everything that they must not cover.
pub struct Labels {
    area: Rect,
    shapes: Vec<Rect>,
    lines: Vec<(Point, Point)>,
    /// Centres of all markers.
    markers: Vec<Point>,
    texts: Vec<Wanted>,
}

struct Wanted {
    places: Vec<Place>,
    text: String,
    /// The marker to which the text belongs. Such a text is left out if no place is free.
    marker: Option<Point>,
}

impl Labels {
    /// Texts inside this area.
    pub fn new(area: Rect) -> Labels {
        Labels { area, shapes: Vec::new(), lines: Vec::new(), markers: Vec::new(), texts: Vec::new() }
    }

    /// No text may cover this rectangle.
    pub fn avoid(&mut self, shape: Rect) {
        self.shapes.push(shape);
    }

    /// No text may cover these markers.
    pub fn avoid_markers(&mut self, points: &[Point]) {
        self.shapes.extend(points.iter().map(|point| Rect::around(*point, RADIUS - 1.0)));
        self.markers.extend(points);
    }

    /// No text may cover this line.
    pub fn avoid_line(&mut self, line: &[Point]) {
        self.lines.extend(line.windows(2).map(|pair| (pair[0], pair[1])));
    }

    /// A label on one of the eight sides of a marker. It is left out if none is free.
    pub fn beside_marker(&mut self, point: Point, text: &str) {
        self.beside(point, &[Rect::around(point, RADIUS)], text);
    }

    /// A label on one of the eight sides of these shapes, in this order. It is left out if none is free.
    pub fn beside(&mut self, centre: Point, shapes: &[Rect], text: &str) {
        let places = shapes.iter().flat_map(|shape| sides(centre, shape)).collect();
        self.want(places, text, Some(centre));
    }

    /// The text of a horizontal line, at one of its ends.
    pub fn beside_horizontal(&mut self, y: f64, text: &str) {
        let (left, right) = (self.area.left + 4.0, self.area.right - 4.0);
        let places = vec![
            ((right, y - 4.0), Anchor::End),
            ((right, y + 13.0), Anchor::End),
            ((left, y - 4.0), Anchor::Start),
            ((left, y + 13.0), Anchor::Start),
        ];
        self.want(places, text, None);
    }

    /// The text of a vertical line, at one of its ends.
    pub fn beside_vertical(&mut self, x: f64, text: &str) {
        let (top, bottom) = (self.area.top + 12.0, self.area.bottom - 6.0);
        let places = vec![
            ((x + 4.0, top), Anchor::Start),
            ((x - 4.0, top), Anchor::End),
            ((x + 4.0, bottom), Anchor::Start),
            ((x - 4.0, bottom), Anchor::End),
        ];
        self.want(places, text, None);
    }

    /// A text that has its place already.
    pub fn fixed(&mut self, point: Point, anchor: Anchor, text: &str) {
        self.want(vec![(point, anchor)], text, None);
    }

    fn want(&mut self, places: Vec<Place>, text: &str, marker: Option<Point>) {
        if !text.trim().is_empty() {
            let text = text::shorten(text, TICK_SIZE, self.area.width());
            self.texts.push(Wanted { places, text, marker });
        }
    }

    /// Draws the texts. Texts that are never left out get their places first.
    pub fn draw(mut self, canvas: &mut Canvas) {
        let mut texts = std::mem::take(&mut self.texts);
        texts.sort_by_key(|wanted| (wanted.marker.is_some(), wanted.places.len()));
        for Wanted { places, text, marker } in texts {
            let space = |place: &Place| space_of(place, &text);
            let is_inside = |place: &&Place| self.area.holds(&space(place));
            let is_free = |place: &&Place| self.is_free(&space(place), marker);
            let free = places.iter().filter(is_inside).find(is_free);
            let place = match free {
                Some(place) => *place,
                None if marker.is_some() => continue,
                None => self.moved_inside(*places.iter().find(is_inside).unwrap_or(&places[0]), &text),
            };
            self.shapes.push(space_of(&place, &text));
            canvas.text(place.0, place.1, "halo", &text);
        }
    }

    /// Whether a text covers nothing there, and no other marker is nearer than its own, to which readers would relate it.
    fn is_free(&self, space: &Rect, marker: Option<Point>) -> bool {
        let is_nearest = marker.is_none_or(|own| {
            let distance = space.squared_distance(own);
            self.markers.iter().all(|other| space.squared_distance(*other) >= distance)
        });
        is_nearest
            && !self.shapes.iter().any(|shape| shape.overlaps(space))
            && !self.lines.iter().any(|(from, to)| clip_segment(space, *from, *to).is_some())
    }

    fn moved_inside(&self, (point, anchor): Place, text: &str) -> Place {
        let space = space_of(&(point, anchor), text);
        let shift = |low: f64, high: f64, min: f64, max: f64| (max - high).min(0.0).max(min - low);
        let dx = shift(space.left, space.right, self.area.left, self.area.right);
        let dy = shift(space.top, space.bottom, self.area.top, self.area.bottom);
        ((point.0 + dx, point.1 + dy), anchor)
    }
}

/// Places for a label on the eight sides of a shape: beside and above its centre, and between these.
fn sides((x, y): Point, shape: &Rect) -> [Place; 8] {
    let (left, right) = (shape.left - 2.0, shape.right + 2.0);
    let (above, below) = (shape.top - 2.0, shape.bottom + 11.0);
    [
        ((right, y + 4.0), Anchor::Start),
        ((left, y + 4.0), Anchor::End),
        ((x, above), Anchor::Middle),
        ((x, below), Anchor::Middle),
        ((x + RADIUS, above), Anchor::Start),
        ((x - RADIUS, above), Anchor::End),
        ((x + RADIUS, below - 1.0), Anchor::Start),
        ((x - RADIUS, below - 1.0), Anchor::End),
    ]
}

/// The space that a text covers.
fn space_of(((x, y), anchor): &Place, text: &str) -> Rect {
    let width = text::width(text, TICK_SIZE);
    let left = match anchor {
        Anchor::Start => *x,
        Anchor::Middle => x - width / 2.0,
        Anchor::End => x - width,
    };
    Rect { left, top: y - 10.0, right: left + width, bottom: y + 3.0 }
}
