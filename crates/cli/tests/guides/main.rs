//! Follows the guides from top to bottom, and runs all their commands with the real binary.
//!
//! Each page has a new folder and one shell, with `airpace` on its PATH and `./airpace` in the folder. The output must
//! equal that on the page. `page.rs` lists the marks of blocks that cannot run in a test.
//!
//! | `AIRPACE_GUIDES` | |
//! | --- | --- |
//! | not set | runs the quick blocks |
//! | `all` | runs the slow blocks too: `docs/try` |
//! | `update` | writes the printed output into the pages, where they have no `…` |
//!
//! `AIRPACE_BINARY` names a binary to use instead of the one that cargo has built, for example an installed one.
#![cfg(unix)]

mod output;
mod page;
mod run;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use page::Page;
use run::{Followed, How};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository's root")
}

/// The pages that readers follow.
fn pages() -> Vec<Page> {
    let guide = std::fs::read_dir(root().join("docs/guide")).expect("docs/guide");
    let guide = guide.map(|entry| format!("docs/guide/{}", entry.expect("a file").file_name().display()));
    let mut paths: Vec<String> = guide.filter(|path| path.ends_with(".md")).collect();
    paths.extend(["README.md", "CONTRIBUTING.md", "docs/release.md"].map(str::to_owned));
    paths.retain(|path| root().join(path).is_file());
    paths.sort();
    let read = |path: &String| {
        let text = std::fs::read_to_string(root().join(path)).expect("a page in UTF-8");
        Page::read(path, &text).unwrap_or_else(|error| panic!("{error}"))
    };
    paths.iter().map(read).collect()
}

#[test]
fn the_guides_can_be_followed_from_top_to_bottom() {
    let how = How::from_environment();
    let pages = pages();
    let (next, followed) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let follow = || {
        while let Some(page) = pages.get(next.fetch_add(1, Ordering::Relaxed)) {
            let done = run::follow(page, &how);
            followed.lock().expect("no thread panics").insert(page.path.as_str(), done);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(follow);
        }
    });
    let followed = followed.into_inner().expect("no thread panics");
    let all =
        |words: fn(&Followed) -> &Vec<String>| followed.values().flat_map(words).cloned().collect::<Vec<_>>();
    let (ran, passed_over) =
        (followed.values().map(|page| page.ran).sum::<usize>(), all(|page| &page.passed_over));
    for (reason, _) in passed_over.iter().filter_map(|line| line.strip_prefix("skipped: ")?.split_once(" ("))
    {
        airpace_testing::skipped(reason);
    }
    // Writing directly to standard error bypasses the test harness's capture, so that skipped blocks are always
    // visible.
    let mut told: String = passed_over.iter().map(|line| format!("{line}\n")).collect();
    told += &format!("{ran} blocks of {} pages were run, {} were not\n", pages.len(), passed_over.len());
    std::io::stderr().write_all(told.as_bytes()).expect("standard error");
    let failed = all(|page| &page.failed);
    assert!(failed.is_empty(), "\n{}\n", failed.join("\n\n"));
    assert!(ran > 20, "the guides have commands: {ran} blocks");
}

#[test]
fn a_page_that_is_wrong_is_told_and_one_that_is_right_is_not() {
    let follow = |text: &str| run::follow(&Page::read("page.md", text).expect("a page"), &How::quick());
    for (text, place, said) in [
        ("```console\n$ echo one\ntwo\n```\n", "page.md:3: after `echo one`", "says   two"),
        ("```sh\necho before\nfalse\n```\n", "page.md:1: ended with", "before"),
        ("```sh\nairpace sim nowhere\n```\n", "page.md:1: ended with", "no scenario is called `nowhere`"),
        ("<!-- exit 1: it has to -->\n```sh\ntrue\n```\n", "page.md:2: ended with", "true"),
        ("```sh\n[ -e airpace ]\n```\n", "page.md:1: ended with", ""),
    ] {
        let failed = follow(text).failed.join("\n");
        assert!(failed.contains(place) && failed.contains(said), "{text}: {failed}");
    }
    let right = follow(concat!(
        "<!-- in a checkout -->\n<!-- file: own.txt -->\n```text\nkept\n```\n",
        "```sh\nexport WORD=later\nsleep 1000 &\n[ -x ./airpace ] && [ -e Cargo.toml ]\n```\n",
        "<!-- not run: it must not be -->\n```sh\nfalse\n```\n<!-- slow: so slow -->\n```sh\nfalse\n```\n",
        "<!-- needs: no-such-program -->\n```sh\nfalse\n```\n",
        "<!-- exit 3: it says so -->\n```sh\n(exit 3)\n```\n",
        "```console\n$ echo $WORD; cat own.txt\nlater\nk…\n$ ls $HOME\n$ airpace --version\nairpace …\n```\n",
    ));
    assert_eq!(right.failed, Vec::<String>::new());
    let passed_over: Vec<_> =
        right.passed_over.iter().map(|line| line.split(": ").next().unwrap_or_default()).collect();
    assert_eq!((right.ran, &passed_over[..]), (4, &["not run", "left to docs/try", "skipped"][..]));
}
