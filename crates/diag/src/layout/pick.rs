//! Pick: reads a few selected fields of a packet and nothing else.

use std::fmt;

use super::field::{Cell, Field};
use super::walk::{self, Misfit, MisfitFault, Scope, Span};
use super::{Inner, Layout, Part, Verified};

/// Maximum number of fields of a pick.
pub const MAX_FIELDS: usize = 16;

/// Fields of a layout, located once and then read from many packets. A pick reads only the bits of these fields and of
/// the counts before them, and allocates nothing.
///
/// A path consists of the names of the parts and of the field, separated by dots: `records.transport_blocks.tb_size`.
/// The fields of one pick are nested along a single path into the packet, so that each repetition of its innermost part
/// is one row.
#[derive(Clone, Debug)]
pub struct Pick {
    root: Step,
    columns: usize,
    verified: Verified,
}

/// Item that a careful visit reports.
#[derive(Clone, Copy, Debug)]
pub enum Visited<'r, 'a> {
    /// A row, and how well its layout is verified.
    Row(&'r [Cell<'a>], Verified),
    /// A subpacket with this id and version, for which there is no layout.
    Unknown(u64, u64),
}

/// Reason why a pick is not possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathError {
    /// The layout has none of the fields.
    Missing,
    /// The fields are not nested along a single path: at least two inner parts of this part contain some of them.
    Forked(&'static str),
    /// There are more fields than [`MAX_FIELDS`].
    Many,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathError::Missing => write!(f, "the layout has none of the fields"),
            PathError::Forked(part) => write!(f, "two parts of `{part}` have fields of the pick"),
            PathError::Many => write!(f, "a pick has at most {MAX_FIELDS} fields"),
        }
    }
}

impl std::error::Error for PathError {}

/// A part along the path.
#[derive(Clone, Debug)]
struct Step {
    part: &'static Part,
    /// The selected fields of this part, with their columns.
    reads: Vec<(usize, &'static Field)>,
    /// The column of the part itself, if it is a run of bytes.
    bytes: Option<usize>,
    /// Handling of the inner parts; one list per kind of subpacket if the part has a choice.
    inner: Vec<Vec<Go>>,
    /// The columns that inner parts may fill.
    below: Vec<usize>,
}

/// Handling of an inner part.
#[derive(Clone, Debug)]
enum Go {
    /// Skip the part; the second value is the size of a repetition in bytes, if it is constant.
    Over(&'static Part, Option<usize>),
    /// Descend into the part.
    Into(Box<Step>),
}

impl Pick {
    /// Locates fields in a layout. A field that the layout does not have is [`Cell::Absent`] in every row.
    ///
    /// # Errors
    /// If the layout has none of them, or if they are not along a single path.
    pub fn new(layout: &'static Layout, paths: &[&str]) -> Result<Pick, PathError> {
        if paths.len() > MAX_FIELDS {
            return Err(PathError::Many);
        }
        let wanted: Vec<(usize, &str)> = paths.iter().copied().enumerate().collect();
        let root = Step::new(&layout.root, &wanted)?.ok_or(PathError::Missing)?;
        Ok(Pick { root, columns: paths.len(), verified: layout.verified })
    }

    /// Visits the rows of a packet that has this pick's layout.
    ///
    /// # Errors
    /// If a part along the path is not complete. The rows before the error have been visited.
    pub fn visit<'a>(&self, payload: &'a [u8], mut each: impl FnMut(&[Cell<'a>])) -> Result<(), Misfit> {
        let each = |visited: Visited<'_, 'a>| {
            if let Visited::Row(row, _) = visited {
                each(row);
            }
        };
        self.run(payload, false, each).map(drop)
    }

    /// Visits the rows of a packet that has this pick's layout, and reports subpackets without a layout.
    ///
    /// # Errors
    /// If a part along the path is not complete, or bytes remain after the end of a verified layout. The rows before
    /// the error have been visited. A caller that does not want these rows must buffer all rows until the visit is
    /// complete.
    pub fn visit_carefully<'a>(
        &self,
        payload: &'a [u8],
        each: impl FnMut(Visited<'_, 'a>),
    ) -> Result<(), Misfit> {
        let end = self.run(payload, true, each)?;
        let left = payload.len() - end;
        if left > 0 && self.verified == Verified::Checked {
            return Err(Misfit { part: self.root.part.name, offset: end, fault: MisfitFault::Left(left) });
        }
        Ok(())
    }

