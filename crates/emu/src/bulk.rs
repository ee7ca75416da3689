//! A single bulk TCP flow, over the kernel's TCP, from one end of an emulated network to the other.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use airpace_core::remedy::{Refused, Remedy, UserTask};
use airpace_rt::priority;
use rustix::net::sockopt;

use crate::session;

/// Port of the listening endpoint.
///
/// Chosen: in the range for private use.
///
/// Source: RFC 6335 §6
pub const PORT: u16 = 54_322;

/// Real-time priority of both endpoints: below the emulator's.
const PRIORITY: i32 = 5;

/// Namespace settings with which neither buffers nor an earlier connection limit a flow.
///
/// Chosen: 16 MB exceeds the inflight of any recorded path.
const SETTINGS: [(&str, &str); 4] = [
    ("tcp_no_metrics_save", "1"),
    ("tcp_slow_start_after_idle", "0"),
    ("tcp_wmem", "16777216 16777216 33554432"),
    ("tcp_rmem", "16777216 16777216 33554432"),
];

/// Initial share of the transfer time that the receiver excludes from the goodput, because the sender is still ramping
/// up.
const WARM_UP: f64 = 0.25;

/// Maximum time for which a receiver waits for the next bytes.
///
/// Chosen: four times the drain time of the deepest queue of a recording.
const SILENT_FOR: Duration = Duration::from_secs(120);

/// The endpoint that opens the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The peer connects; this endpoint listens.
    Listen,
    /// This endpoint connects.
    Connect,
}

/// The direction of an endpoint's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Send as fast as the congestion control allows.
    Send,
    /// Receive and measure the goodput.
    Receive,
}

/// Configuration of one endpoint of a bulk flow.
#[derive(Clone, Debug)]
pub struct Bulk {
    /// Whether this endpoint listens or connects.
    pub part: Part,
    /// Address of the listening endpoint.
    pub address: SocketAddr,
    /// Whether this endpoint sends or receives.
    pub task: Task,
    /// Duration of the transfer.
    pub long: Duration,
    /// The kernel's congestion control; `None` selects the kernel's default.
    pub congestion_control: Option<String>,
    /// Whether to configure the namespace so that buffers never limit the flow.
    pub is_wide: bool,
}

impl Bulk {
    /// Runs the flow to its end. A receiver returns its goodput in Mbit/s after the ramp-up; a sender returns 0. A
    /// listening endpoint calls `listening` when it accepts connections.
    ///
    /// # Errors
    /// A congestion control that this kernel does not have; a setting or a connection that fails; a sender that sends
    /// nothing for 120 s.
    pub fn run(&self, listening: impl FnOnce()) -> io::Result<f64> {
        if self.is_wide {
            widen()?;
        }
        // Without real-time priority, the endpoint is only delayed more on a busy machine, like any other program.
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

/// Configures this process's namespace so that neither buffers nor an earlier connection limit its flows.
///
/// # Errors
/// The namespace is not that of an emulated run: the machine's own settings are never changed.
pub fn widen() -> io::Result<()> {
    if !session::is_within_one() {
        return Err(io::Error::other("settings are made only within an emulated run"));
    }
    for (setting, value) in SETTINGS {
        airpace_files::set_kernel(&format!("net/ipv4/{setting}"), value)?;
    }
    Ok(())
}

/// Selects this congestion control of the kernel for a socket.
///
/// # Errors
/// A congestion control that this kernel does not have, or that this user may not select.
pub fn choose(socket: impl AsFd, name: &str) -> io::Result<()> {
    sockopt::set_tcp_congestion(socket, name).map_err(|error| {
        let here = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
        let remedy = match name {
            "biscay" | "morc" | "pbe" => Remedy::new("add it:").task(UserTask::LoadKernel(name.to_owned())),
            "biscay@window" => Remedy::new("no socket chooses it: it bounds what this machine downloads"),
            _ if error == rustix::io::Errno::PERM => Remedy::new(
                "the kernel has it and allows it to root only: start this as root, or let root add it to \
                     net.ipv4.tcp_allowed_congestion_control by `sysctl`",
            ),
            _ => Remedy::new(format!("`modprobe tcp_{name}` may add it")),
        };
        let what =
            format!("the kernel does not take `{name}`: {error}; it has {}", here.unwrap_or_default().trim());
        io::Error::other(Refused::new(what).but(remedy))
    })
}

fn send(stream: &mut TcpStream, long: Duration) -> io::Result<()> {
    let zeros = vec![0; 256 << 10];
    let began = Instant::now();
    while began.elapsed() < long {
        match stream.write(&zeros) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // The receiver has finished and closed the connection.
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
                return Err(io::Error::other(format!("no data arrived for {} s", SILENT_FOR.as_secs())));
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
