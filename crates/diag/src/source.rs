//! Forms of log files, and what a whole file holds.

use crate::frame::{Deframer, Fault, Framed, Framing};
use crate::packet::Message;

/// A form of log file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The stream of a port as it came: `.qmdl`, `.mi2log`, and `.qmdl2` after its header, which is skipped like any
    /// stream that begins inside a frame.
    Hdlc,
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

impl Format {
    /// The form of a file with this content: packets that lead from one to the next are a `.dlf` file's, anything else
    /// is a stream.
    pub fn of(bytes: &[u8]) -> Format {
        /// A stream's frames look like so many packets in a row by no accident.
        const ENOUGH: usize = 4;
        let mut rest = bytes;
        for _ in 0..ENOUGH {
            match Message::read_dlf(rest) {
                // Equipment 0 has no log packets.
                Some((Message::Log(packet), length)) if packet.code.0 >= 0x1000 => rest = &rest[length..],
                _ => return Format::Hdlc,
            }
            if rest.is_empty() {
                break;
            }
        }
        Format::Dlf
    }

    /// Visits everything in a whole file, with its offset there.
    pub fn visit(self, bytes: &[u8], mut visit: impl FnMut(u64, Item<'_>)) {
        match self {
            Format::Hdlc => {
                let mut deframer = Deframer::new(Framing::Hdlc);
                deframer.push(bytes, |at, framed| match framed {
                    Framed::Body(body) => {
                        if let Some(message) = Message::read(body) {
                            visit(at, Item::Message(message));
                        }
                    }
                    Framed::Fault(fault) => visit(at, Item::Fault(fault)),
                });
                if let Some((at, left)) = deframer.finish() {
                    visit(at, Item::Unfinished(left));
                }
            }
            Format::Dlf => {
                let mut at = 0;
                while let Some((message, length)) = Message::read_dlf(&bytes[at..]) {
                    visit(at as u64, Item::Message(message));
                    at += length;
                }
                if at < bytes.len() {
                    visit(at as u64, Item::Unfinished(bytes.len() - at));
                }
            }
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
}
