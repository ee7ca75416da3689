//! Reads logs: files one after the other, compressed or not, or a pipe that is still being written.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use airpace_diag::source::{Item, Place, Reader};
use airpace_diag::{Format, Message};
use anyhow::{Context, bail};
use indicatif::ProgressBar;

use crate::cmd::NothingFound;
use crate::terminal::{self, thousands};

/// How many bytes are read at once, at most. So there are few system calls, and a pipe's bytes are read at once.
const PIECE: usize = 1 << 18;

/// Receives what is read from logs.
pub trait Sink {
    /// Takes an item of a log.
    fn item(&mut self, place: Place, item: Item<'_>) -> anyhow::Result<()>;

    /// Called when all bytes so far were handled. The next bytes may take a while.
    fn pause(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
}

/// A file that was read.
pub struct Source {
    /// Its name, as the user gave it.
    pub name: String,
    /// Its bytes, expanded.
    pub bytes: u64,
    /// Its compression.
    pub compression: Option<&'static str>,
    /// Its form.
    pub form: Format,
    /// Its number among those that were read, from 0 on, as [`Place`] has it.
    pub number: usize,
}

/// Reads files one after the other as one log: a message may begin in one and end in the next. `-` is standard input.
///
/// # Errors
/// If a file cannot be read; [`NothingFound`] if it holds no message, or no more of them than chance makes; and the
/// errors of `sink`.
pub fn read(paths: &[PathBuf], sink: &mut impl Sink) -> anyhow::Result<Vec<Source>> {
    let (sources, refused) = read_some(paths, sink, 1)?;
    refused.into_iter().next().map_or(Ok(sources), Err)
}

/// The same, but files that cannot be read, or that hold nothing, are left out. Their errors come second.
///
/// # Errors
/// Those of `sink`.
pub fn read_good(
    paths: &[PathBuf],
    sink: &mut impl Sink,
) -> anyhow::Result<(Vec<Source>, Vec<anyhow::Error>)> {
    read_some(paths, sink, usize::MAX)
}

/// Reads files until so many could not be read.
fn read_some(
    paths: &[PathBuf],
    sink: &mut impl Sink,
    most_refused: usize,
) -> anyhow::Result<(Vec<Source>, Vec<anyhow::Error>)> {
    let bar = progress(paths);
    let mut reader = Reader::default();
    let mut feed = Feed { sink, packets: 0, others: 0, faults: 0, failed: None };
    let mut piece = vec![0; PIECE];
    let (mut sources, mut refused, mut number) = (vec![], vec![], 0);
    for path in paths {
        if refused.len() >= most_refused {
            break;
        }
        let name = path.display().to_string();
        bar.set_message(name.clone());
        let (compression, mut input) = match open(path, &bar) {
            Ok(opened) => opened,
            Err(error) => {
                refused.push(error);
                continue;
            }
        };
        let (mut bytes, mut broken) = (0, None);
        (feed.packets, feed.others, feed.faults) = (0, 0, 0);
        loop {
            let length = match input.read(&mut piece) {
                Ok(0) => break,
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => {
                    let what = format!("`{name}` cannot be read beyond byte {bytes}");
                    broken = Some(anyhow::Error::new(error).context(what));
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
        let found = match broken {
            Some(error) => Err(error),
            None if bytes == 0 => Err(NothingFound(format!("`{name}` is empty")).into()),
            None if !feed.has_found() => Err(NothingFound(format!(
                "`{name}`: no diag frame found in {} bytes: this is no log of a modem's diagnostic port (.qmdl, \
                 .qmdl2, .mi2log, .dlf or the stream as it came), or less of one than a frame",
                thousands(bytes)
            ))
            .into()),
            None => Ok(Source { name, bytes, compression, form, number }),
        };
        number += 1;
        match found {
            Ok(source) => sources.push(source),
            Err(error) => refused.push(error),
        }
    }
    reader.finish(|place, item| feed.item(place, item));
    feed.passed()?;
    bar.finish_and_clear();
    Ok((sources, refused))
}

/// Passes on what a reader finds, until the sink fails.
struct Feed<'s, S> {
    sink: &'s mut S,
    /// Log packets of the file that is being read.
    packets: u64,
    /// Its other messages.
    others: u64,
    /// Its stretches that are no message.
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

    /// Whether the file holds messages.
    ///
    /// Chosen: one of 65,536 stretches of random bytes has a good checksum. Without any log packet, one in a hundred
    /// counts as more than chance.
    fn has_found(&self) -> bool {
        const FAULTS_PER_MESSAGE: u64 = 100;
        self.packets > 0 || (self.others > 0 && self.faults <= FAULTS_PER_MESSAGE * self.others)
    }

    fn passed(&mut self) -> anyhow::Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }
}

/// A progress bar over the bytes of all files, if the size of all is known.
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

/// A file's bytes, expanded, and its compression.
fn open(path: &Path, bar: &ProgressBar) -> anyhow::Result<(Option<&'static str>, Box<dyn Read>)> {
    let name = path.display();
    let refused = || format!("cannot read `{name}`; give an existing file, or - for standard input");
    let file: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin().lock())
    } else if path.is_dir() {
        bail!("`{name}` is a folder; give the logs in it, in order: {name}/*.qmdl");
    } else {
        Box::new(bar.wrap_read(File::open(path).with_context(refused)?))
    };
    Ok(airpace_live::log::expanded(&name.to_string(), file)?)
}
