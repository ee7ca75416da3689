//! All crates have Airpace's licences, and no file of the repository refers to a specific machine. The licences of
//! dependencies are checked by cargo-deny (`.ci/deny`).

use super::{cargo_metadata, own_texts, read, text};

#[test]
fn our_crates_are_under_our_licences() {
    let metadata = cargo_metadata();
    let packages = metadata["packages"].as_array().expect("packages");
    let ours: Vec<_> = packages.iter().filter(|package| package["source"].is_null()).collect();
    assert!(ours.len() > 20, "cargo names all crates");
    for package in ours {
        assert_eq!(package["license"], "MIT OR Apache-2.0", "{}", text(package, "name"));
    }
    assert!(read("LICENSE-MIT").contains("Permission is hereby granted"));
    assert!(read("LICENSE-APACHE").contains("Apache License"));
}

#[test]
fn nothing_points_at_one_machine_or_at_a_registry() {
    // The names are assembled from pieces, so that this file does not contain them.
    let hosts = [["crates", ".io"], ["pypi", ".org"], ["registry.npmjs", ".org"], ["proxy.golang", ".org"]];
    let places = [["/ro", "ot/"], ["/ho", "me/"], ["/wo", "rk/"], ["/Us", "ers/"]];
    let Some(texts) = own_texts() else { return };
    for (path, text) in texts {
        for (number, line) in text.lines().enumerate() {
            let at = format!("{path}:{}: {line}", number + 1);
            if path.ends_with("Cargo.lock") && line.starts_with("source = ") {
                let index =
                    ["registry+https://github.com/rust-lang/", hosts[0][0], hosts[0][1], "-index"].concat();
                assert_eq!(
                    line,
                    format!("source = \"{index}\""),
                    "{at} is not the index that cargo writes by itself"
                );
                continue;
            }
            for host in &hosts {
                assert!(!line.contains(&host.concat()), "{at} names a package registry");
            }
            for place in &places {
                assert!(!line.contains(&place.concat()), "{at} names a place on one machine");
            }
        }
    }
}
