//! Processing of received datagrams in a connection.

use std::time::Duration;

use airpace_cc::controller::Arrival;
use airpace_cc::registry::DeviceFlows;
use airpace_core::{Bytes, Ecn, Time};

use super::super::handshake::{self, Session};
use super::super::packet::{Accept, Cookie, Data, Frame, Frames, Gone};
use super::super::path::{Path, PathEnds};
use super::super::seal::Refusal;
use super::super::stream::StreamViolation;
use super::{Goodbye, Keys, State, UdpConnection};
use crate::endpoint::{Closed, Event, Ignored, overhead};
use crate::key::Key;

/// Maximum number of received Pings that wait for their Pong to be sent.
const MAX_PONGS: usize = 8;

/// Maximum offset between the clocks of two machines (ns). A time stamp with a larger offset is invalid.
///
/// Chosen: 36 years, longer than the uptime of any machine.
const MAX_OFFSET_NS: i64 = 1 << 60;

/// Metadata of a sealed packet.
pub struct Envelope {
    pub received: Time,
    pub ends: PathEnds,
    pub ecn: Ecn,
    pub counter: u64,
}

impl UdpConnection {
    /// Processes a Cookie packet.
    pub fn on_cookie(&mut self, now: Time, key: &Key, packet: &Cookie<'_>, ignored: &mut Ignored) {
        let now = self.at(now);
        let State::Hello(greeting) = &mut self.state else {
            ignored.replayed += 1;
            return;
        };
        if !handshake::is_cookie(key, &greeting.nonce, packet) {
            ignored.forged += 1;
        } else if greeting.cookie == *packet.cookie {
            ignored.replayed += 1;
        } else {
            greeting.cookie = *packet.cookie;
            (greeting.next, greeting.tries) = (now, 0);
        }
    }

    /// Processes an Accept.
    pub fn on_accept(&mut self, now: Time, key: &Key, packet: &Accept<'_>, ignored: &mut Ignored) {
        let now = self.at(now);
        let State::Hello(greeting) = &self.state else {
            ignored.replayed += 1;
            return;
        };
        let Some(session) = Session::accepted(key, &greeting.nonce, packet) else {
            ignored.forged += 1;
            return;
        };
        self.peer_name = session.server;
        self.keys = Some(Keys::new(key, session, true));
        self.state = State::Open { accept_due: false };
        self.last_heard = now;
        self.request_due = true;
        // The server does not know that its Accept arrived until it receives a sealed packet.
        self.ask(now);
        self.events.push_back(Event::Connected);
        self.announce();
    }

    /// Handles a copy of the Hello that created this connection, with a cookie for this address: the Accept may have
    /// been lost.
    pub fn on_hello_again(&mut self, ends: PathEnds) {
        if self.is_half_open() {
            self.path = Path::new(ends);
        }
        if let State::HalfOpen { accept_due, .. } | State::Open { accept_due } = &mut self.state {
            *accept_due = true;
        }
    }

    /// Processes a Gone that refers to the peer's name.
    pub fn on_gone(&mut self, now: Time, key: &Key, gone: &Gone<'_>, ignored: &mut Ignored) {
        self.at(now);
        let was_sent = self.keys.as_ref().is_some_and(|keys| gone.counter < keys.sealer.counter());
        if !was_sent || !handshake::is_gone(key, self.is_client, gone) {
            ignored.forged += 1;
            return;
        }
        match self.state {
            State::Open { .. } => self.end_after(
                self.incoming.is_readable(),
                Closed::Failed(
                    "the other side does not know this connection any more: it was restarted, or its closing \
                     packet was lost"
                        .to_owned(),
                ),
            ),
            State::Closing(_) => self.state = State::Over,
            State::Hello(_) | State::HalfOpen { .. } | State::Drained(_) | State::Over => {
                ignored.replayed += 1;
            }
        }
    }

