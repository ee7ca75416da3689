//! Test endpoints: loss-free byte pipes between clients and a server, which a test may cut.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use airpace_cc::controller::{Controller, Inspect, Receiver};
use airpace_cc::registry::DeviceFlows;
use airpace_core::{Refused, Time};
use airpace_radio::RadioReport;

use airpace_transport::endpoint::{
    Closed, Connection, ConnectionId, Endpoint, Event, Figures, Ignored, Inbound, Outbound, Read,
};

/// Maximum number of unread bytes per direction.
const WINDOW: usize = 100_000;

/// One-way delay of the bytes.
const DELAY: Duration = Duration::from_millis(10);

/// Pending events by owner: the number of the client, or 0 for the server.
type Queues = BTreeMap<u64, VecDeque<(Time, ConnectionId, Event)>>;

/// All connections of a test, and the settings of their network.
#[derive(Default)]
pub struct Net {
    connections: BTreeMap<ConnectionId, Wire>,
    events: [Queues; 2],
    count: u64,
    /// Whether the server listens. If not, connection attempts get no answer.
    pub listening: bool,
    /// Number of further bytes, written by clients and server together, after which all connections are cut.
    pub dies_after: Option<u64>,
    /// Whether the two endpoints of a connection have different channel bindings, as with a man in the middle.
    pub is_between: bool,
    /// Bytes written by the clients and by the server.
    pub written: [u64; 2],
    /// Number of controllers installed at the clients and at the server.
    pub steered: [u32; 2],
    /// Number of scheme receivers installed at the clients and at the server.
    pub listened: [u32; 2],
}

struct Wire {
    client: u64,
    peer: SocketAddr,
    sides: [Half; 2],
    is_over: bool,
}

/// Data written by one endpoint.
#[derive(Default)]
struct Half {
    pieces: VecDeque<(Time, Vec<u8>)>,
    bytes: usize,
    wants: bool,
    finished: Option<Time>,
    read: bool,
}

pub type Shared = Rc<RefCell<Net>>;

impl Net {
    fn tell(&mut self, side: usize, owner: u64, at: Time, id: ConnectionId, event: Event) {
        self.events[side].entry(owner).or_default().push_back((at, id, event));
    }

    fn owner(&self, side: usize, id: ConnectionId) -> u64 {
        if side == 0 { self.connections[&id].client } else { 0 }
    }

    /// Cuts all connections. `deaf`: the server is not notified.
    pub fn cut(&mut self, now: Time, deaf: bool) {
        let ids: Vec<ConnectionId> =
            self.connections.iter().filter(|(_, wire)| !wire.is_over).map(|(id, _)| *id).collect();
        for id in ids {
            let wire = self.connections.get_mut(&id).unwrap();
            wire.is_over = true;
            let client = wire.client;
            let silence = Event::Closed(Closed::Silence(Duration::from_secs(30)));
            self.tell(0, client, now, id, silence.clone());
            if !deaf {
                self.tell(1, 0, now, id, silence);
            }
        }
    }

    /// Simulates that the server's process dies: its connections and pending events are lost.
    pub fn forget_server(&mut self, now: Time) {
        self.cut(now, true);
        self.events[1].clear();
    }
}

/// Endpoint of a client or of the server. All clients of a test share one network.
pub struct Pipes {
    net: Shared,
    side: usize,
    owner: u64,
    now: Time,
    at_hand: Option<Handle>,
}

impl Pipes {
    pub fn client(net: &Shared, owner: u64) -> Pipes {
        Pipes { net: Rc::clone(net), side: 0, owner, now: Time::ZERO, at_hand: None }
    }

    pub fn server(net: &Shared) -> Pipes {
        Pipes { net: Rc::clone(net), side: 1, owner: 0, now: Time::ZERO, at_hand: None }
    }

    /// Returns the next event that is due at `now`; otherwise the time of the next one.
    pub fn event(&mut self, now: Time) -> Result<(ConnectionId, Event), Option<Time>> {
        self.now = now;
        let mut net = self.net.borrow_mut();
        let Some(queue) = net.events[self.side].get_mut(&self.owner) else { return Err(None) };
        let first = queue.iter().map(|(at, ..)| *at).min();
        match first {
            Some(at) if at <= now => {
                let place = queue.iter().position(|(due, ..)| *due == at).unwrap();
                let (_, id, event) = queue.remove(place).unwrap();
                Ok((id, event))
            }
            other => Err(other),
        }
    }
}

