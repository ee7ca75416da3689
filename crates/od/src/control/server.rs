//! Server of the control protocol, for the daemon. The server never waits for a program.

use std::collections::BTreeMap;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags};
use rustix::time::{ClockId, Timespec, clock_gettime};

use super::folder::Folder;
use super::limits::{self, Allowance, MAX_IDLE};
use super::{Answer, KpiInfo, MAX_REQUEST_BYTES, Refusal, Request};
use crate::board::{Board, SlotId};
use crate::clock::now_ns;
use crate::error::Error;
use crate::peer::Peer;

/// Maximum number of requests of one program that are answered in one turn.
///
/// Chosen: connecting and subscribing takes a handful of requests. A program that floods the socket delays the other
/// programs by the time for this many requests per turn.
const MAX_REQUESTS_PER_TURN: usize = 8;
/// Maximum processor time that the thread uses before the server rests (ns).
///
/// Chosen: enough for the few requests of a program. A program that is not answered in one such period waits for a few
/// periods and the rests between them.
const STRETCH_NS: u64 = 500_000;
/// Ratio of rest time to work time. It limits the server to a tenth of a core during a flood of requests.
///
/// Chosen: a request takes some microseconds, so a program that sends one request at a time waits less than a
/// millisecond for each answer.
const REST: u64 = 9;

/// Decisions of the daemon about requests.
pub trait Host {
    /// The shared-memory region for programs.
    fn board(&mut self) -> &mut Board;
    /// All KPIs, in display order.
    fn kpis(&mut self) -> Vec<KpiInfo>;
    /// Ensures that a KPI is published, and returns its row. Called for every lease, even if the KPI already has
    /// leases.
    ///
    /// # Errors
    /// The reason for the refusal: `ENOENT` for an unknown name, `ENOSPC` if no row is free.
    fn subscribe(&mut self, name: &str) -> Result<SlotId, Refusal>;
    /// Called when the last lease on a KPI has ended: the KPI need not be published any more.
    fn unsubscribed(&mut self, slot: SlotId);
}

/// The control socket of a daemon, and the programs connected to it.
#[derive(Debug)]
pub struct Server {
    socket: OwnedFd,
    programs: Vec<Program>,
    /// Index of the program that gets the first turn: this program was not answered before the last rest.
    first: usize,
    /// End of the current rest, in ns of [`crate::clock`].
    rests_until_ns: u64,
    _folder: Folder,
}

/// A connected program.
#[derive(Debug)]
struct Program {
    socket: OwnedFd,
    process: Peer,
    received: Vec<u8>,
    pending: Vec<u8>,
    leases: BTreeMap<SlotId, u32>,
    /// Whether the program has received the region's descriptor. Such a program reads shared memory and need not send
    /// requests.
    has_board: bool,
    /// Time of the last progress that the server waits for, in ns of [`crate::clock`]: connection, first byte of a
    /// request, completed request, or accepted bytes of an answer.
    moved_ns: u64,
}

impl Server {
    /// Creates the daemon's folder and the socket in it. Replaces the socket of a killed daemon atomically.
    ///
    /// Every user of the machine may connect, unless the folder's permissions deny access.
    ///
    /// # Errors
    /// [`Error::Folder`] if other users may change its content, [`Error::InUse`] if a daemon runs there,
    /// [`Error::Path`] if a system call fails.
    pub fn bind(dir: &Path) -> Result<Server, Error> {
        let folder = Folder::claim(dir)?;
        let socket = folder.listen()?;
        Ok(Server { socket, programs: Vec::new(), first: 0, rests_until_ns: 0, _folder: folder })
    }

    /// Handles pending requests and new connections. Waits at most `wait` for requests or connections; never waits for
    /// a program to read or send more.
    ///
    /// After work, the server rests nine times as long. A later call answers requests that arrive during the rest.
    ///
    /// # Errors
    /// Returns errors of the daemon's own socket only. An error of a program's socket closes its connection.
    pub fn serve(&mut self, host: &mut impl Host, wait: Duration) -> Result<(), Error> {
        let rest = Duration::from_nanos(self.rests_until_ns.saturating_sub(now_ns()));
        if !rest.is_zero() {
            std::thread::sleep(rest.min(wait));
            return Ok(());
        }
        self.end_idle(host, now_ns());
        let mut polled: Vec<PollFd<'_>> = vec![PollFd::new(&self.socket, PollFlags::IN)];
        polled.extend(self.programs.iter().map(|program| {
            let wants = if program.pending.is_empty() { PollFlags::IN } else { PollFlags::OUT };
            PollFd::new(&program.socket, wants)
        }));
        // Do not wait if complete requests from an earlier turn are left.
        let is_asked = |program: &Program| program.pending.is_empty() && program.has_request();
        let asked: Vec<bool> = self.programs.iter().map(is_asked).collect();
        let wait = if asked.contains(&true) { Duration::ZERO } else { wait };
        let wait = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
        match poll(&mut polled, Some(&wait)) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(()),
            Err(errno) => return Err(Error::System { doing: "waiting at the control socket", errno }),
        }
        let ready: Vec<bool> = polled.iter().map(|polled| !polled.revents().is_empty()).collect();
        if !asked.contains(&true) && !ready.contains(&true) {
            return Ok(());
        }

