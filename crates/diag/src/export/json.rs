//! A log packet as a JSON object, nested like its layout.

use super::{flags, hex, mask, shown, signed, unsigned, verified_word};
use crate::layout::{Decoded, Record, Unreadable, Value, Verified, Version};
use crate::log;
use crate::packet::LogPacket;

/// Appends a packet as one object, without a line end:
///
/// ```json
/// {"time_utc":"2021-03-07T06:28:02.128221","code":"0xB173","name":"…","version":36,"radio":1,"fields":{…}}
/// ```
///
/// `version` is a number, or `"major.minor"`; `fields` are in the order of the layout. Numbers are JSON numbers, names
/// and masks (`"0x3F"`) are strings, flags are lists of the bits that are set, bytes are hexadecimal strings, and
/// values that the modem does not know are null. Headers of other protocols are decoded in addition to their bytes. If
/// the layout was never verified with a real log, `verified` is `"read"` or `"guess"`. `bytes_left` is the number of
/// bytes that such a layout does not cover. `unknown_subpackets` lists ids and versions of subpackets without a layout.
///
/// If a packet cannot be read, `fields` is null and the object contains `payload_bytes`, and either `unknown` with
/// `"code"` or `"version"`, or `misfit` with the reason. `with_payload` adds the `payload` of every packet.
pub fn packet(
    packet: &LogPacket<'_>,
    reading: &Result<Decoded<'_>, Unreadable>,
    with_payload: bool,
    out: &mut Vec<u8>,
) {
    out.extend(b"{\"time_utc\":\"");
    shown(packet.stamp, out);
    out.extend(b"\",\"code\":\"");
    mask(u64::from(packet.code.0), 16, out);
    out.extend(b"\",\"name\":");
    match log::code(packet.code) {
        Some(code) => string(code.name, out),
        None => out.extend(b"null"),
    }
    out.extend(b",\"version\":");
    match log::version(packet) {
        Some(Version::Single(number)) => unsigned(u64::from(number), out),
        Some(pair) => shown(format_args!("\"{pair}\""), out),
        None => out.extend(b"null"),
    }
    out.extend(b",\"radio\":");
    unsigned(u64::from(packet.radio.0), out);
    out.extend(b",\"fields\":");
    match reading {
        Ok(decoded) => {
            record(&decoded.fields, out);
            notes(decoded, out);
        }
        Err(unreadable) => {
            out.extend(b"null");
            match unreadable {
                Unreadable::Code(_) => out.extend(b",\"unknown\":\"code\""),
                Unreadable::Version(..) => out.extend(b",\"unknown\":\"version\""),
                Unreadable::Empty(_) => out.extend(b",\"misfit\":\"the packet is empty\""),
                Unreadable::Misfit(_, _, misfit) => {
                    shown(format_args!(",\"misfit\":\"{misfit}\""), out);
                }
            }
            out.extend(b",\"payload_bytes\":");
            unsigned(packet.payload.len() as u64, out);
        }
    }
    if with_payload {
        out.extend(b",\"payload\":\"");
        hex(packet.payload, out);
        out.push(b'"');
    }
    out.push(b'}');
}

/// Appends verification level, uncovered bytes and unknown subpackets.
fn notes(decoded: &Decoded<'_>, out: &mut Vec<u8>) {
    if decoded.verified != Verified::Checked {
        shown(format_args!(",\"verified\":\"{}\"", verified_word(decoded.verified)), out);
    }
    if decoded.left > 0 {
        shown(format_args!(",\"bytes_left\":{}", decoded.left), out);
    }
    if !decoded.unknown.is_empty() {
        out.extend(b",\"unknown_subpackets\":");
        list(&decoded.unknown, out, |(id, version), out| shown(format_args!("[{id},{version}]"), out));
    }
}

/// Appends a record as an object.
pub fn record(record: &Record<'_>, out: &mut Vec<u8>) {
    out.push(b'{');
    for (at, (name, value)) in record.0.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        // Names of fields and parts are identifiers: no character needs an escape.
        out.push(b'"');
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
        self::value(value, out);
    }
    out.push(b'}');
}

/// Appends a value.
pub fn value(value: &Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Absent => out.extend(b"null"),
        Value::Unsigned(number) => unsigned(*number, out),
        Value::Signed(number) => signed(*number, out),
        Value::Real(number) => real(*number, out),
        Value::Name(name) => string(name, out),
        Value::Mask(bits, width) => {
            out.push(b'"');
            mask(*bits, *width, out);
            out.push(b'"');
        }
        Value::Flags(bits, names) => list(flags(*bits, names), out, |(bit, name), out| match name {
            Some(name) => string(name, out),
            // A list contains either names or numbers, not both.
            None if names.is_empty() => unsigned(bit, out),
            None => shown(format_args!("\"bit {bit}\""), out),
        }),
        Value::Bytes(bytes) => {
            out.push(b'"');
            hex(bytes, out);
            out.push(b'"');
        }
        Value::Records(records) => list(records, out, record),
        Value::Record(inner) => record(inner, out),
    }
}

