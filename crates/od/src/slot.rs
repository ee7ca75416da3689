//! Lock-free triple buffer in shared memory: one writer, any number of readers; no thread waits for another thread.
//!
//! ```text
//! publication   1  2  3  4  5  6 …      latest: the last publication that is whole
//! buffer        1  2  0  1  2  0 …      = publication mod 3
//! ```
//!
//! The writer claims the next buffer by writing the publication's number to its `claimed` word. It then fills the
//! buffer and stores the number in `latest`. A reader loads `latest`, copies this buffer, and checks whether `claimed`
//! still contains the same number. The number changes only if the writer has meanwhile completed two more publications
//! and started a third publication. Then the copy may be torn; the reader discards it and retries with the new
//! `latest`.
//!
//! Thus a publication needs a constant number of stores, independent of the readers. A reader is delayed only by a
//! writer that makes progress. If the writer is stopped or killed during a publication, the previous reading stays
//! valid. With a lock or a sequence lock, readers would then wait forever.
//!
//! Readers map the memory read-only. They therefore use relaxed loads separated by fences: loads with a stronger
//! ordering are not guaranteed to work on read-only memory.
//!
//! Source: BISCAY §4 (triple buffering over shared memory); Boehm 2012, Can Seqlocks Get Along With Programming Language
//! Memory Models (fences)
//! Differs: BISCAY's buffer has one consumer. This buffer has any number of readers, so readers validate their copy
//! instead of swapping buffers.

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Number of buffers per slot. With only two buffers, the writer's next publication would overwrite the buffer that a
/// reader copies.
pub const BUFFERS: usize = 3;

/// Maximum number of attempts of a read.
///
/// Chosen: only a writer that publishes more than twice during an attempt can invalidate it, and an attempt takes about
/// ten nanoseconds. A thousand invalid attempts in a row mean that the writer violates the protocol; then the reader
/// must not spin forever.
const MAX_TRIES: usize = 1_000;

/// A 64-bit word in shared memory, and the fences between accesses. This is a trait so that tests can run the algorithm
/// in a model checker.
pub trait Word {
    /// Loads the word without ordering (relaxed).
    fn load(&self) -> u64;
    /// Stores the word without ordering (relaxed).
    fn store(&self, value: u64);
    /// Acquire fence: loads before this fence happen before all accesses after it.
    fn acquire_fence();
    /// Release fence: stores before this fence happen before stores after it.
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

/// Triple buffer for one value of `WORDS` words; all zeros before the first publication.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Slot<W, const WORDS: usize> {
    /// Number of the last complete publication; 0 before the first publication.
    latest: W,
    buffers: [Buffer<W, WORDS>; BUFFERS],
}

/// One of the three buffers. Each buffer has its own cache lines, so that the writer's next publication does not
/// invalidate a line that a reader copies.
#[derive(Debug)]
#[repr(C, align(64))]
struct Buffer<W, const WORDS: usize> {
    /// Number of the last publication for which the writer claimed this buffer.
    claimed: W,
    words: [W; WORDS],
}

impl<W: Default, const WORDS: usize> Default for Buffer<W, WORDS> {
    fn default() -> Self {
        Buffer { claimed: W::default(), words: std::array::from_fn(|_| W::default()) }
    }
}

impl<W: Word, const WORDS: usize> Slot<W, WORDS> {
    /// Publishes `words` as publication `number`. The call is wait-free.
    ///
    /// Numbers must start at 1 and increase by one, and only one thread at a time may publish to a slot. Otherwise
    /// readings can be torn.
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

    /// Returns number and words of the last publication; `None` before the first publication.
    ///
    /// Also returns `None` if a thousand attempts in a row were invalid. This does not happen with a writer that
    /// follows the protocol.
    #[inline]
    pub fn read(&self) -> Option<(u64, [u64; WORDS])> {
        (0..MAX_TRIES).find_map(|_| self.try_read()).flatten()
    }

    /// Number of the last publication; 0 before the first publication.
    #[inline]
    pub fn latest(&self) -> u64 {
        self.latest.load()
    }

    /// Makes one attempt to read; returns `None` if the writer invalidated the attempt.
    #[inline]
    pub(crate) fn try_read(&self) -> Option<Option<(u64, [u64; WORDS])>> {
        let number = self.latest.load();
        if number == 0 {
            return Some(None);
        }
        // Pairs with the writer's fence before the store to `latest`: the loaded words belong to this publication or to
        // later publications.
        W::acquire_fence();
        let buffer = self.buffer(number);
        let words = std::array::from_fn(|at| buffer.words[at].load());
        // Pairs with the writer's fence after the store to `claimed`: if any word came from a later publication, the
        // load below also returns the later claim.
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
