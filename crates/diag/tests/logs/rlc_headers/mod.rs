//! RLC headers of the reference and of our decoding, in a common form for comparison.

use std::collections::BTreeMap;

use airpace_diag::layout::{Record, Value};
use serde_json::{Map, Value as Json};

/// RLC header of the reference as pairs of name and text.
pub fn rlc_of_the_reference(theirs: &Map<String, Json>) -> BTreeMap<String, String> {
    let text = |value: &Json| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut said = BTreeMap::new();
    for (key, value) in theirs {
        let (name, text) = match (key.as_str(), value) {
            ("SN", Json::String(ack)) => ("ack_sn", ack.trim_start_matches("ACK_SN = ").to_owned()),
            ("SN", number) => ("sn", number.to_string()),
            ("RF", bit) => ("rf", text(bit)),
            ("P", bit) => ("p", text(bit)),
            ("E", bit) => ("e", text(bit)),
            ("FI", bits) => ("fi", u64::from_str_radix(&text(bits), 2).unwrap().to_string()),
            ("LSF", bit) => ("lsf", text(bit)),
            ("SO", bytes) => ("so", text(bytes)),
            ("RLC DATA LI", Json::Array(list)) => {
                ("li", list.iter().map(|one| format!("{} ", one["LI"])).collect())
            }
            ("RLC CTRL NACK", Json::Array(list)) => {
                ("nack_sn", list.iter().map(|one| format!("{} ", one["NACK_SN"])).collect())
            }
            _ => continue,
        };
        said.insert(name.to_owned(), text);
    }
    said
}

/// RLC header of our decoding as pairs of name and text.
pub fn rlc_of_ours(rlc: &Record<'_>) -> BTreeMap<String, String> {
    let number = |value: &Value<'_>| match value {
        Value::Unsigned(number) => number.to_string(),
        other => panic!("{other:?}"),
    };
    let mut said = BTreeMap::new();
    for (name, value) in &rlc.0 {
        match value {
            Value::Name(_) => {}
            Value::Records(records) => {
                let name = if *name == "nacks" { "nack_sn" } else { "li" };
                if !records.is_empty() {
                    let all = records.iter().map(|one| number(one.get(name).unwrap()) + " ").collect();
                    said.insert(name.to_owned(), all);
                }
            }
            value => drop(said.insert((*name).to_owned(), number(value))),
        }
    }
    said
}
