//! Bindings of the C functions of BBR in `host.c`.
#![allow(unsafe_code)]

use super::BbrAck;

unsafe extern "C" {
    fn ap_host_bbr_words() -> u64;
    fn ap_host_bbr_init(state: *mut u64, mss: u64);
    fn ap_host_bbr_random(state: *mut u64, random: u64) -> u64;
    fn ap_host_bbr_sent(state: *mut u64, now: u64, is_first: u32, app_limited: u32);
    fn ap_host_bbr_ack(state: *mut u64, ack: *const BbrAck);
    fn ap_host_bbr_loss(state: *mut u64, lost: u64, is_silence: u32, recovered: u64);
    fn ap_host_bbr_answer(state: *const u64, out: *mut u64);
}

/// Returns the memory of a new flow's `struct ibbr`, for the other functions of BBR.
pub fn bbr(mss: u64) -> Box<[u64]> {
    // SAFETY: the function takes no arguments and returns a number.
    let words = unsafe { ap_host_bbr_words() };
    let mut state = vec![0; words as usize].into_boxed_slice();
    // SAFETY: the memory has the size that C returned, is zero, and is aligned for its 64-bit members.
    unsafe { ap_host_bbr_init(state.as_mut_ptr(), mss) };
    state
}

/// Sets the start phase of the next cycle. Returns the total number of phases used.
pub fn random(state: &mut [u64], random: u64) -> u64 {
    // SAFETY: `state` is from `bbr`, and borrowed for this call only.
    unsafe { ap_host_bbr_random(state.as_mut_ptr(), random) }
}

/// Calls `ibbr_on_sent`.
pub fn sent(state: &mut [u64], now: u64, is_first: bool, app_limited: bool) {
    // SAFETY: `state` is from `bbr`, as in `random`.
    unsafe { ap_host_bbr_sent(state.as_mut_ptr(), now, is_first.into(), app_limited.into()) };
}

/// Calls `ibbr_on_ack`.
pub fn ack(state: &mut [u64], ack: &BbrAck) {
    // SAFETY: `state` is from `bbr`, as in `random`; `ack` has the layout of C (a test compares them). C keeps no
    // pointer.
    unsafe { ap_host_bbr_ack(state.as_mut_ptr(), ack) };
}

/// Calls `ibbr_on_loss`.
pub fn loss(state: &mut [u64], lost: u64, is_silence: bool, recovered: u64) {
    // SAFETY: `state` is from `bbr`, as in `random`.
    unsafe { ap_host_bbr_loss(state.as_mut_ptr(), lost, is_silence.into(), recovered) };
}

/// Returns the state, the window (bytes) and the pacing rate (bit/s).
pub fn answer(state: &[u64]) -> [u64; 3] {
    let mut out = [0; 3];
    // SAFETY: `state` is from `bbr`; C writes three numbers.
    unsafe { ap_host_bbr_answer(state.as_ptr(), out.as_mut_ptr()) };
    out
}
