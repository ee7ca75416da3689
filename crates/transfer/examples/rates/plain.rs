//! Minimal endpoint that can carry a flow, for testing and measuring the layers below an endpoint. It has no encryption,
//! identifies packets by stream offset, has a fixed window, and after a timeout retransmits everything from the first gap
//! (go-back-N). It follows its controller's pacing rate.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use airpace_cc::controller::{Controller, Inspect, Receiver};
use airpace_cc::pacer::{Pacer, PacerConfig};
use airpace_cc::registry::DeviceFlows;
use airpace_core::{Bytes, Ecn, Refused, Time};
use airpace_radio::RadioReport;
use airpace_transport::endpoint::{
    Closed, Connection, ConnectionId, Endpoint, Event, Figures, Ignored, Inbound, MSS, Outbound, Read,
    overhead,
};

/// Length of a packet header (bytes): the packet's kind, and a stream offset or another number of 8 bytes.
const HEADER: usize = 9;
const HELLO: u8 = 1;
const WELCOME: u8 = 2;
const DATA: u8 = 3;
const ACK: u8 = 4;
const CLOSE: u8 = 5;
/// Maximum number of unacknowledged bytes.
const WINDOW: u64 = 1 << 20;
/// Maximum number of packets per call of `poll_transmit`.
const GROUP: usize = 40;
const AGAIN: Duration = Duration::from_millis(200);

/// A minimal endpoint.
#[derive(Default)]
pub struct Plain {
    connections: BTreeMap<u64, One>,
    of_peer: BTreeMap<SocketAddr, u64>,
    made: u64,
    events: VecDeque<(ConnectionId, Event)>,
    ignored: Ignored,
    /// Number of times that the socket was rebound.
    pub rebound: u64,
}

/// State of one connection.
pub struct One {
    peer: SocketAddr,
    is_client: bool,
    is_connected: bool,
    /// Unacknowledged bytes of the stream, starting at offset `acked`.
    unacked: VecDeque<u8>,
    acked: u64,
    next: u64,
    end: Option<u64>,
    was_flushed: bool,
    is_blocked: bool,
    again_at: Option<Time>,
    arrived: VecDeque<u8>,
    expected: u64,
    peer_end: Option<u64>,
    owes: Vec<u8>,
    unacknowledged: u64,
    close: Option<u32>,
    pacer: Pacer,
    controller: Option<Box<dyn Controller>>,
    receiver: Option<Box<dyn Receiver>>,
    figures: Figures,
    /// Number of radio reports received. The connection returns it as the number of delivered packets, so that the tests
    /// can read it.
    reports: u64,
}

impl One {
    fn new(peer: SocketAddr, is_client: bool) -> One {
        let config = PacerConfig { quantum: MSS, credit: Duration::from_millis(4), ..PacerConfig::default() };
        One {
            peer,
            is_client,
            is_connected: false,
            unacked: VecDeque::new(),
            acked: 0,
            next: 0,
            end: None,
            was_flushed: false,
            is_blocked: false,
            again_at: None,
            arrived: VecDeque::new(),
            expected: 0,
            peer_end: None,
            owes: vec![],
            unacknowledged: 0,
            close: None,
            pacer: Pacer::new(config),
            controller: None,
            receiver: None,
            figures: Figures::default(),
            reports: 0,
        }
    }

    /// Payload length of a full packet.
    fn payload(&self) -> usize {
        (MSS - overhead(&self.peer)).0 as usize - HEADER
    }

    fn written(&self) -> u64 {
        self.acked + self.unacked.len() as u64
    }

    /// Whether a data packet may be sent, apart from pacing. The end of the stream takes one offset of its own.
    fn has_data(&self) -> bool {
        self.is_connected
            && self.next < self.end.map_or(self.written(), |end| end + 1)
            && self.next - self.acked < WINDOW
    }

