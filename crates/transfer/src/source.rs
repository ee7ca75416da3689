//! Sources of a sender: files, and streams of unknown length.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use airpace_core::Remedy;
use airpace_files::{HandedOut, Inside};
use ring::digest::{Context, SHA256};

use super::message::{Code, Fault, MAX_DATA, Offer};
use super::name::Name;

/// Maximum number of blocks that the thread reading a stream buffers ahead.
const AHEAD: usize = 16;

/// Maximum number of bytes of a stream that are kept until the receiver has confirmed them, so that a new connection
/// can resume. This is more than two windows of a fast connection.
const MAX_HELD: usize = 64 << 20;

/// The files of one transfer.
pub trait Sources {
    /// Number of files.
    fn files(&self) -> u64;

    /// Total number of bytes, if known.
    fn bytes(&self) -> Option<u64>;

    /// Describes a file. The description differs between connections if the file has changed.
    ///
    /// # Errors
    /// The file cannot be read.
    fn offer(&mut self, index: u64) -> Result<Offer, Fault>;

    /// Opens a file.
    ///
    /// # Errors
    /// The file cannot be read.
    fn open(&mut self, index: u64) -> Result<Box<dyn Outgoing>, Fault>;
}

/// Result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Got {
    /// This many bytes, at least one.
    Bytes(usize),
    /// No bytes are available yet; retry after a few milliseconds.
    Nothing,
    /// The end of the file or stream.
    End,
}

/// A file or stream that is being sent.
pub trait Outgoing {
    /// Offset of the first byte that can still be read, and the hash of the bytes before it.
    fn start(&self) -> (u64, Context);

    /// Reads bytes from offset `at`.
    ///
    /// # Errors
    /// The bytes cannot be read.
    fn read(&mut self, at: u64, into: &mut [u8]) -> io::Result<Got>;

    /// Releases the bytes before this offset: the receiver has accepted them.
    fn forget(&mut self, _before: u64) {}

    /// Checks, after reading, that the file still is the offered one.
    ///
    /// # Errors
    /// The file has changed.
    fn check(&self) -> Result<(), Fault>;
}

/// Files named by the user, and possibly standard input.
pub struct Files {
    items: Vec<Item>,
}

enum Item {
    Path { path: PathBuf, name: Name },
    Stream { name: Name, stream: Arc<Mutex<Stream>> },
}

impl Files {
    /// Creates an empty list.
    pub fn new() -> Files {
        Files { items: Vec::new() }
    }

    /// Adds a file under its own name.
    ///
    /// # Errors
    /// The file does not exist or cannot be read, or receivers refuse its name.
    pub fn add(&mut self, path: PathBuf) -> Result<(), Fault> {
        // The paths without a last name are `.`, `..` and `/`, which are folders.
        let name = path.file_name().ok_or_else(|| is_folder(&path))?;
        let text = name.to_str().map(str::to_owned).ok_or_else(|| {
            let remedy = Remedy::new("send it alone and give it a name with").value("name", "NAME");
            let sentence = format!("`{}` cannot be sent: its name is not UTF-8", path.display());
            Fault::new(Code::Source, sentence).but(remedy)
        })?;
        self.add_as(path, &text)
    }

    /// Adds a file under the given name.
    ///
    /// # Errors
    /// The file does not exist or cannot be read, or receivers refuse the name.
    pub fn add_as(&mut self, path: PathBuf, text: &str) -> Result<(), Fault> {
        let source =
            |why: String| Fault::new(Code::Source, format!("`{}` cannot be sent: {why}", path.display()));
        let name = Name::parse(text).map_err(|error| source(error.to_string()))?;
        if self.items.iter().any(|item| item.name() == &name) {
            return Err(source(
                "another file of this transfer has the same name; send them one after the other".to_owned(),
            ));
        }
        match path.metadata() {
            Ok(about) if about.is_dir() => return Err(is_folder(&path)),
            _ => stat(&path).map_err(|error| source(error.to_string()))?,
        };
        // A missing read permission must be reported before the connection is opened.
        File::open(&path)
            .map_err(|error| source(format!("it cannot be read: {error}; give yourself the right to")))?;
        self.items.push(Item::Path { path, name });
        Ok(())
    }

