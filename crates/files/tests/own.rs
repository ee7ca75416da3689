//! Folders that must be accessible to this user only.

use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{PermissionsExt, chown, symlink};

use airpace_files::{is_own_folder, make_own_folder};

#[test]
fn a_folder_that_others_made_or_may_change_is_none_of_ours() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    assert!(!is_own_folder(&path("new")).unwrap());
    make_own_folder(&path("new")).unwrap();
    assert!(is_own_folder(&path("new")).unwrap());
    assert_eq!(path("new").metadata().unwrap().permissions().mode() & 0o777, 0o700);
    make_own_folder(&path("new")).expect("it is there already");
    fs::write(path("file"), "").unwrap();
    symlink(path("new"), path("link")).unwrap();
    symlink(path("nothing"), path("dangling")).unwrap();
    fs::create_dir(path("open")).unwrap();
    fs::set_permissions(path("open"), Permissions::from_mode(0o1777)).unwrap();
    for name in ["file", "link", "dangling", "open"] {
        assert_eq!(is_own_folder(&path(name)).unwrap_err().kind(), ErrorKind::PermissionDenied, "{name}");
        assert_eq!(make_own_folder(&path(name)).unwrap_err().kind(), ErrorKind::PermissionDenied, "{name}");
    }
    assert!(!path("nothing").exists(), "nothing was made through the link");
    make_own_folder(&path("open/mine")).expect("nobody can rename it in a sticky folder");
    fs::set_permissions(path("open"), Permissions::from_mode(0o777)).unwrap();
    assert_eq!(make_own_folder(&path("open/other")).unwrap_err().kind(), ErrorKind::PermissionDenied);
    if !rustix::process::geteuid().is_root() {
        return; // Only root may change the owner of a folder.
    }
    fs::create_dir(path("theirs")).unwrap();
    chown(path("theirs"), Some(1234), None).unwrap();
    let error = make_own_folder(&path("theirs")).unwrap_err();
    assert!(error.to_string().contains("number 1234"), "{error}");
}
