//! `std::thread::Builder` starts all threads: it returns an error if the system cannot start another thread. The
//! shorter functions panic.

use super::shipped_sources;

/// Functions that panic.
const PANICKING: &[&str] = &["thread::spawn(", "scope.spawn("];

#[test]
fn no_thread_is_started_in_a_way_that_panics() {
    let Some(sources) = shipped_sources() else { return };
    let (mut seen, mut builders) = (0, 0);
    for (path, shipped) in sources {
        seen += 1;
        for (number, line) in
            shipped.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"))
        {
            builders += usize::from(line.contains("thread::Builder") || line.contains("spawn_scoped("));
            for way in PANICKING {
                assert!(
                    !line.contains(way),
                    "{path}:{}: `{way}…)` panics if there is no thread; use std::thread::Builder, or `thread` of \
                     crates/cli/src/cmd.rs, and report the error",
                    number + 1
                );
            }
        }
    }
    assert!(seen > 200 && builders > 10, "{seen} files were checked, with {builders} threads");
}
