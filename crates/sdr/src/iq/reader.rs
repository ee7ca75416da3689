//! Reading of samples, piece by piece.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use airpace_core::Remedy;
use airpace_phy::Complex32;

use super::bytes::{Bytes, CHUNK};
use super::doubt::{Doubt, Look};
use super::locate::{Located, locate};
use super::{Error, Format, Meta};

/// Maximum number of trailing bytes that are held back if the length of the source is unknown.
const MAX_HELD: u64 = 1 << 24;

/// The samples of a recording, in order.
pub struct Reader {
    meta: Meta,
    path: PathBuf,
    ahead: Ahead,
    samples: u64,
    /// Flaws that are not reported yet.
    flaws: VecDeque<Flaw>,
    /// Whether a sample was not a finite number.
    has_strange: bool,
    /// Statistics of the values, until the samples are judged.
    look: Option<Box<Look>>,
    next_segment: usize,
    /// Number of the segment header's bytes that are not read yet.
    header_left: u64,
    is_over: bool,
}

/// The next piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Number of samples of each antenna that were appended.
    Samples(usize),
    /// A gap: the receiver lost samples. The number of lost samples is given if the recording contains it.
    Gap(Option<u64>),
    /// A flaw in the samples. Complete samples are still read. Each flaw is reported once.
    Flaw(Flaw),
    /// The end of the samples.
    End,
}

/// A flaw in samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// Some samples are not finite numbers, and are read as zero.
    #[error(
        "among the {count} samples from {first} on are some that are no finite numbers: these count as zero"
    )]
    Strange {
        /// Number of the first sample of the piece that contains a number that is not finite.
        first: u64,
        /// Number of samples in this piece.
        count: u64,
    },
    /// The samples do not match their format.
    #[error("it is read as {said}, but {doubt}")]
    Format {
        /// The format in which the samples are read.
        said: Format,
        /// The mismatch.
        doubt: Doubt,
    },
    /// One of several antennas lost an unknown number of samples.
    #[error(
        "antenna {which} lost samples after {at}, and its description does not contain the number: the \
         antenna is left out from there on"
    )]
    Antenna {
        /// Number of the joined recording, from 0.
        which: usize,
        /// Number of samples before the loss, by position.
        at: u64,
    },
    /// The samples end within a compressed frame.
    #[error("the compressed data end unfinished after {bytes} bytes; {samples} samples were whole")]
    Frame {
        /// Number of bytes of the file.
        bytes: u64,
        /// Number of samples that were read.
        samples: u64,
    },
    /// The samples end within a sample.
    #[error("sample {sample} has only {bytes} of its {size} bytes, and is left out")]
    Sample {
        /// Number of this sample.
        sample: u64,
        /// Number of bytes of this sample that exist.
        bytes: usize,
        /// Number of bytes of a complete sample.
        size: usize,
    },
    /// The samples end before a capture of the description.
    #[error("the samples end at {sample}, though captures[{capture}] begins at sample {start}")]
    Capture {
        /// Number of samples that exist.
        sample: u64,
        /// The first missing capture.
        capture: usize,
        /// Start of this capture.
        start: u64,
    },
}

impl Flaw {
    /// The remedy for the user.
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Flaw::Format { doubt, .. } => Some(doubt.remedy()),
            _ => None,
        }
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("path", &self.path)
            .field("samples", &self.samples)
            .finish_non_exhaustive()
    }
}

impl Reader {
    /// Opens a recording. `path` is either file of a SigMF recording, the common start of their names, its archive, a
    /// file of raw samples, or `-` for standard input. Data compressed by zstd are decompressed. `raw` describes raw
    /// samples, for which it is required; for a SigMF file, `raw` overrides the description. No samples are read yet,
    /// and pipes are not opened, so that a pipe without a writer does not block.
    ///
    /// # Errors
    /// A file cannot be opened, or the format or the rate of the samples is unknown.
    pub fn open(path: &Path, raw: (Option<f64>, Option<Format>)) -> Result<Reader, Error> {
        let Located { path, meta, bytes } = locate(path, raw)?;
        Ok(Reader::of(path, meta, bytes))
    }

