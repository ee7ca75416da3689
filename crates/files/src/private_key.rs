//! Detection of private keys in the bytes of a file.

use memchr::memmem;

/// Number of bytes before and after a mark (such as `PRIVATE KEY`) from which it is decided whether the mark belongs to a
/// key.
///
/// Chosen: more than a private RSA key of 16,384 bits as JSON, in which other members may be between its marks.
pub(crate) const CONTEXT: usize = 16 << 10;

/// First words of key files other than PEM, at the start of a line: of PuTTY, and of `airpace recv`.
const FIRST_WORDS: [&[u8]; 2] = [b"PuTTY-User-Key-File-", b"# The key of `airpace recv`"];

/// PEM's line before a key, and the words that mark a private key in it.
const BEGIN: &[u8] = b"-----BEGIN ";
const PRIVATE: &[u8] = b"PRIVATE KEY";

/// Maximum number of bytes between [`BEGIN`] and [`PRIVATE`]: `ENCRYPTED `, `OPENSSH ` and others.
const MAX_KIND: usize = 64;

/// Minimum number of base64 characters after PEM's line that count as a key. The second number applies if quotes or the
/// marks of a comment precede the characters, so that the name of a variable does not count as a key.
///
/// Chosen: a line of a key has 64 characters.
const KEY_CHARACTERS: usize = 16;
const QUOTED_KEY_CHARACTERS: usize = 32;

/// The names of keys in the settings of WireGuard, systemd and NetworkManager, at the start of a line, in any case of letters.
///
/// Chosen: the names in the manuals wg(8), systemd.netdev(5) and nm-settings-keyfile(5)
const SETTINGS: [&[u8]; 4] = [b"privatekey", b"presharedkey", b"private-key", b"preshared-key"];

/// Last parts of the names in [`SETTINGS`], in the usual cases of letters.
const SETTING_ENDS: [&[u8]; 3] = [b"Key", b"key", b"KEY"];

/// Number of base64 characters in a WireGuard key of 32 bytes.
const SETTING_CHARACTERS: usize = 43;

/// Byte sequences in UTF-16 of either byte order. Each text mark of a key contains at least one of them.
const WIDE: [&[u8]; 4] = [b"K\0E\0Y", b"K\0e\0y", b"k\0e\0y", b"k\0t\0y"];

/// Returns whether a part of a file, which starts at this offset, contains a private key or the start of one. Keys are
/// detected at any position in PEM, OpenPGP's armour, the formats of PuTTY and OpenSSH, WireGuard's settings and JSON,
/// also in UTF-16. A key in DER is detected only at the start of the file.
pub(crate) fn is_in(part: &[u8], offset: u64) -> bool {
    let is_first = offset == 0;
    is_first && is_der_key(part) || is_in_text(part, is_first) || is_in_wide_text(part, is_first)
}

fn is_in_text(part: &[u8], is_first: bool) -> bool {
    let begins_a_line = |at: usize| part[..at].last().map_or(is_first, |before| is_line_end(*before));
    memmem::find_iter(part, PRIVATE).any(|at| is_pem_label(part, at, is_first))
        || FIRST_WORDS.iter().any(|words| memmem::find_iter(part, words).any(begins_a_line))
        || SETTING_ENDS.iter().any(|words| {
            memmem::find_iter(part, words).any(|at| is_setting(part, at + words.len(), is_first))
        })
        || is_json_key(part)
}

