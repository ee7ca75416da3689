//! Reading of recordings that users name: traces, tables and logs, which are read completely.

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::OnceLock;

use airpace_core::Remedy;
use flate2::read::MultiGzDecoder;

use crate::read_at_most;

/// First bytes of a gzip file.
///
/// Source: RFC 1952 §2.3.1
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Returns the bytes of a file, of a pipe, or of standard input if the path is `-`; gzip is decompressed. At most
/// `max_bytes` are accepted, both before and after decompression. Standard input is read once and kept, so that it may be
/// requested again.
///
/// # Errors
/// A folder, a device or a terminal, which have no end; more bytes than `max_bytes`; damaged gzip; or an error of the
/// system.
pub fn read_recording(path: &Path, max_bytes: u64) -> Result<Vec<u8>> {
    let bytes = if path == Path::new("-") { standard_input(max_bytes)? } else { named(path, max_bytes)? };
    if !bytes.starts_with(&GZIP) {
        return Ok(bytes);
    }
    read_at_most(MultiGzDecoder::new(&bytes[..]), max_bytes)
        .map_err(|error| Error::new(error.kind(), format!("expanded from gzip: {error}")))
}

/// Returns the remedy for a recording that cannot be read. A name is a path and is not searched
/// elsewhere; if the folder of recordings in the environment variable `AIRPACE_DATA` contains a trace with this name, the
/// remedy names the trace's path.
pub fn recording_remedy(path: &Path, error: &Error) -> Remedy {
    if error.kind() == ErrorKind::FileTooLarge {
        return Remedy::new("give a part of it");
    }
    let data = std::env::var_os("AIRPACE_DATA").filter(|folder| !folder.is_empty());
    let there = data.zip(path.file_name()).map(|(data, name)| Path::new(&data).join("traces").join(name));
    match there.filter(|there| error.kind() == ErrorKind::NotFound && there.is_file()) {
        Some(there) => Remedy::new(format!(
            "a name is a path, and such a trace is in AIRPACE_DATA: give `{}`",
            there.display()
        )),
        None => Remedy::new("give an existing file, or - for standard input"),
    }
}

fn named(path: &Path, max_bytes: u64) -> Result<Vec<u8>> {
    let file = File::open(path)?;
    let kind = file.metadata()?.file_type();
    if !kind.is_file() && !kind.is_fifo() {
        return Err(Error::new(ErrorKind::InvalidInput, "it is neither a file nor a pipe"));
    }
    read_at_most(file, max_bytes)
}

fn standard_input(max_bytes: u64) -> Result<Vec<u8>> {
    static KEPT: OnceLock<std::result::Result<Vec<u8>, (ErrorKind, String)>> = OnceLock::new();
    let read = || read_at_most(std::io::stdin().lock(), max_bytes);
    let kept = KEPT.get_or_init(|| read().map_err(|error| (error.kind(), error.to_string())));
    kept.clone().map_err(|(kind, reason)| Error::new(kind, reason))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    #[test]
    fn gzip_is_expanded_and_bounded_as_files_are() {
        let folder = tempfile::tempdir().unwrap();
        let (plain, packed) = (folder.path().join("a.down"), folder.path().join("a.down.gz"));
        let text = "1\n".repeat(5_000);
        std::fs::write(&plain, &text).unwrap();
        let mut encoder = GzEncoder::new(File::create(&packed).unwrap(), Compression::best());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap();
        assert_eq!(read_recording(&plain, 10_000).unwrap(), text.as_bytes());
        assert_eq!(read_recording(&packed, 10_000).unwrap(), text.as_bytes());
        for path in [&plain, &packed] {
            let refused = read_recording(path, 9_999).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::FileTooLarge, "{}: {refused}", path.display());
        }
        let refused = read_recording(Path::new("/dev/zero"), 10).unwrap_err().to_string();
        assert_eq!(refused, "it is neither a file nor a pipe");
    }
}
