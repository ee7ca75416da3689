//! A log packet as human-readable lines: radio and time first, then the content, with indented records.

use super::{flags, hex, mask, shown, signed, unsigned, verified_word};
use crate::layout::{Decoded, Record, Unreadable, Value, Verified};
use crate::log;
use crate::packet::LogPacket;

/// Appends a packet as lines.
pub fn packet(packet: &LogPacket<'_>, reading: &Result<Decoded<'_>, Unreadable>, out: &mut Vec<u8>) {
    shown(format_args!("{}  radio {}  {}", packet.stamp, packet.radio.0, packet.code), out);
    if let Some(code) = log::code(packet.code) {
        shown(format_args!(" {}", code.name), out);
    }
    if let Some(version) = log::version(packet) {
        shown(format_args!(", version {version}"), out);
    }
    match reading {
        Ok(decoded) => {
            if decoded.verified != Verified::Checked {
                shown(format_args!(" (unverified: {})", verified_word(decoded.verified)), out);
            }
            out.push(b'\n');
            record(&decoded.fields, 1, out);
            if decoded.left > 0 {
                shown(format_args!("    {} bytes at the end are not laid out\n", decoded.left), out);
            }
        }
        Err(Unreadable::Misfit(_, _, misfit)) => shown(format_args!(": does not fit: {misfit}\n"), out),
        Err(_) => shown(format_args!(": no layout, {} bytes\n", packet.payload.len()), out),
    }
}

/// Appends a line with a record's own fields, then its parts, indented by one more level.
fn record(record: &Record<'_>, depth: usize, out: &mut Vec<u8>) {
    indent(depth, out);
    let mut own = 0;
    for (name, value) in &record.0 {
        if matches!(value, Value::Records(_) | Value::Record(_)) {
            continue;
        }
        if own > 0 {
            out.push(b' ');
        }
        own += 1;
        out.extend(name.as_bytes());
        out.push(b'=');
        self::value(value, out);
    }
    out.push(b'\n');
    for (name, value) in &record.0 {
        match value {
            Value::Record(inner) => part(name, None, inner, depth, out),
            Value::Records(records) => {
                for (at, inner) in records.iter().enumerate() {
                    part(name, Some(at), inner, depth, out);
                }
            }
            _ => {}
        }
    }
}

fn part(name: &str, at: Option<usize>, inner: &Record<'_>, depth: usize, out: &mut Vec<u8>) {
    indent(depth, out);
    out.extend(name.as_bytes());
    if let Some(at) = at {
        shown(format_args!(" {}", at + 1), out);
    }
    out.extend(b":\n");
    record(inner, depth + 1, out);
}

fn indent(depth: usize, out: &mut Vec<u8>) {
    out.extend(std::iter::repeat_n(b' ', 4 * depth));
}

/// Appends a value that is not a record, as text without quotes.
pub fn value(value: &Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Absent => out.push(b'-'),
        Value::Unsigned(number) => unsigned(*number, out),
        Value::Signed(number) => signed(*number, out),
        Value::Real(number) => shown(number, out),
        Value::Name(name) => out.extend(name.as_bytes()),
        Value::Mask(bits, width) => mask(*bits, *width, out),
        Value::Flags(0, _) => out.extend(b"none"),
        Value::Flags(bits, names) => {
            for (at, (bit, name)) in flags(*bits, names).enumerate() {
                if at > 0 {
                    out.push(b'|');
                }
                match name {
                    Some(name) => out.extend(name.as_bytes()),
                    None => unsigned(bit, out),
                }
            }
        }
        Value::Bytes(bytes) => hex(bytes, out),
        Value::Records(_) | Value::Record(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{LogCode, Radio};
    use crate::stamp::Stamp;

    fn text(code: u16, payload: &[u8]) -> String {
        let stamp = Stamp(68_112_019_993_554_611);
        let packet = LogPacket { radio: Radio(1), code: LogCode(code), stamp, payload };
        let mut out = vec![];
        super::packet(&packet, &log::read(&packet), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn records_stand_below_what_is_around_them() {
        let told = text(0xB0B3, &[1, 0, 0, 0, 9]);
        assert!(told.starts_with("2021-03-07T06:28:02.128221  radio 1  0xB0B3 LTE PDCP UL"), "{told}");
        let mut out = vec![];
        let inner = Record(vec![("mcs", Value::Unsigned(9)), ("crc", Value::Name("Pass"))]);
        let outer = Record(vec![
            ("sfn", Value::Unsigned(7)),
            ("records", Value::Records(vec![inner.clone(), inner])),
        ]);
        record(&outer, 1, &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "    sfn=7\n    records 1:\n        mcs=9 crc=Pass\n    records 2:\n        mcs=9 crc=Pass\n"
        );
    }

    #[test]
    fn what_cannot_be_read_takes_one_line() {
        assert!(text(0xB1EA, &[48, 1]).ends_with("0xB1EA, version 48: no layout, 2 bytes\n"));
        assert!(
            text(0xB0EE, &[2]).ends_with("version 2: does not fit: packet at byte 0: takes 19 bytes of 1\n")
        );
        assert!(text(0xB0E0, &[1, 9, 5, 0, 7]).contains("(unverified: read)\n"));
    }
}
