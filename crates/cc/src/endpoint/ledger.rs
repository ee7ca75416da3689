//! The controller's half of a sender, for a transport that has its own packet numbers and its own loss detection.
//!
//! A foreign transport says: number n left, was acknowledged, was lost. The ledger makes of it what a [`Sender`] makes
//! of ACKs: the same [`Sent`], [`Ack`], [`Loss`] and [`RateSample`] by the same estimators, in the order of the
//! contract. It also holds the pacer, and so says how many packets may leave now, and when the next may.
//!
//! ```text
//!  transport ── sent, acked, lost ──▶ Ledger ──▶ Controller
//!  transport ◀── allowance, next ──── Ledger ◀── Control
//! ```
//!
//! [`Sender`]: crate::endpoint::Sender
//! [`RateSample`]: crate::controller::RateSample

use std::collections::VecDeque;
use std::time::Duration;

use airpace_core::{Bytes, Rider, Time};
use airpace_radio::RadioReport;

use crate::controller::{Ack, Control, Controller, Inspect, Loss, LossCause, Rtt, Sent, SentPacket};
use crate::delivery_rate::DeliveryRate;
use crate::endpoint::RttEstimator;
use crate::endpoint::sender::recovery::{Timeouts, is_persistent};
use crate::endpoint::sent::{Entry, SentPackets, Status};
use crate::pacer::{Pacer, PacerConfig};
use crate::registry::DeviceFlows;

/// The sending end of a flow whose packets another transport numbers, acknowledges and declares lost.
///
/// Report what happened with [`Ledger::on_sent`], [`Ledger::on_acked`] and [`Ledger::on_lost`]. When all that one
/// datagram showed has been reported, call [`Ledger::settle`]: only then is the controller told.
pub struct Ledger {
    mss: Bytes,
    controller: Box<dyn Controller>,
    control: Control,
    pacer: Pacer,
    blocked: Blocked,

    packets: SentPackets,
    /// The transport's numbers of the remembered packets, oldest first. They rise.
    names: VecDeque<u64>,
    inflight: Bytes,
    rtt: RttEstimator,
    timeouts: Timeouts,
    rate: DeliveryRate,
    largest_acked: Option<u64>,
    first_sample: Option<Time>,
    silent_since: Time,
    advertised: Option<Bytes>,
    /// What the controller says with the next packet, if it was told of it already.
    announced: Option<Rider>,
    /// Marked packets that no [`Ack`] has reported yet.
    marked: u64,

    /// What the next settling will report, as numbers of our own.
    acked: Vec<u64>,
    lost: Vec<u64>,
    counts: Counts,
    /// Scratch space, kept to reuse its memory.
    acked_packets: Vec<SentPacket>,
    lost_packets: Vec<SentPacket>,
}

/// What keeps a packet from leaving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// The application has nothing to send.
    Application,
    /// The congestion window is full.
    Window,
    /// The receiver's window is full, but the congestion window is not.
    Receiver,
    /// The pacer holds it back until then.
    Pacing(Time),
    /// No more packets can be remembered.
    Memory,
}

/// Packets and bytes of a ledger's life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets that left.
    pub sent: u64,
    /// Bytes that left.
    pub sent_bytes: Bytes,
    /// Packets acknowledged.
    pub acked: u64,
    /// Packets declared lost.
    pub lost: u64,
    /// Bytes declared lost.
    pub lost_bytes: Bytes,
    /// Packets declared lost whose acknowledgement came later.
    pub spurious: u64,
}

impl Ledger {
    /// A ledger of which no packet has left yet.
    pub fn new(now: Time, mss: Bytes, pacer: PacerConfig, controller: Box<dyn Controller>) -> Ledger {
        let control = controller.control();
        let mut pacer = Pacer::new(pacer);
        pacer.set_rate(now, control.pacing_rate);
        let rtt = RttEstimator::default();
        Ledger {
            mss,
            controller,
            control,
            pacer,
            blocked: Blocked::Application,
            packets: SentPackets::default(),
            names: VecDeque::new(),
            inflight: Bytes::ZERO,
            rtt,
            timeouts: Timeouts::of(&rtt, Duration::ZERO),
            rate: DeliveryRate::new(),
            largest_acked: None,
            first_sample: None,
            silent_since: now,
            advertised: None,
            announced: None,
            marked: 0,
            acked: Vec::new(),
            lost: Vec::new(),
            counts: Counts::default(),
            acked_packets: Vec::new(),
            lost_packets: Vec::new(),
        }
    }

