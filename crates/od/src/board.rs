//! The daemon's side of the board: adds KPIs, publishes readings, gives signs of life.
//!
//! The two halves belong to the daemon's two threads: [`Board`] to the thread that talks with programs, [`Publisher`]
//! to the thread that listens to the modem. Neither ever waits for the other, nor for any reader.
//!
//! Source: BISCAY §4 (a thread for data, a thread for control)

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::io::Errno;
use rustix::thread::futex;

use crate::clock::now_ns;
use crate::layout::{self, NAME_BYTES, READING_WORDS, RUNNING, STOPPED, Text, UNIT_BYTES};
use crate::map::Mapping;

/// The place of a KPI on the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotId(pub u32);

/// What the daemon itself contributes to a reading; the board adds the rest of a [`crate::Reading`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Entry {
    /// The KPI's value, in its unit.
    pub value: f64,
    /// When the modem measured it, in ns since 1980-01-06; 0 if the modem did not say.
    pub modem_ns: u64,
    /// When the packet that holds it had arrived completely, in ns of [`crate::clock`].
    pub arrival_ns: u64,
    /// Its subframe, 10·SFN + subframe, if the packet tells.
    pub subframe: Option<u16>,
    /// Index of the carrier, 0 the primary cell's.
    pub carrier: u8,
    /// The phone's radio (SIM), from 1.
    pub radio: u8,
}

/// The control thread's half. Dropping it tells readers that the daemon has stopped.
#[derive(Debug)]
pub struct Board {
    mapping: Arc<Mapping>,
    for_readers: OwnedFd,
    /// Places that are not needed, the longest unneeded first.
    free: VecDeque<SlotId>,
}

impl Board {
    /// Makes a board with room for `capacity` KPIs; this number is final.
    ///
    /// # Errors
    /// `EINVAL` if `capacity` is 0 or more than [`layout::MOST_ROWS`]; `ENOMEM` and other errors of the
    /// system.
    pub fn create(capacity: u32) -> Result<(Board, Publisher), Errno> {
        if !(1..=layout::MOST_ROWS).contains(&capacity) {
            return Err(Errno::INVAL);
        }
        let (mapping, for_readers) = Mapping::create(capacity)?;
        let header = mapping.header();
        let now = now_ns();
        header.version.store(layout::VERSION, Ordering::Relaxed);
        header.header_bytes.store(size_of::<layout::Header>() as u32, Ordering::Relaxed);
        header.row_bytes.store(size_of::<layout::Row>() as u32, Ordering::Relaxed);
        header.capacity.store(capacity, Ordering::Relaxed);
        header.board_bytes.store(layout::board_bytes(capacity) as u64, Ordering::Relaxed);
        header.pid.store(rustix::process::getpid().as_raw_nonzero().get() as u32, Ordering::Relaxed);
        header.started_ns.store(now, Ordering::Relaxed);
        header.life.heartbeat_ns.store(now, Ordering::Relaxed);
        header.life.state.store(RUNNING, Ordering::Relaxed);
        header.magic.store(layout::MAGIC, Ordering::Release);
        let mapping = Arc::new(mapping);
        let publisher = Publisher {
            mapping: mapping.clone(),
            slots: vec![Published::default(); capacity as usize],
            fresh: 0,
        };
        Ok((Board { mapping, for_readers, free: VecDeque::new() }, publisher))
    }

    /// How many KPIs there is room for.
    pub fn capacity(&self) -> u32 {
        self.mapping.capacity()
    }

