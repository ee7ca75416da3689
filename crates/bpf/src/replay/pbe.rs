//! Replay of an ACK trace through the C port of PBE-CC's sender.

use airpace_cc::ack_trace::{Acked, Entry, Told};
use airpace_cc::controller::LossCause;
use airpace_cc::pbe::feedback::Feedback;
use airpace_core::{Bytes, Rng, Time};

use super::bbr::Transport;
use super::{bps, nanos};
use crate::twin::pbe::{Answer, Pbe, PbeAck, PbeFed, PbeTuning};

/// Replays a flow of an ACK trace through PBE-CC's C port.
pub struct PbeReplay {
    twin: Pbe,
    transport: Transport,
}

impl PbeReplay {
    /// Starts the replay of a trace. `rng` has the initial state of the generator of the trace's controller.
    pub fn new(tuning: &PbeTuning, mss: Bytes, rng: Rng) -> PbeReplay {
        PbeReplay { twin: Pbe::new(tuning, mss, rng), transport: Transport::default() }
    }

    /// Passes the entry's event to the C port. Returns the port's decision.
    pub fn tell(&mut self, entry: &Entry) -> Answer {
        let now = entry.time;
        match &entry.told {
            &Told::Sent { number, bytes, inflight, app_limited } => {
                self.transport.on_sent(now, number);
                self.twin.on_sent(now, inflight == bytes, app_limited);
            }
            Told::Acked(acked) => {
                let ack = self.ack(now, acked);
                self.twin.on_ack(&ack, &fed(acked.feedback.as_bytes()));
            }
            Told::Lost { numbers, lost, next_number, cause, .. } => {
                self.transport.on_loss(numbers, *next_number);
                self.twin.on_loss(*lost, *cause == LossCause::Persistent, self.transport.recovered());
            }
            Told::Feedback(bytes) => self.twin.on_feedback(now, &fed(bytes.as_bytes())),
            Told::Timer => self.twin.before_send(now),
            Told::Radio { .. } | Told::Device(_) => {}
        }
        self.twin.answer()
    }

    fn ack(&mut self, now: Time, acked: &Acked) -> PbeAck {
        let oldest = acked.numbers.iter().next().and_then(|number| self.transport.sent(number));
        let bbr = self.transport.on_ack(now, acked);
        PbeAck { bbr, least: nanos(Some(acked.least)), oldest_sent: oldest.unwrap_or(now).as_nanos() }
    }
}

/// Decodes a receiver's feedback.
fn fed(bytes: &[u8]) -> PbeFed {
    let told = Feedback::read(bytes);
    let fed = told.unwrap_or_default();
    PbeFed {
        capacity: bps(fed.capacity),
        fair_share: bps(fed.fair_share),
        radio_delay: nanos(fed.radio_delay),
        is_told: u32::from(told.is_some()),
        internet: u32::from(fed.internet),
        fresh: u32::from(fed.fresh),
        clear: u32::from(fed.clear),
        carriers: u32::from(fed.carriers),
        activations: u32::from(fed.activations),
    }
}
