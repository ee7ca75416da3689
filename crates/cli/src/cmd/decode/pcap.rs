//! `--pcap`: grants in a capture file for Wireshark.

use std::path::{Path, PathBuf};

use airpace_phy::found::Found;
use airpace_phy::pseudonym::Name;
use airpace_radio::CarrierId;
use airpace_sdr::decode::capture::{CaptureFile, Contents};

use crate::cmd::outputs;
use crate::terminal::{self, thousands};

/// The capture file. It gets its name when it is complete.
pub struct PcapFile {
    path: PathBuf,
    capture: CaptureFile,
}

impl PcapFile {
    /// Creates the file.
    ///
    /// # Errors
    /// The file cannot be created, or is standard output.
    pub fn create(path: &Path) -> anyhow::Result<PcapFile> {
        if path == Path::new("-") {
            anyhow::bail!("--pcap -: a capture is not written to standard output; give the name of a file");
        }
        let capture = CaptureFile::new(outputs::whole("--pcap", path)?);
        Ok(PcapFile { path: path.to_owned(), capture: capture.map_err(outputs::refused("--pcap", path))? })
    }

    /// Adds the blocks of a message. Its subframe started `at_ms` after the first sample.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn message(
        &mut self,
        carrier: CarrierId,
        at_ms: f64,
        found: &Found,
        name: Name,
    ) -> anyhow::Result<()> {
        let written = self.capture.message(carrier, at_ms, found, name);
        written.map_err(outputs::refused("--pcap", &self.path))
    }

    /// Completes the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self) -> anyhow::Result<()> {
        let PcapFile { path, capture } = self;
        let Contents { blocks, left_out } = capture.finish().map_err(outputs::refused("--pcap", &path))?;
        let left_out = match left_out {
            0 => String::new(),
            1 => "; 1 message that grants nothing is left out".to_owned(),
            count => format!("; {} messages that grant nothing are left out", thousands(count)),
        };
        terminal::say(format_args!(
            "airpace: {}: {}, without data{left_out}",
            path.display(),
            terminal::count(blocks, "transport block")
        ));
        Ok(())
    }
}
