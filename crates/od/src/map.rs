//! Mapping of the shared-memory region into this process: created by the daemon, or opened from a received descriptor.
//!
//! This module contains all unsafe code for shared memory. The code is sound because:
//!
//! - The memory cannot shrink under a mapping. (Access to a truncated mapping would kill the process by SIGBUS.) The
//!   region is a memory file sealed against shrinking, and a reader refuses to map a file without this seal.
//! - Every field is an atomic word, so a concurrent write by another process changes only values.
//! - The mapping is unmapped when its last owner is dropped, and no reference outlives the owner.
#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::Ordering;

use rustix::fs::{FallocateFlags, MemfdFlags, Mode, SealFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::error::Error;
use crate::layout::{self, Header, Row};

/// A mapped shared-memory region.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
    capacity: u32,
}

// SAFETY: the memory is not bound to a thread, and every access uses shared references to atomics.
unsafe impl Send for Mapping {}
// SAFETY: as for `Send`.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Allocates the memory of a region, all zeros. Also returns a read-only descriptor for readers.
    ///
    /// The size is fixed, and all pages are allocated immediately: a later shortage of memory cannot affect the region.
    pub fn create(capacity: u32) -> Result<(Mapping, OwnedFd), Errno> {
        let bytes = layout::board_bytes(capacity);
        let file =
            rustix::fs::memfd_create("airpace-board", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        rustix::fs::ftruncate(&file, bytes as u64)?;
        rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes as u64)?;
        let mapping = map(file.as_fd(), bytes, capacity, ProtFlags::READ | ProtFlags::WRITE)?;
        let sizes = SealFlags::SHRINK | SealFlags::GROW;
        rustix::fs::fcntl_add_seals(&file, sizes)?;
        // After this call, only the mapping above can write to the memory. Kernels before 5.1 do not support the seal
        // for this. On these kernels, the read-only descriptor and the file's mode keep programs of other users from
        // writing.
        rustix::fs::fchmod(&file, Mode::RUSR | Mode::RGRP | Mode::ROTH)?;
        match rustix::fs::fcntl_add_seals(&file, SealFlags::FUTURE_WRITE) {
            Ok(()) | Err(Errno::INVAL) => {}
            Err(other) => return Err(other),
        }
        rustix::fs::fcntl_add_seals(&file, SealFlags::SEAL)?;
        Ok((mapping, read_only(&file)?))
    }

    /// Maps a region received from another process, after checking that it is a valid region and safe to read.
    pub fn open(file: BorrowedFd<'_>) -> Result<Mapping, Error> {
        let broken = |what: String| Error::NotABoard { what };
        let seals = rustix::fs::fcntl_get_seals(file)
            .map_err(|_| broken("it is no memory that can be sealed".to_owned()))?;
        if !seals.contains(SealFlags::SHRINK) {
            return Err(broken("its memory is not sealed against shrinking".to_owned()));
        }
        let stat = rustix::fs::fstat(file).map_err(Error::system("size of the board"))?;
        let bytes = usize::try_from(stat.st_size).unwrap_or(0);
        if bytes < size_of::<Header>() {
            return Err(broken(format!("it has {bytes} bytes, less than its header")));
        }
        let mut mapping = map(file, bytes, 0, ProtFlags::READ).map_err(Error::system("mapping the board"))?;
        mapping.capacity = check(mapping.header(), bytes)?;
        Ok(mapping)
    }

    /// Header of the region.
    #[inline]
    pub fn header(&self) -> &Header {
        // SAFETY: both constructors ensure that the mapping contains a header. The header is page-aligned, lives as
        // long as `self`, and is valid for any bits.
        unsafe { self.base.cast::<Header>().as_ref() }
    }

    /// Row number `index`, whether or not the row has a name; `None` if `index` is not below the capacity.
    #[inline]
    pub fn row(&self, index: u32) -> Option<&Row> {
        // SAFETY: rows below `capacity` lie within the mapping, because `check` compared the capacity with the size.
        // The offset is a multiple of a row's alignment. The other conditions hold as for the header.
        (index < self.capacity).then(|| unsafe {
            self.base.add(size_of::<Header>() + index as usize * size_of::<Row>()).cast::<Row>().as_ref()
        })
    }

    /// Maximum number of rows.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `map` created this mapping, and no reference to it exists any more. Unmapping a whole mapping cannot
        // fail.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

fn map(file: BorrowedFd<'_>, bytes: usize, capacity: u32, access: ProtFlags) -> Result<Mapping, Errno> {
    // SAFETY: the kernel chooses an unused address, so that no existing mapping is replaced.
    let base = unsafe { mmap(null_mut(), bytes, access, MapFlags::SHARED, file, 0) }?;
    let base = NonNull::new(base.cast()).ok_or(Errno::NOMEM)?;
    Ok(Mapping { base, bytes, capacity })
}

/// Opens a read-only descriptor of the same memory.
fn read_only(file: &OwnedFd) -> Result<OwnedFd, Errno> {
    use std::os::fd::AsRawFd;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let opened = File::open(path).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    Ok(opened.into())
}

/// Checks that the header has the right magic, version and sizes; returns its capacity.
fn check(header: &Header, bytes: usize) -> Result<u32, Error> {
    let broken = |what: String| Error::NotABoard { what };
    if header.magic.load(Ordering::Relaxed) != layout::MAGIC {
        return Err(broken("it does not begin as a board does".to_owned()));
    }
    let version = header.version.load(Ordering::Relaxed);
    if version != layout::VERSION {
        return Err(Error::Version { found: version, known: layout::VERSION });
    }
    let said = [&header.header_bytes, &header.row_bytes].map(|word| word.load(Ordering::Relaxed) as usize);
    if said != [size_of::<Header>(), size_of::<Row>()] {
        return Err(broken(format!("its header and rows are of {} and {} bytes", said[0], said[1])));
    }
    let capacity = header.capacity.load(Ordering::Relaxed);
    let is_whole = capacity <= layout::MAX_ROWS
        && layout::board_bytes(capacity) == bytes
        && header.board_bytes.load(Ordering::Relaxed) == bytes as u64;
    is_whole.then_some(capacity).ok_or_else(|| broken(format!("{bytes} bytes do not hold {capacity} KPIs")))
}
