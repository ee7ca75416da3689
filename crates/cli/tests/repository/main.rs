//! What must hold of the repository as a whole: its arrows, its citations, its licences, the size of its files.

mod architecture;
mod citations;
mod file_sizes;
mod guide;
mod licences;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The repository's root.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository's root")
}

/// A file of the repository, as text.
fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The files that git tracks or would track, relative to the root, as far as they are there.
fn tracked_files() -> Vec<String> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .current_dir(root())
        .output()
        .expect("git lists files");
    assert!(listed.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listed.stderr));
    let mut files: Vec<String> = String::from_utf8(listed.stdout)
        .expect("paths in UTF-8")
        .split_terminator('\0')
        .filter(|path| root().join(path).is_file())
        .map(str::to_owned)
        .collect();
    files.sort();
    assert!(files.len() > 20, "git found only {} files", files.len());
    files
}

/// The tracked files that are text, with their text. Libraries of others, kept as they came, are not ours to judge.
fn own_texts() -> Vec<(String, String)> {
    tracked_files()
        .into_iter()
        .filter(|path| !path.contains("/vendor/"))
        .filter_map(|path| {
            let text = std::fs::read_to_string(root().join(&path)).ok()?;
            Some((path, text))
        })
        .collect()
}

/// What cargo knows of the workspace and of all that it depends on, on Linux.
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

/// A field that must be a string.
fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("no text under `{key}` in {value}"))
}
