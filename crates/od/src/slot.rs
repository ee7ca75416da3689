//! The algorithm: three buffers, one writer, any number of readers; no thread waits for another.
//!
//! ```text
//! publication   1  2  3  4  5  6 …      latest: the last publication that is whole
//! buffer        1  2  0  1  2  0 …      = publication mod 3
//! ```
//!
//! The writer claims the next buffer by writing the publication's number on it, fills it, and only then names it in
//! `latest`. A reader looks up `latest`, copies that buffer, and checks whether the buffer still carries the same
//! number. It does, unless the writer has meanwhile finished two more publications and begun a third. Then the copy may
//! be torn; the reader drops it and starts again with the buffer that is latest now.
//!
//! So a publication costs the same few stores whatever readers do, and a reader is delayed only by a writer that makes
//! progress. If a writer is stopped or killed in the middle of a publication, the previous reading stays whole. With a
//! lock or a sequence lock, readers would then wait forever.
//!
//! Readers map the memory read-only, so they load words relaxed and put fences between. Loads of any other ordering are
//! not guaranteed to work on memory that cannot be written.
//!
//! Source: BISCAY §4 (triple buffering over shared memory); Boehm 2012, Can Seqlocks Get Along With Programming Language
//! Memory Models (fences)
//! Differs: BISCAY's buffer has one consumer; here it has any number, so readers check instead of swapping buffers.

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Buffers of a slot. With two, the reading that a reader copies would be the next one to be overwritten.
pub const BUFFERS: usize = 3;

/// How often a reader starts again before it gives up.
///
/// Chosen: only two publications during a try can spoil it, and a try takes about ten nanoseconds. A thousand spoilt
/// tries in a row mean that the writer breaks the rules, and no reader should spin forever for that.
const MOST_TRIES: usize = 1_000;

/// A word of 64 bits in shared memory, and the fences between accesses. It is generic so that a model checker can
/// replace the machine.
pub trait Word {
    /// Loads the word, without any order to other accesses.
    fn load(&self) -> u64;
    /// Sets the word, without any order to other accesses.
    fn store(&self, value: u64);
    /// Loads before this fence happen before everything after it.
    fn acquire_fence();
    /// Stores before this fence happen before stores after it.
    fn release_fence();
}

impl Word for AtomicU64 {
    #[inline]
    fn load(&self) -> u64 {
        self.load(Ordering::Relaxed)
    }

    #[inline]
    fn store(&self, value: u64) {
        self.store(value, Ordering::Relaxed);
    }

    #[inline]
    fn acquire_fence() {
        fence(Ordering::Acquire);
    }

    #[inline]
    fn release_fence() {
        fence(Ordering::Release);
    }
}

/// Where one value of `WORDS` words is published; all zeros before the first publication.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Slot<W, const WORDS: usize> {
    /// Number of the last publication that is whole; 0 before the first.
    latest: W,
    buffers: [Buffer<W, WORDS>; BUFFERS],
}

/// A buffer has its own cache lines, so that the writer's next publication does not take away the line that is being
/// read.
#[derive(Debug)]
#[repr(C, align(64))]
struct Buffer<W, const WORDS: usize> {
    /// Number of the publication that this buffer was claimed for last.
    claimed: W,
    words: [W; WORDS],
}

impl<W: Default, const WORDS: usize> Default for Buffer<W, WORDS> {
    fn default() -> Self {
        Buffer { claimed: W::default(), words: std::array::from_fn(|_| W::default()) }
    }
}

impl<W: Word, const WORDS: usize> Slot<W, WORDS> {
    /// Publishes `words` as publication `number`. Wait-free.
    ///
    /// Numbers count up by one from 1, and only one thread at a time publishes to a slot. If that is broken, readings
    /// are torn.
    #[inline]
    pub fn publish(&self, number: u64, words: &[u64; WORDS]) {
        let buffer = self.buffer(number);
        buffer.claimed.store(number);
        W::release_fence();
        for (to, &from) in buffer.words.iter().zip(words) {
            to.store(from);
        }
        W::release_fence();
        self.latest.store(number);
    }

    /// The last publication: its number and words. `None` before the first.
    ///
    /// Also `None` if no publication could be read whole in a thousand tries, which does not happen with a writer that
    /// keeps the rules.
    #[inline]
    pub fn read(&self) -> Option<(u64, [u64; WORDS])> {
        (0..MOST_TRIES).find_map(|_| self.try_read()).flatten()
    }

    /// Number of the last publication; 0 before the first.
    #[inline]
    pub fn latest(&self) -> u64 {
        self.latest.load()
    }

    /// One try; `None` if it was spoilt.
    #[inline]
    pub(crate) fn try_read(&self) -> Option<Option<(u64, [u64; WORDS])>> {
        let number = self.latest.load();
        if number == 0 {
            return Some(None);
        }
        // Together with the fence before `latest` was stored: the words are those of this publication, or later ones.
        W::acquire_fence();
        let buffer = self.buffer(number);
        let words = std::array::from_fn(|at| buffer.words[at].load());
        // Together with the fence after a claim: if a word was a later publication's, the claim that is seen now is
        // too.
        W::acquire_fence();
        (buffer.claimed.load() == number).then_some(Some((number, words)))
    }

    #[inline]
    fn buffer(&self, number: u64) -> &Buffer<W, WORDS> {
        &self.buffers[(number % BUFFERS as u64) as usize]
    }
}

#[cfg(test)]
mod tests;