    /// Adds a stream under a name. A separate thread reads the stream, so that reads do not block the transfer.
    ///
    /// # Errors
    /// Receivers refuse the name, or the thread cannot be created.
    pub fn add_stream(&mut self, name: &str, stream: impl Read + Send + 'static) -> Result<(), Fault> {
        let name =
            Name::parse(name).map_err(|error| Fault::new(Code::Source, format!("`{name}`: {error}")))?;
        let stream = Stream::new(stream)
            .map_err(|error| Fault::new(Code::Source, format!("no thread to read the stream: {error}")))?;
        self.items.push(Item::Stream { name, stream: Arc::new(Mutex::new(stream)) });
        Ok(())
    }

    fn item(&self, index: u64) -> Result<&Item, Fault> {
        let item = usize::try_from(index).ok().and_then(|index| self.items.get(index));
        item.ok_or_else(|| Fault::protocol(format_args!("it requested file {index}, which was not offered")))
    }
}

impl Default for Files {
    fn default() -> Files {
        Files::new()
    }
}

impl Item {
    fn name(&self) -> &Name {
        match self {
            Item::Path { name, .. } | Item::Stream { name, .. } => name,
        }
    }
}

/// The error for a folder.
fn is_folder(path: &Path) -> Fault {
    let remedy = Remedy::new("pack it with `tar c FOLDER`, and send the output as a stream (`-`) with")
        .value("name", "FOLDER.tar");
    Fault::new(Code::Source, format!("`{}` cannot be sent: it is a folder", path.display())).but(remedy)
}

/// Metadata of a regular file. Symbolic links are followed, because the user named the path.
fn stat(path: &Path) -> io::Result<std::fs::Metadata> {
    let about = path.metadata()?;
    match about.is_file() {
        true => Ok(about),
        false if about.is_dir() => Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder")),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file; send a pipe as `-`")),
    }
}

impl Sources for Files {
    fn files(&self) -> u64 {
        self.items.len() as u64
    }

    fn bytes(&self) -> Option<u64> {
        let bytes = |item: &Item| match item {
            Item::Path { path, .. } => Some(stat(path).ok()?.len()),
            Item::Stream { .. } => None,
        };
        self.items.iter().map(bytes).sum()
    }

    fn offer(&mut self, index: u64) -> Result<Offer, Fault> {
        match self.item(index)? {
            Item::Path { path, name } => {
                let about = stat(path).map_err(|error| unreadable(name, &error))?;
                Ok(offer(index, name, &about))
            }
            Item::Stream { name, .. } => {
                Ok(Offer { index, name: name.to_string(), bytes: None, modified: None, program: false })
            }
        }
    }

    fn open(&mut self, index: u64) -> Result<Box<dyn Outgoing>, Fault> {
        match self.item(index)? {
            Item::Path { path, name } => {
                // Only a regular file is opened: opening a pipe under this name would block the program.
                let real = path.canonicalize().map_err(|error| unreadable(name, &error))?;
                Ok(Box::new(Open::new(airpace_files::open(&real).map(Opened::Own), name)?))
            }
            Item::Stream { stream, .. } => Ok(Box::new(Held { stream: Arc::clone(stream) })),
        }
    }
}

/// Files of the served folder that the client requested.
pub struct Served {
    folder: Arc<Inside>,
    names: Vec<Name>,
    bytes: u64,
}

