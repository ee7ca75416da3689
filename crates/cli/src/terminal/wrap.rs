//! Breaks text into lines of a maximum width.

use airpace_core::plain::plain;
use unicode_width::UnicodeWidthStr;

/// Positions at which a text may be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breaks {
    /// A text may be broken at spaces.
    Spaces,
    /// A text may be broken at spaces and after separators in names, such as `cbr:` and `rate_` in `cbr:rate_mbps=60`.
    Joints,
}

/// The characters that separate the parts of a name.
const JOINTS: &str = ":@,/=_-.";

/// Width of a text on a terminal (columns).
pub fn columns_of(text: &str) -> usize {
    text.width()
}

/// Breaks `text` into lines of at most `columns`. A piece that cannot be broken stays whole, even if it is wider.
pub fn wrap(text: &str, columns: usize, breaks: Breaks) -> Vec<String> {
    wrap_after(0, text, columns, breaks)
}

/// Returns `lead`, then `text` in lines that start at column `indent`. The first line starts after the lead if the lead
/// is longer.
///
/// Untrusted text is escaped: it cannot move, hide or colour the text next to it.
pub fn hang(lead: &str, text: &str, indent: usize, columns: usize) -> String {
    let (lead, text) = (&*plain(lead), &*plain(text));
    let used = columns_of(lead).saturating_sub(indent);
    let lines = wrap_after(used, text, columns.saturating_sub(indent), Breaks::Spaces);
    let pad = " ".repeat(indent.saturating_sub(columns_of(lead)));
    let text = format!("{lead}{pad}{}", lines.join(&format!("\n{}", " ".repeat(indent))));
    text.trim_end().to_owned()
}

/// Like [`wrap`], if `used` columns of the first line are already taken.
fn wrap_after(used: usize, text: &str, columns: usize, breaks: Breaks) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut taken = used;
    for (piece, is_word) in pieces(text, breaks) {
        let line = lines.last_mut().expect("there is always a line");
        let gap = if is_word && !line.is_empty() { " " } else { "" };
        let wanted = taken + gap.len() + columns_of(piece);
        if taken == 0 || wanted <= columns {
            line.extend([gap, piece]);
            taken = wanted;
        } else {
            lines.push(piece.to_owned());
            taken = columns_of(piece);
        }
    }
    lines
}

/// Width of the widest piece of `text` that cannot be broken.
pub fn widest_piece(text: &str, breaks: Breaks) -> usize {
    pieces(text, breaks).map(|(piece, _)| columns_of(piece)).max().unwrap_or(0)
}

/// The pieces of `text` between possible line breaks, each with whether a word starts with it.
fn pieces(text: &str, breaks: Breaks) -> impl Iterator<Item = (&str, bool)> {
    text.split(' ').filter(|word| !word.is_empty()).flat_map(move |word| {
        let parts: Vec<&str> = match breaks {
            Breaks::Spaces => vec![word],
            Breaks::Joints => word.split_inclusive(|c| JOINTS.contains(c)).collect(),
        };
        parts.into_iter().enumerate().map(|(at, part)| (part, at == 0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces_and_keep_what_cannot_be_broken() {
        assert_eq!(wrap("a phone in a cell", 9, Breaks::Spaces), ["a phone", "in a cell"]);
        assert_eq!(
            wrap("see runs/competitor-001 now", 10, Breaks::Spaces),
            ["see", "runs/competitor-001", "now"]
        );
        assert_eq!(wrap("", 10, Breaks::Spaces), [""]);
        assert_eq!(hang("", "a phone in a cell", 2, 11), "  a phone\n  in a cell");
        assert_eq!(hang("pbe", "a phone in a cell", 5, 14), "pbe  a phone\n     in a cell");
        assert_eq!(
            hang("competitor  ", "a phone in a cell", 5, 14),
            "competitor  a\n     phone in\n     a cell"
        );
    }

    #[test]
    fn names_break_behind_their_joints() {
        let name = "other (cbr:rate_mbps=60)";
        assert_eq!(wrap(name, 12, Breaks::Joints), ["other (cbr:", "rate_mbps=", "60)"]);
        assert_eq!(widest_piece(name, Breaks::Joints), 5, "`other`, `(cbr:`, `rate_`");
        assert_eq!(wrap(name, 80, Breaks::Joints), [name], "a line that has room is not broken");
    }

    #[test]
    fn columns_are_those_of_the_terminal() {
        assert_eq!(columns_of("größer ±1"), 9);
        assert_eq!(columns_of("手机"), 4, "wide letters take two columns");
    }
}
