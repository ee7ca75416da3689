//! Only the crate `files` writes files, because it follows no links and leaves no incomplete files behind.

use super::own_texts;

/// Other ways to create files, which code that ships must not use.
const WRITING: &[&str] = &[
    "File::create",
    "File::options",
    "OpenOptions",
    "fs::write(",
    "create_new(",
    "NamedTempFile",
    "tempfile_in",
    "fs::copy(",
    "fs::hard_link",
];

/// Files that may contain such calls, and the reason.
const ALLOWED: &[(&str, &str)] = &[
    ("crates/files/src/", "it is that crate"),
    ("crates/testing/src/", "what tests share"),
    ("crates/modem/src/source", "a port is opened for reading and writing"),
    ("crates/modem/src/modem", "a terminal of its own is opened"),
    ("crates/emu/src/session/interfaces.rs", "a network interface is opened for reading and writing"),
];

/// Whether `word` occurs in `code` other than as the end of a longer name such as `ParquetFile::create`.
fn stands_alone(code: &str, word: &str) -> bool {
    code.match_indices(word).any(|(at, _)| !code[..at].ends_with(|c: char| c.is_alphanumeric()))
}

#[test]
fn files_are_written_by_one_crate() {
    let Some(texts) = own_texts() else { return };
    let mut seen = 0;
    for (path, source) in texts {
        let ships = path.starts_with("crates/") && path.contains("/src/") && path.ends_with(".rs");
        let is_test = path.ends_with("tests.rs") || path.contains("/tests/");
        if !ships || is_test || ALLOWED.iter().any(|(place, _)| path.starts_with(place)) {
            continue;
        }
        seen += 1;
        let shipped = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for (number, line) in shipped.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let found = WRITING.iter().find(|way| stands_alone(code, way));
            assert!(
                found.is_none(),
                "{path}:{}: `{}` writes a file by itself; use airpace_files (CONTRIBUTING.md, A new output or socket)",
                number + 1,
                found.copied().unwrap_or_default()
            );
        }
    }
    assert!(seen > 200, "{seen} files were looked at");
    assert!(stands_alone("let file = File::create(path)?", "File::create"));
    assert!(!stands_alone("ParquetFile::create(path)?", "File::create"));
}
