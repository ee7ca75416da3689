//! Packet protection of the UDP prototype: AES-128-GCM keys per direction, key updates by packet counter, and replay
//! protection.

use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use super::packet::{CLEAR, TAG};
use crate::key::Key;

/// Number of packets per key, as a power of two. Both endpoints change the key at the same counter.
///
/// Source: RFC 9001 §6.6, §B.1.1 (AES-128-GCM seals at most 2²³ packets)
const EPOCH_BITS: u32 = 22;

/// Size of the replay window (words of 64 counters). Each of the 64 · 63 newest counters is accepted once; older
/// counters are rejected.
///
/// Chosen: 48 ms of full-sized packets at 1 Gbit/s. A packet delayed by more than that was declared lost long before.
const WORDS: usize = 64;

/// Reason why a sealed packet is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The counter was accepted before, or is older than the replay window.
    Replayed,
    /// The tag does not match.
    Forged,
}

/// Input of the key derivation for one direction of a connection.
#[derive(Clone)]
pub struct Secret {
    pub key: Key,
    /// Both nonces and both names.
    pub salt: [u8; 48],
    /// Label of the direction.
    pub label: &'static [u8],
}

/// The key of one epoch.
struct Epoch {
    number: u64,
    key: LessSafeKey,
    iv: [u8; 12],
}

impl Secret {
    /// Source: RFC 5116 §5.1 (AEAD_AES_128_GCM); RFC 9001 §5.3 (the nonce)
    fn epoch(&self, number: u64) -> Epoch {
        let label = |use_: &[u8]| [self.label, use_, &number.to_be_bytes()].concat();
        let key: [u8; 16] = self.key.derive(&self.salt, &label(b" key "));
        let iv = self.key.derive(&self.salt, &label(b" iv "));
        let key = UnboundKey::new(&AES_128_GCM, &key).expect("AES-128 has keys of 16 bytes");
        Epoch { number, key: LessSafeKey::new(key), iv }
    }
}

impl Epoch {
    fn nonce(&self, counter: u64) -> Nonce {
        let mut nonce = self.iv;
        nonce[4..].iter_mut().zip(counter.to_be_bytes()).for_each(|(iv, byte)| *iv ^= byte);
        Nonce::assume_unique_for_key(nonce)
    }
}

/// Encrypts the packets of one direction.
pub struct Sealer {
    secret: Secret,
    epoch: Epoch,
    next: u64,
}

impl Sealer {
    /// Creates a sealer whose first counter is 0.
    pub fn new(secret: Secret) -> Sealer {
        Sealer { epoch: secret.epoch(0), secret, next: 0 }
    }

    /// Returns the counter of the next packet. No counter is used twice: no connection sends 2⁶⁴ packets.
    pub fn counter(&self) -> u64 {
        self.next
    }

    /// Encrypts the packet in `out` from `begin` on and appends the tag. The packet's plain-text header must contain
    /// the counter.
    pub fn seal(&mut self, out: &mut Vec<u8>, begin: usize) {
        let counter = self.next;
        self.next += 1;
        if counter >> EPOCH_BITS != self.epoch.number {
            self.epoch = self.secret.epoch(counter >> EPOCH_BITS);
        }
        let (clear, text) = out[begin..].split_at_mut(CLEAR);
        let sealed =
            self.epoch.key.seal_in_place_separate_tag(self.epoch.nonce(counter), Aad::from(clear), text);
        let tag = sealed.expect("a packet is shorter than 64 GB");
        out.extend_from_slice(tag.as_ref());
    }

    #[cfg(test)]
    pub fn skip_to(&mut self, counter: u64) {
        self.next = counter;
    }
}

/// Decrypts the packets of one direction, each once.
pub struct Opener {
    secret: Secret,
    epoch: Epoch,
    /// Keys of the previous and of the next epoch, because packets may be reordered.
    before: Option<Epoch>,
    after: Option<Epoch>,
    seen: Seen,
}

impl Opener {
    /// Creates an opener that has accepted no packet yet.
    pub fn new(secret: Secret) -> Opener {
        Opener { epoch: secret.epoch(0), secret, before: None, after: None, seen: Seen::default() }
    }

    /// Decrypts `packet` in place. Returns the plain text, and whether the packet's counter is the highest yet.
    ///
    /// # Errors
    /// The packet is rejected. Only the packet's bytes may have changed.
    pub fn open<'a>(&mut self, counter: u64, packet: &'a mut [u8]) -> Result<(&'a [u8], bool), Refusal> {
        if self.seen.contains(counter) {
            return Err(Refusal::Replayed);
        }
        let number = counter >> EPOCH_BITS;
        let is_after = number == self.epoch.number + 1;
        let epoch = match number {
            _ if number == self.epoch.number => &self.epoch,
            _ if is_after => self.after.get_or_insert_with(|| self.secret.epoch(number)),
            _ => match &self.before {
                Some(before) if before.number == number => before,
                _ => return Err(Refusal::Forged),
            },
        };
        let (clear, text) = packet.split_at_mut_checked(CLEAR).ok_or(Refusal::Forged)?;
        let opened = epoch.key.open_in_place(epoch.nonce(counter), Aad::from(clear), text);
        let text = opened.map_err(|_| Refusal::Forged)?;
        if let (true, Some(after)) = (is_after, self.after.take_if(|_| is_after)) {
            self.before = Some(std::mem::replace(&mut self.epoch, after));
        }
        let is_newest = self.seen.insert(counter);
        Ok((text, is_newest))
    }
}

