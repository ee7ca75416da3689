//! A session with its framing: bytes from and to the modem, and the received log packets.

use airpace_core::Time;

use super::{Session, State};
use crate::frame::{self, Deframer, Framed, Framing};
use crate::packet::{LogPacket, Message};

/// A session on a byte stream.
#[derive(Clone, Debug)]
pub struct Line {
    /// The session on the byte stream.
    pub session: Session,
    deframer: Deframer,
    framing: Framing,
    faults: u64,
}

impl Line {
    /// Creates a line that has not received any bytes.
    pub fn new(session: Session) -> Line {
        Line { session, deframer: Deframer::default(), framing: Framing::Hdlc, faults: 0 }
    }

    /// Takes bytes from the modem; calls `visit` for each log packet in them.
    pub fn push(&mut self, now: Time, bytes: &[u8], mut visit: impl FnMut(&LogPacket<'_>)) {
        if let State::Opening(_) = self.session.state() {
            // An answer may change the framing of the bytes right after it.
            bytes
                .split_inclusive(|&byte| byte == frame::FLAG)
                .for_each(|piece| self.take(now, piece, &mut visit));
        } else {
            self.take(now, bytes, &mut visit);
        }
    }

    fn take(&mut self, now: Time, bytes: &[u8], visit: &mut impl FnMut(&LogPacket<'_>)) {
        self.follow();
        let Line { session, deframer, faults, .. } = self;
        deframer.push(bytes, |_, framed| match framed {
            Framed::Body(body) => {
                if let Some(message) = Message::read(body) {
                    if let Message::Log(packet) = &message {
                        visit(packet);
                    }
                    session.on_message(now, &message);
                }
            }
            Framed::Fault(_) => *faults += 1,
        });
    }

    /// Appends the bytes that must be sent now.
    pub fn pop(&mut self, now: Time, out: &mut Vec<u8>) {
        if self.poll_timeout().is_some_and(|due| due <= now) {
            self.session.handle_timeout(now);
        }
        self.follow();
        while let Some(body) = self.session.poll_transmit() {
            frame::encode(self.framing, &body, out);
        }
    }

    /// Time of the next [`pop`](Line::pop); `None` if never.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.session.poll_timeout()
    }

    /// The bytes that restore the modem, at any time; see [`Session::restore`].
    pub fn restore(&self) -> Vec<u8> {
        let mut bytes = vec![];
        for body in self.session.restore() {
            frame::encode(self.session.framing(), &body, &mut bytes);
        }
        bytes
    }

    /// Number of faults so far: pieces of the stream that were not a message.
    pub fn faults(&self) -> u64 {
        self.faults
    }

    /// Adopts the framing of the session.
    fn follow(&mut self) {
        if self.framing != self.session.framing() {
            self.framing = self.session.framing();
            self.deframer.set_framing(self.framing);
        }
    }
}
