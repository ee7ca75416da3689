//! LTE uplink: buffers in the devices, scheduling requests, the base station's grants, and delivery of the data.
//!
//! Path of a packet: [`Cell::push_uplink`] → its device's buffer (`sender`), which the device reports (`buffer_status`) →
//! the base station's estimate of the buffer (`knowledge`) → a grant of adjacent PRBs (`lte_carrier`), with the MCS from
//! `adaptation` → a block four subframes later, retransmitted every 8 ms if it is lost (`lte_carrier`) → reordered (the
//! cell's `rlc`) → [`Cell::pop_uplink`].
//!
//! In subframe n:
//!
//! 1. Packets that arrived at least `ue_processing_ms` ago enter the buffers.
//! 2. Devices fill the blocks granted in n-4. Blocks that were lost in n-8 are retransmitted on the same PRBs.
//! 3. Devices whose data has no grant send a scheduling request, if n is their opportunity.
//! 4. The base station has decoded the transmissions of n-4 and grants PRBs of n+4.
//!
//! A packet that arrives at an idle device therefore waits for the device's next opportunity; its block is sent 8 ms
//! after that opportunity. Packets that are complete after a block are in the core network at n+1 ms +
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

use airpace_core::tables::lte;
use airpace_core::{Bytes, DeviceId, Direction, Packet, Time};
use airpace_event::{Capacity, Fate, Owner};
use airpace_radio::{Dci, Rnti};

use super::carriers::{CarrierPrbs, Load};
use super::lte::FEEDBACK;
use super::rlc::Rlc;
use crate::link::Exit;

mod adaptation;
mod buffer_status;
mod build;
mod knowledge;
mod lte_carrier;
mod sender;
mod user;

