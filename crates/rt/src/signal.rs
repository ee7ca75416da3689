//! Signals for which no safe wrapper exists.

#![allow(unsafe_code)]

/// Makes this process ignore SIGHUP, so that closing the terminal or logging out does not stop it. Call this function
/// after signal handlers are installed, because these handlers may include a handler for SIGHUP.
pub fn ignore_hangups() {
    // SAFETY: no handler of ours is installed; the process ignores the signal.
    unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
}
