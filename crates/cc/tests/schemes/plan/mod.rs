//! A laboratory for controllers: flows over one bottleneck, written as conditions → run → check.
//!
//! A test needs this laboratory if it loses one particular packet, changes the path or the application while a flow
//! runs, reads a flow's state more often than every 10 ms, reacts to this state, or builds endpoints by hand. Other
//! tests belong in `crates/sim/tests/`.
//!
//! ```text
//! Sender ── wire: rtt/2, random loss ──▶ drop-tail queue, rate(t) ──▶ Acker
//!    ▲                                                                  │
//!    └────────────────────────── rtt/2 ─────────────────────────────────┘
//! ```
//!
//! ```ignore
//! let mut plan = Plan::new(Conditions { rtt: Duration::from_millis(40), ..Conditions::default() });
//! let flow = plan.start("cubic");
//! plan.run_for(Duration::from_secs(10));
//! let seen = plan.seen(flow);
//! assert!(seen.utilization > 0.9, "CUBIC fills the link");
//! plan.rate_from(plan.now() + Duration::from_secs(1), Rate::from_mbps(5.0));
//! ```
#![allow(dead_code)] // each test file uses only some of the items

mod radio;
mod wired;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use airpace_cc::controller::{Arrival, Control, Inspect, Sees, Truth};
use airpace_cc::endpoint::{AckFrame, AckPolicy, Acker, Backlog, Sender, SenderConfig};
use airpace_cc::registry::FlowRegistry;
use airpace_cc::{Ends, SchemeSpec, Setup};
use airpace_core::{Bytes, Ecn, FlowId, Rate, Rider, Rng, Streams, Time};

pub use radio::Modem;
use wired::Wired;

/// Bytes of a full packet.
pub const MSS: Bytes = Bytes(1500);

/// The path at the start of a plan.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    /// The rate of the bottleneck.
    pub rate: Rate,
    /// Round-trip time of an empty path.
    pub rtt: Duration,
    /// The size of the queue.
    pub buffer: Bytes,
    /// Share of packets lost at random before the queue.
    pub loss: f64,
    /// Whether the bottleneck is a cell of 100 PRBs. The receivers get a report of every subframe. Each flow is on a
    /// device of its own.
    pub radio: bool,
    /// If the bottleneck is the uplink of one device with all flows: what the device's modem reports at the start;
    /// otherwise `None`.
    pub uplink: Option<Modem>,
    /// Seed of all random numbers.
    pub seed: u64,
}

/// 20 Mbit/s, 40 ms, a buffer of two bandwidth-delay products, no loss, no radio.
impl Default for Conditions {
    fn default() -> Conditions {
        Conditions {
            rate: Rate::from_mbps(20.0),
            rtt: Duration::from_millis(40),
            buffer: Bytes(200_000),
            loss: 0.0,
            radio: false,
            uplink: None,
            seed: 1,
        }
    }
}

/// Results of a flow since the last [`Plan::forget`].
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Bits delivered per second.
    pub throughput: Rate,
    /// The throughput relative to the total capacity of the bottleneck.
    pub utilization: f64,
    /// Mean queueing delay of the delivered packets, without the transmission time of the packet itself (ms).
    pub queueing_delay_mean_ms: f64,
    /// The 95th percentile of the queueing delay (ms).
    pub queueing_delay_p95_ms: f64,
    /// Ratio of lost to sent packets.
    pub loss_rate: f64,
    /// Packets delivered.
    pub delivered: u64,
}

/// Flows over one bottleneck.
pub struct Plan {
    conditions: Conditions,
    now: Time,
    /// The current rate of the bottleneck, followed by the future rates, each with its start time.
    rates: VecDeque<(Time, Rate)>,
    events: BinaryHeap<Reverse<Scheduled>>,
    scheduled: u64,
    loss: Rng,
    /// Queueing delay above which packets are marked, if their senders use ECN.
    mark_above: Option<Duration>,
    /// The wired part of the path, which may be a second bottleneck: behind an uplink, before a downlink.
    wired: Wired,
    modem: Option<Modem>,
    /// The flows of the one device of an uplink.
    registry: FlowRegistry,
    flows: Vec<Flow>,
    queue: VecDeque<InQueue>,
    queued: Bytes,
    /// Number of the scheduled departure of the packet at the head of the queue; `None` if there is none. The event of
    /// the departure has the same number.
    departure: Option<u64>,
    /// The time up to which the transmission of the packet at the head is counted in `served_bits`.
    served_until: Time,
    mark: Time,
    /// Bits that the bottleneck could have carried since `mark`.
    capacity_bits: f64,
    capacity_until: Time,
}

