//! Tests that a skipped test is reported: next to the "ok" of the harness, and in the list that `./test` counts.

use std::path::Path;
use std::process::{Command, Output};

/// Starts this binary again to run only the test that skips.
fn run(list: Option<&Path>) -> Output {
    let mut harness = Command::new(std::env::current_exe().expect("this binary"));
    harness.args(["--exact", "one_that_skips"]).env(airpace_testing::DATA, "/nowhere");
    match list {
        Some(list) => harness.env(airpace_testing::LIST, list),
        None => harness.env_remove(airpace_testing::LIST),
    };
    harness.output().expect("the harness starts")
}

/// Does nothing unless the other tests start it.
#[test]
fn one_that_skips() {
    if std::env::var_os(airpace_testing::DATA).is_some_and(|data| data == "/nowhere") {
        assert_eq!(airpace_testing::recordings("traces"), None);
        assert!(!airpace_testing::has_program("/nowhere/tshark", "tshark"));
    }
}

#[test]
fn a_skip_is_printed_though_the_test_passes() {
    let done = run(None);
    assert!(done.status.success());
    assert_eq!(
        String::from_utf8_lossy(&done.stderr),
        "skipped: seen::one_that_skips: no recordings: traces\n\
         skipped: seen::one_that_skips: no /nowhere/tshark (Debian: apt-get install tshark)\n"
    );
}

#[test]
fn skips_are_listed_for_who_counts_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let list = folder.path().join("skipped");
    run(Some(&list));
    run(Some(&list));
    let told = std::fs::read_to_string(&list).expect("the list");
    let first: Vec<_> = told.lines().take(2).collect();
    assert_eq!(told.lines().count(), 4, "appended, not replaced: {told}");
    assert_eq!(first[0], "seen::one_that_skips\tno recordings: traces");
    assert!(first[1].starts_with("seen::one_that_skips\tno /nowhere/tshark"), "{told}");
}

#[test]
fn a_list_that_cannot_be_written_fails_the_test() {
    assert!(!run(Some(Path::new("/nowhere/list"))).status.success());
}

/// Final output of `./test` for such a list of skipped tests.
fn told(list: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("skipped"), list).expect("the list");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.ci/skipped");
    let mut shell = Command::new("sh");
    shell.args(["-eu", "-c", ". \"$0\"; tell_skipped skipped", script]).current_dir(folder.path());
    let done = shell.env_remove(airpace_testing::DATA).output().expect("sh");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("text")
}

#[test]
fn the_closing_line_counts_tests_by_reason_and_says_how_to_get_the_data() {
    assert_eq!(told(""), "Nothing was skipped.\n");
    let tests = "kpi::a\tno recordings: diag\nkpi::b\tno recordings: diag\nkpi::a\tno recordings: diag\n\
                 binary::c\tno tshark (Debian: apt-get install tshark)\n";
    assert_eq!(
        told(tests),
        "3 skipped:\n\
         \x20    1: no tshark (Debian: apt-get install tshark)\n\
         \x20    2: no recordings: diag\n\
         Recordings are looked for in $AIRPACE_DATA, which is not set; docs/recordings.md says where each comes from.\n"
    );
}
