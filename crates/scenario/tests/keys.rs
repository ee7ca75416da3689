//! Generates `docs/guide/keys.md`, the list of all keys of a scenario with their documentation, keywords and defaults.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use airpace_scenario::Document;
use toml::{Table, Value};

/// First lines of the page `keys.md`.
const LEAD: &str = "# Every key of a scenario\n\nAny key can be set by its path: `airpace sim stationary-idle --set \
                    forward.loss=0.0005`. `N` stands for a number from 0 on: `flow.0.rtt_ms` is the round trip of the \
                    first flow. [Scenarios](scenarios.md) explains the keys that most experiments need. The default \
                    is the value that holds if the key is not given; *absent* means that no value holds then, unless the last column names one. A \
                    *required* key must be given where its table is.\n\n";

/// Source files and folders with the structures of a scenario.
const SOURCES: [&str; 6] = [
    "crates/scenario/src/document.rs",
    "crates/scenario/src/document",
    "crates/path/src",
    "crates/video/src/config.rs",
    "crates/video/src/ladder.rs",
    "crates/video/src/quality.rs",
];

/// A structure that is read from a scenario.
#[derive(Default)]
struct Structure {
    /// Whether all keys of the structure are optional.
    is_optional: bool,
    fields: Vec<Field>,
}

/// A field of a structure: its name, its type, the main sentences of its documentation.
struct Field {
    name: String,
    of: String,
    about: String,
    has_default: bool,
}

impl Field {
    fn is_list(&self) -> bool {
        self.of.contains("Vec<")
    }

    /// The type of the field, or of its entries.
    fn bare(&self) -> String {
        self.of.replace("Option<", "").replace("Vec<", "").replace("Box<", "").replace('>', "")
    }
}

/// A key of a scenario, or a table of keys.
struct Entry {
    /// Names of the tables and of the key, with `N` for an index in a list.
    path: Vec<String>,
    about: String,
    of: Kind,
}

enum Kind {
    Table,
    /// A table with the keys of a table that has its own section.
    Same,
    Key {
        is_required: bool,
        is_list: bool,
    },
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the texts of the source files that may contain structures of a scenario.
fn sources() -> Vec<String> {
    let mut paths = SOURCES.map(|path| root().join(path)).to_vec();
    let mut texts = vec![];
    while let Some(path) = paths.pop() {
        if path.is_dir() {
            paths.extend(fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry").path()));
        } else if path.extension().is_some_and(|name| name == "rs") {
            texts.push(fs::read_to_string(&path).expect("a source"));
        }
    }
    texts
}

/// The first sentence of a documentation, and the sentences about an absent key.
fn main_sentences(lines: &[&str]) -> String {
    let paragraph: Vec<&str> = lines.iter().copied().take_while(|line| !line.is_empty()).collect();
    let paragraph = paragraph.join(" ");
    let sentences = paragraph.split_inclusive(". ").enumerate();
    let kept = sentences.filter(|(place, sentence)| *place == 0 || sentence.starts_with("If absent"));
    let kept: String = kept.map(|(_, sentence)| sentence).collect();
    // Links to other items have no target on the page, and authors of scenarios do not know `None`.
    kept.trim_end().replace("[`", "`").replace("`]", "`").replace("`None`", "none").replace('|', "\\|")
}

/// Adds the structures of a source that are deserialized from scenarios.
fn add_structures(text: &str, structures: &mut BTreeMap<String, Structure>) {
    let (mut docs, mut attributes, mut inside) = (vec![], String::new(), None::<String>);
    for line in text.lines() {
        let code = line.trim();
        if let Some(doc) = code.strip_prefix("///") {
            docs.push(doc.trim());
            continue;
        }
        if code.starts_with("#[") || code.ends_with(")]") {
            attributes += code;
            continue;
        }
        if let Some(name) = code.strip_prefix("pub struct ").and_then(|rest| rest.strip_suffix(" {")) {
            inside = attributes.contains("Deserialize").then(|| name.to_owned());
            if let Some(name) = &inside {
                structures.entry(name.clone()).or_default().is_optional =
                    attributes.contains("serde(default");
            }
        } else if line == "}" {
            inside = None;
        } else if attributes.contains("serde(skip)") {
            // No key of a scenario.
        } else if let (Some(structure), Some((name, of))) =
            (&inside, code.strip_prefix("pub ").and_then(|rest| rest.strip_suffix(',')?.split_once(": ")))
        {
            structures.get_mut(structure).expect("it was just added").fields.push(Field {
                name: name.to_owned(),
                of: of.to_owned(),
                about: main_sentences(&docs),
                has_default: attributes.contains("serde(default"),
            });
        }
        docs.clear();
        attributes.clear();
    }
}

/// Structures whose keys the page lists only once, with the table of that list.
const OWN_SECTIONS: [(&str, &str); 2] = [("CellConfig", "cell"), ("DeviceRadioConfig", "device.N.radio")];

/// Adds the keys of a structure, then its tables with their keys.
fn add_entries(structures: &BTreeMap<String, Structure>, path: &[String], name: &str, all: &mut Vec<Entry>) {
    let structure = &structures[name];
    let mut tables = vec![];
    for field in &structure.fields {
        let full = [path, std::slice::from_ref(&field.name)].concat();
        let bare = field.bare();
        if OWN_SECTIONS.iter().any(|(of, section)| *of == bare && *section != full.join(".")) {
            all.push(Entry { path: full, about: field.about.clone(), of: Kind::Same });
            continue;
        }
        if structures.get(&bare).is_some_and(|structure| !structure.fields.is_empty()) {
            let full = if field.is_list() { [full, vec!["N".to_owned()]].concat() } else { full };
            tables.push((full, bare, field.about.clone()));
            continue;
        }
        let is_required = !(structure.is_optional || field.has_default || field.of.starts_with("Option<"));
        all.push(Entry {
            path: full,
            about: field.about.clone(),
            of: Kind::Key { is_required, is_list: field.is_list() },
        });
    }
    for (path, name, about) in tables {
        all.push(Entry { path: path.clone(), about, of: Kind::Table });
        add_entries(structures, &path, &name, all);
    }
}

/// Returns the table at `path`. The function creates the table if it is absent.
fn table_at<'t>(mut table: &'t mut Table, path: &[String]) -> &'t mut Table {
    let mut parts = path.iter().peekable();
    while let Some(part) = parts.next() {
        let is_list = parts.next_if(|next| *next == "N").is_some();
        let empty = || Value::Table(Table::new());
        let value =
            table.entry(part).or_insert_with(|| if is_list { Value::Array(vec![empty()]) } else { empty() });
        let value = match value {
            Value::Array(entries) => &mut entries[0],
            value => value,
        };
        table = value.as_table_mut().expect("a table");
    }
    table
}

