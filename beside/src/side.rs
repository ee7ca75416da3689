//! A process that is one side of a flow, and what is measured of it.
//!
//! The process is told its part by its arguments. It prints `listening ADDRESS` if it is the receiver, and `connected` when
//! the handshake is over. Then it is told two instants on its standard input, looks at its clocks and counters at both, prints
//! [`Measured`] as JSON, and ends. So all threads of a stack count, and nothing of another process.

use std::io::BufRead;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use airpace_rt::clock;
use airpace_transport::socket::Buffers;
use rustix::net::sockopt;
use rustix::thread::{CpuSet, sched_setaffinity};
use serde::{Deserialize, Serialize};

/// The argument by which the program starts itself as a side.
pub const WORD: &str = "--side";

/// The server's name, in its certificate too.
pub const NAME: &str = "localhost";

/// The application protocol.
pub const ALPN: &[u8] = b"beside";

/// Payload of a full packet: 1500 bytes with the headers of IPv4 and UDP.
pub const FULL: u16 = 1472;

/// Bytes that a peer may send ahead of what was read, and bytes that wait to be acknowledged: what ours has by itself.
pub const RECEIVE_WINDOW: u64 = 16 << 20;
pub const SEND_WINDOW: u64 = 24 << 20;

/// Bytes that the application writes at once.
pub const CHUNK: usize = 64 << 10;

/// Any free port of the loopback.
pub const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// What a side does.
pub enum Part {
    /// It connects there, and sends.
    Sends(SocketAddr),
    /// It waits for one connection, and receives.
    Receives,
}

/// A side.
pub struct Side {
    pub part: Part,
    /// Certificate and key of the receiver, as PEM.
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// What a stack knows of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Bytes that the application wrote or read.
    pub bytes: u64,
    /// Datagrams with data that left or came, about; and their payload.
    pub packets: u64,
    pub payload: u64,
}

/// What was measured of a side between two instants.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Measured {
    pub seconds: f64,
    pub bytes: u64,
    pub packets: u64,
    pub payload: u64,
    /// Processor time of the whole process, and how much of it the kernel used.
    pub cpu_s: f64,
    pub kernel_s: f64,
}

/// Counters that a stack without such counters of its own keeps.
#[derive(Default)]
pub struct Counters {
    pub bytes: AtomicU64,
    pub packets: AtomicU64,
    pub payload: AtomicU64,
}

impl Counters {
    pub fn new() -> Arc<Counters> {
        Arc::default()
    }

    /// One thread counts: a read and a write are cheaper than an addition that nobody disturbs.
    pub fn add(counter: &AtomicU64, more: u64) {
        counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
    }

    pub fn seen(&self) -> Seen {
        let [bytes, packets, payload] =
            [&self.bytes, &self.packets, &self.payload].map(|counter| counter.load(Ordering::Relaxed));
        Seen { bytes, packets, payload }
    }
}

/// Runs a side by its arguments: stack, certificate, key, and for the sender the receiver's address.
pub fn run(words: Vec<String>) {
    let [stack, certificate, key, rest @ ..] = &words[..] else {
        panic!("a side has at least three arguments")
    };
    let part = match rest.first() {
        Some(address) => Part::Sends(address.parse().expect("an address")),
        None => Part::Receives,
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    if processors > 1 {
        let mut own = CpuSet::new();
        own.set(usize::from(matches!(part, Part::Receives)));
        // On a machine that does not allow it the flow runs anyway.
        let _ = sched_setaffinity(None, &own);
    }
    let side = Side { part, certificate: certificate.into(), key: key.into() };
    let (_, run) = crate::STACKS.iter().find(|(name, _)| name == stack).expect("a stack that was built");
    run(&side);
    // The flow has ended first, since the other side has: what was asked for is still printed.
    loop {
        std::thread::park();
    }
}

impl Side {
    pub fn certificate_pem(&self) -> String {
        std::fs::read_to_string(&self.certificate).expect("the certificate that was just written")
    }

    pub fn key_pem(&self) -> String {
        std::fs::read_to_string(&self.key).expect("the key that was just written")
    }
}

/// The receiver waits there.
pub fn listening(at: SocketAddr) {
    println!("listening {at}");
}

/// The handshake is over: measures when it is told to, and ends the process.
pub fn connected(look: impl Fn() -> Seen + Send + 'static) {
    println!("connected");
    std::thread::spawn(move || {
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line).expect("two instants");
        let mut instants = line.split_whitespace().map(|word| word.parse::<u64>().expect("nanoseconds"));
        let (from, to) = (instants.next().expect("an instant"), instants.next().expect("another"));
        let before = snapshot(from, &look);
        let after = snapshot(to, &look);
        let measured = Measured {
            seconds: (after.0 - before.0).as_secs_f64(),
            bytes: after.1.bytes - before.1.bytes,
            packets: after.1.packets - before.1.packets,
            payload: after.1.payload - before.1.payload,
            cpu_s: (after.2 - before.2).as_secs_f64(),
            kernel_s: (after.3 - before.3).as_secs_f64(),
        };
        println!("{}", serde_json::to_string(&measured).expect("plain numbers"));
        std::process::exit(0);
    });
}

type Snapshot = (Duration, Seen, Duration, Duration);

fn snapshot(at: u64, look: &impl Fn() -> Seen) -> Snapshot {
    std::thread::sleep(Duration::from_nanos(at.saturating_sub(clock::now().as_nanos())));
    (Duration::from_nanos(clock::now().as_nanos()), look(), clock::process_cpu(), kernel_time())
}

/// Processor time that the kernel used on behalf of this process, from `/proc`: in ticks of 10 ms.
fn kernel_time() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in brackets may hold anything; the field is the thirteenth behind it.
    let fields = text.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let ticks = fields.split(' ').nth(12).and_then(|field| field.parse::<u64>().ok()).unwrap_or_default();
    Duration::from_millis(ticks * 1_000 / rustix::param::clock_ticks_per_second())
}

/// A socket on the loopback with the buffers that ours has.
pub fn socket() -> UdpSocket {
    let socket = UdpSocket::bind(ANY).expect("a port of the loopback");
    let fd = OwnedFd::from(socket.try_clone().expect("a descriptor"));
    let Buffers { receive, send } = Buffers::default();
    let forced = sockopt::set_socket_recv_buffer_size_force(&fd, receive.0 as usize);
    forced
        .or_else(|_| sockopt::set_socket_recv_buffer_size(&fd, receive.0 as usize))
        .expect("a receive buffer");
    sockopt::set_socket_send_buffer_size(&fd, send.0 as usize).expect("a send buffer");
    socket.set_nonblocking(true).expect("a socket that does not wait");
    socket
}
