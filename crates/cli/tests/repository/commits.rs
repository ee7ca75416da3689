//! The subjects of commits have a fixed form, and commits have a body.

use std::process::Command;

use super::root;

/// Time from which on commits are checked, in seconds since 1970.
///
/// Chosen: the time at which this test was introduced. Older commits are not changed.
const CHECKED_SINCE: u64 = 1_795_897_020;

/// Maximum length of a subject in characters.
///
/// Chosen: the length that `git log --oneline` shows on a terminal of 80 columns.
const MAX_SUBJECT: usize = 72;

/// Returns the faults of a commit's subject and body; none for a correct commit.
fn faults(subject: &str, body: &str) -> Vec<&'static str> {
    let (modules, effect) = subject.split_once(": ").unwrap_or(("", subject));
    let is_module = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c))
    };
    let has_modules = modules.split(", ").all(is_module);
    let rules = [
        (subject.chars().count() <= MAX_SUBJECT, "the subject is longer than 72 characters"),
        (has_modules, "the subject does not name modules before a colon"),
        (
            effect.starts_with(|c: char| c.is_lowercase()),
            "the effect does not start with a verb in lower case",
        ),
        (!subject.ends_with('.'), "the subject ends with a full stop"),
        (!body.trim().is_empty(), "the body, which gives the reason, is missing"),
    ];
    rules.into_iter().filter(|(holds, _)| !holds).map(|(_, fault)| fault).collect()
}

#[test]
fn new_commits_have_a_subject_in_one_form_and_a_reason() {
    let since = format!("--since=@{CHECKED_SINCE}");
    let words = ["log", "--no-merges", &since, "--format=%h%x00%s%x00%b%x1e"];
    let log = Command::new("git").args(words).current_dir(root()).output();
    let Some(log) = log.ok().filter(|log| log.status.success()) else {
        return airpace_testing::skipped("no checkout of git, which has the commits");
    };
    let log = String::from_utf8(log.stdout).expect("commits in UTF-8");
    let faulty: Vec<String> = log
        .split('\x1e')
        .map(str::trim_start)
        .filter(|commit| !commit.is_empty())
        .filter_map(|commit| {
            let [hash, subject, body] = commit.splitn(3, '\0').collect::<Vec<_>>()[..] else {
                return Some(format!("git wrote a commit in another form: {commit}"));
            };
            let faults = faults(subject, body);
            (!faults.is_empty()).then(|| format!("{hash} {subject}: {}", faults.join("; ")))
        })
        .collect();
    assert!(faulty.is_empty(), "reword these commits (CONTRIBUTING.md):\n{}", faulty.join("\n"));
}

#[test]
fn a_commit_without_form_or_reason_is_found() {
    let long = format!("phy: {}", "x".repeat(MAX_SUBJECT));
    for (subject, body, count) in [
        ("phy: reject PBCH candidates without a second MIB", "A third of them were noise.", 0),
        ("path, scenario: count carriers from 0", "As the standard does.", 0),
        ("phy: reject PBCH candidates", "\n", 1),
        ("Of four ports, two are not known as of now", "Why.", 2),
        ("phy: Reject PBCH candidates.", "Why.", 2),
        (&long, "Why.", 1),
    ] {
        assert_eq!(faults(subject, body).len(), count, "{subject}: {:?}", faults(subject, body));
    }
}
