//! An LTE FDD cell: the deep queues, the scheduler, HARQ, RLC and the carriers between a base station and its devices,
//! one subframe of 1 ms at a time.
//!
//! A packet's way: [`Cell::push`] → its device's queue → a share of a transport block on some carrier (`rlc`,
//! `scheduler`) → received, or sent again 8 ms later (`harq`) → put back in order (`rlc`) → `Cell::pop`.
//!
//! | part | what it contains |
//! | --- | --- |
//! | [`config`], `plan` | the `[cell]` table and a device's radio; the same after checking |
//! | [`channel`], [`bler`], [`adaptation`] | SINR per RBG; whether a block is lost; CQI and MCS |
//! | `subframe` | the steps of one subframe of one carrier |
//! | `scheduler` | round robin, proportional fair, max C/I over RBGs |
//! | `harq`, `rlc` | retransmissions; segmentation and order |
//! | `carriers`, `handover` | activation of further carriers; interruptions |
//! | [`uplink`] | the other direction: devices' buffers, requests, grants |
//! | `background` | users that are not devices of the scenario |
//! | `telemetry` | what a device that listens to the control channel receives |
//!
//! Time: subframe n lasts from n to n+1 ms. It can carry packets that arrived at least `enb_processing_ms` before its
//! start. Packets that it completes leave at n+1 ms + `ue_processing_ms`. Acknowledgements arrive in n+4, and
//! retransmissions are sent from n+8 on.
//!
//! # NR
//!
//! Not built. A carrier of numerology µ would run its `subframe::Carrier::run` once per slot, 2^µ times a subframe. It
//! would use a `scheduler::RbgGrid` of its bandwidth part (TS 38.214 §5.1.2.2.1) and block sizes from
//! `core::tables::nr` behind `scheduler::BlockSize`. A TDD pattern would skip the slots that are not downlink. `harq`
//! would have 16 processes and take its round trip from the pattern; reordering would move from `rlc` to a PDCP module
//! of the same structure.

use std::collections::VecDeque;
use std::time::Duration;

use airpace_core::{Bytes, DeviceId, Direction, Packet, Time};
use airpace_event::{Capacity, Fate, Subframe};
use airpace_radio::{OwnRadio, RadioReport};

use crate::link::{Exit, Link};

pub mod adaptation;
mod background;
pub mod bler;
mod build;
mod carriers;
pub mod channel;
pub mod config;
mod handover;
mod harq;
mod plan;
mod rlc;
mod scheduler;
mod subframe;
mod telemetry;
pub mod uplink;
mod user;

pub use config::{CellConfig, DeviceRadioConfig};
pub use plan::CellPlan;

use bler::Bler;
use carriers::Load;
use subframe::{Carrier, Context};
use telemetry::Telemetry;
use uplink::Uplink;
use user::{Device, RadioLink, Source, User};

/// A cell and the radio side of its devices.
///
/// Drive it as a [`Link`]; a driver that calls [`Link::pop`] at every [`Link::next`] sees every subframe in
/// [`Cell::subframes`] and [`Cell::capacity`] right after that call.
#[derive(Debug)]
pub struct Cell {
    config: CellConfig,
    bler: Bler,
    carriers: Vec<Carrier>,
    /// The scenario's devices, in their order, then the background's users.
    users: Vec<User>,
    devices: usize,
    rntis: background::Rntis,
    /// The next subframe to run.
    subframe: u64,
    /// When [`Link::pop`] was last called.
    popped_at: Time,
    enb_processing: Duration,
    ue_processing: Duration,
    /// Bits of a full band at the best MCS of any device's level, without shadowing and fading.
    best_block_bits: u64,
    /// Packets whose journey ended, each list in order of time: those that were sent (delivered or lost), and those
    /// that met a full queue.
    over: VecDeque<Exit>,
    refused: VecDeque<Exit>,
    telemetry: Telemetry,
    /// Modem logs: each device's own grants.
    log: Telemetry,
    uplink: Uplink,
    is_recording: bool,
}

