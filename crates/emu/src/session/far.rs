//! The far side of a session: its location, and the path from there to the machine and the networks that it reaches.

use std::fs::File;

use airpace_core::{Refused, Remedy};
use rustix::thread::CapabilitySet;

use super::guest::GuestWay;
use super::host::{self, HostWay};
use super::interfaces::{self, Beside, NAME};
use super::names::{self, Forwarder};
use super::words::{Far, Reach};
use super::{namespaces, pasta};
use crate::address::Space;
use crate::error::EmuError;
use crate::netlink::Routes;

/// The far side.
pub(super) struct FarSide {
    pub interface: File,
    /// Name of the interface.
    pub name: String,
    /// Network namespace of the interface.
    pub network: File,
    /// Numbers of the devices.
    pub slots: Vec<u8>,
    pub has_ipv6: bool,
    /// Whether IPv6 packets are forwarded beyond the far side.
    pub leads_ipv6: bool,
    pub reach: Reach,
    /// Warnings about restrictions of the session.
    pub doubts: Vec<Refused>,
    host: Option<HostWay>,
    guest: Option<GuestWay>,
    forwarder: Option<Forwarder>,
}

impl FarSide {
    /// Creates the far side in the machine's own network, where the process has the required rights. Returns `None` if
    /// the far side is to be isolated.
    pub(super) fn in_this_network(far: Far, space: Space, devices: u8) -> Result<Option<FarSide>, EmuError> {
        if far == Far::Own {
            return Ok(None);
        }
        let Beside { interface, name, number, index, slots } = interfaces::beside_others(space, devices)?;
        let mut side = FarSide {
            network: namespaces::this_network()?,
            has_ipv6: true,
            leads_ipv6: true,
            reach: Reach::Here,
            doubts: vec![],
            host: None,
            guest: None,
            forwarder: None,
            interface,
            name,
            slots,
        };
        if let Far::Host { .. } = far {
            side.open_to_host(space, number, index)?;
        }
        Ok(Some(side))
    }

    fn open_to_host(&mut self, space: Space, number: u8, index: u32) -> Result<(), EmuError> {
        let mut routes = Routes::open().map_err(EmuError::step("talk to the kernel about routes"))?;
        self.has_ipv6 = interfaces::address(&mut routes, index, space)?;
        self.leads_ipv6 = host::passes_ipv6_on();
        self.forwarder = forwarder(&mut routes, index, number, false)?;
        let devices: Vec<Space> = self.slots.iter().filter_map(|&slot| space.device(slot)).collect();
        self.host = Some(HostWay::begin(&self.name, index, &devices)?);
        self.doubts.extend(host::firewall());
        self.reach = Reach::Host;
        Ok(())
    }

    /// Creates a far side in a separate namespace. `reason` is the error that prevented the use of the machine's network,
    /// if that was tried.
    pub(super) fn in_own_network(
        far: Far,
        space: Space,
        devices: u8,
        reason: Option<EmuError>,
    ) -> Result<FarSide, EmuError> {
        let make = || {
            let (interface, has_ipv6) = interfaces::of_far_side(space)?;
            let Far::Host { .. } = far else { return Ok((interface, has_ipv6, None, None)) };
            let mut routes = Routes::open().map_err(EmuError::step("talk to the kernel about routes"))?;
            let index = routes.index(NAME).map_err(EmuError::step("find an interface"))?;
            Ok((
                interface,
                has_ipv6,
                Some(GuestWay::open(space, has_ipv6)),
                forwarder(&mut routes, index, 0, true)?,
            ))
        };
        let ((interface, has_ipv6, guest, forwarder), network) = namespaces::in_new_network(make)?;
        let (guest, mut doubts) = match (guest.transpose(), far) {
            (Ok(guest), _) => (guest, vec![]),
            (Err(error), Far::Host { or_own: true }) => (
                None,
                vec![
                    Refused::new(format!("programs do not reach the outside: {error}"))
                        .but(Remedy::new("an isolated far side:").value("far", "own")),
                ],
            ),
            (Err(error), _) => return Err(error),
        };
        // If the relay works, the error of the first attempt does not matter.
        if let (Some(reason), None) = (reason, &guest) {
            doubts.push(reason.into());
        }
        Ok(FarSide {
            interface,
            name: NAME.to_owned(),
            network,
            slots: (1..=devices).collect(),
            has_ipv6,
            leads_ipv6: true,
            reach: Reach::Own,
            doubts,
            host: None,
            forwarder: forwarder.filter(|_| guest.is_some()),
            guest,
        })
    }

    /// Reverts changes to the machine when the session is over, even if the process that owned the far side was killed.
    pub(super) fn undo(&self) {
        if let Some(host) = &self.host {
            host.end();
        }
    }

    /// Starts the relay and the name forwarder. The caller is the session's first process; it gets a mount namespace here
    /// if it has none.
    pub(super) fn open(&mut self, ambient: CapabilitySet, has_mounts: bool) -> Result<(), EmuError> {
        if self.guest.is_none() && self.forwarder.is_none() {
            return Ok(());
        }
        let mounts = if has_mounts { Ok(()) } else { namespaces::own_mounts() };
        let mounts =
            mounts.map_err(|why| Refused::new(format!("the system gives no private mount namespace: {why}")));
        if let Some(guest) = &mut self.guest {
            let udp = mounts.clone().and_then(|()| pasta::begin(&self.network, ambient));
            self.reach = Reach::Relay { udp: udp.is_ok() };
            if let Err(why) = udp {
                self.doubts.push(format!("UDP (QUIC) does not reach the outside: {why}").into());
            }
            guest.begin().map_err(EmuError::step("carry connections"))?;
        }
        if let Some(forwarder) = self.forwarder.take() {
            let begun = mounts.and_then(|()| forwarder.begin().map_err(|why| why.to_string().into()));
            if let Err(why) = begun {
                let what =
                    "programs cannot resolve names: the machine's resolver is not reachable from devices";
                self.doubts.push(format!("{what}, and {why}").into());
            }
        }
        Ok(())
    }
}

impl Drop for FarSide {
    fn drop(&mut self) {
        self.undo();
    }
}

/// Creates the name forwarder at an address of this interface, if programs need one.
fn forwarder(
    routes: &mut Routes,
    index: u32,
    number: u8,
    reaches_none: bool,
) -> Result<Option<Forwarder>, EmuError> {
    let Some((resolvers, rest)) = names::needed(reaches_none) else { return Ok(None) };
    let address = names::address(number);
    let step = "give the forwarder of names its address";
    routes.add_address(index, address.into()).map_err(EmuError::step(step))?;
    let step = "listen for questions about names";
    Forwarder::open(address, resolvers, &rest).map(Some).map_err(EmuError::step(step))
}
