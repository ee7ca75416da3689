//! Properties that must hold for any bytes from a diagnostic port or a file.
//!
//! No function in this file may panic on any input. The comment of a function describes what else it checks.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use std::time::Duration;

use airpace_core::Time;
use airpace_diag::bandwidth::{Bandwidth, Point};
use airpace_diag::command::{Answer, Request};
use airpace_diag::export::capture::Capture;
use airpace_diag::export::{gsmtap, json, pdu, text};
use airpace_diag::grant::report::{Reports, Until};
use airpace_diag::grant::{GrantReport, Grants};
use airpace_diag::kpi::{Extractor, KPIS, MAX_TROUBLES, Reason, Subscription, Wanted};
use airpace_diag::layout::{
    Cell, Inner, Layout, Leaf, Part, Pick, Record, Repeat, Shown, Unreadable, Value, Version, Visited,
};
use airpace_diag::mac::{self, Direction};
use airpace_diag::modem::{Modem, ModemOptions};
use airpace_diag::rlc::{self, Pdu};
use airpace_diag::rrc;
use airpace_diag::source::{Item, Reader};
use airpace_diag::{
    Buffering, Control, Deframer, Fault, Format, Framed, Framing, Line, LogCode, LogPacket, Mask, Message,
    Radio, Session, SessionOptions, Stamp, char_device, frame, log,
};

use super::choices::Choices;

/// Visits bytes in pieces. The pieces' lengths repeat a list of four drawn lengths.
fn in_pieces<'a>(choices: &mut Choices<'a>, mut each: impl FnMut(&'a [u8])) {
    let lengths = [(); 4].map(|()| 1 + usize::from(choices.byte()));
    for length in lengths.iter().cycle() {
        match choices.take(*length) {
            [] => return,
            piece => each(piece),
        }
    }
}

/// Everything found in a stream: offset, and the body of a frame or a fault.
type Found = Vec<(u64, Result<Vec<u8>, Fault>)>;

fn note(found: &mut Found, at: u64, framed: Framed<'_>) {
    found.push((
        at,
        match framed {
            Framed::Body(body) => Ok(body.to_vec()),
            Framed::Fault(fault) => Err(fault),
        },
    ));
}

/// Frames: the result does not depend on the pieces in which a stream arrives. If the bodies found are framed again,
/// the same bodies are found.
pub fn frame(input: &[u8]) {
    let mut choices = Choices(input);
    let framing = if choices.byte() & 1 == 0 { Framing::Hdlc } else { Framing::Plain };
    let (mut whole, mut pieces) = (Found::new(), Found::new());
    let mut deframer = Deframer::new(framing);
    deframer.push(choices.0.get(4..).unwrap_or_default(), |at, framed| note(&mut whole, at, framed));
    let whole_end = deframer.finish();
    let mut deframer = Deframer::new(framing);
    in_pieces(&mut choices, |piece| deframer.push(piece, |at, framed| note(&mut pieces, at, framed)));
    let pieces_end = deframer.finish();
    if framing == Framing::Plain {
        // Plain frames have no delimiters, so a fault ends at the end of its piece.
        for found in [&mut whole, &mut pieces] {
            found.retain(|(_, body)| body.is_ok());
        }
    } else {
        assert_eq!(whole_end, pieces_end, "the same number of bytes should be left");
    }
    assert_eq!(whole, pieces, "pieces change nothing");
    let bodies: Vec<Vec<u8>> = whole.into_iter().filter_map(|(_, body)| body.ok()).collect();
    let mut stream = vec![];
    for body in &bodies {
        frame::encode(framing, body, &mut stream);
    }
    let mut again = Found::new();
    Deframer::new(framing).push(&stream, |at, framed| note(&mut again, at, framed));
    let again: Vec<Vec<u8>> = again.into_iter().filter_map(|(_, body)| body.ok()).collect();
    assert_eq!(again, bodies, "every framed body should be found");
}

