//! The base station's state of a device of the scenario: the legs of its bearer, its handovers and its RRC state.

use std::ops::Range;

use airpace_core::{Bytes, Packet, Time};
use airpace_event::Fate;

use super::carriers::Aggregation;
use super::handover::Handover;
use super::life_cycle::LifeCycle;
use super::pdcp::SplitBearer;
use super::rlc::{Content, Rlc};

/// State that only devices have.
#[derive(Debug)]
pub(super) struct Device {
    /// The legs of the bearer, one, or with a split bearer those of LTE and NR.
    legs: Vec<Leg>,
    /// PDCP of a split bearer; `None` if there is one leg.
    split: Option<SplitBearer>,
    pub handover: Handover,
    pub life: LifeCycle,
    /// Maximum number of bytes queued on all legs.
    limit: Bytes,
}

/// A leg of a bearer: the carriers of one node, with their common queue.
#[derive(Debug)]
pub(super) struct Leg {
    pub rlc: Rlc,
    pub aggregation: Aggregation,
    /// The leg's links among those of the user, its primary link first.
    pub links: Range<usize>,
}

impl Device {
    /// A device with these legs; two legs have a split bearer.
    pub(super) fn new(
        legs: Vec<Leg>,
        split: Option<SplitBearer>,
        handover: Handover,
        life: LifeCycle,
        limit: Bytes,
    ) -> Device {
        debug_assert_eq!(legs.len(), if split.is_some() { 2 } else { 1 });
        Device { legs, split, handover, life, limit }
    }

    /// The legs.
    pub(super) fn legs(&self) -> &[Leg] {
        &self.legs
    }

    /// The legs, to be changed.
    pub(super) fn legs_mut(&mut self) -> &mut [Leg] {
        &mut self.legs
    }

    /// Whether the bearer is split between two legs.
    pub(super) fn is_split(&self) -> bool {
        self.split.is_some()
    }

    /// PDCP of a split bearer.
    pub(super) fn split_mut(&mut self) -> Option<&mut SplitBearer> {
        self.split.as_mut()
    }

    fn leg_index(&self, link: usize) -> usize {
        let index = self.legs.iter().position(|leg| leg.links.contains(&link));
        index.expect("each link belongs to a leg")
    }

    fn rlc_mut(&mut self, link: usize) -> &mut Rlc {
        let leg = self.leg_index(link);
        &mut self.legs[leg].rlc
    }

    /// Whether a link may carry new data at `now`.
    pub(super) fn is_active(&self, link: usize, now: Time) -> bool {
        let leg = &self.legs[self.leg_index(link)];
        !self.handover.is_interrupted(now) && link - leg.links.start < leg.aggregation.active()
    }

    /// Bytes queued for their first transmission.
    pub(super) fn queued(&self) -> Bytes {
        self.legs.iter().map(|leg| leg.rlc.queued()).sum()
    }

    /// Free space in the queue.
    pub(super) fn room(&self) -> Bytes {
        self.limit - self.queued()
    }

    /// Number of bytes that were put into blocks so far, without retransmissions.
    pub(super) fn sent(&self) -> Bytes {
        self.legs.iter().map(|leg| leg.rlc.sent()).sum()
    }

    /// Queue length that activates the next carriers of all legs, and with which a split bearer uses both legs.
    pub(super) fn needed_queue(&self) -> Bytes {
        let for_carriers = self.legs.iter().filter_map(|leg| leg.aggregation.needed_queue()).max();
        let for_lte = self.split.as_ref().map(SplitBearer::queue_before_lte);
        for_carriers.unwrap_or(Bytes::ZERO) + for_lte.unwrap_or(Bytes::ZERO)
    }

    /// Total size of the packets that have entered the bearer and not left it yet.
    #[cfg(test)]
    pub(super) fn held(&self) -> Bytes {
        let waiting = self.split.as_ref().map(SplitBearer::held);
        self.legs.iter().map(|leg| leg.rlc.held()).chain(waiting).sum()
    }

    /// Takes a packet that may be sent from `ready` on; returns `false` if the queue is full.
    pub(super) fn push(&mut self, ready: Time, packet: Packet) -> bool {
        if self.queued() + packet.bytes > self.limit {
            return false;
        }
        let (leg, delay) = match &mut self.split {
            Some(split) => {
                let queued = [self.legs[0].rlc.queued(), self.legs[1].rlc.queued()];
                split.route(queued, packet.bytes)
            }
            None => (0, std::time::Duration::ZERO),
        };
        self.legs[leg].rlc.push(ready + delay, packet)
    }

    /// Starts a slot at `now`: carriers become active, packets become ready, timers expire. The device passes on packets
    /// that are released at `at`.
    pub(super) fn begin(&mut self, now: Time, at: Time, release: &mut dyn FnMut(Time, Packet, Fate)) {
        for (index, leg) in self.legs.iter_mut().enumerate() {
            leg.aggregation.begin(now);
            leg.rlc.admit(now);
            if leg.rlc.has_timers() {
                match &mut self.split {
                    Some(split) => leg.rlc.expire(now, &mut |packet, fate| {
                        split.receive(index, at, packet, fate, release);
                    }),
                    None => leg.rlc.expire(now, &mut |packet, fate| release(at, packet, fate)),
                }
            }
        }
        if let Some(split) = &mut self.split {
            split.expire(now, at, release);
        }
    }

    /// If a handover or a promotion of the device's RRC state starts at `now`, returns the time at which data transmission
    /// resumes.
    pub(super) fn starts_again(&mut self, now: Time) -> Option<Time> {
        let handover = self.handover.begin(now);
        let promotion = self.life.take_promotion().map(|time| self.handover.interrupt(now, time));
        promotion.or(handover)
    }

    /// Starts a handover at `now`: unacknowledged data returns to the queue, and is sent from `resumes_at` on.
    pub(super) fn hand_over(&mut self, now: Time, resumes_at: Time) {
        for leg in &mut self.legs {
            leg.aggregation.reset(now);
            leg.rlc.forward(resumes_at);
        }
    }

    /// Size in bytes of transport blocks on a link for all data that may be sent at `now`.
    pub(super) fn wanted(&self, link: usize, now: Time) -> u64 {
        self.legs[self.leg_index(link)].rlc.wanted(now)
    }

    /// Fills a transport block of `room` bytes that is sent on a link at `now`.
    pub(super) fn fill(&mut self, link: usize, now: Time, room: u32) -> Content {
        self.rlc_mut(link).fill(now, room)
    }

    /// Processes a transport block, sent on a link at `now`, that was decoded. The device passes on its packets at `at`.
    pub(super) fn decoded(
        &mut self,
        link: usize,
        now: Time,
        content: Content,
        at: Time,
        release: &mut dyn FnMut(Time, Packet, Fate),
    ) {
        let index = self.leg_index(link);
        let rlc = &mut self.legs[index].rlc;
        match &mut self.split {
            Some(split) => rlc.decoded(now, content, &mut |packet, fate| {
                split.receive(index, at, packet, fate, release);
            }),
            None => rlc.decoded(now, content, &mut |packet, fate| release(at, packet, fate)),
        }
    }

    /// Processes a transport block on a link for which HARQ failed with the transmission at `now`.
    pub(super) fn failed(&mut self, link: usize, now: Time, content: Content) {
        self.rlc_mut(link).failed(now, content);
    }
}
