//! Logs of QUIC connections, one file each, that qvis opens.
//!
//! They are in qlog 0.3 with its QUIC events, as `airpace sim` writes them: qvis reads and draws that. noq could write a
//! log, too, but in a newer draft that no viewer draws yet, and it composes each entry even if nobody wants a log, at a
//! third of a packet's processor time. Here, a connection that is not logged pays nothing: each packet of one that is
//! passes through a seal that tells of it (`quic/logged.rs`).
//!
//! | event | when |
//! | --- | --- |
//! | `connectivity:connection_started` | the connection begins |
//! | `transport:parameters_set` | it begins; the peer's have arrived |
//! | `transport:packet_sent` | a packet is sealed |
//! | `transport:packet_received` | a packet was opened (a copy of one, too), or a Retry was accepted |
//! | `recovery:packet_lost` | noq declares a packet lost |
//! | `recovery:metrics_updated` | packets with data leave, or ACKs come, and a number of the ledger has changed |
//!
//! | module | what it is |
//! | --- | --- |
//! | [`frames`] | the frames of a packet |
//! | `wire` | numbers, headers and transport parameters |
//! | `form` | what qlog 0.3 says of them |
//! | `log` | one connection's file |
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

/// Makes a log in one folder for every connection: `0001-client-5c0f….sqlog`.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    made: AtomicU64,
    failed: AtomicU64,
}

impl Folder {
    /// Logs go into the folder, which is made if there is none.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn new(path: &Path) -> io::Result<Arc<Folder>> {
        std::fs::create_dir_all(path)?;
        Ok(Arc::new(Folder { path: path.to_owned(), made: AtomicU64::new(0), failed: AtomicU64::new(0) }))
    }

    /// Connections whose file could not be made, or not be written to its end.
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    fn fail(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// The file of the next connection, which the client first called `original`.
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
