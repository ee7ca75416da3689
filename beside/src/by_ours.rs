//! Ours: both transports, on the turning thread of a transfer.

use std::sync::Arc;

use airpace_cc::scheme::Setup;
use airpace_cc::schemes::SchemeSpec;
use airpace_core::{Streams, Time};
use airpace_transport::app::App;
use airpace_rt::clock;
use airpace_transport::key::Key;
use airpace_transport::quic::{Config, Identity, QuicEndpoint};
use airpace_transport::socket::{Buffers, Socket};
use airpace_transport::endpoint::{ConnectionId, Endpoint, Event, MSS, Read};
use airpace_transport::turn::{Control, Turn};
use airpace_transport::udp::{UdpConfig, UdpEndpoint};

use crate::side::{ANY, CHUNK, Counters, Part, Side, connected, listening};

/// How the sender is steered.
const SCHEME: &str = "cubic";

/// Writes, or reads and discards.
struct Bulk {
    sends: bool,
    id: Option<ConnectionId>,
    room: Box<[u8]>,
    counters: Arc<Counters>,
}

impl App for Bulk {
    fn on_event(&mut self, now: Time, endpoint: &mut dyn Endpoint, id: ConnectionId, event: Event) {
        let Some(connection) = endpoint.connection(id) else { return };
        if event == Event::Connected {
            self.id = Some(id);
            if self.sends {
                let setup = Setup::new(MSS, Streams::new(1).stream("beside"));
                let ends = SchemeSpec::parse(SCHEME).and_then(|spec| spec.build(&setup));
                connection.steer(now, ends.expect("a scheme of the list").controller);
            }
            let counters = self.counters.clone();
            connected(move || counters.seen());
        }
        let mut bytes = 0;
        if self.sends {
            while let Ok(taken) = connection.write(now, &self.room) {
                bytes += taken;
                if taken < self.room.len() {
                    break;
                }
            }
        } else {
            while let Ok(Read::Bytes(count)) = connection.read(now, &mut self.room) {
                bytes += count;
            }
        }
        Counters::add(&self.counters.bytes, bytes as u64);
        let figures = connection.figures();
        let counted = if self.sends { figures.sent } else { figures.received };
        let store = |counter: &std::sync::atomic::AtomicU64, value| {
            counter.store(value, std::sync::atomic::Ordering::Relaxed);
        };
        store(&self.counters.packets, counted.packets);
        store(&self.counters.payload, counted.bytes.0 - 28 * counted.packets);
    }

    fn on_timeout(&mut self, _: Time, _: &mut dyn Endpoint) {}

    fn next(&self) -> Option<Time> {
        None
    }

    fn is_done(&self) -> bool {
        false
    }
}

fn run<E: Endpoint>(side: &Side, mut endpoint: E) {
    let socket = Socket::bind(ANY, Buffers::default()).expect("a socket");
    match side.part {
        Part::Sends(to) => drop(endpoint.connect(clock::now(), to).expect("a connection")),
        Part::Receives => listening(socket.local()),
    }
    let app = Bulk {
        sends: matches!(side.part, Part::Sends(_)),
        id: None,
        room: vec![7; CHUNK].into(),
        counters: Counters::new(),
    };
    let control = Control::new().expect("a descriptor");
    Turn { socket, endpoint, app, radios: vec![], control, wants_realtime: false }.run();
}

/// QUIC.
pub fn quic(side: &Side) {
    let identity = Identity::self_signed(&["airpace"]).expect("random numbers");
    let config = Config { identity: Some(identity), ..Config::default() };
    run(side, QuicEndpoint::new(config).expect("settings that fit"));
}

/// The papers' prototype.
pub fn udp(side: &Side) {
    let config = UdpConfig { accepts: true, ..UdpConfig::default() };
    run(side, UdpEndpoint::new(Key::new([1; Key::BYTES]), config).expect("random numbers"));
}
