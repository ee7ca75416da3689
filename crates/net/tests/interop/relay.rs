//! Relay between a client and a server. It loses packets, and it changes its port towards the server during a connection,
//! as a NAT does that has lost its state.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use airpace_core::rng::Streams;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::stack::ANY;

/// Behaviour of a relay.
#[derive(Clone, Copy, Debug, Default)]
pub struct Does {
    /// Loss probability of each packet.
    pub loss: f64,
    /// Number of packets from the server after which the relay changes its port towards the server.
    pub moves_after: Option<u64>,
    /// Seed of the random losses.
    pub seed: u64,
}

/// Counters of a relay.
#[derive(Debug, Default)]
pub struct Saw {
    /// Packets received from the server.
    pub down: AtomicU64,
    /// Packets received from the client.
    pub up: AtomicU64,
    /// Packets that the relay dropped.
    pub lost: AtomicU64,
    /// Retry packets received from the server.
    pub retries: AtomicU64,
    /// Packets received from the server after the port change.
    pub down_to_new_port: AtomicU64,
    /// Changes of the client's address, including the first one.
    pub client_ports: AtomicU64,
}

impl Saw {
    pub fn get(counter: &AtomicU64) -> u64 {
        counter.load(Ordering::Relaxed)
    }
}

/// A running relay, which stops on drop.
pub struct Relay {
    address: SocketAddr,
    saw: Arc<Saw>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    pub fn new(server: SocketAddr, does: Does) -> Relay {
        let front = UdpSocket::bind(ANY).unwrap();
        let address = front.local_addr().unwrap();
        let (saw, stop) = (Arc::<Saw>::default(), Arc::<AtomicBool>::default());
        let relaying = Relaying {
            front,
            back: back(server),
            server,
            does,
            saw: saw.clone(),
            client: None,
            moved: false,
        };
        let flag = stop.clone();
        let thread = std::thread::spawn(move || relaying.run(&flag));
        Relay { address, saw, stop, thread: Some(thread) }
    }

    /// Address to which the client connects.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn saw(&self) -> &Saw {
        &self.saw
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "the relay works to the end");
        }
    }
}

/// Opens a socket towards the server.
fn back(server: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind(ANY).unwrap();
    socket.connect(server).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}

struct Relaying {
    front: UdpSocket,
    back: UdpSocket,
    server: SocketAddr,
    does: Does,
    saw: Arc<Saw>,
    client: Option<SocketAddr>,
    moved: bool,
}

impl Relaying {
    fn run(mut self, stop: &AtomicBool) {
        self.front.set_nonblocking(true).unwrap();
        let mut luck = Streams::new(self.does.seed).stream("relay");
        let mut buffer = vec![0; 65_536];
        while !stop.load(Ordering::Relaxed) {
            // The timeout only serves to check the stop flag: packets wake the relay.
            let wake = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
            let mut ready = [PollFd::new(&self.front, PollFlags::IN), PollFd::new(&self.back, PollFlags::IN)];
            let _ = poll(&mut ready, Some(&wake));
            while let Ok((length, from)) = self.front.recv_from(&mut buffer) {
                if self.client.replace(from) != Some(from) {
                    self.saw.client_ports.fetch_add(1, Ordering::Relaxed);
                }
                self.saw.up.fetch_add(1, Ordering::Relaxed);
                match luck.chance(self.does.loss) {
                    true => drop(self.saw.lost.fetch_add(1, Ordering::Relaxed)),
                    // Send errors after the server has stopped are ignored; the test checks the result.
                    false => drop(self.back.send(&buffer[..length])),
                }
            }
            while let Ok(length) = self.back.recv(&mut buffer) {
                self.down(&buffer[..length], luck.chance(self.does.loss));
            }
        }
    }

    fn down(&mut self, packet: &[u8], is_lost: bool) {
        let down = self.saw.down.fetch_add(1, Ordering::Relaxed) + 1;
        if is_retry(packet) {
            self.saw.retries.fetch_add(1, Ordering::Relaxed);
        }
        if self.moved {
            self.saw.down_to_new_port.fetch_add(1, Ordering::Relaxed);
        }
        match (is_lost, self.client) {
            (true, _) => drop(self.saw.lost.fetch_add(1, Ordering::Relaxed)),
            (false, Some(client)) => drop(self.front.send_to(packet, client)),
            (false, None) => {}
        }
        if self.does.moves_after.is_some_and(|after| down >= after) && !self.moved {
            self.moved = true;
            self.back = back(self.server);
        }
    }
}

/// Whether a packet is a Retry packet of QUIC version 1.
///
/// Source: RFC 9000 §17.2.5
fn is_retry(packet: &[u8]) -> bool {
    packet.len() > 5 && packet[0] & 0xf0 == 0xf0 && packet[1..5] == [0, 0, 0, 1]
}