/// Messages: a log packet that is written and parsed again is unchanged.
pub fn packet(input: &[u8]) {
    let same = |message: Option<Message<'_>>| {
        let Some(Message::Log(packet)) = message else { return };
        let mut body = vec![];
        packet.write(true, &mut body);
        assert_eq!(Message::read(&body), Some(Message::Log(packet)));
    };
    same(Message::read(input));
    if let Some((message, length)) = Message::read_dlf(input) {
        assert!(length > 0 && length <= input.len(), "the next packet starts later, within the input");
        same(Some(message));
    }
    let mut stamp = [0; 8];
    stamp[..input.len().min(8)].copy_from_slice(&input[..input.len().min(8)]);
    let stamp = Stamp(u64::from_le_bytes(stamp));
    assert!(stamp.to_string().len() >= 26, "every stamp should print as a date");
}

/// A packet of a drawn layout: its code, and a payload that starts with one of the layout's versions.
fn drawn_packet(choices: &mut Choices<'_>) -> (&'static Layout, LogCode, Vec<u8>) {
    static LAYOUTS: LazyLock<Vec<(LogCode, &Layout, Version)>> = LazyLock::new(|| {
        let layouts =
            log::CODES.iter().flat_map(|code| code.layouts.iter().map(|layout| (code.code, layout)));
        layouts
            .flat_map(|(code, layout)| layout.versions.iter().map(move |&version| (code, layout, version)))
            .collect()
    });
    let (code, layout, version) = LAYOUTS[choices.below(LAYOUTS.len())];
    let mut payload = version_bytes(version);
    payload.extend_from_slice(choices.0);
    (layout, code, payload)
}

/// The first bytes of a payload, which contain this version.
fn version_bytes(version: Version) -> Vec<u8> {
    match version {
        Version::Single(number) => vec![number],
        Version::Pair(major, minor) => {
            [minor, major].iter().flat_map(|number| number.to_le_bytes()).collect()
        }
    }
}

/// The values at a path in the whole record, in order.
fn at_path<'r, 'a>(record: &'r Record<'a>, path: &str, all: &mut Vec<&'r Value<'a>>) {
    match path.split_once('.') {
        None => all.extend(record.get(path)),
        Some((part, rest)) => match record.get(part) {
            Some(Value::Records(records)) => records.iter().for_each(|record| at_path(record, rest, all)),
            Some(Value::Record(record)) => at_path(record, rest, all),
            _ => {}
        },
    }
}

/// Whether a cell has the same content as a value.
fn is_same(leaves: &[Leaf], cell: Cell<'_>, value: &Value<'_>) -> bool {
    match (cell, value) {
        (Cell::Absent, Value::Absent) => true,
        (Cell::Unsigned(number), Value::Unsigned(other) | Value::Mask(other, _) | Value::Flags(other, _)) => {
            number == *other
        }
        // An empty name means that there is no value, and so does a number without a name.
        (Cell::Unsigned(number), Value::Absent) => leaves.iter().any(|leaf| {
            matches!(leaf.field.map(|field| field.shown),
                Some(Shown::Named(names)) if names.iter().all(|(of, name)| *of != number || name.is_empty()))
        }),
        (Cell::Unsigned(number), Value::Name(name)) => leaves.iter().any(|leaf| {
            matches!(leaf.field.map(|field| field.shown),
                Some(Shown::Named(names)) if names.contains(&(number, name)))
        }),
        (Cell::Signed(number), Value::Signed(other)) => number == *other,
        (Cell::Real(number), Value::Real(other)) => number.to_bits() == other.to_bits(),
        (Cell::Bytes(bytes), Value::Bytes(other)) => bytes == *other,
        _ => false,
    }
}

/// Whether a layout has a part that the reading of a single field may skip without checking it: a subpacket, whose end
/// is given in its header, or a repetition with a fixed number of places, whose size does not depend on the count.
fn has_unseen(part: &Part) -> bool {
    match part.inner {
        _ if matches!(part.repeat, Repeat::Room(..)) => true,
        Inner::Parts(parts) => parts.iter().any(has_unseen),
        Inner::Choice(..) => true,
        Inner::Bytes => false,
    }
}

