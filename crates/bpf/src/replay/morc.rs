//! Replay of an ACK trace through MORC's C port.

use std::collections::BTreeMap;

use airpace_cc::ack_trace::{Acked, Entry, Numbers, Told};
use airpace_core::{Bytes, Rate, Time};

use super::nanos;
use crate::twin::NONE;
use crate::twin::morc::{Answer, Morc, MorcAck, MorcTuning, Packets};

/// State of a packet until it is acknowledged.
#[derive(Clone, Copy, Debug)]
struct Flying {
    bytes: Bytes,
    sent: Time,
    was_lost: bool,
}

/// Replays a flow of an ACK trace through MORC's C port.
pub struct MorcReplay {
    twin: Morc,
    flying: BTreeMap<u64, Flying>,
}

impl MorcReplay {
    /// Starts the replay of a trace.
    pub fn new(tuning: MorcTuning, mss: Bytes) -> MorcReplay {
        MorcReplay { twin: Morc::new(tuning, mss), flying: BTreeMap::new() }
    }

    /// Passes the entry's event to the C port. Returns the port's decision.
    pub fn tell(&mut self, entry: &Entry) -> Answer {
        let now = entry.time;
        match &entry.told {
            &Told::Sent { number, bytes, app_limited, .. } => {
                self.flying.insert(number, Flying { bytes, sent: now, was_lost: false });
                self.twin.on_sent(now, &Packets { number, count: 1, bytes: bytes.0 }, app_limited);
            }
            Told::Acked(acked) => self.acked(now, acked),
            Told::Lost { numbers, .. } => {
                numbers.iter().for_each(|number| {
                    self.flying.entry(number).and_modify(|packet| packet.was_lost = true);
                });
                let packets: Vec<_> = self.packets(numbers).collect();
                self.twin.on_loss(packets.into_iter().map(|(_, lost)| lost));
            }
            Told::Radio { .. } | Told::Device(_) | Told::Feedback(_) | Told::Timer => {}
        }
        self.twin.answer()
    }

    fn acked(&mut self, now: Time, acked: &Acked) {
        let newest = acked.numbers.newest().unwrap_or(0);
        let ack = MorcAck {
            now: now.as_nanos(),
            acked: acked.acked.0,
            rtt: nanos(acked.rtt),
            smoothed: nanos(Some(acked.smoothed)),
            variation: nanos(Some(acked.variation)),
            least: nanos(Some(acked.least)),
            rate: acked.rate.map_or(NONE, Rate::as_bps),
            newest,
            newest_sent: self.flying.get(&newest).map_or(0, |packet| packet.sent.as_nanos()),
            app_limited: u64::from(acked.any_app_limited),
        };
        let packets: Vec<_> =
            self.packets(&acked.numbers).map(|(packet, acked)| (acked, packet.was_lost)).collect();
        self.twin.on_ack(&ack, packets.into_iter());
        acked.numbers.iter().for_each(|number| {
            self.flying.remove(&number);
        });
    }

    fn packets<'a>(&'a self, numbers: &'a Numbers) -> impl Iterator<Item = (Flying, Packets)> + 'a {
        numbers.iter().filter_map(|number| {
            let packet = *self.flying.get(&number)?;
            Some((packet, Packets { number, count: 1, bytes: packet.bytes.0 }))
        })
    }
}
