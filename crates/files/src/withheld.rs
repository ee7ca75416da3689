//! Files and folders of our own that strangers neither get nor replace.

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Bytes at the start of a file in which a private key is searched.
///
/// Chosen: a key of 16,384 bits has 13 kB as PEM, and a chain of certificates before it some more.
const SEARCHED: usize = 64 << 10;

/// The first words of files with keys that are not between PEM's lines: of `airpace recv`, and of PuTTY.
const OTHER_KEYS: [&[u8]; 2] = [b"# The key of `airpace recv`", b"PuTTY-User-Key-File-"];

/// Device and number of a file or folder.
pub(crate) type Identity = (u64, u64);

/// Files and folders, known by their names and by device and number.
///
/// A file keeps its device and number under any name: through a link, as a hard link, after it was renamed. A name is
/// resolved again for each check, because programs that renew certificates replace files.
#[derive(Debug, Default)]
pub(crate) struct Withheld {
    entries: Vec<(PathBuf, Option<Identity>)>,
}

impl Withheld {
    pub(crate) fn add(&mut self, path: &Path) {
        // The working directory may change; a relative name must not change its meaning.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let identity = identity(&path);
        self.entries.push((path, identity));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn holds(&self, found: Identity) -> bool {
        let is_it = |(path, first): &(PathBuf, Option<Identity>)| {
            *first == Some(found) || identity(path) == Some(found)
        };
        self.entries.iter().any(is_it)
    }

    /// Fails for a file or folder of these.
    pub(crate) fn check(&self, found: impl FnOnce() -> Result<Identity>) -> Result<()> {
        if self.is_empty() || !self.holds(found()?) {
            return Ok(());
        }
        let reason = "it is one of the files that this command itself uses (a key, a certificate or its logs), which \
                      are neither handed out nor replaced";
        Err(Error::new(ErrorKind::PermissionDenied, reason))
    }
}

fn identity(path: &Path) -> Option<Identity> {
    path.metadata().ok().map(|about| (about.dev(), about.ino()))
}

/// Fails for a file that holds a private key, whatever its name.
pub(crate) fn refuse_private_key(file: &File) -> Result<()> {
    let mut start = vec![0; SEARCHED];
    let mut filled = 0;
    while filled < SEARCHED {
        match file.read_at(&mut start[filled..], filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    match has_private_key(&start[..filled]) {
        true => Err(Error::new(
            ErrorKind::PermissionDenied,
            "it holds a private key, which is never handed out; move it out of the folder",
        )),
        false => Ok(()),
    }
}

/// Source: RFC 7468 §2 (the lines around a key), §10 and §11 (`PRIVATE KEY`, `ENCRYPTED PRIVATE KEY`)
fn has_private_key(bytes: &[u8]) -> bool {
    let is_label = |line: &[u8]| {
        line.trim_ascii_start().strip_prefix(b"-----BEGIN ").is_some_and(|label| {
            // `RSA PRIVATE KEY`, `OPENSSH PRIVATE KEY`, `PGP PRIVATE KEY BLOCK`.
            label.windows(b"PRIVATE KEY".len()).take(64).any(|part| part == b"PRIVATE KEY")
        })
    };
    OTHER_KEYS.iter().any(|words| bytes.starts_with(words))
        || bytes.split(|byte| matches!(byte, b'\n' | b'\r')).any(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_keys_are_known_by_their_first_line() {
        for kind in ["", "RSA ", "EC ", "ENCRYPTED ", "OPENSSH "] {
            let text = format!("bag attributes\r\n  -----BEGIN {kind}PRIVATE KEY-----\r\nMII=\r\n");
            assert!(has_private_key(text.as_bytes()), "{text}");
        }
        assert!(has_private_key(b"-----BEGIN PGP PRIVATE KEY BLOCK-----\n"));
        assert!(has_private_key(b"PuTTY-User-Key-File-3: ssh-ed25519\n"));
        for text in ["", "-----BEGIN CERTIFICATE-----\n", "-----BEGIN PUBLIC KEY-----\n", "a PRIVATE KEY\n"] {
            assert!(!has_private_key(text.as_bytes()), "{text}");
        }
    }
}
