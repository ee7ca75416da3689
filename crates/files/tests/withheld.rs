//! Exclusion of files from a folder with untrusted names.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;

use airpace_files::{Inside, Lies};

#[test]
fn withheld_files_are_neither_read_nor_replaced_under_any_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("logs")).unwrap();
    for name in ["key", "logs/one", "free", "other"] {
        fs::write(path(name), name).unwrap();
    }
    fs::hard_link(path("key"), path("second")).unwrap();
    symlink(path("key"), path("called")).unwrap();
    // The command was given a link: the link's target and the link itself are excluded.
    let own = [path("called"), path("logs"), path("to-come")];
    let inside =
        Inside::open(folder.path()).unwrap().withholding(own.iter().map(|path| path.as_path())).unwrap();
    fs::write(path("to-come"), "made later").unwrap();
    let is_withheld = |error: std::io::Error| error.kind() == ErrorKind::PermissionDenied;
    for name in ["key", "second", "logs/one", "to-come"] {
        assert!(is_withheld(inside.read(name).unwrap_err()), "{name}");
        assert!(is_withheld(inside.hand_out(name).unwrap_err()), "{name}");
        assert!(is_withheld(inside.change(name).unwrap_err()), "{name}");
        assert!(is_withheld(inside.look(name).unwrap_err()), "{name}");
        assert!(is_withheld(inside.rename("other", name, true).unwrap_err()), "{name}");
        assert!(is_withheld(inside.remove(name).unwrap_err()), "{name}");
    }
    assert_eq!(fs::read_to_string(path("key")).unwrap(), "key");
    assert!(matches!(inside.look("free"), Ok(Lies::File { bytes: 4, .. })));
    inside.hand_out("free").unwrap();
    inside.rename("free", "other", true).unwrap();
    // The key is renewed: another file has the same name.
    fs::remove_file(path("key")).unwrap();
    fs::write(path("key"), "renewed").unwrap();
    assert!(is_withheld(inside.hand_out("key").unwrap_err()), "the new one");
    assert!(is_withheld(inside.hand_out("second").unwrap_err()), "the old one");
}

#[test]
fn a_folder_of_the_command_itself_is_not_given_to_strangers() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    for given in [inner.as_path(), folder.path()] {
        let error = Inside::open(&inner).unwrap().withholding([given]).unwrap_err();
        assert!(error.to_string().contains("another folder"), "{error}");
    }
}

#[test]
fn hidden_files_and_private_keys_are_not_handed_out() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join(".ssh")).unwrap();
    let key = "-----BEGIN OPENSSH PRIVATE KEY-----\n";
    let files = [
        ("notes", format!("{}\n{key}", "x".repeat(60_000))),
        (".profile", "x".to_owned()),
        (".ssh/config", "x".to_owned()),
        ("key", key.to_owned()),
        ("recv.key", "# The key of `airpace recv`. Who knows it can send files here.\nABCD\n".to_owned()),
    ];
    let inside = Inside::open(folder.path()).unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
        assert_eq!(inside.hand_out(name).unwrap_err().kind(), ErrorKind::PermissionDenied, "{name}");
        inside.read(name).expect("its own user's command may");
    }
    fs::write(folder.path().join("certificate"), "-----BEGIN CERTIFICATE-----\n").unwrap();
    inside.hand_out("certificate").unwrap();
}

#[test]
fn a_private_key_at_any_place_of_a_file_ends_what_is_handed_out() {
    let folder = tempfile::tempdir().unwrap();
    let inside = Inside::open(folder.path()).unwrap();
    let pem = "\n-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIIGlRHQgMrQS\n-----END EC PRIVATE KEY-----\n";
    let json = format!("{{\"d\": \"jpsQnnGQ\",{} \"kty\": \"EC\"}}", " ".repeat(9_000));
    let keys = [pem, json.as_str()];
    // The places include boundaries between examined parts of a file.
    let places = [0, 70_000, 131_050, 131_072, 147_440, 2_000_000];
    for (key, place) in keys.into_iter().flat_map(|key| places.map(|place| (key, place))) {
        let all = [&vec![b'x'; place], key.as_bytes(), &vec![b'y'; 40_000]].concat();
        fs::write(folder.path().join("film"), &all).unwrap();
        for step in [1_000, 65_536] {
            let (mut at, mut examined) = (0_u64, 0);
            let mut buffer = vec![0; step];
            let error = loop {
                // The file is closed and opened again before each read, as by a server with many open files.
                let read = inside.hand_out_again("film", examined).and_then(|mut file| {
                    let count = file.read_at(&mut buffer, at)?;
                    examined = file.examined();
                    Ok(count)
                });
                match read {
                    Ok(0) => panic!("the key at {place} was given away"),
                    Ok(count) => {
                        assert_eq!(buffer[..count], all[at as usize..at as usize + count]);
                        at += count as u64;
                    }
                    Err(error) => break error,
                }
            };
            assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
            assert!(at <= place as u64, "{} bytes of the key at {place} were given", at - place as u64);
            assert!(at + 200_000 >= place as u64, "{at} of {place} harmless bytes were given");
        }
        // A reader that has the start of the key and requests the rest is refused.
        let ahead =
            inside.hand_out("film").and_then(|mut file| file.read_at(&mut [0; 10], place as u64 + 30));
        assert_eq!(ahead.unwrap_err().kind(), ErrorKind::PermissionDenied);
    }
    fs::write(folder.path().join("film"), vec![b'x'; 300_000]).unwrap();
    let mut file = inside.hand_out("film").unwrap();
    let mut buffer = vec![0; 400_000];
    assert_eq!(file.read_at(&mut buffer, 100).unwrap(), 299_900);
    assert_eq!(file.read_at(&mut buffer, 300_000).unwrap(), 0);
}