    /// Processes a sealed packet.
    pub fn on_sealed(&mut self, envelope: &Envelope, packet: &mut [u8], ignored: &mut Ignored) {
        let Some(keys) = &mut self.keys else {
            ignored.stray += 1;
            return;
        };
        let bytes = packet.len();
        let (text, is_newest) = match keys.opener.open(envelope.counter, packet) {
            Ok(opened) => opened,
            Err(Refusal::Replayed) => return ignored.replayed += 1,
            Err(Refusal::Forged) => return ignored.forged += 1,
        };
        if Frames::of(text).any(|frame| frame.is_err()) {
            ignored.malformed += 1;
            return;
        }
        let now = self.at(envelope.received);
        self.last_heard = now;
        self.waits_since = None;
        let patience = (self.timeout() * 3).max(Duration::from_secs(1));
        let token = if envelope.ends.peer == self.path.ends().peer { 0 } else { self.tokens.draw() };
        self.path.on_datagram(now, envelope.ends, bytes, is_newest, token, patience);
        match &mut self.state {
            State::HalfOpen { .. } => {
                self.state = State::Open { accept_due: false };
                self.limit_due = true;
                self.events.push_back(Event::Connected);
            }
            State::Closing(goodbye) => {
                if Frames::of(text).any(|frame| matches!(frame, Ok(Frame::Close { .. }))) {
                    self.state = State::Over;
                } else {
                    goodbye.on_late_packet(now);
                }
                return;
            }
            State::Open { .. } => {}
            State::Hello(_) | State::Drained(_) | State::Over => return,
        }
        for frame in Frames::of(text).flatten() {
            if let Err(closed) = self.take_in(now, envelope, bytes, frame) {
                return self.end(closed);
            }
        }
        self.announce();
    }

    /// Processes a frame.
    ///
    /// # Errors
    /// The connection must be closed, for this reason.
    fn take_in(
        &mut self,
        now: Time,
        envelope: &Envelope,
        bytes: usize,
        frame: Frame<'_>,
    ) -> Result<(), Closed> {
        match frame {
            Frame::Ack(ack) => {
                let breach = |error| Closed::Failed(format!("the other side breaks the protocol: {error}"));
                let outcome = self.sender.on_ack(now, &ack).map_err(breach)?;
                self.note(outcome);
            }
            Frame::Limit(limit) => self.outgoing.raise(limit),
            Frame::Ping(token) => {
                if self.pongs.len() < MAX_PONGS {
                    self.pongs.push_back((token, envelope.ends.peer));
                }
            }
            Frame::Pong(token) => {
                self.question.take_if(|question| question.is_answered_by(token));
                if let Some(address) = self.path.on_pong(token) {
                    self.events.push_back(Event::Moved(address));
                }
            }
            Frame::Request(rider) => {
                if self.newest_request.is_none_or(|newest| envelope.counter > newest) {
                    self.newest_request = Some(envelope.counter);
                    self.sender.on_request(now, rider.as_bytes());
                }
            }
            Frame::Close { code, reason } => {
                return Err(Closed::ByPeer { code, reason: reason.to_owned() });
            }
            Frame::Data(data) => self.take_in_data(now, envelope, bytes, &data)?,
        }
        Ok(())
    }

    fn take_in_data(
        &mut self,
        now: Time,
        envelope: &Envelope,
        bytes: usize,
        data: &Data<'_>,
    ) -> Result<(), Closed> {
        let one_way = envelope.received.signed_nanos_since(data.sent);
        let breach = |what: &str| Err(Closed::Failed(format!("the other side breaks the protocol: {what}")));
        if !(-MAX_OFFSET_NS..MAX_OFFSET_NS).contains(&one_way) || data.number >= 1 << 62 {
            return breach("a data packet has no time or no number");
        }
        match self.incoming.insert(data.offset, data.bytes, data.fin) {
            Ok(_) => {}
            Err(StreamViolation::BeyondLimit) => {
                return breach("it sent more than the receive window allows");
            }
            Err(StreamViolation::End) => return breach("it sent data behind the end of a stream"),
            // The packet counts as lost, and the peer will retransmit it.
            Err(StreamViolation::Pieces) => return Ok(()),
        }
        let size = Bytes(bytes as u64 + overhead(&envelope.ends.peer).0);
        let mut arrival = Arrival::new(now, data.sent, data.number, size);
        (arrival.ecn, arrival.header) = (envelope.ecn, data.header);
        arrival.device = self.device.unwrap_or(DeviceFlows::ALONE);
        if !self.acker.on_packet(&arrival).duplicate {
            self.received.packets += 1;
            self.received.bytes += size;
        }
        // Both delays contain the same clock offset. A clock drift matters in long connections only.
        let least = self.delays.map_or(one_way, |(least, _)| least.min(one_way));
        self.delays = Some((least, one_way));
        Ok(())
    }

    /// Closes the connection after the application has read all bytes, or after its time for reading has passed.
    pub(super) fn end_drained(&mut self) {
        if let State::Drained(closed) = &self.state {
            let closed = closed.clone();
            self.state = State::Over;
            self.events.push_back(Event::Closed(closed));
        }
    }
}

impl Goodbye {
    /// Handles a packet of a peer that has not received the Close yet. Each answer requires twice as many packets as
    /// the one before, so that two endpoints cannot answer each other forever.
    ///
    /// Source: RFC 9000 §10.2.1
    fn on_late_packet(&mut self, now: Time) {
        self.heard += 1;
        if self.heard >= 1 << self.tries.min(16) {
            self.next = self.next.min(now);
        }
    }
}
