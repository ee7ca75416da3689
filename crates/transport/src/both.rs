//! Both transports on one port: the first byte of a datagram identifies its transport.

use std::net::SocketAddr;

use airpace_core::{Refused, Time};

use crate::endpoint::{Connection, ConnectionId, Endpoint, Event, Ignored, Inbound, Outbound};

/// The transport of a datagram or connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Transport {
    /// QUIC.
    #[default]
    Quic,
    /// The prototype protocol of the papers, on UDP.
    Udp,
}

/// Bit of the first byte that is 1 in every QUIC packet and 0 in every packet of the prototype.
///
/// Source: RFC 9000 §17.2, §17.3.1 (Fixed Bit)
const FIXED_BIT: u8 = 0x40;

impl Transport {
    /// Returns the transport of a datagram.
    pub fn of(datagram: &[u8]) -> Transport {
        match datagram.first() {
            Some(first) if first & FIXED_BIT == 0 => Transport::Udp,
            _ => Transport::Quic,
        }
    }

    /// Returns the transport of a connection of [`Both`].
    pub fn of_connection(id: ConnectionId) -> Transport {
        if id.0 & 1 == 0 { Transport::Quic } else { Transport::Udp }
    }

    /// Converts the identifier of this transport's connection to the identifier that [`Both`] uses.
    fn outer(self, ConnectionId(inner): ConnectionId) -> ConnectionId {
        ConnectionId(inner << 1 | u64::from(self == Transport::Udp))
    }
}

/// Two endpoints, one of each transport, behind one port. Each endpoint keeps its own connections; the lowest bit of
/// a connection's identifier names its transport.
pub struct Both<Q, U> {
    /// The QUIC endpoint.
    pub quic: Q,
    /// The endpoint of the prototype.
    pub udp: U,
    /// Transport of outgoing connections.
    pub connects_by: Transport,
    /// The transport that is polled first for the next transmission. It alternates, so that neither transport delays
    /// the other.
    turn: Transport,
}

impl<Q: Endpoint, U: Endpoint> Both<Q, U> {
    /// Combines two endpoints. Outgoing connections use the transport `connects_by`.
    pub fn new(quic: Q, udp: U, connects_by: Transport) -> Both<Q, U> {
        Both { quic, udp, connects_by, turn: Transport::Quic }
    }

    fn one(&mut self, transport: Transport) -> &mut dyn Endpoint {
        match transport {
            Transport::Quic => &mut self.quic,
            Transport::Udp => &mut self.udp,
        }
    }
}

impl<Q: Endpoint, U: Endpoint> Endpoint for Both<Q, U> {
    fn handle(&mut self, datagram: Inbound<'_>) {
        self.one(Transport::of(datagram.bytes)).handle(datagram);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.quic.handle_timeout(now);
        self.udp.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.quic.poll_timeout().into_iter().chain(self.udp.poll_timeout()).min()
    }

    fn poll_transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<Outbound> {
        let first = self.turn;
        let second = if first == Transport::Quic { Transport::Udp } else { Transport::Quic };
        self.turn = second;
        match self.one(first).poll_transmit(now, buffer) {
            None => self.one(second).poll_transmit(now, buffer),
            out => out,
        }
    }

    fn poll_event(&mut self) -> Option<(ConnectionId, Event)> {
        [Transport::Quic, Transport::Udp].into_iter().find_map(|transport| {
            let (id, event) = self.one(transport).poll_event()?;
            Some((transport.outer(id), event))
        })
    }

    fn connect(&mut self, now: Time, peer: SocketAddr) -> Result<ConnectionId, Refused> {
        let transport = self.connects_by;
        Ok(transport.outer(self.one(transport).connect(now, peer)?))
    }

    fn connection(&mut self, id: ConnectionId) -> Option<&mut dyn Connection> {
        self.one(Transport::of_connection(id)).connection(ConnectionId(id.0 >> 1))
    }

    fn on_rebound(&mut self, now: Time) {
        self.quic.on_rebound(now);
        self.udp.on_rebound(now);
    }

    fn ignored(&self) -> Ignored {
        let (quic, udp) = (self.quic.ignored(), self.udp.ignored());
        Ignored {
            malformed: quic.malformed + udp.malformed,
            stray: quic.stray + udp.stray,
            forged: quic.forged + udp.forged,
            replayed: quic.replayed + udp.replayed,
            refused: quic.refused + udp.refused,
        }
    }
}
