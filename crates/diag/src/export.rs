//! Export of log packets: as JSON, as rows of a table, as GSMTAP in a capture file, and as human-readable text.
//!
//! All functions append to a buffer of the caller. Nothing else is allocated per value.

pub mod capture;
pub mod csv;
pub mod gsmtap;
pub mod json;
pub mod pdu;
pub mod sample;
pub mod table;
pub mod text;
pub mod windows;

use std::io::Write;

use crate::layout::{Names, Verified};

/// Text for a [`Verified`] value.
pub fn verified_word(verified: Verified) -> &'static str {
    match verified {
        Verified::Checked => "checked",
        Verified::Read => "read",
        Verified::Guess => "guess",
    }
}

/// Appends bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend(
        bytes.iter().flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]),
    );
}

/// Appends a mask of `width` bits, as `0x0C3`.
pub(crate) fn mask(bits: u64, width: usize, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.extend(b"0x");
    let digits = width.div_ceil(4);
    out.extend((0..digits).rev().map(|digit| DIGITS[(bits >> (4 * digit) & 15) as usize]));
}

/// Returns the bits that are set, each with its name if it has a name.
pub(crate) fn flags(bits: u64, names: Names) -> impl Iterator<Item = (u64, Option<&'static str>)> {
    (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| {
        let name = names.iter().find(|(number, _)| *number == bit);
        (bit, name.map(|(_, name)| *name))
    })
}

/// Appends a number.
pub(crate) fn unsigned(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends a number that can be negative.
pub(crate) fn signed(number: i64, out: &mut Vec<u8>) {
    if number < 0 {
        out.push(b'-');
    }
    unsigned(number.unsigned_abs(), out);
}

/// Appends a value in its `Display` form.
pub(crate) fn shown(value: impl std::fmt::Display, out: &mut Vec<u8>) {
    write!(out, "{value}").expect("memory takes all bytes");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::log;
    use crate::packet::{LogCode, LogPacket, Radio};
    use crate::stamp::Stamp;

    proptest! {
        #[test]
        fn no_payload_makes_any_form_panic_or_its_json_no_json(
            code in 0..=log::CODES.len(),
            version in 0usize..40,
            mut payload in prop::collection::vec(prop_oneof![any::<u8>(), 0u8..4], 0..300),
            stamp in any::<u64>(),
        ) {
            let known = log::CODES.get(code);
            // Start half of the payloads with a version that has a layout.
            let versions = known.map_or(vec![], |code| {
                code.layouts.iter().flat_map(|layout| layout.versions.iter().copied()).collect()
            });
            match versions.get(version) {
                Some(crate::layout::Version::Single(number)) if !payload.is_empty() => payload[0] = *number,
                Some(crate::layout::Version::Pair(major, minor)) if payload.len() > 3 => {
                    payload[..2].copy_from_slice(&minor.to_le_bytes());
                    payload[2..4].copy_from_slice(&major.to_le_bytes());
                }
                _ => {}
            }
            let packet = LogPacket {
                radio: Radio(2),
                code: known.map_or(LogCode(0xB999), |code| code.code),
                stamp: Stamp(stamp),
                payload: &payload,
            };
            let reading = log::read(&packet);
            let mut out = vec![];
            super::json::packet(&packet, &reading, true, &mut out);
            let object: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
            prop_assert_eq!(object["fields"].is_object(), reading.is_ok());
            super::text::packet(&packet, &reading, &mut out);
            if let (Ok(decoded), Some(code)) = (&reading, known) {
                let table = super::table::Table::of(code);
                super::csv::wide(&packet, 0, &decoded.fields, &table, &mut out);
                super::csv::long(&packet, 0, &decoded.fields, &mut out);
            }
            if let Ok(Some(message)) = super::gsmtap::message(&packet) {
                super::capture::Capture::default().message(packet.radio, packet.stamp, &message, &mut out);
            }
        }
    }
}