    fn transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<Outbound> {
        let to = self.peer;
        let out = |segment| Some(Outbound { to, from: None, ecn: Ecn::Ect, segment });
        if let Some(kind) = self.owes.pop() {
            let number = match kind {
                ACK => self.expected,
                CLOSE => u64::from(self.close.unwrap_or_default()),
                _ => 0,
            };
            buffer.push(kind);
            buffer.extend(number.to_be_bytes());
            return out(None);
        }
        if let Some(controller) = &mut self.controller {
            if controller.poll_timeout().is_some_and(|due| due <= now) {
                controller.handle_timeout(now);
            }
            self.pacer.set_rate(now, controller.control().pacing_rate);
        }
        let size = self.payload();
        let mut count = 0;
        while count < GROUP && self.has_data() && self.pacer.ready(now, MSS) {
            let from = (self.next - self.acked) as usize;
            let length = (self.unacked.len() - from.min(self.unacked.len())).min(size);
            buffer.push(DATA);
            let ends = self.end == Some(self.next + length as u64);
            buffer.extend((self.next << 1 | u64::from(ends)).to_be_bytes());
            let (front, back) = self.unacked.as_slices();
            let of_front = &front[from.min(front.len())..(from + length).min(front.len())];
            buffer.extend(of_front);
            buffer.extend(
                &back[(from + of_front.len()).saturating_sub(front.len())..][..length - of_front.len()],
            );
            self.next += length as u64 + u64::from(ends);
            let bytes = Bytes((length + HEADER) as u64) + overhead(&self.peer);
            self.pacer.on_sent(now, bytes);
            self.figures.sent.packets += 1;
            self.figures.sent.bytes += bytes;
            count += 1;
            if length < size {
                break;
            }
        }
        if count == 0 {
            return None;
        }
        self.again_at = Some(now + AGAIN);
        out((count > 1).then_some(size + HEADER))
    }

    fn poll_timeout(&self) -> Option<Time> {
        if !self.owes.is_empty() {
            return Some(Time::ZERO);
        }
        let paced = self.has_data().then(|| self.pacer.next(MSS).unwrap_or(Time::ZERO));
        let timer = self.controller.as_ref().and_then(|controller| controller.poll_timeout());
        [paced, timer, self.again_at].into_iter().flatten().min()
    }
}

impl Plain {
    fn at(&mut self, peer: SocketAddr, is_client: bool) -> (u64, &mut One) {
        let made = &mut self.made;
        let id = *self.of_peer.entry(peer).or_insert_with(|| {
            *made += 1;
            *made - 1
        });
        (id, self.connections.entry(id).or_insert_with(|| One::new(peer, is_client)))
    }
}

impl Endpoint for Plain {
    fn handle(&mut self, datagram: Inbound<'_>) {
        let Some((head, payload)) = datagram.bytes.split_at_checked(HEADER) else {
            self.ignored.malformed += 1;
            return;
        };
        let (kind, number) = (head[0], u64::from_be_bytes(head[1..].try_into().expect("eight bytes")));
        let is_known = self.of_peer.contains_key(&datagram.from);
        if !is_known && kind != HELLO {
            self.ignored.stray += 1;
            return;
        }
        let (id, one) = self.at(datagram.from, false);
        let mut events = vec![];
        match kind {
            HELLO | WELCOME => {
                if kind == HELLO {
                    one.owes.push(WELCOME);
                }
                if !std::mem::replace(&mut one.is_connected, true) {
                    one.again_at = None;
                    events.push(Event::Connected);
                }
            }
            DATA => {
                let (offset, ends) = (number >> 1, number & 1 == 1);
                one.figures.received.packets += 1;
                one.figures.received.bytes += Bytes((payload.len() + HEADER) as u64) + overhead(&one.peer);
                one.unacknowledged += 1;
                if offset == one.expected && one.peer_end.is_none() {
                    one.arrived.extend(payload.iter());
                    one.expected += payload.len() as u64;
                    if ends {
                        one.peer_end = Some(one.expected);
                        one.expected += 1;
                    }
                    events.push(Event::Readable);
                }
                if (one.unacknowledged >= 16 || ends || payload.len() < one.payload())
                    && !one.owes.contains(&ACK)
                {
                    one.unacknowledged = 0;
                    one.owes.push(ACK);
                }
            }
            ACK if number > one.acked && number <= one.next => {
                let bytes = (number - one.acked).min(one.unacked.len() as u64);
                one.unacked.drain(..bytes as usize);
                one.acked = number;
                one.again_at = (one.next > one.acked).then(|| datagram.received + AGAIN);
                if std::mem::take(&mut one.is_blocked) {
                    events.push(Event::Writable);
                }
                if one.end.is_some_and(|end| number > end) && !std::mem::replace(&mut one.was_flushed, true) {
                    events.push(Event::Flushed);
                }
            }
            CLOSE => {
                events.push(Event::Closed(Closed::ByPeer { code: number as u32, reason: String::new() }));
                self.of_peer.remove(&datagram.from);
                self.connections.remove(&id);
            }
            _ => {}
        }
        self.events.extend(events.into_iter().map(|event| (ConnectionId(id), event)));
    }

