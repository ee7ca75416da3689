//! quiche, on our socket: it has no loop of its own. The loop is that of its examples, with groups of datagrams both ways.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use airpace_core::Ecn;
use airpace_transport::socket::{Buffers, Socket};
use airpace_transport::endpoint::Outbound;
use quiche::{Config, CongestionControlAlgorithm, Connection, ConnectionId, RecvInfo};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::side::{ALPN, ANY, CHUNK, Counters, FULL, NAME, Part, RECEIVE_WINDOW, Side, connected, listening};

/// Datagrams of one call: as many as fit into the longest that the kernel takes.
const GROUP: u64 = 44;

/// Groups that are sent before arrivals are looked at again.
const GROUPS: usize = 16;

/// The first stream that a client opens in one direction.
const STREAM: u64 = 2;

fn config(side: &Side) -> Config {
    let mut config = Config::new(quiche::PROTOCOL_VERSION).expect("version 1");
    config.set_application_protos(&[ALPN]).expect("a protocol");
    match side.part {
        Part::Sends(_) => {
            let roots = side.certificate.to_str().expect("a path of ours");
            config.load_verify_locations_from_file(roots).expect("a root");
            config.verify_peer(true);
        }
        Part::Receives => {
            let [certificate, key] =
                [&side.certificate, &side.key].map(|path| path.to_str().expect("a path of ours"));
            config.load_cert_chain_from_pem_file(certificate).expect("a certificate");
            config.load_priv_key_from_pem_file(key).expect("a key that fits");
        }
    }
    config.set_max_recv_udp_payload_size(FULL.into());
    config.set_max_send_udp_payload_size(FULL.into());
    config.set_initial_max_data(RECEIVE_WINDOW);
    config.set_initial_max_stream_data_uni(RECEIVE_WINDOW);
    config.set_max_connection_window(RECEIVE_WINDOW);
    config.set_max_stream_window(RECEIVE_WINDOW);
    config.set_initial_max_streams_uni(1);
    config.set_disable_active_migration(true);
    config.set_cc_algorithm(CongestionControlAlgorithm::CUBIC);
    config.enable_pacing(false);
    config
}

pub fn run(side: &Side) {
    let mut config = config(side);
    let mut socket = Socket::bind(ANY, Buffers::default()).expect("a socket");
    let local = socket.local();
    // Names that differ between the two sides.
    let own: [u8; 16] = std::array::from_fn(|place| (local.port() as u8).wrapping_mul(31) ^ place as u8);
    let own = ConnectionId::from_ref(&own);
    let mut connection = match side.part {
        Part::Sends(to) => {
            Some(quiche::connect(Some(NAME), &own, local, to, &mut config).expect("a connection"))
        }
        Part::Receives => {
            listening(local);
            None
        }
    };
    let sends = matches!(side.part, Part::Sends(_));
    let mut room = vec![7; CHUNK];
    let mut group = Vec::with_capacity(1 << 16);
    let counters = Counters::new();
    let mut is_connected = false;
    let mut has_more = false;
    loop {
        wait(&socket, connection.as_ref(), has_more);
        loop {
            socket.receive(|datagram| {
                let from = datagram.from;
                let connection = connection.get_or_insert_with(|| {
                    quiche::accept(&own, None, local, from, &mut config).expect("a client")
                });
                if !sends {
                    Counters::add(&counters.packets, 1);
                    Counters::add(&counters.payload, datagram.bytes.len() as u64);
                }
                // A datagram that cannot be read is one of a connection that is over.
                let _ = connection.recv(datagram.bytes, RecvInfo { from, to: local });
            });
            if !socket.may_have_more() {
                break;
            }
        }
        let Some(connection) = &mut connection else { continue };
        if connection.timeout_instant().is_some_and(|at| at <= Instant::now()) {
            connection.on_timeout();
        }
        if connection.is_established() && !std::mem::replace(&mut is_connected, connection.is_established()) {
            let looked = counters.clone();
            connected(move || looked.seen());
        }
        if is_connected {
            work(connection, sends, &mut room, &counters);
        }
        has_more = transmit(connection, &mut socket, &mut group, if sends { Some(&counters) } else { None });
        if connection.is_closed() {
            return;
        }
    }
}

/// Waits until something came or is due, or only looks if there is more to do.
fn wait(socket: &Socket, connection: Option<&Connection>, has_more: bool) {
    let longest = if has_more { Duration::ZERO } else { Duration::from_millis(100) };
    let due = connection.and_then(Connection::timeout).map_or(longest, |due| due.min(longest));
    let wanted = if socket.is_full() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
    let timeout = Timespec { tv_sec: 0, tv_nsec: due.subsec_nanos().into() };
    // Who was woken for another reason looks again.
    let _ = poll(&mut [PollFd::new(socket, wanted)], Some(&timeout));
}

/// Writes, or reads and discards.
fn work(connection: &mut Connection, sends: bool, room: &mut [u8], counters: &Counters) {
    let mut bytes = 0;
    if sends {
        while let Ok(taken) = connection.stream_send(STREAM, room, false) {
            bytes += taken;
            if taken < room.len() {
                break;
            }
        }
    } else {
        while let Ok((count, _)) = connection.stream_recv(STREAM, room) {
            bytes += count;
        }
    }
    Counters::add(&counters.bytes, bytes as u64);
}

/// Sends what may leave, up to a bound, in groups of full datagrams. Returns whether there may be more.
fn transmit(
    connection: &mut Connection,
    socket: &mut Socket,
    group: &mut Vec<u8>,
    counters: Option<&Arc<Counters>>,
) -> bool {
    let full = usize::from(FULL);
    socket.flush();
    for _ in 0..GROUPS {
        if socket.is_full() {
            return false;
        }
        group.clear();
        let (mut count, mut to): (u64, Option<SocketAddr>) = (0, None);
        while count < GROUP {
            let begin = group.len();
            group.resize(begin + full, 0);
            let Ok((written, info)) = connection.send(&mut group[begin..]) else {
                group.truncate(begin);
                break;
            };
            group.truncate(begin + written);
            (count, to) = (count + 1, Some(info.to));
            // Only the last of a group may be shorter.
            if written < full {
                break;
            }
        }
        let Some(to) = to else { return false };
        if let Some(counters) = counters {
            Counters::add(&counters.packets, count);
            Counters::add(&counters.payload, group.len() as u64);
        }
        let segment = (count > 1).then_some(full);
        socket.send(&Outbound { to, from: None, ecn: Ecn::NotEct, segment }, group);
    }
    true
}
