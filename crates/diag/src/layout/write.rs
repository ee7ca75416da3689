//! Writer: the inverse of reading. The same tables convert values to bytes.

use std::fmt;

use super::{Code, Extent, Field, Inner, Part, Repeat, Shown, Version, VersionAt};

/// The values for the fields of a part; bits of other fields are 0. Counts and lengths are computed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fill(Vec<(&'static str, Put)>);

#[derive(Clone, Debug, PartialEq)]
enum Put {
    Number(u64),
    Real(f64),
    Bytes(Vec<u8>),
    Parts(Vec<Fill>),
}

impl Fill {
    /// An empty set of values.
    pub fn new() -> Fill {
        Fill::default()
    }

    /// Adds the raw number of a field, without scale or name. For a negative number, pass its two's complement; the low
    /// bits are used.
    pub fn number(self, name: &'static str, number: impl Into<u64>) -> Fill {
        self.with(name, Put::Number(number.into()))
    }

    /// Adds a number for a scaled field; the nearest representable number is written.
    pub fn real(self, name: &'static str, number: f64) -> Fill {
        self.with(name, Put::Real(number))
    }

    /// Adds bytes for a field or a run of bytes.
    pub fn bytes(self, name: &'static str, bytes: &[u8]) -> Fill {
        self.with(name, Put::Bytes(bytes.to_vec()))
    }

    /// Adds repetitions of an inner part.
    pub fn parts(self, name: &'static str, parts: Vec<Fill>) -> Fill {
        self.with(name, Put::Parts(parts))
    }

    fn with(mut self, name: &'static str, put: Put) -> Fill {
        self.0.push((name, put));
        self
    }

    fn get(&self, name: &str) -> Option<&Put> {
        self.0.iter().find(|(own, _)| *own == name).map(|(_, put)| put)
    }
}

/// Reason why values cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwritable {
    /// There is no layout for this version.
    Version(Version),
    /// The layout has no such field or part at this position, or it has another type.
    Name(&'static str),
    /// The field has too few bits, or the part has no space for this number of repetitions.
    Room(&'static str),
    /// Writing is not supported for this kind of repetition, whose count cannot be derived from the given values.
    Repeat(&'static str),
}

impl fmt::Display for Unwritable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unwritable::Version(version) => write!(f, "no layout of version {version}"),
            Unwritable::Name(name) => write!(f, "`{name}` is not there, or is something else"),
            Unwritable::Room(name) => write!(f, "`{name}` has no room for that"),
            Unwritable::Repeat(name) => {
                write!(f, "the number of repetitions of `{name}` cannot be derived here")
            }
        }
    }
}

impl std::error::Error for Unwritable {}

impl Code {
    /// Bytes of a packet of this code with the values of `fill`. The function also sets the version.
    ///
    /// # Errors
    /// If there is no layout for the version, or if the layout has no field or no space for a value in `fill`.
    pub fn write(&self, version: Version, fill: Fill) -> Result<Vec<u8>, Unwritable> {
        let layout = self.layout(version).ok_or(Unwritable::Version(version))?;
        let mut bytes = vec![];
        Writer { bytes: &mut bytes, around: vec![] }.named(&layout.root, &fill)?;
        let head = match (self.version, version) {
            (VersionAt::Byte, Version::Single(number)) => vec![number],
            (VersionAt::Nowhere, _) => vec![],
            (_, Version::Pair(major, minor)) => [minor.to_le_bytes(), major.to_le_bytes()].concat(),
            (VersionAt::Pair, Version::Single(_)) => return Err(Unwritable::Version(version)),
        };
        bytes[..head.len()].copy_from_slice(&head);
        Ok(bytes)
    }
}

struct Writer<'b> {
    bytes: &'b mut Vec<u8>,
    /// The enclosing parts, with their start offsets.
    around: Vec<(&'static Part, usize)>,
}

