//! Sets limits of the windows of a device's downloads, and removes these limits.
//!
//! The program that sets the limits runs for each packet of a socket. After this program was removed, the limits would
//! remain. Another program therefore iterates over all TCP sockets of each network namespace and removes the limits.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use libbpf_rs::{Iter, Link};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Directory of the named network namespaces.
const NAMED: &str = "/run/netns";

/// The active relay. It limits windows for the lifetime of this value or, once it is pinned, as long as its file
/// exists.
pub(super) struct Relay {
    pub(super) link: Option<Link>,
    pub(super) lift: Option<Link>,
}

impl Relay {
    /// Detaches the program and removes all limits.
    pub(super) fn end(&mut self) -> libbpf_rs::Result<()> {
        let (Some(link), Some(lift)) = (self.link.take(), self.lift.take()) else { return Ok(()) };
        link.detach()?;
        drop(link);
        lift_everywhere(lift)
    }

    /// Leaves the program and its limits in the kernel when this value is dropped.
    pub(super) fn stay(&mut self) {
        (self.link, self.lift) = (None, None);
    }
}

impl Drop for Relay {
    /// A failure is ignored, because flows continue with the remaining limits, which correspond to an earlier
    /// bandwidth.
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Runs a program over the TCP sockets of every network namespace that has a process or a name.
fn lift_everywhere(lift: Link) -> libbpf_rs::Result<()> {
    // A separate thread enters the other namespaces and ends there.
    let enter = move || {
        for namespace in namespaces() {
            // The namespace and its sockets may have been removed in the meantime.
            let Ok(file) = File::open(&namespace) else { continue };
            if move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).is_ok() {
                lift_here(&lift)?;
            }
        }
        Ok(())
    };
    let entered = std::thread::Builder::new().spawn(enter).map_err(libbpf_rs::Error::from)?;
    entered.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn lift_here(lift: &Link) -> libbpf_rs::Result<()> {
    let mut nothing = vec![];
    Iter::new(lift)?.read_to_end(&mut nothing)?;
    Ok(())
}

/// One path of each network namespace.
fn namespaces() -> Vec<PathBuf> {
    let listed =
        |folder: &str| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let of_processes = listed("/proc").map(|process| process.join("ns/net"));
    let mut seen = BTreeSet::new();
    let is_new = |path: &PathBuf| identity(path).is_ok_and(|identity| seen.insert(identity));
    let own = PathBuf::from("/proc/self/ns/net");
    std::iter::once(own).chain(listed(NAMED)).chain(of_processes).filter(is_new).collect()
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let found = fs::metadata(path)?;
    Ok((found.dev(), found.ino()))
}
