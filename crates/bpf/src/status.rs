//! State of a loaded scheme, for people.

use std::io;
use std::time::Duration;

use airpace_core::Rate;

use crate::kernel::{FlowStatus, LoadError, PBE, Pinned, Totals};
use crate::netns::{self, Place};

/// Reason why the state of a scheme cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// The loaded scheme cannot be opened.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The flows cannot be read.
    #[error("the flows of `{name}` cannot be read")]
    Flows {
        /// Name of the scheme.
        name: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// An array of the scheme cannot be mapped.
    #[error(transparent)]
    Array(#[from] io::Error),
}

/// The last values that a feeder wrote.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LastFed {
    /// The fed rate, if it was known.
    pub rate: Option<Rate>,
    /// Age of the values; `None` if none were written yet.
    pub age: Option<Duration>,
}

impl LastFed {
    /// Reads the last values of a scheme; `None` if the scheme needs no feed.
    fn of(name: &str, pinned: &Pinned) -> io::Result<Option<LastFed>> {
        let read = match name == PBE {
            true => pinned.cell()?.map(|feed| feed.read().map(|([capacity, _], age)| (Some(capacity), age))),
            false => pinned.feed()?.map(|feed| feed.read().map(|(told, age)| (told.bandwidth, age))),
        };
        Ok(read.map(|told| LastFed { rate: told.and_then(|(rate, _)| rate), age: told.map(|(_, age)| age) }))
    }
}

/// State of a loaded scheme.
pub struct Status {
    /// Name of the scheme.
    pub name: &'static str,
    /// Counters over all flows.
    pub totals: Totals,
    /// The present flows.
    pub flows: Vec<FlowStatus>,
    /// Last feed; `None` if the scheme needs no feed.
    pub feed: Option<LastFed>,
    /// Number of the machine's active flows; `None` if they are not counted.
    pub active: Option<u64>,
    /// Number of the machine's active applications; `None` if they are not counted.
    pub apps: Option<u64>,
    /// Network namespaces in which the scheme is the default of new sockets.
    pub default_in: Vec<Place>,
}

impl Status {
    /// Reads the state of a scheme; `None` if it is not loaded.
    ///
    /// # Errors
    /// The caller lacks privileges.
    pub fn of(name: &'static str) -> Result<Option<Status>, StatusError> {
        let Some(pinned) = Pinned::open(name)? else { return Ok(None) };
        let flows = match pinned.flows() {
            Ok(flows) => flows,
            // The scheme has been unloaded in the meantime.
            Err(_) if !pinned.is_there() => return Ok(None),
            Err(source) => return Err(StatusError::Flows { name, source }),
        };
        Ok(Some(Status {
            name,
            totals: pinned.totals()?,
            flows,
            feed: LastFed::of(name, &pinned)?,
            active: pinned.active_flows()?,
            apps: pinned.active_apps()?,
            default_in: netns::defaults(name),
        }))
    }
}
