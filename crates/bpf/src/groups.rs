//! The system's control groups, and the groups of programs whose connections use a scheme.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// Error of control groups.
#[derive(Debug, thiserror::Error)]
pub enum GroupsError {
    /// There is no folder in which the groups can be mounted.
    #[error("no folder for control groups")]
    Folder(#[source] io::Error),
    /// The groups cannot be mounted.
    #[error(
        "control groups of version 2 cannot be seen: run as root, or with CAP_SYS_ADMIN, on a kernel that has them"
    )]
    Mount(#[source] io::Error),
    /// A group cannot be created or opened.
    #[error("{}", path.display())]
    Group {
        /// Path of the group.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A group refuses this process.
    #[error("a control group does not take this process")]
    Join(#[source] io::Error),
}

/// Prefix of the names of the programs' control groups; the ID of this process follows.
const PREFIX: &str = "airpace-run-";

/// A mount of this system's control groups; dropping the value unmounts it.
pub struct Groups {
    mounted: tempfile::TempDir,
}

impl Groups {
    /// Mounts the control groups.
    ///
    /// # Errors
    /// This user may not mount them, or the kernel has none of version 2.
    pub fn see() -> Result<Groups, GroupsError> {
        let mounted = tempfile::tempdir().map_err(GroupsError::Folder)?;
        mount("airpace", mounted.path(), "cgroup2", MountFlags::empty(), None)
            .map_err(|error| GroupsError::Mount(error.into()))?;
        Ok(Groups { mounted })
    }

    /// The root group: that of the whole system, or that of a container that sees only its own groups.
    pub fn root(&self) -> &Path {
        self.mounted.path()
    }

    /// Opens the root group, which contains all other groups.
    ///
    /// # Errors
    /// The system refuses.
    pub fn open_root(&self) -> Result<File, GroupsError> {
        opened(self.root())
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

fn opened(group: &Path) -> Result<File, GroupsError> {
    File::open(group).map_err(|source| GroupsError::Group { path: group.to_owned(), source })
}

/// A control group that contains this process. Dropping the value moves the process back and removes the group.
pub struct OwnGroup {
    /// Keeps the mount that contains `path`.
    _groups: Groups,
    path: PathBuf,
    /// Control group of this process before.
    before: PathBuf,
    stays: fn(),
}

impl OwnGroup {
    /// Creates a group with this process. If processes that this process started remain in the group at the end, the group
    /// stays and `stays` is called.
    ///
    /// # Errors
    /// The control groups cannot be seen, or the system refuses a further one.
    pub fn enter(stays: fn()) -> Result<OwnGroup, GroupsError> {
        let groups = Groups::see()?;
        groups.sweep();
        let before = before(groups.root()).unwrap_or_else(|_| groups.root().to_owned());
        let path = groups.root().join(format!("{PREFIX}{}", std::process::id()));
        let group = OwnGroup { _groups: groups, path, before, stays };
        fs::create_dir(&group.path)
            .map_err(|source| GroupsError::Group { path: group.path.clone(), source })?;
        airpace_files::join_group(&group.path).map_err(GroupsError::Join)?;
        Ok(group)
    }

    /// Opens the group.
    ///
    /// # Errors
    /// The system refuses.
    pub fn open(&self) -> Result<File, GroupsError> {
        opened(&self.path)
    }
}

/// The control group of this process.
fn before(mounted: &Path) -> io::Result<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup")?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/")).ok_or(io::ErrorKind::NotFound)?;
    Ok(mounted.join(own))
}

impl Drop for OwnGroup {
    /// The kernel does not remove a group that contains processes.
    fn drop(&mut self) {
        if airpace_files::join_group(&self.before).and_then(|()| fs::remove_dir(&self.path)).is_err() {
            (self.stays)();
        }
    }
}
