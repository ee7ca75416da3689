//! Log packets for other programs: as JSON, as rows of a table, as GSMTAP in a capture file, and as text for people.
//!
//! All of it appends to bytes that the caller keeps; nothing else is allocated per value.

pub mod capture;
pub mod csv;
pub mod gsmtap;
pub mod json;
pub mod sample;
pub mod table;
pub mod text;

use std::io::Write;

use crate::layout::Verified;

/// The word for how well a layout is known.
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

/// Appends a mask of so many bits, as `0x0C3`.
pub(crate) fn mask(bits: u64, width: usize, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.extend(b"0x");
    let digits = width.div_ceil(4);
    out.extend((0..digits).rev().map(|digit| DIGITS[(bits >> (4 * digit) & 15) as usize]));
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

/// Appends what is shown.
pub(crate) fn shown(value: impl std::fmt::Display, out: &mut Vec<u8>) {
    write!(out, "{value}").expect("memory takes all bytes");
}