impl Served {
    /// Finds the requested files.
    ///
    /// # Errors
    /// A file does not exist or must not be handed out.
    pub fn find(folder: Arc<Inside>, names: &[String]) -> Result<Served, Fault> {
        let mut found = Served { folder, names: Vec::new(), bytes: 0 };
        for text in names {
            let refuse = |why: &str| Fault::new(Code::Refused, format!("`{text}` is not handed out: {why}"));
            let name = Name::parse(text).map_err(|error| refuse(&error.to_string()))?;
            match found.folder.look(name.as_str()) {
                Ok(airpace_files::Lies::File { bytes, .. }) => {
                    found.folder.hand_out(name.as_str()).map_err(|error| refuse(&error.to_string()))?;
                    found.bytes = found.bytes.saturating_add(bytes)
                }
                Ok(airpace_files::Lies::Nothing) => {
                    return Err(refuse("there is no such file in the folder"));
                }
                Ok(airpace_files::Lies::Other) => return Err(refuse("it is no plain file")),
                Err(error) => return Err(refuse(&error.to_string())),
            }
            found.names.push(name);
        }
        Ok(found)
    }

    fn name(&self, index: u64) -> Result<&Name, Fault> {
        let name = usize::try_from(index).ok().and_then(|index| self.names.get(index));
        name.ok_or_else(|| Fault::protocol(format_args!("it requested file {index}, which was not offered")))
    }
}

impl Sources for Served {
    fn files(&self) -> u64 {
        self.names.len() as u64
    }

    fn bytes(&self) -> Option<u64> {
        Some(self.bytes)
    }

    fn offer(&mut self, index: u64) -> Result<Offer, Fault> {
        let name = self.name(index)?;
        let about = self.folder.hand_out(name.as_str()).and_then(|file| file.metadata());
        Ok(offer(index, name, &about.map_err(|error| unreadable(name, &error))?))
    }

    fn open(&mut self, index: u64) -> Result<Box<dyn Outgoing>, Fault> {
        let name = self.name(index)?;
        Ok(Box::new(Open::new(self.folder.hand_out(name.as_str()).map(Opened::Asked), name)?))
    }
}

fn offer(index: u64, name: &Name, about: &std::fs::Metadata) -> Offer {
    let program = about.mode() & 0o100 != 0;
    Offer {
        index,
        name: name.to_string(),
        bytes: Some(about.len()),
        modified: Some(modified(about)),
        program,
    }
}

fn modified(about: &std::fs::Metadata) -> i64 {
    about.mtime().saturating_mul(1_000_000_000).saturating_add(about.mtime_nsec())
}

fn unreadable(name: &Name, error: &io::Error) -> Fault {
    Fault::new(Code::Source, format!("`{name}` cannot be read: {error}"))
}

/// An open regular file.
struct Open {
    name: Name,
    file: Opened,
    bytes: u64,
    modified: i64,
}

enum Opened {
    /// A file that the user named.
    Own(File),
    /// A file that the client requested.
    Asked(HandedOut),
}

impl Opened {
    fn metadata(&self) -> io::Result<std::fs::Metadata> {
        match self {
            Opened::Own(file) => file.metadata(),
            Opened::Asked(file) => file.metadata(),
        }
    }
}

impl Open {
    fn new(file: io::Result<Opened>, name: &Name) -> Result<Open, Fault> {
        let opened = file.and_then(|file| file.metadata().map(|about| (file, about)));
        let (file, about) = opened.map_err(|error| unreadable(name, &error))?;
        Ok(Open { name: name.clone(), file, bytes: about.len(), modified: modified(&about) })
    }
}

impl Outgoing for Open {
    fn start(&self) -> (u64, Context) {
        (0, Context::new(&SHA256))
    }

    fn read(&mut self, at: u64, into: &mut [u8]) -> io::Result<Got> {
        let count = match &mut self.file {
            Opened::Own(file) => file.read_at(into, at)?,
            Opened::Asked(file) => file.read_at(into, at)?,
        };
        Ok(match count {
            0 => Got::End,
            count => Got::Bytes(count),
        })
    }