struct Flow {
    /// Additional inputs that the flow's controller uses, and inputs that its receiver uses.
    sees: [Sees; 2],
    sender: Sender,
    acker: Acker,
    wake: Option<Time>,
    /// Time of the acker's next timer.
    acker_wake: Option<Time>,
    lose_next: bool,
    on_wire: Bytes,
    delays_ms: Vec<f64>,
    delivered: Bytes,
    sent: u64,
    dropped: u64,
    /// Bits served in the current subframe.
    served_bits: f64,
    /// The application of the flow on its device.
    app: u32,
}

#[derive(Clone, Copy)]
struct InQueue {
    flow: usize,
    number: u64,
    bytes: Bytes,
    sent: Time,
    ecn: Ecn,
    header: Rider,
    arrived: Time,
    /// Total queueing delay.
    waited: Duration,
}

struct Scheduled {
    time: Time,
    order: u64,
    what: What,
}

enum What {
    Arrive(InQueue),
    Deliver(InQueue),
    Depart,
    Ack(usize, AckFrame),
    Wake(usize),
    WakeAcker(usize),
    Rate,
    Subframe,
}

impl Plan {
    /// An empty path.
    pub fn new(conditions: Conditions) -> Plan {
        let mut plan = Plan {
            conditions,
            now: Time::ZERO,
            rates: VecDeque::from([(Time::ZERO, conditions.rate)]),
            events: BinaryHeap::new(),
            scheduled: 0,
            loss: Streams::new(conditions.seed).stream("plan.loss"),
            mark_above: None,
            wired: Wired::default(),
            modem: conditions.uplink,
            registry: FlowRegistry::default(),
            flows: vec![],
            queue: VecDeque::new(),
            queued: Bytes::ZERO,
            departure: None,
            served_until: Time::ZERO,
            mark: Time::ZERO,
            capacity_bits: 0.0,
            capacity_until: Time::ZERO,
        };
        plan.schedule(Time::ZERO, What::Subframe);
        plan
    }

    /// Starts a bulk flow now. Returns its index.
    pub fn start(&mut self, scheme: &str) -> usize {
        self.start_with(scheme, Backlog::Unlimited)
    }

    /// Starts a flow that has only `backlog` to send. [`Plan::offer`] adds data to the backlog by [`Sender::offer`].
    pub fn start_with(&mut self, scheme: &str, backlog: Backlog) -> usize {
        let spec = SchemeSpec::parse(scheme).unwrap();
        self.start_ends(|setup| spec.build(setup).unwrap(), backlog)
    }

    /// Starts a flow whose endpoints are built by hand. Returns its index.
    pub fn start_ends(&mut self, build: impl FnOnce(&Setup) -> Ends, backlog: Backlog) -> usize {
        let index = self.flows.len();
        let rng = Streams::new(self.conditions.seed).stream(&format!("flow.{index}"));
        let ends = build(&Setup::new(MSS, rng));
        let receiver_sees = ends.receiver.as_ref().map_or(Sees::Packets, |receiver| receiver.sees());
        let config = SenderConfig::new(FlowId(index as u16), MSS);
        self.flows.push(Flow {
            sees: [ends.controller.sees(), receiver_sees],
            sender: Sender::new(config, ends.controller, backlog),
            acker: Acker::new(AckPolicy::default(), ends.receiver),
            wake: Some(self.now),
            acker_wake: None,
            lose_next: false,
            on_wire: Bytes::ZERO,
            delays_ms: vec![],
            delivered: Bytes::ZERO,
            sent: 0,
            dropped: 0,
            served_bits: 0.0,
            app: index as u32,
        });
        self.schedule(self.now, What::Wake(index));
        index
    }

    /// The application of `flow` has `bytes` more to send.
    pub fn offer(&mut self, flow: usize, bytes: Bytes) {
        self.flows[flow].sender.offer(bytes);
        self.drain(flow);
    }