        let began_ns = work_ns();
        self.take_turns(host, |at| asked[at] || ready[at + 1], began_ns + STRETCH_NS);
        if ready[0] {
            self.accept();
        }
        self.rests_until_ns = now_ns() + REST * (work_ns() - began_ns);
        Ok(())
    }

    /// Answers the programs in turn, until the thread has used its processor time for this call.
    fn take_turns(&mut self, host: &mut impl Host, wants: impl Fn(usize) -> bool, work_until_ns: u64) {
        let count = self.programs.len();
        let first = std::mem::take(&mut self.first);
        let mut gone = vec![];
        let mut order: Vec<usize> =
            (first..count).chain(0..first.min(count)).filter(|at| wants(*at)).collect();
        limits::order_turns(&mut order, |at| self.programs[at].process);
        for at in order {
            if work_ns() >= work_until_ns {
                self.first = at;
                break;
            }
            let held: Vec<(Peer, u32)> = self.programs.iter().map(Program::holds).collect();
            let allowance = limits::allowance(self.programs[at].process, host.board().capacity(), &held);
            if self.programs[at].turn(host, allowance).is_err() {
                gone.push(at);
            }
        }
        // Close connections before new ones are accepted, which may need their capacity.
        gone.sort_unstable();
        self.end(gone, host);
    }

    /// Closes idle connections.
    fn end_idle(&mut self, host: &mut impl Host, now_ns: u64) {
        let is_idle = |at: &usize| self.programs[*at].is_idle(now_ns);
        let idle = (0..self.programs.len()).filter(is_idle).collect();
        self.end(idle, host);
    }

    /// Closes the connections at these indices, which must be in ascending order.
    fn end(&mut self, places: Vec<usize>, host: &mut impl Host) {
        for at in places.into_iter().rev() {
            for (slot, count) in self.programs.remove(at).leases {
                end_leases(host, slot, count);
            }
            if at < self.first {
                self.first -= 1;
            }
        }
    }

    /// Number of connected programs.
    pub fn programs(&self) -> usize {
        self.programs.len()
    }

    fn accept(&mut self) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        for _ in 0..MAX_REQUESTS_PER_TURN {
            // Either no connection is pending, or no descriptor is free; in the latter case a later call accepts the
            // connection.
            let Ok(socket) = rustix::net::accept_with(&self.socket, flags) else { return };
            match self.admit(&socket) {
                Ok(process) => self.programs.push(Program {
                    socket,
                    process,
                    received: Vec::new(),
                    pending: Vec::new(),
                    leases: BTreeMap::new(),
                    has_board: false,
                    moved_ns: now_ns(),
                }),
                Err(refusal) => {
                    let line = format!("{}\n", Answer::Refused(refusal));
                    // The result is irrelevant: the connection closes in either case.
                    let _ = rustix::net::send(&socket, line.as_bytes(), SendFlags::NOSIGNAL);
                }
            }
        }
    }

    /// Checks whether a new connection is allowed, and returns its process.
    fn admit(&self, socket: &OwnedFd) -> Result<Peer, Refusal> {
        let newcomer = Peer::of(socket.as_fd())
            .map_err(|errno| Refusal::new(errno, "there is no telling who connects"))?;
        let connected: Vec<Peer> = self.programs.iter().map(|program| program.process).collect();
        limits::may_connect(newcomer, &connected).map_err(|why| Refusal::new(Errno::USERS, why))?;
        Ok(newcomer)
    }
}

/// Processor time of the calling thread, in ns. Time in which the thread does not run is not counted.
fn work_ns() -> u64 {
    let work = clock_gettime(ClockId::ThreadCPUTime);
    work.tv_sec as u64 * 1_000_000_000 + work.tv_nsec as u64
}

/// Reason to close a connection: the program has disconnected, does not read, or violates the protocol.
struct Disconnect;

