//! Storage of received files: a folder, or one stream.
//!
//! An incomplete file is named `NAME.airpace-part`. Its journal `NAME.airpace-part.json` identifies the source file, so
//! that only a transfer of the same file resumes it. A complete file gets its final name once its hash is verified and it
//! is on disk.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::sync::mpsc::{self, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use airpace_core::remedy::{Remedy, UserTask};
use airpace_files::{Inside, Lies, set_about};
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};

use super::message::{Code, Fault, Offer};
use super::name::Name;

/// Maximum size of a journal (bytes).
const MAX_JOURNAL: u64 = 4096;

/// Maximum number of blocks that wait for the reader of a stream.
const WAITING: usize = 16;

/// Storage for received files.
pub trait Store {
    /// Checks the stored part of an offered file. Returns `None` while the file is being renamed to its final name; the
    /// caller must then check again.
    ///
    /// # Errors
    /// The file is refused.
    fn look(&self, transfer: &str, offer: &Offer, name: &Name) -> Result<Option<There>, Fault>;

    /// Starts or resumes a file at this offset.
    ///
    /// # Errors
    /// The file cannot be written.
    fn open(
        &self,
        transfer: &str,
        offer: &Offer,
        name: &Name,
        offset: u64,
    ) -> Result<Box<dyn Incoming>, Fault>;
}

/// Stored part of a file.
pub struct There {
    /// Number of stored bytes.
    pub bytes: u64,
    /// Source of the hash of these bytes.
    pub prefix: Prefix,
    /// Whether the stored part is a complete file with the offered length.
    pub whole: bool,
    /// Whether a complete file may be replaced.
    pub replaceable: bool,
}

/// Source of the hash of the stored bytes.
pub enum Prefix {
    /// Hash must be computed from the start of this file.
    File(File),
    /// Hash is known already.
    Known(Box<Context>),
}

impl There {
    fn nothing() -> There {
        There {
            bytes: 0,
            prefix: Prefix::Known(Box::new(Context::new(&SHA256))),
            whole: false,
            replaceable: false,
        }
    }
}

/// A file that is being received.
pub trait Incoming: Send {
    /// Appends bytes: all of them, or none if there is no room now (`false`).
    ///
    /// # Errors
    /// The bytes cannot be written.
    fn write(&mut self, bytes: &[u8]) -> io::Result<bool>;

    /// Announces that the file is complete and that [`Incoming::finish`] follows, possibly on another thread.
    fn ends(&mut self) {}

    /// Gives the complete file its final name. Blocks until it is on disk.
    ///
    /// # Errors
    /// The file cannot be written or renamed.
    fn finish(self: Box<Self>) -> Result<(), Fault>;

    /// Deletes the received bytes, because they differ from the sent ones.
    fn discard(self: Box<Self>);
}

/// Storage in a folder.
pub struct Folder {
    inside: Arc<Inside>,
    overwrites: bool,
    ending: Ending,
}

/// Names of complete files that are being renamed. Their connection may be lost, and its successor may check the files
/// meanwhile.
type Ending = Arc<Mutex<BTreeSet<Name>>>;

/// Entry in [`Ending`], removed on drop.
struct Entry {
    ending: Ending,
    name: Name,
}

impl Entry {
    fn new(ending: &Ending, name: &Name) -> Entry {
        lock(ending).insert(name.clone());
        Entry { ending: Arc::clone(ending), name: name.clone() }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        lock(&self.ending).remove(&self.name);
    }
}

/// Journal of an incomplete file: identifies the source file of its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Journal {
    bytes: Option<u64>,
    modified: Option<i64>,
    /// Identifier of the transfer; set if length or modification time is unknown and cannot identify the file.
    transfer: Option<String>,
}

impl Journal {
    fn of(transfer: &str, offer: &Offer) -> Journal {
        let is_told = offer.bytes.is_some() && offer.modified.is_some();
        let transfer = (!is_told).then(|| transfer.to_owned());
        Journal { bytes: offer.bytes, modified: offer.modified, transfer }
    }
}

/// The remedy if a file with another content has the name of a file that is sent.
pub(super) fn overwrite() -> Remedy {
    Remedy::new("rename one of them, or start").task(UserTask::Receive).text("with").parameter("overwrite")
}

impl Folder {
    /// Creates a store in this folder. `overwrites`: a complete file is replaced by another one with the same name.
    pub fn new(inside: Arc<Inside>, overwrites: bool) -> Folder {
        Folder { inside, overwrites, ending: Ending::default() }
    }

    /// Reads the journal of a file. An unreadable journal counts as missing: the file then starts from byte 0.
    fn journal(&self, name: &Name) -> Option<Journal> {
        let mut text = Vec::new();
        self.inside.read(&name.journal()).ok()?.take(MAX_JOURNAL).read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok()
    }

    fn is_there(name: &Name) -> Fault {
        let sentence = format!("`{name}` is there already, and is another file");
        Fault::new(Code::Refused, sentence).but(overwrite())
    }
}

