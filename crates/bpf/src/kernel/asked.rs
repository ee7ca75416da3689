//! What this machine's kernel can do.

use std::fs;
use std::path::Path;

use libbpf_rs::ReferencesType;
use libbpf_rs::btf::{Btf, types};

use super::{BISCAY, BTF, LOCKDOWN, LoadError, PINS_ROOT, has_programs, refused};

/// Whether this build has programs, and this kernel may take and keep them from somebody with privileges. It loads nothing.
///
/// # Errors
/// What is missing.
pub fn readiness() -> Result<(), LoadError> {
    if !has_programs() {
        return Err(LoadError::NoPrograms);
    }
    if !Path::new(BTF).exists() {
        return Err(LoadError::NoBtf);
    }
    if is_locked() {
        return Err(LoadError::Lockdown);
    }
    if !has_pins() {
        return Err(LoadError::NoPins);
    }
    let types = Btf::from_vmlinux().map_err(|error| refused(BISCAY, "types", error))?;
    sample_argument(&types).map(drop)
}

/// Whether the file system is there.
///
/// Source: Linux man-pages proc_pid_mounts(5); fstab(5)
pub(super) fn has_pins() -> bool {
    fs::read_to_string("/proc/self/mounts").is_ok_and(|mounts| {
        mounts.lines().any(|mount| {
            let words: Vec<&str> = mount.split(' ').collect();
            words.get(1..3) == Some(&[PINS_ROOT, "bpf"])
        })
    })
}

/// Whether the kernel keeps its memory even from root.
///
/// Source: Linux security/lockdown/lockdown.c
pub(super) fn is_locked() -> bool {
    fs::read_to_string(LOCKDOWN).is_ok_and(|modes| modes.contains("[confidentiality]"))
}

/// Which argument of `cong_control` is the rate sample: the last one, of two or, from Linux 6.10 on, of four.
pub(super) fn sample_argument(btf: &Btf<'_>) -> Result<u32, LoadError> {
    let operations = btf.type_by_name::<types::Struct<'_>>("tcp_congestion_ops");
    let operations = operations.ok_or(LoadError::TooOld("struct tcp_congestion_ops"))?;
    let member = operations.iter().find(|member| member.name.is_some_and(|name| name == "cong_control"));
    let member = member.ok_or(LoadError::TooOld("cong_control"))?;
    let pointer = btf.type_by_id::<types::Ptr<'_>>(member.ty).ok_or(LoadError::TooOld("cong_control"))?;
    let call = btf.type_by_id::<types::FuncProto<'_>>(pointer.referenced_type().type_id());
    Ok(call.ok_or(LoadError::TooOld("cong_control"))?.iter().count().saturating_sub(1) as u32)
}
