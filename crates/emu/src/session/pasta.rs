//! UDP from the devices to the machine and the networks that it reaches, without root's rights: the program pasta relays
//! UDP packets between the far side's namespace and sockets of this user.
//!
//! Source: passt pasta(1)

use std::fs::File;
use std::io::{Read, Seek};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Command, Stdio};

use airpace_core::Refused;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::mount::mount_bind;
use rustix::thread::CapabilitySet;

use super::namespaces::in_hidden_folder;
use crate::sys::{self, Place};

/// Name of pasta's interface in the far side's namespace.
pub(super) const INTERFACE: &str = "outside";

/// Addresses of pasta's interface, and of its router, which represents the machine itself.
///
/// Source: RFC 7335 §4 (192.0.0.0/29, for ends of tunnels). Chosen: the IPv6 network next to that of the devices.
const ADDRESS_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 0, 2);
pub(super) const ROUTER_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 0, 1);
const ADDRESS_V6: Ipv6Addr = Ipv6Addr::new(0xfd61, 0x6972, 0x7062, 0, 0, 0, 0, 2);
pub(super) const ROUTER_V6: Ipv6Addr = Ipv6Addr::new(0xfd61, 0x6972, 0x7062, 0, 0, 0, 0, 1);

/// Starts pasta for the far side's namespace; pasta ends with the session's process. `ambient` are its capabilities.
///
/// # Errors
/// A clause with the reason why pasta does not run.
pub(super) fn begin(far: &File, ambient: CapabilitySet) -> Result<(), Refused> {
    // pasta keeps its standard error open while it runs, so reading from a pipe would never reach its end.
    let said = memfd_create("pasta", MemfdFlags::CLOEXEC).map_err(|error| error.to_string())?;
    let mut said = File::from(said);
    let run = |folder: &Path| {
        // pasta cannot open files that this process holds open, so the namespace needs a path.
        let network = folder.join("far");
        airpace_files::new_file(&network)?;
        mount_bind(format!("/proc/self/fd/{}", far.as_raw_fd()), &network)?;
        command(&network, said.try_clone()?, ambient).status()
    };
    let status = in_hidden_folder(run).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            "pasta, which carries it without rights, is not installed (package passt)".to_owned()
        }
        _ => format!("pasta cannot be started: {error}"),
    })?;
    if !status.success() {
        let mut text = String::new();
        let _ = said.rewind().and_then(|()| said.read_to_string(&mut text));
        let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no word");
        return Err(format!("pasta ended with {status}: {line}").into());
    }
    Ok(())
}

/// Returns the command line; pasta continues in the background as soon as it is ready.
fn command(network: &Path, output: File, ambient: CapabilitySet) -> Command {
    let mut command = Command::new("pasta");
    command
        .args(["--quiet", "--stderr", "--config-net", "--ns-ifname", INTERFACE])
        .args(["--no-tcp", "--udp-ports", "none", "--udp-ns", "none"])
        .args(["--address", &ADDRESS_V4.to_string(), "--netmask", "29", "--gateway", &ROUTER_V4.to_string()])
        .args(["--address", &ADDRESS_V6.to_string(), "--gateway", &ROUTER_V6.to_string()])
        .arg("--no-netns-quit")
        .arg("--netns")
        .arg(network)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(output);
    sys::put_in_place(&mut command, &Place { network: None, ambient, heeded: &[] });
    command
}