impl Store for Folder {
    fn look(&self, transfer: &str, offer: &Offer, name: &Name) -> Result<Option<There>, Fault> {
        if lock(&self.ending).contains(name) {
            return Ok(None);
        }
        let refuse = |error: io::Error| Fault::new(Code::Refused, format!("`{name}` is refused: {error}"));
        match self.inside.look(name.as_str()).map_err(refuse)? {
            Lies::Nothing => {}
            Lies::Other => {
                return Err(Fault::new(
                    Code::Refused,
                    format!("`{name}` is refused: no plain file lies there"),
                ));
            }
            Lies::File { bytes, .. } if offer.bytes == Some(bytes) => {
                let prefix = Prefix::File(self.inside.read(name.as_str()).map_err(refuse)?);
                return Ok(Some(There { bytes, prefix, whole: true, replaceable: self.overwrites }));
            }
            Lies::File { .. } if self.overwrites => {}
            Lies::File { .. } => return Err(Folder::is_there(name)),
        }
        if self.journal(name) != Some(Journal::of(transfer, offer)) {
            return Ok(Some(There::nothing()));
        }
        match self.inside.look(&name.part()).map_err(refuse)? {
            Lies::File { bytes, .. } if bytes > 0 && offer.bytes.is_none_or(|whole| bytes <= whole) => {
                let prefix = Prefix::File(self.inside.read(&name.part()).map_err(refuse)?);
                Ok(Some(There { bytes, prefix, whole: false, replaceable: false }))
            }
            _ => Ok(Some(There::nothing())),
        }
    }

    fn open(
        &self,
        transfer: &str,
        offer: &Offer,
        name: &Name,
        offset: u64,
    ) -> Result<Box<dyn Incoming>, Fault> {
        let fault = |error: io::Error| unwritable(name, &error);
        let mut file = self.inside.change(&name.part()).map_err(fault)?;
        let journal = Journal::of(transfer, offer);
        if offset > 0
            && (self.journal(name).as_ref() != Some(&journal)
                || file.metadata().map_err(fault)?.len() < offset)
        {
            return Err(Fault::new(
                Code::Busy,
                format!("another transfer has written `{name}` in the meantime"),
            ));
        }
        file.set_len(offset).map_err(fault)?;
        file.seek(SeekFrom::Start(offset)).map_err(fault)?;
        if offset == 0 {
            let mut out = self.inside.change(&name.journal()).map_err(fault)?;
            out.set_len(0).map_err(fault)?;
            let text = serde_json::to_vec(&journal).map_err(|error| fault(error.into()))?;
            out.write_all(&text).map_err(fault)?;
        }
        Ok(Box::new(Part {
            inside: Arc::clone(&self.inside),
            name: name.clone(),
            file,
            modified: offer.modified,
            program: offer.program,
            overwrites: self.overwrites,
            ending: Arc::clone(&self.ending),
            entry: None,
        }))
    }
}

/// Error about a file that cannot be written, with the remedy.
pub fn unwritable(name: &Name, error: &io::Error) -> Fault {
    match error.kind() {
        ErrorKind::WouldBlock => Fault::new(Code::Busy, format!("another transfer is writing `{name}`")),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            let remedy = "make room there, and send it again: it goes on where it stopped";
            Fault::new(Code::Store, format!("`{name}` does not fit on the receiver's disk; {remedy}"))
        }
        _ => Fault::new(Code::Store, format!("`{name}` cannot be written by the receiver: {error}")),
    }
}

/// An incomplete file.
struct Part {
    inside: Arc<Inside>,
    name: Name,
    file: File,
    modified: Option<i64>,
    program: bool,
    overwrites: bool,
    ending: Ending,
    entry: Option<Entry>,
}

impl Incoming for Part {
    fn write(&mut self, bytes: &[u8]) -> io::Result<bool> {
        self.file.write_all(bytes).map(|()| true)
    }

    fn ends(&mut self) {
        self.entry = Some(Entry::new(&self.ending, &self.name));
    }

    fn finish(self: Box<Self>) -> Result<(), Fault> {
        let finish = || {
            set_about(&self.file, self.modified.map(i128::from), self.program)?;
            self.file.sync_all()?;
            self.inside.rename(&self.name.part(), self.name.as_str(), self.overwrites)
        };
        match finish() {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                return Err(Folder::is_there(&self.name));
            }
            Err(error) => return Err(unwritable(&self.name, &error)),
            Ok(()) => {}
        }
        // The file is complete; a remaining journal has no effect without an incomplete file.
        let _ = self.inside.remove(&self.name.journal());
        Ok(())
    }

    fn discard(self: Box<Self>) {
        let _ = self.file.set_len(0);
        let _ = self.inside.remove(&self.name.part());
        let _ = self.inside.remove(&self.name.journal());
    }
}

/// Output stream, such as standard output. It accepts one file of one transfer. A thread writes to it, so that a slow
/// reader does not block the transfer.
pub struct Stream {
    shared: Arc<Mutex<Shared>>,
    give: SyncSender<Piece>,
}

enum Piece {
    Bytes(Vec<u8>),
    /// Flush, and report over this channel whether everything before was written.
    Flush(mpsc::Sender<io::Result<()>>),
}

