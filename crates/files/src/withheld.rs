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
        || is_der_key(bytes)
        || is_json_key(bytes)
}

/// Whether bytes begin as a private key does in DER, without PEM's lines and base64 around it.
///
/// Source: RFC 5958 §2 and §3 (PKCS #8, plain and encrypted), RFC 8017 §A.1.2 (PKCS #1), RFC 5915 §3 (keys of elliptic
/// curves), RFC 7292 §4 (PKCS #12)
fn is_der_key(bytes: &[u8]) -> bool {
    /// Object identifiers: `pkcs-5`, `pkcs-12PbeIds`, `pkcs-7`.
    const PKCS5: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x05];
    const PKCS12: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x0c, 0x01];
    const PKCS7: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07];
    let Some((SEQUENCE, inner, _)) = element(bytes) else { return false };
    let Some((tag, first, rest)) = element(inner) else { return false };
    // What an algorithm's identifier names.
    let identifier = |sequence| element(sequence).filter(|(tag, ..)| *tag == OBJECT).map(|(_, name, _)| name);
    match (tag, first, element(rest)) {
        (INTEGER, [0 | 1], Some((SEQUENCE, algorithm, _))) => identifier(algorithm).is_some(),
        // A modulus of 512 bits or more; and the private key of a curve.
        (INTEGER, [0], Some((INTEGER, modulus, _))) => modulus.len() >= 64,
        (INTEGER, [1], Some((OCTETS, key, _))) => (16..=66).contains(&key.len()),
        (INTEGER, [3], Some((SEQUENCE, content, _))) => {
            identifier(content).is_some_and(|name| name.starts_with(PKCS7))
        }
        (SEQUENCE, algorithm, Some((OCTETS, ..))) => {
            identifier(algorithm).is_some_and(|name| name.starts_with(PKCS5) || name.starts_with(PKCS12))
        }
        _ => false,
    }
}

/// Tags of DER.
const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const OBJECT: u8 = 0x06;
const SEQUENCE: u8 = 0x30;

/// The first element of DER: its tag, its content as far as it is here, and what follows it.
///
/// Source: ITU-T X.690, 2021 §8.1.3 (lengths); of an indefinite length all that follows is the content
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], rest) = bytes.split_first_chunk::<2>()?;
    let (length, content) = match first {
        0x80 => (rest.len(), rest),
        0x81..=0x84 => {
            let (digits, content) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), content)
        }
        _ if first < 0x80 => (usize::from(first), rest),
        _ => return None,
    };
    let (content, after) = content.split_at(length.min(content.len()));
    Some((tag, content, after))
}

/// Whether a text is a private or symmetric key in JSON, or a set with one.
///
/// Source: RFC 7518 §6.2.2 and §6.3.2 (`d`), §6.4.1 (`k`); RFC 7517 §5 (sets)
fn is_json_key(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    if !bytes.starts_with(b"{") && !bytes.starts_with(b"[") {
        return false;
    }
    let dense: Vec<u8> = bytes.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let has = |words: &[u8]| dense.windows(words.len()).any(|part| part == words);
    has(b"\"kty\":") && (has(b"\"d\":\"") || has(b"\"kty\":\"oct\"") && has(b"\"k\":\""))
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
        let der = |head: &[u8], length: usize| [head, &vec![7; length]].concat();
        for key in [
            // PKCS #8 of RSA, of a curve, and of Ed25519; PKCS #1; a curve's own form.
            der(
                &[0x30, 0x82, 4, 0xbd, 2, 1, 0, 0x30, 13, 6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 13, 1, 1, 1],
                1200,
            ),
            der(&[0x30, 0x81, 0x87, 2, 1, 0, 0x30, 19, 6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1], 120),
            der(&[0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22], 34),
            der(&[0x30, 0x82, 4, 0xa3, 2, 1, 0, 2, 0x82, 1, 1, 0], 1200),
            der(&[0x30, 0x77, 2, 1, 1, 4, 0x20], 110),
            // Encrypted PKCS #8, and PKCS #12.
            der(&[0x30, 0x81, 0x9b, 0x30, 0x57, 6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 13, 1, 5, 13], 76)
                .into_iter()
                .chain(der(&[4, 0x40], 64))
                .collect(),
            der(
                &[
                    0x30, 0x82, 9, 0x51, 2, 1, 3, 0x30, 0x82, 9, 0x17, 6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7,
                    13, 1, 7, 1,
                ],
                99,
            ),
            br#"{ "kty" : "EC", "crv": "P-256", "x": "f8", "d" : "jpsQ" }"#.to_vec(),
            br#"{"keys":[{"kty":"oct","k":"AyM1"}]}"#.to_vec(),
        ] {
            assert!(has_private_key(&key), "{key:x?}");
        }
        for other in [
            // A certificate, a public key of RSA, and others' sequences.
            der(&[0x30, 0x82, 3, 0x40, 0x30, 0x82, 2, 0x28, 0xa0, 3, 2, 1, 2], 900),
            der(&[0x30, 0x82, 1, 0x0a, 2, 0x82, 1, 1, 0], 260),
            der(&[0x30, 12, 2, 1, 1, 0x60, 7, 2, 1, 3, 4, 0], 2),
            der(&[0x30, 0x59, 0x30, 19, 6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1], 76),
            br#"{"kty":"EC","crv":"P-256","x":"f8","y":"x_"}"#.to_vec(),
            br#"{"d":"a field of somebody's"}"#.to_vec(),
        ] {
            assert!(!has_private_key(&other), "{other:x?}");
        }
        for text in ["", "-----BEGIN CERTIFICATE-----\n", "-----BEGIN PUBLIC KEY-----\n", "a PRIVATE KEY\n"] {
            assert!(!has_private_key(text.as_bytes()), "{text}");
        }
    }
}
