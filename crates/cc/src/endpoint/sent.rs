//! The sender's records of sent packets: a queue indexed by packet number.

use std::collections::VecDeque;
use std::time::Duration;

use airpace_core::{Bytes, Time};

use crate::controller::SentPacket;
use crate::delivery_rate::SendState;
use crate::endpoint::reordering::Bounds;

/// Maximum number of records. When the queue is full, nothing is sent until the outcome of old packets is known.
///
/// Chosen: the records use 16 MB of memory, and suffice for 300 ms at 10 Gbit/s.
const MAX_RECORDS: usize = 1 << 18;

/// Time for which the record of a lost packet is kept, so that a late ACK shows the loss to be spurious.
///
/// Chosen: longer than a handover, and longer than a base station needs to deliver its queue.
const REMEMBER_LOST: Duration = Duration::from_secs(3);

/// The record of one packet.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub sent: Time,
    pub bytes: u32,
    /// Whether the packet is a copy of data in flight. A copy that is lost needs no retransmission.
    pub copy: bool,
    pub status: Status,
    pub rate: SendState,
}

/// The outcome of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Outstanding,
    Acked,
    Lost,
}

/// Records of the sent packets, from the oldest packet whose record is still needed to the newest. A packet is settled
/// once it was acknowledged or declared lost.
#[derive(Debug, Default)]
pub struct SentPackets {
    entries: VecDeque<Entry>,
    /// Packet number of the first entry.
    base: u64,
    /// All packets with numbers below this number are settled.
    settled: u64,
}

impl Entry {
    /// The packet's size on the wire.
    pub fn bytes(&self) -> Bytes {
        Bytes(u64::from(self.bytes))
    }

    /// The packet as controllers see it.
    pub fn packet(&self, number: u64) -> SentPacket {
        SentPacket {
            number,
            bytes: self.bytes(),
            sent: self.sent,
            inflight_at_send: self.rate.tx_in_flight,
            lost_at_send: self.rate.lost,
            app_limited: self.rate.app_limited,
            declared_lost: self.status == Status::Lost,
        }
    }
}

impl SentPackets {
    /// The number of the next packet that is pushed.
    pub fn next_number(&self) -> u64 {
        self.base + self.entries.len() as u64
    }

    /// The number of the oldest record. Without records, the number of the next packet.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no more records can be stored.
    pub fn is_full(&self) -> bool {
        self.entries.len() >= MAX_RECORDS
    }

    /// Stores the record of a packet that leaves.
    pub fn push(&mut self, entry: Entry) -> u64 {
        self.entries.push_back(entry);
        self.next_number() - 1
    }

    /// Number and size of the oldest packet outstanding.
    pub fn oldest_outstanding(&mut self) -> Option<(u64, Bytes)> {
        self.advance();
        let index = (self.settled - self.base) as usize;
        self.entries.get(index).map(|entry| (self.settled, entry.bytes()))
    }

    /// Settles the packets `lowest..=highest` as acknowledged. Calls `visit` for each packet that was not yet
    /// acknowledged, with the former status of the packet.
    pub fn acknowledge(&mut self, lowest: u64, highest: u64, mut visit: impl FnMut(u64, &Entry)) {
        let lowest = lowest.max(self.base);
        let end = highest.saturating_add(1).min(self.next_number());
        for number in lowest..end {
            let entry = &mut self.entries[(number - self.base) as usize];
            if entry.status != Status::Acked {
                visit(number, entry);
                entry.status = Status::Acked;
            }
        }
    }

    /// Settles the packets that ACKs up to `largest_acked` show to be lost, and calls `visit` for each. Returns the
    /// time at which the next packet will count as lost because of its age if nothing is acknowledged until then.
    ///
    /// Source: RFC 9002 §6.1
    pub fn lose(
        &mut self,
        now: Time,
        largest_acked: u64,
        bounds: Bounds,
        mut visit: impl FnMut(u64, &Entry),
    ) -> Option<Time> {
        self.advance();
        for number in self.settled..largest_acked {
            let entry = &mut self.entries[(number - self.base) as usize];
            if entry.status != Status::Outstanding {
                continue;
            }
            let deadline = entry.sent + bounds.delay;
            if deadline > now && largest_acked - number < bounds.packets {
                // Later packets are not lost either: they left later, and fewer packets with higher numbers were
                // acknowledged.
                return Some(deadline);
            }
            entry.status = Status::Lost;
            visit(number, entry);
        }
        None
    }

    /// If the packet `number` is outstanding, settles it as lost and calls `visit` for it.
    pub fn lose_one(&mut self, number: u64, mut visit: impl FnMut(u64, &Entry)) {
        let index = number.checked_sub(self.base).and_then(|index| usize::try_from(index).ok());
        if let Some(entry) = index.and_then(|index| self.entries.get_mut(index))
            && entry.status == Status::Outstanding
        {
            entry.status = Status::Lost;
            visit(number, entry);
        }
    }

    /// Calls `visit` for each packet that was settled as lost.
    pub fn visit_lost(&self, mut visit: impl FnMut(u64, &Entry)) {
        for (number, entry) in (self.base..).zip(&self.entries) {
            if entry.status == Status::Lost {
                visit(number, entry);
            }
        }
    }

    /// Settles all outstanding packets as lost, and calls `visit` for each.
    pub fn lose_all(&mut self, mut visit: impl FnMut(u64, &Entry)) {
        self.advance();
        for number in self.settled..self.next_number() {
            let entry = &mut self.entries[(number - self.base) as usize];
            if entry.status == Status::Outstanding {
                entry.status = Status::Lost;
                visit(number, entry);
            }
        }
    }

    /// Removes all outstanding packets without an outcome, and calls `visit` for each.
    pub fn forsake(&mut self, mut visit: impl FnMut(&Entry)) {
        for entry in self.entries.iter_mut().filter(|entry| entry.status == Status::Outstanding) {
            visit(entry);
            entry.status = Status::Acked;
        }
    }

    /// Removes records that are no longer needed.
    pub fn forget(&mut self, now: Time) {
        while let Some(entry) = self.entries.front() {
            match entry.status {
                Status::Outstanding => break,
                Status::Lost if now - entry.sent < REMEMBER_LOST && !self.is_full() => break,
                Status::Lost | Status::Acked => {
                    self.entries.pop_front();
                    self.base += 1;
                }
            }
        }
        self.settled = self.settled.max(self.base);
    }

    /// Increases `settled` to the number of the oldest outstanding packet.
    fn advance(&mut self) {
        while let Some(entry) = self.entries.get((self.settled - self.base) as usize) {
            if entry.status == Status::Outstanding {
                break;
            }
            self.settled += 1;
        }
    }
}
