//! Layout grammar of log packets: the position of every field in a payload, as data.
//!
//! A [`Code`] is one kind of log packet. It has a [`Layout`] for each known version. A layout is a [`Part`]: fields at
//! fixed bit positions, then inner parts, which may repeat:
//!
//! ```text
//! 0xB173, version 36     root   version, num_records
//!                        └─ records × num_records      frame_num, subframe_num, num_rbs, …
//!                           └─ transport_blocks × num_transport_blocks_present, in room for two
//! ```
//!
//! Each table supports two ways to read a packet: [`read`](Code::read) returns all fields, and [`Pick`] reads only the
//! bits of a few fields. The tables are in [`log`](crate::log).

mod coded;
mod example;
mod field;
mod find;
mod pick;
mod read;
mod walk;
mod write;

#[cfg(test)]
mod tests;

use std::fmt;

pub use coded::Coded;
pub use field::{Cell, Field, Names, Shown, Unset, bytes, from_top, i8, i16, i32, u8, u16, u24, u32, u64};
pub use find::Leaf;
pub use pick::{MAX_FIELDS, PathError, Pick, Visited};
pub use read::{Record, Value};
pub use walk::{Misfit, MisfitFault};
pub use write::{Fill, Unwritable};

use crate::packet::LogCode;

/// How well a layout is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verified {
    /// Lengths of packets in real logs match to the byte, and values agree with the values that another decoder
    /// returns.
    Checked,
    /// Taken from public sources; no real log was available for verification.
    Read,
    /// Derived from indirect evidence.
    Guess,
}

/// Position of the version number of a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionAt {
    /// In the first byte.
    Byte,
    /// In the first four bytes: minor (u16), major (u16).
    Pair,
    /// No version number: there is only one layout, with version 0.
    Nowhere,
}

impl VersionAt {
    /// The version number in a payload; `None` if the payload is too short.
    pub(crate) fn read(self, payload: &[u8]) -> Option<Version> {
        match self {
            VersionAt::Byte => payload.first().map(|&number| Version::Single(number)),
            VersionAt::Nowhere => Some(Version::Single(0)),
            VersionAt::Pair => payload.first_chunk().map(|&[minor, minor_high, major, major_high]| {
                Version::Pair(
                    u16::from_le_bytes([major, major_high]),
                    u16::from_le_bytes([minor, minor_high]),
                )
            }),
        }
    }
}

/// Version of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// A single number.
    Single(u8),
    /// Major and minor.
    Pair(u16, u16),
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Version::Single(number) => write!(f, "{number}"),
            Version::Pair(major, minor) => write!(f, "{major}.{minor}"),
        }
    }
}

/// One kind of log packet.
#[derive(Debug)]
pub struct Code {
    /// Log code.
    pub code: LogCode,
    /// Name of the packet.
    pub name: &'static str,
    /// Position of the version number in the payload.
    pub version: VersionAt,
    /// Layouts of the packet's versions.
    pub layouts: &'static [Layout],
}

/// The positions of fields in one or more versions of a code.
#[derive(Debug)]
pub struct Layout {
    /// The versions with this layout.
    pub versions: &'static [Version],
    /// How well the layout is verified.
    pub verified: Verified,
    /// Root part: the whole payload, including its version number.
    pub root: Part,
}

/// A piece of a payload: fields, then inner parts.
#[derive(Debug)]
pub struct Part {
    /// Name of the part. Fields of a part without a name belong to the enclosing part.
    pub name: &'static str,
    /// Size of the part's fields, which precede the inner parts (bytes).
    pub size: usize,
    /// Fields.
    pub fields: &'static [Field],
    /// Number of repetitions.
    pub repeat: Repeat,
    /// End of a repetition.
    pub extent: Extent,
    /// Content after the part's fields.
    pub inner: Inner,
    /// Format of a run of bytes that can be decoded further.
    pub coded: Option<Coded>,
}

