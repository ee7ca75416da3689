//! Composition of a connection's datagrams, and its timers.

use std::time::Duration;

use airpace_cc::endpoint::{Outcome, Transmit};
use airpace_core::{Bytes, Ecn, Rider, Time};

use super::super::handshake;
use super::super::packet::{Accept, Clear, DATA_HEAD, Data, Frame, HELLO_BYTES, Hello, TAG};
use super::super::path::PathEnds;
use super::super::seal;
use super::super::stream::StreamRange;
use super::{State, UdpConnection};
use crate::endpoint::{Closed, MSS, Outbound, overhead};
use crate::key::Key;

/// Interval between two Hellos: initial and maximum. The interval doubles with each Hello.
///
/// Source: RFC 9002 §6.2.2 (333 ms is assumed of a path that is not known)
///
/// Chosen: the maximum.
const HELLO_PAUSE: Duration = Duration::from_millis(333);
const MAX_HELLO_PAUSE: Duration = Duration::from_secs(2);

/// Maximum number of Close packets to a peer that does not answer.
///
/// Chosen: with a loss rate of 20 %, all five are lost in one of 3,000 connections; the peer's connection then ends
/// by timeout.
const GOODBYES: u32 = 5;

/// Delay before a blocked sender requests a higher limit. The peer sends higher limits unasked; this covers the loss
/// of such a packet.
///
/// Chosen: longer than any round trip, but short for a user.
const LIMIT_PAUSE: Duration = Duration::from_secs(1);

/// Maximum size of a control packet (bytes): an ACK of eight ranges and all other frames.
const CONTROL_BYTES: usize = 400;

/// Size of a packet with a Ping (bytes).
const PING_BYTES: usize = seal::OVERHEAD + 9;

/// Maximum size of the send buffer, independent of the window.
///
/// Chosen: twice the data of 1 Gbit/s over 250 ms.
const MAX_BUFFER: Bytes = Bytes(64 << 20);

impl UdpConnection {
    /// Appends the payload of the next transmission to `out`.
    pub fn poll_transmit(&mut self, now: Time, key: &Key, out: &mut Vec<u8>) -> Option<Outbound> {
        let now = self.at(now);
        match &mut self.state {
            State::Hello(greeting) => {
                if greeting.next > now {
                    return None;
                }
                let pause = HELLO_PAUSE.saturating_mul(1 << greeting.tries.min(16)).min(MAX_HELLO_PAUSE);
                greeting.next = now + pause;
                greeting.tries += 1;
                let proof = handshake::hello_proof(key, self.own_name, &greeting.nonce, &greeting.cookie);
                let (nonce, cookie) = (&greeting.nonce, &greeting.cookie);
                Clear::Hello(Hello { client: self.own_name, nonce, cookie, proof: &proof }).write(out);
                Some(outbound(self.path.ends()))
            }
            State::HalfOpen { accept_due, .. } | State::Open { accept_due } if *accept_due => {
                *accept_due = false;
                let session = self.keys.as_ref()?.session;
                let (client, server) = (session.client, session.server);
                let (nonce, proof) = (&session.server_nonce, &session.accept_proof(key));
                Clear::Accept(Accept { client, server, nonce, proof }).write(out);
                Some(outbound(self.path.ends()))
            }
            State::Open { .. } => self.poll_open(now, out),
            State::Closing(goodbye) => {
                if goodbye.next > now {
                    return None;
                }
                let (code, reason) = (goodbye.code, std::mem::take(&mut goodbye.reason));
                goodbye.heard = 0;
                goodbye.tries += 1;
                let tries = goodbye.tries;
                let pause = self.timeout().saturating_mul(1 << tries.min(16));
                let sent = self.control(out, |_, out| Frame::Close { code, reason: &reason }.write(out));
                if let State::Closing(goodbye) = &mut self.state {
                    goodbye.reason = reason;
                    goodbye.next = if tries < GOODBYES { now + pause } else { Time::NEVER };
                }
                sent
            }
            State::HalfOpen { .. } | State::Drained(_) | State::Over => None,
        }
    }

