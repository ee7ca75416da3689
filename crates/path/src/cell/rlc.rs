//! RLC between the IP packets of one device and the transport blocks of all its carriers: segmentation and concatenation,
//! in-order delivery, recovery of blocks for which HARQ failed.
//!
//! The packets of a device form one stream of bytes (each packet with its headers). A transport block on any
//! carrier takes the next part of the stream as one PDU with the next sequence number. The sequence numbers of PDUs on
//! several carriers are therefore interleaved. A packet is delivered when the stream is complete up to the packet's
//! last byte.
//!
//! Source: TS 36.322; PBE-CC §3
//!
//! In acknowledged mode, the receiver's STATUS PDUs take bytes of the transport blocks of the opposite direction
//! (`status`). Each endpoint therefore sends, in addition to its packets, the STATUS about the packets that it
//! receives.
//!
//! The RLC of NR has a PDU for each packet, and passes packets to PDCP out of order; PDCP restores the order. Here the
//! packets of a block are one PDU in both technologies, only the sizes of the headers differ (`framing`), and RLC restores
//! the order.
//!
//! Differs: retransmissions are sent after [`RlcConfig::status_delay_ms`] and do not wait for the STATUS itself.

use std::collections::VecDeque;
use std::time::Duration;

use airpace_core::{Bytes, Packet, Time};
use airpace_event::Fate;

use super::config::{RlcConfig, RlcMode};

mod framing;
mod status;

pub(super) use framing::Framing;
use status::StatusExchange;

/// The parts of the stream in one transport block: bytes of at most one retransmitted PDU and one new PDU.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Content {
    parts: [Option<Part>; 2],
    /// Whether the block contains a STATUS about the opposite direction.
    has_status: bool,
    /// Whether the block requests a STATUS from the receiver (poll).
    polls: bool,
}

impl Content {
    /// Whether the block contains neither data nor a STATUS.
    pub(super) fn is_empty(&self) -> bool {
        self.parts.iter().all(Option::is_none) && !self.has_status
    }
}

#[derive(Clone, Copy, Debug)]
struct Part {
    sequence: u64,
    bytes: u32,
}

/// A packet in the stream, from its arrival until it is delivered or lost.
#[derive(Clone, Copy, Debug)]
struct Sdu {
    packet: Packet,
    /// Position in the stream after the last byte.
    end: u64,
}

/// A part of the stream that was sent with one sequence number.
#[derive(Clone, Copy, Debug)]
struct Pdu {
    /// Position in the stream after the last byte.
    end: u64,
    /// Number of the PDU's bytes in transport blocks whose HARQ outcome is pending.
    pending: u32,
    /// Number of the PDU's bytes that must be retransmitted.
    unsent: u32,
    /// If the PDU is lost for good (unacknowledged mode): the latest time at which the receiver skips the PDU.
    give_up_at: Time,
}

impl Pdu {
    fn is_complete(&self) -> bool {
        self.pending == 0 && self.unsent == 0 && self.give_up_at == Time::NEVER
    }
}

#[derive(Clone, Copy, Debug)]
struct Repeat {
    sequence: u64,
    ready_at: Time,
}

/// The timer that starts when a gap in the sequence numbers is detected.
#[derive(Clone, Copy, Debug)]
struct Reordering {
    expires_at: Time,
    /// Missing PDUs with sequence numbers below this value are skipped when the timer expires.
    limit: u64,
}

/// Sender and receiver of a device's RLC.
#[derive(Debug)]
pub(super) struct Rlc {
    mode: RlcMode,
    t_reordering: Duration,
    status_delay: Duration,
    framing: Framing,
    status_alone: bool,
    limit: u64,
    /// Packets that the base station is still processing, each with the time from which it may be sent.
    arriving: VecDeque<(Time, Packet)>,
    arriving_bytes: u64,
    /// Packets in the stream, oldest first; `sdus[next_sdu]` contains the next byte to be sent.
    sdus: VecDeque<Sdu>,
    next_sdu: usize,
    /// Position in the stream after the transmitted bytes. `arrived` is the position after the bytes that have arrived
    /// at the sender.
    sent: u64,
    arrived: u64,
    /// Number of transmitted bytes of packets that were taken back.
    returned: u64,
    /// PDUs not yet delivered, in order of sequence number. The first has the number `first_sequence`.
    pdus: VecDeque<Pdu>,
    first_sequence: u64,
    /// The highest sequence number that was completely received, plus one.
    received_to: u64,
    repeats: VecDeque<Repeat>,
    repeat_bytes: u64,
    reordering: Option<Reordering>,
    /// Whether the front packet lacks a byte that is lost for good.
    front_is_damaged: bool,
    /// The STATUS exchange for this direction's data.
    status: StatusExchange,
    /// Size of the pending STATUS about the opposite direction, in bytes; 0: no STATUS is pending.
    status_to_send: u32,
}

