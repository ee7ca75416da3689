//! Connections from devices to this machine and what it reaches, without rights: each ends at the far side, from where
//! another one of this user's goes on.
//!
//! So both ends of a connection across the emulated network are the kernel's TCP, with its congestion control. A program
//! like pasta, which hands over packets for what it reads from a socket, would send without one.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustix::net::sockopt::{ip_original_dst, ipv6_original_dst, set_socket_linger};

use crate::address::Space;

/// Connections at once; more are closed again.
///
/// Chosen: a browser with many pages has some hundred.
const MOST_CONNECTIONS: usize = 1_000;

/// How long another machine may take to take a connection.
const CONNECTS_WITHIN: Duration = Duration::from_secs(30);

/// Bytes that a thread reads at once.
const BYTES_AT_ONCE: usize = 64 << 10;

/// Bytes of a thread's stack: what it reads into is elsewhere.
const STACK: usize = 128 << 10;

/// Takes connections of both families in the far side's network.
#[derive(Debug)]
pub(super) struct Relay {
    listeners: Vec<TcpListener>,
}

impl Relay {
    /// Listens at these addresses of the thread's network namespace, if there are such.
    pub(super) fn open(addresses: &[IpAddr]) -> io::Result<Relay> {
        let listeners = addresses.iter().map(|&address| TcpListener::bind((address, 0)));
        Ok(Relay { listeners: listeners.collect::<io::Result<_>>()? })
    }

    /// The ports to which connections must be led, with the addresses.
    pub(super) fn ports(&self) -> io::Result<Vec<SocketAddr>> {
        self.listeners.iter().map(TcpListener::local_addr).collect()
    }

    /// Carries connections until the process ends; they go on from the thread's network namespace.
    pub(super) fn begin(self) -> io::Result<()> {
        let count = Arc::new(());
        for listener in self.listeners {
            let count = Arc::clone(&count);
            let take = move || {
                for stream in listener.incoming().flatten() {
                    // Each connection holds it once, as does each listener.
                    if Arc::strong_count(&count) <= MOST_CONNECTIONS {
                        let held = Arc::clone(&count);
                        // If there can be no thread, the program sees a closed connection.
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

/// Carries a connection that was led here to where it wanted to go.
fn carry(inside: &TcpStream) {
    let outside = wanted(inside).and_then(|address| TcpStream::connect_timeout(&address, CONNECTS_WITHIN));
    match outside {
        Ok(outside) => exchange(inside, &outside),
        // The program sees its connection reset.
        Err(_) => reset(inside),
    }
}

/// Where a connection wanted to go before it was led here. The far side's address stands for this machine.
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

/// Carries bytes both ways until both ends have no more, or one of them fails.
pub(super) fn exchange(one: &TcpStream, other: &TcpStream) {
    for stream in [one, other] {
        // What one end has sent at once must not wait here; a connection that refuses this is none any more.
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

/// Carries bytes from one to the other.
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

/// Ends a connection so that its other end sees a failure as soon as nobody holds it here.
fn reset(stream: &TcpStream) {
    // Whatever is refused here, the connection is at its end.
    let _ = set_socket_linger(stream, Some(Duration::ZERO));
    // Who reads from it stops; to shut it down both ways would say that all is well.
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
            // The connections are closed with the thread, as those that were carried are.
            scope.spawn(move || exchange(&inside, &outside));
            reset(&server);
            drop(server);
            let mut room = [0; 1];
            // A reset, or the end, but nothing that waits for ever.
            assert!(matches!(program.read(&mut room), Ok(0) | Err(_)));
            drop(program);
        });
    }
}
