//! Progress of a transfer.

use std::net::SocketAddr;
use std::time::Duration;

use airpace_cc::controller::Inspect;
use airpace_core::{Bytes, Rate};
use airpace_transport::endpoint::{Connection, Figures};
use serde_json::{Value, json};

/// Counters of a transfer over one connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Total number of files.
    pub files: u64,
    /// Number of files that are stored.
    pub stored: u64,
    /// Total number of bytes, if known.
    pub bytes: Option<u64>,
    /// Bytes that were transferred or already present.
    pub done: u64,
    /// Part of `done` that was already present.
    pub resumed: u64,
    /// Bytes that were read to compare the files of both endpoints.
    pub checked: u64,
    /// Name of the current file.
    pub name: String,
}

impl Tally {
    /// Adds to the number of transferred or present bytes.
    pub fn moved(&mut self, bytes: u64) {
        self.done += bytes;
    }
}

/// Stage of a transfer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// No connection yet.
    #[default]
    Connecting,
    /// Both endpoints prove that they have the key and agree on the transfer.
    Agreeing,
    /// Files are transferred or compared.
    Moving,
    /// The connection was lost for this reason; the next attempt follows.
    Waiting(String),
    /// All files are stored.
    Done,
}

/// Progress of a transfer, for display.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Current stage.
    pub stage: Stage,
    /// Address of the peer; `None` before the first connection.
    pub peer: Option<SocketAddr>,
    /// Counters of this connection.
    pub tally: Tally,
    /// Figures reported by the transport.
    pub figures: Figures,
    /// Client: time since the first connection attempt of the transfer. Server: age of the connection.
    pub elapsed: Duration,
    /// Number of lost connections.
    pub losses: u64,
    /// State and values of the scheme's sender or receiver at this endpoint.
    pub inspect: Inspect,
}

impl Progress {
    /// Rate of the bytes that were transferred, and not present before.
    pub fn throughput(&self) -> Rate {
        Rate::from_bytes_per(Bytes(self.tally.done - self.tally.resumed), self.elapsed)
    }

    /// The result of the transfer as JSON: counts, rate, and figures of the transport.
    pub fn object(&self) -> Value {
        let tally = &self.tally;
        json!({
            "files": tally.files,
            "bytes": tally.done,
            "bytes_resumed": tally.resumed,
            "seconds": self.elapsed.as_secs_f64(),
            "throughput_mbps": self.throughput().as_mbps(),
            "connections_lost": self.losses,
            "rtt_ms": self.figures.rtt.map(|rtt| rtt.smoothed.as_secs_f64() * 1e3),
            "packets_sent": self.figures.sent.packets,
            "packets_lost": self.figures.lost.packets,
        })
    }

    /// Updates the progress from the connection and the counters.
    pub(super) fn look(&mut self, connection: &dyn Connection, tally: Option<&Tally>) {
        self.peer = Some(connection.peer());
        self.figures = connection.figures();
        self.inspect.clear();
        connection.inspect(&mut self.inspect);
        if let Some(tally) = tally {
            self.tally.clone_from(tally);
            if tally.stored < tally.files {
                // Bytes that are unsent or inflight do not count as transferred yet.
                let under_way = (self.figures.unsent + self.figures.inflight).0;
                self.tally.done = tally.done.saturating_sub(under_way).max(tally.resumed.min(tally.done));
            }
        }
    }
}
