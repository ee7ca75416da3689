//! Bindings of the C functions of BISCAY and of the common arithmetic in `host.c`.
#![allow(unsafe_code)]

use super::{KernelAck, KernelRadio, KernelTuning};

unsafe extern "C" {
    fn ap_host_biscay_words() -> u64;
    fn ap_host_biscay_init(state: *mut u64, tuning: *const KernelTuning, mss: u64);
    fn ap_host_biscay_sent(state: *mut u64, now: u64, bytes: u64, is_first: u32, app_limited: u32);
    fn ap_host_biscay_ack(state: *mut u64, ack: *const KernelAck, radio: *const KernelRadio);
    fn ap_host_biscay_loss(state: *mut u64, lost: u64, is_silence: u32, radio: *const KernelRadio);
    fn ap_host_biscay_before_send(state: *mut u64, now: u64, radio: *const KernelRadio);
    fn ap_host_biscay_answer(state: *const u64, out: *mut u64);
    #[cfg(test)]
    fn ap_host_log2(x: u64) -> u64;
    #[cfg(test)]
    fn ap_host_bytes_in(rate: u64, span: u64) -> u64;
    #[cfg(test)]
    fn ap_host_rate_of(bytes: u64, span: u64) -> u64;
    #[cfg(test)]
    fn ap_host_scaled(value: u64, num: u64, den: u64) -> u64;
    #[cfg(test)]
    fn ap_host_layout(out: *mut u64);
}

/// The bytes of BISCAY's options.
pub fn bytes_of(tuning: &KernelTuning) -> &[u8] {
    let bytes: *const u8 = std::ptr::from_ref(tuning).cast();
    // SAFETY: `tuning` consists of numbers without padding (four of 64 bits, ten of 32), and is borrowed as long as the
    // result.
    unsafe { std::slice::from_raw_parts(bytes, size_of::<KernelTuning>()) }
}

/// Returns the memory of a new flow's `struct biscay`, for the other functions of BISCAY.
pub fn biscay(tuning: &KernelTuning, mss: u64) -> Box<[u64]> {
    // SAFETY: the function takes no arguments and returns a number.
    let words = unsafe { ap_host_biscay_words() };
    let mut state = vec![0; words as usize].into_boxed_slice();
    // SAFETY: the memory has the size that C returned, is zero, and is aligned for its 64-bit members.
    unsafe { ap_host_biscay_init(state.as_mut_ptr(), tuning, mss) };
    state
}

/// Calls `biscay_on_sent`.
pub fn sent(state: &mut [u64], now: u64, bytes: u64, is_first: bool, app_limited: bool) {
    // SAFETY: `state` is from `biscay`, and borrowed for this call only.
    unsafe { ap_host_biscay_sent(state.as_mut_ptr(), now, bytes, is_first.into(), app_limited.into()) };
}

/// Calls `biscay_on_ack`.
pub fn ack(state: &mut [u64], ack: &KernelAck, radio: &KernelRadio) {
    // SAFETY: `state` is from `biscay`; the other two structures have the layouts of C (a test compares them). C keeps
    // no pointer.
    unsafe { ap_host_biscay_ack(state.as_mut_ptr(), ack, radio) };
}

/// Calls `biscay_on_loss`.
pub fn loss(state: &mut [u64], lost: u64, is_silence: bool, radio: &KernelRadio) {
    // SAFETY: the arguments have the origin and layouts that `ack` states, and C keeps no pointer.
    unsafe { ap_host_biscay_loss(state.as_mut_ptr(), lost, is_silence.into(), radio) };
}

/// Calls `biscay_before_send`.
pub fn before_send(state: &mut [u64], now: u64, radio: &KernelRadio) {
    // SAFETY: the arguments have the origin and layouts that `ack` states, and C keeps no pointer.
    unsafe { ap_host_biscay_before_send(state.as_mut_ptr(), now, radio) };
}

/// Returns the state, the window (bytes), the pacing rate and the end-to-end bandwidth (both in bit/s).
pub fn answer(state: &[u64]) -> [u64; 4] {
    let mut out = [0; 4];
    // SAFETY: `state` is from `biscay`; C writes four numbers.
    unsafe { ap_host_biscay_answer(state.as_ptr(), out.as_mut_ptr()) };
    out
}

/// Calls `ap_log2`.
#[cfg(test)]
pub fn log2(x: u64) -> u64 {
    // SAFETY: the function only takes and returns numbers.
    unsafe { ap_host_log2(x) }
}

/// Calls `ap_bytes_in`.
#[cfg(test)]
pub fn bytes_in(rate: u64, span: u64) -> u64 {
    // SAFETY: the function only takes and returns numbers.
    unsafe { ap_host_bytes_in(rate, span) }
}

/// Calls `ap_rate_of`.
#[cfg(test)]
pub fn rate_of(bytes: u64, span: u64) -> u64 {
    // SAFETY: the function only takes and returns numbers.
    unsafe { ap_host_rate_of(bytes, span) }
}

/// Calls `ap_scaled`.
#[cfg(test)]
pub fn scaled(value: u64, num: u64, den: u64) -> u64 {
    // SAFETY: the function only takes and returns numbers.
    unsafe { ap_host_scaled(value, num, den) }
}

/// Sizes and offsets of the layouts that C and Rust share.
#[cfg(test)]
pub fn layout() -> [u64; 33] {
    let mut out = [0; 33];
    // SAFETY: C writes thirty-three numbers.
    unsafe { ap_host_layout(out.as_mut_ptr()) };
    out
}
