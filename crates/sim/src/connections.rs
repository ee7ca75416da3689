//! The connections of a flow: a single one, or one per transfer.

use airpace_cc::endpoint::{AckPolicy, Acker, Backlog, Sender, SenderConfig};
use airpace_cc::{Ends, SchemeError, SchemeSpec, Setup};
use airpace_core::{Bytes, Streams, Time};
use airpace_radio::RadioReport;

/// Parameters of the endpoints of a flow's connections.
#[derive(Clone, Debug)]
pub(crate) struct Maker {
    pub(crate) spec: SchemeSpec,
    pub(crate) streams: Streams,
    /// Index of the flow in the scenario.
    pub(crate) index: usize,
    pub(crate) config: SenderConfig,
    pub(crate) ack: AckPolicy,
}

impl Maker {
    /// Creates the scheme's controller and receiver for connection `number`.
    pub(crate) fn ends(&self, number: u64) -> Result<Ends, SchemeError> {
        let name = match number {
            0 => format!("flow.{}.controller", self.index),
            number => format!("flow.{}.connection.{number}.controller", self.index),
        };
        self.spec.build(&Setup::new(self.config.mss, self.streams.stream(&name)))
    }
}

/// The connections of one flow.
pub(crate) struct Connections {
    maker: Maker,
    number: u64,
    /// Packet number, in the flow's numbering, of the connection's first packet.
    first_packet: u64,
    /// Endpoints of the next connection. These endpoints already receive radio reports, because a phone's decoder runs
    /// with or without a connection. `None` if a single connection transfers the whole flow.
    next: Option<Box<(Sender, Acker)>>,
}

impl Connections {
    /// Creates the connections of a flow whose first connection exists already. `are_renewed`: whether further
    /// connections follow.
    pub(crate) fn new(maker: Maker, are_renewed: bool) -> Result<Connections, SchemeError> {
        let mut connections = Connections { maker, number: 0, first_packet: 0, next: None };
        if are_renewed {
            connections.next = Some(connections.make(1)?);
        }
        Ok(connections)
    }

    fn make(&self, number: u64) -> Result<Box<(Sender, Acker)>, SchemeError> {
        let ends = self.maker.ends(number)?;
        let sender = Sender::new(self.maker.config, ends.controller, Backlog::Limited(Bytes::ZERO));
        Ok(Box::new((sender, Acker::new(self.maker.ack, ends.receiver))))
    }

    /// Returns the number of the current connection, from 0.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the packet number, in the flow's numbering, of the current connection's first packet.
    pub(crate) fn first_packet(&self) -> u64 {
        self.first_packet
    }

    /// Makes the next connection the current connection, and returns its endpoints. The connection's first packet has
    /// the number `first_packet` in the flow's numbering. `None` if a single connection transfers the whole flow.
    pub(crate) fn renew(&mut self, first_packet: u64) -> Option<Box<(Sender, Acker)>> {
        let ends = self.next.take()?;
        (self.number, self.first_packet) = (self.number + 1, first_packet);
        self.next = Some(self.make(self.number + 1).expect("what was built before can be built again"));
        Some(ends)
    }

    /// Passes a control channel report to the receiver of the next connection.
    pub(crate) fn hear_channel(&mut self, report: &RadioReport) {
        if let Some(next) = &mut self.next {
            next.1.on_radio(report);
        }
    }

    /// Passes a modem report to the controller of the next connection.
    pub(crate) fn hear_modem(&mut self, now: Time, report: &RadioReport) {
        if let Some(next) = &mut self.next {
            next.0.on_radio(now, report);
        }
    }
}
