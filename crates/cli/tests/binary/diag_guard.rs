//! `airpace diag guard` under a service manager that terminates all processes of a service at once.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::Shell;

/// Fills the port's buffer, so that the guard has to wait.
fn fill(port: &mut UnixStream) {
    port.set_nonblocking(true).unwrap();
    while port.write(&[0; 4096]).is_ok() {}
}

/// Whether a process handles SIGTERM itself.
fn handles_sigterm(process: &Child) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).expect("it runs");
    let caught =
        status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("Linux says what is caught");
    let caught = u64::from_str_radix(caught.trim(), 16).expect("a mask");
    caught >> (rustix::process::Signal::TERM.as_raw() - 1) & 1 == 1
}

#[test]
fn the_guard_gives_the_modem_back_although_all_of_its_service_is_ended() {
    let shell = Shell::new();
    let (mut port, mut modem) = UnixStream::pair().unwrap();
    fill(&mut port);
    let mut guard = shell
        .command(&["diag", "guard"])
        .stdin(Stdio::piped())
        .stdout(OwnedFd::from(port))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !handles_sigterm(&guard) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut daemon = guard.stdin.take().unwrap();
    daemon.write_all(b"R\x07\0\0\0as it w").unwrap();
    drop(daemon);
    // The guard waits for the port, and receives SIGTERM several times.
    for _ in 0..100 {
        kill_process(Pid::from_child(&guard), Signal::TERM).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
    // A modem that closed the port before it had read everything would count as disconnected, so this modem reads
    // first.
    let (mut heard, mut buffer) = (vec![], [0; 4096]);
    while !heard.ends_with(b"as it w") {
        let count = modem.read(&mut buffer).unwrap();
        assert_ne!(count, 0, "the guard ended after {} bytes", heard.len());
        heard.extend_from_slice(&buffer[..count]);
    }
    modem.shutdown(Shutdown::Write).unwrap();
    let ended = guard.wait_with_output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}
