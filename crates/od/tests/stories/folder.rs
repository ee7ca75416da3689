//! Tests of folders whose content other users can change. The daemon neither serves such folders nor changes the files
//! to which links in them lead.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use od::Error;
use od::control::{SOCKET_NAME, Server};

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().expect("it is there").permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
}

/// A folder, and a file outside it that the daemon must not touch.
struct Place {
    all: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let all = tempfile::tempdir().expect("room for a folder");
        fs::write(all.path().join("victim"), "precious").expect("room for a file");
        set_mode(&all.path().join("victim"), 0o600);
        fs::create_dir(all.path().join("od")).expect("room for a folder");
        set_mode(&all.path().join("od"), 0o755);
        Place { all }
    }

    fn dir(&self) -> std::path::PathBuf {
        self.all.path().join("od")
    }

    fn victim(&self) -> std::path::PathBuf {
        self.all.path().join("victim")
    }

    #[track_caller]
    fn refused(&self, dir: &Path, why: &str) {
        let error = Server::bind(dir).expect_err("others have a hand in it");
        assert!(matches!(error, Error::Folder { .. }), "{error:?}");
        assert!(error.to_string().contains(why), "{error}");
        self.unharmed();
    }

    #[track_caller]
    fn unharmed(&self) {
        assert_eq!(fs::read_to_string(self.victim()).expect("still there"), "precious");
        assert_eq!(mode(&self.victim()), 0o600);
    }
}

#[test]
fn a_lock_that_leads_elsewhere_is_not_opened() {
    let place = Place::new();
    let lock = place.dir().join("lock");
    symlink(place.victim(), &lock).expect("a link");
    place.refused(&place.dir(), "`lock`");
    fs::remove_file(&lock).expect("ours");

    symlink(place.all.path().join("not yet there"), &lock).expect("a link");
    place.refused(&place.dir(), "`lock`");
    assert!(!place.all.path().join("not yet there").exists(), "nothing is made where a link leads");
    fs::remove_file(&lock).expect("ours");

    fs::hard_link(place.victim(), &lock).expect("a second name");
    place.refused(&place.dir(), "`lock`");
    fs::remove_file(&lock).expect("ours");

    fs::create_dir(&lock).expect("a folder");
    place.refused(&place.dir(), "`lock`");
    fs::remove_dir(&lock).expect("ours");

    rustix::fs::mkfifoat(rustix::fs::CWD, &lock, rustix::fs::Mode::from_raw_mode(0o666)).expect("a pipe");
    place.refused(&place.dir(), "`lock`");
}

#[test]
fn a_folder_that_others_can_write_is_not_served() {
    let place = Place::new();
    for mode in [0o777, 0o775, 0o757, 0o1777, 0o722] {
        set_mode(&place.dir(), mode);
        // A folder that all users share is refused with another text: changing its permissions would break other
        // programs.
        let why = if mode == 0o1777 { "all users share" } else { "can be written by others" };
        place.refused(&place.dir(), why);
        assert_eq!(fs::read_dir(place.dir()).expect("ours").count(), 0, "nothing is put there");
    }
    for mode in [0o711, 0o1755] {
        set_mode(&place.dir(), mode);
        Server::bind(&place.dir()).expect("a folder of our own");
    }
}

#[test]
fn a_folder_of_another_user_is_not_served() {
    let place = Place::new();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(place.dir(), Some(12_345), None).expect("root may");
        place.refused(&place.dir(), "belongs to another user");
        assert_eq!(fs::read_dir(place.dir()).expect("readable").count(), 0, "nothing is put there");
    } else {
        place.refused(Path::new("/"), "belongs to another user");
    }
}

#[test]
fn a_folder_in_which_nobody_creates_files_is_named() {
    let dir = format!("/proc/{}", std::process::id());
    let error = Server::bind(Path::new(&dir)).expect_err("the lock file cannot be created");
    assert!(matches!(error, Error::Path { .. }), "{error:?}");
    assert!(
        error.to_string().starts_with(&format!("cannot open the daemon's lock file {dir}/lock: ")),
        "{error}"
    );
}

#[test]
fn a_link_is_no_folder() {
    let place = Place::new();
    // Names that a daemon would replace at its start and remove at its end.
    fs::write(place.dir().join(SOCKET_NAME), "not a socket").expect("room for a file");
    let link = place.all.path().join("link");
    symlink(place.dir(), &link).expect("a link");
    place.refused(&link, "is a link");
    place.refused(&link.join(""), "is a link");
    assert_eq!(fs::read_to_string(place.dir().join(SOCKET_NAME)).expect("still there"), "not a socket");
}

#[test]
fn what_lies_where_the_socket_comes_to_be_is_not_followed() {
    let place = Place::new();
    for name in [SOCKET_NAME, "control.new"] {
        symlink(place.victim(), place.dir().join(name)).expect("a link");
    }
    let server = Server::bind(&place.dir()).expect("a folder of our own");
    place.unharmed();
    assert_eq!(mode(&place.dir().join(SOCKET_NAME)), 0o666, "everybody may connect");
    drop(server);
    place.unharmed();
    assert!(place.dir().join(SOCKET_NAME).symlink_metadata().is_err(), "the socket goes with the daemon");
}

#[test]
fn a_file_of_the_user_s_own_is_not_replaced_by_the_socket() {
    let place = Place::new();
    for name in [SOCKET_NAME, "control.new"] {
        let own = place.dir().join(name);
        fs::write(&own, "notes").expect("room for a file");
        place.refused(&place.dir(), "`control`");
        assert_eq!(fs::read_to_string(&own).expect("still there"), "notes");
        fs::remove_file(&own).expect("ours");
        fs::create_dir(&own).expect("a folder");
        place.refused(&place.dir(), "`control`");
        fs::remove_dir(&own).expect("still there");
    }
}

#[test]
fn nobody_else_can_hold_the_lock_nor_is_it_emptied() {
    let place = Place::new();
    let lock = place.dir().join("lock");
    fs::write(&lock, "of an older version").expect("room for a file");
    set_mode(&lock, 0o666);
    let _server = Server::bind(&place.dir()).expect("a folder of our own");
    assert_eq!(mode(&lock), 0o600);
    assert_eq!(fs::read_to_string(&lock).expect("ours"), "of an older version");
    assert_eq!(lock.metadata().expect("ours").uid(), rustix::process::geteuid().as_raw());
}
