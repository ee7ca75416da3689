//! The system's control groups, and the groups of programs that `airpace kernel run` has started.

use std::fs;
use std::path::Path;

use anyhow::Context;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// Prefix of the names of the programs' control groups; the ID of this process follows.
pub const PREFIX: &str = "airpace-run-";

/// A mount of this system's control groups; dropping the value unmounts it.
pub struct Groups {
    mounted: tempfile::TempDir,
}

impl Groups {
    /// Mounts the control groups.
    pub fn see() -> anyhow::Result<Groups> {
        let mounted = tempfile::tempdir().context("no folder for control groups")?;
        mount("airpace", mounted.path(), "cgroup2", MountFlags::empty(), None)
            .context("control groups of version 2 cannot be seen: run as root, or with CAP_SYS_ADMIN, on a kernel that has them")?;
        Ok(Groups { mounted })
    }

    /// The root group: that of the whole system, or that of a container that sees only its own groups.
    pub fn root(&self) -> &Path {
        self.mounted.path()
    }

    /// Removes the remains of an earlier run: the run was killed, or its program had left processes that have ended
    /// since.
    pub fn sweep(&self) {
        let entries = fs::read_dir(self.root()).into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name();
            let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
            if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
                // The kernel does not remove a group that contains processes.
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
}

/// Removes the empty control groups of earlier runs, if this user may.
pub fn sweep() {
    if let Ok(groups) = Groups::see() {
        groups.sweep();
    }
}

impl Drop for Groups {
    /// Unmounts the control groups; the remaining folder is empty.
    fn drop(&mut self) {
        let _ = unmount(self.mounted.path(), UnmountFlags::DETACH);
    }
}
