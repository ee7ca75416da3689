//! A UDP socket that never waits: datagrams in groups both ways, when each came, its marks and addresses.
//!
//! What the kernel or a device cannot do is done another way, and [`Socket::notices`] says so once. A datagram that
//! does not fit into the socket's buffer waits here, and [`Socket::flush`] sends it later. One that the kernel refuses
//! is lost, as if on its way, and counted ([`Counts`]): networks go away and come back.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use airpace_core::Bytes;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, sockopt};

use crate::endpoint::{Inbound, Outbound};
use crate::sys::{self, AT_ONCE, Arrived, Leaving, MOST_PAYLOAD, MOST_SEGMENTS, Room};
use airpace_rt::clock::Offset;
use airpace_rt::sockopt::set;

/// The largest payload that a packet can carry: UDP's header is in its length.
///
/// Source: RFC 768
const MOST_SENT: usize = MOST_PAYLOAD - 28;

/// Groups that are taken in one call while datagrams come in large groups, of more than so many.
///
/// Chosen: 256 kB, so that what was taken is still in the processor's cache when it is read.
const GROUPS_AT_ONCE: usize = 4;
const SMALL_GROUP: usize = 8;

/// How much the kernel should hold for a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// Arrived and not yet taken.
    pub receive: Bytes,
    /// Handed over and not yet sent.
    pub send: Bytes,
}

/// Chosen: 4 MiB of arrivals are 30 ms at 1 Gbit/s, a long delay of a busy machine. What leaves is paced before it gets
/// here: 1 MiB is sixteen of the largest groups.
impl Default for Buffers {
    fn default() -> Buffers {
        Buffers { receive: Bytes(4 << 20), send: Bytes(1 << 20) }
    }
}

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
#[error("cannot open a UDP socket on {at}: {error}; {remedy}")]
pub struct BindError {
    at: SocketAddr,
    remedy: &'static str,
    // Not named `source`: the sentence has it already, and chains of errors would repeat it.
    error: io::Error,
}

/// What went through a socket, and what did not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Datagrams that arrived.
    pub received: u64,
    /// Calls that brought at least one.
    pub receive_calls: u64,
    /// Datagrams that the kernel dropped because the socket's buffer was full.
    pub overflows: u64,
    /// Datagrams that arrived and were dropped here, cut or without an address.
    pub unreadable: u64,
    /// Datagrams that the kernel took.
    pub sent: u64,
    /// Calls that it took them by.
    pub send_calls: u64,
    /// Groups that had to wait because the buffer was full.
    pub waited: u64,
    /// Datagrams that the kernel refused, by the reason's number. They are lost.
    pub refused: Vec<(i32, u64)>,
    /// Times at which somebody set the clock of the time of day, by which the kernel notes arrivals. Datagrams that
    /// had come before count as received when they were taken.
    pub clock_set: u64,
}

impl Counts {
    /// Datagrams that the kernel refused, for any reason.
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

/// Datagrams for which there was no room.
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
    room: Room,
    arrived: Vec<(Arrived, usize)>,
    may_have_more: bool,
    /// Whether the last datagrams came in large groups.
    come_in_groups: bool,
    offset: Offset,
    /// The kernel's count of overflows, as last told.
    overflows: u32,
    waiting: VecDeque<Waiting>,
    sends_segments: bool,
    kernel: Kernel,
    counts: Counts,
    notices: Vec<String>,
}

