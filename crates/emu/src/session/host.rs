//! The way from the devices to the machine's own network and what it reaches, with the rights of root: the kernel passes
//! packets on and translates the devices' addresses.
//!
//! Everything of it is undone at the end. Several emulators share the one setting that belongs to all, whether the
//! machine passes packets on: each that needed it writes a note at its interface, and the last one restores the setting.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::interfaces::NAME;
use crate::address::Space;
use crate::error::EmuError;
use crate::netfilter::{Family, Point, Rule, Table};
use crate::netlink::Routes;

/// What was changed in the machine's own network. [`HostWay::end`] undoes it; it may be called in several processes, and
/// several times.
#[derive(Debug)]
pub(super) struct HostWay {
    tables: Vec<Table>,
    interface: u32,
    /// Whether packets are passed on because emulators want it.
    is_ours: bool,
}

/// How the note begins that is at the interface of an emulator that needs the setting changed. What follows is the value
/// of another setting, which the kernel changes with it.
const NOTE: &str = "airpace: net.ipv4.ip_forward was 0, net.ipv4.conf.all.accept_redirects was ";

/// The setting.
const FORWARD: &str = "net/ipv4/ip_forward";

/// The setting that the kernel changes with it.
///
/// Source: Linux ip-sysctl.rst (`ip_forward`, `accept_redirects`)
const REDIRECTS: &str = "net/ipv4/conf/all/accept_redirects";

/// How long another emulator may take to change the setting.
const CHANGES_WITHIN: Duration = Duration::from_secs(5);

/// Whether the machine passes IPv6 packets on. It is not made to: it would then forget the routes that it has learnt
/// from routers.
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
    /// Opens the way for these devices, whose packets come out of the interface of this name and number.
    pub(super) fn begin(name: &str, interface: u32, devices: &[Space]) -> Result<HostWay, EmuError> {
        let remedy = "the far side can be a namespace of its own: `--far own`";
        // Others begin and end before or after, not between.
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
            let table = Table::new(family, name, &chains).map_err(EmuError::step_or(step, remedy))?;
            way.tables.push(table);
        }
        if let Some(note) = note {
            airpace_files::set_kernel(FORWARD, "1").map_err(EmuError::step_or(
                "make the machine pass packets on",
                "set it with `sysctl -w net.ipv4.ip_forward=1`, in a container with `--sysctl net.ipv4.ip_forward=1`",
            ))?;
            let noted = Routes::open().and_then(|mut routes| routes.set_note(interface, &note));
            if let Err(why) = noted {
                restore(interface, &note);
                return Err(EmuError::step("write a note at an interface")(why));
            }
        }
        Ok(way)
    }

    /// Undoes everything.
    pub(super) fn end(&self) {
        self.tables.iter().for_each(Table::remove);
        if !self.is_ours {
            return;
        }
        // Without the lock there would be two at once; that is better than a setting that stays changed.
        let _lock = Lock::take();
        let Ok(mut routes) = Routes::open() else { return };
        // Another process has done it already, or the interface is gone.
        let Some(note) = note(&mut routes, self.interface) else { return };
        let _ = routes.set_note(self.interface, "");
        restore(self.interface, &note);
    }
}

/// Restores what the note tells, unless another emulator needs it changed.
fn restore(interface: u32, note: &str) {
    if note_of_another(interface).is_none() {
        let _ = airpace_files::set_kernel(FORWARD, "0");
        let redirects = note.trim_start_matches(NOTE);
        let _ = airpace_files::set_kernel(REDIRECTS, redirects);
    }
}

/// The note of another emulator than that of this interface.
fn note_of_another(interface: u32) -> Option<String> {
    let mut routes = Routes::open().ok()?;
    (0..Space::MOST_DEVICES).find_map(|number| {
        let other = routes.index(&format!("{NAME}-{number}")).ok()?;
        (other != interface).then(|| note(&mut routes, other))?
    })
}

/// The note at an interface, if there is one.
fn note(routes: &mut Routes, interface: u32) -> Option<String> {
    routes.note(interface).ok().filter(|note| note.starts_with(NOTE))
}

/// The rules for these devices; `only` if packets of nobody else are to be passed on.
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

/// A sentence about a firewall of this machine that drops what is passed on, if there is one that can be seen.
pub(super) fn firewall() -> Option<String> {
    let chains = std::process::Command::new("nft").args(["list", "chains"]).output().ok()?;
    let text = String::from_utf8(chains.stdout).ok()?;
    let drops = text.lines().any(|line| line.contains("hook forward") && line.contains("policy drop"));
    drops.then(|| {
        format!(
            "this machine's firewall drops packets that are passed on, so programs may not reach the outside; allow them \
             with `iptables -I FORWARD -i {NAME}-+ -j ACCEPT` and `iptables -I FORWARD -o {NAME}-+ -j ACCEPT`"
        )
    })
}

/// Held while the setting is changed: a name that only one socket of a network namespace can have. It is free when its
/// holder is gone.
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
