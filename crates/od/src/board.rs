//! Daemon side of the shared-memory region: adds KPIs, publishes readings, writes the heartbeat.
//!
//! The daemon uses two threads. [`Board`] belongs to the control thread, which answers programs. [`Publisher`] belongs
//! to the data thread, which reads the modem's log packets. Neither thread ever waits for the other thread or for a
//! reader.
//!
//! Source: BISCAY §4 (one thread for data and one thread for control)

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

/// Index of a KPI's row in the shared-memory region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotId(pub u32);

/// The part of a [`crate::Reading`] that the daemon sets. [`Publisher::publish`] adds the remaining fields.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Entry {
    /// The KPI's value, in its unit.
    pub value: f64,
    /// Time of the measurement by the modem's clock, in ns since 1980-01-06; 0 if the packet has no timestamp.
    pub modem_ns: u64,
    /// Time at which the packet with this value was received completely, in ns of [`crate::clock`].
    pub arrival_ns: u64,
    /// Subframe of the measurement, 10·SFN + subframe; `None` if the packet does not contain it.
    pub subframe: Option<u16>,
    /// Index of the carrier; 0 is the primary cell.
    pub carrier: u8,
    /// Index of the phone's radio (SIM), from 1.
    pub radio: u8,
}

/// The control thread's handle of the shared-memory region. Dropping the handle marks the daemon as stopped and wakes
/// all waiting readers.
#[derive(Debug)]
pub struct Board {
    mapping: Arc<Mapping>,
    for_readers: OwnedFd,
    /// Rows without a lease, in the order in which they were freed.
    free: VecDeque<SlotId>,
}

impl Board {
    /// Creates a shared-memory region with rows for `capacity` KPIs. The capacity cannot change later.
    ///
    /// # Errors
    /// `EINVAL` if `capacity` is 0 or more than [`layout::MAX_ROWS`]; `ENOMEM` and other errors of system calls.
    pub fn create(capacity: u32) -> Result<(Board, Publisher), Errno> {
        if !(1..=layout::MAX_ROWS).contains(&capacity) {
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

    /// Maximum number of KPIs.
    pub fn capacity(&self) -> u32 {
        self.mapping.capacity()
    }

    /// Assigns a row to a KPI, until [`Board::free`]. A KPI that already has a row keeps this row.
    ///
    /// Once every row has been assigned, the row that was freed first is assigned to the new KPI, with the next
    /// generation number. Call [`Publisher::assign`] before the publisher publishes to this row.
    ///
    /// # Errors
    /// `EINVAL` if name or unit is too long or is not visible ASCII, or if the name is empty; `ENOSPC` if no row is
    /// free.
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
            // Change the generation before the name: a program with a lease on the earlier KPI must not accept the new
            // name.
            row.generation.store(u32::from(self.generation(SlotId(at)).wrapping_add(1)), Ordering::Release);
        }
        row.name.set(name);
        row.unit.set(unit);
        self.mapping.header().names.rows.store(rows.max(at + 1), Ordering::Release);
        Ok(SlotId(at))
    }

    /// Marks a row as free. The row keeps its KPI until all rows have been assigned and another KPI needs this row.
    pub fn free(&mut self, slot: SlotId) {
        if self.name(slot).is_some() && !self.free.contains(&slot) {
            self.free.push_back(slot);
        }
    }

    /// Generation of a row: number of KPIs that used this row before the present KPI, modulo 2¹⁶.
    pub fn generation(&self, slot: SlotId) -> u16 {
        self.mapping.row(slot.0).map_or(0, |row| row.generation.load(Ordering::Relaxed) as u16)
    }

    /// Row of a KPI that was added.
    pub fn find(&self, name: &str) -> Option<SlotId> {
        let rows = self.mapping.header().names.rows.load(Ordering::Relaxed);
        (0..rows).find(|at| self.name(SlotId(*at)).is_some_and(|found| found == name)).map(SlotId)
    }

    /// Name of the KPI in this row.
    pub fn name(&self, slot: SlotId) -> Option<String> {
        self.mapping.row(slot.0)?.name.get().filter(|name| !name.is_empty())
    }

    /// Sets the number of leases (subscriptions) on a KPI.
    pub fn set_leases(&self, slot: SlotId, leases: u32) {
        if let Some(row) = self.mapping.row(slot.0) {
            row.leases.store(leases, Ordering::Relaxed);
        }
    }

    /// Number of leases on a KPI.
    pub fn leases(&self, slot: SlotId) -> u32 {
        self.mapping.row(slot.0).map_or(0, |row| row.leases.load(Ordering::Relaxed))
    }