/// Layouts: reading a single field gives the same as reading the whole packet. Both accept and refuse the same packets,
/// except for parts that the reading of a single field skips without checking.
pub fn layout(input: &[u8]) {
    let mut choices = Choices(input);
    let field = choices.below(usize::MAX);
    let (layout, code, payload) = drawn_packet(&mut choices);
    let packet = LogPacket { radio: Radio::FIRST, code, stamp: Stamp(0), payload: &payload };
    let read = log::read(&packet);
    let mut paths = BTreeSet::new();
    layout.leaves(|path, _| {
        paths.insert(path.to_owned());
    });
    let Some(path) = paths.iter().nth(field % paths.len()) else { return };
    let mut cells = vec![];
    let picked =
        Pick::new(layout, &[path]).expect("every field can be picked").visit_carefully(&payload, |visited| {
            if let Visited::Row(&[cell], _) = visited {
                cells.push(cell);
            }
        });
    let decoded = match read {
        Ok(decoded) => decoded,
        Err(Unreadable::Misfit(.., misfit)) => {
            assert!(picked.is_err() || has_unseen(&layout.root), "{code} {path}: {misfit}");
            return;
        }
        Err(other) => panic!("{other}: the layout should be known"),
    };
    assert_eq!(picked, Ok(()), "{code} {path}: the whole packet could be read");
    let mut values = vec![];
    at_path(&decoded.fields, path, &mut values);
    let leaves = layout.find(path);
    // A row of a subpacket of another kind has no value at the path.
    cells.retain(|cell| *cell != Cell::Absent || values.contains(&&Value::Absent));
    assert_eq!(cells.len(), values.len(), "{code} {path}: {cells:?} are {values:?}");
    for (cell, value) in cells.iter().zip(values) {
        assert!(is_same(&leaves, *cell, value), "{code} {path}: {cell:?} is {value:?}");
    }
}

/// A message of a file as text, which does not borrow from the file.
fn shown(item: Item<'_>) -> Option<String> {
    matches!(item, Item::Message(_)).then(|| format!("{item:?}"))
}

/// Files: the result does not depend on the pieces in which a file is read. A file that is split at any offset can be
/// read.
pub fn file(input: &[u8]) {
    let mut choices = Choices(input);
    let cut = choices.below(1 << 16);
    let bytes = choices.0.get(4..).unwrap_or_default();
    let mut whole = vec![];
    Format::of(bytes).visit(bytes, |at, item| whole.extend(shown(item).map(|text| (at, text))));
    let mut pieces = vec![];
    let mut reader = Reader::default();
    in_pieces(&mut choices, |piece| {
        reader.push(piece, |place, item| pieces.extend(shown(item).map(|text| (place.offset, text))));
    });
    reader.finish(|place, item| pieces.extend(shown(item).map(|text| (place.offset, text))));
    assert_eq!(whole, pieces, "pieces change nothing");
    let (first, second) = bytes.split_at(cut.min(bytes.len()));
    let mut reader = Reader::default();
    let mut last = Default::default();
    let mut forward = |place, _: Item<'_>| {
        assert!(place >= last, "messages come in the order in which they begin");
        last = place;
    };
    reader.push(first, &mut forward);
    reader.next_file(&mut forward);
    reader.push(second, &mut forward);
    reader.finish(&mut forward);
    for (_, stream) in char_device::blocks(bytes).flatten() {
        assert!(stream.len() <= bytes.len(), "a block is within what was read");
    }
}

/// KPIs: on any input, samples are finite numbers of requested KPIs, a packet that does not match its layout gives no
/// sample, and memory does not grow. A name is refused, or is unchanged after it is written and parsed again.
pub fn kpi(input: &[u8]) {
    let mut choices = Choices(input);
    let (_, code, payload) = drawn_packet(&mut choices);
    let (subscription, mut extractor) = all_of(code);
    let packet = LogPacket { radio: Radio::FIRST, code, stamp: Stamp(1 << 50), payload: &payload };
    let mut samples = 0;
    extractor.push(&packet, |sample| {
        samples += 1;
        assert!(sample.value.is_finite(), "{}: {sample:?}", subscription.wanted(sample.wanted));
        assert!(sample.subframe.is_none_or(|subframe| subframe < 10_240), "{sample:?}");
    });
    let does_not_fit = extractor.troubles().iter().any(|trouble| matches!(trouble.reason, Reason::Misfit(_)));
    assert!(!does_not_fit || samples == 0, "a packet that does not fit should give no samples");
    let is_read = log::read(&packet).is_ok();
    assert!(!is_read || !does_not_fit, "{code}: the whole packet could be read");
    for version in 0..choices.byte() {
        extractor.push(&LogPacket { payload: &[version, version, version, version], ..packet }, |_| {});
    }
    assert!(extractor.troubles().len() <= MAX_TROUBLES);
    if let Ok(name) = std::str::from_utf8(input)
        && let Ok(wanted) = name.parse::<Wanted>()
    {
        assert_eq!(wanted.to_string().parse(), Ok(wanted));
    }
}