    /// How many packets of `bytes` may leave at `now`, at least one; or what keeps them. Nothing changes: if there is
    /// a packet that wants to leave and must not, say so with [`Ledger::on_held`].
    ///
    /// # Errors
    /// What keeps a packet from leaving.
    pub fn allowance(&self, now: Time, bytes: Bytes) -> Result<u64, Blocked> {
        if self.packets.is_full() {
            return Err(Blocked::Memory);
        }
        let room = |window: Bytes| (window - self.inflight).0 / bytes.0.max(1);
        let by_window = room(self.control.cwnd);
        if self.inflight + bytes > self.control.cwnd {
            return Err(Blocked::Window);
        }
        let advertised = self.advertised.map(|advertised| advertised.max(self.mss));
        if advertised.is_some_and(|advertised| self.inflight + bytes > advertised) {
            return Err(Blocked::Receiver);
        }
        let by_pacer = self.pacer.burst(now, bytes);
        if by_pacer == 0 {
            return Err(Blocked::Pacing(self.pacer.next(bytes).unwrap_or(now)));
        }
        Ok(by_window.min(advertised.map_or(u64::MAX, room)).min(by_pacer))
    }

    /// A packet of `bytes` wanted to leave, and [`Ledger::allowance`] did not let it.
    pub fn on_held(&mut self, now: Time, bytes: Bytes, by: Blocked) {
        self.blocked = match by {
            Blocked::Pacing(until) if !self.pacer.ready(now, bytes) => {
                Blocked::Pacing(self.pacer.next(bytes).unwrap_or(until))
            }
            by => by,
        };
    }

    /// The application had nothing to send.
    pub fn on_idle(&mut self) {
        self.blocked = Blocked::Application;
        if self.inflight < self.control.cwnd {
            self.rate.on_app_limited(self.inflight);
        }
    }

    /// The packet that the transport calls `name` left, with `bytes` on the wire. A name must be greater than any
    /// before; another is ignored. `app_limited` says that nothing was left to send after it. Returns what the
    /// controller says to the receiver half with it.
    pub fn on_sent(&mut self, now: Time, name: u64, bytes: Bytes, app_limited: bool) -> Rider {
        if self.names.back().is_some_and(|newest| name <= *newest) || self.packets.is_full() {
            return Rider::EMPTY;
        }
        if self.inflight == Bytes::ZERO {
            self.silent_since = now;
        }
        self.inflight += bytes;
        let rate = self.rate.on_sent(now, bytes, self.inflight);
        // No IP packet is longer than 64 KiB.
        let bytes_u32 = u32::try_from(bytes.0).unwrap_or(u32::MAX);
        let entry = Entry { sent: now, bytes: bytes_u32, copy: false, status: Status::Outstanding, rate };
        let number = self.packets.push(entry);
        self.names.push_back(name);
        self.pacer.on_sent(now, bytes);
        self.counts.sent += 1;
        self.counts.sent_bytes += bytes;
        if self.announced.take().is_none() {
            self.controller.on_sent(&Sent { now, number, bytes, inflight: self.inflight, app_limited });
        }
        let header = self.controller.header();
        self.refresh(now);
        header
    }

    /// Tells the controller of the packet that leaves next, as far as it is known: about `bytes`, and whether nothing is
    /// left to send after it. Returns what the controller says to the receiver half with it. For a transport that must
    /// write that before it knows the packet; its [`Ledger::on_sent`] does not tell the controller again. If no packet
    /// leaves now, this was about the one that leaves next.
    pub fn announce(&mut self, now: Time, bytes: Bytes, app_limited: bool) -> Rider {
        if let Some(header) = self.announced {
            return header;
        }
        let (number, inflight) = (self.packets.next_number(), self.inflight + bytes);
        self.controller.on_sent(&Sent { now, number, bytes, inflight, app_limited });
        let header = self.controller.header();
        self.announced = Some(header);
        header
    }

    /// The packet called `name` was acknowledged. Returns whether it is one of the ledger's.
    pub fn on_acked(&mut self, name: u64) -> bool {
        let number = self.number(name);
        self.acked.extend(number);
        number.is_some()
    }

    /// The packet called `name` was declared lost. Returns whether it is one of the ledger's.
    pub fn on_lost(&mut self, name: u64) -> bool {
        let number = self.number(name);
        self.lost.extend(number);
        number.is_some()
    }

    /// The transport saw that all packets that it declared lost lately have been acknowledged after all.
    ///
    /// Chosen: those that left within two round trips. Transports remember lost packets for at least as long.
    pub fn on_late(&mut self, now: Time) {
        let Ledger { packets, acked, .. } = self;
        let span = self.rtt.get().smoothed * 2;
        packets.visit_lost(|number, entry| {
            if now - entry.sent <= span {
                acked.push(number);
            }
        });
    }