/// Appends a number as the shortest text that parses to the same number, or null if JSON cannot express it.
pub fn real(number: f64, out: &mut Vec<u8>) {
    if number.is_finite() {
        shown(number, out);
    } else {
        out.extend(b"null");
    }
}

/// Appends a text with the escapes that JSON requires.
pub fn string(text: &str, out: &mut Vec<u8>) {
    let begin = text.bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20));
    out.push(b'"');
    let (plain, rest) = text.as_bytes().split_at(begin.unwrap_or(text.len()));
    out.extend_from_slice(plain);
    for &byte in rest {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', byte]),
            0..0x20 => shown(format_args!("\\u{byte:04x}"), out),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

fn list<T>(items: impl IntoIterator<Item = T>, out: &mut Vec<u8>, mut each: impl FnMut(T, &mut Vec<u8>)) {
    out.push(b'[');
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        each(item, out);
    }
    out.push(b']');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{LogCode, Radio};
    use crate::stamp::Stamp;

    fn line(code: u16, payload: &[u8]) -> String {
        let packet =
            LogPacket { radio: Radio(2), code: LogCode(code), stamp: Stamp(68_112_019_993_554_611), payload };
        let mut out = vec![];
        super::packet(&packet, &log::read(&packet), false, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_kind_of_value_is_written_as_the_parser_reads_it() {
        let fields = Record(vec![
            ("none", Value::Absent),
            ("unsigned", Value::Unsigned(u64::MAX)),
            ("signed", Value::Signed(i64::MIN)),
            ("real", Value::Real(-95.0625)),
            ("small", Value::Real(1e-300)),
            ("infinite", Value::Real(f64::INFINITY)),
            ("name", Value::Name("a \"b\"\n")),
            ("mask", Value::Mask(0xC3, 11)),
            ("flags", Value::Flags(0b1010, &[(1, "SIB1")])),
            ("bits", Value::Flags(0b1010, &[])),
            ("bytes", Value::Bytes(&[0, 0xAB])),
            ("records", Value::Records(vec![Record(vec![]), Record(vec![("x", Value::Unsigned(0))])])),
            ("record", Value::Record(Record(vec![("y", Value::Signed(-7))]))),
        ]);
        let mut out = vec![];
        record(&fields, &mut out);
        let read: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(
            read,
            serde_json::json!({
                "none": null, "unsigned": u64::MAX, "signed": i64::MIN, "real": -95.0625, "small": 1e-300,
                "infinite": null, "name": "a \"b\"\n", "mask": "0x0C3", "flags": ["SIB1", "bit 3"], "bits": [1, 3],
                "bytes": "00ab",
                "records": [{}, {"x": 0}], "record": {"y": -7}
            })
        );
    }

    #[test]
    fn a_packet_has_source_time_content_and_verification() {
        let nas = line(0xB0EC, &[1, 9, 5, 0, 0x07, 0x41]);
        assert_eq!(
            nas,
            "{\"time_utc\":\"2021-03-07T06:28:02.128221\",\"code\":\"0xB0EC\",\
             \"name\":\"LTE NAS EMM plain incoming\",\"version\":1,\"radio\":2,\"fields\":{\"pkt_version\":1,\
             \"rrc_release_number\":9,\"major_version\":5,\"minor_version\":0,\"msg\":\"0741\"}}"
        );
        assert!(line(0xB0E0, &[1, 9, 5, 0, 7]).ends_with("\"msg\":\"07\"},\"verified\":\"read\"}"));
    }

    #[test]
    fn names_of_fields_and_parts_are_words() {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.';
        for layout in log::CODES.iter().flat_map(|code| code.layouts) {
            layout.leaves(|path, _| assert!(path.bytes().all(is_word), "{path}"));
        }
    }

    #[test]
    fn unreadable_fields_are_reported_and_not_guessed() {
        let tail = |line: String| line.split_once("\"version\":").unwrap().1.to_owned();
        assert_eq!(
            tail(line(0xB1EA, &[48, 1])),
            "48,\"radio\":2,\"fields\":null,\"unknown\":\"code\",\"payload_bytes\":2}"
        );
        assert_eq!(
            tail(line(0xB821, &[9, 0, 77, 0])),
            "\"77.9\",\"radio\":2,\"fields\":null,\"unknown\":\"version\",\"payload_bytes\":4}"
        );
        assert!(tail(line(0xB0EE, &[2])).contains("\"misfit\":\"packet at byte 0: takes 19 bytes of 1\""));
        assert!(tail(line(0xB0EE, &[])).starts_with("null,"));
    }
}
