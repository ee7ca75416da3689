//! Replay of an ACK trace through BBR's C port.

use std::collections::BTreeMap;

use airpace_cc::ack_trace::{Acked, Entry, Numbers, Told};
use airpace_cc::controller::LossCause;
use airpace_cc::window::Holes;
use airpace_core::{Bytes, Rng, Time};

use super::{bps, nanos};
use crate::twin::bbr::{Answer, Bbr, BbrAck};

/// Replays a flow of an ACK trace through BBR's C port.
pub struct BbrReplay {
    twin: Bbr,
    transport: Transport,
}

/// Reconstructs BBR's inputs from the transport that the trace does not contain.
#[derive(Debug, Default)]
pub(super) struct Transport {
    /// For each unacknowledged packet: send time, and whether the packet was declared lost.
    sent: BTreeMap<u64, (Time, bool)>,
    holes: Holes,
}

impl BbrReplay {
    /// Starts the replay of a trace. `rng` has the initial state of the generator of the trace's controller.
    pub fn new(mss: Bytes, rng: Rng) -> BbrReplay {
        BbrReplay { twin: Bbr::new(mss, rng), transport: Transport::default() }
    }

    /// Passes the entry's event to the C port. Returns the port's decision.
    pub fn tell(&mut self, entry: &Entry) -> Answer {
        let now = entry.time;
        match &entry.told {
            &Told::Sent { number, bytes, inflight, app_limited } => {
                self.transport.on_sent(now, number);
                self.twin.on_sent(now, inflight == bytes, app_limited);
            }
            Told::Acked(acked) => self.twin.on_ack(&self.transport.on_ack(now, acked)),
            Told::Lost { numbers, lost, next_number, cause, .. } => {
                self.transport.on_loss(numbers, *next_number);
                self.twin.on_loss(*lost, *cause == LossCause::Persistent, self.transport.recovered());
            }
            Told::Radio { .. } | Told::Device(_) | Told::Feedback(_) | Told::Timer => {}
        }
        self.twin.answer()
    }
}

impl Transport {
    pub(super) fn on_sent(&mut self, now: Time, number: u64) {
        self.sent.insert(number, (now, false));
        self.holes.send(number);
    }

    pub(super) fn on_loss(&mut self, numbers: &Numbers, next_number: u64) {
        self.holes.lose(numbers.iter(), next_number);
        for number in numbers.iter() {
            self.sent.entry(number).and_modify(|(_, was_lost)| *was_lost = true);
        }
    }

    /// The number of completed recoveries.
    pub(super) fn recovered(&self) -> u64 {
        self.holes.recovered()
    }

    /// The send time of an unacknowledged packet.
    pub(super) fn sent(&self, number: u64) -> Option<Time> {
        self.sent.get(&number).map(|(sent, _)| *sent)
    }

    /// BBR's input for an ACK.
    pub(super) fn on_ack(&mut self, now: Time, acked: &Acked) -> BbrAck {
        let newest = acked.numbers.newest().unwrap_or(0);
        let newest_sent = self.sent(newest).map_or(0, Time::as_nanos);
        let sent = &mut self.sent;
        let was_lost =
            acked.numbers.iter().map(|number| (number, sent.remove(&number).is_some_and(|(_, lost)| lost)));
        self.holes.fill(was_lost);
        BbrAck {
            now: now.as_nanos(),
            acked: acked.acked.0,
            prior_inflight: acked.prior_inflight.0,
            inflight: acked.inflight.0,
            delivered: acked.delivered.0,
            prior_delivered: acked.prior_delivered.0,
            rtt: nanos(acked.rtt),
            smoothed: nanos(Some(acked.smoothed)),
            rate: bps(acked.rate),
            app_limited: u64::from(acked.app_limited),
            newest_sent,
            recovered: self.recovered(),
        }
    }
}