/// All KPIs that a log packet can give.
fn all_of(code: LogCode) -> (Subscription, Extractor) {
    thread_local! {
        static KNOWN: RefCell<BTreeMap<LogCode, (Subscription, Extractor)>> = RefCell::default();
    }
    let new = || {
        let all = KPIS.iter().map(|kpi| kpi.name.parse::<Wanted>().expect("the list has this name"));
        let subscription = all.filter(|wanted| wanted.codes().contains(&code)).collect();
        let extractor = Extractor::new(&subscription);
        (subscription, extractor)
    };
    KNOWN.with_borrow_mut(|known| known.entry(code).or_insert_with(new).clone())
}

/// Requests, answers, control packets, MAC headers: parsed data are unchanged after they are written and parsed again.
pub fn command(input: &[u8]) {
    if let Ok(request) = Request::read(input) {
        assert_eq!(Request::read(&request.body()), Ok(request));
    }
    if let Some(answer) = Answer::read(input) {
        let again = Answer::read(&answer.body());
        // Spaces between the words of a version text are not preserved.
        let is_text = matches!(answer, Answer::Version(_) | Answer::Build(_));
        assert!(again.is_some() && (is_text || again == Some(answer)));
    }
    if let Some((control, to)) = Control::read(input) {
        let mut bytes = vec![];
        control.write(to, &mut bytes);
        assert_eq!(Control::read(&bytes), Some((control, to)));
    }
    for direction in [Direction::Up, Direction::Down] {
        let mut visited = 0;
        let whole = mac::visit(direction, input, |_| visited += 1);
        assert_eq!(whole.is_ok(), visited > 0, "a header should be read completely or not at all");
    }
    let mut visited = 0;
    let whole = mac::visit_answers(input, |_| visited += 1);
    assert_eq!(whole.is_ok(), visited > 0, "answers should be read completely or not at all");
}

/// RLC headers, NR messages and names of KPIs: a header lists no more items than its bits can hold; the type of a
/// parsed header agrees with its first bits; an exported message ends with its original bytes; a parsed name is
/// unchanged after it is written and parsed again.
pub fn header(input: &[u8]) {
    for sn_bits in [10, 16] {
        let mut items = 0;
        let pdu = rlc::visit(sn_bits, input, |_| items += 1);
        assert!(items * 12 <= 8 * input.len(), "a header should not list more than it has bits");
        let numbers = 1 << sn_bits;
        match pdu {
            Ok(Pdu::Data(data)) => assert!(u32::from(data.sn) < numbers && input[0] & 0x80 != 0),
            Ok(Pdu::Status { ack_sn }) => assert!(u32::from(ack_sn) < numbers && input[0] & 0xF0 == 0),
            Ok(Pdu::Control { cpt }) => assert_eq!(cpt, input[0] >> 4),
            Err(broken) => assert!(broken.at_bit <= 8 * input.len()),
        }
    }
    assert!(rlc::visit(12, input, |_| ()).is_err(), "no other numbers are known");
    for channel in ["DL-DCCH", "UL-DCCH", "BCCH-DL-SCH", "UL-CCCH", "RRCReconfigurationComplete"] {
        if let Some(kind) = rrc::nr_message(channel, input) {
            // A bare message has no bits before it that identify its type.
            let is_bare = channel == "RRCReconfigurationComplete";
            assert!(kind.number < 16 && (is_bare || input[0] & 0x80 == 0));
        }
        let exported = pdu::nr_rrc(channel, input).expect("Wireshark knows these");
        let mut written = vec![];
        exported.write(&mut written);
        assert_eq!(written.len(), exported.length());
        assert!(written.ends_with(&exported.message) && exported.message.len() >= input.len());
    }
    if let Ok(text) = std::str::from_utf8(input)
        && let Ok(wanted) = text.parse::<Wanted>()
    {
        assert_eq!(wanted.to_string().parse(), Ok(wanted), "a name should be read as it is written");
    }
}

