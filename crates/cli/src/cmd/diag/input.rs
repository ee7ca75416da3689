//! Input of logs: files in sequence, compressed or not, or a pipe that is still being written.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use airpace_diag::source::{Item, Place, Reader};
use airpace_diag::{Format, Message};
use anyhow::{Context, bail};
use indicatif::ProgressBar;

use crate::cmd::NothingFound;
use crate::terminal::{self, count};

/// Maximum number of bytes per read call. The number is so large that few system calls are needed, and that one call
/// empties a pipe.
const PIECE: usize = 1 << 18;

/// Consumer of the items of logs.
pub trait Sink {
    /// Processes an item of a log.
    fn item(&mut self, place: Place, item: Item<'_>) -> anyhow::Result<()>;

    /// Called when all bytes received so far have been processed. The next bytes may not arrive for a while.
    fn pause(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
}

/// An input file.
pub struct Source {
    /// Name of the file, as given by the user.
    pub name: String,
    /// Number of bytes after decompression.
    pub bytes: u64,
    /// Compression of the file.
    pub compression: Option<&'static str>,
    /// Log format of the file.
    pub form: Format,
    has_found: bool,
    /// Reason why the file could not be read to its end.
    cut: Option<String>,
}

impl Source {
    /// Whether the file contains more messages than random bytes would.
    pub fn has_found(&self) -> bool {
        self.has_found
    }
}

/// Fails if a file could not be read to its end.
///
/// # Errors
/// The message contains the file's name and the number of bytes read.
pub fn check_ends(sources: &[Source]) -> anyhow::Result<()> {
    sources.iter().find_map(|source| source.cut.clone()).map_or(Ok(()), |cut| bail!(cut))
}

/// Fails if a file contained no messages or could not be read to its end. Called after the output of all decoded data.
///
/// # Errors
/// [`NothingFound`] with the names of all files without messages. The errors of [`check_ends`] come first.
pub fn check(sources: &[Source]) -> anyhow::Result<()> {
    check_ends(sources)?;
    let nothing = sources.iter().filter(|source| !source.has_found).map(|Source { name, bytes, .. }| match bytes {
        0 => format!("`{name}` is empty"),
        _ => format!(
            "`{name}`: no diag frame found in {}: this is no log of a modem's diagnostic port (.qmdl, .qmdl2, \
             .mi2log, .dlf or the stream as it came), or less of one than a frame",
            count(*bytes, "byte")
        ),
    });
    let nothing: Vec<String> = nothing.collect();
    if nothing.is_empty() { Ok(()) } else { bail!(NothingFound(nothing.join("\n"))) }
}

/// Reads files in sequence as one log: a message may start in one file and end in the next. `-` is standard input.
/// [`check`] later reports files without messages. If a file cannot be read to its end, reading stops after this file,
/// and [`check_ends`] reports the error.
///
/// # Errors
/// A file cannot be opened; [`NothingFound`] if no file contains a message; the errors of `sink`.
pub fn read(paths: &[PathBuf], sink: &mut impl Sink) -> anyhow::Result<Vec<Source>> {
    let bar = progress(paths);
    let mut reader = Reader::default();
    let mut feed = Feed { sink, packets: 0, others: 0, faults: 0, failed: None };
    let mut piece = vec![0; PIECE];
    let mut sources = vec![];
    for path in paths {
        let name = path.display().to_string();
        bar.set_message(name.clone());
        let (compression, mut input) = open(path, &bar)?;
        let mut bytes = 0;
        (feed.packets, feed.others, feed.faults) = (0, 0, 0);
        let mut cut = None;
        loop {
            let length = match input.read(&mut piece) {
                Ok(0) => break,
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => {
                    cut = Some(format!("`{name}` cannot be read beyond byte {bytes}: {error}"));
                    break;
                }
            };
            bytes += length as u64;
            reader.push(&piece[..length], |place, item| feed.item(place, item));
            feed.passed()?;
            feed.sink.pause()?;
        }
        let form = reader.next_file(|place, item| feed.item(place, item));
        feed.passed()?;
        let has_found = feed.has_found();
        let is_cut = cut.is_some();
        sources.push(Source { name, bytes, compression, form, has_found, cut });
        if is_cut {
            break;
        }
    }
    reader.finish(|place, item| feed.item(place, item));
    feed.passed()?;
    bar.finish_and_clear();
    if !sources.iter().any(Source::has_found) {
        // Write no output, and keep existing files.
        check(&sources)?;
    }
    Ok(sources)
}

/// Checks that files can be opened, before any output file is created. Pipes are not opened, because opening a pipe may
/// block.
///
/// # Errors
/// Errors of [`read`] for a file that cannot be opened.
pub fn check_there(paths: &[PathBuf]) -> anyhow::Result<()> {
    let is_pipe = |path: &Path| {
        path == Path::new("-") || path.metadata().is_ok_and(|about| !about.is_file() && !about.is_dir())
    };
    paths.iter().filter(|path| !is_pipe(path)).try_for_each(|path| opened(path).map(drop))
}

fn opened(path: &Path) -> anyhow::Result<File> {
    let name = path.display();
    if path.is_dir() {
        bail!("`{name}` is a folder; give the logs in it, in order: {name}/*.qmdl");
    }
    File::open(path)
        .with_context(|| format!("cannot read `{name}`; give an existing file, or - for standard input"))
}

/// Passes the items of a reader to the sink, until the sink fails.
struct Feed<'s, S> {
    sink: &'s mut S,
    /// Number of log packets in the present file.
    packets: u64,
    /// Number of other messages in the present file.
    others: u64,
    /// Number of byte ranges in the present file that are not messages.
    faults: u64,
    failed: Option<anyhow::Error>,
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

    fn passed(&mut self) -> anyhow::Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }
}

/// Progress bar over the bytes of all files, if all sizes are known; otherwise hidden.
fn progress(paths: &[PathBuf]) -> ProgressBar {
    let size =
        |path: &PathBuf| std::fs::metadata(path).ok().filter(|file| file.is_file()).map(|file| file.len());
    match paths.iter().map(size).sum::<Option<u64>>() {
        Some(bytes) => {
            let bar = terminal::progress(false);
            bar.set_length(bytes);
            bar
        }
        None => ProgressBar::hidden(),
    }
}

/// Opens a file. Returns its compression and a reader of its decompressed bytes.
fn open(path: &Path, bar: &ProgressBar) -> anyhow::Result<(Option<&'static str>, Box<dyn Read>)> {
    let file: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(bar.wrap_read(opened(path)?))
    };
    Ok(airpace_modem::log::expanded(&path.display().to_string(), file)?)
}
