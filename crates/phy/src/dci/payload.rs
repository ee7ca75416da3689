//! Payload of a DCI message: a sequence of up to 64 bits.

use std::fmt;
use std::str::FromStr;

/// Bits of a message without CRC, in order of transmission.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Payload {
    bits: u64,
    len: u8,
}

impl Payload {
    /// The `len` lowest bits of `bits`, highest bit first; `None` if `len` exceeds 64 or higher bits are set.
    pub const fn new(bits: u64, len: u8) -> Option<Payload> {
        if len > 64 || len < 64 && bits >> len != 0 { None } else { Some(Payload { bits, len }) }
    }

    /// Number of bits.
    pub const fn len(self) -> u8 {
        self.len
    }

    /// Whether there are no bits.
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The bits, right-aligned.
    pub const fn bits(self) -> u64 {
        self.bits
    }
}

impl fmt::Display for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (0..self.len).rev().try_for_each(|at| write!(f, "{}", self.bits >> at & 1))
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({self})")
    }
}

/// Error: a text is not a sequence of up to 64 zeros and ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a row of up to 64 zeros and ones")]
pub struct NotBits;

impl FromStr for Payload {
    type Err = NotBits;

    fn from_str(text: &str) -> Result<Payload, NotBits> {
        if text.len() > 64 || text.bytes().any(|byte| byte != b'0' && byte != b'1') {
            return Err(NotBits);
        }
        let bits = text.bytes().fold(0, |bits, byte| bits << 1 | u64::from(byte - b'0'));
        Ok(Payload { bits, len: text.len() as u8 })
    }
}

/// Reads fields from the front of a payload.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    bits: u64,
    left: u8,
}

impl Reader {
    pub(crate) fn new(payload: Payload) -> Reader {
        Reader { bits: payload.bits, left: payload.len }
    }

    /// The next `width` bits (at most 32); zeros after the end of the payload.
    pub(crate) fn take(&mut self, width: u32) -> u32 {
        (0..width).fold(0, |value, _| {
            let bit = match self.left.checked_sub(1) {
                Some(left) => {
                    self.left = left;
                    self.bits >> left & 1
                }
                None => 0,
            };
            value << 1 | bit as u32
        })
    }

    /// The next bit.
    pub(crate) fn flag(&mut self) -> bool {
        self.take(1) == 1
    }

    /// The next field of at most 8 bits.
    pub(crate) fn small(&mut self, width: u32) -> u8 {
        self.take(width) as u8
    }

    /// Whether all remaining bits are zero.
    pub(crate) fn rest_is_zero(&self) -> bool {
        self.left == 0 || self.bits << (64 - u32::from(self.left)) == 0
    }
}

/// Concatenates fields.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writer {
    bits: u64,
    len: u32,
}

impl Writer {
    /// Appends the `width` lowest bits of `value`.
    pub(crate) fn put(&mut self, value: impl Into<u32>, width: u32) -> &mut Writer {
        let value = u64::from(value.into()) & ((1 << width) - 1);
        self.bits = self.bits << width | value;
        self.len += width;
        self
    }

    /// All appended bits, padded with zeros to `len` bits.
    pub(crate) fn padded_to(&self, len: u8) -> Payload {
        let padding = u32::from(len).saturating_sub(self.len);
        Payload { bits: self.bits << padding, len: (self.len + padding) as u8 }
    }
}
