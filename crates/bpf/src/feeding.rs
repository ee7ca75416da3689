//! The feeder of a loaded scheme: this process writes the radio's values, until the scheme is unloaded.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::devices::Devices;
use crate::feed::{CellFeed, Feed, GrantRecord};
use crate::kernel::{LoadError, PBE, Pinned};
use crate::twin::pbe_receiver::Cell;

/// Interval at which the feed is written again without a new report.
///
/// Chosen: the report interval of a radio.
pub const PERIOD: Duration = Duration::from_millis(1);

/// Interval at which a feeder checks that its scheme is still loaded.
const LOOK: Duration = Duration::from_millis(100);

/// Reason why a scheme cannot be fed.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// The scheme is not loaded.
    #[error("`{0}` is not loaded")]
    NotLoaded(&'static str),
    /// Another process feeds the scheme.
    #[error("another process feeds {0} already; end that one first")]
    Taken(&'static str),
    /// The scheme was unloaded while it was fed.
    #[error("{0} has been unloaded and receives no more data; after loading it again, restart the feed")]
    Unloaded(&'static str),
    /// The loaded programs are of another kind.
    #[error("what is loaded has no array for a feeder; unload it and load it again")]
    NoArray,
    /// This user may not write the values.
    #[error("the kernel does not map its array; feed as root")]
    NotMapped(#[source] io::Error),
    /// The loaded scheme cannot be opened.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The system refuses a lock on the scheme.
    #[error(transparent)]
    Lock(io::Error),
}

/// A loaded scheme. This process is its only feeder.
struct Fed {
    name: &'static str,
    pinned: Pinned,
    looked: Instant,
}

impl Fed {
    fn open(name: &'static str) -> Result<Fed, FeedError> {
        let pinned = Pinned::open(name)?.ok_or(FeedError::NotLoaded(name))?;
        if !pinned.be_its_feeder().map_err(FeedError::Lock)? {
            return Err(FeedError::Taken(name));
        }
        Ok(Fed { name, pinned, looked: Instant::now() })
    }

    /// Checks, at most every [`LOOK`], that the scheme is still loaded; fails if not.
    fn look(&mut self) -> Result<(), FeedError> {
        if self.looked.elapsed() < LOOK {
            return Ok(());
        }
        self.looked = Instant::now();
        if self.pinned.is_there() { Ok(()) } else { Err(FeedError::Unloaded(self.name)) }
    }
}

/// Feeder of BISCAY or of its relay.
pub struct Device {
    fed: Fed,
    feed: Feed,
}

impl Device {
    /// Opens the loaded scheme of this name.
    ///
    /// # Errors
    /// It is not loaded, another process feeds it, or this user may not.
    pub fn open(name: &'static str) -> Result<Device, FeedError> {
        let fed = Fed::open(name)?;
        let feed = fed.pinned.feed().map_err(FeedError::NotMapped)?.ok_or(FeedError::NoArray)?;
        Ok(Device { fed, feed })
    }

    /// Writes the radio's grants.
    ///
    /// # Errors
    /// The scheme was unloaded.
    pub fn tell(&mut self, told: &GrantRecord) -> Result<(), FeedError> {
        self.feed.tell(told);
        self.fed.look()
    }
}

/// Feeder of PBE-CC, on the phone.
pub struct Phone {
    fed: Fed,
    feed: CellFeed,
    devices: Devices,
}

impl Phone {
    /// Opens the loaded PBE-CC.
    ///
    /// # Errors
    /// It is not loaded, another process feeds it, or this user may not.
    pub fn open() -> Result<Phone, FeedError> {
        let fed = Fed::open(PBE)?;
        let feed = fed.pinned.cell().map_err(FeedError::NotMapped)?.ok_or(FeedError::NoArray)?;
        let devices = Devices::new(fed.pinned.room()?.ok_or(FeedError::NoArray)?);
        Ok(Phone { fed, feed, devices })
    }

    /// The most recently reported RTprop of a sender.
    pub fn rtprop(&self) -> Option<Duration> {
        self.feed.rtprop()
    }

    /// Writes the state of the cell, and makes space for feedback at new network devices. Returns the names of devices
    /// that refuse it, each with the system's error.
    ///
    /// # Errors
    /// The scheme was unloaded.
    pub fn tell(&mut self, cell: &Cell) -> Result<Vec<(String, io::Error)>, FeedError> {
        self.feed.tell(cell);
        let refused = self.devices.look();
        self.fed.look().map(|()| refused)
    }
}

/// Passes each new item to `tell` at once, and the latest item again every millisecond, with its age. Ends when the sender
/// of `news` is gone. Returns the number of items.
///
/// # Errors
/// Those of `tell`.
pub fn tell_all<N, E>(
    news: &Receiver<N>,
    mut tell: impl FnMut(&N, Duration) -> Result<(), E>,
) -> Result<u64, E> {
    let (mut last, mut told): (Option<(N, Instant)>, _) = (None, 0);
    loop {
        match news.recv_timeout(PERIOD) {
            Ok(news) => {
                last = Some((news, Instant::now()));
                told += 1;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(told),
        }
        if let Some((told, at)) = &last {
            tell(told, at.elapsed())?;
        }
    }
}