    /// Creates a reader of samples from any source, which has `length` bytes if the length is known. `path` is the name
    /// in error messages.
    pub fn new(path: PathBuf, meta: Meta, source: Box<dyn Read + Send>, length: Option<u64>) -> Reader {
        Reader::of(path, meta, Bytes::new(length, false, || Ok(source)))
    }

    fn of(path: PathBuf, meta: Meta, source: Bytes) -> Reader {
        let look = Some(Box::new(Look::new(meta.format, meta.format.size() * meta.antennas)));
        let header_left = meta.segments.first().map_or(0, |segment| segment.header_bytes);
        let ahead = Ahead { source, left: None, held: None, buffer: vec![], start: 0, end: 0, is_cut: false };
        Reader {
            meta,
            path,
            ahead,
            samples: 0,
            flaws: VecDeque::new(),
            has_strange: false,
            look,
            next_segment: 1,
            header_left,
            is_over: false,
        }
    }

    /// Returns the description of the recording.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Returns the share of the file that has been read, 0 to 1, if its length is known. For compressed samples, this
    /// counts compressed bytes.
    pub fn progress(&self) -> Option<f64> {
        self.ahead.source.progress()
    }

    /// Returns whether samples arrive at the receiver's pace, for example from a pipe, and may be interrupted for a
    /// while.
    pub fn is_live(&self) -> bool {
        self.ahead.source.is_live()
    }

    /// Returns the number of samples read so far.
    pub fn position(&self) -> u64 {
        self.samples
    }

    /// Returns the number of bytes of one instant of all antennas.
    fn size(&self) -> usize {
        self.meta.format.size() * self.meta.antennas
    }

    /// Appends the next samples, interleaved: one of each antenna per instant. Never crosses a gap: a gap before the next
    /// samples is reported first, once.
    ///
    /// # Errors
    /// The file cannot be opened or read, is shorter than its header, or is compressed and damaged.
    pub fn read(&mut self, out: &mut Vec<Complex32>) -> Result<Piece, Error> {
        if let Some(flaw) = self.flaws.pop_front() {
            return Ok(Piece::Flaw(flaw));
        }
        if self.is_over {
            return Ok(Piece::End);
        }
        self.ahead.begin(&self.path, self.meta.trailing_bytes)?;
        if let Some(lost) = self.enter_segment() {
            return Ok(Piece::Gap(lost));
        }
        let size = self.size();
        let of_segment = match self.meta.segments.get(self.next_segment) {
            Some(next) => usize::try_from(next.start - self.samples).unwrap_or(usize::MAX),
            None => usize::MAX,
        };
        let most = of_segment.min((CHUNK / size).max(1));
        while self.header_left > 0 {
            let available =
                self.ahead.available().min(usize::try_from(self.header_left).unwrap_or(usize::MAX));
            self.ahead.start += available;
            self.header_left -= available as u64;
            if self.header_left > 0 && !self.more(CHUNK)? {
                return self.end_in_header();
            }
        }
        while self.ahead.available() < size {
            if !self.more(most * size)? {
                return Ok(self.end());
            }
        }
        let count = (self.ahead.available() / size).min(most);
        let bytes = self.ahead.take(count * size);
        let strange = self.meta.format.read(bytes, out);
        if let Some(look) = &mut self.look {
            look.take(bytes);
            if look.is_over() {
                self.judge();
            }
        }
        if strange > 0 && !std::mem::replace(&mut self.has_strange, true) {
            self.flaws.push_back(Flaw::Strange { first: self.samples, count: count as u64 });
        }
        self.samples += count as u64;
        Ok(Piece::Samples(count))
    }

    /// Enters a segment at its first sample. Returns the number of samples that were lost before it, if any were lost.
    fn enter_segment(&mut self) -> Option<Option<u64>> {
        let segment = *self.meta.segments.get(self.next_segment)?;
        if self.samples != segment.start {
            return None;
        }
        let last = self.meta.segments[self.next_segment - 1];
        self.next_segment += 1;
        self.header_left = segment.header_bytes;
        let Some(index) = segment.global_index else { return Some(None) };
        let expected = last.global_index.unwrap_or(last.start) + (segment.start - last.start);
        // A new capture without a loss means that the receiver was retuned, or added an annotation. If the count
        // decreases, the receiver restarted its count.
        (index != expected).then_some(index.checked_sub(expected))
    }

