//! LTE FDD cell model: queues, scheduler, HARQ, RLC and carriers between a base station and its devices, in subframes of
//! 1 ms.
//!
//! Downlink path of a packet: [`Cell::push`] → the device's queue → a part of a transport block on some carrier (`rlc`,
//! `scheduler`) → received, or retransmitted 8 ms later (`harq`) → reordered (`rlc`) → `Cell::pop`.
//!
//! | part | content |
//! | --- | --- |
//! | [`config`], `plan` | the `[cell]` table and a device's radio; the validated configuration |
//! | [`channel`], [`bler`], [`adaptation`] | SINR per RBG; block errors; CQI and MCS |
//! | `carrier` | the steps of one subframe of one carrier |
//! | `scheduler` | round robin, proportional fair, max C/I over RBGs |
//! | `harq`, `rlc` | retransmissions; segmentation and reordering |
//! | `carriers`, `handover` | activation of further carriers; interruptions |
//! | `uplink` | the uplink: devices' buffers, scheduling requests, grants |
//! | `background` | users that are not devices of the scenario |
//! | `telemetry` | reports to devices that decode the control channel |
//! | `lte` | LTE's control region and HARQ times |
//!
//! Timing: subframe n lasts from n to n+1 ms. It can carry packets that arrived at least `enb_processing_ms` before its
//! start. Packets that are complete after subframe n leave at n+1 ms + `ue_processing_ms`. Acknowledgements arrive in
//! subframe n+4, and retransmissions are sent from subframe n+8 on.
//!
//! # NR
//!
//! Not implemented. A carrier of numerology µ would run its `carrier::Carrier::run` once per slot, 2^µ times per
//! subframe. It would use a `scheduler::RbgGrid` of its bandwidth part (TS 38.214 §5.1.2.2.1) and block sizes from
//! `core::tables::nr` behind `scheduler::BlockSize`. With a TDD pattern, the slots that are not downlink would be
//! skipped. `harq` would have 16 processes and take its round trip from the pattern; reordering would move from `rlc`
//! to a PDCP module of the same structure.

use std::collections::VecDeque;
use std::time::Duration;

use airpace_core::{Bytes, DeviceId, Direction, Packet, Time};
use airpace_event::{Capacity, Fate, Subframe};
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
mod handover;
mod harq;
mod lte;
pub mod nr;
mod plan;
mod region;
mod rlc;
mod scheduler;
mod telemetry;
mod uplink;
mod user;

pub use config::{CellConfig, DeviceRadioConfig};
pub use plan::CellPlan;

use bler::Bler;
use carrier::{Carrier, Context};
use carriers::Load;
use telemetry::Telemetry;
use uplink::Uplink;
use user::{Device, RadioLink, Source, User};

/// A cell and the radio side of its devices.
///
/// Drive it as a [`Link`]. A driver that calls [`Link::pop`] at every [`Link::poll_timeout`] sees every subframe in
/// [`Cell::subframes`] and [`Cell::capacity`] right after that call.
#[derive(Debug)]
pub struct Cell {
    config: CellConfig,
    bler: Bler,
    carriers: Vec<Carrier>,
    /// The scenario's devices, in their order, followed by the background users.
    users: Vec<User>,
    devices: usize,
    rntis: background::Rntis,
    /// The next subframe to run.
    subframe: u64,
    /// Time of the last call of [`Link::pop`].
    popped_at: Time,
    enb_processing: Duration,
    ue_processing: Duration,
    /// Bits that a block over the full band carries at the maximum MCS of all devices. The MCS follows from a device's
    /// mean signal level, without shadowing and fading.
    best_block_bits: u64,
    /// Transmitted packets (delivered or lost) that left the cell. `refused` are packets that a full queue refused.
    /// Both lists are in order of time.
    over: VecDeque<Exit>,
    refused: VecDeque<Exit>,
    telemetry: Telemetry,
    /// Modem logs: each device's own grants.
    log: Telemetry,
    uplink: Uplink,
    is_recording: bool,
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
        self.uplink.capacity(device, packet, self.subframe.saturating_sub(1))
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
    /// Source: TS 36.321 §5.4.5 (periodicBSR-Timer); TS 36.213 §8.0 (four subframes from a grant to its block)
    pub fn grant_delay(&self) -> Duration {
        Duration::from_millis(u64::from(self.config.uplink.periodic_bsr_ms) + 4 + 4)
    }

    /// Sets whether [`Cell::subframes`] is recorded. Initially it is not recorded.
    pub fn set_recording(&mut self, is_recording: bool) {
        self.is_recording = is_recording;
    }

