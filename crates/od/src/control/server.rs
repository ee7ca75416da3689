//! The daemon's end of the control socket. It never waits for a program.

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
use super::limits::{self, Allowance, MOST_IDLE};
use super::{Answer, KpiInfo, MOST_REQUEST_BYTES, Refusal, Request};
use crate::board::{Board, SlotId};
use crate::clock::now_ns;
use crate::error::Error;
use crate::peer::Peer;

/// Requests of one program that are answered in a row before other programs have their turn.
///
/// Chosen: opening and subscribing takes a handful. A program that floods the socket delays others by a handful.
const MOST_REQUESTS_PER_TURN: usize = 8;
/// Processor time that the thread works without a pause, before it rests.
///
/// Chosen: a program's few requests fit in. A program with a later turn waits for a few such stretches and their rests.
const STRETCH_NS: u64 = 500_000;
/// The server rests this many times as long as it has worked: no flood of requests takes more than a tenth of a core.
///
/// Chosen: a request takes some microseconds, so a program that asks one by one waits less than a millisecond for each.
const REST: u64 = 9;

/// The daemon's decisions about requests.
pub trait Host {
    /// The board to hand out.
    fn board(&mut self) -> &mut Board;
    /// All KPIs, in the order to show them.
    fn kpis(&mut self) -> Vec<KpiInfo>;
    /// Makes sure that a KPI is published, and returns its place. Called for every lease, also if the KPI has leases
    /// already.
    ///
    /// # Errors
    /// The reason for the refusal: `ENOENT` for an unknown name, `ENOSPC` if the board is full.
    fn subscribe(&mut self, name: &str) -> Result<SlotId, Refusal>;
    /// The last lease on a KPI has ended: it need not be published any more.
    fn unsubscribed(&mut self, slot: SlotId);
}

/// The control socket of a daemon, and the programs connected to it.
#[derive(Debug)]
pub struct Server {
    socket: OwnedFd,
    programs: Vec<Program>,
    /// The program with the first turn: one that was not reached before the last rest.
    first: usize,
    /// Until when programs have to wait, in ns of [`crate::clock`].
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
    /// Whether the program has the board's descriptor: then it reads, and may be silent as long as it likes.
    has_board: bool,
    /// When the program last did what the server waits for, in ns of [`crate::clock`].
    moved_ns: u64,
}

impl Server {
    /// Makes the daemon's folder and the socket in it. The socket of a killed daemon is replaced in one step.
    ///
    /// Everyone on the machine may connect; the folder's permissions can keep users out.
    ///
    /// # Errors
    /// [`Error::Folder`] if others may change its content, [`Error::InUse`] if a daemon runs there, [`Error::System`]
    /// for errors of the system.
    pub fn bind(dir: &Path) -> Result<Server, Error> {
        let folder = Folder::claim(dir)?;
        let socket = folder.listen()?;
        Ok(Server { socket, programs: Vec::new(), first: 0, rests_until_ns: 0, _folder: folder })
    }

    /// Does the work that there is, and waits for work no longer than `wait`; never waits for a program.
    ///
    /// After work, the server rests nine times as long. A later call answers requests that come meanwhile.
    ///
    /// # Errors
    /// Only errors of the system about the daemon's own socket. An error with a program ends that program's connection.
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
        // The server does not wait if requests of a flood are left.
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

