//! Cell model of LTE FDD and NR: queues, scheduler, HARQ, RLC and carriers between a base station and its devices, slot by
//! slot.
//!
//! Downlink path of a packet: [`Cell::push`] → the device's queue → a part of a transport block on some carrier (`rlc`,
//! `scheduler`) → received, or retransmitted later (`harq`) → reordered (`rlc`) → `Cell::pop`.
//!
//! | part | content |
//! | --- | --- |
//! | [`config`], `plan` | the `[cell]` table and a device's radio; the validated configuration |
//! | [`channel`], [`bler`], [`adaptation`] | SINR per RBG; block errors; CQI and MCS |
//! | `carrier` | the steps of one slot of one carrier |
//! | `air`, `region` | what LTE and NR do differently in these steps; the part of a slot that carries data |
//! | `lte` | LTE's control region and HARQ times |
//! | `nr`, [`pattern`] | NR's control region, broadcast and HARQ times; TDD patterns |
//! | `scheduler` | round robin, proportional fair, max C/I over RBGs |
//! | `harq`, `rlc` | retransmissions; segmentation and reordering |
//! | `device`, `pdcp` | the legs of a device's bearer; a bearer that is split between LTE and NR |
//! | `carriers`, `handover` | activation of further carriers; interruptions |
//! | `life_cycle` | RRC states of devices without data; discontinuous reception |
//! | `uplink` | the uplink: devices' buffers, scheduling requests, grants |
//! | `background` | users that are not devices of the scenario |
//! | `telemetry` | reports to devices that decode the control channel |
//!
//! Timing: the cell advances in ticks, which are the shortest slots of any carrier. A slot can carry packets that arrived
//! at least `enb_processing_ms` before its start. Packets that are complete after a slot leave at the end of the slot +
//! `ue_processing_ms`. In LTE, acknowledgements arrive in subframe n+4, and retransmissions are sent from subframe n+8 on;
//! in NR, both times follow from the TDD pattern.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use airpace_core::{Bytes, DeviceId, Direction, Packet, Time};
use airpace_event::{Capacity, Fate, Owner, Subframe};
use airpace_radio::{OwnRadio, RadioReport};

use crate::link::{Exit, Link};

pub mod adaptation;
mod air;
mod background;
pub mod bler;
mod build;
mod carrier;
mod carriers;
pub mod channel;
pub mod config;
mod device;
mod exits;
mod handover;
mod harq;
mod life_cycle;
mod lte;
mod nr;
pub mod pattern;
mod pdcp;
mod plan;
mod region;
mod rlc;
mod rntis;
mod scheduler;
mod telemetry;
mod uplink;
mod user;

pub use config::{CellConfig, DeviceRadioConfig};
pub use plan::CellPlan;

use bler::Bler;
use carrier::{Carrier, Context, SlotShare};
use carriers::{CarrierPrbs, Load};
use device::Device;
use exits::Exits;
use harq::Groups;
use rlc::Framing;
use rntis::Rntis;
use telemetry::Telemetry;
use uplink::Uplink;
use user::{RadioLink, Source, User};

/// A cell and the radio side of its devices.
///
/// Drive it as a [`Link`]. A driver that calls [`Link::pop`] at every [`Link::poll_timeout`] sees every millisecond in
/// [`Cell::subframes`] and [`Cell::capacity`] right after the call in which [`Cell::subframes_run`] rises.
#[derive(Debug)]
pub struct Cell {
    config: CellConfig,
    bler: Bler,
    carriers: Vec<Carrier>,
    /// The scenario's devices, in their order, followed by the background users.
    users: Vec<User>,
    devices: usize,
    rntis: Rntis,
    /// The next tick to run. A tick is the shortest slot of any carrier.
    tick: u64,
    ticks_per_ms: u64,
    /// Time of the last call of [`Link::pop`].
    popped_at: Time,
    enb_processing: Duration,
    ue_processing: Duration,
    /// The largest block of the primary carrier of each leg of each device, at the maximum mean signal level, without shadowing
    /// and fading.
    best_blocks: Vec<BestBlock>,
    /// Transmitted packets (delivered or lost) that left the cell. `refused` are packets that a full queue refused.
    /// Both lists are in order of time.
    over: Exits,
    refused: VecDeque<Exit>,
    telemetry: Telemetry,
    /// Modem logs: each device's own grants.
    log: Telemetry,
    uplink: Uplink,
    is_recording: bool,
}

