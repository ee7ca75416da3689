//! Path from the devices to this machine and the networks that it reaches, without root's rights: rules in the far side's
//! namespace redirect TCP connections to the relay, and route all other packets to pasta's interface.

use std::io;
use std::net::IpAddr;

use super::interfaces::NAME;
use super::pasta;
use super::relay::Relay;
use crate::address::Space;
use crate::error::EmuError;
use crate::netfilter::{Family, Point, Rule, Table};

/// The netfilter tables, which are removed on drop, and the relay until it is started.
#[derive(Debug)]
pub(super) struct GuestWay {
    _tables: Vec<Table>,
    relay: Option<Relay>,
}

const TCP: u8 = 6;
const UDP: u8 = 17;

impl GuestWay {
    /// Creates the rules in the thread's network namespace, which is the far side's.
    pub(super) fn open(space: Space, has_ipv6: bool) -> Result<GuestWay, EmuError> {
        let families = [(Family::V4, pasta::ROUTER_V4.into()), (Family::V6, pasta::ROUTER_V6.into())];
        let addresses: Vec<IpAddr> =
            space.addresses().into_iter().filter(|it| it.is_ipv4() || has_ipv6).collect();
        let step = "take connections at the far side";
        let relay = Relay::open(&addresses).map_err(EmuError::step(step))?;
        let ports = relay.ports().map_err(EmuError::step(step))?;
        let step = "lead connections with nftables";
        let tables =
            families.into_iter().zip(ports).zip(space.networks()).map(|(((family, router), relay), ours)| {
                let chains = rules(relay.ip(), relay.port(), ours, router);
                Table::new(family, NAME, &chains).map_err(EmuError::step(step))
            });
        Ok(GuestWay { _tables: tables.collect::<Result<_, _>>()?, relay: Some(relay) })
    }

    /// Starts the relay. Its outgoing connections start in the thread's network namespace.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        self.relay.take().map_or(Ok(()), Relay::begin)
    }
}

/// Returns the rules of one address family: packets to the far side's address go to the machine, packets to the
/// emulator's network stay in it, and all other packets go to the outside.
fn rules(base: IpAddr, port: u16, ours: (IpAddr, u8), router: IpAddr) -> Vec<(Point, Vec<Rule>)> {
    let from_devices = || Rule::default().in_at(NAME);
    let whole = if base.is_ipv4() { 32 } else { 128 };
    vec![
        (
            Point::Arriving,
            vec![
                from_devices().to((base, whole)).protocol(TCP).goes_to_port(port),
                from_devices().to((base, whole)).protocol(UDP).goes_to(router),
                from_devices().to(ours).accept(),
                from_devices().protocol(TCP).goes_to_port(port),
            ],
        ),
        // pasta accepts only packets from the address of its own interface.
        (Point::Leaving, vec![Rule::default().out_at(pasta::INTERFACE).masquerade()]),
    ]
}
