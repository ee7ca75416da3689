//! Loss recovery: which packets count as lost, when a probe is sent, and when all outstanding packets count as lost.

use std::time::Duration;

use airpace_core::{Bytes, Time};
use airpace_event::Lost;

use super::Sender;
use crate::controller::{Loss, LossCause, SentPacket};
use crate::delivery_rate::DeliveryRate;
use crate::endpoint::sent::Entry;
use crate::endpoint::{Backlog, RttEstimator, Settled};

/// Number of probe timeouts without an ACK after which all outstanding packets count as lost.
///
/// Source: RFC 9002 §7.6.1 (`kPersistentCongestionThreshold`)
const PERSISTENT_PROBES: u64 = 3;

/// Minimum time without an ACK after which all outstanding packets count as lost, although no ACK has shown the loss.
///
/// Source: RFC 6298 §2.4
///
/// Differs: RFC 9002 waits for an ACK without limit. A rate-based sender would keep sending although nothing arrives.
const MIN_SILENCE: Duration = Duration::from_secs(1);

/// Timeouts while no ACK arrives.
#[derive(Clone, Copy, Debug)]
pub(in crate::endpoint) struct Timeouts {
    /// Time until a probe is sent, without back-off.
    pub(in crate::endpoint) probe: Duration,
    /// Minimum period in which all packets were lost that counts as persistent congestion.
    pub(in crate::endpoint) persistent: Duration,
    /// Time without an ACK after which all outstanding packets count as lost.
    pub(in crate::endpoint) silence: Duration,
}

impl Timeouts {
    pub(in crate::endpoint) fn of(rtt: &RttEstimator, deliberate_delay: Duration) -> Timeouts {
        let probe = rtt.probe_timeout(deliberate_delay);
        // The product is computed in nanoseconds, which takes only one multiplication.
        let persistent = Duration::from_nanos((probe.as_nanos() as u64).saturating_mul(PERSISTENT_PROBES));
        Timeouts { probe, persistent, silence: persistent.max(MIN_SILENCE) }
    }
}

impl Sender {
    /// Declares packets lost by the packet and time thresholds, and moves them to `self.lost`. Returns their total
    /// size.
    pub(super) fn detect_losses(&mut self, now: Time) -> Bytes {
        let Some(largest_acked) = self.largest_acked else { return Bytes::ZERO };
        let mut bytes = Bytes::ZERO;
        self.lost.clear();
        let Sender { packets, lost, rate, inflight, backlog, .. } = self;
        let bounds = self.reordering.bounds(&self.rtt);
        self.loss_time = packets.lose(now, largest_acked, bounds, |number, entry| {
            bytes += entry.bytes();
            lost.push(lose(number, entry, rate, inflight, backlog));
        });
        if !self.lost.is_empty() {
            self.reordering.on_loss(self.packets.next_number());
        }
        bytes
    }

    /// Declares all outstanding packets lost, and moves them to `self.lost`. Returns their total size.
    pub(super) fn lose_everything(&mut self) -> Bytes {
        let mut bytes = Bytes::ZERO;
        self.lost.clear();
        self.loss_time = None;
        let Sender { packets, lost, rate, inflight, backlog, .. } = self;
        packets.lose_all(|number, entry| {
            bytes += entry.bytes();
            lost.push(lose(number, entry, rate, inflight, backlog));
        });
        bytes
    }

    pub(super) fn report_losses(&mut self, now: Time, prior_inflight: Bytes, bytes: Bytes) -> Option<Lost> {
        if self.lost.is_empty() {
            return None;
        }
        let is_persistent = is_persistent(&self.lost, self.first_sample, self.timeouts.persistent);
        let cause = if is_persistent { LossCause::Persistent } else { LossCause::Threshold };
        self.report(now, prior_inflight, bytes, cause)
    }

    /// Reports `self.lost` to the controller.
    pub(super) fn report(
        &mut self,
        now: Time,
        prior_inflight: Bytes,
        lost: Bytes,
        cause: LossCause,
    ) -> Option<Lost> {
        if self.lost.is_empty() {
            return None;
        }
        if self.is_carried() {
            self.settled.extend(self.lost.iter().map(|packet| Settled::Lost { number: packet.number }));
        }
        self.controller.on_loss(&Loss {
            now,
            packets: &self.lost,
            lost,
            prior_inflight,
            inflight: self.inflight,
            next_number: self.packets.next_number(),
            cause,
        });
        Some(Lost { time: now, flow: self.config.flow, packets: self.lost.len() as u64, bytes: lost })
    }

    /// The time at which a probe is sent to provoke an ACK. `None` while a loss timer is running or nothing is in
    /// flight.
    ///
    /// Source: RFC 9002 §6.2.1
    pub(super) fn probe_deadline(&self) -> Option<Time> {
        let is_armed = self.inflight > Bytes::ZERO && self.loss_time.is_none();
        let backed_off = match self.probes {
            0 => self.timeouts.probe,
            probes => self.timeouts.probe.saturating_mul(1 << probes.min(16)),
        };
        is_armed.then(|| self.last_sent + backed_off)
    }

    /// The time at which all outstanding packets count as lost if no ACK arrives. `None` if nothing is in flight.
    pub(super) fn silence_deadline(&self) -> Option<Time> {
        let is_armed = self.inflight > Bytes::ZERO;
        is_armed.then(|| self.silent_since + self.timeouts.silence)
    }
}

/// Whether the losses show persistent congestion: all packets sent in a sufficiently long period after the first RTT
/// sample were lost.
///
/// Source: RFC 9002 §7.6.2
pub(in crate::endpoint) fn is_persistent(
    lost: &[SentPacket],
    first_sample: Option<Time>,
    persistent: Duration,
) -> bool {
    let Some(first_sample) = first_sample else { return false };
    let mut lost = lost.iter().filter(|packet| packet.sent >= first_sample);
    let Some(mut begin) = lost.next() else { return false };
    let mut end = begin.number;
    lost.any(|packet| {
        if packet.number != end + 1 {
            begin = packet;
        }
        end = packet.number;
        packet.sent - begin.sent >= persistent
    })
}

/// Accounts for one lost packet: it is no longer in flight, and its bytes must be retransmitted.
fn lose(
    number: u64,
    entry: &Entry,
    rate: &mut DeliveryRate,
    inflight: &mut Bytes,
    backlog: &mut Backlog,
) -> SentPacket {
    *inflight -= entry.bytes();
    rate.on_lost(entry.bytes());
    if let (Backlog::Limited(left), false) = (backlog, entry.copy) {
        *left += entry.bytes();
    }
    entry.packet(number)
}
