//! Properties that must hold for arbitrary bytes, tested with random bytes. The fuzz targets in `fuzz/` use the same
//! functions.

#[path = "../../../fuzz/src/choices.rs"]
mod choices;
#[path = "../../../fuzz/src/diag.rs"]
mod diag;
#[path = "logs/recordings_folder/mod.rs"]
mod recordings_folder;

use std::collections::{BTreeMap, BTreeSet};

use airpace_diag::layout::VersionAt;
use airpace_diag::source::Item;
use airpace_diag::{Format, Framing, LogPacket, Message, frame, log};
use proptest::prelude::*;
use recordings_folder::{logs, recordings};

/// Bytes of several kinds: arbitrary bytes; small values, because small counts reach deeper parts; and bytes with many
/// flags.
fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    let marks = prop::sample::select(vec![0x7E, 0x7D, 0x5E, 0x10, 0x98, 0, 1, 12]);
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..most),
        prop::collection::vec(0u8..5, 0..most),
        prop::collection::vec(prop_oneof![marks, any::<u8>()], 0..most),
    ]
}

/// A stream of complete frames, some of them log packets, with random bytes in between.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => (bytes(60), any::<bool>()).prop_map(|(body, is_plain)| {
            let mut framed = vec![];
            frame::encode(if is_plain { Framing::Plain } else { Framing::Hdlc }, &body, &mut framed);
            framed
        }),
        4 => (bytes(60), 0x1000_u16..).prop_map(|(payload, code)| {
            let length = (payload.len() as u16 + 12).to_le_bytes();
            let mut packet = [length, code.to_le_bytes()].concat();
            packet.extend([0; 8]);
            packet.extend(payload);
            packet
        }),
        1 => bytes(8),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

/// A configuration with this number of cases. A failing case is only printed; it should then be added as a test next to
/// the code.
fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// Random bytes that the test uses as choices, followed by a stream.
fn chosen_stream() -> impl Strategy<Value = Vec<u8>> {
    (prop::collection::vec(any::<u8>(), 6), stream()).prop_map(|(choices, stream)| [choices, stream].concat())
}

proptest! {
    #![proptest_config(config(512))]

    #[test]
    fn frames(input in prop_oneof![bytes(400), chosen_stream()]) {
        diag::frame(&input);
    }

    #[test]
    fn packets(input in prop_oneof![bytes(80), stream()]) {
        diag::packet(&input);
    }

    #[test]
    fn files(input in prop_oneof![bytes(400), chosen_stream()]) {
        diag::file(&input);
    }

    #[test]
    fn commands(input in bytes(300)) {
        diag::command(&input);
    }

    #[test]
    fn headers(input in bytes(60)) {
        diag::header(&input);
    }

    #[test]
    fn names(name in "(lte.rsrp|nr.pci|lte.dl.bytes|0xB173:records.num_rbs)(@[0-9]{0,2})?(#[0-9al]{0,3})?") {
        diag::header(name.as_bytes());
    }

    #[test]
    fn modems(input in bytes(2_000)) {
        diag::modem(&input);
    }

    #[test]
    fn bandwidths(input in bytes(2_000)) {
        diag::bandwidth(&input);
    }

    #[test]
    fn sessions(input in bytes(2_000)) {
        diag::session(&input);
    }
}

proptest! {
    #![proptest_config(config(4_096))]

    #[test]
    fn layouts(choices in any::<[u8; 4]>(), input in bytes(700)) {
        diag::layout(&[&choices[..], &input].concat());
    }

    #[test]
    fn kpis(choices in any::<[u8; 2]>(), input in bytes(700)) {
        diag::kpi(&[&choices[..], &input].concat());
    }

    #[test]
    fn exports(choices in any::<[u8; 2]>(), input in bytes(700)) {
        diag::export(&[&choices[..], &input].concat());
    }
}

/// Number that selects the layout's version in the functions above.
fn number_of(packet: &airpace_diag::LogPacket<'_>) -> Option<u16> {
    let version = log::code(packet.code)?.version(packet.payload).ok()?;
    let all = log::CODES.iter().flat_map(|code| {
        code.layouts.iter().flat_map(|layout| layout.versions).map(|&version| (code.code, version))
    });
    all.enumerate().find(|(_, of)| *of == (packet.code, version)).map(|(at, _)| at as u16)
}

#[test]
fn real_packets_cut_and_flipped_are_read_or_refused_alike() {
    let Some(folder) = recordings() else { return };
    // Number of packets of different lengths that are tested for each version.
    const OF_EACH: usize = 3;
    let mut seen: BTreeMap<u16, BTreeSet<usize>> = BTreeMap::new();
    for path in logs(&folder) {
        let bytes = std::fs::read(&path).unwrap();
        Format::of(&bytes).visit(&bytes, |_, item| {
            let Item::Message(Message::Log(packet)) = item else { return };
            let Some(number) = number_of(&packet) else { return };
            let lengths = seen.entry(number).or_default();
            if lengths.len() == OF_EACH || !lengths.insert(packet.payload.len()) {
                return;
            }
            let version = match log::code(packet.code).map(|code| code.version) {
                Some(VersionAt::Pair) => 4,
                Some(VersionAt::Nowhere) | None => 0,
                Some(VersionAt::Byte) => 1,
            };
            let check = |field: usize, payload: &[u8]| {
                let input = [&number.to_le_bytes(), &payload[version..]].concat();
                diag::layout(&[&(field as u16).to_le_bytes()[..], &input].concat());
                diag::kpi(&input);
            };
            let length = packet.payload.len();
            for cut in (version..=length).step_by(1 + length / 40) {
                check(cut, &packet.payload[..cut]);
            }
            let mut payload = packet.payload.to_vec();
            for at in version..length.min(32) {
                for flip in [1, 0x80, 0xFF] {
                    payload[at] ^= flip;
                    check(at, &payload);
                    payload[at] ^= flip;
                }
            }
        });
    }
    assert!(seen.len() > 50, "there were packets of many versions: {}", seen.len());
}

#[test]
fn no_cut_or_flipped_packet_makes_a_layout_panic() {
    let Some(folder) = recordings() else { return };
    // Test one packet of each code, version and length: cut at every byte, and with each of its first bytes flipped.
    let mut seen = BTreeSet::new();
    for path in logs(&folder) {
        let bytes = std::fs::read(&path).unwrap();
        Format::of(&bytes).visit(&bytes, |_, item| {
            let Item::Message(Message::Log(packet)) = item else { return };
            if !seen.insert((packet.code, packet.payload.first().copied(), packet.payload.len())) {
                return;
            }
            for length in 0..packet.payload.len().min(400) {
                let _ = log::read(&LogPacket { payload: &packet.payload[..length], ..packet });
            }
            let mut payload = packet.payload.to_vec();
            for at in 0..payload.len().min(64) {
                for flip in [1, 0x80, 0xFF] {
                    payload[at] ^= flip;
                    let _ = log::read(&LogPacket { payload: &payload, ..packet });
                    payload[at] ^= flip;
                }
            }
        });
    }
    assert!(seen.len() > 100, "there were packets: {}", seen.len());
}
