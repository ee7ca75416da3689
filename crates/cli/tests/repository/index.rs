//! `docs/files.md` lists all source files, each with the first sentence that it says of itself.

use std::fmt::Write;

use super::{read, root, tracked_files};

const PAGE: &str = "docs/files.md";

/// What the page begins with.
const LEAD: &str = "# Every source file\n\nPaths are below `crates/`. The sentence is the first that the file says of itself.\n\n";

/// The first sentence of a file's own documentation.
fn first_sentence(text: &str) -> String {
    let lines = text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim);
    let paragraph: Vec<&str> =
        lines.take_while(|line| !line.is_empty() && !line.starts_with("```")).collect();
    let paragraph = paragraph.join(" ");
    let end = paragraph.find(". ").map_or(paragraph.len(), |end| end + 1);
    paragraph[..end].to_owned()
}

fn list() -> Option<String> {
    let is_source = |path: &String| {
        path.starts_with("crates/")
            && path.contains("/src/")
            && path.ends_with(".rs")
            && !path.contains("/tests/")
            && !path.ends_with("/tests.rs")
    };
    let mut list = String::new();
    for path in tracked_files()?.into_iter().filter(is_source) {
        let sentence = first_sentence(&read(&path));
        assert!(!sentence.is_empty(), "{path}: a source file begins with what it is (`//!`)");
        writeln!(list, "- `{}`: {sentence}", &path["crates/".len()..]).expect("a string takes all");
    }
    Some(list)
}

/// To write the page anew: `AIRPACE_UPDATE=1 cargo test -p airpace-cli --test repository index`.
#[test]
fn every_source_file_is_listed_with_its_first_sentence() {
    let Some(list) = list() else { return };
    let wanted = format!("{LEAD}{list}");
    if std::env::var_os("AIRPACE_UPDATE").is_some() {
        std::fs::write(root().join(PAGE), wanted).expect("the page can be written");
        return;
    }
    let present = read(PAGE);
    let other = wanted.lines().find(|line| !present.lines().any(|known| known == *line));
    let gone = present.lines().find(|line| !wanted.lines().any(|known| known == *line));
    assert!(
        present == wanted,
        "{PAGE} lacks {other:?} or has {gone:?}; AIRPACE_UPDATE=1 cargo test -p airpace-cli --test repository index"
    );
}
