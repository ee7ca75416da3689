//! `docs/guide/keys.md` lists every key of a scenario, with what the source says of it.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{own_texts, read, root};

const PAGE: &str = "docs/guide/keys.md";

/// What the page begins with.
const LEAD: &str = "# Every key of a scenario\n\nAny key can be set by its path: `airpace sim stationary-idle --set \
                    forward.loss=0.0005`. `N` stands for a number from 0 on: `flow.0.rtt_ms` is the round trip of the \
                    first flow. [Scenarios](scenarios.md) explains the keys that most experiments need. The default \
                    is listed where it is a number or a switch.\n\n";

/// Where the structures of a scenario are.
const SOURCES: [&str; 2] = ["crates/scenario/src/document", "crates/path/src/"];

/// A key: its name, its type, the first sentence of its documentation.
struct Key {
    name: String,
    of: String,
    about: String,
}

/// A structure that is read from a scenario: its keys, and their defaults.
#[derive(Default)]
struct Table {
    keys: Vec<Key>,
    defaults: BTreeMap<String, String>,
}

fn first_sentence(lines: &[&str]) -> String {
    let paragraph: Vec<&str> = lines.iter().copied().take_while(|line| !line.is_empty()).collect();
    let paragraph = paragraph.join(" ");
    let end = paragraph.find(". ").map_or(paragraph.len(), |end| end + 1);
    // Links to other items have no target on a page.
    paragraph[..end].replace("[`", "`").replace("`]", "`").replace('|', "\\|")
}

/// The structures of a source file that scenarios are read into.
fn tables(text: &str, tables: &mut BTreeMap<String, Table>) {
    let (mut docs, mut derives, mut inside) = (vec![], String::new(), None::<String>);
    for line in text.lines() {
        let code = line.trim();
        if let Some(doc) = code.strip_prefix("///") {
            docs.push(doc.trim());
            continue;
        }
        if code.starts_with("#[") || code.ends_with(")]") {
            derives += code;
            continue;
        }
        if let Some(name) = code.strip_prefix("pub struct ").and_then(|rest| rest.strip_suffix(" {")) {
            inside = derives.contains("Deserialize").then(|| name.to_owned());
            if let Some(name) = &inside {
                tables.entry(name.clone()).or_default();
            }
        } else if line == "}" {
            inside = None;
        } else if let (Some(table), Some((name, of))) =
            (&inside, code.strip_prefix("pub ").and_then(|rest| rest.strip_suffix(',')?.split_once(": ")))
        {
            let table = tables.get_mut(table).expect("it was just added");
            if let Some(value) = value_of_function(&derives, text) {
                table.defaults.insert(name.to_owned(), value.to_owned());
            }
            table.keys.push(Key { name: name.to_owned(), of: of.to_owned(), about: first_sentence(&docs) });
        }
        docs.clear();
        derives.clear();
    }
    for (at, _) in text.match_indices("impl Default for ") {
        let block = &text[at..];
        let block = &block[..block.find("\n}").unwrap_or(block.len())];
        let name = block["impl Default for ".len()..].split(' ').next().unwrap_or_default();
        let table = tables.entry(name.to_owned()).or_default();
        // One line for each field, or all in one line.
        for field in block.split([',', '{', '}', '\n']).filter_map(|part| part.trim().split_once(": ")) {
            table.defaults.insert(field.0.to_owned(), field.1.to_owned());
        }
    }
}

/// What the function returns that serde calls for a missing key, if it is one expression.
fn value_of_function<'a>(attributes: &str, text: &'a str) -> Option<&'a str> {
    let name = attributes.split_once("default = \"")?.1.split('"').next()?;
    let (_, body) = text.split_once(&format!("fn {name}() -> "))?.1.split_once("{\n")?;
    body.lines().next().map(str::trim)
}

/// A default as a scenario spells it; `None` for what is no number, word or switch.
fn default_text(value: &str) -> Option<String> {
    let bare = value.strip_prefix("Some(").and_then(|value| value.strip_suffix(')')).unwrap_or(value);
    let number: String = bare.chars().filter(|letter| *letter != '_').collect();
    if matches!(bare, "true" | "false") {
        return Some(bare.to_owned());
    }
    number.parse::<f64>().ok().map(|number| number.to_string())
}

/// Adds the keys of a table and of those below it.
fn add(page: &mut String, tables: &BTreeMap<String, Table>, path: &str, name: &str, own: &str) {
    let table = &tables[name];
    let mut below = vec![];
    let mut rows = String::new();
    for Key { name: key, of, about } in &table.keys {
        let is_list = of.contains("Vec<");
        let bare = of.replace("Option<", "").replace("Vec<", "").replace("Box<", "").replace('>', "");
        let full = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        if tables.get(&bare).is_some_and(|table| !table.keys.is_empty()) {
            below.push((if is_list { format!("{full}.N") } else { full }, bare, about.clone()));
            continue;
        }
        let default = table.defaults.get(key).and_then(|value| default_text(value));
        let default = default.map_or_else(String::new, |value| format!("`{value}`"));
        writeln!(rows, "| `{full}` | {default} | {about} |").expect("a string takes all");
    }
    if !rows.is_empty() {
        let heading = if path.is_empty() { "the scenario itself".to_owned() } else { format!("`{path}`") };
        let own = if own.is_empty() { String::new() } else { format!("{own}\n\n") };
        writeln!(page, "## {heading}\n\n{own}| key | default | what it is |\n| --- | --- | --- |\n{rows}")
            .expect("a string takes all");
    }
    for (path, name, about) in below {
        add(page, tables, &path, &name, &about);
    }
}

/// To write the page anew: `AIRPACE_UPDATE=1 cargo test -p airpace-cli --test repository keys`.
#[test]
fn every_key_of_a_scenario_is_listed_with_what_it_is() {
    let Some(texts) = own_texts() else { return };
    let mut all = BTreeMap::new();
    let is_source =
        |path: &str| SOURCES.iter().any(|source| path.starts_with(source)) && path.ends_with(".rs");
    texts.iter().filter(|(path, _)| is_source(path)).for_each(|(_, text)| tables(text, &mut all));
    let mut page = LEAD.to_owned();
    add(&mut page, &all, "", "Document", "");
    let page = page.trim_end().to_owned() + "\n";
    for key in ["`forward.loss`", "`reverse.burst.to_bad`", "`cell.uplink.queue_bytes`", "`flow.N.rtt_ms`"] {
        assert!(page.contains(key), "{key} is a key");
    }
    let empty: Vec<&str> = page.lines().filter(|line| line.ends_with("|  |")).collect();
    assert!(empty.is_empty(), "keys without documentation: {empty:?}");
    if std::env::var_os("AIRPACE_UPDATE").is_some() {
        std::fs::write(root().join(PAGE), page).expect("the page can be written");
        return;
    }
    assert!(
        read(PAGE) == page,
        "{PAGE} differs from the source; AIRPACE_UPDATE=1 cargo test -p airpace-cli --test repository keys"
    );
}