/// Exports of packets: the JSON output can be parsed, and captures consist of complete blocks.
pub fn export(input: &[u8]) {
    let mut choices = Choices(input);
    let (_, code, payload) = drawn_packet(&mut choices);
    let packet = LogPacket { radio: Radio::FIRST, code, stamp: Stamp(1 << 50), payload: &payload };
    let reading = log::read(&packet);
    let mut line = vec![];
    json::packet(&packet, &reading, true, &mut line);
    serde_json::from_slice::<serde_json::Value>(&line).expect("JSON");
    let mut words = vec![];
    text::packet(&packet, &reading, &mut words);
    std::str::from_utf8(&words).expect("text");
    if let Ok(Some(message)) = gsmtap::message(&packet) {
        let mut capture = vec![];
        Capture::default().message(packet.radio, packet.stamp, &message, &mut capture);
        let mut rest = &capture[..];
        while let Some((head, _)) = rest.split_first_chunk::<8>() {
            let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
            assert!(
                length >= 12 && length.is_multiple_of(4) && length <= rest.len(),
                "a block should be complete"
            );
            rest = &rest[length..];
        }
        assert!(rest.is_empty(), "there should be no bytes between blocks");
    }
}

/// Sessions: with any bytes from the modem, at any time, the host does not send requests endlessly, and can always
/// restore the modem.
pub fn session(input: &[u8]) {
    let mut choices = Choices(input);
    let codes = |choices: &mut Choices<'_>| -> BTreeSet<LogCode> {
        (0..choices.byte() % 4).map(|_| log::CODES[choices.below(log::CODES.len())].code).collect()
    };
    let options = SessionOptions { wants_plain: choices.byte() & 1 == 0, ..SessionOptions::default() };
    let mut line = Line::new(Session::new(codes(&mut choices), options));
    let mut now = Time::ZERO;
    let mut asked = vec![];
    let mut sent = vec![];
    while !choices.0.is_empty() {
        match choices.byte() % 8 {
            0 => {
                let count = usize::from(choices.byte());
                line.push(now, choices.take(count), |_| {});
            }
            1 => {
                let count = usize::from(choices.byte());
                answer(&mut line, now, choices.take(count));
            }
            // The last request is returned with some bytes after it, which is how a modem answers.
            2 | 3 => {
                let mut body: Vec<u8> = asked.clone();
                body.truncate(body.len().saturating_sub(usize::from(choices.byte() % 4)));
                let count = usize::from(choices.byte());
                body.extend_from_slice(choices.take(count));
                answer(&mut line, now, &body);
            }
            4 | 5 => now += Duration::from_millis(u64::from(choices.byte()) * 20),
            6 => line.session.want(codes(&mut choices)),
            _ => line.session.leave(),
        }
        sent.clear();
        line.pop(now, &mut sent);
        assert!(sent.len() < 1 << 20, "the host should not send requests without end");
        let mut deframer = Deframer::new(line.session.framing());
        deframer.push(&sent, |_, framed| {
            if let Framed::Body(body) = framed {
                asked = body.to_vec();
            }
        });
        assert!(line.poll_timeout().is_none_or(|due| due > now), "no timer should still be due");
        line.restore();
    }
}

