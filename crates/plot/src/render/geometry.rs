//! Points and rectangles in the plane of the picture (px, y downwards), and the clipping of lines and areas.

/// A point: x and y.
pub type Point = (f64, f64);

/// A rectangle whose edges are parallel to the axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rect {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

impl Rect {
    /// The rectangle with these two corners.
    pub fn of(one: Point, other: Point) -> Rect {
        Rect {
            left: one.0.min(other.0),
            top: one.1.min(other.1),
            right: one.0.max(other.0),
            bottom: one.1.max(other.1),
        }
    }

    /// The square around a point.
    pub fn around(centre: Point, radius: f64) -> Rect {
        Rect::of((centre.0 - radius, centre.1 - radius), (centre.0 + radius, centre.1 + radius))
    }

    pub fn width(&self) -> f64 {
        self.right - self.left
    }

    pub fn height(&self) -> f64 {
        self.bottom - self.top
    }

    /// Whether the point is inside. Points on the edge are, in spite of rounding.
    pub fn contains(&self, (x, y): Point) -> bool {
        let slack = 1e-6;
        (self.left - slack..=self.right + slack).contains(&x)
            && (self.top - slack..=self.bottom + slack).contains(&y)
    }

    /// Whether all of the other rectangle is inside.
    pub fn holds(&self, other: &Rect) -> bool {
        self.contains((other.left, other.top)) && self.contains((other.right, other.bottom))
    }

    /// Square of the distance between the rectangle and a point.
    pub fn squared_distance(&self, (x, y): Point) -> f64 {
        let dx = (self.left - x).max(x - self.right).max(0.0);
        let dy = (self.top - y).max(y - self.bottom).max(0.0);
        dx * dx + dy * dy
    }

    /// Whether the rectangles overlap.
    pub fn overlaps(&self, other: &Rect) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    /// The smallest rectangle around both.
    pub fn joined(&self, other: &Rect) -> Rect {
        Rect {
            left: self.left.min(other.left),
            top: self.top.min(other.top),
            right: self.right.max(other.right),
            bottom: self.bottom.max(other.bottom),
        }
    }

    /// The common part of two rectangles. `None` if they neither overlap nor touch.
    pub fn common(&self, other: &Rect) -> Option<Rect> {
        let common = Rect {
            left: self.left.max(other.left),
            top: self.top.max(other.top),
            right: self.right.min(other.right),
            bottom: self.bottom.min(other.bottom),
        };
        (common.left <= common.right && common.top <= common.bottom).then_some(common)
    }
}

/// The part of a line segment inside a rectangle (Liang and Barsky's algorithm).
pub fn clip_segment(rect: &Rect, from: Point, to: Point) -> Option<(Point, Point)> {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let (mut start, mut end) = (0.0f64, 1.0f64);
    let edges = [
        (-dx, from.0 - rect.left),
        (dx, rect.right - from.0),
        (-dy, from.1 - rect.top),
        (dy, rect.bottom - from.1),
    ];
    for (direction, distance) in edges {
        if direction == 0.0 {
            if distance < 0.0 {
                return None;
            }
        } else if direction < 0.0 {
            start = start.max(distance / direction);
        } else {
            end = end.min(distance / direction);
        }
    }
    let at = |share: f64| {
        // The ends themselves are exact, so that neighbouring segments stay connected.
        if share == 0.0 {
            from
        } else if share == 1.0 {
            to
        } else {
            (from.0 + share * dx, from.1 + share * dy)
        }
    };
    (start <= end).then(|| (at(start), at(end)))
}

/// The parts of a line inside a rectangle.
pub fn clip_line(rect: &Rect, line: &[Point]) -> Vec<Vec<Point>> {
    let mut parts: Vec<Vec<Point>> = Vec::new();
    for pair in line.windows(2) {
        let Some((from, to)) = clip_segment(rect, pair[0], pair[1]) else { continue };
        match parts.last_mut() {
            Some(part) if part.last() == Some(&from) => part.push(to),
            _ => parts.push(vec![from, to]),
        }
    }
    parts
}

