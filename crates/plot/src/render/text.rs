//! Text in SVG: characters that XML permits, and the space that text needs.

/// Text as XML: markup is escaped, and characters that XML 1.0 forbids are replaced.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => out.push(' '),
            '\0'..='\x1f' | '\u{7f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            _ => out.push(letter),
        }
    }
    out
}

/// Width of bold text, relative to that of regular text.
pub const BOLD: f64 = 1.1;

/// Estimated width of text (px) in a font of `size` px.
///
/// Chosen: the widths of DejaVu Sans, rounded up by class of character. The common system fonts are narrower.
pub fn width(text: &str, size: f64) -> f64 {
    text.chars().map(letter_width).sum::<f64>() * size
}

fn letter_width(letter: char) -> f64 {
    match letter {
        'i' | 'j' | 'l' | 'I' | '\'' | '\u{2009}' => 0.3,
        ' ' | '.' | ',' | ':' | ';' | '|' => 0.34,
        'f' | 'r' | 't' | '(' | ')' | '[' | ']' | '/' | '-' | 'J' => 0.42,
        '⁰'..='⁹' | '⁻' | '¹' | '²' | '³' => 0.44,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '—' | '…' => 1.0,
        'a'..='z' | '0'..='9' => 0.64,
        'A'..='Z' => 0.74,
        // Letters of Chinese, Japanese and Korean, and symbols.
        '\u{1100}'.. => 1.05,
        _ => 0.8,
    }
}

/// Breaks text into lines at spaces. Lines are at most `limit` px wide; a longer word is shortened.
pub fn wrap(text: &str, size: f64, limit: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line, size) + width(" ", size) + width(word, size) <= limit => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(shorten(word, size, limit)),
        }
    }
    lines
}

/// As [`wrap`], with at most `max` lines. The last of these lines is cut if there is more text.
pub fn wrap_at_most(max: usize, text: &str, size: f64, limit: f64) -> Vec<String> {
    let mut lines = wrap(text, size, limit);
    if lines.len() > max {
        let rest = lines.split_off(max - 1).join(" ");
        lines.push(shorten(&rest, size, limit));
    }
    lines
}

/// Cuts text that is wider than `limit` px, and ends it with an ellipsis.
pub fn shorten(text: &str, size: f64, limit: f64) -> String {
    if width(text, size) <= limit {
        return text.to_owned();
    }
    let mut used = width("…", size);
    let kept = text.chars().take_while(|letter| {
        used += letter_width(*letter) * size;
        used <= limit
    });
    kept.collect::<String>() + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_become_markup() {
        assert_eq!(escape("a<b & \"c\">\n\0é"), "a&lt;b &amp; &quot;c&quot;&gt; \u{fffd}é");
    }

    #[test]
    fn lines_fit_and_contain_all_words() {
        let text = "95th percentile of the one-way delay (ms) Donaudampfschifffahrtsgesellschaft";
        let lines = wrap(text, 12.0, 120.0);
        assert!(lines.iter().all(|line| width(line, 12.0) <= 120.0), "{lines:?}");
        assert_eq!(lines.len(), 4, "{lines:?}");
        assert!(lines[3].ends_with('…'), "{lines:?}");
        assert!(wrap("", 12.0, 100.0).is_empty());
        let cut = wrap_at_most(2, text, 12.0, 120.0);
        assert!(cut.len() == 2 && cut[1].ends_with('…') && width(&cut[1], 12.0) <= 120.0, "{cut:?}");
    }
}
