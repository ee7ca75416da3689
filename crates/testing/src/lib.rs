//! Helpers for tests: paths of recordings and programs, and reports of skipped tests.
//!
//! A test that cannot run reports this with [`skipped`] and returns. The message bypasses the capture of the test
//! harness, so that `cargo test` shows it next to the "ok". The message is also appended to the file that [`LIST`]
//! names: `./test` counts the lines of this file.

use std::env;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Environment variable with the name of the file to which skipped tests are appended. Each line contains test and
/// reason, separated by a tab.
pub const LIST: &str = "AIRPACE_SKIPPED";

/// Environment variable with the folder of recordings. If the variable is unset, the folder is expected next to the
/// repository.
pub const DATA: &str = "AIRPACE_DATA";

/// Path of a file or folder of the recordings; `None` if it does not exist, and then the calling test counts as
/// skipped. `docs/recordings.md` describes the content of this folder and its sources.
pub fn recordings(path: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let found = env::var_os(DATA).map_or(beside, PathBuf::from).join(path);
    if found.exists() {
        return Some(found);
    }
    // Report the folder, so that missing recordings are counted per folder and not per file.
    let folder = path.rsplit_once('/').map_or(path, |(folder, _)| folder);
    skipped(&format!("no recordings: {folder}"));
    None
}

/// Writes an executable file, for example a stand-in for a program of the machine.
///
/// A child process writes it. If a test process opened the file itself, a process that another test forks at this
/// moment would inherit the open descriptor, and the start of the file would fail with `ETXTBSY` ("Text file busy").
///
/// # Panics
/// If the file cannot be written.
pub fn write_program(path: &Path, text: &str) {
    let mut writer = Command::new("install")
        .args(["-m", "755", "/dev/stdin"])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .expect("the program install starts");
    let mut stdin = writer.stdin.take().expect("a pipe");
    stdin.write_all(text.as_bytes()).expect("install reads its input");
    drop(stdin);
    assert!(writer.wait().expect("install ends").success(), "cannot write {}", path.display());
}

/// Copies an executable file with its permissions. A child process copies it, for the reason that [`write_program`]
/// states.
///
/// # Panics
/// If the file cannot be copied.
pub fn copy_program(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-p").args([from, to]).status().expect("the program cp starts");
    assert!(copied.success(), "cannot copy {} to {}", from.display(), to.display());
}

/// An empty folder that all tests of a binary share, inside cargo's temporary folder for tests
/// (`env!("CARGO_TARGET_TMPDIR")`). A static is never dropped, so a temporary folder in a static would never be
/// deleted; this folder is emptied by the next run.
///
/// # Panics
/// If the folder cannot be created.
pub fn shared_folder(cargo_folder: &str, name: &str) -> PathBuf {
    let folder = Path::new(cargo_folder).join(name);
    match std::fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => panic!("{}: {error}", folder.display()),
        _ => {}
    }
    std::fs::create_dir_all(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    folder
}

/// The first of these programs that is on PATH. If none is on PATH, the calling test counts as skipped. `package` is
/// the Debian package that contains the program.
pub fn one_of_programs<'a>(programs: &[&'a str], package: &str) -> Option<&'a str> {
    let path = env::var_os("PATH").unwrap_or_default();
    let is_there = |program: &&str| env::split_paths(&path).any(|folder| folder.join(program).is_file());
    let found = programs.iter().copied().find(is_there);
    if found.is_none() {
        skipped(&format!("no {} (Debian: apt-get install {package})", programs.join(" or ")));
    }
    found
}

/// Whether a program is on PATH; the search is that of [`one_of_programs`].
pub fn has_program(program: &str, package: &str) -> bool {
    one_of_programs(&[program], package).is_some()
}

/// Records that the calling test, or a part of it, is skipped, and the reason. Use the same text for the same reason:
/// skipped tests are counted by their text.
///
/// # Panics
/// If the list of skipped tests cannot be written: an unnoticed skip is worse than a failure.
pub fn skipped(reason: &str) {
    let line = format!("{}\t{reason}\n", test());
    // The harness would capture `eprintln!` with the output of a passing test.
    let _ = std::io::stderr().write_all(format!("skipped: {}", line.replace('\t', ": ")).as_bytes());
    let Some(list) = env::var_os(LIST) else { return };
    let appended = OpenOptions::new().create(true).append(true).open(&list);
    // Write the line in one call, so that lines of several processes are not mixed.
    let written = appended.and_then(|mut file| file.write_all(line.as_bytes()));
    written.unwrap_or_else(|error| panic!("{}: {error} ({LIST} names it)", Path::new(&list).display()));
}

/// Name of the calling test, preceded by the name of its binary.
fn test() -> String {
    let binary = env::current_exe().ok();
    let binary = binary.as_deref().and_then(Path::file_stem).map_or_else(String::new, |stem| {
        let stem = stem.to_string_lossy();
        // Remove the hash that cargo appends.
        stem.rsplit_once('-').map_or(stem.as_ref(), |(name, _)| name).to_owned()
    });
    format!("{binary}::{}", std::thread::current().name().unwrap_or("a test"))
}