/// Returns the scenario with the key at `path` set to `value`; if `value` is `None`, the scenario without this key.
fn with(scenario: &Table, path: &[String], value: Option<Value>) -> Table {
    let mut scenario = scenario.clone();
    let (key, above) = path.split_last().expect("a key has a name");
    let table = table_at(&mut scenario, above);
    match value {
        Some(value) => table.insert(key.clone(), value),
        None => table.remove(key),
    };
    scenario
}

fn read(scenario: &Table) -> Result<Document, String> {
    Value::Table(scenario.clone()).try_into().map_err(|error: toml::de::Error| error.message().to_owned())
}

/// Returns a scenario with all tables, and in the tables only the required keys.
fn smallest(entries: &[Entry]) -> Table {
    let mut scenario = Table::new();
    for Entry { path, of, .. } in entries {
        match of {
            Kind::Table => drop(table_at(&mut scenario, path)),
            Kind::Same | Kind::Key { is_required: false, .. } => {}
            Kind::Key { is_required: true, .. } => {
                let candidates = [Value::Integer(1), Value::String("x".to_owned())];
                // Only the value's type matters: a wrong type yields a different error than a missing key elsewhere.
                let is_right = |value: &&Value| {
                    let error = read(&with(&scenario, path, Some((*value).clone()))).err();
                    error.is_none_or(|error| !error.contains("invalid type"))
                };
                let value =
                    candidates.iter().find(is_right).unwrap_or_else(|| panic!("{path:?} has no type"));
                // Any of the keywords, if the key accepts only keywords.
                let word = words(&scenario, path).into_iter().next().map(Value::String);
                scenario = with(&scenario, path, Some(word.unwrap_or_else(|| value.clone())));
            }
        }
    }
    scenario
}

