//! A non-blocking UDP socket: groups of datagrams in both directions, receive timestamps, ECN marks and addresses.
//!
//! If the kernel or a device lacks a feature, the socket uses a substitute, and [`Socket::notices`] reports this
//! once. Datagrams that do not fit into the kernel's send buffer wait in the socket until [`Socket::flush`] sends
//! them. A datagram that the kernel refuses is lost, like a datagram lost on the path, and is counted ([`Counts`]):
//! networks may disappear and return.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use airpace_core::Bytes;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, sockopt};

use crate::endpoint::{Inbound, Outbound};
use crate::sys::{self, AT_ONCE, MAX_PAYLOAD, MAX_SEGMENTS, RecvBuffer, RecvMeta, SendMeta};
use airpace_rt::clock::Offset;
use airpace_rt::sockopt::set;

/// Maximum payload of a sent group (bytes), without the IPv4 and UDP headers (28).
///
/// Source: RFC 768
const MAX_SENT: usize = MAX_PAYLOAD - 28;

/// Maximum number of groups per receive call while large groups arrive, and the number of datagrams above which a
/// group is large.
///
/// Chosen: 4 groups are at most 256 kB, so that the data are still in the CPU's cache when they are processed.
const GROUPS_AT_ONCE: usize = 4;
const SMALL_GROUP: usize = 8;

/// Requested sizes of the kernel's buffers for a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// Buffer of received datagrams (bytes).
    pub receive: Bytes,
    /// Buffer of datagrams to send (bytes).
    pub send: Bytes,
}

/// Chosen: 4 MiB of received data are 30 ms at 1 Gbit/s, a long delay of a busy machine. Sent data are paced before
/// they reach the socket: 1 MiB is sixteen of the largest groups.
impl Default for Buffers {
    fn default() -> Buffers {
        Buffers { receive: Bytes(4 << 20), send: Bytes(1 << 20) }
    }
}

/// Error of opening a socket.
#[derive(Debug, thiserror::Error)]
#[error("cannot open a UDP socket on {at}: {error}; {remedy}")]
pub struct BindError {
    at: SocketAddr,
    remedy: &'static str,
    // This field is not named `source`: the message contains the error already, and error chains would repeat it.
    error: io::Error,
}

/// Counters of a socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Received datagrams.
    pub received: u64,
    /// Receive calls that returned at least one datagram.
    pub receive_calls: u64,
    /// Datagrams that the kernel dropped because the socket's buffer was full.
    pub overflows: u64,
    /// Received datagrams that the socket dropped because they were truncated or had no address.
    pub unreadable: u64,
    /// Datagrams that the kernel accepted.
    pub sent: u64,
    /// Send calls that the kernel accepted.
    pub send_calls: u64,
    /// Groups that had to wait because the send buffer was full.
    pub waited: u64,
    /// Datagrams that the kernel refused, by error number. They are lost.
    pub refused: Vec<(i32, u64)>,
    /// Number of changes of the time-of-day clock, which the kernel uses for receive timestamps. Datagrams that were
    /// waiting at such a change get the time of the receive call.
    pub clock_set: u64,
}

impl Counts {
    /// Total number of datagrams that the kernel refused.
    pub fn all_refused(&self) -> u64 {
        self.refused.iter().map(|(_, count)| count).sum()
    }

    fn refuse(&mut self, error: &io::Error, datagrams: u64) {
        let number = error.raw_os_error().unwrap_or_default();
        match self.refused.iter_mut().find(|(reason, _)| *reason == number) {
            Some((_, count)) => *count += datagrams,
            None => self.refused.push((number, datagrams)),
        }
    }
}

/// Datagrams that wait for room in the send buffer.
#[derive(Debug)]
struct Waiting {
    out: Outbound,
    bytes: Vec<u8>,
}

/// A UDP socket.
pub struct Socket {
    fd: OwnedFd,
    bound: SocketAddr,
    buffers: Buffers,
    room: RecvBuffer,
    arrived: Vec<(RecvMeta, usize)>,
    may_have_more: bool,
    /// Whether the last datagrams arrived in large groups.
    come_in_groups: bool,
    offset: Offset,
    /// Last value of the kernel's overflow counter.
    overflows: u32,
    waiting: VecDeque<Waiting>,
    sends_segments: bool,
    kernel: Kernel,
    counts: Counts,
    notices: Vec<String>,
}

