//! Reads a whole packet as nested values.

use super::field::{Cell, Field, Names, Shown};
use super::walk::{self, Misfit, MisfitFault, Scope, Span};
use super::{Decoded, Inner, Layout, Part, Repeat, Verified, Version};

/// The values of fields, by name, in the order of their layout.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record<'a>(pub Vec<(&'static str, Value<'a>)>);

/// Value of a field or a part.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// No value: the modem does not know the value.
    Absent,
    /// A number.
    Unsigned(u64),
    /// A number that can be negative.
    Signed(i64),
    /// A scaled number.
    Real(f64),
    /// A value with a name.
    Name(&'static str),
    /// Bits that are not a number, and the number of bits.
    Mask(u64, usize),
    /// Bits with one meaning each, and the names of the bits that have a name.
    Flags(u64, Names),
    /// Bytes.
    Bytes(&'a [u8]),
    /// The repetitions of a part.
    Records(Vec<Record<'a>>),
    /// A part that is present once.
    Record(Record<'a>),
}

impl<'a> Record<'a> {
    /// The value of the field or part with this name.
    pub fn get(&self, name: &str) -> Option<&Value<'a>> {
        self.0.iter().find(|(own, _)| *own == name).map(|(_, value)| value)
    }

    /// The repetitions of the part with this name; none if there is no such part.
    pub fn records(&self, name: &str) -> &[Record<'a>] {
        match self.get(name) {
            Some(Value::Records(records)) => records,
            _ => &[],
        }
    }

    fn push(&mut self, name: &'static str, value: Value<'a>) {
        self.0.push((name, value));
    }
}

/// The value of a field.
fn value<'a>(field: &Field, part: &'a [u8]) -> Value<'a> {
    match (field.cell(part), field.shown) {
        (Cell::Unsigned(raw), Shown::Named(names)) => match names.iter().find(|(number, _)| *number == raw) {
            Some((_, "")) | None => Value::Absent,
            Some((_, name)) => Value::Name(name),
        },
        (Cell::Unsigned(raw), Shown::Mask) => Value::Mask(raw, field.width),
        (Cell::Unsigned(raw), Shown::Flags(names)) => Value::Flags(raw, names),
        (Cell::Unsigned(raw), _) => Value::Unsigned(raw),
        (Cell::Signed(number), _) => Value::Signed(number),
        (Cell::Real(number), _) => Value::Real(number),
        (Cell::Bytes(bytes), _) => Value::Bytes(bytes),
        (Cell::Absent, _) => Value::Absent,
    }
}

/// Results of a read besides the values: verification level, and subpackets without a layout.
struct Notes {
    verified: Verified,
    unknown: Vec<(u64, u64)>,
}

/// Reads a payload of this layout.
pub(super) fn whole<'a>(
    layout: &'static Layout,
    version: Version,
    payload: &'a [u8],
) -> Result<Decoded<'a>, Misfit> {
    let mut notes = Notes { verified: layout.verified, unknown: vec![] };
    let mut fields = Record::default();
    let span = Span { payload, at: 0, end: payload.len() };
    let at = part(&layout.root, None, span, &mut fields, &mut notes)?;
    let left = payload.len() - at;
    if left > 0 && layout.verified == Verified::Checked {
        return Err(Misfit { part: layout.root.name, offset: at, fault: MisfitFault::Left(left) });
    }
    Ok(Decoded { version, verified: notes.verified, fields, left, unknown: notes.unknown })
}

/// Reads a part into the enclosing record; returns the end of the part.
fn part<'a>(
    part: &'static Part,
    outer: Option<&Scope<'_, 'a>>,
    span: Span<'a>,
    around: &mut Record<'a>,
    notes: &mut Notes,
) -> Result<usize, Misfit> {
    if let Inner::Bytes = part.inner {
        let bytes = walk::run(part, outer, span)?;
        if !part.name.is_empty() {
            around.push(part.name, Value::Bytes(bytes));
        }
        if let Some(coded) = part.coded {
            coded.read(bytes, |name| outer.map_or(0, |outer| outer.number(name)), around);
        }
        return Ok(span.at + bytes.len());
    }
    if part.name.is_empty() {
        return walk::records(part, outer, span, |scope, within| one(scope, within, around, notes));
    }
    let mut records = vec![];
    let end = walk::records(part, outer, span, |scope, within| {
        let mut record = Record(Vec::with_capacity(part.fields.len() + 1));
        let end = one(scope, within, &mut record, notes)?;
        records.push(record);
        Ok(end)
    })?;
    if let (Repeat::Once | Repeat::If(..), true) = (part.repeat, records.len() < 2) {
        around.0.extend(records.pop().map(|record| (part.name, Value::Record(record))));
    } else {
        around.push(part.name, Value::Records(records));
    }
    Ok(end)
}

/// Reads one repetition of a part: its fields and its inner parts. Returns the end of the inner parts.
fn one<'a>(
    scope: &Scope<'_, 'a>,
    mut within: Span<'a>,
    record: &mut Record<'a>,
    notes: &mut Notes,
) -> Result<usize, Misfit> {
    record.0.extend(scope.part.fields.iter().map(|field| (field.name, value(field, scope.bytes))));
    let (inner, checked) = match scope.part.inner {
        Inner::Bytes => (&[][..], false),
        Inner::Parts(inner) => (inner, false),
        Inner::Choice(by, kinds) => match scope.choose(by, kinds) {
            Ok(chosen) => {
                let kind = &kinds[chosen];
                notes.verified = notes.verified.max(kind.verified);
                (kind.parts, kind.verified == Verified::Checked)
            }
            Err(unknown) => {
                notes.unknown.push(unknown);
                record.push("unread", Value::Bytes(within.bytes()));
                return Ok(within.end);
            }
        },
    };
    for inner in inner {
        within.at = part(inner, Some(scope), within, record, notes)?;
    }
    let left = within.end - within.at;
    if checked && left > walk::PADDING {
        let fault = MisfitFault::Left(left);
        return Err(Misfit { part: scope.part.name, offset: within.at, fault });
    }
    Ok(within.at)
}
