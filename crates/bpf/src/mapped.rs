//! One page of an array in the kernel, as numbers.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// No array that is mapped here is larger.
const PAGE: usize = 4096;

/// The first `N` words of a mapped array.
pub struct Mapped<const N: usize> {
    page: NonNull<[AtomicU64; N]>,
}

// SAFETY: the page belongs to this value, and is accessed by atomic loads and stores only.
unsafe impl<const N: usize> Send for Mapped<N> {}

impl<const N: usize> Mapped<N> {
    /// Maps the array behind `fd`, for writing or only for reading.
    ///
    /// # Errors
    /// If the system refuses: it is no array that can be mapped, or not to be written.
    pub fn new(fd: BorrowedFd<'_>, writes: bool) -> io::Result<Mapped<N>> {
        const { assert!(N * 8 <= PAGE) };
        let access = if writes { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        // SAFETY: a new mapping at an address that the system chooses. An array's memory is whole pages.
        let page = unsafe { mmap(std::ptr::null_mut(), PAGE, access, MapFlags::SHARED, fd, 0) }?;
        let page = NonNull::new(page.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapped { page })
    }

    /// The words. Stores into a mapping for reading end the program.
    pub fn words(&self) -> &[AtomicU64; N] {
        // SAFETY: the page is mapped as long as this value lives, is aligned, and the kernel writes whole words.
        unsafe { self.page.as_ref() }
    }
}

impl<const N: usize> Drop for Mapped<N> {
    fn drop(&mut self) {
        // SAFETY: the page was mapped in `new`, and no reference to it outlives this value.
        let _ = unsafe { munmap(self.page.as_ptr().cast(), PAGE) };
    }
}