    /// Returns the end of the packet's last part.
    fn run<'a>(
        &self,
        payload: &'a [u8],
        is_careful: bool,
        each: impl FnMut(Visited<'_, 'a>),
    ) -> Result<usize, Misfit> {
        let mut visit = Visit { row: [Cell::Absent; MAX_FIELDS], columns: self.columns, is_careful, each };
        let span = Span { payload, at: 0, end: payload.len() };
        self.root.run(None, span, self.verified, &mut visit)
    }
}

/// The state of a visit to a packet.
struct Visit<'a, F> {
    row: [Cell<'a>; MAX_FIELDS],
    columns: usize,
    /// Whether remaining bytes of a verified subpacket are an error.
    is_careful: bool,
    each: F,
}

impl<'a, F: FnMut(Visited<'_, 'a>)> Visit<'a, F> {
    fn emit(&mut self, verified: Verified) {
        (self.each)(Visited::Row(&self.row[..self.columns], verified));
    }
}

impl Step {
    /// Computes the steps to the selected fields in this part; `None` if the part contains none of them.
    fn new(part: &'static Part, wanted: &[(usize, &str)]) -> Result<Option<Step>, PathError> {
        let reads: Vec<(usize, &'static Field)> = wanted
            .iter()
            .filter_map(|&(column, path)| {
                part.fields.iter().find(|field| field.name == path).map(|field| (column, field))
            })
            .collect();
        let all: Vec<&'static [Part]> = match part.inner {
            Inner::Parts(inner) => vec![inner],
            Inner::Choice(_, kinds) => kinds.iter().map(|kind| kind.parts).collect(),
            Inner::Bytes => vec![],
        };
        let mut found = !reads.is_empty();
        let (mut inner, mut below) = (vec![], vec![]);
        for parts in all {
            let mut ways = vec![];
            for part in parts {
                ways.push(match Step::into(part, wanted)? {
                    Some(step) => {
                        below.extend(step.columns());
                        Go::Into(Box::new(step))
                    }
                    None => Go::Over(part, part.fixed_size()),
                });
            }
            match ways.iter().filter(|way| matches!(way, Go::Into(_))).count() {
                0 => {}
                1 => found = true,
                _ => return Err(PathError::Forked(part.name)),
            }
            inner.push(ways);
        }
        Ok(found.then_some(Step { part, reads, bytes: None, inner, below }))
    }

    /// Computes the step into an inner part; paths are relative to the enclosing part.
    fn into(part: &'static Part, wanted: &[(usize, &str)]) -> Result<Option<Step>, PathError> {
        if let Inner::Bytes = part.inner {
            let column = wanted.iter().find(|(_, path)| *path == part.name && !part.name.is_empty());
            return Ok(column.map(|&(column, _)| Step {
                part,
                reads: vec![],
                bytes: Some(column),
                inner: vec![],
                below: vec![],
            }));
        }
        if part.name.is_empty() {
            return Step::new(part, wanted);
        }
        let within: Vec<(usize, &str)> = wanted
            .iter()
            .filter_map(|&(column, path)| Some((column, path.strip_prefix(part.name)?.strip_prefix('.')?)))
            .collect();
        Step::new(part, &within)
    }

    /// The columns that this part and its inner parts may fill.
    fn columns(&self) -> impl Iterator<Item = usize> + '_ {
        let own = self.reads.iter().map(|(column, _)| *column).chain(self.bytes);
        own.chain(self.below.iter().copied())
    }

    /// Reads the repetitions of the part; returns their end.
    fn run<'a, F: FnMut(Visited<'_, 'a>)>(
        &self,
        outer: Option<&Scope<'_, 'a>>,
        span: Span<'a>,
        verified: Verified,
        visit: &mut Visit<'a, F>,
    ) -> Result<usize, Misfit> {
        if let Some(column) = self.bytes {
            let bytes = walk::run(self.part, outer, span)?;
            visit.row[column] = Cell::Bytes(bytes);
            visit.emit(verified);
            return Ok(span.at + bytes.len());
        }
        walk::records(self.part, outer, span, |scope, mut within| {
            // Clear the values of another kind of subpacket.
            for &column in &self.below {
                visit.row[column] = Cell::Absent;
            }
            for &(column, field) in &self.reads {
                visit.row[column] = field.cell(scope.bytes);
            }
            let (ways, verified, is_checked) = match self.part.inner {
                Inner::Choice(by, kinds) => match scope.choose(by, kinds) {
                    Ok(chosen) => {
                        let known = kinds[chosen].verified;
                        (&self.inner[chosen], verified.max(known), known == Verified::Checked)
                    }
                    Err((id, version)) => {
                        (visit.each)(Visited::Unknown(id, version));
                        if self.below.is_empty() && !self.reads.is_empty() {
                            visit.emit(verified);
                        }
                        return Ok(within.end);
                    }
                },
                _ => (&self.inner[0], verified, false),
            };
            let mut deepest = true;
            for way in ways {
                within.at = match way {
                    Go::Over(part, fixed) => walk::skip(part, *fixed, Some(scope), within)?,
                    Go::Into(step) => {
                        deepest = false;
                        step.run(Some(scope), within, verified, visit)?
                    }
                };
            }
            if deepest && !self.reads.is_empty() {
                visit.emit(verified);
            }
            let left = within.end - within.at;
            if visit.is_careful && is_checked && left > walk::PADDING {
                let fault = MisfitFault::Left(left);
                return Err(Misfit { part: self.part.name, offset: within.at, fault });
            }
            Ok(within.at)
        })
    }
}
