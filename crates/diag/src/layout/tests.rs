use proptest::prelude::*;

use super::*;
use crate::log::CODES;
use crate::mac::Direction;

const KIND: Names = &[(1, "one"), (2, "two")];

/// A code with this single layout, of version 1.
fn code(verified: Verified, root: Part) -> Code {
    let layouts = Box::leak(Box::new([Layout { versions: &[Version::Single(1)], verified, root }]));
    Code { code: LogCode(0xB000), name: "made by hand", version: VersionAt::Byte, layouts }
}

fn read(root: Part, payload: &[u8]) -> Result<Decoded<'_>, Unreadable> {
    code(Verified::Checked, root).read(payload)
}

fn misfit(root: Part, payload: &[u8]) -> Misfit {
    match read(root, payload) {
        Err(Unreadable::Misfit(LogCode(0xB000), Version::Single(1), misfit)) => misfit,
        other => panic!("{other:?}"),
    }
}

/// The field `name` of each record of the part `part`.
fn column<'a>(decoded: &Decoded<'a>, part: &str, name: &str) -> Vec<Value<'a>> {
    decoded.fields.records(part).iter().map(|record| record.get(name).unwrap().clone()).collect()
}

#[test]
fn a_scaled_number_is_the_nearest_to_what_is_meant() {
    const FIELDS: &[Field] = &[u16("snr", 1).scaled(10.0, -20.0)];
    for raw in 0..512_u16 {
        let [low, high] = raw.to_le_bytes();
        let payload = [1, low, high];
        let decoded = read(Part::root(3, FIELDS, &[]), &payload).unwrap();
        let Some(Value::Real(snr)) = decoded.fields.get("snr") else { panic!("a real number") };
        let tenths = i32::from(raw) - 200;
        let sign = if tenths < 0 { "-" } else { "" };
        let expected = format!("{sign}{}.{}", tenths.abs() / 10, tenths.abs() % 10);
        assert_eq!(snr.to_string(), expected.trim_end_matches(".0"), "it is written short");
    }
}

#[test]
fn fields_are_bits_of_little_endian_numbers() {
    const FIELDS: &[Field] = &[
        u8("low", 1).bits(0, 3),
        u16("across", 1).bits(4, 11),
        u16("signed", 2).bits(4, 15).signed(),
        u8("scaled", 3).scaled(2.0, -10.0),
        u8("named", 4).named(KIND),
        u8("unnamed", 5).named(KIND),
        u16("mask", 4).mask(),
        bytes("bytes", 4, 2),
        u64("beyond_64", 1).bits(4, 67),
    ];
    let payload = [1, 0xA5, 0xC3, 0xFF, 2, 9, 0x11, 0x22, 0x33, 0x4F];
    const ROOT: Part = Part::root(10, FIELDS, &[]);
    let fields = read(ROOT, &payload).unwrap().fields;
    let expected = [
        ("low", Value::Unsigned(0x5)),
        ("across", Value::Unsigned(0x3A)),
        ("signed", Value::Signed(-4)),
        ("scaled", Value::Real(117.5)),
        ("named", Value::Name("two")),
        ("unnamed", Value::Absent),
        ("mask", Value::Mask(0x0902, 16)),
        ("bytes", Value::Bytes(&[2, 9])),
        ("beyond_64", Value::Unsigned(0xF332_2110_902F_FC3A)),
    ];
    assert_eq!(fields.0, expected);
}

#[test]
fn a_power_has_seven_bits_behind_the_point_and_zero_is_none() {
    const ROOT: Part = Part::root(9, &[u32("power", 1).power(), u32("none", 5).power()], &[]);
    let mut payload = [0; 9];
    payload[0] = 1;
    payload[1..5].copy_from_slice(&((156_u32 << 7) + 64).to_le_bytes());
    let decoded = read(ROOT, &payload).unwrap();
    assert_eq!(decoded.fields.get("power"), Some(&Value::Real(-99.5)));
    assert_eq!(decoded.fields.get("none"), Some(&Value::Absent));
}

#[test]
fn the_field_gives_the_number_of_records() {
    const ROOT: Part = Part::root(
        2,
        &[u8("count", 1)],
        &[Part::counted("records", "count", 1, &[u8("value", 0)]), Part::to_end("tail")],
    );
    let decoded = read(ROOT, &[1, 2, 7, 8, 9]).unwrap();
    assert_eq!(column(&decoded, "records", "value"), [Value::Unsigned(7), Value::Unsigned(8)]);
    assert_eq!(decoded.fields.get("tail"), Some(&Value::Bytes(&[9])));
    let short = Misfit { part: "records", offset: 3, fault: MisfitFault::Short { takes: 1, has: 0 } };
    assert_eq!(misfit(ROOT, &[1, 2, 7]), short);
}

