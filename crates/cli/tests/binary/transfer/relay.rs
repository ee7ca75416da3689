//! A network between two programs. It loses, delays and duplicates datagrams, has outages, and changes the caller's
//! address.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Impairments of the relay.
#[derive(Clone, Copy, Debug, Default)]
pub struct Harm {
    /// Lost datagrams per thousand.
    pub lost: u64,
    /// Duplicated datagrams per thousand.
    pub doubled: u64,
    /// Datagrams per thousand that are delayed, so that later ones overtake them.
    pub held: u64,
    /// After each of these numbers of datagrams in both directions, an outage starts. It lasts at least this long, and
    /// until [`MIN_SILENCED`] datagrams were lost in it.
    pub outage: Option<(&'static [u64], Duration)>,
    /// At these datagrams of the caller, the relay continues from another port.
    pub moves: &'static [u64],
}

/// Minimum number of datagrams lost in an outage, so that the outage has an effect on a machine that is too busy to
/// send during it. Both endpoints keep retransmitting, or open a new connection.
pub const MIN_SILENCED: u64 = 5;

/// Counters of the relay.
#[derive(Debug, Default)]
pub struct Did {
    pub passed: AtomicU64,
    pub lost: AtomicU64,
    pub silenced: AtomicU64,
    pub moved: AtomicU64,
}

/// A relay to one address. Callers send to the relay's address `at`.
pub struct Relay {
    pub at: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    front: UdpSocket,
    to: SocketAddr,
    harm: Harm,
    caller: Mutex<Option<SocketAddr>>,
    /// Earliest end of the outage, and number of datagrams that must still be lost.
    silence: Mutex<Option<(Instant, u64)>>,
    did: Did,
    is_over: AtomicBool,
}

/// Interval at which a thread checks whether the relay is over.
const LOOK: Duration = Duration::from_millis(50);

impl Relay {
    pub fn new(to: SocketAddr, harm: Harm) -> Relay {
        let front = socket();
        let at = front.local_addr().unwrap();
        let shared = Shared {
            front,
            to,
            harm,
            caller: Mutex::default(),
            silence: Mutex::default(),
            did: Did::default(),
            is_over: AtomicBool::new(false),
        };
        let shared = Arc::new(shared);
        let theirs = Arc::clone(&shared);
        Relay { at, shared, thread: Some(std::thread::spawn(move || theirs.forth())) }
    }

    pub fn did(&self) -> &Did {
        &self.shared.did
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(LOOK)).unwrap();
    socket
}

impl Shared {
    /// Forwards the caller's datagrams.
    fn forth(self: Arc<Shared>) {
        let mut back = vec![];
        let mut out = Arc::new(socket());
        let spawn = |socket: &Arc<UdpSocket>| {
            let (shared, socket) = (Arc::clone(&self), Arc::clone(socket));
            std::thread::spawn(move || shared.back(&socket))
        };
        back.push(spawn(&out));
        let mut fate = Fate::new(1);
        let (mut room, mut count) = ([0; 2048], 0);
        while !self.is_over.load(Ordering::Relaxed) {
            let Ok((length, from)) = self.front.recv_from(&mut room) else { continue };
            *self.caller.lock().unwrap() = Some(from);
            count += 1;
            if self.harm.moves.contains(&count) {
                self.did.moved.fetch_add(1, Ordering::Relaxed);
                out = Arc::new(socket());
                back.push(spawn(&out));
            }
            fate.decide(&self, &room[..length], |bytes| _ = out.send_to(bytes, self.to));
        }
        for thread in back {
            thread.join().unwrap();
        }
    }

    /// Forwards the datagrams that return to one of the relay's ports.
    fn back(&self, socket: &UdpSocket) {
        let mut fate = Fate::new(2);
        let mut room = [0; 2048];
        while !self.is_over.load(Ordering::Relaxed) {
            let Ok(length) = socket.recv(&mut room) else { continue };
            let Some(caller) = *self.caller.lock().unwrap() else { continue };
            fate.decide(self, &room[..length], |bytes| _ = self.front.send_to(bytes, caller));
        }
    }
}

/// Impairments of the datagrams of one direction.
struct Fate {
    /// State of the xorshift64 generator.
    random: u64,
    /// A delayed datagram, and the number of datagrams that still have to pass it.
    held: Option<(Vec<u8>, u32)>,
}

impl Fate {
    fn new(seed: u64) -> Fate {
        Fate { random: 0x9e37_79b9_7f4a_7c15 ^ seed, held: None }
    }

    fn happens(&mut self, of_thousand: u64) -> bool {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 32) % 1000 < of_thousand
    }

    fn decide(&mut self, shared: &Shared, bytes: &[u8], mut pass: impl FnMut(&[u8])) {
        let (harm, did) = (shared.harm, &shared.did);
        let mut silence = shared.silence.lock().unwrap();
        if let Some((until, left)) = &mut *silence {
            if *left > 0 || Instant::now() < *until {
                *left = left.saturating_sub(1);
                did.silenced.fetch_add(1, Ordering::Relaxed);
                return;
            }
            *silence = None;
        }
        drop(silence);
        if self.happens(harm.lost) {
            did.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let passed = did.passed.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some((_, span)) = harm.outage.filter(|(at, _)| at.contains(&passed)) {
            *shared.silence.lock().unwrap() = Some((Instant::now() + span, MIN_SILENCED));
        }
        if self.held.is_none() && self.happens(harm.held) {
            self.held = Some((bytes.to_vec(), 4));
            return;
        }
        pass(bytes);
        if self.happens(harm.doubled) {
            pass(bytes);
        }
        if let Some((_, left)) = &mut self.held {
            *left -= 1;
            if *left == 0 {
                pass(&self.held.take().unwrap().0);
            }
        }
    }
}
