//! Formats of log files, and an incremental reader for a sequence of files.

mod dlf;
#[cfg(test)]
mod tests;

use crate::frame::{Deframer, ESCAPE, FLAG, FLIP, Fault, Framed, Framing, MAX_BODY};
use crate::packet::{LOG, Message, WRAPPER, WRAPPER_HEADER};
use crate::stamp::Stamp;

/// Number of bytes from a file's start within which its format is detected.
///
/// Chosen: this length contains three packets of maximum length after a part of a fourth packet.
const FIRST_STRETCH: usize = 1 << 18;

/// Format of a log file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The unmodified stream of a port: `.qmdl`, `.mi2log`, and `.qmdl2` after its header. The header is skipped like the
    /// start of any stream that starts inside a frame.
    Hdlc,
    /// The stream of a port with HDLC switched off.
    Plain,
    /// Consecutive log packets without frames.
    Dlf,
}

/// An item in a log file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A message.
    Message(Message<'a>),
    /// Bytes that are not a message.
    Fault(Fault),
    /// Number of bytes between the packets of a `.dlf` file that are not a packet: a packet with a wrong length, or the
    /// rest of a packet.
    Skipped(usize),
    /// The file ends inside a message. The value is the number of the message's bytes in the file.
    Unfinished(usize),
}

/// Position of an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Number of the file, from 0.
    pub file: usize,
    /// Offset in the file (bytes).
    pub offset: u64,
}

impl Format {
    /// Detects the format from a file's content. Frames with valid checksums indicate an HDLC stream. Lengths that lead
    /// to flags indicate a plain stream. Packets whose lengths each lead to the next packet indicate a `.dlf` file. The
    /// default is an HDLC stream.
    pub fn of(bytes: &[u8]) -> Format {
        Format::detect(bytes, true, None).unwrap_or(Format::Hdlc)
    }

    /// Detects the format of a file that starts with `bytes` and follows a file of format `before`; `None` if more
    /// bytes are needed.
    fn detect(bytes: &[u8], is_all: bool, before: Option<Format>) -> Option<Format> {
        if let [FLAG, rest @ ..] = bytes {
            let is_plain = is_plain(rest, is_all)?;
            if is_plain {
                return Some(Format::Plain);
            }
        }
        // Check only the first [`FIRST_STRETCH`] bytes of a longer file, even if more bytes have arrived. The format
        // thus does not depend on the size of the pieces.
        let (stretch, is_whole, is_enough) = match bytes.get(..FIRST_STRETCH) {
            Some(stretch) => (stretch, false, true),
            None => (bytes, true, is_all),
        };
        if has_frames(stretch) {
            return Some(Format::Hdlc);
        }
        if !is_enough {
            return None;
        }
        // A damaged stream may contain bytes that look like packets of a `.dlf` file; but a `.dlf` file has no frames.
        let is_dlf = !has_remains_of_frames(stretch) && dlf::is_packets(stretch, is_whole, before.is_none());
        Some(if is_dlf { Format::Dlf } else { before.unwrap_or(Format::Hdlc) })
    }

    /// Visits all items of a whole file, with their offsets in the file.
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

/// Whether the bytes contain the frame of a log packet with a valid checksum, or two frames of other messages with
/// valid checksums. Random bytes rarely do.
fn has_frames(bytes: &[u8]) -> bool {
    let (mut packets, mut others) = (0, 0);
    let mut deframer = Deframer::default();
    for frame in bytes.split_inclusive(|byte| *byte == FLAG) {
        deframer.push(frame, |_, framed| {
            if let Framed::Body(body) = framed {
                let is_packet = matches!(Message::read(body), Some(Message::Log(_)));
                *(if is_packet { &mut packets } else { &mut others }) += 1;
            }
        });
        if packets > 0 || others > 1 {
            return true;
        }
    }
    false
}

/// Whether two frames start like frames of log packets, with the same length in both length fields, independent of
/// their checksums.
///
/// Chosen: in other data, one flag in sixteen million is followed by such a start.
fn has_remains_of_frames(bytes: &[u8]) -> bool {
    const ENOUGH: usize = 2;
    /// Number of bytes from the start of a frame up to its second length field: wrapper, if any, command, a byte, and
    /// twice the length.
    const BEGIN: usize = WRAPPER_HEADER + 6;
    let is_packet = |frame: &[u8]| {
        let (mut begin, mut is_escaped) = (vec![], false);
        for &byte in frame.iter().take(2 * BEGIN) {
            if byte == ESCAPE {
                is_escaped = true;
            } else {
                begin.push(if std::mem::take(&mut is_escaped) { byte ^ FLIP } else { byte });
            }
        }
        let own =
            if begin.first() == Some(&WRAPPER) { begin.get(WRAPPER_HEADER..) } else { Some(&begin[..]) };
        matches!(own, Some(&[LOG, _, low, high, again, high_again, ..])
            if (low, high) == (again, high_again) && usize::from(u16::from_le_bytes([low, high])) >= dlf::HEADER)
    };
    bytes.split(|byte| *byte == FLAG).filter(|frame| is_packet(frame)).nth(ENOUGH - 1).is_some()
}

/// Reads a version and a length after the first flag. Returns whether the length leads to another flag; `None` if more
/// bytes are needed.
fn is_plain(rest: &[u8], is_all: bool) -> Option<bool> {
    let Some((&[version, low, high], body)) = rest.split_first_chunk() else {
        return is_all.then_some(false);
    };
    if version != 1 {
        return Some(false);
    }
    match body.get(usize::from(u16::from_le_bytes([low, high]))) {
        Some(&last) => Some(last == FLAG),
        None => is_all.then_some(false),
    }
}

/// Reads a sequence of log files that arrive in pieces. Memory is bounded: the reader holds at most a few messages, and
/// the start of a file whose format is not detected yet.
///
/// If a capture was split into files at arbitrary bytes, messages start in one file and end in the next file. The bytes
/// at the end of one file and at the start of the next file count as one message if the checksum over both matches;
/// otherwise each file is read separately. For a file whose format cannot be detected, the reader assumes the format of
/// the previous file.
///
/// In a `.dlf` file, after a wrong length, packets are lost up to the next three packets whose lengths each lead to the
/// next packet.
///
/// Chosen: each file starts a new stream. If the stream of a damaged file were continued, the first message of the next
/// file would be lost.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    /// Number of the current file, from 0.
    file: usize,
    /// Format of the current file, once it is detected.
    form: Option<Format>,
    /// Format of the previous file.
    before: Option<Format>,
    /// Bytes of the current file that have arrived but are not read yet.
    held: Vec<u8>,
    /// Offset in the current file of `held`, or of the start of the deframer's stream.
    base: u64,
    deframer: Deframer,
    /// A message that started in an earlier file.
    carried: Option<(Place, Deframer)>,
    /// Stamp of the last packet of a `.dlf` file.
    last: Option<Stamp>,
    /// Number of bytes after the last packet of a `.dlf` file that are not a packet.
    skipped: usize,
}

