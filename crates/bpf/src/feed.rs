//! The mapped array through which a feeder tells the kernel what the radio grants. A write is a few stores into shared
//! memory; the programs see it at their next look.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, fence};
use std::time::Duration;

use airpace_cc::pbe::feedback::Feedback;
use airpace_core::Rate;

use crate::layout::FeedWords;
use crate::mapped::Mapped;
use crate::option::contents;
use crate::twin::NONE;
use crate::twin::pbe::read_option;

/// A radio's bandwidth that is older than this is not used: `AP_FEED_MAX_AGE` of `intf.h`.
pub const MAX_AGE: Duration = Duration::from_millis(100);

/// The words of `struct ap_told`.
const TOLD_WORDS: usize = 4;

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
    memory: Mapped<FeedWords>,
}

impl Feed {
    /// Maps the array `feed`.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn map(fd: BorrowedFd<'_>) -> io::Result<Feed> {
        Ok(Feed { memory: Mapped::new(fd, true)? })
    }

    /// Writes what the radio grants, as of now. If the writer is interrupted or dies in between, what was told before
    /// stays valid.
    pub fn tell(&mut self, told: &Told) {
        let (num, den) = told.share.unwrap_or((0, 1));
        write(
            &self.memory,
            [
                now(),
                told.bandwidth.map_or(NONE, Rate::as_bps),
                told.burst.as_bps(),
                u64::from(num) | u64::from(den) << 32,
            ],
        );
    }

    /// What is in the array, and how old it is; `None` if nothing was written yet.
    pub fn read(&self) -> Option<(Told, Duration)> {
        let [time, bandwidth, burst, share] = read(&self.memory);
        if time == 0 {
            return None;
        }
        let (num, den) = (share as u32, (share >> 32) as u32);
        let told = Told {
            bandwidth: (bandwidth != NONE).then(|| Rate::from_bps(bandwidth)),
            burst: Rate::from_bps(burst),
            share: (num != 0).then_some((num, den)),
        };
        Some((told, age(time)))
    }
}

/// The array of PBE-CC, mapped for writing: what the phone's radio measures, for the ACKs to the senders. There may be one
/// writer.
pub struct Feedbacks {
    memory: Mapped<FeedWords>,
}

impl Feedbacks {
    /// Maps the array `feed`.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn map(fd: BorrowedFd<'_>) -> io::Result<Feedbacks> {
        Ok(Feedbacks { memory: Mapped::new(fd, true)? })
    }

    /// Writes what every ACK shall tell, as of now.
    pub fn tell(&mut self, feedback: &Feedback) {
        write(&self.memory, [now(), u64::from_ne_bytes(contents(feedback)), 0, 0]);
    }

    /// The capacity and the fair share in the array, and how old they are; `None` if nothing was written yet.
    pub fn read(&self) -> Option<([Option<Rate>; 2], Duration)> {
        let [time, written, _, _] = read(&self.memory);
        let fed = read_option(&written.to_ne_bytes(), 12);
        let rates = [fed.capacity, fed.fair_share].map(|bps| (bps != NONE).then(|| Rate::from_bps(bps)));
        (time != 0).then(|| (rates, age(time)))
    }
}

fn write(words: &FeedWords, news: [u64; TOLD_WORDS]) {
    let sequence = words.sequence.load(Relaxed).wrapping_add(1);
    // No reader sees the new words before those of the last time.
    fence(Release);
    place(words, sequence).iter().zip(news).for_each(|(word, news)| word.store(news, Relaxed));
    words.sequence.store(sequence, Release);
}

/// What was written last.
fn read(words: &FeedWords) -> [u64; TOLD_WORDS] {
    loop {
        let sequence = words.sequence.load(Acquire);
        let told = place(words, sequence).each_ref().map(|word| word.load(Relaxed));
        fence(Acquire);
        if words.sequence.load(Relaxed) == sequence {
            return told;
        }
    }
}

fn age(time: u64) -> Duration {
    Duration::from_nanos(now().saturating_sub(time))
}

/// The words of what is told under this sequence number.
fn place(words: &FeedWords, sequence: u64) -> &[AtomicU64; TOLD_WORDS] {
    &words.told[(sequence % 2) as usize]
}

/// The clock that the programs read.
pub fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
