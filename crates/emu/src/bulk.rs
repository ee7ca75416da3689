//! One bulk flow over the kernel's own TCP, from one end of an emulated network to the other.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use airpace_rt::priority;
use rustix::net::sockopt;

use crate::session;

/// The port of the end that waits.
///
/// Chosen: in the range for private use.
///
/// Source: RFC 6335 §6
pub const PORT: u16 = 54_322;

/// Priority of both ends among real-time threads: below the emulator's.
const PRIORITY: i32 = 5;

/// Settings of a namespace with which neither buffers nor an earlier connection limit a flow.
///
/// Chosen: 16 MB are more than any path of a recording holds.
const SETTINGS: [(&str, &str); 4] = [
    ("tcp_no_metrics_save", "1"),
    ("tcp_slow_start_after_idle", "0"),
    ("tcp_wmem", "16777216 16777216 33554432"),
    ("tcp_rmem", "16777216 16777216 33554432"),
];

/// The share of a receiver's time that its goodput leaves out: the sender finds its rate.
const WARM_UP: f64 = 0.25;

/// How long a receiver waits for the next bytes.
///
/// Chosen: longer than the deepest queue of a recording takes, four times.
const SILENT_FOR: Duration = Duration::from_secs(120);

/// Who opens the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The other end.
    Listen,
    /// This end.
    Connect,
}

/// What an end does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// It sends as much as it can.
    Send,
    /// It reads, from the first byte on.
    Receive,
}

/// One end of a flow.
#[derive(Clone, Debug)]
pub struct Bulk {
    /// Who opens the connection.
    pub part: Part,
    /// The address of the end that waits.
    pub address: SocketAddr,
    /// What it does.
    pub task: Task,
    /// For how long.
    pub long: Duration,
    /// The kernel's congestion control; `None` is its default.
    pub congestion_control: Option<String>,
    /// Whether the namespace is set so that buffers are never the limit.
    pub is_wide: bool,
}

impl Bulk {
    /// Carries it to its end. A receiver returns its goodput in Mbit/s after the beginning. An end that waits calls
    /// `listening` once it can be reached.
    ///
    /// # Errors
    /// A congestion control that this kernel does not have; a setting or a connection that cannot be had; a sender that
    /// falls silent.
    pub fn run(&self, listening: impl FnOnce()) -> io::Result<f64> {
        if self.is_wide {
            widen()?;
        }
        // Without it, the end is later on a busy machine, as every program is.
        let _ = priority::set_realtime(PRIORITY);
        let mut stream = self.connection(listening)?;
        match self.task {
            Task::Send => send(&mut stream, self.long).map(|()| 0.0),
            Task::Receive => receive(&mut stream, self.long),
        }
    }

    fn connection(&self, listening: impl FnOnce()) -> io::Result<TcpStream> {
        let stream = match self.part {
            Part::Listen => {
                let listener = TcpListener::bind(self.address)?;
                if let Some(name) = &self.congestion_control {
                    choose(&listener, name)?;
                }
                listening();
                listener.accept()?.0
            }
            Part::Connect => TcpStream::connect(self.address)?,
        };
        if let Some(name) = &self.congestion_control {
            choose(&stream, name)?;
        }
        Ok(stream)
    }
}

/// Sets this process's namespace so that neither buffers nor an earlier connection limit its flows.
///
/// # Errors
/// A namespace that is not of an emulated run: settings of a machine are not changed.
pub fn widen() -> io::Result<()> {
    if !session::is_within_one() {
        return Err(io::Error::other("settings are made only within an emulated run"));
    }
    for (setting, value) in SETTINGS {
        airpace_files::set_kernel(&format!("net/ipv4/{setting}"), value)?;
    }
    Ok(())
}

/// Makes a socket use this congestion control of the kernel's.
///
/// # Errors
/// A control that this kernel does not have, or that this user may not choose.
pub fn choose(socket: impl AsFd, name: &str) -> io::Result<()> {
    sockopt::set_tcp_congestion(socket, name).map_err(|error| {
        let here = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
        let remedy = match name {
            "biscay" | "morc" | "pbe" => format!("`airpace kernel load {name}` adds it"),
            "biscay@window" => "No socket chooses it: it bounds what this machine downloads".to_owned(),
            _ if error == rustix::io::Errno::PERM => {
                "The kernel has it and allows it to root only: start this as root, or let root add it to \
                 net.ipv4.tcp_allowed_congestion_control by `sysctl`"
                    .to_owned()
            }
            _ => format!("`modprobe tcp_{name}` may add it"),
        };
        io::Error::other(format!(
            "the kernel does not take `{name}`: {error}; it has {}. {remedy}",
            here.unwrap_or_default().trim()
        ))
    })
}

fn send(stream: &mut TcpStream, long: Duration) -> io::Result<()> {
    let zeros = vec![0; 256 << 10];
    let began = Instant::now();
    while began.elapsed() < long {
        match stream.write(&zeros) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // The receiver has what it wanted.
            Err(error) if [ErrorKind::BrokenPipe, ErrorKind::ConnectionReset].contains(&error.kind()) => {
                return Ok(());
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn receive(stream: &mut TcpStream, long: Duration) -> io::Result<f64> {
    stream.set_read_timeout(Some(SILENT_FOR))?;
    let mut room = vec![0; 256 << 10];
    let mut began: Option<Instant> = None;
    let (mut bytes, mut since, mut last) = (0, None, 0.0);
    loop {
        let count = match stream.read(&mut room) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => {
                return Err(io::Error::other(format!("nothing came for {} s", SILENT_FOR.as_secs())));
            }
            Err(error) => return Err(error),
        };
        let elapsed = began.get_or_insert_with(Instant::now).elapsed();
        if count == 0 || elapsed > long {
            break;
        }
        let now = elapsed.as_secs_f64();
        match since {
            None if now < long.as_secs_f64() * WARM_UP => {}
            None => since = Some(now),
            Some(_) => (bytes, last) = (bytes + count as u64, now),
        }
    }
    let lasted = since.map_or(0.0, |since| last - since);
    Ok(if lasted > 0.0 { bytes as f64 * 8e-6 / lasted } else { 0.0 })
}
