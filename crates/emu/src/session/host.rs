//! Path from the devices to the machine's own network and the networks that it reaches, with root's rights: the kernel
//! forwards packets and translates the devices' addresses.
//!
//! All changes are reverted at the end. Concurrent emulators share one setting, the forwarding of packets. Each emulator
//! that needs it stores a note in its interface's alias, and the last emulator restores the setting.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use airpace_core::{Refused, Remedy};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::interfaces::NAME;
use crate::address::Space;
use crate::error::EmuError;
use crate::netfilter::{Family, Point, Rule, Table};
use crate::netlink::Routes;

/// Changes to the machine's own network. [`HostWay::end`] reverts them. Several processes may call this method, each
/// several times.
#[derive(Debug)]
pub(super) struct HostWay {
    tables: Vec<Table>,
    interface: u32,
    /// Whether forwarding is enabled because emulators need it.
    is_ours: bool,
}

/// Prefix of the note at the interface of an emulator that needs forwarding. The rest of the note is the previous value
/// of `accept_redirects`, which the kernel changes together with forwarding.
const NOTE: &str = "airpace: net.ipv4.ip_forward was 0, net.ipv4.conf.all.accept_redirects was ";

/// The forwarding setting.
const FORWARD: &str = "net/ipv4/ip_forward";

/// The setting that the kernel changes together with forwarding.
///
/// Source: Linux ip-sysctl.rst (`ip_forward`, `accept_redirects`)
const REDIRECTS: &str = "net/ipv4/conf/all/accept_redirects";

/// Maximum time for which another emulator may hold the lock while it changes the setting.
const CHANGES_WITHIN: Duration = Duration::from_secs(5);

/// Returns whether the machine forwards IPv6 packets. Airpace does not enable it, because the machine would then drop the
/// routes that it has learned from routers.
///
/// Source: Linux ip-sysctl.rst (`conf/all/forwarding`, `accept_ra`)
pub(super) fn passes_ipv6_on() -> bool {
    is("net/ipv6/conf/all/forwarding", "1")
}

fn is(setting: &str, value: &str) -> bool {
    value_of(setting) == value
}

fn value_of(setting: &str) -> String {
    std::fs::read_to_string(format!("/proc/sys/{setting}")).unwrap_or_default().trim().to_owned()
}

impl HostWay {
    /// Opens the path for these devices, whose packets leave through the interface with this name and index.
    pub(super) fn begin(name: &str, interface: u32, devices: &[Space]) -> Result<HostWay, EmuError> {
        let remedy = || Remedy::new("the far side can be a namespace of its own:").value("far", "own");
        // The lock excludes other emulators that start or end at the same time.
        let _lock = Lock::take()?;
        let note = match note_of_another(interface) {
            None if is(FORWARD, "1") => None,
            None => Some(format!("{NOTE}{}", value_of(REDIRECTS))),
            noted => noted,
        };
        let is_ours = note.is_some();
        let mut way = HostWay { tables: vec![], interface, is_ours };
        let step = "translate the devices' addresses with nftables";
        for family in [Family::V4, Family::V6] {
            if family == Family::V6 && !passes_ipv6_on() {
                continue;
            }
            let chains = rules(family, devices, is_ours && family == Family::V4);
            let table = Table::new(family, name, &chains).map_err(EmuError::step_or(step, remedy()))?;
            way.tables.push(table);
        }
        if let Some(note) = note {
            airpace_files::set_kernel(FORWARD, "1").map_err(EmuError::step_or(
                "make the machine pass packets on",
                Remedy::new(
                    "set it with `sysctl -w net.ipv4.ip_forward=1`, in a container with `--sysctl net.ipv4.ip_forward=1`",
                ),
            ))?;
            let noted = Routes::open().and_then(|mut routes| routes.set_note(interface, &note));
            if let Err(why) = noted {
                restore(interface, &note);
                return Err(EmuError::step(
                    "record the new routes at the network interface, for their later removal",
                )(why));
            }
        }
        Ok(way)
    }

