//! Scheduling priority of the calling thread, and locking of the process's memory in RAM.

#![allow(unsafe_code)]

use std::io;
use std::num::NonZeroU64;

/// Gives the calling thread a real-time priority: the thread then runs before all threads without real-time priority.
/// Threads and processes that it starts do not inherit the priority.
///
/// # Errors
/// The process lacks the permission: the capability CAP_SYS_NICE, or a limit `rtprio`.
pub fn set_realtime(priority: i32) -> io::Result<()> {
    // SAFETY: the structure consists of plain numbers, for which zero is valid, and lives until the end of the call;
    // the number 0 means the calling thread.
    let result = unsafe {
        let mut parameters: libc::sched_param = std::mem::zeroed();
        parameters.sched_priority = priority;
        libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &parameters)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Requests short time slices for the calling thread: the thread then runs soon after it wakes up, even while other
/// threads compute, but gets no additional processor time. No permission is needed. Linux before 6.12 ignores the
/// request.
///
/// Source: Linux include/uapi/linux/sched/types.h (struct sched_attr)
///
/// # Errors
/// The kernel refuses, as in a sandbox.
pub fn request_short_slices() -> io::Result<()> {
    /// First version of the kernel's structure `sched_attr`.
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
    // Chosen: the minimum that the kernel allows.
    const SLICE_NS: u64 = 100_000;
    // SAFETY: the call takes no pointer; the number 0 means the calling thread.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: libc::SCHED_OTHER as u32,
        flags: 0,
        nice,
        priority: 0,
        runtime_ns: SLICE_NS,
        deadline_ns: 0,
        period_ns: 0,
    };
    // SAFETY: the structure lives until the end of the call, and its `size` field is correct; the number 0 means the
    // calling thread.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes timers of the calling thread fire at their instant. By default, the kernel delays timers of threads without
/// real-time priority by up to 50 µs, so that the processor wakes up less often.
///
/// Source: man-pages PR_SET_TIMERSLACK(2const)
pub fn set_precise_timers() {
    // If the kernel refuses, timers keep their default delay.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// Locks the present and the future memory of the process in RAM.
///
/// # Errors
/// The process lacks the permission to lock `bytes`: the capability CAP_IPC_LOCK, or a limit `memlock`.
pub fn lock_memory(bytes: usize) -> io::Result<()> {
    use rustix::mm::MlockAllFlags as Flags;
    rustix::mm::mlockall(Flags::CURRENT | Flags::FUTURE | Flags::ONFAULT)?;
    // Under a memory limit, the kernel would refuse later allocations, and the program would abort.
    if Vec::<u8>::new().try_reserve_exact(bytes).is_err() {
        rustix::mm::munlockall()?;
        return Err(io::Error::other("the limit `memlock` is too low"));
    }
    Ok(())
}
