//! One page of an array in the kernel, as numbers.
#![allow(unsafe_code)]

use std::io;
use std::ops::Deref;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::layout::{FeedWords, HostWords, SharesWords, TotalsWords};

/// No array that is mapped here is larger.
const PAGE: usize = 4096;

/// What an array consists of.
///
/// # Safety
/// It has atomic words and arrays of those, and nothing else: whatever lies in memory is a value, and may change.
pub unsafe trait Words: Sync {}

// SAFETY: so is its layout.
unsafe impl Words for FeedWords {}
// SAFETY: so is its layout.
unsafe impl Words for TotalsWords {}
// SAFETY: so is its layout.
unsafe impl Words for HostWords {}
// SAFETY: so is its layout.
unsafe impl Words for SharesWords {}

/// A mapped array that begins with `T`. Stores into a mapping for reading end the program.
pub struct Mapped<T: Words> {
    page: NonNull<T>,
}

// SAFETY: the page belongs to this value, and is accessed by atomic loads and stores only.
unsafe impl<T: Words> Send for Mapped<T> {}

impl<T: Words> Mapped<T> {
    /// Maps the array behind `fd`, for writing or only for reading.
    ///
    /// # Errors
    /// If the system refuses: it is no array that can be mapped, or not to be written.
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
