//! Calls of the operating system for which no safe wrapper exists: batches of datagrams with their control messages.

#![allow(unsafe_code)]

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};

use airpace_core::Ecn;
use airpace_rt::sockopt::set;

/// Datagrams, or groups of datagrams that the kernel has joined, that one call receives.
///
/// Chosen: at 1 Gbit/s in groups of 40 a call every 15 ms would do; without groups one every 0.4 ms.
pub(crate) const AT_ONCE: usize = 32;

/// The largest payload of a datagram, or of a group.
pub(crate) const MOST_PAYLOAD: usize = 65_535;

/// Datagrams that the kernel sends, or joins, in one call.
///
/// Source: Linux udp.h (UDP_MAX_SEGMENTS)
pub(crate) const MOST_SEGMENTS: usize = 64;

/// Options of the kernel's UDP that not every C library names.
///
/// Source: Linux udp.h (UDP_SEGMENT, UDP_GRO)
const SOL_UDP: libc::c_int = 17;
const UDP_SEGMENT: libc::c_int = 103;
pub(crate) const UDP_GRO: libc::c_int = 104;

/// Lets the kernel join datagrams of one sender and size that arrive together.
///
/// # Errors
/// If the operating system refuses: it needs Linux 5.0.
pub(crate) fn join_arrivals(socket: BorrowedFd<'_>) -> io::Result<()> {
    set(socket, SOL_UDP, UDP_GRO, 1)
}

/// Whether the kernel can take several datagrams in one call.
pub(crate) fn can_send_segments(socket: BorrowedFd<'_>) -> bool {
    set(socket, SOL_UDP, UDP_SEGMENT, 0).is_ok()
}

/// Control messages, aligned as they must be, and with room for all that is asked for.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; 256]);

/// Room for what one call receives.
pub(crate) struct Room {
    bytes: Box<[u8]>,
    names: Box<[libc::sockaddr_storage]>,
    controls: Box<[Control]>,
}

/// What came along with a datagram, or with a group of datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrived {
    /// Who sent it; `None` if the kernel names no address of the internet.
    pub from: Option<SocketAddr>,
    /// The address that it came to.
    pub to: Option<IpAddr>,
    /// Its mark.
    pub ecn: Ecn,
    /// The time of day at which the kernel noted it, in nanoseconds since 1970.
    pub of_day_ns: Option<u64>,
    /// Size of each datagram of a group; the last may be shorter.
    pub segment: Option<usize>,
    /// How many datagrams the socket has lost so far because its buffer was full; it wraps.
    pub overflows: Option<u32>,
    /// Whether it did not fit.
    pub is_cut: bool,
}

impl Room {
    pub(crate) fn new() -> Room {
        // SAFETY: the structure is plain numbers, for which zero is valid.
        let name: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        Room {
            bytes: vec![0; AT_ONCE * MOST_PAYLOAD].into(),
            names: vec![name; AT_ONCE].into(),
            controls: vec![Control([0; 256]); AT_ONCE].into(),
        }
    }

    /// Takes what waits at a socket, at most `most` and [`AT_ONCE`]. Returns for each what came along, and its length;
    /// [`Room::payload`] has the bytes.
    ///
    /// # Errors
    /// `WouldBlock` if none waits, and whatever else the operating system says.
    pub(crate) fn receive(
        &mut self,
        socket: BorrowedFd<'_>,
        most: usize,
        arrived: &mut Vec<(Arrived, usize)>,
    ) -> io::Result<()> {
        let most = most.min(AT_ONCE);
        // SAFETY: the structures are plain numbers and pointers, for which zero is valid.
        let mut headers: [libc::mmsghdr; AT_ONCE] = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        let mut parts: [libc::iovec; AT_ONCE] = unsafe { std::mem::zeroed() };
        let payloads = self.bytes.chunks_exact_mut(MOST_PAYLOAD).take(most);
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
        // SAFETY: each header points to memory of its own that lives to the end of the function, with its lengths.
        let count = unsafe {
            let (first, flags) = (headers.as_mut_ptr(), libc::MSG_DONTWAIT);
            libc::recvmmsg(socket.as_raw_fd(), first, most as _, flags as _, std::ptr::null_mut())
        };
        let Ok(count) = usize::try_from(count) else { return Err(io::Error::last_os_error()) };
        for (header, name) in headers[..count].iter().zip(&self.names) {
            // SAFETY: the kernel has filled the header. Its control messages are in `self.controls`, which nothing else
            // uses here.
            let mut about = unsafe { about(&header.msg_hdr) };
            about.from = address(name);
            arrived.push((about, header.msg_len as usize));
        }
        Ok(())
    }

