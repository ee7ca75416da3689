//! Input of logs: files in sequence, or pipes that are still being written.

use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use airpace_diag::source::{Item, Place, Reader};
use airpace_diag::{Format, Message};

/// Maximum number of bytes per read call. Large enough that few system calls are needed and that a pipe is emptied in
/// one call.
const PIECE: usize = 1 << 18;

/// Consumer of the items of logs.
pub trait Sink {
    /// Error of the consumer, which ends the reading.
    type Error;

    /// Processes an item of a log.
    ///
    /// # Errors
    /// The item cannot be processed.
    fn item(&mut self, place: Place, item: Item<'_>) -> Result<(), Self::Error>;

    /// Called when all bytes received so far have been processed. The next bytes may not arrive for a while.
    ///
    /// # Errors
    /// The output so far cannot be written.
    fn pause(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// An input file that was read.
#[derive(Debug)]
pub struct Source {
    /// Name of the file, as given by the user.
    pub name: String,
    /// Number of bytes after decompression.
    pub bytes: u64,
    /// Compression of the file.
    pub compression: Option<&'static str>,
    /// Log format of the file.
    pub form: Format,
    /// Whether the file contains more messages than random bytes would.
    pub has_found: bool,
    /// The error because of which the file could not be read beyond [`Source::bytes`].
    pub cut: Option<io::Error>,
}

/// Bytes of an input after decompression, and the name of its compression.
pub type Opened = (Option<&'static str>, Box<dyn Read>);

/// Reads files in sequence as one log: a message may start in one file and end in the next. `open` opens a file. If a file
/// cannot be read to its end, reading stops after this file, whose [`Source::cut`] contains the error.
///
/// # Errors
/// Those of `open` and of `sink`.
pub fn read<S: Sink>(
    paths: &[PathBuf],
    sink: &mut S,
    mut open: impl FnMut(&Path) -> Result<Opened, S::Error>,
) -> Result<Vec<Source>, S::Error> {
    let mut reader = Reader::default();
    let mut feed = Feed { sink, packets: 0, others: 0, faults: 0, failed: None };
    let mut piece = vec![0; PIECE];
    let mut sources: Vec<Source> = vec![];
    for path in paths {
        let (compression, mut input) = open(path)?;
        let mut bytes = 0;
        (feed.packets, feed.others, feed.faults) = (0, 0, 0);
        let cut = loop {
            let length = match input.read(&mut piece) {
                Ok(0) => break None,
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => break Some(error),
            };
            bytes += length as u64;
            reader.push(&piece[..length], |place, item| feed.item(place, item));
            feed.passed()?;
            feed.sink.pause()?;
        };
        let form = reader.next_file(|place, item| feed.item(place, item));
        feed.passed()?;
        let (name, has_found, is_cut) = (path.display().to_string(), feed.has_found(), cut.is_some());
        sources.push(Source { name, bytes, compression, form, has_found, cut });
        if is_cut {
            break;
        }
    }
    reader.finish(|place, item| feed.item(place, item));
    feed.passed()?;
    Ok(sources)
}

/// Passes the items of a reader to the sink, until the sink fails.
struct Feed<'s, S: Sink> {
    sink: &'s mut S,
    /// Number of log packets in the present file.
    packets: u64,
    /// Number of other messages in the present file.
    others: u64,
    /// Number of byte ranges in the present file that are not messages.
    faults: u64,
    failed: Option<S::Error>,
}

impl<S: Sink> Feed<'_, S> {
    fn item(&mut self, place: Place, item: Item<'_>) {
        match item {
            Item::Message(Message::Log(_)) => self.packets += 1,
            Item::Message(_) => self.others += 1,
            Item::Fault(_) | Item::Skipped(_) | Item::Unfinished(_) => self.faults += 1,
        }
        if self.failed.is_none() {
            self.failed = self.sink.item(place, item).err();
        }
    }

    /// Whether the file contains messages.
    ///
    /// Chosen: one in 65,536 ranges of random bytes has a valid checksum. In a file without log packets, one message
    /// per 100 faults or more counts as more than chance.
    fn has_found(&self) -> bool {
        const FAULTS_PER_MESSAGE: u64 = 100;
        self.packets > 0 || (self.others > 0 && self.faults <= FAULTS_PER_MESSAGE * self.others)
    }

    fn passed(&mut self) -> Result<(), S::Error> {
        self.failed.take().map_or(Ok(()), Err)
    }
}
