//! Common code of the two readers (all fields, and picks): number of repetitions of a part, and end of the part.

use std::fmt;

use super::{Extent, Inner, Kind, Part, Repeat};

/// Error: the layout does not fit the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The part; empty for the packet as a whole.
    pub part: &'static str,
    /// Offset of the part from the start of the payload (bytes).
    pub offset: usize,
    /// Kind of error.
    pub fault: MisfitFault,
}

/// Kind of error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MisfitFault {
    /// The part needs more bytes than are present.
    Short {
        /// Bytes needed.
        takes: usize,
        /// Bytes present.
        has: usize,
    },
    /// The part has a length field that is shorter than its fields or longer than the enclosing part.
    Length(u64),
    /// A count is larger than the space for its repetitions.
    Count(u64),
    /// This many bytes remain after the end of a verified layout.
    Left(usize),
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = if self.part.is_empty() { "packet" } else { self.part };
        write!(f, "{part} at byte {}: ", self.offset)?;
        match self.fault {
            MisfitFault::Short { takes, has } => write!(f, "takes {takes} bytes of {has}"),
            MisfitFault::Length(says) => write!(f, "contains an impossible length, {says}"),
            MisfitFault::Count(says) => write!(f, "contains the count {says}, more than fits"),
            MisfitFault::Left(left) => write!(f, "leaves {left} bytes"),
        }
    }
}

impl std::error::Error for Misfit {}

/// Maximum number of remaining bytes in a subpacket: subpackets start at multiples of four bytes.
pub(super) const PADDING: usize = 3;

/// A part of a packet during reading, with its enclosing parts.
#[derive(Clone, Copy)]
pub(super) struct Scope<'s, 'a> {
    pub part: &'static Part,
    /// Bytes from the start of the part to the end of the enclosing part.
    pub bytes: &'a [u8],
    pub outer: Option<&'s Scope<'s, 'a>>,
}

impl Scope<'_, '_> {
    /// The number in a field of this part or of an enclosing part.
    pub fn number(&self, name: &'static str) -> u64 {
        let mut scope = self;
        loop {
            if let Some(field) = scope.part.fields.iter().find(|field| field.name == name) {
                return field.raw(scope.bytes);
            }
            scope = scope.outer.unwrap_or_else(|| panic!("the tables' test found the field {name}"));
        }
    }

    /// The index of the subpacket kind with the id and version in the fields `by`; this id and version as an error if
    /// there is no such kind.
    pub fn choose(&self, by: [&'static str; 2], kinds: &'static [Kind]) -> Result<usize, (u64, u64)> {
        let (id, version) = (self.number(by[0]), self.number(by[1]));
        kinds.iter().position(|kind| kind.id == id && kind.versions.contains(&version)).ok_or((id, version))
    }
}

/// A piece of the payload.
#[derive(Clone, Copy)]
pub(super) struct Span<'a> {
    pub payload: &'a [u8],
    pub at: usize,
    pub end: usize,
}

impl<'a> Span<'a> {
    pub fn bytes(self) -> &'a [u8] {
        &self.payload[self.at..self.end]
    }

    fn misfit(self, part: &'static Part, fault: MisfitFault) -> Misfit {
        Misfit { part: part.name, offset: self.at, fault }
    }
}

/// Number of repetitions present as records, and number of unused repetitions. `None` if the records themselves, or the
/// end of the enclosing part, determine the number.
fn times(
    part: &'static Part,
    outer: Option<&Scope<'_, '_>>,
    span: Span<'_>,
) -> Result<Option<(usize, usize)>, Misfit> {
    let says = |name| outer.map_or(0, |outer| outer.number(name));
    Ok(match part.repeat {
        Repeat::Once => Some((1, 0)),
        Repeat::Times(times) => Some((times, 0)),
        Repeat::If(name, value) => Some((usize::from(says(name) == value), 0)),
        Repeat::ToEnd | Repeat::While(_) => None,
        Repeat::Either(first, second) => match (says(first), says(second)) {
            (0 | 255, 255) => Some((0, 0)),
            (0 | 255, count) | (count, _) => Some((usize::try_from(count).unwrap_or(usize::MAX), 0)),
        },
        Repeat::Ones(name) => Some((says(name).count_ones() as usize, 0)),
        // A repetition has at least one byte. Therefore more repetitions than bytes cannot fit.
        Repeat::Count(name) => Some((usize::try_from(says(name)).unwrap_or(usize::MAX), 0)),
        Repeat::Room(name, room) => match usize::try_from(says(name)) {
            Ok(count) if count <= room => Some((count, room - count)),
            _ => return Err(span.misfit(part, MisfitFault::Count(says(name)))),
        },
    })
}

