//! A code as a flat table: one column per field of all its versions, one row per innermost record.
//!
//! A row has the fields of its record and of all enclosing records. If a packet has two parts on the same level, the
//! records of each part are separate rows, with empty columns for the other part.

use std::collections::BTreeMap;

use crate::layout::{Code, Field, Leaf, Record, Shown, Value};

/// The columns of a code.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<Column>,
    root: Node,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The names of the parts and of the field, with dots: `records.transport_blocks.tb_size`.
    pub path: String,
    /// Type that can represent all values of the column.
    pub kind: ColumnKind,
}

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Whole numbers without sign.
    Unsigned,
    /// Whole numbers with sign.
    Signed,
    /// Numbers with a fraction.
    Real,
    /// Names and masks.
    Text,
    /// Bytes.
    Bytes,
}

/// A part: the columns of its fields, and its inner parts.
#[derive(Clone, Debug, Default)]
struct Node {
    fields: BTreeMap<String, usize>,
    parts: BTreeMap<String, Node>,
}

/// The values of one row, by column; `None` if its record does not have the field.
pub type Row<'r, 'a> = [Option<&'r Value<'a>>];

impl Table {
    /// The table of a code.
    pub fn of(code: &'static Code) -> Table {
        let mut table = Table { columns: vec![], root: Node::default() };
        for layout in code.layouts {
            layout.leaves(|path, leaf| table.add(path, leaf));
        }
        table
    }

    /// Returns the columns: the columns of the first version in their order, then the columns that later versions add.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Visits the rows of a packet.
    pub fn rows<'r, 'a>(&self, fields: &'r Record<'a>, mut each: impl FnMut(&Row<'r, 'a>)) {
        let mut row = vec![None; self.columns.len()];
        walk(&self.root, fields, &mut row, &mut each);
    }

    fn add(&mut self, path: &str, leaf: Leaf) {
        let kind = leaf.field.map_or(ColumnKind::Bytes, kind);
        if let Some(column) = self.columns.iter_mut().find(|column| column.path == path) {
            column.kind = both(column.kind, kind);
            return;
        }
        let mut node = &mut self.root;
        let mut rest = path;
        while let Some((part, within)) = rest.split_once('.') {
            node = node.parts.entry(part.to_owned()).or_default();
            rest = within;
        }
        node.fields.insert(rest.to_owned(), self.columns.len());
        self.columns.push(Column { path: path.to_owned(), kind });
    }
}

/// Returns a type that can represent a field's values.
fn kind(field: &Field) -> ColumnKind {
    match field.shown {
        Shown::Number if field.signed => ColumnKind::Signed,
        Shown::Number => ColumnKind::Unsigned,
        Shown::Scaled { .. } | Shown::Power | Shown::Meant(_) => ColumnKind::Real,
        Shown::Named(_) | Shown::Mask | Shown::Flags(_) => ColumnKind::Text,
        Shown::Bytes => ColumnKind::Bytes,
    }
}

/// Returns a type that can represent the values of both types.
fn both(one: ColumnKind, other: ColumnKind) -> ColumnKind {
    use ColumnKind::{Bytes, Real, Signed, Text, Unsigned};
    match (one, other) {
        _ if one == other => one,
        (Unsigned | Signed | Real, Unsigned | Signed | Real) => Real,
        (Text | Bytes, _) | (_, Text | Bytes) => Text,
    }
}

/// Visits the rows of a record. The columns of the enclosing records are already filled.
fn walk<'r, 'a>(
    node: &Node,
    record: &'r Record<'a>,
    row: &mut Vec<Option<&'r Value<'a>>>,
    each: &mut impl FnMut(&Row<'r, 'a>),
) {
    let (mut filled, mut within) = (vec![], vec![]);
    fill(node, record, row, &mut filled, &mut within);
    let mut is_innermost = true;
    for (node, records) in within {
        for record in records {
            is_innermost = false;
            walk(node, record, row, each);
        }
    }
    if is_innermost {
        each(row);
    }
    for column in filled {
        row[column] = None;
    }
}

/// Fills the columns of a record, and those of parts that are present once. Returns the parts that repeat.
fn fill<'n, 'r, 'a>(
    node: &'n Node,
    record: &'r Record<'a>,
    row: &mut Vec<Option<&'r Value<'a>>>,
    filled: &mut Vec<usize>,
    within: &mut Vec<(&'n Node, &'r [Record<'a>])>,
) {
    for (name, value) in &record.0 {
        match value {
            Value::Record(inner) => {
                if let Some(node) = node.parts.get(*name) {
                    fill(node, inner, row, filled, within);
                }
            }
            Value::Records(records) => within.extend(node.parts.get(*name).map(|node| (node, &records[..]))),
            _ => {
                if let Some(&column) = node.fields.get(*name) {
                    row[column] = Some(value);
                    filled.push(column);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log;
    use crate::packet::LogCode;

    /// The rows of a record, each as `path=value` for its present values.
    fn rows(code: u16, fields: &Record<'_>) -> Vec<String> {
        let table = Table::of(log::code(LogCode(code)).unwrap());
        let mut rows = vec![];
        table.rows(fields, |row| {
            let cells = table.columns().iter().zip(row).filter_map(|(column, value)| {
                let mut text = vec![];
                crate::export::text::value((*value)?, &mut text);
                Some(format!("{}={}", column.path, String::from_utf8(text).unwrap()))
            });
            rows.push(cells.collect::<Vec<_>>().join(" "));
        });
        rows
    }

    #[test]
    fn innermost_records_are_rows_and_have_what_is_around_them() {
        let block = |size| Record(vec![("tb_size", Value::Unsigned(size))]);
        let record = |frame, blocks| {
            Record(vec![("frame_num", Value::Unsigned(frame)), ("transport_blocks", Value::Records(blocks))])
        };
        let fields = Record(vec![
            ("version", Value::Unsigned(36)),
            (
                "records",
                Value::Records(vec![
                    record(7, vec![block(100), block(200)]),
                    record(8, vec![]),
                    record(9, vec![block(5)]),
                ]),
            ),
        ]);
        assert_eq!(
            rows(0xB173, &fields),
            [
                "version=36 records.frame_num=7 records.transport_blocks.tb_size=100",
                "version=36 records.frame_num=7 records.transport_blocks.tb_size=200",
                "version=36 records.frame_num=8",
                "version=36 records.frame_num=9 records.transport_blocks.tb_size=5",
            ]
        );
    }

    #[test]
    fn a_packet_without_records_is_one_row_and_strangers_have_no_column() {
        let fields = Record(vec![("pkt_version", Value::Unsigned(1)), ("unread", Value::Bytes(&[1]))]);
        assert_eq!(rows(0xB0EC, &fields), ["pkt_version=1"]);
    }

    #[test]
    fn every_column_holds_the_values_of_all_versions() {
        for code in log::CODES {
            let table = Table::of(code);
            assert!(!table.columns().is_empty(), "{}", code.code);
            for (at, column) in table.columns().iter().enumerate() {
                let twice = table.columns()[..at].iter().any(|before| before.path == column.path);
                assert!(!twice, "{}: {} comes once", code.code, column.path);
            }
        }
        let of = |code, path: &str| {
            let table = Table::of(log::code(LogCode(code)).unwrap());
            table.columns().iter().find(|column| column.path == path).unwrap().kind
        };
        assert_eq!(of(0xB0C0, "channel"), ColumnKind::Text);
        assert_eq!(of(0xB0C0, "freq"), ColumnKind::Unsigned);
        assert_eq!(of(0xB0C0, "msg"), ColumnKind::Bytes);
    }
}