/// Like [`is_in_text`], for text in UTF-16.
fn is_in_wide_text(part: &[u8], is_first: bool) -> bool {
    if !WIDE.iter().any(|words| memmem::find(part, words).is_some()) {
        return false;
    }
    let byte_order_mark = [&b"\xff\xfe"[..], b"\xfe\xff"].into_iter().find(|mark| part.starts_with(mark));
    let text = &part[byte_order_mark.filter(|_| is_first).map_or(0, <[u8]>::len)..];
    let narrow: Vec<u8> = text.iter().copied().filter(|byte| *byte != 0).collect();
    is_in_text(&narrow, is_first)
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

/// Returns whether the words at this position are the first of a line.
fn starts_a_line(part: &[u8], at: usize, is_first: bool) -> bool {
    let is_indent = |byte: &&u8| byte.is_ascii_whitespace() && !is_line_end(**byte);
    let line = at - part[..at].iter().rev().take_while(is_indent).count();
    // Words at the very start of this part were already judged with the previous part.
    if line == 0 { is_first || at > 0 } else { is_line_end(part[line - 1]) }
}

/// Returns whether the name of a setting ends at this position, starts its line and has a key as its value.
fn is_setting(part: &[u8], end: usize, is_first: bool) -> bool {
    let is_name = |name: &&&[u8]| end >= name.len() && part[end - name.len()..end].eq_ignore_ascii_case(name);
    let Some(name) = SETTINGS.iter().find(is_name) else { return false };
    let is_key = |value: &[u8]| {
        let value = value.trim_ascii_start();
        value.len() > SETTING_CHARACTERS
            && value[..SETTING_CHARACTERS].iter().all(is_base64)
            && value[SETTING_CHARACTERS] == b'='
    };
    let value = part[end..].trim_ascii_start().strip_prefix(b"=");
    starts_a_line(part, end - name.len(), is_first) && value.is_some_and(is_key)
}

fn is_base64(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// Returns whether the words `PRIVATE KEY` at this position belong to a line around a key, and not to a program that
/// writes such lines: the line starts there, or a key follows.
///
/// Source: RFC 7468 §2 (the lines around a key), §10 and §11 (`PRIVATE KEY`, `ENCRYPTED PRIVATE KEY`)
fn is_pem_label(part: &[u8], at: usize, is_first: bool) -> bool {
    let before = &part[at.saturating_sub(MAX_KIND + BEGIN.len())..at];
    let Some(begin) = memmem::rfind(before, BEGIN) else { return false };
    if before[begin..].iter().any(|byte| is_line_end(*byte)) {
        return false;
    }
    let begin = at - before.len() + begin;
    starts_a_line(part, begin, is_first) || is_key_after_label(&part[at + PRIVATE.len()..])
}

/// Returns whether a key follows the words `PRIVATE KEY`: the line ends, also by the escape sequence or the quotes of a
/// string literal, and base64 or a header of RFC 1421 follows.
fn is_key_after_label(rest: &[u8]) -> bool {
    let rest = rest.strip_prefix(b" BLOCK").unwrap_or(rest);
    let Some(mut rest) = rest.strip_prefix(b"-----") else { return false };
    let (all, mut least) = (rest.len(), KEY_CHARACTERS);
    loop {
        rest = match rest {
            [b'\\', b'n' | b'r' | b't', after @ ..] => after,
            [first, after @ ..] if first.is_ascii_whitespace() => after,
            [b'"' | b'\'' | b'`' | b',' | b'#' | b'/' | b'>' | b'*' | b'.' | b';' | b'&', after @ ..] => {
                least = QUOTED_KEY_CHARACTERS;
                after
            }
            [b'+', b' ', after @ ..] => after,
            _ => break,
        };
    }
    let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'-';
    let name = rest.iter().take_while(is_name).count();
    let is_header = name > 0 && rest[name..].starts_with(b": ");
    rest.len() < all && (is_header || rest.iter().take_while(|byte| is_base64(byte)).count() >= least)
}

/// Returns whether a text contains a private or symmetric key in JSON.
///
/// Source: RFC 7518 §6.2.2 and §6.3.2 (`d`), §6.4.1 (`k`)
fn is_json_key(part: &[u8]) -> bool {
    if memmem::find(part, b"\"kty\"").is_none() {
        return false;
    }
    let dense: Vec<u8> = part.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let has = |words: &[u8]| memmem::find(&dense, words).is_some();
    has(b"\"kty\":") && (has(b"\"d\":\"") || has(b"\"kty\":\"oct\"") && has(b"\"k\":\""))
}

/// Returns whether bytes start like a private key in DER, without PEM's lines and base64.
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
    // Returns the object identifier of an algorithm.
    let identifier = |sequence| element(sequence).filter(|(tag, ..)| *tag == OBJECT).map(|(_, name, _)| name);
    match (tag, first, element(rest)) {
        (INTEGER, [0 | 1], Some((SEQUENCE, algorithm, _))) => identifier(algorithm).is_some(),
        // PKCS #1: a modulus of at least 512 bits. The next line is the private key of a curve.
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

/// Returns the first element of DER: its tag, its content as far as available, and the bytes after it.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_keys_are_known_by_their_first_line() {
        for kind in ["", "RSA ", "EC ", "ENCRYPTED ", "OPENSSH "] {
            let text = format!("bag attributes\r\n  -----BEGIN {kind}PRIVATE KEY-----\r\nMII=\r\n");
            assert!(is_in(text.as_bytes(), 0), "{text}");
        }
        assert!(is_in(b"-----BEGIN PGP PRIVATE KEY BLOCK-----\n", 0));
        assert!(is_in(b"PuTTY-User-Key-File-3: ssh-ed25519\n", 0));
        let der = |head: &[u8], length: usize| [head, &vec![7; length]].concat();
        for key in [
            // PKCS #8 of RSA, of a curve, and of Ed25519; PKCS #1; the specific format of a curve's key.
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
            assert!(is_in(&key, 0), "{key:x?}");
        }
        for other in [
            // A certificate, a public RSA key, and other sequences.
            der(&[0x30, 0x82, 3, 0x40, 0x30, 0x82, 2, 0x28, 0xa0, 3, 2, 1, 2], 900),
            der(&[0x30, 0x82, 1, 0x0a, 2, 0x82, 1, 1, 0], 260),
            der(&[0x30, 12, 2, 1, 1, 0x60, 7, 2, 1, 3, 4, 0], 2),
            der(&[0x30, 0x59, 0x30, 19, 6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1], 76),
            br#"{"kty":"EC","crv":"P-256","x":"f8","y":"x_"}"#.to_vec(),
            br#"{"d":"a field of somebody's"}"#.to_vec(),
        ] {
            assert!(!is_in(&other, 0), "{other:x?}");
        }
        for text in ["", "-----BEGIN CERTIFICATE-----\n", "-----BEGIN PUBLIC KEY-----\n", "a PRIVATE KEY\n"] {
            assert!(!is_in(text.as_bytes(), 0), "{text}");
        }
    }
    #[test]
    fn private_keys_are_known_wherever_they_are() {
        let pem = "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49\n-----END PRIVATE KEY-----\n";
        let pgp = "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\nlQ==\n";
        let putty = "PuTTY-User-Key-File-3: ssh-ed25519\n";
        let wireguard = "yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=";
        let escaped = pem.replace('\n', "\\n");
        let many = "x".repeat(300);
        for text in [
            format!("{many}\n{pem}"),
            format!("{many}\n    {pem}"),
            // Keys behind the zero bytes of an archive, in the JSON of a service account, and in YAML follow.
            format!("{many}\0\0{pem}"),
            format!("{many}\0{pgp}"),
            format!(r#"{{"type": "service_account", "private_key": "{escaped}"}}"#),
            format!("key: |\r\n  {}", pem.replace('\n', "\r\n  ")),
            format!("{many}\n{putty}"),
            format!("{many}{{\"x\":{{\"d\" : \"jpsQ\", \"kty\" : \"EC\"}}}}"),
            format!("[Interface]\r\n  PrivateKey = {wireguard}\r\nListenPort = 51820\n"),
            format!("{many}\n[WireGuard]\npreshared-key={wireguard}\n"),
            format!("[Interface]\nprivatekey={wireguard}\n"),
            format!("{many}\nPRIVATEKEY = {wireguard}\n"),
            // Strings of a program, line by line; a comment.
            "\"-----BEGIN PRIVATE KEY-----\\n\"\n    \"MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0w\\n\""
                .to_owned(),
            "['-----BEGIN PRIVATE KEY-----',\n 'MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0w',".to_owned(),
            "// -----BEGIN PRIVATE KEY-----\n// MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0w\n".to_owned(),
        ] {
            assert!(is_in(text.as_bytes(), 0) && is_in(text.as_bytes(), 4096), "{text}");
            let wide = |order: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(order).collect::<Vec<u8>>();
            for wide in [wide(u16::to_le_bytes), wide(u16::to_be_bytes)] {
                assert!(is_in(&wide, 0) && is_in(&wide, 4096), "in UTF-16: {text}");
            }
        }
        let wide: Vec<u8> = format!("\u{feff}{pem}").encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert!(is_in(&wide, 0));
        // Programs and texts that contain such lines.
        for text in [
            "\0-----BEGIN RSA PRIVATE KEY-----\0-----END RSA PRIVATE KEY-----\0",
            "see -----BEGIN PRIVATE KEY-----",
            "see -----BEGIN PRIVATE KEY-----\nthen the key",
            "format(\"-----BEGIN %s PRIVATE KEY-----\\n%s\")",
            "join(\"-----BEGIN PRIVATE KEY-----\\n\", contents_of_the_key)",
            "-----BEGIN CERTIFICATE-----\na PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49\n",
            "see PuTTY-User-Key-File-3",
            "the line PrivateKey = yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=",
            "\nPrivateKey = <yours>\nPublicKey = yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=",
        ] {
            let text = format!("{many}{text}");
            assert!(!is_in(text.as_bytes(), 0) && !is_in(text.as_bytes(), 4096), "{text}");
        }
    }
}