    /// So many more packets were reported as marked by a queue.
    pub fn on_marked(&mut self, packets: u64) {
        self.marked += packets;
    }

    /// The most bytes that the receiver allows outstanding from now on; `None` for no limit.
    pub fn on_advertised(&mut self, window: Option<Bytes>) {
        self.advertised = window;
    }

    /// All that an input showed has been reported. Tells the controller: first the losses, then what was acknowledged,
    /// with `feedback`, which came with it; if nothing was, the feedback alone.
    pub fn settle(&mut self, now: Time, feedback: &[u8]) {
        let prior_inflight = self.inflight;
        let acked = self.acknowledge(now);
        let sample = self.acked_packets.last().copied().map(|newest| self.sample_rtt(now, &newest));
        if sample.is_some() {
            self.silent_since = now;
        }
        let lost = self.lose();
        if !self.lost_packets.is_empty() {
            let persistent = is_persistent(&self.lost_packets, self.first_sample, self.timeouts.persistent);
            let cause = if persistent { LossCause::Persistent } else { LossCause::Threshold };
            self.tell_losses(now, prior_inflight, lost, cause);
        }
        if let Some(sample) = sample {
            let ce = std::mem::take(&mut self.marked);
            self.rate.on_marked(ce);
            let rate = self.rate.sample(self.rtt.get().min);
            self.controller.on_ack(&Ack {
                now,
                packets: &self.acked_packets,
                acked,
                prior_inflight,
                inflight: self.inflight,
                next_number: self.packets.next_number(),
                rtt: Rtt { latest: sample, ..self.rtt.get() },
                rate,
                cwnd_limited: self.blocked == Blocked::Window,
                ce,
                feedback,
            });
            self.forget(now);
        } else if !feedback.is_empty() {
            self.controller.on_feedback(now, feedback);
        } else if self.lost_packets.is_empty() {
            return;
        }
        self.refresh(now);
    }

    /// The instant that [`Ledger::next`] returned has come. A call at another time does no harm.
    pub fn on_timeout(&mut self, now: Time) {
        let mut is_news = false;
        if self.silence_deadline().is_some_and(|deadline| deadline <= now) {
            self.silent_since = now;
            self.lose_all(now);
            is_news = true;
        }
        if self.controller.next_timer().is_some_and(|timer| timer <= now) {
            self.controller.on_timer(now);
            is_news = true;
        }
        if is_news {
            self.refresh(now);
        }
    }

    /// When to call [`Ledger::on_timeout`] and to ask for an allowance, if nothing happens earlier.
    pub fn next(&self) -> Option<Time> {
        let pacing = if let Blocked::Pacing(until) = self.blocked { Some(until) } else { None };
        [pacing, self.silence_deadline(), self.controller.next_timer()].into_iter().flatten().min()
    }

    /// The flow has moved to another path: what is in flight counts as lost, and round-trip times are measured anew.
    ///
    /// Source: RFC 9000 §9.4
    ///
    /// Differs: the controller is not a new one; persistent congestion brings it to its least window.
    pub fn on_moved(&mut self, now: Time) {
        self.rtt = RttEstimator::default();
        self.timeouts = Timeouts::of(&self.rtt, Duration::ZERO);
        self.first_sample = None;
        self.lose_all(now);
        self.refresh(now);
    }

    /// The transport will say nothing more about the packets in flight: they leave the books, neither acknowledged nor
    /// lost.
    pub fn on_forgotten(&mut self) {
        let Ledger { packets, inflight, .. } = self;
        packets.forsake(|entry| *inflight -= entry.bytes());
    }

    /// The sender's own radio reported a subframe.
    pub fn on_radio(&mut self, now: Time, report: &RadioReport) {
        self.controller.on_radio(report);
        self.refresh(now);
    }

    /// What the sender's own device knows about its flows.
    pub fn on_device(&mut self, now: Time, flows: &DeviceFlows) {
        self.controller.on_device(now, flows);
        self.refresh(now);
    }

    /// The controller.
    pub fn controller(&self) -> &dyn Controller {
        &*self.controller
    }

    /// The controller's last control.
    pub fn control(&self) -> Control {
        self.control
    }

    /// What last kept a packet from leaving.
    pub fn blocked(&self) -> Blocked {
        self.blocked
    }

    /// Bytes outstanding: sent, neither acknowledged nor declared lost.
    pub fn inflight(&self) -> Bytes {
        self.inflight
    }