/// The emulated modem: with any bytes from a host, memory stays bounded, packets that were not requested are not sent,
/// and each packet counts as sent, stored, lost or not requested.
pub fn modem(input: &[u8]) {
    let mut choices = Choices(input);
    let options = ModemOptions {
        memory: 4_096,
        buffering: if choices.byte() & 1 == 0 { Buffering::Streaming } else { Buffering::THRESHOLD },
        offers_plain: choices.byte() & 1 == 0,
        ..ModemOptions::default()
    };
    let mut modem = Modem::new(options);
    let mut now = Time::ZERO;
    let mut out = vec![];
    while !choices.0.is_empty() {
        match choices.byte() % 8 {
            0 => {
                let count = usize::from(choices.byte());
                modem.push(now, choices.take(count));
            }
            1 | 2 => {
                let count = usize::from(choices.byte());
                let mut bytes = vec![];
                frame::encode(modem.framing(), choices.take(count), &mut bytes);
                modem.push(now, &bytes);
            }
            3 => {
                let codes = [log::CODES[choices.below(log::CODES.len())].code];
                let mut bytes = vec![];
                let mask = Request::SetLogMask(Mask::of(0xB, 0xA20, codes));
                frame::encode(modem.framing(), &mask.body(), &mut bytes);
                modem.push(now, &bytes);
            }
            4 | 5 => {
                let code = log::CODES[choices.below(log::CODES.len())].code;
                let radio = Radio(1 + choices.byte() % 2);
                let count = usize::from(choices.byte());
                modem.feed(now, LogPacket { radio, code, stamp: Stamp(0), payload: choices.take(count) });
            }
            6 => now += Duration::from_millis(u64::from(choices.byte()) * 10),
            _ => modem.hang_up(),
        }
        if choices.byte() & 1 == 0 {
            out.clear();
            modem.pop(now, &mut out);
            assert!(out.len() < 1 << 20, "memory is bounded");
            assert!(modem.poll_timeout().is_none_or(|due| due > now), "no timer should still be due");
        }
        let stats = modem.stats();
        assert!(stats.unasked + stats.lost + stats.sent <= stats.fed, "{stats:?}");
    }
}

/// Grants and bandwidth: for packets with any time stamps, windows are in order, and their number depends on the
/// packets and not on the time between packets.
pub fn bandwidth(input: &[u8]) {
    let mut choices = Choices(input);
    let mut bandwidth = Bandwidth::new(1 + u32::from(choices.byte()));
    let mut reports = Reports::new(Radio::FIRST);
    // A tick is 1.25 ms.
    let mut ticks = 1 << 36;
    let codes: Vec<LogCode> = Grants::codes().into_iter().collect();
    while !choices.0.is_empty() {
        ticks += match choices.byte() {
            // The modem learns the time of day.
            0 => 1 << 36,
            // A time stamp is corrupted, by any amount.
            1 => u64::from(choices.byte()) << 39,
            step => u64::from(step % 64),
        };
        let code = codes[choices.below(codes.len())];
        let versions: Vec<Version> = log::code(code)
            .expect("grants have layouts")
            .layouts
            .iter()
            .flat_map(|layout| layout.versions)
            .copied()
            .collect();
        let mut payload = version_bytes(versions[choices.below(versions.len())]);
        let count = usize::from(choices.byte());
        payload.extend_from_slice(choices.take(count));
        let packet = LogPacket { radio: Radio::FIRST, code, stamp: Stamp(ticks << 16), payload: &payload };
        let windows = 2 + 10_000 + bandwidth.due();
        bandwidth.push(&packet, |report| {
            if let GrantReport::Grant(grant) = report {
                assert!(grant.new_bits() <= grant.bits(), "{grant:?}");
                reports.push(grant);
            }
        });
        let points = bandwidth.take();
        // The input has one radio and two directions. A packet extends the series of windows by at most ten seconds.
        assert!(points.len() as u64 <= 2 * windows, "the number of windows should follow packets, not time");
        check_points(&points);
    }
    check_points(&bandwidth.finish());
    reports.take(Until::End);
}

fn check_points(points: &[Point]) {
    for point in points {
        assert!(points[0].begin <= point.begin, "windows come in order");
    }
}

fn answer(line: &mut Line, now: Time, body: &[u8]) {
    let mut bytes = vec![];
    frame::encode(line.session.framing(), body, &mut bytes);
    line.push(now, &bytes, |_| {});
}
