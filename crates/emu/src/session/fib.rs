//! IPv4 networks that the kernel's routing tables already contain: emulated devices must not take their addresses.

use std::net::{IpAddr, Ipv4Addr};

/// A network: first address and prefix length.
type Network = (Ipv4Addr, u8);

/// IPv4 routes and addresses of a network namespace, from all routing tables, because VPNs use separate tables.
#[derive(Debug, Default)]
pub(super) struct Fib(Vec<Network>);

impl Fib {
    /// Returns the routes of this thread's namespace; none if the kernel does not list them.
    pub(super) fn of_this_thread() -> Fib {
        Fib::parse(&std::fs::read_to_string("/proc/thread-self/net/fib_trie").unwrap_or_default())
    }

    /// Source: Linux net/ipv4/fib_trie.c (fib_trie_seq_show)
    fn parse(text: &str) -> Fib {
        let mut networks = vec![];
        let mut address = None;
        for line in text.lines().map(str::trim_start) {
            if let Some(leaf) = line.strip_prefix("|-- ") {
                address = leaf.trim_end().parse().ok();
            } else if let (Some(address), Some(entry)) = (address, line.strip_prefix('/')) {
                networks
                    .extend(entry.split(' ').next().and_then(|length| Some((address, length.parse().ok()?))));
            }
        }
        Fib(networks)
    }

    /// Returns a different network that shares addresses with this one. The default route is ignored.
    pub(super) fn overlapping(&self, (first, length): (IpAddr, u8)) -> Option<Network> {
        let IpAddr::V4(first) = first else { return None };
        let is_shared = |&(other, own): &Network| {
            let differs = u32::from(first) ^ u32::from(other);
            own > 0 && differs.checked_shr(32 - u32::from(own.min(length))) == Some(0)
        };
        self.0.iter().copied().find(|other| is_shared(other) && *other != (first, length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Space;

    #[test]
    fn a_vpn_s_route_is_found_and_another_emulator_s_is_not() {
        let table = |network: &str| {
            let (address, length) = network.split_once('/').unwrap();
            Fib::parse(&format!(
                "Id 52:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n     |-- {address}\n        \
                 /{length} universe UNICAST\n           /32 host LOCAL\n"
            ))
        };
        let device = Space::ROOT.device(1).unwrap().networks()[0];
        for network in ["100.64.0.0/10", "100.66.1.0/24", "100.66.5.5/32", "100.0.0.0/8"] {
            assert!(table(network).overlapping(device).is_some(), "{network}");
        }
        assert!(Fib::parse("Main:\n  |-- 100.66.0.0\n     /15 link UNICAST\n").overlapping(device).is_none());
        for network in ["100.64.0.1/32", "192.0.2.0/24", "100.68.0.0/15", "10.0.0.0/8"] {
            assert!(table(network).overlapping(device).is_none(), "{network}");
        }
    }
}
