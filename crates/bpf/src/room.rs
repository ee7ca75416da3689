//! Space for PBE-CC's option on ACKs full of SACK blocks: a program at network devices, which processes outgoing packets.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use libbpf_rs::libbpf_sys::{BPF_TCX_EGRESS, bpf_link_create};
use libbpf_rs::{PrintLevel, TC_EGRESS, TcHook, TcHookBuilder};
use rustix::net::{AddressFamily, SocketType, socket};

use crate::messages;

/// Handle of the filter, by which the filter is found again in a kernel without links. `PRIORITY` is its priority.
///
/// Chosen: the identifier of the option, and the first priority.
const HANDLE: u32 = 0xA19B;
const PRIORITY: u32 = 1;

/// The index of a network device in this thread's namespace; `None` if there is no device of that name.
pub fn device_number(name: &str) -> Option<u32> {
    let any = socket(AddressFamily::UNIX, SocketType::DGRAM, None).ok()?;
    rustix::net::netdevice::name_to_index(any, name).ok()
}

/// The program that replaces a SACK block, not yet attached to a device.
pub struct RoomProgram {
    program: OwnedFd,
}

/// The program attached to a device. Dropping this value in the device's network namespace detaches the program.
pub struct AttachedRoom {
    /// A link; in kernels before 6.6, a filter, which remains if the process is killed.
    kind: Kind,
}

enum Kind {
    Link { _link: OwnedFd },
    Filter { program: OwnedFd, index: i32 },
}

impl RoomProgram {
    pub(crate) fn of(program: OwnedFd) -> RoomProgram {
        // libbpf's messages about a device without filters are not errors.
        libbpf_rs::set_print(Some((PrintLevel::Warn, messages::keep)));
        RoomProgram { program }
    }

    /// Attaches the program to the device of this index, in the network namespace of this thread.
    ///
    /// # Errors
    /// There is no such device, or the caller lacks privileges.
    pub fn attach(&self, device: u32) -> io::Result<AttachedRoom> {
        self.attach_link(device).or_else(|_| self.attach_filter(device))
    }

    /// Attaches the program by a link, which kernels support since 6.6.
    ///
    /// # Errors
    /// As [`RoomProgram::attach`].
    pub fn attach_link(&self, device: u32) -> io::Result<AttachedRoom> {
        let index = device.try_into().map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: the arguments are numbers, and the pointer may be null, because there are no options.
        let link =
            unsafe { bpf_link_create(self.program.as_raw_fd(), index, BPF_TCX_EGRESS, std::ptr::null()) };
        if link < 0 {
            return Err(io::Error::from_raw_os_error(-link));
        }
        // SAFETY: the descriptor is new, and this value is its only owner.
        Ok(AttachedRoom { kind: Kind::Link { _link: unsafe { OwnedFd::from_raw_fd(link) } } })
    }

    /// Attaches the program by a filter. Replaces a filter of an earlier process.
    ///
    /// # Errors
    /// As [`RoomProgram::attach`].
    pub fn attach_filter(&self, device: u32) -> io::Result<AttachedRoom> {
        let index = device.try_into().map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut hook = hook(&self.program, index);
        let refused = |error: libbpf_rs::Error| io::Error::other(error.to_string());
        hook.create().map_err(refused)?;
        hook.attach().map_err(refused)?;
        Ok(AttachedRoom { kind: Kind::Filter { program: self.program.try_clone()?, index } })
    }

    /// Removes a filter that an earlier process left at a device. Returns whether there was a filter.
    ///
    /// # Errors
    /// The index is not valid.
    pub fn detach_filter(&self, device: u32) -> io::Result<bool> {
        let mut hook = hook(&self.program, device.try_into().map_err(|_| io::ErrorKind::InvalidInput)?);
        Ok(hook.query().is_ok() && hook.detach().is_ok())
    }
}

/// This crate's filter at the device with this index.
fn hook(program: &OwnedFd, index: i32) -> TcHook {
    let mut builder = TcHookBuilder::new(program.as_fd());
    builder.ifindex(index).replace(true).handle(HANDLE).priority(PRIORITY);
    builder.hook(TC_EGRESS)
}

impl AttachedRoom {
    /// Whether the kernel detaches the program when the process ends, even if it is killed.
    pub fn ends_by_itself(&self) -> bool {
        matches!(self.kind, Kind::Link { .. })
    }
}

impl Drop for AttachedRoom {
    fn drop(&mut self) {
        if let Kind::Filter { program, index } = &self.kind {
            // The device and its filters may have been removed.
            let _ = hook(program, *index).detach();
        }
    }
}
