//! A board in this process's memory: created by the daemon, or received from it.
//!
//! All unsafe code for shared memory is here. It is sound because:
//!
//! - The memory cannot shrink under a mapping, which would kill the process that touches it (SIGBUS): the board is a
//!   memory file sealed against shrinking, and a reader maps nothing without that seal.
//! - Everything in it is an atomic word, so whatever another process writes there, at any time, is just a value.
//! - The mapping ends when its last owner is dropped, and references never outlive that.
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

/// A mapped board.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
    capacity: u32,
}

// SAFETY: the memory belongs to no thread, and everything in it is reached by shared references to atomics.
unsafe impl Send for Mapping {}
// SAFETY: as for `Send`.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Makes a board's memory, all zeros, and a descriptor to hand out that only allows reading.
    ///
    /// Its size is fixed, and all of it is allocated at the start: no page is missing when memory is short later.
    pub fn create(capacity: u32) -> Result<(Mapping, OwnedFd), Errno> {
        let bytes = layout::board_bytes(capacity);
        let file =
            rustix::fs::memfd_create("airpace-board", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        rustix::fs::ftruncate(&file, bytes as u64)?;
        rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes as u64)?;
        let mapping = map(file.as_fd(), bytes, capacity, ProtFlags::READ | ProtFlags::WRITE)?;
        let sizes = SealFlags::SHRINK | SealFlags::GROW;
        rustix::fs::fcntl_add_seals(&file, sizes)?;
        // From here on, only the mapping above can write. Kernels before 5.1 do not know this seal; there, a read-only
        // descriptor and the file's mode keep programs of other users from writing.
        rustix::fs::fchmod(&file, Mode::RUSR | Mode::RGRP | Mode::ROTH)?;
        match rustix::fs::fcntl_add_seals(&file, SealFlags::FUTURE_WRITE) {
            Ok(()) | Err(Errno::INVAL) => {}
            Err(other) => return Err(other),
        }
        rustix::fs::fcntl_add_seals(&file, SealFlags::SEAL)?;
        Ok((mapping, read_only(&file)?))
    }

    /// Maps a board that another process handed out, after checking that it is a board and safe to read.
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

    /// The board's beginning.
    #[inline]
    pub fn header(&self) -> &Header {
        // SAFETY: both ways to make a mapping ensure that it holds a header. The header is page-aligned, lives as long
        // as `self`, and is valid for any bits.
        unsafe { self.base.cast::<Header>().as_ref() }
    }

    /// A row, with a name or without.
    #[inline]
    pub fn row(&self, index: u32) -> Option<&Row> {
        // SAFETY: rows up to `capacity` lie within the mapping, because its size was checked against it. The offset is
        // a multiple of a row's alignment. The rest is as for the header.
        (index < self.capacity).then(|| unsafe {
            self.base.add(size_of::<Header>() + index as usize * size_of::<Row>()).cast::<Row>().as_ref()
        })
    }

    /// Rows that there is room for.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `map` made this mapping, and nothing borrows from it any more. Unmapping a whole mapping cannot fail.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

fn map(file: BorrowedFd<'_>, bytes: usize, capacity: u32, access: ProtFlags) -> Result<Mapping, Errno> {
    // SAFETY: the kernel chooses an unused address, so that no existing mapping is replaced.
    let base = unsafe { mmap(null_mut(), bytes, access, MapFlags::SHARED, file, 0) }?;
    let base = NonNull::new(base.cast()).ok_or(Errno::NOMEM)?;
    Ok(Mapping { base, bytes, capacity })
}

/// The same memory by a descriptor that does not allow writing.
fn read_only(file: &OwnedFd) -> Result<OwnedFd, Errno> {
    use std::os::fd::AsRawFd;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let opened = File::open(path).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    Ok(opened.into())
}

/// Whether a header is ours and matches the size; if so, returns its capacity.
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
    let is_whole = capacity <= layout::MOST_ROWS
        && layout::board_bytes(capacity) == bytes
        && header.board_bytes.load(Ordering::Relaxed) == bytes as u64;
    is_whole.then_some(capacity).ok_or_else(|| broken(format!("{bytes} bytes do not hold {capacity} KPIs")))
}
