//! Interfaces of a session: one per device and one for the far side, with their addresses and routes.

use std::fs::{File, OpenOptions};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;

use airpace_core::remedy::{Refused, Remedy, UserTask};

use super::fib::Fib;
use crate::address::Space;
use crate::error::EmuError;
use crate::netlink::Routes;
use crate::sys;
use crate::turn::MTU;

/// Name of the interface in a namespace that belongs to the emulator alone.
pub(super) const NAME: &str = "airpace";

/// Maximum number of packets that wait at an interface until the emulator reads them.
///
/// Chosen: 20 ms at 1 Gbit/s, so that a late wake-up of the thread loses no packet.
const QUEUE: u32 = 2_000;

/// Appends to a remedy that the simulator works where the emulator does not, and which task reports details.
pub(super) fn or_simulator(remedy: Remedy) -> Remedy {
    remedy
        .text(", or use")
        .task(UserTask::Simulate)
        .text(", which runs the same scenario in virtual time and needs no rights; see")
        .task(UserTask::ExamineEmulation)
}

/// Creates a device's interface in the thread's network namespace, which is new. IPv6 packets to addresses of no emulator
/// are routed to the interface only if the far side forwards them. Otherwise programs receive "no route" at once, and use
/// IPv4.
pub(super) fn of_device(device: Space, leads_ipv6: bool) -> Result<(File, bool), EmuError> {
    let (interface, mut routes, index) = in_new_namespace()?;
    let has_ipv6 = address(&mut routes, index, device)?;
    for address in device.addresses().into_iter().filter(|it| it.is_ipv4() || has_ipv6) {
        let network = match address {
            IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED.into(), 0),
            IpAddr::V6(_) if leads_ipv6 => (Ipv6Addr::UNSPECIFIED.into(), 0),
            IpAddr::V6(_) => Space::ROOT.networks()[1],
        };
        let step = "lead everything to the interface of a device";
        routes.add_route(network, index, Some(address)).map_err(EmuError::step(step))?;
    }
    settings();
    Ok((interface, has_ipv6))
}

/// Creates the far side's interface in the thread's network namespace, which is new.
pub(super) fn of_far_side(space: Space) -> Result<(File, bool), EmuError> {
    let (interface, mut routes, index) = in_new_namespace()?;
    let has_ipv6 = address(&mut routes, index, space)?;
    for (network, length) in space.networks().into_iter().filter(|(it, _)| it.is_ipv4() || has_ipv6) {
        let step = "lead the devices' addresses to the interface of the far side";
        routes.add_route((network, length), index, None).map_err(EmuError::step(step))?;
    }
    settings();
    Ok((interface, has_ipv6))
}

/// The interface of a far side in a network that is shared with other emulators.
pub(super) struct Beside {
    pub interface: File,
    pub name: String,
    /// Number in the interface's name, which is unique among emulators, and index among all interfaces.
    pub number: u8,
    pub index: u32,
    /// Numbers of the devices.
    pub slots: Vec<u8>,
}

/// Returns the error of an emulator that is nested too deeply to have addresses.
pub(super) fn too_deep() -> EmuError {
    let deepest = Space::DEEPEST;
    EmuError::refused(format!("emulators are nested too deeply; they can be nested {deepest} times"))
}

/// Creates the far side's interface in a shared namespace, and allocates free numbers for the devices.
pub(super) fn beside_others(space: Space, devices: u8) -> Result<Beside, EmuError> {
    if space.device(1).is_none() {
        return Err(too_deep());
    }
    let mut routes = Routes::open().map_err(EmuError::step("talk to the kernel about routes"))?;
    // A nested emulator has its address block for itself.
    let table = if space == Space::ROOT { Fib::of_this_thread() } else { Fib::default() };
    let (interface, name, number, index) = free_interface(&mut routes)?;
    let mut slots = vec![];
    let mut taken = None;
    for slot in 1..=Space::MAX_DEVICES {
        if slots.len() == usize::from(devices) {
            break;
        }
        let Some(device) = space.device(slot) else { continue };
        let [v4, v6] = device.networks();
        if let Some(route) = table.overlapping(v4) {
            taken = Some(route);
            continue;
        }
        match routes.add_route(v4, index, None) {
            Ok(()) => {
                // Where the kernel has no IPv6, the devices have none either.
                let _ = routes.add_route(v6, index, None);
                slots.push(slot);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(EmuError::step("lead a device's addresses to the interface of the far side")(
                    error,
                ));
            }
        }
    }
    if let Some((network, length)) = taken.filter(|_| slots.len() < usize::from(devices)) {
        let refused = Refused::new(format!(
            "this machine has a route to {network}/{length} (a VPN, perhaps), where the devices' addresses lie, and would \
             reach nothing there while the emulator runs"
        ));
        let remedy = Remedy::new("give").value("far", "own").text(", which has a network of its own");
        return Err(refused.but(remedy).into());
    }
    if slots.len() < usize::from(devices) {
        return Err(EmuError::refused(format!(
            "{} of the {} numbers for devices are free here, and {devices} are wanted; end another emulator first",
            slots.len(),
            Space::MAX_DEVICES
        )));
    }
    Ok(Beside { interface, name, number, index, slots })
}

