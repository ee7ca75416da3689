//! Uplink: buffers in the devices, scheduling requests, the base station's grants, and delivery of the data.
//!
//! Path of a packet: [`Cell::push_uplink`] → its device's buffer (`sender`), which the device reports (`buffer_status`) →
//! the base station's estimate of the buffer (`knowledge`) → a grant of adjacent PRBs (`carrier`), with the MCS from
//! `adaptation` → a block, retransmitted if it is lost (`carrier`) → reordered (the cell's `rlc`) → [`Cell::pop_uplink`].
//! `air` has what LTE and NR do differently: the times, HARQ, and the sizes of grants.
//!
//! In slot n, which is a subframe in LTE:
//!
//! 1. Packets that arrived at least `ue_processing_ms` ago enter the buffers.
//! 2. Devices fill the blocks granted for n. LTE: blocks that were lost in n-8 are retransmitted on the same PRBs.
//! 3. Devices whose data has no grant send a scheduling request, if n is their opportunity.
//! 4. The base station has decoded the transmissions up to n-4 in LTE, and up to n-1 less its processing time in NR, and
//!    grants PRBs of n+4 in LTE, and of the uplink slots that n grants in NR.
//!
//! A packet that arrives at an idle device therefore waits for the device's next opportunity; in LTE, its block is sent
//! 8 ms after that opportunity. Packets that are complete after a block are in the core network at the end of the slot +
//! `enb_processing_ms`.
//!
//! The uplink does not run, and draws no random number, until the first packet is pushed.
//!
//! Differs: requests, grants and their acknowledgements are never misread, so a device never has to fall back to random
//! access.
//!
//! [`Cell::push_uplink`]: super::Cell::push_uplink
//! [`Cell::pop_uplink`]: super::Cell::pop_uplink

use std::collections::VecDeque;
use std::time::Duration;

use airpace_core::{Bytes, DeviceId, Direction, Packet, Time};
#[cfg(test)]
use airpace_event::Owner;
use airpace_event::{Capacity, Fate};
use airpace_radio::Rnti;

use super::carriers::{CarrierPrbs, Load};
use super::device::TechnologyChange;
use super::rlc::Rlc;
use super::{BestBlock, Exits};
use crate::link::Exit;

mod adaptation;
mod air;
mod buffer_status;
mod build;
mod carrier;
mod knowledge;
mod sender;
mod user;

use air::UplinkAir;
pub(super) use build::uplink;
pub(super) use carrier::SentGrant;
use carrier::{Turn, UplinkCarrier};
use sender::Sender;
use user::{Shared, Source, UplinkUser};

/// The uplink of a cell.
#[derive(Debug)]
pub(super) struct Uplink {
    shared: Shared,
    carriers: Vec<UplinkCarrier>,
    /// The scenario's devices, in their order, followed by the background users.
    users: Vec<UplinkUser>,
    devices: usize,
    /// Whether any packet was ever pushed.
    is_awake: bool,
    /// The largest block of each device on the first carrier of each of its legs, at the maximum mean signal level of the run.
    best_blocks: Vec<BestBlock>,
    /// Number of ticks of the cell per ms.
    ticks_per_ms: u64,
    enb_processing: Duration,
    ue_processing: Duration,
    /// Transmitted packets (delivered or lost) that left the uplink. `refused` are packets that a full buffer refused.
    /// Both lists are in order of time.
    over: Exits,
    refused: VecDeque<Exit>,
}

impl Uplink {
    /// Takes a packet that its device sends.
    pub(super) fn push(&mut self, now: Time, packet: Packet) {
        self.is_awake = true;
        let ready = now + self.ue_processing;
        if !self.sender_mut(usize::from(packet.device.0)).rlc.push(ready, packet) {
            self.refused.push_back(Exit { time: now, packet, fate: Fate::QueueFull });
        }
    }

    /// Whether a full buffer has refused packets that the driver has not popped yet.
    pub(super) fn has_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    /// The next packet that left the uplink by `now`.
    pub(super) fn pop(&mut self, now: Time) -> Option<Exit> {
        let over = &mut self.over.exits;
        let first = if time_of(over) < time_of(&self.refused) { over } else { &mut self.refused };
        if time_of(first) <= now { first.pop_front() } else { None }
    }

    /// Time of the next packet that leaves the uplink, among the packets in `over` and `refused`.
    pub(super) fn poll_timeout(&self) -> Time {
        time_of(&self.over.exits).min(time_of(&self.refused))
    }