    /// Judges the samples from the collected statistics.
    fn judge(&mut self) {
        let doubt = self.look.take().and_then(|look| look.judge());
        self.flaws.extend(doubt.map(|doubt| Flaw::Format { said: self.meta.format, doubt }));
    }

    fn more(&mut self, most: usize) -> Result<bool, Error> {
        self.ahead.more(most).map_err(Error::io(&self.path))
    }

    fn end_in_header(&mut self) -> Result<Piece, Error> {
        if self.samples > 0 || self.ahead.is_cut {
            return Ok(self.end());
        }
        let header = self.meta.segments.first().map_or(0, |segment| segment.header_bytes);
        let what = format!("the file ends within this header of {header} bytes");
        let field = "captures[0].core:header_bytes".to_owned();
        Err(Error::Field { path: self.path.clone(), field, what })
    }

    fn end(&mut self) -> Piece {
        if self.look.is_some() {
            self.judge();
            if let Some(flaw) = self.flaws.pop_front() {
                return Piece::Flaw(flaw);
            }
        }
        self.is_over = true;
        let (sample, bytes) = (self.samples, self.ahead.available());
        let capture = self.next_segment - usize::from(self.header_left > 0);
        if self.ahead.is_cut {
            Piece::Flaw(Flaw::Frame { bytes: self.ahead.source.taken(), samples: sample })
        } else if bytes > 0 {
            Piece::Flaw(Flaw::Sample { sample, bytes, size: self.size() })
        } else if let Some(segment) = self.meta.segments.get(capture) {
            Piece::Flaw(Flaw::Capture { sample, capture, start: segment.start })
        } else {
            Piece::End
        }
    }
}

/// Bytes that were read ahead: samples and headers, without trailing bytes.
struct Ahead {
    source: Bytes,
    /// Number of bytes that remain to be read, if known.
    left: Option<u64>,
    /// Number of bytes that are held back because they may be trailing bytes; `None` before the first read.
    held: Option<usize>,
    buffer: Vec<u8>,
    /// Number of bytes at the start of the buffer that were already used.
    start: usize,
    end: usize,
    /// Whether the source ended before the end of its data.
    is_cut: bool,
}

impl Ahead {
    /// Opens the source; `trailing` bytes at its end are not samples.
    fn begin(&mut self, path: &Path, trailing: u64) -> Result<(), Error> {
        if self.held.is_some() {
            return Ok(());
        }
        let length = self.source.length().map_err(Error::io(path))?;
        self.left = length.map(|length| length.saturating_sub(trailing));
        let held = if length.is_some() { 0 } else { trailing };
        if held > MAX_HELD {
            let what = format!("{trailing} bytes are more than can be told from samples in a pipe");
            let field = "core:trailing_bytes".to_owned();
            return Err(Error::Field { path: path.to_owned(), field, what });
        }
        self.held = Some(held as usize);
        self.buffer = vec![0; CHUNK + held as usize];
        Ok(())
    }

    /// Returns the number of bytes that can be taken now.
    fn available(&self) -> usize {
        (self.end - self.start).saturating_sub(self.held.unwrap_or(0))
    }

    fn take(&mut self, count: usize) -> &[u8] {
        let first = self.start;
        self.start += count;
        &self.buffer[first..self.start]
    }

    /// Reads more bytes, until up to `most` are available. Returns `false` at the end.
    fn more(&mut self, most: usize) -> io::Result<bool> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let most = self.buffer.len().min(most.saturating_add(self.held.unwrap_or(0)));
        let room = most.saturating_sub(self.end);
        let room = room.min(usize::try_from(self.left.unwrap_or(u64::MAX)).unwrap_or(usize::MAX));
        if room == 0 || self.is_cut {
            return Ok(false);
        }
        let got = loop {
            match self.source.read(&mut self.buffer[self.end..self.end + room]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if self.source.is_packed() => {
                    if error.kind() == io::ErrorKind::UnexpectedEof {
                        self.is_cut = true;
                        break 0;
                    }
                    let at = self.source.taken();
                    let what = format!("compressed data are damaged, before byte {at} of the file: {error}");
                    return Err(io::Error::new(error.kind(), what));
                }
                got => break got?,
            }
        };
        self.end += got;
        self.left = self.left.map(|left| left - got as u64);
        Ok(got > 0)
    }
}

#[cfg(test)]
mod tests;