impl Rlc {
    pub(super) fn new(config: &RlcConfig, framing: Framing, queue_limit: Bytes) -> Rlc {
        Rlc {
            mode: config.mode,
            t_reordering: Duration::from_millis(config.t_reordering_ms.into()),
            status_delay: Duration::from_millis(config.status_delay_ms.into()),
            framing,
            status_alone: config.status_alone,
            limit: queue_limit.0,
            arriving: VecDeque::new(),
            arriving_bytes: 0,
            sdus: VecDeque::new(),
            next_sdu: 0,
            sent: 0,
            arrived: 0,
            returned: 0,
            pdus: VecDeque::new(),
            first_sequence: 0,
            received_to: 0,
            repeats: VecDeque::new(),
            repeat_bytes: 0,
            reordering: None,
            front_is_damaged: false,
            status: StatusExchange::new(config, framing),
            status_to_send: 0,
        }
    }

    /// Length (bytes) of the STATUS that the receiver of this direction's data sends at `now`; `None` if it sends
    /// none.
    pub(super) fn take_status(&mut self, now: Time) -> Option<u32> {
        self.status.take(now, self.repeats.len())
    }

    /// Queues a STATUS about the opposite direction with this many bytes. It replaces a pending STATUS.
    pub(super) fn send_status(&mut self, bytes: u32) {
        self.status_to_send = bytes;
    }

    /// Takes a packet that may be sent from `ready` on; returns `false` if the queue is full.
    pub(super) fn push(&mut self, ready: Time, packet: Packet) -> bool {
        if self.queued().0 + packet.bytes.0 > self.limit {
            return false;
        }
        self.push_forwarded(ready, packet);
        true
    }

    /// Takes a packet for which the queue has space, and that may be sent from `ready` on.
    pub(super) fn push_forwarded(&mut self, ready: Time, packet: Packet) {
        self.arriving_bytes += packet.bytes.0;
        self.arriving.push_back((ready, packet));
    }

    /// Moves packets that are ready at `now` into the stream.
    pub(super) fn admit(&mut self, now: Time) {
        while let Some(&(ready, packet)) = self.arriving.front() {
            if ready > now {
                break;
            }
            self.arriving.pop_front();
            self.arriving_bytes -= packet.bytes.0;
            self.arrived += packet.bytes.0 + u64::from(self.framing.per_packet);
            self.sdus.push_back(Sdu { packet, end: self.arrived });
        }
    }

    /// Number of bytes queued for their first transmission, including packets that the base station is still
    /// processing.
    pub(super) fn queued(&self) -> Bytes {
        Bytes(self.arriving_bytes + self.arrived - self.sent)
    }

    /// Number of bytes of the stream that were put into blocks so far, without retransmissions.
    pub(super) fn sent(&self) -> Bytes {
        Bytes(self.sent - self.returned)
    }

    /// Total size of the packets that have entered RLC and not left it yet.
    #[cfg(test)]
    pub(super) fn held(&self) -> Bytes {
        Bytes(self.arriving_bytes + self.sdus.iter().map(|sdu| sdu.packet.bytes.0).sum::<u64>())
    }

    /// Number of bytes that may be sent at `now`, including a STATUS, without headers. A buffer status report
    /// contains this number.
    ///
    /// Source: TS 36.321 §6.1.3.1
    pub(super) fn waiting(&self, now: Time) -> u64 {
        let is_ready = self.repeats.front().is_some_and(|repeat| repeat.ready_at <= now);
        let repeats = if is_ready { self.repeat_bytes } else { 0 };
        self.arrived - self.sent + repeats + u64::from(self.status_to_send)
    }

    /// Size in bytes of transport blocks for all data that may be sent at `now`, including headers; 0 if there
    /// is no data.
    pub(super) fn wanted(&self, now: Time) -> u64 {
        let status = u64::from(self.status_to_send);
        if status > 0 && self.status_alone {
            return status + u64::from(self.framing.per_block);
        }
        let repeats = match self.repeats.front() {
            Some(repeat) if repeat.ready_at <= now => self.repeat_bytes + u64::from(self.framing.per_repeat),
            _ => 0,
        };
        let fresh = self.arrived - self.sent;
        if fresh == 0 {
            let all = repeats + status;
            return if all == 0 { 0 } else { all + u64::from(self.framing.per_block) };
        }
        let elements = (self.sdus.len() - self.next_sdu) as u64;
        fresh
            + repeats
            + status
            + u64::from(self.framing.per_pdu + self.framing.per_block)
            + self.framing.length_indicators(elements)
    }

