//! Fields: a number of bits in a part, and the interpretation of their value.

/// Names of a field's values, or of bits. A value without a name is unknown: it counts as absent.
pub type Names = &'static [(u64, &'static str)];

/// A field of a part.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Name.
    pub name: &'static str,
    /// Position of the lowest bit, counted from the lowest bit of the part's first byte: all numbers are little-endian.
    pub bit: usize,
    /// Number of bits: at most 64, or any number of whole bytes.
    pub width: usize,
    /// Whether the highest bit of the number is a sign.
    pub signed: bool,
    /// Whether the field has its highest bit first, as in messages of the radio interface. Then `bit` is the position
    /// of the highest bit, counted from the highest bit of the part's first byte.
    pub is_from_top: bool,
    /// Interpretation of the number.
    pub shown: Shown,
    /// Bits of the part that mark the field's value as unknown.
    pub unset: Option<Unset>,
}

/// Bits of a part, and the number in them that marks a value as unknown.
#[derive(Clone, Copy, Debug)]
pub struct Unset {
    /// Position of the lowest bit, counted as for a field.
    pub bit: usize,
    /// Number of bits.
    pub width: usize,
    /// The number that marks the value as unknown.
    pub number: u64,
}

/// Interpretation of a field's number.
#[derive(Clone, Copy, Debug)]
pub enum Shown {
    /// The number itself.
    Number,
    /// `number / divisor + offset`.
    Scaled {
        /// Steps of the number per unit.
        divisor: f64,
        /// Offset that is added after the division.
        offset: f64,
    },
    /// A power in dBm or dB with seven fractional bits, starting at −256; 0 means no value.
    Power,
    /// The name of the number in a list; no value if the list does not contain the number.
    Named(Names),
    /// The value for the number in a list, which may be no value; the number itself if the list does not contain it.
    Meant(&'static [(u64, Option<f64>)]),
    /// Bits that are not a number, shown in hexadecimal.
    Mask,
    /// Bits with one meaning each, named by bit number; bits without a name are shown by their number.
    Flags(Names),
    /// Uninterpreted bytes.
    Bytes,
}

/// Value of a field or a run of bytes in one packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// No value: the packet's layout has no such field at this position, or the modem does not know the value.
    Absent,
    /// A number, the number of a named value, or a mask.
    Unsigned(u64),
    /// A number that can be negative.
    Signed(i64),
    /// A scaled number.
    Real(f64),
    /// Bytes.
    Bytes(&'a [u8]),
}

impl Cell<'_> {
    /// Returns the cell as a number, if the cell is a number.
    pub fn number(self) -> Option<f64> {
        match self {
            // Among the numbers in log packets only byte counters have more than 53 bits, and no byte counter has
            // reached such a value.
            Cell::Unsigned(number) => Some(number as f64),
            Cell::Signed(number) => Some(number as f64),
            Cell::Real(number) => Some(number),
            Cell::Absent | Cell::Bytes(_) => None,
        }
    }

    /// Returns the cell as a number without sign or scale, if the cell is such a number.
    pub fn unsigned(self) -> Option<u64> {
        match self {
            Cell::Unsigned(number) => Some(number),
            _ => None,
        }
    }
}

const fn whole(name: &'static str, byte: usize, width: usize) -> Field {
    Field { name, bit: 8 * byte, width, signed: false, is_from_top: false, shown: Shown::Number, unset: None }
}

/// A field of one byte at offset `byte` of its part.
pub const fn u8(name: &'static str, byte: usize) -> Field {
    whole(name, byte, 8)
}

/// A field of two bytes.
pub const fn u16(name: &'static str, byte: usize) -> Field {
    whole(name, byte, 16)
}

/// A field of three bytes.
pub const fn u24(name: &'static str, byte: usize) -> Field {
    whole(name, byte, 24)
}

/// A field of four bytes.
pub const fn u32(name: &'static str, byte: usize) -> Field {
    whole(name, byte, 32)
}

/// A field of eight bytes.
pub const fn u64(name: &'static str, byte: usize) -> Field {
    whole(name, byte, 64)
}

/// A field of one byte with sign.
pub const fn i8(name: &'static str, byte: usize) -> Field {
    u8(name, byte).signed()
}

/// A field of two bytes with sign.
pub const fn i16(name: &'static str, byte: usize) -> Field {
    u16(name, byte).signed()
}

/// A field of four bytes with sign.
pub const fn i32(name: &'static str, byte: usize) -> Field {
    u32(name, byte).signed()
}

/// A field of `count` uninterpreted bytes.
pub const fn bytes(name: &'static str, byte: usize, count: usize) -> Field {
    Field { shown: Shown::Bytes, ..whole(name, byte, 8 * count) }
}

