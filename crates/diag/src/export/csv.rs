//! Packets as rows of comma-separated values (RFC 4180): a wide table for one code, or a long table for all codes.

use super::table::Table;
use super::{shown, text, unsigned};
use crate::layout::{Record, Value, Version};
use crate::log;
use crate::packet::LogPacket;

/// The first columns of a wide table.
const WIDE: &str = "time_utc,radio,packet,layout_version";
/// The columns of a long table.
const LONG: &str = "time_utc,radio,packet,code,version,field,value\n";

/// Appends the header of a wide table: time, radio, number of the packet, version, then one column per field.
pub fn wide_head(table: &Table, out: &mut Vec<u8>) {
    out.extend(WIDE.as_bytes());
    for column in table.columns() {
        shown(format_args!(",{}", column.path), out);
    }
    out.push(b'\n');
}

/// Appends a line per innermost record of a packet; `number` is the number of packets before it.
pub fn wide(packet: &LogPacket<'_>, number: u64, fields: &Record<'_>, table: &Table, out: &mut Vec<u8>) {
    let mut begin = vec![];
    shown(format_args!("{},{},{number},", packet.stamp, packet.radio.0), &mut begin);
    version(packet, &mut begin);
    table.rows(fields, |row| {
        out.extend_from_slice(&begin);
        for value in row {
            out.push(b',');
            if let Some(value) = value {
                cell(value, out);
            }
        }
        out.push(b'\n');
    });
}

/// Appends the header of a long table, which has one line per value.
pub fn long_head(out: &mut Vec<u8>) {
    out.extend(LONG.as_bytes());
}

/// Appends a line per value of a packet; records are numbered from 0: `records[3].num_rbs`.
pub fn long(packet: &LogPacket<'_>, number: u64, fields: &Record<'_>, out: &mut Vec<u8>) {
    let mut begin = vec![];
    shown(format_args!("{},{},{number},{},", packet.stamp, packet.radio.0, packet.code), &mut begin);
    version(packet, &mut begin);
    begin.push(b',');
    lines(fields, &begin, &mut vec![], out);
}

fn lines(fields: &Record<'_>, begin: &[u8], path: &mut Vec<u8>, out: &mut Vec<u8>) {
    let around = path.len();
    for (name, value) in &fields.0 {
        path.extend(name.as_bytes());
        match value {
            Value::Record(inner) => {
                path.push(b'.');
                lines(inner, begin, path, out);
            }
            Value::Records(records) => {
                let own = path.len();
                for (at, inner) in records.iter().enumerate() {
                    path.push(b'[');
                    unsigned(at as u64, path);
                    path.extend(b"].");
                    lines(inner, begin, path, out);
                    path.truncate(own);
                }
            }
            _ => {
                out.extend_from_slice(begin);
                out.extend_from_slice(path);
                out.push(b',');
                cell(value, out);
                out.push(b'\n');
            }
        }
        path.truncate(around);
    }
}

/// Version pairs are written as `major.minor`.
fn version(packet: &LogPacket<'_>, out: &mut Vec<u8>) {
    match log::version(packet) {
        Some(Version::Single(number)) => unsigned(u64::from(number), out),
        Some(pair) => shown(pair, out),
        None => {}
    }
}

/// Appends a value. The cell is empty if the modem does not know the value; names are quoted if they contain a comma or
/// a quote.
fn cell(value: &Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Absent => {}
        Value::Name(name) if name.contains([',', '"', '\n', '\r']) => {
            out.push(b'"');
            out.extend(name.replace('"', "\"\"").as_bytes());
            out.push(b'"');
        }
        value => text::value(value, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{LogCode, Radio};
    use crate::stamp::Stamp;

    const PACKET: LogPacket<'_> = LogPacket {
        radio: Radio(2),
        code: LogCode(0xB173),
        stamp: Stamp(68_112_019_993_554_611),
        payload: &[36],
    };

    fn fields() -> Record<'static> {
        let record = |frame| Record(vec![("frame_num", Value::Unsigned(frame)), ("num_rbs", Value::Absent)]);
        Record(vec![
            ("version", Value::Name("a, \"b\"")),
            ("records", Value::Records(vec![record(7), record(8)])),
        ])
    }

    #[test]
    fn a_wide_table_has_a_line_per_record() {
        let table = Table::of(log::code(PACKET.code).unwrap());
        let mut out = vec![];
        wide_head(&table, &mut out);
        wide(&PACKET, 5, &fields(), &table, &mut out);
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert!(
            lines[0].starts_with("time_utc,radio,packet,layout_version,version,num_records,"),
            "{}",
            lines[0]
        );
        assert!(lines[1].starts_with("2021-03-07T06:28:02.128221,2,5,36,\"a, \"\"b\"\"\","), "{}", lines[1]);
        assert_eq!(lines.len(), 3);
        let commas = |line: &str| line.replace("a, ", "").matches(',').count();
        assert!(lines.iter().all(|line| commas(line) == commas(lines[0])), "all lines have all columns");
    }

    #[test]
    fn a_long_table_has_a_line_per_value() {
        let mut out = vec![];
        long_head(&mut out);
        long(&PACKET, 5, &fields(), &mut out);
        let begin = "2021-03-07T06:28:02.128221,2,5,0xB173,36";
        assert_eq!(
            String::from_utf8(out).unwrap(),
            format!(
                "{LONG}{begin},version,\"a, \"\"b\"\"\"\n{begin},records[0].frame_num,7\n\
                 {begin},records[0].num_rbs,\n{begin},records[1].frame_num,8\n{begin},records[1].num_rbs,\n"
            )
        );
    }
}
