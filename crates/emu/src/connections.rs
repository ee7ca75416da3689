//! Connection numbers: a record contains one number per packet, and lists the addresses and ports of each connection
//! once.

use std::collections::HashMap;

use crate::ip::FiveTuple;

/// The connections of a run, in the order of their first packets.
#[derive(Debug, Default)]
pub struct Connections {
    /// The map is only used for look-ups and never iterated, so its order has no effect.
    numbers: HashMap<FiveTuple, u32>,
    ends: Vec<FiveTuple>,
}

/// Maximum number of connections with their own number; all further connections share [`OTHERS`].
///
/// Chosen: a scan of all ports fits, and the table takes at most 8 MB.
pub const MAX_CONNECTIONS: usize = 1 << 17;

/// The shared number of all connections beyond [`MAX_CONNECTIONS`].
pub const OTHERS: u32 = u32::MAX;

impl Connections {
    /// Returns the number of a connection; [`OTHERS`] if there are too many.
    pub fn number(&mut self, ends: FiveTuple) -> u32 {
        if let Some(&number) = self.numbers.get(&ends) {
            return number;
        }
        if self.ends.len() == MAX_CONNECTIONS {
            return OTHERS;
        }
        let number = self.ends.len() as u32;
        self.numbers.insert(ends, number);
        self.ends.push(ends);
        number
    }

    /// Returns the 5-tuples of the connections, by number.
    pub fn ends(&self) -> &[FiveTuple] {
        &self.ends
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn ends(port: u16) -> FiveTuple {
        let [source, destination] = ["100.66.0.1", "100.64.0.1"].map(|it| it.parse().unwrap());
        FiveTuple { protocol: 6, source, destination, source_port: port, destination_port: 5201 }
    }

    #[test]
    fn numbers_are_given_once() {
        let mut connections = Connections::default();
        assert_eq!([1, 2, 1, 3].map(|port| connections.number(ends(port))), [0, 1, 0, 2]);
        assert_eq!(connections.ends().len(), 3);
        assert_eq!(connections.ends()[1], ends(2));
    }

    #[test]
    fn a_flood_of_connections_takes_bounded_memory() {
        let mut connections = Connections::default();
        for number in 0..MAX_CONNECTIONS as u32 + 1000 {
            let source = IpAddr::V4((0x0a00_0000 + number).into());
            connections.number(FiveTuple { source, ..ends(1) });
        }
        assert_eq!(connections.ends().len(), MAX_CONNECTIONS);
        assert_eq!(connections.number(ends(77)), OTHERS);
        assert_eq!(connections.number(connections.ends()[5]), 5, "those that were seen keep their numbers");
    }
}
