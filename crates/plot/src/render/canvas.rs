//! The SVG text under construction: elements, and the style sheet that gives them the colours of a theme.

use std::fmt::Write;

use super::geometry::{Point, Rect};
use super::number::fixed;
use super::shapes;
use super::sheet::Sheet;
use super::text::escape;
use crate::{Anchor, Colour, Hatch, Style};

/// The purpose of an SVG.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// A file of its own, with its own colours and background.
    File,
    /// An element of an HTML page, which has this text as the start of all its ids, and the page's colours.
    Page(&'a str),
}

/// Factor by which a page may enlarge a figure. Without a limit, a figure of one panel would fill a wide window.
const MAX_ZOOM: f64 = 1.35;

/// An SVG under construction.
pub struct Canvas {
    body: String,
    sheet: Sheet,
}

impl Canvas {
    pub fn new(target: Target<'_>) -> Canvas {
        let prefix = match target {
            Target::File => String::new(),
            Target::Page(name) => identifier(name),
        };
        let is_page = matches!(target, Target::Page(_));
        Canvas { body: String::new(), sheet: Sheet::new(prefix, is_page) }
    }

    /// Appends an element, or a part of one. All text in it is escaped already.
    pub fn push(&mut self, element: &str) {
        self.body.push_str(element);
    }

    /// Starts a group of elements. Its name appears under the pointer, and screen readers read it.
    pub fn open(&mut self, name: &str) {
        self.body.push_str("<g>");
        if !name.is_empty() {
            let _ = write!(self.body, "<title>{}</title>", escape(name));
        }
    }

    /// Ends a group.
    pub fn close(&mut self) {
        self.body.push_str("</g>\n");
    }

    /// Class of lines in a colour.
    pub fn stroke(&mut self, colour: &Colour) -> String {
        format!("p-s{}", self.sheet.colour(colour))
    }

    /// Attributes that fill an area with the colour and hatch of a style. A narrow edge in the colour of the background
    /// separates areas that touch.
    pub fn fill(&mut self, style: &Style, has_edge: bool) -> String {
        let colour = self.sheet.colour(&style.colour);
        let edge = if has_edge { " p-edge" } else { "" };
        if style.hatch == Hatch::None {
            return format!("class=\"p-f{colour}{edge}\"");
        }
        let class = if has_edge { " class=\"p-edge\"" } else { "" };
        format!("fill=\"url(#{})\"{class}", self.sheet.hatch(colour, style.hatch))
    }

    /// A line of text. `class` is `title`, `label`, `halo` (over data), or empty for the labels of ticks.
    pub fn text(&mut self, (x, y): Point, anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let class = if class.is_empty() { String::new() } else { format!(" class=\"p-{class}\"") };
        let (x, y) = (fixed(x, 1), fixed(y, 1));
        let _ = writeln!(self.body, "<text x=\"{x}\" y=\"{y}\"{anchor}{class}>{}</text>", escape(text));
    }

    /// Text turned around its point, by degrees clockwise.
    pub fn turned_text(&mut self, at: Point, degrees: i32, anchor: Anchor, class: &str, text: &str) {
        let (x, y) = (fixed(at.0, 1), fixed(at.1, 1));
        let _ = write!(self.body, "<g transform=\"rotate({degrees} {x} {y})\">");
        self.text(at, anchor, class, text);
        self.body.push_str("</g>");
    }

    /// A line in the style of a series.
    pub fn line(&mut self, points: &[Point], style: &Style, width: f64) {
        let class = self.stroke(&style.colour);
        let dash = match style.dash.pattern() {
            "" => String::new(),
            pattern => format!(" stroke-dasharray=\"{pattern}\""),
        };
        let (d, width) = (path(points, false), fixed(width, 2));
        let _ = writeln!(
            self.body,
            "<path class=\"{class}\" fill=\"none\" stroke-width=\"{width}\"{dash} d=\"{d}\"/>"
        );
    }

