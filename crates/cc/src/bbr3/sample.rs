//! The values of one ACK, and the count of round trips.

use airpace_core::{Bytes, Rate};

use crate::controller::Ack;

/// One delivery-rate sample, and the values that the algorithm derives from it.
///
/// Source: draft-ietf-ccwg-bbr-06 §2.3, §4.1
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Delivery rate; zero if the sample has none.
    pub rate: Rate,
    /// Bytes delivered between the sending of the sample's packet and its ACK.
    pub delivered: Bytes,
    /// Bytes delivered over the connection's life when the sample's packet was sent.
    pub prior_delivered: Bytes,
    /// Bytes delivered over the connection's life.
    pub total: Bytes,
    /// Bytes that this ACK newly acknowledges.
    pub newly_acked: Bytes,
    /// Bytes in flight when the sample's packet left, that packet included.
    pub tx_in_flight: Bytes,
    /// Bytes declared lost since the sample's packet was sent.
    pub lost: Bytes,
    /// Packets reported as marked since the sample's packet was sent.
    pub ce: u64,
    /// Whether the sample's packet was sent while the application or ProbeRTT limited the sender.
    pub app_limited: bool,
}

impl Sample {
    /// The sample of an ACK. `None` if the ACK has no new information: it only acknowledges packets older than the
    /// packets of the last ACK.
    pub fn of(ack: &Ack<'_>, held_back: bool) -> Option<Sample> {
        let rate = &ack.rate;
        (!rate.interval.is_zero()).then(|| Sample {
            rate: rate.rate.unwrap_or(Rate::ZERO),
            delivered: rate.delivered - rate.prior_delivered,
            prior_delivered: rate.prior_delivered,
            total: rate.delivered,
            newly_acked: ack.acked,
            tx_in_flight: rate.tx_in_flight,
            lost: rate.lost,
            ce: rate.ce,
            app_limited: rate.app_limited || held_back,
        })
    }
}

/// Counter of round trips, which are measured by acknowledged packets.
///
/// Source: draft-ietf-ccwg-bbr-06 §5.5.1
#[derive(Clone, Copy, Debug, Default)]
pub struct Rounds {
    next_delivered: Bytes,
    count: u64,
    started: bool,
}

impl Rounds {
    /// Processes one ACK. Returns whether it starts a round.
    pub fn on_ack(&mut self, sample: &Sample) -> bool {
        self.started = sample.prior_delivered >= self.next_delivered;
        if self.started {
            self.next_delivered = sample.total;
            self.count += 1;
        }
        self.started
    }

    /// Starts a round at the next packet to be sent. `delivered`: bytes delivered up to now.
    pub fn restart(&mut self, delivered: Bytes) {
        self.next_delivered = delivered;
    }

    /// Whether the ACK being processed started a round.
    pub fn started(&self) -> bool {
        self.started
    }

    /// Number of rounds started.
    pub fn count(&self) -> u64 {
        self.count
    }
}

/// The maximum delivery rate of the current and the previous cycle of probing.
///
/// Source: draft-ietf-ccwg-bbr-06 §5.5.5, §5.5.6
#[derive(Clone, Copy, Debug, Default)]
pub struct MaxBandwidth {
    previous: Rate,
    present: Rate,
}

impl MaxBandwidth {
    /// Processes a sample. If the application or ProbeRTT limited the sender, the sample counts only if it is above the
    /// known rate.
    pub fn on_sample(&mut self, sample: &Sample) {
        if sample.rate >= self.get() || !sample.app_limited {
            self.present = self.present.max(sample.rate);
        }
    }

    /// Starts a new cycle, and discards the values from before the previous one.
    pub fn advance(&mut self) {
        // Source: google/bbr v3 (a cycle without a sample does not replace the previous maximum)
        if self.present > Rate::ZERO {
            self.previous = std::mem::replace(&mut self.present, Rate::ZERO);
        }
    }

    /// The maximum bandwidth; zero before the first sample.
    pub fn get(&self) -> Rate {
        self.previous.max(self.present)
    }
}

/// Records whether the window limited the sender at any time in the last round.
///
/// Source: draft-ietf-ccwg-bbr-06 §2.2 (`C.is_cwnd_limited`)
#[derive(Clone, Copy, Debug, Default)]
pub struct CwndLimited {
    in_round: bool,
    in_last_round: bool,
}

impl CwndLimited {
    /// Processes one ACK.
    pub fn on_ack(&mut self, limited: bool, round_start: bool) {
        if round_start {
            self.in_last_round = std::mem::take(&mut self.in_round);
        }
        self.in_round |= limited;
    }

    /// Whether the window limited the sender in the last round.
    pub fn get(&self) -> bool {
        self.in_round || self.in_last_round
    }
}
