//! Calls of the operating system for which no safe wrapper exists.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Calls the driver, which reads `argument` and may overwrite it.
///
/// # Errors
/// If the driver refuses.
pub(crate) fn ioctl(fd: BorrowedFd<'_>, number: u32, argument: &mut [u8]) -> io::Result<()> {
    /// The longest argument of any call used here, in any generation of the driver.
    const ROOM: usize = 64;
    let mut room = [0u8; ROOM];
    assert!(argument.len() <= ROOM, "arguments are a few bytes");
    room[..argument.len()].copy_from_slice(argument);
    // SAFETY: the descriptor is open as long as it is borrowed, and `room` lives to the end of the call. The driver
    // reads and writes through the pointer at most the structure that it knows by this number, and the structures of
    // `diag::char_device` have at most 28 bytes in every generation of the driver.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), number as _, room.as_mut_ptr()) };
    argument.copy_from_slice(&room[..argument.len()]);
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Calls the driver with a number as argument.
///
/// # Errors
/// If the driver refuses.
pub(crate) fn ioctl_number(fd: BorrowedFd<'_>, number: u32, argument: u32) -> io::Result<()> {
    // SAFETY: the descriptor is open as long as it is borrowed. A driver that takes this argument for a pointer finds
    // no memory of ours at such a small address, and refuses it.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), number as _, libc::c_ulong::from(argument)) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes the calling thread run before all threads without real-time priority.
///
/// # Errors
/// If the process is not allowed to: it needs CAP_SYS_NICE or a limit `rtprio`.
pub(crate) fn run_first(priority: i32) -> io::Result<()> {
    // SAFETY: the structure is plain numbers, for which zero is valid, and lives to the end of the call; 0 is the
    // calling thread. SCHED_RESET_ON_FORK keeps children from inheriting the priority.
    let result = unsafe {
        let mut parameters: libc::sched_param = std::mem::zeroed();
        parameters.sched_priority = priority;
        libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &parameters)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Asks for short turns of the processor for the calling thread: it then runs soon after it wakes up, also where others
/// compute, and gets no more time than without. Everybody may ask. Linux knows this from 6.12 on; before, it changes nothing.
///
/// Source: Linux include/uapi/linux/sched/types.h (struct sched_attr)
///
/// # Errors
/// If the kernel refuses, as in a sandbox.
pub(crate) fn take_short_turns() -> io::Result<()> {
    /// The first version of the kernel's structure.
    #[repr(C)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime_ns: u64,
        deadline_ns: u64,
        period_ns: u64,
    }
    // Chosen: the shortest that the kernel gives.
    const SHORTEST_NS: u64 = 100_000;
    // SAFETY: the call takes no pointer; 0 is the calling thread.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: libc::SCHED_OTHER as u32,
        flags: 0,
        nice,
        priority: 0,
        runtime_ns: SHORTEST_NS,
        deadline_ns: 0,
        period_ns: 0,
    };
    // SAFETY: the structure lives to the end of the call and has the size that it names; 0 is the calling thread.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
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
