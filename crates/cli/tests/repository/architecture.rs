//! The dependencies between crates are those in ARCHITECTURE.md, and the engines are pure.

use std::collections::{BTreeMap, BTreeSet};

use super::{cargo_metadata, own_texts, read, text};

/// Terms that an engine must not use, and the reason. Engines build for wasm32 and compute the same bits on all
/// platforms.
const IMPURE: &[(&str, &str)] = &[
    ("Instant", "a clock"),
    ("SystemTime", "a clock"),
    ("std::net", "a socket"),
    ("std::thread", "a thread"),
    ("std::fs", "a file"),
    ("std::io", "input and output"),
    ("std::env", "the environment"),
    ("std::process", "a process"),
    ("print!(", "input and output"),
    ("println!(", "input and output"),
    ("dbg!(", "input and output"),
    ("unsafe ", "unsafe code"),
    ("thread_local!", "global state"),
    ("static mut", "global state"),
    ("OnceLock", "global state"),
    ("LazyLock", "global state"),
    ("Mutex", "global state"),
    ("Atomic", "global state"),
    ("HashMap", "an order that differs from run to run"),
    ("HashSet", "an order that differs from run to run"),
];

/// Float methods whose last bit differs between platforms. `libm` gives the same result on all platforms.
const PLATFORM_FLOATS: &[&str] = &[
    "sin", "cos", "tan", "sin_cos", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "exp", "exp2",
    "exp_m1", "ln", "ln_1p", "log", "log2", "log10", "powf", "powi", "cbrt", "hypot", "mul_add",
];

/// A row of the table of crates in ARCHITECTURE.md.
pub struct Row {
    /// The kind of crate, such as `engine`.
    pub kind: String,
    /// The crate's folder below `crates/`.
    pub name: String,
    /// The crates on which it depends.
    pub dependencies: BTreeSet<String>,
}

