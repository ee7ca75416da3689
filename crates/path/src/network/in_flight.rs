//! Loads of packets in flight. Links do not carry the loads: they are stored by packet number while a copy of the packet
//! is in flight.

use std::collections::VecDeque;

/// Values (loads) by packet number. Packet numbers are consecutive. A wire may duplicate packets, and copies may leave
/// the network in any order. Values of packets without a copy in flight are removed when the next value is added.
#[derive(Clone, Debug)]
pub(super) struct InFlight<T> {
    first: u64,
    slots: VecDeque<Slot<T>>,
}

#[derive(Clone, Copy, Debug)]
struct Slot<T> {
    value: T,
    on_wire: bool,
    /// Number of copies that have left the wire but not the network.
    copies: u16,
}

impl<T> InFlight<T> {
    pub(super) fn new() -> InFlight<T> {
        InFlight { first: 0, slots: VecDeque::new() }
    }

    /// Adds packet `number`, which enters its wire.
    ///
    /// # Panics
    /// If packet numbers are not consecutive, which is an error of the endpoint.
    #[inline]
    pub(super) fn push(&mut self, number: u64, value: T) {
        while self.slots.front().is_some_and(|slot| !slot.on_wire && slot.copies == 0) {
            self.slots.pop_front();
            self.first += 1;
        }
        assert_eq!(number, self.first + self.slots.len() as u64, "packet numbers count up by one");
        self.slots.push_back(Slot { value, on_wire: true, copies: 0 });
    }

    /// Records that a copy of packet `number` leaves its wire. Returns whether it is the first copy.
    #[inline]
    pub(super) fn left_wire(&mut self, number: u64) -> bool {
        let slot = self.slot(number);
        slot.copies += 1;
        std::mem::replace(&mut slot.on_wire, false)
    }

    /// Removes a copy of packet `number` that had left its wire.
    #[inline]
    pub(super) fn ended(&mut self, number: u64) -> &T {
        let slot = self.slot(number);
        slot.copies -= 1;
        &slot.value
    }

    /// Number of values stored.
    pub(super) fn kept(&self) -> usize {
        self.slots.len()
    }

    /// Number of copies in flight.
    pub(super) fn under_way(&self) -> u64 {
        self.slots.iter().map(|slot| u64::from(slot.on_wire) + u64::from(slot.copies)).sum()
    }

    #[inline]
    fn slot(&mut self, number: u64) -> &mut Slot<T> {
        let index =
            number.checked_sub(self.first).expect("a link gave back a packet whose journey had ended");
        &mut self.slots[index as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_live_as_long_as_any_copy() {
        let mut kept = InFlight::new();
        for number in 0..4 {
            kept.push(number, number * 10);
        }
        assert!(kept.left_wire(1));
        assert!(!kept.left_wire(1), "the second copy is a duplicate");
        assert_eq!(*kept.ended(1), 10);
        assert_eq!(*kept.ended(1), 10, "the second copy should still find its value");
        kept.left_wire(0);
        assert_eq!(*kept.ended(0), 0);
        kept.push(4, 40);
        assert_eq!(kept.slots.len(), 3, "0 and 1 are removed; 2, 3 and 4 are still on the wire");
        assert_eq!(kept.under_way(), 3);
        kept.left_wire(4);
        assert_eq!(*kept.ended(4), 40, "overtaking is fine");
    }
}