impl Cell {
    /// Sets whether a device receives the control channel's messages ([`Cell::pop_report`]); at the start no device
    /// does.
    ///
    /// # Panics
    ///
    /// If the cell has no such device. This holds for all methods that take a device.
    pub fn set_listening(&mut self, device: DeviceId, is_listening: bool) {
        self.telemetry.set_listening(usize::from(device.0), is_listening);
    }

    /// The next report that a listening device has at `now`; its reports come in order of carrier and subframe.
    pub fn pop_report(&mut self, now: Time) -> Option<(DeviceId, &mut RadioReport)> {
        self.telemetry.pop(now)
    }

    /// Whether a full queue, of the cell or of a device, has refused packets that were not popped yet.
    pub fn has_refused(&self) -> bool {
        !self.refused.is_empty() || self.uplink.has_refused()
    }

    /// Whether [`Cell::pop_report`] has a report at `now`.
    pub fn has_report(&self, now: Time) -> bool {
        self.telemetry.next().is_some_and(|due| due <= now)
    }

    /// Sets whether a device's modem log is read ([`Cell::pop_own_report`]): the device's own grants of both
    /// directions, without the control channel's imperfections. At the start no log is read.
    pub fn set_logging(&mut self, device: DeviceId, is_logging: bool) {
        self.log.set_listening(usize::from(device.0), is_logging);
    }

    /// The next entry of a modem log at `now`; a device's entries come in order of carrier and subframe, those of
    /// uplink grants in the subframe in which the grant was sent.
    pub fn pop_own_report(&mut self, now: Time) -> Option<(DeviceId, &mut RadioReport)> {
        self.log.pop(now)
    }

    /// Takes a packet that a device sends; it waits in the device's own buffer.
    pub fn push_uplink(&mut self, now: Time, packet: Packet) {
        self.uplink.push(now, packet);
    }

    /// The next packet whose journey over the uplink ended by `now`, in order of time: it reached the base station, was
    /// refused by its device's full buffer, or was lost on the air. Runs the cell like [`Link::pop`]; the two may be
    /// called in either order.
    pub fn pop_uplink(&mut self, now: Time) -> Option<Exit> {
        self.run_until(now);
        self.uplink.pop(now)
    }

    /// Bytes that wait in a device and were not sent yet.
    pub fn uplink_backlog_of(&self, device: DeviceId) -> Bytes {
        self.uplink.backlog_of(device)
    }

    /// What the last subframe could have carried from a device, in IP bytes. Over the device's active uplink carriers:
    /// (the PRBs it sent on + idle PRBs, but no more than one grant may have) × bits per PRB ÷ (1 + probability that a
    /// first transmission is lost) less headers, as in [`Cell::capacity`].
    pub fn uplink_capacity(&mut self, device: DeviceId, packet: Bytes) -> Capacity {
        self.uplink.capacity(device, packet, self.subframe.saturating_sub(1))
    }

    /// The least time that a packet takes over an idle uplink whose device holds a grant: processing at both ends and
    /// as many subframes as the packet needs at the best rate that the level of any device allows during the run, without
    /// shadowing and fading. Asking for the grant and waiting for it count as queueing.
    pub fn uplink_base_delay(&self, bytes: Bytes) -> Duration {
        self.uplink.base_delay(bytes)
    }

    /// The longest time that data waits before a busy device can send it: until the next buffer status report rides on
    /// a block, from that block to the grant that answers it, and from the grant to the granted block.
    ///
    /// Source: TS 36.321 §5.4.5 (periodicBSR-Timer); TS 36.213 §8.0 (four subframes from a grant to its block)
    pub fn grant_delay(&self) -> Duration {
        Duration::from_millis(u64::from(self.config.uplink.periodic_bsr_ms) + 4 + 4)
    }

    /// Sets whether [`Cell::subframes`] is kept; at the start it is not.
    pub fn set_recording(&mut self, is_recording: bool) {
        self.is_recording = is_recording;
    }

