//! No untrusted file is read without a limit: `airpace_files` contains functions that read a whole file up to a limit.

use super::shipped_sources;

/// Calls that read all data without a limit.
const UNBOUNDED: &[&str] = &["read_to_end(", "read_to_string(", "fs::read(", "decode_all(", "copy_decode("];

/// Text in the same line that limits such a call, or shows that the call needs no limit.
const BOUNDED: &[&str] = &[".take(", "airpace_files::read_to_string(", "\"/proc/", "\"/sys/"];

/// Allowed calls without a limit: file, text of the line, and origin of the data.
const ALLOWED: &[(&str, &str, &str)] = &[
    ("crates/bpf/src/devices.rs", "DEVICES", "the kernel's own file"),
    ("crates/bpf/src/kernel/asked.rs", "LOCKDOWN", "the kernel's own file"),
    ("crates/bpf/src/kernel/relay.rs", "Iter::new(lift)", "the kernel writes it"),
    ("crates/bpf/src/kernel/shown.rs", "fs::read(path)", "the kernel writes it"),
    ("crates/bpf/src/manage.rs", "AVAILABLE", "the kernel's own file"),
    ("crates/lab/src/granularity/measure.rs", "fs::read_to_string(&path)", "below /proc/self/task"),
    ("crates/lab/src/granularity/measure.rs", "stream.read_to_string", "a page of a daemon that it started"),
    (
        "crates/lab/src/stage.rs",
        "self.said.read_to_string",
        "a program of its own user wrote it to a disk file",
    ),
    ("crates/cli/src/installation.rs", "fs::read(binary)", "the program itself"),
    ("crates/emu/src/session/names.rs", "LIST", "the system's /etc/resolv.conf"),
    ("crates/emu/src/session/pasta.rs", "said.read_to_string", "a program that it started wrote it"),
];

#[test]
fn no_file_of_a_stranger_is_read_without_a_bound() {
    let Some(sources) = shipped_sources() else { return };
    let mut used = vec![false; ALLOWED.len()];
    let mut seen = 0;
    for (path, shipped) in sources {
        if path.starts_with("crates/files/src/") {
            continue;
        }
        seen += 1;
        for (number, line) in shipped.lines().enumerate() {
            let code = line.split(" // ").next().unwrap_or_default();
            let is_comment = code.trim_start().starts_with("//");
            let Some(found) = UNBOUNDED.iter().find(|way| !is_comment && code.contains(*way)) else {
                continue;
            };
            if BOUNDED.iter().any(|bound| code.contains(bound)) {
                continue;
            }
            let allowed = ALLOWED.iter().position(|(place, text, _)| path == *place && code.contains(text));
            let Some(allowed) = allowed else {
                panic!(
                    "{path}:{}: `{found}…)` reads everything there is; use airpace_files::read_at_most, text_at_most or \
                     read_to_string, and add the limit to SECURITY.md",
                    number + 1
                );
            };
            used[allowed] = true;
        }
    }
    assert!(seen > 200, "{seen} files were checked");
    for ((path, text, _), used) in ALLOWED.iter().zip(used) {
        assert!(used, "{path} has no `{text}` any more: remove it from the list");
    }
}
