//! Where a receiving side puts files: a folder, or one stream.
//!
//! A file that is not complete is `NAME.airpace-part`, and `NAME.airpace-part.json` beside it says of which file it is
//! a part: only the same file is resumed. A complete one gets its name when its hash is right and the disk has it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::sync::mpsc::{self, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use airpace_files::{Inside, Lies, set_about};
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};

use super::message::{Code, Fault, Offer};
use super::name::Name;

/// Bytes of a journal, at most.
const MOST_JOURNAL: u64 = 4096;

/// Pieces that wait for the reader of a stream.
const WAITING: usize = 16;

/// Where received files go.
pub trait Store {
    /// What is there of a file on offer; `None` if it is getting its name at this moment, so that one must look again.
    ///
    /// # Errors
    /// The file cannot come.
    fn look(&self, transfer: &str, offer: &Offer, name: &Name) -> Result<Option<There>, Fault>;

    /// Begins or goes on with a file, at this offset.
    ///
    /// # Errors
    /// It cannot be written.
    fn open(
        &self,
        transfer: &str,
        offer: &Offer,
        name: &Name,
        offset: u64,
    ) -> Result<Box<dyn Incoming>, Fault>;
}

/// What is there of a file.
pub struct There {
    /// So many bytes.
    pub bytes: u64,
    /// How to know their hash.
    pub prefix: Prefix,
    /// Whether it is a complete file of that length.
    pub whole: bool,
    /// Whether such a file may be replaced.
    pub replaceable: bool,
}

/// Bytes whose hash is wanted.
pub enum Prefix {
    /// They are the beginning of this file.
    File(File),
    /// It is known already.
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
    /// Takes more bytes: all of them, or none because there is no room at the moment (`false`).
    ///
    /// # Errors
    /// They cannot be written.
    fn write(&mut self, bytes: &[u8]) -> io::Result<bool>;

    /// The file is whole, and [`Incoming::finish`] is about to be called, perhaps by another thread.
    fn ends(&mut self) {}

    /// The file is whole. It gets its name. This waits for the disk.
    ///
    /// # Errors
    /// It cannot be done.
    fn finish(self: Box<Self>) -> Result<(), Fault>;

    /// The bytes are not those that were sent: they are of no use.
    fn discard(self: Box<Self>);
}

/// A folder.
pub struct Folder {
    inside: Arc<Inside>,
    overwrites: bool,
    ending: Ending,
}

/// Whole files that wait for their names. Their connection may be gone, and its successor ask what is there.
type Ending = Arc<Mutex<BTreeSet<Name>>>;

/// An entry there, as long as it lives.
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

/// Of which file the bytes of an incomplete one are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Journal {
    bytes: Option<u64>,
    modified: Option<i64>,
    /// The transfer, where length and time do not say enough.
    transfer: Option<String>,
}

impl Journal {
    fn of(transfer: &str, offer: &Offer) -> Journal {
        let is_told = offer.bytes.is_some() && offer.modified.is_some();
        let transfer = (!is_told).then(|| transfer.to_owned());
        Journal { bytes: offer.bytes, modified: offer.modified, transfer }
    }
}

impl Folder {
    /// Files go into this folder. `overwrites`: a complete file is replaced by another of its name.
    pub fn new(inside: Arc<Inside>, overwrites: bool) -> Folder {
        Folder { inside, overwrites, ending: Ending::default() }
    }

    /// What the journal of a file says. One that cannot be read is as none: the file begins anew.
    fn journal(&self, name: &Name) -> Option<Journal> {
        let mut text = Vec::new();
        self.inside.read(&name.journal()).ok()?.take(MOST_JOURNAL).read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok()
    }

    fn is_there(name: &Name) -> Fault {
        let sentence = format!(
            "`{name}` is there already, and is another file; rename one of them, or start `airpace recv` with --overwrite"
        );
        Fault::new(Code::Refused, sentence)
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

/// Says that a file cannot be written, and what to do.
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

/// A file that is not complete.
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
        // The file is there; what is left of its journal means nothing without a part.
        let _ = self.inside.remove(&self.name.journal());
        Ok(())
    }

    fn discard(self: Box<Self>) {
        let _ = self.file.set_len(0);
        let _ = self.inside.remove(&self.name.part());
        let _ = self.inside.remove(&self.name.journal());
    }
}

/// One stream, such as standard output. It takes one file of one transfer. A thread writes it, so that nobody waits for
/// its reader.
pub struct Stream {
    shared: Arc<Mutex<Shared>>,
    give: SyncSender<Piece>,
}

enum Piece {
    Bytes(Vec<u8>),
    /// Says over this channel whether all before was written.
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
    /// Writes to `out`.
    ///
    /// # Errors
    /// The machine has no thread for it.
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

/// A thread that gives complete files their names: it waits for the disk, so that nothing else does.
pub struct Finisher {
    /// `None` if the machine had no thread for it: whoever calls does the work then, and waits for it.
    give: Option<mpsc::Sender<Job>>,
}

struct Job {
    file: Box<dyn Incoming>,
    done: mpsc::Sender<Result<(), Fault>>,
}

impl Finisher {
    /// Starts the thread. It ends with this value, after the work that it has.
    pub fn start() -> Finisher {
        let (give, jobs) = mpsc::channel::<Job>();
        let finish = move || {
            for Job { file, done } in jobs {
                // Nobody may be left to be told.
                let _ = done.send(file.finish());
            }
        };
        let thread = std::thread::Builder::new().name("finish".to_owned()).spawn(finish);
        Finisher { give: thread.is_ok().then_some(give) }
    }

    /// Finishes a file. The channel says when it is done.
    pub fn finish(&self, mut file: Box<dyn Incoming>) -> mpsc::Receiver<Result<(), Fault>> {
        file.ends();
        let (done, told) = mpsc::channel();
        match &self.give {
            // If the thread has failed, the other end of `told` is gone, which is an error of its own.
            Some(give) => drop(give.send(Job { file, done })),
            None => drop(done.send(file.finish())),
        }
        told
    }
}
