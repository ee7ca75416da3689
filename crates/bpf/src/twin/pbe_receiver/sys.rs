//! Bindings of the C functions of PBE-CC's receiver in `host.c`.
#![allow(unsafe_code)]

use super::PbeArrival;
use crate::twin::pbe::{PbeFed, PbeTuning};

unsafe extern "C" {
    fn ap_host_pbe_header_write(starting: u32, has_us: u32, rtprop: u64, pacing: u64, contents: *mut u8);
    fn ap_host_pbe_header_read(arrival: *mut PbeArrival, contents: *const u8);
    fn ap_host_pbe_receiver_words() -> u64;
    fn ap_host_pbe_receiver_init(state: *mut u64, tuning: *const PbeTuning, mss: u64);
    fn ap_host_pbe_receiver_packet(state: *mut u64, arrival: *const PbeArrival, feed: *const u64, flows: u64);
    fn ap_host_pbe_receiver_tell(state: *const u64, feed: *const u64, flows: u64, now: u64, fed: *mut PbeFed);
}

/// Calls `pbe_header_write`.
pub fn header_write(starting: bool, has_us: bool, rtprop: u64, pacing: u64) -> [u8; 4] {
    let mut contents = [0; 4];
    // SAFETY: C writes four bytes.
    unsafe {
        ap_host_pbe_header_write(starting.into(), has_us.into(), rtprop, pacing, contents.as_mut_ptr());
    }
    contents
}

/// Calls `pbe_header_read`.
pub fn header_read(arrival: &mut PbeArrival, contents: [u8; 4]) {
    // SAFETY: `arrival` has the layout of C (a test compares them); C reads four bytes.
    unsafe { ap_host_pbe_header_read(arrival, contents.as_ptr()) };
}

/// Returns the memory of a new flow's `struct pbe_receiver`, for the other functions of the receiver.
pub fn pbe_receiver(tuning: &PbeTuning, mss: u64) -> Box<[u64]> {
    // SAFETY: the function takes no arguments and returns a number.
    let words = unsafe { ap_host_pbe_receiver_words() };
    let mut state = vec![0; words as usize].into_boxed_slice();
    // SAFETY: the memory has the size that C returned, is zero, and is aligned for its 64-bit members.
    unsafe { ap_host_pbe_receiver_init(state.as_mut_ptr(), tuning, mss) };
    state
}

/// The words of `struct ap_pbe_feed`.
pub type PbeFeed = [u64; 30];

/// Calls `pbe_receiver_packet`.
pub fn packet(state: &mut [u64], arrival: &PbeArrival, feed: &PbeFeed, flows: u64) {
    // SAFETY: `state` is from `pbe_receiver`; the other structures have the layouts of C (a test compares them). C
    // keeps no pointer.
    unsafe { ap_host_pbe_receiver_packet(state.as_mut_ptr(), arrival, feed.as_ptr(), flows) };
}

/// Calls `pbe_receiver_tell`.
pub fn feedback(state: &[u64], feed: &PbeFeed, flows: u64, now: u64) -> PbeFed {
    let mut fed = PbeFed::NOTHING;
    // SAFETY: the arguments have the origin and layouts that `packet` states, and C keeps no pointer.
    unsafe { ap_host_pbe_receiver_tell(state.as_ptr(), feed.as_ptr(), flows, now, &mut fed) };
    fed
}
