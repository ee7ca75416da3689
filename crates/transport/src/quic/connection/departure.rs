//! Transmission of packets, with stamps and feedback.
//!
//! The ledger counts packets with stream data. All other packets (ACKs, probes, feedback, flow-control credit) are
//! neither paced nor counted, like ACKs in the simulator. noq does not report whether it has data to send. The
//! connection therefore tracks it ([`Pending`]). If this state is unknown, the connection polls noq with the gate
//! closed, and noq reports whether the gate held back data.
//!
//! noq sends no separate ACK while the gate holds back data. If a received packet has waited for its ACK for
//! [`MAX_ACK_DELAY`], one packet is sent regardless of window and pacer; the pacer deducts it from the following
//! packets.
//!
//! A stamp must be queued before noq composes the packet that contains it. A controller that sends a header with its
//! packets is therefore notified of a packet before its transmission ([`Ledger::announce`]), with an estimated size.
//!
//! [`Ledger::announce`]: airpace_cc::endpoint::Ledger::announce

use std::num::NonZeroUsize;
use std::time::Duration;

use airpace_cc::endpoint::{Blocked, Ledger};
use airpace_core::{Bytes, Ecn, Rate, Rider, Time};
use noq_proto::PathId;

use super::QuicConnection;
use super::farewell::Farewell;
use crate::endpoint::{Outbound, overhead};
use crate::quic::adapter::Note;
use crate::quic::datagram::{Datagram, Stamp};

/// Maximum time for which window or pacer may delay an ACK.
///
/// Source: RFC 9000 §18.2 (`max_ack_delay`)
const MAX_ACK_DELAY: Duration = Duration::from_millis(25);

/// Pacing rate above which one stamp per batch is sufficient.
///
/// Chosen: a batch of 32 packets then takes less than 4 ms, the averaging time of the schemes' receivers.
const BATCHED_FROM: Rate = Rate::from_bps(100_000_000);

/// Threshold of the free space in a packet (bytes): if more is free, noq had no more data to send.
const ROOM: usize = 64;

/// Bytes of a QUIC packet other than stream data: packet header, tag, stamp and frame headers. The controller's
/// header in a stamp is not included.
///
/// Chosen: the maximum of usual packets, so that the estimate of unsent data is never too low.
const FRAMING: u64 = 27 + 2 + 13 + 11;

/// Number of datagrams that suffice for closing a connection: one for each packet number space of a handshake.
///
/// Source: RFC 9000 §10.2.3
const FAREWELL: usize = 3;

/// Whether noq has stream data to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pending {
    Yes,
    No,
    Unknown,
}

impl QuicConnection {
    /// Appends the payload of the next transmission to `out`.
    pub(in crate::quic) fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Outbound> {
        self.now = now;
        self.log_at(now);
        if let Some(said) = self.farewell.as_mut().and_then(|farewell| farewell.poll(now, out)) {
            return Some(said);
        }
        let full = Bytes(u64::from(self.noq.current_mtu())) + overhead(&self.peer);
        loop {
            let Some(ledger) = &mut self.ledger else { return self.poll_noq(now, true, 1, out) };
            let allowance = ledger.allowance(now, full);
            match (self.pending, allowance) {
                (Pending::No, _) => {
                    ledger.on_idle();
                    if self.ack_waits_until().is_some_and(|until| until > now) {
                        return None;
                    }
                    self.queue_feedback(now);
                    return self.poll_noq(now, true, 1, out);
                }
                (Pending::Unknown, _) => {
                    let sent = self.poll_noq(now, false, 1, out);
                    if sent.is_some() {
                        return sent;
                    }
                    self.found(self.tap.was_held());
                }
                (Pending::Yes, Err(by)) if !self.is_overdue(now) => {
                    let sent = self.poll_noq(now, false, 1, out);
                    if sent.is_some() {
                        return sent;
                    }
                    if self.tap.was_held() {
                        self.hold(now, full, by);
                        return None;
                    }
                    self.found(false);
                }
                (Pending::Yes, allowance) => {
                    let most = self.batch(allowance.unwrap_or(1));
                    self.queue_feedback(now);
                    self.queue_stamp(now, full);
                    let sent = self.poll_noq(now, true, most, out);
                    if sent.is_some() {
                        return sent;
                    }
                    self.found(false);
                }
            }
        }
    }

    fn hold(&mut self, now: Time, full: Bytes, by: Blocked) {
        if let Some(ledger) = &mut self.ledger {
            ledger.on_held(now, full, by);
        }
    }

    /// Deadline at which a pending ACK is sent although data are held back.
    pub(super) fn overdue_at(&self) -> Option<Time> {
        self.owed.filter(|_| self.pending == Pending::Yes).map(|since| since + MAX_ACK_DELAY)
    }

    fn is_overdue(&self, now: Time) -> bool {
        self.owed.is_some_and(|since| since + MAX_ACK_DELAY <= now)
    }

    /// Deadline until which a pending ACK waits for more packets to acknowledge. noq would acknowledge each packet;
    /// on a fast flow that would take most of the CPU time.
    pub(super) fn ack_waits_until(&self) -> Option<Time> {
        let waits = self.is_connected && !self.is_over && self.owed.is_some() && self.pending == Pending::No;
        self.last_sent.filter(|_| waits).map(|last| last + self.config.ack_interval)
    }

