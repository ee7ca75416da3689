//! The receiving endpoint: it records which packets arrived, and decides when to acknowledge them.

use std::collections::VecDeque;

use airpace_core::{Ecn, Rider, Time};
use airpace_radio::RadioReport;

use crate::controller::{Arrival, Inspect, Receiver, Sees};
use crate::endpoint::{AckFrame, AckPolicy, Ranges};

/// Maximum number of stored intervals of received packet numbers. Older intervals are dropped. A packet below the
/// oldest interval counts as a duplicate.
///
/// Chosen: if every second packet is lost, 64 intervals still cover 128 packets. An ACK reports the newest eight
/// intervals.
const REMEMBERED: usize = 64;

/// The receiving endpoint of one flow.
pub struct Acker {
    policy: AckPolicy,
    receiver: Option<Box<dyn Receiver>>,
    /// Received packet numbers, as intervals, oldest first.
    received: VecDeque<(u64, u64)>,
    /// Packet numbers below this number are no longer stored.
    floor: u64,
    /// Arrival time of the packet with the highest number.
    largest_arrival: Time,
    unacknowledged: u32,
    due: Option<Time>,
    next_ack: u64,
    duplicates: u64,
    /// Number of packets with a CE mark that arrived.
    ce: u64,
}

/// The result of processing a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Whether a packet with the same number had arrived before.
    pub duplicate: bool,
}

impl Acker {
    /// Creates a receiving endpoint. It passes arrivals to the scheme's `receiver`, if there is one.
    pub fn new(policy: AckPolicy, receiver: Option<Box<dyn Receiver>>) -> Acker {
        Acker {
            policy,
            receiver,
            received: VecDeque::with_capacity(REMEMBERED + 1),
            floor: 0,
            largest_arrival: Time::ZERO,
            unacknowledged: 0,
            due: None,
            next_ack: 0,
            duplicates: 0,
            ce: 0,
        }
    }

    /// Replaces the scheme's receiver, or removes it. The new receiver gets the packets that arrive from now on.
    pub fn set_receiver(&mut self, receiver: Option<Box<dyn Receiver>>) {
        self.receiver = receiver;
    }

    /// Inputs that the scheme's receiver uses besides packets.
    pub fn sees(&self) -> Sees {
        self.receiver.as_ref().map_or(Sees::Packets, |receiver| receiver.sees())
    }

    /// Processes a data packet.
    pub fn on_packet(&mut self, arrival: &Arrival<'_>) -> Received {
        let Arrival { now, number, .. } = *arrival;
        let previous = self.largest();
        let duplicate = !self.insert(number);
        if duplicate {
            self.duplicates += 1;
        } else {
            self.ce += u64::from(arrival.ecn == Ecn::Ce);
            if let Some(receiver) = &mut self.receiver {
                receiver.on_packet(arrival);
            }
        }
        let in_order = number == previous.map_or(0, |largest| largest.saturating_add(1));
        if previous.is_none_or(|largest| number > largest) {
            self.largest_arrival = now;
        }
        self.unacknowledged += 1;
        // A duplicate, a marked packet or a packet out of order is acknowledged at once. Source: RFC 9000 §13.2.1
        let marked = arrival.ecn == Ecn::Ce;
        let at_once = !in_order || marked || self.unacknowledged >= self.policy.every;
        let latest = if at_once { now } else { now + self.policy.max_delay };
        self.due = Some(self.due.map_or(latest, |due| due.min(latest)));
        Received { duplicate }
    }

    /// The device's radio reported a subframe.
    pub fn on_radio(&mut self, report: &RadioReport) {
        if let Some(receiver) = &mut self.receiver {
            receiver.on_radio(report);
        }
    }

    /// Processes the timers that are due: the time returned by [`Acker::poll_timeout`] has been reached. Calls at other times
    /// do no harm.
    ///
    /// An ACK contains the number of the newest packet. Therefore the scheme's receiver gets no ACK before the first
    /// packet.
    pub fn handle_timeout(&mut self, now: Time) {
        let Some(receiver) = &mut self.receiver else { return };
        if receiver.poll_timeout().is_some_and(|timer| timer <= now)
            && receiver.handle_timeout(now)
            && self.largest().is_some()
        {
            self.due = Some(self.due.map_or(now, |due| due.min(now)));
        }
    }

    /// The ACK that is due at `now`; `None` if no ACK is due.
    pub fn poll_ack(&mut self, now: Time) -> Option<AckFrame> {
        if self.due? > now {
            return None;
        }
        let largest = self.largest()?;
        self.due = None;
        self.unacknowledged = 0;
        let mut ranges = Ranges::EMPTY;
        for &(lowest, highest) in self.received.iter().rev() {
            if !ranges.push(lowest, highest) {
                break;
            }
        }
        let feedback = self.receiver.as_mut().map_or(Rider::EMPTY, |receiver| receiver.feedback(now));
        let window = self.receiver.as_mut().and_then(|receiver| receiver.window(now));
        let number = self.next_ack;
        self.next_ack += 1;
        let delay = now - self.largest_arrival;
        Some(AckFrame { number, largest, ranges, ce: self.ce, feedback, window, delay })
    }

    /// The bytes of the scheme's receiver on a request that leaves at `now` ([`Receiver::request`]). They provide the
    /// sender with information for the first round trip of the response.
    pub fn request(&mut self, now: Time) -> Rider {
        self.receiver.as_mut().map_or(Rider::EMPTY, |receiver| receiver.request(now))
    }

    /// The time of the next call of [`Acker::handle_timeout`] and [`Acker::poll_ack`] if nothing arrives earlier.
    pub fn poll_timeout(&self) -> Option<Time> {
        let timer = self.receiver.as_ref().and_then(|receiver| receiver.poll_timeout());
        [self.due, timer].into_iter().flatten().min()
    }

    /// Number of packets that arrived more than once.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Appends the names and values of the scheme's receiver.
    pub fn inspect(&self, out: &mut Inspect) {
        if let Some(receiver) = &self.receiver {
            receiver.inspect(out);
        }
    }

    fn largest(&self) -> Option<u64> {
        self.received.back().map(|&(_, highest)| highest)
    }

    /// Stores `number`. Returns false if it was already stored.
    fn insert(&mut self, number: u64) -> bool {
        if number < self.floor {
            return false;
        }
        // Almost every packet is newer than all earlier packets. For a late packet, the search runs backwards from the
        // newest interval.
        let mut index = self.received.len();
        while index > 0 && self.received[index - 1].0 > number {
            index -= 1;
        }
        let touches_older = index > 0 && self.received[index - 1].1 >= number.saturating_sub(1);
        if index > 0 && self.received[index - 1].1 >= number {
            return false;
        }
        let touches_newer = self.received.get(index).is_some_and(|newer| newer.0 - 1 == number);
        match (touches_older, touches_newer) {
            (true, true) => {
                self.received[index - 1].1 = self.received[index].1;
                self.received.remove(index);
            }
            (true, false) => self.received[index - 1].1 = number,
            (false, true) => self.received[index].0 = number,
            (false, false) => self.received.insert(index, (number, number)),
        }
        if self.received.len() > REMEMBERED {
            self.received.pop_front();
            self.floor = self.received[0].0;
        }
        true
    }
}
