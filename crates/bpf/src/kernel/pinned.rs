//! Schemes that stay in the kernel after the process that loaded them has ended.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

use libbpf_rs::{Link, MapCore, MapHandle, Program};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::asked::own_pins;
use super::relay::Relay;
use super::shown::{self, FlowStatus};
use super::{BOUNDS, FLOWS, LoadError, OPS, Totals, pins, refused};
use crate::feed::{CellFeed, Feed, now};
use crate::layout::{HostWords, SharesWords, TotalsWords};
use crate::mapped::Mapped;
use crate::room::RoomProgram;

/// A pinned scheme.
pub struct Pinned {
    scheme: &'static str,
    folder: PathBuf,
    opened: File,
    feed: Option<MapHandle>,
    host: Option<MapHandle>,
    shares: Option<MapHandle>,
    totals: MapHandle,
}

impl Pinned {
    /// Opens a pinned scheme; `None` if the scheme is not pinned.
    ///
    /// # Errors
    /// The caller lacks privileges.
    pub fn open(scheme: &'static str) -> Result<Option<Pinned>, LoadError> {
        let Some(folder) = own_pins(scheme)? else { return Ok(None) };
        match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(LoadError::privileges());
            }
            _ if !["link", OPS, BOUNDS].iter().any(|file| folder.join(file).exists()) => return Ok(None),
            _ => {}
        }
        let open = |name| {
            MapHandle::from_pinned_path(folder.join(name)).map_err(|error| refused(scheme, "open", error))
        };
        let open_if = |name, condition| folder.join(condition).exists().then(|| open(name)).transpose();
        let (feed, host) = (open_if("feed", "feed")?, open_if("host", "counter")?);
        let (shares, totals) = (open_if("shares", "owners")?, open("totals")?);
        let failed = |error| LoadError::File { path: folder.clone(), error };
        let opened = File::open(&folder).map_err(failed)?;
        Ok(Some(Pinned { scheme, folder, opened, feed, host, shares, totals }))
    }

    /// The array for a feeder of PBE-CC; `None` if the scheme needs none.
    ///
    /// # Errors
    /// The operating system does not map the array.
    pub fn cell(&self) -> io::Result<Option<CellFeed>> {
        self.feed.as_ref().map(|feed| CellFeed::map(feed.as_fd())).transpose()
    }

    /// The program that makes space for PBE-CC's option at network devices; `None` if the scheme has no option.
    ///
    /// # Errors
    /// The caller lacks privileges.
    pub fn room(&self) -> Result<Option<RoomProgram>, LoadError> {
        let path = self.folder.join("room");
        if !path.exists() {
            return Ok(None);
        }
        let program =
            Program::fd_from_pinned_path(path).map_err(|error| refused(self.scheme, "open", error))?;
        Ok(Some(RoomProgram::of(program)))
    }

    /// Whether the opened scheme still exists: it was neither unloaded nor reloaded since it was opened.
    pub fn is_there(&self) -> bool {
        let [opened, present] = [self.opened.metadata(), fs::metadata(&self.folder)];
        opened.is_ok_and(|opened| present.is_ok_and(|present| present.ino() == opened.ino()))
    }

    /// Makes this process the scheme's only feeder for the lifetime of this value. Returns whether there was no other
    /// feeder.
    ///
    /// # Errors
    /// The operating system refuses the lock for another reason.
    pub fn be_its_feeder(&self) -> io::Result<bool> {
        match flock(&self.opened, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The state of each flow of the scheme, in every network namespace.
    ///
    /// # Errors
    /// The caller lacks privileges.
    pub fn flows(&self) -> io::Result<Vec<FlowStatus>> {
        shown::read(&self.folder.join(FLOWS), self.scheme)
    }

    /// The array for a feeder; `None` if the scheme needs none.
    ///
    /// # Errors
    /// The operating system does not map the array.
    pub fn feed(&self) -> io::Result<Option<Feed>> {
        self.feed.as_ref().map(|feed| Feed::map(feed.as_fd())).transpose()
    }

    /// The number of the host's active flows; `None` if they are not counted or their number is not valid.
    ///
    /// # Errors
    /// The operating system does not map the array.
    pub fn active_flows(&self) -> io::Result<Option<u64>> {
        let Some(host) = &self.host else { return Ok(None) };
        Ok(Some(read_host(host.as_fd())?.unwrap_or(0)))
    }

    /// The number of the host's active applications; `None` if they are not counted or their number is not valid.
    ///
    /// # Errors
    /// The operating system does not map the array.
    pub fn active_apps(&self) -> io::Result<Option<u64>> {
        let Some(shares) = &self.shares else { return Ok(None) };
        let shares: Mapped<SharesWords> = Mapped::new(shares.as_fd(), false)?;
        Ok(Some(active(&shares.apps).unwrap_or(0)))
    }

    /// The counters of the scheme's flows.
    ///
    /// # Errors
    /// The operating system does not map the array.
    pub fn totals(&self) -> io::Result<Totals> {
        read_totals(self.totals.as_fd())
    }
}

/// Removes a pinned scheme. Returns whether the scheme was pinned.
///
/// # Errors
/// The caller lacks privileges.
pub fn unload(scheme: &'static str) -> Result<bool, LoadError> {
    let (Some(pins), Some(folder)) = (pins(), own_pins(scheme)?) else { return Ok(false) };
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error| LoadError::File { path, error }
    };
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(failed(&folder)(error)),
    };
    if folder.join(OPS).exists() {
        let refused = |error| refused(scheme, "unload", error);
        let ops = MapHandle::from_pinned_path(folder.join(OPS)).map_err(refused)?;
        ops.delete(&0u32.to_ne_bytes()).map_err(refused)?;
    }
    if folder.join(BOUNDS).exists() {
        let open = |file| Link::open(folder.join(file)).map(Some);
        let opened = open(BOUNDS).and_then(|link| Ok(Relay { link, lift: open("lift")? }));
        opened.and_then(|mut relay| relay.end()).map_err(|error| refused(scheme, "unload", error))?;
    }
    for entry in entries {
        let path = entry.map_err(failed(&folder))?.path();
        fs::remove_file(&path).map_err(failed(&path))?;
    }
    fs::remove_dir(&folder).map_err(failed(&folder))?;
    // The folder may still contain other schemes.
    match fs::remove_dir(&pins) {
        Err(error) if error.kind() != io::ErrorKind::DirectoryNotEmpty => Err(failed(&pins)(error)),
        _ => Ok(true),
    }
}

pub(super) fn read_totals(fd: BorrowedFd<'_>) -> io::Result<Totals> {
    let totals: Mapped<TotalsWords> = Mapped::new(fd, false)?;
    Ok(Totals {
        flows: totals.flows.load(Relaxed),
        acks: totals.acks.load(Relaxed),
        sends: totals.sends.load(Relaxed),
        fallbacks: totals.fallbacks.load(Relaxed),
        returns: totals.returns.load(Relaxed),
        silences: totals.silences.load(Relaxed),
        confirmed: totals.confirmed.load(Relaxed),
        rooms: totals.rooms.load(Relaxed),
        elsewhere: totals.elsewhere.load(Relaxed),
    })
}

/// The number of active flows; `None` if the number is not valid.
pub(super) fn read_host(fd: BorrowedFd<'_>) -> io::Result<Option<u64>> {
    let host: Mapped<HostWords> = Mapped::new(fd, false)?;
    Ok(active(&host))
}

fn active(host: &HostWords) -> Option<u64> {
    let [flows, until] = [&host.flows, &host.until].map(|word| word.load(Relaxed));
    (now() < until).then_some(flows)
}