/// The bytes of a part that is a run of bytes.
pub(super) fn run<'a>(
    part: &'static Part,
    outer: Option<&Scope<'_, '_>>,
    span: Span<'a>,
) -> Result<&'a [u8], Misfit> {
    let there = span.bytes();
    match times(part, outer, span)? {
        None => Ok(there),
        Some((takes, _)) => {
            there.get(..takes).ok_or(span.misfit(part, MisfitFault::Short { takes, has: there.len() }))
        }
    }
}

/// Visits the repetitions of a part that has fields; returns their end. `each` takes the scope of a repetition and the
/// span after its fields, and returns the end of its inner parts.
pub(super) fn records<'a>(
    part: &'static Part,
    outer: Option<&Scope<'_, 'a>>,
    mut span: Span<'a>,
    mut each: impl FnMut(&Scope<'_, 'a>, Span<'a>) -> Result<usize, Misfit>,
) -> Result<usize, Misfit> {
    let times = times(part, outer, span)?;
    let (mut done, mut goes_on) = (0, true);
    while match (part.repeat, times) {
        (_, Some((times, _))) => done < times,
        (Repeat::While(_), None) => goes_on,
        (_, None) => span.at < span.end,
    } {
        let bytes = span.bytes();
        if bytes.len() < part.size {
            return Err(span.misfit(part, MisfitFault::Short { takes: part.size, has: bytes.len() }));
        }
        let scope = Scope { part, bytes, outer };
        let stop = match part.extent {
            Extent::Own => None,
            Extent::Fixed(takes) if takes <= bytes.len() => Some(span.at + takes),
            Extent::Fixed(takes) => {
                return Err(span.misfit(part, MisfitFault::Short { takes, has: bytes.len() }));
            }
            Extent::Says(name) => {
                let says = scope.number(name);
                match usize::try_from(says) {
                    Ok(length) if length >= part.size && length <= bytes.len() => Some(span.at + length),
                    _ => return Err(span.misfit(part, MisfitFault::Length(says))),
                }
            }
        };
        let within = Span { at: span.at + part.size, end: stop.unwrap_or(span.end), ..span };
        let ended = each(&scope, within)?;
        if let Repeat::While(more) = part.repeat {
            goes_on = scope.number(more) == 1;
        }
        span.at = stop.unwrap_or(ended);
        done += 1;
    }
    let unused = times.map_or(0, |(_, unused)| unused);
    skip_fixed(part, unused, span)
}

/// Skips repetitions of constant size.
fn skip_fixed(part: &'static Part, times: usize, span: Span<'_>) -> Result<usize, Misfit> {
    if times == 0 {
        return Ok(span.at);
    }
    let size = part.fixed_size().expect("the tables' test found that what has room has a fixed size");
    let has = span.end - span.at;
    match times.checked_mul(size) {
        Some(takes) if takes <= has => Ok(span.at + takes),
        takes => Err(span.misfit(part, MisfitFault::Short { takes: takes.unwrap_or(usize::MAX), has })),
    }
}

/// Skips a part; reads only its counts.
pub(super) fn skip<'a>(
    part: &'static Part,
    fixed: Option<usize>,
    outer: Option<&Scope<'_, 'a>>,
    span: Span<'a>,
) -> Result<usize, Misfit> {
    if let Inner::Bytes = part.inner {
        return Ok(span.at + run(part, outer, span)?.len());
    }
    if let (Some(_), Some((times, unused))) = (fixed, times(part, outer, span)?) {
        return skip_fixed(part, times.saturating_add(unused), span);
    }
    records(part, outer, span, |scope, within| {
        let inner = match part.inner {
            Inner::Parts(inner) => inner,
            // A choice ends at the end of its part.
            Inner::Choice(..) | Inner::Bytes => return Ok(within.end),
        };
        skip_all(inner, scope, within)
    })
}

/// Skips consecutive parts.
fn skip_all<'a>(
    parts: &'static [Part],
    scope: &Scope<'_, 'a>,
    mut within: Span<'a>,
) -> Result<usize, Misfit> {
    for part in parts {
        within.at = skip(part, part.fixed_size(), Some(scope), within)?;
    }
    Ok(within.at)
}
