//! Capabilities of this machine's kernel.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use libbpf_rs::ReferencesType;
use libbpf_rs::btf::{Btf, types};
use rustix::fs::{FlockOperation, flock};
use rustix::thread::CapabilitySet;

use super::{BISCAY, BTF, LOCKDOWN, LoadError, PINS_ROOT, has_programs, refused};

/// Whether this build has programs, and whether this kernel can load and pin these programs for a privileged user. This
/// function loads no program.
///
/// # Errors
/// The requirement that is missing.
pub fn readiness() -> Result<(), LoadError> {
    if !has_programs() {
        return Err(LoadError::NoPrograms);
    }
    if !Path::new(BTF).exists() {
        return Err(LoadError::no_btf());
    }
    if is_locked() {
        return Err(LoadError::Lockdown);
    }
    if pins().is_none() {
        return Err(LoadError::NoPins);
    }
    let types = Btf::from_vmlinux().map_err(|error| refused(BISCAY, "types", error))?;
    sample_argument(&types).map(drop)
}

/// Whether the kernel lets this process load and attach programs. In a user namespace, the process's capabilities do not
/// count.
///
/// Source: man-pages capabilities(7) (CAP_BPF); Linux kernel/bpf/syscall.c (bpf_prog_load)
pub fn may_load() -> bool {
    let has_all = |rights: CapabilitySet| {
        rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.contains(rights))
    };
    let is_first = fs::read_to_string("/proc/self/uid_map")
        .is_ok_and(|map| map.split_whitespace().eq(["0", "0", "4294967295"]));
    let may_run = CapabilitySet::BPF.union(CapabilitySet::PERFMON);
    is_first && has_all(CapabilitySet::NET_ADMIN) && (has_all(CapabilitySet::SYS_ADMIN) || has_all(may_run))
}

/// Waits until no other process loads or unloads a scheme, and locks other processes out for the lifetime of the
/// result. `None` if the BPF file system is not mounted or this user has no access to it; in these cases no scheme can
/// be loaded.
pub fn turn() -> Option<File> {
    let root = File::open(pins()?.parent()?).ok()?;
    flock(&root, FlockOperation::LockExclusive).is_ok().then_some(root)
}

/// Source: Linux include/uapi/linux/magic.h (BPF_FS_MAGIC)
const BPF_FS: u32 = 0xCAFE_4A11;

/// The folder of pinned schemes; `None` if the BPF file system is not mounted. `ip netns exec` hides the mount from
/// this process, but not from its caller: in this case, the mount of the nearest ancestor process that has one is used.
pub(super) fn pins() -> Option<PathBuf> {
    let own = PathBuf::from(PINS_ROOT);
    let seen = ancestors().map(|pid| PathBuf::from(format!("/proc/{pid}/root{PINS_ROOT}")));
    let is_there = |root: &PathBuf| rustix::fs::statfs(root).is_ok_and(|found| found.f_type as u32 == BPF_FS);
    std::iter::once(own).chain(seen).find(is_there).map(|root| root.join("airpace"))
}

/// The folder of a pinned scheme; `None` if the folder does not exist. Only this user may have write access to this
/// folder and its parent: another user with access could make this process open or remove other files.
///
/// # Errors
/// [`LoadError::Foreign`] if other users can write to the folder, or the path is a symbolic link.
pub(super) fn own_pins(scheme: &str) -> Result<Option<PathBuf>, LoadError> {
    let Some(pins) = pins() else { return Ok(None) };
    let folder = pins.join(scheme);
    for path in [&pins, &folder] {
        match airpace_files::is_own_folder(path) {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            // Without search permission on the parent folder, nothing is known about this folder.
            Err(error) if error.raw_os_error().is_some() => return Err(LoadError::privileges()),
            Err(error) => return Err(LoadError::Foreign { path: path.clone(), error }),
        }
    }
    Ok(Some(folder))
}

/// The ancestors of this process, nearest first.
///
/// Source: man-pages proc_pid_status(5)
fn ancestors() -> impl Iterator<Item = u32> {
    let parent = |of: &str| {
        let status = fs::read_to_string(format!("/proc/{of}/status")).ok()?;
        let pid: u32 = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()?;
        (pid != 0).then_some(pid)
    };
    std::iter::successors(parent("self"), move |pid| parent(&pid.to_string()))
}

/// Whether the kernel's memory is protected even from root (lockdown mode `confidentiality`).
///
/// Source: Linux security/lockdown/lockdown.c
pub(super) fn is_locked() -> bool {
    fs::read_to_string(LOCKDOWN).is_ok_and(|modes| modes.contains("[confidentiality]"))
}

/// Index of `cong_control`'s argument that is the rate sample: the last of two arguments or, since Linux 6.10, the last
/// of four arguments.
pub(super) fn sample_argument(btf: &Btf<'_>) -> Result<u32, LoadError> {
    let operations = btf.type_by_name::<types::Struct<'_>>("tcp_congestion_ops");
    let operations = operations.ok_or(LoadError::TooOld("struct tcp_congestion_ops"))?;
    let member = operations.iter().find(|member| member.name.is_some_and(|name| name == "cong_control"));
    let member = member.ok_or(LoadError::TooOld("cong_control"))?;
    let pointer = btf.type_by_id::<types::Ptr<'_>>(member.ty).ok_or(LoadError::TooOld("cong_control"))?;
    let call = btf.type_by_id::<types::FuncProto<'_>>(pointer.referenced_type().type_id());
    Ok(call.ok_or(LoadError::TooOld("cong_control"))?.iter().count().saturating_sub(1) as u32)
}
