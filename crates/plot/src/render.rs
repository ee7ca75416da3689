//! Layout of a figure: title, legend, rows of panels, caption.

mod axes;
mod bars;
mod canvas;
mod extent;
mod frame;
mod geometry;
mod labels;
mod legend;
mod marks;
mod number;
mod panel;
mod scaled;
mod shapes;
mod sheet;
mod text;
mod ticks;

use canvas::{Canvas, Target};
use geometry::Rect;
use panel::{Draft, Layout};

use crate::{Anchor, Figure};

/// Space around the content of a file (px).
const MARGIN: f64 = 10.0;

/// Space between panels (px).
const GAPS: (f64, f64) = (20.0, 14.0);

/// Size and line height of the title (px).
const TITLE: (f64, f64) = (14.0, 19.0);

/// Size and line height of the caption (px).
const CAPTION: (f64, f64) = (12.0, 17.0);

impl Figure {
    /// The figure as an SVG file with title, legend, panels and caption. It has its own light and dark colours; printed, it
    /// is light.
    pub fn svg(&self) -> String {
        self.render(Target::File, true)
    }

    /// The figure as an element of an HTML page, without title and caption. It has the colours of the page's CSS variables
    /// `--ink`, `--soft`, `--line` and `--paper`.
    ///
    /// All ids in it start with `id_prefix`, so figures of one page need different prefixes. In the prefix, other characters
    /// than letters, digits, `-` and `_` become `-`.
    pub fn inline_svg(&self, id_prefix: &str) -> String {
        self.render(Target::Page(id_prefix), true)
    }

    /// Each panel as an element of an HTML page that arranges the panels itself, without the legend
    /// ([`Figure::inline_legend`]). The ids start with `id_prefix` and the number of the panel.
    pub fn inline_panels(&self, id_prefix: &str) -> Vec<String> {
        let panels = self.panels.iter().enumerate();
        let svg = |(number, panel): (usize, &crate::Panel)| {
            let figure = Figure { panels: vec![panel.clone()], ..self.clone() };
            figure.render(Target::Page(&format!("{id_prefix}-{number}")), false)
        };
        panels.map(svg).collect()
    }

    fn render(&self, target: Target<'_>, has_legend: bool) -> String {
        let panel_width = bounded(self.panel_width, 240.0);
        let columns = self.columns.clamp(1, self.panels.len().max(1));
        let content = columns as f64 * panel_width + (columns - 1) as f64 * GAPS.0;
        let is_file = matches!(target, Target::File);
        let margin = if is_file { MARGIN } else { 0.0 };
        let mut canvas = Canvas::new(target);
        let mut y = 0.0;
        if is_file {
            for line in text::wrap(&self.title, TITLE.0 * text::BOLD, content) {
                y += TITLE.1;
                canvas.text((0.0, y - 5.0), Anchor::Start, "title", &line);
            }
        }
        if has_legend {
            y += legend::draw(&mut canvas, &self.legend, y, content);
        }
        y = self.draw_panels(&mut canvas, columns, panel_width, y);
        if is_file {
            for line in text::wrap(&self.caption, CAPTION.0, content) {
                y += CAPTION.1;
                canvas.text((0.0, y - 4.0), Anchor::Start, "", &line);
            }
        }
        let view = Rect { left: -margin, top: -margin, right: content + margin, bottom: y.max(1.0) + margin };
        let title = if self.title.is_empty() { "Figure" } else { &self.title };
        canvas.finish(&view, title, &self.description())
    }

    /// Draws the rows of panels from this height downwards. Returns the height of their end.
    ///
    /// Panels above each other have the same space on their sides, and panels of a row the same space above and below, so
    /// that their plot areas are aligned.
    fn draw_panels(&self, canvas: &mut Canvas, columns: usize, panel_width: f64, top: f64) -> f64 {
        let plot_height = bounded(self.plot_height, 80.0);
        let drafts: Vec<Draft<'_>> =
            self.panels.iter().map(|panel| Draft::new(panel, panel_width, plot_height)).collect();
        let mut sides = vec![(0.0, 0.0); columns];
        for (number, draft) in drafts.iter().enumerate() {
            let column = &mut sides[number % columns];
            *column = larger(*column, draft.sides);
        }
        let mut layouts = drafts
            .into_iter()
            .enumerate()
            .map(|(number, draft)| draft.laid_out(panel_width, sides[number % columns]));
        let mut y = top;
        loop {
            let row: Vec<Layout<'_>> = layouts.by_ref().take(columns).collect();
            if row.is_empty() {
                return y;
            }
            let (above, below) = row.iter().map(|layout| layout.ends).fold((0.0, 0.0), larger);
            if y > top {
                y += GAPS.1;
            }
            for (column, layout) in row.into_iter().enumerate() {
                let left = column as f64 * (panel_width + GAPS.0);
                layout.draw(canvas, (left, y + above), plot_height);
            }
            y += above + plot_height + below;
        }
    }

    /// The content of the figure in words, for screen readers.
    fn description(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        if !self.caption.is_empty() {
            parts.push(self.caption.clone());
        }
        for panel in &self.panels {
            let title = if panel.title.is_empty() { "Panel" } else { &panel.title };
            parts.push(format!("{title}: {} over {}.", panel.y.label, panel.x.label));
        }
        let names: Vec<&str> = self.legend.iter().map(|entry| entry.style.name.as_str()).collect();
        if !names.is_empty() {
            parts.push(format!("Series: {}.", names.join(", ")));
        }
        parts.join(" ")
    }
}

fn larger(one: (f64, f64), other: (f64, f64)) -> (f64, f64) {
    (one.0.max(other.0), one.1.max(other.1))
}

/// A length in px from `min` to 4000. A length that is no number is `min`.
fn bounded(length: f64, min: f64) -> f64 {
    length.max(min).min(4000.0)
}
