//! Socket options for which no safe wrapper exists.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Sets a socket option with an integer value.
///
/// # Errors
/// The operating system refuses.
pub fn set(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: the descriptor is open as long as it is borrowed, and the number that the kernel reads lives until the
    // end of the call.
    let result = unsafe {
        let (at, length) = ((&raw const value).cast(), size_of_val(&value) as libc::socklen_t);
        libc::setsockopt(socket.as_raw_fd(), level, name, at, length)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Limits the kernel's receive buffer, and thereby the window of a TCP sender.
///
/// # Errors
/// The operating system refuses.
///
/// Source: man-pages socket(7) (SO_RCVBUF, SO_RCVBUFFORCE)
pub fn limit_received(socket: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
    // The kernel doubles this value, to have space for headers.
    let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    // Exceeding `net.core.rmem_max` requires CAP_NET_ADMIN.
    set(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes)
        .or_else(|_| set(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, bytes))
}

/// Limits the number of unsent bytes that a TCP connection of the kernel accepts.
///
/// # Errors
/// The operating system refuses.
pub fn limit_unsent(socket: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, bytes as libc::c_int)
}

/// Allows a socket to accept connections to addresses of other machines, and to connect from such addresses.
///
/// # Errors
/// The operating system refuses: this needs CAP_NET_ADMIN or CAP_NET_RAW.
pub fn be_transparent(socket: BorrowedFd<'_>, is_ipv6: bool) -> io::Result<()> {
    match is_ipv6 {
        true => set(socket, libc::IPPROTO_IPV6, libc::IPV6_TRANSPARENT, 1),
        false => set(socket, libc::IPPROTO_IP, libc::IP_TRANSPARENT, 1),
    }
}
