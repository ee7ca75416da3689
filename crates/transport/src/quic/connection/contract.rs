//! Implementation of the contract of both transports for a QUIC connection.

use std::net::SocketAddr;
use std::time::Duration;

use airpace_cc::controller::{Controller, Inspect, Receiver};
use airpace_cc::registry::DeviceFlows;
use airpace_core::{Bytes, Refused, Time};
use airpace_radio::RadioReport;
use noq_proto::VarInt;

use super::QuicConnection;
use crate::endpoint::{Closed, Connection, Counted, Figures, Read};
use crate::quic::inflow::Inflow;

/// Bytes of an IP packet other than stream data: IP and UDP headers (28), QUIC header, tag, stamp and frame headers.
///
/// Chosen: an estimate for the display of progress; the final count is exact.
const PACKET_OVERHEAD: u64 = 28 + 1 + 8 + 2 + 16 + 16 + 8;

impl Connection for QuicConnection {
    fn write(&mut self, now: Time, bytes: &[u8]) -> Result<usize, Refused> {
        self.now = now;
        // A server's connection has no stream until the client's first byte arrives.
        let Some(main) = self.main.filter(|_| !self.is_over) else {
            return if self.is_over { Err("the connection is over; make another".into()) } else { Ok(0) };
        };
        let taken = self.write_stream(now, main.into(), bytes)?;
        self.written += taken as u64;
        Ok(taken)
    }

    fn finish(&mut self, now: Time) {
        if let Some(main) = self.main {
            self.finish_stream(now, main.into());
        }
    }

    fn read(&mut self, now: Time, into: &mut [u8]) -> Result<Read, Refused> {
        self.now = now;
        let Some(main) = self.main else {
            return if self.is_over {
                Err("the connection is over; make another".into())
            } else {
                Ok(Read::Nothing)
            };
        };
        self.read_stream(now, main.into(), into)
    }

    fn close(&mut self, now: Time, code: u32, reason: &str) {
        let instant = self.clock.tick(now);
        self.noq.close(instant, VarInt::from_u32(code), reason.as_bytes().to_vec().into());
        self.end(Closed::Here);
    }

    fn steer(&mut self, now: Time, controller: Box<dyn Controller>) {
        self.is_steered = true;
        self.charge(now, controller);
    }

    fn listen(&mut self, receiver: Option<Box<dyn Receiver>>) {
        self.receiving.listen(self.now, receiver);
    }

    fn on_radio(&mut self, report: &RadioReport) {
        if let Some(ledger) = &mut self.ledger
            && ledger.controller().sees().is_device()
        {
            ledger.on_radio(self.now, report);
        }
        self.receiving.on_radio(report);
    }

    fn on_device(&mut self, now: Time, flows: &DeviceFlows) {
        if let Some(ledger) = &mut self.ledger
            && ledger.controller().sees().is_device()
        {
            ledger.on_device(now, flows);
        }
        self.receiving.on_device(flows);
    }

    fn binding(&self) -> [u8; 32] {
        let mut binding = [0; 32];
        let label = b"EXPORTER-airpace-binding";
        // Before the handshake is complete there is no common secret: return zeros, for which no proof may be
        // accepted.
        let _ = self.noq.crypto_session().export_keying_material(&mut binding, label, b"");
        binding
    }

    fn peer(&self) -> SocketAddr {
        self.peer
    }

    fn figures(&self) -> Figures {
        let mut figures = Figures {
            received: self.receiving.packets(),
            queueing_delay: self.receiving.queueing_delay(),
            ..Figures::default()
        };
        figures.stream_read =
            self.main.and_then(|main| self.streams.get(&main)).map_or(Bytes::ZERO, Inflow::bytes_read);
        let Some(ledger) = &self.ledger else { return figures };
        let counts = ledger.counts();
        figures.sent = Counted { packets: counts.sent, bytes: counts.sent_bytes };
        figures.delivered = Counted { packets: counts.acked, bytes: ledger.delivered() };
        figures.lost = Counted { packets: counts.lost, bytes: counts.lost_bytes };
        let estimate = ledger.delivered().0.saturating_sub(counts.acked * PACKET_OVERHEAD);
        figures.stream_acknowledged =
            Bytes(if self.is_flushed { self.written } else { estimate.min(self.written) });
        figures.unsent = Bytes(self.unsent);
        figures.rtt = ledger.rtt();
        figures.cwnd = ledger.control().cwnd;
        figures.pacing_rate = ledger.control().pacing_rate;
        figures.inflight = ledger.inflight();
        if let Some(rate) = figures.pacing_rate.filter(|rate| rate.as_bps() > 0) {
            let nanos = u128::from(ledger.forfeited().0) * 8_000_000_000 / u128::from(rate.as_bps());
            figures.forfeited = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        }
        figures
    }

    fn inspect(&self, out: &mut Inspect) {
        match &self.ledger {
            Some(ledger) if self.is_steered => ledger.inspect(out),
            _ => self.receiving.inspect(out),
        }
    }
}
