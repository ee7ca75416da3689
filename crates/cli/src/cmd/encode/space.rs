//! Check of the free space for a recording.

use std::path::Path;

use airpace_sdr::iq::{Format, Writer};
use anyhow::bail;
use indicatif::DecimalBytes;

use crate::terminal;

/// Prints the size of the output for this duration, and the files that the output replaces.
///
/// # Errors
/// The free space is too small.
pub fn check(out: &Path, format: Format, sample_rate_hz: f64, seconds: f64) -> anyhow::Result<()> {
    let bytes_per_second = sample_rate_hz * format.size() as f64;
    let size = DecimalBytes((bytes_per_second * seconds) as u64);
    // If the free space is unknown, the check passes. Creating the file may still fail.
    if let Some(free) = free_bytes(out)
        && size.0 > free
    {
        let fitting = free as f64 / bytes_per_second;
        let shorter = if fitting < 0.1 {
            String::new()
        } else {
            format!("--seconds (up to {fitting:.1}), a smaller --format (ci8) or ")
        };
        bail!(
            "--out {}: {seconds} s need {size}, and {} are free there; give {shorter}another place",
            out.display(),
            DecimalBytes(free)
        );
    }
    for file in Writer::files(out) {
        if let Ok(about) = file.metadata() {
            let size = DecimalBytes(about.len());
            terminal::say(format_args!("airpace: {} exists ({size}) and will be replaced", file.display()));
        }
    }
    let msps = sample_rate_hz * 1e-6;
    terminal::say(format_args!("airpace: {seconds} s at {msps} Msps: {size} for {}", out.display()));
    Ok(())
}

/// Number of bytes that an ordinary user may still write in the folder of `out`.
fn free_bytes(out: &Path) -> Option<u64> {
    let folder = out.parent().filter(|parent| *parent != Path::new(""));
    let there = rustix::fs::statvfs(folder.unwrap_or(Path::new("."))).ok()?;
    Some(there.f_bavail.saturating_mul(there.f_frsize))
}
