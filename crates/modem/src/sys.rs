//! System calls without a safe wrapper.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Calls a driver (ioctl). The driver reads `argument` and may overwrite it.
///
/// # Errors
/// The driver refuses.
pub(crate) fn ioctl(fd: BorrowedFd<'_>, number: u32, argument: &mut [u8]) -> io::Result<()> {
    /// Maximum length of the argument of any call used here, in any generation of the driver.
    const ROOM: usize = 64;
    let mut room = [0u8; ROOM];
    assert!(argument.len() <= ROOM, "arguments are a few bytes");
    room[..argument.len()].copy_from_slice(argument);
    // SAFETY: the descriptor is open while it is borrowed, and `room` lives until the end of the call. The driver reads
    // and writes through the pointer at most the structure that it associates with this number, and the structures of
    // `diag::char_device` have at most 28 bytes in every generation of the driver.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), number as _, room.as_mut_ptr()) };
    argument.copy_from_slice(&room[..argument.len()]);
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Calls a driver (ioctl) with a number as argument.
///
/// # Errors
/// The driver refuses.
pub(crate) fn ioctl_number(fd: BorrowedFd<'_>, number: u32, argument: u32) -> io::Result<()> {
    // SAFETY: the descriptor is open while it is borrowed. A driver that interprets this argument as a pointer finds no
    // memory of this process at such a low address, and refuses it.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), number as _, libc::c_ulong::from(argument)) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn a_file_that_is_no_driver_refuses_the_calls() {
        let file = tempfile::tempfile().unwrap();
        let refused = ioctl(file.as_fd(), 36, &mut [0]).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::ENOTTY));
        let refused = ioctl_number(file.as_fd(), 7, 2).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::ENOTTY));
    }
}
