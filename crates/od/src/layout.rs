//! The positions of everything on the board.
//!
//! | bytes | what |
//! | --- | --- |
//! | 0–255 | [`Header`]: what this is, signs of life, the word that readers sleep on |
//! | 256 + 384·i | [`Row`] i: one KPI's name, unit and slot |
//!
//! All numbers are in the machine's byte order. Everything is an atomic word, because the other process may write at
//! any time. A reader checks everything before it believes it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::slot::Slot;

/// First word of every board: "airpace" and a zero, as bytes in memory.
pub const MAGIC: u64 = u64::from_ne_bytes(*b"airpace\0");
/// Number of this layout; it grows with every change.
pub const VERSION: u32 = 2;
/// Bytes for a name, including the zero at its end.
pub const NAME_BYTES: usize = 96;
/// Bytes for a unit, including the zero at its end.
pub const UNIT_BYTES: usize = 24;
/// Most KPIs that a board may have room for.
pub const MOST_ROWS: u32 = 65_536;
/// Words of a reading in its slot.
pub const READING_WORDS: usize = 7;

/// State: the daemon publishes.
pub const RUNNING: u32 = 1;
/// State: the daemon has left in good order.
pub const STOPPED: u32 = 2;

/// The beginning of the board. Parts that different threads write or read for different reasons have their own cache
/// lines.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Header {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// [`VERSION`].
    pub version: AtomicU32,
    /// Bytes of this header.
    pub header_bytes: AtomicU32,
    /// Bytes of a row.
    pub row_bytes: AtomicU32,
    /// Rows that there is room for.
    pub capacity: AtomicU32,
    /// Bytes of the whole board.
    pub board_bytes: AtomicU64,
    /// The daemon's process.
    pub pid: AtomicU32,
    reserved: AtomicU32,
    /// When the daemon made the board, in ns of [`crate::clock`].
    pub started_ns: AtomicU64,
    /// Words that change every few milliseconds.
    pub life: Life,
    /// Words that change with every batch.
    pub news: News,
    /// Words that change with subscriptions.
    pub names: Names,
}

/// Signs of life.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Life {
    /// When the daemon last gave a sign of life, in ns of [`crate::clock`].
    pub heartbeat_ns: AtomicU64,
    /// How often the port was lost or log packets were missed.
    pub gaps: AtomicU64,
    /// [`RUNNING`] or [`STOPPED`].
    pub state: AtomicU32,
}

/// The word that waiting readers sleep on.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct News {
    /// Counts batches of publications.
    pub batches: AtomicU32,
}

/// How many rows there are.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Names {
    /// Number of rows that have a name: the first ones.
    pub rows: AtomicU32,
}

/// One KPI.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Row {
    /// Its name, ended by zeros.
    pub name: Text<{ NAME_BYTES / 8 }>,
    /// Its unit, ended by zeros.
    pub unit: Text<{ UNIT_BYTES / 8 }>,
    /// How many leases there are on it.
    pub leases: AtomicU32,
    /// How many KPIs have had this row before, modulo 2¹⁶; readings carry it.
    pub generation: AtomicU32,
    /// Its readings.
    pub slot: Slot<AtomicU64, READING_WORDS>,
}

const _: () = assert!(size_of::<Header>() == 256 && size_of::<Row>() == 384);

/// All groups. This also wakes a reader when the daemon stops.
pub const ALL_GROUPS: u32 = u32::MAX;

/// The group of the KPI at a place, as a bit. A reader that waits for this KPI sleeps on [`News::batches`] under this
/// bit, and only publications for KPIs of the same group wake it.
///
/// Chosen: a modem reports a thousand things in a second. A program that waits for a KPI that comes ten times must not
/// be woken a thousand times, which costs the daemon more than the program. Futexes have 32 bits for this.
pub const fn group(place: u32) -> u32 {
    1 << (place % u32::BITS)
}

/// Bytes of a board with room for `capacity` KPIs.
pub fn board_bytes(capacity: u32) -> usize {
    size_of::<Header>() + capacity as usize * size_of::<Row>()
}

/// Text of a fixed size in shared memory, ended by zeros.
#[derive(Debug)]
#[repr(transparent)]
pub struct Text<const WORDS: usize>([AtomicU64; WORDS]);

impl<const WORDS: usize> Text<WORDS> {
    /// Whether a text can be set.
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

    /// The text, if [`Text::set`] could have set it.
    pub fn get(&self) -> Option<String> {
        let bytes = self.0.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes());
        let text: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
        let fits = text.len() < WORDS * 8 && text.iter().all(u8::is_ascii_graphic);
        fits.then(|| text.into_iter().map(char::from).collect())
    }
}
