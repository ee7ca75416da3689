//! Example packets of a layout: each part once, each number as the caller chooses it.

use super::{Code, Field, Fill, Inner, Part, Repeat, Shown, Version};

impl Code {
    /// A packet of this code with one repetition of each part, and the number that `number` returns in each field. Counts,
    /// lengths, ids of subpackets and the version are set as the layout requires. `None` if there is no layout for this
    /// version, or if the layout has a repetition that cannot be written.
    pub fn example(&self, version: Version, number: impl Fn(&Field) -> u64 + Copy) -> Option<Vec<u8>> {
        let layout = self.layout(version)?;
        self.write(version, filled(&layout.root, Fill::new(), number)).ok()
    }
}

/// Adds the fields of a part to `fill`, and one repetition of each of its inner parts.
fn filled(part: &Part, fill: Fill, number: impl Fn(&Field) -> u64 + Copy) -> Fill {
    let selects = match part.inner {
        Inner::Choice(by, _) => by.to_vec(),
        Inner::Bytes | Inner::Parts(_) => vec![],
    };
    let is_number = |field: &&Field| !matches!(field.shown, Shown::Bytes) && !field.is_from_top;
    let fields = part.fields.iter().filter(is_number).filter(|field| !selects.contains(&field.name));
    let fill = fields.fold(fill, |fill, field| fill.number(field.name, within(field, number(field))));
    let with_inner = |fill: Fill, inner: &Part| match (inner.name, inner.repeat) {
        (_, Repeat::If(name, wanted)) => {
            let announces = |field: &Field| field.name == name && within(field, number(field)) == wanted;
            match part.fields.iter().any(announces) {
                true => fill.parts(inner.name, vec![filled(inner, Fill::new(), number)]),
                false => fill,
            }
        }
        _ if matches!(inner.inner, Inner::Bytes) => fill,
        ("", _) => filled(inner, fill, number),
        (name, Repeat::Times(times)) => fill.parts(name, vec![filled(inner, Fill::new(), number); times]),
        (name, _) => fill.parts(name, vec![filled(inner, Fill::new(), number)]),
    };
    match part.inner {
        Inner::Bytes => fill,
        Inner::Parts(parts) => parts.iter().fold(fill, with_inner),
        Inner::Choice([id, version], kinds) => {
            let Some(kind) = kinds.iter().find(|kind| !kind.versions.is_empty()) else { return fill };
            let fill = fill.number(id, kind.id).number(version, kind.versions[0]);
            kind.parts.iter().fold(fill, with_inner)
        }
    }
}

/// The bits of a number for which the field has space.
fn within(field: &Field, number: u64) -> u64 {
    if field.width >= 64 { number } else { number & ((1 << field.width) - 1) }
}

#[cfg(test)]
mod tests {
    use crate::log::CODES;

    use super::*;

    #[test]
    fn examples_are_read_as_packets_of_their_code_and_version() {
        let fillings: [fn(&Field) -> u64; 3] = [|_| 0, |_| 1, |field| 1 << (field.width.min(63) - 1)];
        let (mut written, mut all) = (0, 0);
        for code in CODES {
            for version in code.layouts.iter().flat_map(|layout| layout.versions) {
                for number in fillings {
                    all += 1;
                    let Some(payload) = code.example(*version, number) else { continue };
                    let read = code.read(&payload);
                    assert_eq!(read.map(|read| read.version), Ok(*version), "{} {version}", code.code);
                    written += 1;
                }
            }
        }
        assert!(written * 10 > all * 9, "only {written} of {all}");
    }
}
