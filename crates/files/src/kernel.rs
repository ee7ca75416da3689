//! Settings of the kernel, which are files.

use std::io::{Result, Write};
use std::path::Path;

/// Changes a setting below `/proc/sys`, such as `net/ipv4/ip_forward`.
///
/// # Errors
/// The setting does not exist, or the process may not change it.
pub fn set_kernel(setting: &str, value: &str) -> Result<()> {
    std::fs::write(Path::new("/proc/sys").join(setting), value)
}

/// Changes a setting of this process, such as `uid_map`, a file below `/proc/self`.
///
/// # Errors
/// The setting does not exist, or the process may not change it.
pub fn set_process(setting: &str, value: &str) -> Result<()> {
    std::fs::write(Path::new("/proc/self").join(setting), value)
}

/// Moves this process into the control group (version 2) with the folder `group`.
///
/// # Errors
/// The folder is not a control group, or the process may not join it.
pub fn join_group(group: &Path) -> Result<()> {
    std::fs::OpenOptions::new().write(true).open(group.join("cgroup.procs"))?.write_all(b"0")
}
