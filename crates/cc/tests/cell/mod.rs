//! A small LTE cell behind a wire, for stories about controllers that read the radio.
//!
//! ```text
//! Sender ── bottleneck in the Internet, delay ──▶ queue per device ── carriers, HARQ, in-order release ──▶ Acker
//!    ▲                                                                                                       │
//!    └──────────────────────────────── delay, bunching, outage ──────────────────────────────────────────────┘
//! ```
//!
//! Proportional fair over resource block groups, one subframe per millisecond, retransmissions after eight; errors
//! are independent per block, as PBE-CC models them, and a retransmission fails a tenth as often.
#![allow(dead_code)] // each test file uses its own part

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use airpace_cc::controller::{Arrival, Inspect};
use airpace_cc::endpoint::{AckFrame, AckPolicy, Acker, Backlog, Sender, SenderConfig};
use airpace_cc::pacer::PacerConfig;
use airpace_cc::registry::DeviceFlows;
use airpace_cc::{SchemeSpec, Setup};
use airpace_core::{Bits, Bytes, Ecn, FlowId, Rate, Rider, Rng, Streams, Time};
use airpace_radio::{BitLayer, CarrierId, Dci, OwnRadio, PrbSet, RadioReport, Rnti, Scope, Slot};

pub const MSS: Bytes = Bytes(1500);
const TICK: Duration = Duration::from_micros(100);
const DEVICE_BUFFER: u64 = 3_000_000;

/// What a world is made of; every field may be changed while it runs.
#[derive(Clone, Debug)]
pub struct Conditions {
    /// Delay of the wire each way.
    pub wire: Duration,
    /// PRBs of each carrier.
    pub carriers: Vec<u16>,
    /// Carriers that are active.
    pub active: usize,
    /// Carriers whose reports are lost on their way to the receivers.
    pub deaf: Vec<usize>,
    pub bits_per_prb: f64,
    pub sinr_db: f64,
    /// Probability that one bit of a block is wrong.
    pub bit_error: f64,
    /// Share of the blocks that radio headers take.
    pub overhead: f64,
    /// Memory of the proportional fair scheduler, in subframes.
    pub fairness_subframes: f64,
    /// Control users per subframe, four PRBs each.
    pub control_users: f64,
    /// Rate of a bottleneck in the Internet and its queue.
    pub internet: Option<(Rate, u64)>,
    /// ACKs leave only at multiples of this.
    pub ack_bunch: Duration,
    /// ACKs are lost.
    pub ack_outage: bool,
    /// No telemetry.
    pub blind: bool,
    /// How far the receivers' clock is ahead.
    pub clock_offset: Duration,
    /// How much faster it runs.
    pub clock_drift_ppm: f64,
    pub seed: u64,
}

impl Default for Conditions {
    fn default() -> Conditions {
        Conditions {
            wire: Duration::from_millis(20),
            carriers: vec![100],
            active: 1,
            deaf: vec![],
            bits_per_prb: 950.0,
            sinr_db: 8.0,
            bit_error: 3e-6,
            overhead: 0.02,
            fairness_subframes: 100.0,
            control_users: 0.34,
            internet: None,
            ack_bunch: Duration::ZERO,
            ack_outage: false,
            blind: false,
            clock_offset: Duration::ZERO,
            clock_drift_ppm: 0.0,
            seed: 1,
        }
    }
}

pub struct World {
    pub conditions: Conditions,
    pub now: Time,
    rng: Rng,
    flows: Vec<Flow>,
    devices: Vec<Device>,
    /// Users without a flow of ours: always backlogged while on, with their average.
    others: Vec<(bool, f64)>,
    /// The wire to the cell, in order of arrival.
    wire: VecDeque<(Time, Packet)>,
    internet_free: Time,
    subframe: u64,
    others_prbs: u64,
}

struct Flow {
    device: usize,
    sender: Sender,
    acker: Acker,
    acks: VecDeque<(Time, AckFrame)>,
    last_data: Time,
    delivered: Bytes,
    delays_ms: Vec<f64>,
    dropped: u64,
    states: Vec<(Time, &'static str)>,
}

#[derive(Clone, Copy)]
struct Packet {
    flow: usize,
    number: u64,
    left: u64,
    sent: Time,
    header: Rider,
}

#[derive(Default)]
struct Device {
    queue: VecDeque<Packet>,
    backlog: u64,
    average: Vec<f64>,
    sequence: u64,
    expected: u64,
    /// Blocks received out of order, with the packets that they complete.
    received: BTreeMap<u64, Vec<Packet>>,
    harq: Vec<Block>,
}

struct Block {
    carrier: usize,
    due: u64,
    tries: u32,
    prbs: u16,
    bits: u64,
    sequence: u64,
    packets: Vec<Packet>,
}

/// What a flow got since the last look.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub mbps: f64,
    /// Delay beyond the wire and one subframe.
    pub mean_ms: f64,
    pub p95_ms: f64,
    pub dropped: u64,
}