    /// Runs the slots that start with a tick of the cell. The tick starts at `now` and ends at `ends`.
    pub(super) fn run(&mut self, tick: u64, now: Time, ends: Time) {
        if !self.is_awake {
            return;
        }
        let leaves_at = ends + self.enb_processing;
        let over = &mut self.over;
        let mut release = |packet, fate| over.push(leaves_at, packet, fate);
        for user in &mut self.users[..self.devices] {
            if let Source::Device(sender, _) = &mut user.source {
                sender.begin(now, &mut release);
            }
        }
        let ticks = Ticks { tick, per_ms: self.ticks_per_ms, now, enb_processing: self.enb_processing };
        let (users, shared) = (&mut self.users, &self.shared);
        for carrier in &mut self.carriers {
            ticks.in_slot(carrier, users, shared, over, |carrier, turn| {
                carrier.arrive(turn);
                carrier.fill(turn);
            });
        }
        for carrier in &mut self.carriers {
            ticks.in_slot(carrier, users, shared, over, |carrier, turn| {
                carrier.transmit(turn);
                carrier.learn(turn);
            });
        }
        for user in &mut users[..self.devices] {
            if let Source::Device(sender, knowledge) = &mut user.source {
                let link = &user.links[sender.first_link()];
                let air = &self.carriers[usize::from(link.carrier)].air;
                let Some(slot) = ticks.slot_of(air) else { continue };
                if sender.asks(now, air, slot) {
                    knowledge.request(now, air.reaction(slot));
                }
                knowledge.hear(now);
                sender.end(now);
            }
        }
        for carrier in &mut self.carriers {
            carrier.grants.clear();
            ticks.in_slot(carrier, users, shared, over, |carrier, turn| {
                carrier.measure(turn);
                carrier.schedule(turn);
            });
        }
        if (tick + 1).is_multiple_of(self.ticks_per_ms) {
            let millisecond = Time::from_millis(tick / self.ticks_per_ms);
            (0..self.devices).for_each(|index| self.aggregate(index, millisecond));
        }
    }

    /// The grants sent on a carrier in the last slot.
    pub(super) fn grants(&self, carrier: usize) -> &[SentGrant] {
        &self.carriers[carrier].grants
    }

    /// Starts a device's handover at `now`: the device may send again, as `rnti`, from `resumes_at` on.
    pub(super) fn hand_over(&mut self, device: usize, now: Time, resumes_at: Time, rnti: Rnti) {
        let user = &mut self.users[device];
        user.rnti = rnti;
        if let Source::Device(sender, knowledge) = &mut user.source {
            sender.hand_over(now, resumes_at);
            knowledge.reset();
        }
        self.discard_blocks(device);
    }

    /// Hands a device over to carriers of the other technology at `now`, if its uplink changes, too. The device is `rnti` from
    /// now on.
    pub(super) fn change_technology(
        &mut self,
        device: usize,
        now: Time,
        change: &TechnologyChange,
        rnti: Rnti,
    ) {
        let user = &mut self.users[device];
        user.rnti = rnti;
        let Source::Device(sender, knowledge) = &mut user.source else { return };
        if sender.change_technology(change.uplink, now, change.resumes_at) {
            knowledge.reset();
            self.discard_blocks(device);
        }
    }

    /// Discards all blocks and measurements of a device.
    fn discard_blocks(&mut self, device: usize) {
        for link in &mut self.users[device].links {
            link.sounding.reset();
            link.busy = 0;
            link.average_bits = 1.0;
        }
        self.carriers.iter_mut().for_each(|carrier| carrier.forget(device as u16));
    }

    /// Passes the STATUS PDUs about the downlink to the uplink's sender, and those about the uplink to the downlink's
    /// sender. Before the first uplink packet, the uplink does not run. The uplink then has no queue, so the bytes of a
    /// STATUS would not delay data.
    pub(super) fn exchange_status(&mut self, device: usize, now: Time, downlink: &mut Rlc) {
        if !self.is_awake {
            return;
        }
        let uplink = &mut self.sender_mut(device).rlc;
        if let Some(bytes) = downlink.take_status(now) {
            uplink.send_status(bytes);
        }
        if let Some(bytes) = uplink.take_status(now) {
            downlink.send_status(bytes);
        }
    }

