//! Tests of format detection, and of the loss caused by cut, joined or damaged files.

use super::*;
use crate::frame;
use crate::packet::{LogCode, LogPacket, Radio};
use crate::stamp::Stamp;

fn packet(payload: &[u8]) -> LogPacket<'_> {
    LogPacket { radio: Radio::FIRST, code: LogCode(0xB0C0), stamp: Stamp(1 << 20), payload }
}

/// `packets` consecutive packets, ten milliseconds apart, and their start offsets.
fn dlf(packets: u64, payload: usize) -> (Vec<u8>, Vec<usize>) {
    let (mut dlf, mut begins) = (vec![], vec![]);
    for number in 0..packets {
        begins.push(dlf.len());
        let payload: Vec<u8> = (0..payload).map(|at| (at as u64 * 31 + number * 7) as u8).collect();
        let stamp = Stamp::from_nanos(1_300_000_000_000_000_000 + number * 10_000_000);
        let mut body = vec![];
        LogPacket { stamp, ..packet(&payload) }.write(false, &mut body);
        dlf.extend_from_slice(&body[4..]);
    }
    (dlf, begins)
}

/// Number of packets in a `.dlf` file, and all other items.
fn visit_dlf(bytes: &[u8]) -> (usize, Vec<(u64, String)>) {
    assert_eq!(Format::of(bytes), Format::Dlf);
    let (mut packets, mut others) = (0, vec![]);
    Format::Dlf.visit(bytes, |at, item| match item {
        Item::Message(Message::Log(_)) => packets += 1,
        other => others.push((at, format!("{other:?}"))),
    });
    (packets, others)
}

/// The file ends with bytes that may be the start of a packet, after bytes that are not a packet.
#[test]
fn the_end_of_a_dlf_file_is_the_same_in_pieces_and_whole() {
    let packet = |ticks: u8| [12, 0, 0xC0, 0xB0, 0, 0, ticks, 0, 0, 0, 0, 0];
    let end = [29, 239, 105, 40, 159, 86, 41, 115, 242, 125, 93, 126, 0, 1, 0, 0, 0, 0, 203, 252, 126];
    let bytes = [&packet(1)[..], &packet(1), &packet(2), &end].concat();
    let mut whole = vec![];
    Format::of(&bytes).visit(&bytes, |at, item| whole.push((at, format!("{item:?}"))));
    assert_eq!(whole.last(), Some(&(36, "Unfinished(21)".to_owned())), "{whole:?}");
    for first in 0..=bytes.len() {
        let (mut reader, mut pieces) = (Reader::default(), vec![]);
        let mut tell = |place: Place, item: Item<'_>| pieces.push((place.offset, format!("{item:?}")));
        reader.push(&bytes[..first], &mut tell);
        reader.push(&bytes[first..], &mut tell);
        reader.finish(&mut tell);
        assert_eq!(pieces, whole, "cut at {first}");
    }
}

#[test]
fn both_forms_are_distinguished_and_have_the_same_content() {
    let (mut stream, mut dlf) = (vec![], vec![]);
    for payload in [&[1, 2, 3][..], &[0x7E, 0x7D], &[9; 40], &[], &[5]] {
        let mut body = vec![];
        packet(payload).write(false, &mut body);
        frame::encode(Framing::Hdlc, &body, &mut stream);
        dlf.extend_from_slice(&body[4..]);
    }
    let packets = |bytes: &[u8]| {
        let mut packets = vec![];
        Format::of(bytes).visit(bytes, |_, item| match item {
            Item::Message(Message::Log(packet)) => {
                packets.push((packet.code, packet.stamp, packet.payload.to_vec()))
            }
            other => panic!("{other:?}"),
        });
        packets
    };
    assert_eq!((Format::of(&stream), Format::of(&dlf)), (Format::Hdlc, Format::Dlf));
    assert_eq!(packets(&stream), packets(&dlf));
    assert_eq!(packets(&stream).len(), 5);
}

#[test]
fn a_cut_file_is_reported_as_cut() {
    let mut body = vec![];
    packet(&[1, 2, 3, 4]).write(false, &mut body);
    let mut stream = vec![];
    frame::encode(Framing::Hdlc, &body, &mut stream);
    let whole = stream.len();
    stream.extend_from_slice(&stream.clone()[..7]);
    let mut last = None;
    Format::Hdlc.visit(&stream, |at, item| {
        last = matches!(item, Item::Unfinished(7)).then_some(at);
    });
    assert_eq!(last, Some(whole as u64));
}