    fn handle_timeout(&mut self, now: Time) {
        for one in self.connections.values_mut() {
            if one.again_at.is_some_and(|at| at <= now) {
                one.again_at = Some(now + AGAIN);
                one.next = one.acked;
                if one.is_client && !one.is_connected {
                    one.owes.push(HELLO);
                }
            }
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.connections.values().filter_map(One::poll_timeout).min()
    }

    fn poll_transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<Outbound> {
        let mut closed = None;
        let out = self.connections.iter_mut().find_map(|(id, one)| {
            let out = one.transmit(now, buffer);
            closed = (out.is_some() && one.close.is_some() && one.owes.is_empty()).then_some((*id, one.peer));
            out
        });
        if let Some((id, peer)) = closed {
            self.connections.remove(&id);
            self.of_peer.remove(&peer);
            self.events.push_back((ConnectionId(id), Event::Closed(Closed::Here)));
        }
        out
    }

    fn poll_event(&mut self) -> Option<(ConnectionId, Event)> {
        self.events.pop_front()
    }

    fn connect(&mut self, now: Time, peer: SocketAddr) -> Result<ConnectionId, Refused> {
        let (id, one) = self.at(peer, true);
        one.owes.push(HELLO);
        one.again_at = Some(now + AGAIN);
        Ok(ConnectionId(id))
    }

    fn connection(&mut self, id: ConnectionId) -> Option<&mut dyn Connection> {
        self.connections.get_mut(&id.0).map(|one| one as &mut dyn Connection)
    }

    fn on_rebound(&mut self, _: Time) {
        self.rebound += 1;
    }

    fn ignored(&self) -> Ignored {
        self.ignored
    }
}

impl Connection for One {
    fn write(&mut self, _: Time, bytes: &[u8]) -> Result<usize, Refused> {
        let room = (2 * WINDOW as usize).saturating_sub(self.unacked.len());
        let taken = bytes.len().min(room);
        self.unacked.extend(&bytes[..taken]);
        self.is_blocked |= taken < bytes.len();
        Ok(taken)
    }

    fn finish(&mut self, _: Time) {
        self.end = Some(self.written());
    }

    fn read(&mut self, _: Time, into: &mut [u8]) -> Result<Read, Refused> {
        let count = into.len().min(self.arrived.len());
        if count == 0 {
            return Ok(if self.peer_end.is_some() { Read::End } else { Read::Nothing });
        }
        let (front, back) = self.arrived.as_slices();
        let of_front = count.min(front.len());
        into[..of_front].copy_from_slice(&front[..of_front]);
        into[of_front..count].copy_from_slice(&back[..count - of_front]);
        self.arrived.drain(..count);
        self.figures.stream_read += Bytes(count as u64);
        Ok(Read::Bytes(count))
    }

    fn close(&mut self, _: Time, code: u32, _: &str) {
        self.close = Some(code);
        self.owes = vec![CLOSE];
    }

    fn steer(&mut self, now: Time, controller: Box<dyn Controller>) {
        self.pacer.set_rate(now, controller.control().pacing_rate);
        self.controller = Some(controller);
    }

    fn listen(&mut self, receiver: Option<Box<dyn Receiver>>) {
        self.receiver = receiver;
    }

    fn on_radio(&mut self, _: &RadioReport) {
        self.reports += 1;
    }

    fn on_device(&mut self, _: Time, _: &DeviceFlows) {}

    fn binding(&self) -> [u8; 32] {
        [0; 32]
    }

    fn peer(&self) -> SocketAddr {
        self.peer
    }

    fn figures(&self) -> Figures {
        let forfeited =
            self.pacer.rate().map_or(Duration::ZERO, |rate| rate.time_for(self.pacer.forfeited()));
        Figures {
            stream_acknowledged: Bytes(self.acked),
            inflight: Bytes(self.next - self.acked),
            pacing_rate: self.pacer.rate(),
            forfeited,
            delivered: airpace_transport::endpoint::Counted {
                packets: self.reports,
                ..self.figures.delivered
            },
            ..self.figures
        }
    }

    fn inspect(&self, out: &mut Inspect) {
        if let Some(controller) = &self.controller {
            controller.inspect(out);
        }
    }
}