/// Creates an interface with the first free name.
fn free_interface(routes: &mut Routes) -> Result<(File, String, u8, u32), EmuError> {
    for number in 0..Space::MAX_DEVICES {
        let name = format!("{NAME}-{number}");
        if routes.index(&name).is_ok() {
            continue;
        }
        match open(&name) {
            Ok(interface) => {
                be_quiet(&name);
                let index = routes.index(&name).and_then(|index| {
                    routes.set_up(index, Some((MTU, QUEUE)))?;
                    Ok(index)
                });
                let index = index.map_err(EmuError::step("turn an interface on"))?;
                return Ok((interface, name, number, index));
            }
            Err(EmuError::System { why, .. }) if why.raw_os_error() == Some(libc::EBUSY) => {}
            Err(error) => return Err(error),
        }
    }
    Err(EmuError::refused("too many emulators run here; end another one first".to_owned()))
}

/// Creates the interface of a new namespace. Also returns an rtnetlink socket, and the interface's index.
fn in_new_namespace() -> Result<(File, Routes, u32), EmuError> {
    let interface = open(NAME)?;
    be_quiet(NAME);
    let mut routes = Routes::open().map_err(EmuError::step("talk to the kernel about routes"))?;
    let mut turn_on = || {
        let lo = routes.index("lo")?;
        routes.set_up(lo, None)?;
        let index = routes.index(NAME)?;
        routes.set_up(index, Some((MTU, QUEUE)))?;
        Ok(index)
    };
    let index = turn_on().map_err(EmuError::step("turn an interface on"))?;
    Ok((interface, routes, index))
}

/// Disables IPv6 neighbour and router discovery, which no host answers at an emulator's interface.
fn be_quiet(name: &str) {
    for (setting, value) in [("addr_gen_mode", "1"), ("router_solicitations", "0")] {
        // A kernel without IPv6 does not have these settings.
        let _ = airpace_files::set_kernel(&format!("net/ipv6/conf/{name}/{setting}"), value);
    }
}

/// Adds the addresses of `space` to an interface. Returns whether IPv6 works.
pub(super) fn address(routes: &mut Routes, index: u32, space: Space) -> Result<bool, EmuError> {
    let step = EmuError::step("give an interface its address");
    routes.add_address(index, space.address_v4().into()).map_err(step)?;
    Ok(routes.add_address(index, space.address_v6().into()).is_ok())
}

/// Opens the device file that creates TUN interfaces.
pub(crate) fn open_tun() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")
}

/// Creates a TUN interface.
fn open(name: &str) -> Result<File, EmuError> {
    let device = open_tun().map_err(|why| {
        let remedy = or_simulator(Remedy::new(tun_remedy(&why)));
        EmuError::from(Refused::new(format!("cannot open /dev/net/tun: {why}")).but(remedy))
    })?;
    sys::make_tun(device.as_fd(), name).map_err(|why| EmuError::System {
        step: "make a TUN interface".to_owned(),
        why,
        remedy: Some(Remedy::new("the emulator needs CAP_NET_ADMIN in its network namespace")),
    })?;
    Ok(device)
}

/// Returns the remedy if `/dev/net/tun` cannot be opened.
pub(crate) fn tun_remedy(why: &io::Error) -> &'static str {
    match why.kind() {
        io::ErrorKind::NotFound => {
            "load the kernel's module (`modprobe tun`), or start the container with `--device /dev/net/tun`"
        }
        _ => {
            "let this user open it (`chmod 666 /dev/net/tun`), or start the container with `--device /dev/net/tun`"
        }
    }
}

/// Setting for ICMP redirects of the interface in a namespace.
const REDIRECTS: &str = "ipv4/conf/airpace/send_redirects";

/// Configures a namespace: nested emulators on its devices need forwarding, and all users may send pings.
fn settings() {
    let group = rustix::process::getegid().as_raw();
    // Each setting is optional: a kernel without it works too.
    for (name, value) in [
        ("ipv4/ip_forward", "1".to_owned()),
        // Devices cannot reach each other directly, so the far side must not redirect them, although it sees one
        // interface.
        ("ipv4/conf/all/send_redirects", "0".to_owned()),
        (REDIRECTS, "0".to_owned()),
        ("ipv6/conf/all/forwarding", "1".to_owned()),
        ("ipv4/ping_group_range", format!("{group} {group}")),
    ] {
        let _ = airpace_files::set_kernel(&format!("net/{name}"), &value);
    }
}
