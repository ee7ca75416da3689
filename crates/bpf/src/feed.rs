//! The mapped array through which a feeder reports the radio's bandwidth to the kernel. A write is a few stores into
//! shared memory; the programs read the new values at the next ACK or send.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, fence};
use std::time::Duration;

use airpace_core::Rate;

use crate::layout::{CellWords, FeedWords};
use crate::mapped::Mapped;
use crate::twin::NONE;
use crate::twin::pbe_receiver::Cell;

/// Maximum age of a radio's bandwidth that is used: `AP_FEED_MAX_AGE` of `intf.h`.
pub const MAX_AGE: Duration = Duration::from_millis(100);

/// The radio's grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantRecord {
    /// Bandwidth of the device's uplink; `None` if it is unknown.
    pub bandwidth: Option<Rate>,
    /// Maximum rate granted over a frame of 10 ms; zero if unknown.
    pub burst: Rate,
    /// Each flow's part of the bandwidth as numerator and denominator, both below 2²⁴; `None`: the kernel computes the
    /// part from the number of flows.
    pub share: Option<(u32, u32)>,
}

/// The array `feed`, mapped for writing. At most one writer is allowed.
pub struct Feed {
    memory: Mapped<FeedWords>,
}

impl Feed {
    /// Maps the array `feed`.
    ///
    /// # Errors
    /// The operating system refuses the operation.
    pub fn map(fd: BorrowedFd<'_>) -> io::Result<Feed> {
        Ok(Feed { memory: Mapped::new(fd, true)? })
    }

    /// Writes the radio's current grants. If the writer is interrupted or dies during the write, the previous record stays
    /// valid.
    pub fn tell(&mut self, told: &GrantRecord) {
        let (num, den) = told.share.unwrap_or((0, 1));
        write(
            &self.memory.sequence,
            &self.memory.told,
            [
                now(),
                told.bandwidth.map_or(NONE, Rate::as_bps),
                told.burst.as_bps(),
                u64::from(num) | u64::from(den) << 32,
            ],
        );
    }

    /// The valid record of the array, and its age; `None` if no record was written yet.
    pub fn read(&self) -> Option<(GrantRecord, Duration)> {
        let [time, bandwidth, burst, share] = read(&self.memory.sequence, &self.memory.told);
        if time == 0 {
            return None;
        }
        let (num, den) = (share as u32, (share >> 32) as u32);
        let told = GrantRecord {
            bandwidth: (bandwidth != NONE).then(|| Rate::from_bps(bandwidth)),
            burst: Rate::from_bps(burst),
            share: (num != 0).then_some((num, den)),
        };
        Some((told, age(time)))
    }
}

/// The array `feed` of PBE-CC, mapped for writing. It contains the measurements of the phone's radio, which ACKs report
/// to the senders. At most one writer is allowed.
pub struct CellFeed {
    memory: Mapped<CellWords>,
}

impl CellFeed {
    /// Maps the array `feed`.
    ///
    /// # Errors
    /// The operating system refuses the operation.
    pub fn map(fd: BorrowedFd<'_>) -> io::Result<CellFeed> {
        Ok(CellFeed { memory: Mapped::new(fd, true)? })
    }

    /// Writes the current state of the cell.
    pub fn tell(&mut self, cell: &Cell) {
        self.memory.full.iter().zip(cell.full).for_each(|(word, full)| word.store(full, Relaxed));
        let mut told = cell.told;
        told[0] = now();
        write(&self.memory.sequence, &self.memory.told, told);
    }

    /// The device's capacity and fair share in the array, and their age; `None` if they were not written yet.
    pub fn read(&self) -> Option<([Rate; 2], Duration)> {
        let [time, _, capacity, fair_share, ..] = read(&self.memory.sequence, &self.memory.told);
        (time != 0).then(|| ([capacity, fair_share].map(Rate::from_bps), age(time)))
    }

    /// The RTprop that a sender last reported; `None` before the first report.
    pub fn rtprop(&self) -> Option<Duration> {
        let rtprop = self.memory.rtprop.load(Relaxed);
        (rtprop != 0).then(|| Duration::from_nanos(rtprop))
    }
}

/// Two records, selected by the sequence number modulo 2.
type Places<const WORDS: usize> = [[AtomicU64; WORDS]; 2];

fn write<const WORDS: usize>(number: &AtomicU64, places: &Places<WORDS>, news: [u64; WORDS]) {
    let sequence = number.load(Relaxed).wrapping_add(1);
    // This fence orders the writes: no reader sees the new words before the words of the previous record.
    fence(Release);
    place(places, sequence).iter().zip(news).for_each(|(word, news)| word.store(news, Relaxed));
    number.store(sequence, Release);
}

/// Reads the valid record.
fn read<const WORDS: usize>(number: &AtomicU64, places: &Places<WORDS>) -> [u64; WORDS] {
    loop {
        let sequence = number.load(Acquire);
        let told = place(places, sequence).each_ref().map(|word| word.load(Relaxed));
        fence(Acquire);
        if number.load(Relaxed) == sequence {
            return told;
        }
    }
}

fn age(time: u64) -> Duration {
    Duration::from_nanos(now().saturating_sub(time))
}

/// The words of the record with this sequence number.
fn place<const WORDS: usize>(places: &Places<WORDS>, sequence: u64) -> &[AtomicU64; WORDS] {
    &places[(sequence % 2) as usize]
}

/// The clock that the programs read: `CLOCK_MONOTONIC` in nanoseconds.
pub fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
