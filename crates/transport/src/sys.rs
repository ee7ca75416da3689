//! System calls without a safe wrapper: batches of datagrams with their control messages.

#![allow(unsafe_code)]

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};

use airpace_core::Ecn;
use airpace_rt::sockopt::set;

/// Maximum number of datagrams, or of groups of datagrams that the kernel has joined (GRO), per receive call.
///
/// Chosen: at 1 Gbit/s, groups of 40 require one call per 15 ms, single datagrams one per 0.4 ms.
pub(crate) const AT_ONCE: usize = 32;

/// Maximum payload of a datagram, or of a group (bytes).
pub(crate) const MAX_PAYLOAD: usize = 65_535;

/// Maximum number of datagrams that the kernel sends, or joins, in one call.
///
/// Source: Linux udp.h (UDP_MAX_SEGMENTS)
pub(crate) const MAX_SEGMENTS: usize = 64;

/// UDP socket options of the kernel that some C libraries do not define.
///
/// Source: Linux udp.h (UDP_SEGMENT, UDP_GRO)
const SOL_UDP: libc::c_int = 17;
const UDP_SEGMENT: libc::c_int = 103;
pub(crate) const UDP_GRO: libc::c_int = 104;

/// Enables the kernel to join datagrams of equal sender and size that arrive together (GRO).
///
/// # Errors
/// The operating system refuses: this needs Linux 5.0.
pub(crate) fn join_arrivals(socket: BorrowedFd<'_>) -> io::Result<()> {
    set(socket, SOL_UDP, UDP_GRO, 1)
}

/// Whether the kernel can send several datagrams in one call (GSO).
pub(crate) fn can_send_segments(socket: BorrowedFd<'_>) -> bool {
    set(socket, SOL_UDP, UDP_SEGMENT, 0).is_ok()
}

/// A buffer for control messages, aligned as required, and large enough for all requested messages.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; 256]);

/// Buffers for the datagrams of one receive call.
pub(crate) struct RecvBuffer {
    bytes: Box<[u8]>,
    names: Box<[libc::sockaddr_storage]>,
    controls: Box<[Control]>,
}

/// Metadata of a datagram, or of a group of datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecvMeta {
    /// Address of the sender; `None` if it is not an IP address.
    pub from: Option<SocketAddr>,
    /// Local destination address.
    pub to: Option<IpAddr>,
    /// ECN mark.
    pub ecn: Ecn,
    /// The kernel's receive timestamp by the time-of-day clock (ns since 1970).
    pub of_day_ns: Option<u64>,
    /// Size of each datagram of a group; the last may be shorter.
    pub segment: Option<usize>,
    /// Total number of datagrams that the socket has dropped because its buffer was full; it wraps around.
    pub overflows: Option<u32>,
    /// Whether the datagram or its control messages were truncated.
    pub is_cut: bool,
}

impl RecvBuffer {
    pub(crate) fn new() -> RecvBuffer {
        // SAFETY: the structure consists of plain numbers, for which zero is valid.
        let name: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        RecvBuffer {
            bytes: vec![0; AT_ONCE * MAX_PAYLOAD].into(),
            names: vec![name; AT_ONCE].into(),
            controls: vec![Control([0; 256]); AT_ONCE].into(),
        }
    }

