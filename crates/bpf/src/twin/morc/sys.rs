//! Bindings of the C functions of MORC in `host.c`.
#![allow(unsafe_code)]

use super::{MorcAck, MorcTuning, Packets};

unsafe extern "C" {
    fn ap_host_morc_words() -> u64;
    fn ap_host_morc_init(state: *mut u64, tuning: *const MorcTuning, mss: u64);
    fn ap_host_morc_sent(state: *mut u64, now: u64, sent: *const Packets, app_limited: u32);
    fn ap_host_morc_ack(state: *mut u64, ack: *const MorcAck);
    fn ap_host_morc_acked(state: *mut u64, acked: *const Packets, were_lost: u32);
    fn ap_host_morc_after_ack(state: *mut u64, ack: *const MorcAck);
    fn ap_host_morc_lost(state: *mut u64, lost: *const Packets);
    fn ap_host_morc_after_loss(state: *mut u64);
    fn ap_host_morc_answer(state: *const u64, out: *mut u64);
}

/// The bytes of MORC's options.
pub fn bytes_of(tuning: &MorcTuning) -> &[u8] {
    let bytes: *const u8 = std::ptr::from_ref(tuning).cast();
    // SAFETY: `tuning` consists of numbers without padding (three of 64 bits, eight of 32), and is borrowed as long as
    // the result.
    unsafe { std::slice::from_raw_parts(bytes, size_of::<MorcTuning>()) }
}

/// Returns the memory of a new flow's `struct morc`, for the other functions of MORC.
pub fn morc(tuning: &MorcTuning, mss: u64) -> Box<[u64]> {
    // SAFETY: the function takes no arguments and returns a number.
    let words = unsafe { ap_host_morc_words() };
    let mut state = vec![0; words as usize].into_boxed_slice();
    // SAFETY: the memory has the size that C returned, is zero, and is aligned for its 64-bit members.
    unsafe { ap_host_morc_init(state.as_mut_ptr(), tuning, mss) };
    state
}

/// Calls `morc_before_send` and `morc_on_sent`.
pub fn sent(state: &mut [u64], now: u64, sent: &Packets, app_limited: bool) {
    // SAFETY: `state` is from `morc`; the other structures have the layouts of C (a test compares them). C keeps no
    // pointer.
    unsafe { ap_host_morc_sent(state.as_mut_ptr(), now, sent, app_limited.into()) };
}

/// Calls `morc_on_ack`.
pub fn ack(state: &mut [u64], ack: &MorcAck) {
    // SAFETY: the arguments have the origin and layouts that `sent` states, and C keeps no pointer.
    unsafe { ap_host_morc_ack(state.as_mut_ptr(), ack) };
}

/// Calls `morc_on_acked`.
pub fn acked(state: &mut [u64], acked: &Packets, were_lost: bool) {
    // SAFETY: the arguments have the origin and layouts that `sent` states, and C keeps no pointer.
    unsafe { ap_host_morc_acked(state.as_mut_ptr(), acked, were_lost.into()) };
}

/// Calls `morc_after_ack`.
pub fn after_ack(state: &mut [u64], ack: &MorcAck) {
    // SAFETY: the arguments have the origin and layouts that `sent` states, and C keeps no pointer.
    unsafe { ap_host_morc_after_ack(state.as_mut_ptr(), ack) };
}

/// Calls `morc_on_lost`.
pub fn lost(state: &mut [u64], lost: &Packets) {
    // SAFETY: the arguments have the origin and layouts that `sent` states, and C keeps no pointer.
    unsafe { ap_host_morc_lost(state.as_mut_ptr(), lost) };
}

/// Calls `morc_report`, after losses.
pub fn after_loss(state: &mut [u64]) {
    // SAFETY: the arguments have the origin and layouts that `sent` states, and C keeps no pointer.
    unsafe { ap_host_morc_after_loss(state.as_mut_ptr()) };
}

/// Returns the phase, the window (bytes), the pacing rate (bit/s), and whether the flow competes (1 or 0).
pub fn answer(state: &[u64]) -> [u64; 4] {
    let mut out = [0; 4];
    // SAFETY: `state` is from `morc`; C writes four numbers.
    unsafe { ap_host_morc_answer(state.as_ptr(), out.as_mut_ptr()) };
    out
}