/// A field of `width` bits, at most 56, with the highest bit first. The highest bit is `bit` bits behind the highest
/// bit of the part's first byte.
pub const fn from_top(name: &'static str, bit: usize, width: usize) -> Field {
    Field { name, bit, width, signed: false, is_from_top: true, shown: Shown::Number, unset: None }
}

impl Field {
    /// Returns a field of the bits from `low` to `high` of this field, both included. These bits may extend beyond this
    /// field.
    pub const fn bits(self, low: usize, high: usize) -> Field {
        Field { bit: self.bit + low, width: high - low + 1, ..self }
    }

    /// Returns this field with its highest bit as a sign.
    pub const fn signed(self) -> Field {
        Field { signed: true, ..self }
    }

    /// Returns this field with a scale: `number / divisor + offset`.
    pub const fn scaled(self, divisor: f64, offset: f64) -> Field {
        Field { shown: Shown::Scaled { divisor, offset }, ..self }
    }

    /// Returns this field as a [power](Shown::Power).
    pub const fn power(self) -> Field {
        Field { shown: Shown::Power, ..self }
    }

    /// Returns this field with names for its values.
    pub const fn named(self, names: Names) -> Field {
        Field { shown: Shown::Named(names), ..self }
    }

    /// Returns this field with values from a [list](Shown::Meant).
    pub const fn meant(self, list: &'static [(u64, Option<f64>)]) -> Field {
        Field { shown: Shown::Meant(list), ..self }
    }

    /// Returns this field as [flags](Shown::Flags).
    pub const fn flags(self, names: Names) -> Field {
        Field { shown: Shown::Flags(names), ..self }
    }

    /// Returns this field; it has no value if the bits of `other` equal `number`.
    pub const fn unset_where(self, other: Field, number: u64) -> Field {
        Field { unset: Some(Unset { bit: other.bit, width: other.width, number }), ..self }
    }

    /// Returns this field as a hexadecimal mask.
    pub const fn mask(self) -> Field {
        Field { shown: Shown::Mask, ..self }
    }

    /// The field's bits, in a complete part at the start of `part`.
    #[inline(always)]
    pub(super) fn raw(&self, part: &[u8]) -> u64 {
        if self.is_from_top {
            return number_from_top(part, self.bit, self.width);
        }
        number_at(part, self.bit, self.width)
    }

    /// The field's value, in a complete part at the start of `part`.
    #[inline(always)]
    pub(super) fn cell<'a>(&self, part: &'a [u8]) -> Cell<'a> {
        if let Some(unset) = self.unset
            && number_at(part, unset.bit, unset.width) == unset.number
        {
            return Cell::Absent;
        }
        if matches!(self.shown, Shown::Bytes) {
            let first = self.bit / 8;
            return Cell::Bytes(part.get(first..first + self.width / 8).unwrap_or_default());
        }
        let raw = self.raw(part);
        let unused = 64 - self.width;
        let signed = (raw << unused) as i64 >> unused;
        match self.shown {
            Shown::Scaled { divisor, offset } => {
                let number = if self.signed { signed as f64 } else { raw as f64 };
                // Rounds only once, so that the result is the number nearest to, for example, 9.1.
                Cell::Real((number + offset * divisor) / divisor)
            }
            Shown::Meant(list) => match list.iter().find(|(number, _)| *number == raw) {
                Some((_, meant)) => meant.map_or(Cell::Absent, Cell::Real),
                None => Cell::Real(raw as f64),
            },
            Shown::Power if raw == 0 => Cell::Absent,
            Shown::Power => Cell::Real((raw >> 7 & 255) as f64 - 256.0 + (raw & 127) as f64 / 128.0),
            _ if self.signed => Cell::Signed(signed),
            _ => Cell::Unsigned(raw),
        }
    }
}

/// The number in `width` bits from `bit` on, the highest bit first. Few fields have this order. The function is not
/// inlined, to keep the common path short.
#[inline(never)]
fn number_from_top(part: &[u8], bit: usize, width: usize) -> u64 {
    let (first, shift) = (bit / 8, bit % 8);
    let word =
        (first..first + 8).fold(0_u64, |word, at| word << 8 | u64::from(part.get(at).copied().unwrap_or(0)));
    word << shift >> (64 - width)
}

/// The number in `width` bits from `bit` on.
#[inline(always)]
fn number_at(part: &[u8], bit: usize, width: usize) -> u64 {
    let (first, shift) = (bit / 8, bit % 8);
    let word = match part.get(first..).and_then(<[u8]>::first_chunk) {
        Some(&word) => u64::from_le_bytes(word),
        None => {
            let mut word = [0; 8];
            let there = part.get(first..).unwrap_or_default();
            word[..there.len()].copy_from_slice(there);
            u64::from_le_bytes(word)
        }
    };
    let mut number = word >> shift;
    if shift + width > 64 {
        number |= part.get(first + 8).map_or(0, |&byte| u64::from(byte) << (64 - shift));
    }
    number & (u64::MAX >> (64 - width))
}
