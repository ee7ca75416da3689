//! Helpers for tests of the programs in this machine's kernel.
// Each test file uses only some of these helpers.
#![allow(dead_code)]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use airpace_bpf::feed::{Feed, GrantRecord};
use airpace_bpf::kernel::{Kernel, KernelScheme, LoadError, Totals};
use airpace_bpf::twin::KernelTuning;
use airpace_bpf::twin::morc::MorcTuning;
use airpace_bpf::twin::pbe::PbeTuning;
use airpace_cc::SchemeSpec;
use airpace_cc::biscay::Tuning;
use airpace_cc::scheme::Options;
use airpace_core::Rate;
use airpace_testing::skipped;
use libbpf_rs::query::{LinkInfoIter, MapInfoIter, ProgInfoIter};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::net::sockopt::set_tcp_congestion;
use rustix::net::{AddressFamily, SocketType, connect, socket};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Names of congestion controls are global to the machine, so the tests of a file run one after another.
static TURN: Mutex<()> = Mutex::new(());

pub fn biscay() -> KernelScheme {
    let options = Options::defaults(&airpace_cc::biscay::SCHEME);
    let tuning = KernelTuning::new(&Tuning::read(&options).unwrap());
    KernelScheme::Biscay(tuning.expect("the kernel knows the defaults"))
}

/// BISCAY for downloads, with `options` in addition to the defaults.
pub fn relay(options: &str) -> KernelScheme {
    let spec = SchemeSpec::parse(&format!("biscay@window{options}")).unwrap();
    let tuning = KernelTuning::new(&Tuning::read(spec.options()).unwrap());
    KernelScheme::Relay(tuning.expect("the kernel knows them"))
}

pub fn morc() -> KernelScheme {
    let options = Options::defaults(&airpace_cc::morc::SCHEME);
    let tuning = MorcTuning::new(&airpace_cc::morc::profile(&options).unwrap());
    KernelScheme::Morc(tuning.expect("the kernel knows the defaults"))
}

pub fn pbe() -> KernelScheme {
    let options = Options::defaults(&airpace_cc::pbe::SCHEME);
    let tuning = PbeTuning::new(&airpace_cc::pbe::Tuning::read(&options).unwrap());
    KernelScheme::Pbe(tuning.expect("the kernel knows the defaults"))
}

/// Loads a scheme, if this machine supports the scheme. Locks out the other tests of this file.
pub fn loaded(part: &KernelScheme) -> Option<(Kernel, MutexGuard<'static, ()>)> {
    let turn = turn();
    load(part).map(|kernel| (kernel, turn))
}

/// Locks out the other tests of this file for the lifetime of the result.
pub fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Loads a scheme while the caller holds the lock, if this machine supports the scheme.
pub fn load(part: &KernelScheme) -> Option<Kernel> {
    match Kernel::load(part) {
        Ok(kernel) => Some(kernel),
        Err(error @ (LoadError::Refused { .. } | LoadError::File { .. })) => panic!("{error}"),
        Err(error) => {
            skipped(&format!("no programs in the kernel: {error}"));
            None
        }
    }
}

/// Opens a sender that uses `scheme`, or the default congestion control of this thread's network namespace.
pub fn connected(scheme: Option<&str>, to: SocketAddr) -> std::io::Result<TcpStream> {
    let socket: OwnedFd = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    if let Some(scheme) = scheme {
        set_tcp_congestion(&socket, scheme)?;
    }
    connect(&socket, &to)?;
    Ok(TcpStream::from(socket))
}

/// `SOL_SOCKET` and `SO_MAX_PACING_RATE`.
///
/// Source: Linux include/uapi/asm-generic/socket.h
const SOCKET: i32 = 1;
const MAX_PACING_RATE: i32 = 47;

#[allow(unsafe_code)]
mod sys {
    unsafe extern "C" {
        pub fn setsockopt(fd: i32, level: i32, name: i32, value: *const u32, length: u32) -> i32;
    }
}

