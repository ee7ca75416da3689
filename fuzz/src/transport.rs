//! Input of a transport from the network: datagrams, and orders of measured flows.

use std::cell::Cell;
use std::net::SocketAddr;
use std::time::Duration;

use airpace_cc::controller::{Controller, Receiver};
use airpace_cc::scheme::{Ends, Setup};
use airpace_cc::schemes::SchemeSpec;
use airpace_core::{Ecn, Refused, Streams, Time};
use airpace_transfer::bulk::{Bulk, Flow, Hooks, Order, Sample, Traffic};
use airpace_transport::app::App;
use airpace_transport::endpoint::{ConnectionId, Endpoint, Event, Ignored, Inbound, MSS, Read};
use airpace_transport::key::Key;
use airpace_transport::udp::{UdpConfig, UdpEndpoint, reads_as_written};

use super::choices::Choices;

const DELAY: Duration = Duration::from_millis(1);

/// Two endpoints of the UDP prototype in virtual time.
struct Pair {
    now: Time,
    ends: [UdpEndpoint; 2],
    /// Datagrams in flight: arrival time, index of the destination endpoint, bytes.
    flights: Vec<(Time, usize, Vec<u8>)>,
    id: ConnectionId,
}

impl Pair {
    fn new() -> Pair {
        let end = |role: usize| {
            let config = UdpConfig { accepts: role == 1, ..UdpConfig::default() };
            UdpEndpoint::with_secret(Key::new([1; Key::BYTES]), config, &[role as u8; 32])
        };
        let (now, mut ends) = (Time::from_secs(100), [end(0), end(1)]);
        let id = ends[0].connect(now, address(1)).expect("there is room");
        Pair { now, ends, flights: vec![], id }
    }

    /// Puts the datagrams that both endpoints transmit now in flight.
    fn send(&mut self) {
        let mut buffer = vec![];
        for role in [0, 1] {
            while let Some(outbound) = self.ends[role].poll_transmit(self.now, &mut buffer) {
                let size = outbound.segment.unwrap_or(buffer.len()).max(1);
                let datagrams = buffer.chunks(size);
                self.flights.extend(datagrams.map(|bytes| (self.now + DELAY, 1 - role, bytes.to_vec())));
                buffer.clear();
            }
        }
    }

    fn arrive(&mut self, role: usize, mut bytes: Vec<u8>) {
        let (received, from) = (self.now, address(1 - role));
        self.ends[role].handle(Inbound { received, from, to: None, ecn: Ecn::NotEct, bytes: &mut bytes });
    }

    /// Advances to the next arrival or deadline, and processes it. Returns whether there is such an instant.
    fn step(&mut self, of_app: Option<Time>) -> bool {
        self.send();
        let due = self.ends.iter().filter_map(|end| end.poll_timeout());
        let arrivals = self.flights.iter().map(|(at, ..)| *at);
        let Some(next) = arrivals.chain(due).chain(of_app).min() else { return false };
        self.now = self.now.max(next);
        let (come, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.flights).into_iter().partition(|(at, ..)| *at <= self.now);
        self.flights = later;
        for (_, role, bytes) in come {
            self.arrive(role, bytes);
        }
        self.ends.iter_mut().for_each(|end| end.handle_timeout(self.now));
        true
    }
}

fn address(role: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 1_000 + role as u16))
}

fn all(ignored: Ignored) -> u64 {
    ignored.malformed + ignored.stray + ignored.forged + ignored.replayed + ignored.refused
}