/// Frames of packets with these payloads, and the length of the first frame.
fn stream(framing: Framing, payloads: &[&[u8]]) -> (Vec<u8>, usize) {
    let (mut stream, mut first) = (vec![], 0);
    for payload in payloads {
        let mut body = vec![];
        packet(payload).write(false, &mut body);
        if framing == Framing::Plain && stream.is_empty() {
            first = body.len() + 5;
        }
        frame::encode(framing, &body, &mut stream);
        if first == 0 {
            first = stream.len();
        }
    }
    (stream, first)
}

/// Payloads of packets, and positions of all other items, in files that arrive in these pieces.
fn read(files: &[&[&[u8]]]) -> (Vec<Vec<u8>>, Vec<(Place, usize)>) {
    let (mut payloads, mut cut) = (vec![], vec![]);
    let mut reader = Reader::default();
    let mut visit = |place, item: Item<'_>| match item {
        Item::Message(Message::Log(packet)) => payloads.push(packet.payload.to_vec()),
        Item::Unfinished(bytes) | Item::Skipped(bytes) => cut.push((place, bytes)),
        _ => cut.push((place, 0)),
    };
    for file in files {
        for piece in *file {
            reader.push(piece, &mut visit);
        }
        reader.next_file(&mut visit);
    }
    reader.finish(&mut visit);
    (payloads, cut)
}

#[test]
fn a_message_across_files_is_read_and_a_broken_one_costs_no_other() {
    let (stream, first) = stream(Framing::Hdlc, &[&[1, 0x7D, 3], &[4, 5], &[6]]);
    for cut in 0..=stream.len() {
        let (begin, end) = stream.split_at(cut);
        let (payloads, faults) = read(&[&[begin], &[], &[end]]);
        assert_eq!(payloads, [vec![1, 0x7D, 3], vec![4, 5], vec![6]], "cut at {cut}");
        assert_eq!(faults, [], "cut at {cut}");
    }
    let (payloads, faults) = read(&[&[&stream[..first + 5]], &[&stream]]);
    assert_eq!(payloads.len(), 4, "the file after a broken one is read from its first message on");
    assert_eq!(faults, [(Place { file: 0, offset: first as u64 }, 5)]);
}

#[test]
fn pieces_of_any_size_give_the_same_in_every_form() {
    let payloads: &[&[u8]] = &[&[1, 0x7E, 3], &[4; 30], &[], &[6], &[7, 8]];
    let hdlc = stream(Framing::Hdlc, payloads).0;
    let plain = stream(Framing::Plain, payloads).0;
    let mut dlf = vec![];
    for payload in payloads {
        let mut body = vec![];
        packet(payload).write(false, &mut body);
        dlf.extend_from_slice(&body[4..]);
    }
    for (form, file) in [(Format::Hdlc, hdlc), (Format::Plain, plain), (Format::Dlf, dlf)] {
        assert_eq!(Format::of(&file), form);
        for size in [1, 2, 7, 20, 1000] {
            let pieces: Vec<&[u8]> = file.chunks(size).collect();
            let (read, faults) = read(&[&pieces]);
            assert_eq!(read, payloads, "{form:?} in pieces of {size}");
            assert_eq!(faults, [], "{form:?} in pieces of {size}");
        }
    }
}

#[test]
fn bytes_after_the_packets_of_a_dlf_file_are_found_by_their_length() {
    let (mut dlf, _) = dlf(5, 2);
    let whole = dlf.len() as u64;
    dlf.extend([0; 40]);
    let (payloads, faults) = read(&[&[&dlf[..33], &dlf[33..]]]);
    assert_eq!((payloads.len(), faults), (5, vec![(Place { file: 0, offset: whole }, 40)]));
}

#[test]
fn a_stream_that_begins_inside_a_frame_is_a_stream_wherever_it_was_cut() {
    let payloads: Vec<Vec<u8>> = (0u8..40).map(|number| vec![number; 3 + usize::from(number) * 5]).collect();
    let (stream, _) = stream(Framing::Hdlc, &payloads.iter().map(Vec::as_slice).collect::<Vec<_>>());
    for cut in 0..stream.len() {
        assert_eq!(Format::of(&stream[cut..]), Format::Hdlc, "cut at {cut}");
    }
    let (whole, lost) = read(&[&[&stream[100..]]]);
    assert!(whole.len() > 35 && lost.len() == 1, "only what was cut is lost: {lost:?}");
}

#[test]
fn junk_is_no_dlf_file() {
    let mut state = 1u64;
    for seed in 0..200 {
        let junk: Vec<u8> = (0..4_000)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 56) as u8
            })
            .collect();
        assert_eq!(Format::of(&junk), Format::Hdlc, "junk {seed}");
    }
    for byte in 0..=255 {
        assert_eq!(Format::of(&[byte; 2_000]), Format::Hdlc, "only {byte}");
    }
}

