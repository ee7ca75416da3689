//! Bindings of the C functions of PBE-CC's sender in `host.c`.
#![allow(unsafe_code)]

use super::{PbeAck, PbeFed, PbeTuning};

unsafe extern "C" {
    fn ap_host_pbe_words() -> u64;
    fn ap_host_pbe_init(state: *mut u64, tuning: *const PbeTuning, mss: u64);
    fn ap_host_pbe_random(state: *mut u64, random: u64) -> u64;
    fn ap_host_pbe_sent(state: *mut u64, now: u64, is_first: u32, app_limited: u32);
    fn ap_host_pbe_ack(state: *mut u64, ack: *const PbeAck, told: *const PbeFed);
    fn ap_host_pbe_feedback(state: *mut u64, now: u64, told: *const PbeFed);
    fn ap_host_pbe_loss(state: *mut u64, lost: u64, is_silence: u32, recovered: u64);
    fn ap_host_pbe_before_send(state: *mut u64, now: u64);
    fn ap_host_pbe_option(fed: *mut PbeFed, contents: *const u8, length: u32);
    fn ap_host_pbe_answer(state: *const u64, out: *mut u64);
    fn ap_host_pbe_option_write(fed: *const PbeFed, contents: *mut u8);
}

/// Returns the memory of a new flow's `struct pbe`, for the other functions of PBE-CC's sender.
pub fn pbe(tuning: &PbeTuning, mss: u64) -> Box<[u64]> {
    // SAFETY: the function takes no arguments and returns a number.
    let words = unsafe { ap_host_pbe_words() };
    let mut state = vec![0; words as usize].into_boxed_slice();
    // SAFETY: the memory has the size that C returned, is zero, and is aligned for its 64-bit members.
    unsafe { ap_host_pbe_init(state.as_mut_ptr(), tuning, mss) };
    state
}

/// Sets the start phases of the next cycles. Returns the total number of phases used.
pub fn random(state: &mut [u64], random: u64) -> u64 {
    // SAFETY: `state` is from `pbe`, and borrowed for this call only.
    unsafe { ap_host_pbe_random(state.as_mut_ptr(), random) }
}

/// Calls `ibbr_on_sent`.
pub fn sent(state: &mut [u64], now: u64, is_first: bool, app_limited: bool) {
    // SAFETY: `state` is from `pbe`, as in `random`.
    unsafe { ap_host_pbe_sent(state.as_mut_ptr(), now, is_first.into(), app_limited.into()) };
}

/// Calls `pbe_on_ack`.
pub fn ack(state: &mut [u64], ack: &PbeAck, told: &PbeFed) {
    // SAFETY: `state` is from `pbe`, as in `random`; the other two structures have the layouts of C (a test compares
    // them). C keeps no pointer.
    unsafe { ap_host_pbe_ack(state.as_mut_ptr(), ack, told) };
}

/// Calls `pbe_on_feedback`.
pub fn feedback(state: &mut [u64], now: u64, told: &PbeFed) {
    // SAFETY: `state` is from `pbe`, and `told` has the layout of C, as in `ack`.
    unsafe { ap_host_pbe_feedback(state.as_mut_ptr(), now, told) };
}

/// Calls `pbe_on_loss`.
pub fn loss(state: &mut [u64], lost: u64, is_silence: bool, recovered: u64) {
    // SAFETY: `state` is from `pbe`, as in `random`.
    unsafe { ap_host_pbe_loss(state.as_mut_ptr(), lost, is_silence.into(), recovered) };
}

/// Calls `pbe_before_send`.
pub fn before_send(state: &mut [u64], now: u64) {
    // SAFETY: `state` is from `pbe`, as in `random`.
    unsafe { ap_host_pbe_before_send(state.as_mut_ptr(), now) };
}

/// Calls `pbe_option_read`.
pub fn option(fed: &mut PbeFed, contents: &[u8; 8], length: u32) {
    // SAFETY: `fed` and `contents` are borrowed for this call only; C reads at most eight bytes of `contents`.
    unsafe { ap_host_pbe_option(fed, contents.as_ptr(), length) };
}

/// Calls `pbe_option_write`.
pub fn option_write(fed: &PbeFed) -> [u8; 8] {
    let mut contents = [0; 8];
    // SAFETY: `fed` has the layout of C (a test compares them); C writes eight bytes.
    unsafe { ap_host_pbe_option_write(fed, contents.as_mut_ptr()) };
    contents
}

/// The bytes of PBE-CC's options.
pub fn bytes_of(tuning: &PbeTuning) -> &[u8] {
    let bytes: *const u8 = std::ptr::from_ref(tuning).cast();
    // SAFETY: `tuning` consists of numbers without padding (four of 64 bits, twelve of 32), and is borrowed as long as
    // the result.
    unsafe { std::slice::from_raw_parts(bytes, size_of::<PbeTuning>()) }
}

/// Returns the phase, the state of BBR, the window (bytes) and the pacing rate (bit/s).
pub fn answer(state: &[u64]) -> [u64; 4] {
    let mut out = [0; 4];
    // SAFETY: `state` is from `pbe`; C writes four numbers.
    unsafe { ap_host_pbe_answer(state.as_ptr(), out.as_mut_ptr()) };
    out
}
