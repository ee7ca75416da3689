//! Namespaces: user namespaces for unprivileged users, network namespaces for devices and the far side, and a PID
//! namespace so that no process is left behind.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use airpace_core::{Refused, Remedy};
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, kill_process, pidfd_open, setpgid, wait, waitpid,
};
use rustix::thread::{CapabilitySet, UnshareFlags};

use super::interfaces::or_simulator;
use crate::error::EmuError;
use crate::sys;

/// Capabilities that permit the creation of network and PID namespaces.
const NEEDED: CapabilitySet = CapabilitySet::SYS_ADMIN.union(CapabilitySet::NET_ADMIN);

/// Capabilities that programs keep in a user namespace although they are not root there: they may capture on their
/// interfaces, choose any congestion control, and start nested emulators.
pub(super) const KEPT: CapabilitySet =
    NEEDED.union(CapabilitySet::NET_RAW).union(CapabilitySet::NET_BIND_SERVICE);

/// Returns whether namespaces can be created without a user namespace.
pub(crate) fn is_privileged() -> bool {
    rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.contains(NEEDED))
}

/// Returns the capabilities in [`KEPT`] that this process has and may pass on, as on a device of another emulator.
/// Capabilities that the process has only because of its file or user are not passed to programs.
pub(super) fn inherited() -> CapabilitySet {
    rustix::thread::capabilities(None)
        .map_or(CapabilitySet::empty(), |sets| KEPT & sets.permitted & sets.inheritable)
}

/// Enters a new user namespace, in which this user has all capabilities.
pub(super) fn enter_user_namespace() -> Result<(), EmuError> {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let enter = || {
        sys::unshare(UnshareFlags::NEWUSER)?;
        airpace_files::set_process("setgroups", "deny")?;
        airpace_files::set_process("uid_map", &format!("{user} {user} 1"))?;
        airpace_files::set_process("gid_map", &format!("{group} {group} 1"))
    };
    enter().map_err(|why: io::Error| {
        Refused::new(format!("cannot make a user namespace, in which the emulator needs no root: {why}"))
            .but(or_simulator(Remedy::new(remedy(&why, "user"))))
            .into()
    })
}

/// Returns the remedy if the machine forbids namespaces of this kind (`user`, `net`).
///
/// Source: man-pages namespaces(7) (/proc/sys/user)
pub(crate) fn remedy(why: &io::Error, kind: &str) -> String {
    // The machine's limits cannot be read in a user namespace, which has separate limits.
    if why.raw_os_error() == Some(libc::ENOSPC) {
        return format!("allow more of them with `sysctl user.max_{kind}_namespaces=10000`");
    }
    remedy_by(|setting| std::fs::read_to_string(format!("/proc/sys/{setting}")).ok())
}

fn remedy_by(value_of: impl Fn(&str) -> Option<String>) -> String {
    let settings = [
        ("kernel/unprivileged_userns_clone", "0", "1"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),
    ];
    let forbids = |(setting, forbidden, _): &&(&str, &str, &str)| {
        value_of(setting).is_some_and(|text| text.trim() == *forbidden)
    };
    match settings.iter().find(forbids) {
        Some((setting, _, allowed)) => {
            format!("allow them with `sysctl {}={allowed}`, or run as root", setting.replace('/', "."))
        }
        None => "run as root; in a container, start that with `--device /dev/net/tun --cap-add NET_ADMIN --cap-add \
                 SYS_ADMIN --security-opt apparmor=unconfined`"
            .to_owned(),
    }
}

