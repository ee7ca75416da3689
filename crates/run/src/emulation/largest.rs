//! Determines the largest connections of a run in bounded memory, and the flow of each packet.

use std::collections::BTreeMap;

use airpace_core::{DeviceId, Direction};
use airpace_tables::connection::Connection;
use airpace_tables::departures::{Departure, Spelled};
use airpace_tables::direction;

use super::MAX_FLOWS;

/// Maximum number of connections in the registry.
///
/// Chosen: some 20 MB of memory. A host has at most 65,536 ports for connections to one server.
const MAX_KNOWN: usize = 1 << 16;

/// A device and a direction.
pub type Side = (DeviceId, Direction);

/// Registry of connections with their bytes. A full registry removes the half of the connections with the fewest bytes.
/// A removed connection that appears again starts from 0 bytes. Connections with a large part of all bytes are
/// therefore never removed.
#[derive(Default)]
pub(super) struct Registry {
    known: BTreeMap<Key, Known>,
    /// Number of connections per device and direction. Removed connections that appear again are counted again.
    seen: BTreeMap<Side, u64>,
}

/// Key of a connection. A packet between two devices crosses an uplink and a downlink, and has a departure in each.
type Key = (Connection, Side);

struct Known {
    spelled: Spelled,
    bytes: u64,
}

impl Registry {
    /// Counts a packet. Returns the texts of its connection.
    pub(super) fn count(&mut self, departure: &Departure) -> &Spelled {
        let side = (departure.device, departure.direction);
        let key = (departure.connection, side);
        if !self.known.contains_key(&key) {
            if self.known.len() == MAX_KNOWN {
                self.forget_half();
            }
            *self.seen.entry(side).or_default() += 1;
        }
        let new = || Known { spelled: Spelled::of(&departure.connection), bytes: 0 };
        let known = self.known.entry(key).or_insert_with(new);
        known.bytes = known.bytes.saturating_add(departure.bytes.0);
        &known.spelled
    }

    /// Number of connections of a device and direction.
    pub(super) fn seen(&self, side: Side) -> u64 {
        self.seen.get(&side).copied().unwrap_or(0)
    }

    /// The flows of the run: the largest connections, in descending order of bytes, then a flow for the other connections
    /// of each device and direction.
    pub(super) fn flows(&self) -> Flows {
        let mut largest: Vec<(&Key, &Known)> = self.known.iter().collect();
        largest.sort_by_key(|(key, known)| (std::cmp::Reverse(known.bytes), **key));
        largest.truncate(MAX_FLOWS);
        let named = largest.iter().map(|((_, side), known)| (known.spelled.connection.to_string(), *side));
        let named: Vec<(String, Side)> = named.collect();
        let has_others =
            |side: &Side| self.seen(*side) > named.iter().filter(|(_, its)| its == side).count() as u64;
        let others = self.seen.keys().copied().filter(has_others).map(|side| (others(side), side));
        Flows::of(named.iter().cloned().chain(others))
    }

    fn forget_half(&mut self) {
        let mut bytes: Vec<u64> = self.known.values().map(|known| known.bytes).collect();
        let middle = bytes.len() / 2;
        let (_, median, _) = bytes.select_nth_unstable(middle);
        let median = *median;
        // Among connections with the median number of bytes, keep as many as there is space for.
        let mut room =
            middle.saturating_sub(self.known.values().filter(|known| known.bytes > median).count());
        self.known.retain(|_, known| {
            let stays = known.bytes > median || (known.bytes == median && room > 0);
            room -= usize::from(stays && known.bytes == median);
            stays
        });
    }
}

/// Name of the flow with all connections of a device and direction that have no flow of their own.
fn others((device, direction): Side) -> String {
    format!("others (device {}, {})", u32::from(device.0) + 1, direction::word(direction))
}

/// The flows of an emulated run, with the assignment of connections to flows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flows {
    flows: Vec<(String, Side)>,
    /// Index of the flow `others`, by device and direction.
    others: BTreeMap<Side, usize>,
}

impl Flows {
    /// The flows with these names, devices and directions, in this order.
    pub fn of(flows: impl IntoIterator<Item = (String, Side)>) -> Flows {
        let flows: Vec<(String, Side)> = flows.into_iter().collect();
        let indexed = flows.iter().enumerate();
        let of_others = indexed.filter(|(_, (name, side))| *name == others(*side));
        let others = of_others.map(|(index, (_, side))| (*side, index)).collect();
        Flows { flows, others }
    }