impl World {
    pub fn new(conditions: Conditions) -> World {
        World {
            rng: Streams::new(conditions.seed).stream("world"),
            conditions,
            now: Time::ZERO,
            flows: vec![],
            devices: vec![],
            others: vec![],
            wire: VecDeque::new(),
            internet_free: Time::ZERO,
            subframe: 0,
            others_prbs: 0,
        }
    }

    /// Starts a bulk flow to a device (a new one if `device` is the next index).
    pub fn start(&mut self, scheme: &str, device: usize) -> usize {
        let index = self.flows.len();
        if device == self.devices.len() {
            self.devices.push(Device::default());
        }
        let rng = Streams::new(self.conditions.seed).stream(&format!("flow.{index}"));
        let ends = SchemeSpec::parse(scheme).unwrap().build(&Setup { mss: MSS, rng }).unwrap();
        let config = SenderConfig {
            flow: FlowId(index as u16),
            mss: MSS,
            pacer: PacerConfig::default(),
            ack: AckPolicy::default(),
        };
        self.flows.push(Flow {
            device,
            sender: Sender::new(config, ends.controller, Backlog::Unlimited),
            acker: Acker::new(AckPolicy::default(), ends.receiver),
            acks: VecDeque::new(),
            last_data: Time::ZERO,
            delivered: Bytes::ZERO,
            delays_ms: vec![],
            dropped: 0,
            states: vec![],
        });
        index
    }

    /// Adds a backlogged user, or switches one on or off.
    pub fn competitor(&mut self, index: usize, on: bool) {
        while self.others.len() <= index {
            self.others.push((false, 0.0));
        }
        self.others[index].0 = on;
    }

    pub fn stop(&mut self, flow: usize) {
        self.flows[flow].sender.close();
    }

    pub fn run(&mut self, millis: u64) {
        let end = self.now + Duration::from_millis(millis);
        while self.now < end {
            self.now += TICK;
            self.tick();
        }
    }

    /// What `flow` got in the next `millis`.
    pub fn look(&mut self, flow: usize, millis: u64) -> Seen {
        for flow in &mut self.flows {
            flow.delivered = Bytes::ZERO;
            flow.delays_ms.clear();
            flow.dropped = 0;
        }
        self.run(millis);
        self.seen(flow, millis)
    }

    pub fn seen(&self, flow: usize, millis: u64) -> Seen {
        let flow = &self.flows[flow];
        let mut delays = flow.delays_ms.clone();
        delays.sort_by(f64::total_cmp);
        Seen {
            mbps: Rate::from_bytes_per(flow.delivered, Duration::from_millis(millis)).as_mbps(),
            mean_ms: delays.iter().sum::<f64>() / delays.len() as f64,
            p95_ms: delays.get(delays.len() * 95 / 100).copied().unwrap_or(f64::NAN),
            dropped: flow.dropped,
        }
    }