/// Runs `make` in a new network namespace. Returns its result and the open namespace; the calling thread stays in its
/// namespace.
pub(super) fn in_new_network<T: Send>(
    make: impl FnOnce() -> Result<T, EmuError> + Send,
) -> Result<(T, File), EmuError> {
    let there = || {
        sys::unshare(UnshareFlags::NEWNET).map_err(|why| {
            let remedy = or_simulator(Remedy::new(remedy(&why, "net")));
            EmuError::from(Refused::new(format!("cannot make a network namespace: {why}")).but(remedy))
        })?;
        Ok((make()?, this_network()?))
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, there);
        match thread.map_err(EmuError::step("start a thread"))?.join() {
            Ok(made) => made,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Returns the thread's network namespace as an open file.
pub(super) fn this_network() -> Result<File, EmuError> {
    File::open("/proc/thread-self/ns/net").map_err(EmuError::step("hold a network namespace open"))
}

/// The first process of a session.
pub(super) struct First {
    /// Whether all processes of the session are in a PID namespace.
    pub has_namespace: bool,
    /// Process descriptor of the waiting parent process, which becomes readable when the parent ends.
    pub waiter: OwnedFd,
}

/// Continues as the first process of a new PID namespace, with its own mounts and `/proc`. Returns in the new process.
/// The old process waits for the new one, calls `after`, and exits with the new process's status.
///
/// Where the operating system does not permit such a namespace (containers often hide parts of `/proc`), the new process
/// adopts processes whose parents end, and the old process adopts them if the new one is killed.
pub(super) fn become_first_process(after: impl FnOnce()) -> Result<First, EmuError> {
    let step = "watch the process that waits";
    let waiter =
        pidfd_open(getpid(), PidfdFlags::empty()).map_err(|error| EmuError::step(step)(error.into()))?;
    let has_namespace = can_have_processes()?;
    if has_namespace {
        let step = EmuError::step("make a namespace of processes");
        sys::unshare(UnshareFlags::NEWPID | UnshareFlags::NEWNS).map_err(step)?;
    }
    let take_over = || {
        let this = Some(getpid());
        rustix::process::set_child_subreaper(this)
            .map_err(|error| EmuError::step("take over processes")(error.into()))
    };
    if !has_namespace {
        take_over()?;
    }
    if let Some(child) = sys::fork().map_err(EmuError::step("start a process"))? {
        // A signal to the whole group, as `timeout` sends it, must not kill this process, which reverts the changes. If
        // the process cannot have a separate group, everything else still works.
        let _ = setpgid(None, None);
        let status = status_of(child);
        if !has_namespace {
            kill_all_below();
        }
        after();
        std::process::exit(status);
    }
    match has_namespace {
        true => mount_proc().map_err(EmuError::step("mount /proc"))?,
        false => take_over()?,
    }
    Ok(First { has_namespace, waiter })
}

/// Creates a mount namespace for the process, which must not have one yet.
pub(super) fn own_mounts() -> io::Result<()> {
    sys::unshare(UnshareFlags::NEWNS)?;
    Ok(mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?)
}

/// Runs `act` with an empty folder in memory that is visible to this process and its children only, and only during the
/// call; the process must have its own mounts.
pub(super) fn in_hidden_folder<T>(act: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    // The mount hides the folder's contents during the call.
    let folder = Path::new("/tmp");
    mount("airpace", folder, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, None)?;
    let done = act(folder);
    unmount(folder, UnmountFlags::DETACH)?;
    done
}

/// Kills all descendants of this process until none is left. In a PID namespace, the kernel does this.
pub(super) fn kill_all_below() {
    loop {
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        let children = children_of(getpid());
        if children.is_empty() {
            return;
        }
        for child in children {
            let _ = kill_process(child, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the children of a process, including those that it adopted.
fn children_of(process: Pid) -> Vec<Pid> {
    let number = process.as_raw_nonzero();
    let listed =
        std::fs::read_to_string(format!("/proc/{number}/task/{number}/children")).unwrap_or_default();
    listed.split_whitespace().filter_map(|word| Pid::from_raw(word.parse().ok()?)).collect()
}

/// Returns all running descendants of this process, except those in `spared` and their descendants.
pub(super) fn all_below(spared: &[Pid]) -> Vec<Pid> {
    let mut found = vec![getpid()];
    let mut place = 0;
    while let Some(&parent) = found.get(place) {
        found.extend(children_of(parent).into_iter().filter(|child| !spared.contains(child)));
        place += 1;
    }
    found.split_off(1)
}

/// Tests in temporary processes whether a PID namespace with its own `/proc` can be created.
fn can_have_processes() -> Result<bool, EmuError> {
    let try_it = || {
        let Some(child) = sys::fork()? else {
            let inner = sys::unshare(UnshareFlags::NEWPID | UnshareFlags::NEWNS).and_then(|()| sys::fork());
            std::process::exit(match inner {
                Ok(Some(first)) => status_of(first),
                Ok(None) => i32::from(mount_proc().is_err()),
                Err(_) => 1,
            });
        };
        Ok(status_of(child) == 0)
    };
    try_it().map_err(EmuError::step("start a process"))
}

fn mount_proc() -> io::Result<()> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    Ok(mount("proc", "/proc", "proc", flags, None)?)
}

/// Waits for the end of a process. Returns its exit status, or 128 plus the number of the signal that ended it.
fn status_of(child: libc::pid_t) -> i32 {
    loop {
        match waitpid(Pid::from_raw(child), WaitOptions::empty()) {
            Ok(Some((_, status))) => {
                return status
                    .exit_status()
                    .unwrap_or_else(|| 128 + status.terminating_signal().unwrap_or(0));
            }
            Err(rustix::io::Errno::INTR) | Ok(None) => {}
            Err(_) => return 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_that_forbids_namespaces_is_named() {
        let with = |name: &'static str, value: &'static str| {
            remedy_by(move |setting| (setting == name).then(|| format!("{value}\n")))
        };
        assert_eq!(
            with("kernel/apparmor_restrict_unprivileged_userns", "1"),
            "allow them with `sysctl kernel.apparmor_restrict_unprivileged_userns=0`, or run as root"
        );
        assert!(with("kernel/unprivileged_userns_clone", "0").contains("unprivileged_userns_clone=1"));
        let full = io::Error::from_raw_os_error(libc::ENOSPC);
        assert!(remedy(&full, "net").contains("sysctl user.max_net_namespaces=10000"));
        let other = with("kernel/unprivileged_userns_clone", "1");
        assert!(other.starts_with("run as root") && other.contains("--cap-add NET_ADMIN"), "{other}");
    }
}