    fn check(&self) -> Result<(), Fault> {
        let about = self.file.metadata().map_err(|error| unreadable(&self.name, &error))?;
        match about.len() == self.bytes && modified(&about) == self.modified {
            true => Ok(()),
            false => {
                let sentence = format!(
                    "`{}` changed while it was sent; send it again when nothing writes to it",
                    self.name
                );
                Err(Fault::new(Code::Source, sentence))
            }
        }
    }
}

/// A stream that a thread reads, and its bytes that the receiver has not confirmed yet.
struct Stream {
    pieces: Receiver<io::Result<Vec<u8>>>,
    /// Offset of the first stored byte.
    start: u64,
    /// Hash of all bytes before `start`.
    before: Context,
    held: std::collections::VecDeque<u8>,
    /// `Some(None)`: end of the stream; `Some(Some(kind))`: the reader failed; `None`: still open.
    over: Option<Option<io::ErrorKind>>,
}

impl Stream {
    fn new(mut stream: impl Read + Send + 'static) -> io::Result<Stream> {
        let (give, pieces) = sync_channel(AHEAD);
        // The thread ends with the stream; if it is blocked in a read, it ends with the process.
        let read = move || {
            loop {
                let mut piece = vec![0; MAX_DATA];
                let read = match stream.read(&mut piece) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    other => other,
                };
                let is_last = !matches!(read, Ok(1..));
                let piece = read.map(|count| {
                    piece.truncate(count);
                    piece
                });
                if give.send(piece).is_err() || is_last {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("read".to_owned()).spawn(read)?;
        let before = Context::new(&SHA256);
        Ok(Stream { pieces, start: 0, before, held: std::collections::VecDeque::new(), over: None })
    }

    fn read(&mut self, at: u64, into: &mut [u8]) -> io::Result<Got> {
        let Some(skip) = at.checked_sub(self.start) else {
            return Err(io::Error::new(io::ErrorKind::NotSeekable, "the beginning of the stream is gone"));
        };
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        if skip >= self.held.len() {
            if self.held.len() >= MAX_HELD {
                return Ok(Got::Nothing);
            }
            match (self.over, self.pieces.try_recv()) {
                (Some(None), _) => return Ok(Got::End),
                (Some(Some(kind)), _) => return Err(kind.into()),
                (None, Ok(Ok(piece))) if piece.is_empty() => self.over = Some(None),
                (None, Ok(Ok(piece))) => self.held.extend(piece),
                (None, Ok(Err(error))) => self.over = Some(Some(error.kind())),
                (None, Err(TryRecvError::Empty)) => return Ok(Got::Nothing),
                (None, Err(TryRecvError::Disconnected)) => {
                    return Err(io::Error::other("the thread that reads it is gone"));
                }
            }
            return if self.over.is_some() || skip < self.held.len() {
                self.read(at, into)
            } else {
                Ok(Got::Nothing)
            };
        }
        let count = into.len().min(self.held.len() - skip);
        for (byte, held) in into.iter_mut().zip(self.held.range(skip..skip + count)) {
            *byte = *held;
        }
        Ok(Got::Bytes(count))
    }

    fn forget(&mut self, before: u64) {
        let count =
            usize::try_from(before.saturating_sub(self.start)).unwrap_or(usize::MAX).min(self.held.len());
        let (first, second) = self.held.as_slices();
        self.before.update(&first[..count.min(first.len())]);
        self.before.update(&second[..count.saturating_sub(first.len())]);
        self.held.drain(..count);
        self.start += count as u64;
    }
}

struct Held {
    stream: Arc<Mutex<Stream>>,
}

impl Held {
    fn stream(&self) -> std::sync::MutexGuard<'_, Stream> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outgoing for Held {
    fn start(&self) -> (u64, Context) {
        let stream = self.stream();
        (stream.start, stream.before.clone())
    }

    fn read(&mut self, at: u64, into: &mut [u8]) -> io::Result<Got> {
        self.stream().read(at, into)
    }

    fn forget(&mut self, before: u64) {
        self.stream().forget(before);
    }

    fn check(&self) -> Result<(), Fault> {
        Ok(())
    }
}
