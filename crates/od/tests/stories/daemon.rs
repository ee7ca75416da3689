//! A small daemon for tests. It offers three KPIs, has its own folder, and runs in this process or in a separate one.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use od::control::{Host, Refusal, SOCKET_NAME, Server};
use od::{Board, Entry, KpiInfo, Publisher, SlotId};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use tempfile::TempDir;

/// Name, unit and description of this daemon's KPIs.
pub const KPIS: [(&str, &str, &str); 3] = [
    ("lte.rsrp", "dBm", "reference signal received power of the serving cell"),
    ("lte.dl.grant", "byte", "bytes granted on the downlink in a subframe"),
    ("nr.snr", "dB", "signal to noise ratio of the serving cell"),
];

/// A daemon in a thread of this process. Dropping it stops the daemon.
pub struct Daemon {
    pub publisher: Publisher,
    pub state: Arc<State>,
    dir: Arc<TempDir>,
    thread: Option<JoinHandle<()>>,
}

/// Starts a server in the folder `dir`. Retries if a daemon has just stopped there: a process that another test is
/// starting may hold a copy of the daemon's lock until its `exec`.
fn bind(dir: &Path) -> Server {
    loop {
        match Server::bind(dir) {
            Err(od::Error::InUse { .. }) => std::thread::yield_now(),
            bound => return bound.expect("a folder of our own"),
        }
    }
}

/// State of the daemon that a test sets and reads.
#[derive(Default)]
pub struct State {
    pub is_over: AtomicBool,
    /// Whether the control thread hangs: it then neither answers nor writes heartbeats.
    pub is_stuck: AtomicBool,
    /// KPIs that have no lease any more, in the order in which their last leases ended.
    pub unsubscribed: Mutex<Vec<String>>,
    pub programs: Mutex<usize>,
    /// Processor time that the control thread has used.
    pub work: Mutex<Duration>,
}

impl Daemon {
    pub fn start(capacity: u32) -> Daemon {
        Daemon::start_in(Arc::new(TempDir::new().expect("a folder")), capacity)
    }

    pub fn start_in(dir: Arc<TempDir>, capacity: u32) -> Daemon {
        let (board, publisher) = Board::create(capacity).expect("a board");
        let server = bind(dir.path());
        let state = Arc::new(State::default());
        let thread = std::thread::spawn({
            let state = state.clone();
            move || run(server, Offers { board, state: state.clone() }, &state)
        });
        Daemon { publisher, state, dir, thread: Some(thread) }
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn folder(&self) -> Arc<TempDir> {
        self.dir.clone()
    }

    pub fn open(&self) -> od::Od {
        od::Od::open(Some(self.dir())).expect("the daemon answers")
    }

    /// Publishes one reading with the present time as arrival time, and wakes the waiting readers.
    pub fn publish(&mut self, slot: u32, value: f64) -> u64 {
        let arrival_ns = od::clock::now_ns();
        let sequence = self.publisher.publish(SlotId(slot), &Entry { value, arrival_ns, ..Entry::default() });
        self.publisher.wake();
        sequence
    }

    /// Waits until the daemon has processed the test's actions.
    pub fn settle(&self, what: &str, is_so: impl Fn(&State) -> bool) {
        for _ in 0..60_000 {
            if is_so(&self.state) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("the daemon never saw that {what}");
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::Relaxed);
        self.state.is_stuck.store(false, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "the daemon's thread panicked");
        }
    }
}

struct Offers {
    board: Board,
    state: Arc<State>,
}

impl Host for Offers {
    fn board(&mut self) -> &mut Board {
        &mut self.board
    }

    fn kpis(&mut self) -> Vec<KpiInfo> {
        let info = |(name, unit, about): (&str, &str, &str)| KpiInfo {
            name: name.to_owned(),
            unit: unit.to_owned(),
            about: about.to_owned(),
        };
        KPIS.map(info).to_vec()
    }

    fn subscribe(&mut self, name: &str) -> Result<SlotId, Refusal> {
        let plain = name.split(['@', '#']).next().unwrap_or(name);
        let (_, unit, _) = KPIS
            .into_iter()
            .find(|(known, _, _)| *known == plain)
            .ok_or_else(|| Refusal::new(Errno::NOENT, format!("there is no KPI `{name}`")))?;
        self.board.add(name, unit).map_err(|errno| Refusal::new(errno, format!("no place for `{name}`")))
    }

    fn unsubscribed(&mut self, slot: SlotId) {
        let name = self.board.name(slot).expect("it was subscribed to");
        self.board.free(slot);
        self.state.unsubscribed.lock().expect("not poisoned").push(name);
    }
}

fn run(mut server: Server, mut offers: Offers, state: &State) {
    while !state.is_over.load(Ordering::Relaxed) {
        if state.is_stuck.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        }
        offers.board.beat();
        server.serve(&mut offers, Duration::from_millis(1)).expect("its own socket works");
        *state.programs.lock().expect("not poisoned") = server.programs();
        let work = clock_gettime(ClockId::ThreadCPUTime);
        *state.work.lock().expect("not poisoned") = Duration::new(work.tv_sec as u64, work.tv_nsec as u32);
    }
}

