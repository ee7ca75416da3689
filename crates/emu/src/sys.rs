//! System calls without a safe wrapper.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use airpace_rt::clock;
use rustix::thread::{CapabilitySet, LinkNameSpaceType, UnshareFlags};

/// Turns an open `/dev/net/tun` into the TUN device `name` of the thread's network namespace.
///
/// # Errors
/// The operating system refuses: the thread needs CAP_NET_ADMIN in the namespace, and the name must be free.
///
/// Source: Linux tuntap.rst §3.1 (TUNSETIFF, IFF_TUN, IFF_NO_PI)
pub(crate) fn make_tun(device: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    assert!(name.len() < libc::IFNAMSIZ, "names of interfaces have at most 15 bytes");
    // SAFETY: the structure consists of plain numbers, for which zero is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the descriptor is open while it is borrowed, and the structure that the driver reads and writes lives until
    // the end of the call.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF as _, &mut request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Moves the thread into new namespaces.
///
/// # Errors
/// The operating system refuses.
pub(crate) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: the file table stays shared (`UnshareFlags::FILES` is never requested), so descriptors mean the same in all
    // threads.
    unsafe { rustix::thread::unshare_unsafe(flags) }.map_err(io::Error::from)
}

/// Forks the process. Returns `Some` with the child's process ID in the parent, `None` in the child.
///
/// # Errors
/// The operating system refuses.
///
/// # Panics
/// The process has several threads: only the calling thread would exist in the child, and locks that other threads hold
/// would never be released.
pub(crate) fn fork() -> io::Result<Option<libc::pid_t>> {
    // A joined thread may not have exited completely.
    let mut threads = 0;
    for _ in 0..1_000 {
        threads = std::fs::read_dir("/proc/self/task")?.count();
        if threads == 1 {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(threads, 1, "only a process of one thread can go on as two");
    // SAFETY: there is only one thread, so the child has a consistent copy of the whole memory.
    match unsafe { libc::fork() } {
        ..0 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        child => Ok(Some(child)),
    }
}

/// Makes this process ignore the signals that ask a process group to terminate. Returns those that it did not ignore
/// before.
pub(crate) fn ignore_requests_to_end() -> Vec<libc::c_int> {
    let heeded = |&signal: &libc::c_int| {
        // SAFETY: no handler is installed; the process only ignores the signal.
        let before = unsafe { libc::signal(signal, libc::SIG_IGN) };
        before != libc::SIG_IGN
    };
    REQUESTS_TO_END.into_iter().filter(heeded).collect()
}

/// Signals that ask processes to terminate: those of a terminal's keys, and those that a terminal and other programs send
/// at the end of a session.
const REQUESTS_TO_END: [libc::c_int; 4] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP];

/// Network namespace, rights and signals of a program.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    /// Network namespace; `None` is the thread's namespace.
    pub network: Option<BorrowedFd<'a>>,
    /// Capabilities that the program keeps although it is not root.
    pub ambient: CapabilitySet,
    /// Signals that terminate the program, although this process ignores them.
    pub heeded: &'a [libc::c_int],
}

/// Makes a command run with this namespace and these rights, and with the default action for these signals, as a shell
/// does.
pub(crate) fn put_in_place(command: &mut Command, place: &Place<'_>) {
    let network: Option<RawFd> = place.network.map(|network| network.as_raw_fd());
    let (ambient, heeded) = (place.ambient, place.heeded.to_vec());
    // SAFETY: between fork and exec, the closure makes only system calls: it takes no lock and allocates nothing. The
    // caller keeps the namespace's descriptor open until the command has been started.
    unsafe {
        command.pre_exec(move || {
            if let Some(network) = network {
                let network = BorrowedFd::borrow_raw(network);
                rustix::thread::move_into_link_name_space(network, Some(LinkNameSpaceType::Network))?;
            }
            keep(ambient)?;
            for &signal in &heeded {
                libc::signal(signal, libc::SIG_DFL);
            }
            Ok(())
        });
    }
}

/// Lets the process keep these capabilities across `exec`.
fn keep(rights: CapabilitySet) -> io::Result<()> {
    if rights.is_empty() {
        return Ok(());
    }
    let mut sets = rustix::thread::capabilities(None)?;
    sets.inheritable |= rights;
    rustix::thread::set_capabilities(None, sets)?;
    for right in rights.iter() {
        rustix::thread::configure_capability_in_ambient_set(right, true)?;
    }
    Ok(())
}