struct Shared {
    transfer: Option<String>,
    bytes: u64,
    context: Context,
    error: Option<ErrorKind>,
    is_done: bool,
}

impl Stream {
    /// Creates a store that writes to `out`.
    ///
    /// # Errors
    /// The thread cannot be created.
    pub fn new(mut out: impl Write + Send + 'static) -> io::Result<Stream> {
        let (give, pieces) = sync_channel::<Piece>(WAITING);
        let context = Context::new(&SHA256);
        let shared =
            Arc::new(Mutex::new(Shared { transfer: None, bytes: 0, context, error: None, is_done: false }));
        let theirs = Arc::clone(&shared);
        let write = move || {
            for piece in pieces {
                let done = match &piece {
                    Piece::Bytes(bytes) => out.write_all(bytes),
                    Piece::Flush(_) => out.flush(),
                };
                if let Err(error) = &done {
                    lock(&theirs).error = Some(error.kind());
                }
                let failed = done.is_err();
                if let Piece::Flush(done_to) = piece {
                    let _ = done_to.send(done);
                }
                if failed {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("write".to_owned()).spawn(write)?;
        Ok(Stream { shared, give })
    }
}

fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store for Stream {
    fn look(&self, transfer: &str, _: &Offer, name: &Name) -> Result<Option<There>, Fault> {
        let mut shared = lock(&self.shared);
        let is_other = shared.transfer.as_ref().is_some_and(|known| known != transfer);
        if shared.is_done || is_other {
            let why = "this receiver writes one file to its standard output, and has one";
            return Err(Fault::new(
                Code::Refused,
                format!("`{name}` is refused: {why}; send one file at a time"),
            ));
        }
        shared.transfer = Some(transfer.to_owned());
        let prefix = Prefix::Known(Box::new(shared.context.clone()));
        Ok(Some(There { bytes: shared.bytes, prefix, whole: false, replaceable: false }))
    }

    fn open(&self, _: &str, _: &Offer, name: &Name, offset: u64) -> Result<Box<dyn Incoming>, Fault> {
        if lock(&self.shared).bytes != offset {
            let why = "its beginning has been written already, and was another";
            return Err(Fault::new(Code::Store, format!("`{name}` cannot be written to a stream: {why}")));
        }
        Ok(Box::new(Pipe { shared: Arc::clone(&self.shared), give: self.give.clone(), name: name.clone() }))
    }
}

struct Pipe {
    shared: Arc<Mutex<Shared>>,
    give: SyncSender<Piece>,
    name: Name,
}

impl Incoming for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<bool> {
        let mut shared = lock(&self.shared);
        if let Some(kind) = shared.error {
            return Err(kind.into());
        }
        match self.give.try_send(Piece::Bytes(bytes.to_vec())) {
            Ok(()) => {
                shared.bytes += bytes.len() as u64;
                shared.context.update(bytes);
                Ok(true)
            }
            Err(TrySendError::Full(_)) => Ok(false),
            Err(TrySendError::Disconnected(_)) => Err(ErrorKind::BrokenPipe.into()),
        }
    }

    fn finish(self: Box<Self>) -> Result<(), Fault> {
        let (tell, told) = mpsc::channel();
        let gone = || io::Error::from(lock(&self.shared).error.unwrap_or(ErrorKind::BrokenPipe));
        let flushed = match self.give.send(Piece::Flush(tell)) {
            Ok(()) => told.recv().unwrap_or_else(|_| Err(gone())),
            Err(_) => Err(gone()),
        };
        flushed.map_err(|error| unwritable(&self.name, &error))?;
        lock(&self.shared).is_done = true;
        Ok(())
    }

    fn discard(self: Box<Self>) {}
}

/// Thread that gives complete files their final names. It waits for the disk, so that no other thread does.
pub struct Finisher {
    /// `None` if the thread could not be created: the caller's thread then does the work and waits for the disk.
    give: Option<mpsc::Sender<Job>>,
}

struct Job {
    file: Box<dyn Incoming>,
    done: mpsc::Sender<Result<(), Fault>>,
}

impl Finisher {
    /// Starts the thread. The thread ends after this value is dropped and the queued work is done.
    pub fn start() -> Finisher {
        let (give, jobs) = mpsc::channel::<Job>();
        let finish = move || {
            for Job { file, done } in jobs {
                // The receiver of the result may be gone.
                let _ = done.send(file.finish());
            }
        };
        let thread = std::thread::Builder::new().name("finish".to_owned()).spawn(finish);
        Finisher { give: thread.is_ok().then_some(give) }
    }

    /// Finishes a file. The returned channel receives the result.
    pub fn finish(&self, mut file: Box<dyn Incoming>) -> mpsc::Receiver<Result<(), Fault>> {
        file.ends();
        let (done, told) = mpsc::channel();
        match &self.give {
            // If the thread has panicked, the channel is closed, and receiving the result fails.
            Some(give) => drop(give.send(Job { file, done })),
            None => drop(done.send(file.finish())),
        }
        told
    }
}