/// What takes datagrams: [`sys::send`], or what a test puts in its place.
type Kernel = Box<dyn FnMut(BorrowedFd<'_>, &Leaving, &[u8]) -> io::Result<()> + Send>;

impl std::fmt::Debug for Socket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Socket")
            .field("bound", &self.bound)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

impl Socket {
    /// A socket on an address. On `[::]` it takes IPv4 too, whose addresses it gives in their own form. Port 0 is any
    /// free port.
    ///
    /// # Errors
    /// What the operating system refuses, and what to do.
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
            room: Room::new(),
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

    /// A socket from which `peer` can be reached: on any address of its family.
    ///
    /// # Errors
    /// As [`Socket::bind`].
    pub fn toward(peer: SocketAddr, buffers: Buffers) -> Result<Socket, BindError> {
        let any: IpAddr = match peer {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        Socket::bind(SocketAddr::new(any, 0), buffers)
    }

    /// Where it is bound.
    pub fn local(&self) -> SocketAddr {
        self.bound
    }

    /// What went through it so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// What it has to do without, each said once: takes what was not taken before.
    pub fn notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    /// Does without groups of datagrams: for networks that cannot carry them, and for comparison.
    pub fn send_one_by_one(&mut self) {
        self.sends_segments = false;
    }

    /// Goes on with another port of the same address. What waits is sent from there. What came to the old port and was
    /// not taken is lost.
    ///
    /// # Errors
    /// If the operating system refuses. The old port stays then.
    pub fn rebind(&mut self) -> io::Result<()> {
        let fd = open(SocketAddr::new(self.bound.ip(), 0), self.buffers, &mut vec![])?;
        self.bound = local(&fd)?;
        self.fd = fd;
        self.overflows = 0;
        Ok(())
    }

    /// Takes what has arrived, up to a bound. Returns how many datagrams, or groups of them that the kernel has joined; 0 if
    /// nothing waits. [`Socket::may_have_more`] says whether to call it again.
    pub fn receive(&mut self, mut each: impl FnMut(Inbound<'_>)) -> usize {
        self.arrived.clear();
        self.may_have_more = false;
        let most = if self.come_in_groups { GROUPS_AT_ONCE } else { AT_ONCE };
        let taken = loop {
            match self.room.receive(self.fd.as_fd(), most, &mut self.arrived) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Nothing waits, or a network that is gone says so: what is sent next will tell.
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
            // A datagram without bytes is one, too.
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

    /// Whether [`Socket::receive`] has left something, as far as is known.
    pub fn may_have_more(&self) -> bool {
        self.may_have_more
    }

    /// Whether something waits for room in the socket's buffer. Until [`Socket::flush`] has sent it, nothing else should
    /// be made.
    pub fn is_full(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Sends datagrams, or keeps them if the socket's buffer is full.
    pub fn send(&mut self, out: &Outbound, bytes: &[u8]) {
        let stopped = if self.is_full() { Some(0) } else { self.push(out, bytes) };
        if let Some(at) = stopped {
            self.counts.waited += 1;
            self.waiting.push_back(Waiting { out: *out, bytes: bytes[at..].to_vec() });
        }
    }

    /// Sends what waits, as far as there is room.
    pub fn flush(&mut self) {
        while let Some(mut first) = self.waiting.pop_front() {
            if let Some(at) = self.push(&first.out, &first.bytes) {
                first.bytes.drain(..at);
                self.waiting.push_front(first);
                return;
            }
        }
    }

    /// Hands datagrams over to the kernel, in groups as large as it takes. Returns the byte from which on there was no
    /// room; `None` if all are done with: the kernel took them, or refused them for good.
    fn push(&mut self, out: &Outbound, bytes: &[u8]) -> Option<usize> {
        let size = out.segment.filter(|size| *size > 0).unwrap_or(bytes.len());
        if size >= bytes.len() {
            return (!self.hand_over(out, bytes)).then_some(0);
        }
        let mut done = 0;
        while done < bytes.len() {
            let datagrams = if self.sends_segments { (MOST_SENT / size).clamp(1, MOST_SEGMENTS) } else { 1 };
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

    /// Hands one datagram over. Returns whether it is done with.
    fn hand_over(&mut self, out: &Outbound, bytes: &[u8]) -> bool {
        match self.call(out, None, bytes) {
            Ok(()) => self.counts.sent += 1,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            Err(error) => self.counts.refuse(&error, 1),
        }
        true
    }

    /// Hands several datagrams over in one call. Returns the byte from which on there was no room.
    fn hand_over_group(&mut self, out: &Outbound, bytes: &[u8], size: usize) -> Option<usize> {
        let datagrams = bytes.len().div_ceil(size) as u64;
        let refusal = match self.call(out, Some(size as u16), bytes) {
            Ok(()) => {
                self.counts.sent += datagrams;
                return None;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Some(0),
            // The device cannot compute checksums, or datagrams are larger than its packets.
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
        // The kernel takes the datagrams one by one: groups are the reason, and are not tried again.
        if self.counts.all_refused() == refused_before && std::mem::take(&mut self.sends_segments) {
            self.notices.push(format!(
                "the network device does not take several datagrams at once ({refusal}); each costs a call now"
            ));
        }
        None
    }

    /// Asks the kernel to send.
    fn call(&mut self, out: &Outbound, segment: Option<u16>, bytes: &[u8]) -> io::Result<()> {
        let is_v6 = self.bound.is_ipv6();
        let mut leaving = Leaving { to: out.to, from: out.from, ecn: out.ecn, segment, is_v6 };
        loop {
            let Err(error) = (self.kernel)(self.fd.as_fd(), &leaving, bytes) else {
                self.counts.send_calls += 1;
                return Ok(());
            };
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                // The address is not this machine's any more: leave from whichever is.
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

/// A socket with everything that is asked of it.
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
        // Datagrams are never cut in pieces: one that is too large for the path gets lost, and its transport sees it.
        set(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE)?;
    }
    // A socket of IPv6 takes them for the IPv4 that it carries.
    for (name, value) in
        [(libc::IP_RECVTOS, 1), (libc::IP_PKTINFO, 1), (libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE)]
    {
        set(socket, libc::IPPROTO_IP, name, value)?;
    }
    if let Err(error) = set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1) {
        notices
            .push(format!("the kernel does not note when datagrams come ({error}); delays are less exact"));
    }
    // Both only save work, or count: without them the rest is the same.
    let _ = set(socket, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1);
    let _ = sys::join_arrivals(socket);
    enlarge(&fd, buffers, notices);
    rustix::net::bind(&fd, &at)?;
    Ok(fd)
}

/// Asks for buffers: as root beyond the machine's limit, otherwise up to it.
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
        // The kernel counts its own bookkeeping, and therefore doubles what it is asked for.
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
