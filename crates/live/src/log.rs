//! Logs of modems in files: what they were compressed with is undone.

use std::io::{Cursor, Error, ErrorKind, Read};

/// How many of a file's first bytes tell how it is compressed.
const MAGIC: u64 = 6;

/// A log's bytes, expanded, and how they were compressed. `name` is what messages call the log.
///
/// # Errors
/// What the system says, and compressions that are not undone here, with the program that does it.
pub fn expanded(
    name: &str,
    mut log: Box<dyn Read>,
) -> std::io::Result<(Option<&'static str>, Box<dyn Read>)> {
    let mut magic = vec![];
    let read = log.by_ref().take(MAGIC).read_to_end(&mut magic);
    read.map_err(|error| Error::new(error.kind(), format!("cannot read `{name}`: {error}")))?;
    let bytes = Cursor::new(magic.clone()).chain(log);
    let other = |program: &str, word: &str| {
        let reason = format!(
            "`{name}` is compressed by {program}, which is not read here; try: {word} `{name}` | airpace diag … -"
        );
        Error::new(ErrorKind::Unsupported, reason)
    };
    Ok(match magic.as_slice() {
        [0x1F, 0x8B, ..] => (Some("gzip"), Box::new(flate2::read::MultiGzDecoder::new(bytes))),
        [0x28, 0xB5, 0x2F, 0xFD, ..] => (Some("zstd"), Box::new(zstd::Decoder::new(bytes)?)),
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => return Err(other("bzip2", "bunzip2 -c")),
        [0xFD, b'7', b'z', b'X', b'Z', 0] => return Err(other("xz", "xz -dc")),
        [b'P', b'K', 3, 4, ..] => return Err(other("zip", "unzip -p")),
        _ => (None, Box::new(bytes)),
    })
}
