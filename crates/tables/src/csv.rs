//! JSON objects of one kind as comma-separated rows of a table.

use serde_json::Value;

/// Separators between the entries of a list, by nesting depth: `0-5;12-13 0-5;12-13` are the PRBs of two slots.
const SEPARATORS: [&str; 3] = [" ", ";", "-"];

/// The names of an object's fields, as a row.
pub fn head(object: &Value) -> String {
    let names = object.as_object().into_iter().flat_map(|fields| fields.keys());
    names.map(String::as_str).collect::<Vec<_>>().join(",")
}

/// The values of an object's fields as a row. Unknown values are empty.
pub fn row(object: &Value) -> String {
    let values = object.as_object().into_iter().flat_map(|fields| fields.values());
    values.map(|value| quoted(text(value, 0))).collect::<Vec<_>>().join(",")
}

fn text(value: &Value, depth: usize) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(entries) => {
            let separator = SEPARATORS[depth.min(SEPARATORS.len() - 1)];
            entries.iter().map(|entry| text(entry, depth + 1)).collect::<Vec<_>>().join(separator)
        }
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| format!("{name}={}", text(value, depth + 1)))
            .collect::<Vec<_>>()
            .join(" "),
        other => other.to_string(),
    }
}

fn quoted(cell: String) -> String {
    match cell.contains([',', '"', '\n']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_become_cells_in_their_order() {
        let object = json!({
            "rnti": 61, "format": "1A, \"new\"", "alloc": null, "prb": [[[0, 5], [12, 13]], [[0, 5], [12, 13]]],
            "mcs": [4, null], "own": { "new_bits": 208 },
        });
        assert_eq!(head(&object), "rnti,format,alloc,prb,mcs,own");
        assert_eq!(row(&object), "61,\"1A, \"\"new\"\"\",,0-5;12-13 0-5;12-13,4 ,new_bits=208");
    }
}
