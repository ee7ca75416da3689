//! The grammar of log packets: the position of every field in a payload, as data.
//!
//! A [`Code`] is one kind of log packet. It has a [`Layout`] for each version that is known. A layout is a [`Part`]:
//! fields at fixed bits, then inner parts, which may repeat:
//!
//! ```text
//! 0xB173, version 36     root   version, num_records
//!                        └─ records × num_records      frame_num, subframe_num, num_rbs, …
//!                           └─ transport_blocks × num_transport_blocks_present, in room for two
//! ```
//!
//! One table gives two ways to read a packet: [`read`](Code::read) gives all of it, [`Pick`] only the bits of a few
//! fields. The tables are in [`log`](crate::log).

mod coded;
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
pub use pick::{MOST, PathError, Pick, Visited};
pub use read::{Record, Value};
pub use walk::{Misfit, MisfitFault};
pub use write::{Fill, Unwritable};

use crate::packet::LogCode;

/// How well a layout is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verified {
    /// Packets of real logs have its length to the byte, and its values agree with another decoder's.
    Checked,
    /// Read from public sources; no real log was available to prove it.
    Read,
    /// Put together from hints.
    Guess,
}

/// Where a code's version is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionAt {
    /// In the first byte.
    Byte,
    /// In the first four bytes: minor (u16), major (u16).
    Pair,
    /// Nowhere: there is only one layout, with version 0.
    Nowhere,
}

impl VersionAt {
    /// The version that a payload claims; `None` if the payload is too short.
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

/// A version of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// A number.
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
    /// Its number.
    pub code: LogCode,
    /// Its name.
    pub name: &'static str,
    /// Where its version is.
    pub version: VersionAt,
    /// Its layouts.
    pub layouts: &'static [Layout],
}

/// The positions of fields in some versions of a code.
#[derive(Debug)]
pub struct Layout {
    /// The versions with this layout.
    pub versions: &'static [Version],
    /// How well it is known.
    pub verified: Verified,
    /// The whole payload, from its version on.
    pub root: Part,
}

/// A piece of a payload: fields, then inner parts.
#[derive(Debug)]
pub struct Part {
    /// Its name. Without a name, its fields belong to the part around it.
    pub name: &'static str,
    /// Bytes of its fields, which come before the inner parts.
    pub size: usize,
    /// Its fields.
    pub fields: &'static [Field],
    /// How often it comes.
    pub repeat: Repeat,
    /// Where it ends.
    pub extent: Extent,
    /// What comes after its fields.
    pub inner: Inner,
    /// What it is, if it is a run of bytes that can be read further.
    pub coded: Option<Coded>,
}

/// How often a part comes. Counts are given by names of fields in the parts around it.
#[derive(Clone, Copy, Debug)]
pub enum Repeat {
    /// One time.
    Once,
    /// As often as the field says.
    Count(&'static str),
    /// As often as the field says, with room for this many; the bytes of the unused room are there and mean nothing.
    Room(&'static str, usize),
    /// Always this many times.
    Times(usize),
    /// To the end of the part around it.
    ToEnd,
    /// One time if the field has this value, otherwise not at all.
    If(&'static str, u64),
    /// One time, and again as long as this field in the part itself is 1.
    While(&'static str),
    /// As often as the first field says. If that is 0 or 255, as the second says, if that is not 255.
    Either(&'static str, &'static str),
    /// One time for each bit that is set in the field.
    Ones(&'static str),
}

/// Where one repetition of a part ends.
#[derive(Clone, Copy, Debug)]
pub enum Extent {
    /// After the inner parts.
    Own,
    /// This many bytes after its begin, whatever the inner parts take.
    Fixed(usize),
    /// After as many bytes as this field of the part says.
    Says(&'static str),
}

/// What comes after a part's fields.
#[derive(Clone, Copy, Debug)]
pub enum Inner {
    /// These parts, one after the other.
    Parts(&'static [Part]),
    /// A subpacket. The values of two of the part's fields, an id and a version, say which.
    Choice([&'static str; 2], &'static [Kind]),
    /// Nothing: the part is a run of bytes, and its repetitions are the bytes.
    Bytes,
}

/// The content of a subpacket with a certain id and version.
#[derive(Debug)]
pub struct Kind {
    /// Its id.
    pub id: u64,
    /// The versions with this content.
    pub versions: &'static [u64],
    /// How well it is known.
    pub verified: Verified,
    /// Its content.
    pub parts: &'static [Part],
}

impl Part {
    /// One stretch of `size` bytes.
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

    /// The whole payload: its first `size` bytes, which hold the version, and the parts that follow.
    pub const fn root(size: usize, fields: &'static [Field], inner: &'static [Part]) -> Part {
        Part::once("", size, fields).of(inner)
    }

    /// Records of `size` bytes each, as many as the field `count` around them says.
    pub const fn counted(
        name: &'static str,
        count: &'static str,
        size: usize,
        fields: &'static [Field],
    ) -> Part {
        Part { repeat: Repeat::Count(count), ..Part::once(name, size, fields) }
    }

    /// A run of bytes, as many as the field `length` around it says.
    pub const fn message(name: &'static str, length: &'static str) -> Part {
        Part { inner: Inner::Bytes, ..Part::counted(name, length, 1, &[]) }
    }

    /// The remaining bytes, which have a meaning; `name` tells which.
    pub const fn to_end(name: &'static str) -> Part {
        Part { repeat: Repeat::ToEnd, inner: Inner::Bytes, ..Part::once(name, 1, &[]) }
    }

    /// The remaining bytes, of which no layout is known.
    pub const fn rest() -> Part {
        Part::to_end("")
    }

    /// This part with this repetition.
    pub const fn repeated(self, repeat: Repeat) -> Part {
        Part { repeat, ..self }
    }

    /// This part with these inner parts.
    pub const fn of(self, inner: &'static [Part]) -> Part {
        Part { inner: Inner::Parts(inner), ..self }
    }

    /// This run of bytes, read further.
    pub const fn coded(self, coded: Coded) -> Part {
        Part { coded: Some(coded), ..self }
    }

    /// This part with this end.
    pub const fn ends(self, extent: Extent) -> Part {
        Part { extent, ..self }
    }

    /// Bytes of one repetition, if they are always the same.
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

/// A packet, read as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded<'a> {
    /// Which version it is.
    pub version: Version,
    /// How well the layout and those of the subpackets in it are known.
    pub verified: Verified,
    /// Its content.
    pub fields: Record<'a>,
    /// Bytes at the end of the packet about which an unchecked layout says nothing.
    pub left: usize,
    /// Ids and versions of subpackets without a layout. Their bytes are in their records as `unread`.
    pub unknown: Vec<(u64, u64)>,
}

/// Why a packet cannot be read.
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
    /// The version that a packet of this code claims.
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

    /// Reads all of a packet of this code.
    ///
    /// # Errors
    /// If there is no layout of its version, or if the layout does not fit the bytes: bytes of a part are missing, a
    /// count or length is impossible, or bytes are left where a checked layout ends.
    pub fn read<'a>(&self, payload: &'a [u8]) -> Result<Decoded<'a>, Unreadable> {
        let version = self.version(payload)?;
        let layout = self.layout(version).ok_or(Unreadable::Version(self.code, version))?;
        read::whole(layout, version, payload).map_err(|misfit| Unreadable::Misfit(self.code, version, misfit))
    }
}
