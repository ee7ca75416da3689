//! Escaping of untrusted text for output on a terminal.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Returns `text` with unsafe characters replaced by their code (`\u{1b}`): control characters except line ends and
/// tabs, and bidirectional formatting marks. Such characters could move, hide or reverse the text around them. After
/// the replacement, a terminal only prints a label, file name or message from an untrusted source.
///
/// Source: Unicode Consortium 2024, Standard Annex 9, revision 50, §2 (directional formatting characters)
pub fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unseen) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match is_unseen(c) {
            // Writing to a string cannot fail.
            true => _ = write!(shown, "\\u{{{:x}}}", u32::from(c)),
            false => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// Whether a terminal interprets the character instead of printing it.
fn is_unseen(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_can_only_be_read() {
        assert_eq!(plain("größe 手机 ±1\n\tdone"), "größe 手机 ±1\n\tdone");
        assert!(matches!(plain("plain"), Cow::Borrowed(_)));
        assert_eq!(plain("a\x1b[2Jb\rc\x07"), "a\\u{1b}[2Jb\\u{d}c\\u{7}");
        assert_eq!(
            plain("\u{9b}31m\u{7f}"),
            "\\u{9b}31m\\u{7f}",
            "one-byte control characters and delete are written out too"
        );
        assert_eq!(plain("abc\u{202e}txt.exe\u{2066}"), "abc\\u{202e}txt.exe\\u{2066}");
    }
}
