//! Search for fields of a layout by their paths.

use super::{Field, Inner, Layout, Part, Shown};

/// End of a path: a field or a run of bytes.
#[derive(Clone, Copy, Debug)]
pub struct Leaf {
    /// The part that contains the field or the run of bytes.
    pub part: &'static Part,
    /// The field; none if the part itself is a run of bytes.
    pub field: Option<&'static Field>,
}

impl Leaf {
    /// Whether the leaf is a number and not bytes.
    pub fn is_number(self) -> bool {
        self.field.is_some_and(|field| !matches!(field.shown, Shown::Bytes))
    }
}

impl Layout {
    /// Visits the path of every field and every named run of bytes. A path is visited several times if several kinds of
    /// subpackets have it.
    pub fn leaves(&'static self, mut each: impl FnMut(&str, Leaf)) {
        visit(&self.root, &mut String::new(), &mut each);
    }

    /// The leaves of a path: one for each kind of subpacket that has the path.
    pub fn find(&'static self, path: &str) -> Vec<Leaf> {
        let mut found = vec![];
        self.leaves(|own, leaf| {
            if own == path {
                found.push(leaf);
            }
        });
        found
    }
}

fn visit(part: &'static Part, path: &mut String, each: &mut impl FnMut(&str, Leaf)) {
    let around = path.len();
    path.push_str(part.name);
    if let Inner::Bytes = part.inner {
        if !part.name.is_empty() {
            each(path, Leaf { part, field: None });
        }
        path.truncate(around);
        return;
    }
    if !part.name.is_empty() {
        path.push('.');
    }
    let own = path.len();
    for field in part.fields {
        path.push_str(field.name);
        each(path, Leaf { part, field: Some(field) });
        path.truncate(own);
    }
    let mut within = |parts: &'static [Part]| parts.iter().for_each(|part| visit(part, path, each));
    match part.inner {
        Inner::Parts(parts) => within(parts),
        Inner::Choice(_, kinds) => kinds.iter().for_each(|kind| within(kind.parts)),
        Inner::Bytes => {}
    }
    path.truncate(around);
}
