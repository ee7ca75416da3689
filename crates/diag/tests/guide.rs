//! The guide's list of layouts is the code's.

use std::collections::BTreeMap;
use std::fmt::Write;

use airpace_diag::layout::{Inner, Part, Verified};
use airpace_diag::log::CODES;

/// Versions by how well they are known.
type Known = BTreeMap<Verified, Vec<String>>;

/// The list, as the guide has it.
fn list() -> String {
    let mut list =
        String::from("| code | what it is | checked | read | guess |\n| --- | --- | --- | --- | --- |\n");
    for code in CODES {
        let mut own = Known::new();
        let mut subpackets: BTreeMap<u64, Known> = BTreeMap::new();
        for layout in code.layouts {
            own.entry(layout.verified).or_default().extend(layout.versions.iter().map(ToString::to_string));
            find(&layout.root, &mut subpackets);
        }
        row(&mut list, &code.code.to_string(), code.name, own);
        for (id, known) in subpackets {
            row(&mut list, "", &format!("its subpacket {id}"), known);
        }
    }
    list
}

/// The subpackets of a part and those within.
fn find(part: &Part, subpackets: &mut BTreeMap<u64, Known>) {
    match part.inner {
        Inner::Parts(inner) => inner.iter().for_each(|part| find(part, subpackets)),
        Inner::Choice(_, kinds) => {
            for kind in kinds {
                let known = subpackets.entry(kind.id).or_default().entry(kind.verified).or_default();
                known.extend(kind.versions.iter().map(ToString::to_string));
            }
        }
        Inner::Bytes => {}
    }
}

fn row(list: &mut String, code: &str, name: &str, mut known: Known) {
    let mut versions = |verified| {
        let mut versions = known.remove(&verified).unwrap_or_default();
        versions.sort_by_key(|version| {
            let number = |text: &str| text.parse::<u32>().unwrap_or(0);
            version.split_once('.').map_or((0, number(version)), |(major, minor)| (number(major), number(minor)))
        });
        versions.dedup();
        versions.join(", ")
    };
    let [checked, read, guess] = [Verified::Checked, Verified::Read, Verified::Guess].map(&mut versions);
    writeln!(list, "| {code} | {name} | {checked} | {read} | {guess} |").unwrap();
}

#[test]
fn the_guide_lists_every_layout() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/diag.md");
    let guide = std::fs::read_to_string(path).expect("the guide is there");
    let list = list();
    assert!(guide.contains(&list), "docs/guide/diag.md has not this list of layouts:\n{list}");
}
