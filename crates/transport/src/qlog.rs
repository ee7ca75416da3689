//! Logs of QUIC connections in qlog format, one file each, readable by qvis.
//!
//! The files are in qlog 0.3 with its QUIC events, like those of `airpace sim`, because qvis reads and draws that
//! version. noq could write a log as well, but in a newer draft that no viewer draws yet. noq also composes each entry
//! when no log is wanted, which costs a third of the CPU time per packet. Here, a connection without a log has no extra
//! cost. Each packet of a logged connection passes through a wrapper of the packet protection that reports it
//! (`quic/logged.rs`).
//!
//! | event | when |
//! | --- | --- |
//! | `connectivity:connection_started` | a connection is started |
//! | `transport:parameters_set` | a connection is started (own parameters); the peer's parameters arrive |
//! | `transport:packet_sent` | a packet is encrypted |
//! | `transport:packet_received` | a packet was decrypted (duplicates included), or a Retry was accepted |
//! | `recovery:packet_lost` | noq declares a packet lost |
//! | `recovery:metrics_updated` | data packets are sent or ACKs arrive, and a value of the ledger has changed |
//!
//! | module | content |
//! | --- | --- |
//! | [`frames`] | the frames of a packet |
//! | `wire` | numbers, headers and transport parameters |
//! | `form` | JSON representation of packets and frames in qlog 0.3 |
//! | `log` | the log file of one connection |
//!
//! Source: draft-ietf-quic-qlog-main-schema-02 §4, draft-ietf-quic-qlog-quic-events-01 §5; RFC 7464 §2.2 (the byte before
//! each text)

mod form;
pub mod frames;
mod log;
mod wire;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use airpace_files::Growing;

pub(crate) use self::log::{Log, Metrics, Packet};
pub(crate) use self::wire::{Header, Parameters};

/// A folder in which each connection gets its own log file: `0001-client-5c0f….sqlog`.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    made: AtomicU64,
    failed: AtomicU64,
}

impl Folder {
    /// Writes logs into this folder, which is created if it does not exist.
    ///
    /// # Errors
    /// The system refuses to create the folder.
    pub fn new(path: &Path) -> io::Result<Arc<Folder>> {
        std::fs::create_dir_all(path)?;
        Ok(Arc::new(Folder { path: path.to_owned(), made: AtomicU64::new(0), failed: AtomicU64::new(0) }))
    }

    /// Number of connections whose file could not be created, or could not be written completely.
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    fn fail(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// Opens the file of the next connection. `original` is the destination connection ID that the client chose
    /// first.
    fn open(&self, side: &str, original: &str) -> Option<Growing> {
        let number = self.made.fetch_add(1, Ordering::Relaxed) + 1;
        let path = self.path.join(format!("{number:04}-{side}-{original}.sqlog"));
        let opened = Growing::open(&path).and_then(|mut file| file.begin().map(|()| file));
        if opened.is_err() {
            self.fail();
        }
        opened.ok()
    }
}
