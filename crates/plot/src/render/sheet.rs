//! The style sheet of an SVG: the colours of its theme and of the series, and the hatches of areas.

use std::fmt::Write;

use crate::{Colour, Hatch};

/// Colours of a theme.
struct Theme {
    /// Text.
    ink: &'static str,
    /// Secondary text and axes.
    soft: &'static str,
    /// The grid.
    line: &'static str,
    /// The background.
    paper: &'static str,
}

// The values are those of the report.
const LIGHT: Theme = Theme { ink: "#1b1f24", soft: "#57606a", line: "#d8dee4", paper: "#ffffff" };
const DARK: Theme = Theme { ink: "#e6edf3", soft: "#9da7b1", line: "#30363d", paper: "#161b22" };

/// The variables of a page, which changes their values with its own theme.
const PAGE: Theme = Theme {
    ink: "var(--ink,#1b1f24)",
    soft: "var(--soft,#57606a)",
    line: "var(--line,#d8dee4)",
    paper: "var(--paper,#ffffff)",
};

const FONT: &str = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif";

/// Colours and hatches in use.
pub struct Sheet {
    /// Start of all ids; empty in a file.
    pub prefix: String,
    /// Whether the colours of the theme are those of a page.
    pub is_page: bool,
    colours: Vec<Colour>,
    /// Hatches, each with the number of its colour.
    hatches: Vec<(usize, Hatch)>,
}

impl Sheet {
    pub fn new(prefix: String, is_page: bool) -> Sheet {
        Sheet { prefix, is_page, colours: Vec::new(), hatches: Vec::new() }
    }

    /// The number of a colour. The class `p-s` with this number gives it to lines, the class `p-f` to areas.
    pub fn colour(&mut self, colour: &Colour) -> usize {
        self.colours.iter().position(|other| other == colour).unwrap_or_else(|| {
            self.colours.push(colour.clone());
            self.colours.len() - 1
        })
    }

    /// The id of a hatch over the colour with this number.
    pub fn hatch(&mut self, colour: usize, hatch: Hatch) -> String {
        let hatch = (colour, hatch);
        let number = self.hatches.iter().position(|other| *other == hatch).unwrap_or_else(|| {
            self.hatches.push(hatch);
            self.hatches.len() - 1
        });
        format!("{}hatch{number}", self.prefix)
    }

    /// Patterns of the hatches in use.
    pub fn definitions(&self) -> String {
        if self.hatches.is_empty() {
            return String::new();
        }
        let mut out = String::from("<defs>");
        for (number, (colour, hatch)) in self.hatches.iter().enumerate() {
            let (angle, d) = match hatch {
                Hatch::None | Hatch::Level => (0, "M0 3H6"),
                Hatch::Upright => (0, "M3 0V6"),
                Hatch::Rising => (-45, "M0 3H6"),
                Hatch::Falling => (45, "M0 3H6"),
                Hatch::Crossed => (45, "M0 3H6M3 0V6"),
            };
            let _ = write!(
                out,
                "<pattern id=\"{}hatch{number}\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
                 patternTransform=\"rotate({angle})\"><rect class=\"p-f{colour}\" width=\"6\" height=\"6\"/>\
                 <path class=\"p-gap\" d=\"{d}\"/></pattern>",
                self.prefix
            );
        }
        out + "</defs>\n"
    }

    /// The style sheet. In a page, `scope` limits it to this SVG; in a file, it needs no limit.
    pub fn text(&self, scope: &str) -> String {
        let scope = if self.is_page { scope } else { "" };
        let (light, dark) = if self.is_page { (&PAGE, &PAGE) } else { (&LIGHT, &DARK) };
        let mut out = format!(
            "{scope}text{{font:12px {FONT}}}{scope}.p-title{{font-size:14px;font-weight:600}}\
             {scope}.p-label{{font-size:13px}}{scope}path{{stroke-linejoin:round}}\
             {scope}.p-halo{{paint-order:stroke;stroke-width:3px;stroke-linejoin:round}}\
             {scope}.p-edge{{stroke-width:.8px}}{scope}.p-gap{{stroke-width:1.5px}}"
        );
        out.push_str(&light.rules(scope));
        let mut in_dark = if self.is_page { String::new() } else { dark.rules(scope) };
        for (number, colour) in self.colours.iter().enumerate() {
            let rules = |value: &str| {
                format!("{scope}.p-s{number}{{stroke:{value}}}{scope}.p-f{number}{{fill:{value}}}")
            };
            let (value, dark_value) = (light.value(colour, false), dark.value(colour, true));
            out.push_str(&rules(value));
            if dark_value != value {
                in_dark.push_str(&rules(dark_value));
            }
        }
        if !in_dark.is_empty() {
            // Paper is light in both themes, so the dark colours are for screens only.
            let _ = write!(out, "@media screen and (prefers-color-scheme:dark){{{in_dark}}}");
        }
        out
    }
}

impl Theme {
    /// Rules for the elements that have the colours of the theme.
    fn rules(&self, scope: &str) -> String {
        let Theme { ink, soft, line, paper } = self;
        format!(
            "{scope}text{{fill:{soft}}}{scope}.p-title,{scope}.p-label,{scope}.p-halo{{fill:{ink}}}\
             {scope}.p-halo,{scope}.p-edge,{scope}.p-gap{{stroke:{paper}}}{scope}.p-paper{{fill:{paper}}}\
             {scope}.p-grid{{stroke:{line}}}{scope}.p-axis{{stroke:{soft}}}"
        )
    }

    /// The value of a colour in this theme.
    fn value<'a>(&self, colour: &'a Colour, is_dark: bool) -> &'a str {
        match colour {
            Colour::Hex { dark: Some(dark), .. } if is_dark && is_hex(dark) => dark,
            Colour::Hex { light, .. } if is_hex(light) => light,
            Colour::Soft => self.soft,
            _ => self.ink,
        }
    }
}

/// Whether a text is `#rgb` or `#rrggbb`. Other texts could end the style sheet.
fn is_hex(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or_default();
    [3, 6].contains(&digits.len()) && digits.chars().all(|digit| digit.is_ascii_hexdigit())
}