    /// Receives the waiting datagrams of a socket, at most `most` and [`AT_ONCE`]. Appends the metadata and length of
    /// each to `arrived`; [`RecvBuffer::payload`] returns the bytes.
    ///
    /// # Errors
    /// `WouldBlock` if no datagram is waiting, and any other error of the operating system.
    pub(crate) fn receive(
        &mut self,
        socket: BorrowedFd<'_>,
        most: usize,
        arrived: &mut Vec<(RecvMeta, usize)>,
    ) -> io::Result<()> {
        let most = most.min(AT_ONCE);
        // SAFETY: the structures consist of plain numbers and pointers, for which zero is valid.
        let mut headers: [libc::mmsghdr; AT_ONCE] = unsafe { std::mem::zeroed() };
        // SAFETY: the structures consist of pointers and numbers, for which zero is valid.
        let mut parts: [libc::iovec; AT_ONCE] = unsafe { std::mem::zeroed() };
        let payloads = self.bytes.chunks_exact_mut(MAX_PAYLOAD).take(most);
        let places = payloads.zip(&mut self.names).zip(&mut self.controls);
        for ((header, part), ((payload, name), control)) in headers.iter_mut().zip(&mut parts).zip(places) {
            *part = libc::iovec { iov_base: payload.as_mut_ptr().cast(), iov_len: payload.len() };
            header.msg_hdr.msg_iov = part;
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_name = (&raw mut *name).cast();
            header.msg_hdr.msg_namelen = size_of_val(name) as _;
            header.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
            header.msg_hdr.msg_controllen = control.0.len() as _;
        }
        // SAFETY: each header points to separate memory that lives until the end of the function, with its lengths.
        let count = unsafe {
            let (first, flags) = (headers.as_mut_ptr(), libc::MSG_DONTWAIT);
            libc::recvmmsg(socket.as_raw_fd(), first, most as _, flags as _, std::ptr::null_mut())
        };
        let Ok(count) = usize::try_from(count) else { return Err(io::Error::last_os_error()) };
        for (header, name) in headers[..count].iter().zip(&self.names) {
            // SAFETY: the kernel has filled the header. Its control messages are in `self.controls`, which has no
            // other user here.
            let mut about = unsafe { about(&header.msg_hdr) };
            about.from = address(name);
            arrived.push((about, header.msg_len as usize));
        }
        Ok(())
    }

    /// Returns the bytes of a received datagram or group, by its index.
    pub(crate) fn payload(&mut self, place: usize, length: usize) -> &mut [u8] {
        &mut self.bytes[place * MAX_PAYLOAD..][..length]
    }
}

/// Parses the control messages of a header.
///
/// # Safety
/// The kernel must have filled the header, and the memory of its control messages must still be valid.
unsafe fn about(header: &libc::msghdr) -> RecvMeta {
    let mut about = RecvMeta {
        from: None,
        to: None,
        ecn: Ecn::NotEct,
        of_day_ns: None,
        segment: None,
        overflows: None,
        is_cut: header.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0,
    };
    // SAFETY: the macros iterate over whole control messages inside the memory that the caller guarantees. The kernel
    // gives each message at least the bytes of its structure, which are read without alignment.
    unsafe {
        let mut next = libc::CMSG_FIRSTHDR(header);
        while let Some(message) = next.as_ref() {
            let data = libc::CMSG_DATA(message);
            match (message.cmsg_level, message.cmsg_type) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    let time: libc::timespec = data.cast::<libc::timespec>().read_unaligned();
                    about.of_day_ns = Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64);
                }
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                    about.overflows = Some(data.cast::<u32>().read_unaligned())
                }
                (libc::IPPROTO_IP, libc::IP_TOS) => about.ecn = mark(data.read()),
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    about.ecn = mark(data.cast::<libc::c_int>().read_unaligned() as u8);
                }
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    let info: libc::in_pktinfo = data.cast::<libc::in_pktinfo>().read_unaligned();
                    about.to = Some(Ipv4Addr::from(info.ipi_addr.s_addr.to_ne_bytes()).into());
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    let info: libc::in6_pktinfo = data.cast::<libc::in6_pktinfo>().read_unaligned();
                    about.to = Some(IpAddr::from(Ipv6Addr::from(info.ipi6_addr.s6_addr)).to_canonical());
                }
                (SOL_UDP, UDP_GRO) => {
                    let size = data.cast::<libc::c_int>().read_unaligned();
                    about.segment = usize::try_from(size).ok().filter(|size| *size > 0);
                }
                _ => {}
            }
            next = libc::CMSG_NXTHDR(header, message);
        }
    }
    about
}

/// Returns the ECN mark in the lowest bits of the traffic class (formerly type of service).
///
/// Source: RFC 3168 §5
fn mark(byte: u8) -> Ecn {
    match byte & 3 {
        0 => Ecn::NotEct,
        1 | 2 => Ecn::Ect,
        _ => Ecn::Ce,
    }
}

