//! One memory page of an array in the kernel, as atomic words.
#![allow(unsafe_code)]

use std::io;
use std::ops::Deref;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::layout::{CellWords, FeedWords, HostWords, SharesWords, TotalsWords};

/// Size of a mapping in bytes. No array is larger.
const PAGE: usize = 4096;

/// Layout of an array.
///
/// # Safety
/// The type consists only of atomic words and arrays of them: any content of the memory is a valid value, and may change.
pub unsafe trait Words: Sync {}

// SAFETY: the type consists only of atomic words and arrays of them.
unsafe impl Words for FeedWords {}
// SAFETY: the type consists only of atomic words and arrays of them.
unsafe impl Words for CellWords {}
// SAFETY: the type consists only of atomic words and arrays of them.
unsafe impl Words for TotalsWords {}
// SAFETY: the type consists only of atomic words and arrays of them.
unsafe impl Words for HostWords {}
// SAFETY: the type consists only of atomic words and arrays of them.
unsafe impl Words for SharesWords {}

/// A mapped array that starts with `T`. If the mapping is read-only, a store terminates the process.
pub struct Mapped<T: Words> {
    page: NonNull<T>,
}

// SAFETY: the page belongs to this value, and is accessed by atomic loads and stores only.
unsafe impl<T: Words> Send for Mapped<T> {}

impl<T: Words> Mapped<T> {
    /// Maps the array behind `fd`, for writing or only for reading.
    ///
    /// # Errors
    /// The operating system refuses: the descriptor is not an array that can be mapped, or the array is read-only.
    pub fn new(fd: BorrowedFd<'_>, writes: bool) -> io::Result<Mapped<T>> {
        const { assert!(size_of::<T>() <= PAGE && align_of::<T>() <= 8) };
        let access = if writes { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        // SAFETY: a new mapping at an address that the system chooses. An array's memory is whole pages.
        let page = unsafe { mmap(std::ptr::null_mut(), PAGE, access, MapFlags::SHARED, fd, 0) }?;
        let page = NonNull::new(page.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapped { page })
    }
}

impl<T: Words> Deref for Mapped<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the page is mapped as long as this value lives, is aligned, and the kernel writes whole words.
        unsafe { self.page.as_ref() }
    }
}

impl<T: Words> Drop for Mapped<T> {
    fn drop(&mut self) {
        // SAFETY: the page was mapped in `new`, and no reference to it outlives this value.
        let _ = unsafe { munmap(self.page.as_ptr().cast(), PAGE) };
    }
}
