//! Forms of log files, and what files hold that come in pieces, one after the other.

use crate::frame::{Deframer, FLAG, Fault, Framed, Framing, LONGEST};
use crate::packet::Message;

/// A form of log file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The stream of a port as it came: `.qmdl`, `.mi2log`, and `.qmdl2` after its header, which is skipped like any
    /// stream that begins inside a frame.
    Hdlc,
    /// The stream of a port on which HDLC was switched off.
    Plain,
    /// Log packets one after the other, without frames.
    Dlf,
}

/// Something in a log file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A message.
    Message(Message<'a>),
    /// Bytes that are no message.
    Fault(Fault),
    /// The file ends inside a message; so many bytes of it are there.
    Unfinished(usize),
}

/// Where something begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// In which of the files, counted from 0.
    pub file: usize,
    /// At which byte of it.
    pub offset: u64,
}

impl Format {
    /// The form of a file with this content: packets that lead from one to the next are a `.dlf` file's, lengths that
    /// lead to marks a plain stream's, anything else is a stream.
    pub fn of(bytes: &[u8]) -> Format {
        Format::detect(bytes, true).unwrap_or(Format::Hdlc)
    }

    /// The form of a file that begins so; `None` if more must be seen.
    fn detect(bytes: &[u8], is_all: bool) -> Option<Format> {
        match bytes {
            [FLAG, rest @ ..] => detect_plain(rest, is_all),
            _ => detect_dlf(bytes, is_all),
        }
    }

    /// Visits everything in a whole file, with its offset there.
    pub fn visit(self, bytes: &[u8], mut visit: impl FnMut(u64, Item<'_>)) {
        let mut reader = Reader { form: Some(self), ..Reader::default() };
        reader.deframer = self.deframer();
        reader.push(bytes, |place, item| visit(place.offset, item));
        reader.finish(|place, item| visit(place.offset, item));
    }

    fn deframer(self) -> Deframer {
        Deframer::new(if self == Format::Plain { Framing::Plain } else { Framing::Hdlc })
    }
}

/// Packets that lead from one to the next.
fn detect_dlf(bytes: &[u8], is_all: bool) -> Option<Format> {
    /// A stream's frames look like so many packets in a row by no accident.
    const ENOUGH: usize = 4;
    let mut rest = bytes;
    for seen in 0..ENOUGH {
        // Equipment 0 has no log packets.
        match Message::read_dlf(rest) {
            Some((Message::Log(packet), length)) if packet.code.0 >= 0x1000 => rest = &rest[length..],
            Some((Message::Cut { code, .. }, _)) if code.0 >= 0x1000 && !is_all => return None,
            None if rest.is_empty() && is_all && seen > 0 => return Some(Format::Dlf),
            None if rest.len() < 12 && !is_all => return None,
            _ => return Some(Format::Hdlc),
        }
    }
    Some(Format::Dlf)
}

/// After the first mark: a version, a length, and where that leads to another mark.
fn detect_plain(rest: &[u8], is_all: bool) -> Option<Format> {
    let (&[version, low, high], body) = match rest.split_first_chunk() {
        Some(split) => split,
        None if is_all => return Some(Format::Hdlc),
        None => return None,
    };
    match body.get(usize::from(u16::from_le_bytes([low, high]))) {
        _ if version != 1 => Some(Format::Hdlc),
        Some(&FLAG) => Some(Format::Plain),
        None if !is_all => None,
        _ => Some(Format::Hdlc),
    }
}

/// Reads log files that come in pieces, one file after the other. Memory is bounded: it holds a message at most.
///
/// A capture that was cut into files at any byte has messages that begin in one file and end in the next. The bytes at
/// the end of one file and at the begin of the next are one message where their checksum says so; otherwise each file
/// stands on its own.
///
/// Chosen: a stream that was simply continued would lose the first message of every file that follows a broken one.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    /// Which file.
    file: usize,
    /// Its form, once enough of it was seen.
    form: Option<Format>,
    /// Its bytes that were seen and not read.
    held: Vec<u8>,
    /// Where in the file `held` begins, or the deframer's stream.
    base: u64,
    deframer: Deframer,
    /// A message that began in a file before.
    carried: Option<(Place, Deframer)>,
    /// Bytes at the end of a `.dlf` file that are no packets.
    junk: usize,
}

