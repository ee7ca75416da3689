//! An ACK trace through BBR's twin.

use std::collections::BTreeMap;

use airpace_cc::ack_trace::{Acked, Entry, Told};
use airpace_cc::controller::LossCause;
use airpace_core::{Bytes, Rng, Time};

use super::{bps, nanos};
use crate::twin::bbr::{Answer, Bbr, BbrAck};

/// A flow of an ACK trace, replayed.
pub struct BbrReplay {
    twin: Bbr,
    /// When the packets left that are not acknowledged.
    sent: BTreeMap<u64, Time>,
}

impl BbrReplay {
    /// Begins the replay of a trace. `rng` is as new as that of the trace's controller was.
    pub fn new(mss: Bytes, rng: Rng) -> BbrReplay {
        BbrReplay { twin: Bbr::new(mss, rng), sent: BTreeMap::new() }
    }

    /// Tells the twin what the controller of the trace was told. Returns its answer.
    pub fn tell(&mut self, entry: &Entry) -> Answer {
        let now = entry.time;
        match &entry.told {
            &Told::Sent { number, bytes, inflight, app_limited } => {
                self.sent.insert(number, now);
                self.twin.on_sent(now, inflight == bytes, app_limited);
            }
            Told::Acked(acked) => {
                self.twin.on_ack(&bbr_ack(now, acked, &self.sent));
                acked.numbers.iter().for_each(|number| {
                    self.sent.remove(&number);
                });
            }
            Told::Lost { lost, next_number, cause, .. } => {
                self.twin.on_loss(*lost, *cause == LossCause::Persistent, *next_number);
            }
            Told::Radio { .. } | Told::Device(_) | Told::Feedback(_) | Told::Timer => {}
        }
        self.twin.answer()
    }
}

/// What BBR hears of an ACK. `sent` says when the packets left that were not acknowledged before.
pub(super) fn bbr_ack(now: Time, acked: &Acked, sent: &BTreeMap<u64, Time>) -> BbrAck {
    let newest = acked.numbers.newest().unwrap_or(0);
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
        newest,
        newest_sent: sent.get(&newest).map_or(0, |sent| sent.as_nanos()),
    }
}