    /// Number of packets to request from noq at once: several only at rates at which one stamp per batch is
    /// sufficient.
    fn batch(&self, allowed: u64) -> usize {
        let rate = self.ledger.as_ref().and_then(|ledger| ledger.control().pacing_rate);
        // Without a pacing rate, each packet of a controller with headers gets a stamp.
        let has_words =
            self.ledger.as_ref().is_some_and(|ledger| ledger.controller().header() != Rider::EMPTY);
        let is_fast = !self.is_ours || rate.map_or(!has_words, |rate| rate >= BATCHED_FROM);
        let most = if is_fast { self.config.batch.max(1) } else { 1 };
        usize::try_from(allowed).map_or(most, |allowed| allowed.min(most))
    }

    /// Records whether noq has more data to send.
    fn found(&mut self, more: bool) {
        self.pending = if more { Pending::Yes } else { Pending::No };
        if !more {
            self.unsent = 0;
        }
    }

    /// Queues a message. A message that does not fit is dropped: the next one contains newer values.
    fn queue(&mut self, datagram: Datagram) {
        let _ = self.noq.datagrams().send(datagram.write().into(), true);
    }

    fn queue_feedback(&mut self, now: Time) {
        if self.is_ours
            && let Some(feedback) = self.receiving.poll_feedback(now)
        {
            self.queue(Datagram::Feedback(feedback));
        }
    }

    /// Queues the stamp of the next data packet; `full` is the size of a full packet.
    fn queue_stamp(&mut self, now: Time, full: Bytes) {
        let Some(ledger) = self.ledger.as_mut().filter(|_| self.is_ours) else { return };
        let mut header = ledger.controller().header();
        if header != Rider::EMPTY {
            let around = Bytes(FRAMING + header.as_bytes().len() as u64) + overhead(&self.peer);
            let left = Bytes(self.unsent) + around;
            header = ledger.announce(now, left.min(full), left <= full);
        }
        self.queue(Datagram::Stamp(Stamp { number: self.stamps, sent: now, header }));
    }

    /// Lets noq compose up to `most` packets, with or without data, and reports those with data to the ledger.
    fn poll_noq(&mut self, now: Time, open: bool, most: usize, out: &mut Vec<u8>) -> Option<Outbound> {
        // If polled for one datagram at a time, noq 1.4 repeats the same part of a close during the handshake
        // forever.
        let most = if self.noq.is_closed() { most.max(FAREWELL) } else { most };
        let most = match self.credit.map(|credit| credit / u64::from(self.noq.current_mtu().max(1))) {
            Some(0) => return None,
            Some(allowed) => most.min(usize::try_from(allowed).unwrap_or(most)),
            None => most,
        };
        let most = NonZeroUsize::new(most).unwrap_or(NonZeroUsize::MIN);
        self.tap.open(open);
        let instant = self.clock.tick(now);
        // noq requires an empty buffer.
        let begin = out.len();
        let transmit = if begin == 0 {
            self.noq.poll_transmit(instant, most, out)?
        } else {
            self.packet.clear();
            let transmit = self.noq.poll_transmit(instant, most, &mut self.packet)?;
            out.extend_from_slice(&self.packet);
            transmit
        };
        let streams = self.noq.path_stats(PathId::ZERO).map_or(0, |stats| stats.frame_tx.stream);
        let has_data = std::mem::replace(&mut self.streams_sent, streams) != streams;
        self.credit = self.credit.map(|credit| credit.saturating_sub(transmit.size as u64));
        self.owed = None;
        self.last_sent = Some(now);
        self.tap.notes(&mut self.notes);
        // A datagram of the handshake contains packets of other number spaces before the one with data.
        if out.get(begin).is_some_and(|first| first & 0x80 != 0) {
            let last = self.notes.len().saturating_sub(1);
            self.notes.drain(..last);
        }
        let segment = transmit.segment_size.unwrap_or(transmit.size).max(1);
        let last = transmit.size - (transmit.size - 1) / segment * segment;
        let is_short = last + ROOM < usize::from(self.noq.current_mtu());
        match (has_data, self.pending) {
            (true, _) => self.enter(now, is_short),
            // Only a stamp was sent: there were no data.
            (false, Pending::Yes) if open => self.found(false),
            _ => {}
        }
        self.notes.clear();
        let is_marking = transmit.ecn.is_some() && self.is_ecn_capable;
        let outbound = Outbound {
            to: transmit.destination,
            from: transmit.src_ip,
            ecn: if is_marking { Ecn::Ect } else { Ecn::NotEct },
            segment: transmit.segment_size,
        };
        if self.noq.is_closed() && self.is_connected && self.farewell.is_none() {
            let rtt = self.ledger.as_ref().and_then(Ledger::rtt);
            self.farewell = Some(Farewell::new(now, &out[begin..], outbound, rtt));
        }
        Some(outbound)
    }

    /// Reports the packets of `self.notes` to the ledger as sent with data.
    fn enter(&mut self, now: Time, is_short: bool) {
        self.pending = if is_short { Pending::Unknown } else { Pending::Yes };
        let Some(ledger) = &mut self.ledger else { return };
        let count = self.notes.len();
        for (index, note) in self.notes.iter().enumerate() {
            if let Note::Sent { number, bytes } = *note {
                let app_limited = is_short && index + 1 == count;
                let bytes = Bytes(u64::from(bytes)) + overhead(&self.peer);
                ledger.on_sent(now, number, bytes, app_limited);
                let around = FRAMING + ledger.controller().header().as_bytes().len() as u64;
                self.unsent =
                    self.unsent.saturating_sub((bytes - overhead(&self.peer)).0.saturating_sub(around));
                self.stamps = self.stamps.wrapping_add(1);
            }
        }
        self.log_metrics();
    }
}
