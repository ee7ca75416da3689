//! The windows that a device bounds for its downloads, and how the bounds are taken back.
//!
//! The program that bounds them runs with each packet of a socket. Once it is gone, nobody would lift a bound. So another
//! program then goes through all TCP sockets of each network namespace.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use libbpf_rs::{Iter, Link};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// The namespaces that have names.
const NAMED: &str = "/run/netns";

/// Bounds windows as long as it lives, or, once it is pinned, as long as its file is there.
pub(super) struct Relay {
    pub(super) link: Option<Link>,
    pub(super) lift: Option<Link>,
}

impl Relay {
    /// Ends it, and takes all bounds back.
    pub(super) fn end(&mut self) -> libbpf_rs::Result<()> {
        let (Some(link), Some(lift)) = (self.link.take(), self.lift.take()) else { return Ok(()) };
        link.detach()?;
        drop(link);
        lift_everywhere(lift)
    }

    /// Leaves it in the kernel.
    pub(super) fn stay(&mut self) {
        (self.link, self.lift) = (None, None);
    }
}

impl Drop for Relay {
    /// Flows go on whatever happens: a bound that stays is that of a bandwidth which was there.
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Runs a program over the TCP sockets of every network namespace that has a process or a name.
fn lift_everywhere(lift: Link) -> libbpf_rs::Result<()> {
    // A thread may enter another namespace and end there.
    let enter = move || {
        for namespace in namespaces() {
            // It may have gone meanwhile, and its sockets with it.
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

/// One file of each.
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
