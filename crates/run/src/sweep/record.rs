//! Record of a run: the key of the run, and a result row per flow.
//!
//! A record is one line of text: the key in 32 hexadecimal digits, a checksum of key and JSON in eight hexadecimal
//! digits, and JSON, separated by spaces. Floats are written with the fewest digits that restore the same value.
//!
//! The key identifies the run, not its result. The checksum detects a number that was changed by hand or by a disk error
//! before the number becomes a result. It does not protect against deliberate changes with a recomputed checksum.

use std::fmt;
use std::fmt::Write;

use airpace_core::Refused;
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};

use crate::flows::FlowRow;

/// Identifier of a run: the first 16 bytes of a SHA-256 over version, scenario with every key set, contents of the files
/// that the scenario names, scheme and seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(pub [u8; 16]);

/// Number of hexadecimal digits of a key.
const DIGITS: usize = 32;

impl Key {
    /// Parses the text form of a [`Key`].
    pub fn parse(text: &str) -> Option<Key> {
        if text.len() != DIGITS || !text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')) {
            return None;
        }
        u128::from_str_radix(text, 16).ok().map(|number| Key(number.to_be_bytes()))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// The result of a run, or the reason why it failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Key of the run.
    pub key: Key,
    /// A row per flow, or the reason of the failure as a sentence.
    pub result: Result<Vec<FlowRow>, String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Written {
    Flows(Vec<FlowRow>),
    Failed(String),
}

/// Number of hexadecimal digits of a checksum.
const SUM_DIGITS: usize = 8;

/// Checksum of a line: the first digits of a SHA-256 over key and JSON.
fn sum(key: Key, json: &str) -> String {
    let mut hash = Context::new(&SHA256);
    hash.update(&key.0);
    hash.update(json.as_bytes());
    hash.finish().as_ref().iter().take(SUM_DIGITS / 2).map(|byte| format!("{byte:02x}")).collect()
}

/// Maximum number of flows of a run that are read.
const MAX_FLOWS: usize = 1_000;

impl Record {
    /// The record as a line, including the line end.
    pub fn line(&self) -> String {
        let written = match &self.result {
            Ok(flows) => Written::Flows(flows.clone()),
            Err(reason) => Written::Failed(reason.clone()),
        };
        Record::sealed(self.key, &serde_json::to_string(&written).expect("plain data with text keys"))
    }

    /// A line with this JSON and its checksum, including the line end.
    pub fn sealed(key: Key, json: &str) -> String {
        let mut line = String::with_capacity(DIGITS + SUM_DIGITS + 3 + json.len());
        writeln!(line, "{key} {} {json}", sum(key, json)).expect("memory takes any text");
        line
    }

    /// Splits a line without its line end into key and JSON, and verifies the checksum.
    ///
    /// # Errors
    /// Description of the defect: malformed key or checksum, or a checksum mismatch.
    pub(super) fn parts(line: &str) -> Result<(Key, &str), String> {
        let (key, rest) = line.split_once(' ').ok_or("it has no space behind its key")?;
        let key = Key::parse(key).ok_or("it does not begin with a key of 32 hexadecimal digits")?;
        match rest.split_once(' ') {
            Some((told, json)) if told == sum(key, json) => Ok((key, json)),
            _ => Err("it does not fit its checksum: it was changed after it was written".to_owned()),
        }
    }

    /// Parses a line without its line end.
    ///
    /// # Errors
    /// Description of the defect.
    pub fn parse(line: &str) -> Result<Record, Refused> {
        let (key, json) = Record::parts(line)?;
        let written = serde_json::from_str(json).map_err(|error| error.to_string())?;
        let result = match written {
            Written::Flows(flows) if flows.len() > MAX_FLOWS => {
                return Err(format!("it has {} flows; {MAX_FLOWS} are the most", flows.len()).into());
            }
            Written::Flows(flows) => Ok(flows),
            Written::Failed(reason) => Err(reason),
        };
        Ok(Record { key, result })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::flows::metric_names;

    proptest! {
        #[test]
        fn a_record_is_read_as_it_was_written(
            key in any::<[u8; 16]>(),
            label in "[^\\n]{0,12}",
            value in prop::option::of(-1e12..1e12_f64),
            reason in "[ -~\\n]{0,20}",
        ) {
            let mut values = vec![None; metric_names().len()];
            values[0] = value;
            let row = FlowRow { flow: label, values, ..FlowRow::default() };
            for result in [Ok(vec![row.clone()]), Err(reason.clone())] {
                let record = Record { key: Key(key), result };
                let line = record.line();
                prop_assert_eq!(line.matches('\n').count(), 1, "one line");
                prop_assert_eq!(Record::parse(line.trim_end_matches('\n')), Ok(record));
            }
        }
    }

    #[test]
    fn a_line_that_was_changed_is_found_out() {
        let record = |value| {
            let mut values = vec![None; metric_names().len()];
            values[0] = Some(value);
            let row = FlowRow { flow: "phone".to_owned(), values, ..FlowRow::default() };
            Record { key: Key([1; 16]), result: Ok(vec![row]) }.line()
        };
        let line = record(55.5);
        assert!(Record::parse(line.trim_end()).is_ok());
        for (from, to) in [("55.5", "99.5"), ("phone", "Phone"), ("0101010101", "0101010102"), ("null", "1")]
        {
            let changed = line.replacen(from, to, 1);
            if changed != line {
                let said = Record::parse(changed.trim_end()).unwrap_err();
                assert!(said.to_string().contains("checksum"), "{from}: {said}");
            }
        }
        let (key, rest) = line.split_once(' ').unwrap();
        let (_, json) = rest.split_once(' ').unwrap();
        assert!(Record::parse(&format!("{key} {}", json.trim_end())).is_err(), "it has a checksum");
    }

    #[test]
    fn a_line_that_is_no_record_says_why() {
        for line in ["", "abc {}", "0123456789abcdef0123456789abcdef", "0123456789ABCDEF0123456789abcdef {}"]
        {
            assert!(Record::parse(line).is_err(), "{line}");
        }
        let key = Key([1; 16]);
        let json = "{\"flows\":[{\"flow\":\"a\",\"index\":0,\"device\":0,\"direction\":\"down\",\"scheme\":\"pbe\",\
                    \"greedy\":true,\"values\":\"1 2\"}]}";
        let few = Record::sealed(key, json);
        let said = Record::parse(few.trim_end()).unwrap_err();
        assert!(said.to_string().contains("2 numbers"), "{said}");
    }
}
