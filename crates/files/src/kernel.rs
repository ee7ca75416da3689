//! Settings of the kernel, which are files.

use std::io::{Result, Write};
use std::path::Path;

/// Changes a setting below `/proc/sys`, such as `net/ipv4/ip_forward`.
///
/// # Errors
/// If there is no such setting, or the process may not change it.
pub fn set_kernel(setting: &str, value: &str) -> Result<()> {
    std::fs::write(Path::new("/proc/sys").join(setting), value)
}

/// Changes a setting of this process, such as `uid_map`, a file below `/proc/self`.
///
/// # Errors
/// If there is no such setting, or the process may not change it.
pub fn set_process(setting: &str, value: &str) -> Result<()> {
    std::fs::write(Path::new("/proc/self").join(setting), value)
}

/// Moves this process into the control group (version 2) that is seen at `group`.
///
/// # Errors
/// If it is none, or the process may not.
pub fn join_group(group: &Path) -> Result<()> {
    std::fs::OpenOptions::new().write(true).open(group.join("cgroup.procs"))?.write_all(b"0")
}
