//! Tests of the repository as a whole: dependencies between crates, citations, commits, licences, file sizes.

mod architecture;
mod bounded;
mod circles;
mod citations;
mod commits;
mod crate_graph;
mod file_sizes;
mod guide;
mod licences;
mod outputs;
mod threads;
mod words;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Root folder of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository's root")
}

/// Contents of a text file of the repository.
fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Existing files that git tracks, relative to the root. Outside a git checkout, the result is `None`, and the calling
/// test counts as skipped.
fn tracked_files() -> Option<Vec<String>> {
    let files = tracked_below(&root());
    match &files {
        Some(files) => assert!(files.len() > 20, "git found only {} files", files.len()),
        None => airpace_testing::skipped("no checkout of git, which tells sources from a user's own files"),
    }
    files
}

/// Files that git tracks below a folder, sorted; `None` if there are none. Other files belong to the user: runs,
/// reports, notes.
fn tracked_below(folder: &Path) -> Option<Vec<String>> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(folder).output().ok()?;
    if !listed.status.success() || listed.stdout.is_empty() {
        return None;
    }
    let mut files: Vec<String> = String::from_utf8(listed.stdout)
        .expect("paths in UTF-8")
        .split_terminator('\0')
        .filter(|path| folder.join(path).is_file())
        .map(str::to_owned)
        .collect();
    files.sort();
    Some(files)
}

/// Tracked text files, with their contents. Vendored libraries, which are kept unchanged, are left out.
fn own_texts() -> Option<Vec<(String, String)>> {
    let with_text = |path: String| {
        let text = std::fs::read_to_string(root().join(&path)).ok()?;
        Some((path, text))
    };
    let files = tracked_files()?.into_iter().filter(|path| !path.contains("/vendor/"));
    Some(files.filter_map(with_text).collect())
}

/// Source files that ship, without their tests.
fn shipped_sources() -> Option<Vec<(String, String)>> {
    let ships = |path: &str| {
        let is_test =
            path.ends_with("tests.rs") || path.contains("/tests/") || path.ends_with("channel/measured.rs");
        let is_source = path.starts_with("crates/") && path.contains("/src/") && path.ends_with(".rs");
        is_source && !is_test && !path.starts_with("crates/testing/")
    };
    let shipped = own_texts()?.into_iter().filter(|(path, _)| ships(path)).map(|(path, source)| {
        let end = source.find("#[cfg(test)]\nmod tests {").unwrap_or(source.len());
        (path, source[..end].to_owned())
    });
    Some(shipped.collect())
}

#[test]
fn what_users_leave_in_their_checkout_is_not_judged() {
    let folder = tempfile::tempdir().expect("a folder");
    let git = |words: &[&str]| {
        let done = Command::new("git").args(words).current_dir(folder.path()).output().expect("git");
        assert!(done.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    assert_eq!(tracked_below(folder.path()), None, "a folder of no repository");
    git(&["init", "--quiet"]);
    assert_eq!(tracked_below(folder.path()), None, "a repository that tracks nothing");
    std::fs::create_dir(folder.path().join("my-first")).unwrap();
    for file in ["source.rs", "my-first/report.html"] {
        std::fs::write(folder.path().join(file), "text").unwrap();
    }
    git(&["add", "source.rs"]);
    assert_eq!(tracked_below(folder.path()), Some(vec!["source.rs".to_owned()]));
}

/// Cargo's metadata of the workspace and of all its dependencies on Linux.
fn cargo_metadata() -> Value {
    let answer = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked", "--offline"])
        .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
        .current_dir(root())
        .output()
        .expect("cargo metadata runs");
    assert!(answer.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&answer.stderr));
    serde_json::from_slice(&answer.stdout).expect("cargo metadata speaks JSON")
}

/// Value of a field that must be a string.
fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("no text under `{key}` in {value}"))
}
