//! Places of grouped bars.

use crate::{Mark, Panel};

/// Share of a category's width that its bars fill.
const FILLED: f64 = 0.8;

/// Maximum width of a bar (px).
const MAX_WIDTH: f64 = 48.0;

/// How the bars of a panel share the space of their categories.
#[derive(Debug)]
pub struct Groups {
    /// Distance between categories on the x axis.
    pub spacing: f64,
    /// The categories in ascending order, each with the marks that have a bar there.
    categories: Vec<(f64, Vec<usize>)>,
}

impl Groups {
    pub fn of(panel: &Panel) -> Groups {
        let mut bars: Vec<(f64, usize)> = Vec::new();
        for (index, mark) in panel.marks.iter().enumerate() {
            if let Mark::Bars(series) = mark {
                let drawn = series.bars.iter().filter(|bar| bar.x.is_finite() && bar.value.is_finite());
                bars.extend(drawn.map(|bar| (bar.x, index)));
            }
        }
        bars.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        bars.dedup();
        let categories: Vec<(f64, Vec<usize>)> = bars
            .chunk_by(|one, other| one.0 == other.0)
            .map(|bars| (bars[0].0, bars.iter().map(|bar| bar.1).collect()))
            .collect();
        let ticks = panel.x.ticks.iter().flatten().map(|tick| tick.0).filter(|place| place.is_finite());
        let mut places: Vec<f64> = categories.iter().map(|category| category.0).chain(ticks).collect();
        places.sort_by(f64::total_cmp);
        let gaps = places.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap > 0.0);
        let spacing = gaps.fold(f64::INFINITY, f64::min);
        Groups { spacing: if spacing.is_finite() { spacing } else { 1.0 }, categories }
    }

    /// The horizontal place of a bar relative to the middle of its category: left edge and width (px). `room` is the width of
    /// a category.
    pub fn place(&self, x: f64, mark: usize, room: f64) -> (f64, f64) {
        let max = self.categories.iter().map(|category| category.1.len()).max().unwrap_or(1).max(1);
        let width = (room * FILLED / max as f64).min(MAX_WIDTH);
        let of_category = self.categories.iter().find(|category| category.0 == x);
        let marks = of_category.map_or(&[][..], |category| &category.1);
        let at = marks.iter().position(|other| *other == mark).unwrap_or(0);
        ((at as f64 - marks.len().max(1) as f64 / 2.0) * width, width)
    }
}