    /// A line of the grid (`grid`) or of an axis (`axis`).
    pub fn ruler(&mut self, from: Point, to: Point, class: &str) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(|value| fixed(value, 1));
        let _ =
            write!(self.body, "<line class=\"p-{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>");
    }

    /// A rectangle with these further attributes.
    pub fn rect(&mut self, rect: &Rect, attributes: &str) {
        let [x, y] = [rect.left, rect.top].map(|value| fixed(value, 1));
        let [width, height] = [rect.width(), rect.height()].map(|value| fixed(value, 1));
        let _ = writeln!(
            self.body,
            "<rect {attributes} x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
        );
    }

    /// Markers of a series at these points.
    pub fn markers(&mut self, style: &Style, points: &[Point]) {
        if points.is_empty() {
            return;
        }
        let colour = self.sheet.colour(&style.colour);
        let look = if shapes::is_open(style.marker) {
            format!("class=\"p-s{colour}\" fill=\"none\" stroke-width=\"2\"")
        } else if style.hollow {
            format!("class=\"p-s{colour} p-paper\" stroke-width=\"1.5\"")
        } else {
            // A narrow edge in the colour of the background separates markers that overlap.
            format!("class=\"p-f{colour} p-edge\"")
        };
        let d: String = points.iter().map(|point| shapes::path(style.marker, *point)).collect();
        let _ = writeln!(self.body, "<path {look} d=\"{d}\"/>");
    }

    /// The finished SVG that shows this part of the plane. `title` and `description` are for screen readers.
    pub fn finish(mut self, view: &Rect, title: &str, description: &str) -> String {
        let prefix = &self.sheet.prefix;
        let mut out = String::new();
        let (namespace, limit) = if self.sheet.is_page {
            let max = fixed(view.width() * MAX_ZOOM, 0);
            ("", format!(" id=\"{prefix}plot\" style=\"display:block;max-width:{max}px\""))
        } else {
            (" xmlns=\"http://www.w3.org/2000/svg\"", String::new())
        };
        let _ = writeln!(
            out,
            "<svg{namespace}{limit} viewBox=\"{} {} {} {}\" role=\"img\" \
             aria-labelledby=\"{prefix}title {prefix}desc\">\n\
             <title id=\"{prefix}title\">{}</title>\n<desc id=\"{prefix}desc\">{}</desc>",
            fixed(view.left, 1),
            fixed(view.top, 1),
            fixed(view.width(), 1),
            fixed(view.height(), 1),
            escape(title),
            escape(description),
        );
        let _ = writeln!(out, "<style>{}</style>", self.sheet.text(&format!("#{prefix}plot ")));
        out.push_str(&self.sheet.definitions());
        if !self.sheet.is_page {
            let content = std::mem::take(&mut self.body);
            self.rect(view, "class=\"p-paper\"");
            self.body.push_str(&content);
        }
        out + &self.body + "</svg>\n"
    }

    /// An SVG of a legend's sample, without a description. Its style sheet is that of [`Canvas::sample_style`].
    pub fn finish_sample(&mut self, (width, height): Point) -> String {
        let body = std::mem::take(&mut self.body);
        let (width, height) = (fixed(width, 1), fixed(height, 1));
        format!(
            "<svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" aria-hidden=\"true\">{body}</svg>"
        )
    }

    /// Style sheet and hatches of samples. They belong into the element with this id, like the samples.
    pub fn sample_style(&self, id: &str) -> String {
        let hatches = self.sheet.definitions();
        let hidden = if hatches.is_empty() {
            String::new()
        } else {
            format!(
                "<svg width=\"0\" height=\"0\" style=\"position:absolute\" aria-hidden=\"true\">{hatches}</svg>"
            )
        };
        format!("<style>{}</style>{hidden}", self.sheet.text(&format!("#{id} ")))
    }

    /// Start of all ids.
    pub fn prefix(&self) -> &str {
        &self.sheet.prefix
    }
}

/// A text as the start of ids: other characters than letters, digits, `-` and `_` become `-`.
fn identifier(name: &str) -> String {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    let mut id: String = name.chars().map(|letter| if allowed(letter) { letter } else { '-' }).collect();
    // In a style sheet, an id starts with a letter.
    if !id.starts_with(|first: char| first.is_ascii_alphabetic()) {
        id.insert(0, 'p');
    }
    id + "-"
}

/// Points as the `d` of a path.
pub fn path(points: &[Point], is_closed: bool) -> String {
    let mut d = String::new();
    for (index, (x, y)) in points.iter().enumerate() {
        let _ = write!(d, "{}{} {}", if index == 0 { 'M' } else { 'L' }, fixed(*x, 1), fixed(*y, 1));
    }
    if is_closed {
        d.push('Z');
    }
    d
}