    /// The bytes of one of what was received, by its place.
    pub(crate) fn payload(&mut self, place: usize, length: usize) -> &mut [u8] {
        &mut self.bytes[place * MOST_PAYLOAD..][..length]
    }
}

/// What a header's control messages tell.
///
/// # Safety
/// The kernel must have filled the header, and the memory of its control messages must still be there.
unsafe fn about(header: &libc::msghdr) -> Arrived {
    let mut about = Arrived {
        from: None,
        to: None,
        ecn: Ecn::NotEct,
        of_day_ns: None,
        segment: None,
        overflows: None,
        is_cut: header.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0,
    };
    // SAFETY: the macros walk over whole control messages inside the memory that the caller vouches for. The kernel gives
    // each of them at least the bytes of its structure, which are read without regard to their alignment.
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

/// The mark in the lowest bits of the byte that was the type of service.
///
/// Source: RFC 3168 §5
fn mark(byte: u8) -> Ecn {
    match byte & 3 {
        0 => Ecn::NotEct,
        1 | 2 => Ecn::Ect,
        _ => Ecn::Ce,
    }
}

/// The bits of a mark.
///
/// Source: RFC 3168 §5 (senders without a reason to choose use ECT(0))
fn bits(mark: Ecn) -> libc::c_int {
    match mark {
        Ecn::NotEct => 0,
        Ecn::Ect => 2,
        Ecn::Ce => 3,
    }
}

/// An address of the internet that the kernel wrote, with IPv4 in its own form.
fn address(name: &libc::sockaddr_storage) -> Option<SocketAddr> {
    let at: *const libc::sockaddr_storage = name;
    match libc::c_int::from(name.ss_family) {
        libc::AF_INET => {
            // SAFETY: the storage has room for every kind of address and is aligned for it, and plain numbers have no
            // invalid value.
            let name = unsafe { &*at.cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from(name.sin_addr.s_addr.to_ne_bytes());
            Some(SocketAddr::new(ip.into(), u16::from_be(name.sin_port)))
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
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

/// Writes an address as the kernel reads it; one of IPv4 as an address of IPv6 if the socket is of IPv6. Returns its
/// length, 0 if the socket cannot reach such an address.
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
            // SAFETY: the storage has room for every kind of address, and is aligned for it.
            unsafe { at.cast::<libc::sockaddr_in>().write(v4(to)) };
            return size_of::<libc::sockaddr_in>() as _;
        }
        SocketAddr::V4(to) => v6(to.ip().to_ipv6_mapped(), to.port(), 0),
        SocketAddr::V6(to) if is_v6 => v6(*to.ip(), to.port(), to.scope_id()),
        SocketAddr::V6(_) => return 0,
    };
    // SAFETY: as above.
    unsafe { at.cast::<libc::sockaddr_in6>().write(to) };
    size_of::<libc::sockaddr_in6>() as _
}

/// Where datagrams go, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaving {
    pub to: SocketAddr,
    pub from: Option<IpAddr>,
    pub ecn: Ecn,
    /// Size of each datagram, if the bytes are several.
    pub segment: Option<u16>,
    /// Whether the socket is of IPv6.
    pub is_v6: bool,
}

/// Sends a datagram, or several in one call.
///
/// # Errors
/// `WouldBlock` if the socket's buffer is full, and whatever else the operating system says.
pub(crate) fn send(socket: BorrowedFd<'_>, leaving: &Leaving, bytes: &[u8]) -> io::Result<()> {
    // SAFETY: the structures are plain numbers and pointers, for which zero is valid.
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
    // Marks are set per datagram: the option of the socket would stay for the next one.
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
    // SAFETY: the message points to memory that lives to the end of the function, with its lengths. The kernel only reads
    // the payload.
    let sent =
        unsafe { libc::sendmsg(socket.as_raw_fd(), &message, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Adds a control message behind those that take `used` bytes.
///
/// # Panics
/// If there is no room for it.
fn push<T: Copy>(message: &libc::msghdr, used: &mut usize, level: libc::c_int, kind: libc::c_int, value: T) {
    // SAFETY: the macro only computes.
    let space = unsafe { libc::CMSG_SPACE(size_of::<T>() as _) } as usize;
    assert!(*used + space <= size_of::<Control>(), "there is room for all control messages");
    // SAFETY: `msg_control` points to a `Control` of the caller, which is aligned for headers, and `used` is a sum of
    // spaces, which keep the alignment. Header and value lie in the room that was checked; the value is written without
    // regard to its alignment.
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
        // SAFETY: the structure is plain numbers, for which zero is valid.
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
