//! Bindings of the C functions of the advertised window in `host.c`.
#![allow(unsafe_code)]

use crate::twin::KernelTuning;

unsafe extern "C" {
    fn ap_host_window_words() -> u64;
    fn ap_host_window_init(state: *mut u64);
    fn ap_host_window_echo(state: *mut u64, tuning: *const KernelTuning, now: u64, rtt: u64);
    fn ap_host_window(
        state: *mut u64,
        tuning: *const KernelTuning,
        now: u64,
        mss: u64,
        sampled: u64,
        part: *const u64,
    ) -> u64;
}

/// Returns the memory of a new download's `struct window`, for the next two functions.
pub fn window() -> Box<[u64]> {
    // SAFETY: the function takes no arguments and returns a number.
    let words = unsafe { ap_host_window_words() };
    let mut state = vec![0; words as usize].into_boxed_slice();
    // SAFETY: the memory has the size that C returned, is zero, and is aligned for its 64-bit members.
    unsafe { ap_host_window_init(state.as_mut_ptr()) };
    state
}

/// Calls `window_on_echo`.
pub fn echo(state: &mut [u64], tuning: &KernelTuning, now: u64, rtt: u64) {
    // SAFETY: `state` is from `window`; `tuning` has the layout of C (a test compares them). C keeps no pointer.
    unsafe { ap_host_window_echo(state.as_mut_ptr(), tuning, now, rtt) };
}

/// Calls `window_of`.
pub fn window_of(
    state: &mut [u64],
    tuning: &KernelTuning,
    now: u64,
    mss: u64,
    sampled: u64,
    part: [u64; 2],
) -> u64 {
    // SAFETY: `state` and `tuning` are as in `echo`; `part` is `struct split_part` (a test compares the sizes),
    // borrowed for this call only.
    unsafe { ap_host_window(state.as_mut_ptr(), tuning, now, mss, sampled, part.as_ptr()) }
}
