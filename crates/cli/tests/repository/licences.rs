//! All dependencies may be redistributed under Airpace's licence, and no file of the repository refers to a specific
//! machine.

use super::{cargo_metadata, own_texts, read, text};

/// Licences whose terms users of `MIT OR Apache-2.0` already meet. `deny.toml` contains the same list.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Whether licences of the list satisfy an SPDX expression.
fn is_allowed(expression: &str) -> bool {
    // Old manifests write `A OR B` as `A/B`.
    let expression = expression.replace('/', " OR ");
    let mut words = Words(
        expression.replace('(', " ( ").replace(')', " ) ").split_whitespace().map(str::to_owned).collect(),
    );
    let allowed = words.any_of();
    assert!(words.0.is_empty(), "`{expression}` is not an SPDX expression");
    allowed
}

/// The remaining words of an expression, parsed by recursive descent: OR of AND of (licence | parenthesis).
struct Words(std::collections::VecDeque<String>);

impl Words {
    fn any_of(&mut self) -> bool {
        let mut allowed = self.all_of();
        while self.take("OR") {
            allowed |= self.all_of();
        }
        allowed
    }

    fn all_of(&mut self) -> bool {
        let mut allowed = self.one();
        while self.take("AND") {
            allowed &= self.one();
        }
        allowed
    }

    fn one(&mut self) -> bool {
        if self.take("(") {
            let allowed = self.any_of();
            assert!(self.take(")"), "a parenthesis is not closed");
            return allowed;
        }
        let mut licence = self.0.pop_front().expect("a licence");
        if self.take("WITH") {
            licence = format!("{licence} WITH {}", self.0.pop_front().expect("an exception"));
        }
        ALLOWED.contains(&licence.as_str())
    }

    fn take(&mut self, word: &str) -> bool {
        let is_next = self.0.front().is_some_and(|next| next == word);
        if is_next {
            self.0.pop_front();
        }
        is_next
    }
}

#[test]
fn every_dependency_may_be_given_on_under_our_licence() {
    let metadata = cargo_metadata();
    let packages = metadata["packages"].as_array().expect("packages");
    assert!(packages.len() > 20, "cargo names all dependencies");
    for package in packages {
        let name = text(package, "name");
        let licence = package["license"].as_str().unwrap_or_else(|| panic!("{name} states no licence"));
        assert!(is_allowed(licence), "{name} is under `{licence}`; allowed are {ALLOWED:?}");
        if package["source"].is_null() {
            assert_eq!(licence, "MIT OR Apache-2.0", "{name} is ours");
        }
    }
    assert!(read("LICENSE-MIT").contains("Permission is hereby granted"));
    assert!(read("LICENSE-APACHE").contains("Apache License"));
}

#[test]
fn cargo_deny_allows_the_same_licences() {
    let deny: toml::Table = read("deny.toml").parse().expect("deny.toml is TOML");
    let allowed: Vec<_> =
        deny["licenses"]["allow"].as_array().expect("a list").iter().filter_map(|it| it.as_str()).collect();
    assert_eq!(allowed, ALLOWED);
}

#[test]
fn the_search_for_licences_refuses_what_it_should() {
    assert!(is_allowed("MIT OR Apache-2.0") && is_allowed("MIT/Apache-2.0"));
    assert!(is_allowed("(MIT OR GPL-3.0-only) AND Unicode-3.0"));
    assert!(!is_allowed("GPL-3.0-only") && !is_allowed("MIT AND GPL-3.0-only"));
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
