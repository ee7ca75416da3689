//! Reading samples piece by piece.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use airpace_phy::Complex32;

use super::{Error, Format, Meta};

/// What a zstd frame begins with.
const ZSTD: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
/// Bytes that are read at once.
const CHUNK: usize = 1 << 16;

/// Samples of a recording, in order.
pub struct Reader {
    meta: Meta,
    path: PathBuf,
    source: Box<dyn Read + Send>,
    /// Bytes of the file, if they are known and the samples are not compressed.
    bytes: Option<u64>,
    /// Bytes of samples left, where the file's end is not the samples' end.
    left: Option<u64>,
    is_live: bool,
    buffer: Vec<u8>,
    /// Bytes of a sample whose rest has not come.
    partial: usize,
    samples: u64,
    next_segment: usize,
}

/// What came next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// So many samples.
    Samples(usize),
    /// Samples that the receiver lost: how many, if the recording says it.
    Gap(Option<u64>),
    /// The end.
    End,
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
    /// Opens a recording: a SigMF file (either of its two), raw samples, or standard input for `-`. What is compressed
    /// by zstd is expanded. `raw` says what raw samples are, and is needed for them; for a SigMF file it wins over what
    /// its description says.
    ///
    /// # Errors
    /// If a file cannot be read, or nobody says what the samples are.
    pub fn open(path: &Path, raw: (Option<f64>, Option<Format>)) -> Result<Reader, Error> {
        let (data, meta_path) = sigmf_pair(path);
        let mut meta = match (&meta_path, raw) {
            (_, (Some(rate), Some(format))) => Meta::raw(format, rate),
            (Some(meta), _) if meta.exists() => {
                Meta::parse(meta, &std::fs::read(meta).map_err(Error::io(meta))?)?
            }
            (Some(meta), _) => return Err(Error::NoMeta { path: data, meta: meta.clone() }),
            (None, _) => return Err(Error::Undescribed { path: data }),
        };
        meta.sample_rate_hz = raw.0.unwrap_or(meta.sample_rate_hz);
        meta.format = raw.1.unwrap_or(meta.format);
        if data == Path::new("-") {
            let is_live = !is_file(&io::stdin());
            return Ok(Reader { is_live, ..Reader::new(data, meta, Box::new(io::stdin()), None)? });
        }
        let file = File::open(&data).map_err(Error::io(&data))?;
        let bytes = file.metadata().map_err(Error::io(&data))?;
        if bytes.is_dir() {
            let source = io::Error::other("is a folder; give a file of samples");
            return Err(Error::Io { path: data, source });
        }
        let bytes = bytes.is_file().then_some(bytes.len());
        Ok(Reader { is_live: bytes.is_none(), ..Reader::new(data, meta, Box::new(file), bytes)? })
    }

    /// Samples of any source; `path` is for errors.
    ///
    /// # Errors
    /// If the source cannot be read, or is shorter than the header that it should have.
    pub fn new(
        path: PathBuf,
        meta: Meta,
        mut source: Box<dyn Read + Send>,
        mut bytes: Option<u64>,
    ) -> Result<Reader, Error> {
        let mut head = vec![];
        source.by_ref().take(4).read_to_end(&mut head).map_err(Error::io(&path))?;
        let is_compressed = head == ZSTD;
        let whole = io::Cursor::new(head).chain(source);
        let mut source: Box<dyn Read + Send> = if is_compressed {
            bytes = None;
            Box::new(zstd::Decoder::new(whole).map_err(Error::io(&path))?)
        } else {
            Box::new(BufReader::with_capacity(CHUNK, whole))
        };
        let skipped = io::copy(&mut source.by_ref().take(meta.header_bytes), &mut io::sink());
        if skipped.map_err(Error::io(&path))? < meta.header_bytes {
            let what = format!("the file ends within its header of {} bytes", meta.header_bytes);
            return Err(Error::Field { path, field: "core:header_bytes".into(), what });
        }
        let left = bytes.map(|bytes| bytes.saturating_sub(meta.header_bytes + meta.trailing_bytes));
        let buffer = vec![0; CHUNK];
        let is_live = bytes.is_none();
        Ok(Reader {
            meta,
            path,
            source,
            bytes,
            left,
            is_live,
            buffer,
            partial: 0,
            samples: 0,
            next_segment: 1,
        })
    }

    /// What is known of the recording.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// How much of the file has been read, 0 to 1, if its length is known.
    pub fn progress(&self) -> Option<f64> {
        let size = self.meta.format.size() as u64;
        self.bytes.map(|bytes| (self.samples * size + self.meta.header_bytes) as f64 / bytes.max(1) as f64)
    }

    /// Whether samples come as fast as a receiver gives them, as from a pipe, and may stop for a while.
    pub fn is_live(&self) -> bool {
        self.is_live
    }

    /// Samples read so far.
    pub fn position(&self) -> u64 {
        self.samples
    }

    /// Appends the next samples. Never crosses a gap: where one lies before the next samples, it is told first, once.
    ///
    /// # Errors
    /// If the file cannot be read, or is compressed and damaged.
    pub fn read(&mut self, out: &mut Vec<Complex32>) -> Result<Piece, Error> {
        let size = self.meta.format.size();
        let mut most = CHUNK / size;
        if let Some(segment) = self.meta.segments.get(self.next_segment)
            && self.samples == segment.start
        {
            let last = self.meta.segments[self.next_segment - 1];
            self.next_segment += 1;
            let lost = segment.global_index.map(|index| {
                let expected = last.global_index.unwrap_or(last.start) + (segment.start - last.start);
                index.saturating_sub(expected)
            });
            // A new capture without a loss: the receiver was retuned, or said something.
            if lost != Some(0) {
                return Ok(Piece::Gap(lost));
            }
        }
        if let Some(segment) = self.meta.segments.get(self.next_segment) {
            most = most.min((segment.start - self.samples) as usize);
        }
        let mut want = most * size;
        if let Some(left) = self.left {
            want = want.min(usize::try_from(left).unwrap_or(usize::MAX) + self.partial);
        }
        while self.partial < size {
            if self.partial >= want {
                return Ok(Piece::End);
            }
            let got = match self.source.read(&mut self.buffer[self.partial..want]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                got => got.map_err(Error::io(&self.path))?,
            };
            if got == 0 {
                return Ok(Piece::End);
            }
            self.partial += got;
            self.left = self.left.map(|left| left - got as u64);
        }
        let whole = self.partial / size * size;
        self.meta.format.read(&self.buffer[..whole], out);
        self.buffer.copy_within(whole..self.partial, 0);
        self.partial -= whole;
        self.samples += (whole / size) as u64;
        Ok(Piece::Samples(whole / size))
    }
}

