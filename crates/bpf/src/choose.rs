//! Selects a scheme for the connections of the programs in a control group, without changes to these programs.

use std::os::fd::{AsRawFd, BorrowedFd};

use libbpf_rs::{Link, Object, ObjectBuilder, PrintLevel};

use crate::kernel::{LoadError, refused};
use crate::messages;

#[cfg(has_programs)]
const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/run.bpf.o"));
#[cfg(not(has_programs))]
const PROGRAM: &[u8] = &[];

/// Maximum length of a scheme's name, including the final zero.
///
/// Source: Linux include/net/tcp.h (TCP_CA_NAME_MAX)
const NAME: usize = 16;

/// A selection of a scheme, which is active for the lifetime of this value.
pub struct Chooser {
    _link: Link,
    _object: Object,
}

impl Chooser {
    /// From now on, TCP connections of programs in the control group `group` (version 2) use `scheme`.
    ///
    /// # Errors
    /// The kernel rejects the program; [`LoadError`] explains the remedy.
    pub fn attach(group: BorrowedFd<'_>, scheme: &'static str) -> Result<Chooser, LoadError> {
        if PROGRAM.is_empty() {
            return Err(LoadError::NoPrograms);
        }
        libbpf_rs::set_print(Some((PrintLevel::Warn, messages::keep)));
        let refused = |what| move |error: libbpf_rs::Error| refused(scheme, what, error);
        let mut name = [0; NAME];
        name.iter_mut().zip(scheme.bytes().take(NAME - 1)).for_each(|(place, byte)| *place = byte);
        let mut open = ObjectBuilder::default().open_memory(PROGRAM).map_err(refused("open"))?;
        for mut map in open.maps_mut() {
            if map.name() == ".rodata.scheme" {
                map.set_initial_value(&name).map_err(refused("constants"))?;
            }
        }
        let object = open.load().map_err(refused("load"))?;
        let program = object.progs_mut().next().ok_or(LoadError::NoPrograms)?;
        let link = program.attach_cgroup(group.as_raw_fd()).map_err(refused("attach to a control group"))?;
        Ok(Chooser { _link: link, _object: object })
    }
}