impl Reader {
    /// Takes the next piece of a file; `visit` gets all that ends in it, and where that begins.
    pub fn push(&mut self, bytes: &[u8], mut visit: impl FnMut(Place, Item<'_>)) {
        self.take(bytes, false, &mut visit);
    }

    /// The file is over; what is pushed next belongs to the next one. Gives the form that the file had.
    pub fn next_file(&mut self, mut visit: impl FnMut(Place, Item<'_>)) -> Format {
        self.take(&[], true, &mut visit);
        if self.form == Some(Format::Dlf) {
            self.end_of_dlf(&mut visit);
        } else if let Some((_, deframer)) = &mut self.carried {
            // No message ended in this file.
            deframer.push(&self.held, |_, _| ());
        } else if let Some((at, _)) = self.deframer.begun() {
            let place = Place { file: self.file, offset: self.base + at };
            self.carried = Some((place, std::mem::take(&mut self.deframer)));
        }
        let form = self.form.unwrap_or(Format::Hdlc);
        *self = Reader { file: self.file + 1, carried: self.carried.take(), ..Reader::default() };
        form
    }

    /// There are no more files.
    pub fn finish(mut self, mut visit: impl FnMut(Place, Item<'_>)) {
        self.next_file(&mut visit);
        self.give_up(&mut visit);
    }

    /// Reads what can be read of the file's bytes so far.
    fn take(&mut self, bytes: &[u8], is_all: bool, visit: &mut impl FnMut(Place, Item<'_>)) {
        if self.form.is_some() && self.carried.is_none() && self.form != Some(Format::Dlf) {
            return self.deframe(bytes, visit);
        }
        self.held.extend_from_slice(bytes);
        if self.form.is_none() {
            let Some(form) = Format::detect(&self.held, is_all) else { return };
            self.form = Some(form);
            self.deframer = form.deframer();
        }
        if self.form == Some(Format::Dlf) {
            self.give_up(visit);
            return self.packets(visit);
        }
        if self.carried.is_some() && !self.join(visit) {
            return;
        }
        let held = std::mem::take(&mut self.held);
        self.deframe(&held, visit);
    }

    fn deframe(&mut self, bytes: &[u8], visit: &mut impl FnMut(Place, Item<'_>)) {
        let (file, base) = (self.file, self.base);
        self.deframer.push(bytes, |at, framed| {
            let place = Place { file, offset: base + at };
            match framed {
                Framed::Body(body) => {
                    if let Some(message) = Message::read(body) {
                        visit(place, Item::Message(message));
                    }
                }
                Framed::Fault(fault) => visit(place, Item::Fault(fault)),
            }
        });
    }

    /// Ends the message that began in a file before with the bytes up to this file's first mark, if they belong
    /// together; `false` if that mark has not come.
    fn join(&mut self, visit: &mut impl FnMut(Place, Item<'_>)) -> bool {
        let end = match memchr::memchr(FLAG, &self.held) {
            Some(at) => at + 1,
            None if self.held.len() > LONGEST => 0,
            None => return false,
        };
        let Some((place, mut deframer)) = self.carried.take() else { return true };
        let begun = deframer.begun().map_or(0, |(_, bytes)| bytes);
        let mut is_joined = false;
        deframer.push(&self.held[..end], |_, framed| {
            if let Framed::Body(body) = framed
                && let Some(message) = Message::read(body)
            {
                is_joined = true;
                visit(place, Item::Message(message));
            }
        });
        if is_joined {
            self.held.drain(..end);
            self.base = end as u64;
        } else {
            visit(place, Item::Unfinished(begun));
        }
        true
    }

    /// The message that began in a file before does not go on.
    fn give_up(&mut self, visit: &mut impl FnMut(Place, Item<'_>)) {
        if let Some((place, deframer)) = self.carried.take() {
            visit(place, Item::Unfinished(deframer.begun().map_or(0, |(_, bytes)| bytes)));
        }
    }

    /// Reads the packets of a `.dlf` file that are there as a whole.
    fn packets(&mut self, visit: &mut impl FnMut(Place, Item<'_>)) {
        let mut at = 0;
        while self.junk == 0
            && let Some((message @ Message::Log(_), length)) = Message::read_dlf(&self.held[at..])
        {
            visit(Place { file: self.file, offset: self.base + at as u64 }, Item::Message(message));
            at += length;
        }
        self.held.drain(..at);
        self.base += at as u64;
        let is_no_packet = self.held.len() >= 12 && Message::read_dlf(&self.held).is_none();
        if self.junk > 0 || is_no_packet {
            self.junk += self.held.len();
            self.held.clear();
        }
    }

    /// What is left is no packet, or not all of one.
    fn end_of_dlf(&mut self, visit: &mut impl FnMut(Place, Item<'_>)) {
        let place = Place { file: self.file, offset: self.base };
        match Message::read_dlf(&self.held) {
            Some((message, _)) => visit(place, Item::Message(message)),
            None if self.junk + self.held.len() > 0 => {
                visit(place, Item::Unfinished(self.junk + self.held.len()));
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame;
    use crate::packet::{LogCode, LogPacket, Radio};
    use crate::stamp::Stamp;

    fn packet(payload: &[u8]) -> LogPacket<'_> {
        LogPacket { radio: Radio::FIRST, code: LogCode(0xB0C0), stamp: Stamp(1 << 20), payload }
    }

    #[test]
    fn both_forms_are_told_apart_and_hold_the_same() {
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
    fn a_file_that_was_cut_says_so() {
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

    /// Payloads of packets, and places of what is none, in files of these pieces.
    fn read(files: &[&[&[u8]]]) -> (Vec<Vec<u8>>, Vec<(Place, usize)>) {
        let (mut payloads, mut cut) = (vec![], vec![]);
        let mut reader = Reader::default();
        let mut visit = |place, item: Item<'_>| match item {
            Item::Message(Message::Log(packet)) => payloads.push(packet.payload.to_vec()),
            Item::Unfinished(bytes) => cut.push((place, bytes)),
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
    fn what_follows_the_packets_of_a_dlf_file_is_told_by_its_length() {
        let mut dlf = vec![];
        for _ in 0..5 {
            let mut body = vec![];
            packet(&[1, 2]).write(false, &mut body);
            dlf.extend_from_slice(&body[4..]);
        }
        let whole = dlf.len() as u64;
        dlf.extend([0; 40]);
        let (payloads, faults) = read(&[&[&dlf[..33], &dlf[33..]]]);
        assert_eq!((payloads.len(), faults), (5, vec![(Place { file: 0, offset: whole }, 40)]));
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
}