#[test]
fn a_file_that_shows_no_form_has_that_of_the_one_before() {
    let (packets, begins) = dlf(9, 400);
    let (first, second) = packets.split_at(begins[6] + 100);
    let mut reader = Reader::default();
    let mut forms = vec![];
    for file in [first, &second[..250], &stream(Framing::Hdlc, &[&[1; 200][..]; 3]).0] {
        reader.push(file, |_, _| ());
        forms.push(reader.next_file(|_, _| ()));
    }
    assert_eq!(forms, [Format::Dlf, Format::Dlf, Format::Hdlc], "a stream's frames are seen after any file");

    let (frames, _) = stream(Framing::Hdlc, &[&[1; 200][..]; 3]);
    let mut reader = Reader::default();
    reader.push(&frames, |_, _| ());
    reader.next_file(|_, _| ());
    // Push a complete packet without the checksum of its frame.
    reader.push(&frames[4..4 + 212], |_, _| ());
    assert_eq!(reader.next_file(|_, _| ()), Format::Hdlc);
    assert_eq!(Format::of(&frames[4..4 + 212]), Format::Dlf, "alone it cannot be told");
}

#[test]
fn a_wrong_length_in_a_dlf_file_costs_its_own_packet() {
    let (whole, begins) = dlf(30, 50);
    for (length, packets, at, skipped) in [
        (63, 29, begins[3], 62),      // The length ends inside the next packet.
        (40_000, 29, begins[3], 62),  // The length ends beyond the file.
        (62 * 7, 29, begins[3], 0),   // The length leads to another packet and is accepted.
        (20, 30, begins[3] + 20, 42), // The length cuts the payload.
        (0, 29, begins[3], 62),
    ] {
        let mut broken = whole.clone();
        broken[begins[3]..begins[3] + 2].copy_from_slice(&(length as u16).to_le_bytes());
        let (found, others) = visit_dlf(&broken);
        if skipped == 0 {
            assert_eq!((found, others), (30 - 6, vec![]), "length {length} swallows six");
            continue;
        }
        assert_eq!(found, packets, "length {length}");
        assert_eq!(others, [(at as u64, format!("Skipped({skipped})"))], "length {length}");
    }
}

#[test]
fn a_dlf_file_without_its_begin_is_read_from_its_first_whole_packet() {
    let (whole, begins) = dlf(40, 50);
    for cut in 1..200 {
        let next = begins.iter().position(|begin| *begin >= cut).unwrap();
        let left = begins[next] - cut;
        let expected = if left > 0 { vec![(0, format!("Skipped({left})"))] } else { vec![] };
        assert_eq!(visit_dlf(&whole[cut..]), (40 - next, expected), "cut at {cut}");
    }
}

#[test]
fn bytes_lost_from_a_dlf_file_in_pieces_of_any_size_cost_the_same() {
    let (whole, begins) = dlf(40, 50);
    let broken = [&whole[..begins[9] + 30], &whole[begins[12] + 5..]].concat();
    for size in [1, 7, 100, 10_000] {
        let pieces: Vec<&[u8]> = broken.chunks(size).collect();
        let (payloads, others) = read(&[&pieces]);
        assert_eq!(
            payloads.len(),
            40 - 3,
            "pieces of {size}: no checksum tells that the tenth is made of two"
        );
        assert_eq!(
            others,
            [(Place { file: 0, offset: begins[10] as u64 }, 30 + 57 - 62)],
            "pieces of {size}"
        );
    }
}

#[test]
fn the_learning_of_the_time_and_a_pause_of_days_are_no_faults() {
    let mut log = vec![];
    let days = |days: u64| days * 86_400_000_000_000;
    for nanos in
        [500, 600, 700, days(14_000), days(14_000) + 9, days(14_005), days(14_005) + 9, days(14_005) + 10]
    {
        let mut body = vec![];
        LogPacket { stamp: Stamp::from_nanos(nanos), ..packet(&[(nanos % 251) as u8; 20]) }
            .write(false, &mut body);
        log.extend_from_slice(&body[4..]);
    }
    assert_eq!(visit_dlf(&log), (8, vec![]));
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_it_panic(files in proptest::collection::vec(
        proptest::collection::vec(proptest::collection::vec(
            proptest::prop_oneof![proptest::num::u8::ANY, proptest::strategy::Just(0x7E)], 0..40), 0..4), 0..3)) {
        let pieces: Vec<Vec<&[u8]>> =
            files.iter().map(|file| file.iter().map(Vec::as_slice).collect()).collect();
        let files: Vec<&[&[u8]]> = pieces.iter().map(Vec::as_slice).collect();
        read(&files);
    }
}
