//! Fields: a number of bits in a part, and what their value means.

/// Names of a field's values, or of bits. A value without a name is not known: it counts as no value.
pub type Names = &'static [(u64, &'static str)];

/// A field of a part.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Its lowest bit, counted from the lowest bit of the part's first byte: all numbers are little-endian.
    pub bit: usize,
    /// How many bits it has: at most 64, or any number of whole bytes.
    pub width: usize,
    /// Whether its highest bit is a sign.
    pub signed: bool,
    /// Whether its highest bit comes first: then `bit` is that of its highest bit, counted from the highest bit of the
    /// part's first byte, as messages that went over the air have it.
    pub is_from_top: bool,
    /// What its number means.
    pub shown: Shown,
    /// Bits by which the part says that it does not know the field's value.
    pub unset: Option<Unset>,
}

/// Bits of a part, and the number that they have where a value is not known.
#[derive(Clone, Copy, Debug)]
pub struct Unset {
    /// The lowest bit, counted as a field's.
    pub bit: usize,
    /// How many bits there are.
    pub width: usize,
    /// The number.
    pub number: u64,
}

/// What a field's number means.
#[derive(Clone, Copy, Debug)]
pub enum Shown {
    /// Itself.
    Number,
    /// `number / divisor + offset`.
    Scaled {
        /// Steps of the number per unit.
        divisor: f64,
        /// What is added after the division.
        offset: f64,
    },
    /// A power in dBm or dB with seven fractional bits, from −256 on; 0 means no value.
    Power,
    /// One of a list, or no value.
    Named(Names),
    /// The number that a list has for it, or no value; itself if the list does not have it.
    Meant(&'static [(u64, Option<f64>)]),
    /// Bits that are not a number, shown in hexadecimal.
    Mask,
    /// Bits with a meaning each, by the bit's number; those without a name are shown by their number.
    Flags(Names),
    /// Bytes as they are.
    Bytes,
}

/// What a field or a run of bytes says in one packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// Nothing: the packet's layout has no such field there, or the modem does not know the value.
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
    /// As a number, if the cell is one.
    pub fn number(self) -> Option<f64> {
        match self {
            // Of the numbers in log packets only byte counters have more than 53 bits, and none counts so far.
            Cell::Unsigned(number) => Some(number as f64),
            Cell::Signed(number) => Some(number as f64),
            Cell::Real(number) => Some(number),
            Cell::Absent | Cell::Bytes(_) => None,
        }
    }

    /// As a number without sign or scale, if the cell is one.
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

/// A byte, `byte` bytes into its part.
pub const fn u8(name: &'static str, byte: usize) -> Field {
    whole(name, byte, 8)
}

/// Two bytes.
pub const fn u16(name: &'static str, byte: usize) -> Field {
    whole(name, byte, 16)
}

/// Three bytes.
pub const fn u24(name: &'static str, byte: usize) -> Field {
    whole(name, byte, 24)
}

/// Four bytes.
pub const fn u32(name: &'static str, byte: usize) -> Field {
    whole(name, byte, 32)
}

/// Eight bytes.
pub const fn u64(name: &'static str, byte: usize) -> Field {
    whole(name, byte, 64)
}

/// A byte with sign.
pub const fn i8(name: &'static str, byte: usize) -> Field {
    u8(name, byte).signed()
}

/// Two bytes with sign.
pub const fn i16(name: &'static str, byte: usize) -> Field {
    u16(name, byte).signed()
}

/// Four bytes with sign.
pub const fn i32(name: &'static str, byte: usize) -> Field {
    u32(name, byte).signed()
}

/// `count` bytes as they are.
pub const fn bytes(name: &'static str, byte: usize, count: usize) -> Field {
    Field { shown: Shown::Bytes, ..whole(name, byte, 8 * count) }
}

/// `width` bits, at most 56, of which the highest comes `bit` bits behind the highest of the part's first byte.
pub const fn from_top(name: &'static str, bit: usize, width: usize) -> Field {
    Field { name, bit, width, signed: false, is_from_top: true, shown: Shown::Number, unset: None }
}

impl Field {
    /// Only the bits from `low` to `high` of this field, both included. They may reach beyond it.
    pub const fn bits(self, low: usize, high: usize) -> Field {
        Field { bit: self.bit + low, width: high - low + 1, ..self }
    }

    /// The same with its highest bit as a sign.
    pub const fn signed(self) -> Field {
        Field { signed: true, ..self }
    }

    /// The same scaled: `number / divisor + offset`.
    pub const fn scaled(self, divisor: f64, offset: f64) -> Field {
        Field { shown: Shown::Scaled { divisor, offset }, ..self }
    }

    /// The same as a [power](Shown::Power).
    pub const fn power(self) -> Field {
        Field { shown: Shown::Power, ..self }
    }

    /// The same with names.
    pub const fn named(self, names: Names) -> Field {
        Field { shown: Shown::Named(names), ..self }
    }

    /// The same with numbers of a [list](Shown::Meant).
    pub const fn meant(self, list: &'static [(u64, Option<f64>)]) -> Field {
        Field { shown: Shown::Meant(list), ..self }
    }

    /// The same as [flags](Shown::Flags).
    pub const fn flags(self, names: Names) -> Field {
        Field { shown: Shown::Flags(names), ..self }
    }

    /// The same, but without a value where the bits of `other` are this number.
    pub const fn unset_where(self, other: Field, number: u64) -> Field {
        Field { unset: Some(Unset { bit: other.bit, width: other.width, number }), ..self }
    }

    /// The same in hexadecimal.
    pub const fn mask(self) -> Field {
        Field { shown: Shown::Mask, ..self }
    }

    /// The field's bits, in a part that begins where `part` begins and is complete.
    #[inline(always)]
    pub(super) fn raw(&self, part: &[u8]) -> u64 {
        if self.is_from_top {
            return number_from_top(part, self.bit, self.width);
        }
        number_at(part, self.bit, self.width)
    }

    /// What the field says, in a part that begins where `part` begins and is complete.
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
                // One rounding only, so that 9.1 is the number that is written so.
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

/// The number of `width` bits from `bit` on, the highest bit first. Few fields are so: it is kept out of the way of others.
#[inline(never)]
fn number_from_top(part: &[u8], bit: usize, width: usize) -> u64 {
    let (first, shift) = (bit / 8, bit % 8);
    let word =
        (first..first + 8).fold(0_u64, |word, at| word << 8 | u64::from(part.get(at).copied().unwrap_or(0)));
    word << shift >> (64 - width)
}

/// The number of `width` bits from `bit` on.
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
