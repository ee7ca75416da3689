//! Bindings of the C functions of active flows in `host.c`.
#![allow(unsafe_code)]

use super::{AppFlow, DeviceView};

unsafe extern "C" {
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
    fn ap_host_split(policy: u32, seen: *const DeviceView, out: *mut u64);
}

/// `struct ap_host` without active flows.
pub fn active() -> Box<[u64]> {
    // SAFETY: the function takes no arguments and returns a number.
    let words = unsafe { ap_host_active_words() };
    vec![0; words as usize].into_boxed_slice()
}

/// Calls `active_sends`. Returns the flow's new last slot.
pub fn sends(state: &mut [u64], last: u64, now: u64) -> u64 {
    // SAFETY: `state` is from `active`, and borrowed for this call only.
    unsafe { ap_host_active_sends(state.as_mut_ptr(), last, now) }
}

/// `struct active_app` without active flows.
pub fn app() -> Box<[u64]> {
    vec![0; active().len() + 1].into_boxed_slice()
}

/// Calls `active_sends` and `active_app_sends`. `before`: the flow's previous application; `None` if it is not known or
/// is `app`.
pub fn apps_sends(
    host: &mut [u64],
    apps: &mut [u64],
    flow: &mut AppFlow,
    name: u64,
    app: &mut [u64],
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

/// Calls `active_use`.
pub fn add_use(state: &mut [u64; 2], now: u64, bytes: u64) {
    // SAFETY: `state` has the layout of `struct ap_use` (a test compares sizes), and is borrowed for this call only.
    unsafe { ap_host_use(state.as_mut_ptr(), now, bytes) };
}

/// Calls `active_used`.
pub fn used(state: &[u64; 2], now: u64) -> u64 {
    // SAFETY: `state` has the layout of `struct ap_use`, as in `add_use`.
    unsafe { ap_host_used(state.as_ptr(), now) }
}

/// Calls `split_part`. Returns numerator and denominator of the part.
pub fn split(policy: u32, seen: &DeviceView) -> [u64; 2] {
    let mut out = [0; 2];
    // SAFETY: `seen` has the layout of C (a test compares them); C writes two numbers.
    unsafe { ap_host_split(policy, seen, out.as_mut_ptr()) };
    out
}

/// The number of active flows, and the time until which this number is valid.
pub fn flows(state: &[u64]) -> [u64; 2] {
    let mut out = [0; 2];
    // SAFETY: `state` is from `active`; C writes two words.
    unsafe { ap_host_active(state.as_ptr(), out.as_mut_ptr()) };
    out
}