/// The accepted counters.
///
/// Source: RFC 6479 §2
struct Seen {
    words: [u64; WORDS],
    /// Highest accepted counter plus 1.
    end: u64,
}

impl Default for Seen {
    fn default() -> Seen {
        Seen { words: [0; WORDS], end: 0 }
    }
}

impl Seen {
    /// Whether `counter` was accepted, or is older than the replay window.
    fn contains(&self, counter: u64) -> bool {
        if counter >= self.end {
            return false;
        }
        let (newest, word) = ((self.end - 1) / 64, counter / 64);
        newest - word >= WORDS as u64 || self.words[(word % WORDS as u64) as usize] >> (counter % 64) & 1 == 1
    }

    /// Inserts a counter that is not contained. Returns whether it is the highest.
    fn insert(&mut self, counter: u64) -> bool {
        let is_newest = counter >= self.end;
        let word = counter / 64;
        if is_newest {
            let newest = self.end.checked_sub(1).map_or(0, |highest| highest / 64);
            // A jump beyond the window clears each word once.
            for new in (newest + 1..=word).take(WORDS) {
                self.words[(new % WORDS as u64) as usize] = 0;
            }
            self.end = counter.saturating_add(1);
        }
        self.words[(word % WORDS as u64) as usize] |= 1 << (counter % 64);
        is_newest
    }
}

/// Bytes that protection adds to a plain text: header and tag.
pub const OVERHEAD: usize = CLEAR + TAG;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::super::packet::Clear;
    use super::*;

    fn secret() -> Secret {
        Secret { key: Key::new([7; 16]), salt: [9; 48], label: b"test" }
    }

    fn sealed(sealer: &mut Sealer, text: &[u8]) -> (u64, Vec<u8>) {
        let mut out = b"what was in the buffer before".to_vec();
        let begin = out.len();
        let counter = sealer.counter();
        Clear::Sealed { connection: 5, counter }.write(&mut out);
        out.extend_from_slice(text);
        sealer.seal(&mut out, begin);
        (counter, out[begin..].to_vec())
    }

    #[test]
    fn a_packet_is_opened_once_and_not_after_any_change() {
        let (mut sealer, mut opener) = (Sealer::new(secret()), Opener::new(secret()));
        let (counter, packet) = sealed(&mut sealer, b"text");
        assert_eq!(packet.len(), b"text".len() + OVERHEAD);
        for bit in 0..packet.len() * 8 {
            let mut damaged = packet.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(opener.open(counter, &mut damaged), Err(Refusal::Forged), "bit {bit}");
        }
        for length in 0..packet.len() {
            assert_eq!(opener.open(counter, &mut packet[..length].to_vec()), Err(Refusal::Forged));
        }
        assert_eq!(opener.open(counter + 1, &mut packet.clone()), Err(Refusal::Forged));
        assert_eq!(opener.open(counter, &mut packet.clone()), Ok((&b"text"[..], true)));
        assert_eq!(opener.open(counter, &mut packet.clone()), Err(Refusal::Replayed));
        let mut other = Opener::new(Secret { label: b"other direction", ..secret() });
        assert_eq!(other.open(counter, &mut packet.clone()), Err(Refusal::Forged), "a reflected packet");
    }

    #[test]
    fn keys_change_at_the_same_packet_at_both_ends_even_if_packets_overtake() {
        let (mut sealer, mut opener) = (Sealer::new(secret()), Opener::new(secret()));
        let turn = 1 << EPOCH_BITS;
        sealer.skip_to(turn - 2);
        let mut packets: Vec<_> = (0..4).map(|_| sealed(&mut sealer, b"text")).collect();
        packets.swap(1, 2);
        let mut newest = vec![];
        for (counter, packet) in &packets {
            let mut packet = packet.clone();
            let opened = opener.open(*counter, &mut packet);
            newest.push(opened.expect("whichever key it has").1);
        }
        assert_eq!(newest, [true, true, false, true]);
        sealer.skip_to(3 * turn);
        let (counter, mut packet) = sealed(&mut sealer, b"text");
        assert_eq!(
            opener.open(counter, &mut packet),
            Err(Refusal::Forged),
            "no sender leaps over a whole key"
        );
    }

    proptest! {
        #[test]
        fn counters_are_remembered_as_a_set(
            steps in prop::collection::vec(prop_oneof![0u64..200, 0u64..6_000, 0u64..20_000], 1..300),
        ) {
            let (mut seen, mut model) = (Seen::default(), BTreeSet::new());
            for counter in steps {
                let highest = model.last().copied();
                let is_old = highest.is_some_and(|highest| highest / 64 - counter.min(highest) / 64 >= WORDS as u64);
                prop_assert_eq!(seen.contains(counter), is_old || model.contains(&counter));
                if !seen.contains(counter) {
                    prop_assert_eq!(seen.insert(counter), highest.is_none_or(|highest| counter > highest));
                    model.insert(counter);
                }
            }
        }
    }
}