    /// Reverts all changes.
    pub(super) fn end(&self) {
        self.tables.iter().for_each(Table::remove);
        if !self.is_ours {
            return;
        }
        // Without the lock, two processes may act at once; that is better than a setting that stays changed.
        let _lock = Lock::take();
        let Ok(mut routes) = Routes::open() else { return };
        // Another process has already reverted the changes, or the interface is gone.
        let Some(note) = note(&mut routes, self.interface) else { return };
        let _ = routes.set_note(self.interface, "");
        restore(self.interface, &note);
    }
}

/// Restores the settings from the note, unless another emulator still needs forwarding.
fn restore(interface: u32, note: &str) {
    if note_of_another(interface).is_none() {
        let _ = airpace_files::set_kernel(FORWARD, "0");
        let redirects = note.trim_start_matches(NOTE);
        let _ = airpace_files::set_kernel(REDIRECTS, redirects);
    }
}

/// Returns a note at the interface of another emulator.
fn note_of_another(interface: u32) -> Option<String> {
    let mut routes = Routes::open().ok()?;
    (0..Space::MAX_DEVICES).find_map(|number| {
        let other = routes.index(&format!("{NAME}-{number}")).ok()?;
        (other != interface).then(|| note(&mut routes, other))?
    })
}

/// Returns the note at an interface, if it has one.
fn note(routes: &mut Routes, interface: u32) -> Option<String> {
    routes.note(interface).ok().filter(|note| note.starts_with(NOTE))
}

/// Returns the rules for these devices; with `only`, packets of all other sources are not forwarded.
fn rules(family: Family, devices: &[Space], only: bool) -> Vec<(Point, Vec<Rule>)> {
    let emulators = format!("{NAME}-");
    let networks = devices.iter().flat_map(|device| device.networks());
    let ours = networks.filter(|(network, _)| network.is_ipv4() == (family == Family::V4));
    let translate = ours.map(|network| Rule::default().not_out_at(&emulators).from(network).masquerade());
    let mut chains = vec![(Point::Leaving, translate.collect())];
    if only {
        let rule = Rule::default;
        let pass = vec![rule().in_at(&emulators).accept(), rule().out_at(&emulators).accept(), rule().drop()];
        chains.push((Point::PassedOn, pass));
    }
    chains
}

/// Returns a warning if this machine's firewall is known to drop forwarded packets.
pub(super) fn firewall() -> Option<Refused> {
    let chains = std::process::Command::new("nft").args(["list", "chains"]).output().ok()?;
    let text = String::from_utf8(chains.stdout).ok()?;
    let drops = text.lines().any(|line| line.contains("hook forward") && line.contains("policy drop"));
    drops.then(|| {
        let what = "this machine's firewall drops packets that are passed on, so programs may not reach the outside";
        Refused::new(what).but(Remedy::new(format!(
            "allow them with `iptables -I FORWARD -i {NAME}-+ -j ACCEPT` and `iptables -I FORWARD -o {NAME}-+ -j ACCEPT`"
        )))
    })
}

/// Lock that is held while the setting is changed: an abstract socket name, which only one socket of a network namespace
/// can have. The kernel frees the name when its holder ends.
struct Lock {
    _socket: OwnedFd,
}

impl Lock {
    fn take() -> Result<Lock, EmuError> {
        let take = || -> io::Result<Lock> {
            let name = SocketAddrUnix::new_abstract_name(b"airpace-forwarding")?;
            let (family, kind) = (AddressFamily::UNIX, SocketType::DGRAM);
            let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
            let until = Instant::now() + CHANGES_WITHIN;
            loop {
                match rustix::net::bind(&socket, &name) {
                    Err(rustix::io::Errno::ADDRINUSE) if Instant::now() < until => {
                        std::thread::sleep(Duration::from_millis(2));
                    }
                    bound => return Ok(bound.map(|()| Lock { _socket: socket })?),
                }
            }
        };
        take().map_err(EmuError::step("wait for another emulator that begins or ends"))
    }
}