impl Writer<'_> {
    /// Writes a repetition of a part, and checks that all names in `fill` are used.
    fn named(&mut self, part: &'static Part, fill: &Fill) -> Result<(), Unwritable> {
        let mut used = vec![];
        self.one(part, fill, &mut used)?;
        let left = fill.0.iter().find(|(name, _)| !used.contains(name));
        left.map_or(Ok(()), |(name, _)| Err(Unwritable::Name(name)))
    }

    fn one(
        &mut self,
        part: &'static Part,
        fill: &Fill,
        used: &mut Vec<&'static str>,
    ) -> Result<(), Unwritable> {
        let begin = self.bytes.len();
        self.bytes.resize(begin + part.size, 0);
        for field in part.fields {
            let Some(put) = fill.get(field.name) else { continue };
            used.push(field.name);
            set(field, put, &mut self.bytes[begin..])?;
        }
        self.around.push((part, begin));
        match part.inner {
            Inner::Bytes => {}
            Inner::Parts(parts) => {
                for inner in parts {
                    self.repeated(inner, fill, used)?;
                }
            }
            Inner::Choice(by, kinds) => {
                let number = |name| {
                    let field = part.fields.iter().find(|field| field.name == name);
                    field.map_or(0, |field| field.raw(&self.bytes[begin..]))
                };
                let (id, version) = (number(by[0]), number(by[1]));
                let kind = kinds.iter().find(|kind| kind.id == id && kind.versions.contains(&version));
                for inner in kind.ok_or(Unwritable::Name(by[0]))?.parts {
                    self.repeated(inner, fill, used)?;
                }
            }
        }
        match part.extent {
            Extent::Own => {}
            Extent::Fixed(size) if self.bytes.len() <= begin + size => self.bytes.resize(begin + size, 0),
            Extent::Fixed(_) => return Err(Unwritable::Room(part.name)),
            Extent::Says(name) => self.set_around(name, (self.bytes.len() - begin) as u64)?,
        }
        self.around.pop();
        Ok(())
    }

    /// Writes all repetitions of a part.
    fn repeated(
        &mut self,
        part: &'static Part,
        fill: &Fill,
        used: &mut Vec<&'static str>,
    ) -> Result<(), Unwritable> {
        let put = fill.get(part.name).filter(|_| !part.name.is_empty());
        used.extend(put.map(|_| part.name));
        if let Inner::Bytes = part.inner {
            let bytes = match put {
                Some(Put::Bytes(bytes)) => bytes.as_slice(),
                Some(_) => return Err(Unwritable::Name(part.name)),
                None => &[],
            };
            if let Repeat::Count(count) = part.repeat {
                self.set_around(count, bytes.len() as u64)?;
            }
            self.bytes.extend_from_slice(bytes);
            return Ok(());
        }
        if part.name.is_empty() {
            return match part.repeat {
                Repeat::Once => self.one(part, fill, used),
                _ => Err(Unwritable::Repeat(part.name)),
            };
        }
        let parts = match put {
            Some(Put::Parts(parts)) => parts.as_slice(),
            Some(_) => return Err(Unwritable::Name(part.name)),
            None => &[],
        };
        let unused = match part.repeat {
            Repeat::Count(count) => {
                self.set_around(count, parts.len() as u64)?;
                0
            }
            Repeat::Room(count, room) => {
                self.set_around(count, parts.len() as u64)?;
                room.checked_sub(parts.len()).ok_or(Unwritable::Room(part.name))?
            }
            Repeat::Times(times) => times.checked_sub(parts.len()).ok_or(Unwritable::Room(part.name))?,
            Repeat::Once => 1usize.checked_sub(parts.len()).ok_or(Unwritable::Room(part.name))?,
            Repeat::ToEnd => 0,
            Repeat::If(field, number) => {
                match parts.len() {
                    // A part that its field announces must not be absent.
                    0 if self.get_around(field)? == number => return Err(Unwritable::Repeat(part.name)),
                    0 => {}
                    1 => self.set_around(field, number)?,
                    _ => return Err(Unwritable::Room(part.name)),
                }
                0
            }
            Repeat::While(_) | Repeat::Either(..) | Repeat::Ones(_) => {
                return Err(Unwritable::Repeat(part.name));
            }
        };
        for fill in parts {
            self.named(part, fill)?;
        }
        let size = part.fixed_size().filter(|_| unused > 0).unwrap_or(0);
        self.bytes.resize(self.bytes.len() + unused * size, 0);
        Ok(())
    }

    /// Sets a count, a length or a condition in one of the enclosing parts.
    fn set_around(&mut self, name: &'static str, number: u64) -> Result<(), Unwritable> {
        let (field, begin) = self.field_around(name)?;
        set(field, &Put::Number(number), &mut self.bytes[begin..])
    }

    /// The number in a field of one of the enclosing parts.
    fn get_around(&self, name: &'static str) -> Result<u64, Unwritable> {
        let (field, begin) = self.field_around(name)?;
        Ok(field.raw(&self.bytes[begin..]))
    }

    /// A field of the innermost enclosing part that has it, and the start of that part.
    fn field_around(&self, name: &'static str) -> Result<(&'static Field, usize), Unwritable> {
        let of_part = |part: &'static Part| part.fields.iter().find(|field| field.name == name);
        let found = self.around.iter().rev().find_map(|&(part, begin)| Some((of_part(part)?, begin)));
        found.ok_or(Unwritable::Name(name))
    }
}

/// Writes a value to a field of the part at the start of `part`.
fn set(field: &Field, put: &Put, part: &mut [u8]) -> Result<(), Unwritable> {
    let most = if field.width >= 64 { u64::MAX } else { (1 << field.width) - 1 };
    let number = match (put, field.shown) {
        (Put::Bytes(bytes), Shown::Bytes) => {
            let room = part.get_mut(field.bit / 8..field.bit / 8 + bytes.len());
            let room = room.filter(|_| bytes.len() <= field.width / 8).ok_or(Unwritable::Room(field.name))?;
            room.copy_from_slice(bytes);
            return Ok(());
        }
        // Writing of fields with the highest bit first is not supported.
        _ if field.is_from_top => return Err(Unwritable::Name(field.name)),
        (Put::Number(number), shown) if !matches!(shown, Shown::Bytes) => {
            // A negative number has all higher bits set.
            let is_negative = field.signed && *number | most >> 1 == u64::MAX;
            if *number > most && !is_negative {
                return Err(Unwritable::Room(field.name));
            }
            number & most
        }
        (Put::Real(number), Shown::Scaled { divisor, offset }) => {
            let raw = libm::round((number - offset) * divisor);
            let (least, largest) = match field.signed {
                true => (-((most >> 1) as f64) - 1.0, (most >> 1) as f64),
                false => (0.0, most as f64),
            };
            if !(least..=largest).contains(&raw) {
                return Err(Unwritable::Room(field.name));
            }
            raw as i64 as u64 & most
        }
        _ => return Err(Unwritable::Name(field.name)),
    };
    for bit in 0..field.width {
        let at = field.bit + bit;
        let byte = part.get_mut(at / 8).ok_or(Unwritable::Room(field.name))?;
        *byte = *byte & !(1 << (at % 8)) | ((number >> bit & 1) as u8) << (at % 8);
    }
    Ok(())
}
