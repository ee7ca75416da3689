//! Log files of modems, with decompression.

pub mod input;

use std::io::{Cursor, Error, ErrorKind, Read};

use airpace_core::{Refused, Remedy};

/// Number of bytes at the start of a file from which its compression is detected.
const MAGIC: u64 = 6;

/// Returns a log's decompressed bytes, and the name of the compression. `name` is the log's name in messages.
///
/// # Errors
/// An error of the operating system, or an unsupported compression; the error text names a program that decompresses
/// the log.
pub fn expanded(
    name: &str,
    mut log: Box<dyn Read>,
) -> std::io::Result<(Option<&'static str>, Box<dyn Read>)> {
    let mut magic = vec![];
    let read = log.by_ref().take(MAGIC).read_to_end(&mut magic);
    read.map_err(|error| Error::new(error.kind(), format!("cannot read `{name}`: {error}")))?;
    let bytes = Cursor::new(magic.clone()).chain(log);
    let other = |program: &str, word: &str| {
        let refused = Refused::new(format!("`{name}` is compressed by {program}, which is not read here"));
        let remedy = Remedy::new(format!("decompress it first: {word} `{name}` > LOG"));
        Error::new(ErrorKind::Unsupported, refused.but(remedy))
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

#[cfg(test)]
mod tests {
    use airpace_core::remedy::explain_plainly;
    use std::io::Write;

    use super::*;

    fn read(bytes: Vec<u8>) -> std::io::Result<(Option<&'static str>, Vec<u8>)> {
        let (compression, mut log) = expanded("a log", Box::new(Cursor::new(bytes)))?;
        let mut all = vec![];
        log.read_to_end(&mut all)?;
        Ok((compression, all))
    }

    #[test]
    fn what_was_compressed_comes_out_as_it_was() {
        let log: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
        let mut gzip = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
        gzip.write_all(&log).expect("memory takes everything");
        let gzip = gzip.finish().expect("memory takes everything");
        let zstd = zstd::encode_all(&log[..], 1).expect("memory takes everything");
        for (compression, bytes) in [(None, log.clone()), (Some("gzip"), gzip), (Some("zstd"), zstd)] {
            assert_eq!(read(bytes).expect("it is whole"), (compression, log.clone()));
        }
        assert_eq!(read(vec![]).expect("nothing is a log too"), (None, vec![]));
    }

    #[test]
    fn other_compressions_are_told_with_what_undoes_them() {
        for (magic, word) in
            [(&b"BZh91AY"[..], "bunzip2"), (b"\xFD7zXZ\0\0", "xz -dc"), (b"PK\x03\x04", "unzip")]
        {
            let error = explain_plainly(&read(magic.to_vec()).expect_err("it is not read"));
            assert!(error.contains(word) && error.contains("`a log`"), "{error}");
        }
    }
}
