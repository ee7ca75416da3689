//! Memory layout of the shared-memory region.
//!
//! | bytes | content |
//! | --- | --- |
//! | 0–255 | [`Header`]: magic, version, sizes, heartbeat, futex word of waiting readers |
//! | 256 + 384·i | [`Row`] i: name, unit, leases and readings of one KPI |
//!
//! All numbers are in the machine's byte order. Every field is an atomic word, because another process may write it at
//! any time. A reader validates every value before use.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::slot::Slot;

/// First word of the region: the bytes "airpace" and a zero.
pub const MAGIC: u64 = u64::from_ne_bytes(*b"airpace\0");
/// Version of this layout; every change increments it.
pub const VERSION: u32 = 2;
/// Size of a name, including the terminating zero (bytes).
pub const NAME_BYTES: usize = 96;
/// Size of a unit, including the terminating zero (bytes).
pub const UNIT_BYTES: usize = 24;
/// Maximum number of KPIs of a region.
pub const MAX_ROWS: u32 = 65_536;
/// Number of words of a reading in a buffer.
pub const READING_WORDS: usize = 7;

/// State: the daemon runs.
pub const RUNNING: u32 = 1;
/// State: the daemon has stopped in a regular way.
pub const STOPPED: u32 = 2;

/// Header of the region. Fields that are accessed by different threads or at different rates are on separate cache
/// lines.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Header {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// [`VERSION`].
    pub version: AtomicU32,
    /// Size of the header (bytes).
    pub header_bytes: AtomicU32,
    /// Size of a row (bytes).
    pub row_bytes: AtomicU32,
    /// Maximum number of rows.
    pub capacity: AtomicU32,
    /// Size of the whole region (bytes).
    pub board_bytes: AtomicU64,
    /// Process ID of the daemon.
    pub pid: AtomicU32,
    reserved: AtomicU32,
    /// Time at which the daemon created the region, in ns of [`crate::clock`].
    pub started_ns: AtomicU64,
    /// Heartbeat and state: words that change every few milliseconds.
    pub life: Life,
    /// Futex word: changes with every batch of publications.
    pub news: News,
    /// Number of rows: changes with subscriptions.
    pub names: Names,
}

/// Heartbeat and state of the daemon.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Life {
    /// Time of the last heartbeat, in ns of [`crate::clock`].
    pub heartbeat_ns: AtomicU64,
    /// Number of gaps: losses of the port and of log packets.
    pub gaps: AtomicU64,
    /// [`RUNNING`] or [`STOPPED`].
    pub state: AtomicU32,
}

/// Futex word of waiting readers.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct News {
    /// Counter of publication batches.
    pub batches: AtomicU32,
}

/// Number of rows in use.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Names {
    /// Number of rows that have a name. These rows come first.
    pub rows: AtomicU32,
}

/// Row of one KPI.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Row {
    /// Name of the KPI, padded with zeros.
    pub name: Text<{ NAME_BYTES / 8 }>,
    /// Unit of the KPI, padded with zeros.
    pub unit: Text<{ UNIT_BYTES / 8 }>,
    /// Number of leases on the KPI.
    pub leases: AtomicU32,
    /// Number of KPIs that used this row before, modulo 2¹⁶. Each reading carries the generation of its KPI.
    pub generation: AtomicU32,
    /// Triple buffer with the latest reading.
    pub slot: Slot<AtomicU64, READING_WORDS>,
}

const _: () = assert!(size_of::<Header>() == 256 && size_of::<Row>() == 384);

/// Bit mask of all groups. It wakes every reader when the daemon stops.
pub const ALL_GROUPS: u32 = u32::MAX;

/// Group of the KPI in row `place`, as a bit. A reader that waits for this KPI sleeps on [`News::batches`] with this
/// bit. Only publications for KPIs of the same group wake the reader.
///
/// Chosen: a modem reports about a thousand values per second. A program that waits for a KPI with ten readings per
/// second must not be woken a thousand times: each wake-up costs the daemon more time than the program. Futexes support
/// 32 bits for this purpose.
pub const fn group(place: u32) -> u32 {
    1 << (place % u32::BITS)
}

/// Size of a region with `capacity` rows (bytes).
pub fn board_bytes(capacity: u32) -> usize {
    size_of::<Header>() + capacity as usize * size_of::<Row>()
}

/// Text of fixed size in shared memory, padded with zeros.
#[derive(Debug)]
#[repr(transparent)]
pub struct Text<const WORDS: usize>([AtomicU64; WORDS]);

impl<const WORDS: usize> Text<WORDS> {
    /// Whether the text is short enough and consists of visible ASCII.
    pub fn fits(text: &str) -> bool {
        text.len() < WORDS * 8 && text.bytes().all(|byte| byte.is_ascii_graphic())
    }

    /// Sets the text. Returns false and does nothing if the text is too long or is not visible ASCII.
    pub fn set(&self, text: &str) -> bool {
        let fits = Self::fits(text);
        if fits {
            let mut bytes = text.bytes().chain(std::iter::repeat(0));
            for word in &self.0 {
                let word_bytes = std::array::from_fn(|_| bytes.next().unwrap_or(0));
                word.store(u64::from_ne_bytes(word_bytes), Ordering::Relaxed);
            }
        }
        fits
    }

    /// Returns the text; `None` if the text is too long or is not visible ASCII.
    pub fn get(&self) -> Option<String> {
        let bytes = self.0.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes());
        let text: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
        let fits = text.len() < WORDS * 8 && text.iter().all(u8::is_ascii_graphic);
        fits.then(|| text.into_iter().map(char::from).collect())
    }
}
