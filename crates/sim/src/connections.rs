//! The connections of a flow: one, or one for each of its transfers.

use airpace_cc::endpoint::{AckPolicy, Acker, Backlog, Sender, SenderConfig};
use airpace_cc::{Ends, SchemeError, SchemeSpec, Setup};
use airpace_core::{Bytes, Streams, Time};
use airpace_radio::RadioReport;

/// What the ends of a flow's connections are made of.
#[derive(Clone, Debug)]
pub(crate) struct Maker {
    pub(crate) spec: SchemeSpec,
    pub(crate) streams: Streams,
    /// The flow's place in the scenario.
    pub(crate) index: usize,
    pub(crate) config: SenderConfig,
    pub(crate) ack: AckPolicy,
}

impl Maker {
    /// The halves of the scheme for connection `number`.
    pub(crate) fn ends(&self, number: u64) -> Result<Ends, SchemeError> {
        let name = match number {
            0 => format!("flow.{}.controller", self.index),
            number => format!("flow.{}.connection.{number}.controller", self.index),
        };
        self.spec.build(&Setup { mss: self.config.mss, rng: self.streams.stream(&name) })
    }
}

/// The connections of one flow.
pub(crate) struct Connections {
    maker: Maker,
    number: u64,
    /// The flow's number of the connection's first packet.
    first_packet: u64,
    /// The ends of the next connection. They listen to the radio already, as a phone's decoder does whether or not
    /// there is a connection. `None` if all goes over one connection.
    next: Option<Box<(Sender, Acker)>>,
}

impl Connections {
    /// The connections of a flow whose first one is made already. `are_renewed` says whether others follow.
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

    /// The number of the present connection, from 0.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The flow's number of the present connection's first packet.
    pub(crate) fn first_packet(&self) -> u64 {
        self.first_packet
    }

    /// The ends of the next connection, which becomes the present one. Its first packet is the flow's `first_packet`.
    /// `None` if all goes over one connection.
    pub(crate) fn renew(&mut self, first_packet: u64) -> Option<Box<(Sender, Acker)>> {
        let ends = self.next.take()?;
        (self.number, self.first_packet) = (self.number + 1, first_packet);
        self.next = Some(self.make(self.number + 1).expect("what was built before can be built again"));
        Some(ends)
    }

    /// The next connection's receiver half hears the device's radio.
    pub(crate) fn hear_channel(&mut self, report: &RadioReport) {
        if let Some(next) = &mut self.next {
            next.1.on_radio(report);
        }
    }

    /// The next connection's controller reads the modem of its device.
    pub(crate) fn hear_modem(&mut self, now: Time, report: &RadioReport) {
        if let Some(next) = &mut self.next {
            next.0.on_radio(now, report);
        }
    }
}
