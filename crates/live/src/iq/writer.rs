//! Writing a SigMF recording.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use airpace_phy::Complex32;

use super::{Error, Meta};

/// A SigMF recording that is being written: `STEM.sigmf-data`, and with [`finish`](Writer::finish)
/// `STEM.sigmf-meta`.
#[derive(Debug)]
pub struct Writer {
    meta: Meta,
    stem: PathBuf,
    data: PathBuf,
    out: BufWriter<File>,
    bytes: Vec<u8>,
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
        Ok(Writer { meta, stem: stem.into(), data, out, bytes: vec![], cut: 0 })
    }

    /// Appends samples.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&mut self, samples: &[Complex32]) -> Result<(), Error> {
        self.bytes.clear();
        self.cut += self.meta.format.write(samples, &mut self.bytes) as u64;
        self.out.write_all(&self.bytes).map_err(Error::io(&self.data))
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
