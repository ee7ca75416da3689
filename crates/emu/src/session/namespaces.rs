//! Namespaces: of users where there are no rights, of networks for devices and the far side, of processes so that nothing
//! is left behind.

use std::fs::File;
use std::io;

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{WaitOptions, waitpid};
use rustix::thread::{CapabilitySet, UnshareFlags};

use crate::error::EmuError;
use crate::sys;

/// Rights that make namespaces of networks and processes.
const NEEDED: CapabilitySet = CapabilitySet::SYS_ADMIN.union(CapabilitySet::NET_ADMIN);

/// Rights that programs keep in a user namespace although they are not root there: they may look at their interfaces,
/// choose any congestion control, and start emulators of their own.
pub(super) const KEPT: CapabilitySet =
    NEEDED.union(CapabilitySet::NET_RAW).union(CapabilitySet::NET_BIND_SERVICE);

/// Whether namespaces can be made without a user namespace.
pub(super) fn is_privileged() -> bool {
    rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.contains(NEEDED))
}

/// Enters a new user namespace, in which this user has all rights.
pub(super) fn enter_user_namespace() -> Result<(), EmuError> {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let enter = || {
        sys::unshare(UnshareFlags::NEWUSER)?;
        airpace_files::set_process("setgroups", "deny")?;
        airpace_files::set_process("uid_map", &format!("{user} {user} 1"))?;
        airpace_files::set_process("gid_map", &format!("{group} {group} 1"))
    };
    enter().map_err(|why: io::Error| {
        EmuError::Refused(format!(
            "cannot make a user namespace, in which the emulator needs no root: {why}; {}. `airpace sim` runs the same \
             scenario in virtual time and needs no rights",
            remedy()
        ))
    })
}

/// What forbids user namespaces here, and what to do.
pub(super) fn remedy() -> &'static str {
    let is = |setting: &str, value: &str| {
        std::fs::read_to_string(format!("/proc/sys/{setting}")).is_ok_and(|text| text.trim() == value)
    };
    if is("user/max_user_namespaces", "0") {
        "allow them with `sysctl user.max_user_namespaces=10000`, or run as root"
    } else if is("kernel/unprivileged_userns_clone", "0") {
        "allow them with `sysctl kernel.unprivileged_userns_clone=1`, or run as root"
    } else if is("kernel/apparmor_restrict_unprivileged_userns", "1") {
        "allow them with `sysctl kernel.apparmor_restrict_unprivileged_userns=0`, or run as root"
    } else {
        "run as root; in a container, start that with `--device /dev/net/tun --cap-add NET_ADMIN --cap-add SYS_ADMIN \
         --security-opt apparmor=unconfined`"
    }
}

/// Gives the thread a new network namespace.
pub(super) fn new_network() -> Result<(), EmuError> {
    sys::unshare(UnshareFlags::NEWNET)
        .map_err(|why| EmuError::Refused(format!("cannot make a network namespace: {why}; {}", remedy())))
}

/// The thread's network namespace, held open.
pub(super) fn this_network() -> Result<File, EmuError> {
    File::open("/proc/thread-self/ns/net").map_err(EmuError::step("hold a network namespace open"))
}

/// Goes on as the first process of a new namespace of processes, with a `/proc` of its own. Returns in the new process;
/// the old one waits for its end and ends with its status.
///
/// Where the operating system allows no such namespace (containers often hide parts of `/proc`), the new process takes
/// over processes whose parents end. Returns whether there is a namespace.
pub(super) fn become_first_process() -> Result<bool, EmuError> {
    let has_namespace = can_have_processes()?;
    if has_namespace {
        let step = EmuError::step("make a namespace of processes");
        sys::unshare(UnshareFlags::NEWPID | UnshareFlags::NEWNS).map_err(step)?;
    }
    if let Some(child) = sys::fork().map_err(EmuError::step("start a process"))? {
        std::process::exit(status_of(child));
    }
    if has_namespace {
        mount_proc().map_err(EmuError::step("mount /proc"))?;
    } else {
        let this = Some(rustix::process::getpid());
        rustix::process::set_child_subreaper(this)
            .map_err(|error| EmuError::step("take over processes")(error.into()))?;
    }
    Ok(has_namespace)
}

/// Tries it in processes that are thrown away.
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

/// Waits for the end of a process; the status that a process has that ends in the same way.
fn status_of(child: libc::pid_t) -> i32 {
    loop {
        match waitpid(rustix::process::Pid::from_raw(child), WaitOptions::empty()) {
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