/// The largest block of a carrier for a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BestBlock {
    carrier: u8,
    bits: u64,
}

impl Cell {
    /// Sets whether a device receives the messages of the control channel ([`Cell::pop_report`]); initially no device
    /// does.
    ///
    /// # Panics
    ///
    /// If the cell has no such device. All methods with a device as argument panic in this case.
    pub fn set_listening(&mut self, device: DeviceId, is_listening: bool) {
        self.telemetry.set_listening(usize::from(device.0), is_listening);
    }

    /// The next report to a listening device that is due at `now`. A device's reports are in order of carrier and
    /// subframe.
    pub fn pop_report(&mut self, now: Time) -> Option<(DeviceId, &mut RadioReport)> {
        self.telemetry.pop(now)
    }

    /// Whether a full queue, of the cell or of a device, has refused packets that the driver has not popped yet.
    pub fn has_refused(&self) -> bool {
        !self.refused.is_empty() || self.uplink.has_refused()
    }

    /// Whether [`Cell::pop_report`] has a report at `now`.
    pub fn has_report(&self, now: Time) -> bool {
        self.telemetry.poll_timeout().is_some_and(|due| due <= now)
    }

    /// Sets whether a device's modem log is read ([`Cell::pop_own_report`]): the device's own grants of both directions,
    /// without the imperfections of control channel decoding. Initially no log is read.
    pub fn set_logging(&mut self, device: DeviceId, is_logging: bool) {
        self.log.set_listening(usize::from(device.0), is_logging);
    }

    /// The next entry of a modem log at `now`. A device's entries are in order of carrier and subframe. The entry of an
    /// uplink grant is in the subframe in which the grant was sent.
    pub fn pop_own_report(&mut self, now: Time) -> Option<(DeviceId, &mut RadioReport)> {
        self.log.pop(now)
    }

    /// Takes a packet that a device sends; the packet is queued in the device's own buffer.
    pub fn push_uplink(&mut self, now: Time, packet: Packet) {
        self.uplink.push(now, packet);
    }

    /// The next packet that left the uplink by `now`, in order of time: it reached the base station, was refused by its
    /// device's full buffer, or was lost on the radio link. This call runs the cell like [`Link::pop`]; the two methods
    /// may be called in either order.
    pub fn pop_uplink(&mut self, now: Time) -> Option<Exit> {
        self.run_until(now);
        self.uplink.pop(now)
    }

    /// Bytes queued in a device that were not transmitted yet.
    pub fn uplink_backlog_of(&self, device: DeviceId) -> Bytes {
        self.uplink.backlog_of(device)
    }

    /// Uplink capacity of a device in the last subframe, in IP bytes. It is the sum over the device's active uplink
    /// carriers of (PRBs on which the device sent + idle PRBs, limited to the maximum of one grant) × bits per PRB ÷ (1
    /// + probability that a first transmission is lost) less headers, as in [`Cell::capacity`].
    pub fn uplink_capacity(&mut self, device: DeviceId, packet: Bytes) -> Capacity {
        self.uplink.capacity(device, packet, self.last_millisecond())
    }

    /// Minimum delay of a packet over an idle uplink whose device holds a grant: processing at both ends, and the
    /// number of subframes that the packet needs at the best rate for the mean signal level of any device during the
    /// run, without shadowing and fading. The time to request a grant and to wait for the grant counts as queueing.
    pub fn uplink_base_delay(&self, bytes: Bytes) -> Duration {
        self.uplink.base_delay(bytes)
    }

    /// Maximum time that data of a busy device waits before transmission: the time until the next buffer status report
    /// is sent with a block, the time from that block to the grant that answers the report, and the time from the grant
    /// to the granted block.
    ///
    /// Source: TS 36.321 §5.4.5 (periodicBSR-Timer)
    pub fn grant_delay(&self) -> Duration {
        Duration::from_millis(self.config.uplink.periodic_bsr_ms.into()) + self.uplink.longest_turnaround()
    }

