//! Writing a SigMF recording.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use airpace_phy::Complex32;

use super::{Error, Meta, Segment};

/// A SigMF recording that is being written: `STEM.sigmf-data`, and with [`finish`](Writer::finish)
/// `STEM.sigmf-meta`.
#[derive(Debug)]
pub struct Writer {
    meta: Meta,
    stem: PathBuf,
    data: PathBuf,
    out: BufWriter<File>,
    bytes: Vec<u8>,
    samples: u64,
    cut: u64,
}

impl Writer {
    /// Begins a recording. `path` may have either ending of SigMF, or none.
    ///
    /// # Errors
    /// If the file cannot be made.
    pub fn create(path: &Path, meta: Meta) -> Result<Writer, Error> {
        let text = path.to_string_lossy();
        let stem =
            text.strip_suffix(".sigmf-data").or_else(|| text.strip_suffix(".sigmf-meta")).unwrap_or(&text);
        let data = PathBuf::from(format!("{stem}.sigmf-data"));
        let out = BufWriter::new(File::create(&data).map_err(Error::io(&data))?);
        Ok(Writer { meta, stem: stem.into(), data, out, bytes: vec![], samples: 0, cut: 0 })
    }

    /// Appends samples.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&mut self, samples: &[Complex32]) -> Result<(), Error> {
        self.bytes.clear();
        self.samples += samples.len() as u64;
        self.cut += self.meta.format.write(samples, &mut self.bytes) as u64;
        self.out.write_all(&self.bytes).map_err(Error::io(&self.data))
    }

    /// Samples are missing before the next: how many, if that is known.
    pub fn gap(&mut self, lost: Option<u64>) {
        let last = *self.meta.segments.last().expect("a description has a segment");
        let expected = last.global_index.unwrap_or(last.start) + (self.samples - last.start);
        let segment = Segment { start: self.samples, global_index: lost.map(|lost| expected + lost), ..last };
        if last.start == self.samples {
            self.meta.segments.pop();
        }
        self.meta.segments.push(segment);
    }

    /// Writes the description; gives its path and how many samples exceeded full scale and were cut.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn finish(mut self) -> Result<(PathBuf, u64), Error> {
        self.out.flush().map_err(Error::io(&self.data))?;
        let path = PathBuf::from(format!("{}.sigmf-meta", self.stem.display()));
        std::fs::write(&path, self.meta.to_json()).map_err(Error::io(&path))?;
        Ok((path, self.cut))
    }
}
