//! A device's uplink sender: its queue, buffer status reports and scheduling requests, and the carriers that it uses: those of
//! LTE or those of NR.
//!
//! Data that arrives at an empty buffer triggers a *regular* buffer status report. If the device has no grant for the
//! report, it sends a scheduling request at its next opportunity, and again at every further opportunity until a block
//! has carried the report. Later reports are sent with blocks: in free space (*padding*), and in place of data after
//! the periodic timer has expired. A device that gets no grant for a long time sends a scheduling request again
//! (*retransmission* timer).
//!
//! Source: TS 36.321 §5.4.4 and §5.4.5; TS 38.321 §5.4.4 and §5.4.5

use std::ops::Range;
use std::time::Duration;

use airpace_core::{Bytes, Packet, Rng, Time};
use airpace_event::Fate;

use super::super::carriers::Aggregation;
use super::super::config::Rat;
use super::super::config::uplink::UplinkConfig;
use super::super::rlc::{Content, Framing, Rlc};
use super::air::UplinkAir;
use super::buffer_status::{Levels, REPORT_BYTES};

/// Uplink sender of one device.
#[derive(Debug)]
pub(super) struct Sender {
    pub rlc: Rlc,
    /// The legs that the device can use, one at a time.
    legs: Vec<SenderLeg>,
    /// Number of the leg in use.
    leg: usize,
    has_several_carriers: bool,
    sr_period_ms: u64,
    sr_offset_ms: u64,
    periodic: Duration,
    retx: Duration,
    /// Trigger of the buffer status report that waits for a block; `None` if no report waits.
    pending: Option<Trigger>,
    /// Time at which the periodic timer expires. `retx_at` is the same for the retransmission timer.
    periodic_at: Time,
    retx_at: Time,
    /// Whether the buffer contained data at the end of the last slot.
    had_data: bool,
    /// Start of the last slot with a grant for new data.
    built_in: Option<Time>,
    /// After a handover: the time from which on the device may send.
    resumes_at: Time,
}

/// The carriers of one technology.
#[derive(Debug)]
pub(super) struct SenderLeg {
    pub rat: Rat,
    /// The leg's links among those of the user, in the order of their activation.
    pub links: Range<usize>,
    pub aggregation: Aggregation,
    pub framing: Framing,
}

/// Trigger of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trigger {
    Regular,
    Periodic,
}

impl Sender {
    /// A sender whose first leg is in use.
    pub(super) fn new(config: &UplinkConfig, rlc: Rlc, legs: Vec<SenderLeg>, mut rng: Rng) -> Sender {
        let sr_period_ms = u64::from(config.sr_period_ms);
        let is_never = config.periodic_bsr_ms == 0;
        Sender {
            rlc,
            legs,
            leg: 0,
            has_several_carriers: config.carriers > 1,
            sr_period_ms,
            sr_offset_ms: rng.below(sr_period_ms),
            periodic: if is_never { Duration::MAX } else { ms(config.periodic_bsr_ms) },
            retx: ms(config.retx_bsr_ms),
            pending: None,
            periodic_at: Time::NEVER,
            retx_at: Time::NEVER,
            had_data: false,
            built_in: None,
            resumes_at: Time::ZERO,
        }
    }

    /// Bytes queued in the device that were not transmitted yet.
    pub(super) fn backlog(&self) -> Bytes {
        self.rlc.queued()
    }

    /// Whether the device uses a configured grant at `now`: with data, or with a report about data.
    ///
    /// Source: TS 38.321 §5.4.3.1.3 (no block with only a periodic report or padding)
    pub(super) fn has_data(&self, now: Time) -> bool {
        self.pending == Some(Trigger::Regular) || self.rlc.waiting(now) > 0
    }

    /// The buffer status level of a report sent at `now`.
    pub(super) fn level(&self, now: Time) -> u8 {
        self.levels().level_of(self.rlc.waiting(now))
    }

    /// The table of buffer status levels that the device uses.
    pub(super) fn levels(&self) -> Levels {
        match self.legs[self.leg].rat {
            Rat::Nr => Levels::NrShort,
            Rat::Lte if self.has_several_carriers => Levels::Extended,
            Rat::Lte => Levels::Plain,
        }
    }

    /// The first link of each leg.
    pub(super) fn first_links(&self) -> impl Iterator<Item = usize> {
        self.legs.iter().map(|leg| leg.links.start)
    }