/// Waits until a daemon is reported as alive, or as dead. The machine's load may delay a live daemon's heartbeat.
pub fn turns_to(od: &od::Od, is_alive: bool) -> bool {
    (0..20_000).any(|_| {
        let is_so = od.is_alive() == is_alive;
        if !is_so {
            std::thread::sleep(Duration::from_millis(1));
        }
        is_so
    })
}

/// A daemon in its own process. It publishes one reading in its row 0 and then only writes heartbeats.
pub struct Process {
    child: Child,
}

/// Environment variable that makes a new process of this binary a daemon in the named folder.
const ROLE: &str = "OD_TEST_DAEMON_IN";

impl Process {
    pub fn start(dir: &Path) -> Process {
        let mut child = Command::new(std::env::current_exe().expect("this binary"))
            .args(["--exact", "daemon::daemon_in_a_process_of_its_own", "--nocapture"])
            .env(ROLE, dir)
            .stdout(Stdio::piped())
            .spawn()
            .expect("this binary starts");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let is_ready = lines.map_while(Result::ok).any(|line| line.contains("ready"));
        assert!(is_ready, "the daemon's process ended early");
        Process { child }
    }

    /// Kills the daemon with SIGKILL, as the kernel does when memory runs out: without any cleanup.
    pub fn kill(&mut self) {
        self.child.kill().expect("it ran");
        self.child.wait().expect("it has ended");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Main function of a process started by [`Process`]. Does nothing if run as a normal test.
#[test]
fn daemon_in_a_process_of_its_own() {
    let Some(dir) = std::env::var_os(ROLE).map(PathBuf::from) else { return };
    let (mut board, mut publisher) = Board::create(4).expect("a board");
    let slot = board.add("lte.rsrp", "dBm").expect("room");
    let arrival_ns = od::clock::now_ns();
    publisher.publish(slot, &Entry { value: -97.5, arrival_ns, ..Entry::default() });
    let server = Server::bind(&dir).expect("a folder of our own");
    println!("ready");
    let state = Arc::new(State::default());
    run(server, Offers { board, state: state.clone() }, &state);
}

/// Connections of another process. The connections are idle, except for the subscriptions that the process requests
/// first.
pub struct Visitors {
    child: Child,
}

/// Environment variable with the number of connections that a new process of this binary opens to the daemon whose
/// folder is in [`VISITED`].
const VISITS: &str = "OD_TEST_VISITS";
const VISITED: &str = "OD_TEST_VISITS_TO";
/// Environment variable with the list of KPIs to which the process's first connection subscribes.
const WISHES: &str = "OD_TEST_WISHES";

impl Visitors {
    pub fn start(dir: &Path, count: usize) -> Visitors {
        Visitors::of(Command::new(std::env::current_exe().expect("this binary")), dir, count, &[]).0
    }

    /// Starts the process as another user, from a copy of this binary that this user may execute. Also returns the
    /// number of granted subscriptions.
    pub fn start_as(
        user: u32,
        binary: &Path,
        dir: &Path,
        count: usize,
        wishes: &[String],
    ) -> (Visitors, usize) {
        let mut command = Command::new(binary);
        command.uid(user).gid(user).current_dir("/");
        Visitors::of(command, dir, count, wishes)
    }

    fn of(mut command: Command, dir: &Path, count: usize, wishes: &[String]) -> (Visitors, usize) {
        let mut child = command
            .args(["--exact", "daemon::visitors_in_a_process_of_their_own", "--nocapture"])
            .env(VISITED, dir)
            .env(VISITS, count.to_string())
            .env(WISHES, wishes.join(","))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this binary starts");
        if wishes.is_empty() {
            return (Visitors { child }, 0);
        }
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let granted =
            lines.map_while(Result::ok).find_map(|line| Some(line.split_once("granted ")?.1.to_owned()));
        let granted = granted.expect("the visitors end only when they are killed");
        (Visitors { child }, granted.parse().expect("a number"))
    }
}

impl Drop for Visitors {
    fn drop(&mut self) {
        self.child.kill().expect("it ran");
        self.child.wait().expect("it has ended");
    }
}

/// Main function of a process started by [`Visitors`]. Does nothing if run as a normal test.
#[test]
fn visitors_in_a_process_of_their_own() {
    let Some(dir) = std::env::var_os(VISITED).map(PathBuf::from) else { return };
    let count: usize = std::env::var(VISITS).expect("set").parse().expect("a number");
    let connect = |_| UnixStream::connect(dir.join(SOCKET_NAME)).expect("the daemon listens");
    let mut connections: Vec<_> = (0..count).map(connect).collect();
    let wishes = std::env::var(WISHES).unwrap_or_default();
    let mut granted = 0;
    for name in wishes.split(',').filter(|name| !name.is_empty()) {
        let program = &mut connections[0];
        let mut answer = [0; 200];
        let asked = program.write_all(format!("subscribe {name}\n").as_bytes());
        let count = asked.and_then(|()| program.read(&mut answer)).unwrap_or(0);
        granted += usize::from(answer[..count].starts_with(b"ok "));
    }
    println!("granted {granted}");
    // Wait until this process is killed or its parent has exited.
    let _ = std::io::stdin().read_line(&mut String::new());
}