    /// A named value of `flow`'s inside.
    pub fn value(&self, flow: usize, name: &str) -> f64 {
        let mut inspect = Inspect::default();
        self.flows[flow].sender.inspect(&mut inspect);
        self.flows[flow].acker.inspect(&mut inspect);
        inspect.values.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("no {name}")).1
    }

    pub fn pacing_mbps(&self, flow: usize) -> f64 {
        self.flows[flow].sender.control().pacing_rate.unwrap().as_mbps()
    }

    pub fn state(&self, flow: usize) -> &'static str {
        let mut inspect = Inspect::default();
        self.flows[flow].sender.inspect(&mut inspect);
        inspect.state
    }

    /// Every state of `flow` with when it was entered, since the last call.
    pub fn states(&mut self, flow: usize) -> Vec<(Time, &'static str)> {
        std::mem::take(&mut self.flows[flow].states)
    }

    /// PRBs per subframe that `flow`'s competitors got, over the run.
    pub fn backlog(&self, device: usize) -> u64 {
        self.devices[device].backlog
    }

    fn tick(&mut self) {
        let now = self.now;
        while self.wire.front().is_some_and(|(at, _)| *at <= now) {
            let (_, packet) = self.wire.pop_front().unwrap();
            let device = &mut self.devices[self.flows[packet.flow].device];
            if device.backlog + packet.left <= DEVICE_BUFFER {
                device.backlog += packet.left;
                device.queue.push_back(packet);
            } else {
                self.flows[packet.flow].dropped += 1;
            }
        }
        if now.as_nanos().is_multiple_of(1_000_000) {
            self.serve();
        }
        for index in 0..self.flows.len() {
            self.acks(index);
            self.send(index);
            let state = self.state(index);
            let states = &mut self.flows[index].states;
            if states.last().is_none_or(|(_, last)| *last != state) {
                states.push((now, state));
            }
        }
    }

    fn acks(&mut self, index: usize) {
        let wire = self.conditions.wire;
        let bunch = self.conditions.ack_bunch.as_nanos() as u64;
        let clock = self.receiver_clock();
        let flow = &mut self.flows[index];
        flow.acker.on_timeout(clock);
        while let Some(frame) = flow.acker.poll_ack(clock) {
            let mut leaves = self.now.as_nanos();
            if bunch > 0 {
                leaves = leaves.div_ceil(bunch) * bunch;
            }
            if !self.conditions.ack_outage {
                flow.acks.push_back((Time::from_nanos(leaves) + wire, frame));
            }
        }
        while flow.acks.front().is_some_and(|(at, _)| *at <= self.now) {
            let (_, frame) = flow.acks.pop_front().unwrap();
            flow.sender.on_ack(self.now, &frame).expect("our own ACKs");
        }
        if flow.sender.next().is_some_and(|at| at <= self.now) {
            flow.sender.on_timeout(self.now);
        }
    }

    fn send(&mut self, index: usize) {
        while let Some(transmit) = self.flows[index].sender.poll_transmit(self.now) {
            let packet = Packet {
                flow: index,
                number: transmit.number,
                left: transmit.bytes.0,
                sent: self.now,
                header: transmit.header,
            };
            let mut at = self.now;
            if let Some((rate, buffer)) = self.conditions.internet {
                let queued = rate.bytes_in(self.internet_free - self.now);
                if queued.0 + packet.left > buffer {
                    self.flows[index].dropped += 1;
                    continue;
                }
                self.internet_free = self.internet_free.max(self.now) + rate.time_for(Bytes(packet.left));
                at = self.internet_free;
            }
            self.wire.push_back((at + self.conditions.wire, packet));
        }
    }

    fn receiver_clock(&self) -> Time {
        let drift = self.now.as_secs_f64() * self.conditions.clock_drift_ppm * 1e-6;
        let offset = self.conditions.clock_offset.as_secs_f64() + drift;
        Time::from_nanos((self.now.as_nanos() as f64 + offset * 1e9) as u64 + 1_000_000_000)
    }

    /// One subframe of every active carrier.
    fn serve(&mut self) {
        self.subframe += 1;
        let mut reports = vec![];
        for carrier in 0..self.conditions.carriers.len() {
            let dcis = if carrier < self.conditions.active { self.schedule(carrier) } else { vec![] };
            reports.push(dcis);
        }
        for device in 0..self.devices.len() {
            self.release(device);
        }
        for (carrier, dcis) in reports.into_iter().enumerate() {
            self.report(carrier, dcis);
        }
    }

    fn schedule(&mut self, carrier: usize) -> Vec<Dci> {
        let prbs = self.conditions.carriers[carrier];
        let mut next = 0u16;
        let mut dcis = vec![];
        for device in 0..self.devices.len() {
            while let Some(at) = self.devices[device].harq.iter().position(|block| {
                block.carrier == carrier && block.due <= self.subframe && next + block.prbs <= prbs
            }) {
                let block = self.devices[device].harq.remove(at);
                dcis.push(dci(rnti(device), next, block.prbs, 0, true));
                next += block.prbs;
                self.transmit(device, block);
            }
        }
        for user in 0..self.rng.poisson(self.conditions.control_users) {
            if next + 4 <= prbs {
                let rnti = Rnti(0x4000 + self.rng.below(60) as u16 * 8 + user as u16);
                dcis.push(dci(rnti, next, 4, 100, false));
                next += 4;
            }
        }
        self.share(carrier, next, prbs, &mut dcis);
        dcis
    }

    /// Proportional fair: every group of four PRBs to whom it is worth most.
    fn share(&mut self, carrier: usize, mut next: u16, prbs: u16, dcis: &mut Vec<Dci>) {
        let memory = self.conditions.fairness_subframes;
        let (devices, others) = (self.devices.len(), self.others.len());
        let mut granted = vec![0u16; devices + others];
        let per_prb = self.conditions.bits_per_prb;
        let useful = per_prb * (1.0 - self.conditions.overhead) / 8.0;
        for device in &mut self.devices {
            device.average.resize(self.conditions.carriers.len(), 0.0);
        }
        while next < prbs {
            let group = 4.min(prbs - next);
            let average = |user: usize, world: &World| {
                let past = if user < devices {
                    world.devices[user].average[carrier]
                } else {
                    world.others[user - devices].1
                };
                past + f64::from(granted[user]) / memory
            };
            let wants = |user: usize| {
                if user < devices {
                    f64::from(granted[user]) * useful < self.devices[user].backlog as f64
                } else {
                    self.others[user - devices].0
                }
            };
            let best = (0..devices + others)
                .filter(|&user| wants(user))
                .min_by(|&a, &b| average(a, self).total_cmp(&average(b, self)));
            let Some(best) = best else { break };
            granted[best] += group;
            next += group;
        }
        let mut start = prbs - granted.iter().sum::<u16>().min(prbs);
        for (user, &count) in granted.iter().enumerate() {
            let past = if user < devices {
                &mut self.devices[user].average[carrier]
            } else {
                &mut self.others[user - devices].1
            };
            *past += (f64::from(count) - *past) / memory;
            if count == 0 {
                continue;
            }
            let bits = (f64::from(count) * per_prb) as u64;
            let rnti = if user < devices { rnti(user) } else { Rnti(0x2000 + (user - devices) as u16) };
            dcis.push(dci(rnti, start, count, bits, false));
            start += count;
            if user < devices {
                let block = self.fill(user, carrier, count, bits);
                self.transmit(user, block);
            }
        }
    }

    fn fill(&mut self, device: usize, carrier: usize, prbs: u16, bits: u64) -> Block {
        let device = &mut self.devices[device];
        let mut room = (bits as f64 * (1.0 - self.conditions.overhead) / 8.0) as u64;
        let mut packets = vec![];
        while let Some(packet) = device.queue.front_mut() {
            let part = packet.left.min(room);
            packet.left -= part;
            device.backlog -= part;
            room -= part;
            if packet.left > 0 {
                break;
            }
            packets.extend(device.queue.pop_front());
        }
        device.sequence += 1;
        Block { carrier, due: 0, tries: 0, prbs, bits, sequence: device.sequence - 1, packets }
    }

    fn transmit(&mut self, device: usize, mut block: Block) {
        let error = 1.0 - libm::exp(block.bits as f64 * libm::log1p(-self.conditions.bit_error));
        let error = if block.tries == 0 { error } else { 0.1 * error };
        block.tries += 1;
        if self.rng.chance(error) && block.tries < 4 {
            block.due = self.subframe + 8;
            self.devices[device].harq.push(block);
        } else {
            self.devices[device].received.insert(block.sequence, block.packets);
        }
    }

    /// Blocks leave in order.
    fn release(&mut self, device: usize) {
        let clock = self.receiver_clock();
        loop {
            let expected = self.devices[device].expected;
            let Some(packets) = self.devices[device].received.remove(&expected) else { break };
            self.devices[device].expected += 1;
            for packet in packets {
                self.flows[packet.flow].last_data = self.now;
                let recent = self.now - Duration::from_millis(100);
                let device_flows = self.flows.iter().filter(|flow| {
                    flow.device == device && flow.last_data >= recent.max(Time::from_nanos(1))
                });
                let device = DeviceFlows { flows: device_flows.count() as u16, ..DeviceFlows::ALONE };
                let base = self.conditions.wire + Duration::from_millis(1);
                let flow = &mut self.flows[packet.flow];
                flow.delivered += MSS;
                flow.delays_ms.push((self.now - packet.sent).saturating_sub(base).as_secs_f64() * 1e3);
                flow.acker.on_packet(&Arrival {
                    now: clock,
                    sent: packet.sent,
                    number: packet.number,
                    bytes: MSS,
                    ecn: Ecn::NotEct,
                    header: packet.header.as_bytes(),
                    device,
                });
            }
        }
    }

    fn report(&mut self, carrier: usize, dcis: Vec<Dci>) {
        if self.conditions.blind || self.conditions.deaf.contains(&carrier) {
            return;
        }
        let time = self.receiver_clock();
        for flow in &mut self.flows {
            flow.acker.on_radio(&RadioReport {
                carrier: CarrierId(carrier as u8),
                time,
                slot: Slot::subframe_of_lte(self.subframe),
                scope: Scope::Everyone,
                carrier_prbs: Some(self.conditions.carriers[carrier]),
                cfi: Some(1),
                dcis: dcis.clone(),
                own: Some(OwnRadio {
                    rnti: rnti(flow.device),
                    active: carrier < self.conditions.active,
                    sinr_db: Some(self.conditions.sinr_db),
                    bits_per_prb: self.conditions.bits_per_prb,
                    decoded: None,
                    uplink_queue: None,
                }),
                layer: BitLayer::Physical,
            });
        }
    }
}

fn rnti(device: usize) -> Rnti {
    Rnti(0x100 + device as u16)
}

fn dci(rnti: Rnti, start: u16, prbs: u16, bits: u64, is_retransmission: bool) -> Dci {
    Dci {
        rnti,
        prbs: PrbSet::run(start, prbs),
        mcs: [Some(20), None],
        tbs: [Bits(bits), Bits::ZERO],
        layers: 1,
        retransmission: [is_retransmission, false],
        ..Dci::default()
    }
}