impl Program {
    /// Answers the program's requests. While answers to a program are pending, the server reads no requests from it.
    ///
    /// `allowance`: number of leases that the program may add.
    fn turn(&mut self, host: &mut impl Host, mut allowance: Allowance) -> Result<(), Disconnect> {
        if self.pending.is_empty() && !self.has_request() {
            let mut bytes = [0; 4_096];
            match rustix::net::recv(&self.socket, &mut bytes[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Err(Disconnect),
                Ok((received, _)) => {
                    // The time limit starts at the first byte of a request; later bytes do not extend it.
                    if self.received.is_empty() {
                        self.moved_ns = now_ns();
                    }
                    self.received.extend_from_slice(&bytes[..received]);
                }
                Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
                Err(_) => return Err(Disconnect),
            }
        }
        self.flush()?;
        for _ in 0..MAX_REQUESTS_PER_TURN {
            if !self.pending.is_empty() {
                return Ok(());
            }
            let Some(end) = self.received.iter().position(|byte| *byte == b'\n') else { break };
            let line: Vec<u8> = self.received.drain(..=end).collect();
            let (_, before) = self.holds();
            self.answer(&line[..end], host, &allowance)?;
            allowance.leases = (allowance.leases + before).saturating_sub(self.holds().1);
            self.moved_ns = now_ns();
            self.flush()?;
        }
        if self.received.len() >= MAX_REQUEST_BYTES && !self.has_request() {
            self.refuse(Errno::MSGSIZE, "that is longer than any request");
            // The result is irrelevant: the connection closes in either case.
            let _ = self.flush();
            return Err(Disconnect);
        }
        Ok(())
    }

    /// The program's process and its number of leases.
    fn holds(&self) -> (Peer, u32) {
        (self.process, self.leases.values().sum())
    }

    /// Whether the program has exceeded the idle time: it neither reads an answer nor completes a request, or it has
    /// requested neither the region nor a KPI.
    fn is_idle(&self, now_ns: u64) -> bool {
        let is_reader = self.has_board || !self.leases.is_empty();
        let is_waited_for = !is_reader || !self.pending.is_empty() || !self.received.is_empty();
        is_waited_for && now_ns.saturating_sub(self.moved_ns) >= MAX_IDLE.as_nanos() as u64
    }

    /// Whether a complete request has been received.
    fn has_request(&self) -> bool {
        self.received.contains(&b'\n')
    }

    fn answer(&mut self, line: &[u8], host: &mut impl Host, allowance: &Allowance) -> Result<(), Disconnect> {
        let request = std::str::from_utf8(line).ok().and_then(|line| Request::parse(line).ok());
        match request {
            Some(Request::Board) => return self.hand_out(host.board().for_readers()),
            Some(Request::List) => {
                let kpis = host.kpis();
                self.say(&Answer::Done(Some(kpis.len() as u32)));
                for kpi in kpis {
                    self.pending.extend_from_slice(format!("{kpi}\n").as_bytes());
                }
            }
            Some(Request::Subscribe(name)) => match self.lease(name, host, allowance) {
                Ok(slot) => self.say(&Answer::Done(Some(slot.0))),
                Err(refusal) => self.say(&Answer::Refused(refusal)),
            },
            Some(Request::Unsubscribe(slot)) if self.release(SlotId(slot), host) => {
                self.say(&Answer::Done(None));
            }
            Some(Request::Unsubscribe(_)) => self.refuse(Errno::BADF, "there is no such subscription"),
            None => self.refuse(Errno::INVAL, "requests are: board, list, subscribe NAME, unsubscribe SLOT"),
        }
        Ok(())
    }

    fn lease(&mut self, name: &str, host: &mut impl Host, allowance: &Allowance) -> Result<SlotId, Refusal> {
        if allowance.leases == 0 {
            return Err(Refusal::new(Errno::DQUOT, allowance.bound.clone()));
        }
        let slot = host.subscribe(name)?;
        *self.leases.entry(slot).or_default() += 1;
        let leases = host.board().leases(slot);
        host.board().set_leases(slot, leases + 1);
        Ok(slot)
    }

    fn release(&mut self, slot: SlotId, host: &mut impl Host) -> bool {
        let Some(count) = self.leases.get_mut(&slot) else { return false };
        *count -= 1;
        if *count == 0 {
            self.leases.remove(&slot);
        }
        end_leases(host, slot, 1);
        true
    }

    /// Sends the region's descriptor with its answer line in a single message. If the socket does not accept the
    /// message, the connection closes.
    fn hand_out(&mut self, board: BorrowedFd<'_>) -> Result<(), Disconnect> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let boards = [board];
        let fits = control.push(SendAncillaryMessage::ScmRights(&boards));
        assert!(fits, "the space is made for one descriptor");
        let line = format!("{}\n", Answer::Done(None));
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let sent = rustix::net::sendmsg(&self.socket, &[IoSlice::new(line.as_bytes())], &mut control, flags);
        if sent != Ok(line.len()) {
            return Err(Disconnect);
        }
        self.has_board = true;
        Ok(())
    }

    fn refuse(&mut self, errno: Errno, text: &str) {
        self.say(&Answer::Refused(Refusal::new(errno, text)));
    }

    fn say(&mut self, answer: &Answer) {
        self.pending.extend_from_slice(format!("{answer}\n").as_bytes());
    }

    /// Sends pending answers until the socket's buffer is full.
    fn flush(&mut self) -> Result<(), Disconnect> {
        while !self.pending.is_empty() {
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match rustix::net::send(self.socket.as_fd(), &self.pending, flags) {
                Ok(sent) => {
                    self.pending.drain(..sent);
                    self.moved_ns = now_ns();
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(_) => return Err(Disconnect),
            }
        }
        Ok(())
    }
}

fn end_leases(host: &mut impl Host, slot: SlotId, count: u32) {
    let left = host.board().leases(slot).saturating_sub(count);
    host.board().set_leases(slot, left);
    if left == 0 {
        host.unsubscribed(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A daemon that grants row 0 for every name.
    struct Everything(Board);

    impl Host for Everything {
        fn board(&mut self) -> &mut Board {
            &mut self.0
        }
        fn kpis(&mut self) -> Vec<KpiInfo> {
            Vec::new()
        }
        fn subscribe(&mut self, _: &str) -> Result<SlotId, Refusal> {
            Ok(SlotId(0))
        }
        fn unsubscribed(&mut self, _: SlotId) {}
    }

    /// A connected program that has sent these bytes and had one turn.
    fn program(bytes: &[u8], host: &mut Everything) -> (Program, OwnedFd) {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let (socket, other) = rustix::net::socketpair(
            rustix::net::AddressFamily::UNIX,
            rustix::net::SocketType::STREAM,
            flags,
            None,
        )
        .expect("room for two sockets");
        rustix::net::send(&other, bytes, SendFlags::NOSIGNAL).expect("room for a request");
        let process = Peer::of(socket.as_fd()).expect("it is us");
        let leases = BTreeMap::new();
        let (received, pending) = (Vec::new(), Vec::new());
        let mut program =
            Program { socket, process, received, pending, leases, has_board: false, moved_ns: now_ns() };
        let allowance = limits::allowance(process, host.0.capacity(), &[]);
        assert!(program.turn(host, allowance).is_ok(), "it goes on");
        (program, other)
    }

    #[test]
    fn who_keeps_a_connection_for_nothing_loses_it() {
        let mut host = Everything(Board::create(8).expect("room for a board").0);
        for (bytes, lives) in [
            (&b""[..], false),
            (b"list\n", false),
            (b"board\n", true),
            (b"subscribe lte.rsrp\n", true),
            (b"subscribe lte.rsrp\nunsubscribe 0\n", false),
            (b"board\nlis", false),
        ] {
            let (program, _other) = program(bytes, &mut host);
            let said = String::from_utf8_lossy(bytes).into_owned();
            let later = |part: u64| program.moved_ns + MAX_IDLE.as_nanos() as u64 / 10 * part;
            assert!(!program.is_idle(later(9)), "{said:?} has its time");
            assert_eq!(!program.is_idle(later(10)), lives, "{said:?}");
            assert_eq!(!program.is_idle(later(10_000)), lives, "{said:?}");
        }
    }

    #[test]
    fn a_reader_that_was_long_silent_has_its_time_for_a_request_and_no_more() {
        let mut host = Everything(Board::create(8).expect("room for a board").0);
        let (mut program, other) = program(b"board\n", &mut host);
        let most = MAX_IDLE.as_nanos() as u64;
        let mut says = |bytes: &[u8]| {
            rustix::net::send(&other, bytes, SendFlags::NOSIGNAL).expect("room for a request");
            let allowance = limits::allowance(program.process, host.0.capacity(), &[]);
            assert!(program.turn(&mut host, allowance).is_ok(), "it goes on");
            (program.moved_ns, program.is_idle(program.moved_ns + most))
        };
        let before_ns = now_ns();
        let (began_ns, is_idle) = says(b"li");
        assert!(began_ns >= before_ns && is_idle, "half a request has its time from its first byte");
        assert_eq!(says(b"s"), (began_ns, true), "more of it gives it no more");
        assert!(!says(b"t\n").1, "once it is whole, a reader may be silent again");
    }

    #[test]
    fn who_does_not_read_its_answers_loses_its_connection() {
        let mut host = Everything(Board::create(8).expect("room for a board").0);
        let (mut program, other) = program(b"board\n", &mut host);
        rustix::net::send(&other, b"list\n", SendFlags::NOSIGNAL).expect("room for a request");
        program.pending = vec![b'x'; 4 << 20];
        assert!(program.flush().is_ok() && !program.pending.is_empty(), "more than a socket holds");
        assert!(program.is_idle(program.moved_ns + MAX_IDLE.as_nanos() as u64));
    }
}
