//! `airpace kernel run`: a program whose TCP connections use a scheme, although it knows nothing of it.
//!
//! The program runs in a control group of its own, in which a small program in the kernel chooses the scheme for each
//! connection.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use airpace_bpf::choose::Chooser;
use airpace_bpf::kernel::{Pinned, SCHEMES};
use anyhow::{Context, bail, ensure};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::cmd::{Verdict, on_interrupt};

/// Runs the command, and ends with its status.
pub fn run(scheme: &str, command: &[OsString]) -> anyhow::Result<Verdict> {
    let Some(scheme) = SCHEMES.into_iter().find(|name| *name == scheme) else {
        bail!("`{scheme}` is not of the kernel's: `{}`", SCHEMES.join("`, `"));
    };
    let [program, arguments @ ..] = command else { bail!("name a program behind `--`") };
    ensure!(
        Pinned::open(scheme)?.is_some(),
        "`{scheme}` is not loaded; `airpace kernel load {scheme}` does it"
    );
    // Ctrl-C reaches the program too; this one ends after it, and leaves nothing behind.
    on_interrupt()?;
    let group = Group::enter()?;
    let folder = File::open(&group.path).with_context(|| group.path.display().to_string())?;
    let chooser = Chooser::attach(folder.as_fd(), scheme)?;
    let status = Command::new(program).args(arguments).status();
    drop(chooser);
    let status = status.with_context(|| format!("cannot run {}", Path::new(program).display()))?;
    let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    Ok(if code == 0 { Verdict::Fine } else { Verdict::Status(code as u8) })
}

/// A place where this system's control groups can be seen, until it is dropped.
pub struct Groups {
    mounted: tempfile::TempDir,
}

impl Groups {
    /// Makes it.
    pub fn see() -> anyhow::Result<Groups> {
        let mounted = tempfile::tempdir().context("no folder for control groups")?;
        mount("airpace", mounted.path(), "cgroup2", MountFlags::empty(), None)
            .context("control groups of version 2 cannot be seen: run as root, on a kernel that has them")?;
        Ok(Groups { mounted })
    }

    /// The group that all others are in: that of the whole system, or of a container that sees only its own.
    pub fn root(&self) -> &Path {
        self.mounted.path()
    }
}

impl Drop for Groups {
    /// What stays is empty.
    fn drop(&mut self) {
        let _ = unmount(self.mounted.path(), UnmountFlags::DETACH);
    }
}

/// A control group with this process in it. Its end undoes that.
struct Group {
    /// `path` lies there.
    _groups: Groups,
    path: PathBuf,
    /// Where this process was before.
    before: PathBuf,
}

impl Group {
    fn enter() -> anyhow::Result<Group> {
        let groups = Groups::see()?;
        let before = before(groups.root()).unwrap_or_else(|_| groups.root().to_owned());
        let path = groups.root().join(format!("airpace-run-{}", std::process::id()));
        let group = Group { _groups: groups, path, before };
        fs::create_dir(&group.path).with_context(|| group.path.display().to_string())?;
        join(&group.path).context("a control group does not take this process")?;
        Ok(group)
    }
}

/// The group of this process.
fn before(mounted: &Path) -> io::Result<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup")?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/")).ok_or(io::ErrorKind::NotFound)?;
    Ok(mounted.join(own))
}

/// Moves this process into a group.
fn join(group: &Path) -> io::Result<()> {
    airpace_files::join_group(group)
}

impl Drop for Group {
    /// What stays is empty: the kernel keeps a group that has processes.
    fn drop(&mut self) {
        let _ = join(&self.before).and_then(|()| fs::remove_dir(&self.path));
    }
}