#[test]
fn room_is_there_whether_used_or_not() {
    const ROOT: Part = Part::root(
        2,
        &[u8("count", 1)],
        &[Part::once("slots", 2, &[u16("value", 0)]).repeated(Repeat::Room("count", 2))],
    );
    let decoded = read(ROOT, &[1, 1, 7, 0, 8, 0]).unwrap();
    assert_eq!(column(&decoded, "slots", "value"), [Value::Unsigned(7)]);
    let full = Misfit { part: "slots", offset: 2, fault: MisfitFault::Count(3) };
    assert_eq!(misfit(ROOT, &[1, 3, 7, 0, 8, 0]), full);
    let short = Misfit { part: "slots", offset: 4, fault: MisfitFault::Short { takes: 2, has: 1 } };
    assert_eq!(misfit(ROOT, &[1, 1, 7, 0, 8]), short);
}

#[test]
fn a_part_without_a_name_belongs_to_the_one_around_it() {
    const ROOT: Part = Part::root(
        2,
        &[u8("count", 1)],
        &[Part::counted("records", "count", 1, &[u8("first", 0)]).of(&[
            Part::once("blocks", 1, &[u8("size", 0)]).repeated(Repeat::Times(2)),
            Part::once("", 1, &[u8("last", 0)]),
        ])],
    );
    let decoded = read(ROOT, &[1, 2, 10, 11, 12, 13, 20, 21, 22, 23]).unwrap();
    assert_eq!(column(&decoded, "records", "first"), [Value::Unsigned(10), Value::Unsigned(20)]);
    assert_eq!(column(&decoded, "records", "last"), [Value::Unsigned(13), Value::Unsigned(23)]);
    let blocks = decoded.fields.records("records")[1].records("blocks");
    assert_eq!(
        blocks.iter().map(|block| block.get("size").unwrap().clone()).collect::<Vec<_>>(),
        [Value::Unsigned(21), Value::Unsigned(22)]
    );
}

#[test]
fn optional_parts_depend_on_a_field_and_repeated_ones_on_their_own() {
    const ROOT: Part = Part::root(
        2,
        &[u8("kind", 1)],
        &[
            Part::once("extra", 1, &[u8("value", 0)]).repeated(Repeat::If("kind", 5)),
            Part::once("chain", 1, &[u8("more", 0).bits(7, 7), u8("value", 0).bits(0, 6)])
                .repeated(Repeat::While("more")),
        ],
    );
    let with = read(ROOT, &[1, 5, 9, 0x81, 0x82, 0x03]).unwrap();
    assert_eq!(with.fields.get("extra"), Some(&Value::Record(Record(vec![("value", Value::Unsigned(9))]))));
    assert_eq!(column(&with, "chain", "value"), [1, 2, 3].map(Value::Unsigned));
    let without = read(ROOT, &[1, 4, 0x03]).unwrap();
    assert_eq!(without.fields.get("extra"), None);
    let endless = Misfit { part: "chain", offset: 3, fault: MisfitFault::Short { takes: 1, has: 0 } };
    assert_eq!(misfit(ROOT, &[1, 4, 0x81]), endless);
}

#[test]
fn an_optional_part_is_written_with_its_condition() {
    static CODE: Code = Code {
        code: LogCode(0xFFFF),
        name: "test",
        version: VersionAt::Byte,
        layouts: &[Layout {
            versions: &[Version::Single(1)],
            verified: Verified::Guess,
            root: Part::root(
                2,
                &[u8("kind", 1)],
                &[Part::once("extra", 1, &[u8("value", 0)]).repeated(Repeat::If("kind", 5))],
            ),
        }],
    };
    let write = |fill| CODE.write(Version::Single(1), fill);
    let extra = || Fill::new().number("value", 9u8);
    assert_eq!(write(Fill::new().parts("extra", vec![extra()])), Ok(vec![1, 5, 9]));
    assert_eq!(write(Fill::new().number("kind", 4u8)), Ok(vec![1, 4]));
    assert_eq!(write(Fill::new().number("kind", 5u8)), Err(Unwritable::Repeat("extra")), "it is announced");
    assert_eq!(write(Fill::new().parts("extra", vec![extra(), extra()])), Err(Unwritable::Room("extra")));
}

