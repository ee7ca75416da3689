//! The base station's state of a device of the scenario: the legs of its bearer, its handovers and its RRC state.

use std::ops::Range;

use airpace_core::{Bytes, Packet, Time};
use airpace_event::Fate;

use super::carriers::Aggregation;
use super::config::{Bearer, DualConnectivityConfig, Rat, UplinkPath};
use super::handover::{Coverage, Handover};
use super::life_cycle::LifeCycle;
use super::pdcp::{LTE, NR, SplitBearer};
use super::rlc::{Content, Rlc};

/// State that only devices have.
#[derive(Debug)]
pub(super) struct Device {
    /// The legs of the bearer: one, or those of LTE and NR with a split bearer or with changes between NR and LTE.
    legs: Vec<Leg>,
    /// PDCP of a bearer with two legs; `None` if there is one leg.
    split: Option<SplitBearer>,
    pub handover: Handover,
    pub life: LifeCycle,
    /// Maximum number of bytes that wait in PDCP and on all legs.
    limit: Bytes,
    coverage: Coverage,
    /// The legs in use where NR covers the device, and the technology of its uplink there.
    bearer: Bearer,
    uplink: UplinkPath,
}

/// A leg of a bearer: the carriers of one node, with their common queue.
#[derive(Debug)]
pub(super) struct Leg {
    pub rlc: Rlc,
    pub aggregation: Aggregation,
    /// The leg's links among those of the user, its primary link first.
    pub links: Range<usize>,
    /// Time from which on the leg carries data; [`Time::NEVER`] while the leg is not in use.
    pub usable_from: Time,
}

impl Leg {
    /// Whether packets are sent on the leg, now or after an interruption.
    pub(super) fn is_in_use(&self) -> bool {
        self.usable_from != Time::NEVER
    }
}

/// A device's change between the legs of LTE and of NR.
#[derive(Clone, Debug)]
pub(super) struct TechnologyChange {
    /// Links that the device leaves, and links that it starts to use.
    pub left: Range<usize>,
    pub entered: Range<usize>,
    /// Whether no leg stays in use.
    pub is_complete: bool,
    /// The technology of the uplink from now on.
    pub uplink: Rat,
    /// Time from which on the new leg carries data.
    pub resumes_at: Time,
}

impl Device {
    /// A device with these legs. Two legs have the settings of a split bearer, and `coverage` contains the times at which NR
    /// does not cover the device.
    pub(super) fn new(
        mut legs: Vec<Leg>,
        dual: &DualConnectivityConfig,
        handover: Handover,
        coverage: Coverage,
        life: LifeCycle,
        limit: Bytes,
    ) -> Device {
        let in_use = in_use(dual.bearer, true);
        let split = (legs.len() > 1).then(|| SplitBearer::new(dual, in_use));
        for (leg, _) in legs.iter_mut().zip(in_use).filter(|(_, is_used)| split.is_some() && !is_used) {
            leg.usable_from = Time::NEVER;
        }
        Device { legs, split, handover, life, limit, coverage, bearer: dual.bearer, uplink: dual.uplink }
    }

    /// The legs.
    pub(super) fn legs(&self) -> &[Leg] {
        &self.legs
    }

    /// Mutable access to the legs.
    pub(super) fn legs_mut(&mut self) -> &mut [Leg] {
        &mut self.legs
    }

    /// Whether the bearer is split between two legs.
    pub(super) fn is_split(&self) -> bool {
        self.split.is_some()
    }

    /// Records the capacity of each leg of a split bearer in the last millisecond, in bytes.
    pub(super) fn observe(&mut self, bytes: [Bytes; 2]) {
        if let Some(split) = &mut self.split {
            split.observe(bytes);
        }
    }

    /// Bytes that wait for any leg.
    pub(super) fn waiting(&self) -> Bytes {
        self.split.as_ref().map_or(Bytes::ZERO, SplitBearer::waiting)
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
        leg.usable_from <= now
            && !self.handover.is_interrupted(now)
            && link - leg.links.start < leg.aggregation.active()
    }

    /// Bytes queued for their first transmission.
    pub(super) fn queued(&self) -> Bytes {
        self.waiting() + self.legs.iter().map(|leg| leg.rlc.queued()).sum()
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
        let in_use = self.legs.iter().filter(|leg| leg.is_in_use());
        let for_carriers = in_use.filter_map(|leg| leg.aggregation.needed_queue()).max();
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
        match &mut self.split {
            Some(split) => {
                split.push(ready, packet);
                true
            }
            None => self.legs[0].rlc.push(ready, packet),
        }
    }

    /// Sends packets from PDCP to the legs of a split bearer.
    fn fill_legs(&mut self, now: Time) {
        let Some(split) = &mut self.split else { return };
        let legs = &mut self.legs;
        while let Some((leg, ready, packet)) = split.send(now, [LTE, NR].map(|leg| legs[leg].rlc.queued())) {
            legs[leg].rlc.push_forwarded(ready, packet);
        }
    }

    /// Starts a slot at `now`: carriers become active, packets become ready, timers expire. The device passes on packets
    /// that are released at `at`.
    pub(super) fn begin(&mut self, now: Time, at: Time, release: &mut dyn FnMut(Time, Packet, Fate)) {
        self.fill_legs(now);
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

    /// If NR starts or stops to cover the device at `now`, changes the legs in use. The packets of a leg that the device
    /// leaves are sent on the other leg.
    pub(super) fn change_technology(&mut self, now: Time) -> Option<TechnologyChange> {
        let has_nr = self.coverage.begin(now)?;
        let split = self.split.as_mut()?;
        let before = [LTE, NR].map(|leg| self.legs[leg].is_in_use());
        let after = in_use(self.bearer, has_nr);
        if after == before {
            return None;
        }
        let resumes_at = self.handover.change_technology(now);
        let mut change = TechnologyChange {
            left: 0..0,
            entered: 0..0,
            is_complete: before != [true, true] && after != [true, true],
            uplink: if has_nr && self.uplink == UplinkPath::Nr { Rat::Nr } else { Rat::Lte },
            resumes_at,
        };
        split.set_in_use(after);
        for leg in [LTE, NR].into_iter().filter(|&leg| !before[leg] && after[leg]) {
            self.legs[leg].usable_from = resumes_at;
            self.legs[leg].aggregation.reset(now);
            change.entered = self.legs[leg].links.clone();
        }
        for leg in [LTE, NR].into_iter().filter(|&leg| before[leg] && !after[leg]) {
            self.legs[leg].usable_from = Time::NEVER;
            change.left = self.legs[leg].links.clone();
            split.take_back(leg, now, self.legs[leg].rlc.take_all());
        }
        Some(change)
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

/// The legs (LTE, NR) of a device with this bearer, where NR covers it or not.
fn in_use(bearer: Bearer, has_nr: bool) -> [bool; 2] {
    match bearer {
        _ if !has_nr => [true, false],
        Bearer::Split => [true, true],
        Bearer::Scg => [false, true],
        Bearer::Mcg => [true, false],
    }
}
