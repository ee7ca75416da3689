//! The mapped array through which a feeder tells the kernel what the radio grants. A write is a few stores into shared
//! memory; the programs see it at their next look.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, fence};

use airpace_core::Rate;

use crate::mapped::Mapped;
use crate::twin::NONE;

/// A radio's bandwidth that is older than this is not used: `AP_FEED_MAX_AGE` of `intf.h`.
pub const MAX_AGE: std::time::Duration = std::time::Duration::from_millis(100);

/// The words of `struct ap_feed`.
const SEQUENCE: usize = 0;
const TIME: usize = 1;
const BANDWIDTH: usize = 2;
const BURST: usize = 3;
const SHARE: usize = 4;
const WORDS: usize = 7;

/// What the radio grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// Bandwidth of the device's uplink; `None` if it is unknown.
    pub bandwidth: Option<Rate>,
    /// The rate of the most that was granted in a frame of 10 ms; zero if unknown.
    pub burst: Rate,
    /// Each flow's part as numerator and denominator, both below 2²⁴; `None`: the kernel counts its flows.
    pub share: Option<(u32, u32)>,
}

/// The array, mapped for writing. There may be one writer.
pub struct Feed {
    memory: Mapped<WORDS>,
}

impl Feed {
    /// Maps the array `feed`.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn map(fd: BorrowedFd<'_>) -> io::Result<Feed> {
        Ok(Feed { memory: Mapped::new(fd, true)? })
    }

    /// Writes what the radio grants, as of now.
    pub fn tell(&mut self, told: &Told) {
        let words: &[AtomicU64; WORDS] = self.memory.words();
        // Odd while it is written. If a writer died in between, its number is taken over as it is.
        let sequence = words[SEQUENCE].load(Relaxed) | 1;
        words[SEQUENCE].store(sequence, Relaxed);
        fence(Release);
        words[TIME].store(now(), Relaxed);
        words[BANDWIDTH].store(told.bandwidth.map_or(NONE, Rate::as_bps), Relaxed);
        words[BURST].store(told.burst.as_bps(), Relaxed);
        let (num, den) = told.share.unwrap_or((0, 1));
        words[SHARE].store(u64::from(num) | u64::from(den) << 32, Relaxed);
        words[SEQUENCE].store(sequence.wrapping_add(1), Release);
    }

    /// What is in the array, and how old it is; `None` if nothing was written yet, or is being written.
    pub fn read(&self) -> Option<(Told, std::time::Duration)> {
        let words = self.memory.words();
        let before = words[SEQUENCE].load(Acquire);
        let [time, bandwidth, burst, share] =
            [TIME, BANDWIDTH, BURST, SHARE].map(|word| words[word].load(Relaxed));
        fence(Acquire);
        if before % 2 == 1 || words[SEQUENCE].load(Relaxed) != before || time == 0 {
            return None;
        }
        let (num, den) = (share as u32, (share >> 32) as u32);
        let told = Told {
            bandwidth: (bandwidth != NONE).then(|| Rate::from_bps(bandwidth)),
            burst: Rate::from_bps(burst),
            share: (num != 0).then_some((num, den)),
        };
        Some((told, std::time::Duration::from_nanos(now().saturating_sub(time))))
    }
}

/// The clock that the programs read.
pub fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
