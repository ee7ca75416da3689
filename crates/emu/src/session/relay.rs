//! TCP connections from devices to this machine and the networks that it reaches, without root's rights: each connection
//! ends at the far side, and a second connection of this user continues it.
//!
//! Both endpoints of a connection across the emulated network are therefore the kernel's TCP, with its congestion
//! control. A program like pasta, which generates packets from the bytes that it reads from a socket, would send without
//! congestion control.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustix::net::sockopt::{ip_original_dst, ipv6_original_dst, set_socket_linger};

use crate::address::Space;

/// Maximum number of concurrent connections; further ones are closed.
///
/// Chosen: a browser with many pages has a few hundred connections.
const MAX_CONNECTIONS: usize = 1_000;

/// Maximum time for a connection to the destination.
const CONNECTS_WITHIN: Duration = Duration::from_secs(30);

/// Size of a thread's buffer, in bytes.
const BYTES_AT_ONCE: usize = 64 << 10;

/// Size of a thread's stack, in bytes; the buffer is on the heap.
const STACK: usize = 128 << 10;

/// The relay's listening sockets for both address families in the far side's network.
#[derive(Debug)]
pub(super) struct Relay {
    listeners: Vec<TcpListener>,
}

impl Relay {
    /// Listens at these addresses in the thread's network namespace.
    pub(super) fn open(addresses: &[IpAddr]) -> io::Result<Relay> {
        let listeners = addresses.iter().map(|&address| TcpListener::bind((address, 0)));
        Ok(Relay { listeners: listeners.collect::<io::Result<_>>()? })
    }

    /// Returns the addresses and ports to which connections must be redirected.
    pub(super) fn ports(&self) -> io::Result<Vec<SocketAddr>> {
        self.listeners.iter().map(TcpListener::local_addr).collect()
    }

    /// Relays connections until the process ends. The outgoing connections start in the thread's network namespace.
    pub(super) fn begin(self) -> io::Result<()> {
        let count = Arc::new(());
        for listener in self.listeners {
            let count = Arc::clone(&count);
            let take = move || {
                for stream in listener.incoming().flatten() {
                    // Each connection holds one reference, and so does each listener.
                    if Arc::strong_count(&count) <= MAX_CONNECTIONS {
                        let held = Arc::clone(&count);
                        // If no thread can be started, the connection is closed.
                        let _ = std::thread::Builder::new().stack_size(STACK).spawn(move || {
                            carry(&stream);
                            drop(held);
                        });
                    }
                }
            };
            std::thread::Builder::new().name("relay".to_owned()).spawn(take)?;
        }
        Ok(())
    }
}

/// Connects to the original destination of a redirected connection, and relays its bytes.
fn carry(inside: &TcpStream) {
    let outside = wanted(inside).and_then(|address| TcpStream::connect_timeout(&address, CONNECTS_WITHIN));
    match outside {
        Ok(outside) => exchange(inside, &outside),
        // The program's connection is reset.
        Err(_) => reset(inside),
    }
}

/// Returns the original destination of a redirected connection. The far side's address is replaced by the local host's.
fn wanted(stream: &TcpStream) -> io::Result<SocketAddr> {
    let address: SocketAddr = match stream.local_addr()? {
        SocketAddr::V4(_) => ip_original_dst(stream)?.into(),
        SocketAddr::V6(_) => ipv6_original_dst(stream)?.into(),
    };
    let port = address.port();
    Ok(match address.ip() {
        IpAddr::V4(it) if it == Space::ROOT.address_v4() => (Ipv4Addr::LOCALHOST, port).into(),
        IpAddr::V6(it) if it == Space::ROOT.address_v6() => (Ipv6Addr::LOCALHOST, port).into(),
        _ => address,
    })
}

/// Relays bytes in both directions until both endpoints have finished, or one of them fails.
pub(super) fn exchange(one: &TcpStream, other: &TcpStream) {
    for stream in [one, other] {
        // Bytes must not wait for further ones here; a connection that refuses this option is already closed.
        let _ = stream.set_nodelay(true);
    }
    std::thread::scope(|scope| {
        let there = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || pass(one, other));
        if there.is_err() {
            return reset(one);
        }
        pass(other, one);
    });
}

/// Relays bytes in one direction until the sender finishes.
fn pass(mut from: &TcpStream, mut to: &TcpStream) {
    let mut room = vec![0; BYTES_AT_ONCE];
    loop {
        let passed = from.read(&mut room).and_then(|count| to.write_all(&room[..count]).map(|()| count));
        match passed {
            Ok(0) => return drop(to.shutdown(Shutdown::Write)),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => {
                reset(from);
                return reset(to);
            }
        }
    }
}

/// Makes a connection end with a reset as soon as its last descriptor is closed.
fn reset(stream: &TcpStream) {
    // If this fails, the connection has ended already.
    let _ = set_socket_linger(stream, Some(Duration::ZERO));
    // This stops the thread that reads; shutting down both directions would signal a regular end to the peer.
    let _ = stream.shutdown(Shutdown::Read);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    #[test]
    fn bytes_go_both_ways_and_each_end_is_passed_on() {
        let ((mut program, inside), (outside, mut server)) = (pair(), pair());
        std::thread::scope(|scope| {
            scope.spawn(|| exchange(&inside, &outside));
            program.write_all(b"question").unwrap();
            program.shutdown(Shutdown::Write).unwrap();
            let mut question = String::new();
            server.read_to_string(&mut question).unwrap();
            assert_eq!(question, "question", "the end of the question is seen before there is an answer");
            server.write_all(b"answer").unwrap();
            drop(server);
            let mut answer = String::new();
            program.read_to_string(&mut answer).unwrap();
            assert_eq!(answer, "answer");
        });
    }

    #[test]
    fn an_end_that_fails_is_seen_at_the_other_one() {
        let ((mut program, inside), (outside, server)) = (pair(), pair());
        std::thread::scope(|scope| {
            // The connections are closed with the thread, like relayed connections.
            scope.spawn(move || exchange(&inside, &outside));
            reset(&server);
            drop(server);
            let mut room = [0; 1];
            // The read returns a reset or the end of the stream, and does not block forever.
            assert!(matches!(program.read(&mut room), Ok(0) | Err(_)));
            drop(program);
        });
    }
}