impl Endpoint for Pipes {
    fn handle(&mut self, _: Inbound<'_>) {}
    fn handle_timeout(&mut self, _: Time) {}
    fn poll_timeout(&self) -> Option<Time> {
        None
    }
    fn poll_transmit(&mut self, _: Time, _: &mut Vec<u8>) -> Option<Outbound> {
        None
    }
    fn poll_event(&mut self) -> Option<(ConnectionId, Event)> {
        self.event(self.now).ok()
    }

    fn connect(&mut self, now: Time, peer: SocketAddr) -> Result<ConnectionId, Refused> {
        let mut net = self.net.borrow_mut();
        net.count += 1;
        let id = ConnectionId(net.count);
        let wire = Wire { client: self.owner, peer, sides: Default::default(), is_over: !net.listening };
        net.connections.insert(id, wire);
        if net.listening {
            net.tell(1, 0, now + DELAY, id, Event::Connected);
            net.tell(0, self.owner, now + 2 * DELAY, id, Event::Connected);
        }
        Ok(id)
    }

    fn connection(&mut self, id: ConnectionId) -> Option<&mut dyn Connection> {
        if self.net.borrow().connections.get(&id).is_none_or(|wire| wire.is_over) {
            return None;
        }
        self.at_hand = Some(Handle { net: Rc::clone(&self.net), side: self.side, id });
        self.at_hand.as_mut().map(|handle| handle as &mut dyn Connection)
    }

    fn on_rebound(&mut self, _: Time) {}
    fn ignored(&self) -> Ignored {
        Ignored::default()
    }
}

struct Handle {
    net: Shared,
    side: usize,
    id: ConnectionId,
}

impl Connection for Handle {
    fn write(&mut self, now: Time, bytes: &[u8]) -> Result<usize, Refused> {
        let mut net = self.net.borrow_mut();
        let mut count = bytes.len();
        if let Some(left) = net.dies_after {
            count = count.min(usize::try_from(left).unwrap());
            if count == 0 {
                net.dies_after = None;
                net.cut(now, false);
                return Err("the cable is cut".into());
            }
        }
        let other = 1 - self.side;
        let wire = net.connections.get_mut(&self.id).unwrap();
        if wire.is_over {
            return Err("it is over".into());
        }
        let half = &mut wire.sides[self.side];
        assert!(half.finished.is_none(), "nothing is written after the end");
        count = count.min(WINDOW - half.bytes);
        half.wants = count < bytes.len();
        if count == 0 {
            return Ok(0);
        }
        half.bytes += count;
        half.pieces.push_back((now + DELAY, bytes[..count].to_vec()));
        let owner = net.owner(other, self.id);
        net.tell(other, owner, now + DELAY, self.id, Event::Readable);
        net.written[self.side] += count as u64;
        if let Some(left) = &mut net.dies_after {
            *left -= count as u64;
        }
        Ok(count)
    }

    fn finish(&mut self, now: Time) {
        let mut net = self.net.borrow_mut();
        let (other, own) = (net.owner(1 - self.side, self.id), net.owner(self.side, self.id));
        net.connections.get_mut(&self.id).unwrap().sides[self.side].finished = Some(now + DELAY);
        net.tell(1 - self.side, other, now + DELAY, self.id, Event::Readable);
        net.tell(self.side, own, now + 2 * DELAY, self.id, Event::Flushed);
    }

    fn read(&mut self, now: Time, into: &mut [u8]) -> Result<Read, Refused> {
        let mut net = self.net.borrow_mut();
        let writer = 1 - self.side;
        let wire = net.connections.get_mut(&self.id).unwrap();
        if wire.is_over {
            return Err("it is over".into());
        }
        let half = &mut wire.sides[writer];
        let Some((at, piece)) = half.pieces.front_mut().filter(|(at, _)| *at <= now) else {
            let is_end = half.pieces.is_empty() && half.finished.is_some_and(|at| at <= now) && !half.read;
            half.read |= is_end;
            return Ok(if is_end { Read::End } else { Read::Nothing });
        };
        let count = piece.len().min(into.len());
        into[..count].copy_from_slice(&piece[..count]);
        piece.drain(..count);
        let at = *at;
        if piece.is_empty() {
            half.pieces.pop_front();
        }
        half.bytes -= count;
        if std::mem::take(&mut half.wants) {
            let owner = net.owner(writer, self.id);
            net.tell(writer, owner, at.max(now) + DELAY, self.id, Event::Writable);
        }
        Ok(Read::Bytes(count))
    }

    fn close(&mut self, now: Time, code: u32, reason: &str) {
        let mut net = self.net.borrow_mut();
        let wire = net.connections.get_mut(&self.id).unwrap();
        if std::mem::replace(&mut wire.is_over, true) {
            return;
        }
        let (other, own) = (net.owner(1 - self.side, self.id), net.owner(self.side, self.id));
        let event = Event::Closed(Closed::ByPeer { code, reason: reason.to_owned() });
        net.tell(1 - self.side, other, now + DELAY, self.id, event);
        net.tell(self.side, own, now, self.id, Event::Closed(Closed::Here));
    }

    fn steer(&mut self, _: Time, _: Box<dyn Controller>) {
        self.net.borrow_mut().steered[self.side] += 1;
    }

    fn listen(&mut self, receiver: Option<Box<dyn Receiver>>) {
        self.net.borrow_mut().listened[self.side] += u32::from(receiver.is_some());
    }

    fn on_radio(&mut self, _: &RadioReport) {}
    fn on_device(&mut self, _: Time, _: &DeviceFlows) {}

    fn binding(&self) -> [u8; 32] {
        let is_between = self.net.borrow().is_between;
        let mut binding = [7; 32];
        binding[..8].copy_from_slice(&self.id.0.to_be_bytes());
        binding[31] = if is_between { self.side as u8 } else { 9 };
        binding
    }

    fn peer(&self) -> SocketAddr {
        let net = self.net.borrow();
        let wire = &net.connections[&self.id];
        if self.side == 0 { wire.peer } else { SocketAddr::from(([192, 0, 2, (wire.client % 250) as u8], 9)) }
    }

    fn figures(&self) -> Figures {
        Figures::default()
    }

    fn inspect(&self, _: &mut Inspect) {}
}