/// The table of crates in ARCHITECTURE.md.
pub fn rows() -> Vec<Row> {
    let page = read("ARCHITECTURE.md");
    let rows = page
        .lines()
        .skip_while(|line| !line.starts_with("| row |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let rows: Vec<Row> = rows
        .map(|row| {
            let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
            let [kind, name, _, on] = cells[..] else {
                panic!("a row of ARCHITECTURE.md has not four cells: {row}")
            };
            Row {
                kind: kind.to_owned(),
                name: name.trim_matches('`').to_owned(),
                dependencies: on.split_whitespace().filter(|word| *word != "–").map(str::to_owned).collect(),
            }
        })
        .collect();
    assert!(rows.iter().any(|row| row.name == "core"), "ARCHITECTURE.md has no table of crates");
    rows
}

#[test]
fn arrows_between_crates_are_those_of_the_table() {
    let allowed: BTreeMap<String, BTreeSet<String>> =
        rows().into_iter().map(|row| (row.name, row.dependencies)).collect();
    let metadata = cargo_metadata();
    let packages = metadata["packages"].as_array().expect("packages");
    let ours: BTreeSet<&str> = packages
        .iter()
        .filter(|package| package["source"].is_null())
        .map(|package| text(package, "name"))
        .collect();
    let short = |name: &str| name.strip_prefix("airpace-").unwrap_or(name).to_owned();

    let crates: BTreeSet<String> = ours.iter().map(|name| short(name)).collect();
    assert_eq!(
        crates,
        allowed.keys().cloned().collect(),
        "ARCHITECTURE.md lists every crate, and only those"
    );

    for package in packages.iter().filter(|package| ours.contains(text(package, "name"))) {
        let name = short(text(package, "name"));
        let dependencies: BTreeSet<String> = package["dependencies"]
            .as_array()
            .expect("dependencies")
            .iter()
            .filter(|dependency| {
                let on = text(dependency, "name");
                ours.contains(on) && !(is_for_tests(on) && dependency["kind"] == "dev")
            })
            .map(|dependency| short(text(dependency, "name")))
            .collect();
        assert_eq!(
            dependencies, allowed[&name],
            "crate `{name}`: its dependencies (left) are those of its row in ARCHITECTURE.md (right)"
        );
    }
}

/// The crates that the binary links, built with these features.
fn linked(features: &str) -> Vec<String> {
    let answer = std::process::Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--offline", "--package", "airpace-cli", "--features", features])
        .args(["--edges", "normal", "--prefix", "none", "--format", "{p}"])
        .current_dir(super::root())
        .output()
        .expect("cargo tree runs");
    assert!(answer.status.success(), "cargo tree: {}", String::from_utf8_lossy(&answer.stderr));
    let tree = String::from_utf8(answer.stdout).expect("names in UTF-8");
    tree.lines().filter_map(|line| Some(line.split_once(' ')?.0.to_owned())).collect()
}

#[test]
fn only_the_proxy_brings_an_asynchronous_runtime() {
    let has = |features: &str, name: &str| linked(features).iter().any(|linked| linked == name);
    assert!(!has("", "tokio"), "the default build must not contain tokio");
    assert!(has("proxy", "tokio") && has("proxy", "airpace-proxy"), "the feature adds the proxy and tokio");
}

/// Whether a crate contains shared code of tests. All tests may use it, but no code that ships may.
fn is_for_tests(name: &str) -> bool {
    name == "airpace-testing"
}

#[test]
fn engines_are_pure() {
    let mut seen = 0;
    let Some(texts) = own_texts() else { return };
    let only_in_tests: BTreeSet<String> =
        texts.iter().flat_map(|(path, source)| test_modules(path, source)).collect();
    for (path, source) in texts {
        let is_engine = ["core", "radio", "event", "cc", "path", "phy", "diag", "video"]
            .iter()
            .any(|name| path.starts_with(&format!("crates/{name}/src/")));
        if !is_engine || !path.ends_with(".rs") || only_in_tests.iter().any(|module| is_within(&path, module))
        {
            continue;
        }
        seen += 1;
        for (number, line) in shipped_lines(&source) {
            if let Some(why) = impurity(line) {
                panic!("{path}:{number} is in an engine and uses {why}: {}", line.trim());
            }
        }
    }
    assert!(seen > 10, "only {seen} files of engines were found");
}

/// Modules that a file declares only for tests, as paths without `.rs`.
pub fn test_modules(path: &str, source: &str) -> Vec<String> {
    let folder = match path.rsplit_once('/') {
        Some((folder, "lib.rs" | "mod.rs")) => folder,
        _ => path.trim_end_matches(".rs"),
    };
    let mut lines = source.lines().map(str::trim);
    let mut modules = Vec::new();
    while let Some(line) = lines.next() {
        if line == "#[cfg(test)]"
            && let Some(name) = lines.next().and_then(|next| next.strip_suffix(';')?.rsplit_once("mod "))
        {
            modules.push(format!("{folder}/{}", name.1));
        }
    }
    modules
}

/// Whether a file is the file of a module or is below it.
fn is_within(path: &str, module: &str) -> bool {
    path.strip_prefix(module).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

/// Returns the reason why a line of source code is forbidden in an engine crate; `None` if it is permitted.
fn impurity(line: &str) -> Option<String> {
    // With this trait, `write!` appends to bytes. The trait does not access anything outside of the program.
    if line == "use std::io::Write;" {
        return None;
    }
    let named = IMPURE.iter().find(|(word, _)| line.contains(word)).map(|(_, why)| (*why).to_owned());
    named.or_else(|| {
        let method = PLATFORM_FLOATS.iter().find(|method| {
            line.contains(&format!(".{method}()"))
                || line.contains(&format!(" f64::{method}("))
                || ["powf", "powi", "log", "atan2", "hypot", "mul_add"].contains(method)
                    && line.contains(&format!(".{method}("))
        })?;
        Some(format!("f64::{method}, whose last bit differs by platform; use libm"))
    })
}

/// Lines that are compiled into the crate, with their numbers: no comments, no `#[cfg(test)]` items.
pub fn shipped_lines(source: &str) -> Vec<(usize, &str)> {
    let mut lines = Vec::new();
    let mut rest = source.lines().enumerate();
    while let Some((index, line)) = rest.next() {
        if line.trim_start().starts_with("#[cfg(test)]") {
            let mut depth = 0i64;
            for (_, line) in rest.by_ref() {
                depth += line.matches('{').count() as i64 - line.matches('}').count() as i64;
                if depth <= 0 && (line.ends_with(';') || line.trim_end().ends_with('}')) {
                    break;
                }
            }
            continue;
        }
        let code = line.split("//").next().unwrap_or_default();
        lines.push((index + 1, code));
    }
    lines
}

#[test]
fn the_search_for_impurity_finds_what_it_should() {
    let source = "use std::time::Instant; // a clock\n\
                  /// println!(is only named here)\n\
                  let x = y.ln();\n\
                  let z = libm::exp(x).max(2.0).sqrt();\n\
                  #[cfg(test)]\nmod tests {\n    use std::fs;\n}\n\
                  let w = HashMap::new();\n";
    let found: Vec<_> = shipped_lines(source)
        .into_iter()
        .filter(|(_, line)| impurity(line).is_some())
        .map(|(at, _)| at)
        .collect();
    assert_eq!(
        test_modules("crates/cc/src/lib.rs", "#[cfg(test)]\nmod lab;\nmod pbe;\n"),
        ["crates/cc/src/lab"]
    );
    assert!(is_within("crates/cc/src/lab/radio.rs", "crates/cc/src/lab"));
    assert_eq!(found, [1, 3, 9], "the clock, the logarithm and the map; not the comment, libm or the tests");
}