/// Returns the bits of an ECN mark.
///
/// Source: RFC 3168 §5 (senders without a reason to choose use ECT(0))
fn bits(mark: Ecn) -> libc::c_int {
    match mark {
        Ecn::NotEct => 0,
        Ecn::Ect => 2,
        Ecn::Ce => 3,
    }
}

/// Converts an IP address that the kernel wrote. An IPv4-mapped address becomes an IPv4 address.
fn address(name: &libc::sockaddr_storage) -> Option<SocketAddr> {
    let at: *const libc::sockaddr_storage = name;
    match libc::c_int::from(name.ss_family) {
        libc::AF_INET => {
            // SAFETY: the storage is large enough and aligned for every kind of address, and every bit pattern of its
            // plain numbers is valid.
            let name = unsafe { &*at.cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from(name.sin_addr.s_addr.to_ne_bytes());
            Some(SocketAddr::new(ip.into(), u16::from_be(name.sin_port)))
        }
        libc::AF_INET6 => {
            // SAFETY: the storage is large enough and aligned, and every bit pattern is valid.
            let name = unsafe { &*at.cast::<libc::sockaddr_in6>() };
            let (ip, port) = (Ipv6Addr::from(name.sin6_addr.s6_addr), u16::from_be(name.sin6_port));
            match ip.to_ipv4_mapped() {
                Some(ip) => Some(SocketAddr::new(ip.into(), port)),
                None => Some(SocketAddrV6::new(ip, port, 0, name.sin6_scope_id).into()),
            }
        }
        _ => None,
    }
}

/// Writes an address for the kernel. An IPv4 address becomes an IPv4-mapped one if the socket is an IPv6 socket.
/// Returns the length of the address, or 0 if the socket cannot reach such an address.
fn name(to: SocketAddr, is_v6: bool, storage: &mut libc::sockaddr_storage) -> libc::socklen_t {
    let at: *mut libc::sockaddr_storage = storage;
    let v4 = |to: SocketAddrV4| libc::sockaddr_in {
        sin_family: libc::AF_INET as _,
        sin_port: to.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(to.ip().octets()) },
        sin_zero: [0; 8],
    };
    let v6 = |ip: Ipv6Addr, port: u16, scope| libc::sockaddr_in6 {
        sin6_family: libc::AF_INET6 as _,
        sin6_port: port.to_be(),
        sin6_flowinfo: 0,
        sin6_addr: libc::in6_addr { s6_addr: ip.octets() },
        sin6_scope_id: scope,
    };
    let to = match to {
        SocketAddr::V4(to) if !is_v6 => {
            // SAFETY: the storage is large enough and aligned for every kind of address.
            unsafe { at.cast::<libc::sockaddr_in>().write(v4(to)) };
            return size_of::<libc::sockaddr_in>() as _;
        }
        SocketAddr::V4(to) => v6(to.ip().to_ipv6_mapped(), to.port(), 0),
        SocketAddr::V6(to) if is_v6 => v6(*to.ip(), to.port(), to.scope_id()),
        SocketAddr::V6(_) => return 0,
    };
    // SAFETY: the storage is large enough and aligned for every kind of address.
    unsafe { at.cast::<libc::sockaddr_in6>().write(to) };
    size_of::<libc::sockaddr_in6>() as _
}

/// Destination and options of outgoing datagrams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendMeta {
    pub to: SocketAddr,
    pub from: Option<IpAddr>,
    pub ecn: Ecn,
    /// Size of each datagram (bytes), if there are several.
    pub segment: Option<u16>,
    /// Whether the socket is an IPv6 socket.
    pub is_v6: bool,
}

