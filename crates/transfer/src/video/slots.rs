//! Slots for connections, with a limit for each client.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

/// Slots of a server. A client gets at most half of them, so that no client locks the others out.
#[derive(Debug)]
pub(super) struct Slots {
    max: usize,
    taken: Mutex<BTreeMap<IpAddr, usize>>,
}

/// A taken slot, which becomes free on drop.
#[derive(Debug)]
pub(super) struct Slot<'s> {
    slots: &'s Slots,
    client: IpAddr,
}

impl Slots {
    /// Creates `max` free slots; at least one.
    pub(super) fn new(max: usize) -> Slots {
        Slots { max: max.max(1), taken: Mutex::default() }
    }

    /// Takes a slot for a client; `None` if all slots are taken, or if the client has its half.
    pub(super) fn take(&self, client: IpAddr) -> Option<Slot<'_>> {
        let client = owner(client);
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = taken.values().sum();
        let own = taken.get(&client).copied().unwrap_or(0);
        if all >= self.max || own >= self.max.div_ceil(2) {
            return None;
        }
        // Refused clients leave no entry.
        taken.insert(client, own + 1);
        Some(Slot { slots: self, client })
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let mut taken = self.slots.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let left = taken.get(&self.client).map_or(0, |count| count.saturating_sub(1));
        if left == 0 {
            taken.remove(&self.client);
        } else {
            taken.insert(self.client, left);
        }
    }
}

/// Client to which an address is attributed: an IPv4 address, or the /64 network of an IPv6 address.
///
/// Source: RFC 6177 §2 (a site has at least a /64)
fn owner(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(ip) => ip.into(),
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_gets_half_of_the_slots() {
        let slots = Slots::new(3);
        let [one, same, other] =
            ["::ffff:10.0.0.1", "10.0.0.1", "10.0.0.2"].map(|ip| ip.parse().expect("an address"));
        let held = [slots.take(one).expect("a slot"), slots.take(same).expect("a slot")];
        assert!(slots.take(one).is_none(), "two of three are more than half");
        let last = slots.take(other).expect("the last slot");
        assert!(slots.take("10.0.0.3".parse().expect("an address")).is_none(), "all are taken");
        drop(held);
        assert!(slots.take(one).is_some());
        drop(last);
        assert!(slots.taken.lock().expect("no panic").is_empty(), "nothing is kept of clients that left");
    }
}