pub(super) use build::uplink;
use lte_carrier::{Turn, UplinkCarrier};
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
    /// Number of bits of the largest block of any device, at the maximum mean signal level of the run.
    best_block_bits: u64,
    enb_processing: Duration,
    ue_processing: Duration,
    /// Transmitted packets (delivered or lost) that left the uplink. `refused` are packets that a full buffer refused.
    /// Both lists are in order of time.
    over: VecDeque<Exit>,
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
        let first =
            if time_of(&self.over) < time_of(&self.refused) { &mut self.over } else { &mut self.refused };
        if time_of(first) <= now { first.pop_front() } else { None }
    }

    /// Time of the next packet that leaves the uplink, among the packets in `over` and `refused`.
    pub(super) fn poll_timeout(&self) -> Time {
        time_of(&self.over).min(time_of(&self.refused))
    }

    /// Runs a subframe.
    pub(super) fn run(&mut self, subframe: u64) {
        if !self.is_awake {
            return;
        }
        let now = Time::from_millis(subframe);
        let leaves_at = Time::from_millis(subframe + 1) + self.enb_processing;
        let over = &mut self.over;
        let mut release = |packet, fate| over.push_back(Exit { time: leaves_at, packet, fate });
        for user in &mut self.users[..self.devices] {
            if let Source::Device(sender, _) = &mut user.source {
                sender.begin(now, &mut release);
            }
        }
        let mut turn =
            Turn { subframe, now, users: &mut self.users, shared: &self.shared, release: &mut release };
        for carrier in &mut self.carriers {
            carrier.arrive(subframe, turn.users);
            carrier.fill(&mut turn);
        }
        for carrier in &mut self.carriers {
            carrier.transmit(&mut turn);
            carrier.learn(&mut turn);
        }
        for user in &mut turn.users[..self.devices] {
            if let Source::Device(sender, knowledge) = &mut user.source {
                if sender.asks(now) {
                    knowledge.request(now, now + FEEDBACK);
                }
                knowledge.hear(now);
                sender.end(now);
            }
        }
        for carrier in &mut self.carriers {
            carrier.schedule(&mut turn);
        }
        for index in 0..self.devices {
            self.aggregate(index, now);
        }
    }

    /// The grants sent on a carrier in the last subframe, with their owners.
    pub(super) fn grants(&self, carrier: usize) -> &[(Dci, Owner)] {
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
        for link in &mut user.links {
            link.sounding.reset();
            link.repeating = 0;
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

    /// Capacity for a device in the last subframe that was run, in IP bytes.
    pub(super) fn capacity(&mut self, device: DeviceId, packet: Bytes, subframe: u64) -> Capacity {
        let now = Time::from_millis(subframe);
        let user = &mut self.users[usize::from(device.0)];
        let active = user.active_links(now);
        let mut bytes = Bytes::ZERO;
        for link in &mut user.links[..active] {
            let carrier = &self.carriers[usize::from(link.carrier)];
            // Grants to others may scatter the idle PRBs. The base station could have placed these grants so that the
            // idle PRBs are contiguous. Therefore all idle PRBs count.
            let idle = carrier.region.without(carrier.used).len();
            let sinr_db = link.channel.at(subframe).sinr_db;
            bytes += link.carried(&self.shared, idle + link.prbs_in(now), sinr_db, packet);
        }
        let span = Duration::from_millis(1);
        Capacity { time: now, span, device, direction: Direction::Uplink, bytes }
    }

    /// Capacity of all PRBs for a device in the last subframe that was run, in IP bytes.
    pub(super) fn whole_band(&mut self, device: DeviceId, packet: Bytes, subframe: u64) -> Bytes {
        let user = &mut self.users[usize::from(device.0)];
        let active = user.active_links(Time::from_millis(subframe));
        let mut bytes = Bytes::ZERO;
        for link in &mut user.links[..active] {
            let carrier = &self.carriers[usize::from(link.carrier)];
            let sinr_db = link.channel.at(subframe).sinr_db;
            bytes += link.carried(&self.shared, carrier.region.len(), sinr_db, packet);
        }
        bytes
    }

    /// Base delay: the processing times at both ends, plus the number of subframes that the packet needs.
    pub(super) fn base_delay(&self, bytes: Bytes) -> Duration {
        let subframes = bytes.bits().0.div_ceil(self.best_block_bits).max(1);
        self.ue_processing + Duration::from_millis(subframes) + self.enb_processing
    }

    /// Activates and deactivates a device's further uplink carriers, depending on the device's uplink load.
    ///
    /// Chosen: independent of the device's downlink carriers, because the load of the downlink may differ.
    fn aggregate(&mut self, index: usize, now: Time) {
        let user = &mut self.users[index];
        let Source::Device(sender, _) = &mut user.source else { return };
        let active = sender.aggregation.active();
        let mut load = Load { queue_bytes: sender.backlog().0, ..Load::default() };
        for (place, link) in user.links[..active].iter().enumerate() {
            let carrier = &self.carriers[usize::from(link.carrier)];
            let prbs = CarrierPrbs {
                total: carrier.region.len().into(),
                own: link.prbs_in(now).into(),
                used: carrier.used.len().into(),
            };
            let others = carrier.wanting - usize::from(link.wanted_in == Some(now));
            load.count(prbs, others, place + 1 == active);
        }
        sender.aggregation.observe(now, load);
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
    fn carried(&self, shared: &Shared, prbs: u16, sinr_db: f64, packet: Bytes) -> Bytes {
        let carried_on = |prbs: u16| {
            let mcs = self.sounding.mcs_or_of(&shared.table, prbs, sinr_db)?;
            let block = shared.table.block(mcs, prbs);
            let judged_db = shared.table.judged_db(mcs, sinr_db - self.sounding.thinning_db(prbs));
            let goodput = 1.0 / (1.0 + shared.bler.first_error(block, judged_db));
            Some(shared.framing.ip_bytes(block.bits.0 as f64 * goodput, 1, packet))
        };
        let most = lte::pusch_size_within(prbs);
        let least = if self.sounding.is_power_limited(most) { 1 } else { most.max(1) };
        let sizes = (least..=most).filter(|&prbs| lte::pusch_size_within(prbs) == prbs);
        sizes.filter_map(carried_on).max().unwrap_or(Bytes::ZERO)
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

    /// Bytes of a device's packets that are still in the uplink.
    pub(super) fn held(&self, device: usize) -> Bytes {
        let is_own = |exit: &&Exit| usize::from(exit.packet.device.0) == device;
        let exits = self.over.iter().chain(&self.refused).filter(is_own);
        self.sender(device).rlc.held() + exits.map(|exit| exit.packet.bytes).sum()
    }
}

fn time_of(exits: &VecDeque<Exit>) -> Time {
    exits.front().map_or(Time::NEVER, |exit| exit.time)
}
