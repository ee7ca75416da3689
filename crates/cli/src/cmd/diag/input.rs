//! Input of logs: files in sequence, compressed or not, or a pipe that is still being written.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use airpace_modem::log::input::{self, Opened};
pub use airpace_modem::log::input::{Sink, Source};
use anyhow::bail;
use indicatif::ProgressBar;

use crate::cmd::NothingFound;
use crate::explain::failed;
use crate::terminal::{self, count};

/// Fails if a file could not be read to its end.
///
/// # Errors
/// The message contains the file's name and the number of bytes read.
pub fn check_ends(sources: &[Source]) -> anyhow::Result<()> {
    match sources.iter().find_map(|source| Some((source, source.cut.as_ref()?))) {
        Some((Source { name, bytes, .. }, error)) => {
            bail!("`{name}` cannot be read beyond byte {bytes}: {error}")
        }
        None => Ok(()),
    }
}

/// Fails if a file contained no messages or could not be read to its end. Called after the output of all decoded data.
///
/// # Errors
/// [`NothingFound`] with the names of all files without messages. The errors of [`check_ends`] come first.
pub fn check(sources: &[Source]) -> anyhow::Result<()> {
    check_ends(sources)?;
    let nothing =
        sources.iter().filter(|source| !source.has_found).map(|Source { name, bytes, .. }| match bytes {
            0 => format!("`{name}` is empty"),
            _ => format!(
                "`{name}`: no diag frame found in {}: this is no log of a modem's diagnostic port (.qmdl, \
             .qmdl2, .mi2log, .dlf or the raw stream), or is shorter than a frame",
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
pub fn read(paths: &[PathBuf], sink: &mut impl Sink<Error = anyhow::Error>) -> anyhow::Result<Vec<Source>> {
    let bar = progress(paths);
    let sources = input::read(paths, sink, |path| {
        bar.set_message(path.display().to_string());
        open(path, &bar)
    })?;
    bar.finish_and_clear();
    if !sources.iter().any(|source| source.has_found) {
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
    File::open(path).map_err(|error| {
        failed(format_args!("cannot read `{name}`"), &error, "give an existing file, or - for standard input")
    })
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
fn open(path: &Path, bar: &ProgressBar) -> anyhow::Result<Opened> {
    let file: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(bar.wrap_read(opened(path)?))
    };
    Ok(airpace_modem::log::expanded(&path.display().to_string(), file)?)
}
