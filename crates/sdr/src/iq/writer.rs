//! Writing of a SigMF recording.

use std::io::Write;
use std::path::{Path, PathBuf};

use airpace_files::Whole;
use airpace_phy::Complex32;

use super::{Error, Meta, Segment};

/// A SigMF recording that is being written. [`finish`](Writer::finish) gives the files their names `STEM.sigmf-data`
/// and `STEM.sigmf-meta`. An incomplete recording therefore never looks like a complete one, never replaces an older
/// recording, and leaves no files behind.
#[derive(Debug)]
pub struct Writer {
    meta: Meta,
    description: PathBuf,
    data: Whole,
    bytes: Vec<u8>,
    samples: u64,
    cut: u64,
}

impl Writer {
    /// Starts a recording. `path` may have either extension of SigMF, or none.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(path: &Path, meta: Meta) -> Result<Writer, Error> {
        let [data, description] = Writer::files(path);
        let data = Whole::create(&data).map_err(Error::write(&data))?;
        Ok(Writer { meta, description, data, bytes: vec![], samples: 0, cut: 0 })
    }

    /// Returns the files of samples and of their description, for a recording with the name `path`.
    pub fn files(path: &Path) -> [PathBuf; 2] {
        let text = path.to_string_lossy();
        let stem =
            text.strip_suffix(".sigmf-data").or_else(|| text.strip_suffix(".sigmf-meta")).unwrap_or(&text);
        ["data", "meta"].map(|ending| PathBuf::from(format!("{stem}.sigmf-{ending}")))
    }

    /// Appends samples, interleaved: one of each antenna per instant.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&mut self, samples: &[Complex32]) -> Result<(), Error> {
        self.bytes.clear();
        self.samples += (samples.len() / self.meta.antennas) as u64;
        self.cut += self.meta.format.write(samples, &mut self.bytes) as u64;
        self.data.write_all(&self.bytes).map_err(Error::write(self.data.path()))
    }

    /// Notes that samples are missing before the next sample; `lost` is their number, if known.
    pub fn gap(&mut self, lost: Option<u64>) {
        let last = *self.meta.segments.last().expect("a description has a segment");
        let expected = last.global_index.unwrap_or(last.start) + (self.samples - last.start);
        let segment = Segment { start: self.samples, global_index: lost.map(|lost| expected + lost), ..last };
        if last.start == self.samples {
            self.meta.segments.pop();
        }
        self.meta.segments.push(segment);
    }

    /// Writes the description. Returns its path, and the number of samples that exceeded full scale and were clipped.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn finish(self) -> Result<(PathBuf, u64), Error> {
        let path = self.description;
        let mut meta = Whole::create(&path).map_err(Error::write(&path))?;
        meta.write_all(self.meta.to_json().as_bytes()).map_err(Error::write(&path))?;
        let data = self.data.path().to_owned();
        self.data.finish().map_err(Error::write(&data))?;
        meta.finish().map_err(Error::write(&path))?;
        Ok((path, self.cut))
    }
}
