//! Keys set from outside the scenario's file, applied to the TOML tree before the tree is converted to types: `--set
//! cell.prbs=50`.

use std::path::Path;

use toml::{Table, Value};

use super::error::shortened;
use super::{ScenarioError, SettingPlace};

/// Tables with a file: an override of such a table with a string sets the table's `file`.
const TABLES_WITH_A_FILE: [&str; 6] = [
    "trace",
    "trace.back",
    "cellular.down.light",
    "cellular.down.heavy",
    "cellular.up.light",
    "cellular.up.heavy",
];

/// Keys whose values are file names.
const FILES: [&str; 9] = [
    "trace.file",
    "trace.kpi",
    "trace.back.file",
    "cellular.down.light.file",
    "cellular.down.heavy.file",
    "cellular.down.offsets",
    "cellular.up.light.file",
    "cellular.up.heavy.file",
    "cellular.up.offsets",
];

/// Sets the key at `path` (`flow.0.rtt_ms`) to `text`, read as TOML, or as a string if `text` is not TOML. Missing
/// tables on the path are created. The existence of the key is checked later, when the tree is converted to types.
pub(super) fn set(tree: &mut Table, path: &str, text: &str) -> Result<(), ScenarioError> {
    let refuse = |reason: String| ScenarioError::new(spelled(path, text), path, reason);
    let value = text.parse::<Value>().unwrap_or_else(|_| Value::String(text.to_owned()));
    let mut parts: Vec<&str> = path.split('.').collect();
    if parts.iter().any(|part| part.is_empty()) {
        return Err(refuse("is not a key; spell it like `flow.0.rtt_ms`".to_owned()));
    }
    if TABLES_WITH_A_FILE.contains(&path) && value.is_str() {
        parts.push("file");
    }
    if parts.starts_with(&["device", "0"]) {
        // If the list of devices is absent, the scenario has one device.
        tree.entry("device").or_insert_with(|| Value::Array(vec![Value::Table(Table::new())]));
    }
    let last = parts.pop().expect("split gives at least one part");
    let mut at = Slot::Table(tree);
    for (depth, part) in parts.iter().enumerate() {
        let here = parts[..depth].join(".");
        at = at.step(part).map_err(|reason| refuse(format!("cannot be set: `{here}` {reason}")))?;
    }
    at.assign(last, value).map_err(|reason| refuse(format!("cannot be set: `{}` {reason}", parts.join("."))))
}

/// Place where the value of `key` was set: the last of `sets` that set it, its table or a key in it; otherwise the file.
pub(super) fn origin(sets: &[(String, String)], key: &str, file: &str) -> SettingPlace {
    let covers = |outer: &str, inner: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    sets.iter()
        .rev()
        .find(|(set, _)| !key.is_empty() && (covers(set, key) || covers(key, set)))
        .map_or_else(|| SettingPlace::File(file.to_owned()), |(set, value)| spelled(set, value))
}

/// Makes relative file names in a scenario relative to the scenario's own folder. `-` remains standard input.
pub(super) fn anchor_files(tree: &mut Table, file_name: &str) {
    let Some(folder) = Path::new(file_name).parent().filter(|folder| !folder.as_os_str().is_empty()) else {
        return;
    };
    for path in FILES {
        let (first, rest) = path.split_once('.').unwrap_or((path, ""));
        let value = tree.get_mut(first);
        let value = rest.split('.').fold(value, |value, key| value.and_then(|table| table.get_mut(key)));
        if let Some(Value::String(file)) = value
            && file != "-"
            && Path::new(file).is_relative()
        {
            *file = folder.join(&*file).to_string_lossy().into_owned();
        }
    }
}

/// Removes keys that apply to one run only: files that the run writes.
pub(super) fn without_outputs(tree: &Table) -> Table {
    let mut tree = tree.clone();
    let devices = tree.get_mut("device").and_then(Value::as_array_mut).into_iter().flatten();
    for device in devices.filter_map(Value::as_table_mut) {
        device.remove("reports");
    }
    tree
}

fn spelled(path: &str, text: &str) -> SettingPlace {
    SettingPlace::Override { key: path.to_owned(), value: shortened(text) }
}

/// The value at which the traversal of a path of keys has arrived.
enum Slot<'a> {
    Table(&'a mut Table),
    Array(&'a mut Vec<Value>),
}

impl<'a> Slot<'a> {
    fn step(self, part: &str) -> Result<Slot<'a>, String> {
        let next = match self {
            Slot::Table(table) => table.entry(part).or_insert_with(|| Value::Table(Table::new())),
            Slot::Array(array) => element(array, part)?,
        };
        match next {
            Value::Table(table) => Ok(Slot::Table(table)),
            Value::Array(array) => Ok(Slot::Array(array)),
            other => Err(format!("has `{part}`, which is {}, not a table", other.type_str())),
        }
    }

    fn assign(self, part: &str, value: Value) -> Result<(), String> {
        match self {
            Slot::Table(table) => {
                table.insert(part.to_owned(), value);
            }
            Slot::Array(array) => *element(array, part)? = value,
        }
        Ok(())
    }
}

fn element<'a>(array: &'a mut [Value], part: &str) -> Result<&'a mut Value, String> {
    let length = array.len();
    part.parse::<usize>()
        .ok()
        .and_then(|index| array.get_mut(index))
        .ok_or_else(|| format!("is a list of {length}, without `{part}`; count from 0"))
}
