//! The commands, one file each. `Args` declares a command's arguments; `run` runs the command and writes results to
//! `out`.

pub mod agree;
pub mod complete;
pub mod completions;
pub mod decode;
pub mod demo;
pub mod diag;
pub mod doctor;
pub mod emu;
pub mod encode;
pub mod install;
pub mod kernel;
pub mod list;
pub mod man;
mod matrix;
pub mod outputs;
mod parquet_file;
pub mod proxy;
pub mod recv;
pub mod report;
pub mod reproduce;
pub mod runs;
pub mod sample;
mod scenario;
pub mod send;
pub mod sim;
pub mod sweep;
pub mod trace;
pub mod video;
mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;

/// Outcome of a command that ran to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The command succeeded, and no expectation failed.
    Fine,
    /// An expectation failed.
    Failed,
    /// The program that the command started ended with this status.
    Status(u8),
}

/// The inputs were read, but contain none of the requested data. The exit code is 1, as for a failed expectation.
#[derive(Debug)]
pub struct NothingFound(pub String);

impl std::fmt::Display for NothingFound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NothingFound {}

/// Parses a finite number above zero.
fn positive(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if number > 0.0 && f64::is_finite(number) => Ok(number),
        _ => Err("give a number above 0".to_owned()),
    }
}

/// Parses a number from `MIN` to `MAX`.
fn within<const MIN: i32, const MAX: i32>(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if (f64::from(MIN)..=f64::from(MAX)).contains(&number) => Ok(number),
        _ => Err(format!("give a number from {MIN} to {MAX}")),
    }
}

/// Error text if the system cannot start a thread.
const NO_THREAD: &str =
    "the system gives no further thread; end other programs, or raise the limit (`ulimit -u`)";

/// Runs `work` on a thread of this name.
///
/// # Errors
/// The system cannot start another thread.
fn thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> anyhow::Result<std::thread::JoinHandle<T>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).context(NO_THREAD)
}

/// Seconds since 1970, to the millisecond.
fn unix_s(at: SystemTime) -> f64 {
    at.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_millis() as f64 / 1e3)
}

/// Returns the flag that Ctrl-C sets, so that the command stops cleanly. A second Ctrl-C exits immediately with status
/// 130.
fn on_interrupt() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    })
    .context("cannot listen to Ctrl-C")?;
    Ok(stop)
}
