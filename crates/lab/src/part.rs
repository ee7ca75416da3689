//! Programs that an experiment starts inside of an emulated network. They are this program itself, with a hidden command.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use airpace_transfer::bulk::Order;
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::over::Over;

/// Word before the socket's number, for the process that holds the namespaces.
pub const INSIDE: &str = "emu-inside";

/// Word before a [`Part`] as JSON.
pub const PART: &str = "emu-part";

/// Command line that starts this program again. The words of a hidden command are appended: `emu-inside NUMBER`, or
/// `emu-part JSON`. The front end passes these words to [`crate::inside`].
#[derive(Clone, Debug)]
pub struct Executable(pub Vec<OsString>);

impl Executable {
    /// The executable file of this process, without further words.
    ///
    /// # Errors
    /// The operating system does not report the path of the file.
    pub fn this() -> Result<Executable, LabError> {
        let path = std::env::current_exe().map_err(LabError::step("the program does not find itself"))?;
        Ok(Executable(vec![path.into()]))
    }
}

/// Task of a program inside of an emulated network.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Part {
    /// Sends and receives the packets of a schedule on one host, and prints their times.
    Play {
        /// File with the schedule.
        schedule: PathBuf,
        /// Index of the device on which the program runs; `None` at the far end.
        device: Option<u16>,
        /// Address of the far end, or the addresses of the devices in order.
        peers: Vec<Ipv4Addr>,
        /// Start of the schedule, in nanoseconds of the machine's monotonic clock.
        start_ns: u64,
        /// End of reception, on the same clock.
        until_ns: u64,
    },
    /// One endpoint of a bulk flow over TCP. A receiver prints its goodput in Mbit/s.
    Bulk {
        /// Whether the endpoint listens for the connection or opens it.
        listens: bool,
        /// Address of the listening endpoint.
        address: SocketAddr,
        /// Whether the endpoint sends or receives.
        sends: bool,
        /// Duration of the transfer (s).
        seconds: f64,
        /// The kernel's congestion control; `None` for the default.
        control: Option<String>,
        /// Whether buffers are enlarged so that they never limit the flow.
        is_wide: bool,
    },
    /// One endpoint of a measured flow over a transport. It prints the states of its scheme.
    Flow {
        /// The transport.
        over: Over,
        /// Address of the listening endpoint; the other endpoint has the same port.
        at: SocketAddr,
        /// The flow that the connecting endpoint requests; `None` for the endpoint that listens.
        order: Option<Order>,
    },
}

impl Part {
    /// The words after [`Executable`] that start this part.
    pub(crate) fn words(&self) -> [String; 2] {
        [PART.to_owned(), serde_json::to_string(self).expect("plain data")]
    }
}
