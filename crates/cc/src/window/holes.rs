//! Tracks the lost data of a flow until its retransmission has arrived, as a transport like TCP does in a recovery.
//!
//! Each transmission has its own number, and the endpoint does not report the content of a packet. But lost data is
//! retransmitted before new data. The next packets that leave therefore carry the lost data, in the order of the
//! losses.
//!
//! Source: Linux tcp_input.c (tcp_fastretrans_alert)

use std::collections::VecDeque;

use crate::controller::{Ack, Loss, Sent};

/// Lost data, and the number of completed recoveries from losses.
#[derive(Clone, Debug, Default)]
pub struct Holes {
    /// Lost data that was not yet retransmitted, identified by the number of the packet that first carried it.
    owed: VecDeque<u64>,
    /// Packets in flight that carry lost data: the packet number, and the number of the packet that first carried the
    /// data. The packet numbers are in ascending order.
    again: VecDeque<(u64, u64)>,
    /// Packets below this number were sent before the current recovery started; `None` without a recovery.
    until: Option<u64>,
    recovered: u64,
}

impl Holes {
    /// Number of completed recoveries. A recovery lasts until all data that was in flight at its start, and all data
    /// lost during the recovery, has arrived.
    pub fn recovered(&self) -> u64 {
        self.recovered
    }

    /// Whether a recovery is in progress.
    pub fn is_open(&self) -> bool {
        self.until.is_some()
    }

    /// Whether the packet `number` is in flight and carries a retransmission.
    pub fn is_filled_by(&self, number: u64) -> bool {
        self.again.binary_search_by_key(&number, |(number, _)| *number).is_ok()
    }

    /// Records a sent packet.
    pub fn on_sent(&mut self, sent: &Sent) {
        self.send(sent.number);
    }

    /// Records packets that were declared lost.
    pub fn on_loss(&mut self, loss: &Loss<'_>) {
        self.lose(loss.packets.iter().map(|packet| packet.number), loss.next_number);
    }

    /// Records packets that arrived. The losses that the same ACK shows must have been recorded before this call.
    pub fn on_ack(&mut self, ack: &Ack<'_>) {
        if self.until.is_some() {
            self.fill(ack.packets.iter().map(|packet| (packet.number, packet.declared_lost)));
        }
    }

    /// Records a sent packet by its number.
    pub fn send(&mut self, number: u64) {
        if let Some(data) = self.owed.pop_front() {
            self.again.push_back((number, data));
        }
    }

    /// Records that packets of these numbers were declared lost, when `next_number` was the next to be sent.
    pub fn lose(&mut self, numbers: impl Iterator<Item = u64>, next_number: u64) {
        for number in numbers {
            let data = self.take(number).unwrap_or(number);
            self.owed.push_back(data);
        }
        self.until.get_or_insert(next_number);
    }

    /// Processes arrived packets, in ascending order of their numbers. The second value of each pair is whether the
    /// packet had been declared lost.
    pub fn fill(&mut self, packets: impl Iterator<Item = (u64, bool)>) {
        let Some(until) = self.until else { return };
        let mut newest = 0;
        for (number, was_lost) in packets {
            newest = number;
            if self.take(number).is_none() && was_lost {
                // The packet had been declared lost, but was only late.
                self.owed.retain(|data| *data != number);
                self.again.retain(|(_, data)| *data != number);
            }
        }
        if newest >= until && self.owed.is_empty() && self.again.is_empty() {
            self.until = None;
            self.recovered += 1;
        }
    }

    /// Removes the packet `number` from the packets in flight. Returns the data that it retransmitted.
    fn take(&mut self, number: u64) -> Option<u64> {
        let at = self.again.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        self.again.remove(at).map(|(_, data)| data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrive(holes: &mut Holes, number: u64) -> u64 {
        holes.fill([(number, false)].into_iter());
        holes.recovered()
    }

    #[test]
    fn a_recovery_ends_when_what_was_lost_has_arrived_however_often_it_was_sent() {
        let mut holes = Holes::default();
        holes.lose([2, 3].into_iter(), 10);
        (10..13).for_each(|number| holes.send(number));
        assert_eq!(arrive(&mut holes, 12), 0, "packets 10 and 11 carry what 2 and 3 carried");
        holes.lose([11].into_iter(), 13);
        holes.send(13);
        assert_eq!(arrive(&mut holes, 10), 0, "packet 13 carries what 3 carried");
        assert_eq!(arrive(&mut holes, 13), 1);
        assert_eq!(arrive(&mut holes, 14), 1, "without a loss, there is nothing to end");
    }

    #[test]
    fn losses_of_later_packets_prolong_it() {
        let mut holes = Holes::default();
        holes.lose([2].into_iter(), 10);
        (10..13).for_each(|number| holes.send(number));
        holes.lose([12].into_iter(), 13);
        assert_eq!(arrive(&mut holes, 10), 0);
        holes.send(13);
        assert_eq!(arrive(&mut holes, 13), 1);
    }

    #[test]
    fn data_that_was_only_late_is_no_hole() {
        let mut holes = Holes::default();
        holes.lose([2, 3].into_iter(), 10);
        holes.send(10);
        holes.fill([(2, true), (3, true)].into_iter());
        assert_eq!(holes.recovered(), 0, "what was in flight at its beginning has not arrived");
        assert_eq!(arrive(&mut holes, 10), 1);
    }
}