    /// Name, device and direction of each flow, in order.
    pub fn iter(&self) -> impl Iterator<Item = &(String, Side)> {
        self.flows.iter()
    }

    /// The flows with this name: one for each device and direction that the connection crosses.
    pub fn named(&self, name: &str) -> Vec<(Side, usize)> {
        let those = self.flows.iter().enumerate().filter(|(_, (known, _))| known == name);
        those.map(|(index, (_, side))| (*side, index)).collect()
    }

    /// The flow of a packet of `side`. `named` is the result of [`Flows::named`] for the packet's connection.
    pub fn index(&self, named: &[(Side, usize)], side: Side) -> Option<usize> {
        let own = named.iter().find(|(its, _)| *its == side).map(|(_, index)| *index);
        own.or_else(|| self.others.get(&side).copied())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use airpace_core::{Bytes, Time};
    use airpace_event::Fate;

    use super::*;
    use airpace_tables::connection::{End, Protocol};

    fn departure(device: u16, client: u32, bytes: u64) -> Departure {
        let client =
            End::new(std::net::Ipv4Addr::from_bits(0x6444_0000 + (client >> 15)).into(), client as u16);
        Departure {
            device: DeviceId(device),
            direction: Direction::Uplink,
            connection: Connection {
                protocol: Protocol::Tcp,
                source: client,
                destination: End::new([100, 64, 0, 1].into(), 80),
            },
            bytes: Bytes(bytes),
            entered: Time::ZERO,
            released: Time::ZERO,
            handed: None,
            propagation_delay: Duration::ZERO,
            fate: Fate::QueueFull,
            duplicate: false,
            marked: false,
        }
    }

    #[test]
    fn the_largest_connections_are_flows_and_the_rest_are_others() {
        let mut registry = Registry::default();
        for client in 0..60 {
            registry.count(&departure(0, client, 100 + u64::from(client)));
        }
        registry.count(&departure(1, 1_000, 1));
        let flows = registry.flows();
        let names: Vec<&str> = flows.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names.len(), MAX_FLOWS + 2);
        assert_eq!(names[0], "tcp 100.68.0.0:59 → 100.64.0.1:80", "the one with most bytes");
        assert_eq!(names[MAX_FLOWS - 1], "tcp 100.68.0.0:10 → 100.64.0.1:80");
        assert_eq!(names[MAX_FLOWS..], ["others (device 1, up)", "others (device 2, up)"]);
        let place = |device, client| {
            let departure = departure(device, client, 1);
            let side = (departure.device, departure.direction);
            flows.index(&flows.named(&departure.connection.to_string()), side)
        };
        assert_eq!(place(0, 59), Some(0));
        assert_eq!(place(0, 9), Some(MAX_FLOWS), "a small one counts among the others of its device");
        assert_eq!(place(1, 59), Some(MAX_FLOWS + 1), "a name on another side is another connection");
        assert_eq!(place(2, 59), None, "nothing was seen of this device");
        assert_eq!(registry.seen((DeviceId(0), Direction::Uplink)), 60);
    }

    #[test]
    fn few_connections_have_no_others() {
        let mut registry = Registry::default();
        registry.count(&departure(0, 1, 10));
        registry.count(&departure(0, 1, 10));
        assert_eq!(registry.flows().iter().count(), 1);
    }

    #[test]
    fn a_large_connection_is_found_among_any_number_of_small_ones() {
        let mut registry = Registry::default();
        for client in 1..3 * MAX_KNOWN as u32 {
            registry.count(&departure(0, client, 60));
            if client % 10 == 0 {
                registry.count(&departure(0, 0, 1_500));
            }
            assert!(registry.known.len() <= MAX_KNOWN);
        }
        let flows = registry.flows();
        assert_eq!(flows.iter().next().unwrap().0, "tcp 100.68.0.0:0 → 100.64.0.1:80");
        assert_eq!(registry.seen((DeviceId(0), Direction::Uplink)), 3 * MAX_KNOWN as u64);
        assert!(registry.known.len() > MAX_KNOWN / 2 - 2, "no more are forgotten than must be");
    }
}