/// Number of repetitions of a part. Counts refer to fields of the enclosing parts by name.
#[derive(Clone, Copy, Debug)]
pub enum Repeat {
    /// One time.
    Once,
    /// The value of this field.
    Count(&'static str),
    /// The value of this field. The payload has space for a constant number of repetitions, the second value; the bytes
    /// of unused repetitions are present without meaning.
    Room(&'static str, usize),
    /// Always this many times.
    Times(usize),
    /// Up to the end of the enclosing part.
    ToEnd,
    /// One time if the field has this value, otherwise zero times.
    If(&'static str, u64),
    /// One time, and again as long as this field of the part itself is 1.
    While(&'static str),
    /// The value of the first field. If that value is 0 or 255: the value of the second field, unless this second value
    /// is 255.
    Either(&'static str, &'static str),
    /// One time for each bit set in the field.
    Ones(&'static str),
}

/// End of one repetition of a part.
#[derive(Clone, Copy, Debug)]
pub enum Extent {
    /// The end of the inner parts.
    Own,
    /// This number of bytes after the start of the repetition, independent of the size of the inner parts.
    Fixed(usize),
    /// The number of bytes in this field of the part, counted from its start.
    Says(&'static str),
}

/// Content after a part's fields.
#[derive(Clone, Copy, Debug)]
pub enum Inner {
    /// These parts in sequence.
    Parts(&'static [Part]),
    /// A subpacket. The values of two fields of the part, an id and a version, select the subpacket.
    Choice([&'static str; 2], &'static [Kind]),
    /// No inner parts: the part is a run of bytes, one byte per repetition.
    Bytes,
}

/// The content of a subpacket with a certain id and version.
#[derive(Debug)]
pub struct Kind {
    /// Subpacket id.
    pub id: u64,
    /// The versions with this content.
    pub versions: &'static [u64],
    /// How well the content's layout is verified.
    pub verified: Verified,
    /// Parts of the subpacket.
    pub parts: &'static [Part],
}

impl Part {
    /// A part of `size` bytes that is present once.
    pub const fn once(name: &'static str, size: usize, fields: &'static [Field]) -> Part {
        Part {
            name,
            size,
            fields,
            repeat: Repeat::Once,
            extent: Extent::Own,
            inner: Inner::Parts(&[]),
            coded: None,
        }
    }

    /// The whole payload: its first `size` bytes, which contain the version, and the parts that follow.
    pub const fn root(size: usize, fields: &'static [Field], inner: &'static [Part]) -> Part {
        Part::once("", size, fields).of(inner)
    }

    /// Records of `size` bytes each; their number is the value of the field `count` of the enclosing part.
    pub const fn counted(
        name: &'static str,
        count: &'static str,
        size: usize,
        fields: &'static [Field],
    ) -> Part {
        Part { repeat: Repeat::Count(count), ..Part::once(name, size, fields) }
    }

    /// A run of bytes; its length is the value of the field `length` of the enclosing part.
    pub const fn message(name: &'static str, length: &'static str) -> Part {
        Part { inner: Inner::Bytes, ..Part::counted(name, length, 1, &[]) }
    }

    /// The remaining bytes, whose meaning is known; `name` is the name of the part.
    pub const fn to_end(name: &'static str) -> Part {
        Part { repeat: Repeat::ToEnd, inner: Inner::Bytes, ..Part::once(name, 1, &[]) }
    }

    /// The remaining bytes, whose layout is unknown.
    pub const fn rest() -> Part {
        Part::to_end("")
    }

    /// Returns this part with the given repetition.
    pub const fn repeated(self, repeat: Repeat) -> Part {
        Part { repeat, ..self }
    }

    /// Returns this part with the given inner parts.
    pub const fn of(self, inner: &'static [Part]) -> Part {
        Part { inner: Inner::Parts(inner), ..self }
    }

    /// Returns this run of bytes, with a format for further decoding.
    pub const fn coded(self, coded: Coded) -> Part {
        Part { coded: Some(coded), ..self }
    }

    /// Returns this part with the given end.
    pub const fn ends(self, extent: Extent) -> Part {
        Part { extent, ..self }
    }

    /// Size of one repetition, if it is constant (bytes).
    fn fixed_size(&self) -> Option<usize> {
        match (self.extent, self.inner) {
            (Extent::Fixed(bytes), _) => Some(bytes),
            (Extent::Own, Inner::Parts(inner)) => inner.iter().try_fold(self.size, |size, part| {
                let times = match part.repeat {
                    Repeat::Once => 1,
                    Repeat::Times(times) | Repeat::Room(_, times) => times,
                    Repeat::Count(_)
                    | Repeat::ToEnd
                    | Repeat::If(..)
                    | Repeat::While(_)
                    | Repeat::Either(..)
                    | Repeat::Ones(_) => return None,
                };
                Some(size + times * part.fixed_size()?)
            }),
            (Extent::Own, Inner::Bytes) => Some(1),
            _ => None,
        }
    }
}

/// A completely decoded packet.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded<'a> {
    /// Version of the packet.
    pub version: Version,
    /// How well the layouts of the packet and of its subpackets are verified.
    pub verified: Verified,
    /// Decoded fields of the packet.
    pub fields: Record<'a>,
    /// Number of bytes at the end of the packet that an unverified layout does not cover.
    pub left: usize,
    /// Ids and versions of subpackets without a layout. Their bytes are in their records as `unread`.
    pub unknown: Vec<(u64, u64)>,
}

/// Reason why a packet cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// There is no layout for this code.
    Code(LogCode),
    /// The payload is too short to hold a version.
    Empty(LogCode),
    /// There is no layout for this version.
    Version(LogCode, Version),
    /// The layout does not fit the payload's bytes.
    Misfit(LogCode, Version, Misfit),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreadable::Code(code) => write!(f, "{code}: unknown code"),
            Unreadable::Empty(code) => write!(f, "{code}: no version: the packet is empty"),
            Unreadable::Version(code, version) => write!(f, "{code}: unknown version {version}"),
            Unreadable::Misfit(code, version, misfit) => write!(f, "{code} version {version}: {misfit}"),
        }
    }
}

impl std::error::Error for Unreadable {}

impl Code {
    /// The version number in a packet of this code.
    ///
    /// # Errors
    /// If the packet is too short.
    pub fn version(&self, payload: &[u8]) -> Result<Version, Unreadable> {
        self.version.read(payload).ok_or(Unreadable::Empty(self.code))
    }

    /// The layout of a version, if there is one.
    pub fn layout(&self, version: Version) -> Option<&'static Layout> {
        self.layouts.iter().find(|layout| layout.versions.contains(&version))
    }

    /// Reads all fields of a packet of this code.
    ///
    /// # Errors
    /// If there is no layout for its version, or if the layout does not fit the bytes: bytes of a part are missing, a
    /// count or length is impossible, or bytes remain after the end of a verified layout.
    pub fn read<'a>(&self, payload: &'a [u8]) -> Result<Decoded<'a>, Unreadable> {
        let version = self.version(payload)?;
        let layout = self.layout(version).ok_or(Unreadable::Version(self.code, version))?;
        read::whole(layout, version, payload).map_err(|misfit| Unreadable::Misfit(self.code, version, misfit))
    }
}