    /// Fills a transport block of `room` bytes that is sent at `now`.
    pub(super) fn fill(&mut self, now: Time, room: u32) -> Content {
        let mut room = room.saturating_sub(self.framing.per_block);
        let mut content = Content::default();
        if (1..=room).contains(&self.status_to_send) {
            room -= std::mem::take(&mut self.status_to_send);
            content.has_status = true;
            if self.status_alone {
                return content;
            }
        }
        if let Some(repeat) = self.repeats.front().copied()
            && repeat.ready_at <= now
        {
            let pdu = &mut self.pdus[(repeat.sequence - self.first_sequence) as usize];
            let bytes = pdu.unsent.min(room.saturating_sub(self.framing.per_repeat));
            if bytes > 0 {
                pdu.unsent -= bytes;
                pdu.pending += bytes;
                self.repeat_bytes -= u64::from(bytes);
                room -= bytes + self.framing.per_repeat;
                content.parts[0] = Some(Part { sequence: repeat.sequence, bytes });
                if pdu.unsent == 0 {
                    self.repeats.pop_front();
                }
            }
        }
        let bytes = self.take_fresh(room.saturating_sub(self.framing.per_pdu));
        if bytes > 0 {
            let sequence = self.first_sequence + self.pdus.len() as u64;
            self.pdus.push_back(Pdu { end: self.sent, pending: bytes, unsent: 0, give_up_at: Time::NEVER });
            content.parts[1] = Some(Part { sequence, bytes });
        }
        if self.mode == RlcMode::Acknowledged {
            content.polls = self.polls(now, &content);
        }
        content
    }

    /// Whether the PDUs that were put into a block at `now` request a STATUS.
    fn polls(&mut self, now: Time, content: &Content) -> bool {
        let parts = content.parts.iter().flatten();
        let pdus = parts.clone().count() as u32;
        let is_last = self.waiting(now) == 0;
        pdus > 0 && self.status.polls(pdus, parts.map(|part| part.bytes).sum(), is_last)
    }

    /// Advances `sent` by the number of bytes that fit into `room` together with the length indicators. Returns this
    /// number.
    fn take_fresh(&mut self, room: u32) -> u32 {
        let (start, room) = (self.sent, u64::from(room));
        let mut elements = 0;
        while self.sent < self.arrived {
            let overhead = self.framing.length_indicators(elements + 1);
            let used = self.sent - start;
            if used + overhead >= room {
                break;
            }
            let end = self.sdus[self.next_sdu].end;
            self.sent = end.min(start + room - overhead);
            if self.sent == end {
                self.next_sdu += 1;
            }
            elements += 1;
        }
        (self.sent - start) as u32
    }

    /// Processes a transport block, sent at `now`, that was decoded.
    pub(super) fn decoded(&mut self, now: Time, content: Content, release: &mut dyn FnMut(Packet, Fate)) {
        if content.polls {
            self.status.polled(now);
        }
        for part in content.parts.into_iter().flatten() {
            // If the receiver has already skipped this PDU, its data is ignored.
            let Some(index) = part.sequence.checked_sub(self.first_sequence) else { continue };
            let pdu = &mut self.pdus[index as usize];
            pdu.pending -= part.bytes;
            if pdu.is_complete() {
                self.received_to = self.received_to.max(part.sequence + 1);
            }
        }
        self.release(now, release);
    }

    /// Processes a transport block for which HARQ failed with the transmission at `now`.
    pub(super) fn failed(&mut self, now: Time, content: Content) {
        for part in content.parts.into_iter().flatten() {
            let Some(index) = part.sequence.checked_sub(self.first_sequence) else { continue };
            let pdu = &mut self.pdus[index as usize];
            match self.mode {
                RlcMode::Acknowledged => {
                    pdu.pending -= part.bytes;
                    self.repeat(part.sequence, part.bytes, now + self.status_delay);
                    self.status.want(now + self.t_reordering);
                }
                RlcMode::Unacknowledged => pdu.give_up_at = now + self.t_reordering,
            }
        }
    }

    fn repeat(&mut self, sequence: u64, bytes: u32, ready_at: Time) {
        let pdu = &mut self.pdus[(sequence - self.first_sequence) as usize];
        if pdu.unsent == 0 {
            let place = self.repeats.partition_point(|repeat| repeat.sequence < sequence);
            self.repeats.insert(place, Repeat { sequence, ready_at });
        }
        pdu.unsent += bytes;
        self.repeat_bytes += u64::from(bytes);
    }