    /// Bytes queued in a device that were not transmitted yet.
    pub(super) fn backlog_of(&self, device: DeviceId) -> Bytes {
        self.sender(usize::from(device.0)).backlog()
    }

    /// Capacity for a device in the millisecond that was run last, in IP bytes.
    pub(super) fn capacity(&mut self, device: DeviceId, packet: Bytes, millisecond: u64) -> Capacity {
        let now = Time::from_millis(millisecond);
        let user = &mut self.users[usize::from(device.0)];
        let active = user.active_links(now);
        let mut bytes = Bytes::ZERO;
        for link in &mut user.links[active] {
            let carrier = &self.carriers[usize::from(link.carrier)];
            for share in carrier.shares.iter().filter(|share| share.has_data) {
                let sinr_db = link.channel.at(share.slot).sinr_db;
                let prbs = share.idle_prbs + link.sent.of(share.slot);
                bytes += link.carried(&self.shared, carrier, prbs, sinr_db, packet);
            }
        }
        let span = Duration::from_millis(1);
        Capacity { time: now, span, device, direction: Direction::Uplink, bytes }
    }

    /// Mean capacity of all PRBs for a device in a millisecond, in IP bytes.
    pub(super) fn whole_band(&mut self, device: DeviceId, packet: Bytes, millisecond: u64) -> Bytes {
        let user = &mut self.users[usize::from(device.0)];
        let active = user.active_links(Time::from_millis(millisecond));
        let mut bytes = Bytes::ZERO;
        for link in &mut user.links[active] {
            let carrier = &self.carriers[usize::from(link.carrier)];
            let sinr_db = link.channel.at(millisecond * carrier.air.slots_per_ms()).sinr_db;
            let of_slot = link.carried(&self.shared, carrier, carrier.region.len(), sinr_db, packet);
            bytes += of_slot.scaled(carrier.air.data_slots_per_ms());
        }
        bytes
    }

    /// Base delay: the processing times at both ends, plus the time in which the packet's slots can be sent.
    pub(super) fn base_delay(&self, bytes: Bytes) -> Duration {
        let on_air = |best: &BestBlock| {
            let slots = bytes.bits().0.div_ceil(best.bits).max(1);
            self.carriers[usize::from(best.carrier)].air.shortest(slots)
        };
        let shortest = self.best_blocks.iter().map(on_air).min();
        self.ue_processing + shortest.unwrap_or(Duration::from_millis(1)) + self.enb_processing
    }

    /// Maximum time from a block with a buffer status report to the block that is granted in answer to the report.
    pub(super) fn longest_turnaround(&self) -> Duration {
        self.carriers.iter().map(|carrier| carrier.air.longest_turnaround()).max().unwrap_or_default()
    }

    /// Activates and deactivates a device's further uplink carriers, depending on the device's uplink load.
    ///
    /// Chosen: independent of the device's downlink carriers, because the load of the downlink may differ.
    fn aggregate(&mut self, index: usize, now: Time) {
        let user = &mut self.users[index];
        let Source::Device(sender, _) = &mut user.source else { return };
        let active = sender.active_links();
        let mut load = Load { queue_bytes: sender.backlog().0, ..Load::default() };
        let mut has_data = false;
        for (place, link) in user.links[active.clone()].iter().enumerate() {
            let carrier = &self.carriers[usize::from(link.carrier)];
            let mut prbs = CarrierPrbs::default();
            for share in carrier.shares.iter().filter(|share| share.has_data) {
                prbs.total += u32::from(carrier.region.len());
                prbs.own += u32::from(link.sent.of(share.slot));
                prbs.used += u32::from(carrier.region.len() - share.idle_prbs);
            }
            has_data |= prbs.total > 0;
            let granted_at = carrier.granted_in.map(|slot| carrier.air.start(slot));
            let is_wanted = granted_at.is_some() && link.wanted_in == granted_at;
            load.count(prbs, carrier.wanting - usize::from(is_wanted), place + 1 == active.len());
        }
        // A millisecond without uplink slots says nothing about the load.
        if has_data {
            sender.aggregation().observe(now, load);
        }
    }

    fn sender(&self, device: usize) -> &Sender {
        match &self.users[..self.devices][device].source {
            Source::Device(sender, _) => sender,
            _ => unreachable!("users below `devices` are devices"),
        }
    }