    /// Records of the last subframe, carrier by carrier; empty while not recording.
    pub fn subframes(&self) -> impl Iterator<Item = Subframe<'_>> {
        let kept = if self.is_recording && self.subframe > 0 { &self.carriers[..] } else { &[] };
        kept.iter().map(|carrier| {
            let account = &carrier.account;
            Subframe { report: &account.report, owners: &account.owners }
        })
    }

    /// Number of subframes simulated so far.
    pub fn subframes_run(&self) -> u64 {
        self.subframe
    }

    /// Downlink capacity of a device in the last subframe, in IP bytes: (the device's PRBs + idle PRBs, over its active
    /// carriers) × bits per PRB ÷ (1 + probability that a first transmission is lost) less headers for packets of this
    /// size. In the long run, every lost block costs the PRBs of one more block.
    pub fn capacity(&mut self, device: DeviceId, packet: Bytes) -> Capacity {
        let subframe = self.subframe.saturating_sub(1);
        let now = Time::from_millis(subframe);
        let user = &mut self.users[usize::from(device.0)];
        let active = user.active_links(now);
        let mut bytes = Bytes::ZERO;
        for link in &mut user.links[..active] {
            let carrier = &self.carriers[usize::from(link.carrier)];
            let region = carrier.air.region();
            let idle = carrier.grid.prbs - carrier.used.len();
            let prbs = idle + link.prbs_in(now);
            let Some(mcs) = link.adaptation.mcs(region.cfi()).filter(|_| prbs > 0) else { continue };
            let block = link.block(mcs, prbs, region);
            let snapshot = link.channel.at(subframe);
            let sinr_db = snapshot.effective_sinr_db(channel::Grid::all(snapshot.grid), block.modulation());
            let goodput = 1.0 / (1.0 + self.bler.first_error(block, sinr_db));
            let codewords = link.codewords() as u8;
            let bits = block.bits.0 as f64 * f64::from(codewords) * goodput;
            bytes += user::ip_bytes(bits, codewords, packet, &self.config.rlc);
        }
        let span = Duration::from_millis(1);
        Capacity { time: now, span, device, direction: Direction::Downlink, bytes }
    }

    /// Bytes of transport blocks that the whole band could have carried to a device in the last subframe, over its active
    /// carriers: the maximum that any scheduler can assign.
    pub fn whole_band(&self, device: DeviceId) -> Bytes {
        let now = Time::from_millis(self.subframe.saturating_sub(1));
        let user = &self.users[usize::from(device.0)];
        let bits_of = |link: &RadioLink| {
            let carrier = &self.carriers[usize::from(link.carrier)];
            let region = carrier.air.region();
            let mcs = link.adaptation.mcs(region.cfi())?;
            Some(link.block_size(mcs, region).bits(carrier.grid.prbs))
        };
        let bits: u64 = user.links[..user.active_links(now)].iter().filter_map(bits_of).sum();
        Bytes(bits.div_ceil(8))
    }

    /// Minimum queue that saturates a device: with this many bytes queued at every millisecond, the device is served as
    /// with an infinite queue. This queue is the capacity of [`Cell::subframes_in_preparation`] + 1 subframes on all
    /// its carriers at the highest MCS, plus the queue that activates its next carrier.
    pub fn saturating(&self, device: DeviceId) -> Bytes {
        let bits_of = |link: &RadioLink| {
            let region = self.carriers[usize::from(link.carrier)].air.region();
            link.block_size(link.table.last_mcs(), region).bits(link.channel.grid().prbs)
        };
        let user = &self.users[usize::from(device.0)];
        let bits: u64 = user.links.iter().map(bits_of).sum();
        let for_next_carrier = self.device(device).aggregation.needed_queue().unwrap_or(Bytes::ZERO);
        Bytes(bits.div_ceil(8) * (self.subframes_in_preparation() + 1)) + for_next_carrier
    }

    /// Number of subframes for which data must be queued so that every subframe has enough data: the subframe itself,
    /// and the subframes that pass while later packets are processed.
    pub fn subframes_in_preparation(&self) -> u64 {
        1 + self.enb_processing.as_micros().div_ceil(1000) as u64
    }

    /// Number of a device's bytes that the base station has put into blocks so far, without retransmissions.
    pub fn sent_to(&self, device: DeviceId) -> Bytes {
        self.device(device).rlc.sent()
    }

    /// IP bytes that the whole band could have carried from a device in the last subframe, over its active uplink
    /// carriers.
    pub fn uplink_whole_band(&mut self, device: DeviceId, packet: Bytes) -> Bytes {
        self.uplink.whole_band(device, packet, self.subframe.saturating_sub(1))
    }

    /// Free space in a device's queue (bytes).
    pub fn room_for(&self, device: DeviceId) -> Bytes {
        self.device(device).rlc.room()
    }

    /// Bytes queued for a device that were not transmitted yet.
    pub fn backlog_of(&self, device: DeviceId) -> Bytes {
        self.device(device).rlc.queued()
    }

    /// Number of a device's active carriers.
    pub fn active_carriers(&self, device: DeviceId) -> usize {
        self.device(device).aggregation.active()
    }

    /// SINR in dB of a device on its primary carrier in the last subframe.
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

    /// Runs the subframes that start by `now`.
    fn run_until(&mut self, now: Time) {
        while Time::from_millis(self.subframe) <= now {
            self.run_subframe();
        }
    }

    /// Runs the next subframe.
    fn run_subframe(&mut self) {
        let subframe = self.subframe;
        let now = Time::from_millis(subframe);
        self.subframe += 1;
        let leaves_at = Time::from_millis(self.subframe) + self.ue_processing;
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
        self.uplink.run(subframe);
        let mut context = Context {
            slot: subframe,
            now,
            users: &mut self.users,
            bler: &self.bler,
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
            self.tell(index, subframe);
            self.aggregate(index, subframe);
        }
    }

    /// Reports a subframe to a listening device, over all its carriers, and to its modem's log.
    fn tell(&mut self, index: usize, subframe: u64) {
        let now = Time::from_millis(subframe);
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
                sinr_db: Some(link.channel.at(subframe).sinr_db),
                bits_per_prb: Some(link.bits_per_prb(carrier.air.region(), carrier.grid.prbs)),
                decoded: link.decoded_in(now),
                uplink_queue: None,
            };
            let heard_at = Time::from_millis(subframe + 1);
            if is_listening {
                self.telemetry.hear(index, heard_at, &carrier.account, own);
            }
            if is_logging {
                let own = OwnRadio { uplink_queue: Some(queue), ..own };
                self.log.hear(index, heard_at, &carrier.account, own);
            }
        }
    }

    /// Activates and deactivates a device's carriers, depending on its share of the PRBs that the scheduler could assign
    /// to it.
    fn aggregate(&mut self, index: usize, subframe: u64) {
        let now = Time::from_millis(subframe);
        let user = &mut self.users[index];
        let Source::Device(device) = &mut user.source else { return };
        // During a handover, the missing grants do not show that the load is low.
        if device.handover.is_interrupted(now) {
            return;
        }
        let active = device.aggregation.active();
        let mut load = Load { queue_bytes: device.rlc.queued().0, ..Load::default() };
        for (place, link) in user.links[..active].iter().enumerate() {
            let carrier = &self.carriers[usize::from(link.carrier)];
            let (own, used) = (link.prbs_in(now), carrier.used.len());
            let others = carrier.wanting - usize::from(link.wanted_in == Some(subframe));
            load.count(carrier.grid.prbs, own, used, others, place + 1 == active);
        }
        device.aggregation.observe(now, load);
    }
}