    /// Sets whether [`Cell::subframes`] is recorded. Initially it is not recorded.
    pub fn set_recording(&mut self, is_recording: bool) {
        self.is_recording = is_recording;
    }

    /// Records of the slots of the last complete millisecond, carrier by carrier; empty while not recording.
    pub fn subframes(&self) -> impl Iterator<Item = Subframe<'_>> {
        let kept = if self.is_recording && self.subframes_run() > 0 { &self.carriers[..] } else { &[] };
        kept.iter().flat_map(|carrier| {
            carrier
                .accounts
                .iter()
                .map(|account| Subframe { report: &account.report, owners: &account.owners })
        })
    }

    /// Number of complete milliseconds simulated so far.
    pub fn subframes_run(&self) -> u64 {
        self.tick / self.ticks_per_ms
    }

    /// The last complete millisecond; 0 before the first.
    fn last_millisecond(&self) -> u64 {
        self.subframes_run().saturating_sub(1)
    }

    /// Downlink capacity of a device in the last complete millisecond, in IP bytes: the sum over the slots of its active
    /// carriers of (the device's PRBs + idle PRBs) × bits per PRB ÷ (1 + probability that a first transmission is lost)
    /// less headers for packets of this size. In the long run, every lost block, or with code block groups every lost group,
    /// costs its PRBs once more.
    pub fn capacity(&mut self, device: DeviceId, packet: Bytes) -> Capacity {
        let links = 0..self.users[usize::from(device.0)].links.len();
        let bytes = self.capacity_of(device.0.into(), links, packet);
        let span = Duration::from_millis(1);
        let time = Time::from_millis(self.last_millisecond());
        Capacity { time, span, device, direction: Direction::Downlink, bytes }
    }

    /// Capacity of a user's links in the last complete millisecond, in IP bytes.
    fn capacity_of(&mut self, user: usize, links: Range<usize>, packet: Bytes) -> Bytes {
        let now = Time::from_millis(self.last_millisecond());
        let user = &mut self.users[user];
        let mut bytes = Bytes::ZERO;
        for index in links {
            if !user.is_active(index, now) {
                continue;
            }
            let link = &mut user.links[index];
            let carrier = &self.carriers[usize::from(link.carrier)];
            let framing = Framing::new(carrier.air.rat(), &self.config.rlc);
            for share in carrier.shares.iter().filter(|share| share.region.has_data()) {
                let idle = share.usable_prbs.saturating_sub(share.used_prbs);
                let prbs = idle + link.granted.of(share.slot);
                let Some(mcs) = link.adaptation.mcs(share.region.cfi()).filter(|_| prbs > 0) else {
                    continue;
                };
                let block = link.block(mcs, prbs, share.region);
                let snapshot = link.channel.at(share.slot);
                let sinr_db =
                    snapshot.effective_sinr_db(channel::Grid::all(snapshot.grid), block.modulation());
                let groups = Groups::of(block, link.code_block_groups);
                let goodput = 1.0 / (1.0 + groups.error(self.bler.first_error(block, sinr_db)));
                let codewords = link.codewords() as u8;
                let bits = block.bits.0 as f64 * f64::from(codewords) * goodput;
                bytes += framing.ip_bytes(bits, codewords, packet);
            }
        }
        bytes
    }

    /// Bytes of transport blocks that the whole band could have carried to a device in the last complete millisecond,
    /// over its active carriers: the maximum that any scheduler can assign.
    pub fn whole_band(&self, device: DeviceId) -> Bytes {
        let now = Time::from_millis(self.last_millisecond());
        let user = &self.users[usize::from(device.0)];
        let bits_of = |link: &RadioLink| {
            let shares = self.carriers[usize::from(link.carrier)].shares.iter();
            let in_slot = |share: &SlotShare| {
                let mcs = link.adaptation.mcs(share.region.cfi())?;
                Some(link.block_size(mcs, share.region).bits(share.usable_prbs))
            };
            shares.filter(|share| share.region.has_data()).filter_map(in_slot).sum::<u64>()
        };
        let links = user.links.iter().enumerate().filter(|(index, _)| user.is_active(*index, now));
        let bits: u64 = links.map(|(_, link)| bits_of(link)).sum();
        Bytes(bits.div_ceil(8))
    }

    /// Minimum queue that saturates a device: with this many bytes queued at every millisecond, the device is served as
    /// with an infinite queue. This queue is the capacity of [`Cell::subframes_in_preparation`] + 1 subframes on all
    /// its carriers at the highest MCS, plus the queue that activates its next carrier and the queue for NR with which a
    /// split bearer also uses LTE.
    pub fn saturating(&self, device: DeviceId) -> Bytes {
        let bits_of = |link: &RadioLink| {
            let air = &self.carriers[usize::from(link.carrier)].air;
            let size = link.block_size(link.table.last_mcs(), air.reported_region());
            size.bits(link.channel.grid().prbs) * air.slots_per_ms()
        };
        let links = &self.users[usize::from(device.0)].links;
        let in_use = self.device(device).legs().iter().filter(|leg| leg.is_in_use());
        let bits: u64 = in_use.flat_map(|leg| &links[leg.links.clone()]).map(bits_of).sum();
        let for_all_carriers = self.device(device).needed_queue();
        Bytes(bits.div_ceil(8) * (self.subframes_in_preparation() + 1)) + for_all_carriers
    }

    /// Number of subframes for which data must be queued so that every subframe has enough data: the subframe itself,
    /// and the subframes that pass while later packets are processed.
    pub fn subframes_in_preparation(&self) -> u64 {
        1 + self.enb_processing.as_micros().div_ceil(1000) as u64
    }

    /// Number of a device's bytes that the base station has put into blocks so far, without retransmissions.
    pub fn sent_to(&self, device: DeviceId) -> Bytes {
        self.device(device).sent()
    }

    /// IP bytes that the whole band could have carried from a device in the last subframe, over its active uplink
    /// carriers.
    pub fn uplink_whole_band(&mut self, device: DeviceId, packet: Bytes) -> Bytes {
        self.uplink.whole_band(device, packet, self.last_millisecond())
    }

    /// Free space in a device's queue (bytes).
    pub fn room_for(&self, device: DeviceId) -> Bytes {
        self.device(device).room()
    }

    /// Bytes queued for a device that were not transmitted yet.
    pub fn backlog_of(&self, device: DeviceId) -> Bytes {
        self.device(device).queued()
    }

    /// Number of a device's active carriers.
    pub fn active_carriers(&self, device: DeviceId) -> usize {
        self.device(device)
            .legs()
            .iter()
            .filter(|leg| leg.is_in_use())
            .map(|leg| leg.aggregation.active())
            .sum()
    }

    fn device(&self, device: DeviceId) -> &Device {
        match &self.users[usize::from(device.0)].source {
            Source::Device(device) => device,
            _ => unreachable!("users below `devices` are devices"),
        }
    }

    /// Start of a tick.
    fn start_of(&self, tick: u64) -> Time {
        Time::from_nanos(tick * (1_000_000 / self.ticks_per_ms))
    }

    /// Runs the ticks that start by `now`.
    fn run_until(&mut self, now: Time) {
        while self.start_of(self.tick) <= now {
            self.run_tick();
        }
    }

    /// Runs the slots that start with the next tick.
    fn run_tick(&mut self) {
        let tick = self.tick;
        let now = self.start_of(tick);
        let millisecond = tick.is_multiple_of(self.ticks_per_ms).then_some(tick / self.ticks_per_ms);
        self.tick += 1;
        let tick_ends = self.start_of(self.tick);
        let ue_processing = self.ue_processing;
        let over = &mut self.over;
        let mut release = |time, packet, fate| over.push(time, packet, fate);
        for (index, user) in self.users[..self.devices].iter_mut().enumerate() {
            if let Some(change) = user.change_technology(now, &mut self.rntis) {
                self.uplink.change_technology(index, now, &change, user.rnti);
            }
            if let Source::Device(device) = &mut user.source {
                if device.queued() > Bytes::ZERO {
                    device.life.on_data(now, Direction::Downlink);
                }
                if self.uplink.backlog_of(DeviceId(index as u16)) > Bytes::ZERO {
                    device.life.on_data(now, Direction::Uplink);
                }
            }
            let leaves_at = tick_ends + ue_processing;
            if let Some(resumes_at) = user.begin(now, leaves_at, &mut self.rntis, &mut release) {
                self.uplink.hand_over(index, now, resumes_at, user.rnti);
            }
            if let Source::Device(device) = &mut user.source {
                for leg in device.legs_mut().iter_mut().filter(|leg| leg.usable_from <= now) {
                    self.uplink.exchange_status(index, now, &mut leg.rlc);
                }
            }
        }
        self.uplink.run(tick, now, tick_ends);
        let wants_account = self.is_recording || self.telemetry.has_listeners() || self.log.has_listeners();
        for (index, carrier) in self.carriers.iter_mut().enumerate() {
            let ticks_per_slot = self.ticks_per_ms / carrier.air.slots_per_ms();
            if !tick.is_multiple_of(ticks_per_slot) {
                continue;
            }
            let slot_ends = now + Duration::from_nanos(ticks_per_slot * (1_000_000 / self.ticks_per_ms));
            let over = &mut self.over;
            let mut release = |time, packet, fate| over.push(time, packet, fate);
            let mut context = Context {
                slot: tick / ticks_per_slot,
                now,
                millisecond,
                users: &mut self.users,
                bler: &self.bler,
                max_retransmissions: self.config.harq.max_retransmissions,
                max_users: usize::from(self.config.max_users_per_subframe),
                wants_account,
                leaves_at: slot_ends + ue_processing,
                release: &mut release,
            };
            let grants = self.uplink.grants(index);
            for grant in grants {
                if let Owner::Device(device) = grant.owner
                    && let Source::Device(device) = &mut context.users[usize::from(device.0)].source
                {
                    device.life.on_grant(now);
                }
            }
            carrier.run(&mut context, grants);
            let slot = context.slot;
            for grant in grants.iter().filter(|_| wants_account) {
                carrier.account_of(slot).add(grant.dci, grant.owner, [grant.reserved_mcs, None]);
            }
        }
        for index in 0..self.devices {
            self.tell(index, tick);
        }
        if self.tick.is_multiple_of(self.ticks_per_ms) {
            let millisecond = Time::from_millis(tick / self.ticks_per_ms);
            for index in 0..self.devices {
                self.aggregate(index, millisecond);
                self.observe_legs(index);
            }
        }
    }

    /// Reports the capacity of each leg in the last millisecond to a device's split bearer.
    fn observe_legs(&mut self, index: usize) {
        let legs = match &self.users[index].source {
            Source::Device(device) if device.is_split() => [0, 1].map(|leg| device.legs()[leg].links.clone()),
            _ => return,
        };
        let bytes = legs.map(|links| self.capacity_of(index, links, PACKET));
        if let Source::Device(device) = &mut self.users[index].source {
            device.observe(bytes);
        }
    }

    /// Reports the slots of a tick to a listening device, over all its carriers, and to its modem's log.
    fn tell(&mut self, index: usize, tick: u64) {
        let (is_listening, is_logging) = (self.telemetry.is_listening(index), self.log.is_listening(index));
        if !is_listening && !is_logging {
            return;
        }
        let now = self.start_of(tick);
        let queue = self.uplink.backlog_of(DeviceId(index as u16));
        let user = &mut self.users[index];
        for place in 0..user.links.len() {
            let active = user.is_active(place, now);
            let link = &mut user.links[place];
            let carrier = &mut self.carriers[usize::from(link.carrier)];
            let ticks_per_slot = self.ticks_per_ms / carrier.air.slots_per_ms();
            if !tick.is_multiple_of(ticks_per_slot) {
                continue;
            }
            let slot = tick / ticks_per_slot;
            let own = OwnRadio {
                rnti: user.rnti,
                active,
                sinr_db: Some(link.channel.at(slot).sinr_db),
                bits_per_prb: Some(link.bits_per_prb(carrier.air.reported_region(), carrier.grid.prbs)),
                decoded: link.decoded_in(now),
                uplink_queue: None,
            };
            let heard_at = now + Duration::from_nanos(ticks_per_slot * (1_000_000 / self.ticks_per_ms));
            let account = carrier.account_of(slot);
            if is_listening {
                self.telemetry.hear(index, heard_at, account, own);
            }
            if is_logging {
                let own = OwnRadio { uplink_queue: Some(queue), ..own };
                self.log.hear(index, heard_at, account, own);
            }
        }
    }

    /// Activates and deactivates a device's carriers, depending on its share of the PRBs that the scheduler could assign
    /// to it in the millisecond that starts at `now`.
    fn aggregate(&mut self, index: usize, now: Time) {
        let User { source, links, .. } = &mut self.users[index];
        let Source::Device(device) = source else { return };
        // During a handover, the missing grants do not show that the load is low.
        if device.handover.is_interrupted(now) {
            return;
        }
        let waiting = device.waiting();
        for leg in device.legs_mut().iter_mut().filter(|leg| leg.usable_from <= now) {
            let active = leg.aggregation.active();
            let mut load = Load { queue_bytes: (waiting + leg.rlc.queued()).0, ..Load::default() };
            let mut has_data = false;
            for (place, link) in links[leg.links.clone()][..active].iter().enumerate() {
                let carrier = &self.carriers[usize::from(link.carrier)];
                let mut prbs = CarrierPrbs::default();
                for share in carrier.shares.iter().filter(|share| share.region.has_data()) {
                    prbs.total += u32::from(carrier.grid.prbs);
                    prbs.own += u32::from(link.granted.of(share.slot));
                    prbs.used += u32::from(share.used_prbs);
                }
                has_data |= prbs.total > 0;
                let others = carrier.wanting - usize::from(carrier.is_wanted_by(link));
                load.count(prbs, others, place + 1 == active);
            }
            // A millisecond without downlink slots says nothing about the load.
            if has_data {
                leg.aggregation.observe(now, load);
            }
        }
    }
}