/// Whether a file lies behind what is open, and no pipe, socket or device.
fn is_file(open: &impl AsFd) -> bool {
    let file = open.as_fd().try_clone_to_owned().map(File::from);
    file.and_then(|file| file.metadata()).is_ok_and(|of_file| of_file.is_file())
}

/// The samples of a path, and where their SigMF description should be; `None` if the name is not SigMF's.
fn sigmf_pair(path: &Path) -> (PathBuf, Option<PathBuf>) {
    let text = path.to_string_lossy();
    if let Some(stem) = text.strip_suffix(".sigmf-meta") {
        let plain = PathBuf::from(format!("{stem}.sigmf-data"));
        let packed = PathBuf::from(format!("{stem}.sigmf-data.zst"));
        let data = if !plain.exists() && packed.exists() { packed } else { plain };
        return (data, Some(path.to_owned()));
    }
    let stem = text.strip_suffix(".zst").unwrap_or(&text).strip_suffix(".sigmf-data");
    (path.to_owned(), stem.map(|stem| PathBuf::from(format!("{stem}.sigmf-meta"))))
}

#[cfg(test)]
mod tests {
    use super::super::{Segment, Writer};
    use super::*;

    fn samples(count: usize) -> Vec<Complex32> {
        (0..count).map(|at| Complex32::new((at % 100) as f32 / 100.0, -((at % 7) as f32) / 7.0)).collect()
    }