/// Function that sends datagrams: [`sys::send`], or a substitute in tests.
type Kernel = Box<dyn FnMut(BorrowedFd<'_>, &SendMeta, &[u8]) -> io::Result<()> + Send>;

impl std::fmt::Debug for Socket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Socket")
            .field("bound", &self.bound)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

impl Socket {
    /// Opens a socket on an address. On `[::]`, the socket also receives IPv4, with IPv4 source addresses. Port 0
    /// selects any free port.
    ///
    /// # Errors
    /// The operating system's error, with a remedy.
    pub fn bind(at: SocketAddr, buffers: Buffers) -> Result<Socket, BindError> {
        let mut notices = vec![];
        let fd = open(at, buffers, &mut notices).map_err(|error| {
            let remedy = match error.kind() {
                ErrorKind::AddrInUse => "choose another port, or end the program that has it",
                ErrorKind::AddrNotAvailable => "choose an address of this machine, or [::] for all of them",
                ErrorKind::PermissionDenied => "choose a port of at least 1024",
                _ => "choose another address",
            };
            BindError { at, remedy, error }
        })?;
        let bound = local(&fd).unwrap_or(at);
        let sends_segments = sys::can_send_segments(fd.as_fd());
        if !sends_segments {
            notices
                .push("this kernel takes one datagram per call, which costs more processor time".to_owned());
        }
        Ok(Socket {
            fd,
            bound,
            buffers,
            room: RecvBuffer::new(),
            arrived: vec![],
            may_have_more: false,
            come_in_groups: false,
            offset: Offset::measure(),
            overflows: 0,
            waiting: VecDeque::new(),
            sends_segments,
            kernel: Box::new(sys::send),
            counts: Counts::default(),
            notices,
        })
    }

    /// Opens a socket from which `peer` can be reached, on the unspecified address of the peer's family.
    ///
    /// # Errors
    /// Errors of [`Socket::bind`].
    pub fn toward(peer: SocketAddr, buffers: Buffers) -> Result<Socket, BindError> {
        let any: IpAddr = match peer {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        Socket::bind(SocketAddr::new(any, 0), buffers)
    }

    /// Local address of the socket.
    pub fn local(&self) -> SocketAddr {
        self.bound
    }

    /// Counters of the socket.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Returns the notices about missing features since the last call, each notice once.
    pub fn notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    /// Disables the sending of groups: for networks that cannot carry them, and for comparisons.
    pub fn send_one_by_one(&mut self) {
        self.sends_segments = false;
    }

    /// Moves to another port of the same address. Waiting datagrams are sent from the new port. Datagrams that were
    /// received at the old port but not read are lost.
    ///
    /// # Errors
    /// The operating system refuses. The old port stays in use.
    pub fn rebind(&mut self) -> io::Result<()> {
        let fd = open(SocketAddr::new(self.bound.ip(), 0), self.buffers, &mut vec![])?;
        self.bound = local(&fd)?;
        self.fd = fd;
        self.overflows = 0;
        Ok(())
    }

    /// Receives datagrams, up to a limit. Returns the number of datagrams, or of groups that the kernel has joined; 0
    /// if none is waiting. [`Socket::may_have_more`] returns whether to call this again.
    pub fn receive(&mut self, mut each: impl FnMut(Inbound<'_>)) -> usize {
        self.arrived.clear();
        self.may_have_more = false;
        let most = if self.come_in_groups { GROUPS_AT_ONCE } else { AT_ONCE };
        let taken = loop {
            match self.room.receive(self.fd.as_fd(), most, &mut self.arrived) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // No datagram is waiting, or the kernel reports an unreachable network, which the next send reports
                // as well.
                Err(_) => return 0,
                Ok(()) => break self.arrived.len(),
            }
        };
        self.may_have_more = taken == most;
        self.come_in_groups = self
            .arrived
            .iter()
            .any(|(about, length)| about.segment.is_some_and(|segment| *length > segment * SMALL_GROUP));
        let offset = Offset::measure();
        let was_set = offset.was_set_since(&self.offset);
        self.counts.clock_set += u64::from(was_set);
        self.offset = offset;
        self.counts.receive_calls += 1;
        let mut datagrams = 0;
        for place in 0..taken {
            let (about, length) = self.arrived[place];
            if let Some(overflows) = about.overflows {
                self.counts.overflows += u64::from(overflows.wrapping_sub(self.overflows));
                self.overflows = overflows;
            }
            let Some(from) = about.from.filter(|_| !about.is_cut) else {
                self.counts.unreadable += 1;
                continue;
            };
            let stamp = about.of_day_ns.filter(|_| !was_set);
            let received = stamp.map_or(offset.at(), |stamp| offset.instant(stamp));
            let payload = self.room.payload(place, length);
            // An empty datagram counts as one datagram, too.
            let segment = about.segment.unwrap_or(length).max(1);
            if payload.is_empty() {
                datagrams += 1;
                each(Inbound { received, from, to: about.to, ecn: about.ecn, bytes: &mut [] });
            }
            for bytes in payload.chunks_mut(segment) {
                datagrams += 1;
                each(Inbound { received, from, to: about.to, ecn: about.ecn, bytes });
            }
        }
        self.counts.received += datagrams as u64;
        taken
    }

    /// Whether the last [`Socket::receive`] filled its limit, so that more datagrams may be waiting.
    pub fn may_have_more(&self) -> bool {
        self.may_have_more
    }

    /// Whether datagrams wait for room in the kernel's send buffer. No further datagrams should be composed before
    /// [`Socket::flush`] has sent them.
    pub fn is_full(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Sends datagrams, or stores them if the send buffer is full.
    pub fn send(&mut self, out: &Outbound, bytes: &[u8]) {
        let stopped = if self.is_full() { Some(0) } else { self.push(out, bytes) };
        if let Some(at) = stopped {
            self.counts.waited += 1;
            self.waiting.push_back(Waiting { out: *out, bytes: bytes[at..].to_vec() });
        }
    }

    /// Sends stored datagrams, as far as the send buffer has room.
    pub fn flush(&mut self) {
        while let Some(mut first) = self.waiting.pop_front() {
            if let Some(at) = self.push(&first.out, &first.bytes) {
                first.bytes.drain(..at);
                self.waiting.push_front(first);
                return;
            }
        }
    }

    /// Passes datagrams to the kernel, in groups as large as the kernel accepts. Returns the offset of the first byte
    /// for which the send buffer had no room; `None` if all datagrams are finished, accepted or refused permanently.
    fn push(&mut self, out: &Outbound, bytes: &[u8]) -> Option<usize> {
        let size = out.segment.filter(|size| *size > 0).unwrap_or(bytes.len());
        if size >= bytes.len() {
            return (!self.hand_over(out, bytes)).then_some(0);
        }
        let mut done = 0;
        while done < bytes.len() {
            let datagrams = if self.sends_segments { (MAX_SENT / size).clamp(1, MAX_SEGMENTS) } else { 1 };
            let group = &bytes[done..bytes.len().min(done + datagrams * size)];
            if group.len() > size {
                match self.hand_over_group(out, group, size) {
                    None => done += group.len(),
                    Some(at) => return Some(done + at),
                }
            } else if self.hand_over(out, group) {
                done += group.len();
            } else {
                return Some(done);
            }
        }
        None
    }

    /// Passes one datagram to the kernel. Returns whether it is finished: accepted or refused.
    fn hand_over(&mut self, out: &Outbound, bytes: &[u8]) -> bool {
        match self.call(out, None, bytes) {
            Ok(()) => self.counts.sent += 1,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            Err(error) => self.counts.refuse(&error, 1),
        }
        true
    }

    /// Passes several datagrams to the kernel in one call. Returns the offset of the first byte for which the send
    /// buffer had no room.
    fn hand_over_group(&mut self, out: &Outbound, bytes: &[u8], size: usize) -> Option<usize> {
        let datagrams = bytes.len().div_ceil(size) as u64;
        let refusal = match self.call(out, Some(size as u16), bytes) {
            Ok(()) => {
                self.counts.sent += datagrams;
                return None;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Some(0),
            // The device cannot compute checksums, or the datagrams are larger than its packets.
            Err(error)
                if matches!(
                    error.raw_os_error(),
                    Some(libc::EIO | libc::EINVAL | libc::EOPNOTSUPP | libc::EMSGSIZE)
                ) =>
            {
                error
            }
            Err(error) => {
                self.counts.refuse(&error, datagrams);
                return None;
            }
        };
        let refused_before = self.counts.all_refused();
        for (place, datagram) in bytes.chunks(size).enumerate() {
            if !self.hand_over(out, datagram) {
                return Some(place * size);
            }
        }
        // The kernel accepts the datagrams one by one, so that grouping is the cause and is disabled.
        if self.counts.all_refused() == refused_before && std::mem::take(&mut self.sends_segments) {
            self.notices.push(format!(
                "the network device does not accept several datagrams per call ({refusal}); each needs a call of its own"
            ));
        }
        None
    }

    /// Calls the kernel to send, and repeats the call after recoverable errors.
    fn call(&mut self, out: &Outbound, segment: Option<u16>, bytes: &[u8]) -> io::Result<()> {
        let is_v6 = self.bound.is_ipv6();
        let mut leaving = SendMeta { to: out.to, from: out.from, ecn: out.ecn, segment, is_v6 };
        loop {
            let Err(error) = (self.kernel)(self.fd.as_fd(), &leaving, bytes) else {
                self.counts.send_calls += 1;
                return Ok(());
            };
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                // The source address is not an address of this machine any more: let the kernel choose another.
                Some(libc::EINVAL | libc::EADDRNOTAVAIL | libc::ENETUNREACH) if leaving.from.is_some() => {
                    leaving.from = None;
                }
                _ => return Err(error),
            }
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn local(fd: &OwnedFd) -> io::Result<SocketAddr> {
    Ok(SocketAddr::try_from(rustix::net::getsockname(fd)?)?)
}

/// Opens a socket with all required options.
fn open(at: SocketAddr, buffers: Buffers, notices: &mut Vec<String>) -> io::Result<OwnedFd> {
    let is_v6 = at.is_ipv6();
    let family = if is_v6 { AddressFamily::INET6 } else { AddressFamily::INET };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let fd = rustix::net::socket_with(family, SocketType::DGRAM, flags, Some(ipproto::UDP))?;
    let socket = fd.as_fd();
    if is_v6 {
        sockopt::set_ipv6_v6only(&fd, !at.ip().is_unspecified())?;
        set(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1)?;
        set(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)?;
        // Datagrams are never fragmented. A datagram that is too large for the path is lost, and its transport detects
        // the loss.
        set(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE)?;
    }
    // An IPv6 socket uses these options for the IPv4 packets that it carries.
    for (name, value) in
        [(libc::IP_RECVTOS, 1), (libc::IP_PKTINFO, 1), (libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE)]
    {
        set(socket, libc::IPPROTO_IP, name, value)?;
    }
    if let Err(error) = set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1) {
        notices.push(format!("the kernel gives no receive times ({error}); delays are less exact"));
    }
    // Neither option is required: the first adds a counter, the second saves CPU time.
    let _ = set(socket, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1);
    let _ = sys::join_arrivals(socket);
    enlarge(&fd, buffers, notices);
    rustix::net::bind(&fd, &at)?;
    Ok(fd)
}

/// Requests buffer sizes: with privileges beyond the machine's limit, otherwise up to that limit.
fn enlarge(fd: &OwnedFd, wanted: Buffers, notices: &mut Vec<String>) {
    type Get = fn(&OwnedFd) -> Result<usize, Errno>;
    type Set = fn(&OwnedFd, usize) -> Result<(), Errno>;
    let receive: (Get, Set, Set) = (
        |fd| sockopt::socket_recv_buffer_size(fd),
        |fd, size| sockopt::set_socket_recv_buffer_size_force(fd, size),
        |fd, size| sockopt::set_socket_recv_buffer_size(fd, size),
    );
    let send: (Get, Set, Set) = (
        |fd| sockopt::socket_send_buffer_size(fd),
        |fd, size| set(fd.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, size as _).map_err(errno),
        |fd, size| sockopt::set_socket_send_buffer_size(fd, size),
    );
    for ((get, force, set), bytes, limit) in
        [(receive, wanted.receive, "net.core.rmem_max"), (send, wanted.send, "net.core.wmem_max")]
    {
        let bytes = bytes.0 as usize;
        let result = force(fd, bytes).or_else(|_| set(fd, bytes));
        // The kernel includes its own structures, and therefore doubles the requested size.
        let got = get(fd).unwrap_or_default() / 2;
        if result.is_err() || got < bytes {
            notices.push(format!(
                "the kernel holds {} kB of {} kB for a socket, so that a delay of this program may cost datagrams; \
                 `sysctl -w {limit}={bytes}` as root allows more",
                got / 1_000,
                bytes / 1_000,
            ));
        }
    }
}

fn errno(error: io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::PERM)
}

#[cfg(test)]
mod tests;
