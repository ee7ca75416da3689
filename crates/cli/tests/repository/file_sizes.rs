//! Source files have a maximum length, so that each can be understood as a whole.

use super::own_texts;

/// Maximum number of lines. Files are split by topic much earlier, at about 600 lines.
const MAX_LINES: usize = 1_000;

#[test]
fn no_source_file_is_longer_than_the_wall() {
    let sources = ["rs", "js", "ts", "css", "html", "py", "sh", "md", "toml"];
    let Some(texts) = own_texts() else { return };
    let long: Vec<_> = texts
        .into_iter()
        .filter(|(path, _)| path.rsplit_once('.').is_some_and(|(_, ending)| sources.contains(&ending)))
        .map(|(path, text)| (path, text.lines().count()))
        .filter(|(_, lines)| *lines > MAX_LINES)
        .collect();
    assert!(long.is_empty(), "split these by idea, at most {MAX_LINES} lines each: {long:?}");
}