/// Prepares a device before a subframe is scheduled. If a handover starts, returns the time at which data transmission
/// resumes.
fn begin_subframe(
    user: &mut User,
    now: Time,
    rntis: &mut background::Rntis,
    release: &mut dyn FnMut(Packet, Fate),
) -> Option<Time> {
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
    device.rlc.admit(now);
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
            panic!("packet for device {}, which the cell does not have", packet.device.0);
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

    fn poll_timeout(&self) -> Option<Time> {
        let subframe = Time::from_millis(self.subframe);
        let exit = self.over.front().map_or(Time::NEVER, |exit| exit.time);
        let refusal = self.refused.front().map_or(Time::NEVER, |exit| exit.time);
        // If a driver has not popped a report that was due, the time of this report is not returned again.
        let reports = [self.telemetry.poll_timeout(), self.log.poll_timeout()].into_iter().flatten();
        let report = reports.filter(|&due| due > self.popped_at).min().unwrap_or(Time::NEVER);
        Some(subframe.min(exit).min(refusal).min(report).min(self.uplink.poll_timeout()))
    }

    /// Processing at both ends, and the number of subframes that the packet needs at the best rate for the mean signal
    /// level of any device of this cell during the run, without shadowing and fading: the same for every seed. The wait
    /// for the start of the next subframe, 0.5 ms on average, counts as queueing.
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