    /// Ends a flow.
    pub fn stop(&mut self, flow: usize) {
        self.flows[flow].sender.close();
    }

    /// The bottleneck carries `rate` from `time` on; zero is an outage. `time` must not be in the past, and must not be
    /// before the time of an earlier call.
    pub fn rate_from(&mut self, time: Time, rate: Rate) {
        assert!(time >= self.now && time >= self.rates.back().unwrap().0, "changes come in order");
        self.rates.push_back((time, rate));
        self.schedule(time, What::Rate);
    }

    /// Sets the share of packets lost at random from now on.
    pub fn set_loss(&mut self, loss: f64) {
        self.conditions.loss = loss;
    }

    /// From now on, the queue marks packets with a queueing delay above `delay`, if their senders use ECN.
    pub fn mark_above(&mut self, delay: Duration) {
        self.mark_above = Some(delay);
    }

    /// Sets the round-trip time of an empty path, for packets sent or delivered from now on.
    pub fn set_rtt(&mut self, rtt: Duration) {
        self.conditions.rtt = rtt;
    }

    /// Sets the rate of the path's wired part for packets that reach it from now on; `None` for no limit.
    pub fn set_wired(&mut self, rate: Option<Rate>) {
        self.wired.rate = rate;
    }

    /// Sets what the uplink's modem reports from now on; `None`: it reports nothing.
    pub fn set_modem(&mut self, modem: Option<Modem>) {
        self.modem = modem;
    }

    /// Sets the application of `flow` on the device. At first, each flow has its own application.
    pub fn set_app(&mut self, flow: usize, app: u32) {
        self.flows[flow].app = app;
    }

    /// The next packet of `flow` is lost on the wire.
    pub fn lose_next(&mut self, flow: usize) {
        self.flows[flow].lose_next = true;
    }

