//! Legends: samples of the series with their names.

use std::fmt::Write;

use super::canvas::{Canvas, Target};
use super::geometry::{Point, Rect};
use super::marks::{LINE_WIDTH, SHADE_OPACITY, THIN};
use super::text::{self, escape};
use crate::{Anchor, Entry, Figure, Swatch};

/// Size of the names (px).
const SIZE: f64 = 13.0;

/// Width and height of a sample (px).
const SAMPLE: (f64, f64) = (28.0, 14.0);

/// Space between a sample and its name, and between a name and the next sample (px).
const GAPS: (f64, f64) = (6.0, 16.0);

/// Height of a row (px).
const ROW: f64 = 20.0;

/// Draws the legend from this height downwards, in rows of at most `width` px. Returns its height.
pub fn draw(canvas: &mut Canvas, entries: &[Entry], top: f64, width: f64) -> f64 {
    let mut at = (0.0, top);
    for entry in entries {
        let name = text::shorten(&entry.style.name, SIZE, width - SAMPLE.0 - GAPS.0);
        let length = SAMPLE.0 + GAPS.0 + text::width(&name, SIZE);
        if at.0 > 0.0 && at.0 + length > width {
            at = (0.0, at.1 + ROW);
        }
        sample(canvas, entry, (at.0, at.1 + (ROW - SAMPLE.1) / 2.0));
        canvas.text((at.0 + SAMPLE.0 + GAPS.0, at.1 + 14.5), Anchor::Start, "label", &name);
        at.0 += length + GAPS.1;
    }
    if entries.is_empty() { 0.0 } else { at.1 + ROW + 4.0 - top }
}

impl Figure {
    /// The legend as a list in HTML, whose entries flow with the width of the page. For a page that shows the panels of
    /// [`Figure::inline_panels`]. All ids start with `id_prefix` and `legend`.
    pub fn inline_legend(&self, id_prefix: &str) -> String {
        if self.legend.is_empty() {
            return String::new();
        }
        let mut canvas = Canvas::new(Target::Page(&format!("{id_prefix}-legend")));
        let mut items = String::new();
        for entry in &self.legend {
            sample(&mut canvas, entry, (0.0, 0.0));
            let sample = canvas.finish_sample(SAMPLE);
            let _ = writeln!(
                items,
                "<li style=\"display:flex;gap:.4em;align-items:center\">{sample}{}</li>",
                escape(&entry.style.name)
            );
        }
        let id = format!("{}list", canvas.prefix());
        format!(
            "<div id=\"{id}\">{}\n\
             <ul style=\"display:flex;flex-wrap:wrap;gap:.2em 1em;list-style:none;margin:0;padding:0\">\n\
             {items}</ul></div>\n",
            canvas.sample_style(&id)
        )
    }
}

/// Draws the sample of an entry with its top left corner at this point.
fn sample(canvas: &mut Canvas, Entry { style, swatch }: &Entry, (left, top): Point) {
    let (width, height) = SAMPLE;
    let centre = (left + width / 2.0, top + height / 2.0);
    let block =
        Rect { left: left + 4.0, top: top + 1.0, right: left + width - 4.0, bottom: top + height - 1.0 };
    match swatch {
        Swatch::Line | Swatch::Both => {
            canvas.line(&[(left, centre.1), (left + width, centre.1)], style, LINE_WIDTH);
        }
        Swatch::Marker => {}
        Swatch::Fill => {
            let fill = canvas.fill(style, true);
            canvas.rect(&block, &fill);
        }
        Swatch::Shade | Swatch::Box => {
            let fill = canvas.fill(style, false);
            canvas.rect(&block, &format!("{fill} fill-opacity=\"{SHADE_OPACITY}\""));
        }
    }
    if *swatch == Swatch::Box {
        let stroke = canvas.stroke(&style.colour);
        canvas.rect(&block, &format!("class=\"{stroke}\" fill=\"none\" stroke-width=\"{THIN}\""));
    }
    if matches!(swatch, Swatch::Both | Swatch::Marker | Swatch::Box) {
        canvas.markers(style, &[centre]);
    }
}