    /// Writes the heartbeat. Readers treat a daemon as dead after 100 ms without a heartbeat.
    pub fn beat(&self) {
        self.mapping.header().life.heartbeat_ns.store(now_ns(), Ordering::Relaxed);
    }

    /// Marks a gap: the connection to the modem's port was lost, or packets were lost. For every KPI that has had a
    /// reading, the next reading carries the gap flag.
    pub fn gap(&self) {
        self.mapping.header().life.gaps.fetch_add(1, Ordering::Relaxed);
    }

    /// Descriptor of the shared-memory region for readers; the descriptor allows only reading.
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

/// The data thread's handle of the shared-memory region: the only writer of readings.
#[derive(Debug)]
pub struct Publisher {
    mapping: Arc<Mapping>,
    slots: Vec<Published>,
    /// Groups of KPIs with new readings since readers were last woken; see [`layout::group`].
    fresh: u32,
}

/// Publication state of a row.
#[derive(Clone, Copy, Debug, Default)]
struct Published {
    /// Number of the last publication in this row, over all KPIs that used the row.
    number: u64,
    /// Sequence number of the KPI's last reading.
    sequence: u64,
    gaps: u64,
    generation: u16,
}

impl Publisher {
    /// Sets the generation of a row for all later publications. Returns whether the generation differs from the
    /// previous generation.
    ///
    /// The control thread passes the generation together with the order to publish. The publisher does not read the
    /// generation from the shared-memory region: it may still publish readings of the earlier KPI, and these must not
    /// carry the next KPI's generation.
    ///
    /// # Panics
    /// If the row belongs to another region and its index exceeds the capacity of this region.
    pub fn assign(&mut self, slot: SlotId, generation: u16) -> bool {
        let published = &mut self.slots[slot.0 as usize];
        let is_other = published.generation != generation;
        if is_other {
            *published = Published { number: published.number, generation, ..Published::default() };
        }
        is_other
    }

    /// Publishes a reading and returns its sequence number, counted from 1. The call is wait-free and makes no system
    /// call.
    ///
    /// # Panics
    /// If the row belongs to another region and its index exceeds the capacity of this region.
    #[inline]
    pub fn publish(&mut self, slot: SlotId, entry: &Entry) -> u64 {
        let gaps = self.mapping.header().life.gaps.load(Ordering::Relaxed);
        let published = &mut self.slots[slot.0 as usize];
        // The first reading never carries the gap flag.
        let is_after_gap = published.sequence > 0 && published.gaps != gaps;
        let Published { number, sequence, generation, .. } = *published;
        *published = Published { number: number + 1, sequence: sequence + 1, gaps, generation };
        let words = words_of(entry, now_ns(), is_after_gap, published);
        let row = self.mapping.row(slot.0).expect("there are as many rows as places");
        row.slot.publish(published.number, &words);
        // Only readers with a lease on the KPI wait for its readings.
        if row.leases.load(Ordering::Relaxed) > 0 {
            self.fresh |= layout::group(slot.0);
        }
        published.sequence
    }

    /// Marks a gap, as [`Board::gap`] does.
    pub fn gap(&self) {
        self.mapping.header().life.gaps.fetch_add(1, Ordering::Relaxed);
    }

    /// Wakes the readers that wait for readings published since the last call. Call it once after a batch of readings.
    /// The call makes one system call, or none if no program has a lease on any of the published KPIs.
    pub fn wake(&mut self) {
        wake(&self.mapping, std::mem::take(&mut self.fresh));
    }
}

/// Wakes the readers that wait for any of these groups.
fn wake(mapping: &Mapping, groups: u32) {
    let word = &mapping.header().news.batches;
    word.fetch_add(1, Ordering::Release);
    if let Some(groups) = NonZeroU32::new(groups) {
        // The system call cannot fail on this process's own memory. Even after a failure, readers would wake up: they
        // sleep at most `GIVE_UP_AFTER`.
        let _ = futex::wake_bitset(word, futex::Flags::empty(), i32::MAX as u32, groups);
    }
}

/// Bit in the flags word: a gap precedes this reading.
pub(crate) const AFTER_GAP: u64 = 1;
/// Bit in the flags word: the subframe is known.
pub(crate) const HAS_SUBFRAME: u64 = 2;
/// Position of the generation's lowest bit in the flags word.
pub(crate) const GENERATION_BIT: u32 = 48;

/// Encodes a reading as the words of a buffer, in this order: value, modem time, arrival time, publication time, flags
/// word, gaps, sequence number. Flags word: flags (bits 0–15), carrier (16–23), radio (24–31), subframe (32–47),
/// generation of the row (48–63).
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