    fn poll_open(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Outbound> {
        if let Some((token, to)) = self.pongs.pop_front() {
            // A Pong is sent to the source address of the Ping, and is not longer than the Ping.
            let ends = PathEnds { peer: to, ..self.path.ends() };
            let sent = self.control(out, |_, out| Frame::Pong(token).write(out));
            return sent.map(|_| outbound(ends));
        }
        if !self.path.allows(CONTROL_BYTES) {
            // The amplification limit permits at most a Ping that validates the peer's address.
            let timeout = self.timeout();
            let may_ask = self.path.allows(PING_BYTES);
            let challenge = may_ask.then(|| self.path.poll_question(now, timeout)).flatten()?;
            return self.control(out, |_, out| Frame::Ping(challenge).write(out));
        }
        self.poll_control(now, out).or_else(|| self.poll_data(now, out))
    }

    /// Composes a control packet, which does not wait for the pacer: ACK, Pings and the limit.
    fn poll_control(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Outbound> {
        let timeout = self.timeout();
        self.ask_for_more(now);
        let ack = self.acker.poll_ack(now);
        let ping = self.question.as_mut().and_then(|question| question.poll(now, timeout));
        let challenge = self.path.poll_question(now, timeout);
        let request = match std::mem::take(&mut self.request_due) && self.received.packets == 0 {
            true => self.acker.request(now),
            false => Rider::EMPTY,
        };
        let tells_limit = std::mem::take(&mut self.limit_due) || ack.is_some() || ping.is_some();
        if !tells_limit && challenge.is_none() && request == Rider::EMPTY {
            return None;
        }
        if ping.or(challenge).is_some() {
            self.waits_since.get_or_insert(now);
        }
        self.control(out, |connection, out| {
            if let Some(ack) = &ack {
                Frame::Ack(*ack).write(out);
            }
            if tells_limit {
                Frame::Limit(connection.incoming.tell_limit()).write(out);
            }
            for token in [ping, challenge].into_iter().flatten() {
                Frame::Ping(token).write(out);
            }
            if request != Rider::EMPTY {
                Frame::Request(request).write(out);
            }
        })
    }

    /// Appends a sealed packet with these frames.
    fn control(
        &mut self,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut UdpConnection, &mut Vec<u8>),
    ) -> Option<Outbound> {
        let begin = out.len();
        let counter = self.keys.as_ref()?.sealer.counter();
        Clear::Sealed { connection: self.peer_name, counter }.write(out);
        write(self, out);
        self.keys.as_mut()?.sealer.seal(out, begin);
        self.path.on_sent(out.len() - begin);
        Some(outbound(self.path.ends()))
    }

    /// Appends as many data packets as may be sent now.
    fn poll_data(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Outbound> {
        let ends = self.path.ends();
        let outside = overhead(&ends.peer);
        let full = (MSS - outside).0 as usize;
        self.outgoing.set_most(self.buffer());
        let (mut packets, mut ecn) = (0, Ecn::NotEct);
        while packets < self.config.most_segments.max(1) && self.path.allows(full) {
            self.rider = self.rider.max(self.sender.header().as_bytes().len());
            let inside = seal::OVERHEAD + DATA_HEAD + self.rider;
            self.outgoing.set_overhead(outside + Bytes(inside as u64));
            let Some((transmit, carried)) = self.outgoing.poll_transmit(&mut self.sender, now) else { break };
            let length = (transmit.bytes - outside).0 as usize;
            let written = self.write_data(now, &transmit, &carried, length, out)?;
            self.path.on_sent(written);
            self.waits_since.get_or_insert(now);
            self.sent.packets += 1;
            self.sent.bytes += transmit.bytes;
            self.request_due |= transmit.copy_of.is_some();
            (packets, ecn) = (packets + 1, transmit.ecn);
            if written != full {
                break;
            }
        }
        self.count_forfeited();
        // The stream processes acknowledgements in its `poll_transmit`: `Flushed` or `Writable` may be due now.
        self.announce();
        let segment = (packets > 1).then_some(full);
        (packets > 0).then_some(Outbound { to: ends.peer, from: ends.local, ecn, segment })
    }

    /// Returns the size of the send buffer: twice the congestion window, so that the window can be filled and can
    /// double. Without a window, the size is bounded by four times the bytes in flight, rounded up to a power of two.
    /// Filling a very large buffer at once would block all other work.
    fn buffer(&self) -> Bytes {
        let window = self.sender.control().cwnd.0.saturating_mul(2);
        let inflight = self.sender.inflight().0.saturating_mul(4).checked_next_power_of_two();
        let wanted = window.min(inflight.unwrap_or(u64::MAX));
        Bytes(wanted).min(MAX_BUFFER).max(self.config.send_buffer)
    }

    /// Appends a data packet of `length` bytes, and returns its length.
    fn write_data(
        &mut self,
        now: Time,
        transmit: &Transmit,
        carried: &StreamRange,
        length: usize,
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        let begin = out.len();
        let counter = self.keys.as_ref()?.sealer.counter();
        Clear::Sealed { connection: self.peer_name, counter }.write(out);
        let count = (carried.bytes.end - carried.bytes.start) as usize;
        let room = length.saturating_sub(seal::OVERHEAD + DATA_HEAD + count);
        let mut header = transmit.header.as_bytes();
        if header.len() > room {
            // The controller's header has grown with this packet and does not fit. This packet is sent without it;
            // the next one has room.
            self.rider = self.rider.max(header.len());
            header = &[];
        }
        out.resize(out.len() + room.saturating_sub(header.len()), 0);
        let data = Data {
            number: transmit.number,
            sent: now,
            offset: carried.bytes.start,
            header,
            fin: carried.fin,
            bytes: &[],
        };
        data.write_head(out);
        self.outgoing.copy(carried, out);
        debug_assert!(out.len() - begin + TAG == length || transmit.copy_of.is_some());
        self.keys.as_mut()?.sealer.seal(out, begin);
        Some(out.len() - begin)
    }

    /// Requests a higher limit if the application is blocked by the limit only.
    fn ask_for_more(&mut self, now: Time) {
        let waits = self.outgoing.is_held_back() && self.sender.inflight() == Bytes::ZERO;
        if waits && self.question.is_none() {
            self.ask(now + LIMIT_PAUSE);
        }
    }

    fn count_forfeited(&mut self) {
        let forfeited = self.sender.forfeited();
        if forfeited > self.forfeited_bytes {
            let news = forfeited - self.forfeited_bytes;
            self.forfeited +=
                self.sender.control().pacing_rate.map_or(Duration::ZERO, |rate| rate.time_for(news));
            self.forfeited_bytes = forfeited;
        }
    }

    pub(super) fn note(&mut self, outcome: Outcome) {
        if let Some(lost) = outcome.lost {
            self.lost.packets += lost.packets;
            self.lost.bytes += lost.bytes;
        }
    }

    /// Runs the timers that are due, at the instant that [`UdpConnection::poll_timeout`] returned.
    pub fn handle_timeout(&mut self, now: Time) {
        let now = self.at(now);
        let (silent_at, span) = self.silence();
        let is_silent = silent_at <= now;
        match &self.state {
            State::Hello(greeting) => {
                if greeting.gives_up <= now {
                    let why = "it does not answer: nothing listens there, its UDP port is not open, or the key is another \
                         (a wrong key is not answered)";
                    self.end(Closed::Failed(why.to_owned()));
                }
            }
            State::HalfOpen { gives_up, .. } => {
                if *gives_up <= now {
                    self.state = State::Over;
                }
            }
            State::Open { .. } if is_silent => self.end(Closed::Silence(span)),
            State::Open { .. } => {
                self.path.handle_timeout(now);
                if self.keep_alive_at() <= now && self.question.is_none() {
                    self.ask(now);
                }
                let outcome = self.sender.handle_timeout(now);
                self.note(outcome);
                self.acker.handle_timeout(now);
                self.announce();
            }
            State::Closing(goodbye) => {
                if goodbye.ends <= now {
                    self.state = State::Over;
                }
            }
            State::Drained(_) if is_silent => self.end_drained(),
            State::Drained(_) => {}
            State::Over => {}
        }
    }

    /// Returns the next deadline, if nothing happens earlier.
    pub fn poll_timeout(&self) -> Option<Time> {
        let (idle, _) = self.silence();
        match &self.state {
            State::Hello(greeting) => Some(greeting.next.min(greeting.gives_up)),
            State::HalfOpen { gives_up, .. } => Some(*gives_up),
            State::Open { .. } => {
                // Before the peer's address is validated, the deadlines of transmissions that are not permitted are
                // ignored.
                let full = (MSS - overhead(&self.path.ends().peer)).0 as usize;
                let of_data = if self.path.allows(full) { self.sender.poll_timeout() } else { None };
                let asks = self.question.map_or(self.keep_alive_at(), |question| question.poll_timeout());
                let of_control = match self.path.allows(CONTROL_BYTES) {
                    true => [Some(asks), self.acker.poll_timeout()],
                    false => [None, None],
                };
                let of_path = self.path.poll_timeout(self.path.allows(PING_BYTES));
                [of_data, of_path, Some(idle)].into_iter().chain(of_control).flatten().min()
            }
            State::Closing(goodbye) => Some(goodbye.next.min(goodbye.ends)),
            State::Drained(_) => Some(idle),
            State::Over => None,
        }
    }

    /// Returns the deadline of the idle or answer timeout, and the duration of that timeout.
    fn silence(&self) -> (Time, Duration) {
        let idle = (self.last_heard + self.config.idle, self.config.idle);
        match self.waits_since {
            Some(since) => idle.min((since + self.config.answer, self.config.answer)),
            None => idle,
        }
    }

    /// Returns the instant of the next keep-alive Ping.
    fn keep_alive_at(&self) -> Time {
        self.last_heard + self.config.idle / 4
    }
}

/// Returns the metadata of one datagram to the peer.
fn outbound(ends: PathEnds) -> Outbound {
    Outbound { to: ends.peer, from: ends.local, ecn: Ecn::NotEct, segment: None }
}

const _: () = assert!(HELLO_BYTES <= 1252, "a Hello fits the smallest packets that IPv6 paths carry");
