//! One bulk flow over the kernel's own TCP: a sender on the far side, and a reader on a device.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rustix::net::sockopt;

use crate::{session, sys};

/// The port of the sender.
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

/// Prepares the namespace and the thread of an end.
fn prepare() -> io::Result<()> {
    // Settings of a machine are not changed.
    if !session::is_within_one() {
        return Err(io::Error::other("this runs only within an emulated run; `airpace emu truth` starts it"));
    }
    for (setting, value) in SETTINGS {
        airpace_files::set_kernel(&format!("net/ipv4/{setting}"), value)?;
    }
    // Without it, the end is later on a busy machine, as every program is.
    let _ = sys::run_first(PRIORITY);
    Ok(())
}

/// Waits for a reader, and sends to it under this congestion control until it is gone.
///
/// # Errors
/// A congestion control that this kernel does not have; a port or a setting that cannot be had.
pub fn send(congestion_control: &str) -> io::Result<()> {
    prepare()?;
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT))?;
    sockopt::set_tcp_congestion(&listener, congestion_control).map_err(|error| {
        let here = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
        io::Error::other(format!(
            "the kernel does not take `{congestion_control}`: {error}; it has {}. `modprobe tcp_{congestion_control}` may add it",
            here.unwrap_or_default().trim()
        ))
    })?;
    let (mut stream, _) = listener.accept()?;
    let zeros = vec![0; 1 << 18];
    loop {
        match stream.write(&zeros) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The reader has what it wanted.
            Err(_) => return Ok(()),
        }
    }
}

/// Reads from the sender for so long after its first byte. Returns how many bytes came.
///
/// # Errors
/// A sender that cannot be reached, or that ends before.
pub fn read(far: Ipv4Addr, long: Duration) -> io::Result<u64> {
    prepare()?;
    let mut stream = TcpStream::connect((far, PORT))?;
    let mut room = vec![0; 1 << 18];
    let mut bytes = stream.read(&mut room)? as u64;
    let until = Instant::now() + long;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(bytes);
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut room) {
            Ok(0) => return Err(io::Error::other("the sender ended too early")),
            Ok(more) => bytes += more as u64,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
    }
}
