//! Attacks that writing a file, or opening an untrusted file, must resist.

use std::fs::{self, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use airpace_files::{Growing, Place, Whole, open, read_to_string, replace, unfinished, write};
use rustix::fs::{CWD, FileType, Mode};
use tempfile::TempDir;

fn folder() -> (TempDir, impl Fn(&str) -> PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_owned();
    (folder, move |name| root.join(name))
}

fn names(folder: &TempDir) -> Vec<String> {
    let entries = folder.path().read_dir().unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn pipe(path: &Path) {
    rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}

#[test]
fn a_name_means_the_old_file_until_the_new_one_is_whole() {
    let (folder, path) = folder();
    let begin = |text: &str| {
        let mut file = Whole::create(&path("a")).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    };
    let first = begin("first");
    assert!(!path("a").exists());
    first.finish().unwrap();
    drop(begin("half"));
    assert_eq!(fs::read_to_string(path("a")).unwrap(), "first");
    begin("second").finish().unwrap();
    assert_eq!(fs::read_to_string(path("a")).unwrap(), "second");
    assert_eq!(names(&folder), ["a"], "nothing else is left");
}

#[test]
fn nothing_is_written_through_a_link() {
    let (folder, path) = folder();
    fs::write(path("victim"), "precious").unwrap();
    symlink("victim", path("link")).unwrap();
    symlink("nothing", path("dangling")).unwrap();
    for name in ["link", "dangling"] {
        let leads_to = if name == "link" { "victim" } else { "nothing" };
        for refused in [
            Whole::create(&path(name)).map(drop).unwrap_err(),
            Growing::open(&path(name)).map(drop).unwrap_err(),
            write(&path(name), "").unwrap_err(),
        ] {
            assert!(refused.to_string().contains(&format!("it is a link to `{leads_to}`")), "{refused}");
        }
    }
    assert_eq!(fs::read_to_string(path("victim")).unwrap(), "precious");
    assert_eq!(names(&folder), ["dangling", "link", "victim"]);
    // In a trusted folder, the link itself is replaced.
    replace(&path("link"), "ours").unwrap();
    assert!(path("link").symlink_metadata().unwrap().is_file());
    assert_eq!(fs::read_to_string(path("victim")).unwrap(), "precious");
}

#[test]
fn a_link_that_comes_while_a_file_is_written_goes_and_is_not_followed() {
    let (_folder, path) = folder();
    fs::write(path("victim"), "precious").unwrap();
    let mut file = Whole::create(&path("a")).unwrap();
    file.write_all(b"ours").unwrap();
    symlink("victim", path("a")).unwrap();
    file.finish().unwrap();
    assert!(path("a").symlink_metadata().unwrap().is_file());
    assert_eq!(fs::read_to_string(path("victim")).unwrap(), "precious");
}

#[test]
fn the_name_of_an_unfinished_file_cannot_be_foretold_and_is_known_afterwards() {
    let (folder, path) = folder();
    let (one, other) = (Whole::create(&path("a.csv")).unwrap(), Whole::create(&path("a.csv")).unwrap());
    let there = names(&folder);
    assert_eq!(there.len(), 2, "each has its own: {there:?}");
    assert!(there.iter().all(|name| unfinished(name.as_ref()) == Some("a.csv")), "{there:?}");
    drop((one, other));
    for other in ["a.csv", ".a.csv", ".a.csv.part", ".a.csv.1234567.part", "..123456.part", ".a.123.56.part"]
    {
        assert_eq!(unfinished(other.as_ref()), None, "{other}");
    }
}

#[test]
fn rights_stay_and_protected_files_stay() {
    let (_folder, path) = folder();
    fs::write(path("secret"), "old").unwrap();
    fs::set_permissions(path("secret"), Permissions::from_mode(0o600)).unwrap();
    write(&path("secret"), "new").unwrap();
    assert_eq!(path("secret").metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_to_string(path("secret")).unwrap(), "new");
    if rustix::process::geteuid().is_root() {
        return; // Root may write protected files.
    }
    fs::set_permissions(path("secret"), Permissions::from_mode(0o400)).unwrap();
    assert_eq!(write(&path("secret"), "newer").unwrap_err().kind(), ErrorKind::PermissionDenied);
    assert_eq!(fs::read_to_string(path("secret")).unwrap(), "new");
}

#[test]
fn folders_and_paths_without_a_name_are_refused() {
    let (folder, path) = folder();
    assert_eq!(write(folder.path(), "").unwrap_err().kind(), ErrorKind::IsADirectory);
    assert!(Growing::open(folder.path()).is_err());
    for nameless in ["", "..", "/"] {
        assert!(write(Path::new(nameless), "").is_err(), "{nameless:?}");
    }
    assert_eq!(write(&path("not/there"), "").unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn pipes_and_devices_are_written_at_once() {
    let (folder, path) = folder();
    let (mut ours, theirs) = std::io::pipe().unwrap();
    for folder in ["/dev/fd", "/proc/self/fd"] {
        write(Path::new(&format!("{folder}/{}", theirs.as_raw_fd())), "hello").unwrap();
        let mut heard = [0; 5];
        ours.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"hello", "what this process has open is no stranger's link");
    }
    symlink("/dev/null", path("link")).unwrap();
    let around = format!("/dev/fd/../../..{}", path("link").display());
    assert!(Whole::create(Path::new(&around)).unwrap_err().to_string().contains("it is a link"));
    fs::remove_file(path("link")).unwrap();
    let mut device = Whole::create(Path::new("/dev/null")).unwrap();
    device.write_all(b"gone").unwrap();
    device.finish().unwrap();
    pipe(&path("pipe"));
    let reader = std::thread::spawn({
        let pipe = path("pipe");
        move || fs::read_to_string(pipe).unwrap()
    });
    write(&path("pipe"), "through").unwrap();
    assert_eq!(reader.join().unwrap(), "through");
    assert!(path("pipe").metadata().unwrap().file_type().is_fifo());
    assert_eq!(names(&folder), ["pipe"]);
}

#[test]
fn a_growing_file_keeps_what_it_held_until_something_comes() {
    let (_folder, path) = folder();
    let read = || fs::read_to_string(path("a")).unwrap();
    fs::write(path("a"), "of before").unwrap();
    let mut file = Growing::open(&path("a")).unwrap();
    assert_eq!(read(), "of before");
    file.write_all(b"one ").unwrap();
    file.flush().unwrap();
    assert_eq!(read(), "one ", "who follows it sees it");
    file.write_all(b"two").unwrap();
    drop(file);
    assert_eq!(read(), "one two");
    Growing::open(&path("a")).unwrap().begin().unwrap();
    assert_eq!(read(), "", "emptied where there is nothing to say");
}

#[test]
fn a_stranger_s_file_is_plain_and_of_a_bounded_size() {
    let (folder, path) = folder();
    fs::write(path("a"), "words").unwrap();
    fs::write(path("b"), [0xff, 0xfe]).unwrap();
    symlink("a", path("link")).unwrap();
    pipe(&path("pipe"));
    assert_eq!(read_to_string(&path("a"), 5).unwrap(), "words");
    assert_eq!(read_to_string(&path("a"), 4).unwrap_err().kind(), ErrorKind::FileTooLarge);
    assert_eq!(read_to_string(&path("b"), 9).unwrap_err().kind(), ErrorKind::InvalidData);
    let mut first = [0];
    open(&path("a")).unwrap().read_exact(&mut first).unwrap();
    assert_eq!(&first, b"w");
    assert!(open(&path("link")).unwrap_err().to_string().contains("it is a link to `a`"));
    for other in [path("pipe"), folder.path().to_owned(), "/dev/zero".into()] {
        let refused = open(&other).unwrap_err().to_string();
        assert!(
            refused.contains("no plain file"),
            "{}: {refused}; and it was not waited for",
            other.display()
        );
    }
}

#[test]
fn a_file_is_one_whatever_it_is_called() {
    let (_folder, path) = folder();
    fs::write(path("a"), "").unwrap();
    fs::hard_link(path("a"), path("b")).unwrap();
    symlink("b", path("c")).unwrap();
    assert!(Place::of(&path("a")).is_some());
    assert_eq!(Place::of(&path("a")), Place::of(&path("b")));
    assert_eq!(Place::of(&path("a")), Place::of(&path("c")));
    assert_ne!(Place::of(&path("a")), Place::of(&path("new")));
    assert_eq!(Place::of(&path("new")), Place::of(&path("./new")));
    assert_eq!(Place::of(Path::new("/dev/null")), None);
}

#[test]
fn a_file_with_two_names_is_not_written_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("theirs"), "precious").unwrap();
    std::fs::hard_link(path("theirs"), path("out")).unwrap();
    let refused = Growing::open(&path("out")).unwrap_err().to_string();
    assert!(refused.contains("hard link"), "{refused}");
    assert_eq!(std::fs::read_to_string(path("theirs")).unwrap(), "precious");
}