#[test]
fn where_one_count_is_unset_another_counts() {
    const ROOT: Part = Part::root(
        3,
        &[u8("first", 1), u8("second", 2)],
        &[Part::once("cells", 1, &[u8("value", 0)]).repeated(Repeat::Either("first", "second"))],
    );
    for (payload, cells) in
        [(&[1, 1, 9, 7][..], 1), (&[1, 0, 2, 7, 8], 2), (&[1, 255, 1, 7], 1), (&[1, 255, 255], 0)]
    {
        assert_eq!(read(ROOT, payload).unwrap().fields.records("cells").len(), cells, "{payload:?}");
    }
}

const HEAD: &[Field] = &[u8("id", 0), u8("version", 1), u8("size", 2)];
const KINDS: &[Kind] = &[
    Kind {
        id: 7,
        versions: &[1, 2],
        verified: Verified::Checked,
        parts: &[Part::once("", 1, &[u8("rsrp", 0)])],
    },
    Kind {
        id: 7,
        versions: &[3],
        verified: Verified::Read,
        parts: &[Part::once("", 1, &[u8("cells", 0)]).of(&[Part::counted(
            "cell",
            "cells",
            1,
            &[u8("rsrp", 0)],
        )])],
    },
];
/// Subpackets: id, version, size, then their content.
const SUBPACKETS: Part = Part::root(
    2,
    &[u8("count", 1)],
    &[Part {
        extent: Extent::Says("size"),
        inner: Inner::Choice(["id", "version"], KINDS),
        ..Part::counted("subpackets", "count", 3, HEAD)
    }],
);

#[test]
fn id_and_version_give_a_subpackets_content_and_its_size_field_its_end() {
    let payload = [1, 3, 7, 2, 6, 50, 0, 0, 8, 9, 4, 99, 7, 3, 6, 2, 60, 61];
    let decoded = read(SUBPACKETS, &payload).unwrap();
    let records = decoded.fields.records("subpackets");
    assert_eq!(records[0].get("rsrp"), Some(&Value::Unsigned(50)));
    assert_eq!(records[1].get("unread"), Some(&Value::Bytes(&[99])), "an unknown one is kept as it is");
    assert_eq!(records[2].records("cell").len(), 2);
    assert_eq!(decoded.unknown, [(8, 9)]);
    assert_eq!(decoded.verified, Verified::Read, "a packet is as well known as its least known part");
    let long = Misfit { part: "subpackets", offset: 2, fault: MisfitFault::Length(9) };
    assert_eq!(misfit(SUBPACKETS, &[1, 1, 7, 2, 9, 50]), long);
    let small = Misfit { part: "subpackets", offset: 2, fault: MisfitFault::Length(2) };
    assert_eq!(misfit(SUBPACKETS, &[1, 1, 7, 2, 2, 50]), small);
    let left = Misfit { part: "subpackets", offset: 6, fault: MisfitFault::Left(4) };
    assert_eq!(misfit(SUBPACKETS, &[1, 1, 7, 2, 8, 50, 0, 0, 0, 0]), left);
}

#[test]
fn what_a_checked_layout_leaves_is_an_error_and_what_another_leaves_is_counted() {
    const ROOT: Part = Part::root(1, &[u8("version", 0)], &[]);
    assert_eq!(misfit(ROOT, &[1, 2, 3]), Misfit { part: "", offset: 1, fault: MisfitFault::Left(2) });
    assert_eq!(code(Verified::Read, ROOT).read(&[1, 2, 3]).unwrap().left, 2);
}

#[test]
fn unknown_versions_are_errors_of_their_own() {
    const ROOT: Part = Part::root(1, &[], &[]);
    let code = code(Verified::Checked, ROOT);
    assert_eq!(code.read(&[2]), Err(Unreadable::Version(LogCode(0xB000), Version::Single(2))));
    assert_eq!(code.read(&[]), Err(Unreadable::Empty(LogCode(0xB000))));
    assert_eq!(code.read(&[2]).unwrap_err().to_string(), "0xB000: unknown version 2");
    let misfit = Misfit { part: "cells", offset: 12, fault: MisfitFault::Short { takes: 8, has: 3 } };
    let text = Unreadable::Misfit(LogCode(0xB97F), Version::Pair(2, 9), misfit).to_string();
    assert_eq!(text, "0xB97F version 2.9: cells at byte 12: takes 8 bytes of 3");
}

