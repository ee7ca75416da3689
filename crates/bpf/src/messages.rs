//! Messages of libbpf and of the verifier, which errors show.

use std::sync::{Mutex, PoisonError};

use libbpf_rs::PrintLevel;

/// Messages of libbpf since the last call of [`take`].
static KEPT: Mutex<Vec<String>> = Mutex::new(vec![]);

/// Number of lines of libbpf and the verifier that an error contains.
///
/// Chosen: this contains the verifier's own error and the instruction before it.
const LAST_LINES: usize = 8;

/// Stores a message of libbpf.
pub(crate) fn keep(_: PrintLevel, text: String) {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    kept.extend(text.lines().map(|line| line.trim().to_owned()));
}

/// Returns the last lines of the stored messages, and deletes all stored messages.
pub(crate) fn take() -> String {
    let kept = std::mem::take(&mut *KEPT.lock().unwrap_or_else(PoisonError::into_inner));
    kept[kept.len().saturating_sub(LAST_LINES)..].join("; ")
}