    /// The first link of the leg in use, on which the device sends scheduling requests.
    pub(super) fn first_link(&self) -> usize {
        self.legs[self.leg].links.start
    }

    /// The active links of the leg in use.
    pub(super) fn active_links(&self) -> Range<usize> {
        let first = self.first_link();
        first..first + self.legs[self.leg].aggregation.active()
    }

    /// Activation of the carriers of the leg in use.
    pub(super) fn aggregation(&mut self) -> &mut Aggregation {
        &mut self.legs[self.leg].aggregation
    }

    /// Whether the device may not send because of a handover.
    pub(super) fn is_interrupted(&self, now: Time) -> bool {
        now < self.resumes_at
    }

    /// Starts a slot: packets become ready, timers expire. `release` is called for packets that the base station
    /// discards.
    pub(super) fn begin(&mut self, now: Time, release: &mut dyn FnMut(Packet, Fate)) {
        self.aggregation().begin(now);
        self.rlc.admit(now);
        if self.rlc.has_timers() {
            self.rlc.expire(now, release);
        }
        let has_data = self.rlc.waiting(now) > 0;
        if has_data && (!self.had_data || now >= self.retx_at) {
            self.pending = Some(Trigger::Regular);
            self.retx_at = Time::NEVER;
        } else if now >= self.periodic_at && self.pending.is_none() {
            self.pending = Some(Trigger::Periodic);
        }
    }

    /// Fills a block of `room` bytes: first a buffer status report, if a report is pending or there is free space for
    /// it, then data. Returns the data and whether the block contains the report.
    ///
    /// Source: TS 36.321 §5.4.5 (a report is cancelled if all data fits into the block without the report, but not with
    /// it)
    pub(super) fn build(&mut self, now: Time, room: u32) -> (Content, bool) {
        let needed = self.rlc.wanted(now);
        let spare = u64::from(room).saturating_sub(needed);
        let fits = u64::from(room) >= needed;
        let reports = if fits { spare >= REPORT_BYTES.into() } else { self.pending.is_some() };
        let content = self.rlc.fill(now, room - if reports { REPORT_BYTES } else { 0 });
        if reports || fits {
            self.pending = None;
        }
        if reports {
            self.periodic_at = now + self.periodic;
        }
        self.retx_at = now + self.retx;
        self.built_in = Some(now);
        (content, reports)
    }

    /// Whether the device sends a scheduling request in slot `slot` of this carrier, which starts at `now`. Must be called
    /// after the blocks of this slot were filled.
    pub(super) fn asks(&self, now: Time, air: &UplinkAir, slot: u64) -> bool {
        self.pending == Some(Trigger::Regular)
            && air.is_request_slot(slot, self.sr_period_ms, self.sr_offset_ms)
            && self.built_in != Some(now)
            && !self.is_interrupted(now)
    }

    /// Ends a slot.
    pub(super) fn end(&mut self, now: Time) {
        self.had_data = self.rlc.waiting(now) > 0;
    }

    /// Hands the device over to carriers of this technology at `now`; `false` if it already uses them or has none.
    pub(super) fn change_technology(&mut self, rat: Rat, now: Time, resumes_at: Time) -> bool {
        let leg = self.legs.iter().position(|leg| leg.rat == rat);
        let Some(leg) = leg.filter(|&leg| leg != self.leg) else { return false };
        self.leg = leg;
        self.rlc.set_framing(self.legs[leg].framing);
        self.hand_over(now, resumes_at);
        true
    }

    /// Starts a handover: unacknowledged data returns to the buffer, and the new cell has no estimate of the buffer.
    ///
    /// Source: TS 36.321 §5.9 (timers and triggered reports are dropped), TS 36.323 §5.2.1.1 (what was not confirmed is
    /// sent again)
    pub(super) fn hand_over(&mut self, now: Time, resumes_at: Time) {
        self.rlc.forward(resumes_at);
        self.aggregation().reset(now);
        self.pending = None;
        self.periodic_at = Time::NEVER;
        self.retx_at = Time::NEVER;
        self.had_data = false;
        self.resumes_at = self.resumes_at.max(resumes_at);
    }
}

fn ms(milliseconds: u32) -> Duration {
    Duration::from_millis(milliseconds.into())
}
