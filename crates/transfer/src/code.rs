//! A key as text for people to read, type and paste: `7K3M-Q0ZD-…`, seven groups of four characters.
//!
//! The first 26 characters encode the key's 128 bits, most significant first. The last two encode the key modulo 1021. This
//! check detects a wrong character, or two swapped neighbours, before anything is sent.

use std::fmt;

use airpace_transport::key::Key;

/// The 32 digits. Letters that are easily confused with others are left out; `O` is read as `0`, and `I` and `L` as `1`.
///
/// Source: D. Crockford 2019, Base 32
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Number of characters without the hyphens between groups.
const LENGTH: usize = 28;

/// Modulus of the check: the largest prime below 32². This prime divides neither a difference of digits nor 31, so
/// every single wrong character and every swap of neighbours changes the remainder.
///
/// Chosen: the source has one check character modulo 37. Five of its values are punctuation characters with a meaning in
/// shells.
const CHECK: u128 = 1021;

/// Reason why a text is not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeError {
    /// The text has this number of characters.
    Length(usize),
    /// Keys do not contain this character.
    Character(char),
    /// A character is wrong, or two are swapped.
    Check,
}

impl fmt::Display for CodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CodeError::Length(length) => {
                write!(f, "a key has {LENGTH} letters and digits, and this has {length}; copy all of it")
            }
            CodeError::Character(c) => {
                write!(f, "no key has the character {c:?}; copy it again from the receiver")
            }
            CodeError::Check => f.write_str(
                "the key is mistyped: its last two characters do not fit the others; copy it again from the receiver",
            ),
        }
    }
}

impl std::error::Error for CodeError {}

/// Formats a key as text.
pub fn print(key: &Key) -> String {
    let number = u128::from_be_bytes(*key.bytes());
    let check = number % CHECK;
    let data = (0..26).rev().map(|place| (number >> (5 * place)) & 31);
    let digits = data.chain([check / 32, check % 32]);
    let mut text = String::with_capacity(LENGTH + LENGTH / 4);
    for (place, digit) in digits.enumerate() {
        if place > 0 && place % 4 == 0 {
            text.push('-');
        }
        text.push(char::from(DIGITS[digit as usize]));
    }
    text
}

/// Parses a key. Case, spaces and hyphens are ignored.
///
/// # Errors
/// The text is not a key. The error does not contain the text.
pub fn parse(text: &str) -> Result<Key, CodeError> {
    let mut digits = Vec::with_capacity(LENGTH);
    for c in text.chars().filter(|c| !c.is_whitespace() && *c != '-') {
        let upper = match c.to_ascii_uppercase() {
            'O' => '0',
            'I' | 'L' => '1',
            other => other,
        };
        let digit = DIGITS.iter().position(|known| char::from(*known) == upper);
        digits.push(digit.ok_or(CodeError::Character(c))? as u128);
    }
    if digits.len() != LENGTH {
        return Err(CodeError::Length(digits.len()));
    }
    let (data, check) = digits.split_at(26);
    // 26 digits have 130 bits, two more than the key.
    if data[0] > 7 {
        return Err(CodeError::Check);
    }
    let number = data.iter().fold(0, |number, digit| (number << 5) | digit);
    match number % CHECK == check[0] * 32 + check[1] {
        true => Ok(Key::new(number.to_be_bytes())),
        false => Err(CodeError::Check),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_key_is_read_however_it_is_typed() {
        let key = Key::new(*b"\x00\x01\x02\x03 sixteen \xff\xfe\xfd");
        let text = print(&key);
        assert_eq!(text.len(), 34);
        assert_eq!(text.split('-').count(), 7);
        let typed = text.to_lowercase().replace('-', " ").replace('0', "o").replace('1', "l");
        assert_eq!(parse(&format!(" {typed}\n")).unwrap().bytes(), key.bytes());
        assert_eq!(print(&Key::new([0; 16])), "0000-0000-0000-0000-0000-0000-0000");
    }

    #[test]
    fn what_is_no_key_is_named_without_repeating_it() {
        let refused = |text: &str| parse(text).unwrap_err();
        assert_eq!(refused(""), CodeError::Length(0));
        assert_eq!(refused("ABCD-EF"), CodeError::Length(6));
        assert_eq!(refused("U000"), CodeError::Character('U'));
        assert_eq!(refused(&"Z".repeat(28)), CodeError::Check);
        assert_eq!(refused("ключ"), CodeError::Character('к'));
    }

    proptest! {
        #[test]
        fn every_key_comes_back(bytes: [u8; 16]) {
            let key = parse(&print(&Key::new(bytes))).unwrap();
            prop_assert_eq!(key.bytes(), &bytes);
        }

        #[test]
        fn a_wrong_character_and_exchanged_neighbours_are_found(bytes: [u8; 16]) {
            let text = print(&Key::new(bytes)).replace('-', "");
            for place in 0..text.len() {
                let mut typed = text.clone().into_bytes();
                for digit in DIGITS {
                    typed[place] = *digit;
                    let is_right = typed == text.as_bytes();
                    prop_assert_eq!(parse(std::str::from_utf8(&typed).unwrap()).is_ok(), is_right);
                }
                let mut typed = text.clone().into_bytes();
                if place + 1 < typed.len() && typed[place] != typed[place + 1] {
                    typed.swap(place, place + 1);
                    prop_assert!(parse(std::str::from_utf8(&typed).unwrap()).is_err());
                }
            }
        }

        #[test]
        fn no_text_is_too_strange(text: String) {
            let _ = parse(&text).map_err(|error| error.to_string());
        }
    }
}
