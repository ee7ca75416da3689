//! The secret that both endpoints of a transfer share, and the values derived from it.
//!
//! No function of this module prints a key. Proofs of knowledge of the key are compared in constant time.

use std::fmt;

use ring::hkdf::{self, KeyType, Salt};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

/// A shared secret of 128 random bits that only the two endpoints know.
///
/// Chosen: 128 bits, the strength of the ciphers that are used with the key, and short enough for a user to copy.
#[derive(Clone)]
pub struct Key([u8; Key::BYTES]);

/// Prints a placeholder, so that a key printed by mistake stays secret.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(secret)")
    }
}

impl Key {
    /// Size of a key (bytes).
    pub const BYTES: usize = 16;

    /// Returns the key with these bytes.
    pub const fn new(bytes: [u8; Key::BYTES]) -> Key {
        Key(bytes)
    }

    /// Returns a new key from the system's random number generator.
    ///
    /// # Errors
    /// The system returned no random numbers.
    pub fn random() -> Result<Key, NoRandomNumbers> {
        random().map(Key)
    }

    /// The key's bytes, for a caller that prints the key to its owner or writes it to a file that only its owner can
    /// read.
    pub const fn bytes(&self) -> &[u8; Key::BYTES] {
        &self.0
    }

    /// Derives bytes that only a holder of the key can compute: `salt` makes them differ between connections, `label`
    /// between uses.
    ///
    /// Source: RFC 5869 §2 (HKDF with SHA-256)
    pub fn derive<const N: usize>(&self, salt: &[u8], label: &[u8]) -> [u8; N] {
        let mut out = [0; N];
        let extracted = Salt::new(hkdf::HKDF_SHA256, salt).extract(&self.0);
        extracted
            .expand(&[label], Length(N))
            .and_then(|material| material.fill(&mut out))
            .expect("no more than 255 blocks of 32 bytes are asked for");
        out
    }

    /// Computes a proof of knowledge of the key. The proof is valid for exactly these `parts`: the same bytes, divided
    /// into other parts, have another proof.
    ///
    /// Source: RFC 2104 §2 (HMAC with SHA-256)
    pub fn prove(&self, parts: &[&[u8]]) -> [u8; 32] {
        tag(&hmac::Key::new(hmac::HMAC_SHA256, &self.0), parts)
    }

    /// Whether `proof` is the proof of these parts, or a prefix of at least 16 bytes. Compares in constant time.
    pub fn verify(&self, parts: &[&[u8]], proof: &[u8]) -> bool {
        is_tag(&hmac::Key::new(hmac::HMAC_SHA256, &self.0), parts, proof)
    }
}

/// The operating system returned no random numbers. Without them, nothing can be kept secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system returned no random numbers, which encryption needs")]
pub struct NoRandomNumbers;

/// `N` random bytes of the operating system.
///
/// # Errors
/// [`NoRandomNumbers`].
pub fn random<const N: usize>() -> Result<[u8; N], NoRandomNumbers> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| NoRandomNumbers)?;
    Ok(bytes)
}

/// Computes the HMAC of `parts`, each preceded by its length.
pub(crate) fn tag(key: &hmac::Key, parts: &[&[u8]]) -> [u8; 32] {
    let mut context = hmac::Context::with_key(key);
    for part in parts {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    let mut out = [0; 32];
    out.copy_from_slice(context.sign().as_ref());
    out
}

/// Whether `claimed` is the tag of `parts`, or a prefix of at least 16 bytes. Compares in constant time.
pub(crate) fn is_tag(key: &hmac::Key, parts: &[&[u8]], claimed: &[u8]) -> bool {
    let tag = tag(key, parts);
    is_equal(tag.get(..claimed.len()).unwrap_or_default(), claimed) && claimed.len() >= 16
}

/// Compares two byte strings in a time that depends on their lengths only.
pub(crate) fn is_equal(left: &[u8], right: &[u8]) -> bool {
    let differences =
        left.iter().zip(right).fold(0, |seen, (left, right)| std::hint::black_box(seen | (left ^ right)));
    left.len() == right.len() && differences == 0
}

/// Output length of [`Key::derive`] (bytes).
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = Key::new(*b"sixteen bytes ..");

    /// HKDF by its definition: extract is one HMAC, and each block of expand is another.
    #[test]
    fn what_is_derived_is_what_the_standard_says() {
        let sign = |key: &[u8], text: &[u8]| {
            hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text).as_ref().to_vec()
        };
        let extracted = sign(b"salt", KEY.bytes());
        let first = sign(&extracted, b"label\x01");
        let second = sign(&extracted, &[&first[..], b"label\x02"].concat());
        let derived: [u8; 48] = KEY.derive(b"salt", b"label");
        assert_eq!(derived[..], [&first[..], &second[..16]].concat());
    }

    #[test]
    fn a_proof_holds_for_its_parts_and_its_key_only() {
        let proof = KEY.prove(&[b"ab", b"c"]);
        assert!(KEY.verify(&[b"ab", b"c"], &proof) && KEY.verify(&[b"ab", b"c"], &proof[..16]));
        assert!(!KEY.verify(&[b"a", b"bc"], &proof), "the same bytes, divided in another way");
        assert!(!KEY.verify(&[b"ab", b"c"], &proof[..15]), "too little of a proof is none");
        assert!(!KEY.verify(&[b"ab", b"c"], &[]));
        assert!(!KEY.verify(&[b"ab", b"c"], &[&proof[..], &[0]].concat()));
        for bit in 0..256 {
            let mut forged = proof;
            forged[bit / 8] ^= 1 << (bit % 8);
            assert!(!KEY.verify(&[b"ab", b"c"], &forged), "bit {bit}");
        }
        let other = Key::random().expect("the system has random numbers");
        assert!(!other.verify(&[b"ab", b"c"], &proof));
    }

    #[test]
    fn no_key_is_printed_and_no_two_are_equal() {
        let [one, two] = [(); 2].map(|()| Key::random().expect("the system has random numbers"));
        assert_ne!(one.bytes(), two.bytes());
        assert_eq!(format!("{one:?}"), "Key(secret)");
    }
}