/// Packet size for which a split bearer compares the capacities of its legs.
const PACKET: Bytes = Bytes(1500);

impl Link for Cell {
    /// # Panics
    ///
    /// If the cell has no such device.
    fn push(&mut self, now: Time, packet: Packet) {
        let Source::Device(device) = &mut self.users[usize::from(packet.device.0)].source else {
            panic!("packet for device {}, which the cell does not have", packet.device.0);
        };
        if !device.push(now + self.enb_processing, packet) {
            self.refused.push_back(Exit { time: now, packet, fate: Fate::QueueFull });
        }
    }

    fn pop(&mut self, now: Time) -> Option<Exit> {
        self.popped_at = now;
        self.run_until(now);
        let time_of = |exits: &VecDeque<Exit>| exits.front().map_or(Time::NEVER, |exit| exit.time);
        let (over, refused) = (time_of(&self.over.exits), time_of(&self.refused));
        let first = if over < refused { &mut self.over.exits } else { &mut self.refused };
        if over.min(refused) <= now { first.pop_front() } else { None }
    }

    fn poll_timeout(&self) -> Option<Time> {
        let tick = self.start_of(self.tick);
        let exit = self.over.exits.front().map_or(Time::NEVER, |exit| exit.time);
        let refusal = self.refused.front().map_or(Time::NEVER, |exit| exit.time);
        // If a driver has not popped a report that was due, the time of this report is not returned again.
        let reports = [self.telemetry.poll_timeout(), self.log.poll_timeout()].into_iter().flatten();
        let report = reports.filter(|&due| due > self.popped_at).min().unwrap_or(Time::NEVER);
        Some(tick.min(exit).min(refusal).min(report).min(self.uplink.poll_timeout()))
    }

    /// Processing at both ends, and the slots that the packet needs at the best rate for the mean signal level of any
    /// device of this cell during the run, without shadowing and fading: the same for every seed. The wait for the start
    /// of the next slot with downlink data counts as queueing.
    fn base_delay(&self, bytes: Bytes) -> Duration {
        let on_air = |best: &BestBlock| {
            let slots = bytes.bits().0.div_ceil(best.bits).max(1);
            self.carriers[usize::from(best.carrier)].air.shortest(slots)
        };
        let shortest = self.best_blocks.iter().map(on_air).min();
        self.enb_processing + shortest.unwrap_or(Duration::from_millis(1)) + self.ue_processing
    }

    fn backlog(&self) -> Bytes {
        (0..self.devices).map(|device| self.backlog_of(DeviceId(device as u16))).sum()
    }
}

#[cfg(test)]
mod tests;
