//! How far a transfer is.

use std::net::SocketAddr;
use std::time::Duration;

use airpace_cc::controller::Inspect;

use crate::transport::{Connection, Figures};

/// What one connection has done for a transfer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Files in all.
    pub files: u64,
    /// Files that are stored.
    pub stored: u64,
    /// Bytes in all, if known.
    pub bytes: Option<u64>,
    /// Bytes that were moved or were there already.
    pub done: u64,
    /// Of these, bytes that were there already.
    pub resumed: u64,
    /// Bytes that were read to compare what is there.
    pub checked: u64,
    /// The file that moves.
    pub name: String,
}

impl Tally {
    /// So many bytes more are where they belong.
    pub fn moved(&mut self, bytes: u64) {
        self.done += bytes;
    }
}

/// What a side is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// No connection yet.
    #[default]
    Connecting,
    /// Both sides prove that they know the key, and agree on what moves.
    Agreeing,
    /// Bytes move, or what is there is compared.
    Moving,
    /// The connection was lost, for this reason; the next try is about to begin.
    Waiting(String),
    /// All is stored.
    Done,
}

/// How far a transfer is, for people to watch.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// What is being done.
    pub stage: Stage,
    /// The other side, while there is a connection.
    pub peer: Option<SocketAddr>,
    /// What was done over this connection.
    pub tally: Tally,
    /// What is known of the connection.
    pub figures: Figures,
    /// Time since this transfer's first connection.
    pub elapsed: Duration,
    /// How often the connection was lost.
    pub losses: u64,
    /// The scheme's state and values, on the side that it steers or feeds back from.
    pub inspect: Inspect,
}

impl Progress {
    /// Takes over what the connection knows.
    pub(super) fn look(&mut self, connection: &dyn Connection, tally: Option<&Tally>) {
        self.peer = Some(connection.peer());
        self.figures = connection.figures();
        self.inspect.clear();
        connection.inspect(&mut self.inspect);
        if let Some(tally) = tally {
            self.tally.clone_from(tally);
            if tally.stored < tally.files {
                // What was handed to the transport is not there yet.
                let under_way = (self.figures.unsent + self.figures.inflight).0;
                self.tally.done = tally.done.saturating_sub(under_way).max(tally.resumed.min(tally.done));
            }
        }
    }
}