fn rows(layout: &'static Layout, paths: &[&str], payload: &[u8]) -> Vec<Vec<Option<f64>>> {
    let mut rows = vec![];
    Pick::new(layout, paths)
        .unwrap()
        .visit(payload, |row| rows.push(row.iter().map(|cell| cell.number()).collect()))
        .unwrap();
    rows
}

#[test]
fn a_pick_has_a_row_for_each_of_the_innermost_records() {
    const ROOT: Part = Part::root(
        3,
        &[u8("count", 1), u8("carrier", 2)],
        &[
            Part::to_end("never").repeated(Repeat::Times(1)),
            Part::counted("records", "count", 2, &[u8("frame", 0), u8("blocks", 1)])
                .of(&[Part::counted("block", "blocks", 1, &[u8("size", 0)]), Part::once("", 1, &[])]),
        ],
    );
    let code = code(Verified::Checked, ROOT);
    let payload = [1, 3, 4, 0, 10, 2, 51, 52, 0, 11, 0, 0, 12, 1, 53, 0];
    let expected = [[4., 10., 51.], [4., 10., 52.], [4., 12., 53.]].map(|row| row.map(Some).to_vec());
    let paths = ["carrier", "records.frame", "records.block.size"];
    assert_eq!(rows(&code.layouts[0], &paths, &payload), expected);
    assert_eq!(rows(&code.layouts[0], &["records.frame"], &payload).len(), 3);
    assert_eq!(rows(&code.layouts[0], &["carrier"], &payload), [[Some(4.)]]);
    assert_eq!(rows(&code.layouts[0], &["carrier", "nothing"], &payload), [[Some(4.), None]]);
    assert_eq!(Pick::new(&code.layouts[0], &["nothing"]).unwrap_err(), PathError::Missing);
    assert_eq!(Pick::new(&code.layouts[0], &["records.frame", "never"]).unwrap_err(), PathError::Forked(""));
    assert_eq!(Pick::new(&code.layouts[0], &["carrier"; 17]).unwrap_err(), PathError::Many);
}

#[test]
fn records_come_for_each_bit_of_a_mask() {
    const ROOT: Part = Part::root(
        2,
        &[u8("mask", 1)],
        &[Part::once("groups", 1, &[u8("value", 0)]).repeated(Repeat::Ones("mask"))],
    );
    let decoded = read(ROOT, &[1, 0b1010_0000, 7, 8]).unwrap();
    assert_eq!(column(&decoded, "groups", "value"), [Value::Unsigned(7), Value::Unsigned(8)]);
    assert_eq!(misfit(ROOT, &[1, 1, 7, 8]).fault, MisfitFault::Left(1));
}

#[test]
fn a_pick_takes_the_field_from_whatever_subpacket_has_it() {
    let code = code(Verified::Checked, SUBPACKETS);
    let payload = [1, 3, 7, 2, 6, 50, 0, 0, 8, 9, 4, 99, 7, 3, 6, 2, 60, 61];
    assert_eq!(rows(&code.layouts[0], &["subpackets.rsrp"], &payload), [[Some(50.)]]);
    assert_eq!(
        rows(&code.layouts[0], &["subpackets.id", "subpackets.cell.rsrp"], &payload),
        [[Some(7.), None], [Some(7.), Some(60.)], [Some(7.), Some(61.)]]
    );
}

/// Minimum size of a repetition (bytes).
fn least(part: &Part) -> usize {
    let inner = match part.inner {
        Inner::Parts(inner) => inner
            .iter()
            .filter(|part| matches!(part.repeat, Repeat::Once | Repeat::Times(_) | Repeat::While(_)))
            .map(least)
            .sum(),
        Inner::Choice(..) | Inner::Bytes => 0,
    };
    part.size + inner
}