    /// Round-trip times; `None` before the first sample.
    pub fn rtt(&self) -> Option<Rtt> {
        self.first_sample.map(|_| self.rtt.get())
    }

    /// Bytes delivered so far.
    pub fn delivered(&self) -> Bytes {
        self.rate.delivered()
    }

    /// Packets and bytes so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Sending credit that a late driver lost; see [`Pacer::forfeited`].
    pub fn forfeited(&self) -> Bytes {
        self.pacer.forfeited()
    }

    /// Adds the names and values of the controller.
    pub fn inspect(&self, out: &mut Inspect) {
        self.controller.inspect(out);
    }

    /// Our number of the packet called `name`.
    fn number(&self, name: u64) -> Option<u64> {
        let index = self.names.binary_search(&name).ok()?;
        Some(self.packets.base() + index as u64)
    }

    /// Collects what is newly acknowledged in `self.acked_packets`. Returns its bytes.
    fn acknowledge(&mut self, now: Time) -> Bytes {
        let mut bytes = Bytes::ZERO;
        self.acked_packets.clear();
        self.acked.sort_unstable();
        let Ledger { packets, acked, acked_packets, rate, inflight, counts, .. } = self;
        for number in acked.drain(..) {
            packets.acknowledge(number, number, |number, entry| {
                acked_packets.push(entry.packet(number));
                bytes += entry.bytes();
                counts.acked += 1;
                rate.on_delivered(now, entry.bytes(), entry.sent, &entry.rate);
                match entry.status {
                    Status::Outstanding => *inflight -= entry.bytes(),
                    _ => counts.spurious += 1,
                }
            });
        }
        bytes
    }

    /// Collects what is newly lost in `self.lost_packets`. Returns its bytes.
    fn lose(&mut self) -> Bytes {
        let mut bytes = Bytes::ZERO;
        self.lost_packets.clear();
        self.lost.sort_unstable();
        let Ledger { packets, lost, lost_packets, rate, inflight, .. } = self;
        for number in lost.drain(..) {
            packets.lose_one(number, |number, entry| {
                *inflight -= entry.bytes();
                rate.on_lost(entry.bytes());
                bytes += entry.bytes();
                lost_packets.push(entry.packet(number));
            });
        }
        bytes
    }

    /// Everything outstanding is lost.
    fn lose_all(&mut self, now: Time) {
        let prior_inflight = self.inflight;
        let mut bytes = Bytes::ZERO;
        self.lost_packets.clear();
        let Ledger { packets, lost_packets, rate, inflight, .. } = self;
        packets.lose_all(|number, entry| {
            *inflight -= entry.bytes();
            rate.on_lost(entry.bytes());
            bytes += entry.bytes();
            lost_packets.push(entry.packet(number));
        });
        if !self.lost_packets.is_empty() {
            self.tell_losses(now, prior_inflight, bytes, LossCause::Persistent);
        }
        self.forget(now);
    }

    /// Reports `self.lost_packets` to the controller.
    fn tell_losses(&mut self, now: Time, prior_inflight: Bytes, lost: Bytes, cause: LossCause) {
        self.counts.lost += self.lost_packets.len() as u64;
        self.counts.lost_bytes += lost;
        self.controller.on_loss(&Loss {
            now,
            packets: &self.lost_packets,
            lost,
            prior_inflight,
            inflight: self.inflight,
            next_number: self.packets.next_number(),
            cause,
        });
    }

    /// Takes an RTT sample if `newest` is the highest packet acknowledged so far.
    ///
    /// Source: RFC 9002 §5.1
    ///
    /// Chosen: a transport is asked for an ACK of every packet, or of every millisecond, so that no delay of the ACK
    /// is taken off.
    fn sample_rtt(&mut self, now: Time, newest: &SentPacket) -> Option<Duration> {
        if self.largest_acked.is_some_and(|largest| newest.number < largest) {
            return None;
        }
        self.largest_acked = Some(newest.number);
        let sample = now - newest.sent;
        self.rtt.update(sample, Duration::ZERO);
        self.timeouts = Timeouts::of(&self.rtt, Duration::ZERO);
        self.first_sample.get_or_insert(now);
        Some(sample)
    }

    fn silence_deadline(&self) -> Option<Time> {
        (self.inflight > Bytes::ZERO).then(|| self.silent_since + self.timeouts.silence)
    }

    fn forget(&mut self, now: Time) {
        let base = self.packets.base();
        self.packets.forget(now);
        self.names.drain(..(self.packets.base() - base) as usize);
    }

    fn refresh(&mut self, now: Time) {
        self.control = self.controller.control();
        self.pacer.set_rate(now, self.control.pacing_rate);
    }
}