/// Sends a datagram, or several in one call.
///
/// # Errors
/// `WouldBlock` if the socket's buffer is full, and any other error of the operating system.
pub(crate) fn send(socket: BorrowedFd<'_>, leaving: &SendMeta, bytes: &[u8]) -> io::Result<()> {
    // SAFETY: the structures consist of plain numbers and pointers, for which zero is valid.
    let (mut storage, mut message): (libc::sockaddr_storage, libc::msghdr) = unsafe { std::mem::zeroed() };
    let length = name(leaving.to, leaving.is_v6, &mut storage);
    if length == 0 {
        return Err(io::Error::from_raw_os_error(libc::EAFNOSUPPORT));
    }
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut control = Control([0; 256]);
    message.msg_name = (&raw mut storage).cast();
    message.msg_namelen = length;
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len() as _;
    let mut used = 0;
    // Marks are set per datagram, because the socket's option would also apply to the next one.
    match leaving.to {
        SocketAddr::V4(_) => push(&message, &mut used, libc::IPPROTO_IP, libc::IP_TOS, bits(leaving.ecn)),
        SocketAddr::V6(_) => {
            push(&message, &mut used, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, bits(leaving.ecn))
        }
    }
    match (leaving.from, leaving.to) {
        (Some(IpAddr::V4(from)), SocketAddr::V4(_)) => {
            let address = libc::in_addr { s_addr: u32::from_ne_bytes(from.octets()) };
            let info = libc::in_pktinfo {
                ipi_ifindex: 0,
                ipi_spec_dst: address,
                ipi_addr: libc::in_addr { s_addr: 0 },
            };
            push(&message, &mut used, libc::IPPROTO_IP, libc::IP_PKTINFO, info);
        }
        (Some(IpAddr::V6(from)), SocketAddr::V6(to)) => {
            let address = libc::in6_addr { s6_addr: from.octets() };
            let info = libc::in6_pktinfo { ipi6_addr: address, ipi6_ifindex: to.scope_id() as _ };
            push(&message, &mut used, libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info);
        }
        _ => {}
    }
    if let Some(segment) = leaving.segment {
        push(&message, &mut used, SOL_UDP, UDP_SEGMENT, segment);
    }
    message.msg_controllen = used as _;
    // SAFETY: the message points to memory that lives until the end of the function, with its lengths. The kernel
    // only reads the payload.
    let sent =
        unsafe { libc::sendmsg(socket.as_raw_fd(), &message, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Appends a control message after the first `used` bytes.
///
/// # Panics
/// The buffer has no room for the message.
fn push<T: Copy>(message: &libc::msghdr, used: &mut usize, level: libc::c_int, kind: libc::c_int, value: T) {
    // SAFETY: the macro only computes a size.
    let space = unsafe { libc::CMSG_SPACE(size_of::<T>() as _) } as usize;
    assert!(*used + space <= size_of::<Control>(), "there is room for all control messages");
    // SAFETY: `msg_control` points to a `Control` of the caller, which is aligned for headers, and `used` is a sum of
    // CMSG_SPACE sizes, which keep the alignment. Header and value lie within the checked range; the value is written
    // without alignment.
    unsafe {
        let header = message.msg_control.cast::<u8>().add(*used).cast::<libc::cmsghdr>();
        (*header).cmsg_level = level;
        (*header).cmsg_type = kind;
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<T>() as _) as _;
        libc::CMSG_DATA(header).cast::<T>().write_unaligned(value);
    }
    *used += space;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_back_as_they_were_and_ipv4_in_its_own_form() {
        // SAFETY: the structure consists of plain numbers, for which zero is valid.
        let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        assert_eq!(address(&storage), None);
        for (text, is_v6) in [
            ("192.0.2.7:4433", false),
            ("192.0.2.7:4433", true),
            ("[2001:db8::1]:9", true),
            ("[fe80::1%3]:65535", true),
        ] {
            let to: SocketAddr = text.parse().unwrap();
            assert!(name(to, is_v6, &mut storage) > 0);
            assert_eq!(address(&storage), Some(to));
        }
        assert_eq!(
            name("[2001:db8::1]:9".parse().unwrap(), false, &mut storage),
            0,
            "a socket of IPv4 cannot reach it"
        );
    }

    #[test]
    fn marks_are_two_bits() {
        for ecn in [Ecn::NotEct, Ecn::Ect, Ecn::Ce] {
            assert_eq!(mark(bits(ecn) as u8 | 0xb8), ecn);
        }
    }
}