    /// Gives a KPI a place of its own, until [`Board::free`]. The same name gets the same place.
    ///
    /// Once all places were given, the place that has been unneeded for longest is given again, in its next generation.
    /// The publisher has to be told by [`Publisher::assign`] before it publishes there.
    ///
    /// # Errors
    /// `EINVAL` if name or unit is too long or is not visible ASCII, or if the name is empty; `ENOSPC` if all places
    /// are needed.
    pub fn add(&mut self, name: &str, unit: &str) -> Result<SlotId, Errno> {
        let rows = self.mapping.header().names.rows.load(Ordering::Relaxed);
        if let Some(known) = self.find(name) {
            self.free.retain(|free| *free != known);
            return Ok(known);
        }
        if name.is_empty()
            || !Text::<{ NAME_BYTES / 8 }>::fits(name)
            || !Text::<{ UNIT_BYTES / 8 }>::fits(unit)
        {
            return Err(Errno::INVAL);
        }
        let at =
            if rows < self.mapping.capacity() { rows } else { self.free.pop_front().ok_or(Errno::NOSPC)?.0 };
        let row = self.mapping.row(at).ok_or(Errno::NOSPC)?;
        if at < rows {
            // Before the name: a program with a lease on the earlier KPI must not take the new name for it.
            row.generation.store(u32::from(self.generation(SlotId(at)).wrapping_add(1)), Ordering::Release);
        }
        row.name.set(name);
        row.unit.set(unit);
        self.mapping.header().names.rows.store(rows.max(at + 1), Ordering::Release);
        Ok(SlotId(at))
    }

    /// Marks a place as not needed. Another KPI may get it once no unused place is left; until then nothing changes.
    pub fn free(&mut self, slot: SlotId) {
        if self.name(slot).is_some() && !self.free.contains(&slot) {
            self.free.push_back(slot);
        }
    }

    /// How many KPIs had this place before the present one, modulo 2¹⁶.
    pub fn generation(&self, slot: SlotId) -> u16 {
        self.mapping.row(slot.0).map_or(0, |row| row.generation.load(Ordering::Relaxed) as u16)
    }

    /// The place of a KPI that was added.
    pub fn find(&self, name: &str) -> Option<SlotId> {
        let rows = self.mapping.header().names.rows.load(Ordering::Relaxed);
        (0..rows).find(|at| self.name(SlotId(*at)).is_some_and(|found| found == name)).map(SlotId)
    }

    /// The name of the KPI at a place.
    pub fn name(&self, slot: SlotId) -> Option<String> {
        self.mapping.row(slot.0)?.name.get().filter(|name| !name.is_empty())
    }

    /// Sets the number of leases on a KPI.
    pub fn set_leases(&self, slot: SlotId, leases: u32) {
        if let Some(row) = self.mapping.row(slot.0) {
            row.leases.store(leases, Ordering::Relaxed);
        }
    }

    /// How many leases there are on a KPI.
    pub fn leases(&self, slot: SlotId) -> u32 {
        self.mapping.row(slot.0).map_or(0, |row| row.leases.load(Ordering::Relaxed))
    }

    /// Gives a sign of life. Readers take a daemon for dead after 100 ms without one.
    pub fn beat(&self) {
        self.mapping.header().life.heartbeat_ns.store(now_ns(), Ordering::Relaxed);
    }

    /// Marks a gap: the port was lost, or packets were. For every KPI that has had a reading, the next reading tells
    /// it.
    pub fn gap(&self) {
        self.mapping.header().life.gaps.fetch_add(1, Ordering::Relaxed);
    }

    /// The board for readers: this descriptor only allows reading.
    pub fn for_readers(&self) -> BorrowedFd<'_> {
        self.for_readers.as_fd()
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        self.mapping.header().life.state.store(STOPPED, Ordering::Release);
        wake(&self.mapping, layout::ALL_GROUPS);
    }
}

/// The data thread's half: the only one that publishes.
#[derive(Debug)]
pub struct Publisher {
    mapping: Arc<Mapping>,
    slots: Vec<Published>,
    /// Groups of KPIs with a reading since readers were last woken; see [`layout::group`].
    fresh: u32,
}

/// What was published at a place.
#[derive(Clone, Copy, Debug, Default)]
struct Published {
    /// Number of the slot's last publication, for any KPI.
    number: u64,
    /// Number of the KPI's last reading.
    sequence: u64,
    gaps: u64,
    generation: u16,
}