impl Reader {
    /// Takes the next piece of a file. Calls `visit` for every item that ends in this piece, with the position of the
    /// item's start.
    pub fn push(&mut self, bytes: &[u8], mut visit: impl FnMut(Place, Item<'_>)) {
        self.take(bytes, false, &mut visit);
    }

    /// Ends the file. Bytes pushed afterwards belong to the next file. Returns the format of the file.
    pub fn next_file(&mut self, mut visit: impl FnMut(Place, Item<'_>)) -> Format {
        self.take(&[], true, &mut visit);
        if self.form == Some(Format::Dlf) {
            // All remaining bytes have been reported, so nothing is left to do.
        } else if let Some((_, deframer)) = &mut self.carried {
            // No message ended in this file.
            deframer.push(&self.held, |_, _| ());
        } else if let Some((at, _)) = self.deframer.begun() {
            let place = Place { file: self.file, offset: self.base + at };
            self.carried = Some((place, std::mem::take(&mut self.deframer)));
        }
        let form = self.form.unwrap_or(Format::Hdlc);
        let (file, carried) = (self.file + 1, self.carried.take());
        *self = Reader { file, before: Some(form), carried, ..Reader::default() };
        form
    }

    /// Ends the last file and the reader.
    pub fn finish(mut self, mut visit: impl FnMut(Place, Item<'_>)) {
        self.next_file(&mut visit);
        self.give_up(&mut visit);
    }

    /// Reads as many items as possible from the file's bytes so far.
    fn take(&mut self, bytes: &[u8], is_all: bool, visit: &mut impl FnMut(Place, Item<'_>)) {
        if self.form.is_some() && self.carried.is_none() && self.form != Some(Format::Dlf) {
            return self.deframe(bytes, visit);
        }
        self.held.extend_from_slice(bytes);
        if self.form.is_none() {
            let Some(form) = Format::detect(&self.held, is_all, self.before) else { return };
            self.form = Some(form);
            self.deframer = form.deframer();
        }
        if self.form == Some(Format::Dlf) {
            self.give_up(visit);
            return self.packets(is_all, visit);
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

    /// Joins the message that started in an earlier file with the bytes up to this file's first flag, if the checksum
    /// of the joined message is valid. Returns `false` if the first flag has not arrived yet.
    fn join(&mut self, visit: &mut impl FnMut(Place, Item<'_>)) -> bool {
        let end = match memchr::memchr(FLAG, &self.held) {
            Some(at) => at + 1,
            None if self.held.len() > MAX_BODY => 0,
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

    /// Reports the message that started in an earlier file as unfinished.
    fn give_up(&mut self, visit: &mut impl FnMut(Place, Item<'_>)) {
        if let Some((place, deframer)) = self.carried.take() {
            visit(place, Item::Unfinished(deframer.begun().map_or(0, |(_, bytes)| bytes)));
        }
    }

    /// Reads the packets of a `.dlf` file that can be determined so far.
    fn packets(&mut self, is_all: bool, visit: &mut impl FnMut(Place, Item<'_>)) {
        let mut at = 0;
        loop {
            let rest = &self.held[at..];
            let place = Place { file: self.file, offset: self.base + at as u64 };
            // After skipped bytes, only the packets that follow can confirm the start of a packet. A check of the last
            // packet's time, too, would make the result depend on the size of the pieces.
            let last = if self.skipped > 0 { None } else { self.last };
            match dlf::step(rest, last, self.skipped == 0, is_all) {
                dlf::Step::Skip(bytes) => {
                    self.skipped += bytes;
                    at += bytes;
                }
                dlf::Step::Packet | dlf::Step::Cut => {
                    let Some((message, length)) = Message::read_dlf(rest) else { break };
                    if self.skipped > 0 {
                        let offset = place.offset - self.skipped as u64;
                        visit(Place { offset, ..place }, Item::Skipped(self.skipped));
                        self.skipped = 0;
                    }
                    if let Message::Log(packet) = message {
                        self.last = Some(packet.stamp);
                    }
                    visit(place, Item::Message(message));
                    at += length;
                }
                dlf::Step::More => break,
            }
        }
        self.held.drain(..at);
        self.base += at as u64;
        let left = self.skipped + self.held.len();
        if is_all && left > 0 {
            let offset = self.base - self.skipped as u64;
            visit(Place { file: self.file, offset }, Item::Unfinished(left));
        }
    }
}