    fn read_all(mut reader: Reader) -> (Vec<Complex32>, Vec<(u64, Option<u64>)>) {
        let (mut all, mut gaps) = (vec![], vec![]);
        loop {
            match reader.read(&mut all).unwrap() {
                Piece::Samples(count) => assert!(count > 0),
                Piece::Gap(lost) => gaps.push((reader.position(), lost)),
                Piece::End => return (all, gaps),
            }
        }
    }

    #[test]
    fn a_recording_is_read_as_it_was_written_plain_or_compressed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cell");
        let mut writer = Writer::create(&path, Meta::raw(Format::Cf32, 1.92e6)).unwrap();
        let written = samples(20_000);
        written.chunks(777).for_each(|chunk| writer.write(chunk).unwrap());
        let (meta, cut) = writer.finish().unwrap();
        assert_eq!(cut, 0);
        assert_eq!(read_all(Reader::open(&meta, (None, None)).unwrap()).0, written);
        let data = folder.path().join("cell.sigmf-data");
        assert_eq!(read_all(Reader::open(&data, (None, None)).unwrap()).0, written);

        let packed = zstd::encode_all(&std::fs::read(&data).unwrap()[..], 1).unwrap();
        std::fs::write(folder.path().join("cell.sigmf-data.zst"), packed).unwrap();
        std::fs::remove_file(&data).unwrap();
        assert_eq!(read_all(Reader::open(&meta, (None, None)).unwrap()).0, written);
    }

    #[test]
    fn lost_samples_are_told_where_they_are_missing() {
        let mut meta = Meta::raw(Format::Ci8, 1e6);
        let at = |start, global_index| Segment { start, global_index, frequency_hz: None };
        meta.segments = vec![at(0, Some(50)), at(100, Some(150)), at(200, Some(1250)), at(300, None)];
        let mut bytes = vec![];
        Format::Ci8.write(&samples(400), &mut bytes);
        let reader = Reader::new("a".into(), meta, Box::new(io::Cursor::new(bytes)), None).unwrap();
        let (all, gaps) = read_all(reader);
        assert_eq!(all.len(), 400);
        assert_eq!(gaps, [(200, Some(1000)), (300, None)]);
    }

    #[test]
    fn header_trailer_and_half_a_sample_are_no_samples() {
        let mut meta = Meta::raw(Format::Ci16, 1e6);
        (meta.header_bytes, meta.trailing_bytes) = (5, 3);
        let mut bytes = vec![9; 5];
        Format::Ci16.write(&samples(10), &mut bytes);
        bytes.extend([1, 2, 3]);
        let length = bytes.len() as u64;
        let source = Box::new(io::Cursor::new(bytes.clone()));
        let reader = Reader::new("a".into(), meta.clone(), source, Some(length)).unwrap();
        assert_eq!(read_all(reader).0.len(), 10);
        meta.trailing_bytes = 0;
        let source = Box::new(io::Cursor::new(bytes));
        assert_eq!(read_all(Reader::new("a".into(), meta, source, Some(length)).unwrap()).0.len(), 10);
    }

    #[test]
    fn what_nobody_describes_is_refused_with_what_to_give() {
        let folder = tempfile::tempdir().unwrap();
        let raw = folder.path().join("a.bin");
        std::fs::write(&raw, [0; 16]).unwrap();
        let refused = |path: &Path| Reader::open(path, (None, None)).unwrap_err().to_string();
        assert!(refused(&raw).contains("--rate"));
        assert!(refused(&folder.path().join("b.sigmf-data")).contains("b.sigmf-meta"));
        assert_eq!(read_all(Reader::open(&raw, (Some(1e6), Some(Format::Ci8))).unwrap()).0.len(), 8);
        let folder_error = Reader::open(folder.path(), (Some(1e6), Some(Format::Ci8))).unwrap_err();
        assert!(folder_error.to_string().contains("is a folder"), "{folder_error}");
    }
}