/// Limits the kernel's pacing of a socket to the payload rate `most`, independent of the socket's congestion control.
#[allow(unsafe_code)]
pub fn pace_at_most(socket: &impl AsRawFd, most: Rate) -> std::io::Result<()> {
    let bytes = u32::try_from(most.as_bps() / 8).map_err(std::io::Error::other)?;
    // SAFETY: the system call reads four bytes of `bytes`, which lives until the call returns.
    let code = unsafe { sys::setsockopt(socket.as_raw_fd(), SOCKET, MAX_PACING_RATE, &raw const bytes, 4) };
    if code == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// A flow that sends until this value is dropped.
pub struct Flow {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    received: Arc<Mutex<u64>>,
}

impl Flow {
    pub fn start(scheme: &str) -> std::io::Result<Flow> {
        Flow::between(Some(scheme), "127.0.0.1:0".parse().unwrap())
    }

    /// Opens a flow to a listener at `address`.
    pub fn between(scheme: Option<&str>, address: SocketAddr) -> std::io::Result<Flow> {
        let listener = TcpListener::bind(address)?;
        let sender = connected(scheme, listener.local_addr()?)?;
        let (receiver, _) = listener.accept()?;
        Ok(Flow::of(sender, receiver))
    }

    pub fn of(sender: TcpStream, receiver: TcpStream) -> Flow {
        // This rate is far below the loopback's capacity, because other tests run at the same time.
        Flow::paced(sender, receiver, 20_000)
    }

    /// Sends pieces of this many bytes, with slightly more than a millisecond between two pieces.
    pub fn paced(sender: TcpStream, receiver: TcpStream, bytes: usize) -> Flow {
        Flow::paused(sender, receiver, bytes, Duration::from_millis(1))
    }

    /// Starts a flow that sends as much as its congestion control allows.
    pub fn greedy(sender: TcpStream, receiver: TcpStream) -> Flow {
        Flow::paused(sender, receiver, 20_000, Duration::ZERO)
    }

    fn paused(mut sender: TcpStream, mut receiver: TcpStream, bytes: usize, pause: Duration) -> Flow {
        let stop = Arc::new(AtomicBool::new(false));
        let received = Arc::new(Mutex::new(0));
        let (is_over, count) = (Arc::clone(&stop), Arc::clone(&received));
        let writes = move || {
            let piece = vec![0; bytes];
            while !is_over.load(Ordering::Relaxed) && sender.write_all(&piece).is_ok() {
                std::thread::sleep(pause);
            }
        };
        let reads = move || {
            let mut bytes = [0; 65_536];
            while let Ok(some @ 1..) = receiver.read(&mut bytes) {
                *count.lock().unwrap() += some as u64;
            }
        };
        Flow { stop, threads: vec![std::thread::spawn(writes), std::thread::spawn(reads)], received }
    }

    /// Waits until another megabyte has arrived.
    pub fn goes_on(&self) {
        let before = *self.received.lock().unwrap();
        wait_until("a flow goes on", || *self.received.lock().unwrap() >= before + 1_000_000);
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

/// Polls a condition, and panics with `what` if the condition never holds, because a hanging test reports nothing. The
/// time limit is several minutes, far more than a busy machine needs.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..200_000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("it never came: {what}");
}

pub fn mbps(mbps: f64) -> GrantRecord {
    GrantRecord { bandwidth: Some(Rate::from_mbps(mbps)), burst: Rate::ZERO, share: None }
}

/// Writes the feed until the totals meet the condition.
pub fn feed_until(
    kernel: &Kernel,
    mut feed: Option<(&mut Feed, GrantRecord)>,
    is_enough: impl Fn(&Totals) -> bool,
) {
    wait_until("totals as wanted", || {
        feed.iter_mut().for_each(|(feed, told)| feed.tell(told));
        is_enough(&kernel.totals().unwrap())
    });
}

/// A thread that writes the same record to the feed all the time, until this value is dropped.
pub struct Feeding {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Feeding {
    pub fn start(kernel: &Kernel, told: GrantRecord) -> Feeding {
        let mut feed = kernel.feed().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                feed.tell(&told);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Feeding { stop, thread: Some(thread) }
    }
}

impl Drop for Feeding {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().into_iter().for_each(|thread| thread.join().unwrap());
    }
}

/// Numbers of this crate's objects in the kernel. Each object counts, whichever process loaded it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InKernel {
    pub maps: usize,
    pub programs: usize,
    pub links: usize,
}

impl InKernel {
    /// Counts the objects after the kernel has freed the objects of other tests: when their number has not changed for
    /// half a second.
    pub fn settled() -> InKernel {
        let (mut seen, mut same) = (InKernel::count(), 0);
        while same < 10 {
            std::thread::sleep(Duration::from_millis(50));
            let now = InKernel::count();
            same = if now == seen { same + 1 } else { 0 };
            seen = now;
        }
        seen
    }

    pub fn count() -> InKernel {
        // Names of the schemes' programs and maps in the compiled objects.
        let [mut programs, mut maps] = [vec![], vec![]];
        for part in [biscay(), relay(""), morc(), pbe()] {
            let [more_programs, more_maps] = part.names().expect("they were compiled");
            programs.extend(more_programs);
            maps.extend(more_maps);
        }
        let ours: Vec<u32> = ProgInfoIter::default()
            .filter(|program| programs.iter().any(|name| program.name == **name))
            .map(|program| program.id)
            .collect();
        InKernel {
            maps: MapInfoIter::default().filter(|map| maps.iter().any(|name| map.name == **name)).count(),
            programs: ours.len(),
            // The link of a scheme has no program ID.
            links: LinkInfoIter::default()
                .filter(|link| link.prog_id == 0 || ours.contains(&link.prog_id))
                .count(),
        }
    }

    /// Waits until the kernel holds at most the number of objects that `self` counted before. The kernel frees the last
    /// flow's objects some time after the flow's end.
    pub fn comes_again(&self) {
        let mut seen = InKernel::count();
        for _ in 0..6_000 {
            if seen.maps <= self.maps && seen.programs <= self.programs && seen.links <= self.links {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
            seen = InKernel::count();
        }
        panic!("{self:?} became {seen:?}");
    }
}

/// A control group that contains this process, for the lifetime of this value.
pub struct Group {
    mounted: PathBuf,
    before: PathBuf,
    pub path: PathBuf,
}

impl Group {
    pub fn enter() -> Option<Group> {
        let mounted = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("groups-{}", std::process::id()));
        fs::create_dir_all(&mounted).unwrap();
        if let Err(error) = mount("airpace", &mounted, "cgroup2", MountFlags::empty(), None) {
            skipped(&format!("control groups cannot be seen here: {error}"));
            return None;
        }
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap();
        let before = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
        let path = mounted.join(format!("airpace-test-{}", std::process::id()));
        let group = Group { before: mounted.join(before), mounted, path };
        fs::create_dir(&group.path).unwrap();
        airpace_files::join_group(&group.path).unwrap();
        Some(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        airpace_files::join_group(&self.before).unwrap();
        fs::remove_dir(&self.path).unwrap();
        unmount(&self.mounted, UnmountFlags::DETACH).unwrap();
        fs::remove_dir(&self.mounted).unwrap();
    }
}

/// A network namespace with a loopback device. It exists until it is removed or this value is dropped.
pub struct Namespace {
    name: String,
    is_there: bool,
}

impl Namespace {
    /// Creates a namespace, if this user has the permission. `what` distinguishes it from other namespaces of this
    /// process.
    pub fn new(what: &str) -> Option<Namespace> {
        let name = format!("airpace-{what}-{}", std::process::id());
        if let Err(said) = ip(&["netns", "add", &name]) {
            skipped(&format!("no network namespaces: {said}"));
            return None;
        }
        let namespace = Namespace { name, is_there: true };
        ip(&["-n", &namespace.name, "link", "set", "lo", "mtu", "1500", "up"]).unwrap();
        Some(namespace)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs `work` in a thread that has entered the namespace. Sockets that it creates stay in the namespace.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let file = File::open(format!("/run/netns/{}", self.name)).unwrap();
        std::thread::scope(|scope| {
            let entered = scope.spawn(move || {
                move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
                drop(file);
                work()
            });
            entered.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Removes the namespace: the kernel keeps it as long as it contains sockets.
    pub fn remove(&mut self) {
        if std::mem::take(&mut self.is_there) {
            ip(&["netns", "del", &self.name]).unwrap();
        }
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Runs the program `ip` of iproute2.
pub fn ip(words: &[&str]) -> Result<(), String> {
    run("ip", words)
}

/// Runs a program of iproute2.
pub fn run(program: &str, words: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(words).output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{program} {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
}

/// Creates two namespaces with a link between them.
pub fn wire(here: &str, there: &str) -> Option<[Namespace; 2]> {
    let ends = [Namespace::new("here")?, Namespace::new("there")?];
    let names = ends.each_ref().map(Namespace::name);
    let pair = ["-n", names[0], "link", "add", "wire", "mtu", "1500", "type", "veth", "peer", "name", "wire"];
    ip(&[&pair[..], &["netns", names[1]]].concat()).unwrap();
    for (end, address) in names.into_iter().zip([here, there]) {
        ip(&["-n", end, "addr", "add", &format!("{address}/24"), "dev", "wire"]).unwrap();
        ip(&["-n", end, "link", "set", "wire", "up"]).unwrap();
    }
    Some(ends)
}

/// Bytes that each of many flows sends at once: more than a flow's first window.
pub const PIECE: usize = 20_000;

/// Time without data after which a flow counts as stalled.
pub const STILL: Duration = Duration::from_secs(60);

/// Whether this process may have this many files open.
pub fn may_open(files: u64) -> bool {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= files) {
        return true;
    }
    let most = limit.maximum.unwrap_or(files);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: limit.maximum });
    if most < files || raised.is_err() {
        skipped(&format!("{files} open files are needed: raise `ulimit -Hn`"));
        return false;
    }
    true
}

/// Opens a connection whose sender uses `scheme`.
pub fn pair(listener: &TcpListener, scheme: Option<&str>) -> (TcpStream, TcpStream) {
    let sender = connected(scheme, listener.local_addr().unwrap()).unwrap();
    let (receiver, _) = listener.accept().unwrap();
    receiver.set_read_timeout(Some(STILL)).unwrap();
    (sender, receiver)
}

/// Each sender sends [`PIECE`] bytes, and each receiver receives them.
pub fn all_move(pairs: &mut [(TcpStream, TcpStream)]) {
    let mut piece = vec![7; PIECE];
    for (sender, _) in &mut *pairs {
        sender.write_all(&piece).unwrap();
    }
    for (_, receiver) in pairs {
        receiver.read_exact(&mut piece).expect("no flow stands still");
    }
}