/// Datagrams of strangers, and datagrams between two endpoints that are damaged, repeated, lost or reordered: the
/// received bytes of the streams equal the written bytes, and strangers' datagrams are counted and take no memory.
pub fn datagrams(input: &[u8]) {
    assert!(reads_as_written(input));
    let mut choices = Choices(input);
    let mut pair = Pair::new();
    let mut ids = [Some(pair.id), None];
    let (mut written, mut read) = ([0u64; 2], [0u64; 2]);
    let mut room = vec![0; 5_000];
    for _ in 0..300 {
        if choices.is_over() {
            break;
        }
        let role = choices.below(2);
        match choices.byte() % 8 {
            0 => {
                let before = all(pair.ends[role].ignored());
                let mut bytes =
                    choices.take(choices.0.first().map_or(0, |count| usize::from(*count))).to_vec();
                if choices.flag() {
                    bytes.resize([1_200, 73, 65, 33][choices.below(4)], 0);
                }
                pair.arrive(role, bytes);
                assert_eq!(all(pair.ends[role].ignored()), before + 1);
            }
            1 if !pair.flights.is_empty() => {
                let at = choices.below(pair.flights.len());
                let (_, to, mut bytes) = pair.flights[at].clone();
                let (place, change) = (choices.below(bytes.len()), choices.byte());
                bytes[place] ^= change;
                bytes.truncate(bytes.len() - usize::from(choices.byte() % 4));
                pair.arrive(to, bytes);
            }
            2 if !pair.flights.is_empty() => drop(pair.flights.remove(choices.below(pair.flights.len()))),
            3 if !pair.flights.is_empty() => {
                let at = choices.below(pair.flights.len());
                pair.flights[at].0 += Duration::from_micros(u64::from(choices.byte()) * 40);
            }
            4 => {
                let bytes: Vec<u8> =
                    (written[role]..).take(choices.below(3_000)).map(|at| (at % 251) as u8).collect();
                if let Some(connection) = ids[role].and_then(|id| pair.ends[role].connection(id)) {
                    written[role] += connection.write(pair.now, &bytes).unwrap_or_default() as u64;
                }
            }
            _ => drop(pair.step(None)),
        }
        for role in [0, 1] {
            while let Some((id, event)) = pair.ends[role].poll_event() {
                if event == Event::Connected {
                    ids[role] = Some(id);
                }
            }
            let Some(connection) = ids[role].and_then(|id| pair.ends[role].connection(id)) else { continue };
            while let Ok(Read::Bytes(count)) = connection.read(pair.now, &mut room) {
                let expected = (read[role]..).map(|at| (at % 251) as u8);
                assert!(room[..count].iter().copied().eq(expected.take(count)));
                read[role] += count as u64;
            }
            assert!(read[role] <= written[1 - role]);
        }
        assert!(pair.ends.iter().all(|end| end.held() <= 3));
    }
}

/// Builds schemes by name, and counts the requests.
struct Schemes<'a>(&'a Cell<u32>);

impl Schemes<'_> {
    fn build(&self, scheme: &str) -> Result<Ends, Refused> {
        self.0.set(self.0.get() + 1);
        let spec = SchemeSpec::parse(scheme).map_err(|error| error.to_string())?;
        let setup = Setup::new(MSS, Streams::new(1).stream("fuzz"));
        spec.build(&setup).map_err(|error| error.to_string()).map_err(Refused::from)
    }
}

impl Hooks for Schemes<'_> {
    fn controller(&mut self, scheme: &str) -> Result<Box<dyn Controller>, Refused> {
        Ok(self.build(scheme)?.controller)
    }

    fn receiver(&mut self, scheme: &str) -> Result<Option<Box<dyn Receiver>>, Refused> {
        Ok(self.build(scheme)?.receiver)
    }

    fn record(&mut self, _: &Sample<'_>) {}
}

/// An order of a measured flow, from any client: the order is executed or refused, at most once, and the flow ends with
/// its connection.
pub fn order(input: &[u8]) {
    let mut choices = Choices(input);
    let text = if choices.flag() {
        let number = |choices: &mut Choices<'_>| f64::from(choices.float());
        let traffic = Traffic {
            zero_ns: choices.flag().then(|| choices.number()),
            start_s: number(&mut choices),
            stop_s: choices.flag().then(|| number(&mut choices)),
            bytes: choices.flag().then(|| choices.number()),
            on_off_s: choices.flag().then(|| (number(&mut choices), number(&mut choices))),
            rate_mbps: choices.flag().then(|| number(&mut choices)),
        };
        let flow = choices.of(&[Flow::Push, Flow::Pull]);
        let scheme = choices.of(&["cubic", "pbe", "cbr:rate_mbps=3", "", "cbr:rate_mbps=x"]).to_owned();
        let order = Order { flow, scheme, traffic };
        let mut text = serde_json::to_vec(&order).expect("it can be written");
        if choices.flag() {
            let at = choices.below(text.len());
            text[at] = choices.byte();
        }
        text.push(b'\n');
        text
    } else {
        choices.0.to_vec()
    };
    let asked = Cell::new(0);
    let mut pair = Pair::new();
    let mut bulk = Bulk::serve(Schemes(&asked), 1);
    let mut sent = 0;
    for step in 0..20_000 {
        while let Some((id, event)) = pair.ends[1].poll_event() {
            bulk.on_event(pair.now, &mut pair.ends[1], id, event);
        }
        bulk.handle_timeout(pair.now, &mut pair.ends[1]);
        while pair.ends[0].poll_event().is_some() {}
        if let Some(connection) = pair.ends[0].connection(pair.id) {
            sent += connection.write(pair.now, &text[sent..]).unwrap_or_default();
            let mut room = [0; 4_096];
            while let Ok(Read::Bytes(_)) = connection.read(pair.now, &mut room) {}
            if step == 300 {
                connection.close(pair.now, 7, "enough");
            }
        }
        if bulk.is_done() || !pair.step(bulk.poll_timeout()) {
            break;
        }
    }
    assert!(asked.get() <= 1, "an order is followed once");
    assert!(bulk.is_done() && bulk.outcomes.len() == 1, "it ends with its connection");
    assert!(bulk.outcomes[0].began.is_some());
}