/// Returns the keywords that a key accepts, from the error of reading a wrong keyword; an empty list if the key accepts
/// no keyword.
fn words(scenario: &Table, path: &[String]) -> Vec<String> {
    let error = read(&with(scenario, path, Some(Value::String("no such word".to_owned())))).err();
    let Some(expected) =
        error.as_deref().and_then(|error| error.strip_prefix("unknown variant `no such word`, "))
    else {
        return vec![];
    };
    expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Returns the values in a structure from the structure's `{:#?}` text, by path without list indices.
fn values(shown: &str) -> BTreeMap<String, Vec<String>> {
    let mut all = BTreeMap::<String, Vec<String>>::new();
    let mut path: Vec<&str> = vec![];
    for line in shown.lines().skip(1) {
        let line = line.trim();
        if matches!(line.trim_end_matches(','), "}" | ")" | "]") {
            path.pop();
            continue;
        }
        let (name, value) = match line.split_once(": ") {
            Some((name, value)) if !name.contains('"') => (name, value),
            _ => ("", line),
        };
        path.push(name);
        if value.ends_with(['{', '(', '[']) {
            continue;
        }
        let place: Vec<&str> = path.iter().copied().filter(|part| !part.is_empty()).collect();
        all.entry(place.join(".")).or_default().push(value.trim_end_matches(',').to_owned());
        path.pop();
    }
    all
}

/// Returns a default that is not a keyword, as written in a scenario; `None` if the key is absent by default.
fn default_text(shown: &[String], is_list: bool) -> Option<String> {
    let one =
        |value: &String| value.parse::<f64>().map_or_else(|_| value.clone(), |number| number.to_string());
    match shown {
        [none] if none == "None" => None,
        [value] if !is_list => Some(one(value)),
        [empty] if empty == "[]" => Some("[]".to_owned()),
        several => Some(format!("[{}]", several.iter().map(one).collect::<Vec<_>>().join(", "))),
    }
}

/// To update the page: `AIRPACE_UPDATE=1 cargo test -p airpace-scenario --test keys`.
#[test]
fn every_key_of_a_scenario_is_listed_with_its_words_and_its_default() {
    let mut structures = BTreeMap::new();
    sources().iter().for_each(|text| add_structures(text, &mut structures));
    let mut entries = vec![];
    add_entries(&structures, &[], "Document", &mut entries);
    let scenario = smallest(&entries);
    let document = read(&scenario).expect("a scenario with all that is required");
    let shown = values(&format!("{document:#?}"));

    let mut page = LEAD.to_owned();
    let mut heading = Some("the scenario itself".to_owned());
    let mut lead = String::new();
    for Entry { path, about, of } in &entries {
        let name = path.join(".");
        if let Kind::Table = of {
            (heading, lead) = (Some(format!("`{name}`")), format!("{about}\n\n"));
            continue;
        }
        assert!(!about.is_empty(), "{name} has no documentation");
        if let Some(heading) = heading.take() {
            let table = "| key | default | what it is |\n| --- | --- | --- |";
            writeln!(page, "## {heading}\n\n{lead}{table}").expect("a string takes all");
        }
        let Kind::Key { is_required, is_list } = of else {
            writeln!(page, "| `{name}` | *a table* | {about} |").expect("a string takes all");
            continue;
        };
        let words = words(&scenario, path);
        let place: Vec<&str> = path.iter().map(String::as_str).filter(|part| *part != "N").collect();
        let found = shown.get(&place.join("."));
        let found = found.unwrap_or_else(|| panic!("{name} has no value in {shown:#?}"));
        // A keyword is the default if the scenario with this keyword equals the scenario without the key.
        let is_default = |word: &&String| {
            let named = Value::String((*word).clone());
            read(&with(&scenario, path, Some(named))).as_ref() == Ok(&document)
        };
        let default = match words.iter().find(is_default) {
            Some(word) => Some(format!("\"{word}\"")),
            None => default_text(found, *is_list),
        };
        if *is_required {
            read(&with(&scenario, path, None)).expect_err(&name);
        } else if let Some(text) = &default {
            let value = text.parse::<Value>().unwrap_or_else(|error| panic!("{name} = {text}: {error}"));
            let same = read(&with(&scenario, path, Some(value)));
            assert_eq!(same.as_ref(), Ok(&document), "{name} = {text} is its default");
        }
        let default = match default.as_deref() {
            _ if *is_required => "*required*".to_owned(),
            None => "*absent*".to_owned(),
            // Users write keywords without quotes after `--set`.
            Some(text) if !words.is_empty() => format!("`{}`", text.trim_matches('"')),
            Some(text) => format!("`{text}`"),
        };
        let is_new = |word: &String| !about.contains(&format!("`{word}`"));
        let listed = words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        let words = if words.iter().any(is_new) { format!(" One of {listed}.") } else { String::new() };
        writeln!(page, "| `{name}` | {default} | {about}{words} |").expect("a string takes all");
    }
    let page = page.replace("|\n## ", "|\n\n## ");

    for text in [
        "| `cell.scheduler` | `proportional_fair` | ",
        "One of `round_robin`, `proportional_fair`, `max_ci`.",
        "| `flow.N.rtt_ms` | *required* | ",
        "| `flow.N.direction` | `down` | ",
        "| `forward.loss` | `0` | ",
        "| `internet.rate_mbps` | `inf` | ",
        "| `trace.link.start_s` | `0` | ",
        "| `trace.recorded.seconds` | `60` | ",
        "| `trace.recorded.cell` | *a table* | ",
        "| `cell.cfi` | *absent* | ",
        "| `device.N.radio.channel.fading` | `none` | ",
    ] {
        assert!(page.contains(text), "{text} is not on the page:\n{page}");
    }
    let path = root().join("docs/guide/keys.md");
    if std::env::var_os("AIRPACE_UPDATE").is_some() {
        fs::write(&path, page).expect("the page can be written");
        return;
    }
    assert!(
        fs::read_to_string(&path).expect("the page") == page,
        "docs/guide/keys.md differs from the source; AIRPACE_UPDATE=1 cargo test -p airpace-scenario --test keys"
    );
}