impl Publisher {
    /// Sets the generation of a place that is published from now on; returns whether it differs from the one before.
    ///
    /// The generation comes to this thread with the order to publish. It is not looked up on the board, because
    /// readings of the earlier KPI that this thread still publishes must not pass for readings of the next one.
    ///
    /// # Panics
    /// If the place belongs to another board and lies beyond the end of this one.
    pub fn assign(&mut self, slot: SlotId, generation: u16) -> bool {
        let published = &mut self.slots[slot.0 as usize];
        let is_other = published.generation != generation;
        if is_other {
            *published = Published { number: published.number, generation, ..Published::default() };
        }
        is_other
    }

    /// Publishes a reading and returns its sequence number, from 1. Wait-free, and no system call.
    ///
    /// # Panics
    /// If the place belongs to another board and lies beyond the end of this one.
    #[inline]
    pub fn publish(&mut self, slot: SlotId, entry: &Entry) -> u64 {
        let gaps = self.mapping.header().life.gaps.load(Ordering::Relaxed);
        let published = &mut self.slots[slot.0 as usize];
        // There is no gap before the first reading.
        let is_after_gap = published.sequence > 0 && published.gaps != gaps;
        let Published { number, sequence, generation, .. } = *published;
        *published = Published { number: number + 1, sequence: sequence + 1, gaps, generation };
        let words = words_of(entry, now_ns(), is_after_gap, published);
        let row = self.mapping.row(slot.0).expect("there are as many rows as places");
        row.slot.publish(published.number, &words);
        // Readers without a lease on the KPI do not wait for it.
        if row.leases.load(Ordering::Relaxed) > 0 {
            self.fresh |= layout::group(slot.0);
        }
        published.sequence
    }

    /// Marks a gap, as [`Board::gap`] does.
    pub fn gap(&self) {
        self.mapping.header().life.gaps.fetch_add(1, Ordering::Relaxed);
    }

    /// Wakes the readers that wait for readings published since the last call: once after a batch of readings. One
    /// system call, or none if there is no lease on any of them.
    pub fn wake(&mut self) {
        wake(&self.mapping, std::mem::take(&mut self.fresh));
    }
}

/// Wakes the readers that wait for any of these groups.
fn wake(mapping: &Mapping, groups: u32) {
    let word = &mapping.header().news.batches;
    word.fetch_add(1, Ordering::Release);
    if let Some(groups) = NonZeroU32::new(groups) {
        // Cannot fail on own memory. If it did, readers would still wake up for the next heartbeat.
        let _ = futex::wake_bitset(word, futex::Flags::empty(), i32::MAX as u32, groups);
    }
}

/// Bit in the last word: a gap lies before this reading.
pub(crate) const AFTER_GAP: u64 = 1;
/// Bit in the last word: the subframe is known.
pub(crate) const HAS_SUBFRAME: u64 = 2;
/// Where the row's generation begins in the last word.
pub(crate) const GENERATION_BIT: u32 = 48;

/// A reading as it lies in a buffer: value, modem time, arrival, publication, then flags (bits 0–15), carrier
/// (16–23), radio (24–31), subframe (32–47), generation of the row (48–63), then gaps, then the sequence number.
fn words_of(
    entry: &Entry,
    published_ns: u64,
    is_after_gap: bool,
    published: &Published,
) -> [u64; READING_WORDS] {
    let mut last = u64::from(entry.carrier) << 16
        | u64::from(entry.radio) << 24
        | u64::from(published.generation) << GENERATION_BIT;
    if is_after_gap {
        last |= AFTER_GAP;
    }
    if let Some(subframe) = entry.subframe {
        last |= HAS_SUBFRAME | u64::from(subframe) << 32;
    }
    [
        entry.value.to_bits(),
        entry.modem_ns,
        entry.arrival_ns,
        published_ns,
        last,
        published.gaps,
        published.sequence,
    ]
}
