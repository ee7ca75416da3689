//! Bindings of the C functions in `host.c`.
#![allow(unsafe_code)]

use super::active::{AppFlow, Seen};
use super::bbr::BbrAck;
use super::morc::{MorcAck, MorcTuning, Packets};
use super::pbe::{PbeAck, PbeFed, PbeTuning};
use super::pbe_receiver::PbeArrival;
use super::{KernelAck, KernelRadio, KernelTuning};

unsafe extern "C" {
    fn ap_host_biscay_words() -> u64;
    fn ap_host_biscay_init(state: *mut u64, tuning: *const KernelTuning, mss: u64);
    fn ap_host_biscay_sent(state: *mut u64, now: u64, bytes: u64, is_first: u32, app_limited: u32);
    fn ap_host_biscay_ack(state: *mut u64, ack: *const KernelAck, radio: *const KernelRadio);
    fn ap_host_biscay_loss(state: *mut u64, lost: u64, is_silence: u32, radio: *const KernelRadio);
    fn ap_host_biscay_before_send(state: *mut u64, now: u64, radio: *const KernelRadio);
    fn ap_host_biscay_answer(state: *const u64, out: *mut u64);
    fn ap_host_morc_words() -> u64;
    fn ap_host_morc_init(state: *mut u64, tuning: *const MorcTuning, mss: u64);
    fn ap_host_morc_sent(state: *mut u64, now: u64, sent: *const Packets, app_limited: u32);
    fn ap_host_morc_ack(state: *mut u64, ack: *const MorcAck);
    fn ap_host_morc_acked(state: *mut u64, acked: *const Packets, were_lost: u32);
    fn ap_host_morc_after_ack(state: *mut u64, ack: *const MorcAck);
    fn ap_host_morc_lost(state: *mut u64, lost: *const Packets);
    fn ap_host_morc_after_loss(state: *mut u64);
    fn ap_host_morc_answer(state: *const u64, out: *mut u64);
    fn ap_host_bbr_words() -> u64;
    fn ap_host_bbr_init(state: *mut u64, mss: u64);
    fn ap_host_bbr_random(state: *mut u64, random: u64) -> u64;
    fn ap_host_bbr_sent(state: *mut u64, now: u64, is_first: u32, app_limited: u32);
    fn ap_host_bbr_ack(state: *mut u64, ack: *const BbrAck);
    fn ap_host_bbr_loss(state: *mut u64, lost: u64, is_silence: u32, recovered: u64);
    fn ap_host_bbr_answer(state: *const u64, out: *mut u64);
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
    fn ap_host_pbe_header_write(starting: u32, has_us: u32, rtprop: u64, pacing: u64, contents: *mut u8);
    fn ap_host_pbe_header_read(arrival: *mut PbeArrival, contents: *const u8);
    fn ap_host_pbe_receiver_words() -> u64;
    fn ap_host_pbe_receiver_init(state: *mut u64, tuning: *const PbeTuning, mss: u64);
    fn ap_host_pbe_receiver_packet(state: *mut u64, arrival: *const PbeArrival, feed: *const u64, flows: u64);
    fn ap_host_pbe_receiver_tell(state: *const u64, feed: *const u64, flows: u64, now: u64, fed: *mut PbeFed);
    fn ap_host_active_words() -> u64;
    fn ap_host_active_sends(state: *mut u64, last: u64, now: u64) -> u64;
    fn ap_host_active(state: *const u64, out: *mut u64);
    fn ap_host_apps_sends(
        host: *mut u64,
        apps: *mut u64,
        flow: *mut AppFlow,
        name: u64,
        app: *mut u64,
        before: *mut u64,
        is_same: u32,
        now: u64,
    );
    fn ap_host_use(state: *mut u64, now: u64, bytes: u64);
    fn ap_host_used(state: *const u64, now: u64) -> u64;
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
    fn ap_host_split(policy: u32, seen: *const Seen, out: *mut u64);
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

/// The bytes of the options.
pub fn bytes_of(tuning: &KernelTuning) -> &[u8] {
    let bytes: *const u8 = std::ptr::from_ref(tuning).cast();
    // SAFETY: it is numbers without padding (four of 64 bits, ten of 32), borrowed as long as the result.
    unsafe { std::slice::from_raw_parts(bytes, size_of::<KernelTuning>()) }
}

/// `struct ap_host` without active flows.
pub fn active() -> Box<[u64]> {
    // SAFETY: it takes nothing and returns a number.
    let words = unsafe { ap_host_active_words() };
    vec![0; words as usize].into_boxed_slice()
}

/// `active_sends`: returns the flow's last slot.
pub fn active_sends(state: &mut [u64], last: u64, now: u64) -> u64 {
    // SAFETY: `state` is from `active`, and borrowed for this call only.
    unsafe { ap_host_active_sends(state.as_mut_ptr(), last, now) }
}

/// `struct active_app` without active flows.
pub fn app() -> Box<[u64]> {
    vec![0; active().len() + 1].into_boxed_slice()
}

/// `active_sends` and `active_app_sends`. `before`: the flow's previous application, if it is known and is not `app`.
pub fn apps_sends(
    [host, apps]: [&mut [u64]; 2],
    flow: &mut AppFlow,
    (name, app): (u64, &mut [u64]),
    before: Option<&mut [u64]>,
    now: u64,
) {
    let is_same = flow.app == name;
    let before = before.map_or(std::ptr::null_mut(), <[u64]>::as_mut_ptr);
    // SAFETY: `host` and `apps` are from `active`, `app` and `before` from `app`; `flow` has the layout of C (a test
    // compares them). All are borrowed for this call only, and C accepts a null `before`.
    unsafe {
        ap_host_apps_sends(
            host.as_mut_ptr(),
            apps.as_mut_ptr(),
            flow,
            name,
            app.as_mut_ptr(),
            before,
            is_same.into(),
            now,
        );
    }
}

/// `active_use`.
pub fn add_use(state: &mut [u64; 2], now: u64, bytes: u64) {
    // SAFETY: it is `struct ap_use` (a test compares sizes), and borrowed for this call only.
    unsafe { ap_host_use(state.as_mut_ptr(), now, bytes) };
}

/// `active_used`.
pub fn used(state: &[u64; 2], now: u64) -> u64 {
    // SAFETY: as in `add_use`.
    unsafe { ap_host_used(state.as_ptr(), now) }
}

/// `split_part`: numerator and denominator.
pub fn split(policy: u32, seen: &Seen) -> [u64; 2] {
    let mut out = [0; 2];
    // SAFETY: `seen` has the layout of C (a test compares them); C writes two numbers.
    unsafe { ap_host_split(policy, seen, out.as_mut_ptr()) };
    out
}

/// `struct window` of a new download, for the next two functions.
pub fn window() -> Box<[u64]> {
    // SAFETY: it takes nothing and returns a number.
    let words = unsafe { ap_host_window_words() };
    let mut state = vec![0; words as usize].into_boxed_slice();
    // SAFETY: the memory has the size that C returned, is zero, and is aligned for its 64-bit members.
    unsafe { ap_host_window_init(state.as_mut_ptr()) };
    state
}

/// `window_on_echo`.
pub fn window_echo(state: &mut [u64], tuning: &KernelTuning, now: u64, rtt: u64) {
    // SAFETY: `state` is from `window`; `tuning` has the layout of C (a test compares them). C keeps neither.
    unsafe { ap_host_window_echo(state.as_mut_ptr(), tuning, now, rtt) };
}

/// `window_of`.
pub fn window_of(
    state: &mut [u64],
    tuning: &KernelTuning,
    (now, mss): (u64, u64),
    sampled: u64,
    part: [u64; 2],
) -> u64 {
    // SAFETY: as in `window_echo`; `part` is `struct split_part` (a test compares sizes), borrowed for this call only.
    unsafe { ap_host_window(state.as_mut_ptr(), tuning, now, mss, sampled, part.as_ptr()) }
}

/// The number of active flows, and the time until which it is valid.
pub fn active_flows(state: &[u64]) -> [u64; 2] {
    let mut out = [0; 2];
    // SAFETY: `state` is from `active`; C writes two words.
    unsafe { ap_host_active(state.as_ptr(), out.as_mut_ptr()) };
    out
}

/// `struct biscay` of a new flow, for the other functions of BISCAY.
pub fn biscay(tuning: &KernelTuning, mss: u64) -> Box<[u64]> {
    // SAFETY: it takes nothing and returns a number.
    let words = unsafe { ap_host_biscay_words() };
    let mut state = vec![0; words as usize].into_boxed_slice();
    // SAFETY: the memory has the size that C returned, is zero, and is aligned for its 64-bit members.
    unsafe { ap_host_biscay_init(state.as_mut_ptr(), tuning, mss) };
    state
}

/// `biscay_on_sent`.
pub fn sent(state: &mut [u64], now: u64, bytes: u64, is_first: bool, app_limited: bool) {
    // SAFETY: `state` is from `biscay`, and borrowed for this call only.
    unsafe { ap_host_biscay_sent(state.as_mut_ptr(), now, bytes, is_first.into(), app_limited.into()) };
}

/// `biscay_on_ack`.
pub fn ack(state: &mut [u64], ack: &KernelAck, radio: &KernelRadio) {
    // SAFETY: `state` is from `biscay`; the other two have the layouts of C (a test compares them). C keeps none.
    unsafe { ap_host_biscay_ack(state.as_mut_ptr(), ack, radio) };
}

/// `biscay_on_loss`.
pub fn loss(state: &mut [u64], lost: u64, is_silence: bool, radio: &KernelRadio) {
    // SAFETY: as in `ack`.
    unsafe { ap_host_biscay_loss(state.as_mut_ptr(), lost, is_silence.into(), radio) };
}

/// `biscay_before_send`.
pub fn before_send(state: &mut [u64], now: u64, radio: &KernelRadio) {
    // SAFETY: as in `ack`.
    unsafe { ap_host_biscay_before_send(state.as_mut_ptr(), now, radio) };
}

/// State, window, pacing rate, end-to-end bandwidth.
pub fn answer(state: &[u64]) -> [u64; 4] {
    let mut out = [0; 4];
    // SAFETY: `state` is from `biscay`; C writes four numbers.
    unsafe { ap_host_biscay_answer(state.as_ptr(), out.as_mut_ptr()) };
    out
}

/// The bytes of MORC's options.
pub fn bytes_of_morc(tuning: &MorcTuning) -> &[u8] {
    let bytes: *const u8 = std::ptr::from_ref(tuning).cast();
    // SAFETY: it is numbers without padding (three of 64 bits, eight of 32), borrowed as long as the result.
    unsafe { std::slice::from_raw_parts(bytes, size_of::<MorcTuning>()) }
}

/// `struct morc` of a new flow, for the other functions of MORC.
pub fn morc(tuning: &MorcTuning, mss: u64) -> Box<[u64]> {
    // SAFETY: it takes nothing and returns a number.
    let words = unsafe { ap_host_morc_words() };
    let mut state = vec![0; words as usize].into_boxed_slice();
    // SAFETY: the memory has the size that C returned, is zero, and is aligned for its 64-bit members.
    unsafe { ap_host_morc_init(state.as_mut_ptr(), tuning, mss) };
    state
}

/// `morc_before_send` and `morc_on_sent`.
pub fn morc_sent(state: &mut [u64], now: u64, sent: &Packets, app_limited: bool) {
    // SAFETY: `state` is from `morc`; the others have the layouts of C (a test compares them). C keeps none.
    unsafe { ap_host_morc_sent(state.as_mut_ptr(), now, sent, app_limited.into()) };
}

/// `morc_on_ack`.
pub fn morc_ack(state: &mut [u64], ack: &MorcAck) {
    // SAFETY: as in `morc_sent`.
    unsafe { ap_host_morc_ack(state.as_mut_ptr(), ack) };
}

/// `morc_on_acked`.
pub fn morc_acked(state: &mut [u64], acked: &Packets, were_lost: bool) {
    // SAFETY: as in `morc_sent`.
    unsafe { ap_host_morc_acked(state.as_mut_ptr(), acked, were_lost.into()) };
}

/// `morc_after_ack`.
pub fn morc_after_ack(state: &mut [u64], ack: &MorcAck) {
    // SAFETY: as in `morc_sent`.
    unsafe { ap_host_morc_after_ack(state.as_mut_ptr(), ack) };
}

/// `morc_on_lost`.
pub fn morc_lost(state: &mut [u64], lost: &Packets) {
    // SAFETY: as in `morc_sent`.
    unsafe { ap_host_morc_lost(state.as_mut_ptr(), lost) };
}

/// `morc_report`, after losses.
pub fn morc_after_loss(state: &mut [u64]) {
    // SAFETY: as in `morc_sent`.
    unsafe { ap_host_morc_after_loss(state.as_mut_ptr()) };
}

/// Phase, window, pacing rate, and whether the flow competes.
pub fn morc_answer(state: &[u64]) -> [u64; 4] {
    let mut out = [0; 4];
    // SAFETY: `state` is from `morc`; C writes four numbers.
    unsafe { ap_host_morc_answer(state.as_ptr(), out.as_mut_ptr()) };
    out
}

/// `struct ibbr` of a new flow, for the other functions of BBR.
pub fn bbr(mss: u64) -> Box<[u64]> {
    // SAFETY: it takes nothing and returns a number.
    let words = unsafe { ap_host_bbr_words() };
    let mut state = vec![0; words as usize].into_boxed_slice();
    // SAFETY: the memory has the size that C returned, is zero, and is aligned for its 64-bit members.
    unsafe { ap_host_bbr_init(state.as_mut_ptr(), mss) };
    state
}

/// Sets the start phase of the next cycle. Returns the total number of phases used.
pub fn bbr_random(state: &mut [u64], random: u64) -> u64 {
    // SAFETY: `state` is from `bbr`, and borrowed for this call only.
    unsafe { ap_host_bbr_random(state.as_mut_ptr(), random) }
}

/// `ibbr_on_sent`.
pub fn bbr_sent(state: &mut [u64], now: u64, is_first: bool, app_limited: bool) {
    // SAFETY: as in `bbr_random`.
    unsafe { ap_host_bbr_sent(state.as_mut_ptr(), now, is_first.into(), app_limited.into()) };
}

/// `ibbr_on_ack`.
pub fn bbr_ack(state: &mut [u64], ack: &BbrAck) {
    // SAFETY: as in `bbr_random`; `ack` has the layout of C (a test compares them). C keeps neither.
    unsafe { ap_host_bbr_ack(state.as_mut_ptr(), ack) };
}

/// `ibbr_on_loss`.
pub fn bbr_loss(state: &mut [u64], lost: u64, is_silence: bool, recovered: u64) {
    // SAFETY: as in `bbr_random`.
    unsafe { ap_host_bbr_loss(state.as_mut_ptr(), lost, is_silence.into(), recovered) };
}

/// State, window, pacing rate.
pub fn bbr_answer(state: &[u64]) -> [u64; 3] {
    let mut out = [0; 3];
    // SAFETY: `state` is from `bbr`; C writes three numbers.
    unsafe { ap_host_bbr_answer(state.as_ptr(), out.as_mut_ptr()) };
    out
}

/// `struct pbe` of a new flow, for the other functions of PBE-CC's sender.
pub fn pbe(tuning: &PbeTuning, mss: u64) -> Box<[u64]> {
    // SAFETY: it takes nothing and returns a number.
    let words = unsafe { ap_host_pbe_words() };
    let mut state = vec![0; words as usize].into_boxed_slice();
    // SAFETY: the memory has the size that C returned, is zero, and is aligned for its 64-bit members.
    unsafe { ap_host_pbe_init(state.as_mut_ptr(), tuning, mss) };
    state
}

/// Sets the start phases of the next cycles. Returns the total number of phases used.
pub fn pbe_random(state: &mut [u64], random: u64) -> u64 {
    // SAFETY: `state` is from `pbe`, and borrowed for this call only.
    unsafe { ap_host_pbe_random(state.as_mut_ptr(), random) }
}

/// `ibbr_on_sent`.
pub fn pbe_sent(state: &mut [u64], now: u64, is_first: bool, app_limited: bool) {
    // SAFETY: as in `pbe_random`.
    unsafe { ap_host_pbe_sent(state.as_mut_ptr(), now, is_first.into(), app_limited.into()) };
}

/// `pbe_on_ack`.
pub fn pbe_ack(state: &mut [u64], ack: &PbeAck, told: &PbeFed) {
    // SAFETY: as in `pbe_random`; the other two have the layouts of C (a test compares them). C keeps none.
    unsafe { ap_host_pbe_ack(state.as_mut_ptr(), ack, told) };
}

/// `pbe_on_feedback`.
pub fn pbe_feedback(state: &mut [u64], now: u64, told: &PbeFed) {
    // SAFETY: as in `pbe_ack`.
    unsafe { ap_host_pbe_feedback(state.as_mut_ptr(), now, told) };
}

/// `pbe_on_loss`.
pub fn pbe_loss(state: &mut [u64], lost: u64, is_silence: bool, recovered: u64) {
    // SAFETY: as in `pbe_random`.
    unsafe { ap_host_pbe_loss(state.as_mut_ptr(), lost, is_silence.into(), recovered) };
}

/// `pbe_before_send`.
pub fn pbe_before_send(state: &mut [u64], now: u64) {
    // SAFETY: as in `pbe_random`.
    unsafe { ap_host_pbe_before_send(state.as_mut_ptr(), now) };
}

/// `pbe_option_read`.
pub fn pbe_option(fed: &mut PbeFed, contents: &[u8; 8], length: u32) {
    // SAFETY: both are borrowed for this call only; C reads at most eight bytes of the contents.
    unsafe { ap_host_pbe_option(fed, contents.as_ptr(), length) };
}

/// `pbe_option_write`.
pub fn pbe_option_write(fed: &PbeFed) -> [u8; 8] {
    let mut contents = [0; 8];
    // SAFETY: `fed` has the layout of C (a test compares them); C writes eight bytes.
    unsafe { ap_host_pbe_option_write(fed, contents.as_mut_ptr()) };
    contents
}

/// `pbe_header_write`.
pub fn pbe_header_write(starting: bool, has_us: bool, rtprop: u64, pacing: u64) -> [u8; 4] {
    let mut contents = [0; 4];
    // SAFETY: C writes four bytes.
    unsafe {
        ap_host_pbe_header_write(starting.into(), has_us.into(), rtprop, pacing, contents.as_mut_ptr());
    }
    contents
}

/// `pbe_header_read`.
pub fn pbe_header_read(arrival: &mut PbeArrival, contents: [u8; 4]) {
    // SAFETY: `arrival` has the layout of C (a test compares them); C reads four bytes.
    unsafe { ap_host_pbe_header_read(arrival, contents.as_ptr()) };
}

/// `struct pbe_receiver` of a new flow, for the other functions of the receiver.
pub fn pbe_receiver(tuning: &PbeTuning, mss: u64) -> Box<[u64]> {
    // SAFETY: it takes nothing and returns a number.
    let words = unsafe { ap_host_pbe_receiver_words() };
    let mut state = vec![0; words as usize].into_boxed_slice();
    // SAFETY: the memory has the size that C returned, is zero, and is aligned for its 64-bit members.
    unsafe { ap_host_pbe_receiver_init(state.as_mut_ptr(), tuning, mss) };
    state
}

/// The words of `struct ap_pbe_feed`.
pub type PbeFeed = [u64; 30];

/// `pbe_receiver_packet`.
pub fn pbe_receiver_packet(state: &mut [u64], arrival: &PbeArrival, feed: &PbeFeed, flows: u64) {
    // SAFETY: `state` is from `pbe_receiver`; the others have the layouts of C (a test compares them). C keeps none.
    unsafe { ap_host_pbe_receiver_packet(state.as_mut_ptr(), arrival, feed.as_ptr(), flows) };
}

/// `pbe_receiver_tell`.
pub fn pbe_receiver_tell(state: &[u64], feed: &PbeFeed, flows: u64, now: u64) -> PbeFed {
    let mut fed = PbeFed::NOTHING;
    // SAFETY: as in `pbe_receiver_packet`.
    unsafe { ap_host_pbe_receiver_tell(state.as_ptr(), feed.as_ptr(), flows, now, &mut fed) };
    fed
}

/// The bytes of PBE-CC's options.
pub fn bytes_of_pbe(tuning: &PbeTuning) -> &[u8] {
    let bytes: *const u8 = std::ptr::from_ref(tuning).cast();
    // SAFETY: it is numbers without padding (four of 64 bits, twelve of 32), borrowed as long as the result.
    unsafe { std::slice::from_raw_parts(bytes, size_of::<PbeTuning>()) }
}

/// Phase, the state of BBR, window, pacing rate.
pub fn pbe_answer(state: &[u64]) -> [u64; 4] {
    let mut out = [0; 4];
    // SAFETY: `state` is from `pbe`; C writes four numbers.
    unsafe { ap_host_pbe_answer(state.as_ptr(), out.as_mut_ptr()) };
    out
}

/// `ap_log2`.
#[cfg(test)]
pub fn log2(x: u64) -> u64 {
    // SAFETY: a number in, a number out.
    unsafe { ap_host_log2(x) }
}

/// `ap_bytes_in`.
#[cfg(test)]
pub fn bytes_in(rate: u64, span: u64) -> u64 {
    // SAFETY: numbers in, a number out.
    unsafe { ap_host_bytes_in(rate, span) }
}

/// `ap_rate_of`.
#[cfg(test)]
pub fn rate_of(bytes: u64, span: u64) -> u64 {
    // SAFETY: numbers in, a number out.
    unsafe { ap_host_rate_of(bytes, span) }
}

/// `ap_scaled`.
#[cfg(test)]
pub fn scaled(value: u64, num: u64, den: u64) -> u64 {
    // SAFETY: numbers in, a number out.
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
