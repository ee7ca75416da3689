//! Certificate and key files, and trust in servers.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use airpace_core::Refused;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use airpace_transport::quic::{Identity, Trust, fingerprint_of};

/// Maximum size of a certificate or key file (bytes).
///
/// Chosen: all root certificates of a browser take 250 kB.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Reads a server's identity from two PEM files: the certificate with its chain, and the private key.
///
/// # Errors
/// The file concerned, the problem and the remedy.
pub fn from_files(certificate: &Path, key: &Path) -> Result<Identity, Refused> {
    let chain = certificates(certificate)?;
    let named = |error: &dyn std::fmt::Display| format!("cannot read the key `{}`: {error}", key.display());
    let text = airpace_files::read_secret(key, MAX_FILE_BYTES).map_err(|error| named(&error))?;
    let key = PrivateKeyDer::from_pem_slice(text.as_bytes())
        .map_err(|_| named(&"it holds no private key; it must be PEM, with `-----BEGIN PRIVATE KEY-----`"))?;
    Ok(Identity { chain, key })
}

/// Reads root certificates from a file. Certificates that chain to one of them are trusted.
///
/// # Errors
/// The problem of the file and the remedy.
pub fn roots(file: &Path) -> Result<Trust, Refused> {
    let mut roots = RootCertStore::empty();
    for root in certificates(file)? {
        roots
            .add(root)
            .map_err(|error| format!("a certificate in `{}` is damaged: {error}", file.display()))?;
    }
    Ok(Trust::Roots(Arc::new(roots)))
}

/// Parses a SHA-256 fingerprint of 64 hexadecimal digits, optionally with colons. Only the certificate with this
/// fingerprint is trusted.
///
/// # Errors
/// The text is not such a fingerprint.
pub fn fingerprint(text: &str) -> Result<Trust, Refused> {
    let digits: Vec<u32> = text
        .chars()
        .filter(|c| *c != ':')
        .map(|c| c.to_digit(16).ok_or(()))
        .collect::<Result<_, _>>()
        .unwrap_or_default();
    let mut fingerprint = [0; 32];
    if digits.len() != 64 {
        return Err("a fingerprint has 64 hexadecimal digits; the server prints its own".into());
    }
    for (byte, pair) in fingerprint.iter_mut().zip(digits.chunks(2)) {
        *byte = (pair[0] << 4 | pair[1]) as u8;
    }
    Ok(Trust::Fingerprint(fingerprint))
}

/// Fingerprint of a server's certificate, in hexadecimal digits.
pub fn shown(identity: &Identity) -> String {
    let bytes = identity.chain.first().map(fingerprint_of).unwrap_or_default();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, Refused> {
    let named = |error: &dyn std::fmt::Display| format!("cannot read `{}`: {error}", file.display());
    let mut bytes = Vec::new();
    let opened = airpace_files::open(file).map_err(|error| named(&error))?;
    opened.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|error| named(&error))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(
            named(&format!("it has more than {MAX_FILE_BYTES} bytes; name a file of certificates")).into()
        );
    }
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&bytes)
        .collect::<Result<_, _>>()
        .map_err(|_| named(&"its PEM is damaged; copy it again"))?;
    match certificates.is_empty() {
        true => {
            Err(named(&"it holds no certificate; it must be PEM, with `-----BEGIN CERTIFICATE-----`").into())
        }
        false => Ok(certificates),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_certificate_and_its_key_are_read_from_files() {
        let folder = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let [certificate, key] = ["certificate.pem", "key.pem"].map(|name| folder.path().join(name));
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
        let error = from_files(&certificate, &key).unwrap_err();
        assert!(error.to_string().contains("chmod 600"), "others could read the key: {error}");
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
        let identity = from_files(&certificate, &key).unwrap();
        assert_eq!(identity.chain, [made.cert.der().clone()]);
        let Trust::Fingerprint(read) = fingerprint(&shown(&identity)).unwrap() else {
            panic!("a fingerprint")
        };
        assert_eq!(read, fingerprint_of(made.cert.der()), "what is shown is what is read");
        assert!(matches!(roots(&certificate), Ok(Trust::Roots(roots)) if roots.len() == 1));
        let error = from_files(&key, &key).unwrap_err();
        assert!(error.to_string().contains("no certificate"), "{error}");
    }

    #[test]
    fn a_fingerprint_of_another_length_is_refused() {
        for wrong in ["", "ab", "zz", &"ab:".repeat(31), &"g".repeat(64)] {
            assert!(fingerprint(wrong).is_err(), "{wrong}");
        }
        assert!(fingerprint(&"AB:".repeat(32)).is_ok());
    }
}