    /// What happened in the last subframe that was run, carrier by carrier; nothing while not recording.
    pub fn subframes(&self) -> impl Iterator<Item = Subframe<'_>> {
        let kept = if self.is_recording && self.subframe > 0 { &self.carriers[..] } else { &[] };
        kept.iter().map(|carrier| {
            let account = &carrier.account;
            Subframe { report: &account.report, owners: &account.owners }
        })
    }

    /// How many subframes have been run.
    pub fn subframes_run(&self) -> u64 {
        self.subframe
    }

    /// What the last subframe could have carried to a device, in IP bytes: (its PRBs + idle PRBs, over its active
    /// carriers) × bits per PRB ÷ (1 + probability that a first transmission is lost) less headers for packets of
    /// this size. In the long run, every lost block costs the PRBs of one more.
    pub fn capacity(&mut self, device: DeviceId, packet: Bytes) -> Capacity {
        let now = self.subframe.saturating_sub(1);
        let user = &mut self.users[usize::from(device.0)];
        let active = user.active_links(now);
        let mut bytes = Bytes::ZERO;
        for link in &mut user.links[..active] {
            let carrier = &self.carriers[usize::from(link.carrier)];
            let idle = carrier.grid.prbs - carrier.used.len();
            let prbs = idle + link.prbs_in(now);
            let Some(mcs) = link.adaptation.mcs(carrier.cfi).filter(|_| prbs > 0) else { continue };
            let block = link.block(mcs, prbs);
            let snapshot = link.channel.at(now);
            let sinr_db = snapshot.effective_sinr_db(channel::Grid::all(snapshot.grid), block.modulation());
            let goodput = 1.0 / (1.0 + self.bler.first_error(block, sinr_db));
            let codewords = link.channel.layers();
            let bits = block.bits.0 as f64 * f64::from(codewords) * goodput;
            bytes += user::ip_bytes(bits, codewords, packet, &self.config.rlc);
        }
        let (time, span) = (Time::from_millis(now), Duration::from_millis(1));
        Capacity { time, span, device, direction: Direction::Downlink, bytes }
    }

    /// What the last subframe's whole band would have carried to a device, over its active carriers, in bytes of transport
    /// blocks: no scheduler gives more.
    pub fn whole_band(&self, device: DeviceId) -> Bytes {
        let now = self.subframe.saturating_sub(1);
        let user = &self.users[usize::from(device.0)];
        let bits_of = |link: &RadioLink| {
            let carrier = &self.carriers[usize::from(link.carrier)];
            let mcs = link.adaptation.mcs(carrier.cfi)?;
            Some(link.block_size(mcs).bits(carrier.grid.prbs))
        };
        let bits: u64 = user.links[..user.active_links(now)].iter().filter_map(bits_of).sum();
        Bytes(bits.div_ceil(8))
    }

    /// With this much waiting at every millisecond, a device is served as if data without end waited: what a subframe more than
    /// [`Cell::subframes_in_preparation`] could take, on all its carriers at the highest MCS, and the queue for which its next
    /// carrier is activated.
    pub fn saturating(&self, device: DeviceId) -> Bytes {
        let bits_of =
            |link: &RadioLink| link.block_size(link.table.last_mcs()).bits(link.channel.grid().prbs);
        let user = &self.users[usize::from(device.0)];
        let bits: u64 = user.links.iter().map(bits_of).sum();
        let for_next_carrier = self.device(device).aggregation.needed_queue().unwrap_or(Bytes::ZERO);
        Bytes(bits.div_ceil(8) * (self.subframes_in_preparation() + 1)) + for_next_carrier
    }

    /// How many subframes' data must be there so that a subframe finds its own: its own, and that of the subframes that pass
    /// while later packets are processed.
    pub fn subframes_in_preparation(&self) -> u64 {
        1 + self.enb_processing.as_micros().div_ceil(1000) as u64
    }

    /// Bytes of a device that the base station has put into blocks so far, without what it sent again.
    pub fn sent_to(&self, device: DeviceId) -> Bytes {
        self.device(device).rlc.sent()
    }

    /// What the last subframe's whole band would have carried from a device, over its active uplink carriers, in IP bytes.
    pub fn uplink_whole_band(&mut self, device: DeviceId, packet: Bytes) -> Bytes {
        self.uplink.whole_band(device, packet, self.subframe.saturating_sub(1))
    }

    /// Bytes for which a device's queue has room.
    pub fn room_for(&self, device: DeviceId) -> Bytes {
        self.device(device).rlc.room()
    }

    /// Bytes that wait for a device and were not sent yet.
    pub fn backlog_of(&self, device: DeviceId) -> Bytes {
        self.device(device).rlc.queued()
    }

    /// How many of a device's carriers are active.
    pub fn active_carriers(&self, device: DeviceId) -> usize {
        self.device(device).aggregation.active()
    }

    /// The SINR in dB that a device has on its primary carrier in the last subframe.
    pub fn sinr_db(&mut self, device: DeviceId) -> f64 {
        let now = self.subframe.saturating_sub(1);
        self.users[usize::from(device.0)].links[0].channel.at(now).sinr_db
    }

    fn device(&self, device: DeviceId) -> &Device {
        match &self.users[usize::from(device.0)].source {
            Source::Device(device) => device,
            _ => unreachable!("users below `devices` are devices"),
        }
    }

    /// Runs the subframes that begin by `now`.
    fn run_until(&mut self, now: Time) {
        while Time::from_millis(self.subframe) <= now {
            self.run_subframe();
        }
    }

    /// Runs the next subframe.
    fn run_subframe(&mut self) {
        let now = self.subframe;
        self.subframe += 1;
        let leaves_at = Time::from_millis(now + 1) + self.ue_processing;
        let over = &mut self.over;
        let mut release = |packet, fate| over.push_back(Exit { time: leaves_at, packet, fate });
        for (index, user) in self.users[..self.devices].iter_mut().enumerate() {
            if let Some(resumes_at) = begin_subframe(user, now, &mut self.rntis, &mut release) {
                self.uplink.hand_over(index, now, resumes_at, user.rnti);
            }
            if let Source::Device(device) = &mut user.source {
                self.uplink.exchange_status(index, now, &mut device.rlc);
            }
        }
        self.uplink.run(now);
        let mut context = Context {
            now,
            users: &mut self.users,
            bler: &self.bler,
            round_trip: if self.config.lena_compat { 7 } else { 8 },
            max_retransmissions: self.config.harq.max_retransmissions,
            max_users: usize::from(self.config.max_users_per_subframe),
            wants_account: self.is_recording || self.telemetry.has_listeners() || self.log.has_listeners(),
            release: &mut release,
        };
        for (index, carrier) in self.carriers.iter_mut().enumerate() {
            let grants = self.uplink.grants(index);
            carrier.uplink_grants = grants.len();
            carrier.run(&mut context);
            for &(dci, owner) in grants.iter().filter(|_| context.wants_account) {
                carrier.account.add(dci, owner, [None; 2]);
            }
        }
        for index in 0..self.devices {
            self.tell(index, now);
            self.aggregate(index, now);
        }
    }

    /// Reports a subframe to a listening device, over all its carriers, and to its modem's log.
    fn tell(&mut self, index: usize, now: u64) {
        let (is_listening, is_logging) = (self.telemetry.is_listening(index), self.log.is_listening(index));
        if !is_listening && !is_logging {
            return;
        }
        let queue = self.uplink.backlog_of(DeviceId(index as u16));
        let user = &mut self.users[index];
        let active = user.active_links(now);
        for (place, link) in user.links.iter_mut().enumerate() {
            let carrier = &self.carriers[usize::from(link.carrier)];
            let own = OwnRadio {
                rnti: user.rnti,
                active: place < active,
                sinr_db: Some(link.channel.at(now).sinr_db),
                bits_per_prb: Some(link.bits_per_prb(carrier.cfi, carrier.grid.prbs)),
                decoded: link.decoded_in(now),
                uplink_queue: None,
            };
            let heard_at = Time::from_millis(now + 1);
            if is_listening {
                self.telemetry.hear(index, heard_at, &carrier.account, own);
            }
            if is_logging {
                let own = OwnRadio { uplink_queue: Some(queue), ..own };
                self.log.hear(index, heard_at, &carrier.account, own);
            }
        }
    }

    /// Activates and deactivates a device's carriers by what the device used of what the scheduler could give to it.
    fn aggregate(&mut self, index: usize, now: u64) {
        let user = &mut self.users[index];
        let Source::Device(device) = &mut user.source else { return };
        // What a device does not get while it moves to another cell says nothing about its load.
        if device.handover.is_interrupted(now) {
            return;
        }
        let active = device.aggregation.active();
        let mut load = Load { queue_bytes: device.rlc.queued().0, ..Load::default() };
        for (place, link) in user.links[..active].iter().enumerate() {
            let carrier = &self.carriers[usize::from(link.carrier)];
            let (own, used) = (link.prbs_in(now), carrier.used.len());
            let others = carrier.wanting - usize::from(link.wanted_until == now + 1);
            load.count(carrier.grid.prbs, own, used, others, place + 1 == active);
        }
        device.aggregation.observe(now, load);
    }
}