/// Enables the kernel's receive timestamps for a socket.
///
/// # Errors
/// The operating system refuses.
///
/// Source: Linux timestamping.rst §1.2 (SO_TIMESTAMPNS)
pub(crate) fn stamp_arrivals(socket: BorrowedFd<'_>) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the descriptor is open while it is borrowed, and the number that the kernel reads lives until the end of
    // the call.
    let result = unsafe {
        let (value, length) = ((&raw const on).cast(), size_of_val(&on) as libc::socklen_t);
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, value, length)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Reads a packet from a socket without waiting. Returns the packet's length and, if the kernel's timestamps are enabled
/// ([`stamp_arrivals`]), its time of arrival in ns of the machine's monotonic clock.
///
/// # Errors
/// `WouldBlock` if no packet is waiting, and any other error of the operating system.
pub(crate) fn receive_stamped(socket: BorrowedFd<'_>, room: &mut [u8]) -> io::Result<(usize, Option<u64>)> {
    /// Buffer for several control messages, with the alignment that they require.
    #[repr(C, align(8))]
    struct Control([u8; 256]);
    let mut control = Control([0; 256]);
    let mut part = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
    // SAFETY: the structure consists of plain numbers and pointers, for which zero is valid.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len() as _;
    // SAFETY: the message points to memory that lives until the end of the function, with correct lengths.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &mut message, libc::MSG_DONTWAIT) };
    let Ok(length) = usize::try_from(length) else { return Err(io::Error::last_os_error()) };
    let (of_day, monotonic) = (clock::time_of_day_ns(), clock::now().as_nanos());
    let mut stamp = None;
    // SAFETY: the kernel has filled the message, so the macros iterate over complete control messages inside `control`.
    // The timestamp is read without an alignment requirement.
    unsafe {
        let mut next = libc::CMSG_FIRSTHDR(&message);
        while let Some(header) = next.as_ref() {
            if (header.cmsg_level, header.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
                let time: libc::timespec = std::ptr::read_unaligned(libc::CMSG_DATA(header).cast());
                stamp = Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64);
            }
            next = libc::CMSG_NXTHDR(&message, header);
        }
    }
    // The timestamp is in the time of day, which may be set to another value. Its age is therefore subtracted from the
    // monotonic clock.
    let at = stamp.map(|stamp| monotonic.saturating_sub(of_day.saturating_sub(stamp)));
    Ok((length, at))
}

/// Makes a command run in a new user namespace and a new network namespace.
pub(crate) fn in_new_namespaces(command: &mut Command) {
    // SAFETY: between fork and exec, the closure makes only one system call.
    unsafe {
        command.pre_exec(|| unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNET));
    }
}

/// Takes over a descriptor that was inherited by number, and sets close-on-exec for it.
///
/// # Errors
/// The number is not an open descriptor.
pub(crate) fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: `fcntl` accepts any number and refuses those that are not open.
    if number <= 2 || unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) } < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: the descriptor is open, and nothing else in this process owns it: the process was started with it for this
    // single purpose.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn the_kernel_says_when_a_packet_came() {
        let [from, to] = [(); 2].map(|()| std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
        stamp_arrivals(to.as_fd()).unwrap();
        let mut room = [0; 100];
        let none = receive_stamped(to.as_fd(), &mut room).unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::WouldBlock);
        let before = clock::now().as_nanos();
        from.send_to(b"hello", to.local_addr().unwrap()).unwrap();
        to.peek(&mut room).unwrap();
        let came = clock::now().as_nanos();
        // The packet waits for its reader; the timestamp does not change meanwhile.
        let mut turns = 0u64;
        while clock::now().as_nanos() == came || turns < 1_000 {
            turns += 1;
        }
        let (length, at) = receive_stamped(to.as_fd(), &mut room).unwrap();
        assert_eq!(&room[..length], b"hello");
        assert!(before <= at.unwrap() && at.unwrap() <= clock::now().as_nanos());
    }

    #[test]
    fn what_is_no_tun_device_is_refused() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(make_tun(file.as_fd(), "airpace").unwrap_err().raw_os_error(), Some(libc::ENOTTY));
        assert_eq!(inherited(9_999).unwrap_err().raw_os_error(), Some(libc::EBADF));
        assert_eq!(inherited(1).unwrap_err().raw_os_error(), Some(libc::EBADF), "a standard stream");
    }
}