/// The part of a polygon inside a rectangle (Sutherland and Hodgman's algorithm).
pub fn clip_polygon(rect: &Rect, polygon: &[Point]) -> Vec<Point> {
    // Each edge as the signed distance of a point to its inside.
    let edges: [&dyn Fn(Point) -> f64; 4] = [
        &|point| point.0 - rect.left,
        &|point| rect.right - point.0,
        &|point| point.1 - rect.top,
        &|point| rect.bottom - point.1,
    ];
    let mut corners = polygon.to_vec();
    for inside in edges {
        let mut kept = Vec::with_capacity(corners.len());
        for (index, &to) in corners.iter().enumerate() {
            let from = corners[(index + corners.len() - 1) % corners.len()];
            let (before, after) = (inside(from), inside(to));
            if (before < 0.0) != (after < 0.0) {
                let share = before / (before - after);
                kept.push((from.0 + share * (to.0 - from.0), from.1 + share * (to.1 - from.1)));
            }
            if after >= 0.0 {
                kept.push(to);
            }
        }
        corners = kept;
    }
    corners
}

/// A line that keeps its y until the next point.
pub fn stepped(line: &[Point]) -> Vec<Point> {
    let mut steps = Vec::with_capacity(2 * line.len());
    for (index, &point) in line.iter().enumerate() {
        if index > 0 {
            steps.push((point.0, line[index - 1].1));
        }
        steps.push(point);
    }
    steps
}

/// Leaves out points that cannot be distinguished: of consecutive points in one column of 1 px, the first, the lowest, the
/// highest and the last remain. Files stay small, and peaks stay visible.
pub fn thinned(line: &[Point]) -> Vec<Point> {
    let mut kept = Vec::new();
    for column in line.chunk_by(|one, other| one.0.floor() == other.0.floor()) {
        let last = column.len() - 1;
        let place = |better: &dyn Fn(f64, f64) -> bool| {
            (0..=last).fold(0, |best, at| if better(column[at].1, column[best].1) { at } else { best })
        };
        let mut places = [0, place(&|one, best| one < best), place(&|one, best| one > best), last];
        places.sort_unstable();
        let mut previous = None;
        for at in places {
            if previous != Some(at) {
                kept.push(column[at]);
            }
            previous = Some(at);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECT: Rect = Rect { left: 0.0, top: 0.0, right: 10.0, bottom: 10.0 };

    #[test]
    fn lines_are_cut_at_the_edges() {
        let parts = clip_line(&RECT, &[(-5.0, 5.0), (5.0, 5.0), (5.0, 50.0), (8.0, 50.0), (8.0, 5.0)]);
        assert_eq!(parts, [vec![(0.0, 5.0), (5.0, 5.0), (5.0, 10.0)], vec![(8.0, 10.0), (8.0, 5.0)]]);
        assert_eq!(clip_segment(&RECT, (-5.0, -1.0), (15.0, -1.0)), None);
    }

    #[test]
    fn polygons_are_cut_at_the_edges() {
        let square = clip_polygon(&RECT, &[(5.0, 5.0), (5.0, 20.0), (20.0, 20.0), (20.0, 5.0)]);
        assert_eq!(square.len(), 4, "{square:?}");
        assert!(
            square.iter().all(|point| (5.0..=10.0).contains(&point.0) && (5.0..=10.0).contains(&point.1))
        );
        assert!(clip_polygon(&RECT, &[(11.0, 1.0), (12.0, 1.0), (12.0, 2.0)]).is_empty());
    }

    #[test]
    fn peaks_survive_thinning() {
        let mut line: Vec<Point> = (0..1_000).map(|at| (f64::from(at) / 100.0, 5.0)).collect();
        line[555].1 = 9.0;
        line[333].1 = 1.0;
        let kept = thinned(&line);
        assert!(kept.len() < 30, "{}", kept.len());
        assert!(kept.contains(&line[555]) && kept.contains(&line[333]));
        assert_eq!((kept.first(), kept.last()), (line.first(), line.last()));
    }

    #[test]
    fn steps_change_at_the_next_point() {
        assert_eq!(stepped(&[(0.0, 1.0), (2.0, 3.0)]), [(0.0, 1.0), (2.0, 1.0), (2.0, 3.0)]);
    }
}