/// Prepares a device before a subframe is scheduled. If a handover begins, returns when data flows again.
fn begin_subframe(
    user: &mut User,
    now: u64,
    rntis: &mut background::Rntis,
    release: &mut dyn FnMut(Packet, Fate),
) -> Option<u64> {
    let Source::Device(device) = &mut user.source else { return None };
    let resumes_at = device.handover.begin(now);
    if let Some(resumes_at) = resumes_at {
        user.rnti = rntis.assign();
        device.aggregation.reset(now);
        device.rlc.forward(resumes_at);
        for link in &mut user.links {
            link.harq.flush();
            link.adaptation.reset();
            link.average_bits = 1.0;
        }
    }
    device.aggregation.begin(now);
    device.rlc.admit(Time::from_millis(now));
    if device.rlc.has_timers() {
        device.rlc.expire(now, release);
    }
    resumes_at
}

impl Link for Cell {
    /// # Panics
    ///
    /// If the cell has no such device.
    fn push(&mut self, now: Time, packet: Packet) {
        let Source::Device(device) = &mut self.users[usize::from(packet.device.0)].source else {
            panic!("packet for device {}, of which the cell does not know", packet.device.0);
        };
        if !device.rlc.push(now + self.enb_processing, packet) {
            self.refused.push_back(Exit { time: now, packet, fate: Fate::QueueFull });
        }
    }

