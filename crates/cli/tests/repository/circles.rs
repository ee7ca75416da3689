//! Modules of a crate do not use each other in a circle.
//!
//! Modules are compared with their siblings: a module stands for everything below it, and its parent is not counted, so that a
//! parent may use its children and they may use it.

use std::collections::{BTreeMap, BTreeSet};

use super::architecture::{shipped_lines, test_modules};
use super::shipped_sources;

/// Circles that exist. The list may become shorter only.
const KNOWN: &[(&str, &[&str])] = &[];

type Path = Vec<String>;

/// Modules by path, with their sources. `lib.rs` and `main.rs` are the root.
fn modules(name: &str, sources: &[(String, String)]) -> BTreeMap<Path, String> {
    let folder = format!("crates/{name}/src/");
    let of_tests: BTreeSet<String> =
        sources.iter().flat_map(|(path, source)| test_modules(path, source)).collect();
    sources
        .iter()
        .filter(|(path, _)| !of_tests.contains(path.trim_end_matches(".rs")))
        .filter_map(|(path, source)| {
            let path = path.strip_prefix(&folder)?.trim_end_matches(".rs");
            let parts = if ["lib", "main"].contains(&path) {
                vec![]
            } else {
                path.split('/').map(str::to_owned).collect()
            };
            let code =
                shipped_lines(source).into_iter().fold(String::new(), |text, (_, line)| text + line + "\n");
            Some((parts, code))
        })
        .collect()
}

/// The paths of a `use` tree: `a::{b, c::{d, e}}` has three.
fn expanded(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((head, rest)) = tree.split_once('{') else {
        return vec![tree.split(" as ").next().unwrap_or_default().trim().to_owned()];
    };
    let inner = rest.strip_suffix('}').unwrap_or(rest);
    let mut depth = 0;
    let parts = inner.split(|letter: char| {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        letter == ',' && depth == 0
    });
    parts
        .filter(|part| !part.trim().is_empty())
        .flat_map(expanded)
        .map(|path| format!("{head}{path}"))
        .collect()
}

/// All paths in a file that start with `crate` or `super`, and those of its `use` items.
fn paths(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find("use ") {
        let is_word =
            rest[..at].chars().next_back().is_none_or(|before| before.is_whitespace() || before == ')');
        let item = &rest[at + 4..];
        let end = item.find(';').unwrap_or(item.len());
        if is_word {
            found.extend(expanded(&item[..end].split_whitespace().collect::<Vec<_>>().join(" ")));
        }
        rest = &item[if is_word { end } else { 0 }..];
    }
    for start in ["crate::", "super::"] {
        for (at, _) in code.match_indices(start) {
            let is_start = code[..at]
                .chars()
                .next_back()
                .is_none_or(|before| !(before.is_alphanumeric() || before == '_' || before == ':'));
            if is_start {
                let path = &code[at..];
                let end =
                    path.find(|letter: char| !(letter.is_alphanumeric() || letter == '_' || letter == ':'));
                found.push(path[..end.unwrap_or(path.len())].trim_end_matches(':').to_owned());
            }
        }
    }
    found
}

/// The module that `path`, written in module `from`, is in.
fn resolved(path: &str, from: &Path, modules: &BTreeMap<Path, String>) -> Option<Path> {
    let mut parts = path.split("::").map(str::trim).peekable();
    let mut at = match *parts.peek()? {
        "crate" => {
            parts.next();
            vec![]
        }
        "super" => {
            let mut at = from.clone();
            while parts.next_if_eq(&"super").is_some() {
                at.pop();
            }
            at
        }
        "self" => {
            parts.next();
            from.clone()
        }
        first => {
            let mut child = from.clone();
            child.push(first.to_owned());
            modules.contains_key(&child).then(|| from.clone())?
        }
    };
    for part in parts {
        let mut next = at.clone();
        next.push(part.to_owned());
        if !modules.contains_key(&next) {
            break;
        }
        at = next;
    }
    (at != *from).then_some(at)
}

/// All modules that `from` uses, directly or through others.
fn reached<'a>(uses: &'a BTreeMap<String, BTreeSet<String>>, from: &'a String) -> BTreeSet<&'a String> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(next) = open.pop() {
        open.extend(uses.get(next).into_iter().flatten().filter(|further| seen.insert(*further)));
    }
    seen
}

/// Groups of siblings that use each other in a circle, each with the path of its parent.
fn circles(modules: &BTreeMap<Path, String>) -> BTreeSet<(Path, Vec<String>)> {
    let mut uses: BTreeMap<Path, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for (from, code) in modules {
        for to in paths(code).iter().filter_map(|path| resolved(path, from, modules)) {
            let common = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
            if let (Some(one), Some(other)) = (from.get(common), to.get(common)) {
                let level = uses.entry(from[..common].to_vec()).or_default();
                level.entry(one.clone()).or_default().insert(other.clone());
            }
        }
    }
    let mut found = BTreeSet::new();
    for (parent, uses) in uses {
        for name in uses.keys() {
            let circle: Vec<String> = reached(&uses, name)
                .into_iter()
                .filter(|other| reached(&uses, other).contains(name))
                .cloned()
                .collect();
            if circle.len() > 1 {
                found.insert((parent.clone(), circle));
            }
        }
    }
    found
}

#[test]
fn modules_do_not_use_each_other_in_a_circle() {
    let Some(sources) = shipped_sources() else { return };
    let names: BTreeSet<&str> =
        sources.iter().filter_map(|(path, _)| path.strip_prefix("crates/")?.split('/').next()).collect();
    assert!(names.len() > 15, "only {} crates", names.len());
    let mut found = BTreeSet::new();
    for name in names {
        for (parent, circle) in circles(&modules(name, &sources)) {
            let place = std::iter::once(name.to_owned()).chain(parent).collect::<Vec<_>>().join("/");
            found.insert((place, circle));
        }
    }
    let known: BTreeSet<(String, Vec<String>)> = KNOWN
        .iter()
        .map(|(place, circle)| ((*place).to_owned(), circle.iter().map(|name| (*name).to_owned()).collect()))
        .collect();
    let new: Vec<_> = found.difference(&known).collect();
    assert!(new.is_empty(), "modules that use each other in a circle: {new:#?}");
    let gone: Vec<_> = known.difference(&found).collect();
    assert!(gone.is_empty(), "no longer circles; remove them from KNOWN: {gone:#?}");
}

#[test]
fn a_circle_is_found_and_a_parent_is_none() {
    let files = [
        ("", "mod a; mod b; use a::One;"),
        ("a", "use crate::{b::{Two, c::Three}, Four as Five};"),
        ("b", "mod c; pub fn f() { super::a::g(); }"),
        ("b/c", "use super::Two;"),
        ("d", "use super::b;"),
    ];
    let path = |name: &str| name.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
    let modules: BTreeMap<Path, String> =
        files.iter().map(|(name, code)| (path(name), (*code).to_owned())).collect();
    let found = circles(&modules);
    assert_eq!(found, BTreeSet::from([(vec![], vec!["a".to_owned(), "b".to_owned()])]));
}