    fn sender_mut(&mut self, device: usize) -> &mut Sender {
        match &mut self.users[..self.devices][device].source {
            Source::Device(sender, _) => sender,
            _ => unreachable!("users below `devices` are devices"),
        }
    }
}

impl user::UplinkLink {
    /// Maximum number of IP bytes in a block on at most `prbs` PRB pairs at the current MCS and SINR. Expected block
    /// errors and headers are subtracted.
    fn carried(
        &self,
        shared: &Shared,
        carrier: &UplinkCarrier,
        prbs: u16,
        sinr_db: f64,
        packet: Bytes,
    ) -> Bytes {
        let UplinkCarrier { air, table, .. } = carrier;
        let carried_on = |prbs: u16| {
            let mcs = self.sounding.mcs_or_of(table, prbs, sinr_db)?;
            let block = table.block(mcs, prbs);
            let judged_db = table.judged_db(mcs, sinr_db - self.sounding.thinning_db(prbs));
            let goodput = 1.0 / (1.0 + shared.bler.first_error(block, judged_db));
            Some(carrier.framing.ip_bytes(block.bits.0 as f64 * goodput, 1, packet))
        };
        let most = air.size_within(prbs);
        let least = if self.sounding.is_power_limited(most) { 1 } else { most.max(1) };
        let sizes = (least..=most).filter(|&prbs| air.size_within(prbs) == prbs);
        sizes.filter_map(carried_on).max().unwrap_or(Bytes::ZERO)
    }
}

/// The slots that start with a tick of the cell.
struct Ticks {
    tick: u64,
    per_ms: u64,
    /// Start of the tick.
    now: Time,
    enb_processing: Duration,
}

impl Ticks {
    /// The slot of a carrier that starts with the tick; `None` if none does.
    fn slot_of(&self, air: &UplinkAir) -> Option<u64> {
        let ticks_per_slot = self.per_ms / air.slots_per_ms();
        self.tick.is_multiple_of(ticks_per_slot).then_some(self.tick / ticks_per_slot)
    }

    /// Calls `step` if a slot of the carrier starts with the tick.
    fn in_slot(
        &self,
        carrier: &mut UplinkCarrier,
        users: &mut [UplinkUser],
        shared: &Shared,
        over: &mut Exits,
        step: impl FnOnce(&mut UplinkCarrier, &mut Turn<'_>),
    ) {
        let Some(slot) = self.slot_of(&carrier.air) else { return };
        let leaves_at = carrier.air.start(slot + 1) + self.enb_processing;
        let mut release = |packet, fate| over.push(leaves_at, packet, fate);
        let starts_ms = self.tick.is_multiple_of(self.per_ms);
        let millisecond = starts_ms.then_some(self.tick / self.per_ms);
        step(carrier, &mut Turn { slot, now: self.now, millisecond, users, shared, release: &mut release });
    }
}

/// A block in the next subframe, in a form for tests.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OnAir {
    pub owner: Owner,
    pub carrier: u8,
    pub prbs: airpace_radio::PrbSet,
    pub mcs: u8,
    /// Number of earlier transmissions of the block.
    pub transmissions: u8,
}

#[cfg(test)]
impl Uplink {
    /// The blocks of the next subframe, whose number is `subframe`.
    pub(super) fn due_in(&self, subframe: u64) -> impl Iterator<Item = OnAir> {
        (0..).zip(&self.carriers).flat_map(move |(index, carrier)| {
            carrier.due_in(subframe).map(move |(user, prbs, mcs, transmissions)| OnAir {
                owner: self.users[usize::from(user)].owner,
                carrier: index,
                prbs,
                mcs,
                transmissions,
            })
        })
    }

    /// Number of PRBs with a transmission in the last slot of each carrier.
    pub(super) fn used_prbs(&self) -> u32 {
        self.carriers.iter().map(|carrier| u32::from(carrier.used.len())).sum()
    }

    /// Bytes of a device's packets that are still in the uplink.
    pub(super) fn held(&self, device: usize) -> Bytes {
        let is_own = |exit: &&Exit| usize::from(exit.packet.device.0) == device;
        let exits = self.over.exits.iter().chain(&self.refused).filter(is_own);
        self.sender(device).rlc.held() + exits.map(|exit| exit.packet.bytes).sum()
    }
}

fn time_of(exits: &VecDeque<Exit>) -> Time {
    exits.front().map_or(Time::NEVER, |exit| exit.time)
}