    /// The current time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Advances the time.
    pub fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        while let Some(Reverse(next)) = self.events.peek() {
            if next.time > end {
                break;
            }
            let Reverse(next) = self.events.pop().unwrap();
            self.now = next.time;
            self.step(next);
        }
        self.now = end;
    }

    /// The results of `flow` since the counters were last restarted. Results of several flows at one time cover the
    /// same period.
    pub fn seen(&mut self, flow: usize) -> Seen {
        self.count_capacity();
        let span = (self.now - self.mark).as_secs_f64();
        let flow = &self.flows[flow];
        let mut delays = flow.delays_ms.clone();
        delays.sort_by(f64::total_cmp);
        let count = delays.len();
        let percentile =
            |share: f64| delays.get((share * count as f64) as usize).copied().unwrap_or(f64::NAN);
        let bits = flow.delivered.bits().0 as f64;
        Seen {
            throughput: Rate::from_bps_f64(bits / span),
            utilization: bits / self.capacity_bits,
            queueing_delay_mean_ms: delays.iter().sum::<f64>() / count as f64,
            queueing_delay_p95_ms: percentile(0.95),
            loss_rate: flow.dropped as f64 / (flow.sent as f64).max(1.0),
            delivered: count as u64,
        }
    }

    /// Restarts the counters of all flows.
    pub fn forget(&mut self) {
        self.count_capacity();
        self.mark = self.now;
        self.capacity_bits = 0.0;
        for flow in &mut self.flows {
            flow.delays_ms.clear();
            flow.delivered = Bytes::ZERO;
            flow.sent = 0;
            flow.dropped = 0;
        }
    }

    /// The sender of `flow`.
    pub fn sender(&self, flow: usize) -> &Sender {
        &self.flows[flow].sender
    }

    /// The control of `flow`'s controller.
    pub fn control(&self, flow: usize) -> Control {
        self.flows[flow].sender.control()
    }

    /// The window of `flow` in packets.
    pub fn cwnd_packets(&self, flow: usize) -> f64 {
        self.control(flow).cwnd.0 as f64 / MSS.0 as f64
    }

    /// The internal values of `flow`'s controller and receiver.
    pub fn inspect(&self, flow: usize) -> Inspect {
        let mut inspect = Inspect::default();
        self.flows[flow].sender.inspect(&mut inspect);
        self.flows[flow].acker.inspect(&mut inspect);
        inspect
    }

    /// Bytes in the queue.
    pub fn queued(&self) -> Bytes {
        self.queued
    }

    fn schedule(&mut self, time: Time, what: What) {
        let order = self.scheduled;
        self.scheduled += 1;
        self.events.push(Reverse(Scheduled { time, order, what }));
    }

    fn step(&mut self, next: Scheduled) {
        match next.what {
            What::Arrive(packet) => self.arrive(packet),
            What::Deliver(packet) => self.deliver(packet),
            What::Depart if self.departure == Some(next.order) => self.depart(),
            What::Depart => {}
            What::Ack(flow, frame) => {
                self.flows[flow].sender.on_ack(self.now, &frame).expect("the path only delivers real ACKs");
                self.drain(flow);
            }
            // A wake-up that was replaced by an earlier wake-up is ignored.
            What::Wake(flow) if self.flows[flow].wake == Some(self.now) => {
                self.flows[flow].wake = None;
                self.flows[flow].sender.handle_timeout(self.now);
                self.drain(flow);
            }
            What::WakeAcker(flow) if self.flows[flow].acker_wake == Some(self.now) => {
                self.flows[flow].acker_wake = None;
                self.flows[flow].acker.handle_timeout(self.now);
                self.acknowledge(flow);
            }
            What::Wake(_) | What::WakeAcker(_) => {}
            What::Rate => {
                self.count_capacity();
                self.count_served();
                self.rates.pop_front();
                // The transmission of the packet at the head starts again at the new rate.
                self.departure = None;
                self.serve();
            }
            What::Subframe => self.subframe(),
        }
    }

    /// Sends all packets that `flow` may send, and sets its next wake-up.
    fn drain(&mut self, index: usize) {
        let half = self.conditions.rtt / 2;
        while let Some(transmit) = self.flows[index].sender.poll_transmit(self.now) {
            let lost = self.loss.chance(self.conditions.loss);
            let flow = &mut self.flows[index];
            flow.sent += 1;
            if lost || std::mem::take(&mut flow.lose_next) {
                flow.dropped += 1;
                continue;
            }
            flow.on_wire += transmit.bytes;
            let packet = InQueue {
                flow: index,
                number: transmit.number,
                bytes: transmit.bytes,
                sent: self.now,
                ecn: transmit.ecn,
                header: transmit.header,
                arrived: self.now + half,
                waited: Duration::ZERO,
            };
            self.registry.observe(self.now, &radio::key(index), self.flows[index].app, packet.bytes);
            let crosses_wired = self.conditions.uplink.is_none();
            if let Some(waited) = self.wired.wait(self.now, &packet, self.conditions.buffer, crosses_wired) {
                let arrived = packet.arrived + waited;
                self.schedule(arrived, What::Arrive(InQueue { arrived, waited, ..packet }));
            } else {
                self.flows[index].dropped += 1;
            }
        }
        let flow = &mut self.flows[index];
        let Some(next) = flow.sender.poll_timeout() else { return };
        let next = next.max(self.now);
        if flow.wake.is_none_or(|wake| next < wake) {
            flow.wake = Some(next);
            self.schedule(next, What::Wake(index));
        }
    }

    fn arrive(&mut self, packet: InQueue) {
        let flow = &mut self.flows[packet.flow];
        flow.on_wire -= packet.bytes;
        if self.queued + packet.bytes > self.conditions.buffer {
            flow.dropped += 1;
            return;
        }
        self.queued += packet.bytes;
        self.queue.push_back(packet);
        self.serve();
    }

    /// Starts the transmission of the packet at the head, if no packet is being transmitted.
    fn serve(&mut self) {
        let rate = self.rates[0].1;
        let Some(head) = self.queue.front() else { return };
        if self.departure.is_none() && rate > Rate::ZERO {
            self.departure = Some(self.scheduled);
            self.served_until = self.now;
            self.schedule(self.now + rate.time_for(head.bytes), What::Depart);
        }
    }

    fn depart(&mut self) {
        self.count_served();
        self.departure = None;
        let packet = self.queue.pop_front().expect("a departure has its packet");
        self.queued -= packet.bytes;
        let transmission = self.rates[0].1.time_for(packet.bytes);
        let waited = (self.now - packet.arrived).saturating_sub(transmission);
        let packet = InQueue { waited: packet.waited + waited, ..packet };
        let crosses_wired = self.conditions.uplink.is_some();
        match self.wired.wait(self.now, &packet, self.conditions.buffer, crosses_wired) {
            Some(Duration::ZERO) => self.deliver(packet),
            Some(wait) => {
                let packet = InQueue { waited: packet.waited + wait, ..packet };
                self.schedule(self.now + wait, What::Deliver(packet));
            }
            None => self.flows[packet.flow].dropped += 1,
        }
        self.serve();
    }

    fn deliver(&mut self, packet: InQueue) {
        let marked = packet.ecn == Ecn::Ect && self.mark_above.is_some_and(|delay| packet.waited > delay);
        let flow = &mut self.flows[packet.flow];
        flow.delivered += packet.bytes;
        flow.delays_ms.push(packet.waited.as_secs_f64() * 1e3);
        let mut arrival = Arrival::new(self.now, packet.sent, packet.number, packet.bytes);
        arrival.ecn = if marked { Ecn::Ce } else { packet.ecn };
        arrival.header = packet.header.as_bytes();
        flow.acker.on_packet(&arrival);
        self.acknowledge(packet.flow);
    }

    /// Sends the ACK that is due, and sets the next wake-up of the acker.
    fn acknowledge(&mut self, index: usize) {
        while let Some(frame) = self.flows[index].acker.poll_ack(self.now) {
            self.schedule(self.now + self.conditions.rtt / 2, What::Ack(index, frame));
        }
        let flow = &mut self.flows[index];
        let Some(next) = flow.acker.poll_timeout() else { return };
        let next = next.max(self.now);
        if flow.acker_wake.is_none_or(|wake| next < wake) {
            flow.acker_wake = Some(next);
            self.schedule(next, What::WakeAcker(index));
        }
    }

    /// Runs every millisecond: reports the ground truth to schemes that may use it, and the radio reports of the
    /// subframe that ends.
    fn subframe(&mut self) {
        let active =
            self.flows.iter().filter(|flow| flow.sender.poll_timeout().is_some()).count().max(1) as f64;
        let forward_delay = self.conditions.rtt / 2;
        let then = self.now + forward_delay;
        let capacity =
            self.rates.iter().rev().find(|(from, _)| *from <= then).map_or(Rate::ZERO, |rate| rate.1);
        for index in 0..self.flows.len() {
            let backlog =
                self.queue.iter().filter(|packet| packet.flow == index).map(|packet| packet.bytes).sum();
            let truth = Truth {
                now: self.now,
                capacity: capacity.scaled(1.0 / active),
                enough: Bytes::ZERO,
                backlog,
                on_wire: self.flows[index].on_wire,
                forward_delay,
            };
            if self.flows[index].sees[0] == Sees::Truth {
                self.flows[index].sender.on_truth(&truth);
            }
            self.drain(index);
        }
        if self.conditions.radio && self.now > Time::ZERO {
            self.report_radio();
        }
        match self.modem.filter(|_| self.now > Time::ZERO) {
            Some(modem) => self.report_uplink(modem),
            // While the modem reports nothing, no sender receives its grants.
            None if !self.conditions.radio => self.flows.iter_mut().for_each(|flow| flow.served_bits = 0.0),
            None => {}
        }
        self.schedule(self.now + Duration::from_millis(1), What::Subframe);
    }

    /// Adds the transmitted part of the packet at the head to the counters.
    fn count_served(&mut self) {
        if let (Some(head), true) = (self.queue.front(), self.departure.is_some()) {
            let span = (self.now - self.served_until).as_secs_f64();
            self.flows[head.flow].served_bits += self.rates[0].1.as_bps() as f64 * span;
        }
        self.served_until = self.now;
    }

    fn count_capacity(&mut self) {
        let span = (self.now - self.capacity_until).as_secs_f64();
        self.capacity_bits += self.rates[0].1.as_bps() as f64 * span;
        self.capacity_until = self.now;
    }
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Scheduled) -> bool {
        (self.time, self.order) == (other.time, other.order)
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Scheduled) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Scheduled) -> std::cmp::Ordering {
        (self.time, self.order).cmp(&(other.time, other.order))
    }
}