    /// Whether [`Rlc::expire`] may have an effect at any later time.
    pub(super) fn has_timers(&self) -> bool {
        self.mode == RlcMode::Unacknowledged && !self.pdus.is_empty()
    }

    /// Lets the receiver skip PDUs whose waiting time has expired at `now`.
    pub(super) fn expire(&mut self, now: Time, release: &mut dyn FnMut(Packet, Fate)) {
        if let Some(timer) = self.reordering
            && timer.expires_at <= now
        {
            for sequence in self.first_sequence..timer.limit {
                let pdu = &mut self.pdus[(sequence - self.first_sequence) as usize];
                if !pdu.is_complete() {
                    pdu.give_up_at = now;
                }
            }
            self.reordering = None;
        }
        self.release(now, release);
    }

    /// Returns all unacknowledged bytes to the queue, to be retransmitted from `ready_at` on (forwarding at a
    /// handover), and discards pending STATUS PDUs. The caller must discard the transport blocks.
    pub(super) fn forward(&mut self, ready_at: Time) {
        for repeat in &mut self.repeats {
            repeat.ready_at = repeat.ready_at.max(ready_at);
        }
        for index in 0..self.pdus.len() {
            let pdu = &mut self.pdus[index];
            let bytes = std::mem::take(&mut pdu.pending);
            pdu.give_up_at = Time::NEVER;
            if bytes > 0 {
                self.repeat(self.first_sequence + index as u64, bytes, ready_at);
            }
        }
        self.reordering = None;
        self.status.reset();
        self.status_to_send = 0;
    }

    /// Removes and returns all packets that were not delivered, in order, and discards all state of PDUs. The caller must
    /// discard the transport blocks.
    pub(super) fn take_all(&mut self) -> Vec<Packet> {
        let per_packet = u64::from(self.framing.per_packet);
        let first = self.sdus.front().map_or(self.sent, |sdu| sdu.end - sdu.packet.bytes.0 - per_packet);
        self.returned += self.sent.saturating_sub(first);
        let arriving = self.arriving.drain(..).map(|(_, packet)| packet);
        let packets = self.sdus.drain(..).map(|sdu| sdu.packet).chain(arriving).collect();
        self.arriving_bytes = 0;
        self.next_sdu = 0;
        self.arrived = self.sent;
        self.first_sequence += self.pdus.len() as u64;
        self.pdus.clear();
        self.received_to = self.first_sequence;
        self.repeats.clear();
        self.repeat_bytes = 0;
        self.reordering = None;
        self.front_is_damaged = false;
        self.status.reset();
        self.status_to_send = 0;
        packets
    }

    /// Uses the headers of another technology from now on.
    ///
    /// Differs: packets that are already in the stream keep the size of their headers.
    pub(super) fn set_framing(&mut self, framing: Framing) {
        self.framing = framing;
        self.status.set_framing(framing);
    }

    fn release(&mut self, now: Time, release: &mut dyn FnMut(Packet, Fate)) {
        while let Some(pdu) = self.pdus.front().copied() {
            let is_lost = pdu.give_up_at <= now;
            if !pdu.is_complete() && !is_lost {
                break;
            }
            self.pdus.pop_front();
            if pdu.unsent > 0 {
                // The receiver skipped the PDU while its retransmission was pending, so the retransmission is
                // cancelled.
                self.repeats.pop_front();
                self.repeat_bytes -= u64::from(pdu.unsent);
            }
            self.first_sequence += 1;
            self.front_is_damaged |= is_lost;
            while let Some(sdu) = self.sdus.front().copied()
                && sdu.end <= pdu.end
            {
                self.sdus.pop_front();
                self.next_sdu -= 1;
                release(sdu.packet, if self.front_is_damaged { Fate::HarqFailure } else { Fate::Delivered });
                // The next packet starts inside this PDU, so the packet is damaged if the PDU is lost.
                self.front_is_damaged = is_lost && sdu.end < pdu.end;
            }
        }
        self.received_to = self.received_to.max(self.first_sequence);
        self.watch_gap(now);
    }

    fn watch_gap(&mut self, now: Time) {
        if self.mode == RlcMode::Acknowledged {
            return;
        }
        self.reordering = match self.reordering {
            Some(timer) if timer.limit > self.first_sequence => Some(timer),
            _ if self.received_to > self.first_sequence => {
                Some(Reordering { expires_at: now + self.t_reordering, limit: self.received_to })
            }
            _ => None,
        };
    }
}

#[cfg(test)]
mod tests;