/// Checks a part of a layout table for errors.
fn check(part: &'static Part, around: &mut Vec<&'static Part>, path: &str) {
    let path = format!("{path}/{}", part.name);
    let counts = |around: &[&Part], name: &str| {
        around.iter().any(|part| part.fields.iter().any(|field| field.name == name))
    };
    let (named, needs_size): (&[&str], bool) = match &part.repeat {
        Repeat::Once | Repeat::Times(_) => (&[], false),
        Repeat::ToEnd => (&[], true),
        Repeat::Count(name) => (&[*name], true),
        Repeat::Either(first, second) => (&[*first, *second], true),
        Repeat::Room(name, _) => {
            assert!(part.fixed_size().is_some(), "{path} has room, so it has a fixed size");
            (&[*name], false)
        }
        Repeat::If(name, _) => (&[*name], false),
        Repeat::Ones(name) => (&[*name], true),
        Repeat::While(name) => {
            assert!(counts(&[part], name), "{path}: {name} is its own");
            (&[], true)
        }
    };
    for name in named {
        assert!(counts(around, name), "{path}: the count {name} is a field around it");
    }
    assert!(!needs_size || least(part) > 0, "{path} repeats, so it has bytes");
    let mut names: Vec<&str> = part.fields.iter().map(|field| field.name).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{path}: names of fields are unique");
    for field in part.fields {
        let end = (field.bit + field.width).div_ceil(8);
        assert!(end <= part.size, "{path}.{} ends at {end} of {}", field.name, part.size);
        let is_number = !matches!(field.shown, Shown::Bytes);
        assert!(!is_number || (1..=64).contains(&field.width), "{path}.{} has 1 to 64 bits", field.name);
    }
    if let Some(coded) = part.coded {
        assert!(matches!(part.inner, Inner::Bytes) && !part.name.is_empty(), "{path} is bytes with a name");
        let needs = match coded {
            Coded::RlcAm(name) => Some(name),
            Coded::NrRrc(_) => Some("channel"),
            Coded::Mac(Direction::Down) => Some(super::coded::RNTI),
            Coded::Mac(Direction::Up) => None,
        };
        assert!(needs.is_none_or(|name| counts(around, name)), "{path}: {needs:?} is a field around it");
    }
    if let Extent::Says(name) = part.extent {
        assert!(counts(&[part], name), "{path}: the length {name} is its own");
    }
    around.push(part);
    match part.inner {
        Inner::Parts(inner) => inner.iter().for_each(|part| check(part, around, &path)),
        Inner::Choice(by, kinds) => {
            assert!(!matches!(part.extent, Extent::Own), "{path}: a choice says where it ends");
            assert!(by.iter().all(|name| counts(&[part], name)), "{path}: {by:?} are its own");
            for kind in kinds {
                kind.parts.iter().for_each(|part| check(part, around, &path));
            }
        }
        Inner::Bytes => {}
    }
    around.pop();
}

#[test]
fn every_table_is_sound() {
    assert!(CODES.windows(2).all(|pair| pair[0].code < pair[1].code), "codes are in order");
    for code in CODES {
        let versions: Vec<Version> =
            code.layouts.iter().flat_map(|layout| layout.versions).copied().collect();
        let mut unique = versions.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), versions.len(), "{}: each version has one layout", code.code);
        for layout in code.layouts {
            check(&layout.root, &mut vec![], &format!("{} {:?}", code.code, layout.versions));
        }
    }
}

/// Paths of all fields of a layout.
fn paths(layout: &'static Layout) -> Vec<String> {
    let mut all = vec![];
    layout.leaves(|path, _| all.push(path.to_owned()));
    all
}

#[test]
fn every_field_of_every_table_can_be_picked() {
    for layout in CODES.iter().flat_map(|code| code.layouts) {
        let all = paths(layout);
        for path in all {
            Pick::new(layout, &[&path]).unwrap_or_else(|error| panic!("{path}: {error}"));
        }
    }
}

proptest! {
    #[test]
    fn no_bytes_make_any_table_panic(mut payload in prop::collection::vec(any::<u8>(), 0..700), small in any::<bool>()) {
        // Small values keep counts small, so that reading reaches deeper parts.
        if small {
            payload.iter_mut().for_each(|byte| *byte %= 4);
        }
        for code in CODES {
            for layout in code.layouts {
                for &version in layout.versions {
                    match version {
                        Version::Single(number) => payload.splice(..payload.len().min(1), [number]).for_each(drop),
                        Version::Pair(major, minor) => {
                            let [major, minor] = [major, minor].map(u16::to_le_bytes);
                            let start = [minor[0], minor[1], major[0], major[1]];
                            payload.splice(..payload.len().min(4), start).for_each(drop);
                        }
                    }
                    let read = code.read(&payload);
                    prop_assert!(!matches!(read, Err(Unreadable::Version(..))));
                    let all = paths(layout);
                    let deepest = all.iter().max_by_key(|path| path.matches('.').count()).unwrap();
                    let _ = Pick::new(layout, &[deepest]).unwrap().visit(&payload, |_| {});
                }
            }
        }
    }
}