    fn pop(&mut self, now: Time) -> Option<Exit> {
        self.popped_at = now;
        self.run_until(now);
        let time_of = |exits: &VecDeque<Exit>| exits.front().map_or(Time::NEVER, |exit| exit.time);
        let (over, refused) = (time_of(&self.over), time_of(&self.refused));
        let first = if over < refused { &mut self.over } else { &mut self.refused };
        if over.min(refused) <= now { first.pop_front() } else { None }
    }

    fn next(&self) -> Option<Time> {
        let subframe = Time::from_millis(self.subframe);
        let exit = self.over.front().map_or(Time::NEVER, |exit| exit.time);
        let refusal = self.refused.front().map_or(Time::NEVER, |exit| exit.time);
        // Even if a driver leaves a report in place, it must not be called for that report again and again.
        let reports = [self.telemetry.next(), self.log.next()].into_iter().flatten();
        let report = reports.filter(|&due| due > self.popped_at).min().unwrap_or(Time::NEVER);
        Some(subframe.min(exit).min(refusal).min(report).min(self.uplink.next()))
    }

    /// Processing at both ends and as many subframes as the packet needs at the best rate that the level of any device of
    /// this cell allows during the run, without shadowing and fading: the same for every seed. The wait for the next
    /// subframe to begin, 0.5 ms on average, counts as queueing.
    fn base_delay(&self, bytes: Bytes) -> Duration {
        let subframes = bytes.bits().0.div_ceil(self.best_block_bits).max(1);
        self.enb_processing + Duration::from_millis(subframes) + self.ue_processing
    }

    fn backlog(&self) -> Bytes {
        (0..self.devices).map(|device| self.backlog_of(DeviceId(device as u16))).sum()
    }
}

#[cfg(test)]
mod tests;