    /// Gives programs their turns, one after another, until the thread has worked as long as it may.
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
        // Connections end before new ones are accepted: their places may be needed.
        gone.sort_unstable();
        self.end(gone, host);
    }

    /// Ends idle connections.
    fn end_idle(&mut self, host: &mut impl Host, now_ns: u64) {
        let is_idle = |at: &usize| self.programs[*at].is_idle(now_ns);
        let idle = (0..self.programs.len()).filter(is_idle).collect();
        self.end(idle, host);
    }

    /// Ends the connections at these places, which must be in ascending order.
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

    /// Programs that are connected.
    pub fn programs(&self) -> usize {
        self.programs.len()
    }

    fn accept(&mut self) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        for _ in 0..MOST_REQUESTS_PER_TURN {
            // No connection waits any more, or no descriptor is left; then a waiting program has its turn later.
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
                    // Only a courtesy: the connection ends here either way.
                    let _ = rustix::net::send(&socket, line.as_bytes(), SendFlags::NOSIGNAL);
                }
            }
        }
    }

    /// Whether there is a place for a new connection, and whose it is.
    fn admit(&self, socket: &OwnedFd) -> Result<Peer, Refusal> {
        let newcomer = Peer::of(socket.as_fd())
            .map_err(|errno| Refusal::new(errno, "there is no telling who connects"))?;
        let connected: Vec<Peer> = self.programs.iter().map(|program| program.process).collect();
        limits::may_connect(newcomer, &connected).map_err(|why| Refusal::new(Errno::USERS, why))?;
        Ok(newcomer)
    }
}

/// Processor time that the calling thread has used, in ns. Time in which other threads have the processor does not
/// count.
fn work_ns() -> u64 {
    let work = clock_gettime(ClockId::ThreadCPUTime);
    work.tv_sec as u64 * 1_000_000_000 + work.tv_nsec as u64
}

/// The end of a connection: the program has gone, does not read, or breaks the protocol.
struct Disconnect;

impl Program {
    /// Answers the program's requests. A program that does not read its answers is not listened to until it does.
    ///
    /// `allowance`: how many leases the program may add.
    fn turn(&mut self, host: &mut impl Host, mut allowance: Allowance) -> Result<(), Disconnect> {
        if self.pending.is_empty() && !self.has_request() {
            let mut bytes = [0; 4_096];
            match rustix::net::recv(&self.socket, &mut bytes[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Err(Disconnect),
                Ok((received, _)) => {
                    // The time runs from the first byte of a request: later bytes of it do not extend it.
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
        for _ in 0..MOST_REQUESTS_PER_TURN {
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
        if self.received.len() >= MOST_REQUEST_BYTES && !self.has_request() {
            self.refuse(Errno::MSGSIZE, "that is longer than any request");
            // The program may or may not read this: the connection ends.
            let _ = self.flush();
            return Err(Disconnect);
        }
        Ok(())
    }

    /// The program's process, and its number of leases.
    fn holds(&self) -> (Peer, u32) {
        (self.process, self.leases.values().sum())
    }

    /// Whether the server waits for the program in vain: the program neither reads an answer nor finishes a request, or
    /// it never asked for anything that is worth a connection.
    fn is_idle(&self, now_ns: u64) -> bool {
        let is_reader = self.has_board || !self.leases.is_empty();
        let is_waited_for = !is_reader || !self.pending.is_empty() || !self.received.is_empty();
        is_waited_for && now_ns.saturating_sub(self.moved_ns) >= MOST_IDLE.as_nanos() as u64
    }

    /// Whether a request has come completely.
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

    /// Sends the board's descriptor. It goes at once with its own line, or the connection ends.
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

    /// Sends as much as the program's buffer takes.
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

    /// A daemon that publishes every KPI.
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

    /// A program that has sent these bytes, after one turn.
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
            let later = |part: u64| program.moved_ns + MOST_IDLE.as_nanos() as u64 / 10 * part;
            assert!(!program.is_idle(later(9)), "{said:?} has its time");
            assert_eq!(!program.is_idle(later(10)), lives, "{said:?}");
            assert_eq!(!program.is_idle(later(10_000)), lives, "{said:?}");
        }
    }

    #[test]
    fn a_reader_that_was_long_silent_has_its_time_for_a_request_and_no_more() {
        let mut host = Everything(Board::create(8).expect("room for a board").0);
        let (mut program, other) = program(b"board\n", &mut host);
        let most = MOST_IDLE.as_nanos() as u64;
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
        assert!(program.is_idle(program.moved_ns + MOST_IDLE.as_nanos() as u64));
    }
}
